//! Merging one list into another (`mergeSlice`).

use serde_json::Value;

use crate::error::Error;
use crate::schema::Schema;
use crate::value::{GoType, deep_equal};

use super::super::DIRECTIVE;
use super::super::list::{element_type, identities, identity, merge_ordered, names};
use super::Side;
use super::memory::Shared;
use super::order::{partition, with_identity};

/// A merged list.
pub(super) struct Merged {
    pub(super) items: Vec<Value>,
    /// What the list that was merged into looks like afterwards, by the identities of its items:
    /// Go deletes from and appends to the same memory, and later sorts by what is found there.
    pub(super) live: Vec<Value>,
}

/// `mergeSlice`.
pub(super) fn lists(
    original: Vec<Value>,
    patch: Vec<Value>,
    schema: Schema<'_>,
    merge_key: &str,
    side: Side,
    deletes: bool,
) -> Result<Merged, Error> {
    if original.is_empty() && patch.is_empty() {
        return Ok(Merged { items: original, live: Vec::new() });
    }
    let kind = element_type(&[&original, &patch])?;
    if kind == GoType::Map {
        return keyed_lists(original, patch, schema, merge_key, side);
    }
    if side == Side::Server && deletes {
        let items = original
            .into_iter()
            .filter(|value| !patch.iter().any(|deleted| deep_equal(deleted, value)))
            .collect();
        return Ok(Merged { items, live: Vec::new() });
    }
    // With nothing to append, Go drops duplicates in the live list's own memory.
    let mut memory: Vec<Value> = original.iter().chain(&patch).cloned().collect();
    let count = drop_duplicates(&mut memory);
    let both = memory.iter().take(count).cloned().collect();
    let live = if patch.is_empty() { memory } else { original };
    let (named, rest) = partition(both, &patch, merge_key)?;
    let (named, rest) =
        (with_identity(named, merge_key, kind)?, with_identity(rest, merge_key, kind)?);
    let items = merge_ordered(named, rest, &patch, &live, kind)?;
    Ok(Merged { items, live })
}

/// A list without later equals (`deduplicateScalars`).
pub(in super::super) fn without_duplicates(mut list: Vec<Value>) -> Vec<Value> {
    let count = drop_duplicates(&mut list);
    list.truncate(count);
    list
}

/// Drops later equals, each time moving the last one into its place. Returns how many are left;
/// what comes after them is the end as it was.
fn drop_duplicates(list: &mut [Value]) -> usize {
    let mut count = list.len();
    let mut i = 0;
    while i < count {
        let mut j = i + 1;
        while j < count {
            match (list.get(i), list.get(j), list.get(count - 1)) {
                (Some(left), Some(right), Some(last)) if deep_equal(left, right) => {
                    let last = last.clone();
                    if let Some(place) = list.get_mut(j) {
                        *place = last;
                    }
                    count -= 1;
                }
                _ => j += 1,
            }
        }
        i += 1;
    }
    count
}

fn keyed_lists(
    original: Vec<Value>,
    patch: Vec<Value>,
    schema: Schema<'_>,
    merge_key: &str,
    side: Side,
) -> Result<Merged, Error> {
    if merge_key.is_empty() {
        return Err(Error::NoDeclaredKey { schema: schema.name() });
    }
    let mut list = Shared::new(original);
    let patch = special_items(&mut list, patch, merge_key)?;
    let order_length = list.items.len();
    let order = identities(&patch, merge_key, GoType::Map);
    for item in patch {
        let key = identity(&item, merge_key, GoType::Map)?.clone();
        match list.find(merge_key, &key)? {
            Some(number) => list.merge(number, item, schema, side)?,
            None => list.push(item),
        }
    }
    let order = order?;
    let live = list.live(merge_key);
    let original_order =
        list.identities(list.items.get(..order_length).unwrap_or_default(), merge_key);
    let merged = list.into_items();
    let (mut named, mut rest) = (Vec::new(), Vec::new());
    for item in with_identity(merged, merge_key, GoType::Map)? {
        if names(&order, &item.identity)? { named.push(item) } else { rest.push(item) }
    }
    let items = merge_ordered(named, rest, &order, &original_order, GoType::Map)?;
    Ok(Merged { items, live })
}

/// Does what items with a `$patch` directive say and returns the others
/// (`mergeSliceWithSpecialElements`).
fn special_items(
    list: &mut Shared,
    patch: Vec<Value>,
    merge_key: &str,
) -> Result<Vec<Value>, Error> {
    let mut plain = Vec::with_capacity(patch.len());
    let mut replace = false;
    for item in patch {
        let Value::Object(object) = &item else { continue };
        let Some(directive) = object.get(DIRECTIVE) else {
            plain.push(item);
            continue;
        };
        match directive.as_str() {
            Some("delete") => {
                let value =
                    object.get(merge_key).ok_or_else(|| Error::no_merge_key(object, merge_key))?;
                list.delete(merge_key, value)?;
            }
            Some("replace") => replace = true,
            Some("merge") => return Err(Error::MergeDirectiveInList),
            _ => return Err(Error::unknown_directive(directive, object)),
        }
    }
    if replace {
        list.replace(plain);
        return Ok(Vec::new());
    }
    Ok(plain)
}
