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

use crate::{Conversion, Error, Limits, Value, YamlError};
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
    let document = Document::first(&input).map_err(unread)?;
    let decoded = decode::decode(&document, strict, limits)?;
    convert::convert(decoded, numbers, limits)
}

/// Reads `input`, which is one document and nothing else, strictly.
pub(crate) fn read_only(input: &[u8], numbers: Numbers, limits: &Limits) -> Result<Value, Error> {
    limits.check_bytes(input)?;
    let input = Input::new(input);
    let document = Document::only(&input).map_err(unread)?;
    let decoded = decode::decode(&document, true, limits)?;
    convert::convert(decoded, numbers, limits)
}

const fn unread(error: YamlError) -> Error {
    Error::Converting(Conversion::Yaml(error))
}

/// Reads JSON as go-yaml v2 reads it on the way back from `encoding/json`.
pub(crate) fn read_json(text: &[u8]) -> Result<Value, Error> {
    read(text, false, Numbers::Exact, &Limits::go()).map_err(|error| match error {
        Error::Converting(Conversion::Yaml(error)) => Error::Yaml(error),
        other => other,
    })
}

#[cfg(test)]
mod tests {
    use super::{Numbers, read_only};
    use crate::Limits;

    #[test]
    fn nothing_may_stand_behind_the_only_document() {
        let read = |text: &str| {
            let read = read_only(text.as_bytes(), Numbers::Float, &Limits::default());
            read.map(|_| ()).map_err(|error| error.to_string())
        };
        for text in ["", "# a\n", "a: b\n", "---\na: b\n...\n# c\n", "a: b\n\n# c\n", "- a\n"] {
            assert_eq!(read(text), Ok(()), "{text:?}");
        }
        for (text, problem) in [
            ("  a: b\n c: d\n", "did not find expected <document start>"),
            ("a: b\n---\nc: d\n", "a second document follows"),
            ("a: b\na: c\n", "already set in map"),
        ] {
            let error = read(text).err().unwrap_or_default();
            assert!(error.contains(problem), "{text:?}: {error}");
        }
    }
}
