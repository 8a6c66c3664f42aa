//! What is asked of a cluster.

use serde_json::Value;

use super::{ClusterError, Reply};

/// How a write is to be done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteOptions {
    /// Run every step but the storing: validation, defaulting, admission (`dryRun=All`).
    pub dry_run: bool,
    /// Who owns the written fields; empty for the server's default. An apply needs one.
    pub field_manager: String,
    /// What the server does with unknown and duplicate fields; `None` for its default.
    pub field_validation: Option<FieldValidation>,
    /// For an apply: take fields from other managers instead of a conflict.
    pub force: bool,
    /// Ask for metadata only: what was written is known, and large.
    pub metadata_only: bool,
}

/// What the server does with unknown and duplicate fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldValidation {
    /// Drops them.
    Ignore,
    /// Drops them and warns.
    Warn,
    /// Refuses.
    Strict,
}

impl FieldValidation {
    /// The parameter's value.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ignore => "Ignore",
            Self::Warn => "Warn",
            Self::Strict => "Strict",
        }
    }
}

/// A patch with its kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Patch {
    /// How the body is to be read.
    pub kind: PatchKind,
    /// The patch: an object, or a list of operations for [`PatchKind::Json`].
    pub body: Value,
}

/// The kinds of patches that an API server takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchKind {
    /// RFC 7386.
    Merge,
    /// Merge that knows keyed lists; built-in kinds only.
    Strategic,
    /// RFC 6902.
    Json,
    /// Server-side apply.
    Apply,
}

impl PatchKind {
    /// The content type.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Merge => "application/merge-patch+json",
            Self::Strategic => "application/strategic-merge-patch+json",
            Self::Json => "application/json-patch+json",
            Self::Apply => "application/apply-patch+yaml",
        }
    }
}

/// What happens to what an object owns when it is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// The garbage collector deletes it later.
    Background,
    /// It is deleted first; the object waits for it.
    Foreground,
    /// It stays.
    Orphan,
}

impl Propagation {
    /// The field's value.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Background => "Background",
            Self::Foreground => "Foreground",
            Self::Orphan => "Orphan",
        }
    }
}

/// How an object is deleted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    /// What happens to what it owns; `None` for the resource's default.
    pub propagation: Option<Propagation>,
    /// Delete only the object with this UID; empty for any. Else the answer is a conflict.
    pub uid: String,
    /// Delete only this version of it; empty for any.
    pub resource_version: String,
    /// Seconds that a pod gets to end; `None` for its own.
    pub grace_period_seconds: Option<i64>,
    /// Check, but do not delete.
    pub dry_run: bool,
}

/// Which objects to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListQuery {
    /// The namespace; empty for all.
    pub namespace: String,
    /// A label selector, such as `owner=helm,name=web`; empty for all.
    pub labels: String,
    /// A field selector, such as `metadata.name=web`; empty for all.
    pub fields: String,
    /// Objects in one page; 0 for all in one answer.
    pub limit: usize,
    /// [`Page::next`] of the page before; empty for the first page.
    pub next: String,
    /// Ask for metadata only (`PartialObjectMetadata`); items keep their own kind.
    pub metadata_only: bool,
}

/// One page of a list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// The objects, each with `apiVersion` and `kind`.
    pub items: Vec<Value>,
    /// The version of the collection, to watch from.
    pub resource_version: String,
    /// What to ask for next; empty after the last page.
    pub next: String,
}

/// What to watch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WatchQuery {
    /// The namespace; empty for all.
    pub namespace: String,
    /// A label selector; empty for all.
    pub labels: String,
    /// A field selector, such as `metadata.name=web`; empty for all.
    pub fields: String,
    /// Where to begin: a list's version. Empty: what is there comes first, as added.
    pub resource_version: String,
    /// After how many seconds the server ends the watch; 0 for its own choice.
    pub timeout_seconds: u32,
}

/// What happened to an object.
#[derive(Clone, Debug, PartialEq)]
pub enum WatchEvent {
    /// It is new, or now selected.
    Added(Value),
    /// It changed.
    Modified(Value),
    /// It is gone, or no longer selected.
    Deleted(Value),
    /// Nothing, but events up to this version were sent.
    Bookmark(String),
}

/// A running watch.
pub trait Watch: Send {
    /// The next event; `None` when the server ended the watch in good order, after which a new
    /// one may begin at the last version seen.
    ///
    /// # Errors
    /// [`ErrorKind::Expired`](super::ErrorKind::Expired) when the version is too old: list again.
    /// A broken connection is a transport error: watch again from the last version seen.
    fn next(&mut self) -> Reply<'_, Option<WatchEvent>>;
}

impl WatchEvent {
    /// The object; `None` for a bookmark.
    pub const fn object(&self) -> Option<&Value> {
        match self {
            Self::Added(object) | Self::Modified(object) | Self::Deleted(object) => Some(object),
            Self::Bookmark(_) => None,
        }
    }

    /// Reads an event of the server's stream.
    ///
    /// # Errors
    /// The server's `Status` when the event is an error.
    pub fn from_parts(kind: &str, object: Value) -> Result<Self, ClusterError> {
        Ok(match kind {
            "ADDED" => Self::Added(object),
            "MODIFIED" => Self::Modified(object),
            "DELETED" => Self::Deleted(object),
            "BOOKMARK" => Self::Bookmark(
                object
                    .pointer("/metadata/resourceVersion")
                    .and_then(Value::as_str)
                    .unwrap_or_default()
                    .to_owned(),
            ),
            _ => return Err(ClusterError::from_status_object(&object)),
        })
    }
}
