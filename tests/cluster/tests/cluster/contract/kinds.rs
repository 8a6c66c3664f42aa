//! What a server does to objects of some kinds: generations, defaults, custom resources.

use std::sync::Arc;

use helm_rs::cluster::{DeleteOptions, Kind, PatchKind, Target};
use serde_json::{Value, json};

use super::run::Run;

fn deployment() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web" },
        "spec": {
            "selector": { "matchLabels": { "app": "web" } },
            "replicas": 0,
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": {
                    "serviceAccountName": "runner",
                    "containers": [{
                        "name": "web", "image": "example.org/web:1",
                        "ports": [{ "containerPort": 80 }],
                        "env": [
                            { "name": "A", "value": "1" },
                            { "name": "N", "valueFrom": { "fieldRef": { "fieldPath": "metadata.name" } } },
                        ],
                        "readinessProbe": { "httpGet": { "port": 80 } },
                        "livenessProbe": { "grpc": { "port": 81 } },
                    }],
                    "volumes": [
                        { "name": "s", "secret": { "secretName": "s" } },
                        { "name": "h", "hostPath": { "path": "/h" } },
                        { "name": "p", "projected": { "sources": [
                            { "serviceAccountToken": { "path": "t" } },
                            { "configMap": { "name": "c" } },
                        ] } },
                    ],
                },
            },
        },
    })
}

pub(super) async fn generations(run: &mut Run<'_>) {
    run.create("a Deployment with defaults", deployment()).await;
    let target = run.target("apps/v1", "Deployment", "web").await;
    let body = json!({ "metadata": { "labels": { "a": "b" } } });
    run.patch("a label leaves the generation", &target, PatchKind::Merge, body).await;
    let body = json!({ "metadata": { "annotations": { "a": "b" } } });
    run.patch("an annotation does not", &target, PatchKind::Merge, body).await;
    let body = json!({ "spec": { "template": { "spec": { "containers": [
        { "name": "web", "image": "example.org/web:2" },
        { "name": "side", "image": "example.org/side" },
    ] } } } });
    run.patch("a strategic patch merges containers", &target, PatchKind::Strategic, body).await;
    let body = json!({ "spec": { "template": { "spec": { "containers": [
        { "name": "side", "$patch": "delete" },
        { "name": "web", "env": [{ "name": "B", "value": "2" }], "readinessProbe": null },
    ] } } } });
    run.patch("and takes them away", &target, PatchKind::Strategic, body).await;
    let body = json!({ "spec": { "replicas": 0 } });
    run.patch("no change", &target, PatchKind::Merge, body).await;

    let daemon = json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": { "name": "agent" },
        "spec": {
            "selector": { "matchLabels": { "app": "agent" } },
            "template": {
                "metadata": { "labels": { "app": "agent" } },
                "spec": {
                    "nodeSelector": { "no": "node" },
                    "hostNetwork": true,
                    "containers": [
                        { "name": "a", "image": "i@sha256:0", "ports": [{ "containerPort": 4240 }] },
                    ],
                },
            },
        },
    });
    run.create("a DaemonSet", daemon).await;
    let target = run.target("apps/v1", "DaemonSet", "agent").await;
    let body = json!({ "spec": { "minReadySeconds": 5 } });
    run.patch("a change beside the template", &target, PatchKind::Merge, body).await;
    let body = json!({ "spec": { "template": { "metadata": { "annotations": { "x": "y" } } } } });
    run.patch("a change of the template", &target, PatchKind::Strategic, body).await;

    let job = json!({
        "apiVersion": "batch/v1", "kind": "CronJob", "metadata": { "name": "nightly" },
        "spec": { "schedule": "0 0 1 1 *", "jobTemplate": { "spec": { "template": { "spec": {
            "restartPolicy": "Never",
            "containers": [{ "name": "c", "image": "i:latest" }],
        } } } } },
    });
    run.create("a CronJob", job).await;
    for object in [
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": { "name": "web" },
            "spec": { "selector": { "a": "b" }, "ports": [{ "name": "w", "port": 80 }, { "name": "x", "port": 81, "targetPort": "h" }] },
        }),
        json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "secret" },
            "stringData": { "a": "b" }, "data": { "c": "ZA==" },
        }),
        json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": { "name": "claim" },
            "spec": { "accessModes": ["ReadWriteOnce"], "storageClassName": "none", "resources": { "requests": { "storage": "1Gi" } } },
        }),
        json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": { "name": "p" },
            "spec": { "podSelector": {}, "egress": [{ "ports": [{ "port": 53 }] }] },
        }),
        json!({
            "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": { "name": "h" },
            "spec": {
                "maxReplicas": 3,
                "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "none" },
                "metrics": [{ "type": "Resource", "resource": { "name": "cpu", "target": { "type": "Utilization", "averageUtilization": 50 } } }],
            },
        }),
        json!({
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": { "name": "b" },
            "spec": { "minAvailable": 1, "selector": { "matchLabels": { "none": "none" } } },
        }),
    ] {
        let kind = Kind::of(&object).kind;
        run.create(&kind, object).await;
    }
    let target = run.target("v1", "Service", "web").await;
    let body = json!({ "spec": { "ports": [{ "port": 80, "$patch": "delete" }, { "port": 82, "name": "y" }] } });
    run.patch("a Service's ports", &target, PatchKind::Strategic, body).await;
}

pub(super) async fn custom(run: &mut Run<'_>, group: &str) {
    let schema = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("widgets.{group}") },
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": { "plural": "widgets", "kind": "Widget", "shortNames": ["wd"] },
            "versions": [
                { "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema }, "subresources": { "status": {} } },
                { "name": "v1beta1", "served": true, "storage": false, "schema": { "openAPIV3Schema": schema } },
            ],
        },
    });
    let api_version = format!("{group}/v1");
    run.create("a CRD", definition).await;
    let kind = Kind::new(&api_version, "Widget");
    let known = run.cluster.discovery(false).await.unwrap();
    run.say(&format!("discovery is kept: {}", known.resource(&kind).is_none()));
    let mut tries = 0;
    let found = loop {
        let known = run.cluster.discovery(true).await.unwrap();
        if let Some(resource) = known.resource(&kind) {
            break Arc::clone(resource);
        }
        tries += 1;
        assert!(tries < 100, "the CRD is not served");
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    };
    run.say(&format!("{found:?}"));
    let versions = run.cluster.discovery(false).await.unwrap();
    let groups: Vec<_> =
        versions.groups().iter().filter(|(name, _)| name == group).cloned().collect();
    run.say(&format!("{groups:?}"));
    let widget = json!({
        "apiVersion": api_version, "kind": "Widget", "metadata": { "name": "w" },
        "spec": { "size": 1, "list": [{ "a": 1 }, { "b": 2 }] },
    });
    run.create("a custom object", widget).await;
    let target = Target::new(&found, run.namespace, "w");
    let body = json!({ "spec": { "size": 2 } });
    run.patch("a change of its spec", &target, PatchKind::Merge, body).await;
    let body = json!({ "metadata": { "annotations": { "a": "b" } } });
    run.patch("an annotation", &target, PatchKind::Merge, body).await;
    let body = json!({ "status": { "ready": true } });
    run.patch("the status is not part of it", &target, PatchKind::Merge, body.clone()).await;
    let status = target.clone().subresource("status");
    run.patch("but of its subresource", &status, PatchKind::Merge, body).await;
    run.get("custom status", &target).await;
    let body = json!({ "spec": { "size": 3 } });
    run.patch("no strategic patch", &target, PatchKind::Strategic, body).await;
    let beta = Kind::new(&format!("{group}/v1beta1"), "Widget");
    let versions = run.cluster.discovery(false).await.unwrap();
    let target = Target::new(versions.resource(&beta).unwrap(), run.namespace, "w");
    run.get("another version", &target).await;
    let name = format!("widgets.{group}");
    let definition = run.target("apiextensions.k8s.io/v1", "CustomResourceDefinition", &name).await;
    run.cluster.delete(&definition, &DeleteOptions::default()).await.unwrap();
}
