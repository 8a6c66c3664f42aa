//! Files and folders that are half made, so that whoever ends the process can take them away.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tempfile::{Builder, NamedTempFile, TempDir};

/// What is half made now, in the whole process: a signal ends all of it.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn unfinished() -> MutexGuard<'static, Vec<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Says of a file or folder that it is half made, as long as this lives.
#[derive(Debug)]
pub struct Unfinished(PathBuf);

impl Unfinished {
    /// Makes a file beside its later place.
    ///
    /// # Errors
    /// What the system says.
    pub fn file(folder: &Path) -> io::Result<(NamedTempFile, Self)> {
        fs::metadata(folder)?;
        let mut all = unfinished();
        let file = Builder::new().prefix(".ichor-").tempfile_in(folder).map_err(nameless)?;
        all.push(file.path().to_owned());
        let this = Self(file.path().to_owned());
        Ok((file, this))
    }

    /// Makes a folder whose name begins so.
    ///
    /// # Errors
    /// What the system says.
    pub fn folder(prefix: &str, folder: &Path) -> io::Result<(TempDir, Self)> {
        fs::metadata(folder)?;
        let mut all = unfinished();
        let made = Builder::new().prefix(prefix).tempdir_in(folder).map_err(nameless)?;
        all.push(made.path().to_owned());
        let this = Self(made.path().to_owned());
        Ok((made, this))
    }
}

/// What the system says, without the name of a file that nobody knows. The crate that makes such
/// files keeps nothing of the system's error but its kind and its text, which has the name.
#[expect(clippy::needless_pass_by_value, reason = "as `map_err` hands it over")]
fn nameless(error: io::Error) -> io::Error {
    error.raw_os_error().map_or_else(|| error.kind().into(), io::Error::from_raw_os_error)
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        unfinished().retain(|path| *path != self.0);
    }
}

/// Makes one more file in what is half made, or moves it to its place; never while it is taken away.
pub fn step<T>(work: impl FnOnce() -> T) -> T {
    let _all = unfinished();
    work()
}

/// Takes away all that is half made. From here on nothing more is: who tries waits for the end of the
/// process, which has to be next.
pub fn abandon() {
    let all = unfinished();
    for path in all.iter() {
        // Nobody is there who could be told.
        drop(if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) });
    }
    std::mem::forget(all);
}
