//! Go's `text/template` for Rust: lexer, parser, compiled program, executor.
//!
//! Nothing in this crate knows Helm. Values ([`Value`]) carry Go's types as far as
//! templates can observe them, and functions ([`Function`]) carry Go signatures, so that
//! results and error texts equal those of Go.
//!
//! ```text
//! text ─ parse ─> program ─ exec ─> bytes       Set     what is parsed, kept, shared
//!                    │                           Scope   what one execution sees
//!            functions (Go signatures)           Machine one execution
//! ```
//!
//! Start at [`Set`]; functions are made with [`Function::new`], host types by [`Object`].
//!
//! # Where it differs from Go
//!
//! - Addresses (`%p`, pointers inside lists and maps) print as one fixed number.
//! - A slice has no capacity beyond its length, so that `slice` cannot look behind it.
//! - Channels, iterator functions, arrays and `float32` do not exist; host structs are
//!   compared by identity.
//! - Delimiters are always `{{` and `}}`.
//! - Recursion through functions that run templates, and printing a map that contains
//!   itself, end the program in Go. Here they end at [`Limits::nesting`] and at a bound in
//!   [`fmt`]. Control structures may be 100,000 deep.
//! - A `%` in a template's file name makes Go print its own internals into errors; here the
//!   text comes out right only for arguments that are strings.

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
