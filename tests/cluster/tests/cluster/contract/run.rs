//! A run of the script, and what it writes down of each answer.

use std::sync::Arc;

use helm_rs::cluster::{
    Cluster, ClusterError, DeleteOptions, Kind, Patch, PatchKind, Resource, Target, WriteOptions,
};
use serde_json::{Value, json};

/// A run of the script with what came of it.
pub(super) struct Run<'a> {
    pub(super) cluster: &'a dyn Cluster,
    pub(super) namespace: &'a str,
    pub(super) lines: Vec<String>,
    /// Texts that are masked, with what stands for them.
    pub(super) masks: Vec<(String, String)>,
}

impl Run<'_> {
    pub(super) async fn resource(&self, api_version: &str, kind: &str) -> Arc<Resource> {
        crate::resource(self.cluster, api_version, kind).await
    }

    pub(super) async fn target(&self, api_version: &str, kind: &str, name: &str) -> Target {
        Target::new(&self.resource(api_version, kind).await, self.namespace, name)
    }

    pub(super) fn say(&mut self, line: &str) {
        let mut line = line.replace(self.namespace, "NAMESPACE");
        for (text, mask) in &self.masks {
            line = line.replace(text.as_str(), mask);
        }
        self.lines.push(line);
    }

    pub(super) fn note(&mut self, what: &str, answer: &Result<Value, ClusterError>) {
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

    pub(super) async fn create(&mut self, what: &str, object: Value) -> Value {
        let kind = Kind::of(&object);
        let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        let target = self.target(&kind.api_version(), &kind.kind, name).await;
        let answer = self.cluster.create(&target, &object, &WriteOptions::default()).await;
        self.note(what, &answer);
        answer.unwrap_or_default()
    }

    pub(super) async fn patch(
        &mut self,
        what: &str,
        target: &Target,
        kind: PatchKind,
        body: Value,
    ) -> Value {
        let patch = Patch { kind, body };
        let answer = self.cluster.patch(target, &patch, &WriteOptions::default()).await;
        self.note(what, &answer);
        answer.unwrap_or_default()
    }

    pub(super) async fn update(&mut self, what: &str, target: &Target, object: &Value) -> Value {
        let answer = self.cluster.update(target, object, &WriteOptions::default()).await;
        self.note(what, &answer);
        answer.unwrap_or_default()
    }

    pub(super) async fn delete(&mut self, what: &str, target: &Target, options: &DeleteOptions) {
        let answer = self.cluster.delete(target, options).await;
        self.note(what, &answer);
    }

    pub(super) async fn get(&mut self, what: &str, target: &Target) -> Value {
        let answer = self.cluster.get(target).await;
        self.note(what, &answer);
        answer.unwrap_or_default()
    }
}

/// An object without what differs from server to server and from moment to moment.
pub(super) fn masked(object: &Value) -> Value {
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

pub(super) fn version(object: &Value) -> &str {
    object.pointer("/metadata/resourceVersion").and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn config_map(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": name, "labels": { "app": "contract" } },
        "data": { "a": "1" },
    })
}
