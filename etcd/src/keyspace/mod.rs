//! etcd's key space in its buckets (`server/storage/mvcc`).
//!
//! ```text
//! bucket key:   revision (8 bytes │ '_' │ 8 bytes) ['t' for a deletion] ─► mvccpb.KeyValue
//! bucket meta:  finishedCompactRev, scheduledCompactRev ─► revision
//! ```
//!
//! A key's value at a revision is what the greatest revision up to it says. What was compacted is
//! gone: of older revisions, only each key's last one is left.

mod index;
mod record;

use crate::bolt::{self, Database, Element, OpenError};
use crate::fault::{Damage, Fault, Faults, Sink};
use crate::file::{Source, digest_is_right};
use crate::storage::ENCRYPTED;
pub use index::{Entry, Index};
use record::Head;
pub use record::{KeyValue, Revision};

/// Bytes of a value; etcd takes requests of 1.5 MiB unless told otherwise.
const VALUE_LIMIT: u64 = 64 << 20;
/// Bytes of a value in which its key and numbers are looked for, at first.
const HEAD: u64 = 2048;
/// Bytes of values in the small buckets.
const SMALL: u64 = 64 << 10;

/// Whether a file is one that [`Snapshot::open`] should be asked about, by its content.
pub fn is_snapshot(source: &dyn Source) -> bool {
    bolt::is_database(source)
}

/// An open snapshot or database file.
pub struct Snapshot {
    database: Database,
    compacted: i64,
    faults: Faults,
}

/// One change of a key: what [`Snapshot::history`] finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The change, its place and its numbers.
    pub entry: Entry,
    /// Whether the key was deleted.
    pub is_deleted: bool,
}

/// What a file holds in all, older revisions among it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Changes.
    pub revisions: u64,
    /// Deletions among them.
    pub deletions: u64,
    /// Bytes of their values.
    pub bytes: u64,
}

/// A revision that the file does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RevisionError {
    /// Older than what is left (`ErrCompacted`).
    #[error("revision {asked} was compacted: the oldest that can be read is {oldest}")]
    Compacted {
        /// What was asked for.
        asked: i64,
        /// The oldest one.
        oldest: i64,
    },
    /// Newer than the file (`ErrFutureRev`).
    #[error("revision {asked} is not there yet: the newest in the file is {newest}")]
    Future {
        /// What was asked for.
        asked: i64,
        /// The newest one.
        newest: i64,
    },
}

/// Takes a change; answers with what is wrong with it, and whether to go on.
type Visitor<'a> = dyn FnMut(&Entry, &Head<'_>, &Element<'_>) -> (Option<Fault>, bool) + 'a;

impl Snapshot {
    /// Opens a file. Only its meta pages and the page of its buckets are read.
    ///
    /// # Errors
    /// When nothing of it can be read; all other damage is told by [`Self::check`] and by what
    /// reads on.
    pub fn open(source: Box<dyn Source>) -> Result<Self, OpenError> {
        let mut database = Database::open(source)?;
        let mut faults = database.take_faults();
        let compacted = compacted(&database, &mut faults);
        Ok(Self { database, compacted, faults })
    }

    /// Tells what is wrong with the file as a whole, and compares its content with the SHA-256 at
    /// its end, where there is one, which reads all of it. Damage of the first kind is told once.
    pub fn check(&mut self, faults: &mut Sink<'_>) {
        let mut is_cut = false;
        for fault in std::mem::take(&mut self.faults).into_told() {
            is_cut |= matches!(fault, Fault::Cut { .. });
            faults(fault);
        }
        // The last bytes of a file that was cut are no digest.
        if is_cut || !self.has_digest() {
            return;
        }
        match digest_is_right(self.database.source()) {
            Ok(true) => {}
            Ok(false) => faults(Fault::Digest),
            Err(source) => faults(Fault::Io { offset: 0, source }),
        }
    }

    /// Whether the file ends with a digest: a snapshot has one, a copied database has none.
    pub fn has_digest(&self) -> bool {
        self.database.has_digest()
    }

    /// Bytes of the file.
    pub fn size(&self) -> u64 {
        self.database.source().size()
    }

    /// Bytes of a page.
    pub const fn page_size(&self) -> u64 {
        self.database.meta().page_size
    }

    /// The transaction of the state that is read.
    pub const fn transaction(&self) -> u64 {
        self.database.meta().transaction
    }

    /// The names of etcd's buckets, in order.
    pub fn buckets(&self) -> Vec<String> {
        self.database
            .bucket_names()
            .map(|name| String::from_utf8_lossy(name).into_owned())
            .collect()
    }

    /// The version of etcd's storage, which 3.6 and later write.
    pub fn storage_version(&self) -> Option<String> {
        let value = self.small("meta", b"storageVersion")?;
        Some(String::from_utf8_lossy(&value).into_owned())
    }

    /// The version of etcd's cluster.
    pub fn cluster_version(&self) -> Option<String> {
        let value = self.small("cluster", b"clusterVersion")?;
        Some(String::from_utf8_lossy(&value).into_owned())
    }

    /// The revision up to which changes were compacted; 0 when none were.
    pub const fn compacted(&self) -> i64 {
        self.compacted
    }

    fn small(&self, bucket: &str, key: &[u8]) -> Option<Vec<u8>> {
        small(&self.database, bucket, key, &mut |_| {})
    }

    /// Finds each key's last change, up to a revision or in all, by a walk through the whole tree.
    ///
    /// # Errors
    /// When the revision is not in the file.
    pub fn index(
        &self,
        at_revision: Option<i64>,
        faults: &mut Sink<'_>,
    ) -> Result<Index, RevisionError> {
        if let Some(asked) = at_revision
            && asked < self.compacted.max(1)
        {
            return Err(RevisionError::Compacted { asked, oldest: self.compacted.max(1) });
        }
        let mut index = index::Builder::default();
        // An etcd begins at revision 1, before anything is written.
        let mut newest = self.compacted.max(1);
        let mut gaps = Faults::default();
        self.changes(faults, &mut |change, head, element| {
            let main = change.revision.main;
            // Compacted revisions may be gone, others are not.
            if main > newest.saturating_add(1) {
                gaps.push(Fault::Gap { first: newest + 1, last: main - 1 });
            }
            newest = newest.max(main);
            if at_revision.is_some_and(|last| main > last) {
                return (None, false);
            }
            let damage = index.push(change, head, self.compacted);
            (damage.map(|damage| element.fault(damage)), true)
        });
        gaps.into_told().into_iter().for_each(faults);
        match at_revision {
            Some(asked) if asked > newest => Err(RevisionError::Future { asked, newest }),
            _ => Ok(index.finish(at_revision.unwrap_or(newest), self.compacted)),
        }
    }

    /// All changes of a key that the file holds, oldest first, deletions among them.
    pub fn history(&self, key: &[u8], faults: &mut Sink<'_>) -> Vec<Change> {
        let mut found = Vec::new();
        self.changes(faults, &mut |entry, head, _| {
            if head.key == key {
                found.push(Change { entry: *entry, is_deleted: entry.is_deleted });
            }
            (None, true)
        });
        found
    }

    /// The change of a key that its entry is about.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn value(&self, entry: &Entry) -> Result<KeyValue, Fault> {
        let Some(bucket) = self.database.bucket("key") else {
            return Err(Fault::NoBucket { name: "key" });
        };
        self.database.element(bucket, entry.page, entry.element as usize, |element| {
            let value = element.value(VALUE_LIMIT)?;
            KeyValue::read(&value).map_err(|error| element.fault(Damage::KeyValue(error)))
        })
    }

    /// Goes through all changes, oldest first.
    fn changes(&self, faults: &mut Sink<'_>, visit: &mut Visitor<'_>) {
        let Some(bucket) = self.database.bucket("key") else {
            return faults(Fault::NoBucket { name: "key" });
        };
        let mut found = Faults::default();
        self.database.walk(bucket, faults, &mut |element| {
            let (fault, go_on) = match change(element, visit) {
                Ok(answer) => answer,
                Err(fault) => (Some(fault), true),
            };
            if let Some(fault) = fault {
                found.push(fault);
            }
            go_on
        });
        for fault in found.into_told() {
            faults(fault);
        }
    }
}

/// Reads the head of a change and hands it on.
fn change(element: &Element<'_>, visit: &mut Visitor<'_>) -> Result<(Option<Fault>, bool), Fault> {
    let Some((revision, is_deleted)) = Revision::read(element.key()) else {
        return Err(element.fault(Damage::NoRevision));
    };
    let broken = |error| element.fault(Damage::KeyValue(error));
    let size = element.value_size();
    let mut bytes = element.value_head(HEAD)?;
    let mut head = Head::read(&bytes, size).map_err(broken)?;
    if head.is_none() {
        bytes = element.value(VALUE_LIMIT)?;
        head = Head::read(&bytes, size).map_err(broken)?;
    }
    let Some(head) = head.filter(|head| !head.key.is_empty()) else {
        return Err(element.fault(Damage::NoKey));
    };
    // A deletion says the key alone.
    if !is_deleted && head.mod_revision != revision.main {
        let damage = Damage::OtherRevision { said: revision, found: head.mod_revision };
        return Err(element.fault(damage));
    }
    let (page, number) = element.place();
    let entry = Entry {
        revision,
        created: head.create_revision,
        version: head.version,
        size: head.value_size,
        page,
        element: number as u32,
        is_deleted,
        is_encrypted: head.value_start.starts_with(ENCRYPTED),
    };
    Ok(visit(&entry, &head, element))
}

/// The value of a key in one of the small buckets.
fn small(database: &Database, bucket: &str, key: &[u8], faults: &mut Sink<'_>) -> Option<Vec<u8>> {
    let bucket = database.bucket(bucket)?;
    let mut found = None;
    let mut broken = None;
    database.walk(bucket, faults, &mut |element| {
        if element.key() != key {
            return true;
        }
        match element.value(SMALL) {
            Ok(value) => found = Some(value.into_owned()),
            Err(fault) => broken = Some(fault),
        }
        false
    });
    if let Some(fault) = broken {
        faults(fault);
    }
    found
}

/// The revision that etcd would not go behind: `restore` in `mvcc/kvstore.go` goes on with a
/// compaction that was scheduled and not finished, of which some may be done.
fn compacted(database: &Database, faults: &mut Faults) -> i64 {
    let mut revision = |key| {
        let value = small(database, "meta", key, &mut |fault| faults.push(fault));
        value.and_then(|value| Revision::read(&value)).map_or(0, |(revision, _)| revision.main)
    };
    revision(b"finishedCompactRev").max(revision(b"scheduledCompactRev"))
}
