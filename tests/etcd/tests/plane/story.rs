//! What happens on a cluster before its etcd is looked at.

use etcd_tests::{chart, etcdctl, folder, helm, kubectl};
use plane::Plane;
use serde_json::Value;

/// What there is to find.
pub(crate) struct Story {
    /// Namespaces and names of the releases.
    pub(crate) releases: Vec<(String, String)>,
    /// etcd's revision before a release was deleted.
    pub(crate) before_deletion: i64,
    /// What a ConfigMap said, change by change.
    pub(crate) settings: Vec<String>,
}

impl Story {
    /// Three releases with twelve revisions and one that is deleted; objects of many kinds; keys
    /// that are overwritten, deleted, and made again.
    pub(crate) fn happen(plane: &Plane) -> Self {
        let objects = folder().join("objects");
        kubectl(plane, &["apply", "--server-side", "-f", &objects.join("first").to_string_lossy()]);
        kubectl(
            plane,
            &[
                "wait",
                "--for=condition=established",
                "crd/things.story.example.org",
                "--timeout=30s",
            ],
        );
        kubectl(plane, &["apply", "-f", &objects.join("second").to_string_lossy()]);

        let web = chart("web").to_string_lossy().into_owned();
        let store = chart("store").to_string_lossy().into_owned();
        let mut releases = Vec::new();
        for (name, namespace, chart, revisions) in
            [("one", "default", &web, 5), ("two", "apps", &store, 4), ("three", "apps", &web, 3)]
        {
            for revision in 0..revisions {
                let set = format!("story.revision={revision}");
                helm(
                    plane,
                    &[
                        "upgrade",
                        "--install",
                        name,
                        chart,
                        "-n",
                        namespace,
                        "--create-namespace",
                        "--set",
                        &set,
                    ],
                );
            }
            releases.push((namespace.to_owned(), name.to_owned()));
        }
        helm(plane, &["install", "gone", &web, "-n", "default"]);
        let text = etcdctl(plane, &["endpoint", "status", "-w", "json"]);
        let status: Value = serde_json::from_str(&text).unwrap();
        let before_deletion = status[0]["Status"]["header"]["revision"].as_i64().unwrap();
        helm(plane, &["uninstall", "gone", "-n", "default"]);

        let mut settings = Vec::new();
        for number in 0..6 {
            if number == 3 {
                kubectl(plane, &["delete", "configmap", "settings"]);
                settings.push("deleted true".to_owned());
            }
            if number == 0 || number == 3 {
                let literal = format!("--from-literal=number={number}");
                kubectl(plane, &["create", "configmap", "settings", &literal]);
            } else {
                let patch = format!(r#"{{"data":{{"number":"{number}"}}}}"#);
                kubectl(plane, &["patch", "configmap", "settings", "-p", &patch]);
            }
            settings.push(number.to_string());
        }
        Self { releases, before_deletion, settings }
    }
}
