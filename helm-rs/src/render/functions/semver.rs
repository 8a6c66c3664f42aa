//! Semantic versions in templates (`sprig/semver.go`): the `*semver.Version` object.

use std::any::Any;
use std::cell::RefCell;
use std::rc::Rc;

use gotemplate::{
    CallError, Function, FunctionMap, IntKind, Kind, Method, Object, Str, Type, Value,
};

use crate::semver::{Constraint, Error, Version};

impl From<Error> for CallError {
    fn from(error: Error) -> Self {
        Self::new(error.to_string())
    }
}

fn semver(text: Str) -> Result<Value, CallError> {
    let version = Version::parse(text.as_bytes())?;
    Ok(Value::Object(Rc::new(Pointer(RefCell::new(version)))))
}

fn semver_compare(constraint: Str, version: Str) -> Result<bool, CallError> {
    let constraint = Constraint::parse(constraint.as_bytes())?;
    Ok(constraint.check(&Version::parse(version.as_bytes())?))
}

pub(super) fn register(functions: &mut FunctionMap) {
    functions.insert("semver", Function::new(semver));
    functions.insert("semverCompare", Function::new(semver_compare));
}

/// A `*semver.Version`, which `Scan` changes in place.
#[derive(Debug)]
struct Pointer(RefCell<Version>);

/// A `semver.Version`, as from `IncMajor`: it has the methods with a value receiver only.
#[derive(Debug)]
struct Plain(Version);

macro_rules! object {
    ($ty:ty, $name:literal, $kind:expr, $methods:expr, |$this:ident| $version:expr) => {
        impl Object for $ty {
            fn type_name(&self) -> &'static str {
                $name
            }

            fn kind(&self) -> Kind {
                $kind
            }

            fn methods(&self) -> &'static [Method] {
                $methods
            }

            fn all_fields(&self) -> Vec<(&'static str, Value)> {
                let $this = self;
                private_fields(&$version)
            }

            fn string(&self) -> Option<Str> {
                let $this = self;
                Some($version.to_string().into())
            }

            fn pointee_string(&self) -> Option<Str> {
                self.string()
            }

            fn to_json(&self) -> Option<Value> {
                self.string().map(Value::String)
            }

            fn as_any(&self) -> &dyn Any {
                self
            }
        }
    };
}

/// The fields of Go's struct, none of them exported.
fn private_fields(version: &Version) -> Vec<(&'static str, Value)> {
    let number = |number: u64| Value::sized(IntKind::Uint64, number.cast_signed());
    vec![
        ("major", number(version.major())),
        ("minor", number(version.minor())),
        ("patch", number(version.patch())),
        ("pre", version.prerelease().into()),
        ("metadata", version.metadata().into()),
        ("original", version.original().into()),
    ]
}

object!(Pointer, "*semver.Version", Kind::Ptr, POINTER_METHODS, |this| this.0.borrow());
object!(Plain, "semver.Version", Kind::Struct, PLAIN_METHODS, |this| this.0);

/// What copystructure makes of a version: it does not copy unexported fields, and a version has no
/// others.
pub(super) fn blank_copy(object: &dyn Object) -> Option<Value> {
    if object.as_any().is::<Pointer>() {
        Some(Value::Object(Rc::new(Pointer(RefCell::default()))))
    } else {
        object.as_any().is::<Plain>().then(|| plain(Version::default()))
    }
}

fn mismatch() -> CallError {
    CallError::from("the method's receiver or argument is of another type")
}

fn version(value: &Value) -> Result<Version, CallError> {
    let Value::Object(object) = value else { return Err(mismatch()) };
    let any = object.as_any();
    if let Some(pointer) = any.downcast_ref::<Pointer>() {
        return Ok(pointer.0.borrow().clone());
    }
    any.downcast_ref::<Plain>().map(|plain| plain.0.clone()).ok_or_else(mismatch)
}

/// The other version of a comparison, a pointer; what Go says about a nil one.
fn other(args: &[Value]) -> Result<Version, CallError> {
    match args.first() {
        None | Some(Value::Nil) => {
            Err(CallError::from("runtime error: invalid memory address or nil pointer dereference"))
        }
        Some(value) => version(value),
    }
}

fn text(args: &[Value]) -> Result<String, CallError> {
    match args.first() {
        Some(Value::String(text)) => Ok(text.to_text().into_owned()),
        _ => Err(mismatch()),
    }
}

fn plain(version: Version) -> Value {
    Value::Object(Rc::new(Plain(version)))
}

/// The next version, or Go's panic about the segment.
fn next(version: Option<Version>, segment: &str) -> Result<Value, CallError> {
    version.map(plain).ok_or_else(|| {
        CallError::from(format!("{segment} version increment would overflow uint64"))
    })
}

fn number(value: u64) -> Value {
    Value::sized(IntKind::Uint64, value as i64)
}

fn compare(this: &Value, args: &[Value]) -> Result<std::cmp::Ordering, CallError> {
    let this = version(this)?;
    Ok(this.compare(&other(args)?))
}

fn scan(this: &Value, args: &[Value]) -> Result<Value, CallError> {
    let source = args.first().unwrap_or(&Value::Nil);
    let parsed = match source {
        Value::String(text) | Value::Bytes(text) => Version::parse(text.as_bytes())?,
        Value::Nil => return Err(CallError::from("cannot scan nil into Version")),
        other => {
            let message = format!("unsupported Scan type {}", other.type_name());
            return Err(CallError::from(message));
        }
    };
    let Value::Object(object) = this else { return Err(mismatch()) };
    let pointer = object.as_any().downcast_ref::<Pointer>().ok_or_else(mismatch)?;
    pointer.0.replace(parsed);
    Ok(Value::Nil)
}

const VERSION: Type = Type::Named("*semver.Version", Kind::Ptr);

macro_rules! method {
    ($name:literal ($($param:expr),*) => $body:expr) => {
        Method { name: $name, params: &[$($param),*], variadic: false, call: $body }
    };
}

// The methods with a value receiver; a pointer has them too.
const INC_MAJOR: Method =
    method!("IncMajor" () => |this, _| next(version(this)?.next_major(), "major"));
const INC_MINOR: Method =
    method!("IncMinor" () => |this, _| next(version(this)?.next_minor(), "minor"));
const INC_PATCH: Method =
    method!("IncPatch" () => |this, _| next(version(this)?.next_patch(), "patch"));
const MAJOR: Method = method!("Major" () => |this, _| Ok(number(version(this)?.major())));
const MARSHAL_JSON: Method = method!("MarshalJSON" () => |this, _| {
    Ok(Value::Bytes(format!("\"{}\"", version(this)?).into()))
});
const MARSHAL_TEXT: Method = method!("MarshalText" () => |this, _| {
    Ok(Value::Bytes(version(this)?.to_string().into()))
});
const METADATA: Method =
    method!("Metadata" () => |this, _| Ok(Value::string(version(this)?.metadata())));
const MINOR: Method = method!("Minor" () => |this, _| Ok(number(version(this)?.minor())));
const PATCH: Method = method!("Patch" () => |this, _| Ok(number(version(this)?.patch())));
const PRERELEASE: Method =
    method!("Prerelease" () => |this, _| Ok(Value::string(version(this)?.prerelease())));
const SET_METADATA: Method = method!("SetMetadata" (Type::String) => |this, args| {
    Ok(plain(version(this)?.with_metadata(&text(args)?)?))
});
const SET_PRERELEASE: Method = method!("SetPrerelease" (Type::String) => |this, args| {
    Ok(plain(version(this)?.with_prerelease(&text(args)?)?))
});
const STRING: Method =
    method!("String" () => |this, _| Ok(Value::string(version(this)?.to_string())));
const VALUE: Method =
    method!("Value" () => |this, _| Ok(Value::string(version(this)?.to_string())));

static PLAIN_METHODS: &[Method] = &[
    INC_MAJOR,
    INC_MINOR,
    INC_PATCH,
    MAJOR,
    MARSHAL_JSON,
    MARSHAL_TEXT,
    METADATA,
    MINOR,
    PATCH,
    PRERELEASE,
    SET_METADATA,
    SET_PRERELEASE,
    STRING,
    VALUE,
];

static POINTER_METHODS: &[Method] = &[
    method!("Compare" (VERSION) => |this, args| Ok(Value::int(compare(this, args)? as i64))),
    method!("Equal" (VERSION) => |this, args| {
        let same = !matches!(args.first(), None | Some(Value::Nil)) && compare(this, args)?.is_eq();
        Ok(Value::Bool(same))
    }),
    method!("GreaterThan" (VERSION) => |this, args| Ok(Value::Bool(compare(this, args)?.is_gt()))),
    method!("GreaterThanEqual" (VERSION) => |this, args| {
        Ok(Value::Bool(compare(this, args)?.is_ge()))
    }),
    INC_MAJOR,
    INC_MINOR,
    INC_PATCH,
    method!("LessThan" (VERSION) => |this, args| Ok(Value::Bool(compare(this, args)?.is_lt()))),
    method!("LessThanEqual" (VERSION) => |this, args| {
        Ok(Value::Bool(compare(this, args)?.is_le()))
    }),
    MAJOR,
    MARSHAL_JSON,
    MARSHAL_TEXT,
    METADATA,
    MINOR,
    method!("Original" () => |this, _| Ok(Value::string(version(this)?.original()))),
    PATCH,
    PRERELEASE,
    method!("Scan" (Type::Any) => scan),
    SET_METADATA,
    SET_PRERELEASE,
    STRING,
    VALUE,
];
