//! `ichor release manifest|hooks|notes`, as `cmd/helm/get_{manifest,hooks,notes}.go`.

use std::fmt::Write as _;

use clap::Args;
use helm_rs::release::redact::Words;
use helm_rs::release::{FieldError, Record};

use super::source::{Chosen, SourceFlags};
use crate::commands::Context;
#[cfg(feature = "network")]
use crate::connection::ClusterFlags;
use crate::error::CommandError;
use crate::exit::Exit;

/// One record of a release, for commands that can hide its credentials.
#[derive(Debug, Args)]
pub(crate) struct OneRecord {
    /// The release's name
    release: String,
    /// Revision to print; the last one when not given
    #[arg(long, value_name = "REVISION", default_value_t = 0)]
    revision: i64,
    /// Print credentials as they are
    #[arg(long)]
    pub(super) show_secrets: bool,
    #[command(flatten)]
    source: SourceFlags,
}

impl OneRecord {
    /// Whether a revision is asked for, and not the last one.
    pub(super) fn names_revision(&self) -> bool {
        self.revision > 0 || self.release.contains(':')
    }

    /// The cluster that holds the record; none where files do.
    #[cfg(feature = "network")]
    pub(super) const fn cluster(&self) -> Option<&ClusterFlags> {
        if self.source.is_live() { Some(self.source.cluster()) } else { None }
    }

    /// The record.
    pub(super) fn find(&self, context: &mut Context<'_>) -> Result<Chosen, CommandError> {
        self.source.record(&self.release, self.revision, context)
    }
}

/// The part of a record to print.
#[derive(Clone, Copy)]
pub(super) enum Part {
    Manifest,
    Hooks,
    Notes,
}

pub(super) fn run(
    part: Part,
    arguments: &OneRecord,
    context: &mut Context<'_>,
) -> Result<Exit, CommandError> {
    let chosen = arguments.find(context)?;
    let text =
        text(part, &chosen.record, arguments.show_secrets).map_err(|error| chosen.error(&error))?;
    context.ui.result(text)?;
    Ok(Exit::Done)
}

fn text(part: Part, record: &Record, show_secrets: bool) -> Result<String, FieldError> {
    let words = if show_secrets { Words::default() } else { Words::of_record(record) };
    match part {
        Part::Manifest => {
            let manifest = record.manifest()?;
            let shown = if show_secrets { manifest } else { words.manifest(&manifest) };
            Ok(format!("{shown}\n"))
        }
        Part::Hooks => {
            let mut out = String::new();
            for hook in record.hooks()? {
                let manifest =
                    if show_secrets { hook.manifest } else { words.document(&hook.manifest) };
                // Writing to a String cannot fail.
                let _ = writeln!(out, "---\n# Source: {}\n{manifest}", hook.path);
            }
            Ok(out)
        }
        Part::Notes => {
            let notes = record.info()?.notes;
            let notes = if show_secrets { notes } else { words.notes(&notes) };
            Ok(if notes.is_empty() { notes } else { format!("NOTES:\n{notes}\n") })
        }
    }
}
