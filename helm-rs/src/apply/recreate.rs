//! Restarting pods by deleting them (`recreate` in `pkg/action/upgrade.go`).

use super::wait::selector;
use super::{Item, Writer};
use crate::cluster::{ClusterError, DeleteOptions, ListQuery, Resource, Target, list_all};

/// Kinds whose selector names pods (`SelectorsForObject` in `pkg/kube/wait.go`).
const SELECTING: [&str; 7] = [
    "ReplicaSet",
    "ReplicationController",
    "StatefulSet",
    "DaemonSet",
    "Deployment",
    "Job",
    "Service",
];

/// Pods that could not be deleted.
#[derive(Debug, thiserror::Error)]
#[error("unable to recreate pods for object {namespace}/{name} because an error occurred")]
pub struct RecreateError {
    /// The namespace of the object that selects them.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The server's error.
    pub source: ClusterError,
}

impl Writer<'_> {
    /// Deletes the pods that objects select, so that their controllers make new ones.
    ///
    /// # Errors
    /// The first failure.
    pub async fn recreate_pods(&self, items: &[&Item]) -> Result<(), RecreateError> {
        let pods = std::sync::Arc::new(Resource::builtin("v1", "Pod", "pods", true));
        let selecting: Vec<&Item> = items
            .iter()
            .copied()
            .filter(|item| SELECTING.contains(&item.kind().kind.as_str()))
            .collect();
        // A Job's selector is the server's.
        for (item, live) in selecting.iter().zip(self.read(&selecting).await) {
            let Some(labels) = live.ok().flatten().as_ref().and_then(selector) else { continue };
            let failed = |source| RecreateError {
                namespace: item.target.namespace.clone(),
                name: item.target.name.clone(),
                source,
            };
            let query = ListQuery {
                namespace: item.target.namespace.clone(),
                labels,
                ..ListQuery::default()
            };
            let page = list_all(self.cluster, &pods, &query).await.map_err(failed)?;
            for pod in &page.items {
                let text = |path| super::field::text(pod, path);
                let target =
                    Target::new(&pods, text("/metadata/namespace"), text("/metadata/name"));
                let options = DeleteOptions {
                    uid: text("/metadata/uid").to_owned(),
                    ..DeleteOptions::default()
                };
                self.cluster.delete(&target, &options).await.map_err(failed)?;
            }
        }
        Ok(())
    }
}
