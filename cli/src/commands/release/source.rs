//! Where the records of a command come from, and which one it means.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::Args;
use helm_rs::error_chain;
use helm_rs::name::validate_release_name;
use helm_rs::release::input::{Input, InputLimits, Storage, StoredRecord, scan};
use helm_rs::release::verify::{Audited, Code, Finding, Question, audit, undecodable};
use helm_rs::release::{CodecLimits, Record, Summary};

use crate::commands::Context;
use crate::error::CommandError;

/// Flags that say where records are.
#[derive(Debug, Args)]
#[command(next_help_heading = "Records")]
pub(crate) struct SourceFlags {
    /// File, folder or archive to read records from; - is standard input, the default (repeatable)
    #[arg(long, value_name = "PATH")]
    from: Vec<String>,
    /// Only records in this namespace; all that the input holds when not given
    #[arg(short, long, value_name = "NAMESPACE")]
    namespace: Option<String>,
    /// Which objects hold the records
    #[arg(long, value_enum, value_name = "KIND")]
    driver: Option<Driver>,
    /// Bytes that one record may decode to
    #[arg(long, value_name = "BYTES", default_value_t = CodecLimits::default().decompressed)]
    max_record_size: usize,
    /// Bytes that one object's text may have
    #[arg(long, value_name = "BYTES", default_value_t = InputLimits::default().object)]
    max_object_size: usize,
}

/// Objects that hold records: Helm's storage drivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Driver {
    /// Secrets, Helm's default.
    #[value(alias = "secrets")]
    Secret,
    /// ConfigMaps.
    #[value(alias = "configmaps")]
    Configmap,
}

impl Driver {
    /// Whether a record is this driver's; a bare release is any driver's.
    const fn has(self, storage: Storage) -> bool {
        match self {
            Self::Secret => !matches!(storage, Storage::ConfigMap),
            Self::Configmap => !matches!(storage, Storage::Secret),
        }
    }
}

/// One record in a list.
pub(crate) struct Listed {
    /// What the record says.
    pub(crate) summary: Summary,
    /// Its object's labels.
    pub(crate) labels: Vec<(String, String)>,
    /// Its object's namespace, else the release's own.
    pub(crate) namespace: String,
}

/// What an audit of the input found.
pub(crate) struct Audit {
    /// Records, each audited by itself.
    pub(crate) records: Vec<Audited>,
    /// What does not decode.
    pub(crate) findings: Vec<Finding>,
}

impl SourceFlags {
    fn inputs(&self, context: &Context<'_>) -> Vec<Input> {
        let standard = || Input::Stream("standard input".to_owned(), context.environment.input());
        if self.from.is_empty() {
            return vec![standard()];
        }
        let input = |path: &String| match path.as_str() {
            "-" => standard(),
            path => Input::Path(PathBuf::from(path)),
        };
        self.from.iter().map(input).collect()
    }

    /// The same bounds on one file.
    pub(super) fn of_file(&self, path: &str) -> Self {
        Self { from: vec![path.to_owned()], namespace: None, ..*self }
    }

    /// Reads the records that `wanted` lets through, and makes something of each. What cannot be
    /// read is reported, and does not stop the rest.
    fn read<T: Send>(
        &self,
        context: &mut Context<'_>,
        wanted: impl Fn(&StoredRecord) -> bool + Sync,
        make: impl Fn(StoredRecord, String) -> Result<T, String> + Sync,
    ) -> Vec<T> {
        self.read_counted(context, wanted, make).0
    }

    /// As [`Self::read`], with how many could not be read.
    pub(super) fn read_counted<T: Send>(
        &self,
        context: &mut Context<'_>,
        wanted: impl Fn(&StoredRecord) -> bool + Sync,
        make: impl Fn(StoredRecord, String) -> Result<T, String> + Sync,
    ) -> (Vec<T>, usize) {
        let limits = InputLimits { object: self.max_object_size, ..InputLimits::default() };
        let codec = CodecLimits { decompressed: self.max_record_size };
        let found = scan(self.inputs(context), &limits, None, |record| {
            if self.leaves_out(&record) || !wanted(&record) {
                return None;
            }
            let place = format!("{}: {}", record.place, record.title());
            let made = match record.decode(&codec) {
                Ok(json) => make(record, json),
                Err(error) => Err(error_chain(&error)),
            };
            Some(made.map_err(|error| format!("{place}: {error}")))
        });
        for fault in &found.faults {
            context.ui.warning(format!("warning: {}", error_chain(fault)));
        }
        if found.skipped > 0 {
            context.ui.debug(format!("{} other objects passed over", found.skipped));
        }
        let mut made = Vec::new();
        let mut failed = found.faults.len();
        for item in found.items {
            match item {
                Ok(item) => made.push(item),
                Err(error) => {
                    failed += 1;
                    context.ui.warning(format!("warning: {error}"));
                }
            }
        }
        (made, failed)
    }

    /// Whether a record's object is not one that was asked for.
    fn leaves_out(&self, record: &StoredRecord) -> bool {
        self.driver.is_some_and(|driver| !driver.has(record.storage))
            || self.excludes(&record.namespace)
    }

    /// Whether a namespace is known and another one than was asked for.
    pub(super) fn excludes(&self, namespace: &str) -> bool {
        self.namespace.as_ref().is_some_and(|wanted| !namespace.is_empty() && namespace != wanted)
    }

    /// The summaries of all records.
    pub(crate) fn list(&self, context: &mut Context<'_>) -> Vec<Listed> {
        let mut all = self.read(
            context,
            |_| true,
            |record, json| {
                let summary =
                    Summary::from_json(&json).map_err(|error| format!("JSON layer: {error}"))?;
                let namespace = match record.namespace {
                    empty if empty.is_empty() => summary.namespace.clone(),
                    namespace => namespace,
                };
                Ok(Listed { summary, labels: record.labels, namespace })
            },
        );
        all.retain(|listed| !self.excludes(&listed.namespace));
        all
    }

    /// Audits every record by itself; what does not decode is a finding.
    pub(crate) fn audit(&self, question: &Question, context: &mut Context<'_>) -> Audit {
        let limits = InputLimits { object: self.max_object_size, ..InputLimits::default() };
        let codec = CodecLimits { decompressed: self.max_record_size };
        let found = scan(self.inputs(context), &limits, None, |record| {
            if self.leaves_out(&record) {
                return None;
            }
            Some(match record.decode(&codec) {
                Ok(json) => audit(&record, &json, question),
                Err(error) => Err(undecodable(&record, error_chain(&error))),
            })
        });
        let mut all = Audit { records: Vec::new(), findings: Vec::new() };
        for fault in found.faults {
            all.findings.push(Finding {
                code: Code::Undecodable,
                namespace: String::new(),
                release: String::new(),
                revision: None,
                message: error_chain(&fault.source),
                place: fault.place,
            });
        }
        for item in found.items {
            match item {
                Ok(record) => all.records.push(record),
                Err(finding) => all.findings.push(finding),
            }
        }
        all
    }

    /// The summaries of a release's revisions, in no order.
    pub(crate) fn revisions(
        &self,
        name: &str,
        context: &mut Context<'_>,
    ) -> Result<Vec<Listed>, CommandError> {
        let found = self.of_release(name, context, |json| {
            Summary::from_json(json).map_err(|error| format!("JSON layer: {error}"))
        })?;
        Ok(found
            .into_iter()
            .map(|(namespace, summary)| Listed { summary, labels: Vec::new(), namespace })
            .collect())
    }

    /// One revision of a release: the one that is asked for, or the last one
    /// (`Configuration.releaseContent` in `pkg/action/action.go`).
    pub(crate) fn record(
        &self,
        name: &str,
        revision: i64,
        context: &mut Context<'_>,
    ) -> Result<Record, CommandError> {
        let mut found = self.of_release(name, context, |json| {
            let summary =
                Summary::from_json(json).map_err(|error| format!("JSON layer: {error}"))?;
            if revision > 0 && summary.revision != revision {
                return Ok(None);
            }
            let record = Record::from_json(json).map_err(|error| format!("JSON layer: {error}"))?;
            Ok(Some((summary.revision, record)))
        })?;
        found.retain(|(_, record)| record.is_some());
        let last = found.into_iter().filter_map(|(_, record)| record).max_by_key(|(at, _)| *at);
        last.map(|(_, record)| record).ok_or_else(not_found)
    }

    /// What `make` makes of each record of a release, with the record's namespace.
    fn of_release<T: Send>(
        &self,
        name: &str,
        context: &mut Context<'_>,
        make: impl Fn(&str) -> Result<T, String> + Sync,
    ) -> Result<Vec<(String, T)>, CommandError> {
        if validate_release_name(name).is_err() {
            return Err(CommandError::new(format_args!("release name is invalid: {name}")));
        }
        // The object's head tells which records need no decoding.
        let wanted =
            |record: &StoredRecord| record.release_name().is_none_or(|of_record| of_record == name);
        let found = self.read(context, wanted, |record, json| {
            let summary =
                Summary::from_json(&json).map_err(|error| format!("JSON layer: {error}"))?;
            let namespace = match record.namespace {
                empty if empty.is_empty() => summary.namespace,
                namespace => namespace,
            };
            if summary.name == name && !self.excludes(&namespace) {
                Ok(Some((namespace, make(&json)?)))
            } else {
                Ok(None)
            }
        });
        let found: Vec<(String, T)> = found.into_iter().flatten().collect();
        let namespaces: BTreeSet<&str> =
            found.iter().map(|(namespace, _)| namespace.as_str()).collect();
        if namespaces.len() > 1 {
            let namespaces: Vec<&str> = namespaces.into_iter().collect();
            return Err(CommandError::new(format_args!(
                "release {name} is in several namespaces: {}",
                namespaces.join(", ")
            ))
            .hint("name one with --namespace"));
        }
        if found.is_empty() { Err(not_found()) } else { Ok(found) }
    }
}

fn not_found() -> CommandError {
    CommandError::new("release: not found")
}
