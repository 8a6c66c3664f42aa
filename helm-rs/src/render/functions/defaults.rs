//! Empty values and what to use in their place: sprig's `defaults.go` without JSON.

use gotemplate::function::Rest;
use gotemplate::{Function, FunctionMap, Kind, Value};

pub(super) fn register(functions: &mut FunctionMap) {
    functions.insert("default", Function::new(default));
    functions.insert("empty", Function::new(|value: Value| is_empty(&value)));
    functions.insert(
        "coalesce",
        Function::new(|values: Rest<Value>| {
            values.0.into_iter().find(|value| !is_empty(value)).unwrap_or_default()
        }),
    );
    functions.insert("all", Function::new(|values: Rest<Value>| !values.0.iter().any(is_empty)));
    functions.insert(
        "any",
        Function::new(|values: Rest<Value>| values.0.iter().any(|value| !is_empty(value))),
    );
    functions.insert(
        "ternary",
        Function::new(|yes: Value, no: Value, test: bool| if test { yes } else { no }),
    );
}

/// Sprig's `empty`: nil, false, zero, and whatever has length zero; structs never are.
pub(super) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Object(object) => match object.kind() {
            Kind::Struct | Kind::Ptr => false,
            _ => object.underlying().is_some_and(|value| is_empty(&value)),
        },
        value => !value.is_true(),
    }
}

/// Sprig's `dfault`: the given value unless there is none or it is empty.
fn default(default: Value, given: Rest<Value>) -> Value {
    match given.0.into_iter().next() {
        Some(given) if !is_empty(&given) => given,
        _ => default,
    }
}
