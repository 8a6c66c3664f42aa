//! The definition and the policies on a real API server: what is accepted, and each refusal with its
//! exact words.

use std::time::Duration;

use controller_tests::{apply, kubectl};
use plane::{Plane, PlaneOptions};
use serde_json::{Value, json};

fn cluster(name: &str, annotations: &Value, cni: &Value) -> Value {
    json!({
        "apiVersion": "ichor.maesh.dev/v1alpha1",
        "kind": "TalosCluster",
        "metadata": { "name": name, "annotations": annotations },
        "spec": { "cni": cni },
    })
}

/// A plane with the definition and the policies in force.
async fn plane() -> Option<Plane> {
    let plane = plane::support::or_skip(Plane::start(PlaneOptions::default()).await)?;
    apply(&plane, &[api::manifest::definition().unwrap()]);
    let established = ["wait", "--for=condition=Established", "crd/talosclusters.ichor.maesh.dev"];
    plane::support::run(plane.kubectl().unwrap().args(established)).unwrap();
    apply(&plane, &api::manifest::policies());
    // A policy is in force a moment after it is there.
    let probe = cluster("probe", &json!({}), &json!({ "preset": "unmanaged" }));
    for _ in 0..100 {
        if refused(&plane, "create", &probe).is_some() {
            return Some(plane);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the policy does not come into force");
}

/// Why an object is refused by a dry run; none when it is accepted.
fn refused(plane: &Plane, verb: &str, object: &Value) -> Option<String> {
    let mut arguments = vec![verb, "--dry-run=server"];
    if verb == "apply" {
        arguments.push("--server-side");
    }
    let output = kubectl(plane, &arguments, object);
    let text = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    (!output.status.success()).then_some(text)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_rule_accepts_and_refuses() {
    let Some(plane) = plane().await else { return };
    let adopted = json!({ "ichor.maesh.dev/adopted": "true" });
    let none = json!({});
    let managed = |cni: Value| cluster("cluster", &none, &cni);
    let digest = format!("sha256:{}", "0a".repeat(32));
    for object in [
        managed(json!({ "preset": "cilium" })),
        managed(json!({ "preset": "cilium", "tunnel": "geneve", "kubeProxy": "replaced" })),
        managed(json!({ "preset": "cilium", "tunnel": null, "cilium": {} })),
        managed(json!({ "preset": "cilium", "cilium": { "values": {
            "hubble": { "relay": { "enabled": true } }, "ipam": { "operator": {} }, "cgroup": "x",
            "securityContext": { "privileged": true },
        } } })),
        cluster("other", &adopted, &json!({ "preset": "unmanaged" })),
        cluster(
            "other",
            &adopted,
            &json!({
                "preset": "unmanaged", "unmanaged": { "talosCNI": "none" }, "kubeProxy": "enabled",
            }),
        ),
        cluster(
            "cluster",
            &json!({ "ichor.maesh.dev/accepted-plan": digest }),
            &json!({
                "preset": "cilium",
            }),
        ),
    ] {
        assert_eq!(refused(&plane, "create", &object), None, "{object}");
    }
    let by_definition = |name: &str, field: &str, kind: &str, message: &str| {
        format!("The TalosCluster \"{name}\" is invalid: {field}: Invalid value: {kind}{message}")
    };
    let by_policy = |name: &str, message: &str| {
        format!(
            "The talosclusters \"{name}\" is invalid: : ValidatingAdmissionPolicy \
             'talosclusters.ichor.maesh.dev' with binding 'talosclusters.ichor.maesh.dev' denied \
             request: {message}"
        )
    };
    let mut cases = vec![
        (
            managed(json!({ "preset": "flannel" })),
            by_definition(
                "cluster",
                "spec.cni.preset",
                "\"flannel\": ",
                "flannel is not offered: ichor operates Cilium, and no other CNI; use unmanaged for \
                 a cluster whose CNI somebody else operates",
            ),
        ),
        (
            managed(json!({ "preset": "custom" })),
            by_definition(
                "cluster",
                "spec.cni.preset",
                "\"custom\": ",
                "custom is not offered: ichor operates Cilium, and no other CNI, least of all one \
                 that it does not know; use unmanaged for a cluster whose CNI somebody else operates",
            ),
        ),
        (
            managed(json!({ "preset": "calico" })),
            by_definition(
                "cluster",
                "spec.cni.preset",
                "\"calico\": ",
                "the preset is cilium or unmanaged",
            ),
        ),
        (
            managed(json!({ "preset": "cilium", "unmanaged": { "talosCNI": "none" } })),
            by_definition("cluster", "spec.cni", "", "unmanaged is for preset unmanaged alone"),
        ),
        (
            cluster("other", &adopted, &json!({ "preset": "unmanaged", "tunnel": "vxlan" })),
            by_definition(
                "other",
                "spec.cni",
                "",
                "tunnel is a setting of Cilium, which ichor leaves alone with preset unmanaged",
            ),
        ),
        (
            cluster("other", &adopted, &json!({ "preset": "unmanaged", "cilium": {} })),
            by_definition(
                "other",
                "spec.cni",
                "",
                "cilium is a setting of Cilium, which ichor leaves alone with preset unmanaged",
            ),
        ),
        (
            cluster("second", &none, &json!({ "preset": "cilium" })),
            by_definition(
                "second",
                "<nil>",
                "",
                "a managed TalosCluster is named cluster: there is one network, so that there is at \
                 most one",
            ),
        ),
        (
            cluster("other", &none, &json!({ "preset": "unmanaged" })),
            by_policy(
                "other",
                "preset unmanaged is for a cluster that is adopted with its CNI: it needs the \
                 annotation ichor.maesh.dev/adopted: \"true\"",
            ),
        ),
        (
            cluster(
                "cluster",
                &json!({ "ichor.maesh.dev/accepted-plan": "sha256:12" }),
                &json!({ "preset": "cilium" }),
            ),
            by_policy(
                "cluster",
                "ichor.maesh.dev/accepted-plan is the digest of a plan, sha256: and 64 hexadecimal \
                 digits",
            ),
        ),
    ];
    for key in &cilium::owned::KEYS {
        // Null is no way around: Helm reads it as a key to be removed.
        let value = key.path.iter().rev().fold(Value::Null, |below, key| json!({ *key: below }));
        let name = key.name();
        cases.push((
            managed(json!({ "preset": "cilium", "cilium": { "values": value } })),
            by_policy(
                "cluster",
                &format!("spec.cni.cilium.values: {name} is decided by ichor, leave it out"),
            ),
        ));
    }
    for (object, expected) in cases {
        assert_eq!(refused(&plane, "create", &object), Some(expected), "{object}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_changed() {
    let Some(plane) = plane().await else { return };
    let adopted = json!({ "ichor.maesh.dev/adopted": "true" });
    let invalid = |field: &str, kind: &str, message: &str| {
        Some(format!(
            "The TalosCluster \"cluster\" is invalid: {field}: Invalid value: {kind}{message}"
        ))
    };
    let tunnel = "tunnel cannot be changed, set or taken away later: every connection between nodes \
                  would be cut";
    let with = |cni: Value| cluster("cluster", &adopted, &cni);
    apply(&plane, &[with(json!({ "preset": "cilium" }))]);
    let change = |cni: Value| refused(&plane, "replace", &with(cni));
    assert_eq!(
        change(json!({ "preset": "unmanaged" })),
        invalid(
            "spec.cni.preset",
            "\"unmanaged\": ",
            "the preset cannot be changed: ichor migrates no cluster from one CNI to another"
        ),
    );
    let set = change(json!({ "preset": "cilium", "tunnel": "vxlan" }));
    assert_eq!(set, invalid("spec.cni", "", tunnel));
    let kubectl =
        |arguments: &[&str]| plane::support::run(plane.kubectl().unwrap().args(arguments)).unwrap();
    let columns = kubectl(&["get", "talosclusters"]);
    println!("{columns}");
    assert!(columns.starts_with("NAME      PRESET   CNI   VERSION   HANDOVER   REASON   AGE\n"));
    assert!(columns.contains("\ncluster   cilium"), "{columns}");
    kubectl(&["delete", "taloscluster", "cluster"]);
    apply(&plane, &[with(json!({ "preset": "cilium", "tunnel": "vxlan" }))]);
    for cni in [json!({ "preset": "cilium", "tunnel": "geneve" }), json!({ "preset": "cilium" })] {
        assert_eq!(change(cni), invalid("spec.cni", "", tunnel));
    }
    let other = json!({ "preset": "cilium", "tunnel": "vxlan", "kubeProxy": "enabled" });
    assert_eq!(change(other), None);
    // The annotation may go later: it is asked for when the object is made.
    kubectl(&["annotate", "taloscluster", "cluster", "ichor.maesh.dev/adopted-"]);
}
