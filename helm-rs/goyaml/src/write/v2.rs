//! `toYaml`: `sigs.k8s.io/yaml.Marshal`, which writes JSON, reads that with go-yaml v2 and writes
//! the result.
//!
//! For nearly every value the way through JSON changes nothing but floats that are integers. Such
//! values are written directly; the rest takes Go's way step by step, so that its effects
//! (refused control characters, folded NEL, keys that are too long) come out by themselves.

use super::Dialect;
use super::emitter::{Emitter, Leaves, Place, Scalar, Style};
use crate::json;
use crate::read;
use crate::scalar::number;
use crate::scalar::resolve::{Resolved, Schema, is_base60, resolve};
use crate::{Error, LimitError, Node, Source};

/// The longest key that go-yaml reads back, in characters of its JSON form.
const MAX_JSON_KEY: usize = 1024;

/// Writes `value` as `sigs.k8s.io/yaml.Marshal` does.
pub(crate) fn to_yaml<S: Source>(value: &S) -> Result<String, Error> {
    let direct = Emitter::new(Dialect::V2).document(value, &mut Direct { checked: true });
    let out = match direct {
        Ok(out) => out,
        Err(Stop::Output) => return Err(output_limit()),
        Err(Stop::Detour) => {
            let text = json::encode_value(value).map_err(Error::Marshaling)?;
            let value = read::read_json(text.as_bytes())?;
            let leaves = &mut Direct { checked: false };
            Emitter::new(Dialect::V2).document(&&value, leaves).map_err(|_| output_limit())?
        }
    };
    // Only valid UTF-8 takes either way.
    Ok(String::from_utf8(out).unwrap_or_default())
}

const fn output_limit() -> Error {
    Error::Limit(LimitError::Output { limit: json::MAX_OUTPUT })
}

/// Why the emitter did not finish.
enum Stop {
    /// The value must go through JSON.
    Detour,
    /// The output became too long.
    Output,
}

struct Direct {
    /// Whether the value has to be such that JSON does not change it.
    checked: bool,
}

impl Direct {
    fn keep(&self, changes: impl FnOnce() -> bool) -> Result<(), Stop> {
        if self.checked && changes() { Err(Stop::Detour) } else { Ok(()) }
    }
}

impl<S: Source> Leaves<S> for Direct {
    type Error = Stop;

    fn scalar(&mut self, out: &mut Emitter, node: Node<S>, place: Place) -> Result<(), Stop> {
        match node {
            Node::Null
            | Node::NilSeq
            | Node::NilMap
            | Node::Seq(_)
            | Node::Map(_)
            | Node::Struct(_) => {
                out.word(b"null");
            }
            Node::Bool(true) => out.word(b"true"),
            Node::Bool(false) => out.word(b"false"),
            Node::Int(value) => out.word(value.to_string().as_bytes()),
            Node::Uint(value) => out.word(value.to_string().as_bytes()),
            Node::Float(value) => {
                self.keep(|| !value.is_finite())?;
                out.word(float(value).as_bytes());
            }
            Node::String(text) => {
                let text = text.as_ref();
                self.keep(|| is_changed(text))?;
                out.scalar(scalar(text), place);
            }
        }
        Ok(())
    }

    fn key(&mut self, out: &mut Emitter, key: &[u8]) -> Result<bool, Stop> {
        self.keep(|| is_changed(key) || is_too_long(key))?;
        Ok(out.key(scalar(key)))
    }

    fn check(&mut self, depth: usize, written: usize) -> Result<(), Stop> {
        if written > json::MAX_OUTPUT {
            return Err(Stop::Output);
        }
        self.keep(|| depth > json::MAX_DEPTH)
    }
}

/// `stringv` of go-yaml v2 for valid UTF-8.
fn scalar(text: &[u8]) -> Scalar<'_> {
    let style = if text.contains(&b'\n') {
        Style::Literal
    } else if matches!(resolve(text, Schema::V2), Resolved::Str) && !is_base60(text) {
        Style::Plain
    } else {
        Style::DoubleQuoted
    };
    Scalar { text, is_binary: false, style }
}

/// A float as JSON and go-yaml make of it: an integer if JSON writes it as one that fits.
fn float(value: f64) -> String {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() != 0.0 || value.abs() >= 1e21 {
        return number::format_g64(value);
    }
    if value.abs() < EXACT {
        return (value as i64).to_string();
    }
    match number::format_json(value) {
        Some(text) if number::parse_integer(&text).is_some() => text,
        _ => number::format_g64(value),
    }
}

/// Whether JSON or the reader of YAML would change or refuse the text.
fn is_changed(text: &[u8]) -> bool {
    if text.is_ascii() {
        return text.contains(&0x7f);
    }
    std::str::from_utf8(text).map_or(true, |text| {
        text.chars().any(|c| matches!(c, '\u{7f}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}'))
    })
}

/// Whether go-yaml would no longer take the JSON form of the text for a key.
fn is_too_long(key: &[u8]) -> bool {
    // No character takes more than six.
    if 6 * key.len() + 2 <= MAX_JSON_KEY {
        return false;
    }
    json::quoted_length(key) > MAX_JSON_KEY
}
