//! What a stream holds, told by its first bytes.

use std::io::{self, BufRead, BufReader, Cursor, Read};

use bstr::ByteSlice;
use flate2::bufread::MultiGzDecoder;

use super::etcd::{self, EtcdError, EtcdOptions};
use super::scan::FaultKind;
use super::{
    Chunk, End, Fault, Form, InputLimits, Piece, object, protobuf, split_json, split_yaml,
};

/// Archives within archives are opened to this depth.
const MAX_NESTING: usize = 3;
/// Where the word `ustar` stands in a tar archive.
const TAR_MAGIC: std::ops::Range<usize> = 257..262;

/// Where pieces go; `false` stops the reading.
pub(super) type Sink<'a> = dyn FnMut(Piece) -> bool + 'a;

/// Splits a stream into its objects.
pub(super) fn split(
    place: &str,
    reader: &mut dyn Read,
    limits: &InputLimits,
    options: &EtcdOptions,
    nesting: usize,
    sink: &mut Sink<'_>,
) -> bool {
    let mut head = Vec::with_capacity(512);
    if let Err(source) = Read::take(&mut *reader, 512).read_to_end(&mut head) {
        return sink(Piece::Fault(Fault::io(place, source)));
    }
    if head.starts_with(&[0x1f, 0x8b]) && nesting < MAX_NESTING {
        let compressed = BufReader::with_capacity(1 << 16, Cursor::new(head).chain(reader));
        let mut plain = MultiGzDecoder::new(compressed).take(limits.stream);
        return split(place, &mut plain, limits, options, nesting + 1, sink);
    }
    let is_tar = head.get(TAR_MAGIC).is_some_and(|magic| magic == b"ustar") || is_old_tar(&head);
    let mut reader = BufReader::with_capacity(1 << 18, Cursor::new(head.clone()).chain(reader));
    if is_tar {
        return archive(place, &mut reader, limits, options, nesting, sink);
    }
    if etcd::is_head(&head) {
        return etcd::split_stream(place, &mut reader, limits, options, sink);
    }
    if options.at_revision.is_some() && !head.is_empty() {
        return sink(Piece::Fault(Fault::new(place, EtcdError::NoRevisions.into())));
    }
    if let Some(kind) = unreadable(&head) {
        return sink(Piece::Fault(Fault::new(place, kind)));
    }
    if head.starts_with(crate::protobuf::MAGIC) {
        return protobuf::split(place, &mut reader, limits, sink);
    }
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&head);
    let start = text.iter().position(|byte| !byte.is_ascii_whitespace());
    match start.and_then(|start| text.get(start..)) {
        // Nothing but blanks, so far; an empty file has no objects.
        None => sink(Piece::Other),
        Some([b'{' | b'[', ..]) => split_json::split(place, &mut reader, limits, sink),
        Some(text) if object::is_base64(unquoted(text)) && text.len() >= 16 => {
            bare(place, reader, limits, sink)
        }
        Some(text) if text.contains(&0) && !looks_like_object(text) => sink(Piece::Other),
        Some(_) => split_yaml::split(place, &mut reader, limits, sink),
    }
}

fn unquoted(text: &[u8]) -> &[u8] {
    match text {
        [b'"' | b'\'', rest @ ..] => rest,
        _ => text,
    }
}

/// What cannot be read at all and may hold records.
fn unreadable(head: &[u8]) -> Option<FaultKind> {
    const COMPRESSED: [(&[u8], &str); 5] = [
        (b"\xfd7zXZ\0", "xz"),
        (b"BZh", "bzip2"),
        (b"\x28\xb5\x2f\xfd", "zstd"),
        (b"PK\x03\x04", "zip"),
        (b"7z\xbc\xaf\x27\x1c", "7z"),
    ];
    let with = COMPRESSED.iter().find(|(magic, _)| head.starts_with(magic));
    if let Some((_, with)) = with {
        return Some(FaultKind::Compressed { with });
    }
    let is_marked = [b"\xff\xfe", b"\xfe\xff"].iter().any(|mark| head.starts_with(*mark));
    // Without a mark: the first letters of a text, each with an empty half.
    let is_text = |first: usize, zero: usize| {
        head.len() >= 8
            && head.chunks_exact(2).take(4).all(|pair| {
                pair.get(zero) == Some(&0)
                    && pair.get(first).is_some_and(|byte| byte.is_ascii_graphic() || *byte == b' ')
            })
    };
    if is_marked || is_text(0, 1) || is_text(1, 0) {
        return Some(FaultKind::Utf16);
    }
    // What a crash leaves of a file that was being written.
    let is_zero = head.len() >= 64 && head.iter().all(|byte| *byte == 0);
    is_zero.then_some(FaultKind::Unexpected { byte: 0 })
}

/// Whether a text with a NUL in it is a damaged object, and not a binary file.
fn looks_like_object(text: &[u8]) -> bool {
    ["apiVersion:", "kind:", "sh.helm.release."].iter().any(|word| text.contains_str(word))
}

fn bare(place: &str, reader: impl Read, limits: &InputLimits, sink: &mut Sink<'_>) -> bool {
    let mut text = Vec::new();
    match reader.take(limits.object as u64 + 1).read_to_end(&mut text) {
        Err(source) => sink(Piece::Fault(Fault::io(place, source))),
        Ok(_) if text.len() > limits.object => sink(Piece::Fault(Fault::too_large(place, limits))),
        Ok(_) => {
            let place = place.to_owned();
            sink(Piece::Chunk(Chunk {
                place,
                form: Form::Bare,
                list_of: None,
                end: End::Told,
                text,
            }))
        }
    }
}

fn archive(
    place: &str,
    reader: &mut dyn BufRead,
    limits: &InputLimits,
    options: &EtcdOptions,
    nesting: usize,
    sink: &mut Sink<'_>,
) -> bool {
    let mut end = LastBlock { reader, block: Vec::with_capacity(BLOCK) };
    let mut archive = tar::Archive::new(&mut end);
    // Archives that were written one behind the other.
    archive.set_ignore_zeros(true);
    let entries = match archive.entries() {
        Ok(entries) => entries,
        Err(source) => return sink(Piece::Fault(Fault::io(place, source))),
    };
    for (count, entry) in entries.enumerate() {
        let mut entry = match entry {
            Ok(entry) if count < limits.files => entry,
            Ok(_) => return sink(Piece::Fault(Fault::io(place, too_many(limits)))),
            Err(source) => return sink(Piece::Fault(Fault::io(place, source))),
        };
        if !entry.header().entry_type().is_file() {
            continue;
        }
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let place = format!("{place}:{name}");
        if !split(&place, &mut entry, limits, options, nesting + 1, sink) {
            return false;
        }
    }
    if end.is_zero() { true } else { sink(Piece::Fault(Fault::cut(place, None))) }
}

/// The unit of tar archives in bytes; they end with two empty ones.
const BLOCK: usize = 512;

/// A reader that remembers the last block that went through it.
struct LastBlock<R> {
    reader: R,
    block: Vec<u8>,
}

impl<R> LastBlock<R> {
    fn is_zero(&self) -> bool {
        self.block.iter().all(|byte| *byte == 0)
    }
}

impl<R: Read> Read for LastBlock<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let size = self.reader.read(buffer)?;
        let read = buffer.get(..size).unwrap_or_default();
        let new = read.get(size.saturating_sub(BLOCK)..).unwrap_or_default();
        let old = (self.block.len() + new.len()).saturating_sub(BLOCK);
        self.block.drain(..old.min(self.block.len()));
        self.block.extend_from_slice(new);
        Ok(size)
    }
}

/// Whether this is the header of an archive from before `ustar`: its checksum says so.
fn is_old_tar(head: &[u8]) -> bool {
    let Ok(block) = <&[u8; BLOCK]>::try_from(head) else { return false };
    let header = tar::Header::from_byte_slice(block);
    let sum =
        |(at, byte): (usize, &u8)| u32::from(if (148..156).contains(&at) { b' ' } else { *byte });
    let is_named = block.first().is_some_and(|byte| *byte != 0);
    is_named
        && header.cksum().is_ok_and(|told| told == block.iter().enumerate().map(sum).sum::<u32>())
}

pub(super) fn too_many(limits: &InputLimits) -> io::Error {
    io::Error::other(format!("more than {} files", limits.files))
}
