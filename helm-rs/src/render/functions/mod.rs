//! The functions that Helm 3.21.4 gives to templates, by family: sprig v3.3.0 without
//! `env` and `expandenv`, and Helm's own (`pkg/engine/funcs.go`).
//!
//! `include`, `tpl`, `required`, `fail`, `lookup` and `getHostByName` belong to the engine
//! that runs the templates and are not here.

#![expect(
    clippy::needless_pass_by_value,
    reason = "a function's parameters are its Go signature, and templates pass values"
)]

use gotemplate::FunctionMap;

pub(crate) use base::base64_encode;
pub use crypto::certificate_authority;

mod base;
mod case;
mod cast;
mod compare;
mod copy;
mod crypto;
mod dates;
pub(super) use dates::TimeObject;
mod decimal;
mod defaults;
mod dicts;
mod encoding;
mod float;
mod hashes;
mod limits;
mod lists;
mod merge;
mod numbers;
mod paths;
mod random;
mod reflection;
pub(crate) mod regex;
mod semver;
mod strings;
mod text;
mod toml;
mod url;
mod wrap;

/// All functions that need no chart and no cluster, by name.
pub fn builtin_functions() -> FunctionMap {
    let mut functions = FunctionMap::new();
    crypto::register(&mut functions);
    dates::register(&mut functions);
    defaults::register(&mut functions);
    dicts::register(&mut functions);
    encoding::register(&mut functions);
    hashes::register(&mut functions);
    lists::register(&mut functions);
    numbers::register(&mut functions);
    paths::register(&mut functions);
    random::register(&mut functions);
    reflection::register(&mut functions);
    regex::register(&mut functions);
    semver::register(&mut functions);
    strings::register(&mut functions);
    toml::register(&mut functions);
    url::register(&mut functions);
    functions
}

/// The names of [`builtin_functions`], sorted.
pub fn builtin_names() -> Vec<&'static str> {
    let mut names: Vec<_> = builtin_functions().into_keys().collect();
    names.sort_unstable();
    names
}
