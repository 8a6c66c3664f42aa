//! Uninstalling a release (`pkg/action/uninstall.go`).

use std::collections::BTreeMap;
use std::time::Duration;

use bstr::BString;

use super::error::ActionError;
use super::hooks::{HookError, Hooks};
use super::prepare;
use super::session::{ReleaseOptions, Session};
use crate::apply::{Item, KEEP, Left, RESOURCE_POLICY, WaitError, wait_until_gone};
use crate::cluster::Propagation;
use crate::error_chain;
use crate::manifest::{HookEvent, UNINSTALL_ORDER, sort_manifests, split_manifests};
use crate::name::validate_release_name;
use crate::release::storage::{StorageError, Stored};
use crate::release::{Record, Status};

/// What to uninstall.
#[derive(Clone, Debug)]
pub struct UninstallOptions {
    /// The release's name.
    pub name: String,
    /// The namespace that objects without one go to.
    pub namespace: String,
    /// Do not run hooks.
    pub no_hooks: bool,
    /// Only look whether there is such a release.
    pub dry_run: bool,
    /// A release that is not there is no error.
    pub ignore_not_found: bool,
    /// Keep the records.
    pub keep_history: bool,
    /// Wait until the objects are gone.
    pub wait: bool,
    /// What happens to what the objects own.
    pub propagation: Propagation,
    /// How long to wait, and how long a hook may take.
    pub timeout: Duration,
    /// A description for the record in place of Helm's.
    pub description: String,
    /// Delete objects of other releases too, as Helm does.
    pub helm_compat: bool,
}

impl Default for UninstallOptions {
    fn default() -> Self {
        Self {
            name: String::new(),
            namespace: "default".to_owned(),
            no_hooks: false,
            dry_run: false,
            ignore_not_found: false,
            keep_history: false,
            wait: false,
            propagation: Propagation::Background,
            timeout: Duration::from_mins(5),
            description: String::new(),
            helm_compat: false,
        }
    }
}

/// What an uninstallation did.
#[derive(Clone, Debug, Default)]
pub struct Uninstalled {
    /// Which objects stay by their resource policy, in Helm's words; empty for none.
    pub kept: String,
    /// Objects that stay as they belong to somebody else.
    pub left: Vec<Left>,
}

/// Uninstalls a release.
///
/// # Errors
/// [`ActionError`]. When objects were being deleted, the record then says that the release is
/// being uninstalled, and uninstalling it again goes on.
pub async fn uninstall(
    session: &Session<'_>,
    options: &UninstallOptions,
) -> Result<Uninstalled, ActionError> {
    let name = &options.name;
    session.reach().await?;
    if options.dry_run {
        if validate_release_name(name).is_err() {
            return Err(ActionError::NameOf { step: "releaseContent", name: name.clone() });
        }
        session.storage().last(name).await?;
        return Ok(Uninstalled::default());
    }
    if validate_release_name(name).is_err() {
        return Err(ActionError::NameOf { step: "uninstall", name: name.clone() });
    }
    let mut revisions = match session.storage().history(name).await {
        Ok(revisions) => revisions,
        Err(StorageError::NotFound) if options.ignore_not_found => {
            return Ok(Uninstalled::default());
        }
        Err(source) => {
            return Err(ActionError::NotLoaded { name: name.clone(), source: Box::new(source) });
        }
    };
    revisions.sort_by_cached_key(|stored| stored.record.revision().unwrap_or_default());
    let Some(mut last) = revisions.pop() else { return Err(ActionError::NoRelease) };
    let earlier = keys(&revisions)?;
    drop(revisions);
    if last.record.info()?.status() == Status::Uninstalled {
        if options.keep_history {
            return Err(ActionError::AlreadyDeleted(name.clone()));
        }
        purge(session, &earlier, &last.record).await?;
        return Ok(Uninstalled::default());
    }

    session.log(format!("uninstall: Deleting {name}"));
    let session = &session.writing_as(&last.record)?;
    let namespace = last.record.namespace()?;
    let hooks = Hooks {
        session,
        release: (name, &namespace),
        namespace: &options.namespace,
        timeout: options.timeout,
        helm_compat: options.helm_compat,
    };
    let underway = "Deletion in progress (or silently failed)";
    last.record.set_deleted(&session.now())?;
    last.record.set_status(&Status::Uninstalling, underway)?;
    if options.no_hooks {
        session.log(format!("delete hooks disabled for {name}"));
    } else {
        hooks.run_for(&mut last.record, &last.labels, HookEvent::PreDelete, "").await?;
    }
    // Whoever finds the objects half gone finds out why.
    store(session, &last).await;

    let plan = Deletion::of(session, &last.record, options).await?;
    let mut done = Uninstalled { kept: plan.kept, left: Vec::new() };
    let writer = session.writer_of(name, &namespace, options.helm_compat);
    let removed = writer.delete(&plan.items, options.propagation).await.map_err(|errors| {
        if errors.cancelled {
            return ActionError::Wait(WaitError::Cancelled);
        }
        let errors = errors.errors.iter().map(ToString::to_string).collect();
        ActionError::NotDeleted { name: name.clone(), errors }
    })?;
    done.left = removed.left;

    let mut errors = Vec::new();
    if options.wait {
        let Session { cluster, clock, observer, cancel, .. } = session;
        let timeout = options.timeout;
        match wait_until_gone(&**cluster, *clock, &removed.deleted, timeout, *observer, cancel)
            .await
        {
            Err(WaitError::Cancelled) => return Err(WaitError::Cancelled.into()),
            Err(error) => errors.push(error_chain(&error)),
            Ok(()) => {}
        }
    }
    if !options.no_hooks {
        match hooks.run(&mut last.record, &last.labels, HookEvent::PostDelete).await {
            Err(HookError::Cancelled) => return Err(WaitError::Cancelled.into()),
            Err(error) => errors.push(error_chain(&error)),
            Ok(()) => {}
        }
    }
    let description = match options.description.as_str() {
        "" => "Uninstallation complete",
        description => description,
    };
    last.record.set_status(&Status::Uninstalled, description)?;
    if options.keep_history {
        store(session, &last).await;
        supersede_deployed(session, name).await?;
    } else {
        session.log(format!("purge requested for {name}"));
        if let Err(error) = purge(session, &earlier, &last.record).await {
            errors.push(error_chain(&error));
        }
    }
    if errors.is_empty() { Ok(done) } else { Err(ActionError::CompletedWith { errors }) }
}

/// What the records say that they are, by which Helm deletes them: a record that was copied from
/// another release still names that one.
fn keys(revisions: &[Stored]) -> Result<Vec<(String, i64)>, ActionError> {
    revisions.iter().map(|stored| Ok((stored.record.name()?, stored.record.revision()?))).collect()
}

/// Deletes all records, the newest last: while it is there, uninstalling again goes on.
async fn purge(
    session: &Session<'_>,
    earlier: &[(String, i64)],
    last: &Record,
) -> Result<(), ActionError> {
    let last = (last.name()?, last.revision()?);
    for (name, revision) in earlier.iter().chain([&last]) {
        let purged = session.storage().delete(name, *revision).await;
        purged.map_err(|source| ActionError::NotPurged(Box::new(source)))?;
    }
    Ok(())
}

async fn store(session: &Session<'_>, last: &Stored) {
    if let Err(error) = session.storage().update(&last.record, &last.labels).await {
        session.log(format!("uninstall: Failed to store updated release: {}", error_chain(&error)));
    }
}

/// No revision of an uninstalled release is deployed.
async fn supersede_deployed(session: &Session<'_>, name: &str) -> Result<(), ActionError> {
    let deployed = match session.storage().deployed_all(name).await {
        Ok(deployed) => deployed,
        Err(StorageError::NoDeployed { .. }) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    for mut stored in deployed {
        let description = stored.record.info()?.description;
        stored.record.set_status(&Status::Superseded, &description)?;
        store(session, &stored).await;
    }
    Ok(())
}

/// What is to be deleted (`deleteRelease`).
struct Deletion {
    items: Vec<Item>,
    kept: String,
}

impl Deletion {
    async fn of(
        session: &Session<'_>,
        record: &Record,
        options: &UninstallOptions,
    ) -> Result<Self, ActionError> {
        let failed = |what: &str, error: String| {
            let errors = vec![format!("{what}: {error}")];
            session.log(format!("uninstall: Failed to delete release: {errors:?}"));
            ActionError::NotDeleted { name: options.name.clone(), errors }
        };
        let manifest = record.manifest()?;
        let files: BTreeMap<String, BString> = split_manifests(manifest.as_bytes())
            .into_iter()
            .enumerate()
            .map(|(number, document)| (format!("manifest-{number}"), document))
            .collect();
        let sorted =
            sort_manifests(&files, &UNINSTALL_ORDER, &mut Vec::new()).map_err(|error| {
                failed(
                    "corrupted release record. You must manually delete the resources",
                    error_chain(&*error),
                )
            })?;
        let mut kept = String::new();
        let mut text = BString::default();
        for manifest in sorted.manifests {
            match manifest.head.annotations.get(RESOURCE_POLICY) {
                Some(policy) if policy.trim().eq_ignore_ascii_case(KEEP) => {
                    kept.push_str(&format!("[{}] {}\n", manifest.head.kind, manifest.head.name));
                }
                // Neither told of nor deleted, in Helm.
                Some(_) => {}
                None => {
                    text.extend_from_slice(b"\n---\n");
                    text.extend_from_slice(&manifest.content);
                }
            }
        }
        if !kept.is_empty() {
            kept.insert_str(0, "These resources were kept due to the resource policy:\n");
        }
        let discovery = session.discover(false).await?;
        let release =
            ReleaseOptions { namespace: options.namespace.clone(), ..ReleaseOptions::default() };
        let items = prepare::objects(&discovery, &text, &release, false, "").map_err(|error| {
            failed("unable to build kubernetes objects for delete", error_chain(&error))
        })?;
        Ok(Self { items, kept })
    }
}
