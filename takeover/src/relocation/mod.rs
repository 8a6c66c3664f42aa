//! Moving a release: its records, all of them, to another namespace, name or driver, and the
//! ownership metadata of its objects with them. The objects themselves stay where they are.
//!
//! ```text
//! records, objects, next upgrade ─► plan ─ digest, consent ─► lock ─ plan again ─ stored plan
//!   ─ backup ─ new records, oldest first ─ ownership ─ read back ─ old records deleted
//! ```
//!
//! Lock, stored plan, backups and restore are the takeover's ([`crate::run`]).

mod found;
mod moved;
mod next;
mod run;

use std::collections::BTreeSet;
use std::sync::Arc;

use cilium::provenance::History;
use futures::stream::{self, StreamExt as _};
use helm_rs::action::rights::Right;
use helm_rs::apply::{Item, ownership};
use helm_rs::cluster::{Clock, Cluster};
use helm_rs::error_chain;
use helm_rs::release::Record;
use helm_rs::release::storage::ObjectKind;
use helm_rs::render::Engine;
use serde::Serialize;
use serde_json::{Value, json};

use crate::place::{Deed, Place, kind_name, lease_of};
use crate::plan::make::{CONCURRENCY, refusal, told};
use crate::plan::rights;
use crate::plan::rights::needs::Written;
use crate::plan::{
    Action, Consent, Key, Needs, ObjectAbout, Plan, PlanError, RecordAbout, Refusal, ReleaseAbout,
    Rights, WhoWrites, sha256,
};
use crate::rendered::manifest_objects;
use crate::room::Weight;
use crate::run::backup;
use crate::run::lock::LeaseName;
use crate::run::stored::{StoredObject, StoredPlan, former_ownership};
use crate::survey::{failed, record_rights, text};

use found::{Found, Look, find, history};
pub use next::NextUpgrade;
pub use run::{MoveError, Moved, carry_out};

/// The form of a move's plan as JSON.
pub const SCHEMA_VERSION: &str = "ichor.maesh.dev/release-move/v1";
/// The flag that accepts what the next upgrade would do.
pub const ACCEPT_NEXT: &str = "--accept-next-upgrade";

/// Where a release's records are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct At {
    /// The release's name.
    pub release: String,
    /// Its namespace.
    pub namespace: String,
    /// Which objects hold the records.
    pub records: ObjectKind,
}

impl At {
    fn about(&self) -> ReleaseAbout {
        ReleaseAbout {
            name: self.release.clone(),
            namespace: self.namespace.clone(),
            records: kind_name(self.records).to_owned(),
        }
    }

    /// Whether objects say the same of both: name and namespace, whatever the driver.
    fn is_same_release(&self, other: &Self) -> bool {
        (&self.release, &self.namespace) == (&other.release, &other.namespace)
    }
}

/// What is to be moved.
pub struct Request<'a> {
    /// The cluster.
    pub cluster: Arc<dyn Cluster>,
    /// The clock.
    pub clock: &'a dyn Clock,
    /// What renders.
    pub engine: &'a Engine,
    /// Where the release is.
    pub from: At,
    /// Where it goes.
    pub to: At,
    /// 32 bytes of entropy for what its chart generates.
    pub entropy: [u8; 32],
}

impl Request<'_> {
    /// Where the moved release's lock, stored plan and backups are.
    pub fn place(&self) -> Place {
        let to = &self.to;
        let look =
            format!("ichor release move {} -n {} … --plan", self.from.release, self.from.namespace);
        Place::release(&to.release, &to.namespace, to.records, Deed::Move, look)
    }

    fn leases(&self) -> BTreeSet<LeaseName> {
        [&self.from, &self.to].into_iter().map(|at| lease_of(&at.release, &at.namespace)).collect()
    }
}

/// What comes of a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// It is refused.
    #[default]
    Refused,
    /// The release is where it should be, by an earlier move.
    Nothing,
    /// The release is moved.
    Move,
    /// A move that was begun is finished.
    Resume,
}

/// What a move would do.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MovePlan {
    /// [`SCHEMA_VERSION`]
    pub schema_version: String,
    /// SHA-256 of what a consent is about: `sha256:…`. Empty when the plan refuses.
    pub digest: String,
    /// What comes of it.
    pub outcome: Outcome,
    /// Where the release is.
    pub from: ReleaseAbout,
    /// Where it goes.
    pub to: ReleaseAbout,
    /// Why nothing is done; empty when something can be.
    pub refusals: Vec<Refusal>,
    /// What needs consent, and why.
    pub consent: Vec<Consent>,
    /// The records, oldest first.
    pub records: Vec<RecordAbout>,
    /// Objects whose ownership metadata changes.
    pub objects: Vec<ObjectAbout>,
    /// Objects of its manifests that say they are another's or nobody's, and are left alone.
    pub others: Vec<ObjectAbout>,
    /// What the next upgrade would do that it would not have done before.
    pub next_upgrade: NextUpgrade,
    /// Rights of the one who moves.
    pub rights: Rights,
    /// What was not checked, and why.
    pub unchecked: Vec<String>,
}

impl MovePlan {
    /// Whether nothing keeps the plan from being carried out.
    pub fn is_refused(&self) -> bool {
        !self.refusals.is_empty()
    }
}

/// A plan with what carries it out. It may hold credentials.
#[derive(Debug)]
pub struct Prepared {
    /// The plan.
    pub plan: MovePlan,
    /// The plan as it is stored; none when nothing is to be done.
    pub(crate) stored: Option<StoredPlan>,
    /// The records as they will be, oldest first: of what was begun, those whose originals are left.
    pub(crate) records: Vec<Value>,
}

/// Makes a plan. Nothing is written.
///
/// # Errors
/// [`PlanError`]: when the cluster does not answer, or may not be looked at. What forbids the move
/// is no error but a refusal in the plan.
pub async fn prepare(request: &Request<'_>) -> Result<Prepared, PlanError> {
    let mut plan = MovePlan {
        schema_version: SCHEMA_VERSION.to_owned(),
        from: request.from.about(),
        to: request.to.about(),
        ..MovePlan::default()
    };
    let found = match find(request).await {
        Ok(found) => found,
        Err(Look::Damaged(refusal)) => {
            plan.refusals.push(refusal);
            return Ok(Prepared { plan, stored: None, records: Vec::new() });
        }
        Err(Look::Plan(error)) => {
            return Err(told(&*request.cluster, looking(request), error).await);
        }
    };
    if let Some(stored) = found.stored.as_ref().filter(|stored| is_this_move(request, stored)) {
        let live = left(stored, &found.sources);
        if !live.is_empty() {
            return Ok(resume(request, plan, stored, &live));
        }
        if found.sources.is_empty() && !found.taken.is_empty() {
            plan.outcome = Outcome::Nothing;
            plan.digest.clone_from(&stored.plan.digest);
            return Ok(Prepared { plan, stored: None, records: Vec::new() });
        }
    }
    fresh(request, plan, found).await
}

/// What it takes to look.
fn looking(request: &Request<'_>) -> Needs {
    let mut needs = Needs::of(Deed::Move);
    needs.own(&request.place(), true);
    let places = BTreeSet::from([&request.from.namespace, &request.to.namespace]);
    for namespace in places {
        needs.looking(&record_rights(namespace));
    }
    needs
}

/// Whether a stored plan is of this very move.
fn is_this_move(request: &Request<'_>, stored: &StoredPlan) -> bool {
    let from = &request.from;
    stored.plan.schema_version == SCHEMA_VERSION
        && stored.plan.release.as_ref() == Some(&request.to.about())
        && stored.plan.records.first().is_some_and(|record| {
            record.release == from.release
                && record.about.namespace == from.namespace
                && record.about.kind == kind_name(from.records)
        })
}

/// The records of a stored plan that are still where they were, oldest first.
fn left<'o>(stored: &StoredPlan, sources: &'o [Value]) -> Vec<&'o Value> {
    let live = |record: &RecordAbout| {
        sources.iter().find(|object| text(object, "/metadata/uid") == record.uid)
    };
    stored.plan.records.iter().filter_map(live).collect()
}

/// A move that was begun is finished by its own plan: the consent is to that one.
fn resume(
    request: &Request<'_>,
    mut plan: MovePlan,
    stored: &StoredPlan,
    live: &[&Value],
) -> Prepared {
    let kind = kind_name(request.from.records);
    plan.outcome = Outcome::Resume;
    plan.digest.clone_from(&stored.plan.digest);
    plan.records.clone_from(&stored.plan.records);
    plan.objects = stored.objects.iter().map(|object| about(&object.desired)).collect();
    let mut records = Vec::new();
    for original in live {
        let name = text(original, "/metadata/name");
        let is_known =
            backup::hash_of(kind, original).is_some_and(|hash| stored.records.contains(&hash));
        match moved::moved(request, original).filter(|_| is_known) {
            Some(record) => records.push(record),
            None => plan.refusals.push(refusal(
                "Changed",
                format!(
                    "{kind} {}/{name} changed since the move was begun: somebody wrote to the \
                     release; `{}` undoes what was begun",
                    request.from.namespace,
                    request.place().words.restore
                ),
            )),
        }
    }
    if plan.is_refused() {
        plan.outcome = Outcome::Refused;
    }
    Prepared { plan, stored: Some(stored.clone()), records }
}

async fn fresh(
    request: &Request<'_>,
    mut plan: MovePlan,
    found: Found,
) -> Result<Prepared, PlanError> {
    let place = request.place();
    if found.home.is_none() {
        plan.refusals.push(crate::run::no_namespace(&place));
    }
    let history = history(request, &found, &mut plan);
    let Some((history, read)) = history.filter(|_| plan.refusals.is_empty()) else {
        return Ok(Prepared { plan, stored: None, records: Vec::new() });
    };
    plan.records = abouts(&history, &found.sources);
    let mut records = Vec::new();
    for original in in_order(&history, &found.sources) {
        let Some(record) = moved::moved(request, original) else {
            let name = text(original, "/metadata/name");
            plan.refusals.push(refusal("Record", format!("record {name} cannot be written anew")));
            continue;
        };
        if let Some(excess) = Weight::of(&record).excess() {
            let name = text(&record, "/metadata/name");
            plan.refusals.push(refusal("Room", format!("record {name} would have {excess}")));
        }
        records.push(record);
    }
    let kind = kind_name(request.from.records);
    let originals: Vec<(&str, &Value)> =
        in_order(&history, &found.sources).map(|object| (kind, object)).collect();
    if let Err(error) = backup::forecast(&place, &originals) {
        plan.refusals.push(refusal("Room", error_chain(&error)));
    }
    let mut needs = looking(request);
    let mut objects = Vec::new();
    if !request.to.is_same_release(&request.from) {
        let items = items(request, &found, &read);
        moved::namespaces(request, &read, &found.discovery, &mut plan);
        objects = owned(request, &items, &mut plan).await?;
        next::preview(request, &found, &history, &mut plan, &mut needs);
    }
    needs.records(&plan.records);
    needs.locks(&request.leases());
    let written: Vec<Written<'_>> = objects
        .iter()
        .map(|(item, _)| Written {
            target: &item.target,
            value: &item.value,
            action: Action::Patch,
            dry_run: false,
        })
        .collect();
    needs.objects(&*request.cluster, &found.discovery, &written).await;
    drop(written);
    plan.rights = rights::check(&*request.cluster, &WhoWrites::Caller, &found.caller, &needs).await;
    plan.refusals.extend(plan.rights.refusal());
    if plan.is_refused() {
        return Ok(Prepared { plan, stored: None, records });
    }
    plan.outcome = Outcome::Move;
    let hashes: BTreeSet<String> =
        originals.iter().filter_map(|(kind, object)| backup::hash_of(kind, object)).collect();
    let titles = |objects: &[ObjectAbout]| -> Vec<String> {
        objects.iter().map(ToString::to_string).collect()
    };
    let canonical = json!({
        "schemaVersion": SCHEMA_VERSION,
        "from": plan.from,
        "to": plan.to,
        "records": hashes,
        "objects": titles(&plan.objects),
        "nextUpgrade": plan.next_upgrade,
    });
    plan.digest = format!("sha256:{}", sha256(canonical.to_string().as_bytes()));
    let key = Key(found.home.as_ref().map_or("", |home| text(home, "/metadata/uid")).to_owned());
    let objects = objects.iter().map(|(item, live)| stored_object(&key, item, live)).collect();
    let whole = Plan {
        schema_version: SCHEMA_VERSION.to_owned(),
        digest: plan.digest.clone(),
        release: Some(plan.to.clone()),
        records: plan.records.clone(),
        ..Plan::default()
    };
    let mut stored = StoredPlan::of_move(whole, key, objects, hashes);
    if let Some(earlier) = found.stored
        && let Err(error) = stored.keep(earlier, &place)
    {
        plan.refusals.push(refusal("StoredPlan", error_chain(&error)));
    }
    Ok(Prepared { plan, stored: Some(stored), records })
}

/// An object as the stored plan has it: only its ownership is written.
fn stored_object(key: &Key, item: &Item, live: &Value) -> StoredObject {
    let mut desired = json!({
        "apiVersion": item.kind().api_version(),
        "kind": item.kind().kind,
        "metadata": { "name": item.target.name },
    });
    if !item.target.namespace.is_empty() {
        desired["metadata"]["namespace"] = item.target.namespace.as_str().into();
    }
    let mut object = StoredObject {
        desired,
        exempt: BTreeSet::new(),
        keep: false,
        before: String::new(),
        after: String::new(),
        original: None,
        former: Some(former_ownership(live)),
        leaves: Vec::new(),
        origin: String::new(),
    };
    object.before = object.state(key, live);
    object.after.clone_from(&object.before);
    object
}

/// The objects of a history, oldest revision first.
fn in_order<'o>(history: &'o History, sources: &'o [Value]) -> impl Iterator<Item = &'o Value> {
    history.revisions.iter().filter_map(|revision| {
        sources.iter().find(|object| text(object, "/metadata/name") == revision.object.name)
    })
}

fn abouts(history: &History, sources: &[Value]) -> Vec<RecordAbout> {
    let size = |object: &Value| text(object, "/data/release").len();
    history
        .revisions
        .iter()
        .zip(in_order(history, sources))
        .map(|(revision, object)| RecordAbout {
            about: ObjectAbout {
                api_version: "v1".to_owned(),
                kind: revision.object.kind.clone(),
                namespace: revision.object.namespace.clone(),
                name: revision.object.name.clone(),
            },
            uid: revision.uid.clone(),
            release: history.release.clone(),
            revision: revision.revision,
            status: revision.status().to_string(),
            bytes: size(object),
        })
        .collect()
}

/// The objects of all revisions' manifests, each once.
fn items(request: &Request<'_>, found: &Found, records: &[Record]) -> Vec<Item> {
    let mut items: Vec<Item> = Vec::new();
    for record in records.iter().rev() {
        let manifest = record.manifest().unwrap_or_default();
        for item in manifest_objects(&found.discovery, &manifest, &request.from.namespace) {
            if !items.iter().any(|known| known.matches(&item)) {
                items.push(item);
            }
        }
    }
    items
}

/// The live objects that say they belong to the release; others are told.
async fn owned(
    request: &Request<'_>,
    items: &[Item],
    plan: &mut MovePlan,
) -> Result<Vec<(Item, Value)>, PlanError> {
    let from = &request.from;
    let found: Vec<_> = stream::iter(items.iter().map(|item| async move {
        match request.cluster.get(&item.target).await {
            Ok(live) => Ok(Some(live)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(failed(format!("read {}", item.target))(error)),
        }
    }))
    .buffered(CONCURRENCY)
    .collect()
    .await;
    let mut owned = Vec::new();
    for (item, live) in items.iter().zip(found) {
        let live = match live {
            Ok(Some(live)) => live,
            Ok(None) => continue,
            Err(error) => {
                let mut needs = looking(request);
                let rights = items.iter().map(|item| Right::on_object("get", item));
                needs.read(rights, "the release's objects");
                return Err(told(&*request.cluster, needs, error.into()).await);
            }
        };
        if ownership::check(&live, &from.release, &from.namespace).is_ok() {
            plan.objects.push(about(&item.value));
            owned.push((item.clone(), live));
        } else {
            plan.others.push(about(&item.value));
        }
    }
    Ok(owned)
}

/// Which object is meant.
fn about(object: &Value) -> ObjectAbout {
    ObjectAbout {
        api_version: text(object, "/apiVersion").to_owned(),
        kind: text(object, "/kind").to_owned(),
        namespace: text(object, "/metadata/namespace").to_owned(),
        name: text(object, "/metadata/name").to_owned(),
    }
}
