//! Unpacking a chart (`pkg/chartutil/expand.go`).

use std::path::{Path, PathBuf};

use helm_rs::chart::{Limits, LoadError, Metadata, decode_metadata, read_archive};
use helm_rs::gotext::quote;
use helm_rs::{chart, gopath};

use crate::files::{self, FileError};
use crate::unfinished::{Unfinished, step};

/// Why a chart cannot be unpacked.
#[derive(Debug, thiserror::Error)]
pub enum ExpandError {
    /// The archive is broken, breaks a path rule or is too large.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// What the chart says about itself cannot be read.
    #[error("cannot load Chart.yaml")]
    Metadata(#[source] chart::DecodeError),
    /// The chart has no name.
    #[error("chart name not specified")]
    NoName,
    /// The name would lead elsewhere.
    #[error("chart name {} is not allowed", quote(name))]
    Dots {
        /// The name.
        name: String,
    },
    /// The name would lead elsewhere.
    #[error("chart name {} must not contain path separators", quote(name))]
    Separators {
        /// The name.
        name: String,
    },
    /// A file of the chart would lead elsewhere.
    #[error("chart illegally contains content outside the base directory")]
    Outside,
    /// Something is at the chart's place. Helm writes into a folder that is there; which files of
    /// another chart stay between those of this one, nobody would know.
    #[error("failed to untar: a file or directory with the name {} already exists", target.display())]
    Exists {
        /// The place.
        target: PathBuf,
    },
    /// A file cannot be written.
    #[error(transparent)]
    File(#[from] FileError),
}

/// Unpacks an archive into a folder of the chart's name below `folder`. All files are written beside
/// that folder first: it has all of them, or nothing changes.
///
/// # Errors
/// [`ExpandError`].
pub fn expand(archive: &[u8], folder: &Path, limits: &Limits) -> Result<PathBuf, ExpandError> {
    let all = read_archive(archive, limits)?;
    let mut metadata = Metadata::default();
    for file in all.iter().filter(|file| file.name == "Chart.yaml") {
        decode_metadata(&file.data, &mut metadata).map_err(ExpandError::Metadata)?;
    }
    let name = metadata.name;
    if name.is_empty() {
        return Err(ExpandError::NoName);
    }
    if name == "." || name == ".." {
        return Err(ExpandError::Dots { name });
    }
    if name != gopath::base(&name) {
        return Err(ExpandError::Separators { name });
    }
    files::make_folder(folder)?;
    let fail = |path: &Path| {
        let path = path.to_owned();
        move |error| FileError::new("open", &path, error)
    };
    let (half, _unfinished) = Unfinished::folder(".ichor-", folder).map_err(fail(folder))?;
    let target = folder.join(&name);
    for file in &all {
        let inner = gopath::clean(&file.name);
        if inner.starts_with("..") || inner.starts_with('/') || inner == "." {
            return Err(ExpandError::Outside);
        }
        let path = half.path().join(&inner);
        // Errors name the place that it was to have.
        let shown = target.join(&inner);
        step(|| {
            if let Some(above) = path.parent() {
                let above_shown = shown.parent().unwrap_or(&target);
                std::fs::create_dir_all(above)
                    .map_err(|error| FileError::new("mkdir", above_shown, error))?;
            }
            std::fs::write(&path, &file.data).map_err(fail(&shown))
        })?;
    }
    open_to_all(half.path()).map_err(fail(&target))?;
    // An empty folder, which Helm makes before, may be there.
    match std::fs::remove_dir(&target) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(_) => return Err(ExpandError::Exists { target }),
    }
    step(|| std::fs::rename(half.path(), &target)).map_err(fail(&target))?;
    // It is elsewhere now.
    drop(half.keep());
    Ok(target)
}

/// Temporary folders are their owner's alone.
#[cfg(unix)]
fn open_to_all(folder: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755))
}

#[cfg(not(unix))]
fn open_to_all(_: &Path) -> std::io::Result<()> {
    Ok(())
}
