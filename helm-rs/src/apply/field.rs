//! Fields of an object by JSON pointer, absent ones as Go's zero value.

use serde_json::Value;

/// A text; empty when it is missing or something else.
pub(crate) fn text<'a>(object: &'a Value, path: &str) -> &'a str {
    object.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

/// An integer; 0 when it is missing or something else.
pub(crate) fn integer(object: &Value, path: &str) -> i64 {
    object.pointer(path).and_then(Value::as_i64).unwrap_or_default()
}

/// A boolean; false when it is missing or something else.
pub(crate) fn truth(object: &Value, path: &str) -> bool {
    object.pointer(path).and_then(Value::as_bool).unwrap_or_default()
}

/// A list; empty when it is missing or something else.
pub(crate) fn list<'a>(object: &'a Value, path: &str) -> &'a [Value] {
    object.pointer(path).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}
