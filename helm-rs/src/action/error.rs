//! Why an action on a release ended. The texts down the chain, joined by `: `, are Helm's.

use crate::apply::ownership::NotOwned;
use crate::apply::{BuildError, UpdateError, WaitError, WriteErrors};
use crate::cluster::ClusterError;
use crate::error_chain;
use crate::gotext::quote;
use crate::name::NameError;
use crate::release::storage::{SYSTEM_LABELS, StorageError};
use crate::release::{ChartError, FieldError, Status};
use crate::values::CoalesceError;

use super::hooks::HookError;
use super::template;

/// Why an action on a release ended.
#[derive(Debug, thiserror::Error)]
pub enum ActionError {
    /// The server does not answer, or not to us.
    #[error("Kubernetes cluster unreachable")]
    Unreachable(#[source] ClusterError),
    /// What the server serves cannot be read.
    #[error("could not get apiVersions from Kubernetes: could not get apiVersions from Kubernetes")]
    Discovery(#[source] ClusterError),
    /// The release name cannot be one.
    #[error("release name {}", quote(name))]
    Name {
        /// The name.
        name: String,
        /// What is wrong with it.
        source: NameError,
    },
    /// The same in an upgrade.
    #[error("release name is invalid: {0}")]
    InvalidName(String),
    /// There is a release of that name.
    #[error("cannot re-use a name that is still in use")]
    NameInUse,
    /// The newest revision is pending: something is at work, or died at it.
    #[error("another operation (install/upgrade/rollback) is in progress")]
    Pending,
    /// The records.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// A record's field.
    #[error(transparent)]
    Field(#[from] FieldError),
    /// A label that the storage uses itself.
    #[error(
        "user supplied labels contains system reserved label name. System labels: [{}]",
        SYSTEM_LABELS.join(" ")
    )]
    SystemLabels,
    /// The values before cannot be made again.
    #[error("failed to rebuild old values")]
    OldValues(#[source] ChartError),
    /// Values cannot be joined.
    #[error(transparent)]
    Values(#[from] CoalesceError),
    /// The chart does not render.
    #[error(transparent)]
    Template(Box<template::Error>),
    /// The record cannot be written as JSON.
    #[error("failed to encode release")]
    Encode(#[from] goyaml::json::Error),
    /// A manifest that the cluster cannot take.
    #[error("{what}{}{error}", if what.is_empty() { "" } else { ": " })]
    Build {
        /// Which manifest, in Helm's words; empty where Helm says nothing.
        what: &'static str,
        /// What is wrong with it; part of this level's text, since Helm does not always name the
        /// manifest.
        error: Box<BuildError>,
    },
    /// Objects that are in the way.
    #[error("Unable to continue with {action}")]
    Conflict {
        /// `install` or `update`.
        action: &'static str,
        /// Which, and why.
        source: Box<ConflictError>,
    },
    /// A file under `crds/`.
    #[error("failed to install CRD {name}")]
    Crd {
        /// The file.
        name: String,
        /// What is wrong.
        source: Box<CrdError>,
    },
    /// Objects that could not be created.
    #[error(transparent)]
    Write(#[from] WriteErrors),
    /// Objects that could not be updated.
    #[error(transparent)]
    Update(#[from] UpdateError),
    /// Objects that did not become ready.
    #[error(transparent)]
    Wait(#[from] WaitError),
    /// A hook failed.
    #[error(transparent)]
    Hook(Box<HookError>),
    /// A hook failed, in an installation or upgrade.
    #[error("{when}")]
    HookFailed {
        /// What Helm says first.
        when: &'static str,
        /// What became of the hook.
        source: Box<HookError>,
    },
    /// The program that was to change the manifest failed.
    #[error("error while running post render on files: {0}")]
    PostRender(String),
    /// The action failed, and was undone.
    #[error("release {name} failed, and has been {how} due to atomic being set")]
    Undone {
        /// The release.
        name: String,
        /// `uninstalled` or `rolled back`.
        how: &'static str,
        /// Why it failed.
        source: Box<Self>,
    },
    /// The action failed, and so did what was to be done then.
    #[error("an error occurred while {what}. original {action} error: {}", error_chain(error))]
    NotUndone {
        /// What failed at last.
        what: &'static str,
        /// `install`, `upgrade` or `rollback`.
        action: &'static str,
        /// Why the action failed; part of this level's text.
        error: Box<Self>,
        /// Why the rest failed.
        source: Box<Self>,
    },
    /// Objects of a failed action could not be deleted.
    #[error("unable to cleanup resources: {0}")]
    NotCleanedUp(String),
    /// No revision is known to be good.
    #[error(
        "unable to find a previously successful release when attempting to rollback. original \
         upgrade error"
    )]
    NeverSuccessful(#[source] Box<Self>),
    /// The release name cannot be one, as the actions say it that are no upgrade.
    #[error("{step}: Release name is invalid: {name}")]
    NameOf {
        /// What Helm says first.
        step: &'static str,
        /// The name.
        name: String,
    },
    /// A negative revision.
    #[error("invalid release revision")]
    InvalidRevision,
    /// There is no such revision to go back to.
    #[error("release has no {0} version")]
    NoSuchRevision(i64),
    /// Objects were not ready after a rollback.
    #[error("release {name} failed")]
    ReleaseFailed {
        /// The release.
        name: String,
        /// Why.
        source: Box<Self>,
    },
    /// The action failed, and its record stays pending, as in Helm.
    #[error("{}", error_chain(error))]
    LeftPending {
        /// Why the action failed; this level's text.
        error: Box<Self>,
        /// The status in the record.
        status: String,
    },
    /// The release to uninstall cannot be read.
    #[error("uninstall: Release not loaded: {name}")]
    NotLoaded {
        /// The release.
        name: String,
        /// Why.
        source: Box<StorageError>,
    },
    /// None of its records decodes.
    #[error("no release provided")]
    NoRelease,
    /// It was uninstalled before, and its records are to be kept.
    #[error("the release named {} is already deleted", quote(.0))]
    AlreadyDeleted(String),
    /// Objects of the release could not be deleted.
    #[error("failed to delete release: {name}")]
    NotDeleted {
        /// The release.
        name: String,
        /// Why, each; Helm tells this with `--debug` only.
        errors: Vec<String>,
    },
    /// A record could not be deleted.
    #[error("uninstall: Failed to purge the release")]
    NotPurged(#[source] Box<StorageError>),
    /// The release is uninstalled, but not all went well.
    #[error("uninstallation completed with {} error(s): {}", errors.len(), errors.join("; "))]
    CompletedWith {
        /// What did not.
        errors: Vec<String>,
    },
    /// A test's log cannot be read.
    #[error("unable to get pod logs for {name}")]
    PodLogs {
        /// The test.
        name: String,
        /// Why.
        source: ClusterError,
    },
    /// The work is done, but the record does not say so.
    #[error("the objects of release {name} are written, but its record may still say {status}")]
    Unrecorded {
        /// The release.
        name: String,
        /// The status in the record.
        status: String,
        /// Why it could not be written.
        source: Box<StorageError>,
    },
    /// The record of a beginning action could not be written, as far as known: it may be there, and
    /// pending.
    #[error(transparent)]
    PerhapsPending(StorageError),
    /// The action failed, and the record does not say so: it could not be written.
    #[error("{}", error_chain(error))]
    StillPending {
        /// Why the action failed; this level's text, since Helm says no more.
        error: Box<Self>,
        /// The status in the record.
        status: String,
        /// Why the record could not be written.
        record: Box<StorageError>,
    },
    /// Objects are either replaced or applied.
    #[error("objects cannot be replaced under server-side apply")]
    ForcedApply,
    /// Only server-side apply knows of fields' owners.
    #[error("conflicts can be forced under server-side apply only")]
    ForceConflicts,
    /// `--hide-secret` without a dry run.
    #[error("Hiding Kubernetes secrets requires a dry-run mode")]
    HideSecret,
}

/// An object that is in the way of a release.
#[derive(Debug, thiserror::Error)]
pub enum ConflictError {
    /// It cannot be read.
    #[error("could not get information about the resource {title}")]
    Read {
        /// The object.
        title: String,
        /// Why.
        source: ClusterError,
    },
    /// It is somebody else's.
    #[error("{title} exists and cannot be imported into the current release")]
    NotOwned {
        /// The object.
        title: String,
        /// What its metadata says.
        source: NotOwned,
    },
}

/// What is wrong with a file under `crds/`.
#[derive(Debug, thiserror::Error)]
pub enum CrdError {
    /// It cannot be brought to the cluster.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// There is no object in it.
    #[error("no objects visited")]
    Empty,
    /// The server does not take it.
    #[error(transparent)]
    Write(#[from] WriteErrors),
}

impl From<template::Error> for ActionError {
    fn from(error: template::Error) -> Self {
        Self::Template(Box::new(error))
    }
}

impl ActionError {
    /// The record of a beginning action that could not be created.
    pub(super) fn not_begun(error: StorageError) -> Self {
        if error.may_have_taken_effect() { Self::PerhapsPending(error) } else { error.into() }
    }

    /// A failure that the record does not know.
    pub(super) fn still_pending(error: Self, status: &Status, record: StorageError) -> Self {
        let (error, record) = (Box::new(error), Box::new(record));
        Self::StillPending { error, status: status.to_string(), record }
    }

    /// Whether fields of other managers kept objects from being applied.
    pub fn has_field_conflicts(&self) -> bool {
        match self {
            Self::StillPending { error, .. } | Self::NotUndone { error, .. } => {
                error.has_field_conflicts()
            }
            Self::Undone { source, .. } => source.has_field_conflicts(),
            Self::Update(error) => error
                .errors
                .iter()
                .any(|error| matches!(error, crate::apply::ObjectError::Fields { .. })),
            _ => false,
        }
    }

    /// Whether the end was asked for.
    pub fn is_cancelled(&self) -> bool {
        match self {
            Self::Wait(WaitError::Cancelled) => true,
            Self::StillPending { error, .. } | Self::LeftPending { error, .. } => {
                error.is_cancelled()
            }
            Self::Undone { source, .. } => source.is_cancelled(),
            Self::Write(errors) => errors.cancelled,
            Self::Update(error) => error
                .errors
                .iter()
                .any(|error| matches!(error, crate::apply::ObjectError::Cancelled)),
            _ => false,
        }
    }
}
