//! What a TalosCluster's state is, and what is to be done next: functions on plain data.

use std::time::Duration;

use api::{
    CniPreset, CniStatus, Condition, ConditionStatus, KubeProxy, TalosCluster, TalosClusterStatus,
    annotation, reason, type_,
};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

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
    /// The reason, as the condition has it.
    pub reason: &'static str,
    /// What happened.
    pub message: String,
    /// Whether somebody should look at it.
    pub is_warning: bool,
    /// The UID of the Job that it is about.
    pub job: Option<String>,
}

/// How the hand-over stands.
struct Verdict {
    status: ConditionStatus,
    reason: &'static str,
    message: String,
    action: Option<Action>,
    again: Duration,
}

impl Verdict {
    fn no(reason: &'static str, message: impl Into<String>) -> Self {
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
    let before = cluster.status.clone().unwrap_or_default();
    let taken_over = before.cni.and_then(|cni| cni.taken_over_inline_manifest);
    let mut status = TalosClusterStatus {
        observed_generation: cluster.metadata.generation,
        cni: Some(CniStatus {
            detected: Some(facts.cni),
            detected_version: facts.version.clone(),
            taken_over_inline_manifest: taken_over,
        }),
        conditions: Vec::new(),
    };
    let is_going = cluster.metadata.deletion_timestamp.is_some();
    if cluster.spec.cni.preset == CniPreset::Unmanaged || is_going {
        return Decision { status, action: None, again: REFRESH, event: None };
    }
    let old = cluster.condition(type_::CNI_HANDOVER);
    let (mut action, mut again, mut event) = (None, REFRESH, None);
    let handover = match old {
        // Whatever happens to Cilium afterwards, it is ichor's.
        Some(old) if old.status == ConditionStatus::True => old.clone(),
        _ => {
            let verdict = handover(cluster, facts, now);
            (action, again) = (verdict.action, verdict.again);
            let is_done = verdict.status == ConditionStatus::True;
            if is_done && let Some(cni) = &mut status.cni {
                cni.taken_over_inline_manifest =
                    cluster.annotation(annotation::CNI_INLINE_MANIFEST).map(str::to_owned);
            }
            let is_news = old
                .is_none_or(|old| old.reason != verdict.reason || old.message != verdict.message);
            if is_news && is_worth_an_event(verdict.reason) {
                event = Some(Told {
                    reason: verdict.reason,
                    message: verdict.message.clone(),
                    is_warning: !is_done,
                    job: facts.job.as_ref().map(|job| job.uid.clone()),
                });
            }
            condition(
                type_::CNI_HANDOVER,
                (verdict.status, verdict.reason, verdict.message),
                cluster,
                now,
            )
        }
    };
    status.conditions = vec![handover, condition(type_::CNI_HEALTHY, health(facts), cluster, now)];
    Decision { status, action, again, event }
}

/// An attempt that is at work is told when it begins, by the Event of the Job itself.
fn is_worth_an_event(reason: &str) -> bool {
    !matches!(reason, reason::IN_PROGRESS | reason::WAITING_FOR_AGENTS)
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
    let Some(job) = job else {
        return progress("the Job is being made").doing(Action::Create { attempt: 1 });
    };
    match &job.state {
        JobState::Deleting => progress("the Job of before is being deleted"),
        JobState::Running { waiting } if waiting.is_empty() => {
            progress(format!("Job kube-system/ichor-cni is at work, attempt {}", job.attempt))
        }
        JobState::Running { waiting } => {
            progress(format!("Job kube-system/ichor-cni, attempt {}: {waiting}", job.attempt))
        }
        JobState::Ended { at, ending, message } => {
            ended(cluster, facts, now, job, (*at, *ending, message))
        }
    }
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
        Ending::Done => {
            let agents = facts.agents.unwrap_or_default();
            if !agents.are_ready() {
                return Verdict::no(reason::WAITING_FOR_AGENTS, unready(facts));
            }
            let status = ConditionStatus::True;
            return Verdict { status, ..Verdict::no(reason::HANDED_OVER, message) };
        }
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
fn condition(
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
