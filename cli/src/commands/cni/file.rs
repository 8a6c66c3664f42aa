//! Files that a command writes beside its result: whole, or not at all.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use helm_rs::gotext::io_text;

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
    if is_special(file) {
        return Ok(());
    }
    let directory = directory(file);
    if !directory.is_dir() {
        return Err(format!("there is no directory {}", directory.display()));
    }
    temporary(&directory)
        .map(drop)
        .map_err(|error| format!("nothing can be written in {}: {error}", directory.display()))
}

/// Writes a file: beside its place, then renamed over it. A link stays, and what it leads to is
/// written. What is no file, such as a pipe, is written to.
pub(crate) fn write(file: &Path, bytes: &[u8]) -> Result<(), String> {
    let wrong = |error: io::Error| io_text(&error);
    if is_special(file) {
        return fs::write(file, bytes).map_err(wrong);
    }
    let file = real(file);
    let mut temporary = temporary(&directory(&file))?;
    temporary.write_all(bytes).map_err(wrong)?;
    temporary.as_file().sync_all().map_err(wrong)?;
    temporary.persist(file).map_err(|error| wrong(error.error))?;
    Ok(())
}

/// Whether two paths lead to one place, which need not be there.
pub(crate) fn is_same(one: &Path, other: &Path) -> bool {
    one == other || real(one) == real(other)
}

/// The path without links, as far as it is there.
fn real(file: &Path) -> PathBuf {
    if let Ok(real) = fs::canonicalize(file) {
        return real;
    }
    let directory = directory(file);
    let directory = fs::canonicalize(&directory).unwrap_or(directory);
    file.file_name().map_or_else(|| file.to_path_buf(), |name| directory.join(name))
}

fn directory(file: &Path) -> PathBuf {
    match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
        _ => PathBuf::from("."),
    }
}

fn is_special(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|about| !about.is_file() && !about.is_dir())
}

fn temporary(directory: &Path) -> Result<tempfile::NamedTempFile, String> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".ichor-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        // As any file that a program creates: the umask decides who may read it.
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(directory).map_err(|error| io_text(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_whole_or_not_there() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("plan.md");
        fs::write(&file, "before").unwrap();
        check(&file).unwrap();
        write(&file, b"after").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "after");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing temporary stays");
    }

    #[test]
    fn a_directory_is_never_replaced() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(check(folder.path()).unwrap_err(), "this is a directory");
        assert!(write(folder.path(), b"x").is_err() && folder.path().is_dir());
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("real.md"), folder.path().join("link.md"));
        fs::write(&file, "before").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        write(&link, b"after").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "after");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
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
        write("/dev/null".as_ref(), b"x").unwrap();
    }
}
