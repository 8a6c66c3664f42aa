//! Waiting until objects are ready (`pkg/kube/wait.go`), with an account of what is missing.
//!
//! Helm reads all objects in each round and stops at the first that is not ready. Here an object
//! that was ready is not read again until all are; then all are read once more, so that the end is
//! the same: a moment at which everything was ready.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::{self, StreamExt as _};
use serde_json::Value;

use super::field::{integer, list, text};
use super::readiness::{self, Readiness, Watched};
use super::{Cancel, Item, Observer};
use crate::cluster::{
    Clock, Cluster, ClusterError, ErrorKind, ListQuery, Resource, Target, list_all,
};

/// Time between two rounds at first and at most. Helm's is two seconds from the beginning.
const FIRST_INTERVAL: Duration = Duration::from_millis(125);
const INTERVAL: Duration = Duration::from_secs(1);
/// How often a wait looks whether it is to end.
pub(super) const TICK: Duration = Duration::from_millis(250);
/// Rounds in a row in which an object may fail to be read.
const MAX_FAILURES: usize = 30;
/// Requests under way at once.
const CONCURRENCY: usize = 8;
/// When an object is not ready for so long, its pods and events are looked at.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long and for what to wait.
#[derive(Clone, Copy, Debug)]
pub struct WaitOptions {
    /// How long.
    pub timeout: Duration,
    /// Jobs must complete too.
    pub jobs: bool,
}

/// An object that is waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// `Kind namespace/name`.
    pub object: String,
    /// Why it is not ready.
    pub reason: String,
    /// What its pods and events say, as far as they could be read.
    pub details: Vec<String>,
}

/// Why waiting ended before all was ready.
#[derive(Debug, thiserror::Error)]
pub enum WaitError {
    /// Time is up.
    #[error("context deadline exceeded")]
    Deadline,
    /// The end was asked for.
    #[error("context canceled")]
    Cancelled,
    /// An object will never be ready.
    #[error("{0}")]
    Failed(String),
    /// An object cannot be read.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
}

struct Entry<'a> {
    item: &'a Item,
    watched: Watched,
    target: Target,
    ready: bool,
    failures: usize,
    reason: String,
    live: Option<Value>,
}

/// Waits until all objects are ready.
///
/// # Errors
/// [`WaitError`]; before [`WaitError::Deadline`] the observer hears what was still missing.
pub async fn wait(
    cluster: &dyn Cluster,
    clock: &dyn Clock,
    items: &[Item],
    options: WaitOptions,
    observer: &dyn Observer,
    cancel: &Cancel,
) -> Result<(), WaitError> {
    observer.log(&format!(
        "beginning wait for {} resources with timeout of {}",
        items.len(),
        go_duration(options.timeout)
    ));
    let start = clock.elapsed();
    let result = Waiter { cluster, clock, observer, cancel, start, options }.run(items).await;
    let elapsed = clock.elapsed().saturating_sub(start);
    let rounded =
        Duration::from_secs(elapsed.as_secs() + u64::from(elapsed.subsec_millis() >= 500));
    let rounded = go_duration(rounded);
    observer.log(&match &result {
        Ok(()) => format!("wait for resources succeeded within {rounded}"),
        Err(error) => format!("wait for resources failed after {rounded}: {error}"),
    });
    result
}

struct Waiter<'a> {
    cluster: &'a dyn Cluster,
    clock: &'a dyn Clock,
    observer: &'a dyn Observer,
    cancel: &'a Cancel,
    start: Duration,
    options: WaitOptions,
}

impl Waiter<'_> {
    async fn run(&self, items: &[Item]) -> Result<(), WaitError> {
        let mut entries: Vec<Entry<'_>> =
            items.iter().filter_map(|item| self.entry(item)).collect();
        let mut reported = Vec::new();
        let mut looked: Option<Duration> = None;
        let mut interval = FIRST_INTERVAL;
        loop {
            let first_look = entries.iter().all(|entry| !entry.ready);
            self.round(&mut entries).await?;
            let mut all = entries.iter().all(|entry| entry.ready);
            if all && !first_look {
                // All were ready, but not at the same time.
                for entry in &mut entries {
                    entry.ready = false;
                }
                self.round(&mut entries).await?;
                all = entries.iter().all(|entry| entry.ready);
            }
            if all {
                return Ok(());
            }
            let elapsed = self.clock.elapsed().saturating_sub(self.start);
            let over = elapsed >= self.options.timeout;
            let curious = over
                || elapsed >= PATIENCE
                    && looked.is_none_or(|last| elapsed.saturating_sub(last) >= 2 * PATIENCE);
            let waiting = self.waiting(&entries, curious).await;
            if curious {
                looked = Some(elapsed);
            }
            if waiting != reported && (curious || looked.is_none() || changed(&waiting, &reported))
            {
                self.observer.waiting(&waiting);
                reported = waiting;
            }
            if over {
                return Err(WaitError::Deadline);
            }
            self.pause(interval).await?;
            interval = (interval * 2).min(INTERVAL);
        }
    }

    fn entry<'i>(&self, item: &'i Item) -> Option<Entry<'i>> {
        let kind = item.kind();
        let watched = Watched::of(&kind.api_version(), &kind.kind)?;
        if watched == Watched::Job && !self.options.jobs {
            return None;
        }
        let resource = if kind.api_version() == watched.api_version() {
            Arc::clone(&item.target.resource)
        } else {
            let own = &item.target.resource;
            Arc::new(Resource::builtin(
                watched.api_version(),
                &kind.kind,
                &own.plural,
                own.namespaced,
            ))
        };
        let target = Target::new(&resource, &item.target.namespace, &item.target.name);
        Some(Entry {
            item,
            watched,
            target,
            ready: false,
            failures: 0,
            reason: String::new(),
            live: None,
        })
    }

    /// Waits for the next round.
    async fn pause(&self, interval: Duration) -> Result<(), WaitError> {
        let deadline = self.start + self.options.timeout;
        pause(self.clock, self.cancel, (self.clock.elapsed() + interval).min(deadline)).await
    }

    /// Looks at every object that is not known to be ready.
    async fn round(&self, entries: &mut [Entry<'_>]) -> Result<(), WaitError> {
        let pending: Vec<(usize, Watched, Target, Value)> = entries
            .iter()
            .enumerate()
            .filter(|(_, entry)| !entry.ready)
            .map(|(at, entry)| (at, entry.watched, entry.target.clone(), entry.item.value.clone()))
            .collect();
        let sets = self.replica_sets(&pending).await;
        let sets = &sets;
        let results: Vec<_> = stream::iter(pending)
            .map(|(at, watched, target, value)| async move {
                (at, self.look(watched, &target, &value, sets).await)
            })
            .buffered(CONCURRENCY)
            .collect()
            .await;
        for (at, result) in results {
            let Some(entry) = entries.get_mut(at) else { continue };
            match result {
                Ok((Readiness::Ready, live)) => {
                    entry.ready = true;
                    entry.failures = 0;
                    entry.live = Some(live);
                }
                Ok((Readiness::NotReady(reason), live)) => {
                    if entry.reason != reason.0 {
                        self.observer.log(&reason.0);
                    }
                    entry.reason = reason.0;
                    entry.failures = 0;
                    entry.live = Some(live);
                }
                // Helm tries a failed Job thirty times more, although it says itself that the Job
                // cannot recover.
                Ok((Readiness::Failed(reason), _)) => return Err(WaitError::Failed(reason.0)),
                Err(error) => {
                    entry.failures += 1;
                    if !is_retryable(&error) || entry.failures > MAX_FAILURES {
                        return Err(error.into());
                    }
                    self.observer.log(&format!(
                        "Error received when checking status of resource {}. Error: '{error}'",
                        entry.target.name
                    ));
                    entry.reason = format!("it cannot be read: {error}");
                }
            }
        }
        Ok(())
    }

    /// The ReplicaSets of each namespace with Deployments to look at, one list each.
    async fn replica_sets(
        &self,
        pending: &[(usize, Watched, Target, Value)],
    ) -> BTreeMap<String, Result<Vec<Value>, ClusterError>> {
        let resource = Resource::builtin("apps/v1", "ReplicaSet", "replicasets", true);
        let mut sets = BTreeMap::new();
        for (_, watched, target, _) in pending {
            if *watched != Watched::Deployment || sets.contains_key(&target.namespace) {
                continue;
            }
            let query = ListQuery { namespace: target.namespace.clone(), ..ListQuery::default() };
            let list = list_all(self.cluster, &resource, &query).await.map(|page| page.items);
            sets.insert(target.namespace.clone(), list);
        }
        sets
    }

    /// `ReadyChecker.IsReady`
    async fn look(
        &self,
        watched: Watched,
        target: &Target,
        rendered: &Value,
        sets: &BTreeMap<String, Result<Vec<Value>, ClusterError>>,
    ) -> Result<(Readiness, Value), ClusterError> {
        let live = self.cluster.get(target).await?;
        let readiness = match watched {
            Watched::Pod => readiness::pod(&live),
            Watched::Job => readiness::job(&live),
            Watched::Deployment => match sets.get(&target.namespace) {
                Some(Ok(sets)) => readiness::deployment(&live, sets),
                Some(Err(error)) => return Err(error.clone()),
                None => readiness::deployment(&live, &[]),
            },
            Watched::PersistentVolumeClaim => readiness::persistent_volume_claim(&live),
            Watched::Service => readiness::service(&live),
            Watched::DaemonSet => readiness::daemon_set(&live),
            Watched::CustomResourceDefinition => readiness::custom_resource_definition(&live),
            Watched::StatefulSet => readiness::stateful_set(&live),
            Watched::ReplicationController | Watched::ReplicaSet => {
                let pods = self.pods(target, rendered).await?;
                readiness::replicas(&target.resource.kind.kind, &live, &pods)
            }
        };
        Ok((readiness, live))
    }

    /// The pods that an object selects.
    async fn pods(&self, target: &Target, object: &Value) -> Result<Vec<Value>, ClusterError> {
        let Some(selector) = selector(object) else { return Ok(Vec::new()) };
        let resource = Resource::builtin("v1", "Pod", "pods", true);
        let query = ListQuery {
            namespace: target.namespace.clone(),
            labels: selector,
            ..ListQuery::default()
        };
        Ok(list_all(self.cluster, &resource, &query).await?.items)
    }

    /// What is not ready, and why; with a look at pods and events when `curious`.
    async fn waiting(&self, entries: &[Entry<'_>], curious: bool) -> Vec<Waiting> {
        let mut waiting = Vec::new();
        for entry in entries.iter().filter(|entry| !entry.ready) {
            let object = match entry.target.namespace.as_str() {
                "" => format!("{} {}", entry.item.kind().kind, entry.target.name),
                namespace => {
                    format!("{} {namespace}/{}", entry.item.kind().kind, entry.target.name)
                }
            };
            let details = match &entry.live {
                Some(live) if curious => self.details(entry, live).await,
                _ => Vec::new(),
            };
            waiting.push(Waiting { object, reason: entry.reason.clone(), details });
        }
        waiting
    }

    /// Conditions of the object, waiting reasons of its pods, and warnings about both. What may
    /// not be read is left out.
    async fn details(&self, entry: &Entry<'_>, live: &Value) -> Vec<String> {
        let mut details: Vec<String> = list(live, "/status/conditions")
            .iter()
            .filter(|condition| {
                let failing = text(condition, "/type").ends_with("Failure");
                let truth = text(condition, "/status");
                !text(condition, "/message").is_empty()
                    && (failing && truth == "True" || !failing && truth == "False")
            })
            .map(|condition| {
                format!("{}: {}", text(condition, "/reason"), text(condition, "/message"))
            })
            .collect();
        let mut involved = vec![text(live, "/metadata/uid").to_owned()];
        let pods = match entry.watched {
            Watched::Pod => vec![live.clone()],
            _ => self.pods(&entry.target, live).await.unwrap_or_default(),
        };
        for pod in pods.iter().filter(|pod| !readiness::pod(pod).is_ready()).take(3) {
            involved.push(text(pod, "/metadata/uid").to_owned());
            details.extend(pod_reasons(pod));
        }
        details.extend(self.warnings(&entry.target.namespace, &involved).await);
        details.dedup();
        details.truncate(10);
        details
    }

    async fn warnings(&self, namespace: &str, involved: &[String]) -> Vec<String> {
        if namespace.is_empty() {
            return Vec::new();
        }
        let resource = Resource::builtin("v1", "Event", "events", true);
        let query = ListQuery {
            namespace: namespace.to_owned(),
            fields: "type=Warning".to_owned(),
            ..ListQuery::default()
        };
        let Ok(page) = list_all(self.cluster, &resource, &query).await else { return Vec::new() };
        let mut events: Vec<&Value> = page
            .items
            .iter()
            .filter(|event| {
                let uid = text(event, "/involvedObject/uid");
                !uid.is_empty() && involved.iter().any(|known| known == uid)
            })
            .collect();
        events.sort_by_key(|event| std::cmp::Reverse(text(event, "/lastTimestamp").to_owned()));
        events
            .into_iter()
            .take(3)
            .map(|event| format!("{}: {}", text(event, "/reason"), text(event, "/message")))
            .collect()
    }
}

/// Waits until a moment, in slices.
pub(super) async fn pause(
    clock: &dyn Clock,
    cancel: &Cancel,
    until: Duration,
) -> Result<(), WaitError> {
    loop {
        if cancel.is_cancelled() {
            return Err(WaitError::Cancelled);
        }
        let left = until.saturating_sub(clock.elapsed());
        if left.is_zero() {
            return Ok(());
        }
        clock.sleep(left.min(TICK)).await;
    }
}

/// A duration as Go prints it.
pub(super) fn go_duration(duration: Duration) -> String {
    let nanoseconds = i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX);
    crate::render::time::Duration(nanoseconds).to_string()
}

/// Whether something else than the account of it changed.
fn changed(now: &[Waiting], before: &[Waiting]) -> bool {
    let plain = |all: &[Waiting]| {
        all.iter().map(|w| (w.object.clone(), w.reason.clone())).collect::<Vec<_>>()
    };
    plain(now) != plain(before)
}

/// What keeps a pod from being ready.
pub fn pod_reasons(pod: &Value) -> Vec<String> {
    let name = text(pod, "/metadata/name");
    let mut reasons = Vec::new();
    for statuses in ["/status/initContainerStatuses", "/status/containerStatuses"] {
        for status in list(pod, statuses) {
            let container = text(status, "/name");
            let reason = text(status, "/state/waiting/reason");
            if !reason.is_empty() && reason != "PodInitializing" {
                let message = text(status, "/state/waiting/message");
                let colon = if message.is_empty() { "" } else { ": " };
                reasons
                    .push(format!("pod {name}, container {container}: {reason}{colon}{message}"));
            } else if integer(status, "/state/terminated/exitCode") != 0 {
                reasons.push(format!(
                    "pod {name}, container {container}: ended with exit code {}",
                    integer(status, "/state/terminated/exitCode")
                ));
            }
        }
    }
    if reasons.is_empty() {
        let scheduled = list(pod, "/status/conditions")
            .iter()
            .find(|c| text(c, "/type") == "PodScheduled" && text(c, "/status") == "False");
        if let Some(condition) = scheduled {
            let (reason, message) = (text(condition, "/reason"), text(condition, "/message"));
            reasons.push(format!("pod {name}: {reason}: {message}"));
        } else {
            reasons.push(format!("pod {name} is {}, not ready", text(pod, "/status/phase")));
        }
    }
    reasons
}

/// The label selector of a workload or Service, as text.
pub fn selector(object: &Value) -> Option<String> {
    let selector = object.pointer("/spec/selector")?;
    let labels = selector.get("matchLabels").or_else(|| {
        // A Service's or ReplicationController's selector is the labels themselves.
        (selector.get("matchExpressions").is_none()).then_some(selector)
    });
    let mut parts: Vec<String> = labels
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| Some(format!("{key}={}", value.as_str()?)))
        .collect();
    for expression in list(selector, "/matchExpressions") {
        let key = text(expression, "/key");
        let values: Vec<&str> =
            list(expression, "/values").iter().filter_map(Value::as_str).collect();
        let values = values.join(",");
        parts.push(match text(expression, "/operator") {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "Exists" => key.to_owned(),
            "DoesNotExist" => format!("!{key}"),
            _ => continue,
        });
    }
    (!parts.is_empty()).then(|| parts.join(","))
}

/// `waiter.isRetryableError`
fn is_retryable(error: &ClusterError) -> bool {
    match error.status() {
        Some(status) => {
            status.code == 0 || status.code == 429 || status.code >= 500 && status.code != 501
        }
        None => !matches!(error.kind(), ErrorKind::Killed | ErrorKind::Unsupported),
    }
}
