//! From tokens to events, after go-yaml's `parserc.go`: a stack of states instead of recursion.

use std::borrow::Cow;

use super::reader::Input;
use super::scanner::{Scan, Scanner};
use super::token::{Kind, Token};
use crate::YamlError;

/// A piece of a document and the line it starts on.
#[derive(Debug)]
pub(super) struct Event<'t> {
    pub(super) kind: EventKind<'t>,
    pub(super) line: usize,
}

/// libyaml's events, without what go-yaml's decoder does not look at.
#[derive(Debug)]
pub(super) enum EventKind<'t> {
    StreamStart,
    StreamEnd,
    DocumentStart,
    DocumentEnd,
    Alias(&'t [u8]),
    Scalar {
        anchor: Option<&'t [u8]>,
        tag: Vec<u8>,
        value: Cow<'t, [u8]>,
        /// Whether the value alone decides the type.
        implicit: bool,
    },
    SequenceStart {
        anchor: Option<&'t [u8]>,
    },
    SequenceEnd,
    MappingStart {
        anchor: Option<&'t [u8]>,
    },
    MappingEnd,
}

#[derive(Clone, Copy, Debug)]
enum State {
    StreamStart,
    ImplicitDocumentStart,
    DocumentStart,
    DocumentContent,
    DocumentEnd,
    BlockNode,
    BlockSequenceFirstEntry,
    BlockSequenceEntry,
    IndentlessSequenceEntry,
    BlockMappingFirstKey,
    BlockMappingKey,
    BlockMappingValue,
    FlowSequenceFirstEntry,
    FlowSequenceEntry,
    FlowSequenceEntryMappingKey,
    FlowSequenceEntryMappingValue,
    FlowSequenceEntryMappingEnd,
    FlowMappingFirstKey,
    FlowMappingKey,
    FlowMappingValue,
    FlowMappingEmptyValue,
    End,
}

/// The parser of one stream.
#[derive(Debug)]
pub(super) struct Parser<'t> {
    scanner: Scanner<'t>,
    state: State,
    states: Vec<State>,
    /// The lines on which the open collections start.
    marks: Vec<usize>,
    /// The `%TAG` directives of the current document.
    tags: Vec<TagDirective<'t>>,
}

/// A short form of tags.
#[derive(Debug)]
struct TagDirective<'t> {
    handle: &'t [u8],
    prefix: Cow<'t, [u8]>,
}

/// A parser error. go-yaml prints its lines one too low, and none where that would be 0.
fn error(problem: &str, line: usize) -> YamlError {
    error_in(0, problem, line)
}

/// A parser error inside of something that starts on line `context`.
fn error_in(context: usize, problem: &str, line: usize) -> YamlError {
    let line = if line == 0 { context } else { line };
    YamlError { line: (line != 0).then_some(line), problem: problem.to_owned() }
}

impl<'t> Parser<'t> {
    pub(super) fn new(input: &'t Input<'_>) -> Self {
        Self {
            scanner: Scanner::new(input),
            state: State::StreamStart,
            states: Vec::new(),
            marks: Vec::new(),
            tags: Vec::new(),
        }
    }

    /// The next event.
    pub(super) fn next(&mut self) -> Scan<Event<'t>> {
        match self.state {
            State::StreamStart => self.stream_start(),
            State::ImplicitDocumentStart => self.document_start(true),
            State::DocumentStart => self.document_start(false),
            State::DocumentContent => self.document_content(),
            State::DocumentEnd => self.document_end(),
            State::BlockNode => self.node(true, false),
            State::BlockSequenceFirstEntry => self.block_sequence_entry(true),
            State::BlockSequenceEntry => self.block_sequence_entry(false),
            State::IndentlessSequenceEntry => self.indentless_sequence_entry(),
            State::BlockMappingFirstKey => self.block_mapping_key(true),
            State::BlockMappingKey => self.block_mapping_key(false),
            State::BlockMappingValue => self.block_mapping_value(),
            State::FlowSequenceFirstEntry => self.flow_sequence_entry(true),
            State::FlowSequenceEntry => self.flow_sequence_entry(false),
            State::FlowSequenceEntryMappingKey => self.flow_sequence_entry_mapping_key(),
            State::FlowSequenceEntryMappingValue => self.flow_sequence_entry_mapping_value(),
            State::FlowSequenceEntryMappingEnd => {
                let line = self.scanner.peek()?.line;
                self.state = State::FlowSequenceEntry;
                Ok(Event { kind: EventKind::MappingEnd, line })
            }
            State::FlowMappingFirstKey => self.flow_mapping_key(true),
            State::FlowMappingKey => self.flow_mapping_key(false),
            State::FlowMappingValue => self.flow_mapping_value(false),
            State::FlowMappingEmptyValue => self.flow_mapping_value(true),
            State::End => Ok(Event { kind: EventKind::StreamEnd, line: 0 }),
        }
    }

    fn pop_state(&mut self) {
        self.state = self.states.pop().unwrap_or(State::End);
    }

    /// Takes the token that ends a collection.
    fn end_collection(&mut self, kind: EventKind<'t>) -> Event<'t> {
        self.pop_state();
        self.marks.pop();
        Event { kind, line: self.scanner.take().line }
    }

    /// The node at hand, after which the parser goes on in `next`.
    fn node_then(&mut self, next: State, block: bool, indentless: bool) -> Scan<Event<'t>> {
        self.states.push(next);
        self.node(block, indentless)
    }

    /// An empty scalar in place of a node that is left out.
    fn empty_then(&mut self, next: State, line: usize) -> Event<'t> {
        self.state = next;
        empty_scalar(line)
    }

    fn unfinished(&mut self, problem: &str, line: usize) -> YamlError {
        error_in(self.marks.pop().unwrap_or(0), problem, line)
    }

    fn stream_start(&mut self) -> Scan<Event<'t>> {
        let line = self.scanner.peek()?.line;
        self.scanner.take();
        self.state = State::ImplicitDocumentStart;
        Ok(Event { kind: EventKind::StreamStart, line })
    }

    fn document_start(&mut self, implicit: bool) -> Scan<Event<'t>> {
        let mut token = self.scanner.peek()?;
        if !implicit {
            while matches!(token.kind, Kind::DocumentEnd) {
                self.scanner.take();
                token = self.scanner.peek()?;
            }
        }
        let line = token.line;
        match token.kind {
            Kind::StreamEnd => {
                self.state = State::End;
                self.scanner.take();
                return Ok(Event { kind: EventKind::StreamEnd, line });
            }
            Kind::VersionDirective { .. } | Kind::TagDirective { .. } | Kind::DocumentStart => {}
            _ if implicit => {
                self.process_directives()?;
                self.states.push(State::DocumentEnd);
                self.state = State::BlockNode;
                return Ok(Event { kind: EventKind::DocumentStart, line });
            }
            _ => {}
        }
        self.process_directives()?;
        let token = self.scanner.peek()?;
        if !matches!(token.kind, Kind::DocumentStart) {
            return Err(error("did not find expected <document start>", token.line));
        }
        self.states.push(State::DocumentEnd);
        self.state = State::DocumentContent;
        self.scanner.take();
        Ok(Event { kind: EventKind::DocumentStart, line })
    }

    fn document_content(&mut self) -> Scan<Event<'t>> {
        let token = self.scanner.peek()?;
        if matches!(
            token.kind,
            Kind::VersionDirective { .. }
                | Kind::TagDirective { .. }
                | Kind::DocumentStart
                | Kind::DocumentEnd
                | Kind::StreamEnd
        ) {
            let line = token.line;
            self.pop_state();
            return Ok(empty_scalar(line));
        }
        self.node(true, false)
    }

    fn document_end(&mut self) -> Scan<Event<'t>> {
        let token = self.scanner.peek()?;
        let line = token.line;
        if matches!(token.kind, Kind::DocumentEnd) {
            self.scanner.take();
        }
        self.tags.clear();
        self.state = State::DocumentStart;
        Ok(Event { kind: EventKind::DocumentEnd, line })
    }

    /// `yaml_parser_process_directives`
    fn process_directives(&mut self) -> Scan<()> {
        let mut has_version = false;
        loop {
            let token = self.scanner.peek()?;
            let line = token.line;
            match token.kind {
                Kind::VersionDirective { major, minor } => {
                    if has_version {
                        return Err(error("found duplicate %YAML directive", line));
                    }
                    if (major, minor) != (1, 1) {
                        return Err(error("found incompatible YAML document", line));
                    }
                    has_version = true;
                    self.scanner.take();
                }
                Kind::TagDirective { handle, .. } => {
                    if self.tags.iter().any(|known| known.handle == handle) {
                        return Err(error("found duplicate %TAG directive", line));
                    }
                    if let Kind::TagDirective { handle, prefix } = self.scanner.take().kind {
                        self.tags.push(TagDirective { handle, prefix: prefix.into() });
                    }
                }
                _ => break,
            }
        }
        let defaults: [(&[u8], &[u8]); 2] = [(b"!", b"!"), (b"!!", b"tag:yaml.org,2002:")];
        for (handle, prefix) in defaults {
            if !self.tags.iter().any(|known| known.handle == handle) {
                self.tags.push(TagDirective { handle, prefix: prefix.into() });
            }
        }
        Ok(())
    }

    /// The whole tag for a handle and what follows it; `None` for an unknown handle.
    fn resolve_tag(&self, handle: &[u8], suffix: Vec<u8>) -> Option<Vec<u8>> {
        if handle.is_empty() {
            return Some(suffix);
        }
        let directive = self.tags.iter().find(|known| known.handle == handle)?;
        let tag = [directive.prefix.as_ref(), &suffix].concat();
        (!tag.is_empty()).then_some(tag)
    }

    /// `yaml_parser_parse_node`
    fn node(&mut self, block: bool, indentless: bool) -> Scan<Event<'t>> {
        let token = self.scanner.peek()?;
        let start = token.line;
        if let Kind::Alias(name) = token.kind {
            self.pop_state();
            self.scanner.take();
            return Ok(Event { kind: EventKind::Alias(name), line: start });
        }

        let mut anchor = None;
        let mut tag = Vec::new();
        if matches!(token.kind, Kind::Anchor(_) | Kind::Tag { .. }) {
            let mut tag_parts = None;
            loop {
                let token = self.scanner.peek()?;
                match token.kind {
                    Kind::Anchor(name) if anchor.is_none() => {
                        anchor = Some(name);
                        self.scanner.take();
                    }
                    Kind::Tag { .. } if tag_parts.is_none() => {
                        if let Token { kind: Kind::Tag { handle, suffix }, line } =
                            self.scanner.take()
                        {
                            tag_parts = Some((handle, suffix, line));
                        }
                    }
                    _ => break,
                }
            }
            if let Some((handle, suffix, line)) = tag_parts {
                tag = self
                    .resolve_tag(handle, suffix)
                    .ok_or_else(|| error_in(start, "found undefined tag handle", line))?;
            }
        }

        let token = self.scanner.peek()?;
        let line = token.line;
        let collection = match token.kind {
            Kind::BlockEntry if indentless => Some((State::IndentlessSequenceEntry, true)),
            Kind::Scalar { .. } => {
                let Kind::Scalar { value, plain } = self.scanner.take().kind else {
                    return Ok(empty_scalar(line));
                };
                self.pop_state();
                let implicit = if tag.is_empty() { plain } else { tag == b"!" };
                return Ok(Event {
                    kind: EventKind::Scalar { anchor, tag, value, implicit },
                    line: start,
                });
            }
            Kind::FlowSequenceStart => Some((State::FlowSequenceFirstEntry, true)),
            Kind::FlowMappingStart => Some((State::FlowMappingFirstKey, false)),
            Kind::BlockSequenceStart if block => Some((State::BlockSequenceFirstEntry, true)),
            Kind::BlockMappingStart if block => Some((State::BlockMappingFirstKey, false)),
            _ => None,
        };
        if let Some((state, is_sequence)) = collection {
            self.state = state;
            let kind = if is_sequence {
                EventKind::SequenceStart { anchor }
            } else {
                EventKind::MappingStart { anchor }
            };
            return Ok(Event { kind, line: start });
        }
        if anchor.is_some() || !tag.is_empty() {
            self.pop_state();
            let implicit = tag.is_empty();
            let value = Cow::Borrowed(&b""[..]);
            return Ok(Event {
                kind: EventKind::Scalar { anchor, tag, value, implicit },
                line: start,
            });
        }
        Err(error_in(start, "did not find expected node content", line))
    }

    /// Takes the first token of a collection and keeps its line.
    fn start_collection(&mut self, first: bool) -> Scan<()> {
        if first {
            let line = self.scanner.peek()?.line;
            self.marks.push(line);
            self.scanner.take();
        }
        Ok(())
    }

    fn block_sequence_entry(&mut self, first: bool) -> Scan<Event<'t>> {
        self.start_collection(first)?;
        let token = self.scanner.peek()?;
        let line = token.line;
        match token.kind {
            Kind::BlockEntry => {
                self.scanner.take();
                match self.scanner.peek()?.kind {
                    Kind::BlockEntry | Kind::BlockEnd => {
                        Ok(self.empty_then(State::BlockSequenceEntry, line))
                    }
                    _ => self.node_then(State::BlockSequenceEntry, true, false),
                }
            }
            Kind::BlockEnd => Ok(self.end_collection(EventKind::SequenceEnd)),
            _ => Err(self.unfinished("did not find expected '-' indicator", line)),
        }
    }

    fn indentless_sequence_entry(&mut self) -> Scan<Event<'t>> {
        let token = self.scanner.peek()?;
        let line = token.line;
        if !matches!(token.kind, Kind::BlockEntry) {
            self.pop_state();
            return Ok(Event { kind: EventKind::SequenceEnd, line });
        }
        self.scanner.take();
        match self.scanner.peek()?.kind {
            Kind::BlockEntry | Kind::Key | Kind::Value | Kind::BlockEnd => {
                Ok(self.empty_then(State::IndentlessSequenceEntry, line))
            }
            _ => self.node_then(State::IndentlessSequenceEntry, true, false),
        }
    }

    fn block_mapping_key(&mut self, first: bool) -> Scan<Event<'t>> {
        self.start_collection(first)?;
        let token = self.scanner.peek()?;
        let line = token.line;
        match token.kind {
            Kind::Key => {
                self.scanner.take();
                match self.scanner.peek()?.kind {
                    Kind::Key | Kind::Value | Kind::BlockEnd => {
                        Ok(self.empty_then(State::BlockMappingValue, line))
                    }
                    _ => self.node_then(State::BlockMappingValue, true, true),
                }
            }
            Kind::BlockEnd => Ok(self.end_collection(EventKind::MappingEnd)),
            _ => Err(self.unfinished("did not find expected key", line)),
        }
    }

    fn block_mapping_value(&mut self) -> Scan<Event<'t>> {
        let token = self.scanner.peek()?;
        let line = token.line;
        if !matches!(token.kind, Kind::Value) {
            return Ok(self.empty_then(State::BlockMappingKey, line));
        }
        self.scanner.take();
        match self.scanner.peek()?.kind {
            Kind::Key | Kind::Value | Kind::BlockEnd => {
                Ok(self.empty_then(State::BlockMappingKey, line))
            }
            _ => self.node_then(State::BlockMappingKey, true, true),
        }
    }

    fn flow_sequence_entry(&mut self, first: bool) -> Scan<Event<'t>> {
        self.start_collection(first)?;
        let token = self.scanner.peek()?;
        if !first && !matches!(token.kind, Kind::FlowSequenceEnd) {
            let line = token.line;
            if !matches!(token.kind, Kind::FlowEntry) {
                return Err(self.unfinished("did not find expected ',' or ']'", line));
            }
            self.scanner.take();
        }
        let token = self.scanner.peek()?;
        let line = token.line;
        match token.kind {
            Kind::Key => {
                self.scanner.take();
                self.state = State::FlowSequenceEntryMappingKey;
                Ok(Event { kind: EventKind::MappingStart { anchor: None }, line })
            }
            Kind::FlowSequenceEnd => Ok(self.end_collection(EventKind::SequenceEnd)),
            _ => self.node_then(State::FlowSequenceEntry, false, false),
        }
    }

    fn flow_sequence_entry_mapping_key(&mut self) -> Scan<Event<'t>> {
        let token = self.scanner.peek()?;
        let line = token.line;
        match token.kind {
            Kind::Value | Kind::FlowEntry | Kind::FlowSequenceEnd => {
                // go-yaml drops the token, and with it the ':' or the end of the sequence.
                self.scanner.take();
                Ok(self.empty_then(State::FlowSequenceEntryMappingValue, line))
            }
            _ => self.node_then(State::FlowSequenceEntryMappingValue, false, false),
        }
    }

    fn flow_sequence_entry_mapping_value(&mut self) -> Scan<Event<'t>> {
        let mut line = self.scanner.peek()?.line;
        if matches!(self.scanner.peek()?.kind, Kind::Value) {
            self.scanner.take();
            let token = self.scanner.peek()?;
            if !matches!(token.kind, Kind::FlowEntry | Kind::FlowSequenceEnd) {
                return self.node_then(State::FlowSequenceEntryMappingEnd, false, false);
            }
            line = token.line;
        }
        Ok(self.empty_then(State::FlowSequenceEntryMappingEnd, line))
    }

    fn flow_mapping_key(&mut self, first: bool) -> Scan<Event<'t>> {
        self.start_collection(first)?;
        let token = self.scanner.peek()?;
        if !first && !matches!(token.kind, Kind::FlowMappingEnd) {
            let line = token.line;
            if !matches!(token.kind, Kind::FlowEntry) {
                return Err(self.unfinished("did not find expected ',' or '}'", line));
            }
            self.scanner.take();
        }
        match self.scanner.peek()?.kind {
            Kind::Key => {
                self.scanner.take();
                let token = self.scanner.peek()?;
                match token.kind {
                    Kind::Value | Kind::FlowEntry | Kind::FlowMappingEnd => {
                        let line = token.line;
                        Ok(self.empty_then(State::FlowMappingValue, line))
                    }
                    _ => self.node_then(State::FlowMappingValue, false, false),
                }
            }
            Kind::FlowMappingEnd => Ok(self.end_collection(EventKind::MappingEnd)),
            _ => self.node_then(State::FlowMappingEmptyValue, false, false),
        }
    }

    fn flow_mapping_value(&mut self, empty: bool) -> Scan<Event<'t>> {
        let token = self.scanner.peek()?;
        let mut line = token.line;
        if !empty && matches!(token.kind, Kind::Value) {
            self.scanner.take();
            let token = self.scanner.peek()?;
            if !matches!(token.kind, Kind::FlowEntry | Kind::FlowMappingEnd) {
                return self.node_then(State::FlowMappingKey, false, false);
            }
            line = token.line;
        }
        Ok(self.empty_then(State::FlowMappingKey, line))
    }
}

fn empty_scalar<'t>(line: usize) -> Event<'t> {
    Event {
        kind: EventKind::Scalar {
            anchor: None,
            tag: Vec::new(),
            value: Cow::Borrowed(b""),
            implicit: true,
        },
        line,
    }
}
