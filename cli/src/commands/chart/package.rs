//! `ichor chart package`.

use std::path::{Path, PathBuf};

use helm_repo::provenance::{Keyring, ProvenanceError, provenance_path, sign};
use helm_repo::{files, package};
use helm_rs::chart::load_directory;
use helm_rs::{error_chain, gopath, gotext};

use super::dependency::{Options, update};
use super::options::{load_error, print_warnings};
use super::source::{RemoteFlags, keyring, modified, seconds};
use crate::commands::Context;
use crate::error::CommandError;
use crate::exit::Exit;

/// Bytes that a passphrase's file may have.
const MAX_PASSPHRASE: u64 = 64 * 1024;

#[derive(Debug, clap::Args)]
#[command(after_help = concat!(
    "Writes the archive that `helm package` writes. Its bytes depend on the chart and on the time that\n",
    "its files are said to be of: SOURCE_DATE_EPOCH if that is set, else now.\n\n",
    "Examples:\n",
    "  ichor chart package ./my-chart -d packages --version 1.2.3\n",
    "  SOURCE_DATE_EPOCH=0 ichor chart package ./my-chart\n",
    "  ichor chart package ./my-chart --sign --key me@example.org --keyring secring.gpg \\\n",
    "    --passphrase-file -"
))]
pub(crate) struct Arguments {
    /// Folders of charts
    #[arg(required = true)]
    charts: Vec<String>,
    /// Folder to write the archive to
    #[arg(short, long, value_name = "FOLDER", default_value = ".")]
    destination: String,
    /// Version of the chart instead of its own
    #[arg(long, value_name = "VERSION")]
    version: Option<String>,
    /// Version of the application instead of the chart's
    #[arg(long, value_name = "VERSION")]
    app_version: Option<String>,
    /// Bring in the charts that it asks for first: `ichor chart dependency update`
    #[arg(short = 'u', long)]
    dependency_update: bool,
    /// Sign the archive
    #[arg(long)]
    sign: bool,
    /// Name of the key that signs, or a part of it
    #[arg(long, value_name = "NAME")]
    key: Option<String>,
    /// File of secret keys, in GnuPG's old binary form or armored
    #[arg(long, value_name = "FILE")]
    keyring: Option<PathBuf>,
    /// File whose first line is the key's passphrase; `-` is standard input
    #[arg(long, value_name = "FILE")]
    passphrase_file: Option<String>,
    #[command(flatten)]
    remote: RemoteFlags,
}

pub(crate) fn run(arguments: &Arguments, context: &mut Context<'_>) -> Result<Exit, CommandError> {
    let key = arguments.key.as_deref().unwrap_or_default();
    if arguments.sign && key.is_empty() {
        return Err(CommandError::new("--key is required for signing a package"));
    }
    let limits = arguments.remote.limits();
    let keyring = keyring(arguments.keyring.as_ref(), context.environment);
    let destination = if arguments.destination == "." {
        std::path::absolute(".").map_err(|error| CommandError::new(gotext::io_text(&error)))?
    } else {
        PathBuf::from(&arguments.destination)
    };
    for chart in &arguments.charts {
        let path = std::path::absolute(chart).unwrap_or_else(|_| PathBuf::from(chart));
        let path = PathBuf::from(gopath::clean(&path.to_string_lossy()));
        if let Err(error) = std::fs::metadata(chart) {
            let reason = gotext::io_text(&error);
            return Err(CommandError::new(format_args!("stat {chart}: {reason}")));
        }
        if arguments.dependency_update {
            let options = Options {
                told: false,
                ..Options::new(&arguments.remote.server, &arguments.remote.files, &keyring, &limits)
            };
            update(&path, &options, context)?;
        }
        let saved = one(arguments, &path, &destination, context)?;
        if arguments.sign {
            signed(arguments, &saved, &keyring, key, context)?;
        }
        let saved = saved.display();
        context.ui.result(format!("Successfully packaged chart and saved it to: {saved}\n"))?;
    }
    Ok(Exit::Done)
}

fn one(
    arguments: &Arguments,
    path: &Path,
    destination: &Path,
    context: &mut Context<'_>,
) -> Result<PathBuf, CommandError> {
    let mut warnings = Vec::new();
    let chart = load_directory(path, &arguments.remote.limits(), &mut warnings);
    print_warnings(context.ui, &warnings);
    let mut chart = chart.map_err(|error| load_error(&error))?;
    let fail = |error: package::PackageError| CommandError::new(error_chain(&error));
    package::set_versions(
        &mut chart,
        arguments.version.as_deref(),
        arguments.app_version.as_deref(),
    )
    .map_err(fail)?;
    let missing = helm_rs::values::missing_dependencies(&chart);
    if !missing.is_empty() {
        return Err(CommandError::new(format_args!(
            "found in Chart.yaml, but missing in charts/ directory: {}",
            missing.join(", ")
        )));
    }
    package::save(&chart, destination, modified(context.environment))
        .map_err(|error| CommandError::new(format_args!("failed to save: {}", error_chain(&error))))
}

/// Signs an archive. Without a signature there is no archive either: what was asked for is both.
fn signed(
    arguments: &Arguments,
    archive: &Path,
    keyring: &Path,
    key: &str,
    context: &Context<'_>,
) -> Result<(), CommandError> {
    let make = || -> Result<(), ProvenanceError> {
        let keys = Keyring::read(keyring)?;
        let mut passphrase = |name: &str| passphrase(arguments, name, context);
        let text = sign(archive, &keys, key, &mut passphrase, seconds(context.environment))?;
        Ok(files::write(&provenance_path(archive), text.as_bytes(), 0o644)?)
    };
    make().map_err(|error| {
        drop(std::fs::remove_file(archive));
        CommandError::new(error_chain(&error))
    })
}

/// The first line of the passphrase's file.
fn passphrase(
    arguments: &Arguments,
    name: &str,
    context: &Context<'_>,
) -> Result<Vec<u8>, ProvenanceError> {
    let fail = |text: String| ProvenanceError::Passphrase(text.into());
    let text = match arguments.passphrase_file.as_deref() {
        None | Some("") => {
            let name = gotext::quote(name);
            return Err(fail(format!(
                "key {name} has a passphrase: give it with --passphrase-file"
            )));
        }
        Some("-") => context
            .environment
            .read_input(MAX_PASSPHRASE)
            .map_err(|error| fail(gotext::io_text(&error)))?,
        Some(file) => files::read(Path::new(file), MAX_PASSPHRASE)?,
    };
    let line = text.split(|&b| b == b'\n').next().unwrap_or_default();
    if text.is_empty() {
        return Err(fail("EOF".to_owned()));
    }
    Ok(line.strip_suffix(b"\r").unwrap_or(line).to_vec())
}
