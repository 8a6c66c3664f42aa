//! A cluster in a file: what it serves and what it holds, as it was at one moment.
//!
//! ```text
//! {"kind":"ClusterSnapshot","schemaVersion":1,…}      about: server, identity, resources
//! {"apiVersion":"v1","kind":"Namespace",…}            an object a line, as the server's JSON has it
//! …
//! {"kind":"ClusterSnapshotEnd","objects":412,…}       how many there are, their digest, what is not
//! ```
//!
//! The last line is what tells a whole file from one that was cut. Files are read and written line
//! by line: neither side holds more than one object. Gzip is recognised by its first bytes.

mod about;
mod read;
mod write;

pub use about::{About, End, Secrets};
pub use read::{Limits, SnapshotError, read};
pub use write::Writer;

/// The kind of the first line.
const HEAD: &str = "ClusterSnapshot";
/// The kind of the last line.
const END: &str = "ClusterSnapshotEnd";
/// The version of the form. Another one is another form: a reader of one does not guess at others.
const SCHEMA_VERSION: u64 = 1;

/// Whether a line is a snapshot's first or last one, and no object.
pub(crate) fn is_frame(kind: &str) -> bool {
    [HEAD, END].contains(&kind)
}

/// The digest of what comes before the last line, in hexadecimal.
fn hexadecimal(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests;
