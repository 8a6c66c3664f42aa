//! One script, run on a real API server and in memory: both must answer the same, word by word.
//! What differs by nature (UIDs, versions, times, the namespace's name) is masked.

use std::sync::Arc;

use helm_rs::cluster::{
    AccessQuestion, Cluster, ClusterError, DeleteOptions, Kind, ListQuery, Patch, PatchKind,
    Propagation, Resource, Subject, Target, WatchEvent, WatchQuery, WriteOptions, list_all,
};
use serde_json::{Value, json};

use crate::{live, memory, namespace};

/// A run of the script with what came of it.
struct Run<'a> {
    cluster: &'a dyn Cluster,
    namespace: &'a str,
    lines: Vec<String>,
    /// Texts that are masked, with what stands for them.
    masks: Vec<(String, String)>,
}

impl Run<'_> {
    async fn resource(&self, api_version: &str, kind: &str) -> Arc<Resource> {
        crate::resource(self.cluster, api_version, kind).await
    }

    async fn target(&self, api_version: &str, kind: &str, name: &str) -> Target {
        Target::new(&self.resource(api_version, kind).await, self.namespace, name)
    }

    fn say(&mut self, line: &str) {
        let mut line = line.replace(self.namespace, "NAMESPACE");
        for (text, mask) in &self.masks {
            line = line.replace(text.as_str(), mask);
        }
        self.lines.push(line);
    }

    fn note(&mut self, what: &str, answer: &Result<Value, ClusterError>) {
        match answer {
            Ok(object) => {
                if let Some(uid) = object.pointer("/metadata/uid").and_then(Value::as_str)
                    && !self.masks.iter().any(|(known, _)| known == uid)
                {
                    let mask = format!("UID-{}", self.masks.len());
                    self.masks.push((uid.to_owned(), mask));
                }
                let masked = masked(object);
                self.say(&format!("{what}: {masked}"));
            }
            Err(error) => {
                let code = error.status().map_or(0, |status| status.code);
                let details = error.status().map(|status| status.details.clone());
                let details = details.unwrap_or_default();
                self.say(&format!("{what}: {:?} {code} {error} {details}", error.kind()));
            }
        }
    }

    async fn create(&mut self, what: &str, object: Value) -> Value {
        let kind = Kind::of(&object);
        let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        let target = self.target(&kind.api_version(), &kind.kind, name).await;
        let answer = self.cluster.create(&target, &object, &WriteOptions::default()).await;
        self.note(what, &answer);
        answer.unwrap_or_default()
    }

    async fn patch(&mut self, what: &str, target: &Target, kind: PatchKind, body: Value) -> Value {
        let patch = Patch { kind, body };
        let answer = self.cluster.patch(target, &patch, &WriteOptions::default()).await;
        self.note(what, &answer);
        answer.unwrap_or_default()
    }

    async fn update(&mut self, what: &str, target: &Target, object: &Value) -> Value {
        let answer = self.cluster.update(target, object, &WriteOptions::default()).await;
        self.note(what, &answer);
        answer.unwrap_or_default()
    }

    async fn delete(&mut self, what: &str, target: &Target, options: &DeleteOptions) {
        let answer = self.cluster.delete(target, options).await;
        self.note(what, &answer);
    }

    async fn get(&mut self, what: &str, target: &Target) -> Value {
        let answer = self.cluster.get(target).await;
        self.note(what, &answer);
        answer.unwrap_or_default()
    }
}

/// An object without what differs from server to server and from moment to moment.
fn masked(object: &Value) -> Value {
    let mut object = object.clone();
    let workload = matches!(
        Kind::of(&object).kind.as_str(),
        "Deployment"
            | "DaemonSet"
            | "CronJob"
            | "CustomResourceDefinition"
            | "HorizontalPodAutoscaler"
            | "PodDisruptionBudget"
            | "PersistentVolumeClaim"
    );
    if let Some(fields) = object.as_object_mut()
        && workload
    {
        // Controllers are at work on a real server.
        fields.remove("status");
    }
    let claim = Kind::of(&object).kind == "PersistentVolumeClaim";
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
        if claim {
            // An admission plugin's, which is not simulated.
            metadata.remove("finalizers");
        }
        for (field, mask) in [
            ("resourceVersion", "VERSION"),
            ("creationTimestamp", "TIME"),
            ("deletionTimestamp", "TIME"),
        ] {
            if let Some(value) = metadata.get_mut(field) {
                *value = mask.into();
            }
        }
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.remove("deployment.kubernetes.io/revision");
            if annotations.is_empty() {
                metadata.remove("annotations");
            }
        }
    }
    for field in ["clusterIP", "clusterIPs"] {
        if let Some(address) = object.pointer_mut(&format!("/spec/{field}")) {
            *address = "ADDRESS".into();
        }
    }
    object
}

fn version(object: &Value) -> &str {
    object.pointer("/metadata/resourceVersion").and_then(Value::as_str).unwrap_or_default()
}

fn config_map(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": name, "labels": { "app": "contract" } },
        "data": { "a": "1" },
    })
}

async fn writes(run: &mut Run<'_>) {
    let target = run.target("v1", "ConfigMap", "one").await;
    run.get("get what is not there", &target).await;
    let first = run.create("create", config_map("one")).await;
    run.create("create again", config_map("one")).await;
    let same = run.update("update without a change", &target, &first).await;
    run.say(&format!("version stays: {}", version(&first) == version(&same)));
    let mut changed = first.clone();
    changed["data"]["b"] = "2".into();
    let second = run.update("update", &target, &changed).await;
    run.say(&format!("version moves: {}", version(&first) != version(&second)));
    run.update("update from an old version", &target, &changed).await;
    let missing = run.target("v1", "ConfigMap", "missing").await;
    run.update("update what is not there", &missing, &config_map("missing")).await;
    run.update("update under another name", &target, &config_map("other")).await;
    let mut strange = second.clone();
    strange["metadata"]["uid"] = "another".into();
    run.update("update another object of the name", &target, &strange).await;

    run.patch("merge patch", &target, PatchKind::Merge, json!({ "data": { "a": null, "c": "3" } }))
        .await;
    let patched = run.patch(
        "patch without a change",
        &target,
        PatchKind::Merge,
        json!({ "data": { "c": "3" } }),
    );
    let patched = patched.await;
    let again = run.patch("empty patch", &target, PatchKind::Strategic, json!({})).await;
    run.say(&format!("version stays: {}", version(&patched) == version(&again)));
    run.patch("rename", &target, PatchKind::Merge, json!({ "metadata": { "name": "x" } })).await;
    let body = json!({ "metadata": { "resourceVersion": "1" }, "data": { "d": "4" } });
    run.patch("patch an old version", &target, PatchKind::Merge, body).await;
    run.patch("patch the UID", &target, PatchKind::Merge, json!({ "metadata": { "uid": "x" } }))
        .await;
    run.patch("patch what is not there", &missing, PatchKind::Merge, json!({ "data": null })).await;
    run.patch("a list as a merge patch", &target, PatchKind::Merge, json!([1])).await;
    let body = json!([
        { "op": "test", "path": "/data/c", "value": "3" },
        { "op": "replace", "path": "/data/c", "value": "4" },
    ]);
    run.patch("JSON patch", &target, PatchKind::Json, body).await;
    let body = json!([{ "op": "test", "path": "/data/c", "value": "x" }]);
    run.patch("JSON patch whose test fails", &target, PatchKind::Json, body).await;
    let body = json!([{ "op": "remove", "path": "/data/nothing" }]);
    run.patch("JSON patch of nothing", &target, PatchKind::Json, body).await;
    let body = json!({ "metadata": { "labels": { "app": null, "new": "1" }, "annotations": {} } });
    run.patch("strategic patch", &target, PatchKind::Strategic, body).await;
}

async fn dry_runs(run: &mut Run<'_>) {
    let dry = WriteOptions { dry_run: true, ..WriteOptions::default() };
    let target = run.target("v1", "ConfigMap", "dry").await;
    let answer = run.cluster.create(&target, &config_map("dry"), &dry).await;
    run.note("dry create", &answer);
    run.get("nothing was created", &target).await;
    let created = run.create("create", config_map("dry")).await;
    let patch = Patch { kind: PatchKind::Merge, body: json!({ "data": { "b": "2" } }) };
    let answer = run.cluster.patch(&target, &patch, &dry).await;
    run.note("dry patch", &answer);
    let options = DeleteOptions { dry_run: true, ..DeleteOptions::default() };
    run.delete("dry delete", &target, &options).await;
    let after = run.get("nothing changed", &target).await;
    run.say(&format!("version stays: {}", version(&created) == version(&after)));
}

async fn deletes(run: &mut Run<'_>) {
    let target = run.target("v1", "ConfigMap", "gone").await;
    run.delete("delete what is not there", &target, &DeleteOptions::default()).await;
    let created = run.create("create", config_map("gone")).await;
    let uid = created.pointer("/metadata/uid").and_then(Value::as_str).unwrap_or_default();
    let another = DeleteOptions { uid: "another".to_owned(), ..DeleteOptions::default() };
    run.delete("delete another", &target, &another).await;
    run.masks
        .push((format!("in record ({})", version(&created)), "in record (VERSION)".to_owned()));
    let old = DeleteOptions { resource_version: "1".to_owned(), ..DeleteOptions::default() };
    run.delete("delete an old version", &target, &old).await;
    let this = DeleteOptions {
        uid: uid.to_owned(),
        propagation: Some(Propagation::Background),
        ..DeleteOptions::default()
    };
    run.delete("delete this one", &target, &this).await;
    run.get("it is gone", &target).await;

    let mut held = config_map("held");
    held["metadata"]["finalizers"] = json!(["example.org/hold"]);
    run.create("create with a finalizer", held).await;
    let target = run.target("v1", "ConfigMap", "held").await;
    run.delete("delete marks it", &target, &DeleteOptions::default()).await;
    run.delete("delete again", &target, &DeleteOptions::default()).await;
    let body = json!({ "metadata": { "finalizers": ["example.org/hold", "example.org/more"] } });
    run.patch("no new finalizers", &target, PatchKind::Merge, body).await;
    let body = json!({ "metadata": { "finalizers": null } });
    run.patch("the last finalizer goes", &target, PatchKind::Merge, body).await;
    run.get("and so does the object", &target).await;

    let account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": "account" },
    });
    run.create("create an account", account).await;
    let target = run.target("v1", "ServiceAccount", "account").await;
    run.delete("its delete answers with it", &target, &DeleteOptions::default()).await;
}

async fn refusals(run: &mut Run<'_>) {
    run.create("a bad name", config_map("Bad_name")).await;
    run.create("no name", config_map("")).await;
    let mut object = config_map("labelled");
    object["metadata"]["labels"] = json!({ "a b": "c d" });
    run.create("bad labels", object).await;
    let mut object = config_map("versioned");
    object["metadata"]["resourceVersion"] = "5".into();
    run.create("a version", object).await;
    let mut object = config_map("elsewhere");
    object["metadata"]["namespace"] = "elsewhere".into();
    run.create("another namespace", object).await;
    let maps = run.resource("v1", "ConfigMap").await;
    let target = Target::new(&maps, "no-such-namespace", "x");
    let answer = run.cluster.create(&target, &config_map("x"), &WriteOptions::default()).await;
    run.note("no namespace", &answer);
    let nothing = Arc::new(Resource::builtin("example.org/v1", "Nothing", "nothings", true));
    let target = Target::new(&nothing, run.namespace, "x");
    run.get("no such group", &target).await;
    let nothing = Arc::new(Resource::builtin("v1", "Nothing", "nothings", true));
    run.get("no such resource", &Target::new(&nothing, run.namespace, "x")).await;
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": "a.b" },
        "spec": { "ports": [{ "port": 80 }] },
    });
    let target = run.target("v1", "Service", "a.b").await;
    let answer = run.cluster.create(&target, &service, &WriteOptions::default()).await;
    let refused =
        answer.is_err_and(|error| error.to_string().contains("metadata.name: Invalid value"));
    run.say(&format!("a service's name has no dots: {refused}"));
}

async fn lists(run: &mut Run<'_>) {
    let maps = run.resource("v1", "ConfigMap").await;
    for (name, tier) in [("list-a", "x"), ("list-b", "y"), ("list-c", "x"), ("list-d", "z")] {
        let mut object = config_map(name);
        object["metadata"]["labels"] = json!({ "listed": "yes", "tier": tier });
        run.create("create", object).await;
    }
    for (labels, fields, limit) in [
        ("listed=yes", "", 0),
        ("listed=yes", "", 3),
        ("listed,tier in (x, z)", "", 1),
        ("listed=yes,tier notin (x)", "", 2),
        ("listed,tier!=x", "", 0),
        ("listed,!tier", "", 0),
        ("listed=yes", "metadata.name=list-b", 0),
        ("listed=yes", "metadata.name!=list-b", 2),
    ] {
        let query = ListQuery {
            namespace: run.namespace.to_owned(),
            labels: labels.to_owned(),
            fields: fields.to_owned(),
            limit,
            ..ListQuery::default()
        };
        let page = run.cluster.list(&maps, &query).await.unwrap();
        run.say(&format!("{labels} {fields} {limit}: {} in a page", page.items.len()));
        let all = list_all(run.cluster, &maps, &query).await.unwrap();
        let names: Vec<_> = all
            .items
            .iter()
            .map(|item| {
                assert_eq!(Kind::of(item), Kind::new("v1", "ConfigMap"));
                item.pointer("/metadata/name")
                    .and_then(Value::as_str)
                    .unwrap_or_default()
                    .to_owned()
            })
            .collect();
        run.say(&names.join(" "));
    }
    for (labels, fields) in [("a===", ""), ("a in (b", ""), ("", "data.x=1")] {
        let query = ListQuery {
            namespace: run.namespace.to_owned(),
            labels: labels.to_owned(),
            fields: fields.to_owned(),
            ..ListQuery::default()
        };
        let error = run.cluster.list(&maps, &query).await.unwrap_err();
        run.say(&format!("{labels} {fields}: {:?} {error}", error.kind()));
    }
}

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

async fn generations(run: &mut Run<'_>) {
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

async fn custom(run: &mut Run<'_>, group: &str) {
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

async fn watches(run: &mut Run<'_>) {
    let maps = run.resource("v1", "ConfigMap").await;
    let target = run.target("v1", "ConfigMap", "watched").await;
    let list = ListQuery { namespace: run.namespace.to_owned(), ..ListQuery::default() };
    let from = run.cluster.list(&maps, &list).await.unwrap().resource_version;
    let query = WatchQuery {
        namespace: run.namespace.to_owned(),
        labels: "watched=yes".to_owned(),
        resource_version: from,
        timeout_seconds: 5,
        ..WatchQuery::default()
    };
    let mut object = config_map("watched");
    object["metadata"]["labels"] = json!({ "watched": "yes" });
    run.create("create", object.clone()).await;
    run.patch("patch", &target, PatchKind::Merge, json!({ "data": { "b": "2" } })).await;
    let body = |value| json!({ "metadata": { "labels": { "watched": value } } });
    run.patch("unlabel", &target, PatchKind::Merge, body("no")).await;
    run.patch("patch unseen", &target, PatchKind::Merge, json!({ "data": { "c": "3" } })).await;
    run.patch("label", &target, PatchKind::Merge, body("yes")).await;
    run.delete("delete", &target, &DeleteOptions::default()).await;
    let mut watch = run.cluster.watch(&maps, &query).await.unwrap();
    let mut lines = Vec::new();
    while lines.len() < 5 {
        match watch.next().await.unwrap() {
            Some(WatchEvent::Bookmark(_)) => {}
            Some(WatchEvent::Added(object)) => lines.push(format!("added {}", masked(&object))),
            Some(WatchEvent::Modified(object)) => {
                lines.push(format!("modified {}", masked(&object)));
            }
            Some(WatchEvent::Deleted(object)) => lines.push(format!("deleted {}", masked(&object))),
            None => panic!("the watch ended after {lines:?}"),
        }
    }
    drop(watch);
    for line in lines {
        run.say(&line);
    }
    // What is there comes first when no version is given; then the watch runs out.
    run.create("create again", object).await;
    let query = WatchQuery { resource_version: String::new(), timeout_seconds: 1, ..query };
    let mut watch = run.cluster.watch(&maps, &query).await.unwrap();
    let mut events = 0;
    while let Some(event) = watch.next().await.unwrap() {
        events += usize::from(event.object().is_some());
    }
    drop(watch);
    run.say(&format!("{events} event, and an end in good order"));
}

async fn rights(run: &mut Run<'_>) {
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": { "name": "r" },
        "rules": [
            { "apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "patch"] },
            { "apiGroups": ["apps"], "resources": ["deployments"], "resourceNames": ["web"], "verbs": ["*"] },
            { "apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"] },
        ],
    });
    run.create("a Role", role).await;
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": { "name": "b" },
        "roleRef": { "kind": "Role", "name": "r", "apiGroup": "rbac.authorization.k8s.io" },
        "subjects": [{ "kind": "ServiceAccount", "name": "runner", "namespace": run.namespace }],
    });
    run.create("a RoleBinding", binding).await;
    let subject = Subject::service_account(run.namespace, "runner");
    // The authorizer of a real server reads the objects a moment later.
    let question =
        |verb: &str, group: &str, resource: &str, subresource: &str, name: &str| AccessQuestion {
            verb: verb.to_owned(),
            group: group.to_owned(),
            resource: resource.to_owned(),
            subresource: subresource.to_owned(),
            namespace: run.namespace.to_owned(),
            name: name.to_owned(),
        };
    let questions = [
        question("get", "", "configmaps", "", "any"),
        question("create", "", "configmaps", "", ""),
        question("delete", "apps", "deployments", "", "web"),
        question("delete", "apps", "deployments", "", "other"),
        question("list", "apps", "deployments", "", ""),
        question("get", "", "pods", "log", "x"),
        question("get", "", "pods", "", "x"),
        AccessQuestion { namespace: String::new(), ..question("get", "", "configmaps", "", "x") },
    ];
    for _ in 0..100 {
        if run.cluster.subject_may(&subject, &questions[0]).await.unwrap().allowed {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    for question in &questions {
        let decision = run.cluster.subject_may(&subject, question).await.unwrap();
        run.say(&format!("{question:?}: {decision:?}"));
    }
}

async fn script(cluster: &dyn Cluster, namespace: &str) -> Vec<String> {
    let mut run = Run { cluster, namespace, lines: Vec::new(), masks: Vec::new() };
    run.say("# writes");
    writes(&mut run).await;
    run.say("# dry runs");
    dry_runs(&mut run).await;
    run.say("# deletes");
    deletes(&mut run).await;
    run.say("# refusals");
    refusals(&mut run).await;
    run.say("# lists");
    lists(&mut run).await;
    run.say("# generations");
    generations(&mut run).await;
    run.say("# custom objects");
    custom(&mut run, &format!("{namespace}.example.org")).await;
    run.say("# watches");
    watches(&mut run).await;
    run.say("# rights");
    rights(&mut run).await;
    run.lines
}

/// What a real server answered; made by a run with `ICHOR_BLESS=1`.
fn golden() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("contract.txt")
}

#[track_caller]
fn compare(who: &str, lines: &[String]) {
    let expected = std::fs::read_to_string(golden()).unwrap();
    let expected: Vec<&str> = expected.lines().collect();
    let mut differences = Vec::new();
    for (index, (expected, found)) in expected.iter().zip(lines).enumerate() {
        if expected != found {
            differences.push(format!("{}\n  expected {expected}\n  {who} {found}", index + 1));
        }
    }
    let (count, all) = (differences.len(), expected.len());
    assert!(differences.is_empty(), "{count} of {all}:\n{}", differences.join("\n"));
    assert_eq!(all, lines.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_real_server_answers_so() {
    let Some((cluster, namespace)) = namespace("contract-run").await else { return };
    let live = live(&cluster.kubeconfig()).await;
    let lines = script(&live, &namespace.name).await;
    if std::env::var_os("ICHOR_BLESS").is_some() {
        std::fs::write(golden(), format!("{}\n", lines.join("\n"))).unwrap();
    }
    compare("server", &lines);
}

#[tokio::test]
async fn memory_answers_as_a_server_does() {
    let memory = memory("in-memory");
    compare("memory", &script(&memory, "in-memory").await);
}
