//! The type of a scalar, after go-yaml's `resolve.go`.

use std::borrow::Cow;

use super::number::{self, Integer};
use super::timestamp::is_timestamp;
use crate::YamlError;

pub(crate) const LONG_PREFIX: &[u8] = b"tag:yaml.org,2002:";

/// What a scalar's text stands for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Resolved {
    Null,
    Bool(bool),
    Int(Integer),
    Float(f64),
    /// Stays the text that it is, but must be quoted if it is none.
    Timestamp,
    Str,
}

/// The tags that go-yaml resolves itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tag {
    Str,
    Bool,
    Int,
    Float,
    Null,
    Timestamp,
}

impl Tag {
    fn parse(tag: &[u8]) -> Option<Self> {
        Some(match tag.strip_prefix(LONG_PREFIX)? {
            b"str" => Self::Str,
            b"bool" => Self::Bool,
            b"int" => Self::Int,
            b"float" => Self::Float,
            b"null" => Self::Null,
            b"timestamp" => Self::Timestamp,
            _ => return None,
        })
    }

    const fn short(self) -> &'static str {
        match self {
            Self::Str => "!!str",
            Self::Bool => "!!bool",
            Self::Int => "!!int",
            Self::Float => "!!float",
            Self::Null => "!!null",
            Self::Timestamp => "!!timestamp",
        }
    }
}

impl Resolved {
    const fn tag(self) -> Tag {
        match self {
            Self::Null => Tag::Null,
            Self::Bool(_) => Tag::Bool,
            Self::Int(_) => Tag::Int,
            Self::Float(_) => Tag::Float,
            Self::Timestamp => Tag::Timestamp,
            Self::Str => Tag::Str,
        }
    }
}

/// Which words and octal forms count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Schema {
    /// go-yaml v2: `y`, `no`, `on`… are booleans.
    V2,
    /// go-yaml v3: they are not, when there is no type to decode into.
    V3,
}

/// `resolve("", text)`
pub(crate) fn resolve(text: &[u8], schema: Schema) -> Resolved {
    resolve_for(None, text, schema)
}

/// `resolve(tag, text)` of go-yaml v2 for a tag that may be unknown, whose text stays as it is.
pub(crate) fn resolve_tagged(tag: &[u8], text: &[u8]) -> Result<Resolved, YamlError> {
    let Some(tag) = Tag::parse(tag) else { return Ok(Resolved::Str) };
    let resolved = resolve_for(Some(tag), text, Schema::V2);
    match (tag, resolved) {
        (Tag::Str, _) => Ok(Resolved::Str),
        (Tag::Float, Resolved::Int(Integer::Signed(value))) => Ok(Resolved::Float(value as f64)),
        _ if resolved.tag() == tag => Ok(resolved),
        _ => Err(YamlError::new(format!(
            "cannot decode {} `{}` as a {}",
            resolved.tag().short(),
            String::from_utf8_lossy(text),
            tag.short()
        ))),
    }
}

fn resolve_for(tag: Option<Tag>, text: &[u8], schema: Schema) -> Resolved {
    if tag == Some(Tag::Str) {
        return Resolved::Str;
    }
    let Some(first) = text.first() else { return Resolved::Null };
    match first {
        b'y' | b'Y' | b'n' | b'N' | b't' | b'T' | b'f' | b'F' | b'o' | b'O' | b'~' => {
            word(text, schema).unwrap_or(Resolved::Str)
        }
        b'.' => word(text, schema).unwrap_or_else(|| {
            std::str::from_utf8(text)
                .ok()
                .and_then(number::parse_fraction)
                .map_or(Resolved::Str, Resolved::Float)
        }),
        b'+' | b'-' | b'0'..=b'9' => word(text, schema).unwrap_or_else(|| {
            if matches!(tag, None | Some(Tag::Timestamp)) && is_timestamp(text) {
                return Resolved::Timestamp;
            }
            std::str::from_utf8(text)
                .ok()
                .and_then(|text| numeral(text, schema))
                .unwrap_or(Resolved::Str)
        }),
        _ => Resolved::Str,
    }
}

/// The words of go-yaml's `resolveMap`.
fn word(text: &[u8], schema: Schema) -> Option<Resolved> {
    if text.len() > 5 {
        return None;
    }
    Some(match text {
        b"true" | b"True" | b"TRUE" => Resolved::Bool(true),
        b"false" | b"False" | b"FALSE" => Resolved::Bool(false),
        b"~" | b"null" | b"Null" | b"NULL" => Resolved::Null,
        b".nan" | b".NaN" | b".NAN" => Resolved::Float(f64::NAN),
        b".inf" | b".Inf" | b".INF" | b"+.inf" | b"+.Inf" | b"+.INF" => {
            Resolved::Float(f64::INFINITY)
        }
        b"-.inf" | b"-.Inf" | b"-.INF" => Resolved::Float(f64::NEG_INFINITY),
        _ if schema == Schema::V2 => Resolved::Bool(old_bool(text)?),
        _ => return None,
    })
}

/// The booleans of YAML 1.1 beyond `true` and `false`.
pub(crate) const fn old_bool(text: &[u8]) -> Option<bool> {
    match text {
        b"y" | b"Y" | b"yes" | b"Yes" | b"YES" | b"on" | b"On" | b"ON" => Some(true),
        b"n" | b"N" | b"no" | b"No" | b"NO" | b"off" | b"Off" | b"OFF" => Some(false),
        _ => None,
    }
}

fn numeral(text: &str, schema: Schema) -> Option<Resolved> {
    let plain: Cow<'_, str> =
        if text.contains('_') { text.replace('_', "").into() } else { text.into() };
    if let Some(value) = number::parse_integer(&plain) {
        return Some(Resolved::Int(value));
    }
    if number::is_decimal_float(&plain)
        && let Some(value) = number::parse_float(&plain)
    {
        return Some(Resolved::Float(value));
    }
    // What is left of prefixes are signs behind them: "0b-1" is -1, "-0b+1" is nothing.
    let with_prefix = |prefix: &str, radix| {
        let (sign, rest) = match plain.strip_prefix('-') {
            Some(rest) => ("-", rest),
            None => ("", plain.as_ref()),
        };
        let digits = rest.strip_prefix(prefix)?;
        number::parse_radix(&format!("{sign}{digits}"), radix).map(Resolved::Int)
    };
    with_prefix("0b", 2).or_else(|| if schema == Schema::V3 { with_prefix("0o", 8) } else { None })
}

/// go-yaml's `isBase60Float`: such strings are quoted for the sake of YAML 1.1 parsers.
pub(crate) fn is_base60(text: &[u8]) -> bool {
    let unsigned = match text {
        [b'+' | b'-', rest @ ..] => rest,
        _ => text,
    };
    let Some(b'0'..=b'9') = unsigned.first() else { return false };
    let whole = unsigned.iter().take_while(|b| b.is_ascii_digit() || **b == b'_').count();
    let mut rest = unsigned.get(whole..).unwrap_or_default();
    let mut groups = 0;
    while let [b':', group @ ..] = rest {
        let digits = match group {
            [b'0'..=b'5', b'0'..=b'9', ..] => 2,
            [b'0'..=b'9', ..] => 1,
            _ => return false,
        };
        groups += 1;
        rest = group.get(digits..).unwrap_or_default();
    }
    groups > 0
        && match rest {
            [] => true,
            [b'.', fraction @ ..] => fraction.iter().all(|b| b.is_ascii_digit() || *b == b'_'),
            _ => false,
        }
}
