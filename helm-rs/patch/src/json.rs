//! JSON as Go's `encoding/json` writes it: fields by name, `<`, `>`, `&`, U+2028 and U+2029
//! escaped, floats as `encoding/json`'s `floatEncoder` spells them.

use std::io;

use serde::Serialize as _;
use serde_json::Value;
use serde_json::ser::{Formatter, Serializer};

use crate::value::scientific;

/// The bytes of `json.Marshal(value)`.
pub fn to_json(value: &Value) -> String {
    let mut out = Vec::new();
    let mut serializer = Serializer::with_formatter(&mut out, GoFormatter);
    // Writing a Value to memory cannot fail: every key is text, and a Vec takes everything.
    let written = if is_sorted(value) {
        value.serialize(&mut serializer)
    } else {
        sort(value).serialize(&mut serializer)
    };
    debug_assert!(written.is_ok(), "a value is always JSON");
    String::from_utf8(out).unwrap_or_default()
}

/// Whether fields come by name. They do unless the program was built with serde_json's
/// `preserve_order`.
fn is_sorted(value: &Value) -> bool {
    match value {
        Value::Array(list) => list.iter().all(is_sorted),
        Value::Object(object) => object.keys().is_sorted() && object.values().all(is_sorted),
        _ => true,
    }
}

fn sort(value: &Value) -> Value {
    match value {
        Value::Array(list) => Value::Array(list.iter().map(sort).collect()),
        Value::Object(object) => {
            let mut fields: Vec<_> = object.iter().collect();
            fields.sort_unstable_by_key(|(key, _)| *key);
            Value::Object(fields.into_iter().map(|(k, v)| (k.clone(), sort(v))).collect())
        }
        other => other.clone(),
    }
}

struct GoFormatter;

impl Formatter for GoFormatter {
    fn write_u64<W: ?Sized + io::Write>(&mut self, writer: &mut W, value: u64) -> io::Result<()> {
        if i64::try_from(value).is_ok() {
            write!(writer, "{value}")
        } else {
            // Go decodes what does not fit an int64 as a float64.
            self.write_f64(writer, value as f64)
        }
    }

    fn write_f64<W: ?Sized + io::Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        let size = value.abs();
        if size != 0.0 && !(1e-6..1e21).contains(&size) {
            let (mantissa, exponent) = scientific(value);
            let sign = if exponent < 0 { '-' } else { '+' };
            write!(writer, "{mantissa}e{sign}{}", exponent.unsigned_abs())
        } else {
            write!(writer, "{value}")
        }
    }

    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let special = |c: char| matches!(c, '<' | '>' | '&' | '\u{2028}' | '\u{2029}');
        let mut rest = fragment;
        while let Some((before, found)) = rest.find(special).map(|position| rest.split_at(position))
        {
            writer.write_all(before.as_bytes())?;
            let mut characters = found.chars();
            if let Some(character) = characters.next() {
                write!(writer, "\\u{:04x}", u32::from(character))?;
            }
            rest = characters.as_str();
        }
        writer.write_all(rest.as_bytes())
    }
}
