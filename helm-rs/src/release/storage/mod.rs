//! Where records are kept (`pkg/storage`).
//!
//! ```text
//! actions ─► Storage (history, limits) ─► Driver ─┬─ Secrets, ConfigMaps ─► &dyn Cluster
//!                                                 ├─ memory
//!                                                 └─ files
//! ```

mod error;
mod files;
mod history;
mod memory;
mod objects;

use std::collections::BTreeMap;
use std::pin::Pin;

use super::codec::{decode_owned, encode_once, encode_twice, lay_by, take_up};
use super::{CodecError, CodecLimits, Record, Status};
use crate::cluster::Clock;

pub use error::{DecodeError, StorageError};
pub use files::FilesDriver;
pub use history::Storage;
pub use memory::MemoryDriver;
pub use objects::{ObjectDriver, ObjectKind};

/// Labels of a stored record.
pub type Labels = BTreeMap<String, String>;

/// What a call of a [`Driver`] returns.
pub type StorageReply<'a, T> = Pin<Box<dyn Future<Output = Result<T, StorageError>> + Send + 'a>>;

/// The labels that Helm sets itself; others are the user's (`driver/util.go`, `systemLabels`).
pub const SYSTEM_LABELS: [&str; 6] =
    ["name", "owner", "status", "version", "createdAt", "modifiedAt"];

/// A record as it is stored.
#[derive(Clone, Debug)]
pub struct Stored {
    /// The record.
    pub record: Record,
    /// The labels as Helm's driver hands them out: all of them from a list or query, the user's
    /// alone from a get. Written back, they are set anew.
    pub labels: Labels,
}

impl Stored {
    /// Whether the label tells this status, by which Helm's queries go.
    pub fn has_status(&self, status: &Status) -> bool {
        has_status(&self.labels, status)
    }
}

/// A stored record that is not looked at for a while: packed, as one of a large chart is two megabytes.
pub(crate) struct LaidBy {
    packed: Vec<u8>,
    labels: Labels,
}

impl Stored {
    pub(crate) fn lay_by(self) -> Result<LaidBy, StorageError> {
        let packed = lay_by(self.record.object());
        let packed = packed.map_err(|source| StorageError::Encode { source })?;
        Ok(LaidBy { packed, labels: self.labels })
    }
}

impl LaidBy {
    pub(crate) fn take_up(self, key: &str) -> Result<Stored, StorageError> {
        let failed = |source| StorageError::Decode { key: key.to_owned(), source };
        let json = take_up(&self.packed, CodecLimits::default());
        let record = json.map_err(DecodeError::from).and_then(record_of).map_err(failed)?;
        Ok(Stored { record, labels: self.labels })
    }
}

/// An entry of a list, which may not decode.
#[derive(Debug)]
pub struct Entry {
    /// The entry's name: `sh.helm.release.v1.NAME.vREVISION`.
    pub key: String,
    /// All its labels.
    pub labels: Labels,
    /// The record, or why there is none. Helm passes over such entries.
    pub record: Result<Record, DecodeError>,
}

impl Entry {
    /// The record as one that was asked for by its key, which must decode.
    fn stored(self, key: &str) -> Result<Stored, StorageError> {
        let record =
            self.record.map_err(|source| StorageError::Decode { key: key.to_owned(), source })?;
        Ok(Stored { record, labels: without_system(self.labels) })
    }
}

/// What is known of an entry whose record was not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The entry's name: `sh.helm.release.v1.NAME.vREVISION`.
    pub key: String,
    /// All its labels.
    pub labels: Labels,
}

impl Head {
    /// The revision, which is the end of the key and a label.
    pub fn revision(&self) -> Option<i64> {
        let label = self.labels.get("version").and_then(|version| version.parse().ok());
        label.or_else(|| self.key.rsplit_once(".v")?.1.parse().ok())
    }

    /// Whether the label tells this status, by which Helm's queries go.
    pub fn has_status(&self, status: &Status) -> bool {
        has_status(&self.labels, status)
    }
}

/// Whether a key must be free or taken before it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {
    /// It must be free.
    New,
    /// It must be taken.
    Replace,
}

/// A place for records (`pkg/storage/driver/driver.go`).
pub trait Driver: Send + Sync {
    /// Helm's name of the driver: `Secret`, `ConfigMap`, `Memory`; `File` is ours.
    fn name(&self) -> &'static str;

    /// What the labels' times come from.
    fn clock(&self) -> &dyn Clock;

    /// What is stored under a key, all labels with it.
    fn entry<'a>(&'a self, key: &'a str) -> StorageReply<'a, Option<Entry>>;

    /// Hands over all entries that have these labels, one by one in the store's order, so that
    /// not all need be held decoded.
    fn each<'a>(
        &'a self,
        labels: &'a Labels,
        visit: &'a mut (dyn FnMut(Entry) + Send),
    ) -> StorageReply<'a, ()>;

    /// Stores a record with exactly these labels.
    fn write<'a>(
        &'a self,
        key: &'a str,
        record: &'a Record,
        labels: Labels,
        write: Write,
    ) -> StorageReply<'a, ()>;

    /// Deletes a record that must be there.
    fn delete<'a>(&'a self, key: &'a str) -> StorageReply<'a, ()>;

    /// Reads one record.
    fn get<'a>(&'a self, key: &'a str) -> StorageReply<'a, Stored> {
        Box::pin(async move {
            let entry = self.entry(key).await?.ok_or(StorageError::NotFound)?;
            entry.stored(key)
        })
    }

    /// What [`Self::each`] hands over, at once.
    fn query<'a>(&'a self, labels: &'a Labels) -> StorageReply<'a, Vec<Entry>> {
        Box::pin(async move {
            let mut entries = Vec::new();
            self.each(labels, &mut |entry| entries.push(entry)).await?;
            Ok(entries)
        })
    }

    /// What [`Self::each`] hands over, without the records, which may then not decode.
    fn heads<'a>(&'a self, labels: &'a Labels) -> StorageReply<'a, Vec<Head>> {
        Box::pin(async move {
            let mut heads = Vec::new();
            let mut keep = |entry: Entry| heads.push(Head { key: entry.key, labels: entry.labels });
            self.each(labels, &mut keep).await?;
            Ok(heads)
        })
    }

    /// Stores a new record under a key that must be free.
    fn create<'a>(
        &'a self,
        key: &'a str,
        record: &'a Record,
        labels: &'a Labels,
    ) -> StorageReply<'a, ()> {
        Box::pin(async move {
            let labels = labels_of(record, labels, ("createdAt", self.clock().now().as_second()))?;
            self.write(key, record, labels, Write::New).await
        })
    }

    /// Replaces a record that must be there.
    fn update<'a>(
        &'a self,
        key: &'a str,
        record: &'a Record,
        labels: &'a Labels,
    ) -> StorageReply<'a, ()> {
        Box::pin(async move {
            let labels = labels_of(record, labels, ("modifiedAt", self.clock().now().as_second()))?;
            self.write(key, record, labels, Write::Replace).await
        })
    }
}

/// The key of a revision's record (`storage.go`, `makeKey`).
pub fn record_key(name: &str, revision: i64) -> String {
    format!("sh.helm.release.v1.{name}.v{revision}")
}

/// The labels under which a record is stored: the user's, then Helm's own
/// (`driver/secrets.go`, `newSecretsObject`). `stamp` is `createdAt` or `modifiedAt`.
fn labels_of(
    record: &Record,
    labels: &Labels,
    stamp: (&str, i64),
) -> Result<Labels, super::FieldError> {
    let mut all = labels.clone();
    // Helm sets the user's labels twice: a stamp among them wins over the new one.
    all.entry(stamp.0.to_owned()).or_insert_with(|| stamp.1.to_string());
    all.insert("name".to_owned(), record.name()?);
    all.insert("owner".to_owned(), "helm".to_owned());
    all.insert("status".to_owned(), record.info()?.status_text);
    all.insert("version".to_owned(), record.revision()?.to_string());
    Ok(all)
}

fn without_system(labels: Labels) -> Labels {
    labels.into_iter().filter(|(name, _)| !SYSTEM_LABELS.contains(&name.as_str())).collect()
}

fn has_labels(labels: &Labels, wanted: &Labels) -> bool {
    wanted.iter().all(|(name, value)| labels.get(name) == Some(value))
}

fn has_status(labels: &Labels, status: &Status) -> bool {
    labels.get("status").is_some_and(|label| label == status.as_str())
}

/// Reads a release string, which is let go as soon as it can be.
fn decode_record(release: Vec<u8>) -> Result<Record, DecodeError> {
    record_of(decode_owned(release, CodecLimits::default())?)
}

fn record_of(json: String) -> Result<Record, DecodeError> {
    Record::from_text(json).map_err(|error| DecodeError::from(CodecError::Json(error)))
}

/// The release string of a record, in a Secret's base64 if `in_secret`.
fn encode_record(record: &Record, in_secret: bool) -> Result<String, StorageError> {
    let encode = if in_secret { encode_twice } else { encode_once };
    encode(record.object()).map_err(|source| StorageError::Encode { source })
}
