//! The characters of a YAML stream, checked and loaded the way go-yaml's `readerc.go` does it.
//!
//! go-yaml reads 512 bytes at a time and complains about bad bytes when it loads them, which may
//! be well before or never at the place where they stand: what follows the first document is not
//! looked at. Which error wins depends on that, so the reader keeps the same pace:
//!
//! ```text
//! text  ........|pos.......|limit...............|raw_end.......
//!        read     loaded    an incomplete        not yet read
//!                           character
//! ```

use std::borrow::Cow;

use super::chars;
use crate::YamlError;

/// Bytes that go-yaml reads at a time.
const CHUNK: usize = 512;

const BOM: &[u8] = b"\xef\xbb\xbf";

/// A place in the stream: characters from its start, line and column, all from 0.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mark {
    pub(super) index: usize,
    pub(super) line: usize,
    pub(super) column: usize,
}

/// The input as UTF-8 without its byte order mark.
#[derive(Debug)]
pub(super) struct Input<'i> {
    text: Cow<'i, [u8]>,
    /// Bytes of the byte order mark, which count for the first chunk.
    skipped: usize,
    /// For UTF-16 the ends of the chunks in `text`, and what stopped the conversion.
    converted: Option<(Vec<usize>, Option<&'static str>)>,
}

impl<'i> Input<'i> {
    pub(super) fn new(input: &'i [u8]) -> Self {
        if let Some(rest) = input.strip_prefix(b"\xff\xfe") {
            return Self::from_utf16(rest, u16::from_le_bytes);
        }
        if let Some(rest) = input.strip_prefix(b"\xfe\xff") {
            return Self::from_utf16(rest, u16::from_be_bytes);
        }
        let (text, skipped) = match input.strip_prefix(BOM) {
            Some(rest) => (rest, BOM.len()),
            // go-yaml gives its scanner a line break instead of nothing.
            None if input.is_empty() => (&b"\n"[..], 0),
            None => (input, 0),
        };
        Self { text: Cow::Borrowed(text), skipped, converted: None }
    }

    fn from_utf16(input: &'i [u8], unit: impl Fn([u8; 2]) -> u16) -> Self {
        let unit_at = |at: usize| Some(unit([*input.get(at)?, *input.get(at + 1)?]));
        let mut text = Vec::with_capacity(input.len() * 3 / 2);
        let mut chunks = Vec::new();
        let mut problem = None;
        let mut at = 0;
        let mut end = CHUNK - 2;
        while at < input.len() {
            let Some(first) = unit_at(at) else {
                problem = Some("incomplete UTF-16 character");
                break;
            };
            let width = if first & 0xfc00 == 0xd800 { 4 } else { 2 };
            if at + width > end {
                chunks.push(text.len());
                end = at + CHUNK;
            }
            let decoded = match first & 0xfc00 {
                0xdc00 => Err("unexpected low surrogate area"),
                0xd800 => match unit_at(at + 2) {
                    None => Err("incomplete UTF-16 surrogate pair"),
                    Some(second) if second & 0xfc00 != 0xdc00 => Err("expected low surrogate area"),
                    Some(second) => {
                        let (high, low) = (u32::from(first) & 0x3ff, u32::from(second) & 0x3ff);
                        Ok(0x1_0000 + (high << 10) + low)
                    }
                },
                _ => Ok(u32::from(first)),
            };
            let allowed = decoded.and_then(|code| {
                char::from_u32(code)
                    .filter(|&c| chars::is_allowed(c))
                    .ok_or("control characters are not allowed")
            });
            match allowed {
                Ok(c) => text.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
                Err(message) => {
                    problem = Some(message);
                    break;
                }
            }
            at += width;
        }
        // What is incomplete is noticed when nothing more follows; what is wrong at once.
        if problem.is_none_or(|message| message.starts_with("incomplete")) {
            chunks.push(text.len());
        }
        Self { text: Cow::Owned(text), skipped: 2, converted: Some((chunks, problem)) }
    }
}

/// A cursor over an [`Input`].
#[derive(Debug)]
pub(super) struct Reader<'t> {
    text: &'t [u8],
    pos: usize,
    pub(super) mark: Mark,
    limit: usize,
    raw_end: usize,
    converted: Option<(std::slice::Iter<'t, usize>, Option<&'static str>)>,
    eof: bool,
    /// NUL characters that go-yaml put behind the end of its input.
    nuls: usize,
    /// Whether go-yaml's buffer begins with a byte order mark, see [`Self::skip_bom`].
    buffer_has_bom: bool,
}

impl<'t> Reader<'t> {
    pub(super) fn new(input: &'t Input<'_>) -> Self {
        let text = input.text.as_ref();
        Self {
            text,
            pos: 0,
            mark: Mark::default(),
            limit: 0,
            raw_end: text.len().min(CHUNK - input.skipped),
            converted: input.converted.as_ref().map(|(chunks, problem)| (chunks.iter(), *problem)),
            eof: text.len() + input.skipped < BOM.len(),
            nuls: 0,
            buffer_has_bom: false,
        }
    }

    /// The byte `ahead` of the cursor, NUL behind the end.
    #[inline]
    pub(super) fn at(&self, ahead: usize) -> u8 {
        self.text.get(self.pos + ahead).copied().unwrap_or(0)
    }

    /// The position of the cursor in bytes, for [`Self::slice`].
    #[inline]
    pub(super) const fn position(&self) -> usize {
        self.pos
    }

    /// The bytes between two positions.
    #[inline]
    pub(super) fn slice(&self, from: usize, to: usize) -> &'t [u8] {
        self.text.get(from..to).unwrap_or_default()
    }

    /// Loads until `count` characters are there or the input ends.
    #[inline]
    pub(super) fn ensure(&mut self, count: usize) -> Result<(), YamlError> {
        if self.pos + 4 * count <= self.limit || self.unread() >= count {
            return Ok(());
        }
        self.load(count).map_err(YamlError::new)
    }

    /// Characters that are loaded and not read.
    fn unread(&self) -> usize {
        match self.text.get(self.pos..self.limit) {
            Some(loaded) => loaded.iter().filter(|&&b| !chars::is_trailing(b)).count() + self.nuls,
            None => self.nuls.saturating_sub(self.pos - self.limit),
        }
    }

    #[cold]
    fn load(&mut self, count: usize) -> Result<(), &'static str> {
        let start = self.pos;
        let mut first = true;
        while self.unread() < count {
            if self.converted.is_some() {
                self.load_converted()?;
            } else {
                if !first || self.limit == self.raw_end {
                    self.read_raw();
                }
                first = false;
                self.check_raw()?;
            }
            if self.eof {
                self.nuls += 1;
                break;
            }
        }
        self.buffer_has_bom = self.slice(start, self.limit).starts_with(BOM);
        Ok(())
    }

    fn load_converted(&mut self) -> Result<(), &'static str> {
        let Some((chunks, problem)) = &mut self.converted else { return Ok(()) };
        match (chunks.next(), problem.take()) {
            (Some(&end), kept) => {
                *problem = kept;
                self.limit = end;
            }
            (None, Some(message)) => return Err(message),
            (None, None) => self.eof = true,
        }
        Ok(())
    }

    /// `yaml_parser_update_raw_buffer`
    fn read_raw(&mut self) {
        if self.eof {
            return;
        }
        let end = self.text.len().min(self.limit + CHUNK);
        if self.raw_end == self.text.len() {
            self.eof = true;
        }
        self.raw_end = end;
    }

    /// Checks what was read and moves `limit` over it.
    fn check_raw(&mut self) -> Result<(), &'static str> {
        while let Some(rest) = self.text.get(self.limit..self.raw_end) {
            let plain = rest.iter().take_while(|&&b| chars::is_allowed_ascii(b)).count();
            self.limit += plain;
            let Some((&lead, _)) = rest.get(plain..).and_then(<[u8]>::split_first) else {
                return Ok(());
            };
            let width = match lead {
                0x00..=0x7f => return Err("control characters are not allowed"),
                0xc0..=0xdf => 2,
                0xe0..=0xef => 3,
                0xf0..=0xf7 => 4,
                _ => return Err("invalid leading UTF-8 octet"),
            };
            let Some(bytes) = rest.get(plain..plain + width) else {
                if self.eof {
                    return Err("incomplete UTF-8 octet sequence");
                }
                return Ok(());
            };
            check_character(lead, bytes)?;
            self.limit += width;
        }
        Ok(())
    }

    /// Moves over one character.
    #[inline]
    pub(super) fn skip(&mut self) {
        self.mark.index += 1;
        self.mark.column += 1;
        self.pos += chars::width(self.at(0)).max(1);
    }

    /// Moves over `count` ASCII characters.
    #[inline]
    pub(super) const fn skip_ascii(&mut self, count: usize) {
        self.mark.index += count;
        self.mark.column += count;
        self.pos += count;
    }

    /// Moves over the loaded characters up to one that begins with a byte of `stop`, leaving a
    /// few so that no loading is due. `stop` must hold no trailing bytes.
    #[inline]
    pub(super) fn skip_until(&mut self, stop: &[bool; 256]) {
        let Some(loaded) = self.text.get(self.pos..self.limit.saturating_sub(16)) else { return };
        let mut end = loaded
            .iter()
            .position(|&byte| stop.get(usize::from(byte)).copied().unwrap_or(true))
            .unwrap_or(loaded.len());
        let mut characters = end;
        if let Some(run) = loaded.get(..end)
            && !run.is_ascii()
        {
            // Where the run was cut off, step back to the beginning of the character.
            if end == loaded.len()
                && self.text.get(self.pos + end).is_some_and(|&b| chars::is_trailing(b))
            {
                while end > 0 && loaded.get(end - 1).is_some_and(|&b| chars::is_trailing(b)) {
                    end -= 1;
                }
                end = end.saturating_sub(1);
            }
            let whole = loaded.get(..end).unwrap_or_default();
            characters = whole.iter().filter(|&&b| !chars::is_trailing(b)).count();
        }
        self.pos += end;
        self.mark.index += characters;
        self.mark.column += characters;
    }

    /// Moves over a line break, if one is there, and returns what it stands for: a line feed, or
    /// the Unicode separator itself.
    #[inline]
    pub(super) fn line_break(&mut self) -> &'t [u8] {
        let (width, characters, value): (usize, usize, &'t [u8]) = match self.at(0) {
            b'\r' if self.at(1) == b'\n' => (2, 2, b"\n"),
            b'\r' | b'\n' => (1, 1, b"\n"),
            0xc2 if self.at(1) == 0x85 => (2, 1, b"\n"),
            0xe2 if self.is_break(0) => (3, 1, self.slice(self.pos, self.pos + 3)),
            _ => return b"",
        };
        self.pos += width;
        self.mark.index += characters;
        self.mark.column = 0;
        self.mark.line += 1;
        value
    }

    /// Lets a byte order mark begin a line.
    ///
    /// go-yaml looks for it at the start of its buffer and not at the cursor: once the buffer
    /// begins with one, a character is dropped from the start of each line until the buffer is
    /// filled again.
    #[inline]
    pub(super) fn skip_bom(&mut self) {
        if self.buffer_has_bom && self.mark.column == 0 {
            self.skip();
        }
    }

    #[inline]
    pub(super) fn is_end(&self) -> bool {
        self.at(0) == 0
    }

    #[inline]
    pub(super) fn is_blank(&self, ahead: usize) -> bool {
        matches!(self.at(ahead), b' ' | b'\t')
    }

    #[inline]
    pub(super) fn is_break(&self, ahead: usize) -> bool {
        match self.at(ahead) {
            b'\r' | b'\n' => true,
            0xc2 => self.at(ahead + 1) == 0x85,
            0xe2 => self.at(ahead + 1) == 0x80 && matches!(self.at(ahead + 2), 0xa8 | 0xa9),
            _ => false,
        }
    }

    #[inline]
    pub(super) fn is_break_or_end(&self, ahead: usize) -> bool {
        self.at(ahead) == 0 || self.is_break(ahead)
    }

    #[inline]
    pub(super) fn is_blank_or_end(&self, ahead: usize) -> bool {
        self.is_blank(ahead) || self.is_break_or_end(ahead)
    }

    /// Whether `---` or `...` stands here as an indicator.
    #[inline]
    pub(super) fn is_document_indicator(&self) -> bool {
        self.mark.column == 0
            && matches!(
                (self.at(0), self.at(1), self.at(2)),
                (b'-', b'-', b'-') | (b'.', b'.', b'.')
            )
            && self.is_blank_or_end(3)
    }
}

/// Checks one character of more than one byte.
fn check_character(lead: u8, bytes: &[u8]) -> Result<(), &'static str> {
    let bits = match bytes.len() {
        2 => lead & 0x1f,
        3 => lead & 0x0f,
        _ => lead & 0x07,
    };
    let mut code = u32::from(bits);
    for &byte in bytes.iter().skip(1) {
        if !chars::is_trailing(byte) {
            return Err("invalid trailing UTF-8 octet");
        }
        code = code << 6 | u32::from(byte & 0x3f);
    }
    let shortest = match bytes.len() {
        2 => 0x80,
        3 => 0x800,
        _ => 0x1_0000,
    };
    if code < shortest {
        return Err("invalid length of a UTF-8 sequence");
    }
    match char::from_u32(code) {
        None => Err("invalid Unicode character"),
        Some(c) if !chars::is_allowed(c) => Err("control characters are not allowed"),
        Some(_) => Ok(()),
    }
}
