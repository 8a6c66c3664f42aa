//! Which patch brings a live object to its target (`createPatch` in `pkg/kube/client.go`).

use serde_json::Value;

use crate::cluster::{Patch, PatchKind};

pub use mergepatch::{Error as MergeError, Untyped as CustomMerge};

/// The patch for an object; none when there is nothing to do.
///
/// Helm sends a patch for every custom resource, since it compares with the manifest before, which
/// lacks the ownership metadata. A patch that changes nothing of the live object is left out here.
///
/// # Errors
/// [`MergeError`]
pub fn patch_for(
    original: &Value,
    target: &Value,
    live: &Value,
    custom: CustomMerge,
) -> Result<Option<Patch>, MergeError> {
    let patch = mergepatch::helm(original, target, live, mergepatch::embedded(), custom)?;
    if patch.is_empty() {
        return Ok(None);
    }
    if patch.patch_type == mergepatch::PatchType::Merge
        && mergepatch::apply(live, &patch, None).is_ok_and(|after| after == *live)
    {
        return Ok(None);
    }
    let kind = match patch.patch_type {
        mergepatch::PatchType::Strategic => PatchKind::Strategic,
        mergepatch::PatchType::Merge => PatchKind::Merge,
        mergepatch::PatchType::Json => PatchKind::Json,
    };
    Ok(Some(Patch { kind, body: patch.body }))
}
