//! From what a probe did to an object, and what the live object has in its place, to the value
//! that would have made the live one.

use serde_json::{Map, Value};

use super::keys::{PROBE, SECOND};
use super::tree::{self, Path, Step};

/// What a probe did at one place of one object.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Effect {
    /// The place.
    pub(super) path: Path,
    /// What is there with the probe.
    pub(super) after: Option<Value>,
}

/// The value under the probe's key that gives the live object, if this place tells.
pub(super) fn invert(
    probe: &Value,
    effect: &Effect,
    base: Option<&Value>,
    live: &Value,
) -> Option<Value> {
    let after = effect.after.as_ref()?;
    let found = tree::at(live, &effect.path);
    if after == probe {
        // A list or table that was put in whole.
        return found.cloned().or(Some(Value::Null));
    }
    match (probe, after) {
        (Value::Object(_), Value::String(text)) if is_probe(text) => {
            match effect.path.last() {
                // An entry of a table: the live table's other entries are the value.
                Some(Step::Key(key)) if key == PROBE => entries(effect, base, live),
                _ => None,
            }
        }
        (Value::Array(_), Value::Object(_)) => match effect.path.last() {
            Some(Step::Item(..)) => items(effect, base, live),
            _ => None,
        },
        (_, Value::String(after)) => text(probe, after, found?.as_str()?),
        (Value::Number(_), Value::Number(_)) => found.cloned(),
        (_, Value::Array(after)) => list(probe, after, found?.as_array()?),
        (_, Value::Object(after)) => within(probe, after, found?),
        _ => None,
    }
}

fn is_probe(text: &str) -> bool {
    text == PROBE
}

/// A text within a text, or a list joined into one.
fn text(probe: &Value, after: &str, live: &str) -> Option<Value> {
    let middle = |start: usize, length: usize| {
        let (before, rest) = after.split_at_checked(start)?;
        let (_, behind) = rest.split_at_checked(length)?;
        live.strip_prefix(before)?.strip_suffix(behind)
    };
    match probe {
        Value::String(_) | Value::Number(_) => {
            let probe = plain(probe);
            let start = after.find(&probe)?;
            middle(start, probe.len()).map(Value::from)
        }
        Value::Array(items) if items.len() == 2 => {
            let start = after.find(PROBE)?;
            let second = after.get(start..)?.find(SECOND)?;
            let separator = after.get(start + PROBE.len()..start + second)?;
            let text = middle(start, second + SECOND.len())?;
            if separator.is_empty() {
                return None;
            }
            let items = text.split(separator).filter(|item| !item.is_empty());
            Some(items.map(Value::from).collect())
        }
        Value::Array(_) | Value::Object(_) => {
            let written: Value = serde_json::from_str(after).ok()?;
            (written == *probe).then(|| serde_json::from_str(live).ok())?
        }
        _ => None,
    }
}

fn plain(probe: &Value) -> String {
    probe.as_str().map_or_else(|| probe.to_string(), str::to_owned)
}

/// A list that was put into a list, or a text as an item or part of one.
fn list(probe: &Value, after: &[Value], live: &[Value]) -> Option<Value> {
    match probe {
        Value::Array(items) => {
            let start = after.windows(items.len().max(1)).position(|part| part == items)?;
            let behind = after.get(start + items.len()..)?;
            let (prefix, suffix) = (after.get(..start)?, behind);
            let middle = live.strip_prefix(prefix)?.strip_suffix(suffix)?;
            Some(Value::Array(middle.to_vec()))
        }
        Value::String(_) | Value::Number(_) => {
            let probe = plain(probe);
            let position = after
                .iter()
                .position(|item| item.as_str().is_some_and(|item| item.contains(&probe)))?;
            let pattern = after.get(position)?.as_str()?;
            // The item may stand elsewhere when other values added some.
            let near = live.get(position).into_iter().chain(live);
            near.filter_map(Value::as_str)
                .find_map(|live| text(&Value::from(probe.as_str()), pattern, live))
        }
        _ => None,
    }
}

/// A value somewhere within a subtree that was put in whole.
fn within(probe: &Value, after: &Map<String, Value>, live: &Value) -> Option<Value> {
    after.iter().find_map(|(key, after)| {
        let found = live.get(key)?;
        if after == probe {
            return Some(found.clone());
        }
        match (after, found) {
            (Value::String(after), Value::String(found)) => text(probe, after, found),
            (Value::Object(after), found) => within(probe, after, found),
            _ => None,
        }
    })
}

fn parent(path: &[Step]) -> &[Step] {
    path.split_last().map_or(path, |(_, parent)| parent)
}

/// The entries of a live table that the render does not have of its own; those that the live one
/// lacks are null, which takes a chart's default away.
fn entries(effect: &Effect, base: Option<&Value>, live: &Value) -> Option<Value> {
    let place = parent(&effect.path);
    let empty = Map::new();
    let own = base.and_then(|base| tree::at(base, place)).and_then(Value::as_object);
    let own = own.unwrap_or(&empty);
    let found = tree::at(live, place)?.as_object()?;
    let added = found.iter().filter(|(key, value)| own.get(*key) != Some(value));
    let mut value: Map<String, Value> =
        added.map(|(key, value)| (key.clone(), value.clone())).collect();
    for key in own.keys().filter(|key| !found.contains_key(*key)) {
        value.insert(key.clone(), Value::Null);
    }
    (!value.is_empty()).then_some(Value::Object(value))
}

/// The items of a live list that the render does not have of its own.
fn items(effect: &Effect, base: Option<&Value>, live: &Value) -> Option<Value> {
    let place = parent(&effect.path);
    let own = base.and_then(|base| tree::at(base, place)).and_then(Value::as_array);
    let found = tree::at(live, place)?.as_array()?;
    let name = |item: &Value| item.get("name").cloned();
    let is_own =
        |item: &Value| own.is_some_and(|own| own.iter().any(|other| name(other) == name(item)));
    let added: Vec<Value> = found.iter().filter(|item| !is_own(item)).cloned().collect();
    (!added.is_empty()).then_some(Value::Array(added))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(probe: &Value, base: &Value, probed: &Value, live: &Value) -> Option<Value> {
        let mut found = Vec::new();
        tree::places(Some(base), Some(probed), &mut Vec::new(), &mut found);
        let (path, _, after) = found.first().cloned()?;
        let effect = Effect { path, after: after.cloned() };
        invert(probe, &effect, Some(base), live)
    }

    #[test]
    fn each_kind_of_value() {
        let p = PROBE;
        for (probe, base, probed, live, value) in [
            (json!(p), json!({"a": "x"}), json!({"a": p}), json!({"a": "y"}), json!("y")),
            (json!(4321), json!({}), json!({"a": ":4321"}), json!({"a": ":99"}), json!("99")),
            (json!(4321), json!({"a": 1}), json!({"a": 4321}), json!({"a": 9}), json!(9)),
            (
                json!([p, SECOND]),
                json!({}),
                json!({"a": format!("{p},{SECOND}")}),
                json!({"a": "x,y,z"}),
                json!(["x", "y", "z"]),
            ),
            (
                json!([p, SECOND]),
                json!({"args": ["run"]}),
                json!({"args": ["run", p, SECOND]}),
                json!({"args": ["run", "--more"]}),
                json!(["--more"]),
            ),
            (
                json!({p: p}),
                json!({"labels": {"k": "cilium"}}),
                json!({"labels": {"k": "cilium", p: p}}),
                json!({"labels": {"k": "cilium", "team": "7"}}),
                json!({"team": "7"}),
            ),
            (
                json!([{"name": p, "value": p}]),
                json!({"env": [{"name": "A", "value": "1"}]}),
                json!({"env": [{"name": "A", "value": "1"}, {"name": p, "value": p}]}),
                json!({"env": [{"name": "A", "value": "1"}, {"name": "B"}]}),
                json!([{"name": "B"}]),
            ),
        ] {
            assert_eq!(check(&probe, &base, &probed, &live), Some(value));
        }
    }
}
