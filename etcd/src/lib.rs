//! Reads what an etcd of a Kubernetes cluster left behind: a file of `etcdctl snapshot save` or
//! `talosctl etcd snapshot`, or a copied database. Nothing is written and no etcd is needed.
//!
//! ```text
//! file ─ pages ─ bolt tree ─ revisions ─► keys ─ decrypt ─ envelope ─► Kubernetes object
//!  │  file        bolt        keyspace             decrypt   storage
//!  └─ trailing SHA-256
//! ```
//!
//! The file is read a page at a time, at places ([`Source`]); it is not mapped into memory, which
//! Rust cannot do safely while others may change the file. What is kept is one entry per key.
//! Every number in the file is checked before it is used. What cannot be read is a [`Fault`] and
//! the rest is read on; nothing in a file makes this crate panic, loop or ask for unbounded
//! memory.
//!
//! ```no_run
//! use etcd_snapshot::{FileSource, Snapshot};
//!
//! let file = std::fs::File::open("snapshot.db")?;
//! let snapshot = Snapshot::open(Box::new(FileSource::new(file)?))?;
//! let index = snapshot.index(None, &mut |_| {})?;
//! for (key, entry) in index.iter() {
//!     println!("{} {}", String::from_utf8_lossy(key), entry.revision.main);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Start with [`Snapshot`]; [`storage`] makes objects of values, [`decrypt`] opens encrypted ones.

mod bolt;
pub mod decrypt;
mod fault;
mod file;
mod keyspace;
pub mod storage;
mod wire;

pub use bolt::OpenError;
pub use fault::{Damage, ElementPart, Fault, Faults, Sink};
pub use file::{FileSource, Source};
pub use keyspace::{
    Change, Entry, Index, KeyValue, Revision, RevisionError, Snapshot, Totals, is_snapshot,
};
