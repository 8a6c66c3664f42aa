//! Reading what a takeover left.

use std::collections::{BTreeMap, BTreeSet};

use cilium::pinned::{NAMESPACE, RECORD_NAMESPACE, RELEASE};
use futures::stream::{self, StreamExt as _};
use helm_rs::apply::{Item, ownership};
use helm_rs::cluster::{
    Clock, Cluster, ClusterError, Discovery, ErrorKind, ListQuery, Resource, list_all,
};
use helm_rs::error_chain;
use helm_rs::release::storage::{ObjectDriver, ObjectKind, Storage, StorageError};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use super::{Facts, StatusError};
use crate::gate::patch;
use crate::place::CILIUM;
use crate::plan::Key;
use crate::rendered::manifest_objects;
use crate::run::backup::{BackedUp, Backup, backups, hash_of};
use crate::run::execute::left;
use crate::run::lock::DURATION;
use crate::run::own::{unfinished_action, was_deployed};
use crate::run::stored::{StoredError, StoredObject, StoredPlan};
use crate::survey::{builtin, config_maps, read as read_object, secrets, text};

/// Requests under way at once.
const CONCURRENCY: usize = 16;

/// Ichor's newest record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Own {
    /// Its revision.
    pub revision: i64,
    /// Its status.
    pub status: String,
}

/// What became of a foreign record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum RecordState {
    /// The very object is there.
    There,
    /// It is gone.
    Gone,
    /// Another object is there that is the same: a restore put it back.
    Back,
    /// Another object of that name is there.
    Another,
    /// This identity may not see it.
    Unknown,
}

/// A foreign record of the stored plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordFact {
    /// Kind, namespace and name.
    pub record: String,
    /// What became of it.
    pub state: RecordState,
    /// The backup that holds it whole; empty for none.
    pub backup: String,
}

/// A backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BackupFact {
    /// The Secret's name.
    pub name: String,
    /// Records that it holds with the hash that it says.
    pub whole: usize,
    /// Records that it says to hold.
    pub records: usize,
    /// Whether it holds ichor's own records, which a restore retired.
    pub own: bool,
}

/// The objects, by what became of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectFacts {
    /// How many there should be.
    pub all: usize,
    /// How many are as the takeover leaves them.
    pub written: usize,
    /// Those that are as they were before.
    pub waiting: Vec<String>,
    /// Those that are neither: somebody else wrote them.
    pub changed: Vec<String>,
    /// Those that are gone.
    pub missing: Vec<String>,
    /// Those whose ownership metadata names somebody else, or nobody.
    pub not_owned: Vec<String>,
}

/// The lock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LockFact {
    /// Who holds it.
    pub holder: String,
    /// When it was renewed last, by the holder's clock.
    pub renewed: String,
    /// Seconds since then, by this program's clock; none when the Lease does not say.
    pub age: Option<i64>,
    /// Whether that is so long ago, by this program's clock, that the next run takes it.
    pub stale: bool,
}

/// A release as real Helm lists it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Release {
    /// `Secret` or `ConfigMap`: Helm lists one kind, by `HELM_DRIVER`.
    pub kind: String,
    /// The namespace of its records.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The newest revision.
    pub revision: i64,
    /// Its status.
    pub status: String,
}

impl Release {
    /// Whether it is ichor's.
    pub fn is_own(&self) -> bool {
        (self.kind.as_str(), self.namespace.as_str(), self.name.as_str())
            == ("Secret", RECORD_NAMESPACE, RELEASE)
    }
}

/// What the judgement needs beside the facts.
#[derive(Clone, Debug, Default)]
pub(super) struct Wants {
    /// Whether there is a stored plan, readable or not.
    pub(super) stored: bool,
    /// Whether a backup holds a live record of ichor's, or one that a restore retired.
    pub(super) own_retired: bool,
    /// What to do about an action on ichor's release that did not end; none for a takeover.
    pub(super) unfinished: Option<String>,
    /// Objects that still name ichor as their owner although they had another one.
    pub(super) not_given_back: Vec<String>,
}

fn failed(doing: impl Into<String>) -> impl FnOnce(ClusterError) -> StatusError {
    let doing = doing.into();
    move |source| StatusError::Cluster { doing, source }
}

/// Ichor's newest record with what it holds.
struct Newest {
    own: Own,
    status: helm_rs::release::Status,
    manifest: String,
}

/// Reads.
pub(super) async fn read(
    cluster: &dyn Cluster,
    clock: &dyn Clock,
) -> Result<(Facts, Wants), StatusError> {
    let mut facts = Facts::default();
    let mut wants = Wants::default();
    let stored = match StoredPlan::read(cluster, &CILIUM).await {
        Ok(stored) => stored,
        Err(StoredError::Cluster { source, .. }) => {
            return Err(failed("read the stored plan")(source));
        }
        Err(error) => {
            wants.stored = true;
            facts.damaged.push(error_chain(&error));
            None
        }
    };
    let newest = newest(cluster, clock, &mut facts).await?;
    let backups = backups(cluster, &CILIUM).await?;
    facts.lock = lock(cluster, clock).await?;
    facts.backups = backups.iter().map(backup_fact).collect();
    let mut names = vec![RELEASE.to_owned()];
    if let Some(stored) = &stored {
        wants.stored = true;
        facts.digest = Some(stored.plan.digest.clone());
        facts.left = left(&stored.plan);
        facts.records = records(cluster, stored, &backups).await?;
        names.extend(stored.plan.records.iter().map(|record| record.release.clone()));
        names.sort();
        names.dedup();
    }
    let former = former(stored.as_ref());
    for resource in [secrets(), config_maps()] {
        releases(cluster, &resource, &names, &former, &mut facts).await?;
    }
    let own = own_records(cluster).await?;
    let retired = || backups.iter().flat_map(Backup::verified).filter(|r| is_own(&r.namespace));
    wants.own_retired = match own.as_slice() {
        [] => retired().next().is_some(),
        live => retired().any(|record| live.iter().any(|(uid, _)| *uid == record.uid)),
    };
    let after_takeover = own.iter().any(|(_, own)| was_deployed(&own.status));
    wants.unfinished = newest.as_ref().and_then(|newest| {
        unfinished_action(&CILIUM, newest.own.revision, &newest.status, after_takeover)
            .map(|refusal| refusal.message)
    });
    // What does not read is told by its labels.
    let labelled = own.into_iter().map(|(_, own)| own).max_by_key(|own| own.revision);
    facts.own = newest.as_ref().map(|newest| newest.own.clone()).or(labelled);
    if newest.is_none() && facts.own.is_some() && facts.damaged.is_empty() {
        facts.damaged.push(no_record("it holds no release"));
    }
    let discovery =
        cluster.discovery(false).await.map_err(failed("read what the server serves"))?;
    match (&newest, &stored) {
        (Some(newest), _) if newest.own.status == "deployed" || wants.unfinished.is_some() => {
            let items = manifest_objects(&discovery, &newest.manifest, NAMESPACE);
            installed(cluster, &items, &mut facts).await?;
        }
        (Some(_), Some(stored)) => under_way(cluster, stored, &discovery, &mut facts).await?,
        (None, Some(stored)) if wants.own_retired => {
            wants.not_given_back = not_given_back(cluster, stored, &discovery).await?;
        }
        _ => {}
    }
    Ok((facts, wants))
}

fn is_own(namespace: &str) -> bool {
    namespace == RECORD_NAMESPACE
}

fn no_record(why: impl std::fmt::Display) -> String {
    format!("ichor's newest record in namespace {RECORD_NAMESPACE} cannot be read: {why}")
}

/// Ichor's newest record; none, and an entry in `damaged`, when it does not read.
async fn newest(
    cluster: &dyn Cluster,
    clock: &dyn Clock,
    facts: &mut Facts,
) -> Result<Option<Newest>, StatusError> {
    let driver = ObjectDriver::new(cluster, clock, ObjectKind::Secret, RECORD_NAMESPACE);
    let last = match Storage::new(&driver).last(RELEASE).await {
        Ok(last) => last,
        Err(StorageError::NotFound | StorageError::NoRevision { .. }) => return Ok(None),
        Err(StorageError::Cluster { source, .. } | StorageError::Bare(source)) => {
            return Err(failed("read ichor's record")(source));
        }
        Err(error) => {
            facts.damaged.push(no_record(error_chain(&error)));
            return Ok(None);
        }
    };
    let told = || -> Result<Newest, StorageError> {
        let revision = last.record.revision().map_err(StorageError::Field)?;
        let status = last.record.info().map_err(StorageError::Field)?.status();
        let manifest = last.record.manifest().map_err(StorageError::Field)?;
        Ok(Newest { own: Own { revision, status: status.to_string() }, status, manifest })
    };
    match told() {
        Ok(newest) => Ok(Some(newest)),
        Err(error) => {
            facts.damaged.push(no_record(error_chain(&error)));
            Ok(None)
        }
    }
}

fn backup_fact(backup: &Backup) -> BackupFact {
    BackupFact {
        name: backup.name.clone(),
        whole: backup.verified().count(),
        records: backup.records.len(),
        own: backup.records.iter().any(|record| is_own(&record.namespace)),
    }
}

async fn lock(cluster: &dyn Cluster, clock: &dyn Clock) -> Result<Option<LockFact>, StatusError> {
    let leases = builtin("coordination.k8s.io/v1", "Lease", "leases", true);
    let lease = read_object(cluster, &leases, RECORD_NAMESPACE, &CILIUM.lease)
        .await
        .map_err(failed(format!("read Lease {RECORD_NAMESPACE}/{}", CILIUM.lease)))?;
    Ok(lease.and_then(|lease| {
        let holder = text(&lease, "/spec/holderIdentity").to_owned();
        let renewed = text(&lease, "/spec/renewTime").to_owned();
        let age = renewed.parse::<Timestamp>().ok().map(|time| clock.now().duration_since(time));
        let limit = jiff::SignedDuration::try_from(DURATION).unwrap_or_default();
        let stale = age.is_none_or(|age| age >= limit);
        let age = age.map(|age| age.as_secs().max(0));
        (!holder.is_empty()).then_some(LockFact { holder, renewed, age, stale })
    }))
}

/// What became of the foreign records.
async fn records(
    cluster: &dyn Cluster,
    stored: &StoredPlan,
    backups: &[Backup],
) -> Result<Vec<RecordFact>, StatusError> {
    let mut facts = Vec::new();
    for record in &stored.plan.records {
        let about = &record.about;
        let held: Vec<(&Backup, &BackedUp)> = backups
            .iter()
            .flat_map(|backup| backup.verified().map(move |held| (backup, held)))
            .filter(|(_, held)| {
                (&held.kind, &held.namespace, &held.name)
                    == (&about.kind, &about.namespace, &about.name)
                    && (held.uid == record.uid || stored.records.contains(&held.hash))
            })
            .collect();
        let resource = if about.kind == "Secret" { secrets() } else { config_maps() };
        let state = match read_object(cluster, &resource, &about.namespace, &about.name).await {
            Ok(None) => RecordState::Gone,
            Ok(Some(live)) if text(&live, "/metadata/uid") == record.uid => RecordState::There,
            Ok(Some(live)) => {
                let hash = hash_of(&about.kind, &live);
                if hash.is_some_and(|hash| held.iter().any(|(_, held)| held.hash == hash)) {
                    RecordState::Back
                } else {
                    RecordState::Another
                }
            }
            Err(error) if error.kind() == ErrorKind::Forbidden => RecordState::Unknown,
            Err(source) => return Err(failed(format!("read {about}"))(source)),
        };
        let backup = held.last().map(|(backup, _)| backup.name.clone()).unwrap_or_default();
        facts.push(RecordFact { record: about.to_string(), state, backup });
    }
    Ok(facts)
}

/// Ichor's own records by their labels, each with its UID.
async fn own_records(cluster: &dyn Cluster) -> Result<Vec<(String, Own)>, StatusError> {
    let query = ListQuery {
        namespace: RECORD_NAMESPACE.to_owned(),
        labels: format!("owner=helm,name={RELEASE}"),
        metadata_only: true,
        ..ListQuery::default()
    };
    let page =
        list_all(cluster, &secrets(), &query).await.map_err(failed("list ichor's records"))?;
    let own = |object: &Value| {
        let revision = text(object, "/metadata/labels/version").parse().unwrap_or_default();
        let status = text(object, "/metadata/labels/status").to_owned();
        (text(object, "/metadata/uid").to_owned(), Own { revision, status })
    };
    Ok(page.items.iter().map(own).collect())
}

/// Live objects, in the order of their items; none where one is gone, and where it may not be read
/// an entry in `unread`.
async fn live(
    cluster: &dyn Cluster,
    items: &[Item],
    facts: &mut Facts,
) -> Result<Vec<Option<Value>>, StatusError> {
    let found: Vec<Result<Option<Value>, ClusterError>> =
        stream::iter(items.iter().map(|item| async move {
            match cluster.get(&item.target).await {
                Ok(live) => Ok(Some(live)),
                Err(error) if error.is_not_found() => Ok(None),
                Err(error) => Err(error),
            }
        }))
        .buffered(CONCURRENCY)
        .collect()
        .await;
    let mut objects = Vec::new();
    for (item, found) in items.iter().zip(found) {
        match found {
            Ok(live) => objects.push(live),
            Err(error) if error.kind() == ErrorKind::Forbidden => {
                facts.unread.push(item.target.to_string());
                objects.push(Some(Value::Null));
            }
            Err(source) => return Err(failed(format!("read {}", item.target))(source)),
        }
    }
    Ok(objects)
}

/// Looks at the objects of ichor's record.
async fn installed(
    cluster: &dyn Cluster,
    items: &[Item],
    facts: &mut Facts,
) -> Result<(), StatusError> {
    let objects = live(cluster, items, facts).await?;
    let mut found = ObjectFacts { all: items.len(), ..ObjectFacts::default() };
    for (item, live) in items.iter().zip(objects) {
        match live {
            None => found.missing.push(item.target.to_string()),
            Some(Value::Null) => {}
            Some(live) if ownership::check(&live, RELEASE, NAMESPACE).is_err() => {
                found.not_owned.push(item.target.to_string());
            }
            Some(_) => found.written += 1,
        }
    }
    facts.objects = found;
    Ok(())
}

/// Looks how far the objects of a stored plan are written.
async fn under_way(
    cluster: &dyn Cluster,
    stored: &StoredPlan,
    discovery: &Discovery,
    facts: &mut Facts,
) -> Result<(), StatusError> {
    let pairs: Vec<(&StoredObject, Item)> =
        stored.objects.iter().filter_map(|o| Some((o, o.item(discovery)?))).collect();
    let items: Vec<Item> = pairs.iter().map(|(_, item)| item.clone()).collect();
    let objects = live(cluster, &items, facts).await?;
    let key = Key(stored.key.clone());
    let mut found = ObjectFacts { all: pairs.len(), ..ObjectFacts::default() };
    for ((object, item), live) in pairs.iter().zip(objects) {
        let title = item.target.to_string();
        match live {
            None if object.before.is_empty() => found.waiting.push(title),
            None => found.missing.push(title),
            Some(Value::Null) => {}
            Some(live) => {
                let state = object.state(&key, &live);
                let is_known = state == object.before || state == object.after;
                // As a run decides it. Where ownership alone is written, both states are one.
                let needs_nothing =
                    object.keep || patch(&item.value, &live).is_ok_and(|patch| patch.is_none());
                let is_owned = ownership::check(&live, RELEASE, NAMESPACE).is_ok();
                if is_known && (needs_nothing || state == object.after && is_owned) {
                    found.written += 1;
                } else if is_known {
                    found.waiting.push(title);
                } else {
                    found.changed.push(title);
                }
            }
        }
    }
    facts.objects = found;
    Ok(())
}

/// Objects that had another owner before the takeover, and still name ichor's release.
async fn not_given_back(
    cluster: &dyn Cluster,
    stored: &StoredPlan,
    discovery: &Discovery,
) -> Result<Vec<String>, StatusError> {
    let pairs: Vec<(&Value, Item)> = stored
        .objects
        .iter()
        .filter_map(|object| Some((object.former.as_ref()?, object.item(discovery)?)))
        .filter(|(former, _)| ownership::check(&owned_as(former), RELEASE, NAMESPACE).is_err())
        .collect();
    let items: Vec<Item> = pairs.iter().map(|(_, item)| item.clone()).collect();
    let objects = live(cluster, &items, &mut Facts::default()).await?;
    let still_own = |live: &Option<Value>| {
        live.as_ref().is_some_and(|live| ownership::check(live, RELEASE, NAMESPACE).is_ok())
    };
    Ok(items
        .iter()
        .zip(&objects)
        .filter(|(_, live)| still_own(live))
        .map(|(item, _)| item.target.to_string())
        .collect())
}

fn owned_as(former: &Value) -> Value {
    serde_json::json!({ "metadata": former })
}

/// The release before the takeover: by namespace and name, with the records that were taken over.
/// Where there was none, the one that a plain `helm install` would make.
fn former(stored: Option<&StoredPlan>) -> Former {
    let mut former = Former::from([((NAMESPACE.to_owned(), RELEASE.to_owned()), BTreeSet::new())]);
    for record in stored.iter().flat_map(|stored| &stored.plan.records) {
        let place = (record.about.namespace.clone(), record.release.clone());
        former.entry(place).or_default().insert(record.about.to_string());
    }
    former
}

type Former = BTreeMap<(String, String), BTreeSet<String>>;

/// The newest revision of each release, by labels alone, as `helm list` reads them; and records of
/// the release before that are none of those that were taken over.
async fn releases(
    cluster: &dyn Cluster,
    resource: &Resource,
    names: &[String],
    former: &Former,
    facts: &mut Facts,
) -> Result<(), StatusError> {
    let query = ListQuery {
        labels: format!("owner=helm,name in ({})", names.join(",")),
        metadata_only: true,
        ..ListQuery::default()
    };
    let page = match list_all(cluster, resource, &query).await {
        Ok(page) => page,
        Err(error) if error.kind() == ErrorKind::Forbidden => {
            facts.unread.push(format!("{} of all namespaces", resource.plural));
            return Ok(());
        }
        Err(source) => return Err(failed(format!("list {}", resource.plural))(source)),
    };
    let mut newest: BTreeMap<(String, String), Release> = BTreeMap::new();
    for object in &page.items {
        let label = |key: &str| text(object, &format!("/metadata/labels/{key}")).to_owned();
        let namespace = text(object, "/metadata/namespace").to_owned();
        let release = Release {
            kind: resource.kind.kind.clone(),
            namespace: namespace.clone(),
            name: label("name"),
            revision: label("version").parse().unwrap_or_default(),
            status: label("status"),
        };
        let place = (namespace, release.name.clone());
        let title = format!("{} {}/{}", release.kind, place.0, text(object, "/metadata/name"));
        if former.get(&place).is_some_and(|known| !known.contains(&title)) {
            facts.again.push(title);
        }
        if newest.get(&place).is_none_or(|other| other.revision < release.revision) {
            newest.insert(place, release);
        }
    }
    facts.releases.extend(newest.into_values());
    Ok(())
}
