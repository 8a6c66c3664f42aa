//! Which values a chart has, and what to try under each.

use std::collections::{BTreeMap, BTreeSet};

use goyaml::{Map, Value};
use helm_rs::chart::Chart;
use serde_json::Value as Json;

/// A text that no chart has of its own.
pub(super) const PROBE: &str = "ichor-probe";
/// Likewise, for lists of two.
pub(super) const SECOND: &str = "ichor-second";
/// A number that no chart has of its own, and that may be a port.
pub(super) const NUMBER: f64 = 4321.0;

/// How deep tables of values are looked into.
const DEPTH: usize = 32;

/// A value of the chart: the tables and the key.
pub(super) type KeyPath = Vec<String>;

/// What a chart's values may be.
pub(super) struct Keys {
    /// Every key with its default.
    pub(super) defaults: BTreeMap<KeyPath, Value>,
    /// Texts that templates compare a value with, or that the schema lists.
    pub(super) texts: BTreeMap<KeyPath, BTreeSet<String>>,
    /// Types that the schema allows.
    types: BTreeMap<KeyPath, BTreeSet<String>>,
}

impl Keys {
    /// Reads a chart's default values, its schema, and what its templates speak of.
    pub(super) fn of(chart: &Chart) -> Self {
        let mut defaults = BTreeMap::new();
        if let Some(values) = &chart.values {
            collect(values, &mut Vec::new(), &mut defaults);
        }
        let mut spoken = BTreeSet::new();
        let mut texts: BTreeMap<KeyPath, BTreeSet<String>> = BTreeMap::new();
        for template in &chart.templates {
            let text = String::from_utf8_lossy(&template.data);
            spoken_of(&text, &mut spoken, &mut texts);
        }
        let mut types = BTreeMap::new();
        let schema = chart.schema.as_deref().and_then(|text| serde_json::from_slice(text).ok());
        schema_of(schema.as_ref().unwrap_or(&Json::Null), &mut Vec::new(), &mut types, &mut texts);
        // Tables are no values, and neither is what lies below a value.
        let tables: BTreeSet<KeyPath> =
            defaults.keys().flat_map(|path| (1..path.len()).map(|end| prefix(path, end))).collect();
        for path in spoken {
            let is_below = (1..path.len()).any(|end| defaults.contains_key(&prefix(&path, end)));
            if !tables.contains(&path) && !is_below {
                defaults.entry(path).or_insert(Value::Null);
            }
        }
        Self { defaults, texts, types }
    }

    /// A text as the types that the schema allows for a key, likeliest first.
    pub(super) fn typed(&self, path: &KeyPath, text: &str) -> Vec<Value> {
        let allowed = |name: &str| self.types.get(path).is_none_or(|types| types.contains(name));
        let is_number = matches!(self.defaults.get(path), Some(Value::Float(_) | Value::Int(_)));
        let mut values = Vec::new();
        if let Ok(number) = text.parse::<f64>()
            && (is_number || allowed("integer") || allowed("number"))
            && number.is_finite()
        {
            values.push(Value::Float(number));
        }
        if let Ok(value) = text.parse::<bool>()
            && allowed("boolean")
        {
            values.push(Value::Bool(value));
        }
        if !is_number && (allowed("string") || values.is_empty()) {
            values.push(Value::from(text));
        }
        values
    }
}

fn prefix(path: &[String], end: usize) -> KeyPath {
    path.iter().take(end).cloned().collect()
}

fn collect(table: &Map, path: &mut KeyPath, found: &mut BTreeMap<KeyPath, Value>) {
    for (key, value) in table {
        path.push(key.to_string());
        match value {
            Value::Map(below) if !below.is_empty() && path.len() < DEPTH => {
                collect(below, path, found);
                // A table may be data as well, to which entries can be added.
                if below.values().all(|value| value.as_map().is_none()) {
                    found.insert(path.clone(), Value::Map(Map::new()));
                }
            }
            _ => {
                found.insert(path.clone(), value.clone());
            }
        }
        path.pop();
    }
}

/// Finds `.Values.a.b`, `hasKey .Values.a "b"` and comparisons of values with texts.
fn spoken_of(
    template: &str,
    spoken: &mut BTreeSet<KeyPath>,
    texts: &mut BTreeMap<KeyPath, BTreeSet<String>>,
) {
    const MARK: &str = ".Values.";
    for (at, _) in template.match_indices(MARK) {
        let rest = template.get(at + MARK.len()..).unwrap_or_default();
        let end = rest
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '.' && c != '_')
            .unwrap_or(rest.len());
        let (path, after) = rest.split_at(end);
        let path: KeyPath =
            path.split('.').filter(|key| !key.is_empty()).map(str::to_owned).collect();
        if path.is_empty() {
            continue;
        }
        let before = template.get(..at).unwrap_or_default().trim_end_matches(['(', ' ']);
        let text = after.trim_start_matches([')', ' ']).strip_prefix('"');
        let text = text.and_then(|text| text.split_once('"')).map(|(text, _)| text);
        if let Some(text) = text.filter(|text| text.len() < 64) {
            if before.ends_with("hasKey") {
                let mut path = path.clone();
                path.push(text.to_owned());
                spoken.insert(path);
            } else if ["eq", "ne", "toString"].iter().any(|word| before.ends_with(word)) {
                texts.entry(path.clone()).or_default().insert(text.to_owned());
            }
        }
        spoken.insert(path);
    }
}

fn schema_of(
    schema: &Json,
    path: &mut KeyPath,
    types: &mut BTreeMap<KeyPath, BTreeSet<String>>,
    texts: &mut BTreeMap<KeyPath, BTreeSet<String>>,
) {
    if path.len() > DEPTH {
        return;
    }
    for (key, below) in schema.get("properties").and_then(Json::as_object).into_iter().flatten() {
        path.push(key.clone());
        let names: BTreeSet<String> = match below.get("type") {
            Some(Json::String(name)) => [name.clone()].into(),
            Some(Json::Array(names)) => {
                names.iter().filter_map(Json::as_str).map(str::to_owned).collect()
            }
            _ => BTreeSet::new(),
        };
        if !names.is_empty() {
            types.insert(path.clone(), names);
        }
        let listed = below.get("enum").and_then(Json::as_array).into_iter().flatten();
        for text in listed.filter_map(Json::as_str) {
            texts.entry(path.clone()).or_default().insert(text.to_owned());
        }
        schema_of(below, path, types, texts);
        path.pop();
    }
}

/// What to try under a key of the given default, in order: the next only if the ones before change
/// nothing.
pub(super) fn probes(default: &Value) -> Vec<Value> {
    let text = || Value::from(PROBE);
    let list = || Value::Seq(vec![Value::from(PROBE), Value::from(SECOND)]);
    let table = || Value::Map([(PROBE, text())].into_iter().collect());
    let named = || {
        let item: Map = [("name", text()), ("value", text())].into_iter().collect();
        Value::Seq(vec![Value::Map(item)])
    };
    let number = || Value::Float(NUMBER);
    match default {
        Value::Bool(value) => vec![Value::Bool(!value)],
        Value::Int(_) | Value::Uint(_) | Value::Float(_) => vec![number()],
        Value::String(_) => vec![text(), Value::from("4321s"), Value::from("4321")],
        Value::Seq(_) => vec![list(), named()],
        Value::Map(_) => vec![table()],
        Value::Null => vec![text(), number(), list(), table(), named(), Value::Bool(true)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_templates_speak_of() {
        let template = r#"{{ if and (eq .Values.a.mode "x") (hasKey .Values.b "c") }}
            {{ $.Values.d.e | quote }}{{ ne (toString .Values.f) "on" }}{{ .Values. }}"#;
        let (mut spoken, mut texts) = (BTreeSet::new(), BTreeMap::new());
        spoken_of(template, &mut spoken, &mut texts);
        let spoken: Vec<_> = spoken.iter().map(|path| path.join(".")).collect();
        assert_eq!(spoken, ["a.mode", "b", "b.c", "d.e", "f"]);
        let texts: Vec<_> = texts.iter().map(|(path, t)| (path.join("."), t.len())).collect();
        assert_eq!(texts, [("a.mode".to_owned(), 1), ("f".to_owned(), 1)]);
    }
}
