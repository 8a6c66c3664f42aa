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

use super::{CodecError, CodecLimits, Record, Status, decode, encode};

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
        self.labels.get("status").is_some_and(|label| label == status.as_str())
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

/// A place for records (`pkg/storage/driver/driver.go`).
pub trait Driver: Send + Sync {
    /// Helm's name of the driver: `Secret`, `ConfigMap`, `Memory`; `File` is ours.
    fn name(&self) -> &'static str;

    /// Reads one record.
    fn get<'a>(&'a self, key: &'a str) -> StorageReply<'a, Stored>;

    /// Lists all records that have these labels, in the store's order; none is an empty list.
    fn query<'a>(&'a self, labels: &'a Labels) -> StorageReply<'a, Vec<Entry>>;

    /// Hands over what [`Self::query`] lists, one by one, so that not all need be held decoded.
    fn each<'a>(
        &'a self,
        labels: &'a Labels,
        visit: &'a mut (dyn FnMut(Entry) + Send),
    ) -> StorageReply<'a, ()> {
        Box::pin(async move {
            self.query(labels).await?.into_iter().for_each(visit);
            Ok(())
        })
    }

    /// Stores a new record under a key that must be free.
    fn create<'a>(
        &'a self,
        key: &'a str,
        record: &'a Record,
        labels: &'a Labels,
    ) -> StorageReply<'a, ()>;

    /// Replaces a record that must be there.
    fn update<'a>(
        &'a self,
        key: &'a str,
        record: &'a Record,
        labels: &'a Labels,
    ) -> StorageReply<'a, ()>;

    /// Deletes a record that must be there.
    fn delete<'a>(&'a self, key: &'a str) -> StorageReply<'a, ()>;
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

fn decode_record(release: &[u8]) -> Result<Record, DecodeError> {
    let json = decode(release, CodecLimits::default())?;
    Record::from_json(&json).map_err(|error| DecodeError::from(CodecError::Json(error)))
}

fn encode_record(record: &Record) -> Result<String, StorageError> {
    encode(&record.to_json()).map_err(|source| StorageError::Encode { source })
}
