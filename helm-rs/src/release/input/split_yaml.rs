//! YAML streams cut into objects: documents, and the items of a `List` as `kubectl` writes it.
//!
//! Only indentation is looked at, so a list must be in block layout to be cut up; in any other
//! layout it is one object. A line that cannot stand where it does makes its item a fault, and the
//! next item is read again; so is what stands outside of all items and looks like a record.

use std::io::{BufRead, Read};

use bstr::ByteSlice;

use super::parts::mentions_record;
use super::scan::FaultKind;
use super::sniff::Sink;
use super::{Chunk, End, Fault, Form, Hidden, InputLimits, Piece, Storage};

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// In a document that is no list so far.
    Document,
    /// After `items:`; the indentation of its dashes, once there is one.
    Items(Option<usize>),
    /// After the items of a list, whose dashes had this indentation.
    Tail(Option<usize>),
}

struct Splitter<'a> {
    place: &'a str,
    limits: &'a InputLimits,
    state: State,
    text: Vec<u8>,
    overflow: bool,
    /// The first line that cannot be part of the item in `text`, and is.
    misplaced: Option<usize>,
    count: usize,
    /// The number of the line being read.
    line: usize,
    /// What the list says before its items, until the first one is seen.
    head: Vec<u8>,
    /// What the list says behind its items, and the number of its first line.
    tail: Vec<u8>,
    tail_line: usize,
    /// The document has an API version, and said what kind it is, outside of items.
    has_version: bool,
    has_kind: bool,
    /// What the items of the list are, where its kind says it.
    list_of: Option<Storage>,
    item: Item,
    /// Items that do not say what they are, for as long as the list has not said it.
    waiting: Vec<Chunk>,
    waiting_bytes: usize,
}

/// What is seen of the item being read.
#[derive(Clone, Copy, Default)]
struct Item {
    /// The indentation of its fields.
    indent: Option<usize>,
    has_kind: bool,
}

impl Item {
    /// Looks at a line whose dash is a blank already.
    fn line(&mut self, line: &[u8]) {
        let (indent, rest) = indented(line);
        if matches!(rest.first(), None | Some(b'\n' | b'\r' | b'#')) {
            return;
        }
        if *self.indent.get_or_insert(indent) == indent {
            self.has_kind |= rest.starts_with(b"kind:") || rest.starts_with(b"\"kind\":");
        }
    }
}

/// Splits a stream of YAML.
pub(super) fn split(
    place: &str,
    reader: &mut dyn BufRead,
    limits: &InputLimits,
    sink: &mut Sink<'_>,
) -> bool {
    let state = State::Document;
    let mut splitter = Splitter {
        place,
        limits,
        state,
        text: Vec::new(),
        overflow: false,
        misplaced: None,
        count: 0,
        line: 0,
        head: Vec::new(),
        tail: Vec::new(),
        tail_line: 0,
        has_version: false,
        has_kind: false,
        list_of: None,
        item: Item::default(),
        waiting: Vec::new(),
        waiting_bytes: 0,
    };
    let mut line = Vec::new();
    loop {
        line.clear();
        let bound = limits.object as u64 + 1;
        match Read::take(&mut *reader, bound).read_until(b'\n', &mut line) {
            Ok(0) => return splitter.end_document(true, sink),
            Ok(_) if line.len() > limits.object => {
                // What follows is the rest of one line: its indentation says nothing.
                splitter.overflow = true;
                splitter.text.clear();
            }
            Ok(_) => {
                splitter.line += 1;
                if !splitter.line(&line, sink) {
                    return false;
                }
            }
            Err(source) => return sink(Piece::Fault(Fault::io(place, source))),
        }
    }
}

impl Splitter<'_> {
    fn line(&mut self, line: &[u8], sink: &mut Sink<'_>) -> bool {
        if is_marker(line, b"---") || is_marker(line, b"...") {
            let go_on = self.end_document(false, sink);
            // What stands beside the dashes belongs to the new document.
            if let Some(rest) = line.strip_prefix(b"---") {
                self.push(rest);
            }
            return go_on;
        }
        let is_start = self.state == State::Document && self.text.is_empty();
        // A byte order mark, and directives before a document.
        let line = line.strip_prefix(b"\xef\xbb\xbf").filter(|_| is_start).unwrap_or(line);
        if is_start && line.starts_with(b"%") {
            return true;
        }
        self.has_version |= value_of(line, "apiVersion").is_some();
        if let Some(kind) = value_of(line, "kind") {
            self.has_kind = true;
            let kind = kind.trim_with(|c| matches!(c, '"' | '\'') || c.is_ascii_whitespace());
            self.list_of = Storage::of_list(kind);
        }
        let opens = value_of(line, "items").is_some_and(|rest| rest.trim_ascii().is_empty());
        if self.state == State::Document && opens && !self.overflow {
            self.head = std::mem::take(&mut self.text);
            self.head.extend_from_slice(line);
            self.state = State::Items(None);
            return true;
        }
        match self.state {
            State::Document => self.push(line),
            State::Tail(dash) => return self.tail_line(line, dash, sink),
            State::Items(dash) => return self.item_line(line, dash, sink),
        }
        true
    }

    fn item_line(&mut self, line: &[u8], dash: Option<usize>, sink: &mut Sink<'_>) -> bool {
        let (indent, rest) = indented(line);
        if matches!(rest.trim_ascii(), [] | [b'#', ..]) {
            self.push(line);
            return true;
        }
        if is_entry(rest) && dash.is_none_or(|dash| dash == indent) {
            let head = std::mem::take(&mut self.head);
            let go_on = self.flush(End::Told, sink) && self.outside(&head, self.line, sink);
            self.open(line, indent);
            return go_on;
        }
        if dash.is_none() && !is_key(line) {
            // In another layout, or broken: one object as a whole.
            let items = std::mem::take(&mut self.text);
            self.text = std::mem::take(&mut self.head);
            self.push(&items);
            self.push(line);
            self.state = State::Document;
            return true;
        }
        if dash.is_some_and(|dash| indent > dash) {
            self.item.line(line);
            self.push(line);
            return true;
        }
        if !is_key(line) {
            self.misplaced.get_or_insert(self.line);
            self.push(line);
            return true;
        }
        let head = std::mem::take(&mut self.head);
        let go_on = self.flush(End::Told, sink) && self.outside(&head, self.line, sink);
        self.state = State::Tail(dash);
        self.tail_line = self.line;
        go_on && self.push_tail(line, sink)
    }

    /// Begins an item, on the line of its dash.
    fn open(&mut self, line: &[u8], indent: usize) {
        self.state = State::Items(Some(indent));
        // The dash becomes a blank, so that the item is a document with its old columns.
        let mut text = line.to_vec();
        if let Some(dash) = text.get_mut(indent) {
            *dash = b' ';
        }
        self.item = Item::default();
        self.item.line(&text);
        self.push(&text);
    }

    /// A line behind the items. Where it is an item again, what stood between was misplaced.
    fn tail_line(&mut self, line: &[u8], dash: Option<usize>, sink: &mut Sink<'_>) -> bool {
        let (indent, rest) = indented(line);
        if is_entry(rest) && dash.is_none_or(|dash| dash == indent) {
            let go_on = self.end_tail(sink);
            self.open(line, indent);
            return go_on;
        }
        self.push_tail(line, sink)
    }

    fn push_tail(&mut self, line: &[u8], sink: &mut Sink<'_>) -> bool {
        self.tail.extend_from_slice(line);
        // Kubectl writes three lines; what is too much for one object is told in parts.
        self.tail.len() <= self.limits.object || self.end_tail(sink)
    }

    fn end_tail(&mut self, sink: &mut Sink<'_>) -> bool {
        let line = std::mem::replace(&mut self.tail_line, self.line);
        let tail = std::mem::take(&mut self.tail);
        self.outside(&tail, line, sink)
    }

    /// What stands in a list and outside of its items is no record, unless an edit moved it there.
    fn outside(&mut self, text: &[u8], line: usize, sink: &mut Sink<'_>) -> bool {
        let said = text.lines_with_terminator().filter(|line| !line.trim_start().starts_with(b"#"));
        if !mentions_record(&bstr::concat(said)) {
            return true;
        }
        self.count += 1;
        let place = format!("{} object {}", self.place, self.count);
        let hides = Hidden::of_text(text, true);
        sink(Piece::Fault(Fault::new(&place, FaultKind::Misplaced { line }).hiding(hides)))
    }

    /// At the end of a document, which may be the end of the stream.
    fn end_document(&mut self, is_last: bool, sink: &mut Sink<'_>) -> bool {
        let is_list = self.state != State::Document;
        // `kubectl` writes the version before the items, and the kind behind them.
        let lacks_kind = is_list && self.has_version && !self.has_kind;
        // A dash and nothing more, not even a line's end.
        let is_dash = is_last
            && matches!(self.state, State::Items(Some(_)))
            && self.text.last().is_some_and(|&byte| byte != b'\n')
            && self.is_blank();
        let is_cut = lacks_kind || is_dash;
        let end = match (is_cut, is_last) {
            (true, _) => End::Cut(self.line),
            (false, true) => End::Stream(self.line),
            (false, false) => End::Told,
        };
        let has_item = matches!(self.state, State::Items(_)) && !self.is_blank();
        let go_on = if is_cut && !has_item {
            let place = format!("{} object {}", self.place, self.count + 1);
            sink(Piece::Fault(Fault::cut(&place, Some(self.line))))
        } else {
            self.flush(end, sink)
        };
        let head = std::mem::take(&mut self.head);
        let go_on = go_on
            && self.outside(&head, self.line, sink)
            && self.end_tail(sink)
            && self.hand_on(sink);
        self.state = State::Document;
        (self.has_version, self.has_kind) = (false, false);
        (self.list_of, self.item) = (None, Item::default());
        self.text.clear();
        go_on
    }

    /// Hands on the items that waited for what the list says.
    fn hand_on(&mut self, sink: &mut Sink<'_>) -> bool {
        self.waiting_bytes = 0;
        let list_of = self.list_of;
        std::mem::take(&mut self.waiting)
            .into_iter()
            .all(|chunk| sink(Piece::Chunk(Chunk { list_of, ..chunk })))
    }

    /// Whether nothing was collected but blanks and comments.
    fn is_blank(&self) -> bool {
        !self.overflow
            && self
                .text
                .split(|&byte| byte == b'\n')
                .all(|line| matches!(line.trim_ascii(), [] | [b'#', ..]))
    }

    fn push(&mut self, line: &[u8]) {
        if self.overflow || self.text.len() + line.len() > self.limits.object {
            self.overflow = true;
            self.text = Vec::new();
        } else {
            self.text.extend_from_slice(line);
        }
    }

    fn flush(&mut self, end: End, sink: &mut Sink<'_>) -> bool {
        let is_blank = self.is_blank();
        let text = std::mem::take(&mut self.text);
        let overflow = std::mem::take(&mut self.overflow);
        let misplaced = self.misplaced.take();
        if !overflow && (is_blank || matches!(self.state, State::Tail(_))) {
            return true;
        }
        self.count += 1;
        let place = format!("{} object {}", self.place, self.count);
        if overflow {
            return sink(Piece::Fault(Fault::too_large(&place, self.limits)));
        }
        if let Some(line) = misplaced {
            let hides = Hidden::of_text(&text, true);
            let fault = Fault::new(&place, FaultKind::Misplaced { line });
            return sink(Piece::Fault(fault.hiding(hides)));
        }
        let is_item = matches!(self.state, State::Items(_));
        let list_of = self.list_of.filter(|_| is_item);
        let chunk = Chunk { place, form: Form::Yaml, list_of, end, text };
        if is_item && !self.has_kind && !self.item.has_kind {
            self.waiting_bytes += chunk.text.len();
            self.waiting.push(chunk);
            // No more is held than one object may have.
            return self.waiting_bytes <= self.limits.object || self.hand_on(sink);
        }
        sink(Piece::Chunk(chunk))
    }
}

/// A line's indentation in blanks, and the rest of it.
fn indented(line: &[u8]) -> (usize, &[u8]) {
    let indent = line.iter().take_while(|&&byte| byte == b' ').count();
    (indent, line.get(indent..).unwrap_or_default())
}

/// Whether a line, without its indentation, begins an entry of a sequence.
fn is_entry(rest: &[u8]) -> bool {
    rest.starts_with(b"- ") || rest.trim_ascii_end() == b"-"
}

/// What stands behind a key of the outermost mapping, which may be in quotes.
fn value_of<'l>(line: &'l [u8], key: &str) -> Option<&'l [u8]> {
    let bare = || line.strip_prefix(key.as_bytes());
    let quoted = |quote: &[u8]| {
        let rest = line.strip_prefix(quote)?.strip_prefix(key.as_bytes())?;
        rest.strip_prefix(quote)
    };
    let rest = bare().or_else(|| quoted(b"\"")).or_else(|| quoted(b"'"))?;
    rest.trim_start_with(|c| c == ' ').strip_prefix(b":")
}

/// Whether a line is a key of the outermost mapping, in the forms that people and programs write.
fn is_key(line: &[u8]) -> bool {
    let quote = |byte: &u8| matches!(byte, b'"' | b'\'');
    let is_sign = |byte: &u8| byte.is_ascii_alphanumeric() || quote(byte) || b"_-./".contains(byte);
    let end = line.iter().position(|byte| !is_sign(byte)).unwrap_or(line.len());
    let rest = line.get(end..).and_then(|rest| rest.strip_prefix(b":"));
    let starts = line.first().is_some_and(|byte| byte.is_ascii_alphabetic() || quote(byte));
    starts && rest.is_some_and(|rest| rest.first().is_none_or(u8::is_ascii_whitespace))
}

/// Whether a line is a document marker: three signs, then a blank or nothing.
fn is_marker(line: &[u8], marker: &[u8]) -> bool {
    line.strip_prefix(marker).is_some_and(|rest| rest.first().is_none_or(u8::is_ascii_whitespace))
}
