//! Where the records of a command come from, and which one it means.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use clap::Args;
use helm_rs::error_chain;
use helm_rs::name::validate_release_name;
use helm_rs::release::input::{
    Fault, FaultKind, Input, InputLimits, Scan, Storage, StoredRecord, scan_with,
};
use helm_rs::release::storage::record_key;
use helm_rs::release::verify::{Audited, Code, Finding, Question, audit, no_record, undecodable};
use helm_rs::release::{CodecLimits, Record, Summary, redact};

#[cfg(feature = "network")]
use super::live::LiveInput;
use super::reading::{
    Failure, Head, Reading, contradiction, invalid_name, named_revision, two_differ, warn_of_twins,
};
use crate::commands::Context;
use crate::commands::etcd::EtcdFlags;
use crate::error::CommandError;

#[cfg(not(feature = "network"))]
use crate::commands::chart::options::NamespaceFlags as ClusterFlags;
#[cfg(feature = "network")]
use crate::connection::{ClusterFlags, record_kind};
#[cfg(feature = "network")]
use helm_rs::release::storage::ObjectKind;

/// Flags that say where records are.
#[derive(Debug, Args)]
#[command(next_help_heading = "Records")]
pub(crate) struct SourceFlags {
    /// File, folder or archive to read records from; - is standard input (repeatable). Without
    /// it a cluster is asked
    #[arg(long, value_name = "PATH")]
    from: Vec<String>,
    /// Records of all namespaces; of files the default
    #[arg(short = 'A', long)]
    all_namespaces: bool,
    /// Which objects hold the records: of a cluster what HELM_DRIVER says or Secrets, of files any
    #[arg(long, value_enum, value_name = "KIND")]
    driver: Option<Driver>,
    /// Bytes that one record may decode to
    #[arg(long, value_name = "BYTES", default_value_t = CodecLimits::default().decompressed)]
    max_record_size: usize,
    /// Bytes that one object's text may have
    #[arg(long, value_name = "BYTES", default_value_t = InputLimits::default().object)]
    max_object_size: usize,
    #[command(flatten)]
    etcd: EtcdFlags,
    #[command(flatten)]
    cluster: ClusterFlags,
    /// What was said already: a command that reads twice says it once.
    #[arg(skip)]
    told: Mutex<BTreeSet<String>>,
}

/// Which records a command is after. A server is asked for no others; files hold what they hold.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ask<'a> {
    /// The release; all of them when `None`.
    pub(crate) name: Option<&'a str>,
    /// The revision; all of them for 0 and below.
    #[cfg_attr(not(feature = "network"), expect(dead_code, reason = "a server alone is asked"))]
    pub(crate) revision: i64,
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
    /// The objects of this driver.
    #[cfg(feature = "network")]
    const fn storage(self) -> Storage {
        match self {
            Self::Secret => Storage::Secret,
            Self::Configmap => Storage::ConfigMap,
        }
    }

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

impl Listed {
    /// Whether two are the same record, out of dumps that overlap.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.summary == other.summary && self.namespace == other.namespace
    }
}

/// What an audit of the input found.
pub(crate) struct Audit {
    /// Records, each audited by itself.
    pub(crate) records: Vec<Audited>,
    /// What does not decode.
    pub(crate) findings: Vec<Finding>,
}

impl SourceFlags {
    /// The files that were named, or what a server answers.
    fn open(&self, ask: &Ask<'_>, context: &Context<'_>) -> Result<Opened, CommandError> {
        if self.from.is_empty() {
            self.etcd.check_unused()?;
            return self.ask_server(ask, context);
        }
        let input = |path: &String| match path.as_str() {
            "-" => Input::Stream("standard input".to_owned(), context.environment.input()),
            path => Input::Path(PathBuf::from(path)),
        };
        Ok(Opened::Files(self.from.iter().map(input).collect()))
    }

    #[cfg(feature = "network")]
    fn ask_server(&self, ask: &Ask<'_>, context: &Context<'_>) -> Result<Opened, CommandError> {
        let environment = context.environment;
        let driver = match (self.driver, record_kind(environment)) {
            (Some(driver), _) => driver,
            (None, kind) => match kind? {
                ObjectKind::Secret => Driver::Secret,
                ObjectKind::ConfigMap => Driver::Configmap,
            },
        };
        let namespace =
            if self.all_namespaces { String::new() } else { self.cluster.namespace(environment) };
        let storage = driver.storage();
        LiveInput::open(&self.cluster, environment, storage, &namespace, ask).map(Opened::Live)
    }

    #[cfg(not(feature = "network"))]
    #[expect(clippy::unused_self, reason = "as with a network")]
    fn ask_server(&self, _: &Ask<'_>, _: &Context<'_>) -> Result<Opened, CommandError> {
        Err(CommandError::new("this build reads no cluster: name a file with --from"))
    }

    /// The namespace that was named.
    const fn named_namespace(&self) -> Option<&String> {
        #[cfg(feature = "network")]
        let flags = &self.cluster.namespace;
        #[cfg(not(feature = "network"))]
        let flags = &self.cluster;
        flags.namespace.as_ref()
    }

    /// The namespace that alone is asked for; empty for all.
    pub(super) fn only_namespace(&self) -> &str {
        let named = self.named_namespace().filter(|_| !self.all_namespaces);
        named.map_or("", String::as_str)
    }

    /// Whether records come from a cluster.
    pub(super) const fn is_live(&self) -> bool {
        self.from.is_empty()
    }

    /// The cluster that the flags name.
    #[cfg(feature = "network")]
    pub(super) const fn cluster(&self) -> &ClusterFlags {
        &self.cluster
    }

    /// The same bounds on one file.
    pub(super) fn of_file(&self, path: &str) -> Self {
        Self {
            from: vec![path.to_owned()],
            all_namespaces: true,
            driver: self.driver,
            max_record_size: self.max_record_size,
            max_object_size: self.max_object_size,
            etcd: self.etcd.clone(),
            cluster: ClusterFlags::default(),
            told: Mutex::default(),
        }
    }

    /// What a record may decode to; more bytes may be more values.
    fn codec_limits(&self) -> CodecLimits {
        let default = CodecLimits::default();
        let times = self.max_record_size.div_ceil(default.decompressed).max(1);
        CodecLimits {
            decompressed: self.max_record_size,
            values: default.values.saturating_mul(times),
        }
    }

    /// Where records are looked for, for messages.
    pub(super) fn place(&self) -> String {
        let place = if self.from.is_empty() {
            "the cluster".to_owned()
        } else {
            let name = |path: &String| match path.as_str() {
                "-" => "standard input".to_owned(),
                path => path.to_owned(),
            };
            self.from.iter().map(name).collect::<Vec<_>>().join(", ")
        };
        match self.named_namespace() {
            Some(namespace) if !self.all_namespaces => format!("{place}, namespace {namespace}"),
            _ => place,
        }
    }

    /// Goes through the input on all cores.
    fn scan<T: Send>(
        &self,
        ask: &Ask<'_>,
        context: &mut Context<'_>,
        work: impl Fn(StoredRecord) -> Option<T> + Sync,
    ) -> Result<Scan<T>, CommandError> {
        let limits = InputLimits { object: self.max_object_size, ..InputLimits::default() };
        let mut opened = self.open(ask, context)?;
        let (here, elsewhere) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let found = scan_with(opened.take(), &limits, &self.etcd.options()?, None, |record| {
            if self.driver.is_some_and(|driver| !driver.has(record.storage)) {
                return None;
            }
            let counter = if self.excludes(&record.namespace) { &elsewhere } else { &here };
            counter.fetch_add(1, Ordering::Relaxed);
            if self.excludes(&record.namespace) { None } else { work(record) }
        });
        if !opened.is_live() && here.into_inner() == 0 && found.faults.is_empty() {
            self.say_elsewhere(elsewhere.into_inner(), context);
        }
        // Half of a server's answer is none: what is missing would look as if it were not there.
        let broken =
            |fault: &&Fault| matches!(fault.source, FaultKind::Io(_) | FaultKind::Cut { .. });
        match found.faults.iter().find(broken) {
            Some(fault) if opened.is_live() => Err(CommandError::new(error_chain(fault))),
            _ => Ok(found),
        }
    }

    /// Says that there are records, and none where they were asked for.
    fn say_elsewhere(&self, elsewhere: usize, context: &mut Context<'_>) {
        let namespace = self.only_namespace();
        let which = match elsewhere {
            0 => return,
            1 => "the one record of the input is not".to_owned(),
            all => format!("none of the input's {all} records is"),
        };
        self.warn(format!("warning: {which} in namespace {namespace}"), context);
    }

    /// Warns, once of the same.
    fn warn(&self, text: String, context: &mut Context<'_>) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.insert(text.clone()) {
            context.ui.warning(text);
        }
    }

    /// Reads the records that `wanted` lets through, and makes something of each. What cannot be
    /// read is reported, and does not stop the rest.
    pub(super) fn read<T: Send>(
        &self,
        ask: &Ask<'_>,
        context: &mut Context<'_>,
        wanted: impl Fn(&StoredRecord) -> bool + Sync,
        make: impl Fn(StoredRecord, String) -> Result<T, String> + Sync,
    ) -> Result<Reading<T>, CommandError> {
        let codec = self.codec_limits();
        let found = self.scan(ask, context, |record| {
            if !wanted(&record) {
                return None;
            }
            let head = Head::of(&record);
            let made = match record.decode(&codec) {
                Ok(json) => make(record, json),
                Err(error) => Err(error_chain(&error)),
            };
            Some(made.map_err(|error| Failure::of_record(head, &error)))
        })?;
        let mut reading = Reading { made: Vec::new(), failures: Vec::new() };
        reading.failures.extend(found.faults.iter().map(Failure::of_fault));
        for item in found.items {
            match item {
                Ok(item) => reading.made.push(item),
                Err(failure) => reading.failures.push(failure),
            }
        }
        for failure in &reading.failures {
            self.warn(format!("warning: {}", failure.text), context);
        }
        // Of a server's answer, nothing is what Helm too has no word for.
        if !self.from.is_empty() {
            for name in &found.empty {
                self.warn(format!("warning: no release record in {name}"), context);
            }
            let note = match found.skipped {
                0 => String::new(),
                1 => "1 other object passed over".to_owned(),
                skipped => format!("{skipped} other objects passed over"),
            };
            let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
            if !note.is_empty() && told.insert(note.clone()) {
                context.ui.note(note);
            }
        }
        Ok(reading)
    }

    /// Refuses a record of a file that is not what its object says. Of a cluster's, Helm takes what
    /// is in it.
    pub(super) fn check(&self, record: &StoredRecord, summary: &Summary) -> Result<(), String> {
        if self.is_live() {
            return Ok(());
        }
        contradiction(record, summary).map_or(Ok(()), Err)
    }

    /// Whether a namespace is known and another one than was asked for.
    pub(super) fn excludes(&self, namespace: &str) -> bool {
        !self.all_namespaces
            && self
                .named_namespace()
                .is_some_and(|wanted| !namespace.is_empty() && namespace != wanted)
    }

    /// The summaries of all records, and what could not be read.
    ///
    /// # Errors
    /// When there are records and none can be read.
    pub(crate) fn list(&self, context: &mut Context<'_>) -> Result<Reading<Listed>, CommandError> {
        let mut reading = self.read(
            &Ask::default(),
            context,
            |_| true,
            |record, json| {
                let summary =
                    Summary::from_json(&json).map_err(|error| format!("JSON layer: {error}"))?;
                self.check(&record, &summary)?;
                let namespace = match record.namespace {
                    empty if empty.is_empty() => summary.namespace.clone(),
                    namespace => namespace,
                };
                Ok(Listed { summary, labels: record.labels, namespace })
            },
        )?;
        if reading.made.is_empty() && !reading.failures.is_empty() {
            return Err(CommandError::new("no record could be read"));
        }
        reading.made.retain(|listed| !self.excludes(&listed.namespace));
        warn_of_twins(reading.made.iter().map(|it| (&it.summary, &*it.namespace)), context);
        Ok(reading)
    }

    /// Audits every record by itself; what does not decode is a finding.
    pub(crate) fn audit(
        &self,
        question: &Question,
        context: &mut Context<'_>,
    ) -> Result<Audit, CommandError> {
        let codec = self.codec_limits();
        let found = self.scan(&Ask::default(), context, |record| {
            Some(match record.decode(&codec) {
                Ok(json) => audit(&record, &json, question),
                Err(error) => Err(undecodable(&record, error_chain(&error))),
            })
        })?;
        let mut all = Audit { records: Vec::new(), findings: Vec::new() };
        let mut empty = found.empty;
        if empty.is_empty() && found.items.is_empty() && found.faults.is_empty() {
            empty.push(self.place());
        }
        all.findings.extend(empty.iter().map(|place| {
            let others = match found.skipped {
                0 => String::new(),
                1 => "; 1 other object passed over".to_owned(),
                skipped => format!("; {skipped} other objects passed over"),
            };
            no_record(place, format!("no release record{others}"))
        }));
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
        Ok(all)
    }

    /// The summaries of a release's revisions, in no order; their descriptions without
    /// credentials, unless these are asked for.
    pub(crate) fn revisions(
        &self,
        name: &str,
        show_secrets: bool,
        context: &mut Context<'_>,
    ) -> Result<Reading<Listed>, CommandError> {
        let ask = Ask { name: Some(name), revision: 0 };
        let found = self.of_release(&ask, name, context, |summary, _, json| {
            Ok((!show_secrets).then(|| redact::description(&summary.info.description, json)))
        })?;
        let mut listed: Vec<Listed> = Vec::new();
        let mut shown = Vec::new();
        for (item, description) in found.made {
            if !listed.iter().any(|other| other.is_same(&item)) {
                listed.push(item);
                shown.push(description);
            }
        }
        // Told apart by what they say, not by what is shown of it.
        warn_of_twins(listed.iter().map(|it| (&it.summary, &*it.namespace)), context);
        for (item, description) in listed.iter_mut().zip(shown) {
            if let Some(description) = description {
                item.summary.info.description = description;
            }
        }
        Ok(Reading { made: listed, failures: found.failures })
    }

    /// One revision of a release: the one that is asked for, or the last one
    /// (`Configuration.releaseContent` in `pkg/action/action.go`).
    pub(crate) fn record(
        &self,
        name: &str,
        revision: i64,
        context: &mut Context<'_>,
    ) -> Result<Chosen, CommandError> {
        let (name, revision) = named_revision(name, revision)?;
        let ask = Ask { name: Some(name), revision };
        let key = record_key(name, revision);
        let found = self.of_release(&ask, name, context, |_, stored, json| {
            // Helm gets a revision by its object's name, whatever its record says.
            let is_asked_for = match stored.storage {
                Storage::Bare => Summary::from_json(json).is_ok_and(|it| it.revision == revision),
                Storage::Secret | Storage::ConfigMap => stored.name == key,
            };
            if revision > 0 && !is_asked_for {
                return Ok(None);
            }
            let record = Record::from_json(json).map_err(|error| format!("JSON layer: {error}"))?;
            let place = format!("{}: {}", stored.place, stored.title());
            Ok(Some(Chosen { record, labels: stored.labels.clone(), place }))
        })?;
        let namespace =
            found.made.first().map(|(listed, _)| listed.namespace.clone()).unwrap_or_default();
        let known = found.made.iter().filter(|(_, chosen)| chosen.is_some());
        let known = known.map(|(listed, _)| listed.summary.revision).max().unwrap_or_default();
        if revision <= 0 {
            found.check_last(name, &namespace, known)?;
        } else {
            found.check_revision(name, revision)?;
        }
        let mut last: Vec<Chosen> = found
            .made
            .into_iter()
            .filter(|(listed, _)| listed.summary.revision == known)
            .filter_map(|(_, chosen)| chosen)
            .collect();
        let Some(chosen) = last.pop() else { return Err(not_found()) };
        match last.iter().find(|other| other.record.to_json() != chosen.record.to_json()) {
            Some(other) => Err(two_differ(name, known, &other.place, &chosen.place)),
            None => Ok(chosen),
        }
    }

    /// The records of a release, with what `make` makes of each.
    fn of_release<T: Send>(
        &self,
        ask: &Ask<'_>,
        name: &str,
        context: &mut Context<'_>,
        make: impl Fn(&Summary, &StoredRecord, &str) -> Result<T, String> + Sync,
    ) -> Result<Reading<(Listed, T)>, CommandError> {
        if validate_release_name(name).is_err() {
            return Err(invalid_name(name));
        }
        // The object's head tells which records need no decoding.
        let wanted = |record: &StoredRecord| record.may_be_of(name);
        let found = self.read(ask, context, wanted, |record, json| {
            let summary =
                Summary::from_json(&json).map_err(|error| format!("JSON layer: {error}"))?;
            let namespace = match &record.namespace {
                empty if empty.is_empty() => summary.namespace.clone(),
                namespace => namespace.clone(),
            };
            // An object's labels say whose record it is, or the release itself.
            self.check(&record, &summary)?;
            let is_other = summary.name != name && record.release_name() != Some(name);
            if is_other || self.excludes(&namespace) {
                return Ok(None);
            }
            let made = make(&summary, &record, &json)?;
            Ok(Some((Listed { summary, labels: record.labels, namespace }, made)))
        })?;
        let failures = found.failures;
        let found: Vec<(Listed, T)> = found.made.into_iter().flatten().collect();
        let namespaces: BTreeSet<&str> =
            found.iter().map(|(listed, _)| listed.namespace.as_str()).collect();
        if namespaces.len() > 1 {
            let namespaces: Vec<&str> = namespaces.into_iter().collect();
            return Err(CommandError::new(format_args!(
                "release {name} is in several namespaces: {}",
                namespaces.join(", ")
            ))
            .hint("name one with --namespace"));
        }
        let is_empty = found.is_empty();
        let reading = Reading { made: found, failures };
        if is_empty {
            reading.check_last(name, "", 0)?;
            return Err(not_found());
        }
        Ok(reading)
    }
}

/// The record of one revision, and where it was found.
pub(crate) struct Chosen {
    /// The record.
    pub(crate) record: Record,
    /// Its object's labels.
    pub(super) labels: Vec<(String, String)>,
    /// File and object.
    place: String,
}

impl Chosen {
    /// An error about this record, with its place.
    pub(crate) fn error(&self, error: &(dyn std::error::Error + 'static)) -> CommandError {
        CommandError::new(format_args!("{}: {}", self.place, error_chain(error)))
    }
}

/// What is read from.
enum Opened {
    Files(Vec<Input>),
    #[cfg(feature = "network")]
    Live(LiveInput),
}

impl Opened {
    fn take(&mut self) -> Vec<Input> {
        match self {
            Self::Files(inputs) => std::mem::take(inputs),
            #[cfg(feature = "network")]
            Self::Live(live) => live.take(),
        }
    }

    const fn is_live(&self) -> bool {
        !matches!(self, Self::Files(_))
    }
}

fn not_found() -> CommandError {
    CommandError::new("release: not found")
}
