//! User values from files and flags, as Helm's `pkg/cli/values/options.go`.

use std::error::Error;

use goyaml::{Limits, Map, Value};

use super::set::{self, SetError};

/// The Go type that a values file is decoded into.
const VALUES_TYPE: &str = "map[string]interface {}";

/// What a reader of files fails with; its text is printed as it is.
pub type ReadError = Box<dyn Error + Send + Sync>;

/// What the user passed, each list in the order of the command line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// `-f`, `--values`
    pub value_files: Vec<String>,
    /// `--set-json`
    pub json_values: Vec<String>,
    /// `--set`
    pub values: Vec<String>,
    /// `--set-string`
    pub string_values: Vec<String>,
    /// `--set-file`
    pub file_values: Vec<String>,
    /// `--set-literal`
    pub literal_values: Vec<String>,
}

/// Why user values cannot be put together.
#[derive(Debug, thiserror::Error)]
pub enum OptionsError {
    /// A values file cannot be read.
    #[error(transparent)]
    Read(ReadError),
    /// A values file is no YAML map.
    #[error("failed to parse {path}")]
    File {
        /// As given.
        path: String,
        /// What is wrong with it.
        source: goyaml::Error,
    },
    /// A `--set-json` argument is bad. Helm does not say why; `cause` knows.
    #[error("failed parsing --set-json data {value}")]
    Json {
        /// The argument.
        value: String,
        /// What is wrong with it.
        cause: SetError,
    },
    /// Another argument of the `--set` family is bad.
    #[error("failed parsing {flag} data")]
    Set {
        /// The flag.
        flag: &'static str,
        /// What is wrong with it.
        source: SetError,
    },
}

impl Options {
    /// Puts the user values together: files in order, then `--set-json`, `--set`, `--set-string`,
    /// `--set-file` and `--set-literal`, later ones winning. Null values stay, for coalescing to
    /// act on.
    ///
    /// `read` gets the path of a values file or of a `--set-file` value; a path that is `-` but
    /// for white space means standard input.
    ///
    /// # Errors
    ///
    /// [`OptionsError`] for the first file or argument that is bad.
    pub fn merge(
        &self,
        read: &mut dyn FnMut(&str) -> Result<Vec<u8>, ReadError>,
    ) -> Result<Map, OptionsError> {
        let mut base = Map::new();
        for path in &self.value_files {
            let text = read(path).map_err(OptionsError::Read)?;
            let map = goyaml::from_yaml_map(&text, VALUES_TYPE, &Limits::default())
                .map_err(|source| OptionsError::File { path: path.clone(), source })?;
            merge_maps(&mut base, map);
        }
        for value in &self.json_values {
            set::parse_json(value.as_bytes(), &mut base)
                .map_err(|cause| OptionsError::Json { value: value.clone(), cause })?;
        }
        for value in &self.values {
            set::parse_set(value.as_bytes(), &mut base).map_err(failed("--set"))?;
        }
        for value in &self.string_values {
            set::parse_set_string(value.as_bytes(), &mut base).map_err(failed("--set-string"))?;
        }
        for value in &self.file_values {
            set::parse_file(value.as_bytes(), &mut base, read).map_err(failed("--set-file"))?;
        }
        for value in &self.literal_values {
            set::parse_literal(value.as_bytes(), &mut base).map_err(failed("--set-literal"))?;
        }
        Ok(base)
    }
}

fn failed(flag: &'static str) -> impl Fn(SetError) -> OptionsError {
    move |source| OptionsError::Set { flag, source }
}

/// Joins a values file into what earlier files said, as `mergeMaps`: tables are joined, anything
/// else is replaced, null included.
pub fn merge_maps(base: &mut Map, other: Map) {
    for (key, value) in other {
        match (base.get_mut(&key), value) {
            (Some(Value::Map(base)), Value::Map(other)) => merge_maps(base, other),
            (_, value) => {
                base.insert(key, value);
            }
        }
    }
}
