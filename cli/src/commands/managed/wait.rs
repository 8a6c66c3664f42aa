//! Waiting for the controller's word about what was asked of it.

use std::time::Duration;

use api::{Condition, DetectedCni, MANAGED_NAME, TalosCluster, reason};
use cilium::pinned::NAMESPACE;
use controller::decide::asked;
use controller::job::ASKED;
use helm_rs::action::Session;
use helm_rs::cluster::{Cluster, ErrorKind, Resource, Target};
use serde_json::Value;

use super::waiting_job_pods;
use super::write::{WriteError, read};
use crate::commands::cni::shared::no;
use crate::commands::cni::trouble::server_error;
use crate::error::CommandError;

/// Time between two looks.
pub(crate) const TICK: Duration = Duration::from_secs(1);
/// A refusal for which no Job of this question is to be found counts when it stands for so long: the
/// controller answers within a second.
const SETTLED: Duration = Duration::from_secs(20);
/// Looks in a row that may fail.
const FAILURES: u32 = 30;

/// What is waited for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Goal {
    /// The condition's type.
    pub(crate) type_: &'static str,
    /// When it says that all is done.
    pub(crate) is_done: fn(&Condition) -> bool,
    /// The generation of the spec that it has to be about; 0 for any.
    pub(crate) generation: i64,
    /// What is waited for, for people.
    pub(crate) what: &'static str,
    /// What to do about a missing consent.
    pub(crate) consent: &'static str,
}

/// What a look says.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Verdict {
    /// It is done.
    Done(String),
    /// It waits for the user.
    No { reason: String, message: String },
    /// It goes on.
    Going(String),
}

/// Waits. Returns the condition's message.
///
/// # Errors
/// The controller refuses; time is up; it cannot be read; the end was asked for.
pub(crate) async fn until(
    session: &Session<'_>,
    goal: Goal,
    limit: Duration,
) -> Result<String, CommandError> {
    let (cluster, clock) = (&*session.cluster, session.clock);
    let began = clock.elapsed();
    let mut told = String::new();
    let mut failures = 0;
    loop {
        let elapsed = clock.elapsed().saturating_sub(began);
        match look(cluster, goal, elapsed).await {
            Ok(Verdict::Done(message)) => return Ok(message),
            Ok(Verdict::No { reason, message }) => {
                return Err(answered_no(goal, &reason, &message));
            }
            Ok(Verdict::Going(state)) => {
                failures = 0;
                if state != told {
                    session.observer.progress(&state);
                    told = state;
                }
            }
            Err(error) => {
                failures += 1;
                if failures > FAILURES || !is_passing(&error) {
                    return Err(look_error(&error));
                }
            }
        }
        let goes_on = "the controller goes on with it by itself; the same command again waits on, \
                       and `ichor cluster status` says where it stands";
        if session.cancel.is_cancelled() {
            return Err(CommandError::new(format_args!(
                "stopped waiting for {}, as was asked: {told}",
                goal.what
            ))
            .hint(goes_on));
        }
        if elapsed >= limit {
            for pod in waiting_job_pods(cluster).await {
                told.push_str("; ");
                told.push_str(&pod);
            }
            return Err(CommandError::new(format_args!(
                "{} is not complete when time is up: {told}",
                goal.what
            ))
            .hint(goes_on));
        }
        clock.sleep(TICK).await;
    }
}

/// Waits until the controller says which CNI runs.
///
/// # Errors
/// As [`until`].
pub(crate) async fn until_detected(
    session: &Session<'_>,
    limit: Duration,
) -> Result<DetectedCni, CommandError> {
    let clock = session.clock;
    let deadline = clock.elapsed().saturating_add(limit);
    loop {
        let object = read(&*session.cluster).await.map_err(|error| server_error(&error))?;
        let object = object.ok_or_else(|| look_error(&LookError::Gone))?;
        let object: TalosCluster = serde_json::from_value(object)
            .map_err(|error| look_error(&LookError::Object(error)))?;
        if let Some(found) = object.status.and_then(|status| status.cni?.detected) {
            return Ok(found);
        }
        if session.cancel.is_cancelled() || clock.elapsed() >= deadline {
            return Err(CommandError::new(format_args!(
                "TalosCluster {MANAGED_NAME} is written, and no controller has looked at it yet"
            ))
            .hint("see `ichor cluster status`"));
        }
        clock.sleep(TICK).await;
    }
}

fn answered_no(goal: Goal, reason: &str, message: &str) -> CommandError {
    let hint = if reason == reason::CONSENT_REQUIRED {
        goal.consent
    } else {
        "do what the message says; a new attempt is made by itself when the TalosCluster or what runs \
         changes, and `ichor cluster status` says where it stands"
    };
    no(format_args!("{} ({}): {message}", reason, goal.type_), hint)
}

/// Why a look failed.
#[derive(Debug, thiserror::Error)]
enum LookError {
    #[error(transparent)]
    Read(#[from] WriteError),
    #[error("TalosCluster {MANAGED_NAME} is gone: somebody deleted it")]
    Gone,
    #[error("TalosCluster {MANAGED_NAME} cannot be read: {0}")]
    Object(serde_json::Error),
}

fn is_passing(error: &LookError) -> bool {
    let LookError::Read(WriteError::Cluster { source, .. }) = error else { return false };
    !matches!(source.kind(), ErrorKind::Forbidden | ErrorKind::Unauthorized)
}

fn look_error(error: &LookError) -> CommandError {
    match error {
        LookError::Read(error) => server_error(error),
        error => CommandError::new(error).hint("see `ichor cluster status`"),
    }
}

async fn look(cluster: &dyn Cluster, goal: Goal, elapsed: Duration) -> Result<Verdict, LookError> {
    let object = read(cluster).await?.ok_or(LookError::Gone)?;
    let object: TalosCluster = serde_json::from_value(object).map_err(LookError::Object)?;
    let is_no = object.condition(goal.type_).is_some_and(is_answer_no);
    // Only a refusal needs the Job: whether it is about what is asked now.
    let job = if is_no { job(cluster).await } else { None };
    Ok(judge(goal, &object, job.as_ref(), elapsed))
}

/// The Job; none when there is none, or it may not be read.
async fn job(cluster: &dyn Cluster) -> Option<Value> {
    let jobs = Resource::builtin("batch/v1", "Job", "jobs", true);
    cluster.get(&Target::new(&jobs.into(), NAMESPACE, takeover::job::NAME)).await.ok()
}

fn is_answer_no(condition: &Condition) -> bool {
    matches!(condition.reason.as_str(), reason::CONSENT_REQUIRED | reason::REFUSED)
}

fn judge(goal: Goal, cluster: &TalosCluster, job: Option<&Value>, elapsed: Duration) -> Verdict {
    let Some(condition) = cluster.condition(goal.type_) else {
        return Verdict::Going(format!("{}: waiting for the controller", goal.type_));
    };
    let is_about = condition.observed_generation.unwrap_or_default() >= goal.generation;
    if (goal.is_done)(condition) && is_about {
        return Verdict::Done(condition.message.clone());
    }
    let going =
        || Verdict::Going(format!("{}: {}: {}", goal.type_, condition.reason, condition.message));
    if !is_answer_no(condition) {
        return going();
    }
    // What was refused before says nothing of what is asked now.
    if job.is_some_and(|job| answers(job, cluster)) || elapsed >= SETTLED {
        let (reason, message) = (condition.reason.clone(), condition.message.clone());
        return Verdict::No { reason, message };
    }
    Verdict::Going(format!("{}: waiting for the controller to look at it", goal.type_))
}

/// Whether a Job was made for what the TalosCluster asks for, and has ended.
fn answers(job: &Value, cluster: &TalosCluster) -> bool {
    let annotations = job.pointer("/metadata/annotations");
    let of = annotations.and_then(|all| all.get(ASKED)?.as_str());
    let conditions = job.pointer("/status/conditions").and_then(Value::as_array);
    let has_ended = conditions.into_iter().flatten().any(|one| {
        matches!(one["type"].as_str(), Some("Complete" | "Failed")) && one["status"] == "True"
    });
    has_ended && of == Some(&asked(cluster))
}

#[cfg(test)]
mod tests {
    use api::{ConditionStatus, type_};
    use serde_json::json;

    use super::*;

    const GOAL: Goal = Goal {
        type_: type_::VALUES_APPLIED,
        is_done: |condition| condition.status == ConditionStatus::True,
        generation: 3,
        what: "the change",
        consent: "ichor cni values set",
    };

    fn cluster(status: &str, reason: &str, seen: i64) -> TalosCluster {
        serde_json::from_value(json!({
            "apiVersion": "ichor.maesh.dev/v1alpha1", "kind": "TalosCluster",
            "metadata": { "name": "cluster", "generation": 3 },
            "spec": { "cni": { "preset": "cilium" } },
            "status": { "conditions": [{
                "type": "ValuesApplied", "status": status, "reason": reason, "message": "m",
                "observedGeneration": seen, "lastTransitionTime": "2026-01-01T00:00:00Z",
            }] },
        }))
        .unwrap()
    }

    fn job(asked: &str, over: bool) -> Value {
        let status = if over { "True" } else { "False" };
        json!({
            "metadata": { "annotations": { ASKED: asked } },
            "status": { "conditions": [{ "type": "Failed", "status": status }] },
        })
    }

    #[test]
    fn what_was_said_of_another_question_does_not_count() {
        let done = Verdict::Done("m".to_owned());
        let now = Duration::ZERO;
        assert_eq!(judge(GOAL, &cluster("True", "Applied", 3), None, now), done);
        let old = judge(GOAL, &cluster("True", "Applied", 2), None, now);
        assert!(matches!(old, Verdict::Going(_)), "{old:?}");
        let refused = cluster("False", "ConsentRequired", 3);
        let no = Verdict::No { reason: "ConsentRequired".to_owned(), message: "m".to_owned() };
        let of = asked(&refused);
        assert_eq!(judge(GOAL, &refused, Some(&job(&of, true)), now), no);
        assert_eq!(judge(GOAL, &refused, None, SETTLED), no);
        for job in [None, Some(job("another", true)), Some(job(&of, false))] {
            let going = judge(GOAL, &refused, job.as_ref(), now);
            assert!(matches!(going, Verdict::Going(_)), "{going:?}");
        }
        let failed = judge(GOAL, &cluster("False", "JobFailed", 3), None, SETTLED);
        assert_eq!(failed, Verdict::Going("ValuesApplied: JobFailed: m".to_owned()));
    }
}
