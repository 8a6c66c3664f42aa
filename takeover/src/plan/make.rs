//! Making a plan: survey, preconditions, rendering, gate, rights.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cilium::detect;
use cilium::kube_proxy;
use cilium::object::ObjectRef;
use cilium::owned::{self, Facts, Live};
use cilium::pinned::{NAMESPACE, Pinned, RECORD_NAMESPACE, RELEASE};
use cilium::provenance::{self, Counts, Evidence, Installer, Provenance, Source as Origin};
use cilium::values;
use cilium::version::{self, Step};
use futures::stream::{self, StreamExt as _};
use goyaml::Map;
use helm_rs::apply::{FIELD_MANAGER, Item};
use helm_rs::cluster::{
    Clock, Cluster, ClusterError, ErrorKind, ListQuery, Patch, Resource, WriteOptions, list_all,
};
use helm_rs::error_chain;
use helm_rs::render::Engine;
use serde_json::{Value, json};

use super::cause::{self, Causes, object_key};
use super::rights::{self, WhoWrites};
use super::{
    Action, ChartAbout, Computed, Consent, Difference, Found, HIDDEN, Key, MAX_SECRET, ObjectAbout,
    ObjectPlan, OtherLeaf, Outcome, OwnedChange, Plan, RecordAbout, Refusal, ResidueAbout, Restart,
    SCHEMA_VERSION, Size, ValuesAbout, digest, hash_leaves,
};
use crate::inventory;
use crate::gate::{self, Change, Classes, Desired, is_secret, pod_template};
use crate::rendered::{self, ReleaseName, Rendered, RenderedError, RenderedObject, Source};
use crate::survey::{Survey, SurveyError, failed, survey, text};

/// Requests under way at once.
const CONCURRENCY: usize = 16;

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
    /// Objects in the order of writing, hooks left out.
    pub objects: Vec<PreparedObject>,
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
    /// The live object; none when it is to be created.
    pub live: Option<Value>,
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
    /// The server does not take a write, in a dry run.
    #[error("the server refuses the write of {object} (dry run)")]
    DryRun {
        /// The object.
        object: String,
        /// What it says.
        source: ClusterError,
    },
}

fn refusal(reason: &str, message: impl std::fmt::Display) -> Refusal {
    Refusal { reason: reason.to_owned(), message: message.to_string() }
}

/// Makes a plan. Nothing is written.
///
/// # Errors
/// [`PlanError`]: when the cluster does not answer, or the chart does not render. What forbids
/// the takeover is no error but a refusal in the plan.
pub async fn prepare(request: &Request<'_>) -> Result<Prepared, PlanError> {
    let survey = survey(&*request.cluster).await?;
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
    let facts = preconditions(request, &survey, &mut plan);
    let Some(facts) = facts.filter(|_| plan.refusals.is_empty() || plan.outcome == Outcome::Nothing)
    else {
        return Ok(Prepared {
            plan,
            key,
            survey,
            rendered: None,
            values: Map::new(),
            objects: Vec::new(),
        });
    };
    gated(request, survey, plan, key, facts).await
}

/// What the preconditions leave for the gate.
struct Settled {
    provenance: Provenance,
    facts: Facts,
    user: Map,
    effective: Map,
    step: Step,
}

/// Everything that is checked before the chart is rendered. All that is wrong is told at once.
fn preconditions(request: &Request<'_>, survey: &Survey, plan: &mut Plan) -> Option<Settled> {
    let detected = &survey.detected;
    plan.found = Found {
        kubernetes: survey.server.git_version.clone(),
        nodes: detected.nodes.len(),
        talos: detected.runs_talos(),
        cni: detected.kind().name().to_owned(),
        ..Found::default()
    };
    let agent = match detected.decide(request.cni_unmanaged) {
        Ok(detect::Outcome::Cilium(agent)) => agent,
        Ok(detect::Outcome::Unmanaged(others)) => {
            plan.outcome = Outcome::Nothing;
            let names: Vec<String> = others.iter().map(ToString::to_string).collect();
            plan.found.provenance =
                format!("the CNI is left alone, as --cni-unmanaged says: {}", names.join(", "));
            return None;
        }
        Ok(detect::Outcome::Install) => {
            plan.refusals.push(refusal(
                "NoCni",
                "there is no CNI here, so that there is nothing to take over: install Cilium with \
                 `ichor release install cilium cilium --namespace kube-system`",
            ));
            return None;
        }
        Err(error) => {
            plan.refusals.push(refusal("Cni", error));
            return None;
        }
    };
    let (Some(daemon_set), Some(config_map)) = (&survey.daemon_set, &survey.config_map) else {
        plan.refusals.push(refusal(
            "NoConfig",
            "the ConfigMap kube-system/cilium-config is missing, so that the settings of the \
             running Cilium are not known: restore it with the tool that installed Cilium",
        ));
        return None;
    };
    let mut live: Vec<Value> = vec![daemon_set.clone(), config_map.clone()];
    live.extend(survey.operator.clone());
    let evidence = Evidence {
        live: &live,
        secrets: &survey.secrets,
        config_maps: &survey.config_maps,
        now: request.clock.now().as_second(),
    };
    let provenance = provenance::provenance(&evidence)
        .map_err(|error| {
            let reason = match &error {
                provenance::ProvenanceError::InProgress { .. } => "Pending",
                _ => "Provenance",
            };
            plan.refusals.push(refusal(reason, error_chain(&error)));
        })
        .ok();
    if let Some(provenance) = &provenance {
        plan.found.installer = provenance.installer.to_string();
        plan.found.provenance = tell(provenance);
        plan.records = records(provenance, survey);
        if !provenance.unreadable.is_empty() {
            let objects: Vec<String> =
                provenance.unreadable.iter().map(|(object, _)| object.to_string()).collect();
            plan.unchecked.push(format!("records that cannot be read: {}", objects.join(", ")));
        }
    }
    let recorded = provenance.as_ref().and_then(|provenance| match &provenance.source {
        Origin::Release(release) => Some(release.app_version.clone()),
        _ => None,
    });
    let pinned = &request.pinned.version;
    let step = version::live(Some(&agent.image), recorded.as_deref())
        .map(|live| {
            plan.found.version = live.to_string();
            live
        })
        .and_then(|live| version::step(&live, pinned))
        .map_err(|error| plan.refusals.push(refusal("Version", error)))
        .ok();
    if let Err(error) = version::check_kubernetes(&survey.server.git_version, pinned) {
        plan.refusals.push(refusal("Kubernetes", error));
    }
    let facts = match Live::read(daemon_set, config_map) {
        Ok(live) => {
            if let Err(error) = owned::check_ipam(&live) {
                plan.refusals.push(refusal("Ipam", error));
            }
            match kube_proxy::KubeProxy::agree(detected.kube_proxy.is_some(), live.replacement) {
                Ok(state) => plan.found.kube_proxy = state.to_string(),
                Err(error) => plan.refusals.push(refusal("KubeProxy", error)),
            }
            Some(Facts::running(live, detected.runs_talos()))
        }
        Err(error) => {
            plan.refusals.push(refusal("Settings", error));
            None
        }
    };
    plan.refusals.extend(health(survey));
    let (provenance, step, facts) = (provenance?, step?, facts?);
    let user = user_values(request, &provenance, &mut plan.values);
    let effective = match values::effective(&user, &facts) {
        Ok(effective) => effective,
        Err(error) => {
            plan.refusals.push(refusal("Values", error));
            return None;
        }
    };
    plan.values.overridden = effective
        .overridden
        .iter()
        .map(|one| OwnedChange {
            key: one.key.clone(),
            from: shown(Some(&one.said)),
            to: shown(one.wanted.as_ref()),
            needs_consent: false,
        })
        .collect();
    plan.values.changes = owned::changes(&facts)
        .into_iter()
        .map(|change| OwnedChange {
            key: change.key.clone(),
            from: shown(change.live.as_ref()),
            to: shown(Some(&change.wanted)),
            needs_consent: change.needs_consent,
        })
        .collect();
    plan.outcome = if matches!(step, Step::Upgrade { .. }) { Outcome::Upgrade } else { Outcome::TakeOver };
    if matches!(provenance.source, Origin::Own) {
        plan.outcome = own_outcome(&provenance);
    }
    Some(Settled { provenance, facts, user, effective: effective.values, step })
}

/// What is left to do when there are only ichor's own records.
fn own_outcome(provenance: &Provenance) -> Outcome {
    let newest = provenance.own.as_ref().and_then(|own| own.newest());
    match newest.map(provenance::Revision::status) {
        Some(helm_rs::release::Status::Deployed) => Outcome::Nothing,
        _ => Outcome::Resume,
    }
}

fn shown(value: Option<&goyaml::Value>) -> String {
    value.map_or_else(String::new, |value| match value {
        goyaml::Value::String(text) => text.to_string(),
        other => goyaml::json::to_json(other).unwrap_or_default(),
    })
}

fn tell(provenance: &Provenance) -> String {
    match &provenance.source {
        Origin::Own => "ichor's own release".to_owned(),
        Origin::Release(release) => {
            let history = &release.history;
            let why = match release.reason {
                Counts::Deployed => String::new(),
                Counts::LastDeployed { failed } => format!(
                    "; revision {failed} failed, so that the values are those of revision {}, the \
                     last deployed one",
                    release.counts.revision
                ),
                Counts::OnlyFailed => "; every revision failed, the newest one counts".to_owned(),
            };
            format!(
                "Helm release {}, records in namespace {}, {} revision(s){why}",
                history.release,
                history.storage_namespace,
                history.revisions.len()
            )
        }
        Origin::NoRecord { cli } => {
            let claim = provenance.claim.as_ref().map_or_else(String::new, |claim| {
                format!(
                    "; the objects say that they belong to Helm release {claim}, but there is no \
                     record of it that may be read (another storage driver, or deleted)"
                )
            });
            let cli = if cli.is_some() { ", with the values that the Cilium CLI left" } else { "" };
            let by = match &provenance.installer {
                Installer::Unknown => String::new(),
                installer => format!(", installed by {installer}"),
            };
            format!("no release record{by}{cli}{claim}")
        }
    }
}

fn user_values(request: &Request<'_>, provenance: &Provenance, about: &mut ValuesAbout) -> Map {
    let (mut values, source) = match (&provenance.source, request.values) {
        (Origin::Release(release), given) => {
            let given = given.map_or("", |_| "; --cilium-values is not used, since there is a record");
            let source = format!(
                "the record of revision {} of release {}{given}",
                release.counts.revision, release.history.release
            );
            (release.config.clone(), source)
        }
        (_, Some(values)) => (values.clone(), "the file of --cilium-values".to_owned()),
        (Origin::NoRecord { cli: Some(cli) }, None) => {
            (cli.values.clone(), "the Cilium CLI's Secret".to_owned())
        }
        (Origin::Own, None) => (own_values(provenance), "ichor's own record".to_owned()),
        (Origin::NoRecord { .. }, None) => (
            Map::new(),
            "none: there is no record and no --cilium-values, so that the chart's defaults hold"
                .to_owned(),
        ),
    };
    about.source = source;
    if !matches!(provenance.source, Origin::Release(_)) {
        return values;
    }
    owned::strip(&mut values);
    values
}

fn own_values(provenance: &Provenance) -> Map {
    let newest = provenance.own.as_ref().and_then(|own| own.newest());
    let record = newest.and_then(|newest| newest.record().ok());
    record.and_then(|record| record.user_values().ok().flatten()).unwrap_or_default()
}

/// The foreign records, oldest first.
fn records(provenance: &Provenance, survey: &Survey) -> Vec<RecordAbout> {
    let Origin::Release(release) = &provenance.source else { return Vec::new() };
    release
        .history
        .revisions
        .iter()
        .map(|revision| RecordAbout {
            about: ObjectAbout {
                api_version: "v1".to_owned(),
                kind: revision.object.kind.clone(),
                namespace: revision.object.namespace.clone(),
                name: revision.object.name.clone(),
            },
            uid: revision.uid.clone(),
            release: release.history.release.clone(),
            revision: revision.revision,
            status: revision.status().to_string(),
            bytes: stored_bytes(survey, &revision.object),
        })
        .collect()
}

fn stored_bytes(survey: &Survey, object: &ObjectRef) -> usize {
    find_record(survey, object).map_or(0, |record| {
        let data = record.get("data").and_then(Value::as_object);
        let encoded: usize =
            data.into_iter().flatten().filter_map(|(_, value)| value.as_str().map(str::len)).sum();
        if object.kind == "Secret" { encoded / 4 * 3 } else { encoded }
    })
}

/// A record's object among those that were read.
pub(crate) fn find_record<'a>(survey: &'a Survey, object: &ObjectRef) -> Option<&'a Value> {
    let all = if object.kind == "Secret" { &survey.secrets } else { &survey.config_maps };
    all.iter().find(|candidate| {
        text(candidate, "/metadata/namespace") == object.namespace
            && text(candidate, "/metadata/name") == object.name
    })
}

/// DaemonSet and operator must be Ready.
fn health(survey: &Survey) -> Vec<Refusal> {
    let number = |object: &Value, pointer: &str| {
        object.pointer(pointer).and_then(Value::as_i64).unwrap_or_default()
    };
    let mut refusals = Vec::new();
    if let Some(set) = &survey.daemon_set {
        let (ready, wanted) =
            (number(set, "/status/numberReady"), number(set, "/status/desiredNumberScheduled"));
        if ready < wanted || wanted == 0 && !survey.detected.nodes.is_empty() {
            refusals.push(refusal(
                "Unhealthy",
                format!(
                    "DaemonSet kube-system/cilium is Ready on {ready} of {wanted} nodes: a sick \
                     Cilium is not taken over; bring it to Ready first, then try again"
                ),
            ));
        }
    }
    match &survey.operator {
        Some(operator) => {
            let wanted = operator.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(1);
            let ready = number(operator, "/status/readyReplicas");
            if ready < wanted {
                refusals.push(refusal(
                    "Unhealthy",
                    format!(
                        "Deployment kube-system/cilium-operator has {ready} of {wanted} replicas \
                         Ready: bring it to Ready first, then try again"
                    ),
                ));
            }
        }
        None => refusals.push(refusal(
            "Unhealthy",
            "the Deployment kube-system/cilium-operator is missing: restore it with the tool that \
             installed Cilium, then try again",
        )),
    }
    refusals
}

/// The second half: rendering, gate, rights, digest.
async fn gated(
    request: &Request<'_>,
    survey: Survey,
    mut plan: Plan,
    key: Key,
    settled: Settled,
) -> Result<Prepared, PlanError> {
    let source = Source {
        engine: request.engine,
        chart: &request.pinned.chart,
        release: ReleaseName { name: RELEASE, namespace: NAMESPACE },
        cluster: Arc::clone(&request.cluster),
        discovery: &survey.discovery,
        server: &survey.server,
        entropy: request.entropy,
        now: request.clock.now().as_second(),
    };
    let mut rendered = rendered::render(&source, &settled.effective)?;
    let causes = causes(&source, &settled, &plan, &survey);
    let live = read_live(&*request.cluster, &rendered.objects).await?;
    let created_namespaces: BTreeSet<String> = rendered
        .objects
        .iter()
        .zip(&live)
        .filter(|(object, live)| live.is_none() && object.item.kind().kind == "Namespace")
        .map(|(object, _)| object.item.target.name.clone())
        .collect();
    let states: Vec<Result<State, PlanError>> = stream::iter(rendered.objects.iter().zip(live).map(
        |(object, live)| state(&*request.cluster, object, live, &created_namespaces),
    ))
    .buffered(CONCURRENCY)
    .collect()
    .await;
    let mut prepared = Vec::new();
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
            hash_leaves(&key, &gate::consented(object, &state.desired, generated))
        };
        let before = live.map(|live| hash(live, &state)).unwrap_or_default();
        let after = hash(&state.after, &state);
        let mut item = object.item.clone();
        item.value = state.desired.object.clone();
        if let Some(restart) = restart(&*request.cluster, object, &state, &survey).await {
            plan.restarts.push(restart);
        }
        prepared.push(PreparedObject {
            item,
            desired: state.desired,
            generated: state.generated,
            keep: state.action == Action::Keep,
            live: state.live,
            before,
            after,
        });
    }
    rendered.keep(&kept);
    talos_inventory(request, &survey, &mut plan, &prepared).await;
    plan.left_objects = left_objects(request, &survey, &settled, &rendered).await;
    parts.extend(plan.left_objects.iter().map(|left| json!({ "left": left.to_string() })));
    sizes(&mut plan, &settled, &rendered);
    plan.rights = rights::check(request, &survey, &plan, &prepared).await;
    if !plan.rights.missing.is_empty() {
        let names: Vec<String> = plan.rights.missing.iter().map(ToString::to_string).collect();
        plan.refusals.push(refusal(
            "Rights",
            format!(
                "{} lacks rights that the takeover needs, so that it would stop in the middle: {}",
                plan.rights.identity,
                names.join("; ")
            ),
        ));
    }
    consent(&mut plan);
    let records: Vec<String> = plan.records.iter().map(|record| record.about.to_string()).collect();
    let values = goyaml::json::to_json(&goyaml::Value::Map(settled.effective.clone()));
    let canonical = json!({
        "schemaVersion": SCHEMA_VERSION,
        "chart": plan.chart.digest,
        "values": key.hash(&Value::from(values.unwrap_or_default())),
        "from": plan.found.version,
        "to": request.pinned.version.to_string(),
        "records": records,
        "objects": parts.into_iter().filter(|part| !part.is_null()).collect::<Vec<_>>(),
    });
    plan.digest = digest::digest(&canonical);
    plan.unchecked.push(
        "KubePrism (localhost:7445) and the inline manifest of the machine configuration: this \
         command makes no Talos call"
            .to_owned(),
    );
    if !plan.found.talos {
        plan.unchecked.pop();
    }
    if plan.is_refused() {
        plan.outcome = Outcome::Refused;
    }
    let values = settled.effective;
    Ok(Prepared { plan, key, survey, rendered: Some(rendered), values, objects: prepared })
}

/// What Talos' inventory lists. It decides nothing, so that a failure is only told.
async fn talos_inventory(
    request: &Request<'_>,
    survey: &Survey,
    plan: &mut Plan,
    objects: &[PreparedObject],
) {
    if !survey.detected.nodes.iter().any(detect::Node::runs_talos) {
        return;
    }
    match inventory::look(&*request.cluster, objects).await {
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
    hash_leaves(key, &leaves)
}

fn causes(source: &Source<'_>, settled: &Settled, plan: &Plan, survey: &Survey) -> Causes {
    let mut causes = Causes {
        other_version: settled.step != Step::Same,
        installer: settled.provenance.managers.first().map(|m| m.name.clone()).unwrap_or_default(),
        ..Causes::default()
    };
    if let Origin::Release(release) = &settled.provenance.source {
        let items = rendered::manifest_objects(&survey.discovery, &release.manifest, NAMESPACE);
        causes.foreign = cause::index(items.iter().map(|item| &item.value));
        // Only where the user said something else than ichor wants do owned keys change anything.
        if !plan.values.overridden.is_empty() || !plan.values.changes.is_empty() {
            if let Ok(objects) = rendered::plain_objects(source, &release.config) {
                causes.user = cause::index(objects.iter());
            }
        }
    } else if !plan.values.changes.is_empty()
        && let Ok(objects) = rendered::plain_objects(source, &settled.user)
    {
        causes.user = cause::index(objects.iter());
    }
    causes
}

async fn read_live(
    cluster: &dyn Cluster,
    objects: &[RenderedObject],
) -> Result<Vec<Option<Value>>, PlanError> {
    let results: Vec<Result<Option<Value>, (String, ClusterError)>> =
        stream::iter(objects.iter().map(|object| async move {
            match cluster.get(&object.item.target).await {
                Ok(live) => Ok(Some(live)),
                Err(error) if error.is_not_found() => Ok(None),
                Err(error) => Err((format!("read {}", object.item.target), error)),
            }
        }))
        .buffered(CONCURRENCY)
        .collect()
        .await;
    let results: Result<Vec<_>, _> = results.into_iter().collect();
    Ok(results.map_err(|(doing, error)| failed(doing)(error))?)
}

/// What a write would do to one object.
struct State {
    action: Action,
    computed: Computed,
    why: String,
    desired: Desired,
    generated: BTreeSet<gate::Path>,
    live: Option<Value>,
    after: Value,
    classes: Classes,
}

async fn state(
    cluster: &dyn Cluster,
    object: &RenderedObject,
    live: Option<Value>,
    created_namespaces: &BTreeSet<String>,
) -> Result<State, PlanError> {
    let generated = object.wanted.generated.clone();
    let Some(live) = live else {
        let desired = Desired {
            object: object.wanted.object.clone(),
            kept: BTreeSet::new(),
            yielded: Vec::new(),
        };
        let mut state = State {
            action: if object.is_hook { Action::Hook } else { Action::Create },
            computed: Computed::Memory,
            why: String::new(),
            after: desired.object.clone(),
            desired,
            generated,
            live: None,
            classes: Classes::default(),
        };
        if object.is_hook {
            state.computed = Computed::Unchanged;
        } else if created_namespaces.contains(&object.item.target.namespace) {
            state.why = "its namespace is created by the same plan".to_owned();
        } else {
            let options = dry_run();
            match cluster.create(&object.item.target, &object.item.value, &options).await {
                Ok(after) => {
                    state.after = after;
                    state.computed = Computed::Server;
                }
                Err(error) => state.why = no_dry_run(&object.item, error)?,
            }
        }
        return Ok(state);
    };
    let desired = gate::desired(&object.wanted, &live);
    if object.is_hook {
        return Ok(State {
            action: Action::Hook,
            computed: Computed::Unchanged,
            why: String::new(),
            classes: gate::classify(&live, &live, &desired),
            after: live.clone(),
            desired,
            generated,
            live: Some(live),
        });
    }
    let wrong = |source| PlanError::Patch { object: object.item.target.to_string(), source };
    let patch = gate::patch(&desired.object, &live).map_err(wrong)?;
    let (after, computed, why) = match &patch {
        None => (live.clone(), Computed::Unchanged, String::new()),
        Some(patch) => after(cluster, &object.item, &live, patch).await?,
    };
    let classes = gate::classify(&live, &after, &desired);
    let changes = !classes.differences.is_empty() || !classes.ownership.is_empty();
    Ok(State {
        action: if patch.is_some() && changes { Action::Patch } else { Action::Keep },
        computed,
        why,
        desired,
        generated,
        live: Some(live),
        after,
        classes,
    })
}

fn dry_run() -> WriteOptions {
    WriteOptions { dry_run: true, field_manager: FIELD_MANAGER.to_owned(), ..WriteOptions::default() }
}

/// Why a dry run is done in memory instead.
///
/// # Errors
/// What the server says against the object itself.
fn no_dry_run(item: &Item, source: ClusterError) -> Result<String, PlanError> {
    match source.kind() {
        ErrorKind::Forbidden => {
            Ok(format!("this identity may not write it, not even in a dry run: {source}"))
        }
        ErrorKind::Unsupported => Ok(source.to_string()),
        _ => Err(PlanError::DryRun { object: item.target.to_string(), source }),
    }
}

async fn after(
    cluster: &dyn Cluster,
    item: &Item,
    live: &Value,
    patch: &Patch,
) -> Result<(Value, Computed, String), PlanError> {
    match cluster.patch(&item.target, patch, &dry_run()).await {
        Ok(after) => Ok((after, Computed::Server, String::new())),
        Err(error) => {
            let why = no_dry_run(item, error)?;
            let wrong = |source| PlanError::Patch { object: item.target.to_string(), source };
            Ok((gate::apply_in_memory(live, patch).map_err(wrong)?, Computed::Memory, why))
        }
    }
}

fn show(object: &RenderedObject, state: &State, causes: &Causes, name: &str) -> ObjectPlan {
    let kind = object.item.kind();
    let difference = |change: &Change| {
        let (mut cause, manager) = causes.of(name, change);
        if state.generated.contains(&change.path) {
            cause = super::Cause::Generated;
        }
        let secret = is_secret(&kind.kind, &change.path);
        let shown = |value: &Option<Value>| {
            value.as_ref().map(|value| if secret { Value::from(HIDDEN) } else { value.clone() })
        };
        Difference {
            path: change.path.to_string(),
            live: shown(&change.live),
            new: shown(&change.new),
            cause,
            manager,
        }
    };
    let classes = &state.classes;
    let effect = match (state.action, kind.kind.as_str()) {
        (Action::Create, "Job") if object.item.target.name.contains("generate-certs") => {
            "the Job runs once and issues new certificates".to_owned()
        }
        (Action::Create, "Job") => "the Job runs once".to_owned(),
        _ => String::new(),
    };
    ObjectPlan {
        about: ObjectAbout {
            api_version: kind.api_version(),
            kind: kind.kind.clone(),
            namespace: object.item.target.namespace.clone(),
            name: object.item.target.name.clone(),
        },
        action: state.action,
        computed: state.computed,
        computed_why: state.why.clone(),
        effect,
        differences: classes.differences.iter().map(difference).collect(),
        residue: classes
            .residue
            .iter()
            .map(|left| ResidueAbout {
                path: left.path.to_string(),
                value: if is_secret(&kind.kind, &left.path) {
                    Value::from(HIDDEN)
                } else {
                    left.value.clone()
                },
                manager: left.managers.first().map(|m| m.name.clone()).unwrap_or_default(),
            })
            .collect(),
        ownership: classes.ownership.iter().map(difference).collect(),
        generated: classes.generated.iter().map(ToString::to_string).collect(),
        others: classes
            .others
            .iter()
            .map(|(path, manager)| OtherLeaf { path: path.to_string(), manager: manager.clone() })
            .collect(),
        defaults: classes.defaults.len(),
    }
}

/// Whether a workload's pods are replaced, and how many.
async fn restart(
    cluster: &dyn Cluster,
    object: &RenderedObject,
    state: &State,
    survey: &Survey,
) -> Option<Restart> {
    let kind = object.item.kind().kind.clone();
    if !matches!(kind.as_str(), "DaemonSet" | "Deployment" | "StatefulSet") {
        return None;
    }
    let template = pod_template(&kind)?;
    let leaves: Vec<String> = state
        .classes
        .differences
        .iter()
        .filter(|change| change.path.starts_with(template))
        .map(|change| change.path.to_string())
        .collect();
    let live = state.live.as_ref()?;
    if leaves.is_empty() {
        return None;
    }
    let number = |pointer: &str| live.pointer(pointer).and_then(Value::as_u64).unwrap_or_default();
    let pods = if kind == "DaemonSet" {
        number("/status/currentNumberScheduled")
    } else {
        number("/status/replicas")
    };
    let nodes = match selector(live) {
        Some(labels) => nodes_of(cluster, &object.item.target.namespace, labels).await,
        None => None,
    };
    let strategy = text(live, "/spec/updateStrategy/type");
    Some(Restart {
        about: ObjectAbout {
            api_version: object.item.kind().api_version(),
            kind,
            namespace: object.item.target.namespace.clone(),
            name: object.item.target.name.clone(),
        },
        leaves,
        pods,
        nodes: nodes.unwrap_or_else(|| pods.min(survey.detected.nodes.len() as u64)),
        on_delete: strategy == "OnDelete",
    })
}

fn selector(workload: &Value) -> Option<String> {
    let labels = workload.pointer("/spec/selector/matchLabels")?.as_object()?;
    let parts: Vec<String> = labels
        .iter()
        .filter_map(|(key, value)| Some(format!("{key}={}", value.as_str()?)))
        .collect();
    Some(parts.join(","))
}

async fn nodes_of(cluster: &dyn Cluster, namespace: &str, labels: String) -> Option<u64> {
    let pods = Resource::builtin("v1", "Pod", "pods", true);
    let query = ListQuery { namespace: namespace.to_owned(), labels, ..ListQuery::default() };
    let page = list_all(cluster, &pods, &query).await.ok()?;
    let nodes: BTreeSet<&str> = page.items.iter().map(|pod| text(pod, "/spec/nodeName")).collect();
    Some(nodes.iter().filter(|name| !name.is_empty()).count() as u64)
}

/// Live objects of the foreign release that the chart does not render.
async fn left_objects(
    request: &Request<'_>,
    survey: &Survey,
    settled: &Settled,
    rendered: &Rendered,
) -> Vec<ObjectAbout> {
    let Origin::Release(release) = &settled.provenance.source else { return Vec::new() };
    let items = rendered::manifest_objects(&survey.discovery, &release.manifest, NAMESPACE);
    let gone: Vec<&Item> = items
        .iter()
        .filter(|item| !rendered.objects.iter().any(|object| object.item.matches(item)))
        .collect();
    let cluster = &*request.cluster;
    let live: Vec<bool> = stream::iter(
        gone.iter().map(|item| async move { cluster.get(&item.target).await.is_ok() }),
    )
    .buffered(CONCURRENCY)
    .collect()
    .await;
    gone.iter()
        .zip(live)
        .filter(|(_, is_live)| *is_live)
        .map(|(item, _)| ObjectAbout {
            api_version: item.kind().api_version(),
            kind: item.kind().kind.clone(),
            namespace: item.target.namespace.clone(),
            name: item.target.name.clone(),
        })
        .collect()
}

/// Forecasts the Secrets' sizes, and refuses what does not fit.
fn sizes(plan: &mut Plan, settled: &Settled, rendered: &Rendered) {
    if let Ok(record) = crate::run::record::draft(rendered, &settled.effective, 1, "", "")
        && let Ok(text) = helm_rs::release::encode(&record.to_json())
    {
        let what = format!("ichor's record (Secret {RECORD_NAMESPACE}/sh.helm.release.v1.{RELEASE}.v1)");
        plan.sizes.push(Size { what, bytes: text.len() });
    }
    let largest: BTreeMap<&str, usize> =
        plan.records.iter().map(|record| (record.about.name.as_str(), record.bytes)).collect();
    for (name, bytes) in largest {
        if bytes > MAX_SECRET {
            plan.sizes.push(Size { what: format!("the backup of {name}"), bytes });
        }
    }
    let total: usize = plan.records.iter().map(|record| record.bytes).sum();
    if total > 0 {
        plan.sizes.push(Size { what: "the backup of the foreign records, in all".to_owned(), bytes: total });
    }
    let too_large: Vec<Refusal> = plan
        .sizes
        .iter()
        .filter(|size| size.bytes > MAX_SECRET && !size.what.ends_with("in all"))
        .map(|size| {
            refusal(
                "Room",
                format!(
                    "{} has {} bytes, and a Secret holds {MAX_SECRET}: shorten what is in the \
                     values or the chart",
                    size.what, size.bytes
                ),
            )
        })
        .collect();
    plan.refusals.extend(too_large);
}

fn consent(plan: &mut Plan) {
    let figures = plan.figures();
    if !plan.gate_is_empty() {
        let mut why = Vec::new();
        for (count, what) in [
            (figures.differences, "leaves would change"),
            (figures.residue, "live-only leaves or objects would stay"),
            (figures.creations, "objects would be created"),
        ] {
            if count > 0 {
                why.push(format!("{count} {what}"));
            }
        }
        plan.consent.push(Consent { flag: "--accept-cilium-diff".to_owned(), why: why.join(", ") });
    }
    let changes: Vec<String> = plan
        .values
        .changes
        .iter()
        .filter(|change| change.needs_consent)
        .map(|change| format!("{} from {} to {}", change.key, change.from, change.to))
        .collect();
    if !changes.is_empty() {
        plan.consent.push(Consent {
            flag: "--accept-cilium-changes".to_owned(),
            why: format!("settings of the running data plane would change: {}", changes.join(", ")),
        });
    }
}
