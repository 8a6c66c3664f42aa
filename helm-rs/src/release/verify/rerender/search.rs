//! Looking for the attempt that comes closest to the stored manifest.

use super::attempt::{Attempt, Outcome, Subject};
use super::hints::Hints;
use crate::capabilities::KubeVersion;

/// Minor releases of Kubernetes 1 that are tried.
const MINORS: std::ops::RangeInclusive<u32> = 16..=36;

/// The best attempt.
pub(super) struct Found {
    pub(super) attempt: Attempt,
    pub(super) outcome: Result<Outcome, String>,
}

struct Search<'a> {
    subject: &'a Subject,
    left: usize,
    best: Found,
    /// What to say when nothing renders: the error of the first attempt.
    first_error: Option<String>,
}

/// Tries what the chart's templates may depend on, one thing after another, and keeps what comes
/// closer. Ends at the first attempt without differences, or after `attempts`.
pub(super) fn search(subject: &Subject, attempts: usize) -> Found {
    let attempt = subject.first();
    let outcome = subject.run(&attempt);
    let first_error = outcome.as_ref().err().cloned();
    let best = Found { attempt, outcome };
    let left = attempts.saturating_sub(1);
    let mut search = Search { subject, left, best, first_error };
    if !search.is_done() {
        let hints = Hints::of(subject);
        search.same_cluster(&hints);
        search.other_cluster(&hints);
    }
    let mut best = search.best;
    if best.outcome.is_err()
        && let Some(error) = search.first_error
    {
        best.outcome = Err(error);
    }
    best
}

impl Search<'_> {
    fn distance(&self) -> usize {
        self.best.outcome.as_ref().map_or(usize::MAX, Outcome::distance)
    }

    fn is_done(&self) -> bool {
        self.left == 0 || self.distance() == 0
    }

    /// Makes the best attempt with a change, and keeps it when it comes closer.
    fn with(&mut self, change: impl FnOnce(&mut Attempt)) {
        if self.is_done() {
            return;
        }
        let mut attempt = self.best.attempt.clone();
        change(&mut attempt);
        if attempt == self.best.attempt {
            return;
        }
        self.left -= 1;
        let outcome = self.subject.run(&attempt);
        if outcome.as_ref().is_ok_and(|outcome| outcome.distance() < self.distance()) {
            self.best = Found { attempt, outcome };
        }
    }

    /// What may differ on the very cluster.
    fn same_cluster(&mut self, hints: &Hints) {
        self.with(|attempt| attempt.integers = true);
        if self.best.outcome.as_ref().is_ok_and(|outcome| outcome.looked_up) {
            self.with(|attempt| attempt.stored_lookup = true);
        }
        let copied = self.subject.description.strip_prefix("Rollback to ");
        if let Some(revision) = copied.and_then(|text| text.trim().parse::<i64>().ok()) {
            self.with(|attempt| {
                attempt.revision = revision;
                attempt.is_upgrade = revision > 1;
            });
        }
        if hints.revision {
            // A forced reinstallation, and a rollback of a rollback.
            self.with(|attempt| attempt.is_upgrade = !attempt.is_upgrade);
            for revision in (1..self.subject.revision).rev().take(8) {
                self.with(|attempt| {
                    attempt.revision = revision;
                    attempt.is_upgrade = revision > 1;
                });
            }
        }
    }

    fn other_cluster(&mut self, hints: &Hints) {
        self.apis(hints);
        if !hints.kube_version {
            return;
        }
        // The newest ones first: they are the likeliest.
        let before = self.best.attempt.capabilities.kube_version.clone();
        for minor in MINORS.rev() {
            if let Ok(version) = KubeVersion::parse(&format!("1.{minor}.0")) {
                self.with(|attempt| attempt.capabilities.kube_version = version);
            }
        }
        if self.best.attempt.capabilities.kube_version != before {
            self.apis(hints);
        }
    }

    fn apis(&mut self, hints: &Hints) {
        if hints.api_versions.is_empty() {
            return;
        }
        // What the manifest uses was there when it was applied.
        let used: Vec<&String> =
            hints.api_versions.iter().filter(|version| hints.used.contains(*version)).collect();
        self.with(|attempt| used.iter().for_each(|version| add(attempt, version)));
        self.with(|attempt| hints.api_versions.iter().for_each(|version| add(attempt, version)));
        for version in &hints.api_versions {
            self.with(|attempt| {
                if attempt.capabilities.has_api(version) {
                    attempt.capabilities.api_versions.retain(|known| known != version);
                } else {
                    add(attempt, version);
                }
            });
        }
    }
}

fn add(attempt: &mut Attempt, version: &str) {
    if !attempt.capabilities.has_api(version) {
        attempt.capabilities.api_versions.push(version.to_owned());
    }
}
