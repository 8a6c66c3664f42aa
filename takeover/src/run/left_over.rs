//! What an earlier run left: a takeover that was begun and is not complete.

use cilium::pinned::{RECORD_NAMESPACE, RELEASE};
use helm_rs::cluster::{Clock, Cluster, ClusterError};
use helm_rs::release::Status;
use helm_rs::release::storage::{ObjectDriver, ObjectKind, Storage, StorageError};

use super::stored::{StoredError, StoredPlan};
use crate::plan::Plan;
use crate::survey::{config_maps, read, secrets, text};

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
}

/// Why it cannot be told.
#[derive(Debug, thiserror::Error)]
pub enum LeftOverError {
    /// Ichor's records.
    #[error("ichor's record")]
    Record(#[from] StorageError),
    /// The stored plan.
    #[error(transparent)]
    Stored(#[from] StoredError),
    /// A foreign record.
    #[error("a foreign record")]
    Cluster(#[from] ClusterError),
}

/// Looks for a takeover that was begun and is not complete. The next run finishes it by its own
/// plan, whatever a new plan would say.
///
/// # Errors
/// [`LeftOverError`]
pub async fn left_over(
    cluster: &dyn Cluster,
    clock: &dyn Clock,
) -> Result<Option<LeftOver>, LeftOverError> {
    let driver = ObjectDriver::new(cluster, clock, ObjectKind::Secret, RECORD_NAMESPACE);
    let last = match Storage::new(&driver).last(RELEASE).await {
        Ok(last) => last,
        Err(StorageError::NotFound | StorageError::NoRevision { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let Some(stored) = StoredPlan::read(cluster).await? else { return Ok(None) };
    let status = last.record.info().map_err(StorageError::Field)?.status();
    let revision = last.record.revision().map_err(StorageError::Field)?;
    let mut records = 0;
    for record in &stored.plan.records {
        let resource = if record.about.kind == "Secret" { secrets() } else { config_maps() };
        let (namespace, name) = (&record.about.namespace, &record.about.name);
        let live = read(cluster, &resource, namespace, name).await?;
        records += usize::from(live.is_some_and(|live| text(&live, "/metadata/uid") == record.uid));
    }
    if status == Status::Deployed && records == 0 {
        return Ok(None);
    }
    Ok(Some(LeftOver { plan: stored.plan, revision, status: status.to_string(), records }))
}
