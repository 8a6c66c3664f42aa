//! A proxy in front of the API server that breaks requests on demand and counts them.
//!
//! ```text
//! client ── TLS ── rules: which fault? ── forward ── rules: pause, cut after ── answer
//!                     └── log: verb, path, dry run, status, fault
//! ```
//!
//! Clients come with a bearer token, which is passed on: the API server sees who they are. Upgrades
//! (`exec`, `port-forward`) are not passed.

mod forward;
mod record;
mod rule;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use crate::error::{Error, Result};
use crate::https;
use crate::pki::Pki;

pub use record::RequestRecord;
pub use rule::{Fault, Match, Paused, RuleId};

use forward::Upstream;
use rule::{Decision, Rule};

/// A running proxy; it ends when it is dropped.
#[derive(Debug)]
pub struct FaultProxy {
    port: u16,
    state: Arc<State>,
    // Dropped with the proxy, which ends its connections.
    _tasks: JoinSet<()>,
}

/// What the connections share.
#[derive(Debug)]
pub(crate) struct State {
    upstream: Upstream,
    inner: Mutex<Inner>,
    /// What running watches are to do; the number makes every order a new one.
    watches: watch::Sender<(u64, WatchOrder)>,
}

#[derive(Debug, Default)]
struct Inner {
    rules: Vec<Rule>,
    next_rule: u64,
    records: Vec<RequestRecord>,
}

/// An order to all running watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WatchOrder {
    GoOn,
    /// Send the error that makes a client list again, and end.
    Expire,
    /// Cut the connection.
    Cut,
}

impl FaultProxy {
    /// Starts a proxy on a free loopback port, on the given runtime.
    ///
    /// # Errors
    ///
    /// When the certificate cannot be read or no port can be had.
    pub async fn start(runtime: &Handle, upstream: &str, pki: &Pki) -> Result<Self> {
        let state = Arc::new(State {
            upstream: Upstream::new(upstream, &pki.ca_certificate()?)?,
            inner: Mutex::default(),
            watches: watch::Sender::new((0, WatchOrder::GoOn)),
        });
        let (certificate, key) = (pki.path("server.crt"), pki.path("server.key"));
        let shared = Arc::clone(&state);
        let started = runtime.spawn(async move {
            let mut tasks = JoinSet::new();
            let handler = move |request| forward::handle(Arc::clone(&shared), request);
            let port = https::serve(&mut tasks, &certificate, &key, handler).await?;
            Ok::<_, Error>((port, tasks))
        });
        let (port, tasks) = started.await.unwrap_or_else(|error| {
            Err(Error::NotPossible { reason: format!("the fault proxy did not start: {error}") })
        })?;
        Ok(Self { port, state, _tasks: tasks })
    }

    /// Address for kubeconfigs.
    pub fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    /// Port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Adds a rule for all matching requests from now on. The first rule that matches decides.
    pub fn add(&self, matching: Match, fault: Fault) -> RuleId {
        self.state.add(matching, Decision::Fault(fault), 0, None)
    }

    /// Adds a rule for the next `count` matching requests.
    pub fn add_times(&self, count: usize, matching: Match, fault: Fault) -> RuleId {
        self.state.add(matching, Decision::Fault(fault), 0, Some(count))
    }

    /// Adds a rule that lets the first `skip` matching requests go and then acts on `count` of
    /// them, or on all.
    pub fn add_later(
        &self,
        skip: usize,
        count: Option<usize>,
        matching: Match,
        fault: Fault,
    ) -> RuleId {
        self.state.add(matching, Decision::Fault(fault), skip, count)
    }

    /// Stops matching requests before they are forwarded; each waits until its [`Paused`] is
    /// released or dropped.
    pub fn pause_before(&self, matching: Match) -> mpsc::UnboundedReceiver<Paused> {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.state.add(matching, Decision::PauseBefore(sender), 0, None);
        receiver
    }

    /// Stops matching requests after they took effect and before the client has the answer.
    pub fn pause_after(&self, matching: Match) -> mpsc::UnboundedReceiver<Paused> {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.state.add(matching, Decision::PauseAfter(sender), 0, None);
        receiver
    }

    /// Removes a rule.
    pub fn remove(&self, rule: RuleId) {
        self.state.lock().rules.retain(|known| known.id != rule);
    }

    /// Removes all rules.
    pub fn clear(&self) {
        self.state.lock().rules.clear();
    }

    /// Makes all running watches fail with 410 `Expired`.
    pub fn expire_watches(&self) {
        self.state.order(WatchOrder::Expire);
    }

    /// Cuts all running watches.
    pub fn cut_watches(&self) {
        self.state.order(WatchOrder::Cut);
    }

    /// All requests so far, in the order of their arrival.
    pub fn requests(&self) -> Vec<RequestRecord> {
        self.state.lock().records.clone()
    }

    /// How many requests so far match.
    pub fn count(&self, matching: &Match) -> usize {
        self.state.lock().records.iter().filter(|record| matching.covers(record)).count()
    }

    /// Forgets the requests so far.
    pub fn forget(&self) {
        self.state.lock().records.clear();
    }
}

impl State {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(
        &self,
        matching: Match,
        decision: Decision,
        skip: usize,
        times: Option<usize>,
    ) -> RuleId {
        let mut inner = self.lock();
        inner.next_rule += 1;
        let id = RuleId(inner.next_rule);
        inner.rules.push(Rule { id, matching, decision, skip, times });
        id
    }

    fn order(&self, order: WatchOrder) {
        self.watches.send_modify(|(number, current)| {
            *number += 1;
            *current = order;
        });
    }

    /// Notes a request and decides what happens to it; returns its place in the log.
    fn arrive(&self, mut record: RequestRecord) -> (usize, Decision) {
        let mut inner = self.lock();
        record.arrived = SystemTime::now();
        let mut decision = Decision::Pass;
        for rule in &mut inner.rules {
            if rule.times != Some(0) && rule.matching.covers(&record) {
                if rule.skip > 0 {
                    rule.skip -= 1;
                    continue;
                }
                rule.times = rule.times.map(|times| times - 1);
                decision = rule.decision.clone();
                break;
            }
        }
        record.fault = decision.name();
        inner.records.push(record);
        (inner.records.len() - 1, decision)
    }

    /// Notes the status that the client gets. The log may have been emptied in between.
    fn answered(&self, place: usize, status: u16) {
        if let Some(record) = self.lock().records.get_mut(place) {
            record.status = Some(status);
        }
    }

    fn record(&self, place: usize) -> Option<RequestRecord> {
        self.lock().records.get(place).cloned()
    }
}
