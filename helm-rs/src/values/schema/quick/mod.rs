//! A fast answer to "are these values valid?" for schemas that use only common keywords.
//!
//! Compiling a chart's schema takes longer than all the rest of a render, and nearly always the
//! values are valid. This module decides that case on the schema's own document. Whenever it is
//! not sure (a keyword it does not know, a schema that may be malformed, values that do not fit)
//! it says so, and the schema library decides and words the report.

use bstr::ByteSlice;
use goyaml::{Map, Value};
use serde_json::{Map as JsonMap, Value as Json};

/// Levels of schemas and references that are followed.
const MAX_DEPTH: usize = 100;

/// Integers up to here are exact as floats.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// Whether values are valid, if that is certain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Valid,
    Invalid,
    Unknown,
}

use Verdict::{Invalid, Unknown, Valid};

/// Whether a schema is well formed and uses only keywords that [`is_surely_valid`] understands.
pub(super) fn is_common(schema: &Json) -> bool {
    let draft = schema.get("$schema").map_or(Some("2020"), |draft| match draft.as_str()? {
        "https://json-schema.org/draft/2020-12/schema"
        | "https://json-schema.org/draft/2020-12/schema#" => Some("2020"),
        "http://json-schema.org/draft-07/schema"
        | "http://json-schema.org/draft-07/schema#"
        | "https://json-schema.org/draft-07/schema"
        | "https://json-schema.org/draft-07/schema#" => Some("7"),
        _ => None,
    });
    let Some(draft) = draft else { return false };
    is_common_at(schema, schema, draft == "7", 0)
}

/// Whether values are certainly valid. The schema must be one that [`is_common`] accepts.
pub(super) fn is_surely_valid(schema: &Json, values: &Map) -> bool {
    let quick = Quick { root: schema };
    match schema {
        Json::Bool(truth) => *truth,
        Json::Object(keywords) => {
            quick.object(keywords, values, 0) == Valid
                && quick.any(keywords, &Instance::Map(values), 0) == Valid
        }
        _ => false,
    }
}

fn is_common_at(schema: &Json, root: &Json, is_draft_7: bool, depth: usize) -> bool {
    let keywords = match schema {
        Json::Bool(_) => return true,
        Json::Object(keywords) if depth < MAX_DEPTH => keywords,
        _ => return false,
    };
    let below = |schema: &Json| is_common_at(schema, root, is_draft_7, depth + 1);
    let is_schemas = |value: &Json| value.as_object().is_some_and(|map| map.values().all(below));
    keywords.iter().all(|(keyword, value)| match keyword.as_str() {
        "$schema" => depth == 0,
        "type" => is_type(value),
        "properties" | "$defs" | "definitions" => is_schemas(value),
        "items" | "additionalProperties" => below(value),
        "anyOf" | "allOf" | "oneOf" => {
            value.as_array().is_some_and(|all| !all.is_empty() && all.iter().all(below))
        }
        "required" => is_unique_texts(value),
        "enum" => value.as_array().is_some_and(|all| !all.is_empty() && all.iter().all(is_plain)),
        "const" => is_plain(value),
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => is_exact(value),
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties" => {
            value.as_u64().is_some()
        }
        "$ref" => {
            // Before 2019 a reference switches off everything beside it.
            let alone =
                keywords.keys().all(|key| matches!(key.as_str(), "$ref" | "title" | "description"));
            (alone || !is_draft_7) && resolve(root, value).is_some()
        }
        "title" | "description" | "$comment" => value.is_string(),
        "default" => true,
        "examples" => value.is_array(),
        "readOnly" | "writeOnly" | "deprecated" => value.is_boolean(),
        other => !is_keyword(other),
    })
}

/// Keywords of any draft that are not handled here. Whatever else stands in a schema has no
/// meaning for validation.
fn is_keyword(word: &str) -> bool {
    matches!(
        word,
        "$id"
            | "id"
            | "$anchor"
            | "$dynamicRef"
            | "$dynamicAnchor"
            | "$recursiveRef"
            | "$recursiveAnchor"
            | "$vocabulary"
            | "patternProperties"
            | "propertyNames"
            | "dependencies"
            | "dependentRequired"
            | "dependentSchemas"
            | "unevaluatedProperties"
            | "unevaluatedItems"
            | "prefixItems"
            | "additionalItems"
            | "contains"
            | "minContains"
            | "maxContains"
            | "uniqueItems"
            | "multipleOf"
            | "pattern"
            | "format"
            | "not"
            | "if"
            | "then"
            | "else"
            | "contentEncoding"
            | "contentMediaType"
            | "contentSchema"
    )
}

fn is_type(value: &Json) -> bool {
    let known = |word: &Json| {
        matches!(
            word.as_str(),
            Some("null" | "boolean" | "integer" | "number" | "string" | "array" | "object")
        )
    };
    match value {
        Json::Array(words) => !words.is_empty() && words.iter().all(known) && is_unique(words),
        word => known(word),
    }
}

fn is_unique_texts(value: &Json) -> bool {
    value.as_array().is_some_and(|all| all.iter().all(Json::is_string) && is_unique(all))
}

fn is_unique(items: &[Json]) -> bool {
    items.iter().enumerate().all(|(index, item)| !items.iter().skip(index + 1).any(|i| i == item))
}

/// Scalars that can be compared without doubt.
fn is_plain(value: &Json) -> bool {
    match value {
        Json::Null | Json::Bool(_) | Json::String(_) => true,
        Json::Number(_) => is_exact(value),
        Json::Array(_) | Json::Object(_) => false,
    }
}

fn is_exact(value: &Json) -> bool {
    value.as_f64().is_some_and(|number| number.abs() < EXACT)
}

/// What a local reference names.
fn resolve<'a>(root: &'a Json, reference: &Json) -> Option<&'a Json> {
    let pointer = reference.as_str()?.strip_prefix('#')?;
    if pointer.contains('%') { None } else { root.pointer(pointer) }
}

/// A part of the values.
enum Instance<'a> {
    Map(&'a Map),
    Other(&'a Value),
}

struct Quick<'a> {
    root: &'a Json,
}

/// Gives up on the first keyword that is not certainly satisfied.
macro_rules! require {
    ($verdict:expr) => {
        match $verdict {
            Valid => {}
            other => return other,
        }
    };
}

const fn verdict(truth: bool) -> Verdict {
    if truth { Valid } else { Invalid }
}

impl Quick<'_> {
    fn value(&self, schema: &Json, value: &Value, depth: usize) -> Verdict {
        if depth > MAX_DEPTH {
            return Unknown;
        }
        let keywords = match schema {
            Json::Bool(truth) => return verdict(*truth),
            Json::Object(keywords) => keywords,
            _ => return Unknown,
        };
        match value {
            Value::Map(map) => {
                require!(self.object(keywords, map, depth));
                return self.any(keywords, &Instance::Map(map), depth);
            }
            Value::Seq(items) => require!(self.array(keywords, items, depth)),
            Value::String(text) => require!(string(keywords, text)),
            Value::Int(_) | Value::Uint(_) | Value::Float(_) => require!(number(keywords, value)),
            Value::Null | Value::Bool(_) => {}
        }
        self.any(keywords, &Instance::Other(value), depth)
    }

    fn instance(&self, schema: &Json, instance: &Instance<'_>, depth: usize) -> Verdict {
        match (instance, schema) {
            (Instance::Other(value), _) => self.value(schema, value, depth),
            (Instance::Map(_), Json::Bool(truth)) => verdict(*truth),
            (Instance::Map(map), Json::Object(keywords)) if depth <= MAX_DEPTH => {
                require!(self.object(keywords, map, depth));
                self.any(keywords, instance, depth)
            }
            _ => Unknown,
        }
    }

    /// Keywords for values of every type.
    fn any(&self, keywords: &JsonMap<String, Json>, value: &Instance<'_>, depth: usize) -> Verdict {
        if let Some(types) = keywords.get("type") {
            require!(verdict(has_type(types, value)));
        }
        if let Some(Json::Array(allowed)) = keywords.get("enum") {
            require!(one_equal(allowed, value));
        }
        if let Some(wanted) = keywords.get("const") {
            require!(one_equal(std::slice::from_ref(wanted), value));
        }
        if let Some(reference) = keywords.get("$ref") {
            let Some(schema) = resolve(self.root, reference) else { return Unknown };
            require!(self.instance(schema, value, depth + 1));
        }
        let schemas = |keyword: &str| keywords.get(keyword).and_then(Json::as_array);
        let verdicts = |all: &[Json]| -> Vec<Verdict> {
            all.iter().map(|schema| self.instance(schema, value, depth + 1)).collect()
        };
        if let Some(all) = schemas("allOf") {
            for schema in all {
                require!(self.instance(schema, value, depth + 1));
            }
        }
        if let Some(all) = schemas("anyOf") {
            let verdicts = verdicts(all);
            if !verdicts.contains(&Valid) {
                return if verdicts.contains(&Unknown) { Unknown } else { Invalid };
            }
        }
        if let Some(all) = schemas("oneOf") {
            let verdicts = verdicts(all);
            if verdicts.contains(&Unknown) {
                return Unknown;
            }
            require!(verdict(verdicts.iter().filter(|&&v| v == Valid).count() == 1));
        }
        Valid
    }

    fn object(&self, keywords: &JsonMap<String, Json>, map: &Map, depth: usize) -> Verdict {
        if let Some(Json::Array(names)) = keywords.get("required") {
            let present = |name: &Json| name.as_str().is_some_and(|name| map.contains_key(name));
            require!(verdict(names.iter().all(present)));
        }
        require!(size(keywords, "minProperties", "maxProperties", map.len()));
        let properties = keywords.get("properties").and_then(Json::as_object);
        let others = keywords.get("additionalProperties");
        if properties.is_none() && others.is_none() {
            return Valid;
        }
        for (key, value) in map {
            // Text that is no UTF-8 reaches the library in another form.
            let Ok(key) = key.to_str() else { return Unknown };
            let property = properties.and_then(|properties| properties.get(key));
            if let Some(schema) = property.or(others) {
                require!(self.value(schema, value, depth + 1));
            }
        }
        Valid
    }

    fn array(&self, keywords: &JsonMap<String, Json>, items: &[Value], depth: usize) -> Verdict {
        require!(size(keywords, "minItems", "maxItems", items.len()));
        if let Some(schema) = keywords.get("items") {
            for item in items {
                require!(self.value(schema, item, depth + 1));
            }
        }
        Valid
    }
}

fn string(keywords: &JsonMap<String, Json>, text: &bstr::BString) -> Verdict {
    let bounded = keywords.contains_key("minLength") || keywords.contains_key("maxLength");
    if !bounded {
        return Valid;
    }
    match text.to_str() {
        Ok(text) => size(keywords, "minLength", "maxLength", text.chars().count()),
        Err(_) => Unknown,
    }
}

fn number(keywords: &JsonMap<String, Json>, value: &Value) -> Verdict {
    let bound = |keyword: &str| keywords.get(keyword).and_then(Json::as_f64);
    let bounds = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"].map(bound);
    if bounds.iter().all(Option::is_none) {
        return Valid;
    }
    let Some(number) = value.as_f64().filter(|number| number.abs() < EXACT) else {
        return Unknown;
    };
    let [minimum, maximum, above, below] = bounds;
    verdict(
        minimum.is_none_or(|bound| number >= bound)
            && maximum.is_none_or(|bound| number <= bound)
            && above.is_none_or(|bound| number > bound)
            && below.is_none_or(|bound| number < bound),
    )
}

fn size(keywords: &JsonMap<String, Json>, minimum: &str, maximum: &str, size: usize) -> Verdict {
    let bound = |keyword: &str| keywords.get(keyword).and_then(Json::as_u64);
    let size = size as u64;
    verdict(
        bound(minimum).is_none_or(|bound| size >= bound)
            && bound(maximum).is_none_or(|bound| size <= bound),
    )
}

fn has_type(types: &Json, value: &Instance<'_>) -> bool {
    let fits = |word: &Json| match (word.as_str(), value) {
        (Some("object"), Instance::Map(_)) => true,
        (Some(word), Instance::Other(value)) => match value {
            Value::Null => word == "null",
            Value::Bool(_) => word == "boolean",
            Value::String(_) => word == "string",
            Value::Seq(_) => word == "array",
            Value::Map(_) => word == "object",
            Value::Int(_) | Value::Uint(_) => matches!(word, "integer" | "number"),
            Value::Float(number) => word == "number" || word == "integer" && number.fract() == 0.0,
        },
        _ => false,
    };
    match types {
        Json::Array(words) => words.iter().any(fits),
        word => fits(word),
    }
}

/// Whether a value equals one of some scalars.
fn one_equal(allowed: &[Json], value: &Instance<'_>) -> Verdict {
    let Instance::Other(value) = value else { return Invalid };
    let equal = |wanted: &Json| match (wanted, value) {
        (Json::Null, Value::Null) => true,
        (Json::Bool(wanted), Value::Bool(truth)) => wanted == truth,
        (Json::String(wanted), Value::String(text)) => wanted.as_bytes() == text.as_bytes(),
        (Json::Number(wanted), value) => {
            wanted.as_f64().is_some_and(|wanted| value.as_f64() == Some(wanted))
        }
        _ => false,
    };
    verdict(allowed.iter().any(equal))
}
