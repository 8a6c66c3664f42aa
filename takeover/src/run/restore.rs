//! Back to how it was: foreign records, ownership metadata, and ichor's own records retired.
//!
//! Each step can be done again: a restore that was killed is finished by the next one.

use cilium::pinned::DAEMON_SET;
use cilium::version::image_tag;
use helm_rs::apply::{Cancel, Observer};
use helm_rs::cluster::{Cluster, ClusterError, Discovery, ErrorKind, ListQuery, list_all};
use serde_json::{Value, json};

use super::Fenced;
use super::backup::{BackedUp, Backup, BackupError, Retired, backups, hash_of, retire};
use super::lock::{LockError, acquire};
use super::put_back::{give_back, put_back};
use super::stored::{StoredError, StoredPlan};
use crate::place::{CILIUM, Place, lease_of};
use crate::plan::{Key, ObjectAbout, Plan, RecordAbout, sha256};
use crate::survey::{read, resource_of, text};

/// The group of ichor's custom resources.
const GROUP: &str = "ichor.maesh.dev";

/// What a restore would do.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RestorePlan {
    /// Why nothing is done; empty when something can be.
    pub refusals: Vec<String>,
    /// Records that are put back.
    pub records: Vec<String>,
    /// Objects whose ownership metadata is given back.
    pub objects: Vec<String>,
    /// Objects that changed since the takeover, so that the restore has to be asked for again.
    pub changed: Vec<String>,
    /// Ichor's own records, which go into a backup.
    pub own: Vec<RecordAbout>,
    /// What a consent to the changed objects names; empty when nothing changed.
    pub digest: String,
    /// What comes of Cilium itself, for people.
    pub versions: String,
}

/// What was done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    /// Records that were put back, or were there.
    pub records: Vec<String>,
    /// Objects whose ownership metadata was given back.
    pub objects: usize,
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
    /// Objects changed since the takeover.
    #[error(
        "refused: {} object(s) changed since the takeover ({}); to restore all the same, ask again \
         with the digest {digest}", changed.len(), changed.join(", ")
    )]
    Changed {
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
    #[error("{}", taken(kind, namespace, name))]
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
            Self::Refused { .. } | Self::Changed { .. } | Self::Lock(LockError::Held { .. })
        )
    }
}

pub(super) fn failed(doing: impl Into<String>) -> impl FnOnce(ClusterError) -> RestoreError {
    let doing = doing.into();
    move |source| RestoreError::Cluster { doing, source }
}

/// What is read before anything is put back.
struct Found {
    plan: RestorePlan,
    stored: Option<StoredPlan>,
    backups: Vec<Backup>,
    discovery: std::sync::Arc<Discovery>,
}

/// Says what a restore of Cilium would do. Nothing is written.
///
/// # Errors
/// [`RestoreError`] when the cluster cannot be read.
pub async fn plan_restore(cluster: &dyn Cluster) -> Result<RestorePlan, RestoreError> {
    plan_restore_at(&CILIUM, cluster).await
}

/// [`plan_restore`] of any release that was taken over or moved.
///
/// # Errors
/// [`RestoreError`] when the cluster cannot be read.
pub async fn plan_restore_at(
    place: &Place,
    cluster: &dyn Cluster,
) -> Result<RestorePlan, RestoreError> {
    Ok(find(place, cluster).await?.plan)
}

/// The records that the takeover retired, each with the backup that holds it: the object that was
/// retired, else one that was the same. Backups of earlier takeovers, and of ichor's own records,
/// stay where they are.
fn retired<'b>(
    stored: Option<&StoredPlan>,
    backups: &'b [Backup],
) -> Vec<(&'b Backup, &'b BackedUp)> {
    let Some(stored) = stored else { return Vec::new() };
    let of_record = |wanted: &RecordAbout| {
        let about = &wanted.about;
        let mut all = backups.iter().flat_map(|backup| backup.verified().map(move |r| (backup, r)));
        let is_it = move |record: &BackedUp| {
            (&about.kind, &about.namespace, &about.name)
                == (&record.kind, &record.namespace, &record.name)
        };
        let same: Vec<_> = all.by_ref().filter(|(_, record)| is_it(record)).collect();
        let by_uid = same.iter().rev().find(|(_, record)| record.uid == wanted.uid);
        let by_hash = || same.iter().rev().find(|(_, r)| stored.records.contains(&r.hash));
        by_uid.or_else(by_hash).copied()
    };
    stored.plan.records.iter().filter_map(of_record).collect()
}

async fn find(place: &Place, cluster: &dyn Cluster) -> Result<Found, RestoreError> {
    let discovery =
        cluster.discovery(false).await.map_err(failed("read what the server serves"))?;
    let stored = StoredPlan::read(cluster, place).await?;
    let backups = backups(cluster, place).await?;
    let mut plan = RestorePlan::default();
    if !place.is_shared
        && let Some(name) = talos_cluster(cluster, &discovery).await?
    {
        plan.refusals.push(format!(
            "TalosCluster {name} manages this cluster, and would take Cilium over again: delete it \
             first, or set it to spec.cni.preset: unmanaged in a new one"
        ));
    }
    let query = ListQuery {
        namespace: place.home.to_string(),
        labels: format!("owner=helm,name={}", place.release),
        ..ListQuery::default()
    };
    let own = list_all(cluster, &resource_of(place.kind()), &query)
        .await
        .map_err(failed("list ichor's records"))?;
    let mut own = own.items;
    own.sort_by_key(|object| own_record(place, object).revision);
    plan.own = own.iter().map(|object| own_record(place, object)).collect();
    let in_backups = retired(stored.as_ref(), &backups);
    plan.records.extend(in_backups.iter().map(|(_, record)| title(record)));
    let (mut lost, mut comes_back) = (false, false);
    for record in stored.iter().flat_map(|stored| &stored.plan.records) {
        let about = &record.about;
        let name = format!("{} {}/{}", about.kind, about.namespace, about.name);
        let there = live_record(cluster, &about.kind, &about.namespace, &about.name).await?;
        comes_back |= there.as_ref().is_none_or(|there| text(there, "/metadata/uid") != record.uid);
        let backup = in_backups.iter().find(|(_, held)| title(held) == name);
        match (there, backup) {
            (None, Some(_)) => {}
            (None, None) => {
                lost = true;
                plan.refusals.push(format!("{name} is gone, and no backup holds it whole"));
            }
            // One that is back already, or was never retired.
            (Some(there), Some((_, held)))
                if hash_of(&about.kind, &there).is_some_and(|hash| hash == held.hash) => {}
            (Some(there), None) if text(&there, "/metadata/uid") == record.uid => {}
            (Some(_), _) => plan.refusals.push(taken(&about.kind, &about.namespace, &about.name)),
        }
    }
    // Where nothing comes back, no histories mix: what was begun is only undone.
    if let Some(stored) = stored.as_ref().filter(|_| !place.is_shared || comes_back) {
        plan.refusals.extend(newer(place, cluster, stored).await?);
    }
    for backup in &backups {
        let damage = backup.damage();
        if damage.is_empty() {
            continue;
        }
        let todo = if lost {
            "write it back from a copy of your own (a backup of etcd), then try again".to_owned()
        } else {
            format!(
                "every record that is to come back is whole elsewhere, so that this one can go: \
                 `kubectl -n {} delete secret {}`",
                place.home, backup.name
            )
        };
        plan.refusals.push(format!(
            "Secret {}/{}, a backup, is damaged: {}; {todo}",
            place.home,
            backup.name,
            damage.join("; ")
        ));
    }
    for (record, object) in plan.own.iter().zip(&own) {
        if hash_of(place.kind(), object).is_none() {
            plan.refusals.push(format!(
                "{kind} {home}/{name}, a record of ichor's, holds no release, so that it cannot be \
                 put into a backup; nothing needs it any more: `kubectl -n {home} delete {lower} \
                 {name}`",
                kind = place.kind(),
                lower = place.kind().to_lowercase(),
                home = place.home,
                name = record.about.name
            ));
        }
    }
    let Some(stored) = stored else {
        plan.refusals.push(format!(
            "there is no stored plan of a takeover in namespace {}, so that it is not known what \
             was before",
            place.home
        ));
        return Ok(Found { plan, stored: None, backups, discovery });
    };
    if plan.own.is_empty() {
        plan.refusals.push("ichor has no record here: there is nothing to restore".to_owned());
    }
    let key = Key(stored.key.clone());
    let (mut states, mut agent) = (Vec::new(), None);
    for object in &stored.objects {
        let Some(item) = object.item(&discovery) else { continue };
        let live = match cluster.get(&item.target).await {
            Ok(live) => live,
            Err(error) if error.is_not_found() => {
                if !object.before.is_empty() {
                    plan.changed.push(format!("{} (gone)", item.target));
                }
                continue;
            }
            Err(error) => return Err(failed(format!("read {}", item.target))(error)),
        };
        // What a takeover that was cut short did not write yet did not change either.
        if !object.knows(&key, &live) {
            plan.changed.push(item.target.to_string());
            states.push(object.state(&key, &live));
        }
        if object.former.is_some() {
            plan.objects.push(item.target.to_string());
        }
        if text(&live, "/kind") == "DaemonSet" && text(&live, "/metadata/name") == DAEMON_SET {
            agent = Some(live);
        }
    }
    if !place.is_shared {
        plan.versions = versions(&stored.plan, agent.as_ref());
    }
    if !plan.changed.is_empty() {
        let all = json!([plan.changed, states]).to_string();
        plan.digest = format!("sha256:{}", sha256(all.as_bytes()));
    }
    Ok(Found { plan, stored: Some(stored), backups, discovery })
}

/// Records of the release that is to come back which were made since: two histories would mix.
async fn newer(
    place: &Place,
    cluster: &dyn Cluster,
    stored: &StoredPlan,
) -> Result<Vec<String>, RestoreError> {
    let records = &stored.plan.records;
    let known = |namespace: &str, name: &str| {
        let is_it = |about: &ObjectAbout| about.namespace == namespace && about.name == name;
        records.iter().any(|record| is_it(&record.about))
    };
    let mut places: Vec<(&str, &str, &str)> = records
        .iter()
        .map(|record| (&*record.about.kind, &*record.about.namespace, &*record.release))
        .collect();
    // Where there was none, the one that a plain `helm install` makes.
    if !place.is_shared {
        places
            .extend(["Secret", "ConfigMap"].map(|kind| (kind, &*place.namespace, &*place.release)));
    }
    places.sort_unstable();
    places.dedup();
    let mut refusals = Vec::new();
    for (kind, namespace, release) in places {
        let query = ListQuery {
            namespace: namespace.to_owned(),
            labels: format!("owner=helm,name={release}"),
            metadata_only: true,
            ..ListQuery::default()
        };
        let page = match list_all(cluster, &resource_of(kind), &query).await {
            Ok(page) => page,
            // Who may only read the records by name sees those that are to come back.
            Err(error) if error.kind() == ErrorKind::Forbidden => continue,
            Err(error) => {
                return Err(failed(format!("list records in namespace {namespace}"))(error));
            }
        };
        let names = page.items.iter().map(|object| text(object, "/metadata/name"));
        let strange = names.filter(|name| !known(namespace, name));
        refusals.extend(strange.map(|name| taken(kind, namespace, name)));
    }
    Ok(refusals)
}

/// What stands in the way of a record that is to be put back.
fn taken(kind: &str, namespace: &str, name: &str) -> String {
    let (_, rest) = name.split_once(".v1.").unwrap_or_default();
    let (release, _) = rest.rsplit_once(".v").unwrap_or((rest, ""));
    let lower = kind.to_lowercase();
    format!(
        "{kind} {namespace}/{name} is there and is none of the backup's: somebody installed or \
         upgraded release {release} since, and ichor mixes no histories. See `helm -n {namespace} history \
         {release}`; if that release is not in use, remove its record (`kubectl -n {namespace} \
         delete {lower} {name}`), then restore"
    )
}

async fn live_record(
    cluster: &dyn Cluster,
    kind: &str,
    namespace: &str,
    name: &str,
) -> Result<Option<Value>, RestoreError> {
    read(cluster, &resource_of(kind), namespace, name)
        .await
        .map_err(failed(format!("read {kind} {namespace}/{name}")))
}

/// What a restore makes of the version: nothing. It gives records and ownership back; the objects
/// themselves stay as they are.
fn versions(plan: &Plan, agent: Option<&Value>) -> String {
    let image = agent.map(|agent| text(agent, "/spec/template/spec/containers/0/image"));
    let runs = image
        .and_then(image_tag)
        .map_or(plan.chart.version.as_str(), |tag| tag.strip_prefix('v').unwrap_or(tag));
    let before = plan.found.version.as_str();
    let deployed = plan.records.iter().rev().find(|record| record.status == "deployed");
    let deployed = deployed.or_else(|| plan.records.last());
    let record = deployed.map(|record| {
        let about = &record.about;
        format!(
            "revision {} of release {} ({} {}/{}, {})",
            record.revision, record.release, about.kind, about.namespace, about.name, record.status
        )
    });
    if before.is_empty() {
        return format!("Cilium {runs} runs, which was not there before the takeover; it stays");
    }
    let stays = format!(
        "Cilium {runs} runs and stays as it is: no object is changed but for its ownership metadata"
    );
    match record {
        None if runs == before => stays,
        None => format!("{stays}, and no pod goes back to {before}"),
        Some(record) if runs == before => {
            format!("{stays}; {record}, of the same version, counts again")
        }
        Some(record) => format!(
            "{stays}. {record} counts again, and it is of {before}: what it says and what runs are \
             two versions until that release is upgraded to {runs} or brought back to {before} with \
             the tool that installed it (`helm upgrade`, `helm rollback`)"
        ),
    }
}

pub(super) fn title(record: &BackedUp) -> String {
    format!("{} {}/{}", record.kind, record.namespace, record.name)
}

fn own_record(place: &Place, object: &Value) -> RecordAbout {
    let name = text(object, "/metadata/name");
    let revision = name.rsplit_once(".v").and_then(|(_, number)| number.parse().ok());
    RecordAbout {
        about: ObjectAbout {
            api_version: "v1".to_owned(),
            kind: place.kind().to_owned(),
            namespace: text(object, "/metadata/namespace").to_owned(),
            name: name.to_owned(),
        },
        uid: text(object, "/metadata/uid").to_owned(),
        release: place.release.to_string(),
        revision: revision.unwrap_or_default(),
        status: text(object, "/metadata/labels/status").to_owned(),
        bytes: 0,
    }
}

/// A `TalosCluster` that manages the cluster.
async fn talos_cluster(
    cluster: &dyn Cluster,
    discovery: &Discovery,
) -> Result<Option<String>, RestoreError> {
    let Some(resource) = discovery.preferred(GROUP, "TalosCluster") else { return Ok(None) };
    let page = list_all(cluster, resource, &ListQuery::default())
        .await
        .map_err(failed("list the TalosClusters"))?;
    let managed = page.items.iter().find(|object| text(object, "/spec/cni/preset") != "unmanaged");
    Ok(managed.map(|object| text(object, "/metadata/name").to_owned()))
}

/// Puts everything of Cilium back. `digest` is the consent to objects that changed since. The
/// observer hears that the lock is waited for.
///
/// # Errors
/// [`RestoreError`]
pub async fn restore(
    cluster: &std::sync::Arc<dyn Cluster>,
    clock: &dyn helm_rs::cluster::Clock,
    holder: &str,
    digest: Option<&str>,
    observer: &dyn Observer,
    cancel: &Cancel,
) -> Result<Restored, RestoreError> {
    restore_at(&CILIUM, cluster, clock, holder, digest, observer, cancel).await
}

/// [`restore`] of any release that was taken over or moved.
///
/// # Errors
/// [`RestoreError`]
pub async fn restore_at(
    place: &Place,
    cluster: &std::sync::Arc<dyn Cluster>,
    clock: &dyn helm_rs::cluster::Clock,
    holder: &str,
    digest: Option<&str>,
    observer: &dyn Observer,
    cancel: &Cancel,
) -> Result<Restored, RestoreError> {
    // Nothing is written, not even the lock, where there is nothing to restore.
    let found = find(place, &**cluster).await?;
    let refusals = found.plan.refusals;
    if !refusals.is_empty() {
        return Err(RestoreError::Refused { refusals });
    }
    let mut leases = std::collections::BTreeSet::from([place.lease_name()]);
    if place.is_shared {
        let records = found.stored.iter().flat_map(|stored| &stored.plan.records);
        leases.extend(records.map(|record| lease_of(&record.release, &record.about.namespace)));
    }
    let lock = acquire(cluster, clock, leases, holder, observer).await?;
    let fenced = Fenced::new(cluster, &lock);
    let result = locked(place, &fenced, digest, cancel).await;
    lock.release().await;
    result
}

async fn locked(
    place: &Place,
    cluster: &dyn Cluster,
    digest: Option<&str>,
    cancel: &Cancel,
) -> Result<Restored, RestoreError> {
    let go_on = || if cancel.is_cancelled() { Err(RestoreError::Cancelled) } else { Ok(()) };
    let found = find(place, cluster).await?;
    let plan = found.plan;
    if !plan.refusals.is_empty() {
        return Err(RestoreError::Refused { refusals: plan.refusals });
    }
    if !plan.changed.is_empty() && digest != Some(plan.digest.as_str()) {
        return Err(RestoreError::Changed { changed: plan.changed, digest: plan.digest });
    }
    let mut restored = Restored::default();
    for (backup, record) in retired(found.stored.as_ref(), &found.backups) {
        go_on()?;
        put_back(cluster, backup, record).await?;
        restored.records.push(title(record));
    }
    for object in found.stored.iter().flat_map(|stored| &stored.objects) {
        let (Some(item), Some(former)) = (object.item(&found.discovery), &object.former) else {
            continue;
        };
        go_on()?;
        restored.objects += usize::from(give_back(cluster, &item, former, |_| true).await?);
    }
    go_on()?;
    restored.own = retire(cluster, place, &plan.own).await?;
    Ok(restored)
}
