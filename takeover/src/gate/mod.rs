//! The diff gate: what a write would do to each object, leaf by leaf.
//!
//! ```text
//! rendered ─ desired (live values of what is generated or others') ─ patch ─► dry run or merge
//!                                                                      │            │
//! live ────────────────────────────────────────────────────────────────┴─ compare ◄─┘ after
//! ```
//!
//! The differences come from the very patch that is sent. (Takeover rules, section 3.)

mod defaults;
mod leaf;
mod others;
mod quantity;

use std::collections::BTreeSet;

use helm_rs::apply::ownership::{MANAGED_BY_LABEL, RELEASE_NAME, RELEASE_NAMESPACE};
use helm_rs::cluster::{Patch, PatchKind};
use helm_rs::release::redact::names_credential;
use mergepatch::{Schema, Schemas as _, embedded};
use serde_json::Value;

pub use defaults::pod_template;
pub(crate) use leaf::descend;
pub use leaf::{Leaf, Leaves, Manager, Path, Step, drop_nulls, leaves, remove, replace};
pub use others::is_controller;

/// A rendered object that is to be written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wanted {
    /// As rendered, with namespace and ownership metadata, without nulls.
    pub object: Value,
    /// Leaves that come out differently each time.
    pub generated: BTreeSet<Path>,
}

/// What is written over a live object, with what was left out of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Desired {
    /// The object: leaves that are generated or others' have their live values.
    pub object: Value,
    /// Generated leaves whose live value is kept.
    pub kept: BTreeSet<Path>,
    /// Rendered leaves that somebody else drives, with who does.
    pub yielded: Vec<(Path, String)>,
}

/// A leaf that the write would change.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Where.
    pub path: Path,
    /// What is there; none when there is nothing.
    pub live: Option<Value>,
    /// What will be there.
    pub new: Option<Value>,
    /// Who set the live value.
    pub managers: Vec<Manager>,
}

/// A live leaf that the chart does not name, and that stays.
#[derive(Clone, Debug, PartialEq)]
pub struct Residue {
    /// Where.
    pub path: Path,
    /// What is there.
    pub value: Value,
    /// Who set it.
    pub managers: Vec<Manager>,
}

/// The classes of an object's leaves.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Classes {
    /// Leaves that the write would change.
    pub differences: Vec<Change>,
    /// Live-only leaves that would stay.
    pub residue: Vec<Residue>,
    /// Ownership metadata that the write would change.
    pub ownership: Vec<Change>,
    /// Generated leaves whose live value is kept.
    pub generated: Vec<Path>,
    /// Leaves of controllers and the server, with who owns them.
    pub others: Vec<(Path, String)>,
    /// Live-only leaves with the server's default value.
    pub defaults: Vec<Path>,
    /// Leaves that are left out, such as the resource version.
    pub left_out: usize,
}

fn schema_of(object: &Value) -> Option<Schema<'static>> {
    let text = |field| object.get(field).and_then(Value::as_str).unwrap_or_default();
    embedded().schema(text("apiVersion"), text("kind"))
}

fn kind_of(object: &Value) -> &str {
    object.get("kind").and_then(Value::as_str).unwrap_or_default()
}

/// Whether two values of a leaf are the same setting; of a list's order, whether the items that
/// both have stand in the same one.
pub(crate) fn same(path: &Path, one: Option<&Value>, other: Option<&Value>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) if path.is_order() => !reordered(one, other),
        (Some(one), Some(other)) => quantity::same(path, one, other),
        (None, None) => true,
        _ => path.is_order(),
    }
}

/// The leaves of an object, lists taken apart as its kind's merge keys say.
pub fn leaves_of(object: &Value) -> Leaves {
    leaves(object, schema_of(object))
}

/// Makes a rendered object ready to be compared: nulls are dropped, `stringData` becomes `data`,
/// as the server does.
pub fn normalize(object: &mut Value) {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    drop_nulls(object);
    if kind_of(object) != "Secret" {
        return;
    }
    let Some(map) = object.as_object_mut() else { return };
    let Some(Value::Object(texts)) = map.remove("stringData") else { return };
    let data = map.entry("data").or_insert_with(|| Value::Object(serde_json::Map::new()));
    if let Some(data) = data.as_object_mut() {
        for (key, text) in texts {
            let text = text.as_str().map_or_else(|| text.to_string(), str::to_owned);
            data.insert(key, STANDARD.encode(text).into());
        }
    }
}

/// What is to be written over a live object: the rendered one, with the live values of generated
/// leaves and of leaves that a controller drives.
pub fn desired(wanted: &Wanted, live: &Value) -> Desired {
    let mut object = wanted.object.clone();
    let live_leaves = leaves_of(live);
    let mut kept = BTreeSet::new();
    let mut yielded = Vec::new();
    let kind = kind_of(&wanted.object);
    for (path, rendered) in leaves_of(&wanted.object) {
        let Some(leaf) = live_leaves.get(&path) else { continue };
        if quantity::same(&path, &leaf.value, &rendered.value) {
            continue;
        }
        if wanted.generated.contains(&path) {
            if leaf::replace(&mut object, &path, &leaf.value) {
                kept.insert(path);
            }
            continue;
        }
        let owner =
            others::by_manager(leaf).or_else(|| others::owner(kind, live, &path, Some(leaf)));
        if let Some(owner) = owner
            && leaf::replace(&mut object, &path, &leaf.value)
        {
            yielded.push((path, owner));
        }
    }
    Desired { object, kept, yielded }
}

/// The three-way patch with original = rendered: it deletes nothing. None when there is nothing
/// to send.
///
/// # Errors
/// [`mergepatch::Error`]
pub fn patch(desired: &Value, live: &Value) -> Result<Option<Patch>, mergepatch::Error> {
    patch_from(desired, desired, live)
}

/// The three-way patch that also deletes what `original`, an earlier revision's object, has and
/// the desired one has not.
///
/// # Errors
/// [`mergepatch::Error`]
pub fn patch_from(
    original: &Value,
    desired: &Value,
    live: &Value,
) -> Result<Option<Patch>, mergepatch::Error> {
    let untyped = mergepatch::Untyped::ThreeWay;
    let patch = mergepatch::helm(original, desired, live, embedded(), untyped)?;
    if patch.is_empty() {
        return Ok(None);
    }
    let kind = match patch.patch_type {
        mergepatch::PatchType::Strategic => PatchKind::Strategic,
        mergepatch::PatchType::Merge => PatchKind::Merge,
        mergepatch::PatchType::Json => PatchKind::Json,
    };
    Ok(Some(Patch { kind, body: patch.body }))
}

/// The live object after a patch, without a server.
///
/// # Errors
/// [`mergepatch::Error`]
pub fn apply_in_memory(live: &Value, patch: &Patch) -> Result<Value, mergepatch::Error> {
    let patch_type = match patch.kind {
        PatchKind::Strategic => mergepatch::PatchType::Strategic,
        PatchKind::Json => mergepatch::PatchType::Json,
        PatchKind::Merge | PatchKind::Apply => mergepatch::PatchType::Merge,
    };
    let patch = mergepatch::Patch { patch_type, body: patch.body.clone() };
    let schema = schema_of(live);
    let mut after = mergepatch::apply(live, &patch, schema)?;
    if let Some(schema) = schema {
        schema.drop_false(&mut after);
    }
    Ok(after)
}

/// Whether a leaf is release ownership metadata.
pub fn is_ownership(path: &Path) -> bool {
    matches!(
        path.keys().as_slice(),
        ["metadata", "labels", MANAGED_BY_LABEL]
            | ["metadata", "annotations", RELEASE_NAME | RELEASE_NAMESPACE]
    )
}

/// Puts every leaf of a live object into its class. `after` is what the write would make of it.
pub fn classify(live: &Value, after: &Value, desired: &Desired) -> Classes {
    let kind = kind_of(&desired.object);
    let before = leaves_of(live);
    let after = leaves_of(after);
    let named = leaves_of(&desired.object);
    let mut classes = Classes {
        generated: desired.kept.iter().cloned().collect(),
        others: desired.yielded.clone(),
        ..Classes::default()
    };
    let paths: BTreeSet<&Path> = before.keys().chain(after.keys()).collect();
    for path in paths {
        if others::is_left_out(path) {
            classes.left_out += usize::from(before.contains_key(path));
            continue;
        }
        let (old, new) = (before.get(path), after.get(path));
        let value = |leaf: Option<&Leaf>| leaf.map(|leaf| leaf.value.clone());
        let same = same(path, old.map(|leaf| &leaf.value), new.map(|leaf| &leaf.value));
        if !same {
            let change = Change {
                path: path.clone(),
                live: value(old),
                new: value(new),
                managers: old.map(|leaf| leaf.managers.clone()).unwrap_or_default(),
            };
            if is_ownership(path) {
                classes.ownership.push(change);
            } else if let Some(owner) = others::owner(kind, live, path, old)
                && !named.contains_key(path)
            {
                // What the server counts up on its own, as it does on any write.
                classes.others.push((path.clone(), owner));
            } else {
                classes.differences.push(change);
            }
            continue;
        }
        let Some(old) = old else { continue };
        if named.contains_key(path) || path.is_order() {
            continue;
        }
        if let Some(owner) = others::owner(kind, live, path, Some(old)) {
            classes.others.push((path.clone(), owner));
        } else if defaults::is_default(&desired.object, live, path, &old.value) {
            classes.defaults.push(path.clone());
        } else if let Some(owner) = others::by_manager(old) {
            classes.others.push((path.clone(), owner));
        } else {
            let (path, value) = (path.clone(), old.value.clone());
            classes.residue.push(Residue { path, value, managers: old.managers.clone() });
        }
    }
    classes
}

/// Whether the items that both lists have stand in another order.
fn reordered(old: &Value, new: &Value) -> bool {
    let (Value::Array(old), Value::Array(new)) = (old, new) else { return false };
    let common = |of: &[Value], other: &[Value]| -> Vec<Value> {
        of.iter().filter(|item| other.contains(item)).cloned().collect()
    };
    common(old, new) != common(new, old)
}

/// The leaves of an object that a consent is about: everything but what is left out, ownership,
/// generated, others' and default.
pub fn consented(object: &Value, desired: &Desired, generated: &BTreeSet<Path>) -> Leaves {
    let kind = kind_of(&desired.object);
    let named = leaves_of(&desired.object);
    let mut leaves = leaves_of(object);
    leaves.retain(|path, leaf| {
        if others::is_left_out(path)
            || is_ownership(path)
            || generated.contains(path)
            || desired.yielded.iter().any(|(other, _)| other == path)
        {
            return false;
        }
        named.contains_key(path)
            || !(others::by_place(kind, object, path).is_some()
                || defaults::is_default(&desired.object, object, path, &leaf.value)
                || others::by_manager(leaf).is_some())
    });
    leaves
}

/// Whether a leaf may hold a credential, so that plans do not show it: data of Secrets, and what
/// the key or a variable's name says.
pub fn is_secret(kind: &str, path: &Path) -> bool {
    if kind == "Secret" && path.0.len() > 1 {
        let keys = path.keys();
        return matches!(keys.first(), Some(&("data" | "stringData")));
    }
    path.0.iter().any(|step| match step {
        Step::Key(key) => names_credential(key.as_bytes()),
        Step::Item(keys) => {
            keys.iter().any(|(key, name)| key == "name" && names_credential(name.as_bytes()))
        }
    }) && path.last_key() != "name"
}

#[cfg(test)]
mod tests;
