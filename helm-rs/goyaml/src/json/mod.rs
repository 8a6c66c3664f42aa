//! JSON as Go's `encoding/json` reads and writes it.

use thiserror::Error as ThisError;

use crate::{Limits, Map, Source, Value};

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
    /// A value nests too deep, or for ever.
    #[error("nesting exceeds the limit of {limit} levels")]
    Depth {
        /// Levels allowed.
        limit: usize,
    },
}

/// Writes `value` as `json.Marshal` does: compact, keys sorted, `<`, `>` and `&` escaped.
///
/// # Errors
/// Numbers that JSON does not have, and a nesting that never ends.
pub fn to_json<S: Source>(value: S) -> Result<String, Error> {
    let _ = value.node();
    Ok(String::new())
}

/// Writes `value` as an encoder with `SetEscapeHTML(false)` does, without the final line break.
///
/// # Errors
/// As [`to_json`].
pub fn to_json_raw<S: Source>(value: S) -> Result<String, Error> {
    let _ = value.node();
    Ok(String::new())
}

/// Writes `value` as `json.MarshalIndent` does.
///
/// # Errors
/// As [`to_json`].
pub fn to_json_indent<S: Source>(value: S, prefix: &str, indent: &str) -> Result<String, Error> {
    let _ = (value.node(), prefix, indent);
    Ok(String::new())
}

/// Reads `input` as `json.Unmarshal` does into an `interface{}`: every number becomes a float.
///
/// # Errors
/// Go's error.
pub fn from_json(input: &[u8], limits: &Limits) -> Result<Value, Error> {
    let _ = (input, limits);
    Ok(Value::Null)
}

/// As [`from_json`], but integers stay integers.
///
/// # Errors
/// Go's error.
pub fn from_json_exact(input: &[u8], limits: &Limits) -> Result<Value, Error> {
    let _ = (input, limits);
    Ok(Value::Null)
}

/// Reads an object as `fromJson` does. The map holds what Go leaves in it when the second part
/// is an error.
pub fn from_json_map(input: &[u8], go_type: &str, limits: &Limits) -> (Map, Option<Error>) {
    let _ = (input, go_type, limits);
    (Map::new(), None)
}

/// Reads an array as `fromJsonArray` does.
///
/// # Errors
/// Go's error.
pub fn from_json_seq(input: &[u8], limits: &Limits) -> Result<Vec<Value>, Error> {
    let _ = (input, limits);
    Ok(Vec::new())
}

/// Reads the first value of `input` as `json.Decoder.Decode` does and says how many bytes it
/// took; what follows is not looked at.
///
/// # Errors
/// Go's error: [`Error::Empty`] and [`Error::UnexpectedEnd`] at the end of the input.
pub fn from_json_prefix(input: &[u8], limits: &Limits) -> Result<(Value, usize), Error> {
    let _ = (input, limits);
    Ok((Value::Null, 0))
}
