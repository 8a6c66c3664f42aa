//! Types and kinds: sprig's `reflect.go`.

use gotemplate::{Function, FunctionMap, Str, Value};

use super::compare::deep_equal;

pub(super) fn register(functions: &mut FunctionMap) {
    functions.insert("typeOf", Function::new(|value: Value| value.type_name().to_owned()));
    functions.insert("kindOf", Function::new(|value: Value| value.kind().name()));
    functions
        .insert("typeIs", Function::new(|target: Str, value: Value| target == *value.type_name()));
    functions.insert("typeIsLike", Function::new(type_is_like));
    functions.insert(
        "kindIs",
        Function::new(|target: Str, value: Value| target == *value.kind().name()),
    );
    functions
        .insert("deepEqual", Function::new(|left: Value, right: Value| deep_equal(&left, &right)));
}

/// As `typeIs`, but a pointer to the type counts too.
fn type_is_like(target: Str, value: Value) -> bool {
    let name = value.type_name();
    target == *name || name.strip_prefix('*').is_some_and(|name| target == *name)
}
