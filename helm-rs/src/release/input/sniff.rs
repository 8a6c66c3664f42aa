//! What a stream holds, told by its first bytes.

use std::io::{self, BufRead, BufReader, Cursor, Read};

use flate2::bufread::MultiGzDecoder;

use super::etcd::{self, EtcdError, EtcdOptions};
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
    let is_tar = head.get(TAR_MAGIC).is_some_and(|magic| magic == b"ustar");
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
    if head.starts_with(protobuf::MAGIC) {
        return protobuf::split(place, &mut reader, limits, sink);
    }
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&head);
    let start = text.iter().position(|byte| !byte.is_ascii_whitespace());
    match start.and_then(|start| text.get(start..)) {
        // Nothing but blanks, so far; an empty file has no objects.
        None => sink(Piece::Other),
        Some([b'{' | b'[', ..]) => split_json::split(place, &mut reader, limits, sink),
        Some(text) if object::is_base64(text) && text.len() >= 16 => {
            bare(place, reader, limits, sink)
        }
        Some(text) if text.contains(&0) => sink(Piece::Other),
        Some(_) => split_yaml::split(place, &mut reader, limits, sink),
    }
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
    let mut archive = tar::Archive::new(reader);
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
    true
}

pub(super) fn too_many(limits: &InputLimits) -> io::Error {
    io::Error::other(format!("more than {} files", limits.files))
}
