//! `ichor release chart`: the chart in a record, written back.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use helm_rs::error_chain;
use helm_rs::release::UnpackedChart;

use super::source::SourceFlags;
use super::stored;
use crate::commands::Context;
use crate::error::CommandError;
use crate::exit::Exit;

pub(super) const EXAMPLES: &str = "\
Examples:
  kubectl get secrets -A -o yaml | ichor release chart web --from - --to charts
  ichor release chart web --revision 3 --archive --from dump.yaml

The chart is written to FOLDER/NAME, or to FOLDER/NAME-VERSION.tgz; what is there already is left
alone, and an error. A record holds neither comments nor order of values.yaml, and no subcharts.";

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The release's name
    release: String,
    /// Revision whose chart to write; the last one when not given
    #[arg(long, value_name = "REVISION", default_value_t = 0)]
    revision: i64,
    /// Folder to write into
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    to: PathBuf,
    /// Write an archive instead of a folder
    #[arg(long)]
    archive: bool,
    #[command(flatten)]
    source: SourceFlags,
}

pub(crate) fn run(arguments: &Arguments, context: &mut Context<'_>) -> Result<Exit, CommandError> {
    let found = stored::find(&arguments.release, arguments.revision, &arguments.source, context)?;
    let chart =
        found.record()?.unpack_chart().map_err(|error| CommandError::new(error_chain(&error)))?;
    if !chart.missing.is_empty() {
        context.ui.warning(format!(
            "warning: records do not hold subcharts; Chart.yaml asks for {}",
            chart.missing.join(", ")
        ));
    }
    let path = if arguments.archive {
        write_archive(&chart, &arguments.to)?
    } else {
        write_folder(&chart, &arguments.to)?
    };
    context.ui.result(format!("{}\n", path.display()))?;
    Ok(Exit::Done)
}

fn failed(path: &Path, error: &std::io::Error) -> CommandError {
    CommandError::new(format_args!("{}: {error}", path.display()))
}

fn write_archive(chart: &UnpackedChart, to: &Path) -> Result<PathBuf, CommandError> {
    let name = format!("{}-{}.tgz", chart.name, chart.version);
    // The version is free text in a record.
    if name.contains(['/', '\\']) || name.chars().any(char::is_control) {
        return Err(CommandError::new(format_args!(
            "the chart's version {:?} cannot be part of a file's name",
            chart.version
        )));
    }
    let path = to.join(name);
    let bytes = helm_rs::chart::pack(&chart.name, &chart.files).map_err(CommandError::new)?;
    fs::create_dir_all(to).map_err(|error| failed(to, &error))?;
    write_new(&path, &bytes)?;
    Ok(path)
}

fn write_folder(chart: &UnpackedChart, to: &Path) -> Result<PathBuf, CommandError> {
    let folder = to.join(&chart.name);
    fs::create_dir_all(to).map_err(|error| failed(to, &error))?;
    fs::create_dir(&folder).map_err(|error| failed(&folder, &error))?;
    for file in &chart.files {
        // Names were checked to stay within the chart.
        let path = folder.join(&file.name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(|error| failed(parent, &error))?;
        }
        write_new(&path, &file.data)?;
    }
    Ok(folder)
}

/// Writes a file that is not there yet.
pub(super) fn write_new(path: &Path, bytes: &[u8]) -> Result<(), CommandError> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(path)
        .map_err(|error| failed(path, &error))?;
    file.write_all(bytes).map_err(|error| failed(path, &error))
}
