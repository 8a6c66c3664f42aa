//! `ichor chart pull`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use goyaml::{Map, Value};
use helm_repo::download::Verify;
use helm_repo::expand::{ExpandError, expand};
use helm_repo::provenance::Verification;
use helm_repo::unfinished::Unfinished;
use helm_rs::chart::Limits;
use helm_rs::error_chain;
use helm_rs::gopath;
use helm_rs::gotext::{io_text, quote};
use helm_rs::repo::{Pin, save};

use super::options::{LimitFlags, print_warnings};
use super::source::ChartFlags;
use crate::cache;
use crate::commands::Context;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::output::{Output, write_structured};

#[derive(Debug, clap::Args)]
#[command(after_help = concat!(
    "A chart is named by its repository and name, by an address (https://, oci://), or by a name alone:\n",
    "that of a pinned chart, or with --repo that of a chart there. A pinned chart is looked for in\n",
    "ICHOR_CHART_DIR, then in the user's cache, then downloaded, and its digest is checked every time.\n",
    "What is refused (a signature, a digest, a file outside the chart's folder) leaves nothing behind.\n\n",
    "Examples:\n",
    "  ichor chart pull my-repo/my-chart --version '^1.2' --untar\n",
    "  ichor chart pull oci://registry.example.org/charts/my-chart --verify --keyring pubring.gpg\n",
    "  ichor chart pull my-chart --repo https://charts.example.org\n",
    "  ichor chart pull cilium -d charts\n",
    "  ichor chart pull --list"
))]
pub(crate) struct Arguments {
    /// Charts
    #[arg(required_unless_present = "list")]
    charts: Vec<String>,
    /// Folder to write the archive to
    #[arg(short, long, value_name = "FOLDER", default_value = ".")]
    destination: String,
    /// Unpack the chart and keep no archive
    #[arg(long)]
    untar: bool,
    /// Folder to unpack it in, seen from the destination
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    untardir: String,
    /// Keep the signature beside the archive, and do not check it
    #[arg(long)]
    prov: bool,
    /// List the pinned charts instead
    #[arg(long)]
    list: bool,
    /// Form of what is told of a pinned chart
    #[arg(short, long, value_enum, value_name = "FORM", default_value_t)]
    output: Output,
    #[command(flatten)]
    source: ChartFlags,
    #[command(flatten)]
    limits: LimitFlags,
}

pub(crate) fn run(arguments: &Arguments, context: &mut Context<'_>) -> Result<Exit, CommandError> {
    let limits = arguments.limits.limits();
    if arguments.list {
        let pins = cache::pins()?;
        let mut table = String::from("NAME\tVERSION\tDIGEST\n");
        let mut entries = Vec::new();
        for pin in pins.iter() {
            let _ = writeln!(table, "{}\t{}\t{}", pin.name, pin.version, pin.digest);
            entries.push(Value::Map(pin_value(pin)));
        }
        write_structured(context.ui, arguments.output, &Value::Seq(entries), table.as_bytes())?;
        return Ok(Exit::Done);
    }
    for chart in &arguments.charts {
        if arguments.source.repo.is_none() && !chart.contains('/') {
            pinned(arguments, chart, &limits, context)?;
        } else {
            let mut warnings = Vec::new();
            let result = fetched(arguments, chart, &limits, context, &mut warnings);
            print_warnings(context.ui, &warnings);
            result?;
        }
    }
    Ok(Exit::Done)
}

/// `Pull.Run`
fn fetched(
    arguments: &Arguments,
    chart: &str,
    limits: &Limits,
    context: &mut Context<'_>,
    warnings: &mut Vec<helm_rs::chart::Warning>,
) -> Result<(), CommandError> {
    let verify = match (arguments.source.verify, arguments.prov) {
        (true, _) => Verify::Always,
        (false, true) => Verify::Later,
        (false, false) => Verify::Never,
    };
    if !arguments.untar {
        let folder = Path::new(&arguments.destination);
        let done = arguments.source.download(chart, folder, verify, limits, context, warnings)?;
        return told(&done, context);
    }
    let fail = |error: std::io::Error| {
        CommandError::new(format_args!("failed to untar: {}", io_text(&error)))
    };
    let (half, _unfinished) = Unfinished::folder("ichor-", &std::env::temp_dir()).map_err(fail)?;
    let done = arguments.source.download(chart, half.path(), verify, limits, context, warnings)?;
    let folder = if arguments.untardir.starts_with('/') {
        arguments.untardir.clone()
    } else {
        gopath::join(&arguments.destination, &arguments.untardir)
    };
    let last = chart.rsplit('/').next().unwrap_or_default();
    let there = if folder == "." { last.to_owned() } else { gopath::join(&folder, last) };
    if Path::new(&there).exists() {
        return Err(CommandError::new(format_args!(
            "failed to untar: a file or directory with the name {there} already exists"
        )));
    }
    // What is no folder on the way there is named as Go's `os.MkdirAll` names it.
    let above = Path::new(&folder).ancestors().find(|above| above.exists());
    if let Some(file) = above.filter(|above| !above.is_dir()) {
        return Err(CommandError::new(format_args!(
            "failed to untar (mkdir): mkdir {}: not a directory",
            file.display()
        )));
    }
    let archive = std::fs::read(&done.path).map_err(fail)?;
    told(&done, context)?;
    expand(&archive, Path::new(&folder), limits).map_err(|error| {
        let result = CommandError::new(error_chain(&error));
        match error {
            ExpandError::Exists { .. } => {
                result.hint("take it away first, or give another folder with --untardir")
            }
            _ => result,
        }
    })?;
    Ok(())
}

fn told(
    done: &helm_repo::download::Downloaded,
    context: &mut Context<'_>,
) -> Result<(), CommandError> {
    context.ui.result(&done.notes)?;
    let verification = done.verification.as_ref();
    context.ui.result(verification.map(Verification::text).unwrap_or_default())
}

/// A chart that this program knows by digest.
fn pinned(
    arguments: &Arguments,
    name: &str,
    limits: &Limits,
    context: &mut Context<'_>,
) -> Result<(), CommandError> {
    let pins = cache::pins()?;
    let version = arguments.source.version.as_deref();
    let pin = pins.find(name, version).ok_or_else(|| {
        let version = version.map_or_else(String::new, |v| format!(" {v}"));
        CommandError::new(format_args!("chart {}{version} is not pinned", quote(name)))
            .hint("see the pinned charts: ichor chart pull --list")
    })?;
    if arguments.source.verify || arguments.prov || arguments.untar {
        return Err(CommandError::new("--verify, --prov and --untar are not for pinned charts")
            .hint("their digest is checked every time; unpack the archive with tar"));
    }
    let resolved = cache::resolve(pin, limits.archive_size, context)?;
    let path = PathBuf::from(&arguments.destination).join(pin.file_name());
    save(&path, &resolved.bytes).map_err(|error| CommandError::new(error_chain(&error)))?;
    let mut result = pin_value(pin);
    result.insert("path", path.display().to_string());
    result.insert("from", resolved.place.name());
    let line = format!("{}\n", path.display());
    write_structured(context.ui, arguments.output, &Value::Map(result), line.as_bytes())
}

fn pin_value(pin: &Pin) -> Map {
    let mut map = Map::new();
    map.insert("name", pin.name.as_str());
    map.insert("version", pin.version.as_str());
    map.insert("url", pin.url.as_str());
    map.insert("digest", pin.digest.to_string());
    map
}
