//! What follows a hand-over: other values, and a newer chart. Functions on plain data.
//!
//! ```text
//! spec ─ wanted ─┐                            ┌─ ValuesApplied
//! annotation ────┴─ goal ─ Job ─ course ──────┴─ CiliumUpgradeAvailable
//! ```
//!
//! One Job brings the whole goal about, the same one by name as the hand-over's: there are never two.
//! What of the spec the release has is in the status, so that nothing is done when nothing changed.

use std::fmt;
use std::sync::LazyLock;
use std::time::Duration;

use api::{Condition, ConditionStatus, TalosCluster, annotation, reason, type_};
use cilium::pinned::{LOCK, pin};
use cilium::version::Version;
use jiff::Timestamp;
use serde_json::json;

use crate::decide::{Action, Course, REFRESH, Told, Verdict, condition, course, news};
use crate::facts::{Ending, Facts, JobState, hash};

/// What the status says of the spec while a change of it is not complete.
const NONE: &str = "none";

/// The version of the pinned chart.
static PINNED: LazyLock<String> =
    LazyLock::new(|| pin(LOCK).map(|pin| pin.version).unwrap_or_default());

/// What is to be brought about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Goal {
    /// A digest of what of the spec the release is to have.
    pub wanted: String,
    /// The chart's version that it is brought to; none for the one that it has.
    pub upgrade: Option<String>,
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.wanted)?;
        self.upgrade.iter().try_for_each(|version| write!(f, "+{version}"))
    }
}

/// What follows.
pub(crate) struct After {
    pub(crate) conditions: Vec<Condition>,
    pub(crate) applied: Option<String>,
    pub(crate) chart: Option<String>,
    pub(crate) action: Option<Action>,
    pub(crate) goal: Option<Goal>,
    pub(crate) again: Duration,
    pub(crate) event: Option<Told>,
}

/// What of the spec reaches the release.
fn wanted(cluster: &TalosCluster) -> String {
    let cni = &cluster.spec.cni;
    let values = cni.cilium.as_ref().map(|cilium| &cilium.values);
    hash(&json!([values.filter(|values| !values.is_empty()), cni.kube_proxy]))
}

/// What the release has of the spec when the hand-over is complete. A spec without values asks for
/// what was taken over. One with values may ask for something else, since those of a record counted:
/// a Job finds out.
pub(crate) fn at_hand_over(cluster: &TalosCluster) -> String {
    let values = cluster.spec.cni.cilium.as_ref().map(|cilium| &cilium.values);
    if values.is_none_or(serde_json::Map::is_empty) { wanted(cluster) } else { NONE.to_owned() }
}

/// Decides.
pub(crate) fn decide(cluster: &TalosCluster, facts: &Facts, now: Timestamp) -> After {
    let wanted = wanted(cluster);
    let before = cluster.status.as_ref().and_then(|status| status.cni.as_ref());
    let mut applied = before
        .and_then(|cni| cni.applied_spec.clone())
        // A hand-over by an earlier ichor.
        .or_else(|| Some(at_hand_over(cluster)));
    // A hand-over that had no plan of its own to tell: what runs then. It is kept, since during an
    // upgrade what runs is ahead of the release.
    let mut chart =
        before.and_then(|cni| cni.chart_version.clone()).or_else(|| running_version(facts));
    if let Some(job) = facts.job.as_ref().filter(|job| !job.goal.is_empty() && job.is_of(cluster)) {
        let (of, brought) = job.goal.split_once('+').unwrap_or((job.goal.as_str(), ""));
        if let JobState::Ended { ending: Ending::Failed, .. } = job.state {
            // Begun, perhaps, and not complete: the release may have anything between the two. One
            // that was refused wrote nothing.
            applied = Some(NONE.to_owned());
        }
        if let JobState::Ended { ending: Ending::Done, .. } = job.state {
            applied = Some(of.to_owned());
            let told = job.summary.as_ref().map(|summary| summary.chart.as_str());
            let told = told.filter(|told| !told.is_empty());
            if let Some(version) = told.or_else(|| Some(brought).filter(|text| !text.is_empty())) {
                chart = Some(version.to_owned());
            }
        }
    }
    let upgrade = Upgrade::of(cluster, chart.as_deref());
    let lacks_values = applied.as_deref() != Some(wanted.as_str());
    let target = matches!(upgrade, Upgrade::Asked { .. }).then(|| PINNED.clone());
    let verdict = (lacks_values || target.is_some()).then(|| {
        let goal = Goal { wanted, upgrade: target };
        let verdict = match course(cluster, facts, now, &goal.to_string()) {
            Course::Under(verdict) => verdict,
            // Told above; only a Job that says nothing of itself comes here.
            Course::Done(message) => Verdict {
                status: ConditionStatus::True,
                reason: reason::APPLIED,
                message,
                action: None,
                again: REFRESH,
            },
        };
        (goal, verdict)
    });
    let values = values(verdict.as_ref().filter(|_| lacks_values).map(|(_, verdict)| verdict));
    let upgraded = upgrade.verdict(verdict.as_ref().map(|(_, verdict)| verdict));
    let is_values_news = values.reason != reason::APPLIED || was_not_applied(cluster);
    let event = news(type_::VALUES_APPLIED, &values, cluster, facts)
        .filter(|_| is_values_news)
        .or_else(|| news(type_::CILIUM_UPGRADE_AVAILABLE, upgraded.as_ref()?, cluster, facts));
    let told = |type_, verdict: Verdict| {
        condition(type_, (verdict.status, verdict.reason, verdict.message), cluster, now)
    };
    let mut conditions = vec![told(type_::VALUES_APPLIED, values)];
    conditions.extend(upgraded.map(|verdict| told(type_::CILIUM_UPGRADE_AVAILABLE, verdict)));
    let (goal, action, again) = match verdict {
        Some((goal, verdict)) => (Some(goal), verdict.action, verdict.again),
        None => (None, None, REFRESH),
    };
    After { conditions, applied, chart, action, goal, again, event }
}

/// The version of the chart that what runs is of, where nothing else tells it.
pub(crate) fn running_version(facts: &Facts) -> Option<String> {
    let tag = facts.version.as_deref().filter(|_| facts.agents.is_some())?;
    // Cilium gives chart and image the same number.
    let version = tag.trim_start_matches('v');
    version.parse::<Version>().ok().map(|_| version.to_owned())
}

/// Whether the condition said until now that something is missing.
fn was_not_applied(cluster: &TalosCluster) -> bool {
    let old = cluster.condition(type_::VALUES_APPLIED);
    old.is_some_and(|old| old.status != ConditionStatus::True)
}

fn values(verdict: Option<&Verdict>) -> Verdict {
    let applied = || Verdict {
        status: ConditionStatus::True,
        ..Verdict::no(reason::APPLIED, "ichor's release has what the spec says")
    };
    verdict.map_or_else(applied, |verdict| Verdict {
        status: verdict.status,
        ..Verdict::no(verdict.reason, verdict.message.clone())
    })
}

/// How the release's version stands to the pinned one.
enum Upgrade {
    /// It cannot be told, or Cilium does not run.
    Unknown,
    /// They are the same.
    Same(String),
    /// The pinned one is older.
    Older(String),
    /// The pinned one is newer, and nobody asked for it.
    Available(String),
    /// Somebody did.
    Asked { from: String },
    /// Somebody asked for another one.
    Other { from: String, asked: String },
}

impl Upgrade {
    /// The chart's version is what counts, not that of what runs.
    fn of(cluster: &TalosCluster, chart: Option<&str>) -> Self {
        let (Some(from), Ok(pinned)) = (chart, PINNED.parse::<Version>()) else {
            return Self::Unknown;
        };
        let Ok(deployed) = from.parse::<Version>() else { return Self::Unknown };
        let from = from.to_owned();
        match order(&deployed, &pinned) {
            std::cmp::Ordering::Equal => Self::Same(from),
            std::cmp::Ordering::Greater => Self::Older(from),
            std::cmp::Ordering::Less => match cluster.annotation(annotation::UPGRADE_TO) {
                None | Some("") => Self::Available(from),
                Some(asked) if asked.trim_start_matches('v') == *PINNED => Self::Asked { from },
                Some(asked) => Self::Other { from, asked: asked.to_owned() },
            },
        }
    }

    /// `under` is how the Job for it stands.
    fn verdict(&self, under: Option<&Verdict>) -> Option<Verdict> {
        let pinned = &*PINNED;
        let yes = |reason, message| {
            Some(Verdict { status: ConditionStatus::True, ..Verdict::no(reason, message) })
        };
        match self {
            Self::Unknown => None,
            Self::Same(from) => Some(Verdict::no(
                reason::UP_TO_DATE,
                format!("Cilium {from} is what this ichor brings"),
            )),
            Self::Older(from) => Some(Verdict::no(
                reason::OLDER_ICHOR,
                format!("Cilium {from} is newer than {pinned}, which this ichor brings"),
            )),
            Self::Available(from) => yes(
                reason::NEWER_CHART,
                format!(
                    "this ichor brings Cilium {pinned}, and {from} is deployed: `ichor cni plan --change \
                     --upgrade --for-job` shows the upgrade; the annotations {}: \"{pinned}\" and {} with \
                     that plan's digest ask for it",
                    annotation::UPGRADE_TO,
                    annotation::ACCEPTED_PLAN
                ),
            ),
            Self::Asked { from } => {
                let under = under?;
                yes(under.reason, format!("from {from} to {pinned}: {}", under.message))
            }
            Self::Other { from, asked } => yes(
                reason::REFUSED,
                format!(
                    "the annotation {} asks for {asked}, and this ichor brings {pinned} and nothing \
                     else ({from} is deployed): say {pinned}, or run another ichor",
                    annotation::UPGRADE_TO
                ),
            ),
        }
    }
}

/// A version that only differs by what a build appended is the same; `-rc.1` comes before the release.
fn order(one: &Version, other: &Version) -> std::cmp::Ordering {
    let key = |version: &Version| {
        let is_release = !version.suffix.starts_with('-');
        (version.major, version.minor, version.patch, is_release)
    };
    key(one).cmp(&key(other))
}

#[cfg(test)]
mod tests;
