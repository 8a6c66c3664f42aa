//! The controller: its Deployment, its Lease, and waiting until it is there.

use std::time::Duration;

use cilium::pinned::RECORD_NAMESPACE;
use helm_rs::action::Session;
use helm_rs::apply::{pod_reasons, readiness, selector};
use helm_rs::cluster::{Clock, Cluster, ClusterError, ListQuery, Resource, Target, list_all};
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use serde_json::Value;

use super::wait::TICK;
use crate::error::CommandError;

/// The Deployment, and the Lease of the one that acts.
const NAME: &str = "ichor-controller";
/// A Lease that was not renewed for so long is nobody's: four times as long as the next candidate
/// waits, since the clocks of cluster and caller may differ.
const DEAD: SignedDuration = SignedDuration::from_secs(60);
/// Pods that are named.
const NAMED: usize = 3;

/// What there is of the controller.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Controller {
    /// Its Deployment; none when there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) deployment: Option<Rollout>,
    /// The one that acts, or acted last; none when nobody holds the Lease.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) leader: Option<Leader>,
    /// What this identity may not read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) unread: Vec<String>,
}

/// How far a Deployment is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Rollout {
    /// Pods that are to be there.
    pub(crate) wanted: i64,
    /// Pods of the newest template.
    pub(crate) updated: i64,
    /// Pods that are available.
    pub(crate) available: i64,
    /// Whether these numbers are about the newest template, and no older pod is left.
    pub(crate) is_current: bool,
    /// Why pods are not ready.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) waiting: Vec<String>,
}

/// The holder of the Lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Leader {
    /// Its name.
    pub(crate) name: String,
    /// When it renewed the Lease, by its own clock.
    pub(crate) renewed: String,
    /// Seconds since then, by this program's clock.
    pub(crate) age: Option<i64>,
    /// Whether that is so long ago that it does not act any more.
    pub(crate) is_dead: bool,
}

impl Rollout {
    /// As `kubectl rollout status` judges.
    fn read(deployment: &Value) -> Self {
        let number = |pointer: &str| deployment.pointer(pointer).and_then(Value::as_i64);
        let wanted = number("/spec/replicas").unwrap_or(1);
        let updated = number("/status/updatedReplicas").unwrap_or(0);
        let seen = number("/status/observedGeneration").unwrap_or(0);
        let all = number("/status/replicas").unwrap_or(0);
        Self {
            wanted,
            updated,
            available: number("/status/availableReplicas").unwrap_or(0),
            is_current: seen >= number("/metadata/generation").unwrap_or(0) && all <= updated,
            waiting: Vec::new(),
        }
    }

    /// Whether it is rolled out, and available.
    pub(crate) const fn is_done(&self) -> bool {
        self.is_current && self.updated >= self.wanted && self.available >= self.wanted
    }

    /// For people.
    pub(crate) fn tell(&self) -> String {
        let Self { wanted, available, .. } = self;
        let mut text = format!("{available} of {wanted} pods available");
        if !self.is_done() && *available >= *wanted {
            text.push_str(", the newest not all among them");
        }
        for reason in &self.waiting {
            text.push_str("; ");
            text.push_str(reason);
        }
        text
    }
}

impl Leader {
    fn read(lease: &Value, now: Timestamp) -> Option<Self> {
        let text = |pointer: &str| lease.pointer(pointer).and_then(Value::as_str);
        let name = text("/spec/holderIdentity").filter(|name| !name.is_empty())?.to_owned();
        let renewed = text("/spec/renewTime").unwrap_or_default().to_owned();
        let age = renewed.parse::<Timestamp>().ok().map(|time| now.duration_since(time));
        let is_dead = age.is_none_or(|age| age >= DEAD);
        Some(Self { name, renewed, age: age.map(|age| age.as_secs().max(0)), is_dead })
    }
}

impl Controller {
    /// Whether somebody acts: the Lease is held, and was renewed.
    pub(crate) fn acts(&self) -> bool {
        self.leader.as_ref().is_some_and(|leader| !leader.is_dead)
    }

    /// Who acts.
    pub(crate) fn leader_name(&self) -> &str {
        self.leader.as_ref().map_or("", |leader| &leader.name)
    }

    /// Whether there is one, acting or not.
    pub(crate) fn is_there(&self) -> bool {
        self.deployment.is_some() || self.acts()
    }

    /// For people.
    pub(crate) fn tell(&self) -> String {
        let mut parts = Vec::new();
        match &self.deployment {
            Some(rollout) if rollout.wanted == 0 => parts.push("scaled to 0".to_owned()),
            Some(rollout) => parts.push(rollout.tell()),
            None if self.unread.is_empty() => parts.push("not installed".to_owned()),
            None => {}
        }
        match &self.leader {
            Some(leader) if leader.is_dead => {
                let age =
                    leader.age.map_or_else(|| "at a time that it does not say".to_owned(), ago);
                parts.push(format!("NOBODY ACTS: {} renewed the Lease {age}", leader.name));
            }
            Some(leader) => parts.push(format!(
                "{} acts, and renewed the Lease {}",
                leader.name,
                leader.age.map_or_else(|| "just now".to_owned(), ago)
            )),
            None if self.deployment.is_some() && self.unread.is_empty() => {
                parts.push("nobody acts yet".to_owned());
            }
            None => {}
        }
        parts.extend(self.unread.iter().map(|unread| format!("not seen: {unread}")));
        parts.join("; ")
    }
}

/// How long ago, in one unit.
pub(super) fn ago(seconds: i64) -> String {
    match seconds {
        0..=119 => format!("{seconds} s ago"),
        120..=7199 => format!("{} min ago", seconds / 60),
        7200..=172_799 => format!("{} h ago", seconds / 3600),
        _ => format!("{} days ago", seconds / 86_400),
    }
}

/// Looks. What may not be read is told, and no error.
pub(crate) async fn look(cluster: &dyn Cluster, clock: &dyn Clock) -> Controller {
    let mut found = Controller::default();
    match deployment(cluster).await {
        Ok(rollout) => found.deployment = rollout,
        Err(error) => found.unread.push(error.to_string()),
    }
    let leases = Resource::builtin("coordination.k8s.io/v1", "Lease", "leases", true);
    let target = Target::new(&leases.into(), RECORD_NAMESPACE, NAME);
    match cluster.get(&target).await {
        Ok(lease) => found.leader = Leader::read(&lease, clock.now()),
        Err(error) if error.is_not_found() => {}
        Err(error) => found.unread.push(error.to_string()),
    }
    found
}

/// The Deployment, with why its pods are not ready as far as that may be read.
async fn deployment(cluster: &dyn Cluster) -> Result<Option<Rollout>, ClusterError> {
    let deployments = Resource::builtin("apps/v1", "Deployment", "deployments", true);
    let object = match cluster.get(&Target::new(&deployments.into(), RECORD_NAMESPACE, NAME)).await
    {
        Ok(object) => object,
        Err(error) if error.is_not_found() => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut rollout = Rollout::read(&object);
    if !rollout.is_done()
        && let Some(labels) = selector(&object)
    {
        rollout.waiting = waiting_pods(cluster, RECORD_NAMESPACE, labels).await;
    }
    Ok(Some(rollout))
}

/// Why pods are not ready; none when they are, or may not be read.
pub(super) async fn waiting_pods(
    cluster: &dyn Cluster,
    namespace: &str,
    labels: String,
) -> Vec<String> {
    let pods = Resource::builtin("v1", "Pod", "pods", true);
    let query = ListQuery { namespace: namespace.to_owned(), labels, ..ListQuery::default() };
    let Ok(page) = list_all(cluster, &pods, &query).await else { return Vec::new() };
    if page.items.is_empty() {
        return vec!["there is no pod yet".to_owned()];
    }
    let waits = |pod: &&Value| {
        let phase = pod.pointer("/status/phase").and_then(Value::as_str);
        !matches!(phase, Some("Succeeded" | "Failed")) && !readiness::pod(pod).is_ready()
    };
    page.items.iter().filter(waits).take(NAMED).flat_map(pod_reasons).collect()
}

/// Waits until the controller is rolled out and available, or somebody else acts in its place.
///
/// # Errors
/// There is none, it is scaled to 0, time is up, or the end was asked for.
pub(crate) async fn until_available(
    session: &Session<'_>,
    limit: Duration,
) -> Result<(), CommandError> {
    let (cluster, clock) = (&*session.cluster, session.clock);
    let deadline = clock.elapsed().saturating_add(limit);
    let mut told = String::new();
    loop {
        let found = look(cluster, clock).await;
        let Some(rollout) = &found.deployment else {
            // Without a Deployment one may still act, as one that is tried out elsewhere.
            return if found.acts() { Ok(()) } else { Err(gone(&found)) };
        };
        if rollout.wanted == 0 {
            return if found.acts() { Ok(()) } else { Err(scaled_to_zero()) };
        }
        if rollout.is_done() {
            return Ok(());
        }
        let state = rollout.tell();
        if state != told {
            session.observer.progress(&format!("waiting for the controller: {state}"));
            told = state;
        }
        if session.cancel.is_cancelled() {
            return Err(CommandError::new("stopped, as was asked; nothing was written"));
        }
        if clock.elapsed() >= deadline {
            return Err(CommandError::new(format_args!(
                "the controller (Deployment {RECORD_NAMESPACE}/{NAME}) is not available: {told}"
            ))
            .hint(format!(
                "nothing was written; put right what its pods wait for (kubectl -n \
                 {RECORD_NAMESPACE} describe pods), then run it again, with a longer \
                 --wait-timeout where it only takes long"
            )));
        }
        clock.sleep(TICK).await;
    }
}

fn scaled_to_zero() -> CommandError {
    CommandError::new(format_args!(
        "the controller (Deployment {RECORD_NAMESPACE}/{NAME}) is scaled to 0"
    ))
    .hint(format!(
        "nothing was written; kubectl -n {RECORD_NAMESPACE} scale deployment {NAME} --replicas=2, \
         then run it again"
    ))
}

fn gone(found: &Controller) -> CommandError {
    match found.unread.first() {
        Some(unread) => CommandError::new(format_args!("the controller cannot be seen: {unread}")),
        None => CommandError::new(format_args!(
            "the controller (Deployment {RECORD_NAMESPACE}/{NAME}) is gone"
        )),
    }
    .hint("nothing was written; see `ichor cluster status`")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn deployment(generation: i64, seen: i64, [all, updated, available]: [i64; 3]) -> Rollout {
        Rollout::read(&json!({
            "metadata": { "generation": generation },
            "spec": { "replicas": 2 },
            "status": {
                "observedGeneration": seen, "replicas": all, "updatedReplicas": updated,
                "availableReplicas": available,
            },
        }))
    }

    #[test]
    fn rolled_out_and_available() {
        assert!(deployment(3, 3, [2, 2, 2]).is_done());
        // Not seen yet; an old pod is left; a new one is not there; one is not available.
        for (generation, seen, numbers) in
            [(4, 3, [2, 2, 2]), (3, 3, [3, 2, 2]), (3, 3, [2, 1, 2]), (3, 3, [2, 2, 1])]
        {
            assert!(!deployment(generation, seen, numbers).is_done(), "{seen} {numbers:?}");
        }
        assert!(!Rollout::read(&json!({})).is_done());
    }

    #[test]
    fn a_lease_that_is_not_renewed_is_nobodys() {
        let now: Timestamp = "2026-01-01T01:00:00Z".parse().unwrap();
        let lease = |holder: &str, renewed: &str| json!({ "spec": { "holderIdentity": holder, "renewTime": renewed } });
        let alive = Leader::read(&lease("one", "2026-01-01T00:59:55.000000Z"), now).unwrap();
        assert!(!alive.is_dead && alive.age == Some(5));
        // The holder's clock is ahead.
        let ahead = Leader::read(&lease("one", "2026-01-01T01:00:20.000000Z"), now).unwrap();
        assert!(!ahead.is_dead && ahead.age == Some(0));
        let dead = Leader::read(&lease("one", "2025-12-31T22:30:00.000000Z"), now).unwrap();
        assert!(dead.is_dead);
        let found = Controller { leader: Some(dead), ..Controller::default() };
        assert_eq!(found.tell(), "not installed; NOBODY ACTS: one renewed the Lease 2 h ago");
        assert_eq!(Leader::read(&lease("", "2026-01-01T00:59:55.000000Z"), now), None);
        assert!(Leader::read(&lease("one", ""), now).unwrap().is_dead);
    }
}
