//! The types of `metadata`, which cli-runtime checks on the client: a wrong one is an error before
//! anything is written, and never a field that is dropped (`metadataValidatingDecoder`).

use serde_json::Value;

/// What a field of `ObjectMeta` holds.
#[derive(Clone, Copy)]
enum Type {
    Text,
    Number,
    Texts,
    Map,
}

impl Type {
    /// Go's name of the type.
    const fn name(self) -> &'static str {
        match self {
            Self::Text => "string",
            Self::Number => "int64",
            Self::Texts => "[]string",
            Self::Map => "map[string]string",
        }
    }
}

/// Fields by name. Times, owner references and managed fields are left to the server.
const FIELDS: [(&str, Type); 11] = [
    ("annotations", Type::Map),
    ("deletionGracePeriodSeconds", Type::Number),
    ("finalizers", Type::Texts),
    ("generateName", Type::Text),
    ("generation", Type::Number),
    ("labels", Type::Map),
    ("name", Type::Text),
    ("namespace", Type::Text),
    ("resourceVersion", Type::Text),
    ("selfLink", Type::Text),
    ("uid", Type::Text),
];

/// The first fault in an object's metadata, in the words of Go's `encoding/json`.
pub(super) fn fault(object: &Value) -> Option<String> {
    let fields = match object.get("metadata") {
        None | Some(Value::Null) => return None,
        Some(Value::Object(fields)) => fields,
        Some(other) => {
            let found = word(other);
            return Some(format!(
                "json: cannot unmarshal {found} into Go struct field metadataOnlyObject.metadata of \
                 type v1.ObjectMeta"
            ));
        }
    };
    fields.iter().find_map(|(name, value)| {
        let (_, wanted) = FIELDS.iter().find(|(known, _)| known == name)?;
        let (found, wanted) = mismatch(value, *wanted)?;
        Some(format!(
            "json: cannot unmarshal {found} into Go struct field ObjectMeta.metadata.{name} of type \
             {wanted}"
        ))
    })
}

/// What is there and what should be, when these are not the same.
fn mismatch(value: &Value, wanted: Type) -> Option<(String, &'static str)> {
    let text = |value: &Value| match value {
        Value::String(_) | Value::Null => None,
        other => Some((word(other).to_owned(), Type::Text.name())),
    };
    match (wanted, value) {
        (_, Value::Null) => None,
        (Type::Text, value) => text(value),
        (Type::Number, Value::Number(number)) => {
            number.as_i64().is_none().then(|| (format!("number {number}"), wanted.name()))
        }
        (Type::Texts, Value::Array(items)) => items.iter().find_map(text),
        (Type::Map, Value::Object(map)) => map.values().find_map(text),
        (_, other) => Some((word(other).to_owned(), wanted.name())),
    }
}

/// Go's word for a JSON value (`json.UnmarshalTypeError.Value`).
const fn word(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::fault;

    #[test]
    fn types_of_metadata() {
        let of = |metadata| fault(&json!({ "metadata": metadata }));
        assert_eq!(
            of(json!({"name": "x", "labels": {"a": "b", "c": null}, "finalizers": []})),
            None
        );
        assert_eq!(
            of(json!({"labels": {"a": "b", "v": 7}})).as_deref(),
            Some(
                "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of \
                 type string"
            )
        );
        assert!(of(json!({"labels": "x"})).is_some_and(|text| text.ends_with("map[string]string")));
        assert!(of(json!({"generation": "x"})).is_some_and(|text| text.ends_with("int64")));
        assert!(of(json!("x")).is_some());
    }
}
