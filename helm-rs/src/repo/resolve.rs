//! From a pin to its bytes.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use super::digest::Digest;
use super::fetch::{Fetch, FetchError};
use super::pin::Pin;

/// Where pinned charts may be.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// A folder of archives that the user put there; looked in first and never written to.
    pub directory: Option<PathBuf>,
    /// The folder that downloads are kept in; made when needed.
    pub cache: Option<PathBuf>,
    /// Bytes that an archive may have.
    pub limit: u64,
}

/// Where an archive was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the user's folder of archives.
    Directory,
    /// In the cache.
    Cache,
    /// It was downloaded just now, and put into the cache if there is one.
    Download,
}

impl Place {
    /// One word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Directory => "directory",
            Self::Cache => "cache",
            Self::Download => "download",
        }
    }
}

/// A pinned archive whose digest is right.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// The archive.
    pub bytes: Vec<u8>,
    /// Where it came from.
    pub place: Place,
    /// The file that holds it; none for a download without a cache.
    pub path: Option<PathBuf>,
}

/// Why a pinned archive cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// The bytes are not the pinned ones. They were not kept.
    #[error("{from}: digest mismatch: expected {expected}, got {actual}")]
    Mismatch {
        /// File or address.
        from: String,
        /// The digest in the pin.
        expected: Digest,
        /// The digest of the bytes.
        actual: Digest,
    },
    /// A file cannot be read or written.
    #[error("{action} {}", path.display())]
    File {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// A file is larger than an archive may be.
    #[error("{}: more than the limit of {limit} bytes", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The limit, in bytes.
        limit: u64,
    },
    /// The download failed.
    #[error("chart {name} {version} is in no local place and cannot be downloaded")]
    Fetch {
        /// The chart.
        name: String,
        /// Its version.
        version: String,
        /// What went wrong.
        #[source]
        source: FetchError,
    },
}

/// Finds the archive of a pin: in the user's folder, in the cache, or by download.
///
/// # Errors
/// [`ResolveError`]. A place that has a wrong file is an error and not skipped, so that nobody
/// gets another chart than expected without hearing of it; a wrong file in the cache is removed.
pub fn resolve(pin: &Pin, places: &Places, fetch: &dyn Fetch) -> Result<Resolved, ResolveError> {
    if let Some(directory) = &places.directory {
        let path = directory.join(pin.file_name());
        if let Some(bytes) = read(&path, places.limit)? {
            check(pin, path.display().to_string(), &bytes)?;
            return Ok(Resolved { bytes, place: Place::Directory, path: Some(path) });
        }
    }
    let cached = places.cache.as_ref().map(|cache| cache.join(pin.file_name()));
    if let Some(path) = &cached
        && let Some(bytes) = read(path, places.limit)?
    {
        if let Err(error) = check(pin, path.display().to_string(), &bytes) {
            fs::remove_file(path).map_err(|source| file_error("remove", path, source))?;
            return Err(error);
        }
        return Ok(Resolved { bytes, place: Place::Cache, path: cached });
    }
    let bytes = fetch.fetch(&pin.url, places.limit).map_err(|source| ResolveError::Fetch {
        name: pin.name.clone(),
        version: pin.version.clone(),
        source,
    })?;
    check(pin, pin.url.clone(), &bytes)?;
    if let Some(path) = &cached {
        save(path, &bytes)?;
    }
    Ok(Resolved { bytes, place: Place::Download, path: cached })
}

/// Writes a file so that it is there whole or not at all: under another name first, then renamed.
///
/// # Errors
/// [`ResolveError::File`]; nothing is left of the file then.
pub fn save(path: &Path, bytes: &[u8]) -> Result<(), ResolveError> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let fail = |source| file_error("write", path, source);
    fs::create_dir_all(folder).map_err(fail)?;
    // The temporary file removes itself unless it is renamed.
    let mut file = tempfile::Builder::new().prefix(".ichor-").tempfile_in(folder).map_err(fail)?;
    file.write_all(bytes).map_err(fail)?;
    file.as_file().sync_all().map_err(fail)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        file.as_file().set_permissions(fs::Permissions::from_mode(0o644)).map_err(fail)?;
    }
    file.persist(path).map_err(|error| fail(error.error))?;
    Ok(())
}

fn read(path: &Path, limit: u64) -> Result<Option<Vec<u8>>, ResolveError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(file_error("open", path, source)),
    };
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(|source| file_error("read", path, source))?;
    if bytes.len() as u64 > limit {
        return Err(ResolveError::TooLarge { path: path.to_owned(), limit });
    }
    Ok(Some(bytes))
}

fn check(pin: &Pin, from: String, bytes: &[u8]) -> Result<(), ResolveError> {
    let actual = Digest::of(bytes);
    if actual == pin.digest {
        return Ok(());
    }
    Err(ResolveError::Mismatch { from, expected: pin.digest, actual })
}

fn file_error(action: &'static str, path: &Path, source: io::Error) -> ResolveError {
    ResolveError::File { action, path: path.to_owned(), source }
}
