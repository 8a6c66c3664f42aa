//! Watches of the in-memory cluster: they look for new events from time to time.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use serde_json::Value;

use super::state::{Change, Event, set};
use super::{MemoryCluster, select, write};
use crate::cluster::{
    ClusterError, ListQuery, Reply, Resource, Status, Watch, WatchEvent, WatchQuery,
};

/// How often a waiting watch looks for events.
const PAUSE: Duration = Duration::from_millis(50);

/// How long a watch runs when the caller does not say.
const SECONDS: u32 = 290;

struct MemoryWatch<'a> {
    cluster: &'a MemoryCluster,
    resource: Resource,
    namespace: String,
    labels: select::Labels,
    fields: select::Fields,
    /// Events up to this version were seen.
    seen: u64,
    ready: VecDeque<WatchEvent>,
    /// When it ends, by the clock's elapsed time.
    end: Duration,
}

pub(super) fn start<'a>(
    cluster: &'a MemoryCluster,
    resource: &Resource,
    query: &WatchQuery,
) -> Result<Box<dyn Watch + 'a>, ClusterError> {
    let mut ready = VecDeque::new();
    let seen = if matches!(query.resource_version.as_str(), "" | "0") {
        let list = ListQuery {
            namespace: query.namespace.clone(),
            labels: query.labels.clone(),
            fields: query.fields.clone(),
            ..ListQuery::default()
        };
        let page = cluster.list_now(resource, &list)?;
        ready.extend(page.items.into_iter().map(WatchEvent::Added));
        page.resource_version.parse().unwrap_or_default()
    } else {
        query.resource_version.parse::<u64>().map_err(|_| {
            super::status::bad_request(format!(
                "resourceVersion: Invalid value: {}: strconv.ParseUint: parsing {0}: invalid syntax",
                crate::gotext::quote(&query.resource_version)
            ))
        })?
    };
    let seconds = if query.timeout_seconds == 0 { SECONDS } else { query.timeout_seconds };
    Ok(Box::new(MemoryWatch {
        cluster,
        resource: resource.clone(),
        namespace: query.namespace.clone(),
        labels: select::Labels::parse(&query.labels)?,
        fields: select::Fields::parse(&query.fields, resource)?,
        seen,
        ready,
        end: cluster.clock.elapsed().saturating_add(Duration::from_secs(seconds.into())),
    }))
}

impl MemoryWatch<'_> {
    fn selects(&self, object: &Value) -> bool {
        self.labels.matches(object) && self.fields.matches(object)
    }

    /// What an event is to this watch: an object that starts or ceases to be selected is added or
    /// deleted (`storage/cacher`, `convertToWatchEvent`).
    fn seen_as(&self, event: &Event) -> Option<WatchEvent> {
        let shown = |object: &Arc<Value>| write::shown(&self.resource, object);
        let now = event.change != Change::Deleted && self.selects(&event.object);
        let before = event.before.as_ref().is_some_and(|before| self.selects(before));
        match (before, now) {
            (false, false) => None,
            (false, true) => Some(WatchEvent::Added(shown(&event.object))),
            (true, true) => Some(WatchEvent::Modified(shown(&event.object))),
            // What is no longer selected is shown as it was, at the new version.
            (true, false) if event.change == Change::Modified => {
                let mut gone = event.before.as_ref().map(&shown)?;
                set(&mut gone, "resourceVersion", event.version.to_string().into());
                Some(WatchEvent::Deleted(gone))
            }
            (true, false) => Some(WatchEvent::Deleted(shown(&event.object))),
        }
    }

    /// Takes over what happened since the last look.
    fn look(&mut self) -> Result<(), ClusterError> {
        let state = self.cluster.state();
        if self.seen < state.expired {
            let message = format!("too old resource version: {} ({})", self.seen, state.expired);
            return Err(Status::new(410, "Expired", message).into());
        }
        let new = state.events.iter().filter(|event| {
            event.version > self.seen
                && event.key.group == self.resource.kind.group
                && event.key.plural == self.resource.plural
                && (self.namespace.is_empty() || event.key.namespace == self.namespace)
        });
        let new: Vec<_> = new.filter_map(|event| self.seen_as(event)).collect();
        self.seen = state.version;
        drop(state);
        self.ready.extend(new);
        Ok(())
    }
}

impl Watch for MemoryWatch<'_> {
    fn next(&mut self) -> Reply<'_, Option<WatchEvent>> {
        Box::pin(async move {
            loop {
                if let Some(event) = self.ready.pop_front() {
                    return Ok(Some(event));
                }
                self.look()?;
                if !self.ready.is_empty() {
                    continue;
                }
                let clock = &self.cluster.clock;
                if clock.elapsed() >= self.end {
                    return Ok(None);
                }
                clock.sleep(PAUSE).await;
                // A clock that moves by waiting alone leaves others no time otherwise.
                Yield(false).await;
            }
        })
    }
}

/// Lets other work go first, once.
struct Yield(bool);

impl Future for Yield {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.0 {
            return Poll::Ready(());
        }
        self.0 = true;
        context.waker().wake_by_ref();
        Poll::Pending
    }
}
