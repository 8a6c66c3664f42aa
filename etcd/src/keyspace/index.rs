//! The last change of every key.
//!
//! Keys stand one behind the other in one text, and entries point there: about 60 bytes a key
//! besides the key itself, and 24 more while the index is built.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};

use super::record::{Head, Revision};
use crate::fault::Damage;

/// A change of a key, and where in the file its value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The change.
    pub revision: Revision,
    /// The revision that created the key; 0 for a deletion.
    pub created: i64,
    /// Changes since the key was created; 0 for a deletion.
    pub version: i64,
    /// Bytes of the value.
    pub size: u64,
    /// Whether the key was deleted by it.
    pub is_deleted: bool,
    /// Whether the value says that it is encrypted.
    pub is_encrypted: bool,
    pub(crate) page: u64,
    pub(crate) element: u32,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    /// Where the key begins, and its size.
    key: (u32, u32),
    /// The slot with the same hash that is to be looked at next, and 1.
    next: u32,
    entry: Entry,
}

/// The last change of every key, ordered by key.
#[derive(Debug)]
pub struct Index {
    keys: Vec<u8>,
    slots: Vec<Slot>,
    totals: super::Totals,
    revision: i64,
    compacted: i64,
}

#[derive(Default)]
pub(super) struct Builder {
    keys: Vec<u8>,
    slots: Vec<Slot>,
    /// Hash of a key to the slot that was made last for it. The hasher has no random seed, so
    /// that a file always costs the same; keys that collide must collide in all 64 bits.
    by_hash: HashMap<u64, u32, BuildHasherDefault<DefaultHasher>>,
    totals: super::Totals,
}

impl Builder {
    /// Takes a change that is newer than all before, and holds it against the key's change before.
    /// What is wrong is answered, and the change is taken all the same, but where there is no more
    /// room. Up to `compacted` changes may be gone.
    pub(super) fn push(
        &mut self,
        entry: &Entry,
        head: &Head<'_>,
        compacted: i64,
    ) -> Option<Damage> {
        self.totals.revisions += 1;
        self.totals.deletions += u64::from(entry.is_deleted);
        self.totals.bytes += entry.size;
        let hash = self.by_hash.hasher().hash_one(head.key);
        let first = self.by_hash.get(&hash).copied();
        let mut next = first;
        while let Some(slot) = next.and_then(|at| self.slots.get_mut(at as usize)) {
            if key_of(&self.keys, slot.key) == head.key {
                let before = std::mem::replace(&mut slot.entry, *entry);
                return follows(Some(&before), entry, head, compacted);
            }
            next = slot.next.checked_sub(1);
        }
        let (Ok(start), Ok(size), Ok(number)) = (
            u32::try_from(self.keys.len()),
            u32::try_from(head.key.len()),
            u32::try_from(self.slots.len()),
        ) else {
            return Some(Damage::Full);
        };
        self.keys.extend_from_slice(head.key);
        let next = first.map_or(0, |first| first + 1);
        self.slots.push(Slot { key: (start, size), next, entry: *entry });
        self.by_hash.insert(hash, number);
        follows(None, entry, head, compacted)
    }

    /// Puts the keys in order.
    pub(super) fn finish(self, revision: i64, compacted: i64) -> Index {
        let Self { keys, mut slots, by_hash, totals } = self;
        drop(by_hash);
        slots.sort_unstable_by(|a, b| key_of(&keys, a.key).cmp(key_of(&keys, b.key)));
        Index { keys, slots, totals, revision, compacted }
    }
}

/// What is wrong with a change after the one before of the same key (`server/storage/mvcc`, `put`
/// and `delete` in `kvstore_txn.go`): a key's versions count from its creation without a gap, and
/// what is deleted was there. A compaction leaves each key's last change, if it is no deletion.
fn follows(
    before: Option<&Entry>,
    entry: &Entry,
    head: &Head<'_>,
    compacted: i64,
) -> Option<Damage> {
    let chain = || Some(Damage::Chain { key: head.key.to_vec(), version: entry.version });
    let main = entry.revision.main;
    let live = before.filter(|before| !before.is_deleted);
    if entry.is_deleted {
        let is_lost = live.is_none() && main > compacted;
        return is_lost.then(|| Damage::NothingToDelete { key: head.key.to_vec() });
    }
    match (entry.version, live) {
        // The deletion in between may be compacted, where the one before could have been as well.
        (1, Some(live)) if live.revision.main > compacted => chain(),
        (1, _) if entry.created != main => chain(),
        (1, _) => None,
        (_, None) if main > compacted => chain(),
        (_, None) => None,
        (version, Some(live)) => {
            let is_next = version == live.version.saturating_add(1);
            let is_later = version > live.version && live.revision.main <= compacted;
            let fits = live.created == entry.created && (is_next || is_later && main <= compacted);
            if fits { None } else { chain() }
        }
    }
}

fn key_of(keys: &[u8], (start, size): (u32, u32)) -> &[u8] {
    let start = start as usize;
    keys.get(start..start + size as usize).unwrap_or_default()
}

impl Index {
    /// The keys that are there, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &Entry)> {
        self.iter_all().filter(|(_, entry)| !entry.is_deleted)
    }

    /// All keys, deleted ones too, in order.
    pub fn iter_all(&self) -> impl Iterator<Item = (&[u8], &Entry)> {
        self.slots.iter().map(|slot| (key_of(&self.keys, slot.key), &slot.entry))
    }

    /// A key's last change; of a deleted key its deletion.
    pub fn get(&self, key: &[u8]) -> Option<&Entry> {
        let found = self.slots.binary_search_by(|slot| key_of(&self.keys, slot.key).cmp(key));
        Some(&self.slots.get(found.ok()?)?.entry)
    }

    /// What the file holds up to the index's revision.
    pub const fn totals(&self) -> super::Totals {
        self.totals
    }

    /// The revision that the index is of.
    pub const fn revision(&self) -> i64 {
        self.revision
    }

    /// The revision up to which changes were compacted.
    pub const fn compacted(&self) -> i64 {
        self.compacted
    }
}
