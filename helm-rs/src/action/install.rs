//! Installing a chart (`pkg/action/install.go`).

use std::time::Duration;

use serde_json::json;

use super::error::{ActionError, CrdError};
use super::failure::fail_installation;
use super::hooks::Hooks;
use super::prepare::{self, Draft};
use super::session::{DryRun, ReleaseOptions, Session};
use crate::apply::{CustomMerge, Item, Live, Method, WaitOptions, WriteErrors, build, wait};
use crate::chart::{Chart, Crd, Warning};
use crate::cluster::{Discovery, ErrorKind};
use crate::manifest::HookEvent;
use crate::name::validate_release_name;
use crate::release::storage::{Labels, StorageError, Stored};
use crate::release::{Record, Status};
use crate::render::Host;
use crate::values::{self, Nulls};

/// How long CRDs may take to be served.
const CRD_TIMEOUT: Duration = Duration::from_mins(1);

/// What to install.
#[derive(Clone, Debug, Default)]
pub struct InstallOptions {
    /// What an upgrade has too.
    pub release: ReleaseOptions,
    /// Create the release's namespace.
    pub create_namespace: bool,
    /// Do not install what is under `crds/`.
    pub skip_crds: bool,
    /// Take the name of an uninstalled or failed release.
    pub replace: bool,
}

/// Installs a chart. The chart, and what the session's engine keeps, are let go before any of its
/// objects is written.
///
/// # Errors
/// [`ActionError`]. When objects were being written, the record then says that the release failed
/// and why.
pub async fn install(
    session: &Session<'_>,
    mut chart: Chart,
    values: &goyaml::Map,
    options: &InstallOptions,
    host: &mut Host,
    warnings: &mut Vec<Warning>,
) -> Result<Record, ActionError> {
    let release = &options.release;
    let version = session.reach().await?;
    if release.hide_secret && release.dry_run == DryRun::No {
        return Err(ActionError::HideSecret);
    }
    let (method, apply_method) = release.method.resolve(None)?;
    let session = &session.writing(method);
    let last = available(session, options).await?;
    values::process_dependencies(&mut chart, values, Nulls::Keep, warnings)?;

    let mut new_crds = false;
    if !options.skip_crds && !chart.crds().is_empty() {
        if release.dry_run == DryRun::No {
            new_crds = install_crds(session, &chart, release).await?;
        } else {
            // In small letters: Helm says this with `--debug` only.
            session.log(
                "warning: This chart or one of its subcharts contains CRDs. Rendering may fail or \
                 contain inaccuracies.",
            );
        }
    }

    let discovery = session.discover(new_crds).await?;
    prepare::check_labels(release)?;
    let capabilities = Session::capabilities(version, &discovery);
    let now = session.now();
    let rendering = prepare::render(
        session,
        &chart,
        values,
        1,
        &release.namespace,
        capabilities,
        release,
        host,
        warnings,
    )?;
    let draft = Draft {
        options: release,
        namespace: &release.namespace,
        revision: match &last {
            Some(last) => last.record.revision()? + 1,
            None => 1,
        },
        chart: &chart,
        config: values,
        rendering: &rendering,
        first_deployed: &now,
        last_deployed: &now,
        apply_method,
    };
    let is_dry_run = release.dry_run != DryRun::No;
    let description = if is_dry_run { "Dry run complete" } else { "Initial install underway" };
    let record = draft.record(&Status::PendingInstall, description);
    // All of it is in the record now, and will be in the objects.
    let manifest = rendering.manifest;
    drop((rendering.manifests, rendering.hooks, chart));
    let mut items = prepare::objects(
        &discovery,
        &manifest,
        release,
        !release.disable_validation,
        "unable to build kubernetes objects from release manifest",
    )?;
    drop(manifest);
    prepare::own(&mut items, &release.name, &release.namespace);
    let owner = (release.name.as_str(), release.namespace.as_str());
    let live = prepare::conflicts(session, &items, |_| true, owner, release.take_ownership)
        .await
        .map_err(|source| ActionError::Conflict {
        action: "install",
        source: Box::new(source),
    })?;
    let mut record = record?;
    if is_dry_run {
        return Ok(record);
    }

    if options.create_namespace {
        create_namespace(session, release).await?;
    }
    let storage = session.storage();
    if let Some(last) = last {
        supersede(session, last).await?;
    }
    storage.create(&record, &release.labels).await.map_err(ActionError::not_begun)?;

    if let Err(error) = write(session, &items, live, release, &mut record).await {
        return Err(fail_installation(session, record, release, error).await);
    }
    let description = match release.description.as_str() {
        "" => "Install complete",
        description => description,
    };
    record.set_status(&Status::Deployed, description)?;
    storage.update(&record, &release.labels).await.map_err(|source| ActionError::Unrecorded {
        name: release.name.clone(),
        status: Status::PendingInstall.to_string(),
        source: Box::new(source),
    })?;
    Ok(record)
}

/// Whether the name is free, and the last record that it replaces (`availableName`).
pub(super) async fn available(
    session: &Session<'_>,
    options: &InstallOptions,
) -> Result<Option<Stored>, ActionError> {
    let name = &options.release.name;
    validate_release_name(name)
        .map_err(|source| ActionError::Name { name: name.clone(), source })?;
    if options.release.dry_run != DryRun::No {
        return Ok(None);
    }
    // Where the records cannot be read, Helm takes the name for free, and overwrites by luck
    // only: not here.
    let last = match session.storage().last(name).await {
        Ok(last) => last,
        Err(StorageError::NotFound | StorageError::NoRevision { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let status = last.record.info()?.status();
    if options.replace && matches!(status, Status::Uninstalled | Status::Failed) {
        return Ok(Some(last));
    }
    Err(ActionError::NameInUse)
}

/// Retires the record whose name is taken (`replaceRelease`).
async fn supersede(session: &Session<'_>, mut last: Stored) -> Result<(), ActionError> {
    if last.record.info()?.status() == Status::Failed {
        return Ok(());
    }
    last.record.set_status(&Status::Superseded, "superseded by new release")?;
    session.storage().update(&last.record, &last.labels).await?;
    Ok(())
}

/// `performInstall`
async fn write(
    session: &Session<'_>,
    items: &[Item],
    live: Vec<Live>,
    options: &ReleaseOptions,
    record: &mut Record,
) -> Result<(), ActionError> {
    let hooks = Hooks::of(session, options, &options.namespace);
    if let Some(hooks) = &hooks {
        let (labels, when) = (&options.labels, "failed pre-install");
        hooks.run_for(record, labels, HookEvent::PreInstall, when).await?;
    }
    let adopted: Vec<Item> = items
        .iter()
        .zip(&live)
        .filter(|(_, live)| matches!(live, Live::Present(_)))
        .map(|(item, _)| item.clone())
        .collect();
    if adopted.is_empty() {
        if !items.is_empty() {
            session.writer().create(items).await?;
        }
    } else {
        let custom =
            if options.take_ownership { CustomMerge::ThreeWay } else { CustomMerge::TwoWay };
        session.writer().update(&adopted, items, live, custom).await?;
    }
    session.wait(items, options).await?;
    if let Some(hooks) = &hooks {
        let (labels, when) = (&options.labels, "failed post-install");
        hooks.run_for(record, labels, HookEvent::PostInstall, when).await?;
    }
    Ok(())
}

/// The release's namespace as an object.
pub(super) fn namespace_object(
    discovery: &Discovery,
    options: &ReleaseOptions,
) -> Result<Option<Item>, ActionError> {
    let namespace = &options.namespace;
    let object = json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": { "name": namespace, "labels": { "name": namespace } },
    });
    let items = prepare::objects(discovery, object.to_string().as_bytes(), options, true, "")?;
    Ok(items.into_iter().next())
}

/// Creates the release's namespace, if it is missing. Helm does not look first, and so needs the
/// right to create any namespace even where this one is there.
async fn create_namespace(
    session: &Session<'_>,
    options: &ReleaseOptions,
) -> Result<(), ActionError> {
    let discovery = session.discover(false).await?;
    let Some(item) = namespace_object(&discovery, options)? else { return Ok(()) };
    if session.cluster.get(&item.target).await.is_ok() {
        return Ok(());
    }
    match session.writer().create(&[item]).await {
        Err(errors) if !exists(&errors) => Err(errors.into()),
        _ => Ok(()),
    }
}

/// Whether what stands first among failures is an object that is already there.
fn exists(errors: &WriteErrors) -> bool {
    errors.errors.first().is_some_and(|error| error.kind() == ErrorKind::AlreadyExists)
}

/// Creates what is under `crds/`, file by file, and waits until it is served; whether anything
/// is new (`installCRDs`).
pub(super) async fn install_crds(
    session: &Session<'_>,
    chart: &Chart,
    options: &ReleaseOptions,
) -> Result<bool, ActionError> {
    let discovery = session.discover(false).await?;
    let mut created = Vec::new();
    for crd in chart.crds() {
        let fail = |source| no_crd(&crd, source);
        let items = crd_items(&discovery, &crd, options)?;
        match create_crds(session, &items).await {
            Ok(()) => created.extend(items),
            Err(errors) if exists(&errors) => {
                let name = items.first().map(|item| item.target.name.clone()).unwrap_or_default();
                session.log(format!("CRD {name} is already present. Skipping."));
            }
            Err(errors) => return Err(fail(CrdError::Write(errors))),
        }
    }
    if created.is_empty() {
        return Ok(false);
    }
    let wanted = WaitOptions { timeout: CRD_TIMEOUT, jobs: false };
    wait(&*session.cluster, session.clock, &created, wanted, session.observer, session.cancel)
        .await?;
    session.log("Clearing discovery cache");
    Ok(true)
}

/// The objects of a file under `crds/`. One without any is refused, as in Helm.
pub(super) fn crd_items(
    discovery: &Discovery,
    crd: &Crd<'_>,
    options: &ReleaseOptions,
) -> Result<Vec<Item>, ActionError> {
    let items = build(discovery, &crd.file.data, &options.namespace, false)
        .map_err(|error| no_crd(crd, CrdError::Build(error)))?;
    if items.is_empty() { Err(no_crd(crd, CrdError::Empty)) } else { Ok(items) }
}

fn no_crd(crd: &Crd<'_>, source: CrdError) -> ActionError {
    ActionError::Crd { name: crd.file.name.clone(), source: Box::new(source) }
}

/// Creates definitions. An apply would change those that are there, so it is looked first.
async fn create_crds(session: &Session<'_>, items: &[Item]) -> Result<(), WriteErrors> {
    let writer = session.writer();
    if matches!(session.method, Method::Apply { .. })
        && writer
            .read(&items.iter().collect::<Vec<_>>())
            .await
            .iter()
            .any(|live| matches!(live, Ok(Some(_))))
    {
        return session.writing(Method::Patch).writer().create(items).await;
    }
    writer.create(items).await
}

/// Labels with the user's on top, those set to `null` left out (`mergeCustomLabels`).
pub(super) fn merge_labels(last: &Labels, wanted: &Labels) -> Labels {
    let mut labels = last.clone();
    labels.extend(wanted.clone());
    labels.retain(|_, value| value != "null");
    labels
}

/// What `helm template --validate` checks of a rendered chart on a cluster: every object is of a
/// kind that the server knows, and none is in the way.
///
/// # Errors
/// [`ActionError`]
pub async fn validate(
    session: &Session<'_>,
    manifest: &[u8],
    release: &ReleaseOptions,
    is_upgrade: bool,
) -> Result<(), ActionError> {
    let discovery = session.discover(false).await?;
    let items = prepare::objects(
        &discovery,
        manifest,
        release,
        !release.disable_validation,
        "unable to build kubernetes objects from release manifest",
    )?;
    if is_upgrade {
        return Ok(());
    }
    let owner = (release.name.as_str(), release.namespace.as_str());
    prepare::conflicts(session, &items, |_| true, owner, release.take_ownership)
        .await
        .map(drop)
        .map_err(|source| ActionError::Conflict { action: "install", source: Box::new(source) })
}
