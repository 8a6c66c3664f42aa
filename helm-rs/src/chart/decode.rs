//! YAML into Go structs: what `sigs.k8s.io/yaml.Unmarshal` does with a struct for a target.
//!
//! A [`Target`] describes the Go type. Scalars are first turned into text where the target is a
//! `string` (`convertToJSONableObject` in `sigs.k8s.io/yaml/yaml.go`), then every part is checked
//! against its type as `encoding/json` does. What comes out has the right types everywhere, and
//! the caller picks its fields.

use bstr::ByteSlice;
use goyaml::{Map, Value};

use super::metadata::{Dependency, ImportValues, Lock, Maintainer, Metadata};
use crate::gotext;

/// A Go type that YAML is decoded into.
#[derive(Debug, Clone, Copy)]
pub enum Target {
    /// `interface {}`
    Any,
    /// `string`
    Text,
    /// `bool`
    Bool,
    /// `time.Time`
    Time,
    /// A struct, or a pointer to one.
    Struct(&'static Struct),
    /// `[]T`, with the Go name of `T`.
    Seq(&'static Self, &'static str),
    /// `map[string]T`, with the Go name of `T`.
    Map(&'static Self, &'static str),
    /// A field of a struct that another one embeds by a pointer, with the name of that struct: no
    /// scalar is turned into text there (`indirect` in `sigs.k8s.io/yaml/fields.go` does not get to it).
    Embedded(&'static str, &'static Self),
}

/// A Go struct.
#[derive(Debug)]
pub struct Struct {
    /// Its bare name, empty for an anonymous struct.
    pub name: &'static str,
    /// Its type as `%T` prints it.
    pub go_type: &'static str,
    /// Fields by their JSON names.
    pub fields: &'static [(&'static str, Target)],
}

/// A part of a document that does not fit its Go type (`json.UnmarshalTypeError`).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TypeError {
    /// The part is the whole document or lies outside a struct.
    #[error("json: cannot unmarshal {value} into Go value of type {go_type}")]
    Value {
        /// Kind of the JSON value.
        value: &'static str,
        /// The Go type.
        go_type: String,
    },
    /// The part is a field of a struct.
    #[error(
        "json: cannot unmarshal {value} into Go struct field {structure}.{field} of type {go_type}"
    )]
    Field {
        /// Kind of the JSON value.
        value: &'static str,
        /// Name of the innermost struct.
        structure: &'static str,
        /// Names of the fields from the outermost struct.
        field: String,
        /// The Go type.
        go_type: String,
    },
    /// The part is no date; the text is Go's.
    #[error("{0}")]
    Time(String),
}

/// A YAML document that does not fit a Go struct, with the text of `sigs.k8s.io/yaml`.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum DecodeError {
    /// The document is no YAML, or no map where a map was wanted.
    #[error(transparent)]
    Yaml(#[from] goyaml::Error),
    /// A part has the wrong type.
    #[error("error unmarshaling JSON: while decoding JSON: {0}")]
    Type(TypeError),
    /// The document is no JSON.
    #[error("{0}")]
    Syntax(String),
    /// A part of a JSON document has the wrong type.
    #[error(transparent)]
    Json(Box<TypeError>),
    /// A part is none that the struct has; in Go's quotes.
    #[error("error unmarshaling JSON: while decoding JSON: json: unknown field {0}")]
    Unknown(String),
}

/// Reads a document and makes it fit a struct; `None` for an empty or null document.
///
/// # Errors
/// [`DecodeError`] when the document is no YAML or a field has the wrong type.
pub fn decode_target(yaml: &[u8], target: &'static Struct) -> Result<Option<Map>, DecodeError> {
    fit(goyaml::from_yaml_exact(yaml, &goyaml::Limits::default())?, target)
}

/// [`decode_target`] of JSON, by `encoding/json` alone: nothing is turned into text.
///
/// # Errors
/// [`DecodeError`] when the document is no JSON or a field has the wrong type.
pub fn decode_json_target(
    json: &[u8],
    target: &'static Struct,
) -> Result<Option<Map>, DecodeError> {
    let value = goyaml::json::from_json(json, &goyaml::Limits::default())
        .map_err(|error| DecodeError::Syntax(error.to_string()))?;
    checked(value, target).map_err(|error| DecodeError::Json(Box::new(error)))
}

/// [`decode_target`] of `UnmarshalStrict`: a field that the struct does not have is an error, and
/// so is one that is there twice.
///
/// # Errors
/// As [`decode_target`].
pub fn decode_target_strict(
    yaml: &[u8],
    target: &'static Struct,
    limits: &goyaml::Limits,
) -> Result<Option<Map>, DecodeError> {
    let value = goyaml::from_yaml_strict(yaml, limits)?;
    if let Some(field) = unknown_field(&value, Target::Struct(target)) {
        return Err(DecodeError::Unknown(gotext::quote(field)));
    }
    fit(value, target)
}

/// The first field that no struct has, in the order in which Go meets them.
fn unknown_field(value: &Value, target: Target) -> Option<&[u8]> {
    match (value, target) {
        (value, Target::Embedded(_, target)) => unknown_field(value, *target),
        (Value::Map(map), Target::Struct(target)) => {
            map.iter().find_map(|(key, child)| match target.field(key) {
                Some(&(_, target)) => unknown_field(child, target),
                None => Some(key.as_slice()),
            })
        }
        (Value::Map(map), Target::Map(element, _)) => {
            map.values().find_map(|child| unknown_field(child, *element))
        }
        (Value::Seq(items), Target::Seq(element, _)) => {
            items.iter().find_map(|child| unknown_field(child, *element))
        }
        _ => None,
    }
}

fn fit(mut value: Value, target: &'static Struct) -> Result<Option<Map>, DecodeError> {
    coerce(&mut value, Target::Struct(target));
    checked(value, target).map_err(DecodeError::Type)
}

fn checked(mut value: Value, target: &'static Struct) -> Result<Option<Map>, TypeError> {
    let mut checker = Checker { structure: "", path: Vec::new() };
    checker.check(&mut value, Target::Struct(target))?;
    Ok(value.into_map())
}

/// Turns numbers and booleans into text where the target is a `string`, and the other integers
/// into floats.
fn coerce(value: &mut Value, target: Target) {
    match (value, target) {
        (Value::Map(map), target) => {
            for (key, child) in map.iter_mut() {
                let child_target = match target {
                    Target::Struct(target) => target.field(key).map_or(Target::Any, |f| f.1),
                    Target::Map(element, _) => *element,
                    _ => Target::Any,
                };
                coerce(child, child_target);
            }
        }
        (Value::Seq(items), target) => {
            let element = if let Target::Seq(element, _) = target { *element } else { Target::Any };
            for item in items {
                coerce(item, element);
            }
        }
        (value, Target::Text) => {
            let text = match value {
                Value::Int(number) => number.to_string(),
                Value::Uint(number) => number.to_string(),
                Value::Float(number) => gotext::float32(*number),
                Value::Bool(truth) => truth.to_string(),
                _ => return,
            };
            *value = Value::from(text);
        }
        (value, _) => {
            if matches!(value, Value::Int(_) | Value::Uint(_)) {
                *value = Value::Float(value.as_f64().unwrap_or_default());
            }
        }
    }
}

impl Struct {
    /// The field that `encoding/json` picks for a key: the exact name first, then any case.
    fn field(&self, key: &[u8]) -> Option<&'static (&'static str, Target)> {
        let exact = self.fields.iter().find(|(name, _)| name.as_bytes() == key);
        exact.or_else(|| self.fields.iter().find(|(name, _)| gotext::equal_fold(name, key)))
    }
}

/// Walks a document beside its type, keeping the place as `encoding/json` does for its errors.
struct Checker {
    structure: &'static str,
    path: Vec<&'static str>,
}

impl Checker {
    fn check(&mut self, value: &mut Value, target: Target) -> Result<(), TypeError> {
        match (value, target) {
            // Null leaves every target as it was.
            (Value::Null, _)
            | (_, Target::Any)
            | (Value::String(_), Target::Text)
            | (Value::Bool(_), Target::Bool) => Ok(()),
            (Value::Map(map), Target::Struct(target)) => self.check_struct(map, target),
            (Value::Map(map), Target::Map(element, _)) => {
                map.iter_mut().try_for_each(|(_, child)| self.check(child, *element))
            }
            (Value::Seq(items), Target::Seq(element, _)) => {
                items.iter_mut().try_for_each(|child| self.check(child, *element))
            }
            (value, Target::Embedded(_, target)) => self.check(value, *target),
            (value, Target::Time) => gotext::normalize_time(value).map_err(TypeError::Time),
            (value, target) => Err(self.mismatch(value, target)),
        }
    }

    /// Checks the fields in key order, which is the order in which Go meets them, and renames
    /// them to the struct's spelling. A key in another case that comes later wins, as in Go.
    fn check_struct(&mut self, map: &mut Map, target: &'static Struct) -> Result<(), TypeError> {
        let outer = self.structure;
        let mut fields = Map::new();
        for (key, mut child) in std::mem::take(map) {
            let Some(&(name, child_target)) = target.field(&key) else { continue };
            self.structure = target.name;
            let depth = self.path.len();
            if let Target::Embedded(embedded, _) = child_target {
                self.path.push(embedded);
            }
            self.path.push(name);
            self.check(&mut child, child_target)?;
            self.path.truncate(depth);
            self.structure = outer;
            if !child.is_null() || !fields.contains_key(name) {
                fields.insert(name, child);
            }
        }
        *map = fields;
        Ok(())
    }

    fn mismatch(&self, value: &Value, target: Target) -> TypeError {
        let value = match value {
            Value::Null => "null",
            Value::Bool(_) => "bool",
            Value::Int(_) | Value::Uint(_) | Value::Float(_) => "number",
            Value::String(_) => "string",
            Value::Seq(_) => "array",
            Value::Map(_) => "object",
        };
        let go_type = target.go_type();
        if self.path.is_empty() {
            return TypeError::Value { value, go_type };
        }
        let (structure, field) = (self.structure, self.path.join("."));
        TypeError::Field { value, structure, field, go_type }
    }
}

impl Target {
    fn go_type(self) -> String {
        match self {
            Self::Any => "interface {}".to_owned(),
            Self::Text => "string".to_owned(),
            Self::Bool => "bool".to_owned(),
            Self::Time => "time.Time".to_owned(),
            Self::Struct(target) => target.go_type.to_owned(),
            Self::Seq(_, element) => format!("[]{element}"),
            Self::Map(_, element) => format!("map[string]{element}"),
            Self::Embedded(_, target) => target.go_type(),
        }
    }
}

static MAINTAINER: Struct = Struct {
    name: "Maintainer",
    go_type: "chart.Maintainer",
    fields: &[("name", Target::Text), ("email", Target::Text), ("url", Target::Text)],
};

static DEPENDENCY: Struct = Struct {
    name: "Dependency",
    go_type: "chart.Dependency",
    fields: &[
        ("name", Target::Text),
        ("version", Target::Text),
        ("repository", Target::Text),
        ("condition", Target::Text),
        ("tags", TEXTS_FIELD),
        ("enabled", Target::Bool),
        ("import-values", Target::Seq(&Target::Any, "interface {}")),
        ("alias", Target::Text),
    ],
};

const TEXTS_FIELD: Target = Target::Seq(&Target::Text, "string");

const DEPENDENCIES: Target = Target::Seq(&Target::Struct(&DEPENDENCY), "*chart.Dependency");

/// The fields of [`METADATA`].
pub const METADATA_FIELDS: [(&str, Target); 17] = [
    ("name", Target::Text),
    ("home", Target::Text),
    ("sources", TEXTS_FIELD),
    ("version", Target::Text),
    ("description", Target::Text),
    ("keywords", TEXTS_FIELD),
    ("maintainers", Target::Seq(&Target::Struct(&MAINTAINER), "*chart.Maintainer")),
    ("icon", Target::Text),
    ("apiVersion", Target::Text),
    ("condition", Target::Text),
    ("tags", Target::Text),
    ("appVersion", Target::Text),
    ("deprecated", Target::Bool),
    ("annotations", Target::Map(&Target::Text, "string")),
    ("kubeVersion", Target::Text),
    ("dependencies", DEPENDENCIES),
    ("type", Target::Text),
];

/// `Chart.yaml` (`chart.Metadata`).
pub static METADATA: Struct =
    Struct { name: "Metadata", go_type: "chart.Metadata", fields: &METADATA_FIELDS };

static LOCK: Struct = Struct {
    name: "Lock",
    go_type: "chart.Lock",
    fields: &[
        ("generated", Target::Time),
        ("digest", Target::Text),
        ("dependencies", DEPENDENCIES),
    ],
};

/// Reads `Chart.yaml` or `requirements.yaml` over what is already known; fields that the document
/// does not have stay as they are.
///
/// # Errors
///
/// [`DecodeError`] when the document is no YAML or a field has the wrong type.
pub fn decode_metadata(yaml: &[u8], metadata: &mut Metadata) -> Result<(), DecodeError> {
    if let Some(mut fields) = decode_target(yaml, &METADATA)? {
        metadata_fields(&mut fields, metadata);
    }
    Ok(())
}

/// Takes the fields of [`METADATA`] out of a decoded map, over what is already known.
pub fn metadata_fields(fields: &mut Map, metadata: &mut Metadata) {
    text(fields, "name", &mut metadata.name);
    text(fields, "home", &mut metadata.home);
    texts(fields, "sources", &mut metadata.sources);
    text(fields, "version", &mut metadata.version);
    text(fields, "description", &mut metadata.description);
    texts(fields, "keywords", &mut metadata.keywords);
    text(fields, "icon", &mut metadata.icon);
    text(fields, "apiVersion", &mut metadata.api_version);
    text(fields, "condition", &mut metadata.condition);
    text(fields, "tags", &mut metadata.tags);
    text(fields, "appVersion", &mut metadata.app_version);
    text(fields, "kubeVersion", &mut metadata.kube_version);
    text(fields, "type", &mut metadata.chart_type);
    if let Some(Value::Bool(deprecated)) = fields.get("deprecated") {
        metadata.deprecated = *deprecated;
    }
    match fields.remove("annotations") {
        Some(Value::Map(annotations)) => {
            for (key, value) in annotations {
                metadata.annotations.insert(key.to_str_lossy().into_owned(), string(value));
            }
        }
        Some(Value::Null) => metadata.annotations.clear(),
        _ => {}
    }
    match fields.remove("maintainers") {
        Some(Value::Seq(items)) => {
            metadata.maintainers = items.into_iter().map(maintainer).collect();
        }
        Some(Value::Null) => metadata.maintainers.clear(),
        _ => {}
    }
    match fields.remove("dependencies") {
        Some(Value::Seq(items)) => {
            metadata.dependencies = Some(items.into_iter().map(dependency).collect());
        }
        Some(Value::Null) => metadata.dependencies = None,
        _ => {}
    }
}

/// Reads `Chart.lock` or `requirements.lock`; `None` for an empty or null document.
///
/// # Errors
///
/// [`DecodeError`] when the document is no YAML or a field has the wrong type.
pub fn decode_lock(yaml: &[u8]) -> Result<Option<Lock>, DecodeError> {
    let Some(mut fields) = decode_target(yaml, &LOCK)? else { return Ok(None) };
    let mut lock = Lock { generated: gotext::ZERO_TIME.to_owned(), ..Lock::default() };
    text(&mut fields, "generated", &mut lock.generated);
    text(&mut fields, "digest", &mut lock.digest);
    if let Some(Value::Seq(items)) = fields.remove("dependencies") {
        lock.dependencies = Some(items.into_iter().map(dependency).collect());
    }
    Ok(Some(lock))
}

fn maintainer(value: Value) -> Maintainer {
    let Value::Map(mut fields) = value else {
        return Maintainer { null: true, ..Maintainer::default() };
    };
    let mut maintainer = Maintainer::default();
    text(&mut fields, "name", &mut maintainer.name);
    text(&mut fields, "email", &mut maintainer.email);
    text(&mut fields, "url", &mut maintainer.url);
    maintainer
}

fn dependency(value: Value) -> Dependency {
    let Value::Map(mut fields) = value else {
        return Dependency { null: true, ..Dependency::default() };
    };
    let mut dependency = Dependency::default();
    text(&mut fields, "name", &mut dependency.name);
    text(&mut fields, "version", &mut dependency.version);
    text(&mut fields, "repository", &mut dependency.repository);
    text(&mut fields, "condition", &mut dependency.condition);
    texts(&mut fields, "tags", &mut dependency.tags);
    text(&mut fields, "alias", &mut dependency.alias);
    if let Some(Value::Bool(enabled)) = fields.get("enabled") {
        dependency.enabled = *enabled;
    }
    if let Some(Value::Seq(items)) = fields.remove("import-values") {
        dependency.import_values = items.into_iter().map(ImportValues::Written).collect();
    }
    dependency
}

/// Takes a text out of checked fields; absent and null leave the field alone.
fn text(fields: &mut Map, name: &str, field: &mut String) {
    if let Some(value @ Value::String(_)) = fields.remove(name) {
        *field = string(value);
    }
}

fn texts(fields: &mut Map, name: &str, field: &mut Vec<String>) {
    match fields.remove(name) {
        Some(Value::Seq(items)) => *field = items.into_iter().map(string).collect(),
        Some(Value::Null) => field.clear(),
        _ => {}
    }
}

/// The text of a checked value: null elements of a list or map are empty.
fn string(value: Value) -> String {
    match value {
        Value::String(text) => match String::from_utf8(text.into()) {
            Ok(text) => text,
            Err(bytes) => bytes.as_bytes().to_str_lossy().into_owned(),
        },
        _ => String::new(),
    }
}
