//! Rendering a record's chart again: does it give the stored manifest?
//!
//! ```text
//! record ─ chart, values ─ render ─ compare ─► nothing left: it reproduces
//!            ▲                        │
//!            └─ another attempt ◄─────┘ something left: search, then classify
//! ```
//!
//! A record does not say for which cluster its chart was rendered. When the first attempt differs
//! from the stored manifest, others follow, as far as templates ask: numbers as `--set` gives
//! them, another revision (a rollback keeps the older one's manifest), lookups answered from the
//! manifest itself, other API versions and Kubernetes versions. What the best attempt leaves is
//! classified.

mod attempt;
mod classify;
mod hints;
mod search;

use std::fmt;
use std::sync::Arc;

use crate::capabilities::KubeVersion;
use crate::release::record::Record;
use crate::release::redact::Sensitive;

use attempt::Subject;

/// Asked now and then while a chart renders; true ends it.
#[derive(Clone)]
pub struct Interrupt(pub Arc<dyn Fn() -> bool + Send + Sync>);

impl fmt::Debug for Interrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Interrupt")
    }
}

/// How to render records' charts again.
#[derive(Clone, Debug)]
pub struct Rerender {
    /// API versions besides Kubernetes' own.
    pub api_versions: Vec<String>,
    /// How many attempts one record may take, each with two renders.
    pub attempts: usize,
    /// Ends a render early.
    pub interrupt: Option<Interrupt>,
}

impl Default for Rerender {
    fn default() -> Self {
        Self { api_versions: Vec::new(), attempts: 64, interrupt: None }
    }
}

/// What fits best.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The chart renders to the stored manifest.
    Reproduces,
    /// Somebody edited the record, or the chart in it.
    Edited,
    /// A post-renderer changed the manifest.
    PostRendered,
    /// The chart renders to the stored manifest for another cluster.
    Capabilities,
    /// Templates read the cluster, which may explain the differences.
    Lookup,
    /// The chart does not render.
    Impossible,
}

impl Verdict {
    /// As it is printed.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Reproduces => "reproduces",
            Self::Edited => "edited",
            Self::PostRendered => "post-rendered",
            Self::Capabilities => "capabilities",
            Self::Lookup => "lookup",
            Self::Impossible => "impossible",
        }
    }
}

/// What rendering a record's chart again showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rerendered {
    /// What fits.
    pub verdict: Verdict,
    /// Why it fits, for people.
    pub reason: String,
    /// Places where the best attempt and the stored manifest differ, without their values, which
    /// may be secret.
    pub differences: Vec<String>,
    /// Generated leaves, which were not compared.
    pub generated: Vec<String>,
    /// Objects that were not compared, because subcharts made them: a record does not hold those.
    pub left_out: usize,
}

/// Places that a summary names.
const SHOWN: usize = 5;

impl Rerendered {
    fn new(verdict: Verdict, reason: impl Into<String>) -> Self {
        Self {
            verdict,
            reason: reason.into(),
            differences: Vec::new(),
            generated: Vec::new(),
            left_out: 0,
        }
    }

    /// Reason and first differences on one line.
    pub fn summary(&self) -> String {
        let mut text = self.reason.clone();
        if let Some(shown) = self.differences.get(..self.differences.len().min(SHOWN))
            && !shown.is_empty()
        {
            text.push_str(": ");
            text.push_str(&shown.join("; "));
            if self.differences.len() > SHOWN {
                text.push_str(&format!("; and {} more", self.differences.len() - SHOWN));
            }
        }
        text
    }
}

/// Renders a record's chart again and compares with the stored manifest and hooks.
///
/// Randomness and clock are fixed, so that the result for a record is always the same. Errors may
/// quote values: credentials among them are hidden.
pub fn rerender(record: &Record, kube_version: &KubeVersion, how: &Rerender) -> Rerendered {
    let mut rerendered = rerender_openly(record, kube_version, how);
    let sensitive = Sensitive::of_record(record);
    rerendered.reason = sensitive.scrub(&rerendered.reason);
    for text in rerendered.differences.iter_mut().chain(&mut rerendered.generated) {
        *text = sensitive.scrub(text);
    }
    rerendered
}

fn rerender_openly(record: &Record, kube_version: &KubeVersion, how: &Rerender) -> Rerendered {
    let subject = match Subject::of(record, kube_version, how) {
        Ok(subject) => subject,
        Err(reason) => return Rerendered::new(Verdict::Impossible, reason),
    };
    let found = search::search(&subject, how.attempts);
    let mut rerendered = match &found.outcome {
        Err(error) => Rerendered::new(Verdict::Impossible, subject.without_subcharts(error)),
        Ok(outcome) => {
            let (verdict, reason) = classify::classify(&subject, outcome, &found);
            let mut rerendered = Rerendered::new(verdict, reason);
            rerendered.differences = outcome.differences.iter().flat_map(attempt::titles).collect();
            rerendered.generated.clone_from(&outcome.generated);
            rerendered
        }
    };
    rerendered.left_out = subject.left_out;
    rerendered
}
