//! The charts that a chart asks for: listed, locked, brought into `charts/`
//! (`pkg/action/dependency.go`, `internal/resolver/resolver.go`, `pkg/downloader/manager.go`).

mod list;
mod lock;
mod manager;
mod resolve;

use std::path::{Path, PathBuf};

use helm_rs::chart::LoadError;
use helm_rs::gotext::quote;
use helm_rs::{gopath, semver};

use crate::download::DownloadError;
use crate::files::FileError;
use crate::index::IndexError;
use crate::package::PackageError;
use crate::registry::RegistryError;
use crate::repositories::RepositoriesError;
use crate::url::UrlError;

pub use list::{Row, list, strangers};
pub use lock::{digest, former_digest, write};
pub use manager::Manager;

/// Why dependencies were not brought together.
#[derive(Debug, thiserror::Error)]
pub enum DependencyError {
    /// There is no chart.
    #[error("could not find {}", path.display())]
    NoChart {
        /// The place.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: FileError,
    },
    /// The chart is packed.
    #[error("only unpacked charts can be updated")]
    Packed,
    /// A chart cannot be read.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A chart in `charts/` cannot be read.
    #[error("unable to load chart '{}'", path.display())]
    LoadLocal {
        /// The place.
        path: PathBuf,
        /// What is wrong.
        #[source]
        source: LoadError,
    },
    /// The lock was made for other dependencies.
    #[error(
        "the lock file ({lock}) is out of sync with the dependencies file ({file}). Please update the dependencies"
    )]
    OutOfSync {
        /// The lock.
        lock: &'static str,
        /// The file that lists the dependencies.
        file: &'static str,
    },
    /// Dependencies are in repositories that nobody added.
    #[error("no repository definition for {names}. {advice}")]
    NoRepository {
        /// The repositories.
        names: String,
        /// What to do.
        advice: String,
    },
    /// A dependency's folder is not there.
    #[error("directory {} not found", path.display())]
    NoFolder {
        /// The folder.
        path: PathBuf,
    },
    /// A range is none.
    #[error("dependency {name} has an invalid version/constraint format")]
    Range {
        /// The dependency.
        name: String,
        /// What is wrong.
        #[source]
        source: semver::Error,
    },
    /// A version is none.
    #[error("invalid version {version} for dependency {name}")]
    Version {
        /// The dependency.
        name: String,
        /// The version.
        version: String,
        /// What is wrong.
        #[source]
        source: semver::Error,
    },
    /// A chart in `charts/` has another version.
    #[error("dependency {name} at version {version} does not satisfy the constraint {range}")]
    Unsatisfied {
        /// The dependency.
        name: String,
        /// The version that is there.
        version: String,
        /// The range.
        range: String,
    },
    /// A chart in a folder has another version.
    #[error("can't get a valid version for dependency {name}")]
    NoVersion {
        /// The dependency.
        name: String,
    },
    /// No version fits.
    #[error(
        "can't get a valid version for {count} subchart(s): {names}. Make sure a matching chart version exists in the repo, or change the version constraint in Chart.yaml"
    )]
    NoVersions {
        /// How many.
        count: usize,
        /// Which, where, and what is asked for.
        names: String,
    },
    /// A repository's index is not in the cache.
    #[error("no cached repository for {name} found. (try 'helm repo update')")]
    NoIndex {
        /// The repository.
        name: String,
        /// What is wrong.
        #[source]
        source: IndexError,
    },
    /// A repository has no such chart.
    #[error("{name} chart not found in repo {repository}")]
    NotInRepository {
        /// The chart.
        name: String,
        /// The repository.
        repository: String,
    },
    /// A registry does not tell its tags.
    #[error("could not retrieve list of tags for repository {repository}")]
    NoTags {
        /// The repository.
        repository: String,
        /// What went wrong.
        #[source]
        source: RegistryError,
    },
    /// No address of the chart was found.
    #[error("could not find {url}")]
    NotFound {
        /// What was found; mostly nothing.
        url: String,
        /// What is missing.
        #[source]
        source: Box<DependencyError>,
    },
    /// The index has no such entry, or none in the version.
    #[error("{0}")]
    NoEntry(&'static str),
    /// The chart is not in the repository.
    #[error("chart {name} not found in {repository}")]
    NotThere {
        /// The chart.
        name: String,
        /// The repository.
        repository: String,
        /// What went wrong.
        #[source]
        source: DownloadError,
    },
    /// A chart could not be fetched.
    #[error("could not download {url}")]
    Download {
        /// Its address.
        url: String,
        /// What went wrong.
        #[source]
        source: DownloadError,
    },
    /// What was fetched is no chart.
    #[error("{} is not a chart", quote(file))]
    NotChart {
        /// The file.
        file: String,
        /// What is wrong.
        #[source]
        source: LoadError,
    },
    /// What should be a folder is none.
    #[error("{} is not a directory", quote(path.to_string_lossy().as_bytes()))]
    NotFolder {
        /// The place.
        path: PathBuf,
    },
    /// The lock is a link.
    #[error("the {name} file is a symlink to {}", quote(target.to_string_lossy().as_bytes()))]
    Link {
        /// The lock's name.
        name: &'static str,
        /// Where it leads.
        target: PathBuf,
    },
    /// A chart cannot be packed.
    #[error(transparent)]
    Package(#[from] PackageError),
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The file of repositories is wrong.
    #[error(transparent)]
    Repositories(#[from] RepositoriesError),
    /// An index is wrong.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// An address is none.
    #[error(transparent)]
    Url(#[from] UrlError),
    /// A registry gave nothing.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// The lock cannot be written.
    #[error(transparent)]
    Json(#[from] goyaml::json::Error),
    /// The lock cannot be written.
    #[error(transparent)]
    Yaml(#[from] goyaml::Error),
}

/// The folder that a dependency is in: `file://` and a path, seen from the chart (`GetLocalPath`).
///
/// # Errors
/// [`DependencyError::NoFolder`].
fn local_folder(repository: &str, chart: &Path) -> Result<PathBuf, DependencyError> {
    let path = repository.strip_prefix("file://").unwrap_or(repository);
    let path = if path.starts_with('/') {
        PathBuf::from(gopath::clean(path))
    } else {
        PathBuf::from(gopath::join(&chart.to_string_lossy(), path))
    };
    match std::fs::metadata(&path) {
        Ok(_) => Ok(path),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(DependencyError::NoFolder { path })
        }
        Err(error) => Err(FileError::new("stat", &path, error).into()),
    }
}
