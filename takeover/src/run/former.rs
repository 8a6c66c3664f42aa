//! What a takeover changed in objects, leaf by leaf, and how an object is without it.
//!
//! ```text
//! differences of the gate ─► FormerLeaf (before, after) ─ stored plan
//! live object ─ undo: leaves that still have a value of the takeover's ─► the object as it was
//! ```
//!
//! A leaf that has its former value already is done, so that an undo can be done again; one that has
//! neither is somebody else's since, and stays.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::stored::{StoredObject, StoredPlan};
use crate::gate::{self, Change, Path, Step, consented, leaves_of, remove};
use crate::plan::Key;
use crate::survey::text;

/// A leaf that a takeover changed. Values are as a digest has them: null where there is none, a
/// credential by its keyed hash.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FormerLeaf {
    /// Where.
    pub path: Path,
    /// What was there.
    pub before: Value,
    /// What the takeover wrote; several when it was begun with one plan and went on with another.
    pub after: Vec<Value>,
}

/// Where a live leaf stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// It is as it was before.
    Back,
    /// It is as the takeover wrote it.
    Written,
    /// Somebody else wrote it since.
    Another,
}

/// Why a leaf stays as it is.
pub(crate) const CHANGED: &str = "somebody changed it since";
/// The value is gone.
const NOT_STORED: &str = "its former value is not stored";
/// Something else stands there.
const NO_PLACE: &str = "what surrounds it is another since";

/// An object without what a takeover changed.
pub(super) struct Undone {
    /// The object.
    pub(super) object: Value,
    /// Leaves that have their former value in it and have not yet.
    pub(super) back: Vec<usize>,
    /// Leaves that stay as they are, with the reason.
    pub(super) left: BTreeMap<usize, &'static str>,
}

impl FormerLeaf {
    /// Of a difference that the gate found. A credential that was there goes to `credentials`.
    pub(crate) fn of(
        key: &Key,
        kind: &str,
        change: &Change,
        credentials: &mut BTreeMap<String, Value>,
    ) -> Self {
        let before = key.leaf(kind, &change.path, change.live.as_ref());
        if let (Some(hash), Some(value)) = (hash_of(&before), &change.live) {
            credentials.insert(hash.to_owned(), value.clone());
        }
        let after = vec![key.leaf(kind, &change.path, change.new.as_ref())];
        Self { path: change.path.clone(), before, after }
    }

    fn standing(&self, key: &Key, kind: &str, live: Option<&Value>) -> Standing {
        let live = key.leaf(kind, &self.path, live);
        if is_same(&self.path, &live, &self.before) {
            Standing::Back
        } else if self.after.iter().any(|after| is_same(&self.path, &live, after)) {
            Standing::Written
        } else {
            Standing::Another
        }
    }

    /// What was there; the error says why that is not known.
    fn former(&self, stored: &StoredPlan, kind: &str) -> Result<Option<Value>, &'static str> {
        let Some(hash) = hash_of(&self.before) else {
            return Ok(self.before.get("value").cloned());
        };
        // In a snapshot without credentials their digests stand for them everywhere.
        if stored.is_hidden {
            let is_entry = kind == "Secret";
            let text = if is_entry { STANDARD.encode(hash) } else { hash.to_owned() };
            return Ok(Some(text.into()));
        }
        let key = Key(stored.key.clone());
        let value = stored.credentials.get(hash);
        let whole = value.filter(|value| key.leaf(kind, &self.path, Some(value)) == self.before);
        whole.map(|value| Some(value.clone())).ok_or(NOT_STORED)
    }

    /// Takes over from the same leaf of a plan that was begun and went on with another one.
    pub(super) fn inherit(&mut self, begun: &Self) {
        if begun.after.iter().any(|after| is_same(&self.path, &self.before, after)) {
            self.before.clone_from(&begun.before);
        }
        self.after.extend(begun.after.iter().cloned());
    }
}

fn hash_of(held: &Value) -> Option<&str> {
    held.get("hash").and_then(Value::as_str)
}

fn is_same(path: &Path, one: &Value, other: &Value) -> bool {
    match (one.get("value"), other.get("value")) {
        (None, None) => one == other,
        (one, other) => gate::same(path, one, other),
    }
}

/// The object without those leaves of a takeover that `only` names.
pub(super) fn undo(
    stored: &StoredPlan,
    object: &StoredObject,
    live: &Value,
    only: &dyn Fn(usize) -> bool,
) -> Undone {
    let (key, kind) = (Key(stored.key.clone()), text(live, "/kind"));
    let mut undone = Undone { object: live.clone(), back: Vec::new(), left: BTreeMap::new() };
    let leaves = leaves_of(live);
    let (mut gone, mut there) = (Vec::new(), Vec::new());
    for (index, leaf) in object.leaves.iter().enumerate() {
        match leaf.standing(&key, kind, leaves.get(&leaf.path).map(|leaf| &leaf.value)) {
            Standing::Back => {}
            Standing::Another => {
                undone.left.insert(index, CHANGED);
            }
            Standing::Written if !only(index) => {}
            Standing::Written => match leaf.former(stored, kind) {
                Ok(None) => gone.push((index, &leaf.path)),
                Ok(Some(value)) => there.push((index, &leaf.path, value)),
                Err(why) => {
                    undone.left.insert(index, why);
                }
            },
        }
    }
    undone.back.extend(gone.iter().map(|(index, _)| *index));
    undone.back.extend(there.iter().map(|(index, ..)| *index));
    take_away(&mut undone.object, object, gone.into_iter().map(|(_, path)| path));
    // What tells an item from others comes first, since the rest is found by it.
    there.sort_by_key(|(_, path, _)| (path.is_order(), !is_key(path)));
    for (_, path, value) in there {
        if path.is_order() {
            order(&mut undone.object, path, &value);
        } else {
            put(&mut undone.object, path, &value);
        }
    }
    // What a reader finds counts, and nothing else.
    let leaves = leaves_of(&undone.object);
    undone.back.retain(|index| {
        let leaf = object.leaves.get(*index);
        let is_back = leaf.is_some_and(|leaf| {
            let live = leaves.get(&leaf.path).map(|leaf| &leaf.value);
            leaf.standing(&key, kind, live) == Standing::Back
        });
        if !is_back {
            undone.left.insert(*index, NO_PLACE);
        }
        is_back
    });
    undone
}

/// Leaves in groups that belong together: those of one item that the takeover added.
pub(super) fn groups(object: &StoredObject, leaves: &[usize]) -> Vec<BTreeSet<usize>> {
    let leaf = |index: usize| object.leaves.get(index);
    let added: Vec<Path> = leaves
        .iter()
        .filter_map(|index| leaf(*index))
        .filter(|leaf| leaf.before.is_null() && is_key(&leaf.path))
        .map(|leaf| above(&leaf.path))
        .collect();
    let mut groups: BTreeMap<Path, BTreeSet<usize>> = BTreeMap::new();
    for index in leaves {
        let Some(leaf) = leaf(*index) else { continue };
        let item = added.iter().filter(|item| item.is_above(&leaf.path)).min();
        groups.entry(item.unwrap_or(&leaf.path).clone()).or_default().insert(*index);
    }
    groups.into_values().collect()
}

/// Whether a leaf is one by which a list's item is told from others.
fn is_key(path: &Path) -> bool {
    let [.., Step::Item(keys), Step::Key(name)] = path.0.as_slice() else { return false };
    keys.iter().any(|(key, _)| key == name)
}

fn above(path: &Path) -> Path {
    Path(path.0.iter().take(path.0.len().saturating_sub(1)).cloned().collect())
}

/// Takes leaves out, and what they leave empty. An item goes when nothing is left in it but what
/// tells it from others, and what the server fills in.
fn take_away<'p>(object: &mut Value, stored: &StoredObject, paths: impl Iterator<Item = &'p Path>) {
    let (keys, plain): (Vec<&Path>, Vec<&Path>) =
        paths.filter(|path| !path.is_order()).partition(|path| is_key(path));
    for path in plain.into_iter().rev() {
        remove(object, path);
        prune(object, path);
    }
    let items: BTreeSet<Path> = keys.into_iter().map(above).collect();
    let desired = stored.desired();
    for item in items.into_iter().rev() {
        let counts = consented(object, &desired, &BTreeSet::new());
        let mut below = counts.keys().filter(|path| item.is_above(path));
        if below.all(|path| path.is_order() || is_key(path) && above(path) == item) {
            remove(object, &item);
            prune(object, &item);
        }
    }
}

/// Removes the maps and lists above a place that are empty.
fn prune(object: &mut Value, path: &Path) {
    let mut at = above(path);
    while !at.0.is_empty() {
        if !find(object, &at).is_some_and(|value| is_empty(value)) {
            return;
        }
        remove(object, &at);
        at = above(&at);
    }
}

/// Whether it is a map or a list without anything in it.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

fn find<'o>(object: &'o mut Value, path: &Path) -> Option<&'o mut Value> {
    path.0.iter().try_fold(object, |at, step| gate::descend(at, step))
}

/// Puts a value where there may be nothing.
fn put(object: &mut Value, path: &Path, value: &Value) {
    let Some((last, steps)) = path.0.split_last() else { return };
    let mut at = object;
    for (index, step) in steps.iter().enumerate() {
        let next = path.0.get(index + 1);
        if gate::descend(at, step).is_none() {
            match (step, &mut *at) {
                (Step::Key(key), Value::Object(map)) => {
                    let is_list = matches!(next, Some(Step::Item(_)));
                    let empty = if is_list { json!([]) } else { Value::Object(Map::new()) };
                    map.insert(key.clone(), empty);
                }
                (Step::Item(_), Value::Array(items)) if is_key(path) && next == Some(last) => {
                    items.push(json!({ path.last_key(): value }));
                }
                _ => return,
            }
        }
        let Some(below) = gate::descend(at, step) else { return };
        at = below;
    }
    match (last, at) {
        // An empty map or list takes the place of nothing: what stands in it is somebody else's.
        (Step::Key(key), Value::Object(map)) if !(is_empty(value) && map.contains_key(key)) => {
            map.insert(key.clone(), value.clone());
        }
        (Step::Item(_), Value::Array(items)) if !items.contains(value) => items.push(value.clone()),
        _ => {}
    }
}

/// Brings the items of a list that stood in another order back into it; those that were not there
/// keep their places.
fn order(object: &mut Value, path: &Path, former: &Value) {
    let Some(former) = former.as_array() else { return };
    let now = leaves_of(object).remove(path).map(|leaf| leaf.value);
    let Some(Value::Array(names)) = now else { return };
    let Some(Value::Array(items)) = find(object, &above(path)) else { return };
    if names.len() != items.len() {
        return;
    }
    let place = |name: &Value| former.iter().position(|other| other == name);
    let mut known: Vec<(usize, Value)> = names
        .iter()
        .zip(items.iter())
        .filter_map(|(name, item)| Some((place(name)?, item.clone())))
        .collect();
    known.sort_by_key(|(at, _)| *at);
    let mut known = known.into_iter();
    for (name, slot) in names.iter().zip(items.iter_mut()) {
        if place(name).is_some()
            && let Some((_, item)) = known.next()
        {
            *slot = item;
        }
    }
}

#[cfg(test)]
mod tests;
