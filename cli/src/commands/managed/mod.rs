//! The controller of a cluster and the TalosCluster that it works on, as commands see them.
//!
//! ```text
//! TalosClusters, Deployment, Lease ─ read ─► Managed ─ next ─► what to do next
//!                                               └─ write (server-side apply, patch) ─ wait ─► verdict
//! ```

pub(crate) mod next;
mod running;
pub(crate) mod wait;
pub(crate) mod write;

use std::sync::Arc;

use api::{CniPreset, Condition, ConditionStatus, MANAGED_NAME, TalosCluster, type_};
use helm_rs::cluster::{Cluster, ClusterError, ErrorKind, ListQuery, Resource, list_all};
use helm_rs::render::{Engine, EngineOptions};

pub(crate) use running::{Controller, look as look_at_controller, until_available};
#[cfg(test)]
pub(crate) use running::{Leader, Rollout};

use super::Context;
use super::cni::shared::no;
use super::cni::trouble::server_error;
use crate::error::CommandError;
use crate::output::printable;
use crate::session::Host;

/// What is said of a cluster whose CNI is somebody else's.
const UNMANAGED: &str = "the CNI is not managed by Ichor (spec.cni.preset: unmanaged)";

/// The resource of TalosClusters.
pub(crate) fn talos_cluster_resource() -> Arc<Resource> {
    let api_version = "ichor.maesh.dev/v1alpha1";
    Arc::new(Resource::builtin(api_version, "TalosCluster", "talosclusters", false))
}

/// Why the TalosClusters cannot be told.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClustersError {
    /// The server.
    #[error("list the TalosClusters")]
    Cluster(#[from] ClusterError),
    /// One of them is none that this program knows.
    #[error(
        "TalosCluster {name} cannot be read: {source}; is this ichor older than its definition?"
    )]
    Object {
        /// Its name.
        name: String,
        /// What is wrong.
        source: serde_json::Error,
    },
}

/// The TalosClusters; none where their kind is not known: no definition is installed then.
pub(crate) async fn talos_clusters(
    cluster: &dyn Cluster,
) -> Result<Option<Vec<TalosCluster>>, ClustersError> {
    let page = match list_all(cluster, &talos_cluster_resource(), &ListQuery::default()).await {
        Ok(page) => page,
        Err(error) if error.is_not_found() => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let read = |object: serde_json::Value| {
        let name = object.pointer("/metadata/name").and_then(serde_json::Value::as_str);
        let name = name.unwrap_or_default().to_owned();
        serde_json::from_value(object).map_err(|source| ClustersError::Object { name, source })
    };
    page.items.into_iter().map(read).collect::<Result<_, _>>().map(Some)
}

/// Why the Job's pods are not ready; none when they are, are over, or may not be read.
pub(crate) async fn waiting_job_pods(cluster: &dyn Cluster) -> Vec<String> {
    let labels = format!("job-name={}", takeover::job::NAME);
    running::waiting_pods(cluster, cilium::pinned::NAMESPACE, labels).await
}

/// A condition on one line, with what `kubectl describe` has of it.
pub(crate) fn condition_line(condition: &Condition) -> String {
    let Condition { type_, status, reason, last_transition_time, message, .. } = condition;
    let status = match status {
        ConditionStatus::True => "True",
        ConditionStatus::False => "False",
        ConditionStatus::Unknown => "Unknown",
    };
    format!("{type_}: {status} ({reason}) since {last_transition_time}: {message}")
}

/// The one whose CNI ichor manages.
pub(crate) fn managed(clusters: &[TalosCluster]) -> Option<&TalosCluster> {
    clusters.iter().find(|cluster| {
        cluster.spec.cni.preset == CniPreset::Cilium
            && cluster.metadata.name.as_deref() == Some(MANAGED_NAME)
    })
}

/// Whether its hand-over is complete.
pub(crate) fn is_handed_over(cluster: &TalosCluster) -> bool {
    let handover = cluster.condition(type_::CNI_HANDOVER);
    handover.is_some_and(|condition| condition.status == ConditionStatus::True)
}

/// What a command that may write knows of the two.
#[derive(Debug, Default)]
pub(crate) struct Managed {
    /// The managed TalosCluster.
    pub(crate) cluster: Option<TalosCluster>,
    /// The controller.
    pub(crate) controller: Controller,
}

impl Managed {
    /// For people: who looks after the CNI, and how that stands. Empty where nobody does.
    pub(crate) fn lines(&self) -> String {
        let Some(cluster) = &self.cluster else { return String::new() };
        let mut lines = format!(
            "managed: by TalosCluster {MANAGED_NAME} (`ichor cluster status` tells more)\n\
             controller: {}\n",
            printable(&self.controller.tell())
        );
        for condition in cluster.status.iter().flat_map(|status| &status.conditions) {
            lines.push_str(&printable(&condition_line(condition)));
            lines.push('\n');
        }
        lines
    }

    /// The same as data; null where nobody does.
    pub(crate) fn data(&self) -> Result<goyaml::Value, CommandError> {
        let Some(cluster) = &self.cluster else { return Ok(goyaml::Value::Null) };
        let data = serde_json::json!({
            "name": MANAGED_NAME,
            "conditions": cluster.status.as_ref().map(|status| &status.conditions),
            "controller": self.controller,
        });
        goyaml::json::from_json(data.to_string().as_bytes(), &goyaml::Limits::default())
            .map_err(CommandError::new)
    }

    /// The TalosCluster of a controller that acts on it: then nobody else should write.
    pub(crate) fn acting(&self) -> Option<&TalosCluster> {
        self.cluster.as_ref().filter(|_| self.controller.acts())
    }
}

/// Looks at TalosClusters and controller. A snapshot has neither.
pub(crate) fn look(host: &Host, context: &mut Context<'_>) -> Result<Managed, CommandError> {
    if host.as_stage().is_some() {
        return Ok(Managed::default());
    }
    looked(host, context)?.map_err(|error| server_error(&error))
}

fn looked(
    host: &Host,
    context: &mut Context<'_>,
) -> Result<Result<Managed, ClustersError>, CommandError> {
    let engine = Engine::new(EngineOptions::default());
    let looked = host.look(context, &engine, async |session| {
        let clusters = talos_clusters(&*session.cluster).await?;
        let cluster = clusters.as_deref().and_then(managed).cloned();
        let controller = look_at_controller(&*session.cluster, session.clock).await;
        Ok::<_, ClustersError>(Managed { cluster, controller })
    })?;
    Ok(looked.0)
}

/// [`look`] by one who may not see TalosClusters, and has nothing to do with the controller then.
/// Whoever may see them and does not get an answer does not know whether a controller acts.
///
/// # Errors
/// As [`look`], but for a missing right.
pub(crate) fn look_if_allowed(
    host: &Host,
    context: &mut Context<'_>,
) -> Result<Managed, CommandError> {
    if host.as_stage().is_some() {
        return Ok(Managed::default());
    }
    let found = looked(host, context)?;
    match found {
        Err(ClustersError::Cluster(error)) if error.kind() == ErrorKind::Forbidden => {
            Ok(Managed::default())
        }
        found => found.map_err(|error| server_error(&error)),
    }
}

/// Refuses what is about ichor's Cilium where a TalosCluster says that the CNI is somebody else's.
///
/// Who may not see TalosClusters goes on: that is the Job above all, which the controller makes for
/// a managed one only. A snapshot is rehearsed on as it is.
///
/// # Errors
/// It is unmanaged.
pub(crate) fn check_managed(host: &Host, context: &mut Context<'_>) -> Result<(), CommandError> {
    if host.as_stage().is_some() {
        return Ok(());
    }
    let engine = Engine::new(EngineOptions::default());
    let looked = host.look(context, &engine, async |session| {
        talos_clusters(&*session.cluster).await.ok().flatten().unwrap_or_default()
    })?;
    let is = |preset| looked.0.iter().any(|cluster| cluster.spec.cni.preset == preset);
    if is(CniPreset::Unmanaged) && !is(CniPreset::Cilium) {
        return Err(no(UNMANAGED, "see `ichor cluster status`"));
    }
    Ok(())
}

/// Refuses to write beside a controller that acts. `instead` is the command for it. A pod of the
/// cluster without a kubeconfig is the controller's own Job.
///
/// # Errors
/// A controller acts.
pub(crate) fn check_nobody_acts(
    host: &Host,
    instead: &str,
    context: &mut Context<'_>,
) -> Result<(), CommandError> {
    let environment = context.environment;
    let is_a_pod = environment.variable("KUBERNETES_SERVICE_HOST").is_some()
        && environment.variable("KUBECONFIG").is_none();
    if is_a_pod {
        return Ok(());
    }
    let managed = look_if_allowed(host, context)?;
    if managed.acting().is_none() {
        return Ok(());
    }
    let who = managed.controller.leader_name();
    Err(no(
        format_args!(
            "refused: a controller ({who}) hands this cluster's Cilium over and keeps it, as \
             TalosCluster {MANAGED_NAME} says; what is written beside it would meet its Job"
        ),
        format!(
            "{instead}. To go on without the controller: kubectl -n ichor-system scale deployment \
             ichor-controller --replicas=0, then this command again"
        ),
    ))
}
