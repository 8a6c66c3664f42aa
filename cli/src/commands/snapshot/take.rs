//! `ichor snapshot take`.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use flate2::Compression;
use flate2::write::GzEncoder;
use helm_rs::cluster::snapshot::Secrets;
use helm_rs::error_chain;
use helm_rs::gotext::io_text;
use helm_rs::render::{Engine, EngineOptions};
use takeover::snapshot::{TakeError, TakeOptions, Taken, take};

use crate::commands::Context;
use crate::connection::ClusterFlags;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::file::{Existing, Half, is_special};
use crate::session::Host;

pub(super) const EXAMPLES: &str = "\
Reads and writes nothing else: the objects of the kinds that charts have, in the namespaces of a
takeover and cluster-wide; nodes, network plugins and RBAC everywhere; Cilium's release records and
ichor's. What this identity may not read is told, and is no error.

The data of Secrets is replaced by digests that are keyed with the cluster's identity, and so are
credentials in records: a plan made on the file has the digest of the plan made on the cluster. With
--include-secrets the file is a credential. It is readable by its owner alone either way.

Examples:
  ichor snapshot take before.ndjson
  ichor snapshot take before.ndjson.gz --more-namespace monitoring
  ichor snapshot take /dev/stdout | ssh me@home 'cat > before.ndjson'
  ichor adopt --cilium-only --snapshot before.ndjson

Exit codes:
  0  done
  1  an error; no file is written";

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The file to write, compressed if its name ends in .gz
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Write the data of Secrets and credentials in records as they are
    #[arg(long)]
    include_secrets: bool,
    /// Objects of this namespace too (repeatable)
    #[arg(long = "more-namespace", value_name = "NAME")]
    namespaces: Vec<String>,
    /// Replace a file that is there
    #[arg(long)]
    overwrite: bool,
    #[command(flatten)]
    cluster: ClusterFlags,
}

/// What this program calls itself in a file.
const PROGRAM: &str = concat!("ichor ", env!("CARGO_PKG_VERSION"));

/// A file on its way, compressed or not.
enum Out {
    Plain(Half),
    Packed(Box<GzEncoder<Half>>),
}

impl Out {
    fn finish(self) -> io::Result<()> {
        match self {
            Self::Plain(file) => file.finish(),
            Self::Packed(packed) => packed.finish()?.finish(),
        }
    }
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(file) => file.write(bytes),
            Self::Packed(packed) => packed.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(file) => file.flush(),
            Self::Packed(packed) => packed.flush(),
        }
    }
}

pub(crate) fn run(arguments: &Arguments, context: &mut Context<'_>) -> Result<Exit, CommandError> {
    let path = &arguments.file;
    let fail =
        |why: &dyn std::fmt::Display| CommandError::new(format_args!("{}: {why}", path.display()));
    let io = |error: io::Error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            fail(&"is there already").hint("--overwrite replaces it; nothing was written")
        }
        _ => fail(&io_text(&error)),
    };
    if path.as_os_str() == "-" {
        return Err(
            fail(&"no file").hint("/dev/stdout is standard output, ./- a file of that name")
        );
    }
    let replaces = arguments.overwrite || is_special(path);
    let existing = if replaces { Existing::Replace } else { Existing::Keep };
    let half = Half::create(path, existing, 0o600).map_err(io)?;
    let out = if path.extension().is_some_and(|extension| extension == "gz") {
        Out::Packed(Box::new(GzEncoder::new(half, Compression::default())))
    } else {
        Out::Plain(half)
    };
    let options = TakeOptions {
        program: PROGRAM,
        namespaces: &arguments.namespaces,
        secrets: if arguments.include_secrets { Secrets::Included } else { Secrets::Digests },
    };
    let engine = Engine::new(EngineOptions::default());
    let host = Host::open(&arguments.cluster, context)?;
    let (taken, heard) = host.run(context, &engine, async |session| {
        take(&*session.cluster, session.clock, options, session.observer, out).await
    })?;
    let (out, taken) = taken.map_err(|error| match error {
        TakeError::Write(error) => io(error),
        TakeError::Survey(error) => CommandError::new(error_chain(&error)),
    })?;
    if heard.cancelled {
        return Err(CommandError::new("interrupted: nothing was written"));
    }
    out.finish().map_err(io)?;
    tell(path, &taken, arguments.include_secrets, context);
    Ok(Exit::Done)
}

fn tell(path: &Path, taken: &Taken, has_secrets: bool, context: &mut Context<'_>) {
    for line in &taken.unread {
        context.ui.warning(format!("warning: not read: {line}"));
    }
    for line in &taken.notes {
        context.ui.note(format!("note: {line}"));
    }
    context.ui.note(format!(
        "{}: {} object(s), {} of them release records, of namespaces {}; {}",
        path.display(),
        taken.objects,
        taken.records,
        taken.namespaces.join(", "),
        if has_secrets { "Secrets as they are" } else { "digests in place of Secrets' data" }
    ));
}
