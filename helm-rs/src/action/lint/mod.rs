//! Checking a chart for faults, as `helm lint` does (`pkg/action/lint.go`, `pkg/lint`).

mod addresses;
mod chartfile;
mod dependencies;
pub mod deprecations;
mod names;
mod report;
mod templates;
mod values;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

pub use report::{Message, Severity};

use self::report::Linter;
use crate::capabilities::KubeVersion;
use crate::chart::{Limits, LoadError, Warning, read_archive};
use crate::gopath;
use crate::gotext::io_text;
use crate::render::{Engine, Host};

/// What to check a chart for.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The namespace that templates see.
    pub namespace: String,
    /// The cluster that templates see and that deprecations are checked for.
    pub kube_version: KubeVersion,
    /// Values are not checked against `values.schema.json` before rendering.
    pub skip_schema_validation: bool,
    /// Bounds on the chart.
    pub limits: Limits,
}

/// What was found, in Helm's order.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The findings.
    pub messages: Vec<Message>,
}

/// Why nothing could be checked. The texts down the chain, joined by `: `, are Helm's.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The path is no chart.
    #[error("unable to check Chart.yaml file in chart: stat {}: {}", path.display(), io_text(cause))]
    NoChart {
        /// The file that should be there.
        path: PathBuf,
        /// What the system says.
        cause: io::Error,
    },
    /// An archive cannot be opened.
    #[error("unable to open tarball: open {}: {}", path.display(), io_text(cause))]
    Open {
        /// The archive.
        path: PathBuf,
        /// What the system says.
        cause: io::Error,
    },
    /// An archive cannot be unpacked.
    #[error("unable to extract tarball")]
    Archive {
        /// What is wrong with it.
        #[source]
        source: LoadError,
    },
    /// An archive has no chart's name in it.
    #[error("unable to extract tarball: chart name not specified")]
    NoName,
    /// An archive cannot be written to a temporary folder.
    #[error("unable to extract tarball: {}", io_text(cause))]
    Unpack {
        /// What the system says.
        cause: io::Error,
    },
}

/// Checks the chart in a folder or an archive with the given user values.
///
/// # Errors
/// [`Error`] when there is no chart at the path. All other faults are in the report.
pub fn lint(
    engine: &Engine,
    path: &Path,
    user_values: &goyaml::Map,
    options: &Options,
    host: &mut Host,
    warnings: &mut Vec<Warning>,
) -> Result<Report, Error> {
    let name = path.to_string_lossy();
    let unpacked;
    let mut folder = path.to_owned();
    if name.ends_with(".tgz") || name.ends_with(".tar.gz") {
        unpacked = unpack(path, &options.limits)?;
        folder.clone_from(&unpacked.1);
    }
    let chart_yaml = PathBuf::from(gopath::join(&folder.to_string_lossy(), "Chart.yaml"));
    fs::metadata(&chart_yaml).map_err(|cause| Error::NoChart { path: chart_yaml, cause })?;
    let folder = std::path::absolute(&folder).unwrap_or(folder);

    let mut linter = Linter::default();
    chartfile::check(&mut linter, &folder);
    values::check(&mut linter, &folder, user_values, warnings);
    templates::check(&mut linter, engine, &folder, user_values, options, host, warnings);
    dependencies::check(&mut linter, &folder, &options.limits, warnings);
    Ok(Report { messages: linter.messages })
}

/// Unpacks an archive into a temporary folder (`chartutil.Expand`), which lives as long as the
/// first part of the result.
fn unpack(path: &Path, limits: &Limits) -> Result<(tempfile::TempDir, PathBuf), Error> {
    let archive = fs::read(path).map_err(|cause| Error::Open { path: path.to_owned(), cause })?;
    let files = read_archive(&archive, limits).map_err(|source| Error::Archive { source })?;
    let fail = |cause| Error::Unpack { cause };
    let temporary = tempfile::Builder::new().prefix("helm-lint").tempdir().map_err(fail)?;
    let definition = files.iter().find(|file| file.name == "Chart.yaml");
    let name = definition
        .and_then(|file| goyaml::from_yaml(&file.data, &goyaml::Limits::default()).ok())
        .and_then(|value| {
            value.get("name").and_then(goyaml::Value::as_str).map(ToString::to_string)
        })
        .filter(|name| {
            !name.is_empty() && !name.contains(['/', '\0']) && name != "." && name != ".."
        })
        .ok_or(Error::NoName)?;
    let folder = temporary.path().join(name);
    fs::create_dir_all(&folder).map_err(fail)?;
    for file in &files {
        // Archive names are relative and climb nowhere: reading has checked that.
        let target = folder.join(&file.name);
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent).map_err(fail)?;
        }
        fs::write(target, &file.data).map_err(fail)?;
    }
    Ok((temporary, folder))
}
