//! Packed charts, as Helm's `pkg/chart/loader/archive.go`.

use std::io::{self, Read};
use std::sync::Arc;

use flate2::read::MultiGzDecoder;

use super::error::LoadError;
use super::limits::Limits;
use super::load::{BufferedFile, Loader, strip_bom};
use super::model::Chart;
use super::{Warning, sniff};
use crate::gopath;

/// Bytes that Helm looks at to guess what a file is.
const SNIFF_LENGTH: usize = 512;

/// Bytes of tar headers, padding and skipped entries allowed on top of the files' own size.
const STRUCTURE_ALLOWANCE: u64 = 64 * 1024 * 1024;

/// Loads a chart from the bytes of a `.tgz`, as `LoadArchive`.
///
/// # Errors
///
/// [`LoadError`] when the archive is broken, breaks a path rule, exceeds a limit or does not hold
/// a valid chart.
pub fn load_archive(
    archive: &[u8],
    limits: &Limits,
    warnings: &mut Vec<Warning>,
) -> Result<Chart, LoadError> {
    let mut loader = Loader::new(limits, warnings);
    let files = read_archive(archive, limits)?;
    loader.load(files)
}

/// Checks that the start of a file looks like gzip, as `ensureArchive`: the error says what the
/// file looks like instead.
///
/// # Errors
///
/// [`LoadError::YamlInsteadOfArchive`] or [`LoadError::NotGzip`].
pub fn ensure_archive(path: &str, content: &[u8]) -> Result<(), LoadError> {
    // Helm looks at a buffer of fixed size, so that short files end in zeros.
    let mut buffer = [0u8; SNIFF_LENGTH];
    for (to, from) in buffer.iter_mut().zip(content) {
        *to = *from;
    }
    let content_type = sniff::content_type(&buffer);
    if content_type == "application/x-gzip" || buffer.starts_with(b"\x1F\x8B\x08") {
        return Ok(());
    }
    let path = path.to_owned();
    if path.ends_with(".yml") || path.ends_with(".yaml") {
        return Err(LoadError::YamlInsteadOfArchive { path });
    }
    Err(LoadError::NotGzip { path, content_type })
}

/// Reads the files out of a `.tgz`, as `LoadArchiveFiles`: the first element of each path is
/// dropped, directories are left out, links become empty files.
///
/// # Errors
///
/// [`LoadError`] when the archive is broken, breaks a path rule or exceeds a limit.
pub fn read_archive(archive: &[u8], limits: &Limits) -> Result<Vec<BufferedFile>, LoadError> {
    check_gzip_header(archive)?;
    let allowance = limits.chart_size.saturating_add(STRUCTURE_ALLOWANCE);
    let stream = Bounded { inner: MultiGzDecoder::new(archive), left: allowance };
    let mut tar = tar::Archive::new(stream);
    let mut files = Vec::new();
    let mut remaining = limits.chart_size;
    let mut entries = 0usize;
    for entry in tar.entries().map_err(|error| broken(&error, limits))? {
        let mut entry = entry.map_err(|error| broken(&error, limits))?;
        entries += 1;
        let raw_name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        if entries > limits.file_count {
            let limit = limits.file_count as u64;
            return Err(LoadError::Limit { what: "archive entries", limit, place: raw_name });
        }
        let kind = entry.header().entry_type();
        let directory_mode = entry.header().mode().is_ok_and(|mode| mode & 0o170_000 == 0o040_000);
        if kind.is_dir() || directory_mode || (kind.is_file() && raw_name.ends_with('/')) {
            continue;
        }
        if kind.is_pax_global_extensions() || kind.is_pax_local_extensions() {
            continue;
        }
        let name = entry_name(&raw_name)?;
        let size = if holds_data(kind) { entry.size() } else { 0 };
        if size > remaining {
            return Err(LoadError::ChartTooLarge { limit: limits.chart_size });
        }
        if size > limits.file_size {
            return Err(LoadError::FileTooLarge { name: raw_name, limit: limits.file_size });
        }
        let mut data = Vec::new();
        if size > 0 {
            (&mut entry).take(size).read_to_end(&mut data).map_err(|e| broken(&e, limits))?;
            if (data.len() as u64) < size {
                return Err(LoadError::BrokenArchive("unexpected EOF"));
            }
        }
        remaining -= size;
        if remaining == 0 {
            return Err(LoadError::ChartTooLarge { limit: limits.chart_size });
        }
        files.push(BufferedFile { name, data: Arc::from(strip_bom(&data)) });
    }
    if files.is_empty() {
        return Err(LoadError::EmptyArchive);
    }
    Ok(files)
}

/// Turns the path of an entry into a name below the chart's root, or refuses it.
fn entry_name(raw: &str) -> Result<String, LoadError> {
    // An archive from Windows may use backslashes.
    let delimiter = if raw.contains('\\') { '\\' } else { '/' };
    let (first, rest) = raw.split_once(delimiter).unwrap_or((raw, ""));
    let rest = rest.replace(delimiter, "/");
    if rest.starts_with('/') {
        return Err(LoadError::AbsolutePath);
    }
    let name = gopath::clean(&rest);
    if name == "." {
        return Err(LoadError::OutsideBase { name: raw.to_owned() });
    }
    if name.starts_with("..") {
        return Err(LoadError::ParentDirectory);
    }
    let bytes = name.as_bytes();
    let drive = bytes.first().is_some_and(u8::is_ascii_alphabetic);
    if drive && bytes.get(1..3) == Some(b":/") {
        return Err(LoadError::IllegalName);
    }
    if first == "Chart.yaml" {
        return Err(LoadError::ChartYamlNotInBase);
    }
    Ok(name)
}

/// Whether Go's tar reader gives an entry of this type content: links and devices have none.
fn holds_data(kind: tar::EntryType) -> bool {
    use tar::EntryType::{Block, Char, Fifo, Link, Symlink};
    !matches!(kind, Block | Char | Fifo | Link | Symlink)
}

/// Go reads the header eagerly and says what is wrong with it.
fn check_gzip_header(archive: &[u8]) -> Result<(), LoadError> {
    let error = match archive.get(..10) {
        None if archive.is_empty() => "EOF",
        None => "unexpected EOF",
        Some(header) if header.starts_with(b"\x1F\x8B\x08") => return Ok(()),
        Some(_) => "gzip: invalid header",
    };
    Err(LoadError::BrokenArchive(error))
}

/// Go's text for a failure inside the decompressor or the tar reader. The offset that Go adds to
/// its flate errors is not known here.
fn broken(error: &io::Error, limits: &Limits) -> LoadError {
    if error.get_ref().is_some_and(|inner| inner.is::<BoundReached>()) {
        return LoadError::ChartTooLarge { limit: limits.chart_size };
    }
    let text = error.to_string();
    LoadError::BrokenArchive(match error.kind() {
        io::ErrorKind::UnexpectedEof => "unexpected EOF",
        io::ErrorKind::InvalidInput if text.contains("gzip header") => "gzip: invalid header",
        io::ErrorKind::InvalidInput if text.contains("checksum") || text.contains("crc") => {
            "gzip: invalid checksum"
        }
        io::ErrorKind::InvalidInput if text.contains("deflate") => "flate: corrupt input",
        _ if text.contains("failed to read entire block") => "unexpected EOF",
        _ => "archive/tar: invalid tar header",
    })
}

/// Stops a decompression bomb that hides in entries which are skipped.
struct Bounded<R> {
    inner: R,
    left: u64,
}

#[derive(Debug, thiserror::Error)]
#[error("decompressed data exceeds the bound")]
struct BoundReached;

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            return Err(io::Error::other(BoundReached));
        }
        let length = buffer.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let read = self.inner.read(buffer.get_mut(..length).unwrap_or_default())?;
        self.left -= read as u64;
        Ok(read)
    }
}
