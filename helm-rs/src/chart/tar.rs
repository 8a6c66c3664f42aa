//! Reading a tar archive as Go's `archive/tar` does: which entries there are, what their names
//! and sizes are, and where a broken archive stops being readable.
//!
//! The `tar` crate is stricter in places (a missing end, padding that is cut off) and so would
//! refuse charts that Helm loads, with other texts. Sparse files are not supported.

use bstr::{BString, ByteSlice};

use super::gzip::{Decompressed, End};

const BLOCK: usize = 512;

/// Longest extended header (Go's `maxSpecialFileSize`).
const MAX_SPECIAL: usize = 1024 * 1024;

const INVALID: &str = "archive/tar: invalid tar header";
const TOO_LONG: &str = "archive/tar: header field too long";
const TRUNCATED: &str = "unexpected EOF";

/// Reads entries one after the other.
pub(super) struct Reader<'a> {
    archive: &'a Decompressed,
    position: usize,
}

/// An entry with its content.
pub(super) struct Entry {
    pub(super) name: BString,
    /// The type flag; regular files are `0`, directories `5`.
    pub(super) kind: u8,
    pub(super) mode: i64,
    /// Size that the header claims, also for entries without content.
    pub(super) size: u64,
    /// Where the content starts in the archive.
    start: usize,
    /// Bytes of content that follow.
    length: usize,
}

/// What extended headers say about the next entry.
#[derive(Default)]
struct Extended {
    path: Option<BString>,
    size: Option<i64>,
    long_name: Option<BString>,
}

impl<'a> Reader<'a> {
    pub(super) const fn new(archive: &'a Decompressed) -> Self {
        Self { archive, position: 0 }
    }

    /// The next entry, or none at the end of the archive.
    ///
    /// # Errors
    ///
    /// Why the archive cannot be read further.
    pub(super) fn next(&mut self) -> Result<Option<Entry>, End> {
        let mut extended = Extended::default();
        loop {
            let Some(header) = self.header()? else { return Ok(None) };
            match header.kind {
                b'x' => {
                    let Some(data) = self.special(&header)? else { return Ok(None) };
                    extended.read_pax(data)?;
                }
                b'L' | b'K' => {
                    let Some(data) = self.special(&header)? else { return Ok(None) };
                    let end = data.iter().position(|&b| b == 0).unwrap_or(data.len());
                    if header.kind == b'L' {
                        extended.long_name = data.get(..end).map(BString::from);
                    }
                }
                b'g' => {
                    let Some(_) = self.special(&header)? else { return Ok(None) };
                    return Ok(Some(Entry { length: 0, ..header }));
                }
                _ => return self.finish(header, extended).map(Some),
            }
        }
    }

    /// Lets the extended headers have their say, and steps over the content.
    fn finish(&mut self, mut entry: Entry, extended: Extended) -> Result<Entry, End> {
        if let Some(name) = extended.path.or(extended.long_name) {
            entry.name = name;
        }
        if let Some(size) = extended.size {
            entry.size = u64::try_from(size).map_err(|_| End::Broken(INVALID))?;
        }
        if matches!(entry.kind, 0 | b'0') {
            entry.kind = if entry.name.ends_with(b"/") { b'5' } else { b'0' };
        }
        let has_content = !matches!(entry.kind, b'1'..=b'6');
        entry.start = self.position;
        entry.length = if has_content { to_usize(entry.size) } else { 0 };
        self.position = padded(self.position, entry.length);
        Ok(entry)
    }

    /// The content of an entry.
    ///
    /// # Errors
    ///
    /// Why it is not all there.
    pub(super) fn content(&self, entry: &Entry) -> Result<&'a [u8], End> {
        let end = entry.start.saturating_add(entry.length);
        self.archive.data.get(entry.start..end).ok_or_else(|| self.truncated())
    }

    /// The content of an extended header; none if the archive ends in its padding.
    fn special(&mut self, header: &Entry) -> Result<Option<&'a [u8]>, End> {
        let length = to_usize(header.size);
        if length > MAX_SPECIAL {
            return Err(End::Broken(TOO_LONG));
        }
        let end = self.position.saturating_add(length);
        let data = self.archive.data.get(self.position..end).ok_or_else(|| self.truncated())?;
        self.position = padded(self.position, length);
        Ok(Some(data))
    }

    /// Reads a header block.
    fn header(&mut self) -> Result<Option<Entry>, End> {
        let Some(block) = self.block()? else { return Ok(None) };
        if block.iter().all(|&b| b == 0) {
            return match self.block()? {
                Some(second) if second.iter().any(|&b| b != 0) => Err(End::Broken(INVALID)),
                _ => Ok(None),
            };
        }
        parse_header(block).map(Some).ok_or(End::Broken(INVALID))
    }

    /// The next block; none where the data ends between blocks (or in the padding before).
    fn block(&mut self) -> Result<Option<&'a [u8]>, End> {
        let data = &self.archive.data;
        if self.position >= data.len() {
            return match self.archive.end {
                End::Complete => Ok(None),
                end => Err(end),
            };
        }
        let block = data.get(self.position..self.position + BLOCK);
        self.position += BLOCK;
        block.map(Some).ok_or_else(|| self.truncated())
    }

    /// What a read reports that runs into the end of the data.
    const fn truncated(&self) -> End {
        match self.archive.end {
            End::Complete => End::Broken(TRUNCATED),
            end => end,
        }
    }
}

impl Extended {
    /// Reads the records of an extended header: `length key=value`, a line each.
    fn read_pax(&mut self, mut data: &[u8]) -> Result<(), End> {
        let invalid = End::Broken(INVALID);
        while !data.is_empty() {
            let space = data.find_byte(b' ').ok_or(invalid)?;
            let length = data.get(..space).and_then(decimal).ok_or(invalid)?;
            let record = data.get(space + 1..to_usize(length)).ok_or(invalid)?;
            let record = record.strip_suffix(b"\n").ok_or(invalid)?;
            let equals = record.find_byte(b'=').ok_or(invalid)?;
            let (key, value) = record.split_at(equals);
            let value = value.get(1..).unwrap_or_default();
            match key {
                b"path" if value.contains(&0) => return Err(invalid),
                // An empty value takes an earlier one back.
                b"path" => self.path = (!value.is_empty()).then(|| value.into()),
                b"size" if value.is_empty() => self.size = None,
                b"size" => {
                    let size = decimal(value).and_then(|size| i64::try_from(size).ok());
                    self.size = Some(size.ok_or(invalid)?);
                }
                _ => {}
            }
            data = data.get(to_usize(length)..).unwrap_or_default();
        }
        Ok(())
    }
}

/// Reads the fields of a header; none if it is invalid.
fn parse_header(block: &[u8]) -> Option<Entry> {
    let field = |start: usize, length: usize| block.get(start..start + length);
    let checksum = octal(field(148, 8)?)?;
    let in_checksum = |at: usize| (148..156).contains(&at);
    let unsigned: i64 = block
        .iter()
        .enumerate()
        .map(|(at, &b)| if in_checksum(at) { i64::from(b' ') } else { i64::from(b) })
        .sum();
    let signed: i64 = block
        .iter()
        .enumerate()
        .map(|(at, &b)| if in_checksum(at) { i64::from(b' ') } else { i64::from(b as i8) })
        .sum();
    if checksum != unsigned && checksum != signed {
        return None;
    }
    let mode = numeric(field(100, 8)?)?;
    let size = numeric(field(124, 12)?)?;
    for (start, length) in [(108, 8), (116, 8), (136, 12)] {
        numeric(field(start, length)?)?;
    }
    let mut name = BString::from(text(field(0, 100)?));
    let (magic, version, trailer) = (field(257, 6)?, field(263, 2)?, field(508, 4)?);
    let is_gnu = magic == b"ustar " && version == b" \0";
    if magic == b"ustar\0" {
        let prefix = if trailer == b"tar\0" { field(345, 131)? } else { field(345, 155)? };
        let prefix = text(prefix);
        if !prefix.is_empty() {
            name = BString::from([prefix, b"/", name.as_slice()].concat());
        }
    }
    if magic == b"ustar\0" || is_gnu {
        for (start, length) in [(329, 8), (337, 8)] {
            numeric(field(start, length)?)?;
        }
    }
    let size = u64::try_from(size).ok()?;
    Some(Entry { name, kind: *block.get(156)?, mode, size, start: 0, length: 0 })
}

/// Text up to the first zero byte.
fn text(field: &[u8]) -> &[u8] {
    field.split(|&b| b == 0).next().unwrap_or_default()
}

/// A number in octal, or in binary if the first bit is set (a GNU extension).
fn numeric(field: &[u8]) -> Option<i64> {
    let first = *field.first()?;
    if first & 0x80 == 0 {
        return octal(field);
    }
    let negative = first & 0x40 != 0;
    let flip = if negative { 0xFF } else { 0 };
    let mut value: u64 = 0;
    for (index, &byte) in field.iter().enumerate() {
        let byte = byte ^ flip;
        let byte = if index == 0 { byte & 0x7F } else { byte };
        if value >> 56 > 0 {
            return None;
        }
        value = value << 8 | u64::from(byte);
    }
    let value = i64::try_from(value).ok()?;
    Some(if negative { !value } else { value })
}

/// A number in octal between spaces and zero bytes; nothing at all is zero.
fn octal(field: &[u8]) -> Option<i64> {
    let digits = field.trim_with(|c| c == ' ' || c == '\0');
    let digits = text(digits);
    if digits.is_empty() {
        return Some(0);
    }
    let digits = std::str::from_utf8(digits).ok()?;
    if digits.starts_with('+') {
        return None;
    }
    i64::try_from(u64::from_str_radix(digits, 8).ok()?).ok()
}

fn decimal(digits: &[u8]) -> Option<u64> {
    let digits = std::str::from_utf8(digits).ok()?;
    if digits.starts_with('+') { None } else { digits.parse().ok() }
}

/// The position of the block behind content.
const fn padded(position: usize, length: usize) -> usize {
    let end = position.saturating_add(length);
    end.saturating_add((BLOCK - length % BLOCK) % BLOCK)
}

fn to_usize(size: u64) -> usize {
    usize::try_from(size).unwrap_or(usize::MAX)
}
