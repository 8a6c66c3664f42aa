//! Go's regular expression syntax (`regexp/syntax/parse.go`), read into the form that
//! `regex-automata` compiles.
//!
//! A text translation to the `regex` crate's syntax would not do: the two disagree on
//! dozens of corners (`\w`, `\Q`, a literal `{`, `a{,3}`, class sets, limits), and the
//! errors must read as Go's do.

use regex_syntax::hir::{Capture, Class, ClassUnicode, ClassUnicodeRange, Hir, Look, Repetition};

use super::classes;

/// Most copies that nested counted repetitions may make of one thing.
const MAX_REPEAT: u32 = 1000;
/// Go's `maxHeight`.
const MAX_HEIGHT: usize = 1000;
/// Go's `maxSize`: 128 MiB of instructions.
const MAX_SIZE: u64 = (128 << 20) / 40;

/// Why a pattern is refused: Go's `syntax.Error`.
#[derive(Clone, Debug, thiserror::Error)]
#[error("error parsing regexp: {code}: `{expr}`", expr = String::from_utf8_lossy(.expr))]
pub(super) struct SyntaxError {
    code: &'static str,
    /// The offending part, as bytes, since it may not be UTF-8.
    expr: Vec<u8>,
}

impl SyntaxError {
    /// The whole message as Go's bytes.
    pub(super) fn message(&self) -> Vec<u8> {
        let mut text = format!("error parsing regexp: {}: `", self.code).into_bytes();
        text.extend_from_slice(&self.expr);
        text.push(b'`');
        text
    }

    /// The error of a pattern that is too large to compile.
    pub(super) fn large(pattern: &[u8]) -> Self {
        error("expression too large", pattern)
    }
}

fn error(code: &'static str, expr: &[u8]) -> SyntaxError {
    SyntaxError { code, expr: expr.to_vec() }
}

const BAD_RANGE: &str = "invalid character class range";
const BAD_ESCAPE: &str = "invalid escape sequence";
const BAD_CAPTURE: &str = "invalid named capture";
const BAD_PERL: &str = "invalid or unsupported Perl syntax";
const BAD_REPEAT_OPERATOR: &str = "invalid nested repetition operator";
const BAD_REPEAT_SIZE: &str = "invalid repeat count";
const BAD_UTF8: &str = "invalid UTF-8";
const NO_BRACKET: &str = "missing closing ]";
const NO_PAREN: &str = "missing closing )";
const NO_REPEAT_ARGUMENT: &str = "missing argument to repetition operator";
const TRAILING_BACKSLASH: &str = "trailing backslash at end of expression";
const UNEXPECTED_PAREN: &str = "unexpected )";
const TOO_DEEP: &str = "expression nests too deeply";
const TOO_LARGE: &str = "expression too large";

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

/// The next character, or Go's error for bytes that are none; empty text gives `None`.
fn next_char(text: &[u8]) -> Result<Option<(char, &[u8])>, SyntaxError> {
    let head = text.get(..text.len().min(4)).unwrap_or_default();
    let Some(chunk) = head.utf8_chunks().next() else { return Ok(None) };
    match chunk.valid().chars().next() {
        Some(c) => Ok(Some((c, text.get(c.len_utf8()..).unwrap_or_default()))),
        None => Err(error(BAD_UTF8, text)),
    }
}

fn check_utf8(text: &[u8]) -> Result<(), SyntaxError> {
    match std::str::from_utf8(text) {
        Ok(_) => Ok(()),
        // Go reports the rest of the text from the first bad byte on.
        Err(problem) => Err(error(BAD_UTF8, text.get(problem.valid_up_to()..).unwrap_or_default())),
    }
}

/// The part of `whole` before its suffix `rest`.
fn before<'a>(whole: &'a [u8], rest: &[u8]) -> &'a [u8] {
    whole.get(..whole.len().saturating_sub(rest.len())).unwrap_or(whole)
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

    /// `\pN`, `\p{Name}`, `\d` and their negations.
    fn class_escape(
        &self,
        text: &'a [u8],
    ) -> Result<Option<(ClassUnicode, &'a [u8])>, SyntaxError> {
        let (Some(b'\\'), Some(&letter)) = (text.first(), text.get(1)) else { return Ok(None) };
        let start = text.get(2..).unwrap_or_default();
        if !matches!(letter, b'p' | b'P') {
            let Some((mut class, negated)) = classes::perl(letter) else { return Ok(None) };
            self.adjust(&mut class, negated);
            return Ok(Some((class, start)));
        }
        let mut negated = letter == b'P';
        // Go's nextRune accepts the end of the text here and fails later on its name.
        let Some((c, rest)) = next_char(start)? else {
            return Err(error(BAD_RANGE, text));
        };
        let (sequence, name, rest) = if c == '{' {
            let Some(end) = text.iter().position(|&b| b == b'}') else {
                check_utf8(text)?;
                return Err(error(BAD_RANGE, text));
            };
            let name = text.get(3..end).unwrap_or_default();
            check_utf8(name)?;
            let rest = text.get(end + 1..).unwrap_or_default();
            (before(text, rest), name, rest)
        } else {
            let sequence = before(text, rest);
            (sequence, sequence.get(2..).unwrap_or_default(), rest)
        };
        let name = match name.strip_prefix(b"^") {
            Some(name) => {
                negated = !negated;
                name
            }
            None => name,
        };
        let mut class = classes::unicode(name).ok_or_else(|| error(BAD_RANGE, sequence))?;
        self.adjust(&mut class, negated);
        Ok(Some((class, rest)))
    }

    fn adjust(&self, class: &mut ClassUnicode, negated: bool) {
        if self.flags.fold {
            class.case_fold_simple();
        }
        if negated {
            class.negate();
        }
    }

    fn bracket(&mut self, whole: &'a [u8]) -> Result<&'a [u8], SyntaxError> {
        let mut text = whole.get(1..).unwrap_or_default();
        let negated = text.first() == Some(&b'^');
        if negated {
            text = text.get(1..).unwrap_or_default();
        }
        let mut class = ClassUnicode::empty();
        let mut first = true;
        while first || text.first() != Some(&b']') {
            first = false;
            if let Some((named, rest)) = posix_class(text)? {
                let (mut named, named_negated) = named;
                self.adjust(&mut named, named_negated);
                class.union(&named);
                text = rest;
                continue;
            }
            if let Some((escaped, rest)) = self.class_escape(text)? {
                class.union(&escaped);
                text = rest;
                continue;
            }
            let start = text;
            let (low, rest) = class_char(text, whole)?;
            text = rest;
            let mut high = low;
            if text.first() == Some(&b'-') && text.len() >= 2 && text.get(1) != Some(&b']') {
                let (end, rest) = class_char(text.get(1..).unwrap_or_default(), whole)?;
                high = end;
                text = rest;
                if high < low {
                    return Err(error(BAD_RANGE, before(start, text)));
                }
            }
            let mut range = classes::code_points(low, high);
            if self.flags.fold {
                range.case_fold_simple();
            }
            class.union(&range);
        }
        if negated {
            class.negate();
        }
        self.class(class);
        Ok(text.get(1..).unwrap_or_default())
    }
}

type NamedClass = (ClassUnicode, bool);

/// `[:alpha:]` inside brackets.
fn posix_class(text: &[u8]) -> Result<Option<(NamedClass, &[u8])>, SyntaxError> {
    let Some(start) = text.strip_prefix(b"[:") else { return Ok(None) };
    let Some(end) = start.windows(2).position(|pair| pair == b":]") else { return Ok(None) };
    let (name, rest) = start.split_at(end);
    let rest = rest.get(2..).unwrap_or_default();
    match classes::posix(name) {
        Some(class) => Ok(Some((class, rest))),
        None => Err(error(BAD_RANGE, before(text, rest))),
    }
}

/// One character of a class as its number, which may be a surrogate's.
fn class_char<'a>(text: &'a [u8], whole: &[u8]) -> Result<(u32, &'a [u8]), SyntaxError> {
    if text.first() == Some(&b'\\') {
        return escape_number(text);
    }
    match next_char(text)? {
        Some((c, rest)) => Ok((u32::from(c), rest)),
        None => Err(error(NO_BRACKET, whole)),
    }
}

/// A single-character escape; `None` for a surrogate, which no text contains.
fn escape(text: &[u8]) -> Result<(Option<char>, &[u8]), SyntaxError> {
    let (number, rest) = escape_number(text)?;
    Ok((char::from_u32(number), rest))
}

fn escape_number(text: &[u8]) -> Result<(u32, &[u8]), SyntaxError> {
    let Some((c, mut rest)) = next_char(text.get(1..).unwrap_or_default())? else {
        return Err(error(TRAILING_BACKSLASH, b""));
    };
    let octal = |rest: &[u8]| rest.first().copied().filter(|b| (b'0'..=b'7').contains(b));
    match c {
        '0'..='7' if c == '0' || octal(rest).is_some() => {
            let mut number = u32::from(c) - 0x30;
            for _ in 1..3 {
                let Some(digit) = octal(rest) else { break };
                number = number * 8 + u32::from(digit - b'0');
                rest = rest.get(1..).unwrap_or_default();
            }
            return Ok((number, rest));
        }
        'x' => match hexadecimal(rest)? {
            (Some(number), rest) => return Ok((number, rest)),
            (None, after) => rest = after,
        },
        'a' => return Ok((7, rest)),
        'f' => return Ok((12, rest)),
        'n' => return Ok((10, rest)),
        'r' => return Ok((13, rest)),
        't' => return Ok((9, rest)),
        'v' => return Ok((11, rest)),
        _ if c.is_ascii() && !c.is_ascii_alphanumeric() => return Ok((u32::from(c), rest)),
        _ => {}
    }
    Err(error(BAD_ESCAPE, before(text, rest)))
}

/// What follows `\x`; `None` with the place where Go stops reading when it is malformed.
fn hexadecimal(text: &[u8]) -> Result<(Option<u32>, &[u8]), SyntaxError> {
    let Some((c, mut rest)) = next_char(text)? else { return Ok((None, text)) };
    if c != '{' {
        // Go reads a second character before it looks at the first; the end of the text
        // counts as one that is no digit.
        let Some((d, rest)) = next_char(rest)? else { return Ok((None, rest)) };
        return Ok((c.to_digit(16).zip(d.to_digit(16)).map(|(x, y)| x * 16 + y), rest));
    }
    let mut number = 0;
    let mut digits = 0;
    while let Some((c, next)) = next_char(rest)? {
        rest = next;
        if c == '}' {
            return Ok((Some(number).filter(|_| digits > 0), rest));
        }
        let Some(digit) = c.to_digit(16) else { break };
        number = number * 16 + digit;
        if number > u32::from(char::MAX) {
            break;
        }
        digits += 1;
    }
    Ok((None, rest))
}

type Count = Option<(u32, Option<u32>)>;

/// `{n}`, `{n,}` or `{n,m}`: the counts, themselves `None` when out of any range, and what
/// follows. `None` when it is not of that form and `{` stands for itself.
fn count(text: &[u8]) -> Option<(Count, &[u8])> {
    let (min, rest) = integer(text.strip_prefix(b"{")?)?;
    let (max, rest) = match rest.strip_prefix(b",") {
        None => (Some(min), rest),
        Some(rest) if rest.first() == Some(&b'}') => (None, rest),
        Some(rest) => {
            let (max, rest) = integer(rest)?;
            (Some(max), rest)
        }
    };
    let rest = rest.strip_prefix(b"}")?;
    let range = match (min, max) {
        (Some(min), None) => Some((min, None)),
        (Some(min), Some(Some(max))) => Some((min, Some(max))),
        _ => None,
    };
    Some((range, rest))
}

/// Digits without a leading zero; the inner `None` is a number beyond Go's range.
fn integer(text: &[u8]) -> Option<(Option<u32>, &[u8])> {
    let digits = text.iter().take_while(|b| b.is_ascii_digit()).count();
    let (number, rest) = text.split_at_checked(digits)?;
    if number.is_empty() || (number.len() > 1 && number.starts_with(b"0")) {
        return None;
    }
    let value = std::str::from_utf8(number).ok().and_then(|digits| digits.parse().ok());
    Some((value, rest))
}

/// A range as the class type wants it.
pub(super) fn unicode_range(low: char, high: char) -> ClassUnicodeRange {
    ClassUnicodeRange::new(low, high)
}
