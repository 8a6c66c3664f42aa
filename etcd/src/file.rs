//! The file: bytes at places, and the digest at the end of a snapshot.

use std::fs::File;
use std::io;

use sha2::{Digest as _, Sha256};

/// Bytes of the digest that etcd writes behind a snapshot
/// (`server/etcdserver/api/v3rpc/maintenance.go`, `Snapshot`).
pub(crate) const DIGEST: u64 = 32;
/// Bytes that are read at a time for the digest.
const BLOCK: usize = 1 << 20;

/// Bytes that can be read at any place, by several threads.
pub trait Source: Send + Sync {
    /// Bytes in all.
    fn size(&self) -> u64;

    /// Fills `buffer` with the bytes from `offset` on.
    ///
    /// # Errors
    /// The operating system's, and [`io::ErrorKind::UnexpectedEof`] when there are too few bytes.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;
}

/// An open file. Its size is what it was when it was opened.
#[derive(Debug)]
pub struct FileSource {
    #[cfg(unix)]
    file: File,
    // Elsewhere a file has one position for all.
    #[cfg(not(unix))]
    file: std::sync::Mutex<File>,
    size: u64,
}

impl FileSource {
    /// Takes an open file.
    ///
    /// # Errors
    /// When its size cannot be told.
    pub fn new(file: File) -> io::Result<Self> {
        let size = file.metadata()?.len();
        #[cfg(not(unix))]
        let file = std::sync::Mutex::new(file);
        Ok(Self { file, size })
    }
}

impl Source for FileSource {
    fn size(&self) -> u64 {
        self.size
    }

    #[cfg(unix)]
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(&self.file, buffer, offset)
    }

    #[cfg(not(unix))]
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        use std::io::{Read as _, Seek as _};
        let mut file = self.file.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        file.seek(io::SeekFrom::Start(offset))?;
        file.read_exact(buffer)
    }
}

impl Source for Vec<u8> {
    fn size(&self) -> u64 {
        self.len() as u64
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let from = usize::try_from(offset).ok();
        let bytes = from.and_then(|from| self.get(from..from.checked_add(buffer.len())?));
        let bytes = bytes.ok_or(io::ErrorKind::UnexpectedEof)?;
        buffer.copy_from_slice(bytes);
        Ok(())
    }
}

/// Whether the last 32 bytes of a file are the SHA-256 of what stands before them.
pub(crate) fn digest_is_right(source: &dyn Source) -> io::Result<bool> {
    let end = source.size().saturating_sub(DIGEST);
    let mut hash = Sha256::new();
    let mut block = vec![0; BLOCK];
    let mut at = 0;
    while at < end {
        let size = (end - at).min(BLOCK as u64);
        let part = block.get_mut(..size as usize).unwrap_or_default();
        source.read_at(at, part)?;
        hash.update(&*part);
        at += size;
    }
    let mut said = [0; DIGEST as usize];
    source.read_at(end, &mut said)?;
    Ok(hash.finalize()[..] == said)
}
