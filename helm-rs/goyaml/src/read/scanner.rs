//! From characters to tokens, after go-yaml's `scannerc.go`.
//!
//! The scanner keeps a queue because of simple keys: only the `:` behind `a: 1` tells that `a` was
//! a key, and the tokens in front of it are inserted then.
//!
//! Calls of `ensure` stand where go-yaml fills its buffer, see [`super::reader`].

use std::collections::VecDeque;

use super::chars;
use super::reader::{Input, Mark, Reader};
use super::token::{Kind, Token};
use crate::YamlError;

/// The deepest nesting of flow collections and of indentation.
const MAX_LEVELS: usize = 10_000;

/// The longest distance between the start of a simple key and its colon, in characters.
const MAX_SIMPLE_KEY: usize = 1024;

/// Stands in for the head of the queue, which is never empty when it is asked for.
static NO_TOKEN: Token<'static> = Token { kind: Kind::StreamEnd, line: 0 };

pub(super) type Scan<T> = Result<T, YamlError>;

/// A place where a simple key may have begun.
#[derive(Clone, Copy, Debug, Default)]
struct SimpleKey {
    possible: bool,
    required: bool,
    token_number: usize,
    mark: Mark,
}

/// Which token number may be a simple key, and at which flow level.
///
/// go-yaml keeps a hash map; as token numbers only grow, a sorted list does.
#[derive(Debug, Default)]
struct KeyIndex {
    entries: Vec<(usize, Option<usize>)>,
    compact_at: usize,
}

impl KeyIndex {
    fn set(&mut self, number: usize, level: usize, parsed: usize) {
        if self.entries.len() > self.compact_at {
            // Numbers that were passed are never asked for again.
            self.entries.retain(|&(entry, level)| entry >= parsed && level.is_some());
            self.compact_at = 2 * self.entries.len() + 32;
        }
        match self.entries.last_mut() {
            Some(last) if last.0 == number => last.1 = Some(level),
            _ => self.entries.push((number, Some(level))),
        }
    }

    fn position(&self, number: usize) -> Option<usize> {
        match self.entries.last() {
            Some(last) if last.0 == number => Some(self.entries.len() - 1),
            _ => self.entries.binary_search_by_key(&number, |entry| entry.0).ok(),
        }
    }

    fn get(&self, number: usize) -> Option<usize> {
        self.entries.get(self.position(number)?)?.1
    }

    fn remove(&mut self, number: usize) {
        if let Some(entry) = self.position(number).and_then(|at| self.entries.get_mut(at)) {
            entry.1 = None;
        }
        while self.entries.last().is_some_and(|entry| entry.1.is_none()) {
            self.entries.pop();
        }
    }
}

/// The scanner of one stream.
#[derive(Debug)]
pub(super) struct Scanner<'t> {
    pub(super) reader: Reader<'t>,
    tokens: VecDeque<Token<'t>>,
    tokens_parsed: usize,
    token_available: bool,
    started: bool,
    /// The column of the innermost block collection, -1 outside of any.
    pub(super) indent: isize,
    indents: Vec<isize>,
    pub(super) flow_level: usize,
    pub(super) simple_key_allowed: bool,
    /// One per flow level.
    simple_keys: Vec<SimpleKey>,
    key_index: KeyIndex,
}

impl<'t> Scanner<'t> {
    pub(super) fn new(input: &'t Input<'_>) -> Self {
        Self {
            reader: Reader::new(input),
            tokens: VecDeque::with_capacity(16),
            tokens_parsed: 0,
            token_available: false,
            started: false,
            indent: -1,
            indents: Vec::new(),
            flow_level: 0,
            simple_key_allowed: true,
            simple_keys: vec![SimpleKey::default()],
            key_index: KeyIndex::default(),
        }
    }

    /// The next token, left in the queue.
    pub(super) fn peek(&mut self) -> Scan<&Token<'t>> {
        if !self.token_available {
            self.fetch_more_tokens()?;
        }
        Ok(self.tokens.front().unwrap_or(&NO_TOKEN))
    }

    /// Takes the token that [`Self::peek`] showed.
    pub(super) fn take(&mut self) -> Token<'t> {
        self.token_available = false;
        self.tokens_parsed += 1;
        self.tokens.pop_front().unwrap_or_else(|| NO_TOKEN.clone())
    }

    /// A scanner error at the cursor. go-yaml counts its lines from 1 and leaves out the first.
    pub(super) fn error(&self, problem: impl Into<String>) -> YamlError {
        let line = self.reader.mark.line;
        YamlError { line: (line != 0).then_some(line + 1), problem: problem.into() }
    }

    fn push(&mut self, kind: Kind<'t>, line: usize) {
        self.tokens.push_back(Token { kind, line });
    }

    /// Inserts in front of token `number`; one that was taken already is too late and the token
    /// goes to the end.
    fn insert(&mut self, number: usize, kind: Kind<'t>, line: usize) {
        match number.checked_sub(self.tokens_parsed) {
            Some(at) if at <= self.tokens.len() => self.tokens.insert(at, Token { kind, line }),
            _ => self.push(kind, line),
        }
    }

    fn next_number(&self) -> usize {
        self.tokens_parsed + self.tokens.len()
    }

    fn fetch_more_tokens(&mut self) -> Scan<()> {
        loop {
            if !self.tokens.is_empty() {
                // While the head may turn out to be a simple key, look further.
                let Some(level) = self.key_index.get(self.tokens_parsed) else { break };
                if !self.is_key_valid(level)? {
                    break;
                }
            }
            self.fetch_next_token()?;
        }
        self.token_available = true;
        Ok(())
    }

    fn is_key_valid(&mut self, level: usize) -> Scan<bool> {
        let mark = self.reader.mark;
        let Some(key) = self.simple_keys.get_mut(level) else { return Ok(false) };
        if !key.possible {
            return Ok(false);
        }
        if key.mark.line >= mark.line && key.mark.index + MAX_SIMPLE_KEY >= mark.index {
            return Ok(true);
        }
        if key.required {
            return Err(self.error("could not find expected ':'"));
        }
        key.possible = false;
        Ok(false)
    }

    pub(super) fn save_simple_key(&mut self) -> Scan<()> {
        if !self.simple_key_allowed {
            return Ok(());
        }
        let mark = self.reader.mark;
        let required = self.flow_level == 0 && self.indent == mark.column as isize;
        let token_number = self.next_number();
        self.remove_simple_key()?;
        let level = self.simple_keys.len().saturating_sub(1);
        if let Some(key) = self.simple_keys.last_mut() {
            *key = SimpleKey { possible: true, required, token_number, mark };
        }
        self.key_index.set(token_number, level, self.tokens_parsed);
        Ok(())
    }

    pub(super) fn remove_simple_key(&mut self) -> Scan<()> {
        let Some(key) = self.simple_keys.last_mut() else { return Ok(()) };
        if !key.possible {
            return Ok(());
        }
        if key.required {
            return Err(self.error("could not find expected ':'"));
        }
        key.possible = false;
        let number = key.token_number;
        self.key_index.remove(number);
        Ok(())
    }

    fn increase_flow_level(&mut self) -> Scan<()> {
        let token_number = self.next_number();
        self.simple_keys.push(SimpleKey {
            token_number,
            mark: self.reader.mark,
            ..SimpleKey::default()
        });
        self.flow_level += 1;
        if self.flow_level > MAX_LEVELS {
            return Err(self.error(format!("exceeded max depth of {MAX_LEVELS}")));
        }
        Ok(())
    }

    fn decrease_flow_level(&mut self) {
        if self.flow_level > 0 {
            self.flow_level -= 1;
            if let Some(key) = self.simple_keys.pop() {
                self.key_index.remove(key.token_number);
            }
        }
    }

    /// Opens a block collection at `column` if it is deeper than the current one. Its token goes
    /// in front of token `number`, or to the end.
    fn roll_indent(
        &mut self,
        column: usize,
        number: Option<usize>,
        kind: Kind<'t>,
        line: usize,
    ) -> Scan<()> {
        let column = column as isize;
        if self.flow_level > 0 || self.indent >= column {
            return Ok(());
        }
        self.indents.push(self.indent);
        self.indent = column;
        if self.indents.len() > MAX_LEVELS {
            return Err(self.error(format!("exceeded max depth of {MAX_LEVELS}")));
        }
        match number {
            Some(number) => self.insert(number, kind, line),
            None => self.push(kind, line),
        }
        Ok(())
    }

    /// Closes the block collections that are deeper than `column`.
    fn unroll_indent(&mut self, column: isize) {
        if self.flow_level > 0 {
            return;
        }
        while self.indent > column {
            self.push(Kind::BlockEnd, self.reader.mark.line);
            self.indent = self.indents.pop().unwrap_or(-1);
        }
    }

    fn fetch_next_token(&mut self) -> Scan<()> {
        self.reader.ensure(1)?;
        if !self.started {
            self.started = true;
            self.push(Kind::StreamStart, 0);
            return Ok(());
        }
        self.scan_to_next_token()?;
        self.unroll_indent(self.reader.mark.column as isize);
        self.reader.ensure(4)?;

        let reader = &self.reader;
        if reader.is_end() {
            return self.fetch_stream_end();
        }
        if reader.mark.column == 0 {
            if reader.at(0) == b'%' {
                return self.fetch_directive();
            }
            if reader.is_document_indicator() {
                return self.fetch_document_indicator();
            }
        }
        let in_flow = self.flow_level > 0;
        match reader.at(0) {
            b'[' => self.fetch_flow_collection_start(Kind::FlowSequenceStart),
            b'{' => self.fetch_flow_collection_start(Kind::FlowMappingStart),
            b']' => self.fetch_flow_collection_end(Kind::FlowSequenceEnd),
            b'}' => self.fetch_flow_collection_end(Kind::FlowMappingEnd),
            b',' => {
                self.remove_simple_key()?;
                self.simple_key_allowed = true;
                self.push_indicator(Kind::FlowEntry);
                Ok(())
            }
            b'-' if reader.is_blank_or_end(1) => self.fetch_block_entry(),
            b'?' if in_flow || reader.is_blank_or_end(1) => self.fetch_key(),
            b':' if in_flow || reader.is_blank_or_end(1) => self.fetch_value(),
            b'*' | b'&' => {
                self.save_simple_key()?;
                self.simple_key_allowed = false;
                let line = self.reader.mark.line;
                let kind = self.scan_anchor()?;
                self.push(kind, line);
                Ok(())
            }
            b'!' => {
                self.save_simple_key()?;
                self.simple_key_allowed = false;
                let line = self.reader.mark.line;
                let kind = self.scan_tag()?;
                self.push(kind, line);
                Ok(())
            }
            quote @ (b'|' | b'>') if !in_flow => {
                self.remove_simple_key()?;
                self.simple_key_allowed = true;
                let line = self.reader.mark.line;
                let value = self.scan_block_scalar(quote == b'|')?;
                self.push(Kind::Scalar { value, plain: false }, line);
                Ok(())
            }
            quote @ (b'\'' | b'"') => {
                self.save_simple_key()?;
                self.simple_key_allowed = false;
                let line = self.reader.mark.line;
                let value = self.scan_quoted_scalar(quote == b'\'')?;
                self.push(Kind::Scalar { value, plain: false }, line);
                Ok(())
            }
            byte if self.may_start_plain(byte) => {
                self.save_simple_key()?;
                self.simple_key_allowed = false;
                let line = self.reader.mark.line;
                let value = self.scan_plain_scalar()?;
                self.push(Kind::Scalar { value, plain: true }, line);
                Ok(())
            }
            _ => Err(self.error("found character that cannot start any token")),
        }
    }

    fn may_start_plain(&self, byte: u8) -> bool {
        match byte {
            b'-' => !self.reader.is_blank(1),
            b'?' | b':' => self.flow_level == 0 && !self.reader.is_blank_or_end(1),
            b',' | b'[' | b']' | b'{' | b'}' | b'#' | b'&' | b'*' | b'!' | b'|' | b'>' | b'\''
            | b'"' | b'%' | b'@' | b'`' => false,
            _ => !self.reader.is_blank_or_end(0),
        }
    }

    fn push_indicator(&mut self, kind: Kind<'t>) {
        self.push(kind, self.reader.mark.line);
        self.reader.skip();
    }

    fn fetch_stream_end(&mut self) -> Scan<()> {
        let mark = &mut self.reader.mark;
        if mark.column != 0 {
            mark.column = 0;
            mark.line += 1;
        }
        self.unroll_indent(-1);
        self.remove_simple_key()?;
        self.simple_key_allowed = false;
        self.push(Kind::StreamEnd, self.reader.mark.line);
        Ok(())
    }

    fn fetch_directive(&mut self) -> Scan<()> {
        self.unroll_indent(-1);
        self.remove_simple_key()?;
        self.simple_key_allowed = false;
        let line = self.reader.mark.line;
        let kind = self.scan_directive()?;
        self.push(kind, line);
        Ok(())
    }

    fn fetch_document_indicator(&mut self) -> Scan<()> {
        let kind = if self.reader.at(0) == b'-' { Kind::DocumentStart } else { Kind::DocumentEnd };
        self.unroll_indent(-1);
        self.remove_simple_key()?;
        self.simple_key_allowed = false;
        self.push(kind, self.reader.mark.line);
        self.reader.skip_ascii(3);
        Ok(())
    }

    fn fetch_flow_collection_start(&mut self, kind: Kind<'t>) -> Scan<()> {
        self.save_simple_key()?;
        self.increase_flow_level()?;
        self.simple_key_allowed = true;
        self.push_indicator(kind);
        Ok(())
    }

    fn fetch_flow_collection_end(&mut self, kind: Kind<'t>) -> Scan<()> {
        self.remove_simple_key()?;
        self.decrease_flow_level();
        self.simple_key_allowed = false;
        self.push_indicator(kind);
        Ok(())
    }

    fn fetch_block_entry(&mut self) -> Scan<()> {
        // Inside a flow collection the parser complains, as it knows the context.
        if self.flow_level == 0 {
            if !self.simple_key_allowed {
                return Err(self.error("block sequence entries are not allowed in this context"));
            }
            let mark = self.reader.mark;
            self.roll_indent(mark.column, None, Kind::BlockSequenceStart, mark.line)?;
        }
        self.remove_simple_key()?;
        self.simple_key_allowed = true;
        self.push_indicator(Kind::BlockEntry);
        Ok(())
    }

    fn fetch_key(&mut self) -> Scan<()> {
        if self.flow_level == 0 {
            if !self.simple_key_allowed {
                return Err(self.error("mapping keys are not allowed in this context"));
            }
            let mark = self.reader.mark;
            self.roll_indent(mark.column, None, Kind::BlockMappingStart, mark.line)?;
        }
        self.remove_simple_key()?;
        self.simple_key_allowed = self.flow_level == 0;
        self.push_indicator(Kind::Key);
        Ok(())
    }

    fn fetch_value(&mut self) -> Scan<()> {
        let level = self.simple_keys.len().saturating_sub(1);
        if self.is_key_valid(level)? {
            let key = self.simple_keys.get(level).copied().unwrap_or_default();
            self.insert(key.token_number, Kind::Key, key.mark.line);
            self.roll_indent(
                key.mark.column,
                Some(key.token_number),
                Kind::BlockMappingStart,
                key.mark.line,
            )?;
            if let Some(key) = self.simple_keys.get_mut(level) {
                key.possible = false;
            }
            self.key_index.remove(key.token_number);
            self.simple_key_allowed = false;
        } else {
            if self.flow_level == 0 {
                if !self.simple_key_allowed {
                    return Err(self.error("mapping values are not allowed in this context"));
                }
                let mark = self.reader.mark;
                self.roll_indent(mark.column, None, Kind::BlockMappingStart, mark.line)?;
            }
            self.simple_key_allowed = self.flow_level == 0;
        }
        self.push_indicator(Kind::Value);
        Ok(())
    }

    /// Moves over white space and comments.
    fn scan_to_next_token(&mut self) -> Scan<()> {
        loop {
            self.reader.ensure(1)?;
            self.reader.skip_bom();
            self.reader.ensure(1)?;
            // A tab may not indent, and may not follow '-', '?' or ':' in block context.
            while self.reader.at(0) == b' '
                || (self.reader.at(0) == b'\t' && (self.flow_level > 0 || !self.simple_key_allowed))
            {
                self.reader.skip_ascii(1);
                self.reader.ensure(1)?;
            }
            self.scan_comment()?;
            if !self.reader.is_break(0) {
                return Ok(());
            }
            self.reader.ensure(2)?;
            self.reader.line_break();
            if self.flow_level == 0 {
                self.simple_key_allowed = true;
            }
        }
    }

    /// Moves over a comment, if one is here, up to the end of the line.
    pub(super) fn scan_comment(&mut self) -> Scan<()> {
        if self.reader.at(0) != b'#' {
            return Ok(());
        }
        while !self.reader.is_break_or_end(0) {
            self.reader.skip();
            self.reader.skip_until(&chars::LINE_END);
            self.reader.ensure(1)?;
        }
        Ok(())
    }

    /// Moves over the rest of a line on which only a comment may still stand.
    pub(super) fn scan_line_rest(&mut self) -> Scan<()> {
        self.reader.ensure(1)?;
        self.scan_blanks()?;
        self.scan_comment()?;
        if !self.reader.is_break_or_end(0) {
            return Err(self.error("did not find expected comment or line break"));
        }
        if self.reader.is_break(0) {
            self.reader.ensure(2)?;
            self.reader.line_break();
        }
        Ok(())
    }

    /// Moves over spaces and tabs.
    pub(super) fn scan_blanks(&mut self) -> Scan<()> {
        while self.reader.is_blank(0) {
            self.reader.skip_ascii(1);
            self.reader.ensure(1)?;
        }
        Ok(())
    }
}
