//! What a restore reads before anything is put back, and what it makes of it.

use cilium::pinned::DAEMON_SET;
use cilium::version::image_tag;
use helm_rs::cluster::{Cluster, Discovery, ErrorKind, ListQuery, list_all};
use serde_json::{Value, json};

use super::leaves::Given;
use super::since::made_since;
use super::{RestoreError, RestorePlan, SCHEMA_VERSION, failed};
use crate::place::Place;
use crate::plan::{Key, ObjectAbout, Plan, RecordAbout, sha256};
use crate::run::backup::{BackedUp, Backup, backups, hash_of};
use crate::run::former::undo;
use crate::run::stored::StoredPlan;
use crate::survey::{read, resource_of, text};

/// The group of ichor's custom resources.
const GROUP: &str = "ichor.maesh.dev";

/// What is read before anything is put back.
pub(super) struct Found {
    pub(super) plan: RestorePlan,
    pub(super) stored: Option<StoredPlan>,
    pub(super) backups: Vec<Backup>,
    /// The objects that are there and were before, with what is given back of each.
    pub(super) objects: Vec<Given>,
    /// Everything is back, and only the stored plan is left of it.
    pub(super) is_done: bool,
}

/// The records that the takeover retired, each with the backup that holds it: the object that was
/// retired, else one that was the same. Backups of earlier takeovers, and of ichor's own records,
/// stay where they are.
pub(super) fn retired<'b>(
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

/// Reads.
///
/// # Errors
/// [`RestoreError`] when the cluster cannot be read.
pub(super) async fn find(
    place: &Place,
    cluster: &dyn Cluster,
    keep_leaves: bool,
) -> Result<Found, RestoreError> {
    let discovery =
        cluster.discovery(false).await.map_err(failed("read what the server serves"))?;
    let stored = StoredPlan::read(cluster, place).await?;
    let backups = backups(cluster, place).await?;
    let mut plan = RestorePlan {
        schema_version: SCHEMA_VERSION.to_owned(),
        undoes: place.words.deed.name().to_owned(),
        earlier: stored.as_ref().map_or(0, StoredPlan::kept),
        ..RestorePlan::default()
    };
    if !place.is_shared
        && let Some(name) = talos_cluster(cluster, &discovery).await?
    {
        plan.refusals.push(format!(
            "TalosCluster {name} manages this cluster, and would take Cilium over again: delete it \
             first (kubectl delete taloscluster {name}), then run this again. That undoes nothing: \
             Cilium runs on as it is, and records and backups stay; it only ends what the controller \
             does, its Job with it"
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
    let (mut lost, mut comes_back, mut waits) = (false, false, false);
    for record in stored.iter().flat_map(|stored| &stored.plan.records) {
        let about = &record.about;
        let name = format!("{} {}/{}", about.kind, about.namespace, about.name);
        let there = live_record(cluster, &about.kind, &about.namespace, &about.name).await?;
        comes_back |= there.as_ref().is_none_or(|there| text(there, "/metadata/uid") != record.uid);
        let backup = in_backups.iter().find(|(_, held)| title(held) == name);
        match (there, backup) {
            (None, Some(_)) => waits = true,
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
        plan.refusals.push(nothing(place));
        return Ok(Found { plan, stored: None, backups, objects: Vec::new(), is_done: false });
    };
    let is_done = place.is_shared && plan.own.is_empty() && !waits && retired_own(place, &backups);
    if plan.own.is_empty() && !is_done {
        plan.refusals.push("ichor has no record here: there is nothing to restore".to_owned());
    }
    let (mut objects, mut states) = (Vec::new(), Vec::new());
    if !is_done {
        let reading = Reading { place, cluster, keep_leaves, stored: &stored };
        (objects, states) = reading.objects(&discovery, &mut plan).await?;
        if place.is_shared && plan.refusals.is_empty() {
            plan.created.extend(made_since(place, cluster, &discovery, &stored, &own).await?);
        }
    }
    if plan.refusals.is_empty() {
        let newest = plan.own.last().map(|record| &record.uid);
        let left: Vec<_> = plan.left.iter().map(|leaf| (&leaf.object, &leaf.path)).collect();
        let all = json!([
            SCHEMA_VERSION,
            stored.plan.digest,
            keep_leaves,
            plan.records,
            plan.objects,
            left,
            plan.created,
            plan.changed,
            states,
            newest,
        ]);
        plan.digest = format!("sha256:{}", sha256(all.to_string().as_bytes()));
    }
    Ok(Found { plan, stored: Some(stored), backups, objects, is_done })
}

/// Why nothing can be undone where nothing is stored.
fn nothing(place: &Place) -> String {
    let Place { release, home, plan, .. } = place;
    if place.is_shared {
        return format!(
            "there is nothing to restore: no adoption or move of release {release} in namespace \
             {home} is stored that was not undone (Secret {home}/{plan})"
        );
    }
    format!(
        "there is no stored plan of a takeover in namespace {home}, so that it is not known what \
         was before"
    )
}

/// Whether a backup holds records that were ichor's own, as a restore leaves them.
fn retired_own(place: &Place, backups: &[Backup]) -> bool {
    let prefix = format!("sh.helm.release.v1.{}.v", place.release);
    backups.iter().flat_map(Backup::verified).any(|record| {
        record.kind == place.kind()
            && record.namespace == place.home
            && record.name.starts_with(&prefix)
    })
}

/// What objects are read for.
struct Reading<'a> {
    place: &'a Place,
    cluster: &'a dyn Cluster,
    keep_leaves: bool,
    stored: &'a StoredPlan,
}

impl Reading<'_> {
    /// Whether leaves are given back. A Cilium of another version than before is not brought back
    /// by leaves: that would be half of a downgrade.
    fn gives_leaves(&self) -> bool {
        let plan = &self.stored.plan;
        !self.keep_leaves && (self.place.is_shared || plan.found.version == plan.chart.version)
    }

    /// Reads the objects of the stored plan; what is given back of each, and the states of those
    /// that changed since.
    async fn objects(
        &self,
        discovery: &Discovery,
        plan: &mut RestorePlan,
    ) -> Result<(Vec<Given>, Vec<String>), RestoreError> {
        let Self { place, cluster, stored, .. } = *self;
        let key = Key(stored.key.clone());
        let (mut objects, mut states, mut agent) = (Vec::new(), Vec::new(), None);
        for object in &stored.objects {
            let Some(item) = object.item(discovery) else { continue };
            let title = item.target.to_string();
            let live = match cluster.get(&item.target).await {
                Ok(live) => live,
                Err(error) if error.is_not_found() => {
                    if object.former.is_some() {
                        plan.changed.push(format!("{title} (gone)"));
                    }
                    continue;
                }
                Err(error) => return Err(failed(format!("read {title}"))(error)),
            };
            if object.former.is_none() {
                plan.created.push(title.clone());
            }
            // What a takeover that was cut short did not write yet did not change, nor what a
            // restore that was cut short gave back.
            let undone = undo(stored, object, &live, &|_| true).object;
            let was = object.state(&key, &undone);
            if !object.knows(&key, &live) && was != object.before && was != object.origin {
                plan.changed.push(title.clone());
                states.push(was);
            }
            let given = if self.gives_leaves() && !object.leaves.is_empty() {
                Given::of(cluster, stored, item, object.clone(), &live).await?
            } else {
                Given::owner(item, object.clone())
            };
            plan.leaves.extend(given.told(stored, &live));
            plan.left.extend(given.left());
            plan.restarts.extend(given.restarts().then(|| title.clone()));
            if text(&live, "/kind") == "DaemonSet" && text(&live, "/metadata/name") == DAEMON_SET {
                agent = Some(live);
            }
            if object.former.is_some() {
                plan.objects.push(title);
                objects.push(given);
            }
        }
        if !place.is_shared {
            plan.versions = versions(&stored.plan, agent.as_ref(), plan.leaves.len());
        }
        Ok((objects, states))
    }
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
pub(super) fn taken(kind: &str, namespace: &str, name: &str) -> String {
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

/// What a restore makes of the version: nothing. `leaves` are those that it gives back.
fn versions(plan: &Plan, agent: Option<&Value>, leaves: usize) -> String {
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
    let stays = if leaves == 0 {
        format!(
            "Cilium {runs} runs and stays as it is: no object is changed but for its ownership \
             metadata"
        )
    } else {
        format!("Cilium {runs} runs and stays, with the leaves that it had before")
    };
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

pub(in crate::run) fn title(record: &BackedUp) -> String {
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
