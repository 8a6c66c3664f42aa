//! What an installation or upgrade would do, found out without writing: every request that it
//! would send is sent as a dry run, and what the server answers is compared with what is live.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::error::ActionError;
use super::hook_rights::PlannedHooks;
use super::install::{InstallOptions, crd_items};
use super::planned::{create, delete, object, update};
use super::prepare;
use super::rights::{self, Right};
use super::session::{DryRun, ReleaseOptions, Session};
use super::undo::Undo;
use super::upgrade::{self, UpgradeOptions};
use crate::apply::{Created, CustomMerge, Item, Live, Method};
use crate::capabilities::KubeVersion;
use crate::chart::{Chart, Warning};
use crate::cluster::{Discovery, ErrorKind, Resource};
use crate::manifest::HookEvent;
use crate::render::Host;
use crate::values::{self, Nulls};

pub use super::planned::{Leaf, ObjectChange, PlannedObject};

/// What a plan is for.
#[derive(Clone, Debug)]
pub enum PlanOptions {
    /// An installation.
    Install(InstallOptions),
    /// An upgrade.
    Upgrade(UpgradeOptions),
}

/// A plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// `install` or `upgrade`.
    pub action: &'static str,
    /// The release's name.
    pub release: String,
    /// The release's namespace.
    pub namespace: String,
    /// The revision that would be made.
    pub revision: i64,
    /// The objects: those under `crds/`, the release's namespace where it is created for it, those of
    /// the chart in their order, those that left it.
    pub objects: Vec<PlannedObject>,
    /// Hooks that would run.
    pub hooks: Vec<String>,
    /// Hooks that cannot be made, and why.
    pub hook_faults: Vec<String>,
    /// The rights that the action needs.
    pub rights: Vec<Right>,
    /// The namespaces that the action would create.
    pub new_namespaces: BTreeSet<String>,
    /// Whether the release's own is one of them because the action was told to create it, and not
    /// because the chart has it.
    pub creates_namespace: bool,
    /// Those that this identity lacks. When one of them keeps the plan from looking, `objects` is
    /// empty.
    pub missing: Vec<Right>,
}

impl Plan {
    /// Whether anything would be created, changed or deleted.
    pub fn changes(&self) -> bool {
        self.objects
            .iter()
            .any(|object| !matches!(object.change, ObjectChange::None | ObjectChange::Leave))
    }

    /// Whether the action could be done.
    pub fn is_possible(&self) -> bool {
        self.missing.is_empty()
            && self.hook_faults.is_empty()
            && self.objects.iter().all(|object| object.fault.is_empty())
    }
}

/// Everything that a plan is computed from.
struct Draft {
    action: &'static str,
    namespace: String,
    revision: i64,
    current: Vec<Item>,
    target: Vec<Item>,
    crds: Vec<Item>,
    hooks: PlannedHooks,
    undo: Undo,
    custom: CustomMerge,
    method: Method,
    /// The release's namespace, where the action was told to create it.
    namespace_object: Option<Item>,
    /// Records that would be written or deleted.
    updated_records: Vec<i64>,
    pruned_records: Vec<i64>,
    /// Kinds that do not exist yet.
    new_kinds: BTreeSet<(String, String)>,
}

/// Makes a plan; the chart comes back with its dependencies processed.
///
/// # Errors
/// [`ActionError`], as the action itself.
pub async fn plan(
    session: &Session<'_>,
    chart: &mut Chart,
    values: &goyaml::Map,
    options: &PlanOptions,
    host: &mut Host,
    warnings: &mut Vec<Warning>,
) -> Result<Plan, ActionError> {
    let version = session.reach().await?;
    let (draft, action, release) = match options {
        PlanOptions::Install(options) => (
            install_draft(session, chart, values, options, version, host, warnings).await,
            "install",
            &options.release,
        ),
        PlanOptions::Upgrade(options) => (
            upgrade_draft(session, chart, values, options, version, host, warnings).await,
            "upgrade",
            &options.release,
        ),
    };
    match draft {
        Ok(draft) => finish(&session.writing(draft.method), draft, release).await,
        Err(ActionError::Storage(error))
            if error.cluster().is_some_and(|error| error.kind() == ErrorKind::Forbidden) =>
        {
            // The records cannot be read: which revision is live is not known.
            let list = Right::any("list", "", record_resource(session), &release.namespace);
            Ok(Plan {
                action,
                release: release.name.clone(),
                namespace: release.namespace.clone(),
                revision: 0,
                objects: Vec::new(),
                hooks: Vec::new(),
                hook_faults: Vec::new(),
                rights: vec![list.clone()],
                new_namespaces: BTreeSet::new(),
                creates_namespace: false,
                missing: vec![list],
            })
        }
        Err(error) => Err(error),
    }
}

/// The resource that holds records.
fn record_resource(session: &Session<'_>) -> &'static str {
    if session.driver.name() == "ConfigMap" { "configmaps" } else { "secrets" }
}

/// Options under which rendering looks at the cluster but no hook is refused.
fn dry(release: &ReleaseOptions) -> ReleaseOptions {
    ReleaseOptions { dry_run: DryRun::Server, ..release.clone() }
}

async fn install_draft(
    session: &Session<'_>,
    chart: &mut Chart,
    values: &goyaml::Map,
    options: &InstallOptions,
    version: KubeVersion,
    host: &mut Host,
    warnings: &mut Vec<Warning>,
) -> Result<Draft, ActionError> {
    let (method, _) = options.release.method.resolve(None)?;
    let last = super::install::available(session, options).await?;
    values::process_dependencies(chart, values, Nulls::Keep, warnings)?;
    let served = session.discover(false).await?;
    let crds = if options.skip_crds {
        Vec::new()
    } else {
        missing_crds(session, chart, &served, &options.release).await?
    };
    let (discovery, new_kinds) = with_definitions(&served, &crds);
    let release = dry(&options.release);
    prepare::check_labels(&release)?;
    let rendering = prepare::render(
        session,
        chart,
        values,
        1,
        &release.namespace,
        Session::capabilities(version, &discovery),
        &release,
        host,
        warnings,
    )?;
    let mut target = prepare::objects(
        &discovery,
        &rendering.manifest,
        &release,
        !release.disable_validation,
        "unable to build kubernetes objects from release manifest",
    )?;
    prepare::own(&mut target, &release.name, &release.namespace);
    let (revision, updated_records) = match &last {
        None => (1, vec![1]),
        Some(last) => {
            let last = last.record.revision()?;
            (last + 1, vec![last, last + 1])
        }
    };
    let events = [HookEvent::PreInstall, HookEvent::PostInstall];
    let undo =
        Undo::of_installation(session, &discovery, &rendering.hooks, method, revision, &release)
            .await?;
    Ok(Draft {
        action: "install",
        namespace: release.namespace.clone(),
        revision,
        current: Vec::new(),
        target,
        crds,
        hooks: PlannedHooks::of(&discovery, &rendering.hooks, &events, method, &options.release),
        method,
        undo,
        custom: if release.take_ownership { CustomMerge::ThreeWay } else { CustomMerge::TwoWay },
        namespace_object: if options.create_namespace {
            super::install::namespace_object(&discovery, &release)?
        } else {
            None
        },
        updated_records,
        pruned_records: Vec::new(),
        new_kinds,
    })
}

async fn upgrade_draft(
    session: &Session<'_>,
    chart: &mut Chart,
    values: &goyaml::Map,
    options: &UpgradeOptions,
    version: KubeVersion,
    host: &mut Host,
    warnings: &mut Vec<Warning>,
) -> Result<Draft, ActionError> {
    let release = dry(&options.release);
    let prepared = upgrade::prepare(session, chart, values, options, warnings).await?;
    let (method, _) = options.release.method.resolve(prepared.apply_method)?;
    values::process_dependencies(chart, &prepared.values, Nulls::Keep, warnings)?;
    let discovery = session.discover(false).await?;
    let rendering = prepare::render(
        session,
        chart,
        &prepared.values,
        prepared.revision,
        &prepared.namespace,
        Session::capabilities(version, &discovery),
        &release,
        host,
        warnings,
    )?;
    prepare::check_labels(&release)?;
    let validate = !release.disable_validation;
    let mut target = prepare::objects(&discovery, &rendering.manifest, &release, validate, "")?;
    let manifest = prepared.current.record.manifest()?;
    let current = prepare::objects(
        &discovery,
        manifest.as_bytes(),
        &release,
        false,
        "unable to build kubernetes objects from current release manifest",
    )?;
    prepare::own(&mut target, &release.name, &prepared.namespace);
    let before = prepared.current.record.revision()?;
    let events = [HookEvent::PreUpgrade, HookEvent::PostUpgrade];
    let undo =
        Undo::of_upgrade(session, &discovery, &prepared.current, prepared.revision, &release)
            .await?;
    Ok(Draft {
        action: "upgrade",
        namespace: prepared.namespace.clone(),
        revision: prepared.revision,
        current,
        target,
        crds: Vec::new(),
        hooks: PlannedHooks::of(&discovery, &rendering.hooks, &events, method, &options.release),
        method,
        undo,
        custom: CustomMerge::TwoWay,
        namespace_object: None,
        updated_records: vec![before, prepared.revision],
        pruned_records: pruned(&prepared.revisions, before, options.max_history),
        new_kinds: BTreeSet::new(),
    })
}

/// The revisions that make room for a new one (`removeLeastRecent`).
fn pruned(revisions: &[i64], deployed: i64, max_history: usize) -> Vec<i64> {
    let Some(keep) = max_history.checked_sub(1) else { return Vec::new() };
    let surplus = revisions.len().saturating_sub(keep);
    revisions.iter().copied().filter(|revision| *revision != deployed).take(surplus).collect()
}

/// The definitions under `crds/` that are not there yet.
async fn missing_crds(
    session: &Session<'_>,
    chart: &Chart,
    discovery: &Discovery,
    options: &ReleaseOptions,
) -> Result<Vec<Item>, ActionError> {
    let mut items = Vec::new();
    for crd in chart.crds() {
        items.extend(crd_items(discovery, &crd, options)?);
    }
    let wanted: Vec<&Item> = items.iter().collect();
    let found = session.writer().read(&wanted).await;
    // One that may not be read is taken as missing: creating it would tell.
    Ok(items
        .into_iter()
        .zip(found)
        .filter(|(_, live)| !matches!(live, Ok(Some(_))))
        .map(|(item, _)| item)
        .collect())
}

/// What the server serves once the definitions are there.
fn with_definitions(
    served: &Arc<Discovery>,
    crds: &[Item],
) -> (Arc<Discovery>, BTreeSet<(String, String)>) {
    let mut new_kinds = BTreeSet::new();
    if crds.is_empty() {
        return (Arc::clone(served), new_kinds);
    }
    let mut resources = Vec::new();
    for item in crds.iter().filter(|item| item.kind().kind == "CustomResourceDefinition") {
        let text =
            |path: &str| item.value.pointer(path).and_then(Value::as_str).unwrap_or_default();
        let (group, kind) = (text("/spec/group"), text("/spec/names/kind"));
        new_kinds.insert((group.to_owned(), kind.to_owned()));
        let versions = item.value.pointer("/spec/versions").and_then(Value::as_array);
        for version in versions.into_iter().flatten() {
            let Some(version) = version.get("name").and_then(Value::as_str) else { continue };
            resources.push(Resource::builtin(
                &format!("{group}/{version}"),
                kind,
                text("/spec/names/plural"),
                text("/spec/scope") == "Namespaced",
            ));
        }
    }
    (Arc::new(served.extended(resources)), new_kinds)
}

/// Asks for rights, reads what is live, and sends the dry runs.
async fn finish(
    session: &Session<'_>,
    draft: Draft,
    release: &ReleaseOptions,
) -> Result<Plan, ActionError> {
    let mut plan = Plan {
        action: draft.action,
        release: release.name.clone(),
        namespace: draft.namespace.clone(),
        revision: draft.revision,
        objects: Vec::new(),
        hooks: draft.hooks.titles.clone(),
        hook_faults: draft.hooks.faults.clone(),
        rights: Vec::new(),
        new_namespaces: BTreeSet::new(),
        creates_namespace: false,
        missing: Vec::new(),
    };
    // Looking needs rights too; without them nothing can be said.
    let mut rights = record_rights(session, &draft, release);
    for item in draft.target.iter().chain(&draft.current).chain(&draft.crds) {
        rights.push(Right::on_object("get", item));
    }
    rights::sort(&mut rights);
    let missing = rights::missing(session, &rights).await.map_err(ActionError::Discovery)?;
    let is_blind = missing.iter().any(|right| right.verb == "get");
    if let Some(item) = &draft.namespace_object {
        // The action looks first, and creates it unless it sees it.
        plan.creates_namespace = is_created(session, item).await?;
        if plan.creates_namespace {
            plan.new_namespaces.insert(item.target.name.clone());
            rights.extend(rights::creation(session.method, item));
        } else {
            rights.push(Right::on_object("get", item));
        }
    }
    if is_blind {
        (plan.missing, plan.rights) = (missing, rights);
        return Ok(plan);
    }
    let owner = (release.name.as_str(), draft.namespace.as_str());
    let mut kinds = Created::default();
    for (group, kind) in &draft.new_kinds {
        kinds.kind(group, kind);
    }
    let known = |item: &Item| kinds.has_kind_of(item);
    let is_new =
        |item: &Item| !known(item) && !draft.current.iter().any(|old| prepare::same(old, item));
    let mut live =
        prepare::conflicts(session, &draft.target, is_new, owner, release.take_ownership)
            .await
            .map_err(|source| ActionError::Conflict {
                action: if draft.action == "install" { "install" } else { "update" },
                source: Box::new(source),
            })?;
    let rest: Vec<usize> = (0..live.len())
        .filter(|at| {
            live.get(*at) == Some(&Live::Unknown)
                && draft.target.get(*at).is_some_and(|i| !known(i))
        })
        .collect();
    let wanted: Vec<&Item> = rest.iter().filter_map(|at| draft.target.get(*at)).collect();
    for (at, found) in rest.iter().zip(session.writer().read(&wanted).await) {
        let found = found.map_err(|source| ActionError::Conflict {
            action: "update",
            source: Box::new(super::error::ConflictError::Read {
                title: draft.target.get(*at).map(Item::title).unwrap_or_default(),
                source,
            }),
        })?;
        if let Some(slot) = live.get_mut(*at) {
            *slot = found.map_or(Live::Absent, |value| Live::Present(Box::new(value)));
        }
    }
    let absent = draft.target.iter().zip(&live).filter(|(_, live)| **live == Live::Absent);
    let mut created = Created::of(absent.map(|(item, _)| item));
    for (group, kind) in &draft.new_kinds {
        created.kind(group, kind);
    }
    for item in &draft.crds {
        rights.extend(rights::creation(session.method, item));
        plan.objects.push(create(session, item, &created).await);
    }
    if let Some(item) = draft.namespace_object.as_ref().filter(|_| plan.creates_namespace) {
        plan.objects.push(create(session, item, &created).await);
        created.namespace(&item.target.name);
    }
    for (index, (item, live)) in draft.target.iter().zip(&live).enumerate() {
        let earlier = draft.target.iter().take(index);
        let planned = match live {
            // The first one is there by then.
            Live::Absent | Live::Unknown if earlier.clone().any(|other| other.matches(item)) => {
                PlannedObject {
                    fault: format!("{} already exists: the chart has it twice", item.title()),
                    ..object(item, ObjectChange::Create)
                }
            }
            Live::Present(live) => {
                let original = draft.current.iter().find(|old| old.matches(item));
                // What is adopted is its own original.
                let original = original.map_or(&item.value, |old| &old.value);
                let update = update(session, item, original, live, draft.custom).await;
                if session.method == Method::Replace {
                    rights.push(Right::on_object("update", item));
                } else if update.is_sent {
                    rights.push(Right::on_object("patch", item));
                }
                if update.is_patched || session.method == Method::Replace {
                    rights.extend(rights::escalation(item, false));
                }
                update.planned
            }
            Live::Absent | Live::Unknown => {
                rights.extend(rights::creation(session.method, item));
                rights.extend(rights::escalation(item, true));
                create(session, item, &created).await
            }
        };
        plan.objects.push(planned);
    }
    for item in draft.current.iter().filter(|old| !draft.target.iter().any(|new| new.matches(old)))
    {
        let planned = delete(session, item).await;
        if planned.change == ObjectChange::Delete {
            rights.push(Right::on_object("delete", item));
        }
        plan.objects.push(planned);
    }
    rights.extend(rights::waiting(&draft.target, release));
    rights.extend(draft.hooks.rights.iter().cloned());
    let is_created = |item: &Item| {
        let at = draft.target.iter().position(|other| other.matches(item));
        at.and_then(|at| live.get(at)).is_none_or(|live| !matches!(live, Live::Present(_)))
    };
    if let Some(revision) = draft.undo.read_record {
        let key = crate::release::storage::record_key(&release.name, revision);
        let plural = record_resource(session);
        rights.push(Right::named("get", "", plural, &release.namespace, &key));
    }
    rights.extend(draft.undo.rights(&draft.target, release, is_created));
    rights::sort(&mut rights);
    plan.missing = rights::missing(session, &rights).await.map_err(ActionError::Discovery)?;
    plan.rights = rights;
    plan.new_namespaces = created.namespaces().clone();
    Ok(plan)
}

/// What the records need.
fn record_rights(session: &Session<'_>, draft: &Draft, release: &ReleaseOptions) -> Vec<Right> {
    let plural = record_resource(session);
    let namespace = &release.namespace;
    let key = |revision: &i64| crate::release::storage::record_key(&release.name, *revision);
    let mut rights = vec![
        Right::any("list", "", plural, namespace),
        Right::any("create", "", plural, namespace),
    ];
    for revision in draft.updated_records.iter().chain(&draft.undo.updated_records) {
        rights.push(Right::named("update", "", plural, namespace, &key(revision)));
    }
    for revision in draft.pruned_records.iter().chain(&draft.undo.deleted_records) {
        rights.push(Right::named("delete", "", plural, namespace, &key(revision)));
    }
    rights
}

/// Whether the action would create the release's namespace. Who may not look has to be able to.
async fn is_created(session: &Session<'_>, namespace: &Item) -> Result<bool, ActionError> {
    match session.cluster.get(&namespace.target).await {
        Ok(_) => Ok(false),
        Err(error) if error.kind() == ErrorKind::Forbidden => {
            let create = [Right::create(namespace)];
            let missing = rights::missing(session, &create).await;
            Ok(missing.map_err(ActionError::Discovery)?.is_empty())
        }
        Err(error) => Ok(error.kind() == ErrorKind::NotFound),
    }
}
