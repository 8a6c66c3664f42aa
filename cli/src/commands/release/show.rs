//! `ichor release show`: everything that a record holds.

use std::fmt::Write as _;

use clap::Args;
use goyaml::{Map, Value};
use helm_rs::chart::{Chart, File};
use helm_rs::diff::{ManifestObject, read_objects};
use helm_rs::error_chain;
use helm_rs::release::redact::Words;
use helm_rs::release::{FieldError, Hook, Info, RELEASE_FIELDS, Record, redact};

use super::source::SourceFlags;
use super::stored::{self, Found};
use super::table::table;
use super::time;
use crate::commands::Context;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::output::{Output, write_structured};

pub(super) const EXAMPLES: &str = "\
Examples:
  kubectl get secrets -A -o yaml | ichor release show web --from -
  ichor release show web --revision 3 --brief --from dump.yaml
  ichor release show web --output json --show-secrets --from dump.yaml";

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The release's name
    release: String,
    /// Revision to show; the last one when not given
    #[arg(long, value_name = "REVISION", default_value_t = 0)]
    revision: i64,
    /// Leave out the long texts: default values, hooks, manifest
    #[arg(long)]
    brief: bool,
    /// Form of the result
    #[arg(short, long, value_enum, value_name = "FORM", default_value_t)]
    output: Output,
    /// Print credentials as they are
    #[arg(long)]
    show_secrets: bool,
    #[command(flatten)]
    source: SourceFlags,
}

pub(crate) fn run(arguments: &Arguments, context: &mut Context<'_>) -> Result<Exit, CommandError> {
    let found = stored::find(&arguments.release, arguments.revision, &arguments.source, context)?;
    let shown = Shown::of(&found, arguments.show_secrets, context)?;
    let (value, text) = match arguments.output {
        Output::Table => (Value::Null, shown.text(arguments.brief)?),
        Output::Json | Output::Yaml => (shown.structured(arguments.brief), String::new()),
    };
    write_structured(context.ui, arguments.output, &value, text.as_bytes())?;
    Ok(Exit::Done)
}

/// A record, read, with credentials hidden as asked.
struct Shown<'a> {
    found: &'a Found,
    record: Record,
    info: Info,
    /// None when the record has no chart that reads.
    chart: Option<Chart>,
    default_values: Map,
    values: Map,
    manifest: String,
    objects: Vec<ManifestObject>,
    hooks: Vec<Hook>,
}

impl<'a> Shown<'a> {
    fn of(
        found: &'a Found,
        show_secrets: bool,
        context: &mut Context<'_>,
    ) -> Result<Self, CommandError> {
        let fail = |error: FieldError| found.error(&error);
        let record = found.record()?;
        let chart = match record.chart() {
            Ok(chart) => Some(chart),
            Err(error) => {
                context.ui.warning(format!("warning: {}: {}", found.place(), error_chain(&error)));
                None
            }
        };
        let mut default_values =
            chart.as_ref().and_then(|chart| chart.values.clone()).unwrap_or_default();
        let mut values = record.user_values().map_err(fail)?.unwrap_or_default();
        let mut manifest = record.manifest().map_err(fail)?;
        let objects = read_objects(manifest.as_bytes());
        let mut hooks = record.hooks().map_err(fail)?;
        let words = if show_secrets { Words::default() } else { Words::of_record(&record) };
        if !show_secrets {
            redact::values(&mut default_values);
            redact::values(&mut values);
            manifest = words.manifest(&manifest);
            for hook in &mut hooks {
                hook.manifest = words.document(&hook.manifest);
            }
        }
        let mut info = record.info().map_err(fail)?;
        if !show_secrets {
            // Helm writes a failed operation's error here.
            info.description = redact::description_of(&record, &info.description);
            info.notes = words.notes(&info.notes);
        }
        Ok(Self { found, record, info, chart, default_values, values, manifest, objects, hooks })
    }

    /// Fields that Helm 3.21 does not know.
    fn unknown_fields(&self) -> Vec<&str> {
        self.record.object().names().filter(|name| !RELEASE_FIELDS.contains(name)).collect()
    }

    fn text(&self, brief: bool) -> Result<String, CommandError> {
        let mut out = self.head();
        let mut section = |title: &str, text: &str| {
            if !text.is_empty() {
                // Writing to a String cannot fail.
                let _ = write!(out, "\n{title}:\n{text}");
                if !text.ends_with('\n') {
                    out.push('\n');
                }
            }
        };
        let yaml = |map: &Map| goyaml::to_yaml(&Value::Map(map.clone())).map_err(CommandError::new);
        section("USER-SUPPLIED VALUES", &yaml(&self.values)?);
        if let Some(chart) = &self.chart {
            section("CHART FILES", &file_table(chart));
            if !brief {
                section("CHART VALUES", &yaml(&self.default_values)?);
            }
        }
        section("OBJECTS", &object_table(&self.objects));
        section("HOOKS", &hook_table(&self.hooks));
        if !brief {
            let hooks = self.hooks.iter().map(|hook| {
                format!("---\n# Source: {}\n{}\n", hook.path, hook.manifest.trim_end())
            });
            section("HOOK MANIFESTS", &hooks.collect::<String>());
            section("MANIFEST", &self.manifest);
        }
        section("NOTES", &self.info.notes);
        Ok(out)
    }

    fn head(&self) -> String {
        let summary = &self.found.summary;
        let stored = &self.found.stored;
        let mut lines = vec![
            ("NAME", summary.name.clone()),
            ("NAMESPACE", summary.namespace.clone()),
            ("REVISION", summary.revision.to_string()),
            ("STATUS", self.info.status_text.clone()),
            ("DESCRIPTION", self.info.description.clone()),
            ("FIRST DEPLOYED", time_text(&self.info.first_deployed)),
            ("LAST DEPLOYED", time_text(&self.info.last_deployed)),
            ("DELETED", time_text(&self.info.deleted)),
            ("CHART", super::list::chart_name(summary)),
            ("APP VERSION", super::list::app_version(summary)),
        ];
        if let Some(chart) = &self.chart {
            let dependencies: Vec<&str> = chart
                .metadata
                .dependencies
                .iter()
                .flatten()
                .map(|dependency| dependency.name.as_str())
                .collect();
            lines.push(("SUBCHARTS", dependencies.join(", ")));
        }
        let labels: Vec<String> =
            stored.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
        lines.push(("STORED IN", format!("{} of {}", stored.title(), stored.place)));
        lines.push(("LABELS", labels.join(", ")));
        lines.push((
            "SIZE",
            format!("{} bytes stored, {} bytes of JSON", stored.stored_size(), summary.json_size),
        ));
        lines.push(("OTHER FIELDS", self.unknown_fields().join(", ")));
        let mut out = String::new();
        for (title, text) in lines.into_iter().filter(|(_, text)| !text.is_empty()) {
            out.push_str(&format!("{:<16}{text}\n", format!("{title}:")));
        }
        out
    }

    fn structured(&self, brief: bool) -> Value {
        let text = |text: &str| Value::from(text);
        let summary = &self.found.summary;
        let stored = &self.found.stored;
        let mut labels = Map::new();
        for (key, value) in &stored.labels {
            labels.insert(key.as_str(), value.as_str());
        }
        let unknown = self.unknown_fields().into_iter().map(Value::from).collect();
        let mut fields = vec![
            ("name", text(&summary.name)),
            ("namespace", text(&summary.namespace)),
            ("revision", Value::Int(summary.revision)),
            (
                "info",
                map([
                    ("status", text(&self.info.status_text)),
                    ("description", text(&self.info.description)),
                    ("firstDeployed", Value::from(time::rfc3339(&self.info.first_deployed))),
                    ("lastDeployed", Value::from(time::rfc3339(&self.info.last_deployed))),
                    ("deleted", Value::from(time::rfc3339(&self.info.deleted))),
                    ("notes", text(&self.info.notes)),
                ]),
            ),
            (
                "stored",
                map([
                    ("place", text(&stored.place)),
                    ("object", text(&stored.title())),
                    ("namespace", text(&self.found.namespace)),
                    ("labels", Value::Map(labels)),
                    ("bytes", number(stored.stored_size())),
                    ("jsonBytes", number(summary.json_size)),
                    ("otherFields", Value::Seq(unknown)),
                ]),
            ),
            ("values", Value::Map(self.values.clone())),
            ("objects", Value::Seq(self.objects.iter().map(object_value).collect())),
            ("hooks", Value::Seq(self.hooks.iter().map(|hook| hook_value(hook, brief)).collect())),
        ];
        if let Some(chart) = &self.chart {
            let file = |File { name, data }: &File| {
                map([("name", text(name)), ("bytes", number(data.len()))])
            };
            let mut about = vec![
                ("name", text(&summary.chart)),
                ("version", text(&summary.chart_version)),
                ("appVersion", text(&summary.app_version)),
                ("templates", Value::Seq(chart.templates.iter().map(file).collect())),
                ("files", Value::Seq(chart.files.iter().map(file).collect())),
            ];
            if !brief {
                about.push(("values", Value::Map(self.default_values.clone())));
            }
            fields.push(("chart", Value::Map(about.into_iter().collect())));
        }
        if !brief {
            fields.push(("manifest", text(&self.manifest)));
        }
        Value::Map(fields.into_iter().collect())
    }
}

fn map<const N: usize>(fields: [(&str, Value); N]) -> Value {
    Value::Map(fields.into_iter().collect())
}

fn number(number: usize) -> Value {
    Value::Int(i64::try_from(number).unwrap_or(i64::MAX))
}

fn time_text(text: &str) -> String {
    time::read(text).map(|time| time.to_text()).unwrap_or_default()
}

fn file_table(chart: &Chart) -> String {
    let mut rows = vec![vec!["NAME".to_owned(), "BYTES".to_owned()]];
    let schema = chart.schema.iter().map(|data| ("values.schema.json", data.len()));
    let files = chart.templates.iter().chain(&chart.files);
    let files = files.map(|file| (file.name.as_str(), file.data.len()));
    rows.extend(files.chain(schema).map(|(name, size)| vec![name.to_owned(), size.to_string()]));
    if rows.len() == 1 { String::new() } else { trimmed(&rows) }
}

fn object_table(objects: &[ManifestObject]) -> String {
    if objects.is_empty() {
        return String::new();
    }
    let heads = ["KIND", "NAMESPACE", "NAME", "API VERSION", "TEMPLATE"];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    rows.extend(objects.iter().map(|object| {
        let identity = &object.identity;
        [&identity.kind, &identity.namespace, &identity.name, &object.api_version, &object.source]
            .map(Clone::clone)
            .to_vec()
    }));
    trimmed(&rows)
}

fn hook_table(hooks: &[Hook]) -> String {
    if hooks.is_empty() {
        return String::new();
    }
    let heads = ["KIND", "NAME", "EVENTS", "WEIGHT", "DELETE", "LAST RUN", "PHASE", "TEMPLATE"];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    rows.extend(hooks.iter().map(|hook| {
        vec![
            hook.kind.clone(),
            hook.name.clone(),
            hook.events.join(","),
            hook.weight.to_string(),
            hook.delete_policies.join(","),
            time_text(&hook.last_run.started_at),
            hook.last_run.phase.clone(),
            hook.path.clone(),
        ]
    }));
    trimmed(&rows)
}

/// A table without blanks at the ends of lines.
fn trimmed(rows: &[Vec<String>]) -> String {
    table(rows).lines().flat_map(|line| [line.trim_end(), "\n"]).collect()
}

fn object_value(object: &ManifestObject) -> Value {
    let text = |text: &str| Value::from(text);
    let identity = &object.identity;
    map([
        ("apiVersion", text(&object.api_version)),
        ("kind", text(&identity.kind)),
        ("namespace", text(&identity.namespace)),
        ("name", text(&identity.name)),
        ("template", text(&object.source)),
    ])
}

fn hook_value(hook: &Hook, brief: bool) -> Value {
    let text = |text: &str| Value::from(text);
    let texts = |texts: &[String]| {
        Value::Seq(texts.iter().map(|text| Value::from(text.as_str())).collect())
    };
    let mut fields = vec![
        ("kind", text(&hook.kind)),
        ("name", text(&hook.name)),
        ("template", text(&hook.path)),
        ("events", texts(&hook.events)),
        ("weight", Value::Int(hook.weight)),
        ("deletePolicies", texts(&hook.delete_policies)),
        (
            "lastRun",
            map([
                ("startedAt", Value::from(time::rfc3339(&hook.last_run.started_at))),
                ("completedAt", Value::from(time::rfc3339(&hook.last_run.completed_at))),
                ("phase", text(&hook.last_run.phase)),
            ]),
        ),
    ];
    if !brief {
        fields.push(("manifest", text(&hook.manifest)));
    }
    Value::Map(fields.into_iter().collect())
}
