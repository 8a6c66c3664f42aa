//! Meta pages: which state of the tree counts (`bbolt/internal/common/meta.go`).
//!
//! ```text
//! 0 page: number 8 │ flags 2 │ count 2 │ overflow 4 │
//! 16 magic 4 │ version 4 │ page size 4 │ flags 4 │ root 8 │ sequence 8 │
//! 48 freelist 8 │ pages 8 │ transaction 8 │ FNV-1a of bytes 16 to 72, 8
//! ```

use super::super::file::Source;
use super::super::wire::array;

/// The first number of a meta page.
const MAGIC: u32 = 0xED0C_DAED;
/// The one version that there is.
const VERSION: u32 = 2;
/// Bytes of a meta page that count.
const SIZE: usize = 80;
/// Sizes that bbolt looks for (`getPageSizeFromSecondMeta` in `db.go`): 1 KiB to 16 MiB.
const PAGE_SIZES: std::ops::RangeInclusive<u32> = 10..=24;

/// What a meta page says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Meta {
    /// Bytes of a page.
    pub(crate) page_size: u64,
    /// The page of the bucket of buckets.
    pub(crate) root: u64,
    /// Pages in use: the high water mark.
    pub(crate) pages: u64,
    /// The transaction that wrote it.
    pub(crate) transaction: u64,
}

/// A meta page as it was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Good(Meta),
    /// It begins as one, and its checksum is wrong.
    Damaged,
    /// Of another version of bbolt.
    Version(u32),
    /// Something else stands there.
    Nothing,
}

/// The two meta pages, by number.
pub(crate) fn find(source: &dyn Source) -> [Found; 2] {
    let first = at(source, 0);
    if let Found::Good(meta) = first {
        return [first, at(source, meta.page_size)];
    }
    // The first one tells how large a page is; without it, the second is looked for.
    let places = PAGE_SIZES.map(|bits| 1u64 << bits);
    let mut second = Found::Nothing;
    for place in places {
        match at(source, place) {
            Found::Good(meta) if meta.page_size == place => return [first, Found::Good(meta)],
            Found::Good(_) | Found::Nothing => {}
            other => second = other,
        }
    }
    [first, second]
}

fn at(source: &dyn Source, offset: u64) -> Found {
    let mut bytes = [0; SIZE];
    if source.read_at(offset, &mut bytes).is_err() {
        return Found::Nothing;
    }
    read(&bytes)
}

fn read(bytes: &[u8; SIZE]) -> Found {
    let long = |at: usize| bytes.get(at..).and_then(array).map_or(0, u64::from_le_bytes);
    let short = |at: usize| bytes.get(at..).and_then(array).map_or(0, u32::from_le_bytes);
    if short(16) != MAGIC {
        return Found::Nothing;
    }
    if short(20) != VERSION {
        return Found::Version(short(20));
    }
    let page_size = short(24);
    let meta = Meta {
        page_size: u64::from(page_size),
        root: long(32),
        pages: long(56),
        transaction: long(64),
    };
    let fits = page_size.is_power_of_two()
        && PAGE_SIZES.contains(&page_size.trailing_zeros())
        && meta.root < meta.pages
        && meta.pages.checked_mul(meta.page_size).is_some();
    if fits && long(72) == fnv(bytes.get(16..72).unwrap_or_default()) {
        Found::Good(meta)
    } else {
        Found::Damaged
    }
}

/// FNV-1a with 64 bits.
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
