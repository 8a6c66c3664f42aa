//! Making patches: the difference of two objects.

use std::cmp::Ordering;

use serde_json::Value;

use crate::error::Error;
use crate::gosort;
use crate::schema::{Schema, Strategy};
use crate::value::{GoType, Object, deep_equal, lists_equal, text};

use super::list::{Item, element_type, identities, normalize};
use super::{DELETE_FROM_PRIMITIVE_LIST, DIRECTIVE, RETAIN_KEYS, SET_ELEMENT_ORDER};

/// What a difference is wanted for (`DiffOptions`; `$setElementOrder` is always made).
#[derive(Debug, Clone, Copy)]
pub(super) struct Options {
    changes: bool,
    deletions: bool,
    /// The strategy of the field whose objects are compared asks for `$retainKeys`.
    retain_keys: bool,
}

impl Options {
    pub(super) fn changes_and_deletions() -> Self {
        Self { changes: true, deletions: true, retain_keys: false }
    }

    pub(super) fn changes() -> Self {
        Self { changes: true, deletions: false, retain_keys: false }
    }

    pub(super) fn deletions() -> Self {
        Self { changes: false, deletions: true, retain_keys: false }
    }
}

/// The patch that makes `modified` of `original` (`diffMaps`).
pub(super) fn maps(
    original: &Object,
    modified: &Object,
    schema: Schema<'_>,
    options: Options,
) -> Result<Object, Error> {
    let mut patch = Object::new();
    for (key, new) in modified {
        let Some(old) = original.get(key) else {
            if options.changes {
                patch.insert(key.clone(), new.clone());
            }
            continue;
        };
        if key == DIRECTIVE {
            let (Value::String(before), Value::String(after)) = (old, new) else {
                return Err(Error::DirectiveType);
            };
            if before != after {
                patch.insert(key.clone(), new.clone());
            }
            continue;
        }
        match (old, new) {
            (Value::Object(old), Value::Object(new)) => {
                object_field(key, old, new, &mut patch, schema, options)?;
            }
            (Value::Array(old), Value::Array(new)) => {
                list_field(key, old, new, &mut patch, schema, options)?;
            }
            _ if options.changes && !deep_equal(old, new) => {
                patch.insert(key.clone(), new.clone());
            }
            _ => {}
        }
    }
    if options.deletions {
        for key in original.keys().filter(|key| !modified.contains_key(*key)) {
            patch.insert(key.clone(), Value::Null);
        }
    }
    if options.retain_keys {
        retain_keys(original, modified, &mut patch);
    }
    Ok(patch)
}

/// Adds the directive that names every field of `modified`, when anything changes or a field of
/// `original` is to go.
fn retain_keys(original: &Object, modified: &Object, patch: &mut Object) {
    let mut kept: Vec<&String> =
        modified.iter().filter(|(_, value)| !value.is_null()).map(|(key, _)| key).collect();
    kept.sort_unstable();
    let goes = |(key, value): (&String, &Value)| !value.is_null() && !modified.contains_key(key);
    if !kept.is_empty() && (!patch.is_empty() || original.iter().any(goes)) {
        let kept = kept.into_iter().cloned().map(Value::String).collect();
        patch.insert(RETAIN_KEYS.to_owned(), kept);
    }
}

/// A field that is an object on both sides (`handleMapDiff`).
fn object_field(
    key: &str,
    old: &Object,
    new: &Object,
    patch: &mut Object,
    schema: Schema<'_>,
    options: Options,
) -> Result<(), Error> {
    let (below, meta) = match schema.object(key) {
        Ok(found) => found,
        // An unknown field is no matter as long as it does not change.
        Err(_) if objects_equal(old, new) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let (retain_keys, strategy) = meta.split()?;
    if strategy == Strategy::Replace {
        if options.changes {
            patch.insert(key.to_owned(), Value::Object(new.clone()));
        }
        return Ok(());
    }
    let difference = maps(old, new, below, Options { retain_keys, ..options })?;
    if !difference.is_empty() {
        patch.insert(key.to_owned(), Value::Object(difference));
    }
    Ok(())
}

fn objects_equal(left: &Object, right: &Object) -> bool {
    left.len() == right.len()
        && left
            .iter()
            .all(|(key, value)| right.get(key).is_some_and(|other| deep_equal(value, other)))
}

/// A field that is a list on both sides (`handleSliceDiff`).
fn list_field(
    key: &str,
    old: &[Value],
    new: &[Value],
    patch: &mut Object,
    schema: Schema<'_>,
    options: Options,
) -> Result<(), Error> {
    let (below, meta) = match schema.list(key) {
        Ok(found) => found,
        Err(_) if lists_equal(old, new) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let (retain_keys, strategy) = meta.split()?;
    if strategy != Strategy::Merge {
        if options.changes && !lists_equal(old, new) {
            patch.insert(key.to_owned(), Value::Array(new.to_vec()));
        }
        return Ok(());
    }
    let options = Options { retain_keys, ..options };
    let difference = lists(old, new, below, meta.merge_key, options)?;
    let parts = [
        (key.to_owned(), difference.items),
        (format!("{DELETE_FROM_PRIMITIVE_LIST}/{key}"), difference.deletions),
        (format!("{SET_ELEMENT_ORDER}/{key}"), difference.order),
    ];
    for (key, list) in parts {
        if !list.is_empty() {
            patch.insert(key, Value::Array(list));
        }
    }
    Ok(())
}

/// The difference of two merged lists: the parallel lists of a patch.
#[derive(Default)]
struct ListDifference {
    items: Vec<Value>,
    deletions: Vec<Value>,
    order: Vec<Value>,
}

/// `diffLists`.
fn lists(
    original: &[Value],
    modified: &[Value],
    schema: Schema<'_>,
    merge_key: &str,
    options: Options,
) -> Result<ListDifference, Error> {
    if original.is_empty() {
        // Everything is new. Nothing is checked: strategicpatch looks at no item here.
        let items = if options.changes { modified.to_vec() } else { Vec::new() };
        return Ok(ListDifference { items, ..ListDifference::default() });
    }
    match element_type(&[original, modified])? {
        GoType::Map => keyed_lists(original, modified, schema, merge_key, options),
        GoType::Slice => Err(Error::ListOfLists),
        kind => scalar_lists(original, modified, kind, options),
    }
}

fn keyed_lists(
    original: &[Value],
    modified: &[Value],
    schema: Schema<'_>,
    merge_key: &str,
    options: Options,
) -> Result<ListDifference, Error> {
    let (changes, deletions) = keyed_items(original, modified, schema, merge_key, options)?;
    let mut items = Vec::with_capacity(changes.len());
    for value in changes {
        let identity = super::list::identity(&value, merge_key, GoType::Map)?.clone();
        items.push(Item { identity, value });
    }
    let identities = identities(modified, merge_key, GoType::Map)?;
    let order_same = same_order(original, modified, merge_key)?;
    let mut items: Vec<Value> = normalize(items, &identities, GoType::Map)?
        .into_iter()
        .map(|item| item.value)
        .chain(deletions)
        .collect();
    items.shrink_to_fit();
    let differs = !items.is_empty();
    let wanted = (options.changes && (differs || !order_same)) || (options.deletions && differs);
    let order = if wanted {
        let only_key = |value| Value::Object([(merge_key.to_owned(), value)].into_iter().collect());
        identities.into_iter().map(only_key).collect()
    } else {
        Vec::new()
    };
    Ok(ListDifference { items, deletions: Vec::new(), order })
}

/// `isOrderSame`.
fn same_order(original: &[Value], modified: &[Value], merge_key: &str) -> Result<bool, Error> {
    if original.len() != modified.len() {
        return Ok(false);
    }
    for (old, new) in original.iter().zip(modified) {
        if !super::merge::same_item(old, new, merge_key)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A list's objects with the text of their merge key, sorted by it as Go does: objects with the
/// same key may change places.
fn by_key<'a>(list: &'a [Value], merge_key: &str) -> Result<Vec<(String, &'a Object)>, Error> {
    let mut found = Vec::with_capacity(list.len());
    for item in list {
        let Value::Object(object) = item else { return Err(Error::bad_type(GoType::Map, item)) };
        // A missing key sorts as null does.
        found.push((text(object.get(merge_key).unwrap_or(&Value::Null)), object));
    }
    gosort::sort(&mut found, |(left, _), (right, _)| left <= right);
    Ok(found)
}

/// An object of [`by_key`] with its key's value.
fn keyed<'a, 'b>(
    (text, object): &'b (String, &'a Object),
    merge_key: &str,
) -> Result<(&'b str, &'a Object, &'a Value), Error> {
    let value = object.get(merge_key).ok_or_else(|| Error::no_merge_key(object, merge_key))?;
    Ok((text, object, value))
}

/// What stands next in two lists that are sorted by a text, walked side by side.
enum Met<T> {
    /// An item of each, with the same text.
    Both(T, T),
    /// An item that only the old list has.
    Old(T),
    /// An item that only the new list has.
    New(T),
    /// Both lists are at their end.
    Neither,
}

impl<T: Copy> Met<T> {
    fn of<'a>(old: Option<T>, new: Option<T>, text: impl Fn(T) -> &'a str) -> Self {
        match (old, new) {
            (None, None) => Self::Neither,
            (Some(old), None) => Self::Old(old),
            (None, Some(new)) => Self::New(new),
            (Some(old), Some(new)) => match text(old).cmp(text(new)) {
                Ordering::Equal => Self::Both(old, new),
                Ordering::Less => Self::Old(old),
                Ordering::Greater => Self::New(new),
            },
        }
    }
}

/// Changed and added items, and a deletion for each removed one (`diffListsOfMaps`).
fn keyed_items(
    original: &[Value],
    modified: &[Value],
    schema: Schema<'_>,
    merge_key: &str,
    options: Options,
) -> Result<(Vec<Value>, Vec<Value>), Error> {
    let (original, modified) = (by_key(original, merge_key)?, by_key(modified, merge_key)?);
    let (mut old, mut new) = (original.iter().peekable(), modified.iter().peekable());
    let (mut changes, mut deletions) = (Vec::new(), Vec::new());
    loop {
        // Both are asked for their key in every round, as the checks decide which error comes.
        let left = old.peek().map(|pair| keyed(pair, merge_key)).transpose()?;
        let right = new.peek().map(|pair| keyed(pair, merge_key)).transpose()?;
        match Met::of(left, right, |(key, ..)| key) {
            Met::Both((_, old_item, _), (_, new_item, value)) => {
                let mut patch = maps(old_item, new_item, schema, options)?;
                if !patch.is_empty() {
                    patch.insert(merge_key.to_owned(), value.clone());
                    changes.push(Value::Object(patch));
                }
                old.next();
                new.next();
            }
            Met::Old((_, _, value)) => {
                if options.deletions {
                    let deletion = [
                        (merge_key.to_owned(), value.clone()),
                        (DIRECTIVE.to_owned(), Value::String("delete".to_owned())),
                    ];
                    deletions.push(Value::Object(deletion.into_iter().collect()));
                }
                old.next();
            }
            Met::New((_, item, _)) => {
                if options.changes {
                    changes.push(Value::Object(item.clone()));
                }
                new.next();
            }
            Met::Neither => return Ok((changes, deletions)),
        }
    }
}

/// Scalars with their text, sorted by it (`sortScalars`). Equal texts are equal values, since all
/// are of one type.
fn by_text(list: &[Value]) -> Vec<(String, &Value)> {
    let mut found: Vec<(String, &Value)> = list.iter().map(|value| (text(value), value)).collect();
    found.sort_unstable_by(|(left, _), (right, _)| left.cmp(right));
    found
}

/// `diffListsOfScalars` and what `diffLists` makes of it.
fn scalar_lists(
    original: &[Value],
    modified: &[Value],
    kind: GoType,
    options: Options,
) -> Result<ListDifference, Error> {
    let (old, new) = (by_text(original), by_text(modified));
    let (mut i, mut j) = (0, 0);
    let (mut additions, mut deletions) = (Vec::new(), Vec::new());
    loop {
        match Met::of(old.get(i), new.get(j), |(text, _)| text.as_str()) {
            Met::Both(..) => {
                i += 1;
                j += 1;
            }
            Met::Old((_, value)) => {
                if options.deletions {
                    deletions.push((*value).clone());
                }
                i += 1;
            }
            Met::New((_, value)) => {
                if options.changes {
                    additions.push((*value).clone());
                }
                j += 1;
            }
            Met::Neither => break,
        }
    }
    let deletions = super::merge::without_duplicates(deletions);
    let additions =
        additions.into_iter().map(|value| Item { identity: value.clone(), value }).collect();
    let items = normalize(additions, modified, kind)?.into_iter().map(|item| item.value).collect();
    // Go has sorted the original list in place by now, and compares that with the modified one.
    let sorted_equal = old.len() == modified.len()
        && old.iter().zip(modified).all(|((_, old), new)| deep_equal(old, new));
    let wanted = (options.deletions && !deletions.is_empty()) || (options.changes && !sorted_equal);
    let order = if wanted { modified.to_vec() } else { Vec::new() };
    Ok(ListDifference { items, deletions, order })
}
