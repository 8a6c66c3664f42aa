//! Changes by hand: every single one that an object's leaves allow.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};
use takeover::gate::{Path, Step, leaves_of, remove, replace};

/// What somebody does to one leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Deed {
    /// It gets another value.
    Changed,
    /// It is removed.
    Removed,
    /// The map that it stands in gets one more key.
    KeyAdded,
    /// The list of items that it stands in gets one more.
    ItemAdded,
    /// The list's first two items change places.
    Reordered,
}

/// One change by hand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// What is done.
    pub deed: Deed,
    /// To which leaf; of an addition, to which map or list.
    pub path: Path,
}

impl std::fmt::Display for Edit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} {}", self.deed, self.path)
    }
}

/// Leaves that say nothing about what an object is meant to be, and what identifies an object:
/// with another name it is another object.
pub const EXEMPT: [&str; 11] = [
    "apiVersion",
    "kind",
    "metadata.creationTimestamp",
    "metadata.generation",
    "metadata.managedFields",
    "metadata.name",
    "metadata.namespace",
    "metadata.resourceVersion",
    "metadata.uid",
    "metadata.annotations[\"kubectl.kubernetes.io/last-applied-configuration\"]",
    "status",
];

/// Under which of [`EXEMPT`] a leaf falls.
pub fn exempt(path: &Path) -> Option<&'static str> {
    let text = path.to_string();
    EXEMPT.into_iter().find(|one| is_at_or_below(&text, one))
}

/// Whether a place, as text, is another one or lies below it.
pub fn is_at_or_below(path: &str, above: &str) -> bool {
    path.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// The key of what is added.
const ADDED: &str = "by-hand";

/// Every single change of an object: each leaf changed and removed, each map and each list with
/// keyed items added to, each such list reordered.
pub fn edits(object: &Value) -> Vec<Edit> {
    let mut edits = Vec::new();
    let (mut maps, mut lists) = (BTreeSet::new(), BTreeSet::new());
    for path in leaves_of(object).into_keys() {
        for (at, step) in path.0.iter().enumerate() {
            let above = Path(path.0.get(..at).unwrap_or_default().to_vec());
            match step {
                Step::Item(_) => lists.insert(above),
                Step::Key(_) if !path.is_order() || at + 1 < path.0.len() => maps.insert(above),
                Step::Key(_) => false,
            };
        }
        if path.is_order() {
            let list = Path(path.0.get(..path.0.len() - 1).unwrap_or_default().to_vec());
            edits.push(Edit { deed: Deed::Reordered, path: list });
            continue;
        }
        edits.push(Edit { deed: Deed::Changed, path: path.clone() });
        edits.push(Edit { deed: Deed::Removed, path });
    }
    edits.extend(maps.into_iter().map(|path| Edit { deed: Deed::KeyAdded, path }));
    edits.extend(lists.into_iter().map(|path| Edit { deed: Deed::ItemAdded, path }));
    edits
}

/// The object after a change; none when there is no such change.
pub fn edited(object: &Value, edit: &Edit) -> Option<Value> {
    let mut hand = object.clone();
    let at = at(object, &edit.path)?;
    let new = match (edit.deed, at) {
        (Deed::Changed, value) => changed(value),
        (Deed::Removed, _) => return remove(&mut hand, &edit.path).then_some(hand),
        (Deed::KeyAdded, Value::Object(map)) => {
            let mut map = map.clone();
            map.insert(ADDED.to_owned(), ADDED.into());
            map.into()
        }
        (Deed::ItemAdded, Value::Array(items)) => {
            let mut items = items.clone();
            items.push(another(items.first()?, &key_of(object, &edit.path), items.len()));
            items.into()
        }
        (Deed::Reordered, Value::Array(items)) => {
            let mut items = items.clone();
            items.get(1)?;
            items.swap(0, 1);
            items.into()
        }
        _ => return None,
    };
    replace(&mut hand, &edit.path, &new).then_some(hand)
}

/// The places at which two states of an object differ, orders of lists included where an item
/// that both have moved.
pub fn delta(before: &Value, after: &Value) -> BTreeSet<Path> {
    let (before, after) = (leaves_of(before), leaves_of(after));
    let paths: BTreeSet<&Path> = before.keys().chain(after.keys()).collect();
    let all: BTreeSet<Path> = paths
        .into_iter()
        .filter(|path| {
            before.get(path).map(|leaf| &leaf.value) != after.get(path).map(|leaf| &leaf.value)
        })
        .cloned()
        .collect();
    // An order that changed because of an item that came or went says nothing by itself.
    let others = all.iter().any(|path| !path.is_order() && exempt(path).is_none());
    all.into_iter().filter(|path| !others || !path.is_order()).collect()
}

/// Another value of the same type.
fn changed(value: &Value) -> Value {
    match value {
        Value::Null => json!(ADDED),
        Value::Bool(is) => json!(!is),
        Value::Number(number) => json!(number.as_i64().unwrap_or_default() + 1),
        // What says a number or a port stays one, so that servers take it.
        Value::String(text) => text
            .parse::<i64>()
            .map_or_else(|_| json!(format!("{text}x")), |number| json!((number + 1).to_string())),
        Value::Array(items) => {
            let mut items = items.clone();
            items.push(items.first().map_or_else(|| json!(ADDED), changed));
            items.into()
        }
        Value::Object(map) => {
            let mut map = map.clone();
            map.insert(ADDED.to_owned(), json!(ADDED));
            map.into()
        }
    }
}

fn at<'a>(object: &'a Value, path: &Path) -> Option<&'a Value> {
    path.0.iter().try_fold(object, |value, step| match step {
        Step::Key(key) => value.get(key),
        Step::Item(keys) => value.as_array()?.iter().find(|item| {
            keys.iter().all(|(key, wanted)| {
                let default = if key == "protocol" { "TCP" } else { "" };
                let value = if key.is_empty() { Some(*item) } else { item.get(key) };
                let text = value.map_or_else(
                    || default.to_owned(),
                    |v| v.as_str().map_or_else(|| v.to_string(), str::to_owned),
                );
                text == *wanted
            })
        }),
    })
}

/// The key by which a list's items are told apart; empty when the items are plain.
fn key_of(object: &Value, list: &Path) -> String {
    let paths = leaves_of(object);
    let item = paths.keys().find_map(|path| match path.0.get(list.0.len()) {
        Some(Step::Item(keys)) if list.is_above(path) => keys.first(),
        _ => None,
    });
    item.map(|(key, _)| key.clone()).unwrap_or_default()
}

/// An item like another one, with a key of its own.
fn another(item: &Value, key: &str, count: usize) -> Value {
    if key.is_empty() {
        return json!(format!("{ADDED}/item"));
    }
    let mut map = item.as_object().cloned().unwrap_or_else(Map::new);
    let other = match map.get(key) {
        Some(Value::Number(_)) => json!(65_000 + count),
        Some(Value::String(text)) if text.starts_with('/') => json!(format!("/{ADDED}")),
        _ => json!(ADDED),
    };
    map.insert(key.to_owned(), other);
    // Names are second keys of ports.
    if key != "name" && map.get("name").is_some_and(Value::is_string) {
        map.insert("name".to_owned(), json!(ADDED));
    }
    map.into()
}
