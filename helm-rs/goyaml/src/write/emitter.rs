//! Laying out YAML, after go-yaml's `emitterc.go`.
//!
//! libyaml's emitter takes events and looks ahead; here the tree itself is at hand, so a stack of
//! collections replaces its states. Only block collections occur, and empty ones as `[]` and `{}`.

use super::Dialect;
use super::analyze::{Analysis, analyze};
use super::order::sort_entries;
use super::text::{is_break, is_printable, next};
use crate::{Node, Source};

/// The indentation of a level.
const INDENT: isize = 2;

/// The longest key, in bytes with its tag, that stands in front of a colon.
const MAX_SIMPLE_KEY: usize = 128;

/// How a scalar is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    Plain,
    SingleQuoted,
    DoubleQuoted,
    Literal,
}

/// A scalar's text and what is asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scalar<'s> {
    pub(super) text: &'s [u8],
    /// Whether `!!binary` stands in front.
    pub(super) is_binary: bool,
    pub(super) style: Style,
}

/// Where a node stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Root,
    Item,
    Key,
    Value,
}

/// A collection that is being written, and the indentation around it.
enum Open<S: Source> {
    Seq { items: std::vec::IntoIter<S>, outer: isize },
    Map { entries: std::vec::IntoIter<(S::Text, S)>, outer: isize },
}

/// Turns leaves into text; an error ends the output.
pub(super) trait Leaves<S: Source> {
    /// Why a value cannot be written.
    type Error;

    /// Writes a scalar that is no collection.
    fn scalar(&mut self, out: &mut Emitter, node: Node<S>, place: Place)
    -> Result<(), Self::Error>;

    /// Writes a key; returns whether its colon follows on the same line.
    fn key(&mut self, out: &mut Emitter, key: &[u8]) -> Result<bool, Self::Error>;

    /// Refuses to go on below `depth` collections and behind `written` bytes.
    fn check(&mut self, depth: usize, written: usize) -> Result<(), Self::Error>;
}

/// The output and libyaml's notion of where it stands.
#[derive(Debug)]
pub(super) struct Emitter {
    out: Vec<u8>,
    dialect: Dialect,
    /// The column at which lines are folded.
    best_width: usize,
    column: usize,
    indent: isize,
    /// Whether the last character was white space.
    whitespace: bool,
    /// Whether only indentation and indicators stand on the line.
    indention: bool,
}

impl Emitter {
    pub(super) fn new(dialect: Dialect) -> Self {
        Self {
            out: Vec::with_capacity(256),
            dialect,
            best_width: match dialect {
                Dialect::V2 => 80,
                Dialect::V3 => usize::MAX,
            },
            column: 0,
            indent: -1,
            whitespace: true,
            indention: true,
        }
    }

    /// Writes a document.
    pub(super) fn document<S: Source, L: Leaves<S>>(
        mut self,
        root: &S,
        leaves: &mut L,
    ) -> Result<Vec<u8>, L::Error> {
        let mut open: Vec<Open<S>> = Vec::new();
        self.node(root.node(), Place::Root, &mut open, leaves)?;
        loop {
            let depth = open.len();
            let Some(around) = open.last_mut() else { break };
            leaves.check(depth, self.out.len())?;
            match around {
                Open::Seq { items, outer } => {
                    let Some(item) = items.next() else {
                        self.indent = *outer;
                        open.pop();
                        continue;
                    };
                    self.write_indent();
                    self.write_indicator(b"-", true, true);
                    self.node(item.node(), Place::Item, &mut open, leaves)?;
                }
                Open::Map { entries, outer } => {
                    let Some((key, value)) = entries.next() else {
                        self.indent = *outer;
                        open.pop();
                        continue;
                    };
                    self.write_indent();
                    if leaves.key(&mut self, key.as_ref())? {
                        self.write_indicator(b":", false, false);
                    } else {
                        self.write_indent();
                        self.write_indicator(b":", true, true);
                    }
                    self.node(value.node(), Place::Value, &mut open, leaves)?;
                }
            }
        }
        self.write_indent();
        Ok(self.out)
    }

    fn node<S: Source, L: Leaves<S>>(
        &mut self,
        node: Node<S>,
        place: Place,
        open: &mut Vec<Open<S>>,
        leaves: &mut L,
    ) -> Result<(), L::Error> {
        match node {
            Node::Seq(items) if items.is_empty() => self.write_indicator(b"[]", true, false),
            Node::Map(entries) | Node::Struct(entries) if entries.is_empty() => {
                self.write_indicator(b"{}", true, false);
            }
            Node::Seq(items) => {
                let outer = self.indent;
                // v2 does not indent a sequence below its key.
                let indentless =
                    self.dialect == Dialect::V2 && place == Place::Value && !self.indention;
                self.increase_indent(indentless);
                open.push(Open::Seq { items: items.into_iter(), outer });
            }
            Node::Map(mut entries) => {
                let outer = self.indent;
                self.increase_indent(false);
                sort_entries(&mut entries, self.dialect);
                open.push(Open::Map { entries: entries.into_iter(), outer });
            }
            Node::Struct(mut fields) => {
                let outer = self.indent;
                self.increase_indent(false);
                if self.dialect == Dialect::V2 {
                    sort_entries(&mut fields, self.dialect);
                }
                open.push(Open::Map { entries: fields.into_iter(), outer });
            }
            leaf => leaves.scalar(self, leaf, place)?,
        }
        Ok(())
    }

    const fn increase_indent(&mut self, indentless: bool) {
        if self.indent < 0 {
            self.indent = 0;
        } else if !indentless {
            self.indent += INDENT;
        }
    }

    /// Writes a key and returns whether its colon may follow.
    pub(super) fn key(&mut self, scalar: Scalar<'_>) -> bool {
        let analysis = analyze(scalar.text, self.dialect);
        let tag_length = if scalar.is_binary { "!!binary".len() } else { 0 };
        let simple = !analysis.multiline && scalar.text.len() + tag_length <= MAX_SIMPLE_KEY;
        if simple {
            self.analyzed_scalar(scalar, analysis, Place::Key);
        } else {
            self.write_indicator(b"?", true, true);
            self.analyzed_scalar(scalar, analysis, Place::Value);
        }
        simple
    }

    /// Writes a scalar in the style that comes closest to the one asked for.
    pub(super) fn scalar(&mut self, scalar: Scalar<'_>, place: Place) {
        let analysis = analyze(scalar.text, self.dialect);
        self.analyzed_scalar(scalar, analysis, place);
    }

    /// Writes a plain scalar of ASCII without spaces that needs no look at its style.
    pub(super) fn word(&mut self, text: &[u8]) {
        self.separate();
        self.append(text);
        self.whitespace = false;
        self.indention = false;
    }

    /// `yaml_emitter_emit_scalar`
    fn analyzed_scalar(&mut self, scalar: Scalar<'_>, analysis: Analysis, place: Place) {
        let simple_key = place == Place::Key;
        let style = select_style(scalar, analysis, simple_key);
        if scalar.is_binary {
            self.word(b"!!binary");
        }
        let outer = self.indent;
        self.indent = if outer < 0 { INDENT } else { outer + INDENT };
        let allow_breaks = !simple_key;
        match style {
            Style::Plain => self.write_plain(scalar.text, allow_breaks),
            Style::SingleQuoted => self.write_single_quoted(scalar.text, allow_breaks),
            Style::DoubleQuoted => self.write_double_quoted(scalar.text, allow_breaks),
            Style::Literal => self.write_literal(scalar.text),
        }
        self.indent = outer;
    }

    fn put(&mut self, byte: u8) {
        self.out.push(byte);
        self.column += 1;
    }

    fn put_break(&mut self) {
        self.out.push(b'\n');
        self.column = 0;
        self.indention = true;
    }

    /// Puts a space unless white space stands there.
    fn separate(&mut self) {
        if !self.whitespace {
            self.put(b' ');
        }
    }

    fn append(&mut self, text: &[u8]) {
        self.out.extend_from_slice(text);
        self.column += if text.is_ascii() {
            text.len()
        } else {
            text.iter().filter(|&&byte| byte & 0xc0 != 0x80).count()
        };
    }

    /// Appends the character at `at` and returns where the next one begins.
    fn append_char(&mut self, text: &[u8], at: usize) -> usize {
        let end = next(text, at);
        self.out.extend_from_slice(text.get(at..end).unwrap_or_default());
        self.column += 1;
        end
    }

    /// Appends the line break at `at` and returns where the next character begins.
    fn append_break(&mut self, text: &[u8], at: usize) -> usize {
        let end = next(text, at);
        self.out.extend_from_slice(text.get(at..end).unwrap_or_default());
        self.column = 0;
        self.indention = true;
        end
    }

    /// `yaml_emitter_write_indent`
    fn write_indent(&mut self) {
        let indent = self.indent.max(0).unsigned_abs();
        if !self.indention || self.column > indent || (self.column == indent && !self.whitespace) {
            self.put_break();
        }
        while self.column < indent {
            self.put(b' ');
        }
        self.whitespace = true;
        self.indention = true;
    }

    /// `yaml_emitter_write_indicator` for one that is no white space itself.
    fn write_indicator(&mut self, indicator: &[u8], need_whitespace: bool, is_indention: bool) {
        if need_whitespace {
            self.separate();
        }
        self.append(indicator);
        self.whitespace = false;
        self.indention = self.indention && is_indention;
    }

    /// Whether no space of the text can be a place to fold.
    fn fits(&self, text: &[u8], allow_breaks: bool) -> bool {
        !allow_breaks || self.column + text.len() < self.best_width
    }

    fn write_plain(&mut self, text: &[u8], allow_breaks: bool) {
        if self.dialect == Dialect::V3 && text.is_empty() {
            self.indention = false;
            return;
        }
        self.separate();
        // A plain scalar has no line breaks of its own.
        if self.fits(text, allow_breaks) {
            self.append(text);
        } else {
            let mut spaces = false;
            let mut at = 0;
            while let Some(&byte) = text.get(at) {
                if byte == b' ' {
                    if !spaces && self.column > self.best_width && text.get(at + 1) != Some(&b' ') {
                        self.write_indent();
                        at += 1;
                    } else {
                        at = self.append_char(text, at);
                    }
                    spaces = true;
                } else {
                    at = self.append_char(text, at);
                    self.indention = false;
                    spaces = false;
                }
            }
        }
        self.whitespace = false;
        self.indention = false;
    }

    fn write_single_quoted(&mut self, text: &[u8], allow_breaks: bool) {
        self.write_indicator(b"'", true, false);
        let (mut spaces, mut breaks) = (false, false);
        let mut at = 0;
        while let Some(&byte) = text.get(at) {
            if byte == b' ' {
                if allow_breaks
                    && !spaces
                    && self.column > self.best_width
                    && at > 0
                    && at + 1 < text.len()
                    && text.get(at + 1) != Some(&b' ')
                {
                    self.write_indent();
                    at += 1;
                } else {
                    at = self.append_char(text, at);
                }
                spaces = true;
            } else if is_break(text, at) {
                if !breaks && byte == b'\n' {
                    self.put_break();
                }
                at = self.append_break(text, at);
                breaks = true;
            } else {
                if breaks {
                    self.write_indent();
                }
                if byte == b'\'' {
                    self.put(b'\'');
                }
                at = self.append_char(text, at);
                self.indention = false;
                spaces = false;
                breaks = false;
            }
        }
        self.write_indicator(b"'", false, false);
        self.whitespace = false;
        self.indention = false;
    }

    fn write_double_quoted(&mut self, text: &[u8], allow_breaks: bool) {
        self.write_indicator(b"\"", true, false);
        // libyaml looks for a byte order mark at the start of the text and not at the character.
        let escape_all = text.starts_with(b"\xef\xbb\xbf");
        let mut spaces = false;
        let mut at = 0;
        while let Some(&byte) = text.get(at) {
            if escape_all
                || !is_printable(text, at)
                || is_break(text, at)
                || matches!(byte, b'"' | b'\\')
            {
                let end = next(text, at);
                self.write_escape(text.get(at..end).unwrap_or_default());
                at = end;
                spaces = false;
            } else if byte == b' ' {
                if allow_breaks
                    && !spaces
                    && self.column > self.best_width
                    && at > 0
                    && at + 1 < text.len()
                {
                    self.write_indent();
                    if text.get(at + 1) == Some(&b' ') {
                        self.put(b'\\');
                    }
                    at += 1;
                } else {
                    at = self.append_char(text, at);
                }
                spaces = true;
            } else {
                at = self.append_char(text, at);
                spaces = false;
            }
        }
        self.write_indicator(b"\"", false, false);
        self.whitespace = false;
        self.indention = false;
    }

    fn write_escape(&mut self, character: &[u8]) {
        let code = bstr::decode_utf8(character).0.map_or(0, u32::from);
        let short = match code {
            0x00 => "\\0",
            0x07 => "\\a",
            0x08 => "\\b",
            0x09 => "\\t",
            0x0a => "\\n",
            0x0b => "\\v",
            0x0c => "\\f",
            0x0d => "\\r",
            0x1b => "\\e",
            0x22 => "\\\"",
            0x5c => "\\\\",
            0x85 => "\\N",
            0xa0 => "\\_",
            0x2028 => "\\L",
            0x2029 => "\\P",
            _ if code <= 0xff => return self.append(format!("\\x{code:02X}").as_bytes()),
            _ if code <= 0xffff => return self.append(format!("\\u{code:04X}").as_bytes()),
            _ => return self.append(format!("\\U{code:08X}").as_bytes()),
        };
        self.append(short.as_bytes());
    }

    fn write_literal(&mut self, text: &[u8]) {
        self.write_indicator(b"|", true, false);
        if text.first() == Some(&b' ') || is_break(text, 0) {
            self.write_indicator(b"2", false, false);
        }
        if let Some(chomping) = chomping(text) {
            self.write_indicator(&[chomping], false, false);
        }
        self.put_break();
        self.whitespace = true;
        let mut breaks = true;
        let mut at = 0;
        while at < text.len() {
            if is_break(text, at) {
                at = self.append_break(text, at);
                breaks = true;
                continue;
            }
            if breaks {
                self.write_indent();
            }
            let end = line_end(text, at);
            self.append(text.get(at..end).unwrap_or_default());
            self.indention = false;
            breaks = false;
            at = end;
        }
    }
}

/// Where the line that goes on at `at` ends.
fn line_end(text: &[u8], mut at: usize) -> usize {
    while at < text.len() && !is_break(text, at) {
        at += 1;
    }
    at
}

/// The indicator for the line breaks at the end of a literal scalar.
fn chomping(text: &[u8]) -> Option<u8> {
    let before = |end: usize| {
        let mut start = end.checked_sub(1)?;
        while text.get(start).is_some_and(|byte| byte & 0xc0 == 0x80) {
            start = start.checked_sub(1)?;
        }
        Some(start)
    };
    match before(text.len()) {
        Some(last) if is_break(text, last) => match before(last) {
            Some(last_but_one) => is_break(text, last_but_one).then_some(b'+'),
            None => Some(b'+'),
        },
        _ => Some(b'-'),
    }
}

/// `yaml_emitter_select_scalar_style`
fn select_style(scalar: Scalar<'_>, analysis: Analysis, simple_key: bool) -> Style {
    let mut style = scalar.style;
    if simple_key && analysis.multiline {
        style = Style::DoubleQuoted;
    }
    if style == Style::Plain && (!analysis.plain_allowed || (scalar.text.is_empty() && simple_key))
    {
        style = Style::SingleQuoted;
    }
    if style == Style::SingleQuoted && !analysis.single_quoted_allowed {
        style = Style::DoubleQuoted;
    }
    if style == Style::Literal && (!analysis.block_allowed || simple_key) {
        style = Style::DoubleQuoted;
    }
    style
}
