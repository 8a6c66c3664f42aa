//! Between template values and the plain trees of `goyaml`.

use gotemplate::value::Entries;
use gotemplate::{List, Map, Object, Str, Value};
use goyaml::{Node, Source};

use super::functions::base64_encode;

/// A decoded tree as a template value.
pub(crate) fn from_tree(tree: goyaml::Value) -> Value {
    match tree {
        goyaml::Value::Null => Value::Nil,
        goyaml::Value::Bool(value) => Value::Bool(value),
        goyaml::Value::Int(value) => Value::int64(value),
        goyaml::Value::Uint(value) => {
            Value::sized(gotemplate::IntKind::Uint64, value.cast_signed())
        }
        goyaml::Value::Float(value) => Value::Float(value),
        goyaml::Value::String(text) => Value::String(text.as_slice().into()),
        goyaml::Value::Seq(items) => Value::List(from_items(items)),
        goyaml::Value::Map(map) => Value::Map(from_map(map)),
    }
}

/// A decoded map as a `map[string]interface {}`.
pub(crate) fn from_map(map: goyaml::Map) -> Map {
    let entries = map.into_iter();
    let entries: Entries =
        entries.map(|(key, value)| (key.as_slice().into(), from_tree(value))).collect();
    Map::any(entries)
}

/// A decoded sequence as an `[]interface {}`.
pub(crate) fn from_items(items: Vec<goyaml::Value>) -> List {
    List::any(items.into_iter().map(from_tree).collect::<Vec<_>>())
}

/// A template value as `encoding/json` sees it, to be written as JSON or YAML.
#[derive(Clone)]
pub(crate) struct Json(pub(crate) Value);

impl Source for Json {
    type Text = Str;

    fn node(&self) -> Node<Self> {
        match &self.0 {
            Value::Bytes(bytes) => Node::String(base64_encode(bytes).into()),
            Value::Object(object) => match object.json_fields() {
                Some(fields) => Node::Struct(
                    fields.into_iter().map(|(name, value)| (name, Self(value))).collect(),
                ),
                None => marshalled(&**object),
            },
            other => plain(other, Self),
        }
    }
}

/// What a marshaller of its own makes of a value.
fn marshalled(object: &dyn Object) -> Node<Json> {
    // What has no JSON fails to be written; so does this.
    object.to_json().map_or(Node::Float(f64::NAN), |value| Json(value).node())
}

/// A template value as go-yaml v3 sees it without the way through JSON.
#[derive(Clone)]
pub(crate) struct Yaml(pub(crate) Value);

impl Source for Yaml {
    type Text = Str;

    fn node(&self) -> Node<Self> {
        match &self.0 {
            Value::Bytes(bytes) => {
                Node::Seq(bytes.iter().map(|byte| Self(Value::int(i64::from(*byte)))).collect())
            }
            Value::Object(object) => object_node(&**object),
            other => plain(other, Self),
        }
    }
}

/// Structs are written by their fields under lower-case names, everything else as its JSON.
fn object_node(object: &dyn Object) -> Node<Yaml> {
    let fields = object.fields();
    if !fields.is_empty() {
        let entries = fields.into_iter();
        return Node::Struct(
            entries.map(|(name, value)| (name.to_lowercase().into(), Yaml(value))).collect(),
        );
    }
    object.to_json().map_or(Node::Null, |value| Yaml(value).node())
}

/// The node of a value that is neither bytes nor an object.
fn plain<S: Source<Text = Str>>(value: &Value, child: impl Fn(Value) -> S) -> Node<S> {
    match value {
        Value::Nil | Value::Bytes(_) | Value::Object(_) => Node::Null,
        Value::Bool(value) => Node::Bool(*value),
        Value::Int(int) if int.kind.is_unsigned() => Node::Uint(int.bits.cast_unsigned()),
        Value::Int(int) => Node::Int(int.bits),
        Value::Float(value) => Node::Float(*value),
        Value::String(text) => Node::String(text.clone()),
        Value::List(list) if list.is_nil() => Node::NilSeq,
        Value::List(list) => Node::Seq(list.items().iter().cloned().map(child).collect()),
        Value::Map(map) if map.is_nil() => Node::NilMap,
        Value::Map(map) => Node::Map(
            map.entries().iter().map(|(key, value)| (key.clone(), child(value.clone()))).collect(),
        ),
    }
}
