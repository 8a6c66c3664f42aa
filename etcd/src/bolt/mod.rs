//! bbolt's file (`go.etcd.io/bbolt`): pages of a B+tree, copied on write, below one of two meta
//! pages.
//!
//! ```text
//! meta ─► root page ─► buckets by name ─► root page ─► branches ─► leaves: key, value
//! ```
//!
//! The freelist is not read: what the tree does not reach does not count.

mod meta;
mod page;
mod walk;

use crate::fault::{Damage, ElementPart, Fault, Faults, Sink};
use crate::file::{DIGEST, Source};
use crate::wire::array;
use meta::{Found, Meta};
use page::Run;
pub(crate) use walk::Element;

/// A bucket's flag in an element of a leaf (`BucketLeafFlag`).
const BUCKET: u32 = 1;
/// Bytes of a bucket's head: its root page and a sequence number (`InBucket`).
const BUCKET_HEAD: usize = 16;
/// Bytes of a bucket in its element; a larger one is a tree of its own, and etcd has few small.
const INLINE_LIMIT: u64 = 1 << 20;
/// Buckets that are looked at; etcd has twelve.
const MAX_BUCKETS: usize = 1000;

/// Buckets that every etcd makes beside that of its keys (`server/storage/schema/bucket.go`).
const OTHER_BUCKETS: [&str; 6] = ["meta", "lease", "members", "cluster", "auth", "alarm"];

/// A file that is not read at all.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is no meta page.
    #[error("is neither a snapshot nor a database of etcd")]
    NotDatabase,
    /// Another program's: whole, and with none of etcd's buckets.
    #[error("is a database of bbolt, and not etcd's: {}", buckets(.found))]
    NotEtcd {
        /// The buckets that it has instead.
        found: Vec<String>,
    },
    /// A version of bbolt that this crate does not know.
    #[error("is a database of version {version}, and 2 is known")]
    Version {
        /// The version.
        version: u32,
    },
    /// Both meta pages are damaged, so nothing tells where the tree begins.
    #[error("both meta pages are damaged")]
    NoMeta,
    /// The tree's root or the bucket of keys cannot be read, in neither of the two states.
    #[error("the keys cannot be read")]
    NoKeys(#[source] Fault),
}

/// The first few names, for people.
fn buckets(found: &[String]) -> String {
    const TOLD: usize = 5;
    let names = found.iter().take(TOLD).map(|name| format!("{name:?}"));
    let names = names.collect::<Vec<_>>().join(", ");
    match found.len() {
        0 => "it has no buckets".to_owned(),
        1..=TOLD => format!("its buckets are {names}"),
        more => format!("its buckets are {names} and {} more", more - TOLD),
    }
}

/// Whether a file begins as bbolt's do, be it damaged.
pub(crate) fn is_database(source: &dyn Source) -> bool {
    meta::find(source).iter().any(|found| *found != Found::Nothing)
}

/// An open file and the state of it that is read.
pub(crate) struct Database {
    source: Box<dyn Source>,
    meta: Meta,
    /// Pages that the file has and the state uses.
    pages: u64,
    buckets: Vec<Bucket>,
    /// What is wrong with the file as a whole.
    faults: Faults,
}

/// Where a bucket's tree begins.
#[derive(Clone, Debug)]
pub(crate) struct Bucket {
    name: Vec<u8>,
    root: Root,
}

#[derive(Clone, Debug)]
enum Root {
    Page(u64),
    /// A small bucket's only page, within its element.
    Inline(Vec<u8>),
}

impl Database {
    /// Opens a file and finds the buckets of its newest readable state.
    ///
    /// # Errors
    /// When no state can be read. Whatever else is wrong is in [`Self::take_faults`].
    pub(crate) fn open(source: Box<dyn Source>) -> Result<Self, OpenError> {
        let found = meta::find(&*source);
        let mut metas: Vec<Meta> = found.iter().filter_map(|found| good(*found)).collect();
        metas.sort_by_key(|meta| std::cmp::Reverse(meta.transaction));
        let Some(first) = metas.first().copied() else { return Err(unreadable(found)) };
        let mut database =
            Self { source, meta: first, pages: 0, buckets: Vec::new(), faults: Faults::default() };
        for (number, found) in found.iter().enumerate() {
            if good(*found).is_none() {
                database.faults.push(Fault::Meta { number: number as u64 });
            }
        }
        let mut newest = None;
        for meta in metas {
            match database.load(meta) {
                Ok(faults) => {
                    if let Some(source) = newest {
                        let source = Box::new(source);
                        let (newest, used) = (first.transaction, meta.transaction);
                        database.faults.push(Fault::OlderState { newest, used, source });
                    }
                    database.check_size();
                    for fault in faults.into_told() {
                        database.faults.push(fault);
                    }
                    return Ok(database);
                }
                Err(fault) => newest = newest.or(Some(fault)),
            }
        }
        match newest {
            Some(Fault::NoBucket { .. }) if database.is_foreign() => {
                let names = database.bucket_names().map(String::from_utf8_lossy);
                Err(OpenError::NotEtcd { found: names.map(Into::into).collect() })
            }
            fault => {
                let (needed, found) = (first.pages * first.page_size, database.source.size());
                let cut = (found < needed).then_some(Fault::Cut { needed, found });
                let fault = cut.or(fault).unwrap_or(Fault::NoBucket { name: "key" });
                Err(OpenError::NoKeys(fault))
            }
        }
    }

    /// Takes a state and reads its buckets; an error when it has no bucket of keys, or the page
    /// where that begins does not read.
    fn load(&mut self, meta: Meta) -> Result<Faults, Fault> {
        self.meta = meta;
        self.pages = meta.pages.min(self.source.size() / meta.page_size);
        let mut faults = Faults::default();
        let mut first = None;
        let mut buckets = Vec::new();
        self.walk_from(Root::Page(meta.root), &mut |fault| faults.push(fault), &mut |element| {
            if element.flags() & BUCKET != 0 && buckets.len() < MAX_BUCKETS {
                let bucket = element.value(INLINE_LIMIT).and_then(|value| {
                    bucket(element.key(), &value).ok_or_else(|| element.fault(Damage::Bucket))
                });
                match bucket {
                    Ok(bucket) => buckets.push(bucket),
                    Err(fault) => first = Some(fault),
                }
            }
            true
        });
        if let Some(fault) = first {
            faults.push(fault);
        }
        self.buckets = buckets;
        match self.bucket("key") {
            Some(Bucket { root: Root::Page(page), .. }) => {
                Run::load(self, *page, &mut Vec::new())?;
            }
            Some(_) => {}
            None => {
                let first = faults.into_told().into_iter().next();
                return Err(first.unwrap_or(Fault::NoBucket { name: "key" }));
            }
        }
        Ok(faults)
    }

    /// Whether nothing here is etcd's. A damaged name alone does not make it another program's.
    fn is_foreign(&self) -> bool {
        self.faults.is_empty() && !OTHER_BUCKETS.iter().any(|name| self.bucket(name).is_some())
    }

    fn check_size(&mut self) {
        let (needed, found) = (self.meta.pages * self.meta.page_size, self.source.size());
        if found < needed {
            self.faults.push(Fault::Cut { needed, found });
        } else if !self.has_digest() && (1..DIGEST).contains(&(found - needed)) {
            self.faults.push(Fault::DigestCut { found: found - needed });
        }
    }

    /// Whether a digest follows the pages: `hasChecksum` in etcd's `etcdutl/snapshot`.
    pub(crate) fn has_digest(&self) -> bool {
        self.source.size() % 512 == DIGEST
    }

    pub(crate) fn source(&self) -> &dyn Source {
        &*self.source
    }

    pub(crate) const fn meta(&self) -> &Meta {
        &self.meta
    }

    /// What is wrong with the file as a whole; told once.
    pub(crate) fn take_faults(&mut self) -> Faults {
        std::mem::take(&mut self.faults)
    }

    pub(crate) fn bucket(&self, name: &str) -> Option<&Bucket> {
        self.buckets.iter().find(|bucket| bucket.name == name.as_bytes())
    }

    /// The buckets' names.
    pub(crate) fn bucket_names(&self) -> impl Iterator<Item = &[u8]> {
        self.buckets.iter().map(|bucket| bucket.name.as_slice())
    }

    /// Visits the elements of a bucket in the order of keys until `visit` has enough.
    pub(crate) fn walk(
        &self,
        bucket: &Bucket,
        faults: &mut Sink<'_>,
        visit: &mut dyn FnMut(&Element<'_>) -> bool,
    ) {
        self.walk_from(bucket.root.clone(), faults, visit);
    }

    /// One element of a page that a walk came by; of a bucket within another page when `page` is 0.
    pub(crate) fn element<T>(
        &self,
        bucket: &Bucket,
        page: u64,
        index: usize,
        read: impl FnOnce(&Element<'_>) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let mut buffer = Vec::new();
        let run = match (&bucket.root, page) {
            (Root::Inline(bytes), 0) => Run::inline(self, bytes)?,
            _ => Run::load(self, page, &mut buffer)?,
        };
        read(&Element::of(&run, index)?)
    }
}

const fn good(found: Found) -> Option<Meta> {
    match found {
        Found::Good(meta) => Some(meta),
        _ => None,
    }
}

fn unreadable(found: [Found; 2]) -> OpenError {
    let version = found.iter().find_map(|found| match found {
        Found::Version(version) => Some(*version),
        _ => None,
    });
    match version {
        Some(version) => OpenError::Version { version },
        None if found.contains(&Found::Damaged) => OpenError::NoMeta,
        None => OpenError::NotDatabase,
    }
}

fn bucket(name: &[u8], value: &[u8]) -> Option<Bucket> {
    let (head, inline) = value.split_at_checked(BUCKET_HEAD)?;
    let root = match array(head).map(u64::from_le_bytes)? {
        0 => Root::Inline(inline.to_vec()),
        page => Root::Page(page),
    };
    Some(Bucket { name: name.to_vec(), root })
}

/// An element that lies outside of its page.
const fn outside(part: ElementPart, at: u64, size: u64) -> Damage {
    Damage::Outside { part, at, size }
}
