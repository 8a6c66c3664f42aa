//! What records say of themselves, and what looks like a part of one.

use bstr::ByteSlice;
use goyaml::{Map, Value};

/// The type of Helm's Secrets (`pkg/storage/driver/secrets.go`).
const SECRET_TYPE: &str = "helm.sh/release.v1";
/// What names of record objects begin with (`makeKey` in `pkg/storage/storage.go`).
pub(super) const NAME_PREFIX: &str = "sh.helm.release.v1.";

/// Whether a text has something in it that records say of themselves.
pub(super) fn mentions_record(text: &[u8]) -> bool {
    [NAME_PREFIX, SECRET_TYPE].iter().any(|word| text.contains_str(word)) || payloads(text) > 0
}

/// How many releases stand in a text under their key, in YAML or in JSON.
pub(super) fn payloads(text: &[u8]) -> usize {
    let is_payload = |at: &usize| {
        let rest = text.get(at + "release".len()..).unwrap_or_default();
        let rest =
            rest.trim_start_with(|c| matches!(c, '"' | '\'' | ':' | ' ' | '\t' | '\n' | '|'));
        PAYLOADS.iter().any(|start| rest.starts_with_str(start))
    };
    text.find_iter("release").filter(is_payload).count()
}

/// What gzip is in base64, and that in base64 again.
const PAYLOADS: [&str; 2] = ["H4sI", "SDRzS"];

/// Whether an object is meant to be a record: by name, type or owner.
pub(super) fn is_record(name: &str, secret_type: &str, labels: &[(String, String)]) -> bool {
    name.starts_with(NAME_PREFIX)
        || secret_type == SECRET_TYPE
        || labels.iter().any(|(key, value)| key == "owner" && value == "helm")
}

/// Whether an object of whatever kind has data as a record has.
pub(super) fn has_release(object: &Map) -> bool {
    ["data", "stringData"].iter().any(|field| {
        let data = object.get(*field).and_then(Value::as_map);
        data.and_then(|data| data.get("release")).is_some_and(|text| text.as_str().is_some())
    })
}

/// Whether a text within a value is what a record says of itself, or holds it.
pub(super) fn holds_record(value: &Value) -> bool {
    match value {
        Value::String(text) => {
            mentions_record(text) || PAYLOADS.iter().any(|start| text.starts_with_str(start))
        }
        Value::Seq(items) => items.iter().any(holds_record),
        Value::Map(map) => map.values().any(holds_record),
        _ => false,
    }
}

pub(super) fn has_other_fields(object: &Map) -> bool {
    object.keys().any(|key| !FIELDS.iter().any(|field| key == field))
}

/// The fields of Secrets and `ConfigMap`s.
const FIELDS: [&str; 8] =
    ["apiVersion", "kind", "metadata", "data", "binaryData", "stringData", "immutable", "type"];

pub(super) fn name_of(object: &Map) -> Option<&str> {
    let name = object.get("metadata").and_then(Value::as_map)?.get("name")?.as_str()?;
    name.to_str().ok()
}
