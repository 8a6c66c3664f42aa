//! Which requests a fault meets, and which faults there are.

use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use super::record::RequestRecord;

/// Which requests are meant; an empty one means all. All set parts must hold.
#[derive(Debug, Clone, Default)]
pub struct Match {
    verbs: Vec<String>,
    group: Option<String>,
    resource: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
    path: Option<String>,
    writes: bool,
}

impl Match {
    /// All requests.
    pub fn any() -> Self {
        Self::default()
    }

    /// Requests that ask for a change and are no dry run.
    pub fn writes() -> Self {
        Self { writes: true, ..Self::default() }
    }

    /// Requests with one of these verbs.
    #[must_use]
    pub fn verbs(mut self, verbs: &[&str]) -> Self {
        self.verbs = verbs.iter().map(|verb| (*verb).to_owned()).collect();
        self
    }

    /// Requests to an API group, its discovery included.
    #[must_use]
    pub fn group(mut self, group: &str) -> Self {
        self.group = Some(group.to_owned());
        self
    }

    /// Requests to a resource in the plural, such as `pods` or `pods/status`.
    #[must_use]
    pub fn resource(mut self, resource: &str) -> Self {
        self.resource = Some(resource.to_owned());
        self
    }

    /// Requests in a namespace.
    #[must_use]
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.namespace = Some(namespace.to_owned());
        self
    }

    /// Requests that name an object.
    #[must_use]
    pub fn name(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// Requests whose path holds this text.
    #[must_use]
    pub fn path(mut self, part: &str) -> Self {
        self.path = Some(part.to_owned());
        self
    }

    /// True when the request is meant.
    pub fn covers(&self, request: &RequestRecord) -> bool {
        let is =
            |wanted: &Option<String>, value: &str| wanted.as_deref().is_none_or(|w| w == value);
        let group_path = self.group.as_ref().map(|group| format!("/apis/{group}"));
        let in_group = group_path.is_none_or(|prefix| {
            request.path == prefix || request.path.starts_with(&format!("{prefix}/"))
        });
        (self.verbs.is_empty() || self.verbs.iter().any(|verb| verb == request.verb))
            && in_group
            && is(&self.resource, &request.resource)
            && is(&self.namespace, &request.namespace)
            && is(&self.name, &request.name)
            && self.path.as_ref().is_none_or(|part| request.path.contains(part))
            && (!self.writes || request.is_write())
    }
}

/// What happens to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// It is forwarded after a while.
    Delay(Duration),
    /// 429 `TooManyRequests` with `Retry-After` in seconds; not forwarded.
    TooManyRequests {
        /// Seconds to wait.
        retry_after: u32,
    },
    /// 429 without saying when to come back; not forwarded.
    Busy,
    /// 409 `Conflict`; not forwarded.
    Conflict,
    /// 500 `InternalError`; not forwarded.
    InternalError,
    /// 503 `ServiceUnavailable`; not forwarded.
    Unavailable,
    /// 401 `Unauthorized`, as for an expired token; not forwarded.
    ExpiredToken,
    /// The connection is cut; the request took no effect.
    CutBefore,
    /// The connection is cut; the request took effect.
    CutAfter,
    /// 410 `Expired`: on a watch as its first event, on a list as the answer.
    Expired,
    /// The group's requests get 503, and the discovery document of all groups tells it as stale.
    /// Meant for [`Match::any`]; the group is named here.
    GroupDown {
        /// The API group, such as `metrics.k8s.io`.
        group: String,
    },
}

/// Names a rule, to remove it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuleId(pub(super) u64);

/// A request that waits; released when this is dropped.
#[derive(Debug)]
pub struct Paused {
    /// The request; its status is known when it has taken effect.
    pub request: RequestRecord,
    pub(super) release: Option<oneshot::Sender<bool>>,
}

impl Paused {
    /// Lets the request go on.
    pub fn release(self) {
        drop(self);
    }

    /// Cuts the connection instead of going on.
    pub fn cut(mut self) {
        if let Some(release) = self.release.take() {
            // Nobody listens when the client has gone; then it is cut already.
            let _ = release.send(true);
        }
    }
}

#[derive(Debug)]
pub(super) struct Rule {
    pub(super) id: RuleId,
    pub(super) matching: Match,
    pub(super) decision: Decision,
    /// How many matching requests it still lets go.
    pub(super) skip: usize,
    /// How often it still acts; `None` for ever.
    pub(super) times: Option<usize>,
}

/// What a rule decides.
#[derive(Debug, Clone)]
pub(super) enum Decision {
    Pass,
    Fault(Fault),
    PauseBefore(mpsc::UnboundedSender<Paused>),
    PauseAfter(mpsc::UnboundedSender<Paused>),
}

impl Decision {
    /// Short name for the log.
    pub(super) fn name(&self) -> Option<&'static str> {
        Some(match self {
            Self::Pass => return None,
            Self::PauseBefore(_) => "pause-before",
            Self::PauseAfter(_) => "pause-after",
            Self::Fault(fault) => match fault {
                Fault::Delay(_) => "delay",
                Fault::TooManyRequests { .. } | Fault::Busy => "429",
                Fault::Conflict => "409",
                Fault::InternalError => "500",
                Fault::Unavailable => "503",
                Fault::ExpiredToken => "401",
                Fault::CutBefore => "cut-before",
                Fault::CutAfter => "cut-after",
                Fault::Expired => "410",
                Fault::GroupDown { .. } => "group-down",
            },
        })
    }
}
