//! What an earlier run left: a takeover that was begun and is not complete.

use helm_rs::cluster::{Clock, Cluster, ClusterError};
use helm_rs::release::Status;
use helm_rs::release::storage::{ObjectDriver, Storage};

use super::own::{self, OwnError};
use super::stored::{StoredError, StoredPlan};
use super::strangers::{self, LookError};
use crate::place::{CILIUM, Place};
use crate::plan::Plan;
use crate::survey::{read, resource_of, text};

/// A takeover that is not complete.
#[derive(Clone, Debug, PartialEq)]
pub struct LeftOver {
    /// The plan that was consented to.
    pub plan: Plan,
    /// Ichor's newest revision.
    pub revision: i64,
    /// Its status.
    pub status: String,
    /// Foreign records that are still there.
    pub records: usize,
    /// Objects that somebody changed since, so that the plan cannot be finished: another one needs
    /// a consent of its own.
    pub strangers: Vec<String>,
}

/// Why it cannot be told.
#[derive(Debug, thiserror::Error)]
pub enum LeftOverError {
    /// Ichor's newest record.
    #[error(transparent)]
    Own(#[from] OwnError),
    /// The objects.
    #[error(transparent)]
    Look(#[from] LookError),
    /// The stored plan.
    #[error(transparent)]
    Stored(#[from] StoredError),
    /// A foreign record, or what the server serves.
    #[error("what a takeover left")]
    Cluster(#[from] ClusterError),
}

impl LeftOverError {
    /// Whether something of ichor's own is damaged, so that the answer is no until it is mended.
    pub const fn is_refusal(&self) -> bool {
        matches!(
            self,
            Self::Own(OwnError::Damaged { .. }) | Self::Stored(StoredError::Content { .. })
        )
    }
}

/// Looks for a takeover of Cilium that was begun and is not complete. The next run finishes it by
/// its own plan, whatever a new plan would say.
///
/// # Errors
/// [`LeftOverError`]
pub async fn left_over(
    cluster: &dyn Cluster,
    clock: &dyn Clock,
) -> Result<Option<LeftOver>, LeftOverError> {
    left_over_at(&CILIUM, cluster, clock).await
}

/// [`left_over`] of any release.
///
/// # Errors
/// [`LeftOverError`]
pub async fn left_over_at(
    place: &Place,
    cluster: &dyn Cluster,
    clock: &dyn Clock,
) -> Result<Option<LeftOver>, LeftOverError> {
    let driver = ObjectDriver::new(cluster, clock, place.records, &place.home);
    let Some(newest) = own::newest(place, &Storage::new(&driver)).await? else { return Ok(None) };
    if newest.unfinished_action(place).is_some() {
        return Ok(None);
    }
    let own::Newest { revision, status, .. } = newest;
    let Some(stored) = StoredPlan::read(cluster, place).await? else { return Ok(None) };
    let mut records = 0;
    for record in &stored.plan.records {
        let (namespace, name) = (&record.about.namespace, &record.about.name);
        let live = read(cluster, &resource_of(&record.about.kind), namespace, name).await?;
        records += usize::from(live.is_some_and(|live| text(&live, "/metadata/uid") == record.uid));
    }
    if status == Status::Deployed && records == 0 {
        return Ok(None);
    }
    let strangers = if status == Status::Deployed {
        Vec::new()
    } else {
        strangers::look(cluster, &*cluster.discovery(false).await?, &stored).await?.strangers
    };
    let status = status.to_string();
    Ok(Some(LeftOver { plan: stored.plan, revision, status, records, strangers }))
}
