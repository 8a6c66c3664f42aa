//! What is tried again, and what a repeated write makes of its own earlier success.

use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::Value;

use crate::cluster::{
    ClusterError, ErrorKind, Resource, Target, TransportError, TransportProblem, WriteOptions,
};

/// When a failed request is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// How often one request is sent at most (8).
    pub tries: u32,
    /// The first wait; each further one is twice as long (100 ms). All are shortened by up to half
    /// at random, so that clients do not come back together.
    pub first: Duration,
    /// The longest wait (5 s). A server's `Retry-After` is kept to, up to `patience`.
    pub longest: Duration,
    /// How long all waits of one request may take (60 s).
    pub patience: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            tries: 8,
            first: Duration::from_millis(100),
            longest: Duration::from_secs(5),
            patience: Duration::from_mins(1),
        }
    }
}

impl RetryPolicy {
    /// Everything is sent once.
    pub const NEVER: Self =
        Self { tries: 1, first: Duration::ZERO, longest: Duration::ZERO, patience: Duration::ZERO };

    /// How long to wait before try number `tries + 1`, when there is one. `random` is in 0..1.
    pub(super) fn wait(
        &self,
        call: &Call,
        error: &ClusterError,
        tries: u32,
        waited: Duration,
        reached: bool,
        random: f64,
    ) -> Option<Duration> {
        if tries >= self.tries.min(tries_for(call.repeat, error, reached)) {
            return None;
        }
        let doubled = self.first.saturating_mul(1 << tries.saturating_sub(1).min(16));
        let mut wait = doubled.min(self.longest).mul_f64(1.0 - random.clamp(0.0, 1.0) / 2.0);
        if let ClusterError::Status { retry_after: Some(asked), .. } = error {
            wait = wait.max(*asked);
        }
        (waited.saturating_add(wait) <= self.patience).then_some(wait)
    }
}

/// How often a request that fails so is worth sending.
fn tries_for(repeat: Repeat, error: &ClusterError, reached: bool) -> u32 {
    let repeatable = !matches!(repeat, Repeat::Never | Repeat::UnlessDone);
    match error.kind() {
        // Turned away at the door: it took no effect.
        ErrorKind::TooManyRequests => u32::MAX,
        ErrorKind::Unavailable if repeatable => u32::MAX,
        // A webhook that is starting, a leader that changes; not worth a long wait.
        ErrorKind::Internal | ErrorKind::Timeout if repeatable => 4,
        ErrorKind::Conflict if may_lose_races(repeat, error) => 6,
        ErrorKind::Transport => match error {
            ClusterError::Transport(error) => transport_tries(error, repeatable, reached),
            _ => 1,
        },
        _ => 1,
    }
}

fn transport_tries(error: &TransportError, repeatable: bool, reached: bool) -> u32 {
    match error.problem {
        TransportProblem::Certificate { .. } => 1,
        // A server that answered before is restarting; one that never did has a wrong address.
        _ if error.before_sending() && !reached => 1,
        _ if error.before_sending() => u32::MAX,
        TransportProblem::Timeout if repeatable => 2,
        _ if repeatable => u32::MAX,
        _ => 1,
    }
}

/// Whether a conflict comes from a race inside the server (a patch against a busy object, a quota
/// that several creates update) and not from what was asked.
fn may_lose_races(repeat: Repeat, error: &ClusterError) -> bool {
    let asked = error
        .status()
        .is_some_and(|status| status.causes().any(|cause| cause.reason == "FieldManagerConflict"));
    !asked && matches!(repeat, Repeat::Always | Repeat::Create | Repeat::Delete)
}

/// What sending a request twice does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repeat {
    /// The same as once.
    Always,
    /// Another object, or another effect: only what surely took no effect is sent again.
    Never,
    /// As [`Self::Never`], for writes that are done or not.
    UnlessDone,
    /// `AlreadyExists`, which may be our own success.
    Create,
    /// A conflict, which may be our own success.
    Versioned,
    /// `NotFound`, which may be our own success.
    Delete,
    /// As [`Self::Delete`]; a conflict is an answer.
    DeleteThis,
}

/// One request.
#[derive(Clone)]
pub(super) struct Call {
    pub(super) method: &'static str,
    /// Path and query.
    pub(super) path: String,
    pub(super) body: Option<(&'static str, Bytes)>,
    pub(super) accept: &'static str,
    /// The qualified resource and the name that client-go's messages end with.
    pub(super) about: (String, String),
    pub(super) repeat: Repeat,
    /// Whether a refusal's own words do not count: client-go reads some answers raw and then has
    /// none but its own.
    pub(super) raw: bool,
    /// The field manager that an object has that this call created.
    pub(super) manager: String,
}

impl Call {
    pub(super) fn new(method: &'static str, path: String) -> Self {
        Self {
            method,
            path,
            body: None,
            accept: "application/json",
            about: <(String, String)>::default(),
            repeat: Repeat::Always,
            raw: false,
            manager: String::new(),
        }
    }

    pub(super) fn get(path: String) -> Self {
        Self::new("GET", path)
    }

    pub(super) const fn raw(mut self) -> Self {
        self.raw = true;
        self
    }

    pub(super) fn about(mut self, target: &Target) -> Self {
        self.about = (target.resource.qualified(), target.name.clone());
        self
    }

    pub(super) fn on_resource(mut self, resource: &Resource) -> Self {
        self.about = (resource.qualified(), String::new());
        self
    }

    pub(super) fn body(mut self, content_type: &'static str, text: String) -> Self {
        self.body = Some((content_type, text.into()));
        self
    }

    pub(super) const fn repeat(mut self, repeat: Repeat) -> Self {
        self.repeat = repeat;
        self
    }

    /// Says what a write is to be answered with.
    pub(super) const fn answering(mut self, options: &WriteOptions) -> Self {
        if options.metadata_only {
            self.accept = super::METADATA;
        }
        self
    }

    /// Says who the server will name as the manager of what this call writes
    /// (`managerOrUserAgent` in `k8s.io/apiserver/pkg/endpoints/handlers`).
    pub(super) fn owned_by(mut self, options: &WriteOptions, user_agent: &str) -> Self {
        self.manager = if options.field_manager.is_empty() {
            user_agent.split('/').next().unwrap_or_default().to_owned()
        } else {
            options.field_manager.clone()
        };
        self
    }

    /// The path without the query.
    pub(super) fn bare_path(&self) -> &str {
        self.path.split('?').next().unwrap_or_default()
    }

    pub(super) fn sent(&self) -> Option<Value> {
        let (_, body) = self.body.as_ref()?;
        serde_json::from_slice(body).ok()
    }

    /// Whether the live object is what an earlier try of this create left: made since `earliest`
    /// by our manager with the labels and annotations that were sent.
    pub(super) fn created(&self, live: &Value, earliest: Timestamp) -> bool {
        let Some(sent) = self.sent() else { return false };
        let since = live
            .pointer("/metadata/creationTimestamp")
            .and_then(Value::as_str)
            .and_then(|time| time.parse::<Timestamp>().ok());
        let managers = live.pointer("/metadata/managedFields").and_then(Value::as_array);
        let by_us = managers.is_some_and(|managers| {
            managers.iter().any(|entry| {
                entry.get("manager").and_then(Value::as_str) == Some(self.manager.as_str())
            })
        });
        let marked =
            ["/metadata/labels", "/metadata/annotations"].into_iter().all(|field| {
                match (sent.pointer(field), live.pointer(field)) {
                    (Some(sent), Some(live)) => holds(live, sent),
                    (Some(sent), None) => sent.as_object().is_none_or(serde_json::Map::is_empty),
                    (None, _) => true,
                }
            });
        since.is_some_and(|since| since >= earliest) && by_us && marked
    }

    /// Whether the live object is what an earlier try of this versioned write left: every leaf
    /// that was sent is there.
    pub(super) fn written(&self, live: &Value) -> bool {
        let Some(mut sent) = self.sent() else { return false };
        if let Some(sent) = sent.as_object_mut() {
            sent.remove("status");
            if let Some(metadata) = sent.get_mut("metadata").and_then(Value::as_object_mut) {
                for field in ["resourceVersion", "managedFields", "generation"] {
                    metadata.remove(field);
                }
            }
        }
        holds(live, &sent)
    }
}

/// Whether every leaf of `sent` is in `live`; null stands for nothing.
fn holds(live: &Value, sent: &Value) -> bool {
    match (live, sent) {
        (Value::Object(live), Value::Object(sent)) => sent.iter().all(|(name, sent)| {
            live.get(name).map_or_else(|| sent.is_null(), |live| holds(live, sent))
        }),
        (Value::Array(live), Value::Array(sent)) => {
            live.len() == sent.len() && live.iter().zip(sent).all(|(live, sent)| holds(live, sent))
        }
        (live, sent) => live == sent,
    }
}
