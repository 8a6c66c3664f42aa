//! Records in memory (`driver/memory.go`), in one namespace.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Driver, Entry, Labels, StorageError, StorageReply, Write, has_labels};
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

    fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    fn entry<'a>(&'a self, key: &'a str) -> StorageReply<'a, Option<Entry>> {
        Box::pin(async move {
            check(key)?;
            Ok(self.records().get_key_value(key).map(entry))
        })
    }

    fn each<'a>(
        &'a self,
        wanted: &'a Labels,
        visit: &'a mut (dyn FnMut(Entry) + Send),
    ) -> StorageReply<'a, ()> {
        Box::pin(async move {
            let records = self.records();
            let chosen = records.iter().filter(|(_, (_, labels))| has_labels(labels, wanted));
            chosen.map(entry).for_each(visit);
            Ok(())
        })
    }

    fn write<'a>(
        &'a self,
        key: &'a str,
        record: &'a Record,
        labels: Labels,
        write: Write,
    ) -> StorageReply<'a, ()> {
        Box::pin(async move {
            let mut records = self.records();
            match (write, records.contains_key(key)) {
                (Write::New, true) => return Err(StorageError::Exists),
                (Write::Replace, false) => return Err(StorageError::NotFound),
                _ => {}
            }
            records.insert(key.to_owned(), (record.clone(), labels));
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

fn entry((key, (record, labels)): (&String, &(Record, Labels))) -> Entry {
    Entry { key: key.clone(), labels: labels.clone(), record: Ok(record.clone()) }
}
