//! Pages: a head, elements, and behind them keys and values (`bbolt/internal/common/page.go`).
//!
//! ```text
//! 0 number 8 │ flags 2 │ count 2 │ overflow 4 │
//! 16 branch: position 4 │ key size 4 │ page 8        a leaf: flags 4 │ position 4 │ key 4 │ value 4
//! ```
//!
//! A position counts from its element on. A page that is too small for its elements goes on in
//! the next ones; all of them together are a run.

use std::borrow::Cow;

use super::{Database, outside};
use crate::fault::{Damage, ElementPart, Fault};
use crate::wire::array;

/// Bytes of a page's head, and of an element.
const HEAD: u64 = 16;
/// Bytes of a run that are read at once; of longer ones what is asked for.
const WHOLE: u64 = 64 << 10;
/// Keys of bbolt have up to 32 KiB (`MaxKeySize`).
const KEY_LIMIT: u64 = 32 << 10;

const BRANCH: u16 = 1;
const LEAF: u16 = 2;

/// A page with those that it goes on in, and the first bytes of it.
pub(super) struct Run<'a> {
    database: &'a Database,
    /// The first page's number; 0 for a bucket within an element.
    pub(super) page: u64,
    pub(super) is_branch: bool,
    pub(super) count: usize,
    pub(super) overflow: u64,
    size: u64,
    head: &'a [u8],
    is_inline: bool,
}

/// Where an element's key and value lie in their run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Places {
    /// Flags of an element of a leaf.
    pub(super) flags: u32,
    /// The page below an element of a branch.
    pub(super) child: u64,
    pub(super) key: (u64, u64),
    pub(super) value: (u64, u64),
}

impl<'a> Run<'a> {
    /// Reads a page's head and its elements into `buffer`.
    pub(super) fn load(
        database: &'a Database,
        page: u64,
        buffer: &'a mut Vec<u8>,
    ) -> Result<Self, Fault> {
        let pages = database.pages;
        let fault = |damage| Fault::Page { page, damage };
        // Pages 0 and 1 are meta pages.
        if page < 2 || page >= pages {
            return Err(fault(Damage::Range { pages }));
        }
        let page_size = database.meta.page_size;
        let offset = page * page_size;
        read(database, offset, page_size, buffer)?;
        let number = buffer.first_chunk().copied().map_or(0, u64::from_le_bytes);
        if number != page {
            return Err(fault(Damage::Number { found: number }));
        }
        let overflow = buffer.get(12..).and_then(array).map_or(0, u32::from_le_bytes);
        if u64::from(overflow) >= pages - page {
            return Err(fault(Damage::Overflow { overflow, pages }));
        }
        let size = (u64::from(overflow) + 1) * page_size;
        let count = buffer.get(10..).and_then(array).map_or(0, u16::from_le_bytes);
        let table = HEAD + u64::from(count) * HEAD;
        if table > size {
            return Err(fault(Damage::Count { count }));
        }
        // A long value alone on its page is read when somebody asks for it.
        let wanted = if count > 1 { size.min(WHOLE).max(table) } else { page_size };
        if wanted > page_size {
            read(database, offset, wanted, buffer)?;
        }
        let flags = buffer.get(8..).and_then(array).map_or(0, u16::from_le_bytes);
        let overflow = u64::from(overflow);
        let run = Self {
            database,
            page,
            is_branch: flags == BRANCH,
            count: usize::from(count),
            overflow,
            size,
            head: buffer,
            is_inline: false,
        };
        if flags == BRANCH || flags == LEAF { Ok(run) } else { Err(fault(Damage::Kind { flags })) }
    }

    /// The only page of a small bucket, which has no number.
    pub(super) fn inline(database: &'a Database, bytes: &'a [u8]) -> Result<Self, Fault> {
        let fault = |damage| Fault::Page { page: 0, damage };
        let flags = bytes.get(8..).and_then(array).map_or(0, u16::from_le_bytes);
        if flags != LEAF {
            return Err(fault(Damage::Kind { flags }));
        }
        let count = bytes.get(10..).and_then(array).map_or(0, u16::from_le_bytes);
        let size = bytes.len() as u64;
        if HEAD + u64::from(count) * HEAD > size {
            return Err(fault(Damage::Count { count }));
        }
        Ok(Self {
            database,
            page: 0,
            is_branch: false,
            count: usize::from(count),
            overflow: 0,
            size,
            head: bytes,
            is_inline: true,
        })
    }

    /// Bytes for elements, keys and values.
    pub(super) const fn size(&self) -> u64 {
        self.size
    }

    /// Where elements end and the first key begins.
    pub(super) const fn table(&self) -> u64 {
        HEAD + HEAD * self.count as u64
    }

    /// Pages that there are.
    pub(super) const fn pages(&self) -> u64 {
        self.database.pages
    }

    pub(super) fn fault(&self, index: usize, damage: Damage) -> Fault {
        Fault::Element { page: self.page, index, damage }
    }

    /// Where an element's parts lie; all of it within the run.
    pub(super) fn places(&self, index: usize) -> Result<Places, Fault> {
        let at = HEAD + HEAD * index as u64;
        let count = u16::try_from(self.count).unwrap_or(u16::MAX);
        let bytes = usize::try_from(at).ok().and_then(|at| self.head.get(at..)?.first_chunk());
        let (Some(bytes), true) = (bytes, index < self.count) else {
            return Err(self.fault(index, Damage::Count { count }));
        };
        let [a, b, c, d] = numbers(bytes);
        let places = if self.is_branch {
            let child = u64::from(c) | u64::from(d) << 32;
            Places { flags: 0, child, key: (at + u64::from(a), u64::from(b)), value: (0, 0) }
        } else {
            let key = (at + u64::from(b), u64::from(c));
            Places { flags: a, child: 0, key, value: (key.0 + key.1, u64::from(d)) }
        };
        for (part, (at, size)) in
            [(ElementPart::Key, places.key), (ElementPart::Value, places.value)]
        {
            if at + size > self.size {
                return Err(self.fault(index, outside(part, at, size)));
            }
        }
        if places.key.1 > KEY_LIMIT {
            let (size, limit) = (places.key.1, KEY_LIMIT);
            return Err(self.fault(index, Damage::TooLarge { part: ElementPart::Key, size, limit }));
        }
        Ok(places)
    }

    /// Bytes of the run, which must lie within it.
    pub(super) fn bytes(&self, (at, size): (u64, u64)) -> Result<Cow<'a, [u8]>, Fault> {
        let from = usize::try_from(at).unwrap_or(usize::MAX);
        let to = usize::try_from(at + size).unwrap_or(usize::MAX);
        if let Some(bytes) = self.head.get(from..to) {
            return Ok(Cow::Borrowed(bytes));
        }
        if self.is_inline {
            let damage = outside(ElementPart::Value, at, size);
            return Err(Fault::Page { page: self.page, damage });
        }
        let mut bytes = Vec::new();
        read(self.database, self.page * self.database.meta.page_size + at, size, &mut bytes)?;
        Ok(Cow::Owned(bytes))
    }
}

/// Four numbers of four bytes.
fn numbers(bytes: &[u8; 16]) -> [u32; 4] {
    let mut numbers = [0; 4];
    for (number, bytes) in numbers.iter_mut().zip(bytes.chunks_exact(4)) {
        *number = array(bytes).map_or(0, u32::from_le_bytes);
    }
    numbers
}

/// Reads bytes whose size was compared with the file's.
fn read(database: &Database, offset: u64, size: u64, buffer: &mut Vec<u8>) -> Result<(), Fault> {
    buffer.clear();
    buffer.resize(usize::try_from(size).unwrap_or_default(), 0);
    let read = database.source.read_at(offset, buffer);
    read.map_err(|source| Fault::Io { offset, source })
}
