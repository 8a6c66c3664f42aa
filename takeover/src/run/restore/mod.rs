//! Back to how it was: foreign records, ownership metadata, the leaves that were changed, and ichor's
//! own records retired.
//!
//! ```text
//! stored plan, backups, live objects ─ find ─► plan ─ records put back ─ objects, each in one write
//!                                              ─ own records retired ─ stored plan taken away
//! ```
//!
//! Each step can be done again: a restore that was killed is finished by the next one. What a
//! takeover created stays and is listed: whether something uses it by now cannot be seen, and
//! nothing is deleted but records.

mod find;
mod leaves;
mod since;

use helm_rs::apply::{Cancel, Observer};
use helm_rs::cluster::{Clock, Cluster, ClusterError};
use helm_rs::release::storage::ObjectKind;
use serde::Serialize;
use serde_json::Value;

use super::backup::{BackupError, Retired, retire};
use super::lock::{LockError, acquire};
use super::put_back::{change, put_back};
use super::stored::{StoredError, StoredPlan};
use super::{Denied, Fenced};
use crate::place::{CILIUM, Deed, Place, lease_of};
use crate::plan::RecordAbout;

pub(super) use find::title;
use find::{Found, find, retired};

/// The form of a restore's plan as JSON.
pub const SCHEMA_VERSION: &str = "ichor.maesh.dev/restore/v1";

/// What a restore would do.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RestorePlan {
    /// [`SCHEMA_VERSION`]
    pub schema_version: String,
    /// What a consent names: `sha256:…`. Empty when the plan refuses.
    pub digest: String,
    /// What is undone: `takeover`, `adoption` or `move`.
    pub undoes: String,
    /// Why nothing is done; empty when something can be.
    pub refusals: Vec<String>,
    /// Records that are put back.
    pub records: Vec<String>,
    /// Objects whose ownership metadata is given back.
    pub objects: Vec<String>,
    /// Leaves that get their former values.
    pub leaves: Vec<LeafBack>,
    /// Leaves that were changed and stay as they are.
    pub left: Vec<LeafLeft>,
    /// Workloads whose pods restart for it.
    pub restarts: Vec<String>,
    /// Objects that were created and stay: by what is undone, and by upgrades since.
    pub created: Vec<String>,
    /// Objects that changed since, so that the restore has to be asked for again.
    pub changed: Vec<String>,
    /// Ichor's own records, which go into a backup.
    pub own: Vec<RecordAbout>,
    /// What comes of Cilium itself, for people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub versions: String,
    /// Earlier moves and adoptions under the same name that can be undone after it.
    pub earlier: usize,
}

/// A leaf that gets its former value back.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LeafBack {
    /// The object.
    pub object: String,
    /// The leaf.
    pub path: String,
    /// What is there; null when there is nothing. Credentials are hidden.
    pub live: Option<Value>,
    /// What was there.
    pub former: Option<Value>,
}

/// A leaf that was changed and stays.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LeafLeft {
    /// The object.
    pub object: String,
    /// The leaf.
    pub path: String,
    /// Why it stays.
    pub why: String,
}

impl RestorePlan {
    /// Whether it needs a consent by its digest.
    pub const fn asks(&self) -> bool {
        !self.changed.is_empty()
    }
}

/// What was done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    /// Records that were put back, or were there.
    pub records: Vec<String>,
    /// Objects whose ownership metadata was given back.
    pub objects: usize,
    /// Leaves that got their former values.
    pub leaves: usize,
    /// What became of ichor's own records.
    pub own: Retired,
}

/// Why a restore ended.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// It is refused.
    #[error("refused: {}", refusals.join("; "))]
    Refused {
        /// Why.
        refusals: Vec<String>,
    },
    /// It is not what was consented to.
    #[error(transparent)]
    Denied(#[from] Denied),
    /// Objects changed since.
    #[error(
        "refused: {} object(s) changed since the {undoes} ({}); to restore all the same, ask again \
         with the digest {digest}", changed.len(), changed.join(", ")
    )]
    Changed {
        /// What is undone.
        undoes: String,
        /// Which.
        changed: Vec<String>,
        /// The digest to ask again with.
        digest: String,
    },
    /// There is no lock.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The stored plan.
    #[error(transparent)]
    Stored(#[from] StoredError),
    /// The backups.
    #[error(transparent)]
    Backup(#[from] BackupError),
    /// A request failed.
    #[error("{doing}")]
    Cluster {
        /// What was being done.
        doing: String,
        /// What the cluster says.
        source: ClusterError,
    },
    /// An object is written all the time.
    #[error("{object} changes all the time, so that it cannot be given back: try again")]
    Busy {
        /// The object.
        object: String,
    },
    /// The end was asked for.
    #[error("stopped, as was asked")]
    Cancelled,
    /// Another record came to stand where one is put back, meanwhile.
    #[error("{}", find::taken(kind, namespace, name))]
    Taken {
        /// `Secret` or `ConfigMap`.
        kind: String,
        /// The record's namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
}

impl RestoreError {
    /// Whether the answer is no, with nothing written but the lock.
    pub const fn is_refusal(&self) -> bool {
        matches!(
            self,
            Self::Refused { .. }
                | Self::Denied(_)
                | Self::Changed { .. }
                | Self::Stored(StoredError::Content { .. })
                | Self::Lock(LockError::Held { .. })
        )
    }
}

pub(super) fn failed(doing: impl Into<String>) -> impl FnOnce(ClusterError) -> RestoreError {
    let doing = doing.into();
    move |source| RestoreError::Cluster { doing, source }
}

/// A restore that is to be made.
pub struct Restore<'a> {
    /// The release.
    pub place: &'a Place,
    /// Leaves that were changed stay as they are.
    pub keep_leaves: bool,
    /// The digest that was consented to; none where nothing changed since.
    pub digest: Option<&'a str>,
    /// The name of this run: host and process.
    pub holder: &'a str,
    /// Hears that the lock is waited for.
    pub observer: &'a dyn Observer,
    /// Asks for the end.
    pub cancel: &'a Cancel,
}

/// The place of a release that was adopted or moved, as its stored plan says; without one, that of
/// one in Secrets.
///
/// # Errors
/// [`StoredError`]
pub async fn place_of(
    cluster: &dyn Cluster,
    release: &str,
    namespace: &str,
) -> Result<Place, StoredError> {
    let of = |records, deed| Place::release(release, namespace, records, deed, String::new());
    let place = of(ObjectKind::Secret, Deed::Adoption);
    // Which driver holds the records is in the stored plan, whose name is the same for both.
    let Some(stored) = StoredPlan::read(cluster, &place).await? else { return Ok(place) };
    let is_move = stored.plan.schema_version == crate::relocation::SCHEMA_VERSION;
    let is_map = stored.plan.release.is_some_and(|release| release.records == "ConfigMap");
    Ok(of(
        if is_map { ObjectKind::ConfigMap } else { ObjectKind::Secret },
        if is_move { Deed::Move } else { Deed::Adoption },
    ))
}

/// Says what a restore of Cilium would do. Nothing is written.
///
/// # Errors
/// [`RestoreError`] when the cluster cannot be read.
pub async fn plan_restore(cluster: &dyn Cluster) -> Result<RestorePlan, RestoreError> {
    plan_restore_at(&CILIUM, cluster, false).await
}

/// [`plan_restore`] of any release that was taken over or moved. With `keep_leaves`, leaves that
/// were changed stay as they are.
///
/// # Errors
/// [`RestoreError`] when the cluster cannot be read.
pub async fn plan_restore_at(
    place: &Place,
    cluster: &dyn Cluster,
    keep_leaves: bool,
) -> Result<RestorePlan, RestoreError> {
    Ok(Box::pin(find(place, cluster, keep_leaves)).await?.plan)
}

/// Puts everything of Cilium back. `digest` is the consent to objects that changed since. The
/// observer hears that the lock is waited for.
///
/// # Errors
/// [`RestoreError`]
pub async fn restore(
    cluster: &std::sync::Arc<dyn Cluster>,
    clock: &dyn Clock,
    holder: &str,
    digest: Option<&str>,
    observer: &dyn Observer,
    cancel: &Cancel,
) -> Result<Restored, RestoreError> {
    let place = &CILIUM;
    let restore = Restore { place, keep_leaves: false, digest, holder, observer, cancel };
    restore_at(&restore, cluster, clock).await
}

/// Puts everything of a release back that was taken over or moved.
///
/// # Errors
/// [`RestoreError`]
pub async fn restore_at(
    restore: &Restore<'_>,
    cluster: &std::sync::Arc<dyn Cluster>,
    clock: &dyn Clock,
) -> Result<Restored, RestoreError> {
    let place = restore.place;
    // Nothing is written, not even the lock, where there is nothing to restore.
    let found = Box::pin(find(place, &**cluster, restore.keep_leaves)).await?;
    consented(restore, &found.plan)?;
    let mut leases = std::collections::BTreeSet::from([place.lease_name()]);
    if place.is_shared {
        let records = found.stored.iter().flat_map(|stored| &stored.plan.records);
        leases.extend(records.map(|record| lease_of(&record.release, &record.about.namespace)));
    }
    let lock = acquire(cluster, clock, leases, restore.holder, restore.observer).await?;
    let fenced = Fenced::new(cluster, &lock);
    let result = locked(restore, &fenced).await;
    lock.release().await;
    result
}

/// Whether a plan may be carried out.
fn consented(restore: &Restore<'_>, plan: &RestorePlan) -> Result<(), RestoreError> {
    if !plan.refusals.is_empty() {
        return Err(RestoreError::Refused { refusals: plan.refusals.clone() });
    }
    if plan.asks() && restore.digest != Some(plan.digest.as_str()) {
        return Err(RestoreError::Changed {
            undoes: plan.undoes.clone(),
            changed: plan.changed.clone(),
            digest: plan.digest.clone(),
        });
    }
    Ok(Denied::other_plan(restore.digest, &plan.digest, || None)?)
}

async fn locked(restore: &Restore<'_>, cluster: &dyn Cluster) -> Result<Restored, RestoreError> {
    let (place, cancel) = (restore.place, restore.cancel);
    let go_on = || if cancel.is_cancelled() { Err(RestoreError::Cancelled) } else { Ok(()) };
    let Found { plan, stored, backups, objects, is_done } =
        Box::pin(find(place, cluster, restore.keep_leaves)).await?;
    consented(restore, &plan)?;
    let mut restored = Restored::default();
    let Some(stored) = stored else { return Ok(restored) };
    if !is_done {
        for (backup, record) in retired(Some(&stored), &backups) {
            go_on()?;
            put_back(cluster, backup, record).await?;
            restored.records.push(title(record));
        }
        for object in &objects {
            go_on()?;
            let made = |live: &Value| leaves::patch(&stored, object, live);
            if change(cluster, &object.item, made).await? {
                restored.objects += usize::from(object.stored.former.is_some());
                restored.leaves += object.back.len();
            }
        }
        go_on()?;
        restored.own = retire(cluster, place, &plan.own).await?;
    }
    // What is undone must not be taken for what was done last.
    if place.is_shared {
        stored.take_away(cluster, place).await?;
    }
    Ok(restored)
}
