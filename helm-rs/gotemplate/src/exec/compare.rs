//! Comparison (Go `text/template/funcs.go`, from `basicKind` on).

use std::borrow::Cow;
use std::rc::Rc;

use crate::fmt;
use crate::function::CallError;
use crate::value::{Complex, Int, Kind, Str, Value};

const BAD_TYPE: &str = "invalid type for comparison";

/// A value of a kind that can be compared.
enum Basic {
    Bool(bool),
    Complex(Complex),
    Float(f64),
    Int(Int),
    String(Str),
}

/// The value of a named type over a basic kind as that kind.
pub(super) fn plain(value: &Value) -> Cow<'_, Value> {
    match value {
        Value::Object(object) => object.underlying().map_or(Cow::Borrowed(value), Cow::Owned),
        _ => Cow::Borrowed(value),
    }
}

/// `basicKind`.
fn basic(value: &Value) -> Option<Basic> {
    if let Some(complex) = Complex::of(value) {
        return Some(Basic::Complex(complex));
    }
    match plain(value).as_ref() {
        Value::Bool(value) => Some(Basic::Bool(*value)),
        Value::Float(value) => Some(Basic::Float(*value)),
        Value::Int(value) => Some(Basic::Int(*value)),
        Value::String(value) => Some(Basic::String(value.clone())),
        _ => None,
    }
}

/// `eq`: whether the first equals any of the others.
pub(super) fn equal_any(first: &Value, others: &[Value]) -> Result<bool, CallError> {
    if others.is_empty() {
        return Err("missing argument for comparison".into());
    }
    for other in others {
        if equal(first, other)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// `eq` of two values.
pub(super) fn equal(first: &Value, second: &Value) -> Result<bool, CallError> {
    // The common case, without copies.
    if let (Value::String(first), Value::String(second)) = (first, second) {
        return Ok(first == second);
    }
    match (basic(first), basic(second)) {
        (Some(Basic::Bool(first)), Some(Basic::Bool(second))) => Ok(first == second),
        (Some(Basic::Complex(first)), Some(Basic::Complex(second))) => Ok(first == second),
        (Some(Basic::Float(first)), Some(Basic::Float(second))) => Ok(first == second),
        // Signed and unsigned compare by value.
        (Some(Basic::Int(first)), Some(Basic::Int(second))) => {
            Ok(first.to_i128() == second.to_i128())
        }
        (Some(Basic::String(first)), Some(Basic::String(second))) => Ok(first == second),
        (None, None) => equal_others(first, second),
        _ if is_nil(first) && matches!(first, Value::Nil)
            || is_nil(second) && matches!(second, Value::Nil) =>
        {
            Ok(false)
        }
        _ => Err(incompatible(first, second)),
    }
}

fn equal_others(first: &Value, second: &Value) -> Result<bool, CallError> {
    let (kind, other_kind) = (first.kind(), second.kind());
    if kind != other_kind && kind != Kind::Invalid && other_kind != Kind::Invalid {
        let args =
            [first.clone(), first.type_name().into(), second.type_name().into(), second.clone()];
        return Err(formatted(b"non-comparable types %s: %v, %s: %v", &args));
    }
    if is_nil(first) || is_nil(second) {
        return Ok(is_nil(first) == is_nil(second));
    }
    match (first, second) {
        (Value::Object(object), Value::Object(other))
            if matches!(other_kind, Kind::Ptr | Kind::Struct) =>
        {
            // Structs of the host are compared by identity, as pointers are.
            Ok(Rc::ptr_eq(object, other))
        }
        _ => {
            let args = [second.clone(), second.type_name().into()];
            Err(formatted(b"non-comparable type %s: %v", &args))
        }
    }
}

fn is_nil(value: &Value) -> bool {
    match value {
        Value::Nil => true,
        Value::List(list) => list.is_nil(),
        Value::Map(map) => map.is_nil(),
        Value::Object(object) => object.is_nil(),
        _ => false,
    }
}

/// `lt`.
pub(super) fn less(first: &Value, second: &Value) -> Result<bool, CallError> {
    let first_basic = basic(first).ok_or(BAD_TYPE)?;
    let second_basic = basic(second).ok_or(BAD_TYPE)?;
    match (first_basic, second_basic) {
        (Basic::Float(first), Basic::Float(second)) => Ok(first < second),
        (Basic::Int(first), Basic::Int(second)) => Ok(first.to_i128() < second.to_i128()),
        (Basic::String(first), Basic::String(second)) => Ok(first < second),
        (Basic::Bool(_), Basic::Bool(_)) | (Basic::Complex(_), Basic::Complex(_)) => {
            Err(BAD_TYPE.into())
        }
        _ => Err(incompatible(first, second)),
    }
}

/// `le`.
pub(super) fn less_or_equal(first: &Value, second: &Value) -> Result<bool, CallError> {
    Ok(less(first, second)? || equal(first, second)?)
}

fn incompatible(first: &Value, second: &Value) -> CallError {
    let (first, second) = (first.type_name(), second.type_name());
    format!("incompatible types for comparison: {first} and {second}").into()
}

fn formatted(format: &[u8], args: &[Value]) -> CallError {
    CallError::new(fmt::sprintf(format, args))
}
