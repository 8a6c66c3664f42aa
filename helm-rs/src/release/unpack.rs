//! A record's chart as the files of a chart folder.
//!
//! What a record does not hold cannot come back: the comments and the order of `values.yaml`,
//! subcharts, `.helmignore`d files. Templates, files, schema and the values themselves do.

use std::collections::BTreeSet;

use goyaml::{Limits, Map, Value, json};
use serde_json::value::RawValue;

use super::chart::ChartError;
use super::raw::RawObject;
use super::record::{FieldError, Record};
use crate::chart::File;

/// Why a record's chart cannot be written as files.
#[derive(Debug, thiserror::Error)]
pub enum UnpackError {
    /// The chart does not read.
    #[error(transparent)]
    Chart(#[from] ChartError),
    /// A part of it does not read, or cannot be written as YAML.
    #[error("{file} of the record's chart")]
    Part {
        /// The file that it would become.
        file: &'static str,
        /// What is wrong.
        source: goyaml::Error,
    },
    /// A file whose name leads elsewhere.
    #[error("the record's chart has a file with the name {name:?}, which is not within the chart")]
    Name {
        /// The name.
        name: String,
    },
    /// Two files of one name.
    #[error("the record's chart has two files with the name {name:?}")]
    Twice {
        /// The name.
        name: String,
    },
    /// A file whose name is also that of a folder of other files.
    #[error("the record's chart has {name:?} both as a file and as a folder")]
    Folder {
        /// The name.
        name: String,
    },
    /// The chart's name cannot be a folder's.
    #[error("the record's chart has the name {name:?}, which cannot be a folder's")]
    Chartname {
        /// The name.
        name: String,
    },
}

/// A record's chart, as files.
#[derive(Clone, Debug)]
pub struct UnpackedChart {
    /// The chart's name, fit to be a folder's.
    pub name: String,
    /// The chart's version.
    pub version: String,
    /// The files, `Chart.yaml` first; names are relative, slash-separated, within the chart.
    pub files: Vec<File>,
    /// Subcharts that `Chart.yaml` asks for, and that no record holds.
    pub missing: Vec<String>,
}

impl Record {
    /// The chart as the files of a chart folder that Helm loads.
    ///
    /// # Errors
    /// When the record has no chart, it does not read, or a file's name leads out of the chart.
    pub fn unpack_chart(&self) -> Result<UnpackedChart, UnpackError> {
        let chart = self.chart()?;
        let name = chart.name().to_owned();
        if !is_component(&name) {
            return Err(UnpackError::Chartname { name });
        }
        let raw: RawObject = self
            .object()
            .read("chart")
            .map_err(|source| ChartError::Field(FieldError { field: "chart", source }))?
            .unwrap_or_default();
        let has = |file: &str| chart.files.iter().any(|known| known.name == file);
        let mut files = Vec::new();
        if let Some(mut metadata) = part(&raw, "metadata", "Chart.yaml")? {
            clean_metadata(&mut metadata, has("requirements.yaml"));
            files.push(yaml("Chart.yaml", &metadata)?);
        }
        // A chart of the first API version keeps it among its files.
        if !has("requirements.lock")
            && let Some(lock) = part(&raw, "lock", "Chart.lock")?
        {
            files.push(yaml("Chart.lock", &lock)?);
        }
        if let Some(values) = part(&raw, "values", "values.yaml")? {
            files.push(yaml("values.yaml", &values)?);
        }
        if let Some(schema) = &chart.schema {
            files.push(File { name: "values.schema.json".to_owned(), data: schema.clone() });
        }
        files.extend(chart.templates.iter().chain(&chart.files).cloned());
        check_names(&files)?;
        let missing = chart
            .metadata
            .dependencies
            .iter()
            .flatten()
            .map(|dependency| dependency.name.clone())
            .collect();
        Ok(UnpackedChart { name, version: chart.metadata.version, files, missing })
    }
}

/// A part of the chart as data; `None` when it is missing or null.
fn part(
    raw: &RawObject,
    field: &'static str,
    file: &'static str,
) -> Result<Option<Map>, UnpackError> {
    let fail = |source| ChartError::Field(FieldError { field: "chart", source });
    let Some(text) = raw.read::<&RawValue>(field).map_err(fail)? else { return Ok(None) };
    let value = json::from_json_exact(text.get().as_bytes(), &Limits::default())
        .map_err(|error| UnpackError::Part { file, source: goyaml::Error::Unmarshaling(error) })?;
    Ok(value.into_map())
}

fn yaml(file: &'static str, value: &Map) -> Result<File, UnpackError> {
    let text = goyaml::to_yaml(&Value::Map(value.clone()))
        .map_err(|source| UnpackError::Part { file, source })?;
    Ok(File { name: file.to_owned(), data: text.into_bytes().into() })
}

/// Takes out what Helm adds to the metadata when it processes dependencies.
fn clean_metadata(metadata: &mut Map, has_requirements: bool) {
    if has_requirements {
        metadata.remove("dependencies");
    }
    let dependencies = metadata.get_mut("dependencies").and_then(Value::as_seq_mut);
    for dependency in dependencies.into_iter().flatten().filter_map(Value::as_map_mut) {
        dependency.remove("enabled");
    }
}

fn check_names(files: &[File]) -> Result<(), UnpackError> {
    let mut seen = BTreeSet::new();
    for File { name, .. } in files {
        if !name.split('/').all(is_component) {
            return Err(UnpackError::Name { name: name.clone() });
        }
        if !seen.insert(name) {
            return Err(UnpackError::Twice { name: name.clone() });
        }
    }
    for name in &seen {
        let mut folder = name.as_str();
        while let Some((parent, _)) = folder.rsplit_once('/') {
            if seen.contains(&parent.to_owned()) {
                return Err(UnpackError::Folder { name: parent.to_owned() });
            }
            folder = parent;
        }
    }
    Ok(())
}

/// Whether a text can be a file's name on any system.
fn is_component(text: &str) -> bool {
    !matches!(text, "" | "." | "..")
        && text.len() <= 255
        && !text.contains(['/', '\\', ':'])
        && !text.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    use super::{Record, UnpackError};

    fn record(files: &[(&str, &str)]) -> Record {
        let file = |(name, text): &(&str, &str)| {
            serde_json::json!({"name": name, "data": STANDARD.encode(text)}).to_string()
        };
        let files: Vec<String> = files.iter().map(file).collect();
        let json = format!(
            "{{\"name\":\"r\",\"chart\":{{\"metadata\":{{\"name\":\"c\",\"version\":\"1.0.0\",\"apiVersion\":\"v2\",\"dependencies\":[{{\"name\":\"sub\",\"enabled\":true}}]}},\"lock\":null,\"templates\":[{}],\"values\":{{\"a\":1}},\"schema\":null}}}}",
            files.join(",")
        );
        Record::from_json(&json).unwrap()
    }

    #[test]
    fn files_come_back() {
        let chart = record(&[("templates/a.yaml", "x: {{ .Values.a }}")]).unpack_chart().unwrap();
        let texts: Vec<(&str, String)> = chart
            .files
            .iter()
            .map(|file| (file.name.as_str(), String::from_utf8_lossy(&file.data).into_owned()))
            .collect();
        assert_eq!(
            texts,
            [
                (
                    "Chart.yaml",
                    "apiVersion: v2\ndependencies:\n- name: sub\nname: c\nversion: 1.0.0\n".into()
                ),
                ("values.yaml", "a: 1\n".into()),
                ("templates/a.yaml", "x: {{ .Values.a }}".into()),
            ]
        );
        assert_eq!(chart.missing, ["sub"]);
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        for name in
            ["../x", "/etc/passwd", "a//b", "a/../../b", "", "a\\b", "c:x", "a/./b", "x\u{0}"]
        {
            let result = record(&[(name, "")]).unpack_chart();
            assert!(matches!(result, Err(UnpackError::Name { .. })), "{name:?}");
        }
        for (a, b) in [("a", "a/b"), ("x/y/z", "x"), ("values.yaml/a", "c")] {
            let result = record(&[(a, ""), (b, "")]).unpack_chart();
            assert!(matches!(result, Err(UnpackError::Folder { .. })), "{a:?} {b:?}");
        }
        for name in ["Chart.yaml", "values.yaml"] {
            let result = record(&[(name, "")]).unpack_chart();
            assert!(matches!(result, Err(UnpackError::Twice { .. })), "{name:?}");
        }
    }
}
