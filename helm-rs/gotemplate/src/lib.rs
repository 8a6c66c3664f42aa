//! Go's `text/template` for Rust: lexer, parser, compiled program, executor.
//!
//! Nothing in this crate knows Helm. Values ([`Value`]) carry Go's types as far as
//! templates can observe them, and functions ([`Function`]) carry Go signatures, so that
//! results and error texts equal those of Go.

mod error;
mod exec;
pub mod fmt;
pub mod function;
mod parse;
mod program;
mod set;
pub mod strconv;
pub mod value;

pub use error::{Error, ErrorKind};
pub use function::{CallError, Function, FunctionMap, Method, Runtime, Signature, TextError};
pub use set::{Limits, MissingKey, Options, Set};
pub use value::{Int, IntKind, Kind, List, Map, Object, Str, Type, Value};

/// Runs `body`, on more stack when little is left: templates nest as deep as in Go, where
/// stacks grow by themselves.
fn with_stack<T>(body: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(128 << 10, 2 << 20, body)
}
