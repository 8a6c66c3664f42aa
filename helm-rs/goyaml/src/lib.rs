//! YAML and JSON as Go and Helm read and write them.
//!
//! Helm reads nearly everything with `sigs.k8s.io/yaml`: go-yaml v2 parses, the result becomes
//! JSON, and `encoding/json` decodes that. It writes the other way round: `encoding/json` first,
//! go-yaml v2 parses that JSON and emits it. `toYamlPretty` alone uses go-yaml v3. This crate has
//! the same results, the same text and the same errors without the detours.
//!
//! ```
//! use goyaml::Limits;
//!
//! let values = goyaml::from_yaml(b"image: {mode: 0755, on: yes}", &Limits::default())?;
//! assert_eq!(goyaml::to_yaml(&values)?, "image:\n  mode: 493\n  \"true\": true\n");
//! # Ok::<(), goyaml::Error>(())
//! ```
//!
//! Start with [`from_yaml`], [`to_yaml`] and [`Value`]; [`Source`] writes other trees, [`json`]
//! has the JSON side.

pub mod json;

mod base64;
mod error;
mod limits;
mod quote;
mod read;
mod scalar;
mod source;
mod unicode;
mod value;
mod write;

pub mod number {
    //! How Go prints numbers.

    pub use crate::scalar::number::{format_g32, format_g64, format_json};
}

pub use error::{Conversion, Error, LimitError, YamlError};
pub use limits::Limits;
pub use source::{Node, Source};
pub use value::{Map, Value};

use read::Numbers;

/// Reads the first document of `input` as `sigs.k8s.io/yaml.Unmarshal` reads it into an
/// `interface{}`: every number becomes a float, keys become strings, later keys win.
///
/// No document at all is [`Value::Null`].
///
/// # Errors
/// Go's error, or a bound of `limits`.
pub fn from_yaml(input: &[u8], limits: &Limits) -> Result<Value, Error> {
    read::read(input, false, Numbers::Float, limits)
}

/// As [`from_yaml`], but integers stay integers: what a decode into a typed field would see.
///
/// # Errors
/// Go's error, or a bound of `limits`.
pub fn from_yaml_exact(input: &[u8], limits: &Limits) -> Result<Value, Error> {
    read::read(input, false, Numbers::Exact, limits)
}

/// As [`from_yaml`], but a key that occurs twice in a mapping is an error
/// (`sigs.k8s.io/yaml.UnmarshalStrict`).
///
/// # Errors
/// Go's error, or a bound of `limits`.
pub fn from_yaml_strict(input: &[u8], limits: &Limits) -> Result<Value, Error> {
    read::read(input, true, Numbers::Float, limits)
}

/// As [`from_yaml_strict`], but the document must be all there is, as no decoder of Go asks: each
/// reads one document, and does not look at what stands behind it. A text whose indentation was
/// damaged often ends its document early.
///
/// # Errors
/// Go's error, that of go-yaml for what stands behind the document, or a bound of `limits`.
pub fn from_yaml_only(input: &[u8], limits: &Limits) -> Result<Value, Error> {
    read::read_only(input, Numbers::Float, limits)
}

/// Reads a document into a map, as `fromYaml`, values files and manifests are read. Null and
/// empty input leave the map empty (and not nil: Go decodes into a map that is there).
///
/// `go_type` names the Go type in the error for anything else: `map[string]interface {}` in
/// templates, `chartutil.Values` for values files.
///
/// # Errors
/// Go's error, or a bound of `limits`. Go leaves nothing of the document in the map then.
pub fn from_yaml_map(input: &[u8], go_type: &str, limits: &Limits) -> Result<Map, Error> {
    match from_yaml(input, limits)? {
        Value::Null => Ok(Map::new()),
        Value::Map(map) => Ok(map),
        other => Err(Error::Unmarshaling(json::Error::mismatch(&other, go_type))),
    }
}

/// Reads a document into a sequence, as `fromYamlArray` does. Null and empty input give an empty
/// one.
///
/// # Errors
/// Go's error, or a bound of `limits`.
pub fn from_yaml_seq(input: &[u8], limits: &Limits) -> Result<Vec<Value>, Error> {
    match from_yaml(input, limits)? {
        Value::Null => Ok(Vec::new()),
        Value::Seq(items) => Ok(items),
        other => Err(Error::Unmarshaling(json::Error::mismatch(&other, "[]interface {}"))),
    }
}

/// Writes `value` as `sigs.k8s.io/yaml.Marshal` does, with the final line break that `toYaml`
/// then strips.
///
/// # Errors
/// Go's error: numbers that JSON does not have, control characters, keys longer than YAML allows.
/// `toYaml` gives an empty string then.
#[expect(clippy::needless_pass_by_value, reason = "handles are cheap, and read better bare")]
pub fn to_yaml<S: Source>(value: S) -> Result<String, Error> {
    write::to_yaml(&value)
}

/// Writes `value` as go-yaml v3 does with an indentation of two, which is what `toYamlPretty`
/// uses.
///
/// # Errors
/// A nesting that never ends.
#[expect(clippy::needless_pass_by_value, reason = "handles are cheap, and read better bare")]
pub fn to_yaml_pretty<S: Source>(value: S) -> Result<String, Error> {
    write::to_yaml_pretty(&value)
}
