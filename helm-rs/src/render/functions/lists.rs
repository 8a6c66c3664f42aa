//! Lists: sprig's `list.go`, and the variadic builders.
//!
//! Sprig works on any slice by reflection, so these take `interface {}`, read `[]uint8` as a
//! list of numbers, and give `[]interface {}` in most places.

use std::borrow::Cow;

use gotemplate::function::Rest;
use gotemplate::value::{LIST_ANY, LIST_LIST_ANY};
use gotemplate::{CallError, Function, FunctionMap, IntKind, List, Value};

use super::cast::{self, float_to_int};
use super::compare::deep_equal;
use super::defaults::is_empty;
use super::limits;
use super::text::{strslice, strval};

/// What Go says when `reflect.TypeOf(nil)` is asked for its kind.
pub(super) const NIL_DEREFERENCE: &str =
    "runtime error: invalid memory address or nil pointer dereference";

type Items<'a> = Cow<'a, [Value]>;

pub(super) fn register(functions: &mut FunctionMap) {
    let mut both = |names: [&'static str; 2], function: Function| {
        for name in names {
            functions.insert(name, function.clone());
        }
    };
    both(["list", "tuple"], Function::new(list));
    both(["append", "push"], Function::new(append));
    both(["mustAppend", "mustPush"], Function::new(append));
    both(["prepend", "mustPrepend"], Function::new(prepend));
    both(["first", "mustFirst"], Function::new(first));
    both(["last", "mustLast"], Function::new(last));
    both(["rest", "mustRest"], Function::new(rest));
    both(["initial", "mustInitial"], Function::new(initial));
    both(["reverse", "mustReverse"], Function::new(reverse));
    both(["compact", "mustCompact"], Function::new(compact));
    both(["uniq", "mustUniq"], Function::new(uniq));
    both(["without", "mustWithout"], Function::new(without));
    both(["has", "mustHas"], Function::new(has));
    both(["slice", "mustSlice"], Function::new(slice));
    both(["chunk", "mustChunk"], Function::new(chunk));
    functions.insert("concat", Function::new(concat));
    functions.insert("sortAlpha", Function::new(sort_alpha));
}

/// The items of a slice of any type; `None` for everything else.
pub(super) fn slice_items(value: &Value) -> Option<Items<'_>> {
    match value {
        Value::List(list) => Some(Cow::Borrowed(list.items())),
        Value::Bytes(bytes) => Some(Cow::Owned(
            bytes.iter().map(|byte| Value::sized(IntKind::Uint8, i64::from(*byte))).collect(),
        )),
        _ => None,
    }
}

/// The items of a slice, or sprig's complaint: `complaint` followed by the kind.
fn items<'a>(value: &'a Value, complaint: &str) -> Result<Items<'a>, CallError> {
    if matches!(value, Value::Nil) {
        return Err(CallError::new(NIL_DEREFERENCE));
    }
    slice_items(value)
        .ok_or_else(|| CallError::from(format!("{complaint} {}", value.kind().name())))
}

fn list(items: Rest<Value>) -> List {
    List::any(items.0)
}

fn append(list: Value, value: Value) -> Result<List, CallError> {
    let mut items = items(&list, "Cannot push on type")?.into_owned();
    items.push(value);
    Ok(List::any(items))
}

fn prepend(list: Value, value: Value) -> Result<List, CallError> {
    let tail = items(&list, "Cannot prepend on type")?;
    let mut items = Vec::with_capacity(tail.len() + 1);
    items.push(value);
    items.extend_from_slice(&tail);
    Ok(List::any(items))
}

fn first(list: Value) -> Result<Value, CallError> {
    Ok(items(&list, "Cannot find first on type")?.first().cloned().unwrap_or_default())
}

fn last(list: Value) -> Result<Value, CallError> {
    Ok(items(&list, "Cannot find last on type")?.last().cloned().unwrap_or_default())
}

/// A new `[]interface {}`; nil for an empty list, as sprig returns it.
fn part<'a>(items: &'a Items<'a>, cut: fn(&'a [Value]) -> Option<&'a [Value]>) -> List {
    cut(items).map_or_else(|| List::nil(&LIST_ANY), List::any)
}

fn rest(list: Value) -> Result<List, CallError> {
    let items = items(&list, "Cannot find rest on type")?;
    Ok(part(&items, |items| Some(items.split_first()?.1)))
}

fn initial(list: Value) -> Result<List, CallError> {
    let items = items(&list, "Cannot find initial on type")?;
    Ok(part(&items, |items| Some(items.split_last()?.1)))
}

fn reverse(list: Value) -> Result<List, CallError> {
    let items = items(&list, "Cannot find reverse on type")?;
    Ok(List::any(items.iter().rev().cloned().collect::<Vec<_>>()))
}

fn compact(list: Value) -> Result<List, CallError> {
    let items = items(&list, "Cannot compact on type")?;
    Ok(List::any(items.iter().filter(|item| !is_empty(item)).cloned().collect::<Vec<_>>()))
}

fn contains(haystack: &[Value], needle: &Value) -> Result<bool, CallError> {
    for item in haystack {
        if deep_equal(needle, item)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn uniq(list: Value) -> Result<List, CallError> {
    let items = items(&list, "Cannot find uniq on type")?;
    let mut unique: Vec<Value> = Vec::new();
    for item in items.iter() {
        if !contains(&unique, item)? {
            unique.push(item.clone());
        }
    }
    Ok(List::any(unique))
}

fn without(list: Value, omit: Rest<Value>) -> Result<List, CallError> {
    let items = items(&list, "Cannot find without on type")?;
    let mut kept = Vec::new();
    for item in items.iter() {
        if !contains(&omit.0, item)? {
            kept.push(item.clone());
        }
    }
    Ok(List::any(kept))
}

fn has(needle: Value, haystack: Value) -> Result<bool, CallError> {
    if matches!(haystack, Value::Nil) {
        return Ok(false);
    }
    contains(&items(&haystack, "Cannot find has on type")?, &needle)
}

/// `slice list [start [end]]`. Go lets a slice grow up to its capacity, which is not
/// observable here: past the end is an error.
fn slice(list: Value, indices: Rest<Value>) -> Result<Value, CallError> {
    let items = items(&list, "list should be type of slice or array but")?;
    if items.is_empty() {
        return Ok(Value::Nil);
    }
    let index = |n: usize, default: i64| indices.0.get(n).map_or(default, cast::to_int);
    let (start, end) = (index(0, 0), index(1, items.len() as i64));
    let range = usize::try_from(start).ok().zip(usize::try_from(end).ok());
    let bounds = || CallError::new("reflect.Value.Slice: slice index out of bounds");
    let (start, end) = range.ok_or_else(bounds)?;
    match &list {
        Value::Bytes(bytes) => bytes
            .as_bytes()
            .get(start..end)
            .map(|part| Value::Bytes(part.into()))
            .ok_or_else(bounds),
        Value::List(list) => list
            .items()
            .get(start..end)
            .map(|part| Value::List(List::new(list.ty(), part)))
            .ok_or_else(bounds),
        _ => Err(bounds()),
    }
}

/// `chunk size list`. Sizes that make no sense end as in Go, which divides by them in
/// floating point and then makes slices of the resulting lengths.
fn chunk(size: i64, list: Value) -> Result<List, CallError> {
    let items = items(&list, "Cannot chunk type")?;
    let length = || CallError::new("runtime error: makeslice: len out of range");
    let count = float_to_int(((items.len() as f64 - 1.0) / size as f64).floor() + 1.0);
    let count = usize::try_from(count).map_err(|_| length())?;
    limits::check_items(count)?;
    let mut chunks = Vec::with_capacity(count);
    for i in 0..count {
        let mut take = size;
        if i + 1 == count {
            take = float_to_int((items.len() as f64 % size as f64).floor());
            if take == 0 {
                take = size;
            }
        }
        let take = usize::try_from(take).map_err(|_| length())?;
        let start = usize::try_from(size).unwrap_or(0).saturating_mul(i);
        let part = items
            .get(start..start.saturating_add(take))
            .ok_or_else(|| CallError::new("reflect: slice index out of range"))?;
        chunks.push(Value::list(part));
    }
    Ok(List::new(&LIST_LIST_ANY, chunks))
}

fn concat(lists: Rest<Value>) -> Result<Value, CallError> {
    let mut all = Vec::new();
    for list in &lists.0 {
        let items = items(list, "Cannot concat type").map_err(|error| {
            if matches!(list, Value::Nil) {
                error
            } else {
                CallError::from(format!("{error} as list"))
            }
        })?;
        limits::check_items(all.len().saturating_add(items.len()))?;
        all.extend_from_slice(&items);
    }
    // Go's result stays nil until something is appended.
    if all.is_empty() {
        return Ok(List::nil(&LIST_ANY).into());
    }
    Ok(Value::list(all))
}

/// The texts of the items in byte order; of a single value, its text. A `[]string` is sorted
/// in place, as sprig does it.
fn sort_alpha(list: Value) -> List {
    let texts = match slice_items(&list) {
        Some(_) => strslice(&list),
        None => List::strings([strval(&list)]),
    };
    texts.sort();
    texts
}
