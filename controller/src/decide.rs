//! What a TalosCluster's state is, and what is to be done next: functions on plain data.

use std::time::Duration;

use api::{
    CniPreset, CniStatus, Condition, ConditionStatus, KubeProxy, TalosCluster, TalosClusterStatus,
    annotation, reason, type_,
};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::change::{self, Goal};
use crate::facts::{Ending, Facts, Job, JobState, hash};

/// How long after the first failure the Job is tried again.
pub const FIRST_RETRY: Duration = Duration::from_mins(1);
/// How long that may become.
pub const LAST_RETRY: Duration = Duration::from_mins(15);
/// How often the detected CNI is looked at without a cause. The watches tell what changed at once;
/// this makes good for one that missed something.
pub const REFRESH: Duration = Duration::from_mins(10);

/// What follows from a cluster's spec and the facts.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// What the status is to say.
    pub status: TalosClusterStatus,
    /// What is to be done; at most one thing.
    pub action: Option<Action>,
    /// When to look again, if nothing happens before.
    pub again: Duration,
    /// What is worth an Event.
    pub event: Option<Told>,
    /// What the action is to bring about after the hand-over; none for the hand-over itself.
    pub goal: Option<Goal>,
}

/// Something to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Make the Job.
    Create {
        /// Which attempt in a row it is.
        attempt: u32,
    },
    /// Make a new one in place of one that ended.
    Replace {
        /// The UID of the one that ended.
        uid: String,
        /// Which attempt in a row the new one is.
        attempt: u32,
    },
}

/// Something that is worth an Event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// The condition that it is about.
    pub condition: &'static str,
    /// The reason, as the condition has it.
    pub reason: &'static str,
    /// What happened.
    pub message: String,
    /// Whether somebody should look at it.
    pub is_warning: bool,
    /// The UID of the Job that it is about.
    pub job: Option<String>,
}

/// How something stands.
#[derive(Debug)]
pub(crate) struct Verdict {
    pub(crate) status: ConditionStatus,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    pub(crate) action: Option<Action>,
    pub(crate) again: Duration,
}

impl Verdict {
    pub(crate) fn no(reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            status: ConditionStatus::False,
            reason,
            message: message.into(),
            action: None,
            again: REFRESH,
        }
    }

    fn doing(self, action: Action) -> Self {
        Self { action: Some(action), ..self }
    }
}

/// Decides.
pub fn decide(cluster: &TalosCluster, facts: &Facts, now: Timestamp) -> Decision {
    let before = cluster.status.clone().unwrap_or_default().cni.unwrap_or_default();
    let mut status = TalosClusterStatus {
        observed_generation: cluster.metadata.generation,
        cni: Some(CniStatus {
            detected: Some(facts.cni),
            detected_version: facts.version.clone(),
            ..before
        }),
        conditions: Vec::new(),
    };
    let is_going = cluster.metadata.deletion_timestamp.is_some();
    if cluster.spec.cni.preset == CniPreset::Unmanaged || is_going {
        return Decision { status, action: None, again: REFRESH, event: None, goal: None };
    }
    let health = condition(type_::CNI_HEALTHY, health(facts), cluster, now);
    let old = cluster.condition(type_::CNI_HANDOVER);
    if let Some(old) = old.filter(|old| old.status == ConditionStatus::True) {
        // Whatever happens to Cilium afterwards, it is ichor's.
        let after = change::decide(cluster, facts, now);
        if let Some(cni) = &mut status.cni {
            (cni.applied_spec, cni.chart_version) = (after.applied, after.chart);
        }
        status.conditions = vec![old.clone(), health];
        status.conditions.extend(after.conditions);
        let (action, again, event, goal) = (after.action, after.again, after.event, after.goal);
        return Decision { status, action, again, event, goal };
    }
    let verdict = handover(cluster, facts, now);
    let (action, again) = (verdict.action.clone(), verdict.again);
    if verdict.status == ConditionStatus::True
        && let Some(cni) = &mut status.cni
    {
        cni.taken_over_inline_manifest =
            cluster.annotation(annotation::CNI_INLINE_MANIFEST).map(str::to_owned);
        cni.applied_spec = Some(change::at_hand_over(cluster));
        let summary = facts.job.as_ref().and_then(|job| job.summary.as_ref());
        cni.chart_version =
            summary.map(|summary| summary.chart.clone()).or_else(|| change::running_version(facts));
    }
    let event = news(type_::CNI_HANDOVER, &verdict, cluster, facts);
    let told = (verdict.status, verdict.reason, verdict.message);
    status.conditions = vec![condition(type_::CNI_HANDOVER, told, cluster, now), health];
    Decision { status, action, again, event, goal: None }
}

/// What of a verdict is worth an Event: what its condition does not say yet.
pub(crate) fn news(
    type_: &'static str,
    verdict: &Verdict,
    cluster: &TalosCluster,
    facts: &Facts,
) -> Option<Told> {
    let old = cluster.condition(type_);
    let is_news =
        old.is_none_or(|old| old.reason != verdict.reason || old.message != verdict.message);
    (is_news && is_worth_an_event(verdict.reason)).then(|| Told {
        condition: type_,
        reason: verdict.reason,
        message: verdict.message.clone(),
        is_warning: matches!(
            verdict.reason,
            reason::NOT_ADOPTED | reason::JOB_FAILED | reason::CONSENT_REQUIRED | reason::REFUSED
        ),
        job: facts.job.as_ref().map(|job| job.uid.clone()),
    })
}

/// An attempt that is at work is told when it begins, by the Event of the Job itself.
fn is_worth_an_event(reason: &str) -> bool {
    !matches!(
        reason,
        reason::IN_PROGRESS | reason::WAITING_FOR_AGENTS | reason::UP_TO_DATE | reason::OLDER_ICHOR
    )
}

/// A digest of all that the user says: spec and annotations. Any of them may be what a refusal
/// waits for.
pub fn asked(cluster: &TalosCluster) -> String {
    let mut annotations = cluster.metadata.annotations.clone().unwrap_or_default();
    // The whole object as `kubectl apply` sent it: nothing that spec and annotations do not say.
    annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
    hash(&json!([cluster.spec, annotations]))
}

/// How long after its end attempt number `attempt` is followed by the next one.
pub fn backoff(attempt: u32) -> Duration {
    let doublings = attempt.saturating_sub(1).min(16);
    FIRST_RETRY.saturating_mul(1 << doublings).min(LAST_RETRY)
}

fn handover(cluster: &TalosCluster, facts: &Facts, now: Timestamp) -> Verdict {
    if !cluster.is_adopted() {
        return Verdict::no(
            reason::NOT_ADOPTED,
            format!(
                "nobody said that the running CNI is to be taken over; `ichor adopt` does, or the \
                 annotation {}: \"true\"",
                annotation::ADOPTED
            ),
        );
    }
    let job = facts.job.as_ref();
    let is_at_work = job.is_some_and(|job| matches!(job.state, JobState::Running { .. }));
    if !is_at_work && let Some(why) = contradiction(cluster, facts) {
        return Verdict::no(reason::REFUSED, why);
    }
    match course(cluster, facts, now, "") {
        Course::Under(verdict) => verdict,
        Course::Done(_) if !facts.agents.unwrap_or_default().are_ready() => {
            Verdict::no(reason::WAITING_FOR_AGENTS, unready(facts))
        }
        Course::Done(message) => {
            let status = ConditionStatus::True;
            Verdict { status, ..Verdict::no(reason::HANDED_OVER, message) }
        }
    }
}

/// The action could not be carried out: the condition that it is for says so, until it is.
pub(crate) fn not_made(
    decision: &mut Decision,
    cluster: &TalosCluster,
    error: &str,
    now: Timestamp,
) {
    let is_after = decision.goal.is_some();
    let is_its = |condition: &Condition| {
        (condition.type_ != type_::CNI_HANDOVER) == is_after
            && condition.reason == reason::IN_PROGRESS
    };
    decision.event = None;
    for one in decision.status.conditions.iter_mut().filter(|one| is_its(one)) {
        let message = format!("the Job cannot be made, and is tried again by itself: {error}");
        let told = (one.status, reason::NOT_MADE, message.clone());
        *one = condition(&one.type_, told, cluster, now);
        let is_known = cluster.condition(&one.type_).is_some_and(|old| old.message == message);
        if !is_known {
            decision.event = Some(Told {
                condition: if is_after { type_::VALUES_APPLIED } else { type_::CNI_HANDOVER },
                reason: reason::NOT_MADE,
                message,
                is_warning: true,
                job: None,
            });
        }
    }
}

/// Whatever the spec asks for, the cluster is not seen as it is: a watch does not come to an end of
/// its list.
pub(crate) fn not_seen(
    status: &mut TalosClusterStatus,
    cluster: &TalosCluster,
    error: &str,
    now: Timestamp,
) {
    let told = (ConditionStatus::Unknown, reason::NOT_SEEN, error.to_owned());
    let told = condition(type_::CNI_HEALTHY, told, cluster, now);
    match status.conditions.iter_mut().find(|one| one.type_ == type_::CNI_HEALTHY) {
        Some(one) => *one = told,
        None => status.conditions.push(told),
    }
}

/// How the Job for a goal stands.
pub(crate) enum Course {
    /// It is done, and said this.
    Done(String),
    /// It is not.
    Under(Verdict),
}

/// Looks at the Job for a goal: the hand-over's is empty. A Job for another one, or of another owner,
/// is followed by that for this one once it has ended.
pub(crate) fn course(cluster: &TalosCluster, facts: &Facts, now: Timestamp, goal: &str) -> Course {
    let Some(job) = &facts.job else {
        let action = Action::Create { attempt: 1 };
        return Course::Under(progress("the Job is being made").doing(action));
    };
    Course::Under(match &job.state {
        JobState::Deleting => progress("the Job of before is being deleted"),
        JobState::Running { waiting } if waiting.is_empty() => {
            progress(format!("Job kube-system/ichor-cni is at work, attempt {}", job.attempt))
        }
        JobState::Running { waiting } => {
            progress(format!("Job kube-system/ichor-cni, attempt {}: {waiting}", job.attempt))
        }
        // What became of a Job that another TalosCluster or somebody else made says nothing of this.
        JobState::Ended { .. } if job.goal != goal || !job.is_of(cluster) => {
            let action = Action::Replace { uid: job.uid.clone(), attempt: 1 };
            progress("the Job of before has ended, the next one is made").doing(action)
        }
        JobState::Ended { ending: Ending::Done, message, .. } => {
            return Course::Done(message.clone());
        }
        JobState::Ended { at, ending, message } => {
            ended(cluster, facts, now, job, (*at, *ending, message))
        }
    })
}

fn progress(message: impl Into<String>) -> Verdict {
    Verdict::no(reason::IN_PROGRESS, message)
}

fn ended(
    cluster: &TalosCluster,
    facts: &Facts,
    now: Timestamp,
    job: &Job,
    (at, ending, message): (Timestamp, Ending, &str),
) -> Verdict {
    let is_asked_anew = job.asked != asked(cluster);
    let replace = |attempt| Action::Replace { uid: job.uid.clone(), attempt };
    let reason = match ending {
        // One that is done is no attempt that has to follow another.
        Ending::Done => return progress(message),
        Ending::Failed => reason::JOB_FAILED,
        Ending::ConsentRequired => reason::CONSENT_REQUIRED,
        Ending::Refused => reason::REFUSED,
    };
    // Something else is asked for: that need not wait for what became of the question before.
    if is_asked_anew {
        return progress("the Job is made anew, since spec or annotations changed")
            .doing(replace(1));
    }
    if ending != Ending::Failed && job.live == facts.digest {
        return Verdict::no(reason, message);
    }
    let due = at.saturating_add(signed(backoff(job.attempt))).unwrap_or(at);
    if now >= due {
        let attempt = job.attempt.saturating_add(1);
        return progress(format!("the Job is made anew, attempt {attempt}"))
            .doing(replace(attempt));
    }
    let why = if ending == Ending::Failed { "" } else { ", since live objects changed" };
    let message = format!("{message} (attempt {}; again at {due:.0}{why})", job.attempt);
    let again = Duration::try_from(due.duration_since(now)).unwrap_or(FIRST_RETRY);
    Verdict { again, ..Verdict::no(reason, message) }
}

fn signed(duration: Duration) -> SignedDuration {
    SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX)
}

/// Where the spec says otherwise than what runs, and a takeover keeps what runs.
fn contradiction(cluster: &TalosCluster, facts: &Facts) -> Option<String> {
    let (cni, live) = (&cluster.spec.cni, facts.live.as_ref()?);
    if let (Some(wanted), Some(live)) = (cni.tunnel, live.tunnel_protocol.as_deref())
        && wanted.name() != live
    {
        return Some(format!(
            "spec.cni.tunnel is {}, and the running Cilium's tunnel-protocol is {live}: a takeover \
             keeps what runs; make a TalosCluster with tunnel {live}, or none",
            wanted.name()
        ));
    }
    let runs = if live.replacement.is_on() { KubeProxy::Replaced } else { KubeProxy::Enabled };
    match cni.kube_proxy {
        Some(wanted) if wanted != runs => Some(format!(
            "spec.cni.kubeProxy is {}, and kube-proxy is {} in the running Cilium: a takeover keeps \
             what runs; say {}, or nothing",
            wanted.name(),
            runs.name(),
            runs.name()
        )),
        _ => None,
    }
}

fn unready(facts: &Facts) -> String {
    let agents = facts.agents.unwrap_or_default();
    format!("{} of {} nodes have a Ready agent of Cilium", agents.ready, agents.wanted)
}

fn health(facts: &Facts) -> (ConditionStatus, &'static str, String) {
    match facts.agents {
        None => (ConditionStatus::False, reason::NO_CILIUM, "Cilium does not run here".to_owned()),
        Some(agents) if agents.are_ready() => {
            (ConditionStatus::True, reason::AGENTS_READY, unready(facts))
        }
        Some(_) => (ConditionStatus::False, reason::AGENTS_NOT_READY, unready(facts)),
    }
}

/// A condition, whose time is the former one's where its status is.
pub(crate) fn condition(
    type_: &str,
    (status, reason, message): (ConditionStatus, &str, String),
    cluster: &TalosCluster,
    now: Timestamp,
) -> Condition {
    let before = cluster.condition(type_).filter(|before| before.status == status);
    Condition {
        type_: type_.to_owned(),
        status,
        observed_generation: cluster.metadata.generation,
        last_transition_time: before
            .map_or_else(|| format!("{now:.0}"), |before| before.last_transition_time.clone()),
        reason: reason.to_owned(),
        message,
    }
}

#[cfg(test)]
mod tests;
