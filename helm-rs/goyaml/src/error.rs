//! Errors with Go's texts.

use thiserror::Error as ThisError;

use crate::json;

/// Why YAML or JSON could not be read or written.
///
/// `Display` is Go's whole text to the byte, because Helm passes it on to templates and people.
#[derive(Clone, Debug, PartialEq, ThisError)]
pub enum Error {
    /// `sigs.k8s.io/yaml` failed while it turned YAML into JSON.
    #[error("error converting YAML to JSON: {0}")]
    Converting(Conversion),
    /// The YAML was fine but does not fit what was asked for.
    #[error("error unmarshaling JSON: while decoding JSON: {0}")]
    Unmarshaling(json::Error),
    /// A value cannot be written as JSON, through which `toYaml` goes.
    #[error("error marshaling into JSON: {0}")]
    Marshaling(json::Error),
    /// The JSON of a value is no YAML (control characters, keys that are too long), or the
    /// emitter refused a value.
    #[error("{0}")]
    Yaml(YamlError),
    /// A bound of [`crate::Limits`] that Go does not have.
    #[error(transparent)]
    Limit(#[from] LimitError),
}

impl Error {
    /// Whether one of our own bounds was met, so that Go might have gone on.
    pub fn is_limit(&self) -> bool {
        matches!(self, Self::Limit(_))
    }
}

/// A failure of the step from YAML to JSON.
#[derive(Clone, Debug, PartialEq, ThisError)]
pub enum Conversion {
    /// The YAML could not be read.
    #[error("{0}")]
    Yaml(YamlError),
    /// The YAML could be read, but parts do not fit; one line per part.
    #[error("yaml: unmarshal errors:\n  {}", .0.join("\n  "))]
    Parts(Vec<String>),
    /// A key that JSON cannot express: null, or an integer above `i64`.
    #[error("unsupported map key of type: {go_type}, key: {key}, value: {value}")]
    MapKey {
        /// The Go type of the key.
        go_type: String,
        /// The key in Go syntax.
        key: String,
        /// The value under it in Go syntax.
        value: String,
    },
    /// A number that JSON cannot express.
    #[error("{0}")]
    Json(json::Error),
}

/// A failure of go-yaml.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct YamlError {
    /// The line as go-yaml prints it: from 1 for the scanner, one less for the parser, and none
    /// where it would be 0.
    pub line: Option<usize>,
    /// What is wrong.
    pub problem: String,
}

impl YamlError {
    pub(crate) fn new(problem: impl Into<String>) -> Self {
        Self { line: None, problem: problem.into() }
    }
}

impl std::error::Error for YamlError {}

impl std::fmt::Display for YamlError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.line {
            Some(line) => write!(f, "yaml: line {line}: {}", self.problem),
            None => write!(f, "yaml: {}", self.problem),
        }
    }
}

/// A bound that was met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ThisError)]
pub enum LimitError {
    /// The input is too long.
    #[error("input of {size} bytes exceeds the limit of {limit}")]
    Bytes {
        /// Bytes given.
        size: usize,
        /// Bytes allowed.
        limit: usize,
    },
    /// The output grows too long.
    #[error("output exceeds the limit of {limit} bytes")]
    Output {
        /// Bytes allowed.
        limit: usize,
    },
    /// Maps and sequences nest too deep.
    #[error("nesting exceeds the limit of {limit} levels")]
    Depth {
        /// Levels allowed.
        limit: usize,
    },
    /// Aliases repeat too much text.
    #[error("aliases repeat more text than the limit of {limit} bytes")]
    AliasBytes {
        /// Bytes allowed.
        limit: usize,
    },
    /// A document holds too many nodes once its aliases are expanded.
    #[error("document exceeds the limit of {limit} nodes")]
    Nodes {
        /// Nodes allowed.
        limit: usize,
    },
}
