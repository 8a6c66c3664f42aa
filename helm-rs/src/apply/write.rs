//! Writing objects in Helm's order (`Client.Create`, `Client.update`, `Client.Delete`).

use std::fmt;

use futures::stream::{self, StreamExt as _};
use serde_json::Value;

use super::managed_fields::FieldConflict;
use super::merge::{CustomMerge, MergeError, patch_for};
use super::{Cancel, FIELD_MANAGER, Item, Left, Observer, by_kind, ownership};
use crate::cluster::{Cluster, ClusterError, DeleteOptions, ErrorKind, Propagation, WriteOptions};
use crate::gotext::quote;

/// Requests under way at once.
pub(super) const CONCURRENCY: usize = 16;
/// Objects that are read ahead of the writes: few enough that what was read is fresh when it is
/// written over.
const READ_AHEAD: usize = 32;

/// The annotation that keeps an object when it leaves a release.
pub const RESOURCE_POLICY: &str = "helm.sh/resource-policy";
/// Its only value.
pub const KEEP: &str = "keep";

/// What is known of the live object behind a rendered one.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Live {
    /// Nothing yet: it is read when its turn comes.
    #[default]
    Unknown,
    /// It is not there.
    Absent,
    /// It is there.
    Present(Box<Value>),
}

/// How objects are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// What is missing is created, what is there is patched.
    #[default]
    Patch,
    /// What is missing is created, what is there is replaced.
    Replace,
    /// All is applied by the server.
    Apply {
        /// Whether fields of other managers are taken of what is there.
        force_conflicts: bool,
    },
}

/// What a write did. Indices are those of the target.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Created objects, also those whose creation failed.
    pub created: Vec<usize>,
    /// Objects that were there, changed or not.
    pub updated: Vec<usize>,
    /// Of these, the ones for which anything was sent.
    pub patched: Vec<usize>,
    /// Objects that left the release and were deleted.
    pub deleted: Vec<Item>,
}

/// Why an object was not written. The texts down the chain, joined by `: `, are Helm's.
#[derive(Debug, thiserror::Error)]
pub enum ObjectError {
    /// It cannot be read.
    #[error("could not get information about the resource")]
    Read(#[source] ClusterError),
    /// It cannot be created, in an update.
    #[error("failed to create resource")]
    Create(#[source] ClusterError),
    /// It is live, but neither in the release before nor adopted.
    #[error("no {kind} with the name {} found", quote(name))]
    NotOriginal {
        /// Its kind.
        kind: String,
        /// Its name.
        name: String,
    },
    /// No patch can be made.
    #[error("failed to create patch")]
    Merge(#[source] MergeError),
    /// The server refuses the replacement.
    #[error("failed to replace object")]
    Replace(#[source] ClusterError),
    /// The server refuses the patch.
    #[error("cannot patch {} with kind {kind}", quote(name))]
    Patch {
        /// Its kind.
        kind: String,
        /// Its name.
        name: String,
        /// What the server says.
        source: ClusterError,
    },
    /// What the release owns of it cannot be taken over for server-side apply.
    #[error("cannot take over the fields of {} with kind {kind}", quote(name))]
    TakeOver {
        /// Its kind.
        kind: String,
        /// Its name.
        name: String,
        /// What the server says.
        source: ClusterError,
    },
    /// The server refuses to apply it.
    #[error("cannot apply {} with kind {kind}", quote(name))]
    Apply {
        /// Its kind.
        kind: String,
        /// Its name.
        name: String,
        /// What the server says.
        source: ClusterError,
    },
    /// Others own fields that an apply would change: a line for each.
    #[error("{}", lines(title, conflicts))]
    Fields {
        /// The object, as [`Item::title`] names it.
        title: String,
        /// The fields and who owns them; never empty.
        conflicts: Vec<FieldConflict>,
    },
    /// The server does not answer, so that an object that left the release may be there still.
    #[error("cannot delete {} with kind {kind}", quote(name))]
    Delete {
        /// Its kind.
        kind: String,
        /// Its name.
        name: String,
        /// What went wrong.
        source: ClusterError,
    },
    /// The end was asked for.
    #[error("context canceled")]
    Cancelled,
}

fn lines(title: &str, conflicts: &[FieldConflict]) -> String {
    let lines: Vec<String> =
        conflicts.iter().map(|conflict| format!("{title}: {conflict}")).collect();
    lines.join("\n")
}

/// Failures of objects that are written side by side (`hashicorp/go-multierror`).
#[derive(Debug)]
pub struct WriteErrors {
    /// Each failure, in the order of the objects; never empty.
    pub errors: Vec<ClusterError>,
    /// The end was asked for before all were written.
    pub cancelled: bool,
}

impl fmt::Display for WriteErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.cancelled {
            return f.write_str("context canceled");
        }
        f.write_str(&multierror(&self.errors))
    }
}

/// Errors as `hashicorp/go-multierror` lists them.
pub(super) fn multierror(errors: &[impl fmt::Display]) -> String {
    let points: Vec<String> = errors.iter().map(|error| format!("* {error}")).collect();
    let noun = if points.len() == 1 { "error" } else { "errors" };
    format!("{} {noun} occurred:\n\t{}\n\n", points.len(), points.join("\n\t"))
}

impl std::error::Error for WriteErrors {}

/// An update that did not get through, with what it did.
#[derive(Debug)]
pub struct UpdateError {
    /// What was done before and beside.
    pub outcome: Outcome,
    /// What failed; never empty.
    pub errors: Vec<ObjectError>,
}

impl fmt::Display for UpdateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (conflicts, others): (Vec<_>, Vec<_>) =
            self.errors.iter().partition(|error| matches!(error, ObjectError::Fields { .. }));
        let mut texts: Vec<String> = others.into_iter().map(|e| crate::error_chain(e)).collect();
        if !conflicts.is_empty() {
            let lines: Vec<String> = conflicts.iter().map(ToString::to_string).collect();
            texts.push(format!("fields belong to other managers:\n{}", lines.join("\n")));
        }
        f.write_str(&texts.join(" && "))
    }
}

impl std::error::Error for UpdateError {}

/// Writes to a cluster.
#[derive(Clone, Copy)]
pub struct Writer<'a> {
    /// The cluster.
    pub cluster: &'a dyn Cluster,
    /// Who hears of it.
    pub observer: &'a dyn Observer,
    /// Asked before every write.
    pub cancel: &'a Cancel,
    /// The release, name and namespace, whose objects may be deleted: what belongs to another one
    /// is left. None for all, as Helm does.
    pub owner: Option<(&'a str, &'a str)>,
    /// How objects are written.
    pub method: Method,
}

impl Writer<'_> {
    fn log(&self, line: impl AsRef<str>) {
        self.observer.log(line.as_ref());
    }

    fn options(dry_run: bool) -> WriteOptions {
        WriteOptions { dry_run, field_manager: FIELD_MANAGER.to_owned(), ..WriteOptions::default() }
    }

    /// Creates objects: kind after kind, those of one kind side by side. A failure does not keep
    /// the others from being created (`perform`, `batchPerform`).
    ///
    /// # Errors
    /// All failures.
    pub async fn create(&self, items: &[Item]) -> Result<(), WriteErrors> {
        self.log(format!("creating {} resource(s)", items.len()));
        let mut errors = Vec::new();
        for batch in by_kind(items) {
            let mut results = stream::iter(batch.iter().map(|item| async move {
                if self.cancel.is_cancelled() {
                    None
                } else {
                    Some(self.create_one(item, false).await)
                }
            }))
            .buffered(CONCURRENCY);
            let mut cancelled = false;
            while let Some(result) = results.next().await {
                match result {
                    None => cancelled = true,
                    Some(Ok(_)) => {}
                    Some(Err(error)) => errors.push(error),
                }
            }
            if cancelled {
                return Err(WriteErrors { errors, cancelled });
            }
        }
        if errors.is_empty() { Ok(()) } else { Err(WriteErrors { errors, cancelled: false }) }
    }

    /// Creates one object, or asks what would become of it.
    ///
    /// # Errors
    /// The server's.
    pub async fn create_one(&self, item: &Item, dry_run: bool) -> Result<Value, ClusterError> {
        if matches!(self.method, Method::Apply { .. }) {
            return self.apply_one(item, false, dry_run).await;
        }
        self.cluster.create(&item.target, &item.value, &Self::options(dry_run)).await
    }

    /// Sends a patch, or asks what would become of the object.
    ///
    /// # Errors
    /// The server's.
    pub async fn patch_one(
        &self,
        item: &Item,
        patch: &crate::cluster::Patch,
        dry_run: bool,
    ) -> Result<Value, ClusterError> {
        self.cluster.patch(&item.target, patch, &Self::options(dry_run)).await
    }

    /// Reads the live objects behind items, side by side; none where there is none. The result
    /// has their order.
    ///
    /// # Errors
    /// Each item's own.
    pub async fn read(&self, items: &[&Item]) -> Vec<Result<Option<Value>, ClusterError>> {
        stream::iter(items.iter().map(|item| async move {
            match self.cluster.get(&item.target).await {
                Ok(value) => Ok(Some(value)),
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
                Err(error) => Err(error),
            }
        }))
        .buffered(CONCURRENCY)
        .collect()
        .await
    }

    /// Creates what is missing, patches what changed, one after the other, then deletes what the
    /// target no longer has (`Client.update`). `live` holds what is already known; what is not is
    /// read a few objects ahead.
    ///
    /// # Errors
    /// [`UpdateError`]: a failed creation or read ends the update; failed patches are collected,
    /// and nothing is deleted then.
    pub async fn update(
        &self,
        original: &[Item],
        target: &[Item],
        mut live: Vec<Live>,
        custom: CustomMerge,
    ) -> Result<Outcome, UpdateError> {
        let mut outcome = Outcome::default();
        let mut errors = Vec::new();
        live.resize(target.len(), Live::Unknown);
        self.log(format!("checking {} resources for changes", target.len()));
        for start in (0..target.len()).step_by(READ_AHEAD) {
            let end = (start + READ_AHEAD).min(target.len());
            let (Some(items), Some(known)) = (target.get(start..end), live.get_mut(start..end))
            else {
                break;
            };
            let mut states = self.read_unknown(items, known).await;
            for (offset, item) in items.iter().enumerate() {
                let index = start + offset;
                let state = states
                    .get_mut(offset)
                    .map_or(Ok(Live::Unknown), |state| std::mem::replace(state, Ok(Live::Unknown)));
                if self.cancel.is_cancelled() {
                    return Err(UpdateError { outcome, errors: vec![ObjectError::Cancelled] });
                }
                match state {
                    Err(error) => {
                        let errors = vec![ObjectError::Read(error)];
                        return Err(UpdateError { outcome, errors });
                    }
                    Ok(Live::Present(live)) => {
                        let original = original.iter().find(|old| old.matches(item));
                        let Some(original) = original.or_else(|| self.unknown(item, &live)) else {
                            let (kind, name) = (item.kind().kind.clone(), item.target.name.clone());
                            let errors = vec![ObjectError::NotOriginal { kind, name }];
                            return Err(UpdateError { outcome, errors });
                        };
                        outcome.updated.push(index);
                        match self.change(&original.value, item, &live, custom).await {
                            Ok(true) => outcome.patched.push(index),
                            Ok(false) => {}
                            Err(error) => {
                                self.log(format!(
                                    "error updating the resource {}:\n\t {}",
                                    quote(&item.target.name),
                                    crate::error_chain(&error)
                                ));
                                errors.push(error);
                            }
                        }
                    }
                    Ok(Live::Absent | Live::Unknown) => {
                        outcome.created.push(index);
                        if let Err(error) = self.create_one(item, false).await {
                            let errors = vec![ObjectError::Create(error)];
                            return Err(UpdateError { outcome, errors });
                        }
                        self.log(format!(
                            "Created a new {} called {} in {}\n",
                            item.kind().kind,
                            quote(&item.target.name),
                            item.target.namespace
                        ));
                    }
                }
            }
        }
        if !errors.is_empty() {
            return Err(UpdateError { outcome, errors });
        }
        for item in original.iter().filter(|old| !target.iter().any(|new| new.matches(old))) {
            if self.cancel.is_cancelled() {
                return Err(UpdateError { outcome, errors: vec![ObjectError::Cancelled] });
            }
            match self.remove(item).await {
                Ok(true) => outcome.deleted.push(item.clone()),
                Ok(false) => {}
                Err(error) => return Err(UpdateError { outcome, errors: vec![error] }),
            }
        }
        Ok(outcome)
    }

    /// What stands for the original of an object that is there, but not in the release before: an
    /// apply needs none, where the object is the release's own all the same.
    fn unknown<'i>(&self, item: &'i Item, live: &Value) -> Option<&'i Item> {
        let is_own = |(name, namespace)| ownership::check(live, name, namespace).is_ok();
        let is_applied = matches!(self.method, Method::Apply { .. });
        (is_applied && self.owner.is_none_or(is_own)).then_some(item)
    }

    async fn read_unknown(
        &self,
        items: &[Item],
        known: &mut [Live],
    ) -> Vec<Result<Live, ClusterError>> {
        let unknown: Vec<&Item> = items
            .iter()
            .zip(known.iter())
            .filter(|(_, live)| **live == Live::Unknown)
            .map(|(item, _)| item)
            .collect();
        let mut read = self.read(&unknown).await.into_iter();
        known
            .iter_mut()
            .map(|live| match std::mem::take(live) {
                Live::Unknown => match read.next() {
                    Some(Ok(Some(value))) => Ok(Live::Present(Box::new(value))),
                    Some(Ok(None)) | None => Ok(Live::Absent),
                    Some(Err(error)) => Err(error),
                },
                known => Ok(known),
            })
            .collect()
    }

    /// `updateResource`; whether anything was sent.
    async fn change(
        &self,
        original: &Value,
        item: &Item,
        live: &Value,
        custom: CustomMerge,
    ) -> Result<bool, ObjectError> {
        let (kind, name) = (&item.kind().kind, &item.target.name);
        match self.method {
            Method::Patch => {}
            Method::Replace => {
                self.replace(item, live).await.map_err(ObjectError::Replace)?;
                self.log(format!("Replaced {} with kind {kind} for kind {kind}", quote(name)));
                return Ok(true);
            }
            Method::Apply { force_conflicts } => {
                self.log(format!(
                    "Apply {kind} {} in namespace {}",
                    quote(name),
                    item.target.namespace
                ));
                return self.apply_over(item, live, force_conflicts).await.map(|()| true);
            }
        }
        let patch = patch_for(original, &item.value, live, custom).map_err(ObjectError::Merge)?;
        let Some(patch) = patch else {
            self.log(format!("Looks like there are no changes for {kind} {}", quote(name)));
            return Ok(false);
        };
        self.log(format!("Patch {kind} {} in namespace {}", quote(name), item.target.namespace));
        let (kind, name) = (kind.clone(), name.clone());
        self.patch_one(item, &patch, false)
            .await
            .map(|_| true)
            .map_err(|source| ObjectError::Patch { kind, name, source })
    }

    /// Puts the target in the place of what is live, which must not have changed since
    /// (`Helper.Replace` of cli-runtime).
    async fn replace(&self, item: &Item, live: &Value) -> Result<Value, ClusterError> {
        let mut value = item.value.clone();
        let version = live.pointer("/metadata/resourceVersion").cloned();
        if let (Some(version), Some(metadata)) =
            (version, value.get_mut("metadata").and_then(Value::as_object_mut))
            && metadata.get("resourceVersion").is_none_or(|own| own == "" || own.is_null())
        {
            metadata.insert("resourceVersion".to_owned(), version);
        }
        self.cluster.update(&item.target, &value, &Self::options(false)).await
    }

    /// Deletes an object that left the release, unless it is to be kept; whether it was deleted.
    /// What goes wrong is logged, as in Helm.
    ///
    /// # Errors
    /// [`ObjectError::Delete`] when there is no answer at all, where Helm goes on: the record before
    /// must not be superseded then, since it alone still names the object.
    async fn remove(&self, item: &Item) -> Result<bool, ObjectError> {
        let unanswered = |source: ClusterError| ObjectError::Delete {
            kind: item.kind().kind.clone(),
            name: item.target.name.clone(),
            source,
        };
        let name = quote(&item.target.name);
        self.log(format!(
            "Deleting {} {name} in namespace {}...",
            item.kind().kind,
            item.target.namespace
        ));
        let live = match self.cluster.get(&item.target).await {
            Ok(live) => live,
            Err(error) => {
                self.log(format!("Unable to get obj {name}, err: {error}"));
                let is_unanswered =
                    matches!(error.kind(), ErrorKind::Transport | ErrorKind::Timeout);
                return if is_unanswered { Err(unanswered(error)) } else { Ok(false) };
            }
        };
        if let Some(owner) =
            self.owner.and_then(|(name, namespace)| ownership::other(&live, name, namespace))
        {
            self.log(Left { item: item.clone(), owner }.text());
            return Ok(false);
        }
        if is_kept(&live) {
            self.log(format!(
                "Skipping delete of {name} due to annotation [{RESOURCE_POLICY}={KEEP}]"
            ));
            return Ok(false);
        }
        let options = DeleteOptions {
            propagation: Some(Propagation::Background),
            ..DeleteOptions::default()
        };
        match self.cluster.delete(&item.target, &options).await {
            Ok(_) => Ok(true),
            Err(error) => {
                self.log(format!(
                    "Failed to delete {}, err: {error}",
                    quote(format!("{}/{}", item.target.resource.plural, item.target.name))
                ));
                let is_unanswered =
                    matches!(error.kind(), ErrorKind::Transport | ErrorKind::Timeout);
                if is_unanswered { Err(unanswered(error)) } else { Ok(false) }
            }
        }
    }
}

/// Whether a live object stays when it leaves its release.
pub(crate) fn is_kept(live: &Value) -> bool {
    live.pointer("/metadata/annotations")
        .and_then(|annotations| annotations.get(RESOURCE_POLICY)?.as_str())
        == Some(KEEP)
}
