//! Reading a snapshot's file.

use std::fs::{self, File};
use std::io::Read;

use helm_rs::cluster::snapshot::{About, End, Limits, SnapshotError, read};
use helm_rs::error_chain;
use helm_rs::gotext::io_text;
use serde_json::Value;

use crate::commands::Context;
use crate::error::CommandError;
use crate::output::printable;

/// An error about a file.
pub(super) fn fail(file: &str, why: impl std::fmt::Display) -> CommandError {
    let file = if file == "-" { "standard input" } else { file };
    CommandError::new(printable(&format!("{file}: {why}")))
}

/// A file's bytes; `-` is standard input. A pipe is none: opening it would wait for its writer.
pub(super) fn input(file: &str, context: &Context<'_>) -> Result<Box<dyn Read>, CommandError> {
    if file == "-" {
        return Ok(context.environment.input());
    }
    let about = fs::metadata(file).map_err(|error| fail(file, io_text(&error)))?;
    if !about.is_file() {
        let what = if about.is_dir() { "is a folder" } else { "is no regular file" };
        return Err(fail(file, format_args!("{what}, and no snapshot of a cluster")));
    }
    let opened = File::open(file).map_err(|error| fail(file, io_text(&error)))?;
    Ok(Box::new(opened))
}

/// Reads a snapshot and hands over its objects.
pub(super) fn each(
    file: &str,
    context: &Context<'_>,
    about: impl FnMut(&About),
    each: impl FnMut(Value),
) -> Result<(About, End), CommandError> {
    let input = input(file, context)?;
    read(input, &Limits::default(), about, each).map_err(|error| unreadable(file, &error))
}

/// What is said of a file that is no whole snapshot.
pub(super) fn unreadable(file: &str, error: &SnapshotError) -> CommandError {
    let failed = fail(file, error_chain(error));
    match error {
        SnapshotError::Foreign => failed.hint(
            "`ichor snapshot take FILE` writes one; `--snapshot` also takes a folder of `kubectl \
             get -o yaml` output, and an etcd snapshot",
        ),
        SnapshotError::Cut { .. } | SnapshotError::Changed { .. } => {
            failed.hint("copy it again, or take it anew")
        }
        _ => failed,
    }
}
