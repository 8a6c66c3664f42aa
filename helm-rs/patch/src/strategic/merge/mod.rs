//! Applying patches: to an object, or to another patch.
//!
//! ```text
//! maps ─ field ─┬─► lists (appended, or merged by key) ─► memory (what Go's slices do meanwhile)
//!      └ ordered_lists (`$setElementOrder`) ─┘
//! ```

mod lists;
mod memory;
mod order;

use serde_json::Value;

use crate::error::Error;
use crate::schema::{Schema, Strategy};
use crate::value::{GoType, Object, deep_equal, hashable, text};

use super::{DELETE_FROM_PRIMITIVE_LIST, DIRECTIVE, RETAIN_KEYS, SET_ELEMENT_ORDER};

pub(super) use lists::without_duplicates;
pub(super) use order::same_item;

use lists::lists;
use order::ordered_lists;

/// Who merges (`MergeOptions`, whose two switches always agree).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// The client puts two patches together: nulls and parallel lists stay in the result.
    Client,
    /// The server applies a patch to an object: nulls delete, parallel lists take effect.
    Server,
}

/// Merges a patch into an object (`mergeMap`).
pub(super) fn maps(
    mut original: Object,
    mut patch: Object,
    schema: Schema<'_>,
    side: Side,
) -> Result<Object, Error> {
    if let Some(directive) = patch.get(DIRECTIVE) {
        return match directive.as_str() {
            Some("replace") => {
                patch.remove(DIRECTIVE);
                Ok(patch)
            }
            Some("delete") => Ok(Object::new()),
            _ => Err(Error::unknown_directive(directive, &patch)),
        };
    }
    retain_keys(&mut original, &mut patch, side)?;
    ordered_lists(&mut original, &mut patch, schema, side)?;
    for (key, value) in patch {
        field(&mut original, key, value, schema, side)?;
    }
    Ok(original)
}

/// Merges one field of a patch: the body of `mergeMap`'s loop.
fn field(
    original: &mut Object,
    mut key: String,
    mut value: Value,
    schema: Schema<'_>,
    side: Side,
) -> Result<(), Error> {
    let deletes = key.starts_with(DELETE_FROM_PRIMITIVE_LIST);
    if deletes {
        if side == Side::Client {
            original.insert(key, value);
            return Ok(());
        }
        let list = extract_key(&key, DELETE_FROM_PRIMITIVE_LIST)
            .ok_or(Error::PrimitiveListFormat)?
            .to_owned();
        // Of a directive for a field without a name, the whole directive is the field.
        key = if list.is_empty() { key } else { list };
    }
    if value.is_null() {
        original.remove(&key);
        if side == Side::Server {
            return Ok(());
        }
    }
    let Some(old) = original.get_mut(&key).filter(|old| GoType::of(old) == GoType::of(&value))
    else {
        // Absent, or of another type: the patch's value it is.
        if !deletes {
            if side == Side::Server {
                discard_nulls(&mut value);
            }
            set(original, key, remove_directives(value));
        }
        return Ok(());
    };
    match (std::mem::take(old), value) {
        (Value::Object(old), Value::Object(value)) => {
            let (below, meta) = schema.object(&key)?;
            let (_, strategy) = meta.split()?;
            let merged = match strategy {
                Strategy::Replace => value,
                _ => maps(old, value, below, side)?,
            };
            original.insert(key, Value::Object(merged));
        }
        (Value::Array(old), Value::Array(value)) => {
            let (below, meta) = schema.list(&key)?;
            let (_, strategy) = meta.split()?;
            let merged = if strategy == Strategy::Merge || deletes {
                lists(old, value, below, meta.merge_key, side, deletes)?.items
            } else {
                value
            };
            original.insert(key, Value::Array(merged));
        }
        (_, value) => {
            original.insert(key, value);
        }
    }
    Ok(())
}

fn set(original: &mut Object, key: String, value: Option<Value>) {
    match value {
        Some(value) => {
            original.insert(key, value);
        }
        None => {
            original.remove(&key);
        }
    }
}

/// Cuts the directive off a parallel list's key.
fn extract_key<'a>(key: &'a str, directive: &str) -> Option<&'a str> {
    key.strip_prefix(directive)?.strip_prefix('/')
}

/// Takes the `$retainKeys` directive out of the patch and does what it says
/// (`applyRetainKeysDirective`).
fn retain_keys(original: &mut Object, patch: &mut Object, side: Side) -> Result<(), Error> {
    let Some(retained) = patch.remove(RETAIN_KEYS) else { return Ok(()) };
    if side == Side::Client {
        return match original.get(RETAIN_KEYS) {
            Some(known) if !deep_equal(known, &retained) => {
                Err(Error::RetainKeysDiffer { original: text(known), patch: text(&retained) })
            }
            Some(_) => Ok(()),
            None => {
                original.insert(RETAIN_KEYS.to_owned(), retained);
                Ok(())
            }
        };
    }
    let Value::Array(retained) = retained else { return Err(Error::RetainKeysFormat) };
    for value in &retained {
        hashable(value)?;
    }
    let is_retained = |key: &str| retained.iter().any(|value| value == key);
    for (key, value) in patch.iter() {
        let parallel = key.starts_with(DELETE_FROM_PRIMITIVE_LIST)
            || key.starts_with(SET_ELEMENT_ORDER)
            || value.is_null();
        if !parallel && !is_retained(key) {
            return Err(Error::RetainKeysFormat);
        }
    }
    original.retain(|key, _| is_retained(key));
    Ok(())
}

/// Drops every null field at any depth (`discardNullValuesFromPatch`).
fn discard_nulls(value: &mut Value) {
    match value {
        Value::Object(object) => {
            object.retain(|_, value| !value.is_null());
            object.values_mut().for_each(discard_nulls);
        }
        Value::Array(list) => list.iter_mut().for_each(discard_nulls),
        _ => {}
    }
}

/// A value without the objects that hold a directive; none when it is one itself
/// (`removeDirectives`).
fn remove_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(object) if object.contains_key(DIRECTIVE) => None,
        Value::Object(object) => Some(Value::Object(
            object
                .into_iter()
                .filter_map(|(key, value)| Some((key, remove_directives(value)?)))
                .collect(),
        )),
        Value::Array(list) => {
            Some(Value::Array(list.into_iter().filter_map(remove_directives).collect()))
        }
        other => Some(other),
    }
}
