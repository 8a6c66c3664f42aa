//! What a server keeps of a typed object.
//!
//! A server reads what it is sent into its Go types and writes these out again. A `bool` that is
//! not a pointer is left out when it is false (`omitempty`), so that a `readOnly: false` that was
//! sent is never seen again; a `*bool` stays as it was sent.

use serde_json::Value;

use super::go_types::{Type, TypeRef};

/// Fields of type `bool` without `omitempty` (`types.go` of `core`, `storage` and `authorization`
/// in k8s.io/api, and of apiextensions).
const SHOWN: [&str; 6] = ["allowed", "attached", "incomplete", "ready", "served", "storage"];

/// Takes out what would be left out.
pub(super) fn drop_false(at: TypeRef<'_>, value: &mut Value) {
    match (at.of, value) {
        (Type::Pointer(to), value) => drop_false(at.at(to), value),
        (Type::Slice(items), Value::Array(list)) => {
            for item in list {
                drop_false(at.at(items), item);
            }
        }
        (Type::Map(to), Value::Object(object)) => {
            for value in object.values_mut() {
                drop_false(at.at(to), value);
            }
        }
        (Type::Struct(_), Value::Object(object)) => {
            let Some(found) = at.structure().filter(|found| !found.custom) else { return };
            object.retain(|key, value| {
                let Some(field) = found.fields.iter().find(|field| field.name == key) else {
                    return true;
                };
                let is_left_out = field.holds == Type::Scalar("bool")
                    && *value == Value::Bool(false)
                    && !SHOWN.contains(&field.name);
                if !is_left_out {
                    drop_false(at.at(&field.holds), value);
                }
                !is_left_out
            });
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::{Schemas as _, embedded};

    #[test]
    fn what_a_server_leaves_out() {
        let mut set = json!({
            "apiVersion": "apps/v1", "kind": "DaemonSet",
            "spec": { "template": { "spec": {
                "hostNetwork": false, "hostPID": true, "shareProcessNamespace": false,
                "containers": [{
                    "name": "a", "volumeMounts": [
                        { "name": "v", "mountPath": "/v", "readOnly": false },
                        { "name": "w", "mountPath": "/w", "readOnly": true },
                    ],
                    "securityContext": { "privileged": false },
                    "unknown": false,
                }],
            } } },
        });
        embedded().schema("apps/v1", "DaemonSet").unwrap().drop_false(&mut set);
        assert_eq!(
            set["spec"]["template"]["spec"],
            json!({
                "hostPID": true, "shareProcessNamespace": false,
                "containers": [{
                    "name": "a", "volumeMounts": [
                        { "name": "v", "mountPath": "/v" },
                        { "name": "w", "mountPath": "/w", "readOnly": true },
                    ],
                    "securityContext": { "privileged": false },
                    "unknown": false,
                }],
            })
        );
        let mut definition = json!({ "spec": { "versions": [{
            "name": "v1", "served": false, "storage": false, "deprecated": false,
        }] } });
        let kind = embedded().schema("apiextensions.k8s.io/v1", "CustomResourceDefinition");
        kind.unwrap().drop_false(&mut definition);
        let version = &definition["spec"]["versions"][0];
        assert_eq!(*version, json!({ "name": "v1", "served": false, "storage": false }));
    }
}
