//! JSON merge patches (RFC 7386) as `github.com/evanphx/json-patch` version 4 and
//! `k8s.io/apimachinery/pkg/util/jsonmergepatch` make and apply them.
//!
//! json-patch is no plain RFC 7386: it decodes every number to a float when it compares, and drops
//! nulls inside the lists that a patch sets. The server uses it too.

use serde_json::{Number, Value};

use crate::error::Error;
use crate::value::{Object, check_depth, object_text};

/// The patch that makes `modified` of `original` (json-patch's `CreateMergePatch`), which Helm
/// sends on an upgrade for kinds that it does not know. Two lists of objects give a list of
/// patches.
///
/// # Errors
/// [`Error::BadMergeDocument`], [`Error::MismatchedDocuments`].
pub fn two_way(original: &Value, modified: &Value) -> Result<Value, Error> {
    check_depth(original)?;
    check_depth(modified)?;
    match (original, modified) {
        (Value::Array(original), Value::Array(modified)) if original.len() == modified.len() => {
            original
                .iter()
                .zip(modified)
                .map(|(original, modified)| difference(original, modified))
                .collect()
        }
        (Value::Array(_), Value::Array(_)) => Err(Error::BadMergeDocument),
        (Value::Array(_), _) | (_, Value::Array(_)) => Err(Error::MismatchedDocuments),
        _ => difference(original, modified),
    }
}

/// `createObjectMergePatch`.
fn difference(original: &Value, modified: &Value) -> Result<Value, Error> {
    let empty = Object::new();
    let (original, modified) = (fields(original, &empty)?, fields(modified, &empty)?);
    Ok(Value::Object(diff(original, modified)))
}

/// A document's fields; null has none, as in Go.
fn fields<'a>(document: &'a Value, none: &'a Object) -> Result<&'a Object, Error> {
    match document {
        Value::Object(object) => Ok(object),
        Value::Null => Ok(none),
        _ => Err(Error::BadMergeDocument),
    }
}

/// `getDiff`.
fn diff(original: &Object, modified: &Object) -> Object {
    let mut patch = Object::new();
    for (key, new) in modified {
        match (original.get(key), new) {
            (Some(Value::Object(old)), Value::Object(new)) => {
                let below = diff(old, new);
                if !below.is_empty() {
                    patch.insert(key.clone(), Value::Object(below));
                }
            }
            (Some(old), new) if matches(old, new) => {}
            _ => {
                patch.insert(key.clone(), as_floats(new));
            }
        }
    }
    for key in original.keys().filter(|key| !modified.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    patch
}

/// `matchesValue`, for numbers that are all floats.
fn matches(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left.as_f64() == right.as_f64(),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(l, r)| matches(l, r))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .all(|(key, value)| right.get(key).is_some_and(|other| matches(value, other)))
        }
        _ => left == right,
    }
}

/// A value after a way through Go's float64: integers beyond 2^53 are rounded.
fn as_floats(value: &Value) -> Value {
    match value {
        Value::Number(number) => Value::Number(as_float(number)),
        Value::Array(list) => list.iter().map(as_floats).collect(),
        Value::Object(object) => {
            object.iter().map(|(key, value)| (key.clone(), as_floats(value))).collect()
        }
        other => other.clone(),
    }
}

/// The number that reads what Go prints of the float: an integer where it prints one. Beyond 2^53
/// the shortest spelling ends in zeros that the float's value does not have.
fn as_float(number: &Number) -> Number {
    let float = number.as_f64().unwrap_or_default();
    match float.to_string().parse::<i64>() {
        Ok(integer) if integer != 0 || float.is_sign_positive() => Number::from(integer),
        _ => Number::from_f64(float).unwrap_or_else(|| number.clone()),
    }
}

/// What must not change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precondition<'a> {
    /// A field of the object (`RequireKeyUnchanged`).
    Key(&'a str),
    /// A field of its `metadata` (`RequireMetadataKeyUnchanged`).
    MetadataKey(&'a str),
}

impl Precondition<'_> {
    /// Whether the patch leaves it alone.
    fn holds(self, patch: &Object) -> bool {
        match self {
            Self::Key(key) => !patch.contains_key(key),
            Self::MetadataKey(key) => {
                !matches!(patch.get("metadata"), Some(Value::Object(m)) if m.contains_key(key))
            }
        }
    }
}

/// The three-way patch (`CreateThreeWayJSONMergePatch`): what `modified` has otherwise than
/// `current`, and nulls for what `original` had and `modified` has not. Lists are replaced whole.
///
/// Upstream also looks for conflicts between the two halves. There are none: the first half holds
/// only fields of `modified`, the second only fields that `modified` has not.
///
/// # Errors
/// [`Error::Precondition`], or as [`two_way`].
pub fn three_way(
    original: &Value,
    modified: &Value,
    current: &Value,
    preconditions: &[Precondition<'_>],
) -> Result<Value, Error> {
    let changes = object(two_way(current, modified)?)?;
    let deletions = object(two_way(original, modified)?)?;
    let mut patch = only_nulls(&deletions);
    merge_objects(&mut patch, without_nulls(&changes));
    if preconditions.iter().all(|precondition| precondition.holds(&patch)) {
        Ok(Value::Object(patch))
    } else {
        Err(Error::Precondition { patch: object_text(&patch) })
    }
}

fn object(document: Value) -> Result<Object, Error> {
    match document {
        Value::Object(object) => Ok(object),
        _ => Err(Error::BadMergeDocument),
    }
}

/// A patch's additions and changes (`keepOrDeleteNullInObj`).
fn without_nulls(patch: &Object) -> Object {
    let mut kept = Object::new();
    for (key, value) in patch {
        match value {
            Value::Null => {}
            // An empty object is a value and no empty patch.
            Value::Object(below) if !below.is_empty() => {
                let below = without_nulls(below);
                if !below.is_empty() {
                    kept.insert(key.clone(), Value::Object(below));
                }
            }
            value => {
                kept.insert(key.clone(), value.clone());
            }
        }
    }
    kept
}

/// A patch's deletions (`keepOrDeleteNullInObj`).
fn only_nulls(patch: &Object) -> Object {
    let mut kept = Object::new();
    for (key, value) in patch {
        match value {
            Value::Null => {
                kept.insert(key.clone(), Value::Null);
            }
            Value::Object(below) => {
                let below = only_nulls(below);
                if !below.is_empty() {
                    kept.insert(key.clone(), Value::Object(below));
                }
            }
            _ => {}
        }
    }
    kept
}

/// Applies a patch as the API server does (json-patch's `MergePatch`).
///
/// # Errors
/// [`Error::BadMergeDocument`] for a null document, [`Error::BadMergePatch`] for a patch that is
/// neither an object nor a list.
pub fn apply(current: &Value, patch: &Value) -> Result<Value, Error> {
    check_depth(current)?;
    check_depth(patch)?;
    match (current, patch) {
        (Value::Null, _) => Err(Error::BadMergeDocument),
        (Value::Object(current), Value::Object(patch)) => {
            let mut merged = current.clone();
            merge_objects(&mut merged, patch.clone());
            Ok(Value::Object(merged))
        }
        (_, Value::Object(_) | Value::Array(_)) => {
            let mut patch = patch.clone();
            prune_nulls(&mut patch);
            Ok(patch)
        }
        _ => Err(Error::BadMergePatch),
    }
}

/// `mergeDocs`.
fn merge_objects(document: &mut Object, patch: Object) {
    for (key, mut value) in patch {
        if value.is_null() {
            document.remove(&key);
            continue;
        }
        match (document.get_mut(&key), &mut value) {
            (Some(Value::Object(old)), Value::Object(new)) => {
                merge_objects(old, std::mem::take(new));
                continue;
            }
            // Instead of an object, whatever comes stays as it is.
            (Some(Value::Object(_)), _) => {}
            _ => prune_nulls(&mut value),
        }
        document.insert(key, value);
    }
}

/// Drops null fields at any depth, in lists too (`pruneNulls`); null items of lists stay.
fn prune_nulls(value: &mut Value) {
    match value {
        Value::Object(object) => {
            object.retain(|_, value| !value.is_null());
            object.values_mut().for_each(prune_nulls);
        }
        Value::Array(list) => list.iter_mut().for_each(prune_nulls),
        _ => {}
    }
}
