//! JSON streams cut into objects: lists, one object after another (NDJSON too), arrays.
//!
//! Only strings and brackets are looked at; whether an object is JSON is seen when it is read.

use std::io::BufRead;

use bstr::ByteSlice;

use super::parts::mentions_record;
use super::scan::FaultKind;
use super::sniff::Sink;
use super::{Chunk, End, Fault, Form, Hidden, InputLimits, Piece, Storage};

struct Splitter<'a> {
    place: &'a str,
    limit: InputLimits,
    /// Open brackets.
    depth: usize,
    /// The depth of a list's elements: inside a top-level array, or in `items` of an object.
    list: Option<usize>,
    /// The top-level object had `items`: the rest of it is no object of its own.
    was_list: bool,
    in_string: bool,
    escaped: bool,
    /// The last string directly in a top-level object, and whether a colon followed it.
    key: Vec<u8>,
    after_colon: bool,
    /// The string being read is the value of `kind` of a top-level object.
    is_kind: bool,
    list_of: Option<Storage>,
    element: Vec<u8>,
    overflow: bool,
    /// What stands around the elements of a list, and texts between objects.
    around: Vec<u8>,
    count: usize,
}

/// Splits a stream of JSON.
pub(super) fn split(
    place: &str,
    reader: &mut dyn BufRead,
    limits: &InputLimits,
    sink: &mut Sink<'_>,
) -> bool {
    let mut splitter = Splitter {
        place,
        limit: *limits,
        depth: 0,
        list: None,
        was_list: false,
        in_string: false,
        escaped: false,
        key: Vec::new(),
        after_colon: false,
        is_kind: false,
        list_of: None,
        element: Vec::new(),
        overflow: false,
        around: Vec::new(),
        count: 0,
    };
    loop {
        let (go_on, length) = match reader.fill_buf() {
            Ok([]) => break,
            Ok(bytes) => (splitter.feed(bytes, sink), bytes.len()),
            Err(source) => return sink(Piece::Fault(Fault::io(place, source))),
        };
        reader.consume(length);
        match go_on {
            Feed::More => {}
            Feed::Stop => return false,
            Feed::Broken => return true,
        }
    }
    if splitter.depth > 0 {
        let place = splitter.next_place();
        return sink(Piece::Fault(Fault::cut(&place, None)));
    }
    splitter.end_list(sink)
}

enum Feed {
    More,
    /// The sink has enough.
    Stop,
    /// The rest of the stream makes no sense.
    Broken,
}

impl Splitter<'_> {
    fn next_place(&self) -> String {
        format!("{} object {}", self.place, self.count + 1)
    }

    /// Whether the bytes at this depth belong to an object that will be handed on.
    fn collects(&self) -> bool {
        match self.list {
            Some(list) => self.depth > list,
            None => self.depth > 0 && !self.was_list,
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        if !self.collects() {
            // Kubectl writes a few fields; no more of a list is held than of an object.
            if (self.was_list || self.depth == 0) && self.around.len() < self.limit.object {
                self.around.extend_from_slice(bytes);
            }
            return;
        }
        if self.overflow {
            return;
        }
        if self.element.len() + bytes.len() > self.limit.object {
            self.overflow = true;
            self.element = Vec::new();
        } else {
            self.element.extend_from_slice(bytes);
        }
    }

    fn feed(&mut self, bytes: &[u8], sink: &mut Sink<'_>) -> Feed {
        let mut rest = bytes;
        while let Some((&byte, tail)) = rest.split_first() {
            if self.in_string {
                rest = self.string(rest);
                continue;
            }
            let is_field = self.after_colon && self.depth == 1 && self.list.is_none();
            let opens_items = is_field && byte == b'[' && self.key == b"items";
            let is_kind = is_field && self.key == b"kind";
            if !byte.is_ascii_whitespace() {
                self.after_colon = byte == b':';
            }
            match byte {
                b'"' => {
                    self.in_string = true;
                    self.is_kind = is_kind;
                    if self.depth == 1 && self.list.is_none() {
                        self.key.clear();
                    }
                    self.push(b"\"");
                }
                b'{' | b'[' => {
                    self.depth += 1;
                    if opens_items || (byte == b'[' && self.depth == 1) {
                        self.list = Some(self.depth);
                        self.was_list = true;
                        self.around.append(&mut self.element);
                        self.overflow = false;
                    } else {
                        self.push(&[byte]);
                    }
                }
                b'}' | b']' => {
                    self.push(&[byte]);
                    let Some(depth) = self.depth.checked_sub(1) else {
                        return self.broken(byte, sink);
                    };
                    self.depth = depth;
                    if !self.close(sink) {
                        return Feed::Stop;
                    }
                }
                _ if self.depth > 0 => self.push(&[byte]),
                // A byte order mark, and commas between objects that were pasted together.
                b',' | 0xef | 0xbb | 0xbf | 0x1e => {}
                _ if byte.is_ascii_whitespace() => {}
                _ => return self.broken(byte, sink),
            }
            rest = tail;
        }
        Feed::More
    }

    /// Inside a string: runs to its end or to the end of the bytes.
    fn string<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        if self.escaped {
            self.escaped = false;
            let (first, rest) = bytes.split_at(1.min(bytes.len()));
            self.push(first);
            return rest;
        }
        let end = bytes.find_byteset(b"\"\\").map_or(bytes.len(), |at| at + 1);
        let (text, rest) = bytes.split_at(end);
        self.push(text);
        match text.last() {
            Some(b'\\') => self.escaped = true,
            Some(b'"') => self.in_string = false,
            _ => {}
        }
        if self.depth == 1 && self.list.is_none() && self.key.len() < 16 {
            let text = text.strip_suffix(b"\"").unwrap_or(text);
            self.key.extend_from_slice(text.get(..16).unwrap_or(text));
        }
        if !self.in_string && std::mem::take(&mut self.is_kind) {
            self.list_of = Storage::of_list(&self.key);
        }
        rest
    }

    /// After a closing bracket: hands on what is complete. `false` when the sink has enough.
    fn close(&mut self, sink: &mut Sink<'_>) -> bool {
        match self.list {
            Some(list) if self.depth < list => {
                self.list = None;
                self.element.clear();
            }
            Some(list) if self.depth == list => return self.emit(sink),
            None if self.depth == 0 && !self.was_list => {
                return self.emit(sink) && self.end_list(sink);
            }
            _ => {}
        }
        if self.depth == 0 {
            self.was_list = false;
            self.list_of = None;
            return self.end_list(sink);
        }
        true
    }

    /// What stands around the elements of a list is no record, unless an edit moved it there.
    fn end_list(&mut self, sink: &mut Sink<'_>) -> bool {
        let around = std::mem::take(&mut self.around);
        if !mentions_record(&around) {
            return true;
        }
        let fault = Fault::new(&self.next_place(), FaultKind::Outside);
        self.count += 1;
        sink(Piece::Fault(fault.hiding(Hidden::of_text(&around, true))))
    }

    fn emit(&mut self, sink: &mut Sink<'_>) -> bool {
        let place = self.next_place();
        self.count += 1;
        let text = std::mem::take(&mut self.element);
        if std::mem::take(&mut self.overflow) {
            return sink(Piece::Fault(Fault::too_large(&place, &self.limit)));
        }
        sink(Piece::Chunk(Chunk {
            place,
            form: Form::Json,
            list_of: self.list_of,
            end: End::Told,
            text,
        }))
    }

    fn broken(&self, byte: u8, sink: &mut Sink<'_>) -> Feed {
        let fault = Fault::unexpected(&self.next_place(), byte);
        if sink(Piece::Fault(fault)) { Feed::Broken } else { Feed::Stop }
    }
}
