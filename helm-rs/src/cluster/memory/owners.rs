//! Field managers: who wrote which leaf last (`metadata.managedFields`).
//!
//! Kept as a server keeps them for writes that are no applies, with one simplification: items of
//! lists are told apart only where the embedded patch metadata names a merge key for them; other
//! lists are one leaf.

use std::collections::BTreeSet;

use mergepatch::{Schema, Schemas as _};
use serde_json::{Map, Value, json};

use super::state::{metadata, set};

/// Who writes, and when.
pub(super) struct Writer<'a> {
    pub(super) manager: &'a str,
    pub(super) time: Value,
}

/// A leaf's path: `f:NAME`, `k:{…}` or `v:…` steps.
type Path = Vec<String>;

/// Deeper than this, a value is one leaf.
const DEPTH: usize = 64;

/// Writes down that the writer set what differs from `before`.
pub(super) fn record(after: &mut Value, before: Option<&Value>, writer: &Writer<'_>) {
    let leaves_after = leaves(after);
    let leaves_before = before.map(leaves).unwrap_or_default();
    let set_now: BTreeSet<Path> = leaves_after
        .iter()
        .filter(|(path, value)| !leaves_before.contains(&((*path).clone(), (*value).clone())))
        .map(|(path, _)| path.clone())
        .collect();
    let there: BTreeSet<&Path> = leaves_after.iter().map(|(path, _)| path).collect();
    let gone: BTreeSet<&Path> =
        leaves_before.iter().map(|(path, _)| path).filter(|path| !there.contains(path)).collect();
    let api_version = after.get("apiVersion").cloned().unwrap_or_default();
    let entries = after.pointer("/metadata/managedFields").and_then(Value::as_array);
    let mut entries: Vec<Value> = entries.cloned().unwrap_or_default();
    let mut found = false;
    for entry in &mut entries {
        let Some(mut fields) = entry.get("fieldsV1").map(paths) else { continue };
        let own = entry.get("manager").and_then(Value::as_str) == Some(writer.manager)
            && entry.get("operation").and_then(Value::as_str) == Some("Update")
            && entry.get("subresource").is_none();
        let known = fields.len();
        fields.retain(|path| !gone.contains(path));
        if own {
            found = true;
            fields.extend(set_now.iter().cloned());
        } else {
            // What somebody else sets is theirs, unless it was applied.
            let applied = entry.get("operation").and_then(Value::as_str) == Some("Apply");
            fields.retain(|path| applied || !set_now.contains(path));
        }
        if fields.len() != known || own && !set_now.is_empty() {
            entry["fieldsV1"] = tree(&fields);
            if own {
                entry["time"] = writer.time.clone();
            }
        }
    }
    entries.retain(|entry| {
        entry.get("fieldsV1").and_then(Value::as_object).is_none_or(|fields| !fields.is_empty())
    });
    if !found && !set_now.is_empty() {
        entries.push(json!({
            "manager": writer.manager,
            "operation": "Update",
            "apiVersion": api_version,
            "time": writer.time,
            "fieldsType": "FieldsV1",
            "fieldsV1": tree(&set_now),
        }));
    }
    if entries.is_empty() {
        set(after, "managedFields", Value::Null);
    } else if let Some(metadata) = metadata(after) {
        metadata.insert("managedFields".to_owned(), entries.into());
    }
}

/// The leaves that managers can own, with their values.
fn leaves(object: &Value) -> BTreeSet<(Path, String)> {
    let mut found = BTreeSet::new();
    let text = |field| object.get(field).and_then(Value::as_str).unwrap_or_default();
    let schema = mergepatch::embedded().schema(text("apiVersion"), text("kind"));
    for (name, value) in object.as_object().into_iter().flatten() {
        match name.as_str() {
            "apiVersion" | "kind" => {}
            "metadata" => {
                for (name, value) in value.as_object().into_iter().flatten() {
                    if matches!(
                        name.as_str(),
                        "labels"
                            | "annotations"
                            | "finalizers"
                            | "ownerReferences"
                            | "generateName"
                    ) {
                        let path = vec!["f:metadata".to_owned(), format!("f:{name}")];
                        walk(path, value, None, &mut found);
                    }
                }
            }
            _ => field(Vec::new(), name, value, schema, &mut found),
        }
    }
    found
}

fn field(
    mut path: Path,
    name: &str,
    value: &Value,
    schema: Option<Schema<'_>>,
    found: &mut BTreeSet<(Path, String)>,
) {
    path.push(format!("f:{name}"));
    if let Value::Array(items) = value {
        if let Some((item_schema, meta)) = schema.and_then(|schema| schema.list(name).ok())
            && !meta.merge_key.is_empty()
        {
            for item in items {
                let mut path = path.clone();
                let key = item.get(meta.merge_key).cloned().unwrap_or_default();
                path.push(format!("k:{}", json!({ meta.merge_key: key })));
                walk(path, item, Some(item_schema), found);
            }
            return;
        }
        found.insert((path, value.to_string()));
        return;
    }
    let inner = schema.and_then(|schema| schema.object(name).ok()).map(|(schema, _)| schema);
    walk(path, value, inner, found);
}

fn walk(
    path: Path,
    value: &Value,
    schema: Option<Schema<'_>>,
    found: &mut BTreeSet<(Path, String)>,
) {
    match value {
        Value::Object(fields) if !fields.is_empty() && path.len() < DEPTH => {
            for (name, value) in fields {
                field(path.clone(), name, value, schema, found);
            }
        }
        Value::Array(items) if path.last().is_some_and(|step| step == "f:finalizers") => {
            for item in items {
                let mut path = path.clone();
                path.push(format!("v:{item}"));
                found.insert((path, String::new()));
            }
        }
        value => {
            found.insert((path, value.to_string()));
        }
    }
}

/// The leaves of a `fieldsV1` tree.
fn paths(tree: &Value) -> BTreeSet<Path> {
    fn collect(path: &mut Path, tree: &Value, found: &mut BTreeSet<Path>) {
        match tree.as_object().filter(|fields| !fields.is_empty() && path.len() < DEPTH) {
            None => {
                found.insert(path.clone());
            }
            Some(fields) => {
                for (step, below) in fields {
                    if step == "." {
                        continue;
                    }
                    path.push(step.clone());
                    collect(path, below, found);
                    path.pop();
                }
            }
        }
    }
    let mut found = BTreeSet::new();
    if tree.as_object().is_some_and(|fields| !fields.is_empty()) {
        collect(&mut Vec::new(), tree, &mut found);
    }
    found
}

fn tree(paths: &BTreeSet<Path>) -> Value {
    let mut root = Map::new();
    for path in paths {
        let mut place = &mut root;
        for step in path {
            let next = place.entry(step.clone()).or_insert_with(|| Value::Object(Map::new()));
            let Value::Object(below) = next else { break };
            place = below;
        }
    }
    Value::Object(root)
}
