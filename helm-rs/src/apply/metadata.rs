//! The types of `metadata`, which cli-runtime checks on the client: a wrong one is an error before
//! anything is written, and never a field that is dropped (`metadataValidatingDecoder`).

use serde_json::{Map, Value};

use crate::render::time::{Time, Zone};

/// What a field holds.
#[derive(Clone, Copy)]
enum Type {
    /// A text, with Go's name of its type.
    Text(&'static str),
    Bool,
    Number,
    Texts,
    Map,
    Time,
    Structs(&'static Struct),
}

/// A struct of Go's `meta/v1`.
struct Struct {
    name: &'static str,
    fields: &'static [(&'static str, Type)],
}

const STRING: Type = Type::Text("string");

/// `metav1.ObjectMeta`
static OBJECT_META: Struct = Struct {
    name: "ObjectMeta",
    fields: &[
        ("annotations", Type::Map),
        ("creationTimestamp", Type::Time),
        ("deletionGracePeriodSeconds", Type::Number),
        ("deletionTimestamp", Type::Time),
        ("finalizers", Type::Texts),
        ("generateName", STRING),
        ("generation", Type::Number),
        ("labels", Type::Map),
        ("managedFields", Type::Structs(&MANAGED_FIELDS)),
        ("name", STRING),
        ("namespace", STRING),
        ("ownerReferences", Type::Structs(&OWNER_REFERENCE)),
        ("resourceVersion", STRING),
        ("selfLink", STRING),
        ("uid", Type::Text("types.UID")),
    ],
};

/// `metav1.OwnerReference`
static OWNER_REFERENCE: Struct = Struct {
    name: "OwnerReference",
    fields: &[
        ("apiVersion", STRING),
        ("blockOwnerDeletion", Type::Bool),
        ("controller", Type::Bool),
        ("kind", STRING),
        ("name", STRING),
        ("uid", Type::Text("types.UID")),
    ],
};

/// `metav1.ManagedFieldsEntry`
static MANAGED_FIELDS: Struct = Struct {
    name: "ManagedFieldsEntry",
    fields: &[
        ("apiVersion", STRING),
        ("fieldsType", STRING),
        ("manager", STRING),
        ("operation", Type::Text("v1.ManagedFieldsOperationType")),
        ("subresource", STRING),
        ("time", Type::Time),
    ],
};

/// What is wrong with a value.
enum Fault {
    /// It has another type: decoding goes on, and the first of these is told at the end.
    Type(String),
    /// It cannot be read by its type's own decoder, which ends everything.
    End(String),
}

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
    let mut first = None;
    for fault in faults(fields, &OBJECT_META, "metadata") {
        match fault {
            Fault::End(text) => return Some(text),
            Fault::Type(text) => first = first.or(Some(text)),
        }
    }
    first
}

/// All faults of a struct's fields, in their order.
fn faults(fields: &Map<String, Value>, of: &Struct, path: &str) -> Vec<Fault> {
    let mut found = Vec::new();
    for (name, value) in fields {
        let known = of.fields.iter().find(|(known, _)| known == name);
        if let Some((_, wanted)) = known.filter(|_| !value.is_null()) {
            field(value, *wanted, of, &format!("{path}.{name}"), &mut found);
        }
    }
    found
}

fn field(value: &Value, wanted: Type, of: &Struct, path: &str, found: &mut Vec<Fault>) {
    let place = format!("Go struct field {}.{path}", of.name);
    let other = |what: &str, wanted: &str| {
        Fault::Type(format!("json: cannot unmarshal {what} into {place} of type {wanted}"))
    };
    let texts = |items: &mut dyn Iterator<Item = &Value>, found: &mut Vec<Fault>| {
        let wrong = items.filter(|item| !item.is_string() && !item.is_null());
        found.extend(wrong.map(|item| other(word(item), "string")));
    };
    match (wanted, value) {
        (Type::Text(_) | Type::Time, Value::String(text)) => {
            if matches!(wanted, Type::Time)
                && let Err(error) = Time::parse(RFC3339, text, &Zone::utc())
            {
                found.push(Fault::End(error.to_string()));
            }
        }
        (Type::Text(name), value) => found.push(other(word(value), name)),
        // A time decodes itself from a text.
        (Type::Time, value) => {
            let (Fault::Type(text) | Fault::End(text)) = other(word(value), "string");
            found.push(Fault::End(text));
        }
        (Type::Bool, Value::Bool(_)) => {}
        (Type::Bool, value) => found.push(other(word(value), "bool")),
        (Type::Number, Value::Number(number)) => {
            if number.as_i64().is_none() {
                found.push(other(&format!("number {number}"), "int64"));
            }
        }
        (Type::Number, value) => found.push(other(word(value), "int64")),
        (Type::Texts, Value::Array(items)) => texts(&mut items.iter(), found),
        (Type::Texts, value) => found.push(other(word(value), "[]string")),
        (Type::Map, Value::Object(map)) => texts(&mut map.values(), found),
        (Type::Map, value) => found.push(other(word(value), "map[string]string")),
        (Type::Structs(inner), Value::Array(items)) => {
            for item in items {
                match item {
                    Value::Null => {}
                    Value::Object(fields) => found.extend(faults(fields, inner, path)),
                    item => found.push(other(word(item), &format!("v1.{}", inner.name))),
                }
            }
        }
        (Type::Structs(inner), value) => {
            found.push(other(word(value), &format!("[]v1.{}", inner.name)));
        }
    }
}

const RFC3339: &str = "2006-01-02T15:04:05Z07:00";

/// Go's word for a JSON value (`json.UnmarshalTypeError.Value`).
pub(super) const fn word(value: &Value) -> &'static str {
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
