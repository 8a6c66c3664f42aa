//! Whose fields of an object are (`metadata.managedFields`): taking over what the release owns from
//! the time when it was written by patches, and who else stands in the way of a server-side apply.
//!
//! A server-side apply removes what its manager applied before and no longer has. What was written
//! by a patch or a creation is owned by an entry of its own, which no apply looks at: without the
//! takeover, a leaf that the chart drops would stay for ever.

use std::fmt;

use serde_json::{Map, Value, json};

use super::field::{list, text};
use super::{FIELD_MANAGER, RELEASE_MANAGER};
use crate::cluster::{ClusterError, Patch, PatchKind, Status};

/// Managers whose patches and creations were a release's: Helm's and this program's.
const PAST: [&str; 2] = [RELEASE_MANAGER, FIELD_MANAGER];

/// A field that a server-side apply would change, and that somebody else owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldConflict {
    /// The other manager.
    pub manager: String,
    /// The field, as the server names it: `.spec.template.spec.containers[name="web"].image`.
    pub field: String,
}

impl fmt::Display for FieldConflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.manager)
    }
}

impl FieldConflict {
    /// The conflicts that an answer tells of; none when it is another error.
    pub(super) fn all(error: &ClusterError) -> Vec<Self> {
        let causes = error.status().into_iter().flat_map(Status::causes);
        causes
            .filter(|cause| cause.reason == "FieldManagerConflict")
            .map(|cause| Self {
                // conflict with "NAME" using v1
                manager: cause.message.split('"').nth(1).unwrap_or(cause.message).to_owned(),
                field: cause.field.to_owned(),
            })
            .collect()
    }

    /// Whether it goes away once the release's fields are taken over.
    pub(super) fn is_past(&self) -> bool {
        PAST.contains(&self.manager.as_str())
    }
}

/// The patch that turns what the release owns by patches and creations into what it applied; none
/// where there is nothing of that kind. It fails with a conflict on any other version of the object.
///
/// As `UpgradeManagedFieldsPatch` of client-go (`util/csaupgrade`), which Helm 4 calls with its own
/// name alone. Fields that were written in another version of the kind are kept too, where client-go
/// gives them up, and with them leaves that nobody would remove.
pub(super) fn takeover(live: &Value) -> Option<Patch> {
    let entries = list(live, "/metadata/managedFields");
    let is = |entry: &Value, operation: &str, managers: &[&str]| {
        text(entry, "/operation") == operation
            && text(entry, "/subresource").is_empty()
            && managers.contains(&text(entry, "/manager"))
    };
    let is_past = |entry: &Value| is(entry, "Update", &PAST);
    let is_own = |entry: &Value| is(entry, "Apply", &[RELEASE_MANAGER]);
    let first_past = entries.iter().position(is_past)?;
    let place = entries.iter().position(is_own).unwrap_or(first_past);
    let mut fields = Map::new();
    for entry in entries.iter().filter(|entry| is_past(entry) || is_own(entry)) {
        if let Some(more) = entry.get("fieldsV1").and_then(Value::as_object) {
            unite(&mut fields, more);
        }
    }
    let mut own = entries.get(place)?.clone();
    if let Some(own) = own.as_object_mut() {
        own.insert("manager".to_owned(), RELEASE_MANAGER.into());
        own.insert("operation".to_owned(), "Apply".into());
        own.insert("fieldsV1".to_owned(), fields.into());
    }
    let mut all = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        if index == place {
            all.push(std::mem::take(&mut own));
        } else if !is_past(entry) {
            all.push(entry.clone());
        }
    }
    let body = json!([
        { "op": "replace", "path": "/metadata/managedFields", "value": all },
        // A test would be an invalid request where this is a conflict.
        {
            "op": "replace",
            "path": "/metadata/resourceVersion",
            "value": text(live, "/metadata/resourceVersion"),
        },
    ]);
    Some(Patch { kind: PatchKind::Json, body })
}

/// Both sets of fields in one. A field without fields below is a member of its set; one that has
/// some is a member where it holds a `.` (`fieldpath.Set` of structured-merge-diff). The depth is
/// that of JSON that was read.
fn unite(fields: &mut Map<String, Value>, more: &Map<String, Value>) {
    for (name, theirs) in more {
        let Some(own) = fields.get_mut(name) else {
            fields.insert(name.clone(), theirs.clone());
            continue;
        };
        let (Some(own), Some(theirs)) = (own.as_object_mut(), theirs.as_object()) else { continue };
        let is_member = own.is_empty() || theirs.is_empty();
        unite(own, theirs);
        if is_member && !own.is_empty() {
            own.insert(".".to_owned(), json!({}));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{FieldConflict, takeover};
    use crate::cluster::{ClusterError, Status};

    fn entry(manager: &str, operation: &str, fields: &Value) -> Value {
        json!({
            "manager": manager,
            "operation": operation,
            "apiVersion": "v1",
            "fieldsType": "FieldsV1",
            "fieldsV1": fields,
        })
    }

    fn taken(entries: &[Value]) -> Option<Value> {
        let live = json!({"metadata": {"resourceVersion": "7", "managedFields": entries}});
        let patch = takeover(&live)?;
        assert_eq!(patch.body[1]["value"], "7");
        Some(patch.body[0]["value"].clone())
    }

    #[test]
    fn what_was_patched_is_taken_for_applied() {
        let data = json!({"f:data": {".": {}, "f:a": {}}});
        let more = json!({"f:data": {"f:b": {}}, "f:spec": {"f:x": {}}});
        let both = json!({"f:data": {".": {}, "f:a": {}, "f:b": {}}, "f:spec": {"f:x": {}}});
        let other = entry("kubectl", "Update", &data);
        let got = taken(&[
            other.clone(),
            entry("helm", "Update", &data),
            entry("ichor", "Update", &more),
        ]);
        assert_eq!(got, Some(json!([other, entry("helm", "Apply", &both)])));
        let got = taken(&[entry("ichor", "Update", &more), entry("helm", "Apply", &data)]);
        assert_eq!(got, Some(json!([entry("helm", "Apply", &both)])));
    }

    #[test]
    fn nothing_is_taken_of_others_and_of_subresources() {
        let fields = json!({"f:status": {}});
        let mut status = entry("helm", "Update", &fields);
        status["subresource"] = "status".into();
        let kept = [status, entry("ichor", "Apply", &fields), entry("helm", "Apply", &fields)];
        assert_eq!(taken(&kept), None);
        assert_eq!(taken(&[]), None);
    }

    #[test]
    fn a_member_with_members_below_stays_one() {
        let leaf = json!({"f:spec": {}});
        let inner = json!({"f:spec": {"f:x": {}}});
        let both = json!({"f:spec": {".": {}, "f:x": {}}});
        for pair in [[&leaf, &inner], [&inner, &leaf]] {
            let entries = pair.map(|fields| entry("helm", "Update", fields));
            assert_eq!(taken(&entries), Some(json!([entry("helm", "Apply", &both)])));
        }
    }

    #[test]
    fn conflicts_are_read_from_the_causes() {
        let mut status = Status::new(409, "Conflict", "Apply failed with 2 conflicts");
        let cause = |manager: &str, field: &str| {
            json!({
                "reason": "FieldManagerConflict",
                "message": format!("conflict with \"{manager}\" using apps/v1 at 2026-01-02"),
                "field": field,
            })
        };
        status.details =
            json!({"causes": [cause("kubectl", ".spec.replicas"), cause("helm", ".x")]});
        let found = FieldConflict::all(&ClusterError::from(status));
        let texts: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(texts, [".spec.replicas: kubectl", ".x: helm"]);
        assert_eq!(found.iter().map(FieldConflict::is_past).collect::<Vec<_>>(), [false, true]);
        let race = Status::new(409, "Conflict", "the object has been modified");
        assert_eq!(FieldConflict::all(&race.into()), []);
    }
}
