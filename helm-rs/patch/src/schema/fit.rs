//! Whether an object fits its Go type.
//!
//! Helm reads rendered objects untyped and converts them to their Go type only to find the patch
//! metadata (`pkg/kube/converter.go`). When the conversion fails it goes on with the untyped
//! object, and the patch is a JSON merge patch. This is apimachinery's `runtime/converter.go`,
//! `FromUnstructured`, without the result; types with JSON code of their own are those of
//! `table.txt` that end in `!`.

use serde_json::{Number, Value};

use super::go_types::{Struct, Type, TypeRef};
use crate::value::GoType;

/// Whose rules apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rules {
    /// apimachinery's converter: exact field names, integers of any size.
    Converter,
    /// `encoding/json`, which the types of a definition's schema use below the surface.
    Json,
}

/// Whether the conversion succeeds.
pub(super) fn fits(at: TypeRef<'_>, value: &Value) -> bool {
    Fit { rules: Rules::Converter }.value(at, value)
}

struct Fit {
    rules: Rules,
}

impl Fit {
    fn value(&self, at: TypeRef<'_>, value: &Value) -> bool {
        if value.is_null() {
            return true;
        }
        match at.of {
            Type::Pointer(to) => self.value(at.at(to), value),
            Type::Scalar("interface") => true,
            Type::Scalar(kind) => self.scalar(kind, value),
            Type::Slice(items) => match value {
                Value::String(text) => **items == Type::Scalar("uint8") && is_base64(text),
                Value::Array(list) => list.iter().all(|item| self.value(at.at(items), item)),
                _ => false,
            },
            Type::Map(to) => value
                .as_object()
                .is_some_and(|object| object.values().all(|value| self.value(at.at(to), value))),
            Type::Struct(_) => match at.structure() {
                Some(found) if found.custom => custom(at, found, value),
                Some(found) => self.structure(at, found, value),
                None => false,
            },
        }
    }

    fn structure(&self, at: TypeRef<'_>, found: &Struct, value: &Value) -> bool {
        let Value::Object(object) = value else { return false };
        object.iter().all(|(key, value)| {
            let exact = found.fields.iter().find(|field| field.name == key);
            let field = match self.rules {
                Rules::Converter => exact,
                Rules::Json => {
                    exact.or_else(|| found.fields.iter().find(|field| field.folds_to(key)))
                }
            };
            field.is_none_or(|field| self.value(at.at(&field.holds), value))
        })
    }

    fn scalar(&self, kind: &str, value: &Value) -> bool {
        match (kind, value) {
            ("string", Value::String(_))
            | ("bool", Value::Bool(_))
            | ("float64", Value::Number(_)) => true,
            ("string" | "bool", _) => false,
            (kind, Value::Number(number)) => match self.rules {
                Rules::Converter => {
                    GoType::of(value) == GoType::Int64
                        || number.as_f64().is_some_and(|float| float == float.trunc())
                }
                Rules::Json => integer(number, kind),
            },
            _ => false,
        }
    }
}

/// Whether `encoding/json` reads what it wrote of a number into an integer of a kind.
fn integer(number: &Number, kind: &str) -> bool {
    let text = match number.as_i64() {
        Some(integer) => integer.to_string(),
        None => number.as_f64().unwrap_or_default().to_string(),
    };
    match kind {
        "int32" => text.parse::<i32>().is_ok(),
        "uint8" => text.parse::<u8>().is_ok(),
        "uint16" => text.parse::<u16>().is_ok(),
        "uint32" => text.parse::<u32>().is_ok(),
        "uint64" => text.parse::<u64>().is_ok(),
        _ => text.parse::<i64>().is_ok(),
    }
}

/// The types with an `UnmarshalJSON`.
fn custom(at: TypeRef<'_>, found: &Struct, value: &Value) -> bool {
    let json = Fit { rules: Rules::Json };
    let schema = |value| {
        let field = found.fields.iter().find(|field| field.name == "Schema");
        field.is_some_and(|field| json.value(at.at(&field.holds), value))
    };
    match (found.name, value) {
        ("Time", Value::String(text)) => is_time(text, None),
        ("MicroTime", Value::String(text)) => is_time(text, Some(6)),
        ("Quantity", Value::String(text)) => {
            // What stands between the quotes in JSON, escapes and all.
            let written = crate::to_json(&Value::String(text.clone()));
            is_quantity(written.trim_matches('"').trim())
        }
        ("Quantity", Value::Number(_)) => is_quantity(&crate::to_json(value)),
        ("IntOrString", Value::String(_)) => true,
        ("IntOrString", Value::Number(number)) => integer(number, "int32"),
        ("Time" | "MicroTime" | "Quantity" | "IntOrString", _) => false,
        ("JSONSchemaPropsOrBool", Value::Object(_)) => schema(value),
        ("JSONSchemaPropsOrBool", _) => value.is_boolean(),
        ("JSONSchemaPropsOrArray" | "JSONSchemaPropsOrStringArray", Value::Object(_)) => {
            schema(value)
        }
        ("JSONSchemaPropsOrArray", Value::Array(list)) => list.iter().all(schema),
        ("JSONSchemaPropsOrStringArray", Value::Array(list)) => {
            list.iter().all(|item| item.is_string() || item.is_null())
        }
        _ => true,
    }
}

/// What `encoding/json` decodes to bytes.
fn is_base64(text: &str) -> bool {
    let digits: Vec<u8> = text.bytes().filter(|byte| !matches!(byte, b'\r' | b'\n')).collect();
    let padding = digits.iter().rev().take_while(|byte| **byte == b'=').count();
    let data = digits.get(..digits.len().saturating_sub(padding)).unwrap_or_default();
    let alphabet = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    digits.len().is_multiple_of(4) && padding <= 2 && data.iter().all(alphabet)
}

/// Takes the digits at the front of a text.
fn digits<'a>(text: &mut &'a str) -> &'a str {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (found, rest) = text.split_at(end);
    *text = rest;
    found
}

/// `time.Parse` with RFC 3339, or with exactly so many digits of a second's fraction.
fn is_time(text: &str, fraction: Option<usize>) -> bool {
    parse_time(text, fraction).is_some()
}

fn parse_time(text: &str, fraction: Option<usize>) -> Option<()> {
    let mut rest = text;
    let number = |rest: &mut &str, widths: std::ops::RangeInclusive<usize>| -> Option<u32> {
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let end = end.min(*widths.end());
        let (found, left) = rest.split_at(end);
        *rest = left;
        if widths.contains(&found.len()) { found.parse().ok() } else { None }
    };
    let separator = |rest: &mut &str, wanted: char| -> Option<()> {
        *rest = rest.strip_prefix(wanted)?;
        Some(())
    };
    let year = number(&mut rest, 4..=4)?;
    separator(&mut rest, '-')?;
    let month = number(&mut rest, 2..=2)?;
    separator(&mut rest, '-')?;
    let day = number(&mut rest, 2..=2)?;
    separator(&mut rest, 'T')?;
    // Go takes an hour of one digit.
    let hour = number(&mut rest, 1..=2)?;
    separator(&mut rest, ':')?;
    let minute = number(&mut rest, 2..=2)?;
    separator(&mut rest, ':')?;
    let second = number(&mut rest, 2..=2)?;
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if !(1..=days).contains(&day) || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let point = rest.strip_prefix(['.', ',']);
    match (point, fraction) {
        (Some(after), wanted) => {
            let mut after = after;
            let found = digits(&mut after).len();
            if found == 0 || wanted.is_some_and(|wanted| wanted != found) {
                return None;
            }
            rest = after;
        }
        (None, Some(_)) => return None,
        (None, None) => {}
    }
    if rest == "Z" {
        return Some(());
    }
    let mut rest = rest.strip_prefix(['+', '-'])?;
    let hours = number(&mut rest, 2..=2)?;
    separator(&mut rest, ':')?;
    let minutes = number(&mut rest, 2..=2)?;
    (rest.is_empty() && hours <= 24 && minutes <= 60).then_some(())
}

/// Whether `ParseQuantity` takes a text, odd ones such as `Ki` included.
fn is_quantity(text: &str) -> bool {
    const DECIMAL: [&str; 10] = ["", "n", "u", "m", "k", "M", "G", "T", "P", "E"];
    const BINARY: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    if text.is_empty() {
        return false;
    }
    let mut rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    let whole = digits(&mut rest);
    let mut fraction = "";
    if let Some(after) = rest.strip_prefix('.') {
        rest = after;
        fraction = digits(&mut rest);
    }
    let suffix = rest;
    let letters = rest.trim_start_matches(|c| "eEinumkKMGTP".contains(c));
    let exponent = letters.strip_prefix(['+', '-']).unwrap_or(letters);
    if !exponent.bytes().all(|byte| byte.is_ascii_digit()) {
        return false;
    }
    let power = match suffix {
        "n" => -9,
        _ if DECIMAL.contains(&suffix) || BINARY.contains(&suffix) => 0,
        _ => match suffix.strip_prefix(['e', 'E']).and_then(|power| power.parse::<i64>().ok()) {
            Some(power) => power,
            None => return false,
        },
    };
    // Without a digit the number is zero, unless it is too small for the short way.
    let any = !whole.is_empty() || !fraction.is_empty();
    any || power >= -9
}
