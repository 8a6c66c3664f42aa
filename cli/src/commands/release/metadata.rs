//! `ichor release get metadata`, as `cmd/helm/get_metadata.go`.

use std::collections::BTreeMap;

use clap::Args;
use goyaml::{Limits, json};
use helm_rs::release::{FieldError, Record};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{get, time};
use crate::commands::Context;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::output::Output;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Form of the result
    #[arg(short, long, value_enum, value_name = "FORM", default_value_t)]
    output: Output,
    #[command(flatten)]
    record: get::OneRecord,
}

/// What is printed, in Go's order (`Metadata` in `pkg/action/get_metadata.go`).
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: String,
    chart: String,
    version: String,
    app_version: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    annotations: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    dependencies: Vec<Box<RawValue>>,
    namespace: String,
    revision: i64,
    status: String,
    deployed_at: String,
}

/// What is read of the chart.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct About {
    name: Option<String>,
    version: Option<String>,
    app_version: Option<String>,
    annotations: Option<BTreeMap<String, String>>,
    dependencies: Option<Vec<Box<RawValue>>>,
}

pub(super) fn run(arguments: &Arguments, context: &mut Context<'_>) -> Result<Exit, CommandError> {
    let chosen = arguments.record.find(context)?;
    let metadata = Metadata::of(&chosen.record).map_err(|error| chosen.error(&error))?;
    let json = || serde_json::to_string(&metadata).map_err(CommandError::new);
    let read = |text: &str| {
        json::from_json_exact(text.as_bytes(), &Limits::default()).map_err(CommandError::new)
    };
    let text = match arguments.output {
        Output::Table => metadata.table(),
        Output::Json => format!("{}\n", escaped(&json()?)),
        Output::Yaml => goyaml::to_yaml(&read(&json()?)?).map_err(CommandError::new)?,
    };
    context.ui.result(text)?;
    Ok(Exit::Done)
}

/// JSON text with what Go escapes in it.
fn escaped(json: &str) -> String {
    json.replace('&', "\\u0026")
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

impl Metadata {
    fn of(record: &Record) -> Result<Self, FieldError> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Chart {
            metadata: Option<About>,
        }
        let chart: Option<Chart> = record
            .object()
            .read("chart")
            .map_err(|source| FieldError { field: "chart", source })?;
        let about = chart.and_then(|chart| chart.metadata).unwrap_or_default();
        let info = record.info()?;
        let deployed = time::read(&info.last_deployed);
        Ok(Self {
            name: record.name()?,
            chart: about.name.unwrap_or_default(),
            version: about.version.unwrap_or_default(),
            app_version: about.app_version.unwrap_or_default(),
            annotations: about.annotations.unwrap_or_default(),
            dependencies: about.dependencies.unwrap_or_default(),
            namespace: record.namespace()?,
            revision: record.revision()?,
            status: info.status_text,
            deployed_at: deployed.map_or_else(
                || "0001-01-01T00:00:00Z".to_owned(),
                |time| time::format(&time, "2006-01-02T15:04:05Z07:00"),
            ),
        })
    }

    fn table(&self) -> String {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Dependency {
            name: Option<String>,
        }
        let mut dependencies: Vec<String> = self
            .dependencies
            .iter()
            .filter_map(|raw| serde_json::from_str::<Dependency>(raw.get()).ok()?.name)
            .collect();
        dependencies.sort();
        let annotations: Vec<String> =
            self.annotations.iter().map(|(name, value)| format!("{name}={value}")).collect();
        format!(
            "NAME: {}\nCHART: {}\nVERSION: {}\nAPP_VERSION: {}\nANNOTATIONS: {}\nDEPENDENCIES: {}\n\
             NAMESPACE: {}\nREVISION: {}\nSTATUS: {}\nDEPLOYED_AT: {}\n",
            self.name,
            self.chart,
            self.version,
            self.app_version,
            annotations.join(","),
            dependencies.join(","),
            self.namespace,
            self.revision,
            self.status,
            self.deployed_at
        )
    }
}
