//! Bringing a cluster to what a manifest says, object by object, as Helm does
//! (`pkg/kube/client.go`, `pkg/action/validate.go`).
//!
//! ```text
//! manifest ─ build ─► objects ─ ownership ─► conflicts ─ write ─► outcome ─ wait ─► ready
//! ```

mod build;
mod complete;
mod created;
mod field;
mod managed_fields;
mod merge;
mod metadata;
pub mod ownership;
pub mod readiness;
mod recreate;
mod remove;
mod server_side;
mod wait;
mod write;

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use crate::cluster::{Kind, Target};

pub use build::{BuildError, build};
pub use complete::{CompletionError, CompletionErrors, wait_until_complete};
pub use created::Created;
pub use managed_fields::FieldConflict;
pub use merge::{CustomMerge, MergeError, patch_for};
pub use recreate::RecreateError;
pub use remove::{Left, Removed, wait_until_gone};
pub use wait::{WaitError, WaitOptions, Waiting, pod_reasons, selector, wait};
pub(crate) use write::is_kept;
pub use write::{
    KEEP, Live, Method, ObjectError, Outcome, RESOURCE_POLICY, UpdateError, WriteErrors, Writer,
};

/// The field manager of everything that this program writes, other than by server-side apply.
pub const FIELD_MANAGER: &str = "ichor";

/// The field manager of a release's server-side applies, which is Helm's. A manager's fields are one
/// intent, and what the intent drops is removed: were it one of our own, each program would leave
/// what the other had applied, and refuse to change it.
pub const RELEASE_MANAGER: &str = "helm";

/// An object of a manifest with its address on the cluster (`resource.Info`).
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// Where it lives.
    pub target: Target,
    /// What it is: as rendered, with the namespace that it goes to.
    pub value: Value,
}

/// Neighbours of one kind: what is written or waited for side by side (`batchPerform`).
fn by_kind(items: &[Item]) -> impl Iterator<Item = &[Item]> {
    items.chunk_by(|one, next| one.kind().kind == next.kind().kind)
}

impl Item {
    /// The object's kind.
    pub fn kind(&self) -> &Kind {
        &self.target.resource.kind
    }

    /// Whether both stand for one object, in whatever version (`isMatchingInfo`).
    pub fn matches(&self, other: &Self) -> bool {
        let (own, others) = (self.kind(), other.kind());
        self.target.name == other.target.name
            && self.target.namespace == other.target.namespace
            && own.kind == others.kind
            && own.group == others.group
    }

    /// `Kind "name" in namespace "namespace"`, as Helm names an object (`resourceString`).
    pub fn title(&self) -> String {
        use crate::gotext::quote;
        format!(
            "{} {} in namespace {}",
            self.kind().kind,
            quote(&self.target.name),
            quote(&self.target.namespace)
        )
    }
}

/// Hears what is going on.
pub trait Observer: Send + Sync {
    /// A line of Helm's debug log.
    fn log(&self, line: &str) {
        let _ = line;
    }

    /// How far something is that takes a while.
    fn progress(&self, line: &str) {
        let _ = line;
    }

    /// The log of a hook's container, which the chart wants to be shown.
    fn output(&self, log: &[u8]) {
        let _ = log;
    }

    /// What is being waited for; called when it changes.
    fn waiting(&self, objects: &[Waiting]) {
        let _ = objects;
    }
}

/// An observer that does not listen.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Observer for Silent {}

/// Asks a running action to stop: it finishes the request under way, then records why it ended.
#[derive(Debug, Default)]
pub struct Cancel(AtomicBool);

impl Cancel {
    /// Asks for the end.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// Whether the end was asked for.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}
