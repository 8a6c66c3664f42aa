//! The plain data that YAML and JSON decode to.

use std::collections::{BTreeMap, btree_map};

use bstr::{BStr, BString};

/// Plain owned data: what YAML or JSON decodes to in Go's `interface{}` world.
///
/// Text is bytes, because Go strings are. What a decoder returns is valid UTF-8: bytes that are
/// none, as `!!binary` scalars may hold, become U+FFFD on the way through JSON.
///
/// ```
/// use goyaml::{Limits, Value};
///
/// let value = goyaml::from_yaml(b"replicas: 3", &Limits::default())?;
/// assert_eq!(value.get("replicas"), Some(&Value::Float(3.0)));
/// # Ok::<(), goyaml::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Value {
    /// Go's `nil`.
    #[default]
    Null,
    /// `bool`
    Bool(bool),
    /// `int64`; only the `_exact` decoders produce it.
    Int(i64),
    /// `uint64`: an integer above `i64::MAX`; only the `_exact` decoders produce it.
    Uint(u64),
    /// `float64`: every number, unless integers were asked to be kept.
    Float(f64),
    /// `string`
    String(BString),
    /// `[]interface {}`
    Seq(Vec<Self>),
    /// `map[string]interface {}`
    Map(Map),
}

impl Value {
    /// The text of a string.
    pub fn as_str(&self) -> Option<&BStr> {
        match self {
            Self::String(text) => Some(text.as_ref()),
            _ => None,
        }
    }

    /// The truth value of a boolean.
    pub const fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// Any number as `float64`.
    pub const fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Int(value) => Some(*value as f64),
            Self::Uint(value) => Some(*value as f64),
            Self::Float(value) => Some(*value),
            _ => None,
        }
    }

    /// The entries of a map.
    pub const fn as_map(&self) -> Option<&Map> {
        match self {
            Self::Map(map) => Some(map),
            _ => None,
        }
    }

    /// The entries of a map, to be changed.
    pub const fn as_map_mut(&mut self) -> Option<&mut Map> {
        match self {
            Self::Map(map) => Some(map),
            _ => None,
        }
    }

    /// The map itself.
    pub fn into_map(self) -> Option<Map> {
        match self {
            Self::Map(map) => Some(map),
            _ => None,
        }
    }

    /// The items of a sequence.
    pub const fn as_seq(&self) -> Option<&[Self]> {
        match self {
            Self::Seq(items) => Some(items.as_slice()),
            _ => None,
        }
    }

    /// The items of a sequence, to be changed.
    pub const fn as_seq_mut(&mut self) -> Option<&mut Vec<Self>> {
        match self {
            Self::Seq(items) => Some(items),
            _ => None,
        }
    }

    /// The value under `key`, if this is a map that has it.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Option<&Self> {
        self.as_map()?.get(key)
    }

    /// Follows `path` through nested maps.
    ///
    /// ```
    /// # use goyaml::{Limits, Value};
    /// let value = goyaml::from_yaml(b"a: {b: {c: x}}", &Limits::default())?;
    /// assert_eq!(value.at(&["a", "b", "c"]), Some(&Value::from("x")));
    /// # Ok::<(), goyaml::Error>(())
    /// ```
    pub fn at(&self, path: &[&str]) -> Option<&Self> {
        path.iter().try_fold(self, |value, key| value.get(key))
    }

    /// Whether this is Go's `nil`.
    pub const fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// The name of the Go type, as `%T` prints it.
    pub const fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "<nil>",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int64",
            Self::Uint(_) => "uint64",
            Self::Float(_) => "float64",
            Self::String(_) => "string",
            Self::Seq(_) => "[]interface {}",
            Self::Map(_) => "map[string]interface {}",
        }
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<u64> for Value {
    fn from(value: u64) -> Self {
        Self::Uint(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::String(value.into())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Self::String(value.into())
    }
}

impl From<BString> for Value {
    fn from(value: BString) -> Self {
        Self::String(value)
    }
}

impl From<Vec<Self>> for Value {
    fn from(value: Vec<Self>) -> Self {
        Self::Seq(value)
    }
}

impl From<Map> for Value {
    fn from(value: Map) -> Self {
        Self::Map(value)
    }
}

/// A `map[string]interface {}`, iterated in the byte order of its keys.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Map {
    entries: BTreeMap<BString, Value>,
}

impl Map {
    /// A map without entries.
    pub const fn new() -> Self {
        Self { entries: BTreeMap::new() }
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The value under `key`.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Option<&Value> {
        self.entries.get(BStr::new(key.as_ref()))
    }

    /// The value under `key`, to be changed.
    pub fn get_mut(&mut self, key: impl AsRef<[u8]>) -> Option<&mut Value> {
        self.entries.get_mut(BStr::new(key.as_ref()))
    }

    /// Whether `key` is there, be its value null or not.
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> bool {
        self.entries.contains_key(BStr::new(key.as_ref()))
    }

    /// Sets `key` and returns what it held before.
    pub fn insert(&mut self, key: impl Into<BString>, value: impl Into<Value>) -> Option<Value> {
        self.entries.insert(key.into(), value.into())
    }

    /// Removes `key` and returns what it held.
    pub fn remove(&mut self, key: impl AsRef<[u8]>) -> Option<Value> {
        self.entries.remove(BStr::new(key.as_ref()))
    }

    /// The entry of `key`, as in the standard library's maps.
    pub fn entry(&mut self, key: impl Into<BString>) -> btree_map::Entry<'_, BString, Value> {
        self.entries.entry(key.into())
    }

    /// Keeps the entries for which `keep` says so.
    pub fn retain(&mut self, keep: impl FnMut(&BString, &mut Value) -> bool) {
        self.entries.retain(keep);
    }

    /// The entries in the byte order of their keys.
    pub fn iter(&self) -> btree_map::Iter<'_, BString, Value> {
        self.entries.iter()
    }

    /// The entries, their values to be changed.
    pub fn iter_mut(&mut self) -> btree_map::IterMut<'_, BString, Value> {
        self.entries.iter_mut()
    }

    /// The keys in byte order.
    pub fn keys(&self) -> btree_map::Keys<'_, BString, Value> {
        self.entries.keys()
    }

    /// The values in the byte order of their keys.
    pub fn values(&self) -> btree_map::Values<'_, BString, Value> {
        self.entries.values()
    }

    /// The values, to be changed.
    pub fn values_mut(&mut self) -> btree_map::ValuesMut<'_, BString, Value> {
        self.entries.values_mut()
    }
}

impl<K: Into<BString>> FromIterator<(K, Value)> for Map {
    fn from_iter<I: IntoIterator<Item = (K, Value)>>(entries: I) -> Self {
        Self { entries: entries.into_iter().map(|(key, value)| (key.into(), value)).collect() }
    }
}

impl<K: Into<BString>> Extend<(K, Value)> for Map {
    fn extend<I: IntoIterator<Item = (K, Value)>>(&mut self, entries: I) {
        self.entries.extend(entries.into_iter().map(|(key, value)| (key.into(), value)));
    }
}

impl IntoIterator for Map {
    type Item = (BString, Value);
    type IntoIter = btree_map::IntoIter<BString, Value>;

    fn into_iter(self) -> Self::IntoIter {
        self.entries.into_iter()
    }
}

impl<'a> IntoIterator for &'a Map {
    type Item = (&'a BString, &'a Value);
    type IntoIter = btree_map::Iter<'a, BString, Value>;

    fn into_iter(self) -> Self::IntoIter {
        self.entries.iter()
    }
}

impl<'a> IntoIterator for &'a mut Map {
    type Item = (&'a BString, &'a mut Value);
    type IntoIter = btree_map::IterMut<'a, BString, Value>;

    fn into_iter(self) -> Self::IntoIter {
        self.entries.iter_mut()
    }
}
