//! What was made of an input's records, what could not be, and what may be hidden by that.

use helm_rs::error_chain;
use helm_rs::release::input::{Fault, FaultKind, ObjectError, StoredRecord};

use crate::error::CommandError;

/// A record, or a part of the input, of which nothing was made.
pub(super) struct Failure {
    /// The release that it is about, as far as known.
    release: Option<String>,
    namespace: String,
    revision: Option<i64>,
    /// Not a record, but the input: what is missing there is not known.
    is_input: bool,
    /// File, object and what is wrong.
    pub(super) text: String,
}

impl Failure {
    pub(super) fn of_fault(fault: &Fault) -> Self {
        let object = match &fault.source {
            FaultKind::Object(
                ObjectError::NoRelease { object } | ObjectError::SecretLayer { object, .. },
            ) => object.split_once(" sh.helm.release.v1."),
            _ => None,
        };
        let named = object.and_then(|(_, name)| name.rsplit_once(".v"));
        Self {
            release: named.map(|(name, _)| name.to_owned()),
            namespace: String::new(),
            revision: named.and_then(|(_, revision)| revision.parse().ok()),
            is_input: matches!(
                fault.source,
                FaultKind::Io(_) | FaultKind::Cut { .. } | FaultKind::Etcd(_)
            ),
            text: error_chain(fault),
        }
    }

    pub(super) fn of_record(head: Head, error: &str) -> Self {
        let Head { release, namespace, revision, place } = head;
        Self { release, namespace, revision, is_input: false, text: format!("{place}: {error}") }
    }

    /// Whether a release's revision above `known` may have been lost by this.
    fn hides(&self, name: &str, namespace: &str, known: i64) -> bool {
        let is_namespace =
            self.namespace.is_empty() || namespace.is_empty() || self.namespace == namespace;
        self.is_input
            || (self.release.as_deref() == Some(name)
                && is_namespace
                && self.revision.is_none_or(|revision| revision > known))
    }
}

/// What a record's object says about itself before anything is decoded.
pub(super) struct Head {
    release: Option<String>,
    namespace: String,
    revision: Option<i64>,
    place: String,
}

impl Head {
    pub(super) fn of(record: &StoredRecord) -> Self {
        let of_label = record.label("version").and_then(|version| version.parse().ok());
        let of_name = || record.name.rsplit_once(".v")?.1.parse().ok();
        Self {
            release: record.release_name().map(ToOwned::to_owned),
            namespace: record.namespace.clone(),
            revision: of_label.or_else(of_name),
            place: format!("{}: {}", record.place, record.title()),
        }
    }
}

/// What was made of an input's records.
pub(super) struct Reading<T> {
    pub(super) made: Vec<T>,
    pub(super) failures: Vec<Failure>,
}

impl<T> Reading<T> {
    /// An error when a part of the input could not be read at all.
    pub(super) fn check_inputs(&self) -> Result<(), CommandError> {
        match self.failures.iter().filter(|failure| failure.is_input).count() {
            0 => Ok(()),
            1 => Err(CommandError::new("a part of the input could not be read")),
            parts => {
                Err(CommandError::new(format_args!("{parts} parts of the input could not be read")))
            }
        }
    }

    /// An error when a revision is there and cannot be read.
    pub(super) fn check_revision(&self, name: &str, revision: i64) -> Result<(), CommandError> {
        let is_it = |failure: &&Failure| {
            failure.release.as_deref() == Some(name) && failure.revision == Some(revision)
        };
        match self.failures.iter().find(is_it) {
            Some(failure) => Err(CommandError::new(format_args!(
                "release {name}: revision {revision} cannot be read: {}",
                failure.text
            ))),
            None => Ok(()),
        }
    }

    /// An error when something that could not be read may be a later revision than the one that
    /// was found, which is 0 for none.
    pub(super) fn check_last(
        &self,
        name: &str,
        namespace: &str,
        known: i64,
    ) -> Result<(), CommandError> {
        let hidden = self.failures.iter().filter(|failure| failure.hides(name, namespace, known));
        // A record that is broken says more than a file that is.
        let Some(failure) = hidden.min_by_key(|failure| failure.is_input) else { return Ok(()) };
        let what = match failure.revision {
            _ if failure.is_input => "what may be its last revision".to_owned(),
            Some(revision) => format!("revision {revision}"),
            None => "a revision".to_owned(),
        };
        let error = CommandError::new(format_args!(
            "release {name}: {what} cannot be read: {}",
            failure.text
        ));
        Err(if known > 0 {
            error.hint(format!("the last one that can be read is {known}: name it with --revision"))
        } else {
            error
        })
    }
}

/// The error about two records of one revision that are not the same.
pub(super) fn two_differ(name: &str, revision: i64, a: &str, b: &str) -> CommandError {
    CommandError::new(format_args!(
        "the input has two records of release {name} revision {revision}, and they differ: {a}, {b}"
    ))
    .hint("read one file at a time")
}
