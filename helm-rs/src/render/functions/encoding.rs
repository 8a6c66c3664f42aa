//! Base64, Base32, JSON and YAML: sprig's encoders, and Helm's own in their place
//! (`pkg/engine/funcs.go`).
//!
//! Helm's functions swallow errors: the writers give an empty string, and the readers put
//! the error's text where the result would be.

use gotemplate::value::{LIST_ANY, MAP_ANY};
use gotemplate::{CallError, Function, FunctionMap, List, Map, Str, Value};
use goyaml::{LimitError, Limits, json};

use super::base::{base32_decode, base32_encode, base64_decode, base64_encode};
use crate::render::convert::{Json, Yaml, from_items, from_map, from_tree};

pub(super) fn register(functions: &mut FunctionMap) {
    functions.insert("b64enc", Function::new(|text: Str| base64_encode(&text)));
    functions.insert(
        "b64dec",
        Function::new(|text: Str| {
            base64_decode(&text).unwrap_or_else(|error| error.to_string().into_bytes())
        }),
    );
    functions.insert("b32enc", Function::new(|text: Str| base32_encode(&text)));
    functions.insert(
        "b32dec",
        Function::new(|text: Str| {
            base32_decode(&text).unwrap_or_else(|error| error.to_string().into_bytes())
        }),
    );

    functions.insert("toJson", Function::new(|value: Value| or_empty(json::to_json(Json(value)))));
    functions.insert(
        "mustToJson",
        Function::new(|value: Value| {
            json::to_json(Json(value)).map_err(|error| json_error(&error))
        }),
    );
    functions.insert(
        "toPrettyJson",
        Function::new(|value: Value| or_empty(json::to_json_indent(Json(value), "", "  "))),
    );
    functions.insert(
        "mustToPrettyJson",
        Function::new(|value: Value| {
            json::to_json_indent(Json(value), "", "  ").map_err(|error| json_error(&error))
        }),
    );
    for name in ["toRawJson", "mustToRawJson"] {
        functions.insert(
            name,
            Function::new(|value: Value| {
                json::to_json_raw(Json(value)).map_err(|error| json_error(&error))
            }),
        );
    }
    functions.insert("fromJson", Function::new(from_json));
    functions.insert("fromJsonArray", Function::new(from_json_array));
    functions.insert(
        "mustFromJson",
        Function::new(|text: Str| {
            json::from_json(&text, &Limits::default())
                .map(from_tree)
                .map_err(|error| json_error(&error))
        }),
    );

    functions.insert(
        "toYaml",
        Function::new(|value: Value| without_line_break(goyaml::to_yaml(Json(value)))),
    );
    functions.insert(
        "toYamlPretty",
        Function::new(|value: Value| without_line_break(goyaml::to_yaml_pretty(Yaml(value)))),
    );
    functions.insert("fromYaml", Function::new(from_yaml));
    functions.insert("fromYamlArray", Function::new(from_yaml_array));
}

/// Go's text of an error of `encoding/json`.
fn json_error(error: &json::Error) -> CallError {
    match error {
        // Go knows no depth here but finds cycles.
        json::Error::Limit(LimitError::Depth { .. }) => CallError::new(
            "json: unsupported value: encountered a cycle via map[string]interface {}",
        ),
        error => CallError::from(error.to_string()),
    }
}

/// The text; empty for an error of Go's. A bound that Go does not have ends the call.
fn or_empty(text: Result<String, json::Error>) -> Result<String, CallError> {
    match text {
        Err(error @ json::Error::Limit(LimitError::Output { .. })) => Err(json_error(&error)),
        text => Ok(text.unwrap_or_default()),
    }
}

/// One line break less; empty for an error, under the same rule.
fn without_line_break(text: Result<String, goyaml::Error>) -> Result<String, CallError> {
    let mut text = match text {
        Err(goyaml::Error::Marshaling(error)) => or_empty(Err(error))?,
        Err(error) if error.is_limit() => return Err(CallError::from(error.to_string())),
        text => text.unwrap_or_default(),
    };
    if text.ends_with('\n') {
        text.pop();
    }
    Ok(text)
}

/// Helm's `fromJSON`: what could be read stays when there is an error.
fn from_json(text: Str) -> Map {
    let (map, error) = json::from_json_map(&text, MAP_ANY.name, &Limits::default());
    if error.is_none() && map.is_empty() && is_null(&text) {
        return Map::nil(&MAP_ANY);
    }
    let map = from_map(map);
    if let Some(error) = error {
        map.set("Error".into(), error.to_string().into());
    }
    map
}

/// Whether a JSON text without errors is `null`, which Go decodes to a nil map or slice.
fn is_null(text: &[u8]) -> bool {
    text.trim_ascii() == b"null"
}

/// Helm's `fromJSONArray`.
fn from_json_array(text: Str) -> List {
    match json::from_json_seq(&text, &Limits::default()) {
        Ok(items) if items.is_empty() && is_null(&text) => List::nil(&LIST_ANY),
        Ok(items) => from_items(items),
        Err(error) => List::any([error.to_string().into()]),
    }
}

/// Helm's `fromYAML`.
fn from_yaml(text: Str) -> Map {
    let limits = Limits::default();
    match goyaml::from_yaml_map(&text, MAP_ANY.name, &limits) {
        Ok(map) => from_map(map),
        Err(error) => {
            let map = Map::any(gotemplate::value::Entries::new());
            map.set("Error".into(), error.to_string().into());
            map
        }
    }
}

/// Helm's `fromYAMLArray`.
fn from_yaml_array(text: Str) -> List {
    match goyaml::from_yaml_seq(&text, &Limits::default()) {
        Ok(items) => from_items(items),
        Err(error) => List::any([error.to_string().into()]),
    }
}
