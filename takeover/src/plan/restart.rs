//! Which workloads restart, and how many pods that is.

use std::collections::BTreeSet;

use helm_rs::cluster::{Cluster, ListQuery, Resource, list_all};
use serde_json::Value;

use super::state::State;
use super::{ObjectAbout, Restart};
use crate::gate::pod_template;
use crate::rendered::RenderedObject;
use crate::survey::{Survey, text};

/// Whether a workload's pods are replaced, and how many.
pub(super) async fn restart(
    cluster: &dyn Cluster,
    object: &RenderedObject,
    state: &State,
    survey: &Survey,
) -> Option<Restart> {
    let kind = object.item.kind().kind.clone();
    if !matches!(kind.as_str(), "DaemonSet" | "Deployment" | "StatefulSet") {
        return None;
    }
    let template = pod_template(&kind)?;
    let leaves: Vec<String> = state
        .classes
        .differences
        .iter()
        .filter(|change| change.path.starts_with(template))
        .map(|change| change.path.to_string())
        .collect();
    let live = state.live.as_ref()?;
    if leaves.is_empty() {
        return None;
    }
    let number = |pointer: &str| live.pointer(pointer).and_then(Value::as_u64).unwrap_or_default();
    let pods = if kind == "DaemonSet" {
        number("/status/currentNumberScheduled")
    } else {
        number("/status/replicas")
    };
    let nodes = match selector(live) {
        Some(labels) => nodes_of(cluster, &object.item.target.namespace, labels).await,
        None => None,
    };
    let strategy = text(live, "/spec/updateStrategy/type");
    Some(Restart {
        about: ObjectAbout {
            api_version: object.item.kind().api_version(),
            kind,
            namespace: object.item.target.namespace.clone(),
            name: object.item.target.name.clone(),
        },
        leaves,
        pods,
        nodes: nodes.unwrap_or_else(|| match survey.detected.nodes.len() as u64 {
            // They were not looked at.
            0 => pods,
            nodes => pods.min(nodes),
        }),
        on_delete: strategy == "OnDelete",
    })
}

fn selector(workload: &Value) -> Option<String> {
    let labels = workload.pointer("/spec/selector/matchLabels")?.as_object()?;
    let parts: Vec<String> = labels
        .iter()
        .filter_map(|(key, value)| Some(format!("{key}={}", value.as_str()?)))
        .collect();
    Some(parts.join(","))
}

async fn nodes_of(cluster: &dyn Cluster, namespace: &str, labels: String) -> Option<u64> {
    let pods = Resource::builtin("v1", "Pod", "pods", true);
    let query = ListQuery { namespace: namespace.to_owned(), labels, ..ListQuery::default() };
    let page = list_all(cluster, &pods, &query).await.ok()?;
    let nodes: BTreeSet<&str> = page.items.iter().map(|pod| text(pod, "/spec/nodeName")).collect();
    let nodes = nodes.iter().filter(|name| !name.is_empty()).count() as u64;
    // A snapshot has no pods.
    Some(nodes).filter(|nodes| *nodes > 0)
}
