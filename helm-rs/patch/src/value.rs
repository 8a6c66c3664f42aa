//! JSON values as Go holds and prints them.
//!
//! apimachinery decodes a number to `int64` where it is an integer that fits and to `float64`
//! elsewhere (`util/json`), compares with `==` and `reflect.DeepEqual`, sorts by what `%v` prints,
//! and its errors quote `%v`, `%s` and the names of Go types.

use serde_json::{Map, Number, Value};

use crate::error::Error;

/// A JSON object.
pub type Object = Map<String, Value>;

/// The dynamic type of a decoded value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GoType {
    Nil,
    Bool,
    Int64,
    Float64,
    String,
    Slice,
    Map,
}

impl GoType {
    /// What `reflect.TypeOf` gives.
    pub(crate) fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::Nil,
            Value::Bool(_) => Self::Bool,
            Value::Number(number) if number.is_i64() => Self::Int64,
            Value::Number(_) => Self::Float64,
            Value::String(_) => Self::String,
            Value::Array(_) => Self::Slice,
            Value::Object(_) => Self::Map,
        }
    }

    /// The type's name as `%s` prints it in an error.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Nil => "%!s(<nil>)",
            Self::Bool => "bool",
            Self::Int64 => "int64",
            Self::Float64 => "float64",
            Self::String => "string",
            Self::Slice => "[]interface {}",
            Self::Map => "map[string]interface {}",
        }
    }
}

fn float(number: &Number) -> f64 {
    number.as_f64().unwrap_or_default()
}

fn number_equal(left: &Number, right: &Number) -> bool {
    match (left.as_i64(), right.as_i64()) {
        (Some(left), Some(right)) => left == right,
        (None, None) => float(left) == float(right),
        _ => false,
    }
}

/// `reflect.DeepEqual`: an `int64` never equals a `float64`.
pub(crate) fn deep_equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => number_equal(left, right),
        (Value::Array(left), Value::Array(right)) => lists_equal(left, right),
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left.iter().all(|(key, value)| {
                    right.get(key).is_some_and(|other| deep_equal(value, other))
                })
        }
        _ => left == right,
    }
}

pub(crate) fn lists_equal(left: &[Value], right: &[Value]) -> bool {
    left.len() == right.len() && left.iter().zip(right).all(|(left, right)| deep_equal(left, right))
}

/// `==` of two interfaces.
///
/// # Errors
/// [`Error::GoPanics`] for two maps or two lists, which Go cannot compare.
pub(crate) fn identical(left: &Value, right: &Value) -> Result<bool, Error> {
    match (left, right) {
        (Value::Array(_), Value::Array(_)) | (Value::Object(_), Value::Object(_)) => {
            let name = GoType::of(left).name();
            Err(Error::GoPanics(format!("runtime error: comparing uncomparable type {name}")))
        }
        _ => Ok(deep_equal(left, right)),
    }
}

/// A value that can be a map's key in Go.
///
/// # Errors
/// [`Error::GoPanics`] for a map or a list.
pub(crate) fn hashable(value: &Value) -> Result<&Value, Error> {
    match GoType::of(value) {
        kind @ (GoType::Slice | GoType::Map) => {
            Err(Error::GoPanics(format!("runtime error: hash of unhashable type {}", kind.name())))
        }
        _ => Ok(value),
    }
}

/// What `fmt.Sprintf("%v", value)` prints.
pub(crate) fn text(value: &Value) -> String {
    let mut out = String::new();
    print(&mut out, value, false);
    out
}

/// What `fmt.Sprintf("%s", value)` prints.
pub(crate) fn text_as_string(value: &Value) -> String {
    match value {
        Value::Null => "%!s(<nil>)".to_owned(),
        value => {
            let mut out = String::new();
            print(&mut out, value, true);
            out
        }
    }
}

/// What `%v` prints of a map.
pub(crate) fn object_text(object: &Object) -> String {
    let mut out = String::new();
    print_object(&mut out, object, false);
    out
}

/// What `%v` prints of a list.
pub(crate) fn list_text(list: &[Value]) -> String {
    let mut out = String::new();
    print_list(&mut out, list.iter(), false);
    out
}

/// `strings` says that the verb is `%s`, which complains about other scalars.
fn print(out: &mut String, value: &Value, strings: bool) {
    match value {
        Value::Null => out.push_str("<nil>"),
        Value::String(text) => out.push_str(text),
        Value::Array(list) => print_list(out, list.iter(), strings),
        Value::Object(object) => print_object(out, object, strings),
        Value::Bool(_) | Value::Number(_) => {
            let plain = match value {
                Value::Number(number) => number_text(number),
                other => other.to_string(),
            };
            if strings {
                out.push_str(&format!("%!s({}={plain})", GoType::of(value).name()));
            } else {
                out.push_str(&plain);
            }
        }
    }
}

fn print_list<'a>(out: &mut String, list: impl Iterator<Item = &'a Value>, strings: bool) {
    out.push('[');
    for (position, value) in list.enumerate() {
        if position > 0 {
            out.push(' ');
        }
        print(out, value, strings);
    }
    out.push(']');
}

fn print_object(out: &mut String, object: &Object, strings: bool) {
    out.push_str("map[");
    for (position, (key, value)) in sorted(object).into_iter().enumerate() {
        if position > 0 {
            out.push(' ');
        }
        out.push_str(key);
        out.push(':');
        print(out, value, strings);
    }
    out.push(']');
}

/// An object's fields by name, whichever order its map keeps.
fn sorted(object: &Object) -> Vec<(&String, &Value)> {
    let mut fields: Vec<_> = object.iter().collect();
    fields.sort_unstable_by_key(|(key, _)| *key);
    fields
}

/// A number as `%v` prints it: `%d` or the shortest `%g`.
fn number_text(number: &Number) -> String {
    if let Some(integer) = number.as_i64() {
        return integer.to_string();
    }
    let value = float(number);
    let (mantissa, exponent) = scientific(value);
    // strconv's %g without a precision takes 6 for this decision.
    if !(-4..6).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs());
    }
    value.to_string()
}

/// Mantissa and decimal exponent of the shortest spelling.
pub(crate) fn scientific(value: f64) -> (String, i32) {
    let text = format!("{value:e}");
    match text.split_once('e') {
        Some((mantissa, exponent)) => (mantissa.to_owned(), exponent.parse().unwrap_or_default()),
        None => (text, 0),
    }
}

/// The deepest nesting that this crate follows. The API server takes less.
pub const MAX_DEPTH: usize = 500;

/// Refuses a document whose lists and objects nest deeper than [`MAX_DEPTH`].
///
/// # Errors
/// [`Error::TooDeep`].
pub(crate) fn check_depth(document: &Value) -> Result<(), Error> {
    fn within(value: &Value, left: usize) -> bool {
        match (value, left.checked_sub(1)) {
            (Value::Array(list), Some(left)) => list.iter().all(|item| within(item, left)),
            (Value::Object(object), Some(left)) => object.values().all(|item| within(item, left)),
            (Value::Array(_) | Value::Object(_), None) => false,
            _ => true,
        }
    }
    if within(document, MAX_DEPTH) { Ok(()) } else { Err(Error::TooDeep { limit: MAX_DEPTH }) }
}
