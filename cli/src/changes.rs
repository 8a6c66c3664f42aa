//! Differences leaf by leaf, as lines and as data.

use goyaml::{Map, Value};
use helm_rs::diff::Change;
use helm_rs::gotext::quote;

/// `~` changed, `-` removed, `+` added.
pub(crate) const fn mark(has_old: bool, has_new: bool) -> char {
    match (has_old, has_new) {
        (true, true) => '~',
        (true, false) => '-',
        (false, _) => '+',
    }
}

/// One line a leaf.
pub(crate) fn change_lines(changes: &[Change], indent: &str, out: &mut String) {
    for Change { path, old, new } in changes {
        let line = match (old, new) {
            (Some(old), Some(new)) => format!("~ {path}: {} -> {}", inline(old), inline(new)),
            (Some(old), None) => format!("- {path}: {}", inline(old)),
            (None, new) => format!("+ {path}: {}", new.as_ref().map(inline).unwrap_or_default()),
        };
        out.push_str(&format!("{indent}{line}\n"));
    }
}

/// A value on one line; long ones are cut.
fn inline(value: &Value) -> String {
    const MOST: usize = 200;
    let text = match value {
        Value::String(text) => quote(text),
        value => goyaml::json::to_json(value).unwrap_or_else(|error| error.to_string()),
    };
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

/// `changed`, `removed`, `added`.
pub(crate) const fn word(has_old: bool, has_new: bool) -> &'static str {
    match mark(has_old, has_new) {
        '~' => "changed",
        '-' => "removed",
        _ => "added",
    }
}

/// As data.
pub(crate) fn changes_value(changes: &[Change]) -> Value {
    let change = |Change { path, old, new }: &Change| {
        let mut fields = Map::new();
        fields.insert("path", path.to_string());
        for (name, value) in [("old", old), ("new", new)] {
            if let Some(value) = value {
                fields.insert(name, value.clone());
            }
        }
        Value::Map(fields)
    };
    Value::Seq(changes.iter().map(change).collect())
}
