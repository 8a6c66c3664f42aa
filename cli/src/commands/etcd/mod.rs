//! `ichor etcd`: what an etcd snapshot holds.

mod flags;
mod get;
mod ls;
#[cfg(feature = "offline")]
mod objects;
mod shared;
mod stats;

use clap::Subcommand;
use clap::builder::RangedI64ValueParser;
use etcd_snapshot::decrypt::Keys;
use helm_rs::error_chain;

use super::Context;
use crate::error::CommandError;
use crate::exit::Exit;
pub(crate) use flags::EtcdFlags;
#[cfg(feature = "offline")]
pub(crate) use objects::objects;

/// Revisions of etcd, which count from 1.
pub(crate) fn revision() -> RangedI64ValueParser<i64> {
    RangedI64ValueParser::new().range(1..)
}

/// Bytes of an encryption configuration that are read.
const CONFIG_LIMIT: u64 = 1 << 20;

/// What the commands have in common, for `--help`.
const FILES: &str = "\
FILE is what `etcdctl snapshot save` or `talosctl etcd snapshot` wrote, or a copy of
member/snap/db, of etcd 3.4 or later. Nothing is written, and no etcd is needed.

Exit codes:
  0  done
  1  an error, or something in the file could not be read, which is said; the rest is printed";

/// A command's examples, then what all have in common.
macro_rules! with_files {
    ($examples:path) => {
        format!("{}\n\n{FILES}", $examples)
    };
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the objects: resource, namespace, name, revision and size
    #[command(visible_alias = "list", after_help = with_files!(ls::EXAMPLES))]
    Ls(ls::Arguments),
    /// Print objects as YAML or JSON, or the history of one
    #[command(after_help = with_files!(get::EXAMPLES))]
    Get(get::Arguments),
    /// Print sizes by resource and namespace, the largest objects, and what the file says of itself
    #[command(after_help = with_files!(stats::EXAMPLES))]
    Stats(stats::Arguments),
}

pub(crate) fn run(command: Command, context: &mut Context<'_>) -> Result<Exit, CommandError> {
    match command {
        Command::Ls(arguments) => ls::run(&arguments, context),
        Command::Get(arguments) => get::run(&arguments, context),
        Command::Stats(arguments) => stats::run(&arguments, context),
    }
}

/// The keys of an `EncryptionConfiguration`.
pub(crate) fn encryption_keys(path: Option<&str>) -> Result<Option<Keys>, CommandError> {
    use std::io::Read as _;
    let Some(path) = path else { return Ok(None) };
    let mut text = Vec::new();
    let read = std::fs::File::open(path)
        .and_then(|file| file.take(CONFIG_LIMIT + 1).read_to_end(&mut text))
        .map_err(|error| CommandError::new(format_args!("{path}: {error}")))?;
    if read as u64 > CONFIG_LIMIT {
        let text = format_args!("{path}: is larger than an encryption configuration of 1 MiB");
        return Err(CommandError::new(text));
    }
    match Keys::read(&text) {
        Ok(keys) => Ok(Some(keys)),
        Err(error) => Err(CommandError::new(format_args!("{path}: {}", error_chain(&error)))),
    }
}
