//! The chart that a record holds. Helm stores the root chart alone: a subchart's templates and
//! values are not in a record, beyond what was merged into the root's values.

use std::sync::Arc;

use base64::Engine as _;
use goyaml::Map;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::codec::GO;
use super::helm::read_map;
use super::record::{FieldError, Record};
use crate::chart::{Chart, DecodeError, File, Metadata, Warning, decode_lock, decode_metadata};
use crate::values::{CoalesceError, coalesce_values};

/// A record's chart that does not read.
#[derive(Debug, thiserror::Error)]
pub enum ChartError {
    /// The field is not what it should be.
    #[error(transparent)]
    Field(#[from] FieldError),
    /// There is none.
    #[error("the record holds no chart")]
    Missing,
    /// `metadata` or `lock` is not what it should be.
    #[error("field chart of the release record")]
    Decode(#[from] DecodeError),
    /// A file's base64.
    #[error("field chart of the release record: file {name}")]
    File {
        /// The file's name.
        name: String,
        /// What is wrong with it.
        source: base64::DecodeError,
    },
    /// Values that cannot be joined.
    #[error(transparent)]
    Coalesce(#[from] CoalesceError),
}

#[derive(Deserialize)]
struct Stored<'a> {
    #[serde(borrow, default)]
    metadata: Option<&'a RawValue>,
    #[serde(borrow, default)]
    lock: Option<&'a RawValue>,
    #[serde(default)]
    templates: Option<Vec<StoredFile>>,
    #[serde(borrow, default)]
    values: Option<&'a RawValue>,
    #[serde(default)]
    schema: Option<String>,
    #[serde(default)]
    files: Option<Vec<StoredFile>>,
}

#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct StoredFile {
    name: Option<String>,
    data: Option<String>,
}

impl Record {
    /// The chart, as far as records hold it.
    ///
    /// # Errors
    /// When there is none, or it is not what it should be.
    pub fn chart(&self) -> Result<Chart, ChartError> {
        let field = "chart";
        let fail = |source| FieldError { field, source };
        let stored: Stored<'_> =
            self.object().read(field).map_err(fail)?.ok_or(ChartError::Missing)?;
        let mut metadata = Metadata::default();
        if let Some(text) = stored.metadata {
            decode_metadata(text.get().as_bytes(), &mut metadata)?;
        }
        let mut chart = Chart::new(metadata);
        if let Some(text) = stored.lock {
            chart.lock = decode_lock(text.get().as_bytes())?;
        }
        if let Some(text) = stored.values.filter(|text| text.get() != "null") {
            chart.values = Some(read_map(text.get()).map_err(fail)?);
        }
        chart.templates = files(stored.templates)?;
        chart.files = files(stored.files)?;
        chart.schema = match stored.schema.filter(|schema| !schema.is_empty()) {
            Some(schema) => Some(bytes("values.schema.json", &schema)?),
            None => None,
        };
        Ok(chart)
    }

    /// The user-supplied values over the chart's (`GetValues` in `pkg/action/get_values.go`).
    ///
    /// # Errors
    /// When the chart or the values are not what they should be.
    pub fn coalesced_values(&self, warnings: &mut Vec<Warning>) -> Result<Map, ChartError> {
        let values = self.user_values()?.unwrap_or_default();
        Ok(coalesce_values(&self.chart()?, &values, warnings)?)
    }
}

fn files(stored: Option<Vec<StoredFile>>) -> Result<Vec<File>, ChartError> {
    let file = |StoredFile { name, data }| {
        let name = name.unwrap_or_default();
        let data = bytes(&name, &data.unwrap_or_default())?;
        Ok(File { name, data })
    };
    stored.unwrap_or_default().into_iter().map(file).collect()
}

fn bytes(name: &str, data: &str) -> Result<Arc<[u8]>, ChartError> {
    GO.decode(data)
        .map(Into::into)
        .map_err(|source| ChartError::File { name: name.to_owned(), source })
}
