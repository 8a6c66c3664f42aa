//! Reading JSON, after `encoding/json`'s `scanner.go` and `decode.go`.
//!
//! Go checks the whole text first and decodes it then, so that a syntax error anywhere wins over
//! a number that is too large. Here both happen in one pass: the first such number is kept until
//! the end.

use bstr::BString;

use super::Error;
use crate::quote::quote_byte;
use crate::{LimitError, Limits, Map, Value};

/// Go's `maxNestingDepth`
const MAX_DEPTH: usize = 10_000;

/// A value that was read.
#[derive(Debug)]
pub(super) struct Parsed {
    pub(super) value: Value,
    /// The first number that no float holds; null stands in its place.
    pub(super) overflow: Option<Error>,
    /// The bytes that the value took.
    pub(super) length: usize,
    /// Whether a key occurs twice in an object, where the later one wins.
    pub(super) has_doubles: bool,
}

/// How much of the input the value is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// All of it, as for `json.Unmarshal`.
    Whole,
    /// As much as it takes, as for `json.Decoder`.
    Prefix,
}

pub(super) fn parse(
    input: &[u8],
    exact: bool,
    extent: Extent,
    limits: &Limits,
) -> Result<Parsed, Error> {
    limits.check_bytes(input)?;
    let mut parser = Parser { input, at: 0, exact, extent, overflow: None, has_doubles: false };
    let max_depth = limits.max_depth.min(MAX_DEPTH);
    let value = parser.document(max_depth)?;
    let length = parser.at;
    if extent == Extent::Whole {
        parser.skip_space();
        if let Some(byte) = parser.peek() {
            return Err(parser.unexpected(byte, "after top-level value"));
        }
    }
    Ok(Parsed { value, overflow: parser.overflow, length, has_doubles: parser.has_doubles })
}

enum Open {
    Seq(Vec<Value>),
    Map { entries: Vec<(BString, Value)>, key: BString },
}

impl Open {
    /// The value, and whether a key of it occurred twice.
    fn finish(self) -> (Value, bool) {
        match self {
            Self::Seq(items) => (Value::Seq(items), false),
            Self::Map { entries, .. } => {
                let count = entries.len();
                let map = entries.into_iter().collect::<Map>();
                let has_doubles = map.len() < count;
                (Value::Map(map), has_doubles)
            }
        }
    }
}

struct Parser<'i> {
    input: &'i [u8],
    at: usize,
    exact: bool,
    extent: Extent,
    overflow: Option<Error>,
    has_doubles: bool,
}

impl Parser<'_> {
    fn peek(&self) -> Option<u8> {
        self.input.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    fn syntax(&self, message: String) -> Error {
        Error::Syntax { message, offset: self.at + 1 }
    }

    fn unexpected(&self, byte: u8, context: &str) -> Error {
        self.syntax(format!("invalid character {} {context}", quote_byte(byte)))
    }

    /// The end of the input inside a value.
    fn end(&self) -> Error {
        if self.extent == Extent::Whole {
            let message = "unexpected end of JSON input".to_owned();
            return Error::Syntax { message, offset: self.input.len() };
        }
        let is_space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
        if self.input.iter().all(is_space) { Error::Empty } else { Error::UnexpectedEnd }
    }

    /// The end of the input inside a token, where `json.Unmarshal` misses the next byte: it tries
    /// a space there.
    fn end_in(&self, context: &str) -> Error {
        if self.extent == Extent::Whole {
            return Error::Syntax {
                message: format!("invalid character ' ' {context}"),
                offset: self.input.len(),
            };
        }
        self.end()
    }

    /// The byte at the cursor, with an error that tells the context if it is not `wanted`.
    fn expect(&mut self, wanted: u8, context: &str) -> Result<(), Error> {
        match self.peek() {
            Some(byte) if byte == wanted => {
                self.at += 1;
                Ok(())
            }
            Some(byte) => Err(self.unexpected(byte, context)),
            None => Err(self.end()),
        }
    }

    fn document(&mut self, max_depth: usize) -> Result<Value, Error> {
        let mut open: Vec<Open> = Vec::new();
        // Bounded by our limits, but Go would read on and may find an error of its own.
        let mut too_deep = false;
        loop {
            self.skip_space();
            let byte = self.peek().ok_or_else(|| self.end())?;
            let mut complete = match byte {
                b'[' | b'{' => {
                    if open.len() >= MAX_DEPTH {
                        return Err(self.unexpected(byte, "exceeded max depth"));
                    }
                    too_deep |= open.len() >= max_depth;
                    self.at += 1;
                    self.skip_space();
                    let closing = if byte == b'[' { b']' } else { b'}' };
                    if self.peek() == Some(closing) {
                        self.at += 1;
                        Some(if byte == b'[' {
                            Value::Seq(Vec::new())
                        } else {
                            Value::Map(Map::new())
                        })
                    } else if byte == b'[' {
                        open.push(Open::Seq(Vec::new()));
                        None
                    } else {
                        let key = self.key()?;
                        open.push(Open::Map { entries: Vec::new(), key });
                        None
                    }
                }
                _ => Some(self.scalar(byte)?),
            };
            while let Some(value) = complete.take() {
                let Some(around) = open.last_mut() else {
                    return if too_deep {
                        Err(Error::Limit(LimitError::Depth { limit: max_depth }))
                    } else {
                        Ok(value)
                    };
                };
                let (closing, context) = match around {
                    Open::Seq(items) => {
                        items.push(value);
                        (b']', "after array element")
                    }
                    Open::Map { entries, key } => {
                        entries.push((std::mem::take(key), value));
                        (b'}', "after object key:value pair")
                    }
                };
                self.skip_space();
                match self.peek() {
                    Some(b',') => {
                        self.at += 1;
                        if let Open::Map { key, .. } = around {
                            self.skip_space();
                            *key = self.key()?;
                        }
                    }
                    Some(byte) if byte == closing => {
                        self.at += 1;
                        if let Some((value, has_doubles)) = open.pop().map(Open::finish) {
                            self.has_doubles |= has_doubles;
                            complete = Some(value);
                        }
                    }
                    Some(byte) => return Err(self.unexpected(byte, context)),
                    None => return Err(self.end()),
                }
            }
        }
    }

    /// A key and its colon.
    fn key(&mut self) -> Result<BString, Error> {
        self.expect(b'"', "looking for beginning of object key string")?;
        let key = self.string()?;
        self.skip_space();
        self.expect(b':', "after object key")?;
        Ok(key)
    }

    fn scalar(&mut self, first: u8) -> Result<Value, Error> {
        match first {
            b'"' => {
                self.at += 1;
                Ok(Value::String(self.string()?))
            }
            b't' => self.word("true").map(|()| Value::Bool(true)),
            b'f' => self.word("false").map(|()| Value::Bool(false)),
            b'n' => self.word("null").map(|()| Value::Null),
            b'-' | b'0'..=b'9' => self.number(),
            _ => Err(self.unexpected(first, "looking for beginning of value")),
        }
    }

    fn word(&mut self, word: &str) -> Result<(), Error> {
        self.at += 1;
        for wanted in word.bytes().skip(1) {
            if self.peek() != Some(wanted) {
                let context = format!("in literal {word} (expecting '{}')", char::from(wanted));
                return Err(match self.peek() {
                    Some(byte) => self.unexpected(byte, &context),
                    None => self.end_in(&context),
                });
            }
            self.at += 1;
        }
        Ok(())
    }

    /// Moves over digits, of which there must be one.
    fn digits(&mut self, context: &str) -> Result<(), Error> {
        match self.peek() {
            Some(b'0'..=b'9') => {}
            Some(byte) => return Err(self.unexpected(byte, context)),
            None => return Err(self.end_in(context)),
        }
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        Ok(())
    }

    fn number(&mut self) -> Result<Value, Error> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits("in numeric literal")?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits("after decimal point in numeric literal")?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits("in exponent of numeric literal")?;
        }
        let text = self.input.get(start..self.at).unwrap_or_default();
        let text = std::str::from_utf8(text).unwrap_or_default();
        if self.exact && text != "-0" {
            if let Ok(value) = text.parse() {
                return Ok(Value::Int(value));
            }
            if let Ok(value) = text.parse() {
                return Ok(Value::Uint(value));
            }
        }
        match text.parse::<f64>() {
            Ok(value) if value.is_finite() => Ok(Value::Float(value)),
            _ => {
                let error = Error::Type {
                    value: format!("number {text}"),
                    go_type: "float64".to_owned(),
                    offset: self.at,
                };
                self.overflow.get_or_insert(error);
                Ok(Value::Null)
            }
        }
    }

    /// A string up to its closing quote.
    fn string(&mut self) -> Result<BString, Error> {
        let mut text: Vec<u8> = Vec::new();
        let mut from = self.at;
        loop {
            match self.peek() {
                None => return Err(self.end()),
                Some(b'"') => break,
                Some(b'\\') => {
                    text.extend_from_slice(self.input.get(from..self.at).unwrap_or_default());
                    self.at += 1;
                    self.escape(&mut text)?;
                    from = self.at;
                }
                Some(byte @ ..b' ') => return Err(self.unexpected(byte, "in string literal")),
                Some(_) => self.at += 1,
            }
        }
        text.extend_from_slice(self.input.get(from..self.at).unwrap_or_default());
        self.at += 1;
        if std::str::from_utf8(&text).is_err() {
            text = super::replace_invalid(&text);
        }
        Ok(text.into())
    }

    fn escape(&mut self, text: &mut Vec<u8>) -> Result<(), Error> {
        let plain = match self.peek() {
            Some(byte @ (b'"' | b'\\' | b'/')) => byte,
            Some(b'b') => 0x08,
            Some(b'f') => 0x0c,
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'u') => {
                self.at += 1;
                let c = self.unicode_escape()?;
                text.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                return Ok(());
            }
            Some(byte) => return Err(self.unexpected(byte, "in string escape code")),
            None => return Err(self.end_in("in string escape code")),
        };
        text.push(plain);
        self.at += 1;
        Ok(())
    }

    /// What follows `\u`; a surrogate without its pair is replaced.
    fn unicode_escape(&mut self) -> Result<char, Error> {
        let unit = self.code_unit()?;
        if !(0xd800..0xdc00).contains(&unit) {
            return Ok(char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER));
        }
        let before = self.at;
        if self.input.get(self.at..self.at + 2) == Some(b"\\u") {
            self.at += 2;
            // A bad digit is found again by whoever reads the second escape.
            if let Ok(low @ 0xdc00..0xe000) = self.code_unit() {
                let code = 0x1_0000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
                return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
        }
        self.at = before;
        Ok(char::REPLACEMENT_CHARACTER)
    }

    fn code_unit(&mut self) -> Result<u32, Error> {
        let mut unit = 0;
        for _ in 0..4 {
            const CONTEXT: &str = "in \\u hexadecimal character escape";
            let Some(byte) = self.peek() else { return Err(self.end_in(CONTEXT)) };
            let Some(digit) = char::from(byte).to_digit(16) else {
                return Err(self.unexpected(byte, CONTEXT));
            };
            unit = unit << 4 | digit;
            self.at += 1;
        }
        Ok(unit)
    }
}
