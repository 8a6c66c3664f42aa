//! Values and charts as the Go program writes them.

use bstr::ByteSlice;
use goyaml::{Map, Value};
use helm_rs::chart::{self, Chart, File, ImportValues, Metadata};
use serde_json::{Value as Json, json};

/// Values with the types that JSON does not keep apart: `["i", "1"]`, `["f", "1"]`, `["l", …]`.
pub(crate) fn untag(value: &Json) -> Value {
    match value {
        Json::Null => Value::Null,
        Json::Bool(truth) => Value::Bool(*truth),
        Json::Number(number) => Value::Float(number.as_f64().unwrap()),
        Json::String(text) => Value::from(text.as_str()),
        Json::Object(map) => Value::Map(map.iter().map(|(k, v)| (k.as_str(), untag(v))).collect()),
        Json::Array(items) => match items.first().and_then(Json::as_str) {
            Some("f") => Value::Float(items[1].as_str().unwrap().parse().unwrap()),
            Some("i") => Value::Int(items[1].as_str().unwrap().parse().unwrap()),
            _ => Value::Seq(items.iter().skip(1).map(untag).collect()),
        },
    }
}

fn tag(value: &Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Bool(truth) => json!(truth),
        Value::Int(number) => json!(["i", number.to_string()]),
        Value::Uint(number) => json!(["u", number.to_string()]),
        Value::Float(number) => json!(["f", number]),
        Value::String(text) => json!(text.to_str_lossy()),
        Value::Seq(items) => {
            let mut tagged = vec![json!("l")];
            tagged.extend(items.iter().map(tag));
            Json::Array(tagged)
        }
        Value::Map(map) => tag_map(map),
    }
}

pub(crate) fn tag_map(map: &Map) -> Json {
    Json::Object(map.iter().map(|(k, v)| (k.to_str_lossy().into_owned(), tag(v))).collect())
}

fn files(files: &[File]) -> Json {
    files.iter().map(|f| json!([f.name, f.data.to_str_lossy()])).collect()
}

/// Metadata as Go's JSON encoder writes it.
pub(crate) fn metadata(m: &Metadata) -> Json {
    fn put(map: &mut serde_json::Map<String, Json>, key: &str, value: &str) {
        if !value.is_empty() {
            map.insert(key.to_owned(), json!(value));
        }
    }
    let mut map = serde_json::Map::new();
    for (key, value) in [
        ("name", &m.name),
        ("home", &m.home),
        ("version", &m.version),
        ("description", &m.description),
        ("icon", &m.icon),
        ("apiVersion", &m.api_version),
        ("condition", &m.condition),
        ("tags", &m.tags),
        ("appVersion", &m.app_version),
        ("kubeVersion", &m.kube_version),
        ("type", &m.chart_type),
    ] {
        put(&mut map, key, value);
    }
    if !m.sources.is_empty() {
        map.insert("sources".into(), json!(m.sources));
    }
    if !m.keywords.is_empty() {
        map.insert("keywords".into(), json!(m.keywords));
    }
    if m.deprecated {
        map.insert("deprecated".into(), json!(true));
    }
    if !m.annotations.is_empty() {
        map.insert("annotations".into(), json!(m.annotations));
    }
    if !m.maintainers.is_empty() {
        let maintainer = |m: &chart::Maintainer| {
            let mut map = serde_json::Map::new();
            put(&mut map, "name", &m.name);
            put(&mut map, "email", &m.email);
            put(&mut map, "url", &m.url);
            Json::Object(map)
        };
        map.insert("maintainers".into(), m.maintainers.iter().map(maintainer).collect());
    }
    if let Some(dependencies) = &m.dependencies
        && !dependencies.is_empty()
    {
        map.insert("dependencies".into(), dependencies.iter().map(dependency).collect());
    }
    Json::Object(map)
}

fn dependency(d: &chart::Dependency) -> Json {
    let mut map = serde_json::Map::new();
    map.insert("name".into(), json!(d.name));
    map.insert("repository".into(), json!(d.repository));
    for (key, value) in [("version", &d.version), ("condition", &d.condition), ("alias", &d.alias)]
    {
        if !value.is_empty() {
            map.insert(key.into(), json!(value));
        }
    }
    if !d.tags.is_empty() {
        map.insert("tags".into(), json!(d.tags));
    }
    if d.enabled {
        map.insert("enabled".into(), json!(true));
    }
    if !d.import_values.is_empty() {
        let import = |import: &ImportValues| match import {
            ImportValues::Written(value) => serde_json::to_value(plain(value)).unwrap(),
            ImportValues::Resolved { child, parent } => json!({"child": child, "parent": parent}),
        };
        map.insert("import-values".into(), d.import_values.iter().map(import).collect());
    }
    Json::Object(map)
}

fn plain(value: &Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Bool(truth) => json!(truth),
        Value::Int(number) => json!(number),
        Value::Uint(number) => json!(number),
        Value::Float(number) if number.fract() == 0.0 => json!(*number as i64),
        Value::Float(number) => json!(number),
        Value::String(text) => json!(text.to_str_lossy()),
        Value::Seq(items) => items.iter().map(plain).collect(),
        Value::Map(map) => {
            Json::Object(map.iter().map(|(k, v)| (k.to_string(), plain(v))).collect())
        }
    }
}

pub(crate) fn lock(lock: &chart::Lock) -> Json {
    let dependencies = lock.dependencies.as_ref().map(|d| d.iter().map(dependency).collect());
    json!({
        "generated": lock.generated,
        "digest": lock.digest,
        "dependencies": dependencies.unwrap_or(Json::Null),
    })
}

pub(crate) fn dump(chart: &Chart, sorted: bool) -> Json {
    let mut dependencies: Vec<&Chart> = chart.dependencies.iter().collect();
    if sorted {
        dependencies.sort_by_key(|d| d.name());
    }
    json!({
        "metadata": metadata(&chart.metadata),
        "raw": files(&chart.raw),
        "templates": files(&chart.templates),
        "files": files(&chart.files),
        "values": chart.values.as_ref().map_or(Json::Null, tag_map),
        "schema": chart.schema.as_ref().map_or(Json::Null, |s| json!(s.to_str_lossy())),
        "lock": chart.lock.as_ref().map_or(Json::Null, lock),
        "deps": dependencies.iter().map(|d| dump(d, sorted)).collect::<Vec<_>>(),
        "path": chart.dotted_path(),
        "full": chart.full_path(),
        "crds": chart.crds().iter().map(chart::Crd::filename).collect::<Vec<_>>(),
    })
}

/// What dependency processing does not touch is left out of its cases.
pub(crate) fn leave_out_files(dump: &mut Json) {
    if let Some(map) = dump.as_object_mut() {
        for key in ["raw", "files", "templates", "lock", "schema", "crds"] {
            map.remove(key);
        }
    }
    for subchart in dump["deps"].as_array_mut().into_iter().flatten() {
        leave_out_files(subchart);
    }
}
