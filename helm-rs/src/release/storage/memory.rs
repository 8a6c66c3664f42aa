//! Records in memory (`driver/memory.go`), in one namespace.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{
    Driver, Entry, Labels, StorageError, StorageReply, Stored, has_labels, labels_of,
    without_system,
};
use crate::cluster::Clock;
use crate::release::Record;

/// Records that live as long as the driver.
pub struct MemoryDriver {
    clock: Arc<dyn Clock>,
    records: Mutex<BTreeMap<String, (Record, Labels)>>,
}

impl MemoryDriver {
    /// An empty store.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, records: Mutex::new(BTreeMap::new()) }
    }

    fn records(&self) -> MutexGuard<'_, BTreeMap<String, (Record, Labels)>> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A key is `sh.helm.release.v1.NAME.vREVISION` with no other `.v` in it.
fn check(key: &str) -> Result<(), StorageError> {
    let key = key.strip_prefix("sh.helm.release.v1.").unwrap_or(key);
    let mut parts = key.split(".v");
    let revision = parts.nth(1);
    match (revision, parts.next()) {
        (Some(revision), None) if revision.parse::<i64>().is_ok() => Ok(()),
        _ => Err(StorageError::InvalidKey),
    }
}

impl Driver for MemoryDriver {
    fn name(&self) -> &'static str {
        "Memory"
    }

    fn get<'a>(&'a self, key: &'a str) -> StorageReply<'a, Stored> {
        Box::pin(async move {
            check(key)?;
            let records = self.records();
            let (record, labels) = records.get(key).ok_or(StorageError::NotFound)?;
            Ok(Stored { record: record.clone(), labels: without_system(labels.clone()) })
        })
    }

    fn query<'a>(&'a self, wanted: &'a Labels) -> StorageReply<'a, Vec<Entry>> {
        Box::pin(async move {
            let records = self.records();
            let entry = |(key, (record, labels)): (&String, &(Record, Labels))| Entry {
                key: key.clone(),
                labels: labels.clone(),
                record: Ok(record.clone()),
            };
            let chosen = records.iter().filter(|(_, (_, labels))| has_labels(labels, wanted));
            Ok(chosen.map(entry).collect())
        })
    }

    fn create<'a>(
        &'a self,
        key: &'a str,
        record: &'a Record,
        labels: &'a Labels,
    ) -> StorageReply<'a, ()> {
        Box::pin(async move {
            let labels = labels_of(record, labels, ("createdAt", self.clock.now().as_second()))?;
            let mut records = self.records();
            if records.contains_key(key) {
                return Err(StorageError::Exists);
            }
            records.insert(key.to_owned(), (record.clone(), labels));
            Ok(())
        })
    }

    fn update<'a>(
        &'a self,
        key: &'a str,
        record: &'a Record,
        labels: &'a Labels,
    ) -> StorageReply<'a, ()> {
        Box::pin(async move {
            let labels = labels_of(record, labels, ("modifiedAt", self.clock.now().as_second()))?;
            let mut records = self.records();
            let slot = records.get_mut(key).ok_or(StorageError::NotFound)?;
            *slot = (record.clone(), labels);
            Ok(())
        })
    }

    fn delete<'a>(&'a self, key: &'a str) -> StorageReply<'a, ()> {
        Box::pin(async move {
            check(key)?;
            self.records().remove(key).map(drop).ok_or(StorageError::NotFound)
        })
    }
}
