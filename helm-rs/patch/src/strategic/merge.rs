//! Applying patches: to an object, or to another patch.

use serde_json::Value;

use crate::error::Error;
use crate::schema::{Schema, Strategy};
use crate::value::{GoType, Object, deep_equal, hashable, identical, list_text, text};

use super::list::{Item, element_type, identities, identity, is_deletion, merge_ordered, names};
use super::{DELETE_FROM_PRIMITIVE_LIST, DIRECTIVE, RETAIN_KEYS, SET_ELEMENT_ORDER};

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

/// Merges every list that comes with a `$setElementOrder` directive, and takes directive and list
/// out of the patch (`mergePatchIntoOriginal`).
fn ordered_lists(
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

fn with_identity(list: Vec<Value>, merge_key: &str, kind: GoType) -> Result<Vec<Item>, Error> {
    list.into_iter()
        .map(|value| {
            let identity = identity(&value, merge_key, kind)?.clone();
            Ok(Item { identity, value })
        })
        .collect()
}

/// Splits a list into what an order names and the rest (`partitionMapsByPresentInList`,
/// `partitionPrimitivesByPresentInList`).
fn partition(
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
pub(super) fn same_item(left: &Value, right: &Value, merge_key: &str) -> Result<bool, Error> {
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

/// A merged list.
struct Merged {
    items: Vec<Value>,
    /// What the list that was merged into looks like afterwards, by the identities of its items:
    /// Go deletes from and appends to the same memory, and later sorts by what is found there.
    live: Vec<Value>,
}

/// `mergeSlice`.
fn lists(
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
pub(super) fn without_duplicates(mut list: Vec<Value>) -> Vec<Value> {
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

/// A list of objects, and the memory that Go keeps it in: a list without room to grow, as the
/// server's are. Deleting moves the rest down and leaves the end as it was; appending overwrites
/// that end, and when there is none left, moves to other memory.
struct Shared {
    objects: Vec<Object>,
    /// The list, by numbers of `objects`.
    items: Vec<usize>,
    /// The memory that began as the list.
    memory: Vec<usize>,
    /// Whether the list still lives in `memory`.
    in_memory: bool,
}

impl Shared {
    fn new(list: Vec<Value>) -> Self {
        let objects = objects(list);
        let items: Vec<usize> = (0..objects.len()).collect();
        Self { memory: items.clone(), items, objects, in_memory: true }
    }

    fn replace(&mut self, list: Vec<Value>) {
        let first = self.objects.len();
        self.objects.extend(objects(list));
        self.items = (first..self.objects.len()).collect();
        self.in_memory = false;
    }

    /// The position in the list of the object with a key's value.
    fn position(&self, merge_key: &str, value: &Value) -> Result<Option<usize>, Error> {
        for (position, number) in self.items.iter().enumerate() {
            let found = self.objects.get(*number).and_then(|object| object.get(merge_key));
            if let Some(found) = found
                && identical(found, value)?
            {
                return Ok(Some(position));
            }
        }
        Ok(None)
    }

    /// The number of the object with a key's value.
    fn find(&self, merge_key: &str, value: &Value) -> Result<Option<usize>, Error> {
        let position = self.position(merge_key, value)?;
        Ok(position.and_then(|position| self.items.get(position).copied()))
    }

    /// `deleteMatchingEntries`.
    fn delete(&mut self, merge_key: &str, value: &Value) -> Result<(), Error> {
        while let Some(position) = self.position(merge_key, value)? {
            self.items.remove(position);
            if self.in_memory {
                for (place, number) in self.memory.iter_mut().zip(&self.items) {
                    *place = *number;
                }
            }
        }
        Ok(())
    }

    fn push(&mut self, item: Value) {
        let number = self.objects.len();
        self.objects.extend(objects(vec![item]));
        if self.in_memory {
            match self.memory.get_mut(self.items.len()) {
                Some(place) => *place = number,
                None => self.in_memory = false,
            }
        }
        self.items.push(number);
    }

    fn merge(
        &mut self,
        number: usize,
        item: Value,
        schema: Schema<'_>,
        side: Side,
    ) -> Result<(), Error> {
        if let (Some(object), Value::Object(item)) = (self.objects.get_mut(number), item) {
            *object = maps(std::mem::take(object), item, schema, side)?;
        }
        Ok(())
    }

    /// Merge keys of objects; null where there is none, which no list with an order lets through.
    fn identities(&self, numbers: &[usize], merge_key: &str) -> Vec<Value> {
        let key = |number: &usize| self.objects.get(*number)?.get(merge_key).cloned();
        numbers.iter().map(|number| key(number).unwrap_or_default()).collect()
    }

    fn live(&self, merge_key: &str) -> Vec<Value> {
        self.identities(&self.memory, merge_key)
    }

    fn into_items(self) -> Vec<Value> {
        let mut objects: Vec<Option<Object>> = self.objects.into_iter().map(Some).collect();
        self.items
            .iter()
            .filter_map(|number| objects.get_mut(*number)?.take())
            .map(Value::Object)
            .collect()
    }
}

/// The objects of a list that holds nothing else.
fn objects(list: Vec<Value>) -> Vec<Object> {
    list.into_iter()
        .filter_map(|item| match item {
            Value::Object(object) => Some(object),
            _ => None,
        })
        .collect()
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
