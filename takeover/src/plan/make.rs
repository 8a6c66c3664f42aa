//! Making a plan: survey, preconditions, rendering, gate, rights.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cilium::pinned::Pinned;
use cilium::provenance::{Provenance, Source as Origin};
use cilium::version::Step;
use futures::stream::{self, StreamExt as _};
use goyaml::Map;
use helm_rs::action::rights::Right;
use helm_rs::apply::{Created, Item};
use helm_rs::cluster::{Clock, Cluster, ClusterError};
use helm_rs::error_chain;
use helm_rs::render::Engine;
use serde_json::{Value, json};

use super::asks::consent;
use super::before;
use super::begun;
use super::cause::{self, Causes, object_key};
use super::left::{foreign_only, left_objects};
use super::making::Making;
use super::origin::leaves_no_values;
use super::preconditions::{Settled, is_deployed, preconditions, settle};
use super::recovery::recover;
use super::restart::restart;
use super::rights::needs::Written;
use super::rights::{self, Needs, Rights, WhoWrites};
use super::room;
use super::state::{State, read_live, show, state};
use super::{
    Action, ChartAbout, Computed, DryRuns, Key, KubePrism, Outcome, Plan, Refusal, SCHEMA_VERSION,
    digest, hash_leaves, kube_prism, unseen,
};
use crate::access::{Purpose, needs_to_look};
use crate::gate::{self, Desired};
use crate::inventory;
use crate::place::{CILIUM, Place};
use crate::rendered::{
    self, LookedUp, ReleaseName, Rendered, RenderedError, RenderedObject, Source,
};
use crate::run::lock::LeaseName;
use crate::run::status;
use crate::run::stored::Asked;
use crate::subject::Subject;
use crate::survey::{Survey, SurveyError, builtin, read, survey};

/// Requests under way at once.
pub(crate) const CONCURRENCY: usize = 16;
/// What objects are needed for that templates look up.
const LOOKED_UP: &str = "the chart looks it up";

/// What to plan.
pub struct Request<'a> {
    /// The cluster.
    pub cluster: Arc<dyn Cluster>,
    /// The clock.
    pub clock: &'a dyn Clock,
    /// What renders.
    pub engine: &'a Engine,
    /// The pinned chart.
    pub pinned: &'a Pinned,
    /// The operator's values; none: those of the foreign record, or none at all.
    pub values: Option<&'a Map>,
    /// Leave another network plugin alone.
    pub cni_unmanaged: bool,
    /// Who will write.
    pub who_writes: WhoWrites,
    /// 32 bytes of entropy for what the chart generates.
    pub entropy: [u8; 32],
    /// What is known of KubePrism on this node.
    pub kube_prism: KubePrism,
    /// What the server answered to dry runs of an earlier plan; none to ask anew.
    pub dry_runs: Option<&'a DryRuns>,
}

impl Subject for Request<'_> {
    fn place(&self) -> &Place {
        &CILIUM
    }

    fn schema(&self) -> &'static str {
        SCHEMA_VERSION
    }

    fn cluster(&self) -> &Arc<dyn Cluster> {
        &self.cluster
    }

    fn clock(&self) -> &dyn Clock {
        self.clock
    }

    fn leases(&self) -> BTreeSet<LeaseName> {
        BTreeSet::from([CILIUM.lease_name()])
    }

    async fn prepare(&self) -> Result<Prepared, PlanError> {
        prepare(self).await
    }
}

/// A plan with what carries it out. It may hold credentials.
#[derive(Debug)]
pub struct Prepared {
    /// The plan.
    pub plan: Plan,
    /// The key of its hashes.
    pub key: Key,
    /// What was read.
    pub survey: Survey,
    /// The rendered chart; none when the plan refuses before it is rendered.
    pub rendered: Option<Rendered>,
    /// The user's values with the owned keys decided.
    pub values: Map,
    /// The user's values where they were recovered from what runs.
    pub recovered: Option<Map>,
    /// Objects in the order of writing, hooks left out.
    pub objects: Vec<PreparedObject>,
    /// The rights that it takes.
    pub needs: Needs,
    /// The values that a change was asked for with; none for a takeover.
    pub asked: Option<Asked>,
}

impl Prepared {
    /// A plan that refuses before anything is rendered, or has nothing to do.
    pub(crate) fn refused(plan: Plan, key: Key, survey: Survey) -> Self {
        Self {
            plan,
            key,
            survey,
            rendered: None,
            values: Map::new(),
            recovered: None,
            objects: Vec::new(),
            needs: Needs::default(),
            asked: None,
        }
    }
}

/// An object with what is written over it.
#[derive(Clone, Debug)]
pub struct PreparedObject {
    /// Where it lives, and what is written: generated and others' leaves as they are live.
    pub item: Item,
    /// What was left out of the write.
    pub desired: Desired,
    /// Leaves that come out differently each time.
    pub generated: BTreeSet<gate::Path>,
    /// What an earlier revision wrote, where the write takes some of it away.
    pub original: Option<Value>,
    /// The live object; none when it is to be created.
    pub live: Option<Value>,
    /// Leaves that the write changes.
    pub(crate) changes: Vec<gate::Change>,
    /// Nothing is to be written.
    pub keep: bool,
    /// The hash of its state before; empty when it is to be created.
    pub before: String,
    /// The hash of its state after.
    pub after: String,
}

/// Why no plan can be made.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The cluster cannot be read.
    #[error(transparent)]
    Survey(#[from] SurveyError),
    /// The chart cannot be rendered.
    #[error(transparent)]
    Rendered(#[from] RenderedError),
    /// No patch can be made for an object.
    #[error("the patch for {object}")]
    Patch {
        /// The object.
        object: String,
        /// Why.
        source: mergepatch::Error,
    },
    /// The one who plans may not read what a plan is made of.
    #[error("refused: {}", .0.refusal().map_or_else(String::new, |refusal| refusal.message))]
    Rights(Box<Rights>),
    /// The server does not take a write, in a dry run.
    #[error("the server refuses the write of {object} (dry run)")]
    DryRun {
        /// The object.
        object: String,
        /// What it says.
        source: ClusterError,
    },
}

/// An error as the rights that are missing, when that is what it comes of.
pub(crate) async fn told(cluster: &dyn Cluster, needs: Needs, error: PlanError) -> PlanError {
    let rights = rights::check_first(cluster, needs).await;
    if rights.missing.is_empty() { error } else { PlanError::Rights(Box::new(rights)) }
}

pub(crate) fn refusal(reason: &str, message: impl std::fmt::Display) -> Refusal {
    Refusal { reason: reason.to_owned(), message: message.to_string() }
}

/// Makes a plan. Nothing is written.
///
/// # Errors
/// [`PlanError`]: when the cluster does not answer, or the chart does not render. What forbids
/// the takeover is no error but a refusal in the plan.
pub async fn prepare(request: &Request<'_>) -> Result<Prepared, PlanError> {
    // Steps are on the heap, since whoever awaits a plan would carry all of them.
    let mut survey = match Box::pin(survey(&*request.cluster)).await {
        Ok(survey) => survey,
        Err(error) => {
            let purpose = Purpose::Plan { values_given: request.values.is_some() };
            let needs = needs_to_look(&*request.cluster, purpose).await;
            return Err(told(&*request.cluster, needs, error.into()).await);
        }
    };
    let begun = match Box::pin(begun::find(&CILIUM, &*request.cluster, &mut survey)).await {
        Ok(found) => found,
        Err(error) => {
            let mut needs = Needs::default();
            needs.own(&CILIUM, true);
            return Err(told(&*request.cluster, needs, error.into()).await);
        }
    };
    let mut plan = Plan {
        schema_version: SCHEMA_VERSION.to_owned(),
        chart: ChartAbout {
            name: request.pinned.chart.name().to_owned(),
            version: request.pinned.chart.metadata.version.clone(),
            digest: request.pinned.digest.to_string(),
        },
        unchecked: survey.unread.clone(),
        ..Plan::default()
    };
    let key = Key(survey.cluster_id.clone());
    let begun = match begun {
        begun::Found::Nothing => None,
        begun::Found::Begun(begun) => Some(begun),
        begun::Found::Refused(refusal) => {
            plan.refusals.push(refusal);
            None
        }
    };
    let checked = preconditions(request, &survey, begun.as_deref(), &mut plan);
    let mut beside = None;
    if let Some(checked) = &checked {
        beside = beside_own(request, &checked.provenance).await;
        plan.refusals.extend(beside.clone());
    }
    let mut recovered = None;
    if let Some(checked) = checked.as_ref().filter(|_| plan.refusals.is_empty()) {
        unseen::check(request, &survey, &checked.provenance, begun.as_deref()).await?;
        if !checked.installs && leaves_no_values(request, &checked.provenance) {
            let is_upgrade = checked.step != Step::Same;
            recovered = Box::pin(recover(request, &survey, &checked.facts, is_upgrade)).await?;
        }
    }
    let values = recovered.as_ref().map(|(values, _)| values.clone());
    let settled = checked
        .and_then(|checked| settle(request, checked, begun.as_deref(), recovered, &mut plan));
    let goes_on = |plan: &Plan| {
        plan.refusals.is_empty() || plan.outcome == Outcome::Nothing && beside.is_none()
    };
    let Some(settled) = settled.filter(|_| goes_on(&plan)) else {
        if plan.is_refused() {
            plan.outcome = Outcome::Refused;
        }
        return Ok(Prepared { recovered: values, ..Prepared::refused(plan, key, survey) });
    };
    let making = Making::of(request);
    let mut prepared = Box::pin(gated(&making, survey, plan, key, settled)).await?;
    prepared.recovered = values;
    Ok(prepared)
}

/// Foreign records beside a record of ichor's that is deployed. Where a restore put them there and
/// was not seen to its end, or another tool made them since the takeover, none of them says what
/// runs, and nothing is ichor's alone.
async fn beside_own(request: &Request<'_>, provenance: &Provenance) -> Option<Refusal> {
    let is_told = matches!(provenance.source, Origin::Release(_) | Origin::Own);
    if !is_told || !is_deployed(provenance) {
        return None;
    }
    let found = status::status(&*request.cluster, request.clock).await.ok()?;
    if found.state == status::State::RestoreBegun {
        let message = format!(
            "a restore was begun and is not complete ({}): `ichor cni restore --yes` finishes it",
            found.stopped
        );
        return Some(refusal("Restore", message));
    }
    let is_another = |record: &&status::RecordFact| record.state == status::RecordState::Another;
    let others = found.facts.records.iter().filter(is_another).map(|record| &record.record);
    let others: Vec<&str> = others.chain(&found.facts.again).map(String::as_str).collect();
    (!others.is_empty()).then(|| {
        refusal(
            "Foreign",
            format!(
                "Cilium is ichor's, and another tool installed or upgraded it since: {} of the \
                 release before, which are not those that were taken over. Stop that tool; `ichor \
                 cni status` names what to remove (Cilium's objects stay), then plan again to see \
                 what it changed",
                others.join(", ")
            ),
        )
    })
}

/// The second half: rendering, gate, rights, digest.
pub(crate) async fn gated(
    making: &Making<'_>,
    survey: Survey,
    mut plan: Plan,
    key: Key,
    settled: Settled,
) -> Result<Prepared, PlanError> {
    let source = Source {
        engine: making.engine,
        chart: making.chart,
        release: ReleaseName { name: &making.place.release, namespace: &making.place.namespace },
        cluster: Arc::clone(making.cluster),
        discovery: &survey.discovery,
        server: &survey.server,
        entropy: making.entropy,
        now: making.clock.now().as_second(),
        looked_up: LookedUp::default(),
    };
    let mut rendered = match rendered::render(&source, &settled.effective) {
        Ok(rendered) => rendered,
        Err(error) => {
            let mut needs = Needs::of(making.place.words.deed);
            needs.read(source.looked_up.rights(), LOOKED_UP);
            return Err(told(&**making.cluster, needs, error.into()).await);
        }
    };
    let causes = causes(&source, &settled, &plan, &survey);
    let live = match read_live(&**making.cluster, &rendered.objects).await {
        Ok(live) => live,
        Err(error) => {
            let mut needs = Needs::of(making.place.words.deed);
            let rights = rendered.objects.iter().map(|o| Right::on_object("get", &o.item));
            needs.read(rights, "the chart's objects");
            needs.new_namespaces = new_namespaces(making, &rendered.objects).await;
            return Err(told(&**making.cluster, needs, error).await);
        }
    };
    let absent = rendered.objects.iter().zip(&live).filter(|(_, live)| live.is_none());
    let created = Created::of(absent.map(|(object, _)| &object.item));
    let states: Vec<Result<State, PlanError>> = stream::iter(
        rendered
            .objects
            .iter()
            .zip(live)
            .map(|(object, live)| state(making, object, live, &created, &key)),
    )
    .buffered(CONCURRENCY)
    .collect()
    .await;
    let mut prepared = Vec::new();
    let mut written = Vec::new();
    let mut parts = Vec::new();
    let mut kept: BTreeMap<String, Vec<(gate::Path, Value)>> = BTreeMap::new();
    for (object, state) in rendered.objects.iter().zip(states) {
        let state = match state {
            // What the server does not take is a finding, such as a Job that cannot be changed.
            Err(error @ PlanError::DryRun { .. }) => {
                plan.refusals.push(refusal("DryRun", error_chain(&error)));
                continue;
            }
            state => state?,
        };
        let name = object_key(&object.item.value);
        let kind = object.item.kind().kind.clone();
        parts.push(digest::object_part(&key, &name, &kind, &state.classes));
        if state.action == Action::Create {
            parts.push(json!({ "create": name, "hash": creation_hash(&key, object) }));
        }
        let object_plan = show(object, &state, &causes, &name);
        plan.objects.push(object_plan);
        written.push(Written {
            target: &object.item.target,
            value: &object.item.value,
            action: state.action,
            dry_run: state.computed != Computed::Unchanged,
        });
        if object.is_hook {
            continue;
        }
        let live = state.live.as_ref();
        let leaves = gate::leaves_of(&state.desired.object);
        let values = state.desired.kept.iter();
        kept.entry(format!("{kind}/{}", object.item.target.name)).or_default().extend(
            values.filter_map(|path| Some((path.clone(), leaves.get(path)?.value.clone()))),
        );
        let hash = |object: &Value, state: &State| {
            let generated = &state.generated;
            hash_leaves(&key, &kind, &gate::consented(object, &state.desired, generated))
        };
        let before = live.map(|live| hash(live, &state)).unwrap_or_default();
        let after = hash(&state.after, &state);
        let mut item = object.item.clone();
        item.value = state.desired.object.clone();
        if let Some(restart) = restart(&**making.cluster, object, &state, &survey).await {
            plan.restarts.push(restart);
        }
        prepared.push(PreparedObject {
            item,
            desired: state.desired,
            generated: state.generated,
            original: state.original,
            changes: state.classes.differences,
            keep: state.action == Action::Keep,
            live: state.live,
            before,
            after,
        });
    }
    plan.unchecked.extend(source.looked_up.stand_ins());
    talos_inventory(making, &survey, &mut plan, &prepared).await;
    let foreign_only = foreign_only(&survey, &settled, &rendered);
    plan.left_objects = left_objects(making, &foreign_only).await;
    parts.extend(plan.left_objects.iter().map(|left| json!({ "left": left.to_string() })));
    let gone = making.before.map(|before| before.gone(&rendered.objects)).unwrap_or_default();
    let (deleted, left) = before::deletions(&**making.cluster, making.place, &gone).await;
    parts.extend(
        deleted.iter().map(|one| json!({ "delete": one.about.to_string(), "uid": one.uid })),
    );
    plan.deletions = deleted;
    plan.left_objects.extend(left);
    let mut needs = needs(making, &survey, &plan, &written, &foreign_only, &source.looked_up).await;
    needs.looking(&settled.looking);
    needs.deleting(&gone);
    drop(gone);
    drop(written);
    rendered.keep(&kept);
    room::records(making.place, &mut plan, &survey, &settled, &rendered);
    // Where nothing is done, nothing is asked.
    if plan.outcome != Outcome::Nothing {
        let (who, caller) = (making.who_writes, survey.identity.user.as_str());
        plan.rights = rights::check(&**making.cluster, who, caller, &needs).await;
        plan.refusals.extend(plan.rights.refusal());
        consent(making.place, &mut plan);
    } else if matches!(making.who_writes, WhoWrites::Granted(_)) {
        // To find that out, the one who is to act has to look.
        let (who, caller) = (making.who_writes, survey.identity.user.as_str());
        plan.rights = rights::check(&**making.cluster, who, caller, &needs.of_looking()).await;
    }
    let records: Vec<String> = plan.records.iter().map(|record| record.about.to_string()).collect();
    let values = goyaml::json::to_json(&goyaml::Value::Map(key.values(&settled.effective)));
    let canonical = json!({
        "schemaVersion": plan.schema_version,
        "chart": plan.chart.digest,
        "values": key.hash(&Value::from(values.unwrap_or_default())),
        "from": plan.found.version,
        "to": making.version,
        "records": records,
        "objects": parts.into_iter().filter(|part| !part.is_null()).collect::<Vec<_>>(),
    });
    plan.digest = digest::digest(&canonical);
    if plan.found.talos {
        kube_prism::unchecked(&mut plan, making.kube_prism);
    }
    let is_written = plan.outcome != Outcome::Nothing;
    let values = settled.effective;
    let mut prepared = Prepared {
        plan,
        key,
        survey,
        rendered: Some(rendered),
        values,
        recovered: None,
        objects: prepared,
        needs,
        asked: None,
    };
    if is_written {
        room::stored_plan(making.place, &mut prepared);
    }
    if prepared.plan.is_refused() {
        prepared.plan.outcome = Outcome::Refused;
    }
    Ok(prepared)
}

/// The rights that a plan takes, from its first request to the last.
async fn needs(
    making: &Making<'_>,
    survey: &Survey,
    plan: &Plan,
    written: &[Written<'_>],
    foreign_only: &[Item],
    looked_up: &LookedUp,
) -> Needs {
    let cluster = &**making.cluster;
    let mut needs = making.reading.clone();
    let namespaces = builtin("v1", "Namespace", "namespaces", false);
    let own = read(cluster, &namespaces, "", &making.place.home).await;
    needs.own(making.place, !matches!(own, Ok(None)));
    needs.records(&plan.records);
    if survey.detected.nodes.iter().any(cilium::detect::Node::runs_talos) {
        needs.inventory();
    }
    needs.read(looked_up.rights(), LOOKED_UP);
    let left = foreign_only.iter().map(|item| Right::on_object("get", item));
    needs.read(left, "what the foreign release has and the chart does not");
    let restarts = plan.restarts.iter().map(|restart| restart.about.namespace.clone()).collect();
    needs.waiting(written, &restarts);
    needs.objects(cluster, &survey.discovery, written).await;
    needs
}

/// Namespaces of the chart that are not there yet, so that no Role can lie in them.
async fn new_namespaces(making: &Making<'_>, objects: &[RenderedObject]) -> BTreeSet<String> {
    let mut new = BTreeSet::new();
    for object in objects.iter().filter(|object| object.item.kind().kind == "Namespace") {
        let target = &object.item.target;
        if making.cluster.get(target).await.is_err_and(|error| error.is_not_found()) {
            new.insert(target.name.clone());
        }
    }
    new
}

/// What Talos' inventory lists. It decides nothing, so that a failure is only told.
async fn talos_inventory(
    making: &Making<'_>,
    survey: &Survey,
    plan: &mut Plan,
    objects: &[PreparedObject],
) {
    if !survey.detected.nodes.iter().any(cilium::detect::Node::runs_talos) {
        return;
    }
    match inventory::look(&**making.cluster, objects).await {
        Ok(about) => plan.talos_inventory = Some(about),
        Err(error) => plan.unchecked.push(format!(
            "what Talos' inventory (ConfigMap {}/{}) lists: {error}",
            inventory::INVENTORY_NAMESPACE,
            inventory::INVENTORY_NAME
        )),
    }
}

/// A created object's content, without what is generated.
fn creation_hash(key: &Key, object: &RenderedObject) -> String {
    let mut leaves = gate::leaves_of(&object.wanted.object);
    leaves.retain(|path, _| !object.wanted.generated.contains(path));
    hash_leaves(key, &object.item.kind().kind, &leaves)
}

fn causes(source: &Source<'_>, settled: &Settled, plan: &Plan, survey: &Survey) -> Causes {
    let mut causes = Causes {
        other_version: settled.step != Step::Same,
        installer: settled.provenance.managers.first().map(|m| m.name.clone()).unwrap_or_default(),
        ..Causes::default()
    };
    if let Origin::Release(release) = &settled.provenance.source {
        let items =
            rendered::manifest_objects(&survey.discovery, &release.manifest, &settled.namespace);
        causes.foreign = cause::index(items.iter().map(|item| &item.value));
        // Only where the user said something else than ichor wants do owned keys change anything.
        if (!plan.values.overridden.is_empty() || !plan.values.changes.is_empty())
            && let Ok(objects) = rendered::plain_objects(source, &release.config)
        {
            causes.user = cause::index(objects.iter());
        }
    } else if !plan.values.changes.is_empty()
        && let Ok(objects) = rendered::plain_objects(source, &settled.user)
    {
        causes.user = cause::index(objects.iter());
    }
    causes
}
