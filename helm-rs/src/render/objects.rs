//! What a chart's templates get as their dot: `.Chart`, `.Capabilities`, `.Values` and the
//! types behind them.
//!
//! ```text
//! dot ── Values        chartutil.Values, a map with methods
//!     ├─ Chart         struct { chart.Metadata; IsRoot bool }
//!     ├─ Capabilities  *chartutil.Capabilities ── KubeVersion, APIVersions, HelmVersion
//!     ├─ Files         engine.files (files.rs)
//!     ├─ Release, Subcharts, Template   plain maps
//! ```

use std::any::Any;
use std::collections::BTreeMap;
use std::rc::Rc;

use gotemplate::value::{Entries, Kind, LIST_STRING, ListType, MAP_ANY, MAP_STRING, MapType};
use gotemplate::{CallError, List, Map, Method, Object, Str, Type, Value};

use super::convert::Json;
use crate::chart::{Dependency, ImportValues, Maintainer, Metadata, ValidationError};
use crate::gotext::quote;

/// `chartutil.Values`, Helm's type of `.Values`.
pub(crate) static VALUES: MapType =
    MapType { name: "chartutil.Values", element: Type::Any, methods: &VALUES_METHODS };

static VALUES_METHODS: [Method; 5] = [
    Method { name: "AsMap", params: &[], variadic: false, call: as_map },
    Method {
        name: "Encode",
        params: &[Type::Named("io.Writer", Kind::Interface)],
        variadic: false,
        call: encode,
    },
    Method { name: "PathValue", params: &[Type::String], variadic: false, call: path_value },
    Method { name: "Table", params: &[Type::String], variadic: false, call: table_method },
    Method { name: "YAML", params: &[], variadic: false, call: yaml },
];

/// `chartutil.VersionSet`, Helm's type of `.Capabilities.APIVersions`.
pub(crate) static VERSION_SET: ListType =
    ListType { name: "chartutil.VersionSet", element: Type::String, methods: &VERSION_SET_METHODS };

static VERSION_SET_METHODS: [Method; 1] =
    [Method { name: "Has", params: &[Type::String], variadic: false, call: has_version }];

static MAINTAINERS: ListType = ListType {
    name: "[]*chart.Maintainer",
    element: Type::Named("*chart.Maintainer", Kind::Ptr),
    methods: &[],
};

static DEPENDENCIES: ListType = ListType {
    name: "[]*chart.Dependency",
    element: Type::Named("*chart.Dependency", Kind::Ptr),
    methods: &[],
};

/// The receiver of a map type's method.
pub(crate) fn method_map(receiver: &Value) -> Result<Map, CallError> {
    match receiver {
        Value::Map(map) => Ok(map.clone()),
        other => Err(CallError::new(format!("receiver is a {}, not a map", other.type_name()))),
    }
}

/// The only argument of a method that takes a string.
pub(crate) fn text_argument(args: &[Value]) -> Result<Str, CallError> {
    match args {
        [Value::String(text)] => Ok(text.clone()),
        _ => Err(CallError::new("expected one string argument")),
    }
}

// === chartutil.Values ===

/// A value without a table under the name that was asked for, as `chartutil.ErrNoTable`.
pub(crate) fn table(values: &Map, path: &[u8]) -> Result<Map, Str> {
    let mut table = values.clone();
    for name in path.split(|&b| b == b'.') {
        table = match table.get(name) {
            // Other named map types are not tables to Helm either.
            Some(Value::Map(next))
                if std::ptr::eq(next.ty(), &raw const MAP_ANY)
                    || std::ptr::eq(next.ty(), &raw const VALUES) =>
            {
                next
            }
            _ => return Err(Str::from(name)),
        };
    }
    Ok(table.retyped(&VALUES))
}

fn table_method(values: &Value, args: &[Value]) -> Result<Value, CallError> {
    table(&method_map(values)?, text_argument(args)?.as_bytes())
        .map(Value::Map)
        .map_err(|name| CallError::new(format!("{} is not a table", quote(name))))
}

fn path_value(values: &Value, args: &[Value]) -> Result<Value, CallError> {
    let path = text_argument(args)?;
    if path.is_empty() {
        return Err(CallError::new("YAML path cannot be empty"));
    }
    let values = method_map(values)?;
    let bytes = path.as_bytes();
    let (parent, key) = match bytes.iter().rposition(|&b| b == b'.') {
        Some(dot) => (table(&values, &bytes[..dot]), &bytes[dot + 1..]),
        None => (Ok(values), bytes),
    };
    match parent.ok().and_then(|parent| parent.get(key)) {
        Some(value) if !matches!(&value, Value::Map(map) if std::ptr::eq(map.ty(), &raw const MAP_ANY)) => {
            Ok(value)
        }
        _ => Err(CallError::new(format!("{} is not a value", quote(key)))),
    }
}

fn as_map(values: &Value, _: &[Value]) -> Result<Value, CallError> {
    let values = method_map(values)?;
    if values.is_empty() {
        return Ok(Value::Map(Map::any(Entries::new())));
    }
    Ok(Value::Map(values.retyped(&MAP_ANY)))
}

fn encode(_: &Value, _: &[Value]) -> Result<Value, CallError> {
    Err(CallError::new("templates have no io.Writer"))
}

fn yaml(values: &Value, _: &[Value]) -> Result<Value, CallError> {
    goyaml::to_yaml(Json(values.clone()))
        .map(Value::from)
        .map_err(|error| CallError::new(error.to_string()))
}

// === chartutil.VersionSet ===

fn has_version(versions: &Value, args: &[Value]) -> Result<Value, CallError> {
    let wanted = text_argument(args)?;
    let Value::List(versions) = versions else {
        return Err(CallError::new("receiver is not a version set"));
    };
    let has = versions.items().iter().any(|v| matches!(v, Value::String(v) if *v == wanted));
    Ok(Value::Bool(has))
}

// === .Chart ===

/// `.Chart`: the metadata with one more field.
pub(crate) struct ChartObject {
    metadata: Rc<MetadataObject>,
    is_root: bool,
}

struct MetadataObject(Metadata);

struct MaintainerObject(Maintainer);

struct DependencyObject(Dependency);

impl ChartObject {
    pub(crate) fn value(metadata: Metadata, is_root: bool) -> Value {
        Value::Object(Rc::new(Self { metadata: Rc::new(MetadataObject(metadata)), is_root }))
    }
}

/// The fields of the metadata, for what points to it.
pub(super) fn fields_of_metadata(metadata: Metadata) -> Vec<(&'static str, Value)> {
    MetadataObject(metadata).fields()
}

/// The metadata as Helm writes it to YAML, empty fields left out.
pub(crate) fn metadata_yaml(metadata: Metadata) -> Result<String, goyaml::Error> {
    goyaml::to_yaml(Json(Value::Object(Rc::new(MetadataObject(metadata)))))
}

impl Object for ChartObject {
    fn type_name(&self) -> &'static str {
        "struct { chart.Metadata; IsRoot bool }"
    }

    fn kind(&self) -> Kind {
        Kind::Struct
    }

    fn field(&self, name: &str) -> Option<Value> {
        match name {
            "IsRoot" => Some(Value::Bool(self.is_root)),
            "Metadata" => {
                let metadata: Rc<dyn Object> = self.metadata.clone();
                Some(Value::Object(metadata))
            }
            promoted => self.metadata.field(promoted),
        }
    }

    fn fields(&self) -> Vec<(&'static str, Value)> {
        fields_of(self, &["Metadata", "IsRoot"])
    }

    fn json_fields(&self) -> Option<Vec<(Str, Value)>> {
        let mut json = self.metadata.json_fields()?;
        json.push(("IsRoot".into(), Value::Bool(self.is_root)));
        Some(json)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

const METADATA_FIELDS: [&str; 17] = [
    "Name",
    "Home",
    "Sources",
    "Version",
    "Description",
    "Keywords",
    "Maintainers",
    "Icon",
    "APIVersion",
    "Condition",
    "Tags",
    "AppVersion",
    "Deprecated",
    "Annotations",
    "KubeVersion",
    "Dependencies",
    "Type",
];

impl Object for MetadataObject {
    fn type_name(&self) -> &'static str {
        "chart.Metadata"
    }

    fn kind(&self) -> Kind {
        Kind::Struct
    }

    fn field(&self, name: &str) -> Option<Value> {
        let metadata = &self.0;
        Some(match name {
            "Name" => text(&metadata.name),
            "Home" => text(&metadata.home),
            "Sources" => texts(&metadata.sources),
            "Version" => text(&metadata.version),
            "Description" => text(&metadata.description),
            "Keywords" => texts(&metadata.keywords),
            "Maintainers" => pointers(&MAINTAINERS, &metadata.maintainers, |m| {
                Rc::new(MaintainerObject(m.clone()))
            }),
            "Icon" => text(&metadata.icon),
            "APIVersion" => text(&metadata.api_version),
            "Condition" => text(&metadata.condition),
            "Tags" => text(&metadata.tags),
            "AppVersion" => text(&metadata.app_version),
            "Deprecated" => Value::Bool(metadata.deprecated),
            "Annotations" => string_map(&metadata.annotations),
            "KubeVersion" => text(&metadata.kube_version),
            "Dependencies" => dependencies(metadata.dependencies.as_deref().unwrap_or_default()),
            "Type" => text(&metadata.chart_type),
            _ => return None,
        })
    }

    fn fields(&self) -> Vec<(&'static str, Value)> {
        fields_of(self, &METADATA_FIELDS)
    }

    fn json_fields(&self) -> Option<Vec<(Str, Value)>> {
        let present = |name| Some((json_name(name), self.field(name).filter(Value::is_true)?));
        Some(METADATA_FIELDS.into_iter().filter_map(present).collect())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Object for MaintainerObject {
    fn type_name(&self) -> &'static str {
        "*chart.Maintainer"
    }

    fn kind(&self) -> Kind {
        Kind::Ptr
    }

    fn field(&self, name: &str) -> Option<Value> {
        Some(match name {
            "Name" => text(&self.0.name),
            "Email" => text(&self.0.email),
            "URL" => text(&self.0.url),
            _ => return None,
        })
    }

    fn fields(&self) -> Vec<(&'static str, Value)> {
        fields_of(self, &["Name", "Email", "URL"])
    }

    fn json_fields(&self) -> Option<Vec<(Str, Value)>> {
        let fields = [("name", &self.0.name), ("email", &self.0.email), ("url", &self.0.url)];
        let present = fields.into_iter().filter(|(_, value)| !value.is_empty());
        Some(present.map(|(name, value)| (name.into(), text(value))).collect())
    }

    fn methods(&self) -> &'static [Method] {
        static METHODS: [Method; 1] = [Method {
            name: "Validate",
            params: &[],
            variadic: false,
            call: |this, _| validity(this, |it: &MaintainerObject| it.0.clone().validate()),
        }];
        &METHODS
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// What the method `Validate` of an object answers.
fn validity<T: 'static>(
    this: &Value,
    validate: impl Fn(&T) -> Result<(), ValidationError>,
) -> Result<Value, CallError> {
    let object = match this {
        Value::Object(object) => object.as_any().downcast_ref::<T>(),
        _ => None,
    };
    let object = object.ok_or_else(|| CallError::new("the receiver is of another type"))?;
    Ok(super::record_template::validity(validate(object)))
}

const DEPENDENCY_FIELDS: [&str; 8] =
    ["Name", "Version", "Repository", "Condition", "Tags", "Enabled", "ImportValues", "Alias"];

impl Object for DependencyObject {
    fn type_name(&self) -> &'static str {
        "*chart.Dependency"
    }

    fn kind(&self) -> Kind {
        Kind::Ptr
    }

    fn field(&self, name: &str) -> Option<Value> {
        let dependency = &self.0;
        Some(match name {
            "Name" => text(&dependency.name),
            "Version" => text(&dependency.version),
            "Repository" => text(&dependency.repository),
            "Condition" => text(&dependency.condition),
            "Tags" => texts(&dependency.tags),
            "Enabled" => Value::Bool(dependency.enabled),
            "ImportValues" => {
                Value::list(dependency.import_values.iter().map(import_value).collect::<Vec<_>>())
            }
            "Alias" => text(&dependency.alias),
            _ => return None,
        })
    }

    fn fields(&self) -> Vec<(&'static str, Value)> {
        fields_of(self, &DEPENDENCY_FIELDS)
    }

    fn json_fields(&self) -> Option<Vec<(Str, Value)>> {
        let present = |name| {
            let always = matches!(name, "Name" | "Repository");
            let value = self.field(name).filter(|value| always || value.is_true())?;
            Some((json_name(name), value))
        };
        Some(DEPENDENCY_FIELDS.into_iter().filter_map(present).collect())
    }

    fn methods(&self) -> &'static [Method] {
        static METHODS: [Method; 1] = [Method {
            name: "Validate",
            params: &[],
            variadic: false,
            call: |this, _| validity(this, |it: &DependencyObject| it.0.clone().validate()),
        }];
        &METHODS
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

pub(super) fn dependencies(dependencies: &[Dependency]) -> Value {
    pointers(&DEPENDENCIES, dependencies, |d| Rc::new(DependencyObject(d.clone())))
}

fn import_value(import: &ImportValues) -> Value {
    match import {
        ImportValues::Written(value) => super::convert::from_tree(value.clone()),
        ImportValues::Resolved { child, parent } => Value::Map(Map::new(
            &MAP_STRING,
            [("child", child), ("parent", parent)]
                .map(|(key, value)| (key.into(), text(value)))
                .into(),
        )),
    }
}

/// The name of a field of `chart.Metadata` or `chart.Dependency` in JSON.
fn json_name(field: &str) -> Str {
    match field {
        "APIVersion" => "apiVersion".into(),
        "ImportValues" => "import-values".into(),
        _ => {
            let mut name = field.to_owned();
            if let Some(first) = name.get_mut(..1) {
                first.make_ascii_lowercase();
            }
            name.into()
        }
    }
}

// === helpers ===

pub(super) fn fields_of(object: &dyn Object, names: &[&'static str]) -> Vec<(&'static str, Value)> {
    names.iter().filter_map(|name| object.field(name).map(|value| (*name, value))).collect()
}

pub(super) fn text(text: &str) -> Value {
    Value::string(text)
}

fn texts(texts: &[String]) -> Value {
    if texts.is_empty() {
        return Value::List(List::nil(&LIST_STRING));
    }
    Value::List(List::strings(texts.iter().map(String::as_str)))
}

pub(super) fn string_map(map: &BTreeMap<String, String>) -> Value {
    if map.is_empty() {
        return Value::Map(Map::nil(&MAP_STRING));
    }
    let entries = map.iter().map(|(k, v)| (Str::from(k.as_str()), text(v))).collect();
    Value::Map(Map::new(&MAP_STRING, entries))
}

fn pointers<T>(ty: &'static ListType, items: &[T], object: impl Fn(&T) -> Rc<dyn Object>) -> Value {
    if items.is_empty() {
        return Value::List(List::nil(ty));
    }
    let items: Vec<_> = items.iter().map(|item| Value::Object(object(item))).collect();
    Value::List(List::new(ty, items))
}
