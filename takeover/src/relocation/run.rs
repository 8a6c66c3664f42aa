//! Carrying a move out, so that a kill between any two calls can be finished by the next run.

use helm_rs::apply::ownership::{
    self, MANAGED_BY, MANAGED_BY_LABEL, RELEASE_NAME, RELEASE_NAMESPACE,
};
use helm_rs::apply::{Cancel, FIELD_MANAGER, Observer};
use helm_rs::cluster::{Cluster, ClusterError, ErrorKind, Target, WriteOptions};
use serde_json::{Value, json};

use super::{Outcome, Prepared, Request, prepare};
use crate::adopt::found::records_of;
use crate::place::{Place, kind_name};
use crate::plan::{Consent, PlanError};
use crate::run::backup::{self, BackupError, Retired};
use crate::run::change;
use crate::run::lock::{self, Lock, LockError};
use crate::run::restore::RestoreError;
use crate::run::stored::{StoredError, StoredPlan};
use crate::run::{Denied, Fenced};
use crate::survey::{read, resource_of, text};

/// What was done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// The digest of the plan that was carried out.
    pub digest: String,
    /// Whether an earlier run had begun.
    pub resumed: bool,
    /// Whether the release was there already: nothing was left to be done.
    pub nothing: bool,
    /// Records that were written.
    pub records: usize,
    /// Objects whose ownership metadata was changed.
    pub objects: usize,
    /// What became of the old records.
    pub retired: Retired,
}

/// Why a move ended.
#[derive(Debug, thiserror::Error)]
pub enum MoveError {
    /// The answer is no.
    #[error(transparent)]
    Denied(#[from] Denied),
    /// There is no lock.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// No plan can be made.
    #[error(transparent)]
    Plan(Box<PlanError>),
    /// The stored plan.
    #[error(transparent)]
    Stored(#[from] StoredError),
    /// The old records cannot be backed up or deleted.
    #[error(transparent)]
    Backup(#[from] BackupError),
    /// An object's ownership metadata cannot be changed.
    #[error(transparent)]
    Ownership(Box<RestoreError>),
    /// A request failed.
    #[error("{doing}")]
    Cluster {
        /// What was being done.
        doing: String,
        /// What the cluster says.
        source: ClusterError,
    },
    /// Somebody else wrote to the release meanwhile.
    #[error(
        "{what}: somebody else is at work on the release. No old record was deleted; stop the other \
         tool, then `{restore}` undoes what was begun"
    )]
    Changed {
        /// What changed.
        what: String,
        /// The command that undoes it.
        restore: String,
    },
    /// The end was asked for.
    #[error("stopped, as was asked; run it again to go on")]
    Cancelled,
}

impl From<PlanError> for MoveError {
    fn from(error: PlanError) -> Self {
        Self::Plan(Box::new(error))
    }
}

impl MoveError {
    /// Whether the answer is no, with nothing written but the lock.
    pub fn is_refusal(&self) -> bool {
        matches!(
            self,
            Self::Denied(_)
                | Self::Stored(StoredError::Content { .. })
                | Self::Lock(LockError::Held { .. })
        ) || matches!(self, Self::Plan(error) if matches!(**error, PlanError::Rights(_)))
    }
}

fn failed(doing: impl Into<String>) -> impl FnOnce(ClusterError) -> MoveError {
    let doing = doing.into();
    move |source| MoveError::Cluster { doing, source }
}

/// Carries a plan out, or finishes one. `digest` is the consent to a plan by name; without one,
/// only what needs no consent, or was begun, is done. `accepts` tells of each consent that the plan
/// asks for whether it was given. `holder` names this run, and no other.
///
/// # Errors
/// [`MoveError`]; [`MoveError::is_refusal`] tells whether something was begun.
pub async fn carry_out(
    request: &Request<'_>,
    digest: Option<&str>,
    accepts: impl Fn(&Consent) -> bool,
    holder: &str,
    observer: &dyn Observer,
    cancel: &Cancel,
) -> Result<Moved, MoveError> {
    // Nothing is written, not even the lock, where the answer is no.
    consented(&prepare(request).await?, digest, &accepts)?;
    let leases = request.leases();
    let lock = lock::acquire(&request.cluster, request.clock, leases, holder, observer).await?;
    let fenced = Fenced::new(&request.cluster, &lock);
    let result = locked(request, &lock, &fenced, digest, &accepts, cancel).await;
    lock.release().await;
    result
}

/// Whether a plan may be carried out.
fn consented(
    prepared: &Prepared,
    digest: Option<&str>,
    accepts: &impl Fn(&Consent) -> bool,
) -> Result<(), Denied> {
    let plan = &prepared.plan;
    if plan.is_refused() {
        return Err(Denied::Refused { refusals: plan.refusals.clone() });
    }
    Denied::other_plan(digest, &plan.digest, || None)?;
    Denied::without_consent(&plan.consent, |consent| digest.is_some() && accepts(consent), || None)
}

async fn locked(
    request: &Request<'_>,
    lock: &Lock<'_>,
    cluster: &Fenced<'_>,
    digest: Option<&str>,
    accepts: &impl Fn(&Consent) -> bool,
    cancel: &Cancel,
) -> Result<Moved, MoveError> {
    let go_on = || if cancel.is_cancelled() { Err(MoveError::Cancelled) } else { Ok(()) };
    let place = request.place();
    let prepared = lock.keep_reading(Box::pin(prepare(request))).await??;
    consented(&prepared, digest, accepts)?;
    let mut done = Moved { digest: prepared.plan.digest.clone(), ..Moved::default() };
    let Some(stored) = prepared.stored else { return Ok(Moved { nothing: true, ..done }) };
    done.resumed = prepared.plan.outcome == Outcome::Resume;
    go_on()?;
    if !done.resumed {
        stored.write(cluster, &place).await?;
    }
    let secured = backup::back_up(cluster, &place, &stored.plan.records).await?;
    for record in &prepared.records {
        go_on()?;
        done.records += usize::from(create(cluster, &place, record).await?);
    }
    done.objects = own(request, cluster, &place, &stored, &go_on).await?;
    go_on()?;
    unchanged(request, cluster, &place, &stored).await?;
    // What a reader finds counts, and nothing else.
    for record in &prepared.records {
        let live = live(cluster, record).await?;
        if !live.is_some_and(|live| is_same(&live, record)) {
            return Err(changed(&place, format!("{} is not what was written", title(record))));
        }
    }
    done.retired = backup::retire(cluster, &place, &stored.plan.records).await?;
    done.retired.backups.splice(0..0, secured.backups);
    Ok(done)
}

fn title(record: &Value) -> String {
    let [kind, namespace, name] =
        ["/kind", "/metadata/namespace", "/metadata/name"].map(|pointer| text(record, pointer));
    format!("{kind} {namespace}/{name}")
}

fn changed(place: &Place, what: String) -> MoveError {
    MoveError::Changed { what, restore: place.words.restore.to_string() }
}

fn target(record: &Value) -> Target {
    let resource = resource_of(text(record, "/kind"));
    Target::new(&resource, text(record, "/metadata/namespace"), text(record, "/metadata/name"))
}

async fn live(cluster: &dyn Cluster, record: &Value) -> Result<Option<Value>, MoveError> {
    let (namespace, name) = (text(record, "/metadata/namespace"), text(record, "/metadata/name"));
    read(cluster, &resource_of(text(record, "/kind")), namespace, name)
        .await
        .map_err(failed(format!("read {}", title(record))))
}

/// Whether two objects hold the same record.
fn is_same(live: &Value, record: &Value) -> bool {
    ["/data", "/metadata/labels", "/metadata/annotations", "/type", "/immutable"]
        .into_iter()
        .all(|pointer| live.pointer(pointer) == record.pointer(pointer))
}

/// Writes a record; whether it was not there. One that is there and equal counts.
async fn create(cluster: &dyn Cluster, place: &Place, record: &Value) -> Result<bool, MoveError> {
    let options =
        WriteOptions { field_manager: FIELD_MANAGER.to_owned(), ..WriteOptions::default() };
    match cluster.create(&target(record), record, &options).await {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            match live(cluster, record).await? {
                Some(live) if is_same(&live, record) => Ok(false),
                _ => Err(changed(place, format!("{} is there, and is another", title(record)))),
            }
        }
        Err(error) => Err(failed(format!("write {}", title(record)))(error)),
    }
}

/// Gives the objects their new owner; how many were changed.
async fn own(
    request: &Request<'_>,
    cluster: &dyn Cluster,
    place: &Place,
    stored: &StoredPlan,
    go_on: &impl Fn() -> Result<(), MoveError>,
) -> Result<usize, MoveError> {
    let (from, to) = (&request.from, &request.to);
    let discovery =
        cluster.discovery(false).await.map_err(failed("read what the server serves"))?;
    let owner = json!({
        "labels": { MANAGED_BY_LABEL: MANAGED_BY },
        "annotations": { RELEASE_NAME: to.release, RELEASE_NAMESPACE: to.namespace },
    });
    let mut count = 0;
    for object in &stored.objects {
        let Some(item) = object.item(&discovery) else { continue };
        go_on()?;
        let ours = |live: &Value| {
            let is_ours = ownership::check(live, &from.release, &from.namespace).is_ok();
            is_ours.then(|| json!({ "metadata": owner }))
        };
        if change(cluster, &item, ours)
            .await
            .map_err(|error| MoveError::Ownership(Box::new(error)))?
        {
            count += 1;
            continue;
        }
        // It is gone, or an earlier run did it; else it is another's now.
        match cluster.get(&item.target).await {
            Ok(live) if ownership::check(&live, &to.release, &to.namespace).is_ok() => {}
            Err(error) if error.is_not_found() => {}
            Ok(_) => {
                return Err(changed(place, format!("{} has another owner now", item.target)));
            }
            Err(error) => return Err(failed(format!("read {}", item.target))(error)),
        }
    }
    Ok(count)
}

/// Makes sure that nobody added a revision to the old history, or to the new one.
async fn unchanged(
    request: &Request<'_>,
    cluster: &dyn Cluster,
    place: &Place,
    stored: &StoredPlan,
) -> Result<(), MoveError> {
    let numbers: Vec<i64> = stored.plan.records.iter().map(|record| record.revision).collect();
    for at in [&request.from, &request.to] {
        let kind = kind_name(at.records);
        for record in records_of(cluster, kind, &at.release, &at.namespace).await? {
            let name = text(&record, "/metadata/name");
            let revision = name.rsplit_once(".v").and_then(|(_, number)| number.parse().ok());
            if !revision.is_some_and(|revision| numbers.contains(&revision)) {
                return Err(changed(place, format!("{} is new", title_of(kind, &record))));
            }
        }
    }
    Ok(())
}

/// A record's object by a kind that a list does not have.
fn title_of(kind: &str, record: &Value) -> String {
    format!("{kind} {}/{}", text(record, "/metadata/namespace"), text(record, "/metadata/name"))
}
