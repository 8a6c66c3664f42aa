//! Reading inputs with all cores.

use std::collections::BTreeSet;
use std::io;
use std::num::NonZero;
use std::sync::mpsc::sync_channel;
use std::sync::{Mutex, PoisonError};
use std::thread;

use super::etcd::{EtcdError, EtcdOptions};
use super::object::{self, ObjectError, StoredRecord};
use super::walk::{self, Input};
use super::{Chunk, Hidden, InputLimits, Piece};

/// An object or a file that could not be read.
#[derive(Debug, thiserror::Error)]
#[error("{place}")]
pub struct Fault {
    /// The file and, in a file of many, the object's number from 1.
    pub place: String,
    /// What is wrong.
    pub source: FaultKind,
    /// Whose records may be missing because of it.
    pub hides: Hidden,
}

/// What is wrong with an object or a file.
#[derive(Debug, thiserror::Error)]
pub enum FaultKind {
    /// It cannot be read.
    #[error("cannot be read")]
    Io(#[source] io::Error),
    /// It is larger than allowed.
    #[error("is larger than {limit} bytes")]
    TooLarge {
        /// Bytes allowed.
        limit: usize,
    },
    /// The file ends inside it, or inside the list that it is in.
    #[error("the file ends inside this object{}", .line.map(|line| format!(", at line {line}")).unwrap_or_default())]
    Cut {
        /// The file's last line, where lines were counted.
        line: Option<usize>,
    },
    /// A line that can be no part of the list's item that it stands in, or of the list.
    #[error("line {line} cannot stand where it does: its indentation is damaged")]
    Misplaced {
        /// The line in its file, from 1.
        line: usize,
    },
    /// Something beside a list's items that looks like a record.
    #[error("a part of a release record stands in the list and in none of its items")]
    Outside,
    /// A text in another encoding than UTF-8.
    #[error("is UTF-16: write it in UTF-8 (`iconv -f UTF-16 -t UTF-8`)")]
    Utf16,
    /// Compressed with something else than gzip.
    #[error("is compressed with {with}: unpack it first")]
    Compressed {
        /// The program.
        with: &'static str,
    },
    /// Neither an object nor the end.
    #[error("unexpected byte 0x{byte:02x} where an object should begin")]
    Unexpected {
        /// The byte.
        byte: u8,
    },
    /// The object does not read.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// A part of an etcd file does not read.
    #[error(transparent)]
    Etcd(Box<EtcdError>),
}

impl From<EtcdError> for FaultKind {
    fn from(error: EtcdError) -> Self {
        Self::Etcd(Box::new(error))
    }
}

impl Fault {
    pub(super) fn new(place: &str, source: FaultKind) -> Self {
        Self { place: place.to_owned(), source, hides: Hidden::Any }
    }

    /// The same, where it is known whose records may be missing.
    pub(super) fn hiding(self, hides: Hidden) -> Self {
        Self { hides, ..self }
    }

    pub(super) fn io(place: &str, source: io::Error) -> Self {
        Self::new(place, FaultKind::Io(source))
    }

    pub(super) fn too_large(place: &str, limits: &InputLimits) -> Self {
        Self::new(place, FaultKind::TooLarge { limit: limits.object })
    }

    pub(super) fn cut(place: &str, line: Option<usize>) -> Self {
        Self::new(place, FaultKind::Cut { line })
    }

    pub(super) fn unexpected(place: &str, byte: u8) -> Self {
        Self::new(place, FaultKind::Unexpected { byte })
    }
}

/// What was found in inputs.
#[derive(Debug)]
pub struct Scan<T> {
    /// What the work made of the records, in the order of the inputs.
    pub items: Vec<T>,
    /// What could not be read, in the order of the inputs.
    pub faults: Vec<Fault>,
    /// Objects and files that are no release records.
    pub skipped: usize,
    /// Inputs that hold no record, and nothing that could not be read: by their names, in order.
    pub empty: Vec<String>,
}

/// An input's number and the piece's.
type Index = (usize, usize);

struct Collected<T> {
    items: Vec<(Index, T)>,
    faults: Vec<(Index, Fault)>,
    skipped: usize,
    /// Inputs with a record or a fault.
    found: BTreeSet<usize>,
}

/// Small objects are handed on together: handing on costs far more than reading them. A batch is
/// full with this many bytes, or objects.
const BATCH: (usize, usize) = (64 << 10, 256);

/// Objects on their way to a thread.
#[derive(Default)]
struct Batch {
    chunks: Vec<(Index, Chunk)>,
    bytes: usize,
}

impl Batch {
    /// Takes an object in; gives all of them back when the batch is full.
    fn push(&mut self, index: Index, chunk: Chunk) -> Option<Vec<(Index, Chunk)>> {
        self.bytes += chunk.text.len();
        self.chunks.push((index, chunk));
        (self.bytes >= BATCH.0 || self.chunks.len() >= BATCH.1).then(|| self.take())
    }

    fn take(&mut self) -> Vec<(Index, Chunk)> {
        self.bytes = 0;
        std::mem::take(&mut self.chunks)
    }
}

/// As [`scan_with`], with etcd files as they are.
pub fn scan<T: Send>(
    inputs: Vec<Input>,
    limits: &InputLimits,
    threads: Option<NonZero<usize>>,
    work: impl Fn(StoredRecord) -> Option<T> + Sync,
) -> Scan<T> {
    scan_with(inputs, limits, &EtcdOptions::default(), threads, work)
}

/// Reads inputs and does `work` on every record, on `threads` threads (all cores when `None`).
/// At most two objects per thread are in memory, or batches of small ones, besides what `work`
/// keeps.
pub fn scan_with<T: Send>(
    inputs: Vec<Input>,
    limits: &InputLimits,
    etcd: &EtcdOptions,
    threads: Option<NonZero<usize>>,
    work: impl Fn(StoredRecord) -> Option<T> + Sync,
) -> Scan<T> {
    let threads = threads.or_else(|| thread::available_parallelism().ok()).map_or(1, NonZero::get);
    let names: Vec<String> = inputs.iter().map(Input::name).collect();
    let collected = Mutex::new(Collected {
        items: Vec::new(),
        faults: Vec::new(),
        skipped: 0,
        found: BTreeSet::new(),
    });
    let lock = || collected.lock().unwrap_or_else(PoisonError::into_inner);
    let fault = |index: Index, fault: Fault| {
        let mut all = lock();
        all.found.insert(index.0);
        all.faults.push((index, fault));
    };
    let (sender, receiver) = sync_channel::<Vec<(Index, Chunk)>>(threads);
    let receiver = Mutex::new(receiver);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let next = receiver.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok(batch) = next else { return };
                    let mut skipped = 0;
                    for (index, chunk) in batch {
                        object::read(chunk, limits, &mut |answer| match answer {
                            Ok(Some(record)) => {
                                let item = work(record);
                                let mut all = lock();
                                all.found.insert(index.0);
                                all.items.extend(item.map(|item| (index, item)));
                            }
                            Ok(None) => skipped += 1,
                            Err(error) => fault(index, error),
                        });
                    }
                    lock().skipped += skipped;
                }
            });
        }
        let mut number = 0;
        let mut batch = Batch::default();
        for (input_number, input) in inputs.into_iter().enumerate() {
            walk::read(input, limits, etcd, &mut |piece| {
                number += 1;
                let index = (input_number, number);
                match piece {
                    Piece::Chunk(chunk) => {
                        if let Some(full) = batch.push(index, chunk) {
                            return sender.send(full).is_ok();
                        }
                    }
                    Piece::Fault(error) => fault(index, error),
                    Piece::Other => lock().skipped += 1,
                }
                true
            });
        }
        // Only when all threads are gone does this fail, and then nobody waits for it.
        drop(sender.send(batch.take()));
        drop(sender);
    });
    let mut all = collected.into_inner().unwrap_or_else(PoisonError::into_inner);
    all.items.sort_by_key(|(index, _)| *index);
    all.faults.sort_by_key(|(index, _)| *index);
    let is_empty = |(number, _): &(usize, String)| !all.found.contains(number);
    Scan {
        items: all.items.into_iter().map(|(_, item)| item).collect(),
        faults: all.faults.into_iter().map(|(_, fault)| fault).collect(),
        skipped: all.skipped,
        empty: names.into_iter().enumerate().filter(is_empty).map(|(_, name)| name).collect(),
    }
}
