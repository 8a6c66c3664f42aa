//! Reading inputs with all cores.

use std::io;
use std::num::NonZero;
use std::sync::mpsc::sync_channel;
use std::sync::{Mutex, PoisonError};
use std::thread;

use super::object::{self, ObjectError, StoredRecord};
use super::walk::{self, Input};
use super::{Chunk, InputLimits, Piece};

/// An object or a file that could not be read.
#[derive(Debug, thiserror::Error)]
#[error("{place}")]
pub struct Fault {
    /// The file and, in a file of many, the object's number from 1.
    pub place: String,
    /// What is wrong.
    pub source: FaultKind,
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
    /// The file ends inside it.
    #[error("the file ends inside this object")]
    Cut,
    /// Neither an object nor the end.
    #[error("unexpected byte 0x{byte:02x} where an object should begin")]
    Unexpected {
        /// The byte.
        byte: u8,
    },
    /// The object does not read.
    #[error(transparent)]
    Object(#[from] ObjectError),
}

impl Fault {
    fn new(place: &str, source: FaultKind) -> Self {
        Self { place: place.to_owned(), source }
    }

    pub(super) fn io(place: &str, source: io::Error) -> Self {
        Self::new(place, FaultKind::Io(source))
    }

    pub(super) fn too_large(place: &str, limits: &InputLimits) -> Self {
        Self::new(place, FaultKind::TooLarge { limit: limits.object })
    }

    pub(super) fn cut(place: &str) -> Self {
        Self::new(place, FaultKind::Cut)
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
}

struct Collected<T> {
    items: Vec<(usize, T)>,
    faults: Vec<(usize, Fault)>,
    skipped: usize,
}

/// Reads inputs and does `work` on every record, on `threads` threads (all cores when `None`).
/// At most two objects per thread are in memory, besides what `work` keeps.
pub fn scan<T: Send>(
    inputs: Vec<Input>,
    limits: &InputLimits,
    threads: Option<NonZero<usize>>,
    work: impl Fn(StoredRecord) -> Option<T> + Sync,
) -> Scan<T> {
    let threads = threads.or_else(|| thread::available_parallelism().ok()).map_or(1, NonZero::get);
    let collected = Mutex::new(Collected { items: Vec::new(), faults: Vec::new(), skipped: 0 });
    let lock = || collected.lock().unwrap_or_else(PoisonError::into_inner);
    let (sender, receiver) = sync_channel::<(usize, Chunk)>(threads);
    let receiver = Mutex::new(receiver);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let next = receiver.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok((index, chunk)) = next else { return };
                    object::read(chunk, &mut |answer| match answer {
                        Ok(Some(record)) => {
                            let item = work(record);
                            lock().items.extend(item.map(|item| (index, item)));
                        }
                        Ok(None) => lock().skipped += 1,
                        Err((place, error)) => {
                            lock().faults.push((index, Fault::new(&place, error.into())));
                        }
                    });
                }
            });
        }
        let mut index = 0;
        for input in inputs {
            walk::read(input, limits, &mut |piece| {
                index += 1;
                match piece {
                    Piece::Chunk(chunk) => return sender.send((index, chunk)).is_ok(),
                    Piece::Fault(fault) => lock().faults.push((index, fault)),
                    Piece::Other => lock().skipped += 1,
                }
                true
            });
        }
        drop(sender);
    });
    let mut all = collected.into_inner().unwrap_or_else(PoisonError::into_inner);
    all.items.sort_by_key(|(index, _)| *index);
    all.faults.sort_by_key(|(index, _)| *index);
    Scan {
        items: all.items.into_iter().map(|(_, item)| item).collect(),
        faults: all.faults.into_iter().map(|(_, fault)| fault).collect(),
        skipped: all.skipped,
    }
}
