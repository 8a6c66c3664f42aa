//! `.Files`: the chart's files as templates see them (`pkg/engine/files.go`).

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gotemplate::value::{Entries, LIST_STRING, MapType};
use gotemplate::{CallError, List, Map, Method, Str, Type, Value};

use super::convert::Json;
use super::glob::Glob;
use super::objects::{method_map, text_argument};
use crate::chart::File;
use crate::gopath;

/// `engine.files`, Helm's type of `.Files`.
pub(super) static FILES: MapType =
    MapType { name: "engine.files", element: Type::Bytes, methods: &FILES_METHODS };

static FILES_METHODS: [Method; 6] = [
    Method { name: "Get", params: &[Type::String], variadic: false, call: get },
    Method { name: "GetBytes", params: &[Type::String], variadic: false, call: get_bytes },
    Method { name: "Glob", params: &[Type::String], variadic: false, call: glob },
    Method { name: "AsConfig", params: &[], variadic: false, call: as_config },
    Method { name: "AsSecrets", params: &[], variadic: false, call: as_secrets },
    Method { name: "Lines", params: &[Type::String], variadic: false, call: lines },
];

/// The `.Files` of a chart. Of files with the same name the last counts.
pub(crate) fn files(files: &[File]) -> Value {
    let entries = files
        .iter()
        .map(|file| {
            (Str::from(file.name.as_str()), Value::Bytes(Str::from(Arc::clone(&file.data))))
        })
        .collect();
    Value::Map(Map::new(&FILES, entries))
}

fn bytes(files: &Map, name: &Str) -> Str {
    match files.get(name.as_bytes()) {
        Some(Value::Bytes(data)) => data,
        _ => Str::default(),
    }
}

fn get(files: &Value, args: &[Value]) -> Result<Value, CallError> {
    Ok(Value::String(bytes(&method_map(files)?, &text_argument(args)?)))
}

fn get_bytes(files: &Value, args: &[Value]) -> Result<Value, CallError> {
    Ok(Value::Bytes(bytes(&method_map(files)?, &text_argument(args)?)))
}

fn glob(files: &Value, args: &[Value]) -> Result<Value, CallError> {
    let files = method_map(files)?;
    let pattern = text_argument(args)?;
    // Helm falls back to all files when the pattern is not valid.
    let glob = pattern
        .as_utf8()
        .and_then(|pattern| Glob::new(pattern, Some('/')).ok())
        .or_else(|| Glob::new("**", None).ok());
    let matching = files
        .entries()
        .iter()
        .filter(|(name, _)| glob.as_ref().is_some_and(|glob| glob.matches(&name.to_text())))
        .map(|(name, data)| (name.clone(), data.clone()))
        .collect();
    Ok(Value::Map(Map::new(&FILES, matching)))
}

fn as_config(files: &Value, _: &[Value]) -> Result<Value, CallError> {
    by_base_name(files, Str::clone)
}

fn as_secrets(files: &Value, _: &[Value]) -> Result<Value, CallError> {
    by_base_name(files, |data| Str::from(STANDARD.encode(data.as_bytes())))
}

/// A YAML mapping from the files' base names to their contents. Of equal base names Helm takes
/// a random one, this the last in the order of full names.
fn by_base_name(files: &Value, content: impl Fn(&Str) -> Str) -> Result<Value, CallError> {
    let mut entries = Entries::new();
    for (name, data) in method_map(files)?.entries().iter() {
        if let Value::Bytes(data) = data {
            let name = Str::from(gopath::base(&name.to_text()));
            entries.insert(name, Value::String(content(data)));
        }
    }
    let yaml = goyaml::to_yaml(Json(Value::Map(Map::any(entries)))).unwrap_or_default();
    Ok(Value::string(yaml.strip_suffix('\n').unwrap_or(&yaml)))
}

fn lines(files: &Value, args: &[Value]) -> Result<Value, CallError> {
    let data = bytes(&method_map(files)?, &text_argument(args)?);
    let text = data.strip_suffix(b"\n").unwrap_or(&data);
    if data.is_empty() {
        return Ok(Value::List(List::new(&LIST_STRING, Vec::new())));
    }
    Ok(Value::List(List::strings(text.split(|&b| b == b'\n'))))
}
