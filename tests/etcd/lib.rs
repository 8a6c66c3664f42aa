//! What the tests of etcd snapshots share: a cluster that something happened on, and its etcd.
#![allow(
    clippy::panic,
    clippy::expect_used,
    clippy::missing_panics_doc,
    reason = "test code: a panic is how a test says what is wrong"
)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use plane::Plane;
use plane::support::run;
use serde_json::Value;
use test_support::sealed::{Outcome, Sealed};

/// The folder of this crate.
pub fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A chart of the live tests.
pub fn chart(name: &str) -> PathBuf {
    folder().join("../live/charts").join(name)
}

/// Runs `kubectl`.
pub fn kubectl(plane: &Plane, arguments: &[&str]) -> String {
    let mut kubectl = plane.kubectl().expect("kubectl is built");
    run(kubectl.args(arguments)).expect("kubectl succeeds")
}

/// Runs real Helm.
pub fn helm(plane: &Plane, arguments: &[&str]) -> String {
    let mut helm = plane.helm().expect("Helm is built");
    run(helm.args(arguments)).expect("Helm succeeds")
}

/// Runs `etcdctl` on the plane's etcd.
pub fn etcdctl(plane: &Plane, arguments: &[&str]) -> String {
    let mut etcdctl = plane.tool("etcdctl").expect("etcdctl is built");
    run(etcdctl.arg("--endpoints").arg(plane.etcd_url()).args(arguments)).expect("etcdctl succeeds")
}

/// Runs ichor without a cluster.
pub fn ichor(arguments: &[&str]) -> Outcome {
    Sealed::ichor().run(arguments)
}

/// Standard output of a run that ended well.
pub fn output(arguments: &[&str]) -> String {
    let outcome = ichor(arguments);
    let errors = String::from_utf8_lossy(&outcome.stderr).into_owned();
    assert_eq!(outcome.code, Some(0), "ichor {}\n{errors}", arguments.join(" "));
    String::from_utf8(outcome.stdout).expect("a text")
}

/// A saved snapshot of a plane's etcd.
pub fn snapshot(plane: &Plane, to: &Path) {
    etcdctl(plane, &["snapshot", "save", &to.to_string_lossy()]);
}

/// Objects by API version, kind, namespace and name.
pub type Objects = BTreeMap<[String; 4], Value>;

/// The items of a list.
pub fn objects(list: &Value) -> Objects {
    let text = |object: &Value, path: &str| {
        object.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let items = list.get("items").and_then(Value::as_array).cloned().unwrap_or_default();
    let key = |object: &Value| {
        ["/apiVersion", "/kind", "/metadata/namespace", "/metadata/name"]
            .map(|path| text(object, path))
    };
    items.into_iter().map(|object| (key(&object), object)).collect()
}

/// What `kubectl get` says of every kind of these objects, in the version of each.
pub fn live(plane: &Plane, stored: &Objects) -> Objects {
    let resources = resources(plane);
    let kinds: std::collections::BTreeSet<(&str, &str)> =
        stored.keys().map(|[version, kind, ..]| (version.as_str(), kind.as_str())).collect();
    let mut all = Objects::new();
    let mut names: Vec<&str> = Vec::new();
    // Kinds that are stored in a version that is no longer served: as the one that is.
    let mut others = Vec::new();
    for (version, kind) in kinds {
        let group = |version: &str| version.rsplit_once('/').map(|(group, _)| group.to_owned());
        let is_other = |of: &&(String, String)| of.1 == kind && group(&of.0) == group(version);
        if let Some(name) = resources.get(&(version.to_owned(), kind.to_owned())) {
            names.push(name);
        } else if let Some(served) = resources.keys().find(is_other) {
            names.push(&resources[served]);
            others.push((served, version));
        }
    }
    let text =
        kubectl(plane, &["get", &names.join(","), "-A", "-o", "json", "--show-managed-fields"]);
    all.extend(objects(&serde_json::from_str(&text).expect("a list")));
    for ((served, kind), stored) in others {
        let found: Vec<_> =
            all.iter().filter(|(key, _)| key[0] == *served && key[1] == *kind).collect();
        let found: Vec<_> = found.into_iter().map(|(key, it)| (key.clone(), it.clone())).collect();
        for (mut key, mut object) in found {
            stored.clone_into(&mut key[0]);
            object["apiVersion"] = stored.into();
            all.insert(key, object);
        }
    }
    all
}

/// Kinds by API version, and what `kubectl get` calls them: `RESOURCE.VERSION.GROUP`.
pub fn resources(plane: &Plane) -> BTreeMap<(String, String), String> {
    let text = kubectl(plane, &["get", "--raw", "/apis"]);
    let groups: Value = serde_json::from_str(&text).expect("a list of groups");
    let mut versions = vec![("v1".to_owned(), "/api/v1".to_owned())];
    for group in groups["groups"].as_array().into_iter().flatten() {
        for version in group["versions"].as_array().into_iter().flatten() {
            let version = version["groupVersion"].as_str().unwrap_or_default();
            versions.push((version.to_owned(), format!("/apis/{version}")));
        }
    }
    let mut found = BTreeMap::new();
    for (version, path) in versions {
        let text = kubectl(plane, &["get", "--raw", &path]);
        let list: Value = serde_json::from_str(&text).expect("a list of resources");
        for resource in list["resources"].as_array().into_iter().flatten() {
            let name = resource["name"].as_str().unwrap_or_default();
            let kind = resource["kind"].as_str().unwrap_or_default();
            let lists = resource["verbs"].as_array().is_some_and(|v| v.iter().any(|v| v == "list"));
            if lists && !name.contains('/') {
                let (group, number) = version.split_once('/').unwrap_or(("", &version));
                let title = format!("{name}.{number}.{group}");
                found.insert((version.clone(), kind.to_owned()), title);
            }
        }
    }
    found
}

/// What is different in two objects, leaf by leaf.
pub fn differences(wanted: &Value, got: &Value, path: &str, found: &mut Vec<String>) {
    match (wanted, got) {
        (Value::Object(wanted), Value::Object(got)) => {
            let keys: std::collections::BTreeSet<&String> =
                wanted.keys().chain(got.keys()).collect();
            for key in keys {
                let path = format!("{path}/{key}");
                match (wanted.get(key), got.get(key)) {
                    (Some(wanted), Some(got)) => differences(wanted, got, &path, found),
                    (wanted, got) => found.push(format!("{path}: {wanted:?} {got:?}")),
                }
            }
        }
        (Value::Array(wanted), Value::Array(got)) if wanted.len() == got.len() => {
            for (index, (wanted, got)) in wanted.iter().zip(got).enumerate() {
                differences(wanted, got, &format!("{path}/{index}"), found);
            }
        }
        _ if wanted == got => {}
        _ => found.push(format!("{path}: {wanted} {got}")),
    }
}
