//! Records out of whatever people have: dumps of `kubectl get`, backups, bare release strings.
//!
//! ```text
//! path ─ walk ─► stream ─ sniff, unpack ─► text ─ split ─► one object ─► StoredRecord
//! ```
//!
//! A dump is read as a stream: what is held at a time is one object per worker and a short
//! queue, so its size does not matter. Objects that are no release records are counted.

mod object;
mod protobuf;
mod scan;
mod sniff;
mod split_json;
mod split_yaml;
mod walk;

pub use object::{ObjectError, Storage, StoredRecord};
pub use protobuf::ProtobufError;
pub use scan::{Fault, FaultKind, Scan, scan};
pub use walk::Input;

/// Bounds on what inputs may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InputLimits {
    /// Bytes of one object's text (64 MiB); a larger one is reported and passed over.
    pub object: usize,
    /// Bytes of one file after decompression (64 GiB).
    pub stream: u64,
    /// Files in one folder tree or archive (1,000,000).
    pub files: usize,
}

impl Default for InputLimits {
    fn default() -> Self {
        Self { object: 64 << 20, stream: 64 << 30, files: 1_000_000 }
    }
}

/// How an object's text is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Json,
    Yaml,
    Protobuf,
    /// A release string alone.
    Bare,
}

/// The text of one object, cut out of its stream.
#[derive(Debug)]
struct Chunk {
    /// File and, in a file of many, the object's number from 1.
    place: String,
    form: Form,
    /// What the items of the list are, where only the list says it (`kubectl get --raw`).
    list_of: Option<Storage>,
    text: Vec<u8>,
}

/// What a splitter finds.
enum Piece {
    Chunk(Chunk),
    Fault(Fault),
    /// A file that holds no objects.
    Other,
}
