//! Scanning of block, quoted and plain scalars.

use std::borrow::Cow;

use super::chars;
use super::scanner::{Scan, Scanner};

/// Text that is a slice of the input as long as nothing in it changes.
#[derive(Debug)]
struct Pieces {
    done: Vec<u8>,
    /// Where the piece begins that is not in `done` yet.
    from: usize,
}

impl Pieces {
    const fn new(from: usize) -> Self {
        Self { done: Vec::new(), from }
    }

    fn finish(mut self, last: &[u8]) -> Cow<'_, [u8]> {
        if self.done.is_empty() {
            return Cow::Borrowed(last);
        }
        self.done.extend_from_slice(last);
        Cow::Owned(self.done)
    }
}

/// The line breaks inside a scalar that is folded: the first one and those that follow.
#[derive(Debug, Default)]
struct Breaks<'t> {
    first: &'t [u8],
    rest: Vec<u8>,
}

impl Breaks<'_> {
    /// Appends what the breaks amount to: a space for a single line feed.
    fn fold_into(&mut self, text: &mut Vec<u8>) {
        if self.first == b"\n" {
            self.first = if self.rest.is_empty() { b" " } else { b"" };
        }
        self.keep_in(text);
    }

    /// Appends the breaks as they are.
    fn keep_in(&mut self, text: &mut Vec<u8>) {
        text.extend_from_slice(std::mem::take(&mut self.first));
        text.append(&mut self.rest);
    }
}

/// What happens to the line breaks at the end of a block scalar.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Chomping {
    Strip,
    Clip,
    Keep,
}

impl<'t> Scanner<'t> {
    /// `yaml_parser_scan_block_scalar`
    pub(super) fn scan_block_scalar(&mut self, literal: bool) -> Scan<Cow<'t, [u8]>> {
        self.reader.skip_ascii(1);
        self.reader.ensure(1)?;
        let (chomping, increment) = self.scan_block_header()?;
        self.scan_line_rest()?;

        let mut indent = match increment {
            0 => 0,
            _ => self.indent.max(0).unsigned_abs() + increment,
        };
        let mut text = Vec::new();
        let mut breaks = Breaks::default();
        self.scan_block_breaks(&mut indent, &mut breaks.rest)?;
        self.reader.ensure(1)?;
        let mut leading_blank = false;
        while self.reader.mark.column == indent && !self.reader.is_end() {
            let trailing_blank = self.reader.is_blank(0);
            if literal || leading_blank || trailing_blank {
                breaks.keep_in(&mut text);
            } else {
                breaks.fold_into(&mut text);
            }
            leading_blank = trailing_blank;

            let from = self.reader.position();
            while !self.reader.is_break_or_end(0) {
                self.reader.skip();
                self.reader.skip_until(&chars::LINE_END);
                self.reader.ensure(1)?;
            }
            text.extend_from_slice(self.reader.slice(from, self.reader.position()));
            self.reader.ensure(2)?;
            breaks.first = self.reader.line_break();
            self.scan_block_breaks(&mut indent, &mut breaks.rest)?;
        }
        if chomping != Chomping::Strip {
            text.extend_from_slice(breaks.first);
        }
        if chomping == Chomping::Keep {
            text.append(&mut breaks.rest);
        }
        Ok(Cow::Owned(text))
    }

    /// The indicators behind `|` or `>`, in either order: chomping, and a digit from 1 for the
    /// indentation (0 if there is none).
    fn scan_block_header(&mut self) -> Scan<(Chomping, usize)> {
        if let Some(chomping) = self.scan_chomping() {
            self.reader.ensure(1)?;
            return Ok((chomping, self.scan_increment()?));
        }
        let increment = self.scan_increment()?;
        if increment == 0 {
            return Ok((Chomping::Clip, 0));
        }
        self.reader.ensure(1)?;
        Ok((self.scan_chomping().unwrap_or(Chomping::Clip), increment))
    }

    fn scan_chomping(&mut self) -> Option<Chomping> {
        let chomping = match self.reader.at(0) {
            b'+' => Chomping::Keep,
            b'-' => Chomping::Strip,
            _ => return None,
        };
        self.reader.skip_ascii(1);
        Some(chomping)
    }

    fn scan_increment(&mut self) -> Scan<usize> {
        let digit = self.reader.at(0);
        if digit == b'0' {
            return Err(self.error("found an indentation indicator equal to 0"));
        }
        if !digit.is_ascii_digit() {
            return Ok(0);
        }
        self.reader.skip_ascii(1);
        Ok(usize::from(digit - b'0'))
    }

    /// Moves over indentation and empty lines and finds the indentation if it is not known (0).
    fn scan_block_breaks(&mut self, indent: &mut usize, breaks: &mut Vec<u8>) -> Scan<()> {
        let mut deepest = 0;
        loop {
            self.reader.ensure(1)?;
            while (*indent == 0 || self.reader.mark.column < *indent) && self.reader.at(0) == b' ' {
                self.reader.skip_ascii(1);
                self.reader.ensure(1)?;
            }
            let column = self.reader.mark.column;
            deepest = deepest.max(column);
            if (*indent == 0 || column < *indent) && self.reader.at(0) == b'\t' {
                return Err(
                    self.error("found a tab character where an indentation space is expected")
                );
            }
            if !self.reader.is_break(0) {
                break;
            }
            self.reader.ensure(2)?;
            breaks.extend_from_slice(self.reader.line_break());
        }
        if *indent == 0 {
            *indent = deepest.max((self.indent + 1).unsigned_abs()).max(1);
        }
        Ok(())
    }

    /// `yaml_parser_scan_flow_scalar`
    pub(super) fn scan_quoted_scalar(&mut self, single: bool) -> Scan<Cow<'t, [u8]>> {
        self.reader.skip_ascii(1);
        let (quote, stop) =
            if single { (b'\'', &chars::SINGLE_QUOTED) } else { (b'"', &chars::DOUBLE_QUOTED) };
        let mut text = Pieces::new(self.reader.position());
        let mut breaks = Breaks::default();
        loop {
            self.reader.ensure(4)?;
            if self.reader.is_document_indicator() {
                return Err(self.error("found unexpected document indicator"));
            }
            if self.reader.is_end() {
                return Err(self.error("found unexpected end of stream"));
            }
            let mut leading_blanks = false;
            while !self.reader.is_blank_or_end(0) {
                let byte = self.reader.at(0);
                if single && byte == b'\'' && self.reader.at(1) == b'\'' {
                    self.cut(&mut text, self.reader.position() + 1);
                    self.reader.skip_ascii(2);
                    text.from = self.reader.position();
                } else if byte == quote {
                    break;
                } else if byte == b'\\' && !single {
                    self.cut(&mut text, self.reader.position());
                    if self.reader.is_break(1) {
                        self.reader.ensure(3)?;
                        self.reader.skip_ascii(1);
                        self.reader.line_break();
                        text.from = self.reader.position();
                        leading_blanks = true;
                        break;
                    }
                    self.scan_escape(&mut text.done)?;
                    text.from = self.reader.position();
                } else {
                    self.reader.skip();
                    self.reader.skip_until(stop);
                }
                self.reader.ensure(2)?;
            }
            self.reader.ensure(1)?;
            if self.reader.at(0) == quote {
                break;
            }
            let end = self.reader.position();
            let is_cut = leading_blanks;
            self.scan_spaces(&mut breaks, &mut leading_blanks, 0)?;
            if leading_blanks {
                if !is_cut {
                    self.cut(&mut text, end);
                }
                breaks.fold_into(&mut text.done);
                text.from = self.reader.position();
            }
        }
        let last = self.reader.slice(text.from, self.reader.position());
        self.reader.skip_ascii(1);
        Ok(text.finish(last))
    }

    /// Moves over blanks and line breaks inside a scalar. `leading_blanks`: a line has ended, so
    /// that blanks lead the next; a tab among them must stand at `indent` or behind.
    fn scan_spaces(
        &mut self,
        breaks: &mut Breaks<'t>,
        leading_blanks: &mut bool,
        indent: usize,
    ) -> Scan<()> {
        while self.reader.is_blank(0) || self.reader.is_break(0) {
            if self.reader.is_break(0) {
                self.reader.ensure(2)?;
                let line_break = self.reader.line_break();
                if std::mem::replace(leading_blanks, true) {
                    breaks.rest.extend_from_slice(line_break);
                } else {
                    breaks.first = line_break;
                }
            } else {
                let is_tab = self.reader.at(0) == b'\t';
                if is_tab && *leading_blanks && self.reader.mark.column < indent {
                    return Err(self.error("found a tab character that violates indentation"));
                }
                self.reader.skip_ascii(1);
            }
            self.reader.ensure(1)?;
        }
        Ok(())
    }

    /// Moves the piece that ends at `end` into the text.
    fn cut(&self, text: &mut Pieces, end: usize) {
        text.done.extend_from_slice(self.reader.slice(text.from, end));
        text.from = end;
    }

    /// The escape sequence at the cursor.
    fn scan_escape(&mut self, text: &mut Vec<u8>) -> Scan<()> {
        let plain: &[u8] = match self.reader.at(1) {
            b'0' => b"\0",
            b'a' => b"\x07",
            b'b' => b"\x08",
            b't' | b'\t' => b"\t",
            b'n' => b"\n",
            b'v' => b"\x0b",
            b'f' => b"\x0c",
            b'r' => b"\r",
            b'e' => b"\x1b",
            b' ' => b" ",
            b'"' => b"\"",
            b'\'' => b"'",
            b'\\' => b"\\",
            b'N' => "\u{85}".as_bytes(),
            b'_' => "\u{a0}".as_bytes(),
            b'L' => "\u{2028}".as_bytes(),
            b'P' => "\u{2029}".as_bytes(),
            b'x' => return self.scan_code(2, text),
            b'u' => return self.scan_code(4, text),
            b'U' => return self.scan_code(8, text),
            _ => return Err(self.error("found unknown escape character")),
        };
        text.extend_from_slice(plain);
        self.reader.skip_ascii(2);
        Ok(())
    }

    fn scan_code(&mut self, digits: usize, text: &mut Vec<u8>) -> Scan<()> {
        self.reader.skip_ascii(2);
        self.reader.ensure(digits)?;
        let mut code: u32 = 0;
        for ahead in 0..digits {
            let Some(digit) = char::from(self.reader.at(ahead)).to_digit(16) else {
                return Err(self.error("did not find expected hexdecimal number"));
            };
            code = code << 4 | digit;
        }
        let Some(c) = char::from_u32(code) else {
            return Err(self.error("found invalid Unicode character escape code"));
        };
        text.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        self.reader.skip_ascii(digits);
        Ok(())
    }

    /// `yaml_parser_scan_plain_scalar`
    pub(super) fn scan_plain_scalar(&mut self) -> Scan<Cow<'t, [u8]>> {
        let indent = (self.indent + 1).unsigned_abs();
        let in_flow = self.flow_level > 0;
        let stop = if in_flow { &chars::PLAIN_FLOW } else { &chars::PLAIN_BLOCK };
        let mut text = Pieces::new(self.reader.position());
        let mut end = text.from;
        let mut leading_blanks = false;
        let mut breaks = Breaks::default();
        loop {
            self.reader.ensure(4)?;
            if self.reader.is_document_indicator() || self.reader.at(0) == b'#' {
                break;
            }
            while !self.reader.is_blank_or_end(0) {
                match self.reader.at(0) {
                    b':' if self.reader.is_blank_or_end(1) => break,
                    b',' | b'?' | b'[' | b']' | b'{' | b'}' if in_flow => break,
                    _ => {}
                }
                if leading_blanks {
                    self.cut(&mut text, end);
                    breaks.fold_into(&mut text.done);
                    text.from = self.reader.position();
                    leading_blanks = false;
                }
                self.reader.skip();
                self.reader.skip_until(stop);
                end = self.reader.position();
                self.reader.ensure(2)?;
            }
            if !(self.reader.is_blank(0) || self.reader.is_break(0)) {
                break;
            }
            self.reader.ensure(1)?;
            self.scan_spaces(&mut breaks, &mut leading_blanks, indent)?;
            if !in_flow && self.reader.mark.column < indent {
                break;
            }
        }
        if leading_blanks {
            self.simple_key_allowed = true;
        }
        let last = self.reader.slice(text.from, end);
        Ok(text.finish(last))
    }
}
