//! Waiting until what a hook created has done its work (`WatchUntilReady` in
//! `pkg/kube/client.go`): Jobs until they complete, Pods until they succeed, all else not at all.

use std::fmt;
use std::pin::pin;
use std::time::Duration;

use futures::future::{Either, select};
use futures::stream::{self, StreamExt as _};
use serde_json::Value;

use super::field::{integer, list, text};
use super::wait::{TICK, go_duration, pause};
use super::write::multierror;
use super::{Cancel, Item, Observer, WaitError};
use crate::cluster::{Clock, Cluster, ClusterError, ErrorKind, ListQuery, WatchEvent, WatchQuery};

/// Time before a watch that failed is opened again.
const PAUSE: Duration = Duration::from_secs(1);

/// Why an object did not do its work.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CompletionError {
    /// A Job failed.
    #[error("job {name} failed: {reason}")]
    Job {
        /// The Job.
        name: String,
        /// The reason of its condition.
        reason: String,
    },
    /// A Pod failed.
    #[error("pod {0} failed")]
    Pod(String),
    /// An object of another API group that is called like one.
    #[error("expected {name} to be a {wanted}, got *unstructured.Unstructured")]
    NotOne {
        /// The object.
        name: String,
        /// The Go type.
        wanted: &'static str,
    },
    /// Time is up.
    #[error("timed out waiting for the condition")]
    Deadline,
    /// The end was asked for.
    #[error("context canceled")]
    Cancelled,
    /// It may not be watched.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
}

/// Failures of objects that are waited for side by side (`hashicorp/go-multierror`).
#[derive(Clone, Debug)]
pub struct CompletionErrors {
    /// Each of them, in the order of the objects; never empty.
    pub errors: Vec<CompletionError>,
}

impl CompletionErrors {
    /// Whether the end was asked for.
    pub fn is_cancelled(&self) -> bool {
        self.errors.iter().any(|error| matches!(error, CompletionError::Cancelled))
    }
}

impl fmt::Display for CompletionErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&multierror(&self.errors))
    }
}

impl std::error::Error for CompletionErrors {}

/// Waits until all objects have done their work: kind after kind, those of one kind side by side.
///
/// # Errors
/// All failures.
pub async fn wait_until_complete(
    cluster: &dyn Cluster,
    clock: &dyn Clock,
    items: &[Item],
    timeout: Duration,
    observer: &dyn Observer,
    cancel: &Cancel,
) -> Result<(), CompletionErrors> {
    let mut errors = Vec::new();
    let mut rest = items;
    while let Some(first) = rest.first() {
        let same = rest.iter().take_while(|item| item.kind().kind == first.kind().kind).count();
        let (batch, after) = rest.split_at(same);
        rest = after;
        let watches = batch.iter().map(|item| async move {
            let wanted = Wanted::of(item)?;
            // Zero is no limit here (`ContextWithOptionalTimeout`).
            let deadline = (!timeout.is_zero()).then(|| clock.elapsed() + timeout);
            let watcher = Watcher { cluster, clock, observer, cancel, item, wanted, deadline };
            watcher.run(timeout).await.err()
        });
        let results: Vec<Option<CompletionError>> =
            stream::iter(watches).buffered(same.max(1)).collect().await;
        errors.extend(results.into_iter().flatten());
        if errors.iter().any(|error| matches!(error, CompletionError::Cancelled)) {
            break;
        }
    }
    if errors.is_empty() { Ok(()) } else { Err(CompletionErrors { errors }) }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Job,
    Pod,
}

impl Wanted {
    fn of(item: &Item) -> Option<Self> {
        match item.kind().kind.as_str() {
            "Job" => Some(Self::Job),
            "Pod" => Some(Self::Pod),
            _ => None,
        }
    }

    const fn group(self) -> &'static str {
        match self {
            Self::Job => "batch",
            Self::Pod => "",
        }
    }

    const fn go_type(self) -> &'static str {
        match self {
            Self::Job => "*batch.Job",
            Self::Pod => "*v1.Pod",
        }
    }
}

struct Watcher<'a> {
    cluster: &'a dyn Cluster,
    clock: &'a dyn Clock,
    observer: &'a dyn Observer,
    cancel: &'a Cancel,
    item: &'a Item,
    wanted: Wanted,
    deadline: Option<Duration>,
}

/// Why one watch ended before the object was done.
enum Ended {
    /// The server ended it, or the connection broke.
    Watch,
    Failed(CompletionError),
}

impl Watcher<'_> {
    /// Lists, then watches from there, again and again (`UntilWithSync`).
    async fn run(&self, timeout: Duration) -> Result<(), CompletionError> {
        let (kind, name) = (&self.item.kind().kind, &self.item.target.name);
        self.observer.log(&format!(
            "Watching for changes to {kind} {name} with timeout of {}",
            go_duration(timeout)
        ));
        let mut seen = false;
        loop {
            match self.look(&mut seen).await {
                Ok(()) => return Ok(()),
                Err(Ended::Failed(error)) => return Err(error),
                Err(Ended::Watch) => self.sleep().await?,
            }
        }
    }

    fn selector(&self) -> String {
        format!("metadata.name={}", self.item.target.name)
    }

    async fn look(&self, seen: &mut bool) -> Result<(), Ended> {
        let resource = &self.item.target.resource;
        let namespace = &self.item.target.namespace;
        let query = ListQuery {
            namespace: namespace.clone(),
            fields: self.selector(),
            ..ListQuery::default()
        };
        let page =
            self.until_deadline(self.cluster.list(resource, &query)).await?.map_err(retried)?;
        match page.items.first() {
            Some(object) => {
                *seen = true;
                if self.is_done(object)? {
                    return Ok(());
                }
            }
            // It was deleted while nobody watched.
            None if *seen => return Ok(()),
            None => {}
        }
        let query = WatchQuery {
            namespace: namespace.clone(),
            fields: self.selector(),
            resource_version: page.resource_version,
            ..WatchQuery::default()
        };
        let mut watch =
            self.until_deadline(self.cluster.watch(resource, &query)).await?.map_err(retried)?;
        loop {
            match self.until_deadline(watch.next()).await?.map_err(retried)? {
                None => return Err(Ended::Watch),
                Some(WatchEvent::Added(object) | WatchEvent::Modified(object)) => {
                    *seen = true;
                    if self.is_done(&object)? {
                        return Ok(());
                    }
                }
                Some(WatchEvent::Deleted(_)) => {
                    self.observer.log(&format!("Deleted event for {}", self.item.target.name));
                    return Ok(());
                }
                Some(WatchEvent::Bookmark(_)) => {}
            }
        }
    }

    /// `waitForJob`, `waitForPodSuccess`
    fn is_done(&self, object: &Value) -> Result<bool, Ended> {
        let name = &self.item.target.name;
        if self.item.kind().group != self.wanted.group() {
            let wanted = self.wanted.go_type();
            return Err(Ended::Failed(CompletionError::NotOne { name: name.clone(), wanted }));
        }
        if self.wanted == Wanted::Pod {
            return match text(object, "/status/phase") {
                "Succeeded" => Ok(true),
                "Failed" => Err(Ended::Failed(CompletionError::Pod(name.clone()))),
                phase => {
                    self.observer.log(&format!("Pod {name} {}", phase.to_lowercase()));
                    Ok(false)
                }
            };
        }
        for condition in list(object, "/status/conditions") {
            if text(condition, "/status") != "True" {
                continue;
            }
            match text(condition, "/type") {
                "Complete" => return Ok(true),
                "Failed" => {
                    let reason = text(condition, "/reason").to_owned();
                    let failed = CompletionError::Job { name: name.clone(), reason };
                    return Err(Ended::Failed(failed));
                }
                _ => {}
            }
        }
        self.observer.log(&format!(
            "{name}: Jobs active: {}, jobs failed: {}, jobs succeeded: {}",
            integer(object, "/status/active"),
            integer(object, "/status/failed"),
            integer(object, "/status/succeeded")
        ));
        Ok(false)
    }

    /// What the future gives, unless time is up or the end is asked for before.
    async fn until_deadline<T>(&self, future: impl Future<Output = T>) -> Result<T, Ended> {
        let mut future = pin!(future);
        loop {
            if self.cancel.is_cancelled() {
                return Err(Ended::Failed(CompletionError::Cancelled));
            }
            let left = match self.deadline {
                None => TICK,
                Some(deadline) => deadline.saturating_sub(self.clock.elapsed()).min(TICK),
            };
            match select(future.as_mut(), self.clock.sleep(left)).await {
                Either::Left((result, _)) => return Ok(result),
                Either::Right(_) if self.is_late() => {
                    return Err(Ended::Failed(CompletionError::Deadline));
                }
                Either::Right(_) => {}
            }
        }
    }

    fn is_late(&self) -> bool {
        self.deadline.is_some_and(|deadline| self.clock.elapsed() >= deadline)
    }

    async fn sleep(&self) -> Result<(), CompletionError> {
        let until = self.clock.elapsed() + PAUSE;
        let until = self.deadline.map_or(until, |deadline| until.min(deadline));
        match pause(self.clock, self.cancel, until).await {
            Err(WaitError::Cancelled) => Err(CompletionError::Cancelled),
            _ if self.is_late() => Err(CompletionError::Deadline),
            _ => Ok(()),
        }
    }
}

/// Whoever may not look need not try for five minutes, as Helm does.
fn retried(error: ClusterError) -> Ended {
    match error.kind() {
        ErrorKind::Forbidden
        | ErrorKind::Unauthorized
        | ErrorKind::Killed
        | ErrorKind::Unsupported => Ended::Failed(error.into()),
        _ => Ended::Watch,
    }
}
