//! Access to a cluster: one trait, and what stands behind it.
//!
//! ```text
//! callers ─► &dyn Cluster ─┬─ live    an API server (feature `network`)
//!                          ├─ memory  files and objects, no server (a cluster in a file: snapshot)
//!                          └─ faults  any of them, failing or killed at a chosen call
//! ```
//!
//! Everything above reads and writes only through [`Cluster`], so a plan, a rehearsal over files
//! and the real thing are the same code. The trait knows nothing of Helm. Objects are
//! [`serde_json::Value`], as the server's JSON has them.

mod block_on;
mod clock;
mod discovery;
mod error;
mod faults;
mod kind;
mod list;
#[cfg(feature = "network")]
pub mod live;
pub mod memory;
mod request;
mod rights;
pub mod snapshot;
mod status;
pub mod wrapper;

use std::pin::Pin;
use std::sync::Arc;

use serde_json::{Value, json};

pub use block_on::block_on;
pub use clock::{Clock, ManualClock};
pub use discovery::{Discovery, FailedGroup, ServerVersion};
pub use error::{ClusterError, ErrorKind, ReadError, TransportError, TransportProblem};
pub use faults::{CallRecord, Count, Effect, Fault, Faults, Moment};
pub use kind::{Kind, Resource, Target};
pub use list::{list_all, list_each};
pub use request::{
    DeleteOptions, FieldValidation, ListQuery, Page, Patch, PatchKind, Propagation, Watch,
    WatchEvent, WatchQuery, WriteOptions,
};
pub use rights::{AccessQuestion, Decision, ResourceRule, Rules, Subject};
pub use status::{Cause, Status};

/// What a call of a [`Cluster`] returns: a boxed future, so that callers take `&dyn Cluster` and
/// are compiled once.
pub type Reply<'a, T> = Pin<Box<dyn Future<Output = Result<T, ClusterError>> + Send + 'a>>;

/// A Kubernetes API server, or something that behaves like one.
///
/// Calls that fail say so with a [`ClusterError`]; [`ClusterError::kind`] is what to decide on and
/// its text is what client-go prints for the same answer.
///
/// Retrying what can safely be tried again is the implementation's business: a caller that gets an
/// error need not try again, other than to read anew after a conflict.
pub trait Cluster: Send + Sync {
    /// Reads one object.
    fn get<'a>(&'a self, target: &'a Target) -> Reply<'a, Value>;

    /// Reads one page of a list. Items carry `apiVersion` and `kind`, which the server leaves out.
    ///
    /// Most callers want [`list_all`] or [`list_each`].
    fn list<'a>(&'a self, resource: &'a Resource, query: &'a ListQuery) -> Reply<'a, Page>;

    /// Reads one object as a table for people (`meta.k8s.io`, kind `Table`), without the object in
    /// it. Who makes no tables answers the object.
    fn get_table<'a>(&'a self, target: &'a Target) -> Reply<'a, Value> {
        self.get(target)
    }

    /// Reads a list as one table, as [`Self::get_table`]. Who makes none answers a list of objects.
    fn list_table<'a>(&'a self, resource: &'a Resource, query: &'a ListQuery) -> Reply<'a, Value> {
        Box::pin(async move {
            let page = self.list(resource, query).await?;
            let kind = &resource.kind;
            Ok(json!({
                "apiVersion": kind.api_version(), "kind": format!("{}List", kind.kind),
                "metadata": { "resourceVersion": page.resource_version }, "items": page.items,
            }))
        })
    }

    /// Creates an object. `target.name` is empty when `metadata.generateName` is to name it.
    ///
    /// Returns the object as the server holds it now, or would hold it after a dry run.
    fn create<'a>(
        &'a self,
        target: &'a Target,
        object: &'a Value,
        options: &'a WriteOptions,
    ) -> Reply<'a, Value>;

    /// Replaces an object; with `metadata.resourceVersion` set, only that version of it.
    fn update<'a>(
        &'a self,
        target: &'a Target,
        object: &'a Value,
        options: &'a WriteOptions,
    ) -> Reply<'a, Value>;

    /// Changes an object by a patch. A server-side apply creates what is not there.
    fn patch<'a>(
        &'a self,
        target: &'a Target,
        patch: &'a Patch,
        options: &'a WriteOptions,
    ) -> Reply<'a, Value>;

    /// Deletes an object, or marks it as to be deleted where finalizers hold it.
    ///
    /// Returns what the server answers: the object as it is now being deleted, or a `Status`.
    fn delete<'a>(&'a self, target: &'a Target, options: &'a DeleteOptions) -> Reply<'a, Value>;

    /// Watches a collection from `query.resource_version` on.
    fn watch<'a>(
        &'a self,
        resource: &'a Resource,
        query: &'a WatchQuery,
    ) -> Reply<'a, Box<dyn Watch + 'a>>;

    /// The log of a pod's container; of its only container when `container` is empty.
    fn logs<'a>(&'a self, pod: &'a Target, container: &'a str) -> Reply<'a, Vec<u8>>;

    /// What the server serves. Kept after the first call; `refresh` asks the server again, as
    /// is needed after CRDs were created.
    ///
    /// A group that is down does not make the call fail: see [`Discovery::failed`].
    fn discovery(&self, refresh: bool) -> Reply<'_, Arc<Discovery>>;

    /// The server's version.
    fn server_version(&self) -> Reply<'_, ServerVersion>;

    /// The OpenAPI v3 document of `group_version` (`v1`, `apps/v1`); `None` when there is none.
    fn openapi<'a>(&'a self, group_version: &'a str) -> Reply<'a, Option<Arc<Value>>>;

    /// Asks whether this identity may do something (SelfSubjectAccessReview).
    fn may<'a>(&'a self, question: &'a AccessQuestion) -> Reply<'a, Decision>;

    /// Asks whether somebody else may (SubjectAccessReview).
    fn subject_may<'a>(
        &'a self,
        subject: &'a Subject,
        question: &'a AccessQuestion,
    ) -> Reply<'a, Decision>;

    /// What this identity may do in a namespace, as far as the server can tell
    /// (SelfSubjectRulesReview).
    fn rules<'a>(&'a self, namespace: &'a str) -> Reply<'a, Rules>;

    /// Who the server takes this client for (SelfSubjectReview).
    fn identity(&self) -> Reply<'_, Subject>;
}
