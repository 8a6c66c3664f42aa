//! `lookup` on a cluster (`pkg/engine/lookup_func.go`).

use std::sync::Arc;

use goyaml::{Limits, Map};
use serde_json::{Value, json};

use crate::cluster::{Cluster, ClusterError, Kind, ListQuery, Target, block_on, list_all};
use crate::render::Lookup;

/// The cluster as templates see it. Templates are not asynchronous: the thread that renders waits
/// for the answer, so the cluster's own work must be done by another one.
pub struct ClusterLookup {
    cluster: Arc<dyn Cluster>,
}

impl ClusterLookup {
    /// Looks things up on that cluster.
    pub fn new(cluster: Arc<dyn Cluster>) -> Self {
        Self { cluster }
    }

    async fn find(
        &self,
        kind: &Kind,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Value>, ClusterError> {
        let discovery = self.cluster.discovery(false).await?;
        let Some(resource) = discovery.resource(kind) else {
            let known = discovery
                .groups()
                .iter()
                .any(|(group, versions)| *group == kind.group && versions.contains(&kind.version));
            // Helm asks for a resource without a name then, and finds nothing.
            return if known { Ok(None) } else { Err(ClusterError::no_such_resource()) };
        };
        if name.is_empty() {
            let namespace = if resource.namespaced { namespace } else { "" };
            let query = ListQuery { namespace: namespace.to_owned(), ..ListQuery::default() };
            let page = list_all(&*self.cluster, resource, &query).await?;
            return Ok(Some(json!({
                "apiVersion": kind.api_version(),
                "kind": format!("{}List", kind.kind),
                "metadata": { "resourceVersion": page.resource_version },
                "items": page.items,
            })));
        }
        self.cluster.get(&Target::new(resource, namespace, name)).await.map(Some)
    }
}

impl Lookup for ClusterLookup {
    fn lookup(
        &mut self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> Result<Map, String> {
        let kind = Kind::new(api_version, kind);
        let unknown = |error: &ClusterError| {
            format!("unable to get apiresource from unstructured: {kind}: {error}")
        };
        let served = block_on(self.cluster.discovery(false)).map_err(|error| unknown(&error))?;
        let known = served
            .groups()
            .iter()
            .any(|(group, versions)| *group == kind.group && versions.contains(&kind.version));
        if !known {
            return Err(unknown(&ClusterError::no_such_resource()));
        }
        match block_on(self.find(&kind, namespace, name)) {
            Ok(Some(object)) => read(&object),
            Ok(None) => Ok(Map::new()),
            Err(error) if error.is_not_found() => Ok(Map::new()),
            Err(error) => Err(error.to_string()),
        }
    }
}

fn read(object: &Value) -> Result<Map, String> {
    goyaml::json::from_json_exact(object.to_string().as_bytes(), &Limits::default())
        .map_err(|error| error.to_string())
        .map(|value| value.into_map().unwrap_or_default())
}
