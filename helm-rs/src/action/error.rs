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
    /// The chart has hooks for this action.
    #[error(
        "the chart has hooks for this action, which ichor does not run yet: {}",
        hooks.join(", ")
    )]
    Hooks {
        /// `event: path`, each.
        hooks: Vec<String>,
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

    /// Whether the end was asked for.
    pub fn is_cancelled(&self) -> bool {
        match self {
            Self::Wait(WaitError::Cancelled) => true,
            Self::StillPending { error, .. } => error.is_cancelled(),
            Self::Write(errors) => errors.cancelled,
            Self::Update(error) => error
                .errors
                .iter()
                .any(|error| matches!(error, crate::apply::ObjectError::Cancelled)),
            _ => false,
        }
    }
}
