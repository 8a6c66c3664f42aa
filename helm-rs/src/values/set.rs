//! The grammar of `--set` and its relatives, as Helm's `pkg/strvals/{parser,literal_parser}.go`.
//!
//! ```text
//! line   = item *("," item)             ; --set-literal has one item, its value is the rest
//! item   = path "=" value
//! path   = key *("." key / "[" index "]")
//! value  = text / "{" text *("," text) "}" / JSON (--set-json)
//! ```
//!
//! A backslash takes the next character literally. Helm changes the values in place and lets a
//! line end in the middle of an item here and there; both show in results and are kept.

mod parser;

use std::error::Error;

use bstr::BString;
use goyaml::{Map, Value};

use self::parser::{Mode, Parser};
use super::options::ReadError;
use crate::gotext::{equal_fold, quote, quote_char};

/// Largest index in a list (Helm's `MaxIndex`).
const MAX_INDEX: usize = 65536;

/// Most names joined by dots in front of a value (Helm's `MaxNestedNameLevel`).
const MAX_NAME_LEVELS: usize = 30;

/// An argument of the `--set` family that Helm refuses, with its text.
#[derive(Debug, thiserror::Error)]
pub enum SetError {
    /// The line ends behind a key.
    #[error("key {} has no value", quote(key))]
    NoValue {
        /// The key.
        key: BString,
    },
    /// A comma follows a key.
    #[error("key {} has no value (cannot end with ,)", quote(key))]
    EndsWithComma {
        /// The key.
        key: BString,
    },
    /// Nothing is set below a key.
    #[error("key map {} has no value", quote(key))]
    EmptyMap {
        /// The key.
        key: BString,
    },
    /// What stands between brackets is no number.
    #[error("error parsing index: strconv.Atoi: parsing {}: invalid syntax", quote(text))]
    IndexSyntax {
        /// The text.
        text: BString,
    },
    /// The number between brackets is far too large.
    #[error("error parsing index: strconv.Atoi: parsing {}: value out of range", quote(text))]
    IndexRange {
        /// The text.
        text: BString,
    },
    /// A bracket is not closed.
    #[error("error parsing index: EOF")]
    IndexEnd,
    /// An index below zero.
    #[error("negative {index} index not allowed")]
    NegativeIndex {
        /// The index.
        index: i64,
    },
    /// An index above [`MAX_INDEX`].
    #[error("index of {index} is greater than maximum supported index of {MAX_INDEX}")]
    IndexTooLarge {
        /// The index.
        index: i64,
    },
    /// More than [`MAX_NAME_LEVELS`] names.
    #[error(
        "value name nested level is greater than maximum supported nested level of \
         {MAX_NAME_LEVELS}"
    )]
    TooManyNames,
    /// Something else than `.`, `[` or `=` follows a bracket.
    #[error("unexpected data at end of array index: {}", quote_chars(data))]
    AfterIndex {
        /// The characters.
        data: Vec<char>,
    },
    /// A brace is not closed.
    #[error("list must terminate with '}}'")]
    OpenList,
    /// The path goes through a value of another type. Helm recovers from Go's panic here.
    #[error("unable to parse key: interface conversion: interface {{}} is {actual}, not {wanted}")]
    Conversion {
        /// Go type of the value there is.
        actual: &'static str,
        /// Go type that the path needs.
        wanted: &'static str,
    },
    /// The value of `--set-json` is no JSON.
    #[error(transparent)]
    Json(#[from] goyaml::json::Error),
    /// A file named by `--set-file` cannot be read.
    #[error(transparent)]
    File(FileError),
    /// A bound of ours: indices nest too deep or lists grow too long.
    #[error("value path exceeds the limit of {limit} {what}")]
    Limit {
        /// What is counted.
        what: &'static str,
        /// The bound.
        limit: usize,
    },
}

/// A failed read, as the caller's reader reported it.
#[derive(Debug)]
pub struct FileError(ReadError);

impl std::fmt::Display for FileError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for FileError {}

/// Sets values from a `--set` argument: `true`, `false`, `null` and integers get their types, all
/// else is text.
///
/// ```
/// let mut values = goyaml::Map::new();
/// helm_rs::values::parse_set(b"a.b=1,c={x,y},d[1].e=null", &mut values)?;
/// assert_eq!(values.get("a").and_then(|a| a.get("b")), Some(&goyaml::Value::Int(1)));
/// # Ok::<(), helm_rs::values::SetError>(())
/// ```
///
/// # Errors
///
/// [`SetError`]; part of the argument may have been set.
pub fn parse_set(line: &[u8], values: &mut Map) -> Result<(), SetError> {
    Parser::new(line, Mode::Typed).parse(values)
}

/// Sets values from a `--set-string` argument: every value is text.
///
/// # Errors
///
/// [`SetError`]; part of the argument may have been set.
pub fn parse_set_string(line: &[u8], values: &mut Map) -> Result<(), SetError> {
    Parser::new(line, Mode::Text).parse(values)
}

/// Sets values from a `--set-json` argument: every value is JSON, an empty one is null.
///
/// # Errors
///
/// [`SetError`]; part of the argument may have been set.
pub fn parse_json(line: &[u8], values: &mut Map) -> Result<(), SetError> {
    Parser::new(line, Mode::Json).parse(values)
}

/// Sets values from a `--set-file` argument: every value is the path of a file to read.
///
/// # Errors
///
/// [`SetError`]; part of the argument may have been set.
pub fn parse_file(
    line: &[u8],
    values: &mut Map,
    read: &mut dyn FnMut(&str) -> Result<Vec<u8>, ReadError>,
) -> Result<(), SetError> {
    Parser::new(line, Mode::File(read)).parse(values)
}

/// Sets a value from a `--set-literal` argument: everything behind the first `=` is its text.
///
/// # Errors
///
/// [`SetError`]
pub fn parse_literal(line: &[u8], values: &mut Map) -> Result<(), SetError> {
    Parser::new(line, Mode::Literal).parse(values)
}

/// `typedVal`
fn typed(text: &str) -> Value {
    for (word, value) in
        [("true", Value::Bool(true)), ("false", Value::Bool(false)), ("null", Value::Null)]
    {
        if equal_fold(word, text.as_bytes()) {
            return value;
        }
    }
    if text == "0" {
        return Value::Int(0);
    }
    match text.parse::<i64>() {
        Ok(number) if !text.starts_with('0') => Value::Int(number),
        _ => Value::from(text),
    }
}

/// `%q` of a list of runes.
fn quote_chars(chars: &[char]) -> String {
    let quoted: Vec<String> = chars.iter().copied().map(quote_char).collect();
    format!("[{}]", quoted.join(" "))
}
