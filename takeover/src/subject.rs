//! What is taken over: the running Cilium ([`crate::plan::Request`]), or any chart's objects
//! ([`crate::adopt::Request`]). Everything after the plan is the same for both.

use std::collections::BTreeSet;
use std::sync::Arc;

use helm_rs::cluster::{Clock, Cluster};

use crate::place::Place;
use crate::plan::{PlanError, Prepared};
use crate::run::lock::LeaseName;
use crate::run::stored::StoredPlan;

/// What is taken over, and how a plan of it is made.
pub trait Subject {
    /// The release that is made, and where what is left of the takeover lies.
    fn place(&self) -> &Place;

    /// The form of the plans that are made, by which a stored plan tells what was begun.
    fn schema(&self) -> &'static str;

    /// The cluster.
    fn cluster(&self) -> &Arc<dyn Cluster>;

    /// The clock.
    fn clock(&self) -> &dyn Clock;

    /// The Leases that make up the lock: the release's own, and that of the one it comes from.
    fn leases(&self) -> BTreeSet<LeaseName>;

    /// Whether ichor's own release is changed, and nothing taken over.
    fn is_change(&self) -> bool {
        false
    }

    /// Whether a stored plan is of what is asked for now, so that it may be finished.
    fn resumes(&self, _stored: &StoredPlan) -> bool {
        true
    }

    /// Makes a plan. Nothing is written.
    ///
    /// # Errors
    /// [`PlanError`]
    fn prepare(&self) -> impl Future<Output = Result<Prepared, PlanError>>;
}
