//! The leaves of an object: every place that holds a value of its own.
//!
//! Maps are followed. Lists with a merge key are followed item by item, as the API server merges
//! them; every other list is one leaf, as the API server replaces it. An empty map or list is a
//! leaf, a null is none.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use mergepatch::Schema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One step from an object to a leaf.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Step {
    /// Into a map.
    Key(String),
    /// To the item of a list that is merged by keys; of a list of plain values, the keys have
    /// the one entry `("", value)`.
    Item(Vec<(String, String)>),
}

/// The place of a leaf.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Path(pub Vec<Step>);

/// Who set a field, as `metadata.managedFields` says.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Manager {
    /// The field manager.
    pub name: String,
    /// The subresource through which it wrote; empty for the object itself.
    pub subresource: String,
}

/// A leaf with who set it.
#[derive(Clone, Debug, PartialEq)]
pub struct Leaf {
    /// What is there.
    pub value: Value,
    /// Who set it; several when they agree, none when nobody said.
    pub managers: Vec<Manager>,
}

/// The key below a list under which the order of its items stands: it counts, as in the variables
/// of a container, and a patch may change it alone.
pub(super) const ORDER: &str = "(order)";

/// All leaves of an object, by place.
pub type Leaves = BTreeMap<Path, Leaf>;

impl Path {
    /// The steps' names: keys of maps, nothing for items.
    pub fn keys(&self) -> Vec<&str> {
        self.0
            .iter()
            .map(|step| match step {
                Step::Key(key) => key.as_str(),
                Step::Item(_) => "[]",
            })
            .collect()
    }

    /// Whether the place lies at or below these keys (`[]` for any item).
    pub fn starts_with(&self, keys: &[&str]) -> bool {
        let own = self.keys();
        own.len() >= keys.len() && own.iter().zip(keys).all(|(a, b)| a == b)
    }

    /// The last key of a map on the way; empty when there is none.
    pub fn last_key(&self) -> &str {
        let key = self.0.iter().rev().find_map(|step| match step {
            Step::Key(key) => Some(key.as_str()),
            Step::Item(_) => None,
        });
        key.unwrap_or_default()
    }

    /// Whether it stands for the order of a list.
    pub fn is_order(&self) -> bool {
        matches!(self.0.last(), Some(Step::Key(key)) if key == ORDER)
    }

    /// Whether `self` is `other` or above it.
    pub fn is_above(&self, other: &Self) -> bool {
        other.0.starts_with(&self.0)
    }
}

impl std::fmt::Display for Path {
    /// `spec.template.spec.containers[name=cilium-agent].args`, `data["ca.crt"]`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut text = String::new();
        for step in &self.0 {
            match step {
                Step::Key(key) if is_plain(key) => {
                    if !text.is_empty() {
                        text.push('.');
                    }
                    text.push_str(key);
                }
                Step::Key(key) => {
                    let _ = write!(text, "[{}]", Value::from(key.as_str()));
                }
                Step::Item(keys) => {
                    let parts: Vec<String> =
                        keys.iter()
                            .map(|(key, value)| {
                                if key.is_empty() {
                                    value.clone()
                                } else {
                                    format!("{key}={value}")
                                }
                            })
                            .collect();
                    let _ = write!(text, "[{}]", parts.join(","));
                }
            }
        }
        f.write_str(&text)
    }
}

fn is_plain(key: &str) -> bool {
    !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
}

/// The leaves of an object. `schema` tells which lists are merged by key; without one no list is.
pub fn leaves(object: &Value, schema: Option<Schema<'_>>) -> Leaves {
    let entries = owners(object);
    let nodes: Nodes<'_> = entries.iter().map(|(manager, fields)| (manager, *fields)).collect();
    let mut walk = Walk { path: Vec::new(), leaves: Leaves::new() };
    walk.value(object, schema, &nodes, MAX_DEPTH);
    walk.leaves
}

/// Deeper than any server lets an object be.
const MAX_DEPTH: usize = 200;

type Nodes<'a> = Vec<(&'a Manager, &'a Value)>;

fn owners(object: &Value) -> Vec<(Manager, &Value)> {
    let entries = object.pointer("/metadata/managedFields").and_then(Value::as_array);
    let text = |entry: &Value, field| {
        entry.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    entries
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let manager =
                Manager { name: text(entry, "manager"), subresource: text(entry, "subresource") };
            Some((manager, entry.get("fieldsV1")?))
        })
        .collect()
}

struct Walk {
    path: Vec<Step>,
    leaves: Leaves,
}

impl Walk {
    fn leaf(&mut self, value: &Value, nodes: &Nodes<'_>) {
        if value.is_null() {
            return;
        }
        let mut managers: Vec<Manager> = nodes.iter().map(|(owner, _)| (*owner).clone()).collect();
        managers.sort();
        managers.dedup();
        self.leaves.insert(Path(self.path.clone()), Leaf { value: value.clone(), managers });
    }

    fn value(
        &mut self,
        value: &Value,
        schema: Option<Schema<'_>>,
        nodes: &Nodes<'_>,
        depth: usize,
    ) {
        match value {
            Value::Object(map) if !map.is_empty() && depth > 0 => {
                for (key, below) in map {
                    self.path.push(Step::Key(key.clone()));
                    let nodes = narrow(nodes, |name| name.strip_prefix("f:") == Some(key));
                    self.field(key, below, schema, &nodes, depth - 1);
                    self.path.pop();
                }
            }
            _ => self.leaf(value, nodes),
        }
    }

    fn field(
        &mut self,
        key: &str,
        value: &Value,
        schema: Option<Schema<'_>>,
        nodes: &Nodes<'_>,
        depth: usize,
    ) {
        let Value::Array(items) = value else {
            let below = schema.and_then(|schema| schema.object(key).ok());
            return self.value(value, below.map(|(schema, _)| schema), nodes, depth);
        };
        let Some((below, meta)) = schema.and_then(|schema| schema.list(key).ok()) else {
            return self.leaf(value, nodes);
        };
        let merged = meta.strategies.split(',').any(|word| word == "merge");
        let Some(keys) = item_keys(items, meta.merge_key).filter(|_| merged) else {
            return self.leaf(value, nodes);
        };
        if items.len() > 1 {
            let order: Vec<Value> = keys
                .iter()
                .map(|keys| {
                    let texts: Vec<&str> = keys.iter().map(|(_, text)| text.as_str()).collect();
                    texts.join("/").into()
                })
                .collect();
            self.path.push(Step::Key(ORDER.to_owned()));
            self.leaf(&Value::Array(order), &Nodes::new());
            self.path.pop();
        }
        for (keys, item) in keys.into_iter().zip(items) {
            let nodes = narrow(nodes, |name| is_item(name, item));
            self.path.push(Step::Item(keys));
            if item.is_object() {
                self.value(item, Some(below), &nodes, depth.saturating_sub(1));
            } else {
                self.leaf(item, &nodes);
            }
            self.path.pop();
        }
    }
}

/// The managers that set what lies below; one that set a whole map has everything in it.
fn narrow<'a>(nodes: &Nodes<'a>, is_it: impl Fn(&str) -> bool) -> Nodes<'a> {
    nodes
        .iter()
        .filter_map(|(manager, node)| match node {
            Value::Object(map) if map.keys().all(|key| key == ".") => {
                // `{}` stands for the whole, `{".": {}}` for the mere presence.
                map.is_empty().then_some((*manager, *node))
            }
            Value::Object(map) => {
                map.iter().find(|(name, _)| is_it(name)).map(|(_, below)| (*manager, below))
            }
            _ => None,
        })
        .collect()
}

/// Whether a name of `fieldsV1` stands for a list's item: `k:{"name":"x"}` or `v:"x"`.
fn is_item(name: &str, item: &Value) -> bool {
    if let Some(text) = name.strip_prefix("v:") {
        return serde_json::from_str::<Value>(text).is_ok_and(|value| value == *item);
    }
    let Some(text) = name.strip_prefix("k:") else { return false };
    let Ok(keys) = serde_json::from_str::<Map<String, Value>>(text) else { return false };
    keys.iter().all(|(key, value)| {
        item.get(key) == Some(value)
            // Defaulted keys stand in managed fields and may be missing in the item.
            || key == "protocol" && item.get(key).is_none() && value == "TCP"
    })
}

/// Fields that tell items apart when the merge key alone does not, as the ports 53/TCP and 53/UDP.
const SECOND_KEYS: [&str; 2] = ["protocol", "name"];

/// The keys of a list's items; none when an item has no key or two have the same.
fn item_keys(items: &[Value], merge_key: &str) -> Option<Vec<Vec<(String, String)>>> {
    if merge_key.is_empty() {
        let plain = |item: &Value| match item {
            Value::Object(_) | Value::Array(_) | Value::Null => None,
            item => Some(vec![(String::new(), plain_text(item))]),
        };
        return distinct(items.iter().map(plain).collect::<Option<Vec<_>>>()?);
    }
    let by = |names: &[&str]| -> Option<Vec<Vec<(String, String)>>> {
        items
            .iter()
            .map(|item| {
                let mut keys = vec![(merge_key.to_owned(), plain_text(item.get(merge_key)?))];
                for name in names {
                    let default = if *name == "protocol" { "TCP" } else { "" };
                    let text = item.get(*name).map_or_else(|| default.to_owned(), plain_text);
                    keys.push(((*name).to_owned(), text));
                }
                Some(keys)
            })
            .collect()
    };
    distinct(by(&[])?).or_else(|| {
        let [first, second] = SECOND_KEYS;
        distinct(by(&[first])?).or_else(|| distinct(by(&[first, second])?))
    })
}

fn distinct(keys: Vec<Vec<(String, String)>>) -> Option<Vec<Vec<(String, String)>>> {
    let set: std::collections::BTreeSet<_> = keys.iter().collect();
    if set.len() == keys.len() { Some(keys) } else { None }
}

fn plain_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Drops keys that hold null, at every depth of maps and lists: a null in a patch would delete
/// what is live.
pub fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, value| !value.is_null());
            map.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

/// Removes the leaf at a place; whether something was there. Maps that become empty stay.
pub fn remove(object: &mut Value, path: &Path) -> bool {
    let Some((last, steps)) = path.0.split_last() else { return false };
    let mut at = object;
    for step in steps {
        let Some(next) = descend(at, step) else { return false };
        at = next;
    }
    match (last, at) {
        (Step::Key(key), Value::Object(map)) => map.remove(key).is_some(),
        (step @ Step::Item(_), Value::Array(items)) => {
            let before = items.len();
            items.retain(|item| !is_at(step, item));
            items.len() < before
        }
        _ => false,
    }
}

/// Replaces what is at a place; whether something was there.
pub fn replace(object: &mut Value, path: &Path, value: &Value) -> bool {
    let mut at = object;
    for step in &path.0 {
        let Some(next) = descend(at, step) else { return false };
        at = next;
    }
    *at = value.clone();
    true
}

/// What a step leads to; none when there is nothing.
pub(crate) fn descend<'a>(value: &'a mut Value, step: &Step) -> Option<&'a mut Value> {
    match (step, value) {
        (Step::Key(key), Value::Object(map)) => map.get_mut(key),
        (step @ Step::Item(_), Value::Array(items)) => {
            items.iter_mut().find(|item| is_at(step, item))
        }
        _ => None,
    }
}

/// Whether a list's item is the one that a step leads to.
pub(super) fn is_at(step: &Step, item: &Value) -> bool {
    let Step::Item(keys) = step else { return false };
    keys.iter().all(|(key, wanted)| {
        if key.is_empty() {
            return plain_text(item) == *wanted;
        }
        let default = if key == "protocol" { "TCP" } else { "" };
        item.get(key).map_or_else(|| default.to_owned(), plain_text) == *wanted
    })
}

#[cfg(test)]
mod tests {
    use mergepatch::{Schemas as _, embedded};
    use serde_json::json;

    use super::{Path, leaves, remove};

    fn paths(object: &serde_json::Value) -> Vec<String> {
        let kind = object.get("kind").and_then(|kind| kind.as_str()).unwrap_or_default();
        let api = object.get("apiVersion").and_then(|v| v.as_str()).unwrap_or_default();
        let found = leaves(object, embedded().schema(api, kind));
        found
            .iter()
            .map(|(path, leaf)| {
                let names: Vec<&str> = leaf.managers.iter().map(|m| m.name.as_str()).collect();
                format!("{path} {} {}", leaf.value, names.join("+"))
            })
            .collect()
    }

    #[test]
    fn lists_by_merge_key_and_whole() {
        let object = json!({
            "apiVersion": "apps/v1", "kind": "DaemonSet",
            "metadata": {"managedFields": [
                {"manager": "helm", "fieldsV1": {"f:spec": {"f:template": {"f:spec": {"f:containers": {
                    "k:{\"name\":\"a\"}": {".": {}, "f:name": {}, "f:args": {}}}}}}}},
                {"manager": "kubectl", "fieldsV1": {"f:spec": {"f:template": {"f:spec": {"f:containers": {
                    "k:{\"name\":\"a\"}": {"f:env": {"k:{\"name\":\"X\"}": {".": {}, "f:name": {}, "f:value": {}}}}}}}}}},
            ]},
            "spec": {"template": {"spec": {"containers": [{
                "name": "a", "args": ["x", "y"], "env": [{"name": "X", "value": "1"}],
                "ports": [{"containerPort": 53}, {"containerPort": 53, "protocol": "UDP"}],
                "resources": {},
            }]}}},
        });
        let mut found = paths(&object);
        found.retain(|line| line.starts_with("spec"));
        let at = "spec.template.spec.containers[name=a]";
        assert_eq!(
            found,
            [
                format!(r#"{at}.args ["x","y"] helm"#),
                format!(r#"{at}.env[name=X].name "X" kubectl"#),
                format!(r#"{at}.env[name=X].value "1" kubectl"#),
                format!(r#"{at}.name "a" helm"#),
                format!("{at}.ports[\"(order)\"] [\"53/TCP\",\"53/UDP\"] "),
                format!("{at}.ports[containerPort=53,protocol=TCP].containerPort 53 "),
                format!("{at}.ports[containerPort=53,protocol=UDP].containerPort 53 "),
                format!(r#"{at}.ports[containerPort=53,protocol=UDP].protocol "UDP" "#),
                format!("{at}.resources {{}} "),
            ]
        );
    }

    #[test]
    fn every_leaf_can_be_removed_by_its_path() {
        let object = json!({
            "apiVersion": "v1", "kind": "Service",
            "spec": {"ports": [{"port": 53}, {"port": 53, "protocol": "UDP"}], "selector": {"a.b/c": "d"}},
        });
        let schema = embedded().schema("v1", "Service");
        let all: Vec<Path> =
            leaves(&object, schema).into_keys().filter(|path| !path.is_order()).collect();
        assert_eq!(all.len(), 6);
        for path in all {
            let mut changed = object.clone();
            assert!(remove(&mut changed, &path), "{path}");
            assert!(!leaves(&changed, schema).contains_key(&path), "{path}");
        }
    }
}
