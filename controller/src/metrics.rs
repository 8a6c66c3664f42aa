//! What a scrape of `/metrics` reads.

use std::time::Duration;

use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

/// How a hand-over's Job ended, or why one was not made.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Outcome {
    reason: String,
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
        Self { registry, reconciles, errors, jobs, handovers, duration, leading }
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
