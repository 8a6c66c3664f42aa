//! Files that commands write beside their result: whole, or not at all.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// What becomes of a file that is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Existing {
    /// It stays, and writing fails with [`io::ErrorKind::AlreadyExists`].
    Keep,
    /// It is replaced. A link stays, and what it leads to is replaced; what is no file, such as a
    /// pipe, is written to.
    Replace,
}

/// Writes a file: beside its place, then moved there.
///
/// # Errors
/// What the system says; nothing is left behind.
pub(crate) fn write(file: &Path, bytes: &[u8], existing: Existing) -> io::Result<()> {
    let mut half = Half::create(file, existing, 0o666)?;
    half.write_all(bytes)?;
    half.finish()
}

/// A file that is written piece by piece: beside its place, and moved there at the end. Dropped
/// before, it leaves nothing behind.
pub(crate) enum Half {
    /// A file.
    File {
        /// What is written.
        half: BufWriter<NamedTempFile>,
        /// Where it goes.
        file: PathBuf,
        /// What becomes of one that is there.
        existing: Existing,
    },
    /// What is no file, such as a pipe: it is written to.
    Special(BufWriter<File>),
}

impl Half {
    /// Begins a file with these rights, less what the umask takes away.
    ///
    /// # Errors
    /// What the system says; [`io::ErrorKind::AlreadyExists`] for a file that is to stay.
    pub(crate) fn create(file: &Path, existing: Existing, mode: u32) -> io::Result<Self> {
        let replaces = existing == Existing::Replace;
        if replaces && is_special(file) {
            return Ok(Self::Special(BufWriter::new(File::options().write(true).open(file)?)));
        }
        if !replaces && fs::symlink_metadata(file).is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let file = if replaces { real(file) } else { file.to_path_buf() };
        let half = BufWriter::new(temporary(mode).tempfile_in(directory(&file))?);
        Ok(Self::File { half, file, existing })
    }

    /// Moves it to its place.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn finish(self) -> io::Result<()> {
        match self {
            Self::File { half, file, existing } => {
                let half = half.into_inner().map_err(io::IntoInnerError::into_error)?;
                half.as_file().sync_all()?;
                let moved = match existing {
                    Existing::Replace => half.persist(file),
                    Existing::Keep => half.persist_noclobber(file),
                };
                moved.map(drop).map_err(|error| error.error)
            }
            Self::Special(mut out) => out.flush(),
        }
    }
}

impl Write for Half {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::File { half, .. } => half.write(bytes),
            Self::Special(out) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::File { half, .. } => half.flush(),
            Self::Special(out) => out.flush(),
        }
    }
}

/// A file or folder under a name of its own until it is whole, with the rights of a usual one: the
/// umask decides who may read it.
pub(crate) fn temporary(mode: u32) -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".ichor-");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(mode));
    #[cfg(not(unix))]
    let _ = mode;
    builder
}

/// The path without links, as far as it is there.
pub(crate) fn real(file: &Path) -> PathBuf {
    if let Ok(real) = fs::canonicalize(file) {
        return real;
    }
    let directory = directory(file);
    let directory = fs::canonicalize(&directory).unwrap_or(directory);
    file.file_name().map_or_else(|| file.to_path_buf(), |name| directory.join(name))
}

/// The directory that a file is in, or will be.
pub(crate) fn directory(file: &Path) -> PathBuf {
    match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
        _ => PathBuf::from("."),
    }
}

/// Whether there is something that is neither file nor directory.
pub(crate) fn is_special(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|about| !about.is_file() && !about.is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn what_is_there_stays_or_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("plan.md");
        write(&file, b"before", Existing::Keep).unwrap();
        let error = write(&file, b"after", Existing::Keep).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(&file).unwrap(), "before");
        write(&file, b"after", Existing::Replace).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "after");
        assert_eq!(names(folder.path()), ["plan.md"], "nothing temporary stays");
    }

    #[test]
    fn what_fails_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        for existing in [Existing::Keep, Existing::Replace] {
            assert!(write(folder.path(), b"x", existing).is_err());
            assert!(write(&folder.path().join("missing/a"), b"x", existing).is_err());
            assert!(write(&folder.path().join("n".repeat(300)), b"x", existing).is_err());
        }
        assert_eq!(names(folder.path()), [""; 0]);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("real.md"), folder.path().join("link.md"));
        fs::write(&file, "before").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert!(write(&link, b"after", Existing::Keep).is_err());
        write(&link, b"after", Existing::Replace).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "after");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_is_no_file_is_written_to() {
        write("/dev/null".as_ref(), b"x", Existing::Replace).unwrap();
        assert!(is_special("/dev/null".as_ref()));
    }
}
