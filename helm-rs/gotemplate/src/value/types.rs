//! The Go types that template values carry, as far as templates can observe them:
//! by `printf "%T"`, `kindOf`, `typeOf`, argument checks and zero values.

use crate::function::Method;

/// Go's integer kinds. `rune` is `Int32`, `byte` is `Uint8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each variant is the Go kind of the same name")]
pub enum IntKind {
    Int,
    Int8,
    Int16,
    Int32,
    Int64,
    Uint,
    Uint8,
    Uint16,
    Uint32,
    Uint64,
    Uintptr,
}

impl IntKind {
    /// Whether the kind is one of the unsigned ones.
    pub const fn is_unsigned(self) -> bool {
        matches!(
            self,
            Self::Uint | Self::Uint8 | Self::Uint16 | Self::Uint32 | Self::Uint64 | Self::Uintptr
        )
    }

    /// The value of the low bits of this kind's size, as a Go conversion keeps them.
    pub const fn wrap(self, bits: i64) -> i64 {
        match self {
            Self::Int8 => bits as i8 as i64,
            Self::Int16 => bits as i16 as i64,
            Self::Int32 => bits as i32 as i64,
            Self::Uint8 => bits as u8 as i64,
            Self::Uint16 => bits as u16 as i64,
            Self::Uint32 => bits as u32 as i64,
            Self::Int | Self::Int64 | Self::Uint | Self::Uint64 | Self::Uintptr => bits,
        }
    }

    /// The Go name of the kind and of the predeclared type.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Int => "int",
            Self::Int8 => "int8",
            Self::Int16 => "int16",
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::Uint => "uint",
            Self::Uint8 => "uint8",
            Self::Uint16 => "uint16",
            Self::Uint32 => "uint32",
            Self::Uint64 => "uint64",
            Self::Uintptr => "uintptr",
        }
    }
}

/// Go's `reflect.Kind` of a value that a template can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each variant is the Go kind of the same name")]
pub enum Kind {
    /// No value at all: `reflect.Invalid`, what `kindOf nil` prints as `invalid`.
    Invalid,
    Bool,
    Int(IntKind),
    Float32,
    Float64,
    Complex128,
    String,
    Slice,
    Map,
    Struct,
    Ptr,
    Func,
    Interface,
}

impl Kind {
    /// The name that Go's `reflect.Kind.String` gives.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Invalid => "invalid",
            Self::Bool => "bool",
            Self::Int(kind) => kind.name(),
            Self::Float32 => "float32",
            Self::Float64 => "float64",
            Self::Complex128 => "complex128",
            Self::String => "string",
            Self::Slice => "slice",
            Self::Map => "map",
            Self::Struct => "struct",
            Self::Ptr => "ptr",
            Self::Func => "func",
            Self::Interface => "interface",
        }
    }
}

/// A static Go type: of a parameter, of a slice's or map's elements.
#[derive(Clone, Copy, Debug)]
pub enum Type {
    /// `interface {}`.
    Any,
    /// `bool`.
    Bool,
    /// An integer type.
    Int(IntKind),
    /// `float32`.
    Float32,
    /// `float64`.
    Float64,
    /// `string`.
    String,
    /// `[]uint8`.
    Bytes,
    /// A slice type.
    List(&'static ListType),
    /// A map type with string keys.
    Map(&'static MapType),
    /// Another type, known by its Go name (`time.Time`, `*semver.Version`) and kind.
    Named(&'static str, Kind),
    /// `reflect.Value`: the argument arrives as it is, as for the template builtins.
    Reflect,
}

impl Type {
    /// The name that `%T` and argument errors print.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Any => "interface {}",
            Self::Bool => "bool",
            Self::Int(kind) => kind.name(),
            Self::Float32 => "float32",
            Self::Float64 => "float64",
            Self::String => "string",
            Self::Bytes => "[]uint8",
            Self::List(list) => list.name,
            Self::Map(map) => map.name,
            Self::Named(name, _) => name,
            Self::Reflect => "reflect.Value",
        }
    }

    /// The type's kind; `Interface` for [`Type::Any`].
    pub const fn kind(self) -> Kind {
        match self {
            Self::Any => Kind::Interface,
            Self::Bool => Kind::Bool,
            Self::Int(kind) => Kind::Int(kind),
            Self::Float32 => Kind::Float32,
            Self::Float64 => Kind::Float64,
            Self::String => Kind::String,
            Self::Bytes | Self::List(_) => Kind::Slice,
            Self::Map(_) => Kind::Map,
            Self::Named(_, kind) => kind,
            Self::Reflect => Kind::Struct,
        }
    }
}

/// Go's types are told apart by their names.
impl PartialEq for Type {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Type {}

/// A slice type, unnamed (`[]string`) or named with methods (`chartutil.VersionSet`).
#[derive(Debug)]
pub struct ListType {
    /// The name that `%T` prints.
    pub name: &'static str,
    /// The element type.
    pub element: Type,
    /// Methods of a named slice type; empty for the others.
    pub methods: &'static [Method],
}

/// A map type with string keys, unnamed or named with methods (`chartutil.Values`).
#[derive(Debug)]
pub struct MapType {
    /// The name that `%T` prints.
    pub name: &'static str,
    /// The element type.
    pub element: Type,
    /// Methods of a named map type; empty for the others.
    pub methods: &'static [Method],
}

/// `[]interface {}`, what YAML lists and `list` are.
pub static LIST_ANY: ListType =
    ListType { name: "[]interface {}", element: Type::Any, methods: &[] };
/// `[]string`, as from `splitList`, `keys`, `sortAlpha`.
pub static LIST_STRING: ListType =
    ListType { name: "[]string", element: Type::String, methods: &[] };
/// `[]int`, as from `until`.
pub static LIST_INT: ListType =
    ListType { name: "[]int", element: Type::Int(IntKind::Int), methods: &[] };
/// `[][]interface {}`, as from `chunk`.
pub static LIST_LIST_ANY: ListType =
    ListType { name: "[][]interface {}", element: Type::List(&LIST_ANY), methods: &[] };
/// `map[string]interface {}`, what YAML mappings and `dict` are.
pub static MAP_ANY: MapType =
    MapType { name: "map[string]interface {}", element: Type::Any, methods: &[] };
/// `map[string]string`, as from `split`.
pub static MAP_STRING: MapType =
    MapType { name: "map[string]string", element: Type::String, methods: &[] };
