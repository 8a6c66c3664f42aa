//! Go's regular expression syntax (`regexp/syntax/parse.go`), read into the form that
//! `regex-automata` compiles.
//!
//! A text translation to the `regex` crate's syntax would not do: the two disagree on
//! dozens of corners (`\w`, `\Q`, a literal `{`, `a{,3}`, class sets, limits), and the
//! errors must read as Go's do.

mod class;
mod error;
mod lexical;

use regex_syntax::hir::{Capture, Class, ClassUnicode, Hir, Look, Repetition};

use super::classes;
pub(super) use error::SyntaxError;
use error::{
    BAD_CAPTURE, BAD_ESCAPE, BAD_PERL, BAD_REPEAT_OPERATOR, BAD_REPEAT_SIZE, NO_PAREN,
    NO_REPEAT_ARGUMENT, TOO_DEEP, TOO_LARGE, UNEXPECTED_PAREN, error,
};
use lexical::{before, check_utf8, count, escape, next_char};

/// Most copies that nested counted repetitions may make of one thing.
const MAX_REPEAT: u32 = 1000;
/// Go's `maxHeight`.
const MAX_HEIGHT: usize = 1000;
/// Go's `maxSize`: 128 MiB of instructions.
const MAX_SIZE: u64 = (128 << 20) / 40;

/// A parsed pattern.
#[derive(Debug)]
pub(super) struct Pattern {
    /// The expression.
    pub(super) hir: Hir,
    /// The groups' names, the whole match first; empty for unnamed ones.
    pub(super) names: Vec<String>,
    /// How deep it is nested.
    pub(super) height: usize,
}

#[derive(Clone, Copy, Debug)]
struct Flags {
    fold: bool,
    multi_line: bool,
    dot_newline: bool,
    non_greedy: bool,
}

/// A part of the expression with what Go's limits look at.
struct Node {
    hir: Hir,
    size: u64,
    height: usize,
    /// The product of the counted repetitions along the worst path inside.
    copies: u64,
}

impl Node {
    const fn leaf(hir: Hir) -> Self {
        Self { hir, size: 1, height: 1, copies: 1 }
    }
}

/// An open group, or the whole expression.
struct Frame {
    alternatives: Vec<Node>,
    sequence: Vec<Node>,
    capture: Option<u32>,
    /// The flags to restore at its end.
    flags: Flags,
}

struct Parser<'a> {
    pattern: &'a [u8],
    frames: Vec<Frame>,
    current: Frame,
    flags: Flags,
    names: Vec<String>,
}

/// Reads a pattern as `regexp.Compile` does.
pub(super) fn parse(pattern: &[u8]) -> Result<Pattern, SyntaxError> {
    let flags = Flags { fold: false, multi_line: false, dot_newline: false, non_greedy: false };
    let mut parser = Parser {
        pattern,
        frames: Vec::new(),
        current: Frame::new(None, flags),
        flags,
        names: vec![String::new()],
    };
    parser.run()?;
    if !parser.frames.is_empty() {
        return Err(error(NO_PAREN, pattern));
    }
    let node = parser.finish()?;
    Ok(Pattern { hir: node.hir, names: parser.names, height: node.height })
}

impl Frame {
    const fn new(capture: Option<u32>, flags: Flags) -> Self {
        Self { alternatives: Vec::new(), sequence: Vec::new(), capture, flags }
    }
}

impl<'a> Parser<'a> {
    fn run(&mut self) -> Result<(), SyntaxError> {
        let mut text = self.pattern;
        let mut last_repeat: &[u8] = &[];
        while let Some((&first, tail)) = text.split_first() {
            let mut repeat: &[u8] = &[];
            match first {
                b'(' if tail.first() == Some(&b'?') => text = self.perl_flags(text)?,
                b'(' => {
                    self.open(Some(String::new()))?;
                    text = tail;
                }
                b'|' => {
                    let node = self.take_sequence()?;
                    self.current.alternatives.push(node);
                    text = tail;
                }
                b')' => {
                    self.close()?;
                    text = tail;
                }
                b'^' => {
                    self.look(if self.flags.multi_line { Look::StartLF } else { Look::Start });
                    text = tail;
                }
                b'$' => {
                    self.look(if self.flags.multi_line { Look::EndLF } else { Look::End });
                    text = tail;
                }
                b'.' => {
                    let mut class = classes::any();
                    if !self.flags.dot_newline {
                        class.difference(&classes::range('\n', '\n'));
                    }
                    self.class(class);
                    text = tail;
                }
                b'[' => text = self.bracket(text)?,
                b'*' | b'+' | b'?' => {
                    let (min, max) = match first {
                        b'*' => (0, None),
                        b'+' => (1, None),
                        _ => (0, Some(1)),
                    };
                    repeat = text;
                    text = self.repeat(min, max, false, text, tail, last_repeat)?;
                }
                b'{' => match count(text) {
                    None => {
                        self.literal('{');
                        text = tail;
                    }
                    Some((range, after)) => {
                        let (min, max) = range
                            .filter(|&(min, max)| {
                                min <= MAX_REPEAT
                                    && max.is_none_or(|max| max <= MAX_REPEAT && min <= max)
                            })
                            .ok_or_else(|| error(BAD_REPEAT_SIZE, before(text, after)))?;
                        repeat = text;
                        text = self.repeat(min, max, true, text, after, last_repeat)?;
                    }
                },
                b'\\' => text = self.backslash(text)?,
                _ => {
                    if let Some((c, rest)) = next_char(text)? {
                        self.literal(c);
                        text = rest;
                    }
                }
            }
            last_repeat = repeat;
        }
        Ok(())
    }

    fn push(&mut self, node: Node) {
        self.current.sequence.push(node);
    }

    fn look(&mut self, look: Look) {
        self.push(Node::leaf(Hir::look(look)));
    }

    fn class(&mut self, class: ClassUnicode) {
        self.push(Node::leaf(Hir::class(Class::Unicode(class))));
    }

    fn literal(&mut self, c: char) {
        if self.flags.fold {
            let mut class = classes::range(c, c);
            class.case_fold_simple();
            self.class(class);
        } else {
            let mut buffer = [0; 4];
            self.push(Node::leaf(Hir::literal(c.encode_utf8(&mut buffer).as_bytes())));
        }
    }

    /// Opens a group: a capturing one for `Some`, with its name or none.
    fn open(&mut self, name: Option<String>) -> Result<(), SyntaxError> {
        let capture = match name {
            None => None,
            Some(name) => {
                let index =
                    u32::try_from(self.names.len()).map_err(|_| error(TOO_LARGE, self.pattern))?;
                self.names.push(name);
                Some(index)
            }
        };
        let frame = Frame::new(capture, self.flags);
        self.frames.push(std::mem::replace(&mut self.current, frame));
        Ok(())
    }

    fn close(&mut self) -> Result<(), SyntaxError> {
        let node = self.finish()?;
        let Some(outer) = self.frames.pop() else {
            return Err(error(UNEXPECTED_PAREN, self.pattern));
        };
        let inner = std::mem::replace(&mut self.current, outer);
        self.flags = inner.flags;
        let node = match inner.capture {
            None => node,
            Some(index) => self.limited(Node {
                size: node.size + 2,
                height: node.height + 1,
                copies: node.copies,
                hir: Hir::capture(Capture { index, name: None, sub: Box::new(node.hir) }),
            })?,
        };
        self.push(node);
        Ok(())
    }

    /// Refuses what exceeds Go's limits.
    fn limited(&self, node: Node) -> Result<Node, SyntaxError> {
        if node.size > MAX_SIZE {
            return Err(error(TOO_LARGE, self.pattern));
        }
        if node.height > MAX_HEIGHT {
            return Err(error(TOO_DEEP, self.pattern));
        }
        Ok(node)
    }

    fn take_sequence(&mut self) -> Result<Node, SyntaxError> {
        let parts = std::mem::take(&mut self.current.sequence);
        self.join(parts, 0, Hir::concat)
    }

    fn finish(&mut self) -> Result<Node, SyntaxError> {
        let last = self.take_sequence()?;
        let mut parts = std::mem::take(&mut self.current.alternatives);
        parts.push(last);
        let bars = parts.len() as u64 - 1;
        self.join(parts, bars, Hir::alternation)
    }

    fn join(
        &self,
        mut parts: Vec<Node>,
        extra: u64,
        combine: fn(Vec<Hir>) -> Hir,
    ) -> Result<Node, SyntaxError> {
        if parts.len() == 1 {
            return parts.pop().ok_or_else(|| error(TOO_LARGE, self.pattern));
        }
        let size = parts.iter().fold(extra, |sum, part| sum.saturating_add(part.size)).max(1);
        let height = parts.iter().map(|part| part.height + 1).max().unwrap_or(1);
        let copies = parts.iter().map(|part| part.copies).max().unwrap_or(1);
        let hir = combine(parts.into_iter().map(|part| part.hir).collect());
        self.limited(Node { hir, size, height, copies })
    }

    /// Repeats what was read last; gives what follows the operator.
    fn repeat(
        &mut self,
        min: u32,
        max: Option<u32>,
        counted: bool,
        operator: &'a [u8],
        after: &'a [u8],
        last_repeat: &'a [u8],
    ) -> Result<&'a [u8], SyntaxError> {
        let lazy = after.strip_prefix(b"?");
        let greedy = lazy.is_none() != self.flags.non_greedy;
        let after = lazy.unwrap_or(after);
        if !last_repeat.is_empty() {
            return Err(error(BAD_REPEAT_OPERATOR, before(last_repeat, after)));
        }
        let sub = self
            .current
            .sequence
            .pop()
            .ok_or_else(|| error(NO_REPEAT_ARGUMENT, before(operator, after)))?;
        let (size, copies) = match (counted, max) {
            (true, Some(0)) => (1, 1),
            (true, Some(max)) => (
                u64::from(max).saturating_mul(sub.size) + u64::from(max - min),
                u64::from(max).saturating_mul(sub.copies),
            ),
            (true, None) if min > 0 => (
                1 + u64::from(min).saturating_mul(sub.size),
                u64::from(min).saturating_mul(sub.copies),
            ),
            (_, None) if min == 0 => (2 + sub.size, sub.copies),
            _ => (1 + sub.size, sub.copies),
        };
        let node = self.limited(Node {
            size,
            height: sub.height + 1,
            copies,
            hir: Hir::repetition(Repetition { min, max, greedy, sub: Box::new(sub.hir) }),
        })?;
        let large = counted && (min >= 2 || max.is_some_and(|max| max >= 2));
        if large && node.copies > u64::from(MAX_REPEAT) {
            return Err(error(BAD_REPEAT_SIZE, before(operator, after)));
        }
        self.push(node);
        Ok(after)
    }

    /// `(?flags)`, `(?flags:`, `(?P<name>`, `(?<name>`.
    fn perl_flags(&mut self, text: &'a [u8]) -> Result<&'a [u8], SyntaxError> {
        let named = text.strip_prefix(b"(?P<").filter(|rest| !rest.is_empty());
        let named = named.or_else(|| text.strip_prefix(b"(?<").filter(|rest| !rest.is_empty()));
        if let Some(start) = named {
            let Some(end) = start.iter().position(|&b| b == b'>') else {
                check_utf8(text)?;
                return Err(error(BAD_CAPTURE, text));
            };
            let (name, rest) = start.split_at(end);
            let rest = rest.get(1..).unwrap_or_default();
            check_utf8(name)?;
            let valid = |&b: &u8| b == b'_' || b.is_ascii_alphanumeric();
            if name.is_empty() || !name.iter().all(valid) {
                return Err(error(BAD_CAPTURE, before(text, rest)));
            }
            self.open(Some(String::from_utf8_lossy(name).into_owned()))?;
            return Ok(rest);
        }

        let mut rest = text.get(2..).unwrap_or_default();
        let mut flags = self.flags;
        let mut value = true;
        let mut saw_flag = false;
        while let Some((c, next)) = next_char(rest)? {
            rest = next;
            match c {
                'i' => flags.fold = value,
                'm' => flags.multi_line = value,
                's' => flags.dot_newline = value,
                'U' => flags.non_greedy = value,
                '-' if value => {
                    value = false;
                    saw_flag = false;
                    continue;
                }
                ':' | ')' if value || saw_flag => {
                    if c == ':' {
                        self.open(None)?;
                    }
                    self.flags = flags;
                    return Ok(rest);
                }
                _ => break,
            }
            saw_flag = true;
        }
        Err(error(BAD_PERL, before(text, rest)))
    }

    fn backslash(&mut self, text: &'a [u8]) -> Result<&'a [u8], SyntaxError> {
        let after = text.get(2..).unwrap_or_default();
        let look = match text.get(1) {
            Some(b'A') => Some(Look::Start),
            Some(b'z') => Some(Look::End),
            Some(b'b') => Some(Look::WordAscii),
            Some(b'B') => Some(Look::WordAsciiNegate),
            _ => None,
        };
        if let Some(look) = look {
            self.look(look);
            return Ok(after);
        }
        match text.get(1) {
            Some(b'C') => return Err(error(BAD_ESCAPE, before(text, after))),
            Some(b'Q') => {
                let end = after.windows(2).position(|pair| pair == b"\\E");
                let mut literal = after.get(..end.unwrap_or(after.len())).unwrap_or(after);
                while let Some((c, rest)) = next_char(literal)? {
                    self.literal(c);
                    literal = rest;
                }
                return Ok(end.and_then(|end| after.get(end + 2..)).unwrap_or_default());
            }
            _ => {}
        }
        if let Some((class, rest)) = self.class_escape(text)? {
            self.class(class);
            return Ok(rest);
        }
        let (c, rest) = escape(text)?;
        match c {
            Some(c) => self.literal(c),
            None => self.class(ClassUnicode::empty()),
        }
        Ok(rest)
    }
}
