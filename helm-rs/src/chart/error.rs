//! Why a chart cannot be loaded.

use std::io;
use std::path::PathBuf;

use super::decode::DecodeError;
use super::ignore::IgnoreError;
use super::metadata::ValidationError;
use crate::gotext::{io_text, quote};

/// Why a chart cannot be loaded. The messages down the chain of sources, joined by `: `, are the
/// text that Helm prints; [`crate::error_chain`] joins them.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A file system call failed.
    #[error("{operation} {path}: {}", io_text(cause))]
    Io {
        /// The call, as Go names it: `open`, `stat`, `lstat`, `read`.
        operation: &'static str,
        /// The path it was made with.
        path: String,
        /// What the system said; its text is in the message.
        cause: io::Error,
    },
    /// A file of the chart directory could not be read.
    #[error("error reading {name}")]
    Reading {
        /// Name below the chart directory.
        name: String,
        /// The failed call.
        source: Box<Self>,
    },
    /// A link in the chart directory leads nowhere.
    #[error("error evaluating symlink {path}")]
    Symlink {
        /// The link.
        path: String,
        /// The failed call.
        source: Box<Self>,
    },
    /// A chain of links is longer than Go follows.
    #[error("EvalSymlinks: too many links")]
    TooManyLinks,
    /// A link leads out of the chart directory and the caller does not want that.
    #[error("symbolic link {path} leads out of the chart directory to {target}")]
    LinkOutside {
        /// The link.
        path: String,
        /// Where it leads.
        target: PathBuf,
    },
    /// The chart directory holds a device, a socket or a pipe.
    #[error("cannot load irregular file {path} as it has file mode type bits set")]
    Irregular {
        /// The file.
        path: String,
    },
    /// A file in the chart directory is too large.
    #[error("chart file {} is larger than the maximum file size {limit}", quote(name))]
    DirectoryFileTooLarge {
        /// Last element of its path, links resolved.
        name: String,
        /// [`Limits::file_size`](super::Limits::file_size).
        limit: u64,
    },
    /// `.helmignore` is bad.
    #[error(transparent)]
    Ignore(#[from] IgnoreError),
    /// An archive was expected and the path names a directory.
    #[error("cannot load a directory")]
    IsDirectory,
    /// The file looks like YAML by its name and is no archive.
    #[error("file '{path}' seems to be a YAML file, but expected a gzipped archive")]
    YamlInsteadOfArchive {
        /// As given by the caller.
        path: String,
    },
    /// The file is no gzip archive.
    #[error("file '{path}' does not appear to be a gzipped archive; got '{content_type}'")]
    NotGzip {
        /// As given by the caller.
        path: String,
        /// What it looks like, as a media type.
        content_type: &'static str,
    },
    /// The file starts like gzip and is not.
    #[error(
        "file '{path}' does not appear to be a valid chart file (details: gzip: invalid header)"
    )]
    NotChartFile {
        /// As given by the caller.
        path: String,
    },
    /// Compressed data or the archive structure is broken; the text is Go's.
    #[error("{0}")]
    BrokenArchive(&'static str),
    /// An entry's path is absolute below its first element.
    #[error("chart illegally contains absolute paths")]
    AbsolutePath,
    /// An entry lies outside the archive's base directory.
    #[error("chart illegally contains content outside the base directory: {}", quote(name))]
    OutsideBase {
        /// The entry's path.
        name: String,
    },
    /// An entry's path climbs up.
    #[error("chart illegally references parent directory")]
    ParentDirectory,
    /// An entry's path starts with a drive letter.
    #[error("chart contains illegally named files")]
    IllegalName,
    /// `Chart.yaml` lies at the archive's top instead of in a directory.
    #[error("chart yaml not in base directory")]
    ChartYamlNotInBase,
    /// The decompressed archive is too large.
    #[error("decompressed chart is larger than the maximum file size {limit}")]
    ChartTooLarge {
        /// [`Limits::chart_size`](super::Limits::chart_size).
        limit: u64,
    },
    /// One decompressed file is too large.
    #[error("decompressed chart file {} is larger than the maximum file size {limit}", quote(name))]
    FileTooLarge {
        /// The entry's path.
        name: String,
        /// [`Limits::file_size`](super::Limits::file_size).
        limit: u64,
    },
    /// The archive holds no file.
    #[error("no files in chart archive")]
    EmptyArchive,
    /// A bound of ours is reached, see [`Limits`](super::Limits).
    #[error("chart exceeds the limit of {limit} {what} at {place}")]
    Limit {
        /// What is counted.
        what: &'static str,
        /// The bound.
        limit: u64,
        /// File or chart at which it was reached.
        place: String,
    },
    /// A YAML file of the chart cannot be read.
    #[error("cannot load {file}")]
    Yaml {
        /// Name of the file.
        file: &'static str,
        /// What is wrong with it.
        source: DecodeError,
    },
    /// There is no `Chart.yaml`.
    #[error("Chart.yaml file is missing")]
    NoChartYaml,
    /// `Chart.yaml` breaks a rule.
    #[error(transparent)]
    Validation(#[from] ValidationError),
    /// A directory in `charts/` is named like an archive.
    #[error("error unpacking subchart tar in {parent}: expected {expected}, got {actual}")]
    SubchartArchiveName {
        /// The chart that holds it.
        parent: String,
        /// The directory.
        expected: String,
        /// Its first file.
        actual: String,
    },
    /// A subchart cannot be loaded.
    #[error("error unpacking subchart {name} in {parent}")]
    Subchart {
        /// Name of the file or directory in `charts/`.
        name: String,
        /// The chart that holds it.
        parent: String,
        /// What is wrong with it.
        source: Box<Self>,
    },
}
