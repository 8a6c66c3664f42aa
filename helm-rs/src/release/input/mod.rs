//! Records out of whatever people have: dumps of `kubectl get`, backups, bare release strings,
//! etcd's own files.
//!
//! ```text
//! path ─ walk ─► stream ─ sniff, unpack ─► text ─ split ─► one object ─► StoredRecord
//! ```
//!
//! A dump is read as a stream: what is held at a time is one object per worker and a short
//! queue, so its size does not matter. Objects that are no release records are counted.
//!
//! A text that was edited loses nothing silently: what cannot stand where it does, and whatever
//! holds parts of a record without being one, is a fault (`tests/bad_records/edits.rs`).
//!
//! A dump that was cut off is a fault wherever a record may be lost by it: JSON by its brackets,
//! YAML by what an object or a list must still say (`kubectl` sorts keys: a list's `kind` stands
//! behind its items, a Secret's behind its data).

mod etcd;
mod hidden;
mod object;
mod parts;
mod protobuf;
mod scan;
mod sniff;
mod split_json;
mod split_yaml;
mod walk;

pub use crate::protobuf::ProtobufError;
pub use etcd::{EtcdError, EtcdOptions};
pub use hidden::Hidden;
pub use object::{ObjectError, Storage, StoredRecord};
pub use scan::{Fault, FaultKind, Scan, scan, scan_with};
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
    /// Values in one object (1,000,000), a list in a layout that is not cut up among them.
    pub values: usize,
}

impl Default for InputLimits {
    fn default() -> Self {
        Self { object: 64 << 20, stream: 64 << 30, files: 1_000_000, values: 1_000_000 }
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
    end: End,
    text: Vec<u8>,
}

/// What follows an object in its stream, as far as that says whether the object is whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// Something else, or the form itself says where the object ends.
    Told,
    /// The stream ends, on this line, and may have been cut there.
    Stream(usize),
    /// On this line a list ends that does not say what it is: it was cut.
    Cut(usize),
}

/// What a splitter finds.
enum Piece {
    Chunk(Chunk),
    Fault(Fault),
    /// A file that holds no objects.
    Other,
}
