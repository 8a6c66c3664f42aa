//! The steps behind go-yaml: to JSON with string keys (`convertToJSONableObject` of
//! `sigs.k8s.io/yaml`) and from JSON to Go values.

use std::borrow::Cow;

use bstr::BString;

use super::decode::Decoded;
use super::tape::{self, Item};
use crate::scalar::number;
use crate::{Conversion, Error, LimitError, Limits, Map, Value, json};

/// What becomes of integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Numbers {
    /// Every number is a float, as `encoding/json` has it.
    Float,
    /// Integers stay.
    Exact,
}

/// A collection that is being built.
enum Building {
    Seq { end: usize, items: Vec<Value> },
    Map { end: usize, entries: Vec<(BString, Value)>, key: Option<BString> },
}

impl Building {
    fn finish(self) -> Value {
        match self {
            Self::Seq { items, .. } => Value::Seq(items),
            // Of equal keys the last one stays.
            Self::Map { entries, .. } => Value::Map(entries.into_iter().collect::<Map>()),
        }
    }
}

/// Turns the tape into a value.
pub(super) fn convert(
    decoded: Decoded<'_>,
    numbers: Numbers,
    limits: &Limits,
) -> Result<Value, Error> {
    let Decoded { tape, too_deep } = decoded;
    // Keys that JSON cannot express are rare: look for their types before following the tree.
    if too_deep || tape.iter().any(|item| matches!(item, Item::Null | Item::Uint(_))) {
        check(&tape, too_deep, limits)?;
    }
    let (value, finite) = build(tape, numbers);
    if !finite && let Some(bad) = first_unsupported(&value) {
        return Err(unsupported(bad));
    }
    Ok(value)
}

fn unsupported(value: f64) -> Error {
    let text = number::format_g64(value);
    Error::Converting(Conversion::Json(json::Error::UnsupportedValue { text }))
}

/// Refuses keys that have no string form (null, and integers above `i64`) and trees that are too
/// deep. What a later value of the same key replaces does not count for Go.
fn check(tape: &[Item<'_>], too_deep: bool, limits: &Limits) -> Result<(), Error> {
    // Keys, values and their depths, in the order in which Go's maps most often have them.
    let mut open: Vec<(Option<usize>, usize, usize)> = vec![(None, 0, 1)];
    let mut bracket = None;
    let mut number = None;
    while let Some((key, at, depth)) = open.pop() {
        if let Some(key) = key {
            check_key(tape, key, at)?;
        }
        let (is_map, end) = match tape.get(at) {
            Some(Item::Seq { end }) => (false, *end),
            Some(Item::Map { end }) => (true, *end),
            Some(Item::Float(value)) if !value.is_finite() => {
                number.get_or_insert(*value);
                continue;
            }
            _ => continue,
        };
        if depth > json::MAX_DEPTH {
            bracket.get_or_insert(if is_map { '{' } else { '[' });
        }
        let from = open.len();
        if is_map {
            for (key, value) in tape::live_entries(tape, at + 1, end) {
                open.push((Some(key), value, depth + 1));
            }
        } else {
            let mut item = at + 1;
            while item < end {
                open.push((None, item, depth + 1));
                item = tape::next(tape, item);
            }
        }
        if let Some(items) = open.get_mut(from..) {
            items.reverse();
        }
    }
    if let Some(bracket) = bracket {
        if let Some(number) = number {
            return Err(unsupported(number));
        }
        return Err(Error::Unmarshaling(json::Error::Syntax {
            message: format!("invalid character '{bracket}' exceeded max depth"),
            offset: 0,
        }));
    }
    if too_deep {
        return Err(Error::Limit(LimitError::Depth { limit: limits.max_depth }));
    }
    Ok(())
}

fn check_key(tape: &[Item<'_>], key: usize, value: usize) -> Result<(), Error> {
    match tape.get(key) {
        Some(item @ (Item::Null | Item::Uint(_))) => Err(Error::Converting(Conversion::MapKey {
            go_type: item.type_name().to_owned(),
            key: tape::go_syntax(tape, key),
            value: tape::go_syntax(tape, value),
        })),
        _ => Ok(()),
    }
}

/// Builds the value and says whether all its floats are finite.
fn build(tape: Vec<Item<'_>>, numbers: Numbers) -> (Value, bool) {
    let mut open: Vec<Building> = Vec::new();
    let mut root = Value::Null;
    let mut finite = true;
    for (at, item) in tape.into_iter().enumerate() {
        if let Some(Building::Map { key: key @ None, .. }) = open.last_mut() {
            *key = Some(key_text(item));
            continue;
        }
        let mut complete = match item {
            Item::Null => Some(Value::Null),
            Item::Bool(value) => Some(Value::Bool(value)),
            Item::Int(value) if numbers == Numbers::Exact => Some(Value::Int(value)),
            Item::Uint(value) if numbers == Numbers::Exact => Some(Value::Uint(value)),
            Item::Int(value) => Some(Value::Float(value as f64)),
            Item::Uint(value) => Some(Value::Float(value as f64)),
            Item::Float(value) => {
                finite &= value.is_finite();
                Some(Value::Float(value))
            }
            Item::Str(text) => Some(Value::String(utf8(text))),
            Item::Seq { end } => {
                open.push(Building::Seq { end, items: Vec::new() });
                None
            }
            Item::Map { end } => {
                open.push(Building::Map { end, entries: Vec::new(), key: None });
                None
            }
        };
        // A value may complete the collection around it, and that one the next.
        loop {
            if let Some(value) = complete.take() {
                match open.last_mut() {
                    None => root = value,
                    Some(Building::Seq { items, .. }) => items.push(value),
                    Some(Building::Map { entries, key, .. }) => {
                        entries.push((key.take().unwrap_or_default(), value));
                    }
                }
            }
            match open.last() {
                Some(Building::Seq { end, .. } | Building::Map { end, .. }) if *end <= at + 1 => {
                    complete = open.pop().map(Building::finish);
                }
                _ => break,
            }
        }
    }
    (root, finite)
}

/// A key as `convertToJSONableObject` writes it.
fn key_text(item: Item<'_>) -> BString {
    match item {
        Item::Str(text) => utf8(text),
        Item::Int(value) => value.to_string().into(),
        Item::Bool(value) => if value { "true" } else { "false" }.into(),
        Item::Float(value) => match number::format_g32(value).as_str() {
            "+Inf" => ".inf".into(),
            "-Inf" => "-.inf".into(),
            "NaN" => ".nan".into(),
            text => text.into(),
        },
        Item::Null | Item::Uint(_) | Item::Seq { .. } | Item::Map { .. } => BString::default(),
    }
}

/// The text with each byte that is no UTF-8 replaced, which only binary data has.
fn utf8(text: Cow<'_, [u8]>) -> BString {
    if std::str::from_utf8(&text).is_ok() {
        return text.into_owned().into();
    }
    json::replace_invalid(&text).into()
}

/// The first number that JSON does not have, in the order in which JSON is written.
fn first_unsupported(value: &Value) -> Option<f64> {
    let mut rest = vec![value];
    while let Some(value) = rest.pop() {
        match value {
            Value::Float(number) if !number.is_finite() => return Some(*number),
            Value::Seq(items) => rest.extend(items.iter().rev()),
            Value::Map(map) => rest.extend(map.iter().rev().map(|(_, value)| value)),
            _ => {}
        }
    }
    None
}
