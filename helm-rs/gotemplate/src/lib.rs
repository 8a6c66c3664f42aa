//! Go's `text/template` for Rust: lexer, parser, compiled program, executor.
//!
//! Nothing in this crate knows Helm. Values ([`Value`]) carry Go's types as far as
//! templates can observe them, and functions ([`Function`]) carry Go signatures, so that
//! results and error texts equal those of Go.

pub mod fmt;
pub mod function;
pub mod strconv;
pub mod value;

pub use function::{CallError, Function, FunctionMap, Method, Runtime, Signature, TextError};
pub use value::{Int, IntKind, Kind, List, Map, Object, Str, Type, Value};
