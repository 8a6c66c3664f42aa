//! Packed charts, as Helm's `pkg/chart/loader/archive.go`.

use std::sync::Arc;

use bstr::ByteSlice;

use super::error::LoadError;
use super::gzip::{self, End};
use super::limits::Limits;
use super::load::{BufferedFile, Loader, strip_bom};
use super::model::Chart;
use super::{Warning, sniff, tar};
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
    // Helm minds the case here.
    if matches!(gopath::ext(&path), ".yml" | ".yaml") {
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
    let bound = limits.chart_size.saturating_add(STRUCTURE_ALLOWANCE);
    let decompressed = gzip::decompress(archive, usize::try_from(bound).unwrap_or(usize::MAX))
        .map_err(LoadError::BrokenArchive)?;
    let broken = |end| match end {
        End::Broken(text) => LoadError::BrokenArchive(text),
        End::Bound | End::Complete => LoadError::ChartTooLarge { limit: limits.chart_size },
    };
    let mut tar = tar::Reader::new(&decompressed);
    let mut files = Vec::new();
    let mut remaining = limits.chart_size;
    let mut entries = 0usize;
    while let Some(entry) = tar.next().map_err(broken)? {
        entries += 1;
        let raw_name = entry.name.to_str_lossy();
        if entries > limits.file_count {
            let (limit, place) = (limits.file_count as u64, raw_name.into_owned());
            return Err(LoadError::Limit { what: "archive entries", limit, place });
        }
        let is_directory = entry.kind == b'5' || entry.mode & 0o170_000 == 0o040_000;
        if is_directory || matches!(entry.kind, b'g' | b'x') {
            continue;
        }
        let name = entry_name(&raw_name)?;
        if entry.size > remaining {
            return Err(LoadError::ChartTooLarge { limit: limits.chart_size });
        }
        if entry.size > limits.file_size {
            let (name, limit) = (raw_name.into_owned(), limits.file_size);
            return Err(LoadError::FileTooLarge { name, limit });
        }
        let data = tar.content(&entry).map_err(broken)?;
        remaining -= data.len() as u64;
        // A link whose header claims a size has no content and so falls short of it.
        if (data.len() as u64) < entry.size || remaining == 0 {
            return Err(LoadError::ChartTooLarge { limit: limits.chart_size });
        }
        files.push(BufferedFile { name, data: Arc::from(strip_bom(data)) });
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
