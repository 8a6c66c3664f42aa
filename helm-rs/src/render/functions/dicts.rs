//! Dictionaries: sprig's `dict.go` without merging and copying.

use gotemplate::function::{Rest, Strings};
use gotemplate::value::{Entries, MAP_ANY};
use gotemplate::{CallError, Function, FunctionMap, List, Map, Str, Value};

use super::text::strval;
use super::{copy, merge};

pub(super) fn register(functions: &mut FunctionMap) {
    functions.insert("dict", Function::new(dict));
    functions.insert(
        "get",
        Function::new(|map: Map, key: Str| map.get(&key).unwrap_or_else(|| "".into())),
    );
    functions.insert("set", Function::new(set));
    functions.insert(
        "unset",
        Function::new(|map: Map, key: Str| {
            map.remove(&key);
            map
        }),
    );
    functions.insert(
        "hasKey",
        Function::new(|map: Map, key: Str| map.entries().contains_key(key.as_bytes())),
    );
    functions.insert(
        "pluck",
        Function::new(|key: Str, maps: Rest<Map>| {
            List::any(maps.0.iter().filter_map(|map| map.get(&key)).collect::<Vec<_>>())
        }),
    );
    functions.insert("keys", Function::new(keys));
    functions.insert(
        "values",
        Function::new(|map: Map| List::any(map.entries().values().cloned().collect::<Vec<_>>())),
    );
    functions.insert("pick", Function::new(pick));
    functions.insert("omit", Function::new(omit));
    functions.insert("dig", Function::new(dig));

    functions.insert("merge", Function::new(merge::merge));
    functions.insert("mustMerge", Function::new(merge::must_merge));
    functions.insert("mergeOverwrite", Function::new(merge::merge_overwrite));
    functions.insert("mustMergeOverwrite", Function::new(merge::must_merge_overwrite));
    functions.insert("deepCopy", Function::new(|value: Value| copy::deep_copy(&value)));
    functions.insert("mustDeepCopy", Function::new(|value: Value| copy::deep_copy(&value)));
}

/// Keys and values in turn; a key without a value gets an empty string.
fn dict(values: Rest<Value>) -> Map {
    let pairs = values.0.chunks(2).filter_map(|pair| {
        let (key, value) = pair.split_first()?;
        Some((strval(key), value.first().cloned().unwrap_or_else(|| "".into())))
    });
    Map::any(pairs.collect())
}

/// Changes the map for everyone who holds it, and returns it.
fn set(map: Map, key: Str, value: Value) -> Result<Map, CallError> {
    if map.is_nil() {
        return Err(CallError::new("assignment to entry in nil map"));
    }
    map.set(key, value);
    Ok(map)
}

/// The keys of each map in turn, in byte order; Go's order is random.
fn keys(maps: Rest<Map>) -> Strings {
    let mut keys: Vec<Str> = Vec::new();
    for map in &maps.0 {
        keys.extend(map.entries().keys().cloned());
    }
    Strings(List::strings(keys))
}

fn pick(map: Map, keys: Rest<Str>) -> Map {
    let entries = keys.0.into_iter().filter_map(|key| {
        let value = map.get(&key)?;
        Some((key, value))
    });
    Map::any(entries.collect())
}

fn omit(map: Map, keys: Rest<Str>) -> Map {
    let mut entries: Entries = map.entries().clone();
    for key in &keys.0 {
        entries.remove(key.as_bytes());
    }
    Map::any(entries)
}

/// `dig "a" "b" default map`: follows the keys, and gives the default when one is missing.
/// What is in the way and no map ends as Go's failed type assertion.
fn dig(arguments: Rest<Value>) -> Result<Value, CallError> {
    let [keys @ .., default, map] = arguments.0.as_slice() else {
        return Err(CallError::new("dig needs at least three arguments"));
    };
    if keys.is_empty() {
        return Err(CallError::new("dig needs at least three arguments"));
    }
    let mut map = as_map(map)?;
    let keys = keys.iter().map(as_string).collect::<Result<Vec<_>, _>>()?;
    for (i, key) in keys.iter().enumerate() {
        let Some(step) = map.get(key) else { return Ok(default.clone()) };
        if i + 1 == keys.len() {
            return Ok(step);
        }
        map = as_map(&step)?;
    }
    Ok(default.clone())
}

/// Go's `value.(map[string]interface{})`: a named map type is another type.
fn as_map(value: &Value) -> Result<Map, CallError> {
    match value {
        Value::Map(map) if std::ptr::eq(map.ty(), &raw const MAP_ANY) => Ok(map.clone()),
        other => Err(failed_assertion(other, MAP_ANY.name)),
    }
}

/// Go's `value.(string)`.
fn as_string(value: &Value) -> Result<Str, CallError> {
    match value {
        Value::String(text) => Ok(text.clone()),
        other => Err(failed_assertion(other, "string")),
    }
}

/// What Go's run time says about a type assertion that does not hold.
fn failed_assertion(value: &Value, wanted: &str) -> CallError {
    let found = match value {
        Value::Nil => "nil",
        value => value.type_name(),
    };
    CallError::from(format!("interface conversion: interface {{}} is {found}, not {wanted}"))
}
