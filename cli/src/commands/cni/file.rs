//! Where the files of a takeover go, looked at before anything is done.

use std::path::Path;

use helm_rs::gotext::io_text;

use crate::file::{self, Existing};

/// Whether a file can be written, as far as that can be told without writing it: it is no
/// directory, and its own directory is there and takes files.
///
/// # Errors
/// Why not, for people.
pub(crate) fn check(file: &Path) -> Result<(), String> {
    if file.as_os_str().is_empty() {
        return Err("a file's name is missing".to_owned());
    }
    if file.is_dir() {
        return Err("this is a directory".to_owned());
    }
    if file::is_special(file) {
        return Ok(());
    }
    let directory = file::directory(file);
    if !directory.is_dir() {
        return Err(format!("there is no directory {}", directory.display()));
    }
    file::temporary(0o666).tempfile_in(&directory).map(drop).map_err(|error| {
        format!("nothing can be written in {}: {}", directory.display(), io_text(&error))
    })
}

/// Writes a file, in place of what is there.
///
/// # Errors
/// Why not, for people.
pub(crate) fn write(file: &Path, bytes: &[u8]) -> Result<(), String> {
    file::write(file, bytes, Existing::Replace).map_err(|error| io_text(&error))
}

/// Whether two paths lead to one place, which need not be there.
pub(crate) fn is_same(one: &Path, other: &Path) -> bool {
    one == other || file::real(one) == file::real(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_never_replaced() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(check(folder.path()).unwrap_err(), "this is a directory");
        assert!(write(folder.path(), b"x").is_err() && folder.path().is_dir());
        check(&folder.path().join("plan.md")).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn a_link_and_its_file_are_one_place() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("real.md"), folder.path().join("link.md"));
        std::fs::write(&file, "").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert!(is_same(&file, &link));
        assert!(is_same(&folder.path().join("new"), &folder.path().join("./new")));
        assert!(!is_same(&file, &folder.path().join("new")));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_folder_that_takes_no_files_is_told_before() {
        let why = check("/proc/plan.md".as_ref()).unwrap_err();
        assert!(why.starts_with("nothing can be written in /proc: "), "{why}");
        assert_eq!(check("/dev/null".as_ref()), Ok(()));
    }
}
