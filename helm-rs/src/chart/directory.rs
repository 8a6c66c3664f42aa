//! Charts in a directory, as Helm's `pkg/chart/loader/{load,directory}.go` and
//! `internal/sympath/walk.go`.

use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Warning;
use super::archive::{ensure_archive, read_archive};
use super::error::LoadError;
use super::ignore::{self, Rules};
use super::limits::Limits;
use super::load::{BufferedFile, Loader, strip_bom};
use super::model::Chart;
use crate::gopath;

/// Links that Go resolves in one path before it gives up.
const MAX_LINKS: usize = 255;

/// Loads a chart from a directory or an archive, as `loader.Load`.
///
/// # Errors
///
/// [`LoadError`] when the path cannot be read or does not hold a valid chart.
pub fn load(path: &Path, limits: &Limits, warnings: &mut Vec<Warning>) -> Result<Chart, LoadError> {
    let metadata = fs::metadata(path).map_err(|error| io_error("stat", path, error))?;
    if metadata.is_dir() {
        return load_directory(path, limits, warnings);
    }
    let name = path.to_string_lossy();
    if metadata.len() > limits.archive_size {
        return Err(LoadError::Limit {
            what: "bytes of archive",
            limit: limits.archive_size,
            place: name.into_owned(),
        });
    }
    let archive = fs::read(path).map_err(|error| io_error("open", path, error))?;
    ensure_archive(&name, &archive)?;
    let files = read_archive(&archive, limits).map_err(|error| match error {
        LoadError::BrokenArchive("gzip: invalid header") => {
            LoadError::NotChartFile { path: name.into_owned() }
        }
        error => error,
    })?;
    Loader::new(limits, warnings).load(files)
}

/// Loads a chart from a directory, as `LoadDir`.
///
/// # Errors
///
/// [`LoadError`] when a file cannot be read or the directory does not hold a valid chart.
pub fn load_directory(
    directory: &Path,
    limits: &Limits,
    warnings: &mut Vec<Warning>,
) -> Result<Chart, LoadError> {
    let files = read_directory(directory, limits, warnings)?;
    Loader::new(limits, warnings).load(files)
}

/// Reads the files of a chart directory in the order of their paths, without those that
/// `.helmignore` names. Links are followed, and each leaves a warning.
///
/// # Errors
///
/// [`LoadError`] when a file cannot be read, is no regular file or exceeds a limit.
pub fn read_directory(
    directory: &Path,
    limits: &Limits,
    warnings: &mut Vec<Warning>,
) -> Result<Vec<BufferedFile>, LoadError> {
    let root =
        std::path::absolute(directory).map_err(|error| io_error("getwd", directory, error))?;
    let root = PathBuf::from(gopath::clean(&root.to_string_lossy()));
    let rules = read_rules(&root)?;
    let real_root = if limits.links_outside { None } else { fs::canonicalize(&root).ok() };
    let mut walk = Walk { limits, warnings, rules, real_root, files: Vec::new(), bytes: 0 };
    let metadata = fs::metadata(&root).map_err(|error| io_error("lstat", &root, error))?;
    walk.visit(&root, "", &root, &metadata, 0)?;
    Ok(walk.files)
}

fn read_rules(root: &Path) -> Result<Rules, LoadError> {
    let path = root.join(ignore::FILE_NAME);
    let mut rules = match fs::metadata(&path) {
        Ok(_) => {
            let text = fs::read(&path).map_err(|error| io_error("open", &path, error))?;
            Rules::parse(&text)?
        }
        Err(_) => Rules::default(),
    };
    rules.add_defaults();
    Ok(rules)
}

struct Walk<'a> {
    limits: &'a Limits,
    warnings: &'a mut Vec<Warning>,
    rules: Rules,
    /// The directory that links may not leave, if the caller wants that.
    real_root: Option<PathBuf>,
    files: Vec<BufferedFile>,
    bytes: u64,
}

impl Walk<'_> {
    /// Visits a path whose name below the root is `name`; `target` is where links have led.
    fn visit(
        &mut self,
        path: &Path,
        name: &str,
        target: &Path,
        metadata: &Metadata,
        depth: usize,
    ) -> Result<(), LoadError> {
        if metadata.is_symlink() {
            return self.follow(path, name, depth);
        }
        if metadata.is_dir() {
            if !name.is_empty() && self.rules.ignores(name, true) {
                return Ok(());
            }
            return self.visit_children(path, name, depth);
        }
        if self.rules.ignores(name, false) {
            return Ok(());
        }
        self.add_file(path, name, target, metadata)
    }

    fn visit_children(&mut self, path: &Path, name: &str, depth: usize) -> Result<(), LoadError> {
        if depth >= self.limits.directory_depth {
            let limit = self.limits.directory_depth as u64;
            return Err(LoadError::Limit {
                what: "levels of directories",
                limit,
                place: name.to_owned(),
            });
        }
        let failed = |error| io_error("open", path, error);
        let mut names = Vec::new();
        for entry in fs::read_dir(path).map_err(failed)? {
            names.push(entry.map_err(failed)?.file_name());
            if names.len() > self.limits.file_count {
                return Err(self.too_many(name));
            }
        }
        names.sort_unstable();
        for child in names {
            let child_path = path.join(&child);
            let child = child.to_string_lossy();
            let child_name =
                if name.is_empty() { child.into_owned() } else { format!("{name}/{child}") };
            let metadata = fs::symlink_metadata(&child_path)
                .map_err(|error| io_error("lstat", &child_path, error))?;
            self.visit(&child_path, &child_name, &child_path, &metadata, depth + 1)?;
        }
        Ok(())
    }

    /// Reads what a link leads to under the link's own name.
    fn follow(&mut self, path: &Path, name: &str, depth: usize) -> Result<(), LoadError> {
        let shown = path.to_string_lossy();
        let target = evaluate_links(path).map_err(|source| LoadError::Symlink {
            path: shown.clone().into_owned(),
            source: Box::new(source),
        })?;
        if let Some(root) = &self.real_root
            && !target.starts_with(root)
        {
            return Err(LoadError::LinkOutside { path: shown.into_owned(), target });
        }
        self.warnings.push(Warning::new(
            "walk.go:75",
            format!(
                "found symbolic link in path: {shown} resolves to {}. Contents of linked file \
                 included and used",
                target.to_string_lossy()
            ),
        ));
        let metadata =
            fs::symlink_metadata(&target).map_err(|error| io_error("lstat", &target, error))?;
        self.visit(path, name, &target, &metadata, depth)
    }

    fn add_file(
        &mut self,
        path: &Path,
        name: &str,
        target: &Path,
        metadata: &Metadata,
    ) -> Result<(), LoadError> {
        if !metadata.is_file() {
            return Err(LoadError::Irregular { path: path.to_string_lossy().into_owned() });
        }
        let limit = self.limits.file_size;
        if metadata.len() > limit {
            let name = gopath::base(&target.to_string_lossy()).to_owned();
            return Err(LoadError::DirectoryFileTooLarge { name, limit });
        }
        if self.files.len() >= self.limits.file_count {
            return Err(self.too_many(name));
        }
        let data = read_bounded(path, limit).map_err(|error| LoadError::Reading {
            name: name.to_owned(),
            source: Box::new(io_error("open", path, error)),
        })?;
        self.bytes = self.bytes.saturating_add(data.len() as u64);
        if self.bytes > self.limits.directory_size {
            let (limit, place) = (self.limits.directory_size, name.to_owned());
            return Err(LoadError::Limit { what: "bytes", limit, place });
        }
        self.files.push(BufferedFile { name: name.to_owned(), data: Arc::from(strip_bom(&data)) });
        Ok(())
    }

    fn too_many(&self, place: &str) -> LoadError {
        LoadError::Limit {
            what: "files",
            limit: self.limits.file_count as u64,
            place: place.to_owned(),
        }
    }
}

/// Reads a file that may grow while it is read.
fn read_bounded(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    use std::io::Read as _;
    let mut data = Vec::new();
    fs::File::open(path)?.take(limit).read_to_end(&mut data)?;
    Ok(data)
}

/// Resolves all links in a path, as `filepath.EvalSymlinks`: the error names the part that is
/// missing.
fn evaluate_links(path: &Path) -> Result<PathBuf, LoadError> {
    use std::path::Component;
    let mut resolved = PathBuf::new();
    let mut pending: Vec<std::ffi::OsString> =
        path.components().rev().map(|part| part.as_os_str().to_owned()).collect();
    let mut links = 0;
    while let Some(part) = pending.pop() {
        match Path::new(&part).components().next() {
            Some(Component::RootDir) => {
                resolved = PathBuf::from("/");
                continue;
            }
            Some(Component::ParentDir) => {
                if !resolved.pop() {
                    resolved.push("..");
                }
                continue;
            }
            Some(Component::CurDir) | None => continue,
            Some(_) => resolved.push(&part),
        }
        let metadata =
            fs::symlink_metadata(&resolved).map_err(|error| io_error("lstat", &resolved, error))?;
        if !metadata.is_symlink() {
            continue;
        }
        links += 1;
        if links > MAX_LINKS {
            return Err(LoadError::TooManyLinks);
        }
        let target =
            fs::read_link(&resolved).map_err(|error| io_error("readlink", &resolved, error))?;
        resolved.pop();
        pending.extend(target.components().rev().map(|part| part.as_os_str().to_owned()));
    }
    Ok(resolved)
}

fn io_error(operation: &'static str, path: &Path, cause: io::Error) -> LoadError {
    LoadError::Io { operation, path: path.to_string_lossy().into_owned(), cause }
}
