//! Merge patches (RFC 7386) and JSON patches (RFC 6902).

use serde_json::{Map, Value};

use crate::cluster::Status;

/// Objects nested deeper than this are not patched.
const DEPTH: usize = 512;

/// Applies a merge patch.
pub(super) fn merge(target: &mut Value, patch: &Value) -> Result<(), Status> {
    merge_at(target, patch, 0)
}

fn merge_at(target: &mut Value, patch: &Value, depth: usize) -> Result<(), Status> {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return Ok(());
    };
    if depth > DEPTH {
        return Err(super::status::bad_request("the patch is nested too deeply"));
    }
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Some(fields) = target.as_object_mut() else { return Ok(()) };
    for (name, change) in patch {
        if change.is_null() {
            fields.remove(name);
        } else {
            merge_at(fields.entry(name.clone()).or_insert(Value::Null), change, depth + 1)?;
        }
    }
    Ok(())
}

/// Applies a JSON patch. Whatever fails, the server answers the same
/// (`endpoints/handlers/patch.go`).
pub(super) fn operations(target: &mut Value, patch: &Value) -> Result<(), Status> {
    let operations = patch.as_array().ok_or_else(|| {
        super::status::bad_request(
            "error decoding patch: json: cannot unmarshal object into Go value of type \
             jsonpatch.Patch",
        )
    })?;
    for operation in operations {
        operate(target, operation).ok_or_else(|| {
            Status::new(
                422,
                "Invalid",
                "the server rejected our request due to an error in our request",
            )
        })?;
    }
    Ok(())
}

fn operate(target: &mut Value, operation: &Value) -> Option<()> {
    let text = |field| operation.get(field).and_then(Value::as_str);
    let path = text("path")?;
    match text("op")? {
        "add" => add(target, path, operation.get("value")?.clone()),
        "remove" => remove(target, path).map(drop),
        "replace" => {
            *target.pointer_mut(path)? = operation.get("value")?.clone();
            Some(())
        }
        "move" => {
            let moved = remove(target, text("from")?)?;
            add(target, path, moved)
        }
        "copy" => {
            let copied = target.pointer(text("from")?)?.clone();
            add(target, path, copied)
        }
        "test" => (target.pointer(path) == operation.get("value")).then_some(()),
        _ => None,
    }
}

/// The parent of a path, and its last part with its escapes undone.
fn parent<'a>(target: &'a mut Value, path: &str) -> Option<(&'a mut Value, String)> {
    let (parent, last) = path.rsplit_once('/')?;
    Some((target.pointer_mut(parent)?, last.replace("~1", "/").replace("~0", "~")))
}

fn add(target: &mut Value, path: &str, value: Value) -> Option<()> {
    if path.is_empty() {
        *target = value;
        return Some(());
    }
    match parent(target, path)? {
        (Value::Object(fields), name) => {
            fields.insert(name, value);
        }
        (Value::Array(items), index) if index == "-" => items.push(value),
        (Value::Array(items), index) => {
            let index: usize = index.parse().ok()?;
            if index > items.len() {
                return None;
            }
            items.insert(index, value);
        }
        _ => return None,
    }
    Some(())
}

fn remove(target: &mut Value, path: &str) -> Option<Value> {
    match parent(target, path)? {
        (Value::Object(fields), name) => fields.remove(&name),
        (Value::Array(items), index) => {
            let index: usize = index.parse().ok()?;
            (index < items.len()).then(|| items.remove(index))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{merge, operations};

    #[test]
    fn patches_apply() {
        let mut object = json!({ "a": { "b": 1, "c": [1, 2] } });
        merge(&mut object, &json!({ "a": { "b": null, "d": { "e": null, "f": 1 } } })).unwrap();
        assert_eq!(object, json!({ "a": { "c": [1, 2], "d": { "f": 1 } } }));
        let patch = json!([
            { "op": "test", "path": "/a/d/f", "value": 1 },
            { "op": "add", "path": "/a/c/1", "value": 9 },
            { "op": "add", "path": "/a/c/-", "value": 10 },
            { "op": "move", "from": "/a/d/f", "path": "/x~1y" },
            { "op": "remove", "path": "/a/d" },
        ]);
        operations(&mut object, &patch).unwrap();
        assert_eq!(object, json!({ "a": { "c": [1, 9, 2, 10] }, "x/y": 1 }));
        assert!(operations(&mut object, &json!([{ "op": "remove", "path": "/q" }])).is_err());
        assert!(operations(&mut object, &json!([{ "op": "add", "path": "/a/c/9", "value": 1 }])).is_err());
    }
}
