//! Carrying a change of ichor's own release out, and finishing one that stopped.
//!
//! ```text
//! plan again, digest ─ stored plan ─ pending record ─ objects ─ deletions ─ wait
//!                                  ─ deployed record ─ records before superseded
//! ```
//!
//! A run that stops leaves a record that is not deployed. The next one goes on by the stored plan, or
//! makes another one, and writes the same revision again: attempts do not add up in the namespace,
//! where the Job may delete nothing.

use helm_rs::apply::FIELD_MANAGER;
use helm_rs::error_chain;
use helm_rs::release::storage::{Labels, ObjectDriver, Storage, StorageError, Stored};
use helm_rs::release::{Record, Status};

use super::error::{Denied, RunError};
use super::execute::{
    Done, Run, consented, discovery, is_killed, resumable, set_status, write_and_wait,
};
use super::lock::Lock;
use super::own::{Own, Records, records};
use super::stored::{Asked, StoredPlan};
use super::strangers::Live;
use super::{Fenced, record, rights};
use crate::plan::{Outcome, Prepared};
use crate::subject::Subject;

/// What is carried out.
struct Work {
    stored: StoredPlan,
    record: Record,
    live: Vec<Live>,
}

/// The change, once the lock is held.
pub(super) async fn locked<S: Subject>(
    run: &Run<'_, S>,
    lock: &Lock<'_>,
    cluster: &Fenced<'_>,
) -> Result<Done, RunError> {
    let (clock, place) = (run.request.clock(), run.request.place());
    let mut driver = ObjectDriver::new(cluster, clock, place.records, &place.home);
    FIELD_MANAGER.clone_into(&mut driver.field_manager);
    let storage = Storage::new(&driver);
    let own = Records::ready(records(place, &storage).await?, place).map_err(Denied::by)?;
    let stored = StoredPlan::read(cluster, place).await?;
    let mut done = Done { changed: true, revision: own.revision, ..Done::default() };
    let now = clock.now().to_string();
    let resumed = match &own.stopped {
        Some(stopped) => resume(run, cluster, stored.as_ref(), stopped, &own, &now).await?,
        None => None,
    };
    done.resumed = resumed.is_some();
    let Work { stored, mut record, live } = if let Some(work) = resumed {
        work
    } else {
        let prepared = lock.keep_reading(Box::pin(run.request.prepare())).await??;
        if prepared.plan.outcome == Outcome::Nothing {
            return nothing(cluster, &storage, run, &prepared, stored.as_ref(), own, done).await;
        }
        let work = fresh(run, prepared, &own, &now)?;
        work.stored.write(cluster, place).await?;
        work
    };
    stored.plan.digest.clone_into(&mut done.digest);
    done.summary = Some(stored.plan.summary());
    run.observer.log(&format!(
        "plan {}: writing revision {}, then its objects",
        done.digest, done.revision
    ));
    match &own.stopped {
        Some(_) => storage.update(&record, &Labels::new()).await?,
        None => storage.create(&record, &Labels::new()).await?,
    }
    if let Err(error) = write_and_wait(run, cluster, &stored, live, &mut done).await {
        if !is_killed(&error) {
            let why = format!("{}failed: {}", record::CHANGE, error_chain(&error));
            set_status(&mut record, &Status::Failed, &why)?;
            // The error itself matters more than that it could not be recorded.
            drop(storage.update(&record, &Labels::new()).await);
        }
        return Err(error);
    }
    set_status(&mut record, &Status::Deployed, record::CHANGE_COMPLETE)?;
    storage.update(&record, &Labels::new()).await?;
    supersede(&storage, [own.deployed].into_iter().chain(own.stale)).await?;
    Ok(done)
}

/// What a change that stopped is finished by, where its plan is what is asked for and nobody changed
/// its objects.
async fn resume<S: Subject>(
    run: &Run<'_, S>,
    cluster: &Fenced<'_>,
    stored: Option<&StoredPlan>,
    stopped: &Stored,
    own: &Own,
    now: &str,
) -> Result<Option<Work>, RunError> {
    let live = match resumable(run, cluster, stored).await {
        // No consent names the stored plan, so that another one may take its place.
        Err(RunError::Stranger { .. }) if run.digest.is_none() => None,
        live => live?,
    };
    let Some(live) = live else { return Ok(None) };
    let Some(mut stored) = stored.cloned() else { return Ok(None) };
    let manifest = stopped.record.manifest().map_err(StorageError::Field)?;
    stored.fill(run.request.place(), &manifest, &*discovery(cluster).await?)?;
    rights::check_stored(run, &stored).await?;
    let mut record = record::again(&stopped.record, own.revision, now)
        .map_err(|error| RunError::NoRecord { reason: error.to_string() })?;
    set_status(&mut record, &Status::PendingUpgrade, record::CHANGE_UNDER_WAY)?;
    run.observer.log(&format!("going on with revision {}, which stopped", own.revision));
    Ok(Some(Work { stored, record, live }))
}

/// A new plan, held against the consent.
fn fresh<S: Subject>(
    run: &Run<'_, S>,
    prepared: Prepared,
    own: &Own,
    now: &str,
) -> Result<Work, RunError> {
    let Some(rendered) = consented(run, &prepared)? else {
        return Err(Denied::Refused { refusals: Vec::new() }.into());
    };
    let first = own.deployed.record.info().map_err(StorageError::Field)?.first_deployed;
    let place = run.request.place();
    let mut record = record::draft(place, rendered, &prepared.values, own.revision, &first, now)
        .map_err(|error| RunError::NoRecord { reason: error.to_string() })?;
    set_status(&mut record, &Status::PendingUpgrade, record::CHANGE_UNDER_WAY)?;
    let stored = StoredPlan::of(&prepared);
    let live = prepared.objects.into_iter().map(|object| object.live).collect();
    Ok(Work { stored, record, live })
}

/// The release has what is asked for: what was asked for is kept, so that it can be taken away
/// again.
async fn nothing<S: Subject>(
    cluster: &Fenced<'_>,
    storage: &Storage<'_>,
    run: &Run<'_, S>,
    prepared: &Prepared,
    stored: Option<&StoredPlan>,
    own: Own,
    done: Done,
) -> Result<Done, RunError> {
    let deployed = own.deployed.record.revision().map_err(StorageError::Field)?;
    let mut plan = StoredPlan::of(prepared);
    if let Some(asked) = &mut plan.asked {
        asked.revision = deployed;
    }
    // The same, asked for by a change that wrote nothing, counts from now on.
    let key = |asked: &Asked| (asked.now.clone(), asked.revision > deployed);
    let before = stored.and_then(|stored| stored.asked.as_ref()).map(key);
    if before != plan.asked.as_ref().map(key) {
        plan.write(cluster, run.request.place()).await?;
    }
    supersede(storage, own.stale).await?;
    let summary = Some(prepared.plan.summary());
    Ok(Done { nothing: true, revision: deployed, summary, ..done })
}

/// Marks records of before.
async fn supersede(
    storage: &Storage<'_>,
    before: impl IntoIterator<Item = Stored>,
) -> Result<(), RunError> {
    for Stored { mut record, labels } in before {
        let description = record.info().map_err(StorageError::Field)?.description;
        set_status(&mut record, &Status::Superseded, &description)?;
        storage.update(&record, &labels).await?;
    }
    Ok(())
}
