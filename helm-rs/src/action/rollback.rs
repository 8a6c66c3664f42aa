//! Rolling a release back to an earlier revision (`pkg/action/rollback.go`).

use std::time::Duration;

use super::error::ActionError;
use super::failure::{clean_up, not_cleaned_up};
use super::hooks::Hooks;
use super::method::MethodOptions;
use super::prepare;
use super::repair::has_died;
use super::session::{ReleaseOptions, Session};
use crate::apply::{CustomMerge, Item, Outcome, UpdateError, WaitError};
use crate::error_chain;
use crate::gotext::quote;
use crate::manifest::HookEvent;
use crate::name::validate_release_name;
use crate::release::storage::{Head, StorageError, Stored};
use crate::release::{Record, Status};

/// What to roll back to.
#[derive(Clone, Debug)]
pub struct RollbackOptions {
    /// The release's name.
    pub name: String,
    /// The namespace that objects without one go to.
    pub namespace: String,
    /// The revision; 0 for the one before the newest.
    pub revision: i64,
    /// Wait until all is ready.
    pub wait: bool,
    /// Wait for Jobs too.
    pub wait_for_jobs: bool,
    /// How long to wait, and how long a hook may take.
    pub timeout: Duration,
    /// Do not run hooks.
    pub no_hooks: bool,
    /// Write nothing.
    pub dry_run: bool,
    /// Delete the pods of what was updated.
    pub recreate_pods: bool,
    /// How objects are written.
    pub method: MethodOptions,
    /// Delete what was created when the rollback fails.
    pub cleanup_on_fail: bool,
    /// How many revisions are kept; 0 for all.
    pub max_history: usize,
    /// Delete objects of other releases too, as Helm does.
    pub helm_compat: bool,
}

impl Default for RollbackOptions {
    fn default() -> Self {
        Self {
            name: String::new(),
            namespace: "default".to_owned(),
            revision: 0,
            wait: false,
            wait_for_jobs: false,
            timeout: Duration::from_mins(5),
            no_hooks: false,
            dry_run: false,
            recreate_pods: false,
            method: MethodOptions::default(),
            cleanup_on_fail: false,
            max_history: 0,
            helm_compat: false,
        }
    }
}

/// Rolls a release back; returns the new revision's number.
///
/// # Errors
/// [`ActionError`]. When objects were being written, the record then says that the rollback failed
/// and why; after a failed hook it stays pending, as in Helm.
pub async fn rollback(
    session: &Session<'_>,
    options: &RollbackOptions,
) -> Result<i64, ActionError> {
    let name = &options.name;
    session.reach().await?;
    session.log(format!("preparing rollback of {name}"));
    let (current, mut target) = prepare(session, options).await?;
    let (method, apply_method) = options.method.resolve(target.record.apply_method()?)?;
    target.record.set_apply_method(apply_method)?;
    let session = &session.writing(method);
    let revision = target.record.revision()?;
    let discovery = session.discover(false).await?;
    let release =
        ReleaseOptions { namespace: options.namespace.clone(), ..ReleaseOptions::default() };
    // Helm records the rollback first, and leaves it pending when these fail.
    let objects = |record: &Record, what| {
        prepare::objects(&discovery, record.manifest()?.as_bytes(), &release, false, what)
    };
    if options.dry_run {
        session.log(format!("dry run for {name}"));
        return Ok(revision);
    }
    let mut old = objects(
        &current.record,
        "unable to build kubernetes objects from current release manifest",
    )?;
    // What died may not have deleted yet what it does not name itself, objects and leaves. Helm
    // leaves these.
    let mut before = Vec::new();
    if has_died(&current.record.info()?) {
        for stored in deployed(session, name).await? {
            let what = "unable to build kubernetes objects from current release manifest";
            before.extend(objects(&stored.record, what)?);
        }
        for item in &before {
            if !old.iter().any(|known| known.matches(item)) {
                old.push(item.clone());
            }
        }
    }
    let mut new =
        objects(&target.record, "unable to build kubernetes objects from new release manifest")?;
    let namespace = target.record.namespace()?;
    prepare::own(&mut new, name, &namespace);

    session.log(format!("creating rolled back release for {name}"));
    let mut storage = session.storage();
    storage.max_history = options.max_history;
    storage.create(&target.record, &target.labels).await.map_err(ActionError::not_begun)?;

    session.log(format!("performing rollback of {name}"));
    Rollback { session, options, namespace, current, target, before }.run(&old, &new).await?;
    Ok(revision)
}

/// The deployed revisions: one, unless something went wrong, or none.
async fn deployed(session: &Session<'_>, name: &str) -> Result<Vec<Stored>, StorageError> {
    match session.storage().deployed_all(name).await {
        Err(StorageError::NoDeployed { .. }) => Ok(Vec::new()),
        deployed => deployed,
    }
}

/// The newest revision, and the one that will be (`prepareRollback`).
async fn prepare(
    session: &Session<'_>,
    options: &RollbackOptions,
) -> Result<(Stored, Stored), ActionError> {
    let name = &options.name;
    if validate_release_name(name).is_err() {
        return Err(ActionError::NameOf { step: "prepareRollback", name: name.clone() });
    }
    if options.revision < 0 {
        return Err(ActionError::InvalidRevision);
    }
    let storage = session.storage();
    let heads = storage.heads(name).await?;
    let Some(current) = storage.newest_of(&heads).await? else {
        return Err(StorageError::NoRevision { name: name.clone() }.into());
    };
    let newest = current.record.revision()?;
    let wanted = if options.revision == 0 { newest - 1 } else { options.revision };
    if !heads.iter().any(|head: &Head| head.revision() == Some(wanted)) {
        return Err(ActionError::NoSuchRevision(wanted));
    }
    session.log(format!("rolling back {name} (current: v{newest}, target: v{wanted})"));
    let previous = storage.get(name, wanted).await?;
    // Helm goes by what the records say, and not by their labels.
    if previous.record.revision()? != wanted {
        return Err(ActionError::NoSuchRevision(wanted));
    }
    let record = previous.record.rolled_back((name, wanted), &current.record, &session.now())?;
    Ok((current, Stored { record, labels: previous.labels }))
}

struct Rollback<'a> {
    session: &'a Session<'a>,
    options: &'a RollbackOptions,
    namespace: String,
    current: Stored,
    target: Stored,
    /// The objects of the deployed revision, when what came after it died.
    before: Vec<Item>,
}

impl Rollback<'_> {
    /// `performRollback`
    async fn run(mut self, old: &[Item], new: &[Item]) -> Result<(), ActionError> {
        let (session, options) = (self.session, self.options);
        let name = &options.name;
        self.hooks(HookEvent::PreRollback).await?;
        if options.no_hooks {
            session.log(format!("rollback hooks disabled for {name}"));
        }
        let writer = session.writer_of(name, &self.namespace, options.helm_compat);
        let outcome = match writer.update(old, new, Vec::new(), CustomMerge::TwoWay).await {
            Ok(outcome) => outcome,
            Err(error) => return Err(self.fail(new, error).await),
        };
        if !self.before.is_empty() {
            // Once more, from the deployed revision: its leaves go too.
            let known = |item: &Item| self.before.iter().find(|old| old.matches(item)).cloned();
            let old: Vec<Item> =
                new.iter().map(|item| known(item).unwrap_or_else(|| item.clone())).collect();
            let again = writer.update(&old, new, Vec::new(), CustomMerge::TwoWay).await;
            if let Err(mut error) = again {
                error.outcome.created.extend(outcome.created);
                return Err(self.fail(new, error).await);
            }
        }
        if options.recreate_pods {
            recreate(session, new, &outcome).await;
        }
        if options.wait {
            let wanted = ReleaseOptions {
                wait: true,
                wait_for_jobs: options.wait_for_jobs,
                timeout: options.timeout,
                ..ReleaseOptions::default()
            };
            if let Err(error) = session.wait(new, &wanted).await {
                return Err(self.not_ready(error).await);
            }
        }
        self.hooks(HookEvent::PostRollback).await?;
        self.finish().await
    }

    async fn hooks(&mut self, event: HookEvent) -> Result<(), ActionError> {
        if self.options.no_hooks {
            return Ok(());
        }
        let hooks = Hooks {
            session: self.session,
            release: (&self.options.name, &self.namespace),
            namespace: &self.options.namespace,
            timeout: self.options.timeout,
            helm_compat: self.options.helm_compat,
        };
        let Stored { record, labels } = &mut self.target;
        hooks.run_for(record, labels, event, "").await.map_err(|error| {
            let status = Status::PendingRollback.to_string();
            ActionError::LeftPending { error: Box::new(error), status }
        })
    }

    /// All that was deployed is superseded, and the new revision deployed.
    async fn finish(mut self) -> Result<(), ActionError> {
        let storage = self.session.storage();
        let name = &self.options.name;
        // Of the name in the newest record, as Helm: another one where records were copied.
        let named = self.current.record.name()?;
        let all = deployed(self.session, &named).await.map_err(|error| self.unrecorded(error))?;
        for mut stored in all {
            let revision = stored.record.revision()?;
            self.session.log(format!("superseding previous deployment {revision}"));
            let description = stored.record.info()?.description;
            stored.record.set_status(&Status::Superseded, &description)?;
            self.store(&stored).await;
        }
        let description = self.target.record.info()?.description;
        self.target.record.set_status(&Status::Deployed, &description)?;
        self.session.log(format!("updating status for rolled back release for {name}"));
        let updated = storage.update(&self.target.record, &self.target.labels).await;
        updated.map_err(|error| self.unrecorded(error))
    }

    fn unrecorded(&self, source: StorageError) -> ActionError {
        ActionError::Unrecorded {
            name: self.options.name.clone(),
            status: Status::PendingRollback.to_string(),
            source: Box::new(source),
        }
    }

    /// Objects that could not be written.
    async fn fail(mut self, new: &[Item], error: UpdateError) -> ActionError {
        let name = &self.options.name;
        let created: Vec<Item> =
            error.outcome.created.iter().filter_map(|at| new.get(*at)).cloned().collect();
        let message = format!("Rollback {} failed: {error}", quote(name));
        self.session.log(format!("warning: {message}"));
        let superseded = self.current.record.info().and_then(|info| {
            self.current.record.set_status(&Status::Superseded, &info.description)
        });
        let failed = self.target.record.set_status(&Status::Failed, &message);
        if let Err(error) = superseded.and(failed) {
            return error.into();
        }
        let error = ActionError::Update(error);
        self.store(&self.current).await;
        let recorded = self.record_failure().await;
        if self.options.cleanup_on_fail {
            let owner = (name.as_str(), self.namespace.as_str());
            let cancel = crate::apply::Cancel::default();
            let session = Session { cancel: &cancel, ..self.session.clone() };
            let cleaned = clean_up(&session, &created, owner, self.options.helm_compat).await;
            if let Err(errors) = cleaned {
                return not_cleaned_up("rollback", error, &errors);
            }
        }
        match recorded {
            Ok(()) => error,
            Err(unwritten) => {
                ActionError::still_pending(error, &Status::PendingRollback, unwritten)
            }
        }
    }

    /// Objects that did not become ready.
    async fn not_ready(mut self, error: ActionError) -> ActionError {
        let name = &self.options.name;
        let message = format!("Release {} failed: {}", quote(name), error_chain(&error));
        if let Err(error) = self.target.record.set_status(&Status::Failed, &message) {
            return error.into();
        }
        self.store(&self.current).await;
        let recorded = self.record_failure().await;
        let is_cancelled = matches!(error, ActionError::Wait(WaitError::Cancelled));
        let error = if is_cancelled {
            error
        } else {
            ActionError::ReleaseFailed { name: name.clone(), source: Box::new(error) }
        };
        match recorded {
            Ok(()) => error,
            Err(unwritten) => {
                ActionError::still_pending(error, &Status::PendingRollback, unwritten)
            }
        }
    }

    async fn record_failure(&self) -> Result<(), StorageError> {
        self.session.storage().update(&self.target.record, &self.target.labels).await
    }

    /// `recordRelease`
    async fn store(&self, stored: &Stored) {
        if let Err(error) = self.session.storage().update(&stored.record, &stored.labels).await {
            self.session.log(format!(
                "warning: Failed to update release {}: {}",
                self.options.name,
                error_chain(&error)
            ));
        }
    }
}

/// Restarts the pods of what was updated; a failure is told and no more.
pub(super) async fn recreate(session: &Session<'_>, items: &[Item], outcome: &Outcome) {
    let updated: Vec<&Item> = outcome.updated.iter().filter_map(|at| items.get(*at)).collect();
    if let Err(error) = session.writer().recreate_pods(&updated).await {
        session.log(error_chain(&error));
    }
}
