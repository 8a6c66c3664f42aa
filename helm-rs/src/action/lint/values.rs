//! Rules about `values.yaml` (`pkg/lint/rules/values.go`).

use std::fs;
use std::path::Path;

use goyaml::Map;

use super::report::{Linter, Severity};
use crate::chart::Warning;
use crate::gotext::io_text;
use crate::values::{Nulls, coalesce_tables, validate_schema};

const FILE: &str = "values.yaml";

pub(super) fn check(
    linter: &mut Linter,
    folder: &Path,
    overrides: &Map,
    warnings: &mut Vec<Warning>,
) {
    let path = folder.join(FILE);
    let missing = fs::metadata(&path).is_err().then(|| "file does not exist".to_owned());
    if linter.rule(Severity::Info, FILE, missing) {
        linter.rule(Severity::Error, FILE, validate(&path, overrides, warnings));
    }
}

fn validate(path: &Path, overrides: &Map, warnings: &mut Vec<Warning>) -> Option<String> {
    let values = match read(path) {
        Ok(values) => values,
        Err(error) => return Some(format!("unable to parse YAML: {error}")),
    };
    let coalesced = match coalesce_tables(overrides, &values, Nulls::Remove, warnings) {
        Ok(coalesced) => coalesced,
        Err(error) => return Some(error.to_string()),
    };
    let schema = fs::read(path.with_extension("schema.json")).unwrap_or_default();
    if schema.is_empty() {
        return None;
    }
    validate_schema(&schema, &coalesced, warnings).err()
}

fn read(path: &Path) -> Result<Map, String> {
    let text = fs::read(path).map_err(|error| {
        let operation = if path.is_dir() { "read" } else { "open" };
        format!("{operation} {}: {}", path.display(), io_text(&error))
    })?;
    goyaml::from_yaml_map(&text, "chartutil.Values", &goyaml::Limits::default())
        .map_err(|error| crate::error_chain(&error))
}
