//! One record together with the object that holds it.

use std::path::Path;

use helm_rs::name::validate_release_name;
use helm_rs::release::input::StoredRecord;
use helm_rs::release::{Record, Summary};

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
        Record::from_json(&self.json)
            .map_err(|error| CommandError::new(format_args!("JSON layer: {error}")))
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
    if validate_release_name(name).is_err() {
        return Err(CommandError::new(format_args!("release name is invalid: {name}")));
    }
    let ask = Ask { name: Some(name), revision };
    let mut found = read(source, &ask, context)?;
    found.retain(|found| revision <= 0 || found.summary.revision == revision);
    last_of_one(found)
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
    last_of_one(read(&source.of_file(path), &Ask::default(), context)?)
}

fn read(
    source: &SourceFlags,
    ask: &Ask<'_>,
    context: &mut Context<'_>,
) -> Result<Vec<Found>, CommandError> {
    let name = ask.name;
    // The object's head tells which records need no decoding.
    let wanted = |record: &StoredRecord| {
        name.is_none_or(|name| record.release_name().is_none_or(|of_record| of_record == name))
    };
    let (found, _) = source.read_counted(ask, context, wanted, |stored, json| {
        let summary = Summary::from_json(&json).map_err(|error| format!("JSON layer: {error}"))?;
        let namespace = match &stored.namespace {
            empty if empty.is_empty() => summary.namespace.clone(),
            namespace => namespace.clone(),
        };
        let is_wanted =
            name.is_none_or(|name| summary.name == name) && !source.excludes(&namespace);
        Ok(is_wanted.then_some(Found { stored, summary, namespace, json }))
    })?;
    Ok(found.into_iter().flatten().collect())
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
    found
        .into_iter()
        .max_by_key(|found| found.summary.revision)
        .ok_or_else(|| CommandError::new("release: not found"))
}
