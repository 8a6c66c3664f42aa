//! One record together with the object that holds it.

use std::path::Path;

use helm_rs::error_chain;
use helm_rs::name::validate_release_name;
use helm_rs::release::input::StoredRecord;
use helm_rs::release::{Record, Summary};

use super::reading::{Reading, invalid_name, named_revision, two_differ};
use super::source::{Ask, SourceFlags};
use crate::commands::Context;
use crate::error::CommandError;

/// A record as it was found.
pub(super) struct Found {
    pub(super) stored: StoredRecord,
    pub(super) summary: Summary,
    /// Its object's namespace, else the release's own.
    pub(super) namespace: String,
    pub(super) json: String,
}

impl Found {
    /// The record's fields.
    pub(super) fn record(&self) -> Result<Record, CommandError> {
        Record::from_json(&self.json).map_err(|error| {
            CommandError::new(format_args!("{}: JSON layer: {error}", self.place()))
        })
    }

    /// File and object.
    pub(super) fn place(&self) -> String {
        format!("{}: {}", self.stored.place, self.stored.title())
    }

    /// An error about this record, with its place.
    pub(super) fn error(&self, error: &(dyn std::error::Error + 'static)) -> CommandError {
        CommandError::new(format_args!("{}: {}", self.place(), error_chain(error)))
    }

    /// Release and revision, for people.
    pub(super) fn title(&self) -> String {
        format!("{} revision {}", self.summary.name, self.summary.revision)
    }
}

/// The record of a release's revision, or of the last one for 0.
pub(super) fn find(
    name: &str,
    revision: i64,
    source: &SourceFlags,
    context: &mut Context<'_>,
) -> Result<Found, CommandError> {
    let (name, revision) = named_revision(name, revision)?;
    if validate_release_name(name).is_err() {
        return Err(invalid_name(name));
    }
    let ask = Ask { name: Some(name), revision };
    let mut found = read(source, &ask, context)?;
    found.made.retain(|found| revision <= 0 || found.summary.revision == revision);
    if revision > 0 {
        if found.made.is_empty() {
            found.check_revision(name, revision)?;
        }
        return last_of_one(found.made);
    }
    if found.made.is_empty() {
        found.check_last(name, "", 0)?;
    }
    let (known, namespace) = found.made.iter().fold((0, ""), |(known, _), found| {
        (found.summary.revision.max(known), found.namespace.as_str())
    });
    found.check_last(name, namespace, known)?;
    last_of_one(found.made)
}

/// The record in a file; of several revisions of one release the last one.
pub(super) fn in_file(
    path: &str,
    source: &SourceFlags,
    context: &mut Context<'_>,
) -> Result<Found, CommandError> {
    if path != "-" && !Path::new(path).exists() {
        return Err(CommandError::new(format_args!("{path}: no such file")));
    }
    let found = read(&source.of_file(path), &Ask::default(), context)?;
    found.check_inputs()?;
    last_of_one(found.made)
}

fn read(
    source: &SourceFlags,
    ask: &Ask<'_>,
    context: &mut Context<'_>,
) -> Result<Reading<Found>, CommandError> {
    let name = ask.name;
    // The object's head tells which records need no decoding.
    let wanted = |record: &StoredRecord| name.is_none_or(|name| record.may_be_of(name));
    let found = source.read(ask, context, wanted, |stored, json| {
        let summary = Summary::from_json(&json).map_err(|error| format!("JSON layer: {error}"))?;
        source.check(&stored, &summary)?;
        let namespace = match &stored.namespace {
            empty if empty.is_empty() => summary.namespace.clone(),
            namespace => namespace.clone(),
        };
        let is_wanted =
            name.is_none_or(|name| summary.name == name) && !source.excludes(&namespace);
        Ok(is_wanted.then_some(Found { stored, summary, namespace, json }))
    })?;
    let made = found.made.into_iter().flatten().collect();
    Ok(Reading { made, failures: found.failures })
}

fn last_of_one(found: Vec<Found>) -> Result<Found, CommandError> {
    let mut subjects: Vec<String> =
        found.iter().map(|found| format!("{}/{}", found.namespace, found.summary.name)).collect();
    subjects.sort();
    subjects.dedup();
    if subjects.len() > 1 {
        return Err(CommandError::new(format_args!(
            "there are several releases: {}",
            subjects.join(", ")
        ))
        .hint("name one, and its namespace with --namespace"));
    }
    let known = found.iter().map(|found| found.summary.revision).max();
    let mut last: Vec<Found> =
        found.into_iter().filter(|found| Some(found.summary.revision) == known).collect();
    let chosen = last.pop().ok_or_else(|| CommandError::new("release: not found"))?;
    match last.iter().find(|other| other.json != chosen.json) {
        Some(other) => {
            let summary = &chosen.summary;
            Err(two_differ(&summary.name, summary.revision, &other.place(), &chosen.place()))
        }
        None => Ok(chosen),
    }
}
