//! Lists whose order a patch gives (`$setElementOrder`).

use serde_json::Value;

use crate::error::Error;
use crate::schema::{Schema, Strategy};
use crate::value::{GoType, Object, deep_equal, hashable, identical, list_text};

use super::super::list::{Item, element_type, identities, identity, is_deletion, merge_ordered};
use super::super::{DIRECTIVE, SET_ELEMENT_ORDER};
use super::{Side, extract_key, lists::lists, remove_directives};

/// Merges every list that comes with a `$setElementOrder` directive, and takes directive and list
/// out of the patch (`mergePatchIntoOriginal`).
pub(super) fn ordered_lists(
    original: &mut Object,
    patch: &mut Object,
    schema: Schema<'_>,
    side: Side,
) -> Result<(), Error> {
    let directives: Vec<String> =
        patch.keys().filter(|key| key.starts_with(SET_ELEMENT_ORDER)).cloned().collect();
    for directive in directives {
        let Some(order) = patch.remove(&directive) else { continue };
        if side == Side::Client {
            match original.get(&directive) {
                Some(known) if !deep_equal(known, &order) => {
                    return Err(Error::SetElementOrderFormat);
                }
                Some(_) => {}
                None => {
                    original.insert(directive.clone(), order.clone());
                }
            }
        }
        let Value::Array(order) = order else { return Err(Error::bad_type(GoType::Slice, &order)) };
        let key = extract_key(&directive, SET_ELEMENT_ORDER)
            .ok_or(Error::SetElementOrderFormat)?
            .to_owned();
        let (old, new) = (take_list(original, &key)?, take_list(patch, &key)?);
        if let Some(merged) = ordered_list(&key, &order, old, new, schema, side)? {
            original.insert(key, Value::Array(merged));
        }
    }
    Ok(())
}

/// Takes a field that must be a list, if it is there at all.
fn take_list(from: &mut Object, key: &str) -> Result<Option<Vec<Value>>, Error> {
    match from.remove(key) {
        Some(Value::Array(list)) => Ok(Some(list)),
        Some(other) => Err(Error::bad_type(GoType::Slice, &other)),
        None => Ok(None),
    }
}

/// One list of [`ordered_lists`], or none when neither side has it.
fn ordered_list(
    key: &str,
    order: &[Value],
    old: Option<Vec<Value>>,
    new: Option<Vec<Value>>,
    schema: Schema<'_>,
    side: Side,
) -> Result<Option<Vec<Value>>, Error> {
    let (below, meta) = schema.list(key)?;
    let (_, strategy) = meta.split()?;
    let merge_key = meta.merge_key;
    let (before, change) = (old.as_deref().unwrap_or_default(), new.as_deref().unwrap_or_default());
    validate_order(change, order, merge_key)?;
    // Looked at now, since the lists are about to move; Go complains about them later.
    let kind = element_type(&[before, change]);
    let live = kind.clone().and_then(|kind| identities(before, merge_key, kind));
    let (merged, live) = match (old, new) {
        (None, None) => return Ok(None),
        (Some(old), None) => (old, live),
        (None, Some(new)) => (new.into_iter().filter_map(remove_directives).collect(), live),
        (Some(old), Some(new)) if strategy == Strategy::Merge => {
            let merged = lists(old, new, below, merge_key, side, false)?;
            (merged.items, Ok(merged.live))
        }
        (Some(_), Some(new)) => (new, live),
    };
    let (named, rest) = partition(merged, order, merge_key)?;
    let kind = kind?;
    let patch_order = identities(order, merge_key, kind)?;
    let named = with_identity(named, merge_key, kind)?;
    let rest = with_identity(rest, merge_key, kind)?;
    merge_ordered(named, rest, &patch_order, &live?, kind).map(Some)
}

pub(super) fn with_identity(
    list: Vec<Value>,
    merge_key: &str,
    kind: GoType,
) -> Result<Vec<Item>, Error> {
    list.into_iter()
        .map(|value| {
            let identity = identity(&value, merge_key, kind)?.clone();
            Ok(Item { identity, value })
        })
        .collect()
}

/// Splits a list into what an order names and the rest (`partitionMapsByPresentInList`,
/// `partitionPrimitivesByPresentInList`).
pub(super) fn partition(
    list: Vec<Value>,
    by: &[Value],
    merge_key: &str,
) -> Result<(Vec<Value>, Vec<Value>), Error> {
    let (mut named, mut rest) = (Vec::new(), Vec::new());
    if merge_key.is_empty() {
        for value in by {
            hashable(value)?;
        }
    }
    for value in list {
        let found = if merge_key.is_empty() {
            let value = hashable(&value)?;
            by.iter().any(|other| deep_equal(other, value))
        } else {
            contains(by, merge_key, identity(&value, merge_key, GoType::Map)?)?
        };
        if found { named.push(value) } else { rest.push(value) }
    }
    Ok((named, rest))
}

/// Whether a list has an item with a key's value (`findMapInSliceBasedOnKeyValue`).
fn contains(list: &[Value], merge_key: &str, value: &Value) -> Result<bool, Error> {
    for (position, item) in list.iter().enumerate() {
        let Value::Object(object) = item else { return Err(Error::ItemNotMap { position }) };
        if let Some(other) = object.get(merge_key)
            && identical(other, value)?
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether two items of a list are the same one (`mergeKeyValueEqual`).
pub(in super::super) fn same_item(
    left: &Value,
    right: &Value,
    merge_key: &str,
) -> Result<bool, Error> {
    if merge_key.is_empty() {
        return identical(left, right);
    }
    let Value::Object(left) = left else { return Err(Error::bad_type(GoType::Map, left)) };
    let Value::Object(right) = right else { return Err(Error::bad_type(GoType::Map, right)) };
    let key = |object: &'_ Object| -> Result<Value, Error> {
        object.get(merge_key).cloned().ok_or_else(|| Error::no_merge_key(object, merge_key))
    };
    identical(&key(left)?, &key(right)?)
}

/// Checks that a patch's list stands in the order of its directive, which names all of it
/// (`validatePatchWithSetOrderList`).
fn validate_order(list: &[Value], order: &[Value], merge_key: &str) -> Result<(), Error> {
    if list.is_empty() || order.is_empty() {
        return Ok(());
    }
    let mut kept = Vec::with_capacity(list.len());
    for item in list {
        if !merge_key.is_empty() {
            if !item.is_object() {
                return Err(Error::bad_type(GoType::Map, item));
            }
            if is_deletion(item) {
                continue;
            }
        }
        kept.push(item);
    }
    let mut kept = kept.into_iter().peekable();
    let mut rest = order.iter().peekable();
    while let (Some(item), Some(named)) = (kept.peek(), rest.peek()) {
        if item.get(DIRECTIVE).is_some() || same_item(item, named, merge_key)? {
            let directive = item.get(DIRECTIVE).is_some();
            kept.next();
            if directive {
                continue;
            }
        }
        rest.next();
    }
    if kept.peek().is_some() {
        return Err(Error::OrderMismatch { list: list_text(list), order: list_text(order) });
    }
    Ok(())
}
