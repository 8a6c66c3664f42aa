//! What is read before a move is planned, and which history that is.

use std::sync::Arc;

use cilium::provenance::{History, ProvenanceError, counting, histories};
use helm_rs::cluster::{Discovery, ServerVersion};
use helm_rs::error_chain;
use helm_rs::release::storage::ObjectKind;
use helm_rs::release::{Record, Status};
use serde_json::Value;

use super::{At, MovePlan, Request};
use crate::adopt::found::records_of;
use crate::adopt::other_kind;
use crate::place::kind_name;
use crate::plan::make::refusal;
use crate::plan::{PlanError, Refusal};
use crate::run::stored::{StoredError, StoredPlan};
use crate::survey::{builtin, failed, read, text};

/// What was read.
pub(super) struct Found {
    pub(super) discovery: Arc<Discovery>,
    pub(super) server: ServerVersion,
    pub(super) caller: String,
    pub(super) home: Option<Value>,
    /// The records of the source, of the driver that is moved from.
    pub(super) sources: Vec<Value>,
    /// Whether the source has records of the other driver.
    pub(super) has_others: bool,
    /// Names of records under the name that is taken.
    pub(super) taken: Vec<String>,
    pub(super) stored: Option<StoredPlan>,
}

/// Why nothing can be planned.
pub(super) enum Look {
    Plan(PlanError),
    Damaged(Refusal),
}

/// Reads.
///
/// # Errors
/// [`Look`]
pub(super) async fn find(request: &Request<'_>) -> Result<Found, Look> {
    let cluster = &*request.cluster;
    let (from, to) = (&request.from, &request.to);
    let namespaces = builtin("v1", "Namespace", "namespaces", false);
    let (server, discovery, identity, home) = futures::join!(
        cluster.server_version(),
        cluster.discovery(false),
        cluster.identity(),
        read(cluster, &namespaces, "", &to.namespace),
    );
    let wrong = |doing: &str| {
        let doing = doing.to_owned();
        |source| Look::Plan(failed(doing)(source).into())
    };
    let list = async |kind: &str, at: &At| {
        records_of(cluster, kind, &at.release, &at.namespace).await.map_err(Look::Plan)
    };
    let sources = list(kind_name(from.records), from).await?;
    let others = list(other_kind(from.records), from).await?;
    let mut taken = Vec::new();
    for kind in ["Secret", "ConfigMap"] {
        // The other driver's records of the very release are the ones that are moved.
        if to.is_same_release(from) && kind == kind_name(from.records) {
            continue;
        }
        let records = list(kind, to).await?;
        taken.extend(records.iter().map(|record| text(record, "/metadata/name").to_owned()));
    }
    let stored = match StoredPlan::read(cluster, &request.place()).await {
        Ok(stored) => stored,
        Err(StoredError::Cluster { source, .. }) => {
            return Err(wrong("read the stored plan")(source));
        }
        Err(error) => {
            return Err(Look::Damaged(refusal("StoredPlan", error_chain(&error))));
        }
    };
    Ok(Found {
        discovery: discovery.map_err(wrong("read what the server serves"))?,
        server: server.map_err(wrong("read the server's version"))?,
        caller: identity.map(|identity| identity.user).unwrap_or_default(),
        home: home.map_err(wrong("read the namespace that the release goes to"))?,
        sources,
        has_others: !others.is_empty(),
        taken,
        stored,
    })
}

/// The history that is moved, with its records; none, and refusals, when it cannot be.
pub(super) fn history(
    request: &Request<'_>,
    found: &Found,
    plan: &mut MovePlan,
) -> Option<(History, Vec<Record>)> {
    let (from, to) = (&request.from, &request.to);
    if found.sources.is_empty() && found.has_others {
        let (here, driver) = match from.records {
            ObjectKind::Secret => ("ConfigMaps", "configmap"),
            ObjectKind::ConfigMap => ("Secrets", "secret"),
        };
        plan.refusals.push(refusal(
            "Driver",
            format!(
                "release {} in namespace {} has its records in {here}, and HELM_DRIVER says \
                 another driver: set HELM_DRIVER={driver} for this command",
                from.release, from.namespace
            ),
        ));
        return None;
    }
    if from == to {
        plan.refusals.push(refusal("Same", "the release is there already: name another place"));
        return None;
    }
    if !found.taken.is_empty() {
        plan.refusals.push(refusal(
            "Taken",
            format!(
                "there are records of a release {} in namespace {} already ({}): two histories \
                 would mix; take another name, or uninstall that release",
                to.release,
                to.namespace,
                found.taken.join(", ")
            ),
        ));
    }
    if found.has_others && !to.is_same_release(from) {
        plan.refusals.push(refusal(
            "Ambiguous",
            format!(
                "release {} in namespace {} has records in Secrets and in ConfigMaps: move or \
                 remove those of one driver first",
                from.release, from.namespace
            ),
        ));
    }
    let (secrets, config_maps): (&[Value], &[Value]) = match from.records {
        ObjectKind::Secret => (&found.sources, &[]),
        ObjectKind::ConfigMap => (&[], &found.sources),
    };
    let Some(history) = histories(secrets, config_maps).into_iter().next() else {
        plan.refusals.push(refusal(
            "Unknown",
            format!(
                "there is no release {} in namespace {} in {}s",
                from.release,
                from.namespace,
                kind_name(from.records)
            ),
        ));
        return None;
    };
    match counting(&history, request.clock.now().as_second()) {
        Err(ProvenanceError::InProgress { status: Status::Uninstalled, .. }) | Ok(_) => {}
        Err(error @ ProvenanceError::InProgress { .. }) => {
            plan.refusals.push(refusal("Pending", error_chain(&error)));
        }
        // Told below, with every record that does not read.
        Err(_) => {}
    }
    let mut records = Vec::new();
    for revision in &history.revisions {
        let wrong = match revision.record() {
            Ok(record) => {
                let namespace = record.namespace().unwrap_or_default();
                let wrong = (namespace != from.namespace).then(|| {
                    format!(
                        "says that its release is in namespace {namespace}, and lies in another"
                    )
                });
                records.push(record);
                wrong
            }
            Err(reason) => Some(format!("cannot be read ({reason})")),
        };
        let Some(wrong) = wrong else { continue };
        plan.refusals.push(refusal(
            "Record",
            format!("{} {wrong}: a history is moved whole or not at all", revision.object),
        ));
    }
    Some((history, records))
}
