//! What lasts of a takeover: its objects without what every run makes anew.

use std::collections::BTreeMap;

use cilium::pinned::RECORD_NAMESPACE;
use serde_json::Value;

use crate::place::CILIUM;
use crate::run::{backup, own};
use crate::survey::text;

/// Fields of metadata that the server writes on its own.
const SERVER_METADATA: [&str; 6] =
    ["creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid"];

/// Objects by name, without what every run makes anew: versions, times, status, addresses, ichor's
/// records but for the status of the one that counts, the Lease and the stored plan.
pub fn lasting(objects: impl IntoIterator<Item = Value>) -> BTreeMap<String, Value> {
    let mut state = BTreeMap::new();
    for mut object in objects {
        let (kind, name) =
            (text(&object, "/kind").to_owned(), text(&object, "/metadata/name").to_owned());
        if kind == "Lease" || name == CILIUM.plan {
            continue;
        }
        let namespace = text(&object, "/metadata/namespace").to_owned();
        if is_own_record(&object) {
            let status = text(&object, "/metadata/labels/status");
            if status == "deployed" {
                state.insert("ichor's record".to_owned(), status.into());
            }
            continue;
        }
        if backup::is_backup(&object) && backup::holds_own(&object) {
            // Ichor's own records, retired by a restore: their number and times differ.
            state.insert("backup of ichor's records".to_owned(), Value::Null);
            continue;
        }
        drop_server_fields(&mut object);
        // The server allots the next address that is free.
        if kind == "Service"
            && text(&object, "/spec/clusterIP") != "None"
            && let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut)
        {
            spec.remove("clusterIP");
            spec.remove("clusterIPs");
        }
        state.insert(format!("{kind} {namespace}/{name}"), object);
    }
    state
}

/// Takes away what a server writes on its own: the status, and of the metadata versions, times and
/// who wrote which field.
pub fn drop_server_fields(object: &mut Value) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|field, _| !SERVER_METADATA.contains(&field.as_str()));
    }
    if let Some(object) = object.as_object_mut() {
        object.remove("status");
    }
}

/// Whether an object is a record of ichor's release.
pub fn is_own_record(object: &Value) -> bool {
    text(object, "/metadata/namespace") == RECORD_NAMESPACE
        && own::revision_of(&CILIUM, text(object, "/metadata/name")).is_some()
}
