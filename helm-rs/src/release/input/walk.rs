//! Inputs: files, folders, streams.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use etcd_snapshot::FileSource;

use super::etcd::{self, EtcdOptions};
use super::sniff::{self, Sink};
use super::{Fault, InputLimits, Piece};

/// Where to read records from.
pub enum Input {
    /// A file, or a folder with everything below it.
    Path(PathBuf),
    /// A stream and what messages call it.
    Stream(String, Box<dyn Read>),
}

impl Input {
    /// What messages call it.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Path(path) => path.display().to_string(),
            Self::Stream(name, _) => name.clone(),
        }
    }
}

/// Splits an input into objects. `false` when the sink has enough.
pub(super) fn read(
    input: Input,
    limits: &InputLimits,
    etcd: &EtcdOptions,
    sink: &mut Sink<'_>,
) -> bool {
    match input {
        Input::Stream(name, mut stream) => {
            let mut stream = Read::take(&mut stream, limits.stream);
            sniff::split(&name, &mut stream, limits, etcd, 0, sink)
        }
        Input::Path(path) => {
            let mut left = limits.files;
            walk(&path, limits, etcd, &mut left, sink)
        }
    }
}

fn walk(
    path: &Path,
    limits: &InputLimits,
    etcd: &EtcdOptions,
    left: &mut usize,
    sink: &mut Sink<'_>,
) -> bool {
    let place = path.display().to_string();
    // A folder is walked with a list, not by recursion: its depth is whatever it is.
    let mut pending = vec![path.to_owned()];
    while let Some(path) = pending.pop() {
        let place = if pending.is_empty() && path.as_os_str() == place.as_str() {
            place.clone()
        } else {
            path.display().to_string()
        };
        let Some(after) = left.checked_sub(1) else {
            return sink(Piece::Fault(Fault::io(&place, sniff::too_many(limits))));
        };
        *left = after;
        let go_on = match fs::metadata(&path) {
            Err(source) => sink(Piece::Fault(Fault::io(&place, source))),
            Ok(about) if about.is_dir() => match children(&path) {
                Ok(children) => {
                    pending.extend(children.into_iter().rev());
                    true
                }
                Err(source) => sink(Piece::Fault(Fault::io(&place, source))),
            },
            Ok(about) => match File::open(&path) {
                Ok(file) => read_file(&place, file, about.is_file(), limits, etcd, sink),
                Err(source) => sink(Piece::Fault(Fault::io(&place, source))),
            },
        };
        if !go_on {
            return false;
        }
    }
    true
}

/// Reads a file: an etcd file at places, which a pipe has not, all others as a stream.
fn read_file(
    place: &str,
    file: File,
    is_seekable: bool,
    limits: &InputLimits,
    options: &EtcdOptions,
    sink: &mut Sink<'_>,
) -> bool {
    if is_seekable {
        match file.try_clone().and_then(FileSource::new) {
            Ok(source) if etcd_snapshot::is_snapshot(&source) => {
                return etcd::split(place, Box::new(source), limits, options, sink);
            }
            Ok(_) => {}
            Err(source) => return sink(Piece::Fault(Fault::io(place, source))),
        }
    }
    sniff::split(place, &mut file.take(limits.stream), limits, options, 0, sink)
}

/// What is in a folder, ordered by name. Links to folders are left out: they may lead back.
fn children(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut children = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        // A link that leads nowhere is told, when it is looked at.
        if kind.is_dir() || kind.is_file() || (kind.is_symlink() && !entry.path().is_dir()) {
            children.push(entry.path());
        }
    }
    children.sort();
    Ok(children)
}
