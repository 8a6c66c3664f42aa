//! Where a takeover stands, looked at from outside: what was done, what is left, what is missing,
//! and what real Helm sees of it. Nothing is written.
//!
//! ```text
//! records, lock, stored plan, backups, objects ─ read ─► Facts ─ judge ─► State, problems, next
//! ```

mod facts;
mod judge;

use helm_rs::cluster::{Clock, Cluster, ClusterError};
use serde::Serialize;

pub use facts::{BackupFact, LockFact, ObjectFacts, Own, RecordFact, RecordState, Release};

use super::backup::BackupError;

/// The form of a status' JSON.
pub const SCHEMA_VERSION: &str = "ichor.maesh.dev/cni-status/v1";

/// Where a takeover stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum State {
    /// Nothing of a takeover is there, but the lock perhaps.
    #[default]
    NotBegun,
    /// One was begun and is not complete.
    Begun,
    /// It is done, and all that belongs to it is there.
    Done,
    /// It is done, but something that belongs to it is missing or was changed.
    Incomplete,
    /// A restore was begun and is not complete.
    RestoreBegun,
    /// It was done, and given back.
    Restored,
}

/// What was found, and what it means.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// [`SCHEMA_VERSION`]
    pub schema_version: String,
    /// Where it stands.
    pub state: State,
    /// The step at which one that was begun stopped: the takeover rules' numbers, section 4.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<u8>,
    /// The same in words; empty when nothing was begun.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub stopped: String,
    /// Whether a run may be at work: the lock is held, and was renewed less than 15 s ago. One that
    /// was killed looks like that too.
    pub running: bool,
    /// What is missing, damaged or a stranger's, each with what that means.
    pub problems: Vec<String>,
    /// What to run or do now, in this order; empty when there is nothing to do.
    pub next: Vec<String>,
    /// What was read.
    #[serde(flatten)]
    pub facts: Facts,
}

/// What was read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Facts {
    /// The digest of the stored plan; none when no takeover was begun.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Ichor's newest record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own: Option<Own>,
    /// The foreign records of the stored plan.
    pub records: Vec<RecordFact>,
    /// Backups.
    pub backups: Vec<BackupFact>,
    /// The objects: of the stored plan while a takeover is under way, else of ichor's record.
    pub objects: ObjectFacts,
    /// Who holds the lock; none when nobody does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lock: Option<LockFact>,
    /// The newest revision of each release of that name, as `helm list --all-namespaces --all`
    /// shows it.
    pub releases: Vec<Release>,
    /// Records of the release before that are there and are none of those that were taken over:
    /// another tool made them since.
    pub again: Vec<String>,
    /// What somebody else has to do when the takeover is done, and which is not looked at.
    pub left: Vec<String>,
    /// What is there and cannot be read, in whole sentences.
    pub damaged: Vec<String>,
    /// What this identity may not read.
    pub unread: Vec<String>,
}

/// Why it cannot be told.
#[derive(Debug, thiserror::Error)]
pub enum StatusError {
    /// Backups.
    #[error(transparent)]
    Backup(#[from] BackupError),
    /// Something else.
    #[error("{doing}")]
    Cluster {
        /// What was being done.
        doing: String,
        /// What the cluster says.
        source: ClusterError,
    },
}

impl Facts {
    /// Whether real Helm sees one deployed release of this Cilium, ichor's, and nothing else.
    pub fn helm_agrees(&self) -> bool {
        matches!(self.releases.as_slice(), [only] if only.is_own() && only.status == "deployed")
    }
}

impl Status {
    /// Whether nothing is left to be done and nothing is missing.
    pub const fn is_whole(&self) -> bool {
        matches!(self.state, State::NotBegun | State::Done | State::Restored)
            && self.problems.is_empty()
    }
}

/// Looks.
///
/// # Errors
/// [`StatusError`] when ichor's namespace cannot be read. What may not be read elsewhere is in
/// [`Facts::unread`], and what is damaged in [`Facts::damaged`].
pub async fn status(cluster: &dyn Cluster, clock: &dyn Clock) -> Result<Status, StatusError> {
    let (facts, wants) = facts::read(cluster, clock).await?;
    Ok(judge::judge(facts, &wants))
}
