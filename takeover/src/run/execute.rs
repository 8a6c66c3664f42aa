//! The takeover, in its order, and what is left of one that was killed.

use std::sync::Arc;
use std::time::Duration;

use helm_rs::apply::{Cancel, FIELD_MANAGER, Item, Observer, WaitError, WaitOptions, wait};
use helm_rs::cluster::{
    Cluster, ClusterError, DeleteOptions, Discovery, ErrorKind, Kind, Target, WriteOptions,
};
use helm_rs::error_chain;
use helm_rs::release::storage::{Labels, ObjectDriver, Storage, StorageError};
use helm_rs::release::{Record, Status};
use serde_json::json;

use super::Fenced;
use super::backup::{self, BackupError, Retired};
use super::error::{Denied, RunError};
use super::lock::{self, Lock};
use super::stored::{StoredObject, StoredPlan};
use super::strangers::Live;
use super::{change, own, record, rights, strangers};
use crate::gate;
use crate::job::Summary;
use crate::place::Place;
use crate::plan::{Key, Outcome, Plan, Prepared, Refusal};
use crate::rendered::Rendered;
use crate::subject::Subject;
use crate::survey::{builtin, text};

/// How often a write is tried again when the object changed in between.
const TRIES: usize = 5;

/// A takeover that is to be made.
pub struct Run<'a, S> {
    /// What is planned once more, inside the lock.
    pub request: S,
    /// The digest that was consented to; none to finish what an earlier consent began.
    pub digest: Option<String>,
    /// Whether changes of the running data plane were consented to.
    pub accept_changes: bool,
    /// Whether the gate's findings were consented to.
    pub accept_diff: bool,
    /// The name of this run: host and process.
    pub holder: String,
    /// Who hears of it.
    pub observer: &'a dyn Observer,
    /// Asks for the end.
    pub cancel: &'a Cancel,
    /// How long the rollout may take.
    pub timeout: Duration,
}

/// What was done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// The digest of the plan that was carried out.
    pub digest: String,
    /// Whether an earlier run had begun.
    pub resumed: bool,
    /// Whether Cilium was ichor's already: nothing was left to be done.
    pub nothing: bool,
    /// Ichor's revision.
    pub revision: i64,
    /// Objects that were patched.
    pub patched: Vec<String>,
    /// Objects that were created.
    pub created: Vec<String>,
    /// Objects that were deleted.
    pub deleted: Vec<String>,
    /// Objects that were as they should be.
    pub unchanged: usize,
    /// The plan that was carried out, in short, by this run or an earlier one, with the chart that
    /// the release has now; none when ichor's records have no such plan.
    pub summary: Option<Summary>,
    /// Whether it was a change of ichor's own release.
    pub changed: bool,
    /// What became of the foreign records.
    pub records: Retired,
    /// What somebody else has to do now.
    pub left: Vec<String>,
}

/// Makes the takeover, or finishes one.
///
/// # Errors
/// [`RunError`]; [`RunError::is_refusal`] tells whether something was begun.
pub async fn take_over<S: Subject>(run: &Run<'_, S>) -> Result<Done, RunError> {
    let (cluster, clock, place) = (run.request.cluster(), run.request.clock(), run.request.place());
    if !rights::check_own(run).await? {
        if place.is_shared {
            return Err(Denied::by(no_namespace(place)).into());
        }
        create_namespace(&**cluster, place).await?;
    }
    let leases = run.request.leases();
    let lock = lock::acquire(cluster, clock, leases, &run.holder, run.observer).await?;
    let fenced = Fenced::new(cluster, &lock);
    let result = locked(run, &lock, &fenced).await;
    // A run that was killed releases nothing.
    let killed = matches!(&result, Err(error) if is_killed(error));
    if !killed {
        lock.release().await;
    }
    result
}

pub(super) fn is_killed(error: &RunError) -> bool {
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = source {
        if let Some(error) = error.downcast_ref::<ClusterError>() {
            return error.kind() == ErrorKind::Killed;
        }
        source = error.source();
    }
    false
}

/// Only ichor's own namespace is made; a release's is the user's.
pub(crate) fn no_namespace(place: &Place) -> Refusal {
    let home = &place.home;
    Refusal {
        reason: "Namespace".to_owned(),
        message: format!(
            "namespace {home}, which the records are to lie in, does not exist: create it first \
             (`kubectl create namespace {home}`)"
        ),
    }
}

/// What made the release is no takeover.
pub(crate) fn another_action(place: &Place) -> Refusal {
    Refusal {
        reason: "Taken".to_owned(),
        message: format!(
            "{} is there already, and another action made it (Secret {}/{}): `{}` undoes that one",
            place.words.what, place.home, place.plan, place.words.restore
        ),
    }
}

async fn create_namespace(cluster: &dyn Cluster, place: &Place) -> Result<(), RunError> {
    let namespaces = builtin("v1", "Namespace", "namespaces", false);
    let doing = || format!("create namespace {}", place.home);
    let object = json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": place.home },
    });
    let target = Target::new(&namespaces, "", &place.home);
    match cluster.create(&target, &object, &options()).await {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(source) => Err(RunError::Object { doing: doing(), source }),
    }
}

fn options() -> WriteOptions {
    WriteOptions { field_manager: FIELD_MANAGER.to_owned(), ..WriteOptions::default() }
}

async fn locked<S: Subject>(
    run: &Run<'_, S>,
    lock: &Lock<'_>,
    cluster: &Fenced<'_>,
) -> Result<Done, RunError> {
    if run.request.is_change() {
        return Box::pin(change::locked(run, lock, cluster)).await;
    }
    let (clock, place) = (run.request.clock(), run.request.place());
    let mut driver = ObjectDriver::new(cluster, clock, place.records, &place.home);
    FIELD_MANAGER.clone_into(&mut driver.field_manager);
    let storage = Storage::new(&driver);
    let last = own::newest(place, &storage).await?;
    if let Some(refusal) = last.as_ref().and_then(|last| last.unfinished_action(place)) {
        return Err(Denied::by(refusal).into());
    }
    let stored = match &last {
        None => None,
        Some(_) => StoredPlan::read(cluster, place).await?,
    };
    let is_another = |stored: &StoredPlan| stored.plan.schema_version != run.request.schema();
    if stored.as_ref().is_some_and(is_another) {
        return Err(Denied::by(another_action(place)).into());
    }
    let now = clock.now().to_string();
    let mut done = Done::default();
    let Work { stored, mut record, live } = match last {
        Some(newest @ own::Newest { status: Status::Deployed, .. }) => {
            return deployed(run, lock, cluster, stored, &newest).await;
        }
        Some(own::Newest { stored: mut last, revision, status, .. }) => {
            // Everything that may refuse comes before the first write.
            let resumed = resumable(run, cluster, stored.as_ref()).await?;
            done.resumed = resumed.is_some();
            let work = match (stored, resumed) {
                (Some(mut stored), Some(live)) => {
                    let manifest = last.record.manifest().map_err(StorageError::Field)?;
                    stored.fill(place, &manifest, &*discovery(cluster).await?)?;
                    rights::check_stored(run, &stored).await?;
                    let record = record::again(&last.record, revision + 1, &now)
                        .map_err(|error| RunError::NoRecord { reason: error.to_string() })?;
                    Work { stored, record, live }
                }
                (begun, _) => {
                    let mut work = fresh(run, lock, revision + 1, &now).await?;
                    if let Some(begun) = &begun {
                        work.stored.inherit(begun, &work.live);
                    }
                    work
                }
            };
            run.observer.log(&format!("going on after revision {revision}, which is {status}"));
            if status.is_pending() {
                set_status(&mut last.record, &Status::Failed, record::DIED)?;
                storage.update(&last.record, &last.labels).await?;
            }
            if !done.resumed {
                work.stored.write(cluster, place).await?;
            }
            work
        }
        None => {
            let mut work = fresh(run, lock, 1, &now).await?;
            // What was done under this name before can be undone after this.
            if place.is_shared
                && let Some(earlier) = StoredPlan::earlier(cluster, place).await?
            {
                work.stored.keep(earlier, place)?;
            }
            work.stored.write(cluster, place).await?;
            work
        }
    };
    stored.plan.digest.clone_into(&mut done.digest);
    done.summary = Some(stored.plan.summary());
    done.revision = record.revision().map_err(StorageError::Field)?;
    let (digest, revision) = (&done.digest, done.revision);
    run.observer.log(&format!("plan {digest}: writing revision {revision}, then its objects"));
    storage.create(&record, &Labels::new()).await?;
    let written = write_and_wait(run, cluster, &stored, live, &mut done).await;
    if let Err(error) = written {
        if !is_killed(&error) {
            let why = format!("Takeover failed: {}", error_chain(&error));
            set_status(&mut record, &Status::Failed, &why)?;
            // The error itself matters more than that it could not be recorded.
            drop(storage.update(&record, &Labels::new()).await);
        }
        return Err(error);
    }
    set_status(&mut record, &Status::Deployed, record::COMPLETE)?;
    storage.update(&record, &Labels::new()).await?;
    run.observer.log("the record is deployed; now the foreign records");
    done.records = backup::retire(cluster, run.request.place(), &stored.plan.records).await?;
    done.left = left(&stored.plan);
    Ok(done)
}

/// What is carried out.
struct Work {
    /// The plan as it is stored.
    stored: StoredPlan,
    /// Ichor's record of it, pending.
    record: Record,
    /// The plan's objects as they were read last.
    live: Vec<Live>,
}

/// Whether what was begun is finished by its own plan, and not by a new one: the consent is to that
/// plan. Then every object must be in its state before or after that plan's write; the live
/// objects.
pub(super) async fn resumable<S: Subject>(
    run: &Run<'_, S>,
    cluster: &dyn Cluster,
    stored: Option<&StoredPlan>,
) -> Result<Option<Vec<Live>>, RunError> {
    let Some(stored) = stored.filter(|stored| run.request.resumes(stored)) else {
        return Ok(None);
    };
    if run.digest.as_ref().is_some_and(|digest| *digest != stored.plan.digest) {
        return Ok(None);
    }
    let looked = strangers::look(cluster, &*discovery(cluster).await?, stored).await?;
    if looked.strangers.is_empty() {
        Ok(Some(looked.live))
    } else {
        let look = run.request.place().words.look.to_string();
        Err(RunError::Stranger { look, objects: looked.strangers })
    }
}

/// What is left to do when ichor's record is deployed: foreign records, or nothing.
async fn deployed<S: Subject>(
    run: &Run<'_, S>,
    lock: &Lock<'_>,
    cluster: &Fenced<'_>,
    stored: Option<StoredPlan>,
    newest: &own::Newest,
) -> Result<Done, RunError> {
    let revision = newest.revision;
    let Some(stored) = stored else { return check_done(run, lock, revision).await };
    let live = match backup::live(cluster, &stored.plan.records).await {
        Err(BackupError::Cluster { source, doing }) if source.kind() == ErrorKind::Forbidden => {
            // Whether they are gone cannot be seen, as by a Job whose rights on them ended.
            rights::check_records(run, &stored.plan.records).await?;
            return Err(BackupError::Cluster { source, doing }.into());
        }
        live => live?,
    };
    if live.is_empty() {
        let done = check_done(run, lock, revision).await?;
        // Changes since then may have brought another chart than the takeover's.
        let mut summary = stored.plan.summary();
        if let Ok(chart) = newest.stored.record.chart() {
            summary.chart = chart.metadata.version;
        }
        return Ok(Done { left: left(&stored.plan), summary: Some(summary), ..done });
    }
    Denied::other_plan(run.digest.as_deref(), &stored.plan.digest, || {
        Some(Box::new(stored.plan.summary()))
    })?;
    rights::check_records(run, &stored.plan.records).await?;
    run.observer.log("the record is deployed; what is left is to retire the foreign ones");
    Ok(Done {
        resumed: true,
        revision,
        records: backup::retire(cluster, run.request.place(), &stored.plan.records).await?,
        left: left(&stored.plan),
        summary: Some(stored.plan.summary()),
        digest: stored.plan.digest,
        ..Done::default()
    })
}

/// What this program does not do and somebody has to.
pub(super) fn left(plan: &Plan) -> Vec<String> {
    if !plan.found.talos {
        return Vec::new();
    }
    vec![
        "the nodes run Talos, which was not asked: drop the inline manifest that holds Cilium from \
         the machine configuration of every control plane, if there is one"
            .to_owned(),
        "Talos 1.13 and later: after that, take the adopted objects out of the ConfigMap \
         kube-system/talos-bootstrap-manifests-inventory"
            .to_owned(),
    ]
}

pub(super) fn set_status(
    record: &mut Record,
    status: &Status,
    description: &str,
) -> Result<(), StorageError> {
    record.set_status(status, description).map_err(StorageError::Field)
}

/// Nothing is left to do but to say so.
async fn check_done<S: Subject>(
    run: &Run<'_, S>,
    lock: &Lock<'_>,
    revision: i64,
) -> Result<Done, RunError> {
    let prepared = lock.keep_reading(Box::pin(run.request.prepare())).await??;
    if prepared.plan.outcome == Outcome::Nothing {
        return Ok(Done { nothing: true, revision, ..Done::default() });
    }
    let refusals = if prepared.plan.is_refused() {
        prepared.plan.refusals
    } else {
        vec![Refusal {
            reason: "Unknown".to_owned(),
            message: format!(
                "ichor's record is deployed, but a foreign release holds {} too, and no stored \
                     plan tells how that came: remove the record that is not in use",
                run.request.place().words.what
            ),
        }]
    };
    Err(Denied::Refused { refusals }.into())
}

/// Plans again, and holds the plan against the consent.
async fn fresh<S: Subject>(
    run: &Run<'_, S>,
    lock: &Lock<'_>,
    revision: i64,
    now: &str,
) -> Result<Work, RunError> {
    let prepared = lock.keep_reading(Box::pin(run.request.prepare())).await??;
    let Some(rendered) = consented(run, &prepared)? else {
        return Err(Denied::Refused { refusals: Vec::new() }.into());
    };
    let stored = StoredPlan::of(&prepared);
    let record = record::draft(run.request.place(), rendered, &prepared.values, revision, now, now)
        .map_err(|error| RunError::NoRecord { reason: error.to_string() })?;
    let live = prepared.objects.into_iter().map(|object| object.live).collect();
    Ok(Work { stored, record, live })
}

/// Holds a plan against the consent; what it renders.
pub(super) fn consented<'p, S: Subject>(
    run: &Run<'_, S>,
    prepared: &'p Prepared,
) -> Result<Option<&'p Rendered>, RunError> {
    if prepared.plan.is_refused() {
        return Err(Denied::Refused { refusals: prepared.plan.refusals.clone() }.into());
    }
    let plan = || Some(Box::new(prepared.plan.summary()));
    // A change that asks for no consent is not held up by the one to an earlier plan, which stays
    // beside what is asked for. Of a takeover there is one, and a digest that differs tells that
    // something changed.
    let needs_none = run.request.is_change() && prepared.plan.consent.is_empty();
    if !needs_none {
        Denied::other_plan(run.digest.as_deref(), &prepared.plan.digest, plan)?;
    }
    Denied::without_consent(
        &prepared.plan.consent,
        |consent| match consent.flag.as_str() {
            "--accept-cilium-changes" => run.accept_changes,
            _ => run.accept_diff && run.digest.is_some(),
        },
        plan,
    )?;
    // Until here nothing is written, so that nothing is begun for one who was told to stop.
    if run.cancel.is_cancelled() {
        return Err(RunError::Cancelled);
    }
    Ok(prepared.rendered.as_ref())
}

pub(super) async fn write_and_wait<S: Subject>(
    run: &Run<'_, S>,
    cluster: &Fenced<'_>,
    stored: &StoredPlan,
    live: Vec<Live>,
    done: &mut Done,
) -> Result<(), RunError> {
    let discovery = discovery(cluster).await?;
    let key = Key(stored.key.clone());
    let mut workloads = Vec::new();
    for (object, live) in stored.objects.iter().zip(live) {
        if run.cancel.is_cancelled() {
            return Err(RunError::Cancelled);
        }
        let item = object_item(object, &discovery)?;
        match write(cluster, &key, object, &item, live).await? {
            Written::Created => done.created.push(item.target.to_string()),
            Written::Patched => done.patched.push(item.target.to_string()),
            Written::Unchanged => done.unchanged += 1,
        }
        if matches!(item.kind().kind.as_str(), "DaemonSet" | "Deployment" | "StatefulSet") {
            workloads.push(item);
        }
    }
    delete_gone(run, cluster, &discovery, stored, done).await?;
    run.observer.log(&format!(
        "{} object(s) patched, {} created, {} unchanged; waiting until {} workload(s) are Ready",
        done.patched.len(),
        done.created.len(),
        done.unchanged,
        workloads.len()
    ));
    let wanted = WaitOptions { timeout: run.timeout, jobs: false };
    let waited = wait(cluster, run.request.clock(), &workloads, wanted, run.observer, run.cancel);
    waited.await.map_err(|error| match error {
        WaitError::Cancelled => RunError::Cancelled,
        error => error.into(),
    })
}

/// Deletes what the chart does not render any more: the very object that the plan named.
async fn delete_gone<S: Subject>(
    run: &Run<'_, S>,
    cluster: &Fenced<'_>,
    discovery: &Discovery,
    stored: &StoredPlan,
    done: &mut Done,
) -> Result<(), RunError> {
    for gone in &stored.plan.deletions {
        if run.cancel.is_cancelled() {
            return Err(RunError::Cancelled);
        }
        let kind = Kind::new(&gone.about.api_version, &gone.about.kind);
        // A kind that is not served any more has no objects.
        let Some(resource) = discovery.resource(&kind) else { continue };
        let target = Target::new(resource, &gone.about.namespace, &gone.about.name);
        let options = DeleteOptions { uid: gone.uid.clone(), ..DeleteOptions::default() };
        match cluster.delete(&target, &options).await {
            Ok(_) => done.deleted.push(target.to_string()),
            Err(error) if error.is_not_found() || error.kind() == ErrorKind::Conflict => {}
            Err(source) => {
                let doing = format!("delete {target}");
                return Err(RunError::Object { doing, source });
            }
        }
    }
    Ok(())
}

pub(super) async fn discovery(cluster: &dyn Cluster) -> Result<Arc<Discovery>, RunError> {
    cluster.discovery(false).await.map_err(|source| RunError::Object {
        doing: "read what the server serves".to_owned(),
        source,
    })
}

fn object_item(object: &StoredObject, discovery: &Discovery) -> Result<Item, RunError> {
    object.item(discovery).ok_or_else(|| RunError::NoRecord {
        reason: format!(
            "{} {} is in the stored plan, and the server no longer serves its kind",
            text(&object.desired, "/kind"),
            text(&object.desired, "/metadata/name")
        ),
    })
}

/// What a write did.
enum Written {
    Created,
    Patched,
    Unchanged,
}

/// Writes one object, if it is in its state before or after; any other state is a stranger's.
///
/// `seen` is the object as this run read it, under the lock, when it planned: it is not read once
/// more, since the write names its version, and a creation fails where something is. Only then it
/// is read again.
async fn write(
    cluster: &dyn Cluster,
    key: &Key,
    object: &StoredObject,
    item: &Item,
    seen: Live,
) -> Result<Written, RunError> {
    let title = item.target.to_string();
    let failed =
        |doing: &str, source| RunError::Object { doing: format!("{doing} {title}"), source };
    let changed = || RunError::Changed { object: title.clone() };
    // What is to be created and was not there is not looked for.
    let mut known = (seen.is_some() || object.before.is_empty()).then_some(seen);
    for _ in 0..TRIES {
        let live = match known.take() {
            Some(seen) => seen,
            None => match cluster.get(&item.target).await {
                Ok(live) => Some(live),
                Err(error) if error.is_not_found() => None,
                Err(error) => return Err(failed("read", error)),
            },
        };
        let Some(live) = live else {
            if !object.before.is_empty() {
                return Err(changed());
            }
            match cluster.create(&item.target, &item.value, &options()).await {
                Ok(_) => return Ok(Written::Created),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(failed("create", error)),
            }
        };
        if !object.knows(key, &live) {
            return Err(changed());
        }
        if object.keep {
            return Ok(Written::Unchanged);
        }
        let wrong = |source| RunError::Patch { object: title.clone(), source };
        let from = object.original.as_ref().unwrap_or(&item.value);
        let Some(mut patch) = gate::patch_from(from, &item.value, &live).map_err(wrong)? else {
            return Ok(Written::Unchanged);
        };
        // Only this version: a change in between is looked at first.
        let version = live.pointer("/metadata/resourceVersion").cloned().unwrap_or_default();
        patch.body["metadata"]["resourceVersion"] = version;
        match cluster.patch(&item.target, &patch, &options()).await {
            Ok(after) => {
                let same = after.pointer("/metadata/resourceVersion")
                    == live.pointer("/metadata/resourceVersion");
                return Ok(if same { Written::Unchanged } else { Written::Patched });
            }
            Err(error) if error.kind() == ErrorKind::Conflict => {}
            Err(error) => return Err(failed("patch", error)),
        }
    }
    Err(changed())
}
