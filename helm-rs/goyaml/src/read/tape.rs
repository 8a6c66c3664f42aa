//! What go-yaml decodes a document to, before it becomes JSON: typed keys, aliases expanded.
//!
//! Items lie in order on a tape; a collection is followed by its items or by keys and values in
//! turn, up to its end. Nothing nests in memory, so depth costs no stack.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write as _;

use crate::scalar::number;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Item<'t> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Float(f64),
    Str(Cow<'t, [u8]>),
    /// `end` is the first item behind it.
    Seq {
        end: usize,
    },
    Map {
        end: usize,
    },
}

impl Item<'_> {
    /// What makes two keys of a map the same; `None` for what equals nothing.
    pub(super) fn identity(&self) -> Option<Vec<u8>> {
        Some(match self {
            Item::Float(value) if value.is_nan() => return None,
            // Zeros of both signs are the same.
            Item::Float(value) => format!("f{}", value + 0.0).into_bytes(),
            Item::Str(text) => [b"s", text.as_ref()].concat(),
            Item::Seq { .. } | Item::Map { .. } => return None,
            other => format!("{other:?}").into_bytes(),
        })
    }

    /// Go's name of the type.
    pub(super) const fn type_name(&self) -> &'static str {
        match self {
            // What `%s` makes of a nil `reflect.Type`.
            Item::Null => "%!s(<nil>)",
            Item::Bool(_) => "bool",
            Item::Int(_) => "int",
            Item::Uint(_) => "uint64",
            Item::Float(_) => "float64",
            Item::Str(_) => "string",
            Item::Seq { .. } => "[]interface {}",
            Item::Map { .. } => "map[interface {}]interface {}",
        }
    }
}

/// The value at `at` as Go's `%#v` prints it.
pub(super) fn go_syntax(tape: &[Item<'_>], at: usize) -> String {
    let mut text = String::new();
    write_value(&mut text, tape, at, true, 0);
    text
}

/// How deep [`go_syntax`] goes before it gives up; only error texts need it.
const MAX_SYNTAX_DEPTH: usize = 200;

fn write_value(text: &mut String, tape: &[Item<'_>], at: usize, top: bool, depth: usize) {
    if depth > MAX_SYNTAX_DEPTH {
        text.push_str("...");
        return;
    }
    match tape.get(at) {
        None => {}
        Some(Item::Null) => text.push_str(if top { "<nil>" } else { "interface {}(nil)" }),
        Some(Item::Bool(value)) => text.push_str(if *value { "true" } else { "false" }),
        Some(Item::Int(value)) => text.push_str(&value.to_string()),
        Some(Item::Uint(value)) => write!(text, "{value:#x}").unwrap_or_default(),
        Some(Item::Float(value)) => text.push_str(&number::format_g64(*value)),
        Some(Item::Str(value)) => text.push_str(&crate::quote::quote(value)),
        Some(Item::Seq { end }) => {
            text.push_str("[]interface {}{");
            let mut item = at + 1;
            while item < *end {
                if item > at + 1 {
                    text.push_str(", ");
                }
                write_value(text, tape, item, false, depth + 1);
                item = next(tape, item);
            }
            text.push('}');
        }
        Some(Item::Map { end }) => {
            text.push_str("map[interface {}]interface {}{");
            for (index, (key, value)) in sorted_entries(tape, at + 1, *end).into_iter().enumerate()
            {
                if index > 0 {
                    text.push_str(", ");
                }
                write_value(text, tape, key, false, depth + 1);
                text.push(':');
                write_value(text, tape, value, false, depth + 1);
            }
            text.push('}');
        }
    }
}

/// The first item behind the value at `at`.
pub(super) fn next(tape: &[Item<'_>], at: usize) -> usize {
    match tape.get(at) {
        Some(Item::Seq { end } | Item::Map { end }) => (*end).max(at + 1),
        _ => at + 1,
    }
}

/// Entries of a map as `fmt` orders them: by type and value of the key.
fn sorted_entries(tape: &[Item<'_>], from: usize, end: usize) -> Vec<(usize, usize)> {
    let mut entries = live_entries(tape, from, end);
    entries.sort_by(|a, b| compare_keys(tape, a.0, b.0));
    entries
}

/// The places of keys and values of a map whose items stand in `from..end`: each key once, with
/// its last value.
pub(super) fn live_entries(tape: &[Item<'_>], from: usize, end: usize) -> Vec<(usize, usize)> {
    let mut entries: Vec<(usize, usize)> = Vec::new();
    let mut known: HashMap<Vec<u8>, usize> = HashMap::new();
    let mut key = from;
    while key < end {
        let value = next(tape, key);
        let place = tape
            .get(key)
            .and_then(Item::identity)
            .map_or(entries.len(), |identity| *known.entry(identity).or_insert(entries.len()));
        match entries.get_mut(place) {
            Some(entry) => entry.1 = value,
            None => entries.push((key, value)),
        }
        key = next(tape, value);
    }
    entries
}

/// `internal/fmtsort` for keys in an interface: nil, then by type, then by value.
///
/// Go orders types by the addresses of their descriptions; this is the order in Helm's binary.
fn compare_keys(tape: &[Item<'_>], a: usize, b: usize) -> std::cmp::Ordering {
    let rank = |at: usize| match tape.get(at) {
        None | Some(Item::Null) => 0,
        Some(Item::Str(_)) => 1,
        Some(Item::Uint(_)) => 2,
        Some(Item::Int(_)) => 3,
        Some(Item::Float(_)) => 4,
        Some(Item::Bool(_)) => 5,
        Some(Item::Seq { .. } | Item::Map { .. }) => 6,
    };
    match (tape.get(a), tape.get(b)) {
        (Some(Item::Bool(a)), Some(Item::Bool(b))) => a.cmp(b),
        (Some(Item::Int(a)), Some(Item::Int(b))) => a.cmp(b),
        (Some(Item::Uint(a)), Some(Item::Uint(b))) => a.cmp(b),
        (Some(Item::Float(a)), Some(Item::Float(b))) => {
            // NaN comes first.
            b.is_nan().cmp(&a.is_nan()).then(a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal))
        }
        (Some(Item::Str(a)), Some(Item::Str(b))) => a.cmp(b),
        _ => rank(a).cmp(&rank(b)),
    }
}
