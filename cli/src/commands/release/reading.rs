//! What was made of an input's records, what could not be, and what may be hidden by that.

use std::collections::{BTreeMap, BTreeSet};

use helm_rs::error_chain;
use helm_rs::name::validate_release_name;
use helm_rs::release::Summary;
use helm_rs::release::input::{EtcdError, Fault, FaultKind, Hidden, StoredRecord};

use crate::commands::Context;
use crate::error::CommandError;

/// The error about a record whose object says another revision than the release in it, or in
/// which there is no release.
pub(super) fn contradiction(record: &StoredRecord, summary: &Summary) -> Option<String> {
    if summary.name.is_empty() {
        return Some("holds no release: it has no name".to_owned());
    }
    let (name, revision) = (summary.name.as_str(), summary.revision);
    let hides = record.hides();
    let differs = hides != Hidden::Any
        && hides.may_be(name, |_| true)
        && !hides.may_be(name, |other| other == revision);
    differs.then(|| format!("holds revision {revision} of release {name}, and is called otherwise"))
}

/// A record, or a part of the input, of which nothing was made.
pub(super) struct Failure {
    /// Whose record it may be.
    hides: Hidden,
    namespace: String,
    /// Not one object, but a part of the input: what is missing there is not known.
    is_input: bool,
    /// The file as a whole is not as it was written, whatever that hides.
    is_changed: bool,
    /// File, object and what is wrong.
    pub(super) text: String,
}

impl Failure {
    pub(super) fn of_fault(fault: &Fault) -> Self {
        Self {
            hides: fault.hides.clone(),
            namespace: String::new(),
            is_input: !matches!(
                fault.source,
                FaultKind::Object(_) | FaultKind::Misplaced { .. } | FaultKind::Outside
            ),
            is_changed: matches!(&fault.source, FaultKind::Etcd(error) if matches!(**error, EtcdError::Damage(_))),
            text: error_chain(fault),
        }
    }

    pub(super) fn of_record(head: Head, error: &str) -> Self {
        let Head { hides, namespace, place } = head;
        let text = format!("{place}: {error}");
        Self { hides, namespace, is_input: false, is_changed: false, text }
    }

    /// Whether a release's revision that fits may have been lost by this.
    pub(super) fn may_be(&self, name: &str, namespace: &str, fits: impl Fn(i64) -> bool) -> bool {
        let is_namespace =
            self.namespace.is_empty() || namespace.is_empty() || self.namespace == namespace;
        is_namespace && self.hides.may_be(name, fits)
    }

    /// Whether some release's revision that fits may have been lost by this.
    pub(super) fn may_fit(&self, namespace: &str, fits: impl Fn(i64) -> bool) -> bool {
        match &self.hides {
            Hidden::Any => self.may_be("", namespace, fits),
            Hidden::Releases(found) => {
                found.iter().any(|(name, _)| self.may_be(name, namespace, &fits))
            }
        }
    }

    /// What of a release cannot be read.
    fn what(&self, name: &str, otherwise: &str) -> String {
        let Hidden::Releases(found) = &self.hides else { return otherwise.to_owned() };
        match found.iter().filter(|(of, _)| of == name).max() {
            Some((_, Some(revision))) => format!("revision {revision}"),
            _ => "a revision".to_owned(),
        }
    }
}

/// What a record's object says about itself before anything is decoded.
pub(super) struct Head {
    hides: Hidden,
    namespace: String,
    place: String,
}

impl Head {
    pub(super) fn of(record: &StoredRecord) -> Self {
        Self {
            hides: record.hides(),
            namespace: record.namespace.clone(),
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
        unread(self.failures.iter().filter(|failure| failure.is_input).count())
    }

    /// An error when anything could not be read that may be a record.
    pub(super) fn check_whole(&self) -> Result<(), CommandError> {
        let counts = |failure: &&Failure| failure.is_changed || failure.hides.is_any_record();
        unread(self.failures.iter().filter(counts).count())
    }

    /// An error when a revision is there and cannot be read.
    pub(super) fn check_revision(&self, name: &str, revision: i64) -> Result<(), CommandError> {
        let is_it = |failure: &&Failure| match &failure.hides {
            Hidden::Any => false,
            Hidden::Releases(found) => found.contains(&(name.to_owned(), Some(revision))),
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
        let what = "what may be its last revision";
        let Some(error) = self.lost(name, namespace, what, |revision| revision > known) else {
            return Ok(());
        };
        Err(if known > 0 {
            error.hint(format!("the last one that can be read is {known}: name it with --revision"))
        } else {
            error
        })
    }

    /// An error when something that could not be read may be any of a release's revisions.
    pub(super) fn check_all(&self, name: &str, namespace: &str) -> Result<(), CommandError> {
        self.lost(name, namespace, "what may be a revision", |_| true).map_or(Ok(()), Err)
    }

    fn lost(
        &self,
        name: &str,
        namespace: &str,
        otherwise: &str,
        fits: impl Fn(i64) -> bool,
    ) -> Option<CommandError> {
        let lost = self.failures.iter().filter(|failure| failure.may_be(name, namespace, &fits));
        // A record that is broken says more than a file that is.
        let failure = lost.min_by_key(|failure| failure.hides == Hidden::Any)?;
        Some(CommandError::new(format_args!(
            "release {name}: {} cannot be read: {}",
            failure.what(name, otherwise),
            failure.text
        )))
    }
}

fn unread(parts: usize) -> Result<(), CommandError> {
    match parts {
        0 => Ok(()),
        1 => Err(CommandError::new("a part of the input could not be read")),
        parts => {
            Err(CommandError::new(format_args!("{parts} parts of the input could not be read")))
        }
    }
}

/// Says when two records of one revision are not the same: two clusters, or two times.
pub(super) fn warn_of_twins<'a>(
    records: impl Iterator<Item = (&'a Summary, &'a str)>,
    context: &mut Context<'_>,
) {
    let mut known: BTreeMap<(&str, &str, i64), &Summary> = BTreeMap::new();
    let mut told = BTreeSet::new();
    for (summary, namespace) in records {
        let key = (namespace, summary.name.as_str(), summary.revision);
        let differs = known.insert(key, summary).is_some_and(|other| other != summary);
        if differs && told.insert(key) {
            context.ui.warning(format!(
                "warning: the input has two records of {namespace}/{} revision {}, and they differ",
                summary.name, summary.revision
            ));
        }
    }
}

/// The error about two records of one revision that are not the same.
pub(super) fn two_differ(name: &str, revision: i64, a: &str, b: &str) -> CommandError {
    CommandError::new(format_args!(
        "the input has two records of release {name} revision {revision}, and they differ: {a}, {b}"
    ))
    .hint("read one file at a time")
}

/// A release and its revision: `NAME:REVISION` is `NAME --revision REVISION`, as in `diff`.
pub(super) fn named_revision(name: &str, revision: i64) -> Result<(&str, i64), CommandError> {
    let Some((of, number)) = name.rsplit_once(':') else { return Ok((name, revision)) };
    let number = number.parse().ok().filter(|number| *number > 0);
    match number.filter(|_| validate_release_name(of).is_ok()) {
        Some(number) if revision <= 0 || revision == number => Ok((of, number)),
        Some(_) => Err(CommandError::new(format_args!("{name} contradicts --revision {revision}"))),
        None => Err(invalid_name(name)),
    }
}

/// The error about a name that no release can have.
pub(super) fn invalid_name(name: &str) -> CommandError {
    let error = CommandError::new(format_args!("release name is invalid: {name}"));
    match name.split_once(':') {
        Some((name, _)) => error.hint(format!("name the release alone: {name}")),
        None => error,
    }
}
