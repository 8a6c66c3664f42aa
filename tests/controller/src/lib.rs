//! What the tests of custom resources, chart and controller share.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::missing_panics_doc,
    clippy::indexing_slicing,
    reason = "test code: a panic is how a test says that its surroundings are wrong"
)]

pub mod handed;
pub mod observe;
pub mod site;

use std::path::PathBuf;
use std::process::Output;

use goyaml::Limits;
use plane::Plane;
use serde_json::{Value, json};
use test_support::place::repository;

/// The chart that installs the controller.
pub fn chart() -> PathBuf {
    repository().join("charts/ichor")
}

/// Objects as YAML documents.
pub fn yaml(objects: &[Value]) -> String {
    let document = |object: &Value| {
        let text = object.to_string();
        let value = goyaml::json::from_json(text.as_bytes(), &Limits::default()).expect("JSON");
        format!("---\n{}", goyaml::to_yaml(&value).expect("YAML"))
    };
    objects.iter().map(document).collect()
}

/// `kubectl` with an object on its standard input.
pub fn kubectl(plane: &Plane, arguments: &[&str], object: &Value) -> Output {
    let file = plane.folder().join("object.json");
    std::fs::write(&file, object.to_string()).expect("a file");
    plane.kubectl().expect("kubectl").args(arguments).arg("-f").arg(&file).output().expect("run")
}

/// Applies objects.
pub fn apply(plane: &Plane, objects: &[Value]) {
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": objects });
    let output = kubectl(plane, &["apply", "--server-side"], &list);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A DaemonSet that is told for flannel.
pub fn flannel() -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": { "name": "kube-flannel-ds", "namespace": "kube-system" },
        "spec": {
            "selector": { "matchLabels": { "app": "flannel" } },
            "template": {
                "metadata": { "labels": { "app": "flannel" } },
                "spec": { "containers": [{
                    "name": "kube-flannel", "image": "ghcr.io/flannel-io/flannel:v0.26.1",
                }] },
            },
        },
    })
}
