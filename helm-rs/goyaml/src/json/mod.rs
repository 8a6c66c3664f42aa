//! JSON as Go's `encoding/json` reads and writes it.

mod decode;
mod encode;

use thiserror::Error as ThisError;

use crate::{LimitError, Limits, Map, Source, Value};
use decode::{Extent, parse};
use encode::{Style, encode};

pub(crate) use encode::{MAX_DEPTH, MAX_OUTPUT, replace_invalid};

/// Why JSON could not be read or written, with Go's text.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
pub enum Error {
    /// The text is no JSON.
    #[error("{message}")]
    Syntax {
        /// Go's message.
        message: String,
        /// The number of bytes read before the error, Go's `Offset`.
        offset: usize,
    },
    /// There was nothing but white space (`io.EOF` of a stream decoder).
    #[error("EOF")]
    Empty,
    /// The text ends inside a value (`io.ErrUnexpectedEOF` of a stream decoder).
    #[error("unexpected EOF")]
    UnexpectedEnd,
    /// A value does not fit what was asked for.
    #[error("json: cannot unmarshal {value} into Go value of type {go_type}")]
    Type {
        /// `object`, `array`, `string`, `number 1e400`…
        value: String,
        /// The Go type that was asked for.
        go_type: String,
        /// The number of bytes read before the error, Go's `Offset`.
        offset: usize,
    },
    /// A number that JSON does not have.
    #[error("json: unsupported value: {text}")]
    UnsupportedValue {
        /// `NaN`, `+Inf` or `-Inf`.
        text: String,
    },
    /// A bound of [`Limits`] that Go does not have.
    #[error(transparent)]
    Limit(#[from] LimitError),
}

impl Error {
    /// A value of another kind than the type that was asked for.
    pub(crate) fn mismatch(value: &Value, go_type: &str) -> Self {
        let kind = match value {
            Value::Null => "null",
            Value::Bool(_) => "bool",
            Value::Int(_) | Value::Uint(_) | Value::Float(_) => "number",
            Value::String(_) => "string",
            Value::Seq(_) => "array",
            Value::Map(_) => "object",
        };
        Self::Type { value: kind.to_owned(), go_type: go_type.to_owned(), offset: 0 }
    }
}

/// Writes `value` as `json.Marshal` does: compact, keys sorted, `<`, `>` and `&` escaped.
///
/// # Errors
/// Numbers that JSON does not have, and a nesting that never ends.
#[expect(clippy::needless_pass_by_value, reason = "handles are cheap, and read better bare")]
pub fn to_json<S: Source>(value: S) -> Result<String, Error> {
    encode_value(&value)
}

/// [`to_json`] of a borrowed handle.
pub(crate) fn encode_value<S: Source>(value: &S) -> Result<String, Error> {
    encode(value, Style { escape_html: true, indent: None })
}

/// Writes `value` as an encoder with `SetEscapeHTML(false)` does, without the final line break.
///
/// # Errors
/// As [`to_json`].
#[expect(clippy::needless_pass_by_value, reason = "handles are cheap, and read better bare")]
pub fn to_json_raw<S: Source>(value: S) -> Result<String, Error> {
    encode(&value, Style { escape_html: false, indent: None })
}

/// The characters of the text as a JSON string, quotes included.
pub(crate) fn quoted_length(text: &[u8]) -> usize {
    let mut quoted = Vec::with_capacity(text.len() + 2);
    encode::write_string(&mut quoted, text, true);
    quoted.iter().filter(|&&byte| byte & 0xc0 != 0x80).count()
}

/// Writes `value` as `json.MarshalIndent` does.
///
/// # Errors
/// As [`to_json`].
#[expect(clippy::needless_pass_by_value, reason = "handles are cheap, and read better bare")]
pub fn to_json_indent<S: Source>(value: S, prefix: &str, indent: &str) -> Result<String, Error> {
    encode(&value, Style { escape_html: true, indent: Some((prefix, indent)) })
}

/// Reads `input` as `json.Unmarshal` does into an `interface{}`: every number becomes a float.
///
/// # Errors
/// Go's error.
pub fn from_json(input: &[u8], limits: &Limits) -> Result<Value, Error> {
    let parsed = parse(input, false, Extent::Whole, limits)?;
    parsed.overflow.map_or(Ok(parsed.value), Err)
}

/// As [`from_json`], but a key that occurs twice in an object is an error, as it is to no decoder
/// of Go: each lets the later one win.
///
/// # Errors
/// Go's error, or [`Error::Syntax`] about the key.
pub fn from_json_strict(input: &[u8], limits: &Limits) -> Result<Value, Error> {
    let parsed = parse(input, false, Extent::Whole, limits)?;
    if parsed.has_doubles {
        let message = "a key occurs twice in an object".to_owned();
        return Err(Error::Syntax { message, offset: parsed.length });
    }
    parsed.overflow.map_or(Ok(parsed.value), Err)
}

/// As [`from_json`], but integers stay integers.
///
/// # Errors
/// Go's error.
pub fn from_json_exact(input: &[u8], limits: &Limits) -> Result<Value, Error> {
    let parsed = parse(input, true, Extent::Whole, limits)?;
    parsed.overflow.map_or(Ok(parsed.value), Err)
}

/// Reads an object as `fromJson` does. The map holds what Go leaves in it when the second part
/// is an error. For `null` the map is empty, where Go's is nil.
pub fn from_json_map(input: &[u8], go_type: &str, limits: &Limits) -> (Map, Option<Error>) {
    match parse(input, false, Extent::Whole, limits) {
        Err(error) => (Map::new(), Some(error)),
        Ok(parsed) => match parsed.value {
            Value::Map(map) => (map, parsed.overflow),
            Value::Null if parsed.overflow.is_none() => (Map::new(), None),
            // Go names the kind only, also of a number that is too large.
            Value::Null => (Map::new(), Some(Error::mismatch(&Value::Float(0.0), go_type))),
            other => (Map::new(), Some(Error::mismatch(&other, go_type))),
        },
    }
}

/// Reads an array as `fromJsonArray` does. For `null` it is empty, where Go's is nil.
///
/// # Errors
/// Go's error.
pub fn from_json_seq(input: &[u8], limits: &Limits) -> Result<Vec<Value>, Error> {
    let parsed = parse(input, false, Extent::Whole, limits)?;
    match (parsed.value, parsed.overflow) {
        (Value::Seq(_), Some(error)) => Err(error),
        (Value::Seq(items), None) => Ok(items),
        (Value::Null, None) => Ok(Vec::new()),
        (Value::Null, Some(_)) => Err(Error::mismatch(&Value::Float(0.0), "[]interface {}")),
        (other, _) => Err(Error::mismatch(&other, "[]interface {}")),
    }
}

/// Reads the first value of `input` as `json.Decoder.Decode` does and says how many bytes it
/// took; what follows is not looked at.
///
/// # Errors
/// Go's error: [`Error::Empty`] and [`Error::UnexpectedEnd`] at the end of the input.
pub fn from_json_prefix(input: &[u8], limits: &Limits) -> Result<(Value, usize), Error> {
    let parsed = parse(input, false, Extent::Prefix, limits)?;
    parsed.overflow.map_or(Ok((parsed.value, parsed.length)), Err)
}
