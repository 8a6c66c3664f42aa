//! The order of merged lists.

use serde_json::Value;

use crate::error::Error;
use crate::gosort;
use crate::value::{GoType, identical, list_text};

use super::DIRECTIVE;

/// The type that all items have (`sliceElementType`).
pub(super) fn element_type(lists: &[&[Value]]) -> Result<GoType, Error> {
    let mut found = None;
    for value in lists.iter().copied().flatten() {
        let current = GoType::of(value);
        match found {
            None if current == GoType::Nil => return Err(Error::null_item()),
            None if current == GoType::Slice => return Err(Error::ListOfLists),
            None => found = Some(current),
            Some(known) if known != current => {
                let lists: Vec<String> = lists.iter().map(|list| list_text(list)).collect();
                return Err(Error::MixedList { lists: format!("[{}]", lists.join(" ")) });
            }
            Some(_) => {}
        }
    }
    found.ok_or(Error::NoElements)
}

/// Whether an item of a patch's list asks for its own deletion.
pub(super) fn is_deletion(item: &Value) -> bool {
    item.get(DIRECTIVE).is_some_and(|directive| directive == "delete")
}

/// What stands for an item where order and identity are concerned: of an object the value of its
/// merge key, of a scalar the scalar.
///
/// # Errors
/// [`Error::BadType`] when a keyed list's item is no object, [`Error::NoMergeKey`] without the
/// key.
pub(super) fn identity<'a>(item: &'a Value, key: &str, kind: GoType) -> Result<&'a Value, Error> {
    if kind != GoType::Map {
        return Ok(item);
    }
    let Value::Object(object) = item else { return Err(Error::bad_type(GoType::Map, item)) };
    object.get(key).ok_or_else(|| Error::no_merge_key(object, key))
}

/// The identities of a list's items.
pub(super) fn identities(list: &[Value], key: &str, kind: GoType) -> Result<Vec<Value>, Error> {
    list.iter().map(|item| identity(item, key, kind).cloned()).collect()
}

/// The place of an item in an order (`index`).
///
/// # Errors
/// [`Error::GoPanics`] when Go cannot compare it with what stands there.
fn rank(order: &[Value], identity: &Value) -> Result<Option<usize>, Error> {
    for (position, other) in order.iter().enumerate() {
        if identical(other, identity)? {
            return Ok(Some(position));
        }
    }
    Ok(None)
}

/// Whether an order names an item.
pub(super) fn names(order: &[Value], identity: &Value) -> Result<bool, Error> {
    rank(order, identity).map(|rank| rank.is_some())
}

/// An item on its way into an order.
pub(super) struct Item {
    pub(super) identity: Value,
    pub(super) value: Value,
}

/// Puts items into an order, deletions last (`normalizeSliceOrder`). Items that the order does
/// not name come where Go's stable sort happens to leave them.
pub(super) fn normalize(
    items: Vec<Item>,
    order: &[Value],
    kind: GoType,
) -> Result<Vec<Item>, Error> {
    let (deletions, mut kept): (Vec<Item>, Vec<Item>) =
        items.into_iter().partition(|item| kind == GoType::Map && is_deletion(&item.value));
    if kept.len() > 1 {
        let mut ranked = Vec::with_capacity(kept.len());
        for item in kept {
            ranked.push((rank(order, &item.identity)?, item));
        }
        gosort::stable(&mut ranked, |(left, _), (right, _)| match (left, right) {
            (Some(left), Some(right)) => left < right,
            _ => true,
        });
        kept = ranked.into_iter().map(|(_, item)| item).collect();
    }
    kept.extend(deletions);
    Ok(kept)
}

/// Orders what the patch names by `patch_order` and what only the server has by `server_order`,
/// then merges both (`normalizeElementOrder`, `mergeSortedSlice`).
pub(super) fn merge_ordered(
    patch: Vec<Item>,
    server_only: Vec<Item>,
    patch_order: &[Value],
    server_order: &[Value],
    kind: GoType,
) -> Result<Vec<Value>, Error> {
    let mut right = normalize(patch, patch_order, kind)?.into_iter().peekable();
    let mut left = normalize(server_only, server_order, kind)?.into_iter().peekable();
    // Ranks of the two items in front, looked up when both are there: like Go, nothing is compared
    // that need not be.
    let (mut left_rank, mut right_rank) = (None, None);
    let mut merged = Vec::new();
    loop {
        let server_first = match (left.peek(), right.peek()) {
            (Some(server), Some(named)) => {
                let server = match left_rank {
                    Some(rank) => rank,
                    None => rank(server_order, &server.identity)?,
                };
                let named = match right_rank {
                    Some(rank) => rank,
                    None => rank(server_order, &named.identity)?,
                };
                (left_rank, right_rank) = (Some(server), Some(named));
                matches!((server, named), (Some(server), Some(named)) if server < named)
            }
            (server, _) => server.is_some(),
        };
        let next = if server_first {
            left_rank = None;
            left.next()
        } else {
            right_rank = None;
            right.next()
        };
        match next {
            Some(item) => merged.push(item.value),
            None => return Ok(merged),
        }
    }
}
