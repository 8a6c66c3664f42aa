//! Charts: the package as loaded from a directory or an archive.
//!
//! [`load`] reads a path, [`load_archive`] bytes, [`load_files`] a list of named files; all give a
//! [`Chart`], plain data that can be shared between threads. What Helm prints to its log on the
//! way is collected as [`Warning`]s. [`Limits`] bounds what a hostile archive can cost.

mod archive;
mod decode;
mod directory;
pub mod encode;
mod error;
mod gzip;
mod ignore;
mod limits;
mod load;
mod metadata;
mod model;
mod pack;
mod sniff;
mod tar;

pub use archive::{ensure_archive, load_archive, read_archive};
pub use decode::{
    DecodeError, METADATA, METADATA_FIELDS, Struct, Target, TypeError, decode_json_target,
    decode_lock, decode_metadata, decode_target, decode_target_strict, metadata_fields,
};
pub use directory::{load, load_directory, read_directory};
pub use error::LoadError;
pub use ignore::{IgnoreError, Rules as IgnoreRules};
pub use limits::Limits;
pub use load::{BufferedFile, load_files};
pub use metadata::{Dependency, ImportValues, Lock, Maintainer, Metadata, ValidationError};
pub use model::{Chart, ChartPath, Crd, File};
pub use pack::pack;

/// One line that Helm would write to its log, in the order in which Helm writes them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// The place in Helm's source that real Helm prints before the text, such as
    /// `coalesce.go:298`.
    pub origin: &'static str,
    /// The text, without the place.
    pub message: String,
}

impl Warning {
    pub(crate) fn new(origin: &'static str, message: impl Into<String>) -> Self {
        Self { origin, message: message.into() }
    }
}

impl std::fmt::Display for Warning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.origin, self.message)
    }
}
