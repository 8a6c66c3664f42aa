//! Values as Go templates see them.
//!
//! ```text
//! Value ── Nil | Bool | Int | Float | String | Bytes
//!       ├─ List   shared, immutable items      + its Go type
//!       ├─ Map    shared, mutable in place     + its Go type
//!       └─ Object a host struct: fields, methods
//! ```
//!
//! Cloning a value never copies its contents: lists and maps are shared, and a map that
//! `set` changes is changed for every holder, as in Go.

mod complex;
mod string;
mod types;

use std::any::Any;
use std::cell::{Cell, OnceCell, Ref, RefCell, RefMut};
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;

pub(crate) use complex::Complex;
pub use string::Str;
pub use types::{
    IntKind, Kind, LIST_ANY, LIST_INT, LIST_LIST_ANY, LIST_STRING, ListType, MAP_ANY, MAP_STRING,
    MapType, Type,
};

use crate::function::{Function, Method};

/// One template value.
#[derive(Clone, Default)]
pub enum Value {
    /// Go's nil interface: YAML `null`, a missing key, the literal `nil`.
    #[default]
    Nil,
    /// A `bool`.
    Bool(bool),
    /// An integer of any Go kind.
    Int(Int),
    /// A `float64`; YAML numbers are these.
    Float(f64),
    /// A `string`.
    String(Str),
    /// A `[]uint8`, as from `.Files.GetBytes`.
    Bytes(Str),
    /// A slice.
    List(List),
    /// A map with string keys.
    Map(Map),
    /// A host object.
    Object(Rc<dyn Object>),
}

/// An integer with its Go kind. Unsigned values are kept as the same 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Int {
    /// The Go kind.
    pub kind: IntKind,
    /// The value; for unsigned kinds, the bits of the `u64`.
    pub bits: i64,
}

impl Int {
    /// The value as a wide integer, right for signed and unsigned kinds alike.
    pub const fn to_i128(self) -> i128 {
        if self.kind.is_unsigned() { self.bits as u64 as i128 } else { self.bits as i128 }
    }
}

/// A Go slice: shared, and immutable but for [`List::sort`], the only write in place that
/// the functions of Helm do.
#[derive(Clone)]
pub struct List {
    ty: &'static ListType,
    storage: Rc<Storage>,
}

/// The storage of a [`List`].
struct Storage {
    items: Box<[Value]>,
    /// The items once they have been sorted. Sorted again they stay the same, so one place is
    /// enough, and whoever still reads the old order keeps it.
    sorted: OnceCell<Box<[Value]>>,
    nil: bool,
}

impl Drop for Storage {
    fn drop(&mut self) {
        // The sorted items are strings.
        let items = std::mem::take(&mut self.items);
        release(items, |items, pending| pending.extend(items));
    }
}

impl List {
    /// A slice of the given type. The items must be of its element type.
    pub fn new(ty: &'static ListType, items: impl Into<Box<[Value]>>) -> Self {
        let storage = Storage { items: items.into(), sorted: OnceCell::new(), nil: false };
        Self { ty, storage: Rc::new(storage) }
    }

    /// Go's nil slice: empty, but `null` in JSON and not deeply equal to an empty one.
    /// `concat` of nothing and `rest` of an empty list are such.
    pub fn nil(ty: &'static ListType) -> Self {
        let storage = Storage { items: Box::default(), sorted: OnceCell::new(), nil: true };
        Self { ty, storage: Rc::new(storage) }
    }

    /// Whether it is Go's nil slice.
    pub fn is_nil(&self) -> bool {
        self.storage.nil
    }

    /// The same storage under another Go type with the same element type, as Go's
    /// conversion from a named slice type.
    #[must_use]
    pub fn retyped(&self, ty: &'static ListType) -> Self {
        Self { ty, storage: Rc::clone(&self.storage) }
    }

    /// An `[]interface {}`.
    pub fn any(items: impl Into<Box<[Value]>>) -> Self {
        Self::new(&LIST_ANY, items)
    }

    /// A `[]string`.
    pub fn strings<S: Into<Str>>(items: impl IntoIterator<Item = S>) -> Self {
        let items: Vec<Value> = items.into_iter().map(|s| Value::String(s.into())).collect();
        Self::new(&LIST_STRING, items)
    }

    /// The Go type.
    pub const fn ty(&self) -> &'static ListType {
        self.ty
    }

    /// The items.
    pub fn items(&self) -> &[Value] {
        self.storage.sorted.get().unwrap_or(&self.storage.items)
    }

    /// Sorts strings by bytes, for every holder of this list. Items that are no strings stay
    /// in front.
    pub fn sort(&self) {
        self.storage.sorted.get_or_init(|| {
            let mut items = self.storage.items.clone();
            items.sort_by(|left, right| left.text().cmp(&right.text()));
            items
        });
    }

    /// Whether both are the same storage.
    pub fn same(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.storage, &other.storage)
    }

    /// A number that tells storages apart for as long as they live.
    pub fn id(&self) -> usize {
        Rc::as_ptr(&self.storage).addr()
    }
}

/// How deep lists and maps are dropped by recursion before the rest is put off.
const RELEASE_DEPTH: u32 = 64;

/// What is being dropped on this thread.
#[derive(Default)]
struct Release {
    depth: Cell<u32>,
    pending: RefCell<Vec<Value>>,
}

thread_local! {
    static RELEASE: Release = Release::default();
}

/// Drops what a list or map holds. Nesting has no bound, as templates can nest in a loop, so
/// beyond some depth the values go to a queue that the outermost call empties.
fn release<T>(contents: T, put_off: impl FnOnce(T, &mut Vec<Value>)) {
    // While the thread ends there is no queue any more; then it is plain recursion.
    let _ = RELEASE.try_with(|state| {
        let depth = state.depth.get();
        if depth >= RELEASE_DEPTH {
            put_off(contents, &mut state.pending.borrow_mut());
            return;
        }
        state.depth.set(depth + 1);
        drop(contents);
        state.depth.set(depth);
        if depth > 0 {
            return;
        }
        loop {
            let Some(next) = state.pending.borrow_mut().pop() else { return };
            state.depth.set(1);
            drop(next);
            state.depth.set(0);
        }
    });
}

/// The storage of a [`Map`]: keys in Go's order (bytes), which is how templates range
/// over maps and print them.
pub type Entries = BTreeMap<Str, Value>;

/// A Go map with string keys: shared, and changed in place.
#[derive(Clone)]
pub struct Map {
    ty: &'static MapType,
    storage: Rc<MapStorage>,
}

/// The storage of a [`Map`].
struct MapStorage {
    entries: RefCell<Entries>,
    nil: bool,
}

impl Drop for MapStorage {
    fn drop(&mut self) {
        let entries = std::mem::take(self.entries.get_mut());
        release(entries, |entries, pending| pending.extend(entries.into_values()));
    }
}

impl Map {
    /// A map of the given type. The values must be of its element type.
    pub fn new(ty: &'static MapType, entries: Entries) -> Self {
        Self { ty, storage: Rc::new(MapStorage { entries: RefCell::new(entries), nil: false }) }
    }

    /// Go's nil map: empty, `null` in JSON, and writing to it panics in Go, so whoever
    /// writes checks [`Map::is_nil`] first. `fromJson "null"` is one.
    pub fn nil(ty: &'static MapType) -> Self {
        Self { ty, storage: Rc::new(MapStorage { entries: RefCell::default(), nil: true }) }
    }

    /// Whether it is Go's nil map.
    pub fn is_nil(&self) -> bool {
        self.storage.nil
    }

    /// A `map[string]interface {}`.
    pub fn any(entries: Entries) -> Self {
        Self::new(&MAP_ANY, entries)
    }

    /// The Go type.
    pub const fn ty(&self) -> &'static MapType {
        self.ty
    }

    /// The same storage under another Go type with the same element type, as Go's
    /// conversion `map[string]interface{}(values)`.
    #[must_use]
    pub fn retyped(&self, ty: &'static MapType) -> Self {
        Self { ty, storage: Rc::clone(&self.storage) }
    }

    /// The value under `key`.
    pub fn get(&self, key: &[u8]) -> Option<Value> {
        self.storage.entries.borrow().get(key).cloned()
    }

    /// Sets `key`, for every holder of this map.
    ///
    /// Never call it while entries of the same map are borrowed: collect first, then set.
    pub fn set(&self, key: Str, value: Value) {
        self.storage.entries.borrow_mut().insert(key, value);
    }

    /// Removes `key`, for every holder of this map.
    pub fn remove(&self, key: &[u8]) -> Option<Value> {
        self.storage.entries.borrow_mut().remove(key)
    }

    /// The entries, for reading. The borrow must end before anything may change the map:
    /// never call into a template while holding it.
    pub fn entries(&self) -> Ref<'_, Entries> {
        self.storage.entries.borrow()
    }

    /// The entries, for writing, under the same rule.
    pub fn entries_mut(&self) -> RefMut<'_, Entries> {
        self.storage.entries.borrow_mut()
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.storage.entries.borrow().len()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.storage.entries.borrow().is_empty()
    }

    /// Whether both are the same storage.
    pub fn same(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.storage, &other.storage)
    }

    /// A number that tells storages apart for as long as they live.
    pub fn id(&self) -> usize {
        Rc::as_ptr(&self.storage).addr()
    }
}

/// A host value with fields and methods: a Go struct, a pointer to one, or a named type
/// that is neither a map nor a slice (`time.Duration`).
pub trait Object: Any {
    /// The name that `%T` prints, as `*semver.Version`.
    fn type_name(&self) -> &str;

    /// The Go kind: mostly [`Kind::Struct`] or [`Kind::Ptr`].
    fn kind(&self) -> Kind;

    /// An exported field; `None` when there is no such field.
    fn field(&self, name: &str) -> Option<Value> {
        let _ = name;
        None
    }

    /// The exported fields in Go's order of declaration, for encoders and for JSON (with the JSON name and `omitempty` already applied in [`Object::to_json`]).
    fn fields(&self) -> Vec<(&'static str, Value)> {
        Vec::new()
    }

    /// All fields in Go's order of declaration, the unexported ones too: what `%v` and `%d` print
    /// of a struct, and what a template is told it may not read.
    fn all_fields(&self) -> Vec<(&'static str, Value)> {
        self.fields()
    }

    /// The methods that templates may call, by exact name.
    fn methods(&self) -> &'static [Method] {
        &[]
    }

    /// What `%v` and plain output print when the Go type is a `fmt.Stringer` or `error`;
    /// `None` for types that Go prints by structure.
    fn string(&self) -> Option<Str> {
        None
    }

    /// What an action prints of a struct that Go can address and whose pointer type is a
    /// `fmt.Stringer`, such as a field of a pointed-to struct; `%v` prints its structure.
    fn addressed_string(&self) -> Option<Str> {
        None
    }

    /// What a pointer's struct prints, when its type by itself is a `fmt.Stringer`; [`Object::string`]
    /// is the pointer's text, which may come from a method of the pointer alone.
    fn pointee_string(&self) -> Option<Str> {
        None
    }

    /// What a function gets for it, when that is another thing: Go copies a struct into an
    /// interface, and a copy cannot be addressed, so that it lacks the methods of the pointer type.
    fn copied(&self) -> Option<Value> {
        None
    }

    /// For a named type over a basic kind, the value as that plain kind.
    fn underlying(&self) -> Option<Value> {
        None
    }

    /// What `encoding/json` makes of it, as plain values; `None` when it cannot marshal.
    fn to_json(&self) -> Option<Value> {
        None
    }

    /// For a struct without a marshaller of its own: what `encoding/json` writes, in the order of
    /// the fields' declaration. Comes before [`Object::to_json`].
    fn json_fields(&self) -> Option<Vec<(Str, Value)>> {
        None
    }

    /// For a value of kind [`Kind::Func`], the function, for the builtin `call`.
    fn function(&self) -> Option<Function> {
        None
    }

    /// Whether it is a nil pointer or nil function.
    fn is_nil(&self) -> bool {
        false
    }

    /// Go's truth of the value; structs and non-nil pointers are true.
    fn is_true(&self) -> bool {
        !self.is_nil()
    }

    /// For downcasting in the functions that take this type.
    fn as_any(&self) -> &dyn Any;
}

impl Value {
    /// A Go `int`.
    pub const fn int(value: i64) -> Self {
        Self::Int(Int { kind: IntKind::Int, bits: value })
    }

    /// A Go `int64`.
    pub const fn int64(value: i64) -> Self {
        Self::Int(Int { kind: IntKind::Int64, bits: value })
    }

    /// An integer of the given kind.
    pub const fn sized(kind: IntKind, bits: i64) -> Self {
        Self::Int(Int { kind, bits })
    }

    /// A string.
    pub fn string(text: impl Into<Str>) -> Self {
        Self::String(text.into())
    }

    /// An `[]interface {}`.
    pub fn list(items: impl Into<Box<[Self]>>) -> Self {
        Self::List(List::any(items))
    }

    /// A `map[string]interface {}`.
    pub fn map<K: Into<Str>>(entries: impl IntoIterator<Item = (K, Self)>) -> Self {
        Self::Map(Map::any(entries.into_iter().map(|(k, v)| (k.into(), v)).collect()))
    }

    /// The text of a string.
    pub const fn text(&self) -> Option<&Str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// Go's kind of the value inside the interface.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Nil => Kind::Invalid,
            Self::Bool(_) => Kind::Bool,
            Self::Int(int) => Kind::Int(int.kind),
            Self::Float(_) => Kind::Float64,
            Self::String(_) => Kind::String,
            Self::Bytes(_) | Self::List(_) => Kind::Slice,
            Self::Map(_) => Kind::Map,
            Self::Object(object) => object.kind(),
        }
    }

    /// What `%T` prints: the Go type inside the interface, `<nil>` for nil.
    pub fn type_name(&self) -> &str {
        match self {
            Self::Nil => "<nil>",
            Self::Bool(_) => "bool",
            Self::Int(int) => int.kind.name(),
            Self::Float(_) => "float64",
            Self::String(_) => "string",
            Self::Bytes(_) => "[]uint8",
            Self::List(list) => list.ty.name,
            Self::Map(map) => map.ty.name,
            Self::Object(object) => object.type_name(),
        }
    }

    /// Go templates' truth (`text/template.IsTrue`): zero, empty and nil are false.
    pub fn is_true(&self) -> bool {
        match self {
            Self::Nil => false,
            Self::Bool(value) => *value,
            Self::Int(int) => int.bits != 0,
            Self::Float(value) => *value != 0.0,
            Self::String(text) | Self::Bytes(text) => !text.is_empty(),
            Self::List(list) => !list.items().is_empty(),
            Self::Map(map) => !map.is_empty(),
            Self::Object(object) => object.is_true(),
        }
    }

    /// The zero value of a static type, as `missingkey=zero` yields it. `Any`, and the
    /// types that templates cannot make, give [`Value::Nil`].
    pub fn zero(ty: Type) -> Self {
        match ty {
            Type::Bool => Self::Bool(false),
            Type::Int(kind) => Self::sized(kind, 0),
            Type::Float32 | Type::Float64 => Self::Float(0.0),
            Type::String => Self::String(Str::default()),
            Type::Bytes => Self::Bytes(Str::default()),
            Type::List(list) => Self::List(List::nil(list)),
            Type::Map(map) => Self::Map(Map::nil(map)),
            Type::Any | Type::Named(..) | Type::Reflect => Self::Nil,
        }
    }
}

impl fmt::Debug for Value {
    /// Prints structure to a bounded depth, since maps may contain themselves.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nil => f.write_str("Nil"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Int(int) => write!(f, "{}({})", int.kind.name(), int.to_i128()),
            Self::Float(value) => write!(f, "float64({value})"),
            Self::String(text) => write!(f, "{text:?}"),
            Self::Bytes(text) => write!(f, "bytes({text:?})"),
            Self::List(list) => write!(f, "{}[{} items]", list.ty.name, list.items().len()),
            Self::Map(map) => write!(f, "{}{{{} entries}}", map.ty.name, map.len()),
            Self::Object(object) => write!(f, "object({})", object.type_name()),
        }
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}

impl From<Str> for Value {
    fn from(text: Str) -> Self {
        Self::String(text)
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::String(text.into())
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::String(text.into())
    }
}

impl From<List> for Value {
    fn from(list: List) -> Self {
        Self::List(list)
    }
}

impl From<Map> for Value {
    fn from(map: Map) -> Self {
        Self::Map(map)
    }
}
