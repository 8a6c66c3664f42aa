//! Upgrading a release (`pkg/action/upgrade.go`).

use super::error::ActionError;
use super::failure::fail_upgrade;
use super::hooks::Hooks;
use super::install::merge_labels;
use super::prepare::{self, Draft};
use super::rollback::recreate;
use super::session::{DryRun, ReleaseOptions, Session};
use crate::apply::{CustomMerge, Item, Live, Outcome};
use crate::chart::{Chart, Warning};
use crate::manifest::HookEvent;
use crate::name::validate_release_name;
use crate::release::storage::{Head, Labels, LaidBy, Storage, StorageError, Stored};
use crate::release::{ApplyMethod, Record, Status};
use crate::render::Host;
use crate::values::{self, Nulls};

/// What becomes of the values of the release before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ValuesMode {
    /// They are taken when the user gives none.
    #[default]
    Default,
    /// They are forgotten.
    Reset,
    /// The user's are laid over them and over the old chart's defaults.
    Reuse,
    /// The user's are laid over them and over the new chart's defaults.
    ResetThenReuse,
}

/// What to upgrade to.
#[derive(Clone, Debug, Default)]
pub struct UpgradeOptions {
    /// What an installation has too.
    pub release: ReleaseOptions,
    /// What becomes of the values before.
    pub values: ValuesMode,
    /// How many revisions are kept; 0 for all.
    pub max_history: usize,
}

/// Everything that an upgrade needs to know before it writes.
pub(super) struct Prepared {
    /// The labels of the newest revision.
    pub(super) last: Labels,
    /// How the newest revision was written.
    pub(super) apply_method: Option<ApplyMethod>,
    /// The revision that is live, as far as known.
    pub(super) current: Stored,
    /// The user's values, merged with those before.
    pub(super) values: goyaml::Map,
    /// The new revision's number.
    pub(super) revision: i64,
    /// The release's namespace.
    pub(super) namespace: String,
    /// All revisions, the oldest first.
    pub(super) revisions: Vec<i64>,
}

/// Upgrades a release to a chart. The chart, and what the session's engine keeps, are let go before
/// anything is written.
///
/// # Errors
/// [`ActionError`]. When objects were being written, the record then says that the upgrade failed
/// and why.
pub async fn upgrade(
    session: &Session<'_>,
    mut chart: Chart,
    values: &goyaml::Map,
    options: &UpgradeOptions,
    host: &mut Host,
    warnings: &mut Vec<Warning>,
) -> Result<Record, ActionError> {
    let release = &options.release;
    let version = session.reach().await?;
    if validate_release_name(&release.name).is_err() {
        return Err(ActionError::InvalidName(release.name.clone()));
    }
    session.log(format!("preparing upgrade for {}", release.name));
    if release.hide_secret && release.dry_run == DryRun::No {
        return Err(ActionError::HideSecret);
    }
    let prepared = prepare(session, &mut chart, values, options, warnings).await?;
    let (method, apply_method) = release.method.resolve(prepared.apply_method)?;
    let session = &session.writing(method);
    let (info_before, manifest_before) =
        (prepared.current.record.info(), prepared.current.record.manifest());
    let before = prepared.current.lay_by()?;
    values::process_dependencies(&mut chart, &prepared.values, Nulls::Keep, warnings)?;
    let discovery = session.discover(false).await?;
    let rendering = prepare::render(
        session,
        &chart,
        &prepared.values,
        prepared.revision,
        &prepared.namespace,
        Session::capabilities(version, &discovery),
        release,
        host,
        warnings,
    )?;
    prepare::check_labels(release)?;
    let first_deployed = info_before?.first_deployed;
    let manifest_before = manifest_before?;
    let labels = merge_labels(&prepared.last, &release.labels);
    let now = session.now();
    let draft = Draft {
        options: release,
        namespace: &prepared.namespace,
        revision: prepared.revision,
        chart: &chart,
        config: &prepared.values,
        rendering: &rendering,
        first_deployed: &first_deployed,
        last_deployed: &now,
        apply_method,
    };
    let is_dry_run = release.dry_run != DryRun::No;
    let description = match release.description.as_str() {
        _ if !is_dry_run => "Preparing upgrade",
        "" => "Dry run complete",
        description => description,
    };
    let record = draft.record(&Status::PendingUpgrade, description);
    let validate = !release.disable_validation;
    // All of it is in the record now, and will be in the objects.
    let manifest = rendering.manifest;
    drop((rendering.manifests, rendering.hooks, chart));
    let mut target = prepare::objects(&discovery, &manifest, release, validate, "")?;
    drop(manifest);

    session.log(format!("performing update for {}", release.name));
    let mut current = prepare::objects(
        &discovery,
        manifest_before.as_bytes(),
        release,
        false,
        "unable to build kubernetes objects from current release manifest",
    )?;
    drop(manifest_before);
    prepare::own(&mut target, &release.name, &prepared.namespace);
    let live = conflicts(session, &current, &target, &prepared.namespace, release).await?;
    current.extend(
        target
            .iter()
            .zip(&live)
            .filter(|(_, live)| matches!(live, Live::Present(_)))
            .map(|(item, _)| item.clone()),
    );

    let record = record?;
    if is_dry_run {
        session.log(format!("dry run for {}", release.name));
        return Ok(record);
    }
    session.log(format!("creating upgraded release for {}", release.name));
    let mut storage = session.storage();
    storage.max_history = options.max_history;
    storage.create(&record, &labels).await.map_err(ActionError::not_begun)?;

    let mut work = Work { release, record, labels: &labels, created: Vec::new() };
    let written = work.write(session, &current, &target, live).await;
    drop((current, target));
    let Work { mut record, created, .. } = work;
    if let Err(error) = written {
        return Err(fail_upgrade(session, record, &labels, release, &created, error).await);
    }
    let unrecorded = |source| ActionError::Unrecorded {
        name: release.name.clone(),
        status: Status::PendingUpgrade.to_string(),
        source: Box::new(source),
    };
    // Helm goes on when this fails, and leaves two deployed revisions.
    supersede(&storage, before, &release.name).await.map_err(unrecorded)?;
    let description = match release.description.as_str() {
        "" => "Upgrade complete",
        description => description,
    };
    record.set_status(&Status::Deployed, description)?;
    session.log(format!("updating status for upgraded release for {}", release.name));
    storage.update(&record, &labels).await.map_err(unrecorded)?;
    Ok(record)
}

/// Marks the revision before as superseded, unless it had to make room for the new one.
async fn supersede(
    storage: &Storage<'_>,
    before: LaidBy,
    release: &str,
) -> Result<(), StorageError> {
    let mut before = before.take_up(release)?;
    let description = before.record.info()?.description;
    before.record.set_status(&Status::Superseded, &description)?;
    match storage.update(&before.record, &before.labels).await {
        Err(error) if error.is_not_found() => Ok(()),
        updated => updated,
    }
}

/// Finds the revisions that count and the values (first part of `prepareUpgrade`).
pub(super) async fn prepare(
    session: &Session<'_>,
    chart: &mut Chart,
    values: &goyaml::Map,
    options: &UpgradeOptions,
    warnings: &mut Vec<Warning>,
) -> Result<Prepared, ActionError> {
    let name = &options.release.name;
    let storage = session.storage();
    let heads = match storage.heads(name).await {
        Err(StorageError::NotFound) => {
            return Err(StorageError::NoDeployed { name: name.clone() }.into());
        }
        heads => heads?,
    };
    let Some(last) = storage.newest_of(&heads).await? else {
        return Err(StorageError::NoRevision { name: name.clone() }.into());
    };
    let last_revision = last.record.revision()?;
    let status = last.record.info()?.status();
    if status.is_pending() {
        return Err(ActionError::Pending);
    }
    let deployed = if status == Status::Deployed {
        None
    } else {
        let others = heads.iter().filter(|head| {
            head.has_status(&Status::Deployed) && head.revision() != Some(last_revision)
        });
        storage.newest_of(others).await?
    };
    let current = if status == Status::Deployed {
        last.clone()
    } else if let Some(stored) = deployed {
        stored
    } else if matches!(status, Status::Failed | Status::Superseded) {
        last.clone()
    } else {
        return Err(StorageError::NoDeployed { name: name.clone() }.into());
    };
    let values = reuse_values(session, chart, &current.record, values, options, warnings)?;
    let namespace = current.record.namespace()?;
    let revision = last_revision + 1;
    let revisions = heads.iter().filter_map(Head::revision).collect();
    let apply_method = last.record.apply_method()?;
    let last = last.labels;
    Ok(Prepared { last, apply_method, current, values, revision, namespace, revisions })
}

/// What of the values before counts on (`reuseValues`).
fn reuse_values(
    session: &Session<'_>,
    chart: &mut Chart,
    current: &Record,
    values: &goyaml::Map,
    options: &UpgradeOptions,
    warnings: &mut Vec<Warning>,
) -> Result<goyaml::Map, ActionError> {
    let old = current.user_values()?.unwrap_or_default();
    match options.values {
        ValuesMode::Reset => {
            session.log("resetting values to the chart's original version");
            Ok(values.clone())
        }
        ValuesMode::Reuse => {
            session.log("reusing the old release's values");
            let defaults = current.coalesced_values(warnings).map_err(ActionError::OldValues)?;
            let values = values::coalesce_tables(values, &old, Nulls::Remove, warnings)?;
            chart.values = Some(defaults);
            Ok(values)
        }
        ValuesMode::ResetThenReuse => {
            session.log("merging values from old release to new values");
            Ok(values::coalesce_tables(values, &old, Nulls::Remove, warnings)?)
        }
        ValuesMode::Default if values.is_empty() && !old.is_empty() => {
            session.log(format!(
                "copying values from {} (v{}) to new release.",
                current.name()?,
                current.revision()?
            ));
            Ok(old)
        }
        ValuesMode::Default => Ok(values.clone()),
    }
}

/// What is live of the objects that the current revision does not have.
pub(super) async fn conflicts(
    session: &Session<'_>,
    current: &[Item],
    target: &[Item],
    namespace: &str,
    options: &ReleaseOptions,
) -> Result<Vec<Live>, ActionError> {
    let owner = (options.name.as_str(), namespace);
    let is_new = |item: &Item| !current.iter().any(|old| prepare::same(old, item));
    prepare::conflicts(session, target, is_new, owner, options.take_ownership)
        .await
        .map_err(|source| ActionError::Conflict { action: "update", source: Box::new(source) })
}

/// An upgrade under way.
struct Work<'a> {
    release: &'a ReleaseOptions,
    record: Record,
    labels: &'a Labels,
    /// What it created, for the time when it fails.
    created: Vec<Item>,
}

impl Work<'_> {
    /// `releasingUpgrade`
    async fn write(
        &mut self,
        session: &Session<'_>,
        current: &[Item],
        target: &[Item],
        live: Vec<Live>,
    ) -> Result<(), ActionError> {
        let options = self.release;
        let namespace = self.record.namespace()?;
        let hooks = Hooks::of(session, options, &namespace);
        if let Some(hooks) = &hooks {
            let when = "pre-upgrade hooks failed";
            hooks.run_for(&mut self.record, self.labels, HookEvent::PreUpgrade, when).await?;
        } else {
            session.log(format!("upgrade hooks disabled for {}", options.name));
        }
        let writer = session.writer_of(&options.name, &namespace, options.helm_compat);
        let created = |outcome: &Outcome| -> Vec<Item> {
            outcome.created.iter().filter_map(|at| target.get(*at)).cloned().collect()
        };
        let outcome = match writer.update(current, target, live, CustomMerge::TwoWay).await {
            Ok(outcome) => outcome,
            Err(error) => {
                self.created = created(&error.outcome);
                return Err(error.into());
            }
        };
        if options.cleanup_on_fail {
            self.created = created(&outcome);
        }
        if options.recreate_pods {
            recreate(session, target, &outcome).await;
        }
        if options.wait || options.atomic {
            session.log(format!(
                "waiting for release {} resources (created: {} updated: {}  deleted: {})",
                options.name,
                outcome.created.len(),
                outcome.updated.len(),
                outcome.deleted.len()
            ));
        }
        session.wait(target, options).await?;
        if let Some(hooks) = &hooks {
            let when = "post-upgrade hooks failed";
            hooks.run_for(&mut self.record, self.labels, HookEvent::PostUpgrade, when).await?;
        }
        Ok(())
    }
}
