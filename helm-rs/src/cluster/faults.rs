//! Any cluster, failing or killed at a chosen call; and a timeline of all calls.
//!
//! What a crash leaves is found by killing a run at each call in turn, before the call and after
//! it took effect, and running again. The same wrapper without a fault records what a run did.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::wrapper::{Answer, Call, Wrapper};
use super::{AccessQuestion, Clock, Cluster, ClusterError, PatchKind, Reply, Resource};

/// A cluster whose calls are recorded, and fail where they are told to.
pub struct Faults<'c> {
    inner: Inner<'c>,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

enum Inner<'c> {
    Borrowed(&'c dyn Cluster),
    Shared(Arc<dyn Cluster>),
}

#[derive(Default)]
struct State {
    calls: Vec<CallRecord>,
    writes: usize,
    plan: Option<Fault>,
    killed: Option<usize>,
}

/// One fault.
pub struct Fault {
    /// Which calls count.
    pub count: Count,
    /// The number of the call, from 1.
    pub at: usize,
    /// Before or after the call took effect.
    pub moment: Moment,
    /// What happens.
    pub effect: Effect,
}

/// Which calls a fault counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// All.
    Calls,
    /// Those that change something: creates, updates, patches and deletes that are no dry runs.
    Writes,
}

/// When a fault strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// The call never happens.
    Before,
    /// The call took effect, but its answer is lost.
    After,
}

/// What a fault does.
pub enum Effect {
    /// The call fails so, once.
    Fail(ClusterError),
    /// The call and every later one fail with [`ClusterError::Killed`].
    Poison,
    /// This runs, which should not come back: it ends the process. If it does, the cluster is
    /// poisoned.
    Run(Box<dyn Fn() + Send + Sync>),
}

impl fmt::Debug for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fail(error) => f.debug_tuple("Fail").field(error).finish(),
            Self::Poison => f.write_str("Poison"),
            Self::Run(_) => f.write_str("Run(..)"),
        }
    }
}

/// One call, as the timeline shows it.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct CallRecord {
    /// Its number, from 1.
    pub number: usize,
    /// `get`, `list`, `create`, `update`, `patch`, `delete`, `watch`, or `discover`, `version`,
    /// `openapi`, `review`, `logs`.
    pub verb: &'static str,
    /// What it was about: `configmaps ns/name`, as [`Target`] prints it.
    pub object: String,
    /// The kind of patch; empty for other calls.
    pub patch: &'static str,
    /// Whether it was a dry run.
    pub dry_run: bool,
    /// When it began, in microseconds by the clock's elapsed time.
    pub began_us: u64,
    /// How long it took, in microseconds; 0 while it runs.
    pub lasted_us: u64,
    /// How it ended: `ok`, or the kind of its error; empty while it runs.
    pub outcome: &'static str,
}

impl CallRecord {
    /// Whether it changes something.
    pub fn is_write(&self) -> bool {
        !self.dry_run && matches!(self.verb, "create" | "update" | "patch" | "delete")
    }
}

impl fmt::Display for CallRecord {
    /// `patch deployments.apps ns/web (strategic, dry run) ok`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.verb)?;
        if !self.object.is_empty() {
            write!(f, " {}", self.object)?;
        }
        match (self.patch, self.dry_run) {
            ("", false) => {}
            ("", true) => f.write_str(" (dry run)")?,
            (patch, false) => write!(f, " ({patch})")?,
            (patch, true) => write!(f, " ({patch}, dry run)")?,
        }
        if self.outcome.is_empty() { Ok(()) } else { write!(f, " {}", self.outcome) }
    }
}

impl<'c> Faults<'c> {
    /// Wraps a cluster; nothing fails yet.
    pub fn new(inner: &'c dyn Cluster, clock: Arc<dyn Clock>) -> Self {
        Self { inner: Inner::Borrowed(inner), clock, state: Mutex::new(State::default()) }
    }

    /// Sets the fault to come; it replaces one that has not struck. Calls so far count.
    pub fn plan(&self, fault: Fault) {
        self.lock().plan = Some(fault);
    }

    /// All calls so far.
    pub fn timeline(&self) -> Vec<CallRecord> {
        self.lock().calls.clone()
    }

    /// The number of calls and of writes so far.
    pub fn counts(&self) -> (usize, usize) {
        let state = self.lock();
        (state.calls.len(), state.writes)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn elapsed(&self) -> Duration {
        self.clock.elapsed()
    }

    /// Writes a call down. Hands out the fault that is to strike it.
    fn arrive(&self, mut record: CallRecord) -> Result<(usize, Option<Fault>), ClusterError> {
        record.began_us = micros(self.elapsed());
        let mut state = self.lock();
        if let Some(call) = state.killed {
            return Err(ClusterError::Killed { call });
        }
        let number = state.calls.len() + 1;
        record.number = number;
        let is_write = record.is_write();
        state.writes += usize::from(is_write);
        state.calls.push(record);
        let writes = state.writes;
        let struck = state.plan.take_if(|fault| match fault.count {
            Count::Calls => fault.at == number,
            Count::Writes => is_write && fault.at == writes,
        });
        Ok((number, struck))
    }

    fn done(&self, number: usize, outcome: &'static str) {
        let ended = micros(self.elapsed());
        let mut state = self.lock();
        if let Some(record) = number.checked_sub(1).and_then(|index| state.calls.get_mut(index)) {
            record.lasted_us = ended.saturating_sub(record.began_us);
            record.outcome = outcome;
        }
    }

    fn strike(&self, number: usize, effect: Effect) -> ClusterError {
        match effect {
            Effect::Fail(error) => return error,
            Effect::Poison => {}
            Effect::Run(callback) => callback(),
        }
        self.lock().killed = Some(number);
        ClusterError::Killed { call: number }
    }

    async fn call<T>(&self, record: CallRecord, call: Reply<'_, T>) -> Result<T, ClusterError> {
        let (number, fault) = self.arrive(record)?;
        let (moment, effect) = match fault {
            Some(Fault { moment, effect, .. }) => (moment, Some(effect)),
            None => (Moment::Before, None),
        };
        let answer = match (moment, effect) {
            (Moment::Before, Some(effect)) => Err(self.strike(number, effect)),
            (Moment::Before, None) => call.await,
            (Moment::After, effect) => {
                let answer = call.await;
                match effect {
                    Some(effect) => Err(self.strike(number, effect)),
                    None => answer,
                }
            }
        };
        self.done(number, answer.as_ref().map_or_else(|error| error.kind().as_str(), |_| "ok"));
        answer
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// What the timeline says of a call before it is made.
fn record(call: &Call<'_>) -> CallRecord {
    let (verb, object) = match call {
        Call::Get(target) => ("get", target.to_string()),
        Call::List(resource, query) => {
            ("list", collection(resource, &query.namespace, &query.labels))
        }
        Call::Create(target, _) => ("create", target.to_string()),
        Call::Update(target, _) => ("update", target.to_string()),
        Call::Patch(target, ..) => ("patch", target.to_string()),
        Call::Delete(target, _) => ("delete", target.to_string()),
        Call::Watch(resource, query) => {
            ("watch", collection(resource, &query.namespace, &query.labels))
        }
        Call::Logs(pod) => ("logs", pod.to_string()),
        Call::Discovery => ("discover", String::new()),
        Call::ServerVersion => ("version", String::new()),
        Call::OpenApi(group_version) => ("openapi", (*group_version).to_owned()),
        Call::May(AccessQuestion { verb, resource, group, namespace, .. }) => {
            ("review", format!("{verb} {resource}.{group} {namespace}"))
        }
        Call::Rules(namespace) => ("review", format!("rules {namespace}")),
        Call::Identity => ("review", "identity".to_owned()),
    };
    let patch = match call {
        Call::Patch(_, patch, _) => match patch.kind {
            PatchKind::Merge => "merge",
            PatchKind::Strategic => "strategic",
            PatchKind::Json => "json",
            PatchKind::Apply => "apply",
        },
        _ => "",
    };
    CallRecord {
        number: 0,
        verb,
        object,
        patch,
        dry_run: call.is_dry_run(),
        began_us: 0,
        lasted_us: 0,
        outcome: "",
    }
}

fn collection(resource: &Resource, namespace: &str, labels: &str) -> String {
    let mut object = resource.qualified();
    if !namespace.is_empty() {
        object.push_str(&format!(" {namespace}/"));
    }
    if !labels.is_empty() {
        object.push_str(&format!(" ({labels})"));
    }
    object
}

impl Faults<'static> {
    /// As [`Faults::new`], for actions that share their cluster.
    pub fn shared(inner: Arc<dyn Cluster>, clock: Arc<dyn Clock>) -> Self {
        Self { inner: Inner::Shared(inner), clock, state: Mutex::new(State::default()) }
    }
}

impl Wrapper for Faults<'_> {
    fn inner(&self) -> &dyn Cluster {
        match &self.inner {
            Inner::Borrowed(cluster) => *cluster,
            Inner::Shared(cluster) => &**cluster,
        }
    }

    fn around<'a, T: Answer + 'a>(&'a self, call: Call<'a>, answer: Reply<'a, T>) -> Reply<'a, T> {
        Box::pin(self.call(record(&call), answer))
    }
}
