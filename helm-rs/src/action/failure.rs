//! What happens after an installation or upgrade failed: the record of it, and what `--atomic` and
//! `--cleanup-on-fail` undo (`failRelease` in `pkg/action/{install,upgrade}.go`).

use super::error::ActionError;
use super::rollback::{RollbackOptions, rollback};
use super::session::{ReleaseOptions, Session};
use super::uninstall::{UninstallOptions, uninstall};
use crate::apply::{Cancel, Item, WriteErrors, ownership};
use crate::cluster::Propagation;
use crate::error_chain;
use crate::gotext::quote;
use crate::release::storage::{Head, Labels};
use crate::release::{Record, Status};

/// Ends a failed installation: its record says so, or it is uninstalled.
pub(super) async fn fail_installation(
    session: &Session<'_>,
    mut record: Record,
    options: &ReleaseOptions,
    error: ActionError,
) -> ActionError {
    let name = &options.name;
    if options.atomic {
        session.log("Install failed and atomic is set, uninstalling release");
        // The user's wish to end is what is being done.
        let cancel = Cancel::default();
        let session = Session { cancel: &cancel, ..session.clone() };
        let undo = UninstallOptions {
            name: name.clone(),
            namespace: options.namespace.clone(),
            no_hooks: options.no_hooks,
            timeout: options.timeout,
            helm_compat: options.helm_compat,
            ..UninstallOptions::default()
        };
        return match Box::pin(uninstall(&session, &undo)).await {
            Ok(_) => ActionError::Undone {
                name: name.clone(),
                how: "uninstalled",
                source: Box::new(error),
            },
            Err(source) => ActionError::NotUndone {
                what: "uninstalling the release",
                action: "install",
                error: Box::new(error),
                source: Box::new(source),
            },
        };
    }
    let description = format!("Release {} failed: {}", quote(name), error_chain(&error));
    if let Err(error) = record.set_status(&Status::Failed, &description) {
        return error.into();
    }
    match session.storage().update(&record, &options.labels).await {
        Ok(()) => error,
        Err(unwritten) => {
            session.log(format!("failed to record the release: {}", error_chain(&unwritten)));
            ActionError::still_pending(error, &Status::PendingInstall, unwritten)
        }
    }
}

/// Ends a failed upgrade: its record says so, what it created is deleted, and the release is rolled
/// back, as far as that is wished.
pub(super) async fn fail_upgrade(
    session: &Session<'_>,
    mut record: Record,
    labels: &Labels,
    options: &ReleaseOptions,
    created: &[Item],
    error: ActionError,
) -> ActionError {
    let name = &options.name;
    let description = format!("Upgrade {} failed: {}", quote(name), error_chain(&error));
    session.log(format!("warning: {description}"));
    if let Err(error) = record.set_status(&Status::Failed, &description) {
        return error.into();
    }
    if let Err(unwritten) = session.storage().update(&record, labels).await {
        let reason = error_chain(&unwritten);
        session.log(format!("warning: Failed to update release {name}: {reason}"));
        return ActionError::still_pending(error, &Status::PendingUpgrade, unwritten);
    }
    let cancel = Cancel::default();
    let session = &Session { cancel: &cancel, ..session.clone() };
    if options.cleanup_on_fail && !created.is_empty() {
        let owner = match record.namespace() {
            Ok(namespace) => (name.clone(), namespace),
            Err(error) => return error.into(),
        };
        let owner = (owner.0.as_str(), owner.1.as_str());
        if let Err(errors) = clean_up(session, created, owner, options.helm_compat).await {
            return not_cleaned_up("upgrade", error, &errors);
        }
    }
    if !options.atomic {
        return error;
    }
    session.log("Upgrade failed and atomic is set, rolling back to last successful release");
    let heads = match session.storage().heads(name).await {
        Ok(heads) => heads,
        Err(source) => {
            return ActionError::NotUndone {
                what: "finding last successful release",
                action: "upgrade",
                error: Box::new(error),
                source: Box::new(source.into()),
            };
        }
    };
    let Some(revision) = last_successful(&heads) else {
        return ActionError::NeverSuccessful(Box::new(error));
    };
    let undo = RollbackOptions {
        name: name.clone(),
        namespace: options.namespace.clone(),
        revision,
        wait: true,
        wait_for_jobs: options.wait_for_jobs,
        no_hooks: options.no_hooks,
        recreate_pods: options.recreate_pods,
        method: options.method.undoing(),
        timeout: options.timeout,
        helm_compat: options.helm_compat,
        ..RollbackOptions::default()
    };
    match Box::pin(rollback(session, &undo)).await {
        Ok(_) => {
            ActionError::Undone { name: name.clone(), how: "rolled back", source: Box::new(error) }
        }
        Err(source) => ActionError::NotUndone {
            what: "rolling back the release",
            action: "upgrade",
            error: Box::new(error),
            source: Box::new(source),
        },
    }
}

/// The newest revision that ever was deployed, to which a failed upgrade is rolled back.
pub(super) fn last_successful(heads: &[Head]) -> Option<i64> {
    let was_deployed =
        |head: &&Head| head.has_status(&Status::Superseded) || head.has_status(&Status::Deployed);
    heads.iter().rev().find(was_deployed).and_then(Head::revision)
}

/// Deletes what a failed action created. An object whose creation failed may be somebody else's,
/// even nobody's: only what has this release's ownership metadata is deleted.
pub(super) async fn clean_up(
    session: &Session<'_>,
    created: &[Item],
    (name, namespace): (&str, &str),
    helm_compat: bool,
) -> Result<(), WriteErrors> {
    session.log(format!("Cleanup on fail set, cleaning up {} resources", created.len()));
    let writer = session.writer_of(name, namespace, helm_compat);
    let mut own = created.to_vec();
    if !helm_compat {
        let wanted: Vec<&Item> = created.iter().collect();
        let live = writer.read(&wanted).await;
        let is_own = live.iter().map(|live| match live {
            Ok(Some(live)) => ownership::check(live, name, namespace).is_ok(),
            Ok(None) => false,
            Err(_) => true,
        });
        own =
            created.iter().zip(is_own).filter(|(_, own)| *own).map(|(it, _)| it.clone()).collect();
    }
    writer.delete(&own, Propagation::Background).await?;
    session.log("Resource cleanup complete");
    Ok(())
}

/// The error of an action after which not everything could be cleaned up.
pub(super) fn not_cleaned_up(
    action: &'static str,
    error: ActionError,
    errors: &WriteErrors,
) -> ActionError {
    let texts: Vec<String> = errors.errors.iter().map(ToString::to_string).collect();
    ActionError::NotUndone {
        what: "cleaning up resources",
        action,
        error: Box::new(error),
        source: Box::new(ActionError::NotCleanedUp(texts.join(", "))),
    }
}
