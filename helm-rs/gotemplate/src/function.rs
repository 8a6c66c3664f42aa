//! Functions and methods that templates call, and their Go signatures.
//!
//! A function is a plain Rust function over typed arguments; its Go signature, which
//! decides argument checks and error texts, follows from the types:
//!
//! | Rust parameter | Go parameter |
//! |---|---|
//! | `Value` | `interface {}` |
//! | `Str` | `string` |
//! | `bool`, `f64` | `bool`, `float64` |
//! | `i64` | `int` |
//! | [`Int64`] | `int64` |
//! | `List` | `[]interface {}` |
//! | [`Strings`] | `[]string` |
//! | `Map` | `map[string]interface {}` |
//! | [`Rest<T>`], last only | `...T` |
//!
//! ```
//! use gotemplate::{Function, Str};
//!
//! fn repeat(count: i64, text: Str) -> String {
//!     text.to_text().repeat(usize::try_from(count).unwrap_or(0))
//! }
//! let function = Function::new(repeat);
//! assert_eq!(function.signature().params.len(), 2);
//! ```

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use crate::value::{IntKind, LIST_ANY, LIST_STRING, List, MAP_ANY, Map, Str, Type, Value};

/// The functions of a template set, by name.
pub type FunctionMap = HashMap<&'static str, Function>;

/// What a function says went wrong: the text of the Go `error`, or of the recovered panic.
///
/// The executor puts `error calling NAME: ` and the place before it.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct CallError {
    /// Go's text. Not necessarily UTF-8, since it may quote a template's data.
    pub message: Str,
    /// Whether it is of Go's own, about the function, and not what the function says.
    pub(crate) is_of_go: bool,
}

impl CallError {
    /// An error with Go's text.
    pub fn new(message: impl Into<Str>) -> Self {
        Self { message: message.into(), is_of_go: false }
    }

    /// The error of calling a method that is there and answers nothing (`goodFunc`).
    pub fn without_result(name: &str) -> Self {
        let message = format!("function {name} has 0 return values; should be 1 or 2");
        Self { message: message.into(), is_of_go: true }
    }
}

impl From<String> for CallError {
    fn from(message: String) -> Self {
        Self::new(message)
    }
}

impl From<&str> for CallError {
    fn from(message: &str) -> Self {
        Self::new(message)
    }
}

/// What a running template offers to the functions it calls.
pub trait Runtime {
    /// Runs the named template with `data` as its dot and returns what it writes, as
    /// `ExecuteTemplate` into a buffer does. The error carries the whole text of the
    /// template error.
    ///
    /// # Errors
    /// When there is no such template, it fails, or a limit is reached.
    fn execute(&mut self, name: &Str, data: Value) -> Result<Str, CallError>;

    /// Parses `text` into a copy of the current template set under `name`, runs it with
    /// `data`, and returns what it writes; the definitions in `text` are seen only by it.
    /// This is what Helm's `tpl` needs (`pkg/engine/engine.go`, `tplFun`).
    ///
    /// # Errors
    /// [`TextError::Parse`] or [`TextError::Execute`] with the template error's text.
    fn execute_text(&mut self, name: &Str, text: &Str, data: Value) -> Result<Str, TextError>;

    /// The name of the template set's root (Go's `parent.Name()`), which `tpl` uses.
    fn root_name(&self) -> Str;

    /// The caller's own state, as handed to the execution: clock, randomness, lookups.
    fn host(&mut self) -> &mut dyn Any;
}

/// Why [`Runtime::execute_text`] failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum TextError {
    /// The text does not parse.
    #[error("{0}")]
    Parse(Str),
    /// The parsed text failed while running.
    #[error("{0}")]
    Execute(Str),
}

/// A Go signature, as far as calls are checked against it.
#[derive(Clone, Debug)]
pub struct Signature {
    /// Parameter types; of a variadic parameter, the element type.
    pub params: Vec<Type>,
    /// Whether the last parameter takes any number of arguments.
    pub variadic: bool,
}

type Body = dyn Fn(&mut dyn Runtime, &[Value]) -> Result<Value, CallError> + Send + Sync;

/// A function that templates can call.
#[derive(Clone)]
pub struct Function {
    signature: Arc<Signature>,
    /// Whether the Go function is declared to return `interface {}`.
    returns_interface: bool,
    body: Arc<Body>,
}

impl Function {
    /// A function from a plain Rust one; the signature follows from its types. A first
    /// parameter `&mut dyn Runtime` is not part of the Go signature.
    pub fn new<Marker>(native: impl Native<Marker>) -> Self {
        let signature = native.signature();
        Self {
            signature: Arc::new(signature),
            returns_interface: native.returns_interface(),
            body: Arc::new(move |runtime, args| native.call(runtime, args)),
        }
    }

    /// A function with an explicit signature; `body` gets arguments that satisfy it. It
    /// counts as returning `interface {}`.
    pub fn with_signature(
        signature: Signature,
        body: impl Fn(&mut dyn Runtime, &[Value]) -> Result<Value, CallError> + Send + Sync + 'static,
    ) -> Self {
        Self { signature: Arc::new(signature), returns_interface: true, body: Arc::new(body) }
    }

    /// The Go signature.
    pub fn signature(&self) -> &Signature {
        &self.signature
    }

    /// Whether the Go function is declared to return `interface {}`, so that a nil from it
    /// is a nil interface; it shows in a few error texts (`nil pointer evaluating`).
    pub const fn returns_interface(&self) -> bool {
        self.returns_interface
    }

    /// Calls the function. The executor has checked `args` against the signature.
    ///
    /// # Errors
    /// What the function says.
    pub fn call(&self, runtime: &mut dyn Runtime, args: &[Value]) -> Result<Value, CallError> {
        (self.body)(runtime, args)
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Function").field("signature", &self.signature).finish_non_exhaustive()
    }
}

/// A method of a named type, in a static table.
#[derive(Debug)]
pub struct Method {
    /// The exported name.
    pub name: &'static str,
    /// Parameter types, the receiver not among them.
    pub params: &'static [Type],
    /// Whether the last parameter is variadic; its type is then the element's.
    pub variadic: bool,
    /// The body: receiver, then arguments that satisfy the parameter types.
    pub call: fn(&Value, &[Value]) -> Result<Value, CallError>,
}

/// A Go `int64` parameter.
#[derive(Clone, Copy, Debug)]
pub struct Int64(pub i64);

/// A `[]string` parameter.
#[derive(Clone)]
pub struct Strings(pub List);

/// A variadic parameter.
pub struct Rest<T>(pub Vec<T>);

/// A Rust type that stands for a Go parameter type.
pub trait Param: Sized {
    /// The Go type; for [`Rest`], of the elements.
    const TYPE: Type;
    /// Whether it takes all arguments that are left.
    const VARIADIC: bool = false;

    /// Takes it from the front of `args`; `None` when the value is of another type, which
    /// the executor's check has ruled out.
    fn take(args: &mut std::slice::Iter<'_, Value>) -> Option<Self>;
}

/// Converts one checked argument.
trait FromValue: Sized {
    const GO: Type;
    fn from_value(value: &Value) -> Option<Self>;
}

macro_rules! from_value {
    ($ty:ty, $go:expr, $($pattern:pat => $result:expr),+) => {
        impl FromValue for $ty {
            const GO: Type = $go;
            fn from_value(value: &Value) -> Option<Self> {
                match value {
                    $($pattern => Some($result),)+
                    #[allow(unreachable_patterns, reason = "Value takes every value")]
                    _ => None,
                }
            }
        }
        impl Param for $ty {
            const TYPE: Type = <$ty as FromValue>::GO;
            fn take(args: &mut std::slice::Iter<'_, Value>) -> Option<Self> {
                Self::from_value(args.next()?)
            }
        }
        impl Param for Rest<$ty> {
            const TYPE: Type = <$ty as FromValue>::GO;
            const VARIADIC: bool = true;
            fn take(args: &mut std::slice::Iter<'_, Value>) -> Option<Self> {
                args.map(<$ty>::from_value).collect::<Option<Vec<_>>>().map(Rest)
            }
        }
    };
}

from_value!(Value, Type::Any, value => value.clone());
from_value!(Str, Type::String, Value::String(text) => text.clone());
from_value!(bool, Type::Bool, Value::Bool(value) => *value);
from_value!(f64, Type::Float64, Value::Float(value) => *value);
from_value!(i64, Type::Int(IntKind::Int), Value::Int(int) => int.bits);
from_value!(Int64, Type::Int(IntKind::Int64), Value::Int(int) => Self(int.bits));
// A nil slice or map is a valid argument in Go. A named type's value becomes one of the
// parameter's type by being passed.
from_value!(List, Type::List(&LIST_ANY),
    Value::List(list) => list.clone(), Value::Nil => Self::nil(&LIST_ANY));
from_value!(Strings, Type::List(&LIST_STRING),
    Value::List(list) => Self(list.clone()), Value::Nil => Self(List::nil(&LIST_STRING)));
from_value!(Map, Type::Map(&MAP_ANY),
    Value::Map(map) => map.retyped(&MAP_ANY), Value::Nil => Self::nil(&MAP_ANY));

/// What a function may return.
pub trait IntoResult {
    /// Whether it stands for `interface {}`.
    const INTERFACE: bool = false;

    /// The call's result.
    ///
    /// # Errors
    /// When the function failed.
    fn into_result(self) -> Result<Value, CallError>;
}

macro_rules! into_result {
    ($($ty:ty: $name:ident => $result:expr),+ $(,)?) => {$(
        impl IntoResult for $ty {
            fn into_result(self) -> Result<Value, CallError> {
                let $name = self;
                Ok($result)
            }
        }
    )+};
}

impl IntoResult for Value {
    const INTERFACE: bool = true;

    fn into_result(self) -> Result<Value, CallError> {
        Ok(self)
    }
}

into_result!(
    Str: text => Value::String(text),
    String: text => Value::String(text.into()),
    &str: text => Value::String(text.into()),
    Vec<u8>: text => Value::String(text.into()),
    bool: value => Value::Bool(value),
    f64: value => Value::Float(value),
    i64: value => Value::int(value),
    Int64: value => Value::int64(value.0),
    List: list => Value::List(list),
    Strings: list => Value::List(list.0),
    Map: map => Value::Map(map),
);

impl<T: IntoResult, E: Into<CallError>> IntoResult for Result<T, E> {
    const INTERFACE: bool = T::INTERFACE;

    fn into_result(self) -> Result<Value, CallError> {
        self.map_err(Into::into)?.into_result()
    }
}

/// A Rust function that templates can call; implemented for functions of up to six
/// parameters, with or without a leading `&mut dyn Runtime`.
pub trait Native<Marker>: Send + Sync + 'static {
    /// The Go signature.
    fn signature(&self) -> Signature;
    /// Whether it returns `interface {}`.
    fn returns_interface(&self) -> bool;
    /// Calls it with checked arguments.
    ///
    /// # Errors
    /// What the function says.
    fn call(&self, runtime: &mut dyn Runtime, args: &[Value]) -> Result<Value, CallError>;
}

/// Marks functions that get the [`Runtime`].
pub struct WithRuntime;

fn mismatch() -> CallError {
    CallError::new("argument does not satisfy the declared parameter type")
}

macro_rules! native {
    ($($param:ident)*) => {
        impl<F, R, $($param),*> Native<(R, $($param,)*)> for F
        where
            F: Fn($($param),*) -> R + Send + Sync + 'static,
            R: IntoResult,
            $($param: Param,)*
        {
            fn signature(&self) -> Signature {
                Signature {
                    params: vec![$($param::TYPE),*],
                    variadic: false $(|| $param::VARIADIC)*,
                }
            }
            fn returns_interface(&self) -> bool {
                R::INTERFACE
            }
            #[allow(non_snake_case, unused_mut, unused_variables, reason = "macro over arity")]
            fn call(&self, _: &mut dyn Runtime, args: &[Value]) -> Result<Value, CallError> {
                let mut args = args.iter();
                $(let $param = $param::take(&mut args).ok_or_else(mismatch)?;)*
                self($($param),*).into_result()
            }
        }
        impl<F, R, $($param),*> Native<(WithRuntime, R, $($param,)*)> for F
        where
            F: Fn(&mut dyn Runtime, $($param),*) -> R + Send + Sync + 'static,
            R: IntoResult,
            $($param: Param,)*
        {
            fn signature(&self) -> Signature {
                Signature {
                    params: vec![$($param::TYPE),*],
                    variadic: false $(|| $param::VARIADIC)*,
                }
            }
            fn returns_interface(&self) -> bool {
                R::INTERFACE
            }
            #[allow(non_snake_case, unused_mut, unused_variables, reason = "macro over arity")]
            fn call(&self, runtime: &mut dyn Runtime, args: &[Value]) -> Result<Value, CallError> {
                let mut args = args.iter();
                $(let $param = $param::take(&mut args).ok_or_else(mismatch)?;)*
                self(runtime, $($param),*).into_result()
            }
        }
    };
}

native!();
native!(A);
native!(A B);
native!(A B C);
native!(A B C D);
native!(A B C D E);
native!(A B C D E G);
