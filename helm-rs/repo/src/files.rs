//! Files: read up to a limit, and written whole or not at all.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use helm_rs::gotext::io_text;

use crate::unfinished::{Unfinished, step};

/// A file that could not be worked with, in the words of Go's `fs.PathError`.
#[derive(Debug, thiserror::Error)]
#[error("{operation} {}: {}", path.display(), io_text(cause))]
pub struct FileError {
    /// The system call's name, as Go writes it.
    pub operation: &'static str,
    /// The file.
    pub path: PathBuf,
    /// What the system says. It is part of the text, so it is no source.
    cause: Box<io::Error>,
}

impl FileError {
    /// An error of an operation on a file.
    pub fn new(operation: &'static str, path: &Path, cause: io::Error) -> Self {
        Self { operation, path: path.to_owned(), cause: Box::new(cause) }
    }

    /// Whether there is no such file.
    pub fn is_not_found(&self) -> bool {
        self.cause.kind() == io::ErrorKind::NotFound
    }
}

/// Reads a file of at most `limit` bytes.
///
/// # Errors
/// [`FileError`]; a larger file is one too.
pub fn read(path: &Path, limit: u64) -> Result<Vec<u8>, FileError> {
    let file = File::open(path).map_err(|error| FileError::new("open", path, error))?;
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(|error| FileError::new("read", path, error))?;
    if bytes.len() as u64 > limit {
        let error = io::Error::other(format!("more than the limit of {limit} bytes"));
        return Err(FileError::new("read", path, error));
    }
    Ok(bytes)
}

/// Writes a file with these rights: beside its place first, then moved there. Folders are not made.
///
/// # Errors
/// [`FileError`]; nothing is left of the file then.
pub fn write(path: &Path, bytes: &[u8], mode: u32) -> Result<(), FileError> {
    let fail = |error| FileError::new("open", path, error);
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // The error of a temporary file would name the temporary file.
    fs::metadata(folder).map_err(fail)?;
    // The temporary file removes itself unless it is moved.
    let (mut file, _unfinished) = Unfinished::file(folder).map_err(fail)?;
    file.write_all(bytes).map_err(fail)?;
    set_mode(file.as_file(), mode).map_err(fail)?;
    step(|| file.persist(path)).map_err(|error| fail(error.error))?;
    Ok(())
}

#[cfg(unix)]
fn set_mode(file: &File, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    file.set_permissions(fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
fn set_mode(_: &File, _: u32) -> io::Result<()> {
    Ok(())
}

/// Makes a folder with those above it.
///
/// # Errors
/// [`FileError`].
pub fn make_folder(path: &Path) -> Result<(), FileError> {
    fs::create_dir_all(path).map_err(|error| FileError::new("mkdir", path, error))
}
