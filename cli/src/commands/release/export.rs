//! `ichor release export`: records as objects ready to apply, or as lines of JSON.

use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use clap::{Args, ValueEnum};
use goyaml::{Map, Value};
use helm_rs::error_chain;
use helm_rs::release::input::{Storage, StoredRecord};
use helm_rs::release::{ExportTarget, Exported, Summary, export, redact};

use super::reading::{Failure, Reading, named_revision, warn_of_twins};
use super::source::{Ask, SourceFlags};
use super::time;
use crate::commands::Context;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::file::{self, Existing};
use crate::flags;

pub(super) const EXAMPLES: &str = "\
Examples:
  ichor release export web --from dump.yaml | kubectl create -f -
  ichor release export web --into-namespace shop --into-driver configmap --to records --from dump.yaml
  ichor release export --summaries --from cluster-a.yaml --from cluster-b.yaml > releases.ndjson

kubectl create never overwrites a record that is there; apply would, and cannot hold big ones.
Manifests keep the namespaces that they name, whatever the record is moved to. Files that are there
already are left alone, and an error. Exported records hold values as they are, secrets included.";

/// What records are stored in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Driver {
    /// Secrets, as Helm does by default.
    Secret,
    /// ConfigMaps, as with HELM_DRIVER=configmap.
    Configmap,
}

/// How objects are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Form {
    /// YAML documents.
    #[default]
    Yaml,
    /// One JSON object a line.
    Json,
}

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Names of releases, or NAME:REVISION; all when not given
    releases: Vec<String>,
    /// Only this revision
    #[arg(long, value_name = "REVISION", default_value_t = 0)]
    revision: i64,
    /// Namespace to move the records to
    #[arg(long, value_name = "NAMESPACE", value_parser = flags::namespace)]
    into_namespace: Option<String>,
    /// Name to give the release
    #[arg(long, value_name = "NAME", value_parser = flags::release_name)]
    into_name: Option<String>,
    /// Kind of object to write; the one that a record is in when not given
    #[arg(long, value_enum, value_name = "DRIVER")]
    into_driver: Option<Driver>,
    /// Folder to write one file per record into, instead of printing them
    #[arg(long, value_name = "FOLDER", conflicts_with = "summaries")]
    to: Option<PathBuf>,
    /// Print a line of JSON about each record instead of the records
    #[arg(long)]
    summaries: bool,
    /// Show credentials that the descriptions in --summaries quote
    #[arg(long, requires = "summaries")]
    show_secrets: bool,
    /// Form of the objects
    #[arg(short, long, value_enum, value_name = "FORM", default_value_t)]
    output: Form,
    #[command(flatten)]
    source: SourceFlags,
}

impl Arguments {
    fn target(&self) -> ExportTarget {
        ExportTarget {
            storage: self.into_driver.map(|driver| match driver {
                Driver::Secret => Storage::Secret,
                Driver::Configmap => Storage::ConfigMap,
            }),
            namespace: self.into_namespace.clone(),
            name: self.into_name.clone(),
        }
    }

    fn wanted(&self) -> Result<Wanted<'_>, CommandError> {
        let named = self.releases.iter().map(|name| named_revision(name, self.revision));
        let releases = named.collect::<Result<_, _>>()?;
        Ok(Wanted { arguments: self, releases })
    }
}

/// What to export.
struct Wanted<'a> {
    arguments: &'a Arguments,
    /// Names of releases, all for none, each with its revision, 0 for all.
    releases: Vec<(&'a str, i64)>,
}

/// Whether a revision is the one that is asked for.
const fn is_of(asked: i64, revision: i64) -> bool {
    asked <= 0 || asked == revision
}

/// Whether a record is the one that is named, or of the release that is named.
fn is_named((name, revision): (&str, i64), summary: &Summary) -> bool {
    name == summary.name && is_of(revision, summary.revision)
}

impl Wanted<'_> {
    /// What to ask a server for.
    fn ask(&self) -> Ask<'_> {
        match self.releases.as_slice() {
            [(name, revision)] => Ask { name: Some(name), revision: *revision },
            _ => Ask::default(),
        }
    }

    fn wants(&self, stored: &StoredRecord, summary: &Summary) -> bool {
        let namespace =
            if stored.namespace.is_empty() { &summary.namespace } else { &stored.namespace };
        let is_named = if self.releases.is_empty() {
            is_of(self.arguments.revision, summary.revision)
        } else {
            self.releases.iter().any(|named| is_named(*named, summary))
        };
        is_named && !self.arguments.source.excludes(namespace)
    }

    /// Makes something of each wanted record. Every release that was named must have one, or
    /// something that cannot be read and may be one.
    fn each<T: Send>(
        &self,
        context: &mut Context<'_>,
        make: impl Fn(&StoredRecord, &Summary, &str) -> Result<T, String> + Sync,
    ) -> Result<Reading<T>, CommandError> {
        let found: Vec<AtomicBool> = self.releases.iter().map(|_| AtomicBool::default()).collect();
        let wanted = |record: &StoredRecord| {
            self.releases.is_empty() || self.releases.iter().any(|(name, _)| record.may_be_of(name))
        };
        let source = &self.arguments.source;
        let Reading { made, failures } =
            source.read(&self.ask(), context, wanted, |stored, json| {
                let summary =
                    Summary::from_json(&json).map_err(|error| format!("JSON layer: {error}"))?;
                source.check(&stored, &summary)?;
                if !self.wants(&stored, &summary) {
                    return Ok(None);
                }
                for (named, found) in self.releases.iter().zip(&found) {
                    found.fetch_or(is_named(*named, &summary), Ordering::Relaxed);
                }
                make(&stored, &summary, &json).map(Some)
            })?;
        let is_missing = |(named, found): &(&(&str, i64), &AtomicBool)| {
            !found.load(Ordering::Relaxed)
                && !failures.iter().any(|failure| self.may_be(**named, failure))
        };
        let missing: Vec<&str> =
            self.releases.iter().zip(&found).filter(is_missing).map(|(named, _)| named.0).collect();
        match missing.as_slice() {
            [] if self.arguments.revision > 0
                && self.releases.is_empty()
                && made.iter().all(Option::is_none) =>
            {
                return Err(CommandError::new("release: not found"));
            }
            [] => {}
            _ if self.releases.len() == 1 => return Err(CommandError::new("release: not found")),
            missing => {
                let missing = missing.join(", ");
                return Err(CommandError::new(format_args!("release: not found: {missing}")));
            }
        }
        Ok(Reading { made: made.into_iter().flatten().collect(), failures })
    }

    /// How many of the failures may be what was asked for.
    fn count(&self, failures: &[Failure]) -> usize {
        let namespace = self.arguments.source.only_namespace();
        let is_wanted = |failure: &&Failure| {
            if self.releases.is_empty() {
                return failure
                    .may_fit(namespace, |revision| is_of(self.arguments.revision, revision));
            }
            self.releases.iter().any(|named| self.may_be(*named, failure))
        };
        failures.iter().filter(is_wanted).count()
    }

    fn may_be(&self, (name, asked): (&str, i64), failure: &Failure) -> bool {
        let namespace = self.arguments.source.only_namespace();
        failure.may_be(name, namespace, |revision| is_of(asked, revision))
    }
}

pub(crate) fn run(arguments: &Arguments, context: &mut Context<'_>) -> Result<Exit, CommandError> {
    let wanted = arguments.wanted()?;
    let failed = if arguments.summaries {
        let Reading { made, failures } = wanted.each(context, |stored, summary, json| {
            let description = &summary.info.description;
            let description = if arguments.show_secrets {
                description.clone()
            } else {
                redact::description(description, json)
            };
            let line = goyaml::json::to_json(&summary_value(stored, summary, &description));
            let line = line.map_err(|error| error.to_string())?;
            let namespace = match stored.namespace.as_str() {
                "" => &summary.namespace,
                namespace => namespace,
            };
            Ok((summary.clone(), namespace.to_owned(), line))
        })?;
        warn_of_twins(made.iter().map(|(summary, namespace, _)| (summary, &**namespace)), context);
        for (_, _, line) in &made {
            context.ui.result(line)?;
            context.ui.result("\n")?;
        }
        wanted.count(&failures)
    } else {
        records(&wanted, context)?
    };
    if failed > 0 {
        let records = if failed == 1 { "record" } else { "records" };
        return Err(CommandError::new(format_args!(
            "{failed} {records} could not be exported: see the warnings"
        )));
    }
    Ok(Exit::Done)
}

/// Writes or prints records; how many could not be.
fn records(wanted: &Wanted<'_>, context: &mut Context<'_>) -> Result<usize, CommandError> {
    let arguments = wanted.arguments;
    let target = arguments.target();
    // What was written of each, where nothing else is kept.
    let written: Mutex<BTreeMap<(String, String), u64>> = Mutex::default();
    let Reading { made, failures } = wanted.each(context, |stored, _, json| {
        let exported = export(stored, json, &target).map_err(|error| error_chain(&error))?;
        let text = text(&exported, arguments.output).map_err(|error| error.to_string())?;
        // A folder's files are written at once: a dump's records need not fit into memory.
        let text = match &arguments.to {
            Some(folder) => {
                let name = (exported.namespace.clone(), exported.name.clone());
                let mut hasher = DefaultHasher::new();
                text.hash(&mut hasher);
                let digest = hasher.finish();
                let other =
                    written.lock().unwrap_or_else(PoisonError::into_inner).insert(name, digest);
                match other {
                    // Dumps that overlap have a record twice.
                    Some(other) if other == digest => {}
                    Some(_) => return Err(format!("{}: {}", stored.place, two(&exported))),
                    None => write(folder, &exported, arguments.output, &text)?,
                }
                None
            }
            None => Some(text),
        };
        Ok((Exported { object: Value::Null, ..exported }, text))
    })?;
    let mut texts = BTreeMap::new();
    let mut printed = Vec::new();
    for (exported, text) in &made {
        let Some(text) = text else { continue };
        match texts.insert((&exported.namespace, &exported.name), text) {
            None => printed.push(text),
            Some(other) if other == text => {}
            Some(_) => {
                return Err(CommandError::new(two(exported))
                    .hint("name one release, and one namespace with --namespace"));
            }
        }
    }
    for text in printed {
        context.ui.result(text)?;
    }
    if arguments.to.is_some() {
        context
            .ui
            .debug(format!("{} records written", written.into_inner().map_or(0, |all| all.len())));
    }
    Ok(wanted.count(&failures))
}

fn two(exported: &Exported) -> String {
    format!("two records would be {} in namespace {}", exported.name, exported.namespace)
}

fn text(exported: &Exported, form: Form) -> Result<String, goyaml::Error> {
    match form {
        Form::Yaml => Ok(format!("---\n{}", goyaml::to_yaml(&exported.object)?)),
        Form::Json => goyaml::json::to_json(&exported.object)
            .map(|text| format!("{text}\n"))
            .map_err(goyaml::Error::Marshaling),
    }
}

/// Names were checked to be such that Kubernetes accepts, so that they lead nowhere.
fn write(folder: &Path, exported: &Exported, form: Form, text: &str) -> Result<(), String> {
    let extension = match form {
        Form::Yaml => "yaml",
        Form::Json => "json",
    };
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let name = match exported.namespace.as_str() {
        "" => format!("{}.{extension}", exported.name),
        namespace => format!("{namespace}.{}.{extension}", exported.name),
    };
    let path = folder.join(name);
    file::write(&path, text.as_bytes(), Existing::Keep)
        .map_err(|error| format!("{}: {error}", path.display()))
}

fn summary_value(stored: &StoredRecord, summary: &Summary, description: &str) -> Value {
    let text = |text: &str| Value::from(text);
    let size = |size: usize| Value::Int(i64::try_from(size).unwrap_or(i64::MAX));
    let namespace =
        if stored.namespace.is_empty() { &summary.namespace } else { &stored.namespace };
    let storage = match stored.storage {
        Storage::Secret => "secret",
        Storage::ConfigMap => "configmap",
        Storage::Bare => "bare",
    };
    let mut labels = Map::new();
    for (key, value) in &stored.labels {
        labels.insert(key.as_str(), value.as_str());
    }
    Value::Map(
        [
            ("place", text(&stored.place)),
            ("storage", text(storage)),
            ("object", text(&stored.name)),
            ("labels", Value::Map(labels)),
            ("name", text(&summary.name)),
            ("namespace", text(namespace)),
            ("revision", Value::Int(summary.revision)),
            ("status", text(&summary.info.status_text)),
            ("chart", text(&summary.chart)),
            ("chartVersion", text(&summary.chart_version)),
            ("appVersion", text(&summary.app_version)),
            ("firstDeployed", Value::from(time::rfc3339(&summary.info.first_deployed))),
            ("lastDeployed", Value::from(time::rfc3339(&summary.info.last_deployed))),
            ("deleted", Value::from(time::rfc3339(&summary.info.deleted))),
            ("description", text(description)),
            ("storedBytes", size(stored.stored_size())),
            ("jsonBytes", size(summary.json_size)),
        ]
        .into_iter()
        .collect(),
    )
}
