//! `ichor chart push`.

use std::path::{Path, PathBuf};

use helm_repo::files;
use helm_repo::provenance::provenance_path;
use helm_repo::url::Url;
use helm_rs::gotext::quote;
use helm_rs::render::time::Time;
use helm_rs::{chart, error_chain, gotext};

use super::locate::{failed, tell};
use super::options::load_error;
use super::source::{RemoteFlags, transport};
use crate::commands::Context;
use crate::error::CommandError;
use crate::exit::Exit;

/// Bytes that a provenance file may have.
const MAX_PROVENANCE: u64 = 4 * 1024 * 1024;

#[derive(Debug, clap::Args)]
#[command(after_help = concat!(
    "The provenance file beside the archive goes along. The chart's own name and version are the last\n",
    "part of the address, and the tag.\n\n",
    "Examples:\n",
    "  ichor chart push my-chart-1.0.0.tgz oci://registry.example.org/charts"
))]
pub(crate) struct Arguments {
    /// Archive of a chart
    chart: PathBuf,
    /// Address to push it below: oci://HOST/PATH
    #[arg(value_name = "REMOTE")]
    address: String,
    #[command(flatten)]
    remote: RemoteFlags,
}

pub(crate) fn run(arguments: &Arguments, context: &mut Context<'_>) -> Result<Exit, CommandError> {
    let (remote, flags) = (&arguments.address, &arguments.remote);
    let address = Url::parse(remote.as_bytes())
        .map_err(|_| CommandError::new(format_args!("invalid chart URL format: {remote}")))?;
    match address.scheme.as_slice() {
        b"oci" => {}
        b"" => {
            let text = "scheme prefix missing from remote (e.g. \"oci://\")";
            return Err(CommandError::new(text));
        }
        scheme => {
            let scheme = quote(scheme);
            return Err(CommandError::new(format_args!("scheme {scheme} not supported")));
        }
    }
    let path = arguments.chart.as_path();
    let created = created(path, context)?;
    chart::load(path, &flags.limits(), &mut Vec::new()).map_err(|error| load_error(&error))?;
    let fail = |error: files::FileError| CommandError::new(error_chain(&error));
    let archive = files::read(path, flags.limits().archive_size).map_err(fail)?;
    let provenance = match files::read(&provenance_path(path), MAX_PROVENANCE) {
        Ok(bytes) => Some(bytes),
        Err(error) if error.is_not_found() => None,
        Err(error) => return Err(fail(error)),
    };
    let settings = flags.files.settings(context.environment);
    let transport = transport();
    let registry = flags.server.registry(&*transport, &settings);
    let told = registry
        .push(&archive, provenance.as_deref(), remote, &created)
        .map_err(|error| failed(&error, remote))?;
    tell(&told, context);
    Ok(Exit::Done)
}

/// When the archive was written, which is when Helm says that the chart was made.
fn created(path: &Path, context: &Context<'_>) -> Result<String, CommandError> {
    let about = std::fs::metadata(path).map_err(|error| {
        let shown = path.display();
        CommandError::new(match error.kind() {
            std::io::ErrorKind::NotFound => format!("{shown}: no such file"),
            _ => format!("stat {shown}: {}", gotext::io_text(&error)),
        })
    })?;
    if about.is_dir() {
        let text = "cannot push directory, must provide chart archive (.tgz)";
        return Err(CommandError::new(text));
    }
    let written = about.modified().unwrap_or_else(|_| context.environment.now());
    let since = written.duration_since(std::time::SystemTime::UNIX_EPOCH).unwrap_or_default();
    let seconds = i64::try_from(since.as_secs()).unwrap_or_default();
    let text =
        Time::unix(seconds, 0, context.environment.zone()).format("2006-01-02T15:04:05Z07:00");
    Ok(String::from_utf8_lossy(&text).into_owned())
}
