//! Objects that the API server encrypted: each provider, the right key, a wrong one, none.

use std::fmt::Write as _;
use std::path::Path;

use etcd_tests::{chart, differences, helm, ichor, kubectl, live, objects, output, snapshot};
use plane::support::or_skip;
use plane::{Plane, PlaneOptions};
use serde_json::Value;

const KEY_16: &str = "MDEyMzQ1Njc4OWFiY2RlZg==";
const KEY_24: &str = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3";
const KEY_32: &str = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
const OTHER_16: &str = "ZmVkY2JhOTg3NjU0MzIxMA==";
const OTHER_32: &str = "ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA=";

/// Resources with their provider, the key's name and its secret.
const PROVIDERS: [(&str, &str, &str, &str); 6] = [
    ("secrets", "aescbc", "cbc-256", KEY_32),
    ("configmaps", "aesgcm", "gcm-256", KEY_32),
    ("serviceaccounts", "secretbox", "box", KEY_32),
    ("services", "aesgcm", "gcm-192", KEY_24),
    ("deployments.apps", "aescbc", "cbc-128", KEY_16),
    ("namespaces", "aesgcm", "gcm-128", KEY_16),
];

fn configuration(with: impl Fn(&str) -> Option<String>) -> String {
    let mut text = String::from(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n",
    );
    for (resource, provider, name, secret) in PROVIDERS {
        let secret = with(name).unwrap_or_else(|| secret.to_owned());
        write!(
            text,
            "- resources: [{resource}]\n  providers:\n  - {provider}:\n      keys:\n      - name: \
             {name}\n        secret: {secret}\n  - identity: {{}}\n"
        )
        .unwrap();
    }
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn every_provider() {
    for peer in ["helm", "etcdctl"] {
        if or_skip(plane::find_peer(peer)).is_none() {
            return;
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let right = path("right.yaml");
    std::fs::write(&right, configuration(|_| None)).unwrap();
    let flag = format!("--encryption-provider-config={}", right.display());
    let options = PlaneOptions { api_server_flags: vec![flag], ..PlaneOptions::default() };
    let Some(plane) = or_skip(Plane::start(options).await) else { return };
    let web = chart("web").to_string_lossy().into_owned();
    helm(&plane, &["install", "one", &web]);
    helm(&plane, &["upgrade", "one", &web]);
    kubectl(&plane, &["create", "configmap", "settings", "--from-literal=a=b"]);
    let file = path("snapshot.db");
    snapshot(&plane, &file);
    let file = file.to_string_lossy().into_owned();

    // The right keys open everything.
    let right = right.to_string_lossy().into_owned();
    let text = output(&[
        "etcd",
        "get",
        &file,
        "-o",
        "json",
        "--show-secrets",
        "--show-managed-fields",
        "--encryption-config",
        &right,
    ]);
    let stored = objects(&serde_json::from_str(&text).unwrap());
    let live = live(&plane, &stored);
    let (mut faults, mut counts) = (Vec::new(), std::collections::BTreeMap::new());
    for (key, got) in &stored {
        let Some(wanted) = live.get(key) else { continue };
        if wanted["metadata"]["resourceVersion"] == got["metadata"]["resourceVersion"] {
            *counts.entry(key[1].clone()).or_insert(0) += 1;
            let mut found = Vec::new();
            differences(wanted, got, "", &mut found);
            faults.extend(found.into_iter().map(|it| format!("{}: {it}", key.join(" "))));
        }
    }
    for kind in ["Secret", "ConfigMap", "ServiceAccount", "Service", "Deployment"] {
        assert!(counts.get(kind).is_some_and(|count| *count > 0), "{kind}: {counts:?}");
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    let list = output(&[
        "release",
        "history",
        "one",
        "-n",
        "default",
        "-o",
        "json",
        "--from",
        &file,
        "--encryption-config",
        &right,
    ]);
    let history: Value = serde_json::from_str(&list).unwrap();
    assert_eq!(history.as_array().unwrap().len(), 2, "{list}");

    says_how(&file);
    wrong_keys_are_named(&file, folder.path());
}

/// Without keys: how, with which key, how many.
fn says_how(file: &str) {
    let stats = output(&["etcd", "stats", file, "-o", "json"]);
    let stats: Value = serde_json::from_str(&stats).unwrap();
    for (_, provider, name, _) in PROVIDERS {
        let how = format!("provider {provider}, key \"{name}\"");
        let count = stats["encrypted"][&how].as_i64().unwrap_or_default();
        assert!(count > 0, "{how}: {}", stats["encrypted"]);
    }
    let outcome = ichor(&["release", "list", "-A", "--from", file]);
    let said = String::from_utf8_lossy(&outcome.stderr).into_owned();
    assert_eq!(outcome.code, Some(1), "{said}");
    for part in ["provider aescbc, key \"cbc-256\"", "no encryption configuration is given"] {
        assert!(said.contains(part), "{said}");
    }
}

fn wrong_keys_are_named(file: &str, folder: &Path) {
    for (_, provider, name, secret) in PROVIDERS {
        let other = if secret == KEY_16 { OTHER_16 } else { OTHER_32 };
        let wrong = folder.join("wrong.yaml");
        let with = |key: &str| (key == name).then(|| other.to_owned());
        std::fs::write(&wrong, configuration(with)).unwrap();
        let wrong = wrong.to_string_lossy();
        let outcome = ichor(&["etcd", "get", file, "--encryption-config", &wrong]);
        let said = String::from_utf8_lossy(&outcome.stderr).into_owned();
        let part =
            format!("is encrypted (provider {provider}, key \"{name}\"), and the key of that name");
        let is_named = said.contains(&part) && outcome.code == Some(1);
        assert!(is_named, "{name}: {:?}\n{said}", outcome.code);
        assert_eq!(said.matches("is encrypted").count(), 1, "{said}");
    }
}
