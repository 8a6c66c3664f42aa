//! What in a file cannot be read.

use std::io;

use crate::keyspace::Revision;
use crate::wire::WireError;

/// What in a file cannot be read, or cannot be trusted.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The file ends before its last page.
    #[error("the file is cut: its state has {needed} bytes, the file {found}")]
    Cut {
        /// Bytes of the pages in use.
        needed: u64,
        /// Bytes of the file.
        found: u64,
    },
    /// The file was changed since etcd wrote it.
    #[error("the SHA-256 at the end of the snapshot is not that of its content: it is damaged")]
    Digest,
    /// Bytes follow that are neither a digest nor pages.
    #[error("the SHA-256 at the end of the snapshot is cut: {found} of 32 bytes")]
    DigestCut {
        /// Bytes that are there.
        found: u64,
    },
    /// One of the two meta pages is damaged: the last state may be lost.
    #[error("meta page {number} is damaged: what was written last may be missing")]
    Meta {
        /// 0 or 1.
        number: u64,
    },
    /// The newest state cannot be read at all, the one before it can.
    #[error("the state of transaction {newest} cannot be read, that of {used} is used")]
    OlderState {
        /// The newest transaction.
        newest: u64,
        /// The one that is read.
        used: u64,
        /// What is wrong with the newest.
        source: Box<Self>,
    },
    /// A page and what hangs below it is lost.
    #[error("page {page}: {damage}")]
    Page {
        /// The page's number.
        page: u64,
        /// What is wrong.
        damage: Damage,
    },
    /// An entry of a page is lost.
    #[error("page {page}, element {index}: {damage}")]
    Element {
        /// The page's number.
        page: u64,
        /// The element's number from 0.
        index: usize,
        /// What is wrong.
        damage: Damage,
    },
    /// A bucket that every etcd has is missing.
    #[error("there is no bucket {name}")]
    NoBucket {
        /// The bucket.
        name: &'static str,
    },
    /// Changes that etcd made and that are not there: it leaves no number out.
    #[error("revisions {first} to {last} are missing")]
    Gap {
        /// The first one.
        first: i64,
        /// The last one.
        last: i64,
    },
    /// There are more of these than are told one by one.
    #[error("{count} more places cannot be read")]
    More {
        /// How many.
        count: usize,
    },
    /// The file cannot be read.
    #[error("cannot be read at byte {offset}")]
    Io {
        /// The place in the file.
        offset: u64,
        /// What the operating system says.
        source: io::Error,
    },
}

/// What is wrong with a page or one of its elements.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// The file has no such page.
    #[error("is not one of the file's {pages} pages")]
    Range {
        /// Pages of the file.
        pages: u64,
    },
    /// A page hangs in two places, or below itself.
    #[error("is used twice")]
    Twice,
    /// The page says that it is another one.
    #[error("says that it is page {found}")]
    Number {
        /// The number in its head.
        found: u64,
    },
    /// The page is neither a branch nor a leaf.
    #[error("is no page of a tree (flags 0x{flags:02x})")]
    Kind {
        /// The flags in its head.
        flags: u16,
    },
    /// The page goes on behind the end of the file.
    #[error("goes on for {overflow} more pages, the file has {pages}")]
    Overflow {
        /// Pages that follow it.
        overflow: u32,
        /// Pages of the file.
        pages: u64,
    },
    /// More elements than have room.
    #[error("says that it has {count} elements")]
    Count {
        /// The number in its head.
        count: u16,
    },
    /// Between elements and the first key is room, or none.
    #[error("may not have the {count} elements that it says")]
    Gap {
        /// The number in its head.
        count: u16,
    },
    /// The tree is deeper than any.
    #[error("is deeper than {limit} pages")]
    Depth {
        /// Pages above it.
        limit: usize,
    },
    /// A key or a value lies outside of its page.
    #[error("{part} of {size} bytes at byte {at} is outside of the page")]
    Outside {
        /// Which of them.
        part: ElementPart,
        /// The place in the page.
        at: u64,
        /// Its size.
        size: u64,
    },
    /// A key or a value is larger than allowed.
    #[error("{part} has {size} bytes, more than {limit}")]
    TooLarge {
        /// Which of them.
        part: ElementPart,
        /// Its size.
        size: u64,
        /// Bytes allowed.
        limit: u64,
    },
    /// Keys and values of a page have more bytes than the page.
    #[error("its elements overlap")]
    Overlap,
    /// Keys are not in order, or not where the tree looks for them.
    #[error("its key is out of order")]
    Order,
    /// A key of the key space that is no revision.
    #[error("its key is no revision")]
    NoRevision,
    /// The value is no `mvccpb.KeyValue`.
    #[error("its value is no key and value of etcd: {0}")]
    KeyValue(WireError),
    /// The value has no key.
    #[error("its value has no key")]
    NoKey,
    /// The value says another revision than the key.
    #[error("is of revision {}, and its value of {found}", .said.main)]
    OtherRevision {
        /// The key's.
        said: Revision,
        /// The value's.
        found: i64,
    },
    /// A change of a key whose change before is missing, or is another key's.
    #[error(
        "is change {version} of key {}, which does not follow from what is there before",
        key.escape_ascii()
    )]
    Chain {
        /// The key.
        key: Vec<u8>,
        /// Its version: changes since it was created.
        version: i64,
    },
    /// A deletion of a key that is not there.
    #[error("deletes key {}, which is not there", key.escape_ascii())]
    NothingToDelete {
        /// The key.
        key: Vec<u8>,
    },
    /// A bucket's head is cut.
    #[error("its bucket is cut")]
    Bucket,
    /// There are more keys than an index can hold.
    #[error("there is no more room for keys")]
    Full,
}

/// A part of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElementPart {
    /// The key.
    Key,
    /// The value.
    Value,
}

impl std::fmt::Display for ElementPart {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Self::Key => "its key",
            Self::Value => "its value",
        })
    }
}

/// Where faults go.
pub type Sink<'a> = dyn FnMut(Fault) + 'a;

/// Faults, the first of them one by one.
#[derive(Debug, Default)]
pub struct Faults {
    told: Vec<Fault>,
    more: usize,
}

impl Faults {
    /// Faults that are told one by one; a file that is all damage has millions.
    const TOLD: usize = 100;

    /// Takes one.
    pub fn push(&mut self, fault: Fault) {
        if self.told.len() < Self::TOLD {
            self.told.push(fault);
        } else {
            self.more += 1;
        }
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.told.is_empty()
    }

    /// All that are told, in the order of the file's tree, then how many more there are.
    pub fn into_told(self) -> Vec<Fault> {
        let mut told = self.told;
        if self.more > 0 {
            told.push(Fault::More { count: self.more });
        }
        told
    }
}
