//! What a scrape of `/metrics` reads.

use std::time::Duration;

use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use takeover::job::Summary;

/// How a hand-over's Job ended, or why one was not made.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Outcome {
    reason: String,
}

/// How a change of ichor's release ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Change {
    condition: String,
    reason: String,
}

/// A class of the gate.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Class {
    class: &'static str,
}

/// The controller's figures.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    reconciles: Counter,
    errors: Counter,
    jobs: Counter,
    handovers: Family<Outcome, Counter>,
    duration: Histogram,
    leading: Gauge,
    changes: Family<Change, Counter>,
    gate: Family<Class, Gauge>,
    dropped: Counter,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut registry = Registry::with_prefix("ichor");
        let (reconciles, errors, jobs) =
            (Counter::default(), Counter::default(), Counter::default());
        let handovers = Family::<Outcome, Counter>::default();
        // From a takeover of a small cluster to the longest that a Job may be at work.
        let duration = Histogram::new([5.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1200.0, 1800.0]);
        let leading = Gauge::default();
        registry.register("reconciles", "TalosClusters looked at", reconciles.clone());
        registry.register("reconcile_errors", "Looks that failed", errors.clone());
        registry.register("handover_jobs", "Jobs made", jobs.clone());
        registry.register(
            "handover_outcomes",
            "Ends of attempts to hand a CNI over, by the condition's reason",
            handovers.clone(),
        );
        registry.register_with_unit(
            "handover_duration",
            "Time from a TalosCluster's creation until its CNI was handed over",
            Unit::Seconds,
            duration.clone(),
        );
        registry.register("leading", "1 while this controller holds the Lease", leading.clone());
        let (changes, gate) =
            (Family::<Change, Counter>::default(), Family::<Class, Gauge>::default());
        let dropped = Counter::default();
        registry.register(
            "change_outcomes",
            "Ends of changes of ichor's release after a hand-over, by condition and reason",
            changes.clone(),
        );
        registry.register(
            "gate_leaves",
            "The gate of the last plan that a Job told: leaves that change or stay, objects that are \
             created or deleted",
            gate.clone(),
        );
        registry.register("spans_dropped", "Spans that no collector took in time", dropped.clone());
        Self {
            registry,
            reconciles,
            errors,
            jobs,
            handovers,
            duration,
            leading,
            changes,
            gate,
            dropped,
        }
    }

    pub(crate) fn reconciled(&self) {
        self.reconciles.inc();
    }

    pub(crate) fn failed(&self) {
        self.errors.inc();
    }

    pub(crate) fn job_made(&self) {
        self.jobs.inc();
    }

    pub(crate) fn attempt_ended(&self, reason: &str) {
        self.handovers.get_or_create(&Outcome { reason: reason.to_owned() }).inc();
    }

    pub(crate) fn handed_over(&self, after: Duration) {
        self.duration.observe(after.as_secs_f64());
    }

    pub(crate) fn change_ended(&self, condition: &str, reason: &str) {
        let change = Change { condition: condition.to_owned(), reason: reason.to_owned() };
        self.changes.get_or_create(&change).inc();
    }

    /// The gate of the last plan.
    pub(crate) fn gate(&self, summary: &Summary) {
        for (class, count) in [
            ("differences", summary.differences),
            ("residue", summary.residue),
            ("creations", summary.creations),
            ("deletions", summary.deletions),
        ] {
            let gauge = self.gate.get_or_create(&Class { class });
            gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
        }
    }

    /// So many spans were dropped until now.
    pub(crate) fn dropped(&self, count: u64) {
        self.dropped.inc_by(count.saturating_sub(self.dropped.get()));
    }

    pub(crate) fn leads(&self) {
        self.leading.set(1);
    }

    /// The text of OpenMetrics; empty when it cannot be written.
    pub(crate) fn text(&self) -> String {
        let mut out = String::new();
        if text::encode(&mut out, &self.registry).is_err() {
            out.clear();
        }
        out
    }
}
