//! `ichor release chart`: the chart in a record, written back.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use helm_rs::release::UnpackedChart;

use super::source::SourceFlags;
use super::stored;
use crate::commands::Context;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::file::{self, Existing};

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
    let chart = found.record()?.unpack_chart().map_err(|error| found.error(&error))?;
    if !chart.missing.is_empty() {
        context.ui.warning(format!(
            "warning: records do not hold subcharts; Chart.yaml asks for {}",
            chart.missing.join(", ")
        ));
    }
    let path = if arguments.archive {
        write_archive(&chart, &found.place(), &arguments.to)?
    } else {
        write_folder(&chart, &arguments.to)?
    };
    context.ui.result(format!("{}\n", path.display()))?;
    Ok(Exit::Done)
}

fn failed(path: &Path, error: &std::io::Error) -> CommandError {
    CommandError::new(format_args!("{}: {error}", path.display()))
}

/// `place` is where the record is.
fn write_archive(chart: &UnpackedChart, place: &str, to: &Path) -> Result<PathBuf, CommandError> {
    let name = format!("{}-{}.tgz", chart.name, chart.version);
    // The version is free text in a record.
    if name.contains(['/', '\\']) || name.chars().any(char::is_control) {
        return Err(CommandError::new(format_args!(
            "{place}: the chart's version {:?} cannot be part of a file's name",
            chart.version
        )));
    }
    let path = to.join(name);
    let bytes = helm_rs::chart::pack(&chart.name, &chart.files).map_err(CommandError::new)?;
    fs::create_dir_all(to).map_err(|error| failed(to, &error))?;
    file::write(&path, &bytes, Existing::Keep).map_err(|error| failed(&path, &error))?;
    Ok(path)
}

fn write_folder(chart: &UnpackedChart, to: &Path) -> Result<PathBuf, CommandError> {
    let folder = to.join(&chart.name);
    fs::create_dir_all(to).map_err(|error| failed(to, &error))?;
    let taken = || failed(&folder, &std::io::ErrorKind::AlreadyExists.into());
    if folder.symlink_metadata().is_ok() {
        return Err(taken());
    }
    // Removed again, with what is in it, unless all of it was written.
    let mut half = file::temporary(0o777).tempdir_in(to).map_err(|error| failed(to, &error))?;
    for file in &chart.files {
        // Names were checked to stay within the chart.
        let (path, named) = (half.path().join(&file.name), folder.join(&file.name));
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(|error| failed(&named, &error))?;
        }
        fs::write(&path, &file.data).map_err(|error| failed(&named, &error))?;
    }
    fs::rename(half.path(), &folder).map_err(|error| failed(&folder, &error))?;
    // It is no longer under the name that would be removed.
    half.disable_cleanup(true);
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use helm_rs::chart::File;
    use helm_rs::release::UnpackedChart;

    use super::{write_archive, write_folder};

    fn chart(files: &[&str]) -> UnpackedChart {
        let file = |name: &&str| File { name: (*name).to_owned(), data: b"x".to_vec().into() };
        UnpackedChart {
            name: "web".to_owned(),
            version: "1.0.0".to_owned(),
            files: files.iter().map(file).collect(),
            missing: Vec::new(),
        }
    }

    fn names(folder: &std::path::Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn what_fails_leaves_nothing_behind() {
        let to = tempfile::tempdir().unwrap();
        // Longer than any path may be, so that the second file cannot be written.
        let long = "d/".repeat(3000) + "x";
        assert!(write_folder(&chart(&["a", &long]), to.path()).is_err());
        assert_eq!(names(to.path()), [""; 0]);
    }

    #[test]
    fn what_is_there_stays() {
        let to = tempfile::tempdir().unwrap();
        fs::create_dir(to.path().join("web")).unwrap();
        fs::write(to.path().join("web-1.0.0.tgz"), "old").unwrap();
        assert!(write_folder(&chart(&["a"]), to.path()).is_err());
        assert!(write_archive(&chart(&["Chart.yaml"]), "dump", to.path()).is_err());
        assert_eq!(names(&to.path().join("web")), [""; 0]);
        assert_eq!(fs::read(to.path().join("web-1.0.0.tgz")).unwrap(), b"old");
        assert_eq!(names(to.path()).len(), 2);
        fs::remove_dir(to.path().join("web")).unwrap();
        let folder = write_folder(&chart(&["a", "b/c"]), to.path()).unwrap();
        assert_eq!(fs::read(folder.join("b/c")).unwrap(), b"x");
    }
}
