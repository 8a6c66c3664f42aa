//! What the second half of a plan is made with, whatever is taken over.

use std::sync::Arc;

use helm_rs::chart::Chart;
use helm_rs::cluster::{Clock, Cluster};
use helm_rs::render::Engine;

use super::before::Before;
use super::make::Request;
use super::{DryRuns, KubePrism, Needs, WhoWrites};
use crate::place::{CILIUM, Place};

/// What the second half of a plan is made with, whatever is taken over: the part of it that renders,
/// compares and checks rights.
pub(crate) struct Making<'a> {
    /// The release that is made.
    pub(crate) place: &'a Place,
    /// The cluster.
    pub(crate) cluster: &'a Arc<dyn Cluster>,
    /// The clock.
    pub(crate) clock: &'a dyn Clock,
    /// What renders.
    pub(crate) engine: &'a Engine,
    /// The chart.
    pub(crate) chart: &'a Chart,
    /// The version that it brings, as the digest has it.
    pub(crate) version: String,
    /// Who will write.
    pub(crate) who_writes: &'a WhoWrites,
    /// 32 bytes of entropy for what the chart generates.
    pub(crate) entropy: [u8; 32],
    /// What the server answered to dry runs of an earlier plan.
    pub(crate) dry_runs: Option<&'a DryRuns>,
    /// What is known of KubePrism.
    pub(crate) kube_prism: &'a KubePrism,
    /// The rights that it took until here.
    pub(crate) reading: Needs,
    /// What the release wrote before, where it is ichor's and is changed. A takeover has none, and
    /// deletes nothing.
    pub(crate) before: Option<&'a Before>,
}

impl<'a> Making<'a> {
    /// For Cilium.
    pub(super) fn of(request: &'a Request<'a>) -> Self {
        let mut reading = Needs::default();
        reading.reading();
        Self {
            place: &CILIUM,
            cluster: &request.cluster,
            clock: request.clock,
            engine: request.engine,
            chart: &request.pinned.chart,
            version: request.pinned.version.to_string(),
            who_writes: &request.who_writes,
            entropy: request.entropy,
            dry_runs: request.dry_runs,
            kube_prism: &request.kube_prism,
            reading,
            before: None,
        }
    }
}
