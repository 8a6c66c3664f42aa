//! The live objects of a release, and the pods of its workloads: `helm status --show-resources`
//! (`Client.Get` in `pkg/kube/client.go`).

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::{ActionError, Session};
use crate::apply::{Item, build};
use crate::cluster::{Cluster, ClusterError, ListQuery, Resource};

/// How objects are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResourceForm {
    /// As tables for people, which the server makes.
    Tables,
    /// As they are.
    Objects,
}

/// What is there of a release.
#[derive(Debug, Default)]
pub struct Resources {
    /// Objects, tables or lists of pods by what they are (`v1/ConfigMap`, `v1/Pod(related)`), in the
    /// order of the manifest.
    pub groups: Vec<(String, Vec<Value>)>,
    /// What could not be read, an object or a workload's pods each. Helm passes them over.
    pub unread: Vec<Unread>,
}

/// An object that is not there or must not be seen, or a workload's pods.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub struct Unread {
    /// Which one.
    pub what: String,
    /// Why not.
    pub source: ClusterError,
}

impl Resources {
    fn add(&mut self, group: String, value: Value) {
        match self.groups.iter_mut().find(|(known, _)| *known == group) {
            Some((_, values)) => values.push(value),
            None => self.groups.push((group, vec![value])),
        }
    }

    fn passed_over(&mut self, what: String, source: ClusterError) {
        self.unread.push(Unread { what, source });
    }
}

/// Reads the objects of a manifest, and the pods that its workloads select. Objects without a
/// namespace are looked for in `namespace`.
///
/// # Errors
/// When the manifest cannot be brought to this cluster, or the cluster is unreachable. An object that
/// is not there is none.
pub async fn resources(
    session: &Session<'_>,
    manifest: &str,
    namespace: &str,
    form: ResourceForm,
) -> Result<Resources, ActionError> {
    let discovery = session.discover(false).await?;
    let items = build(&discovery, manifest.as_bytes(), namespace, false)
        .map_err(|error| ActionError::Build { what: "", error: Box::new(error) })?;
    let cluster = &*session.cluster;
    let pods = Arc::new(Resource::builtin("v1", "Pod", "pods", true));
    let mut found = Resources::default();
    let mut seen: Vec<Selector> = Vec::new();
    for item in &items {
        let object = match form {
            ResourceForm::Tables => cluster.get_table(&item.target).await,
            ResourceForm::Objects => cluster.get(&item.target).await,
        };
        let object = match object {
            Ok(object) => object,
            Err(source) => {
                found.passed_over(item.target.to_string(), source);
                continue;
            }
        };
        let is_table = object.get("kind").is_some_and(|kind| kind == "Table");
        found.add(format!("{}/{}", item.kind().version, item.kind().kind), object);
        // Pods of a selector are listed once, whatever namespaces it is used in.
        let Some(selector) = selector(item).filter(|selector| !seen.contains(selector)) else {
            continue;
        };
        let query = ListQuery {
            namespace: item.target.namespace.clone(),
            labels: text_of(&selector),
            ..ListQuery::default()
        };
        seen.push(selector);
        if query.labels.is_empty() {
            continue;
        }
        match related(cluster, &pods, &query, is_table).await {
            Ok(pods) => found.add("v1/Pod(related)".to_owned(), pods),
            Err(source) => found.passed_over(format!("pods of {}", item.target), source),
        }
    }
    Ok(found)
}

type Selector = BTreeMap<String, String>;

/// The labels of a workload's pods (`getSelectorFromObject`); none of one that has none, or where
/// one is no text.
fn selector(item: &Item) -> Option<Selector> {
    let kind = item.value.get("kind").and_then(Value::as_str)?;
    let labels = match kind {
        "ReplicaSet" | "Deployment" | "StatefulSet" | "DaemonSet" | "Job" => {
            item.value.pointer("/spec/selector/matchLabels")
        }
        "ReplicationController" => item.value.pointer("/spec/selector"),
        _ => None,
    };
    labels?
        .as_object()?
        .iter()
        .map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
        .collect()
}

fn text_of(selector: &Selector) -> String {
    let pairs: Vec<String> =
        selector.iter().map(|(name, value)| format!("{name}={value}")).collect();
    pairs.join(",")
}

async fn related(
    cluster: &dyn Cluster,
    pods: &Resource,
    query: &ListQuery,
    as_table: bool,
) -> Result<Value, ClusterError> {
    if as_table {
        return cluster.list_table(pods, query).await;
    }
    let page = cluster.list(pods, query).await?;
    Ok(json!({
        "apiVersion": "v1", "kind": "PodList",
        "metadata": { "resourceVersion": page.resource_version }, "items": page.items,
    }))
}
