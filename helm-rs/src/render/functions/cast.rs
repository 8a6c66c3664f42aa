//! Conversions to numbers as github.com/spf13/cast v1.7.0 (`caste.go`) does them for sprig.

use gotemplate::strconv::{parse_float, parse_int};
use gotemplate::{IntKind, Object, Value};

/// Go's conversion of a `float64` to a 64-bit integer on amd64: what does not fit, NaN
/// included, is the smallest integer.
pub(super) fn float_to_int(value: f64) -> i64 {
    // 2^63 is exact in a float.
    if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&value) {
        value as i64
    } else {
        i64::MIN
    }
}

/// `cast.ToInt` and, with the same result on a 64-bit machine, `cast.ToInt64`.
pub(super) fn to_int(value: &Value) -> i64 {
    match value {
        Value::Bool(value) => i64::from(*value),
        // The library does not know `uintptr`.
        Value::Int(int) if int.kind == IntKind::Uintptr => 0,
        Value::Int(int) => int.bits,
        Value::Float(value) => float_to_int(*value),
        Value::String(text) => parse_int(trim_zero_decimal(text.as_bytes()), 0).unwrap_or(0),
        Value::Object(object) => calendar_number(&**object),
        _ => 0,
    }
}

/// The two named integer types that the library knows; other named types are 0 to it.
fn calendar_number(object: &dyn Object) -> i64 {
    match (object.type_name(), object.underlying()) {
        ("time.Month" | "time.Weekday", Some(Value::Int(int))) => int.bits,
        _ => 0,
    }
}

/// `cast.ToFloat64`.
pub(super) fn to_float(value: &Value) -> f64 {
    match value {
        Value::Bool(value) => f64::from(u8::from(*value)),
        Value::Int(int) if int.kind == IntKind::Uintptr => 0.0,
        Value::Int(int) => int.to_i128() as f64,
        Value::Float(value) => *value,
        Value::String(text) => parse_float(text.as_bytes()).unwrap_or(0.0),
        Value::Object(object) => calendar_number(&**object) as f64,
        _ => 0.0,
    }
}

/// `trimZeroDecimal`: drops a fraction that consists of zeros only, as in `8080.00`.
fn trim_zero_decimal(text: &[u8]) -> &[u8] {
    let mut zero = false;
    for (at, byte) in text.iter().enumerate().rev() {
        match byte {
            b'.' if zero => return text.get(..at).unwrap_or(text),
            b'.' => {}
            b'0' => zero = true,
            _ => break,
        }
    }
    text
}
