//! Reading YAML: characters, tokens, events, nodes, Go values, JSON, one module each.

mod chars;
mod compose;
mod convert;
mod decode;
mod parser;
mod reader;
mod scalars;
mod scanner;
mod tags;
mod tape;
mod token;

pub(crate) use convert::Numbers;

use crate::{Conversion, Error, Limits, Value};
use compose::Document;
use reader::Input;

/// Reads the first document of `input`.
pub(crate) fn read(
    input: &[u8],
    strict: bool,
    numbers: Numbers,
    limits: &Limits,
) -> Result<Value, Error> {
    limits.check_bytes(input)?;
    let input = Input::new(input);
    let document =
        Document::first(&input).map_err(|error| Error::Converting(Conversion::Yaml(error)))?;
    let decoded = decode::decode(&document, strict, limits)?;
    convert::convert(decoded, numbers, limits)
}

/// Reads JSON as go-yaml v2 reads it on the way back from `encoding/json`.
pub(crate) fn read_json(text: &[u8]) -> Result<Value, Error> {
    read(text, false, Numbers::Exact, &Limits::go()).map_err(|error| match error {
        Error::Converting(Conversion::Yaml(error)) => Error::Yaml(error),
        other => other,
    })
}
