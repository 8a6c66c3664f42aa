//! Dumps as people make them, and records that ours writes.

use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use helm_rs::release::input::{Storage, StoredRecord};
use helm_rs::release::{CodecLimits, Record, encode};
use plane::Plane;
use plane::support::run;
use serde_json::json;

/// The same objects in both forms.
pub(super) struct Dumps {
    pub(super) yaml: PathBuf,
    pub(super) json: PathBuf,
}

fn dump(plane: &Plane, folder: &Path, name: &str, scope: &[&str]) -> Dumps {
    let path = |form: &str| {
        let path = folder.join(format!("{name}.{form}"));
        let mut kubectl = plane.kubectl().unwrap();
        kubectl.args(["get", "secrets,configmaps", "-o", form]).args(scope);
        fs::write(&path, run(&mut kubectl).unwrap()).unwrap();
        path
    };
    Dumps { yaml: path("yaml"), json: path("json") }
}

/// Everything in the cluster.
pub(super) fn all(plane: &Plane, folder: &Path) -> Dumps {
    dump(plane, folder, "all", &["-A"])
}

/// One namespace.
pub(super) fn of_namespace(plane: &Plane, folder: &Path, namespace: &str) -> Dumps {
    dump(plane, folder, namespace, &["-n", namespace])
}

/// Kubernetes' layer of base64, off.
pub(super) fn unpack(text: &str) -> Vec<u8> {
    STANDARD.decode(text).unwrap()
}

/// Kubernetes' layer of base64, on.
pub(super) fn pack(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Decodes records and writes them anew, each with its object's labels, onto a plane.
pub(super) fn write_again(plane: &Plane, folder: &Path, stored: &[StoredRecord]) {
    let mut items = Vec::new();
    for record in stored {
        let json = record.decode(&CodecLimits::default()).unwrap();
        let release = encode(&Record::from_json(&json).unwrap().to_json()).unwrap();
        let labels: serde_json::Map<String, serde_json::Value> =
            record.labels.iter().map(|(key, value)| (key.clone(), json!(value))).collect();
        let metadata =
            json!({"name": record.name, "namespace": record.namespace, "labels": labels});
        items.push(match record.storage {
            Storage::Secret => json!({
                "apiVersion": "v1", "kind": "Secret", "type": "helm.sh/release.v1",
                "metadata": metadata, "data": {"release": pack(release.as_bytes())},
            }),
            Storage::ConfigMap => json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": metadata, "data": {"release": release},
            }),
            Storage::Bare => panic!("a dump of a cluster has objects"),
        });
    }
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
    let path = folder.join("again.json");
    fs::write(&path, list.to_string()).unwrap();
    run(plane.kubectl().unwrap().args(["create", "-f"]).arg(&path)).unwrap();
}
