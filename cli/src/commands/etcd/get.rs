//! `ichor etcd get`.

use std::collections::BTreeMap;

use clap::Args;
use etcd_snapshot::decrypt::{DecryptError, Keys};
use etcd_snapshot::{Change, Entry, Faults};
use goyaml::{Map, Value};
use helm_rs::release::redact;

use super::shared::{FileFlags, KeyFlags, Open, Unreadable};
use crate::commands::Context;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::output::{Output, size};

pub(super) const EXAMPLES: &str = "\
Examples:
  ichor etcd get snapshot.db deployments/default/web
  ichor etcd get snapshot.db secrets/ --encryption-config enc.yaml --show-secrets > secrets.yaml
  ichor etcd get snapshot.db --show-secrets -o json > everything.json
  ichor etcd get snapshot.db configmaps/default/settings --history

A KEY is a key of etcd, with /registry/ or without; one that ends with / means all that begin so.
Objects are what `kubectl get` shows of them in the version that is stored. Credentials are hidden
unless --show-secrets is given. Custom resources and built-in kinds of Kubernetes 1.36 and before
are read whole, of others the metadata.";

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    file: FileFlags,
    /// Which objects; without it all
    #[arg(value_name = "KEY")]
    keys: Vec<String>,
    /// All changes of one key that the file still holds, deletions among them
    #[arg(long)]
    history: bool,
    /// Print data of Secrets and other credentials
    #[arg(long)]
    show_secrets: bool,
    /// Print metadata.managedFields too
    #[arg(long)]
    show_managed_fields: bool,
    /// Form of the result: objects are YAML or JSON, a history may be a table
    #[arg(short, long, value_enum, value_name = "FORM")]
    output: Option<Output>,
    #[command(flatten)]
    encryption: KeyFlags,
}

pub(crate) fn run(arguments: &Arguments, context: &mut Context<'_>) -> Result<Exit, CommandError> {
    let keys = arguments.encryption.keys()?;
    if arguments.history {
        let [key] = arguments.keys.as_slice() else {
            return Err(CommandError::new("--history is of one KEY"));
        };
        return history(arguments, key, keys.as_ref(), context);
    }
    let mut open = arguments.file.open(context)?;
    let wanted = Wanted::of(&arguments.keys, &open)?;
    let mut writer = match (arguments.output, wanted.is_one()) {
        (Some(Output::Table), _) => {
            return Err(CommandError::new("objects are printed as yaml or json"));
        }
        (Some(Output::Json), is_one) => Writer::json(is_one),
        _ => Writer::yaml(),
    };
    let mut closed: BTreeMap<DecryptError, (String, usize)> = BTreeMap::new();
    // Entries are small; the index cannot be borrowed while faults are counted.
    let found: Vec<(Vec<u8>, Entry)> = (open.index.iter())
        .filter(|(key, _)| wanted.has(key))
        .map(|(key, entry)| (key.to_vec(), *entry))
        .collect();
    for (key, entry) in found {
        let name = String::from_utf8_lossy(&key).into_owned();
        match open.object(&key, &entry, keys.as_ref()) {
            Ok(stored) => {
                if open.layout.read(&key).is_some_and(|at| !at.is_of(&stored.object)) {
                    let text = "holds an object of another name: key or object is damaged";
                    open.warn_of(context, &name, text);
                }
                if !stored.is_whole {
                    let text = "is of a kind that is not known: its metadata alone is read";
                    open.warn_of(context, &name, text);
                }
                writer.object(&arguments.shown(stored.object), context)?;
            }
            Err(Unreadable::Closed(error)) => {
                let (_, count) = closed.entry(error).or_insert((name, 0));
                *count += 1;
            }
            // Keys that are not Kubernetes' hold anything.
            Err(_) if open.layout.read(&key).is_none() && !wanted.is_one() => {}
            Err(error) => open.warn(context, &name, &error),
        }
    }
    for (error, (first, count)) in closed {
        let what = if count == 1 { first } else { format!("{first} and {} more", count - 1) };
        open.warn(context, &what, &Unreadable::Closed(error));
    }
    writer.finish(context)?;
    open.finish()
}

impl Arguments {
    /// The object as it is printed.
    fn shown(&self, mut object: Map) -> Value {
        if !self.show_managed_fields
            && let Some(metadata) = object.get_mut("metadata").and_then(Value::as_map_mut)
        {
            metadata.remove("managedFields");
        }
        let mut object = Value::Map(object);
        if !self.show_secrets {
            redact::object(&mut object);
            if let Some(object) = object.as_map_mut() {
                hide_named(object);
            }
        }
        object
    }
}

/// Hides what is a credential by its name where there is no form that says so: in `ConfigMap`s and
/// custom resources.
fn hide_named(object: &mut Map) {
    let text = |field: &str| object.get(field).and_then(Value::as_str).map(ToString::to_string);
    let (version, kind) = (text("apiVersion").unwrap_or_default(), text("kind"));
    let group = version.split_once('/').map_or("", |(group, _)| group);
    let is_custom = group.contains('.') && !group.ends_with(".k8s.io");
    let is_config_map = version == "v1" && kind.as_deref() == Some("ConfigMap");
    for (field, value) in object.iter_mut() {
        let is_content = is_custom && field != "metadata" || is_config_map && field == "data";
        if let Some(map) = value.as_map_mut().filter(|_| is_content) {
            redact::values(map);
        }
    }
}

/// Which keys are asked for.
struct Wanted {
    exact: Vec<Vec<u8>>,
    beginnings: Vec<Vec<u8>>,
}

impl Wanted {
    fn of(keys: &[String], open: &Open) -> Result<Self, CommandError> {
        let mut wanted = Self { exact: Vec::new(), beginnings: Vec::new() };
        if keys.is_empty() {
            wanted.beginnings.push(Vec::new());
        }
        for key in keys {
            let plain = key.as_bytes().to_vec();
            let prefixed = [open.layout.prefix(), b"/", key.as_bytes()].concat();
            let is_there = |key: &[u8]| match key.last() {
                Some(b'/') => open.index.iter().any(|(other, _)| other.starts_with(key)),
                _ => open.index.get(key).is_some_and(|entry| !entry.is_deleted),
            };
            let Some(found) = [plain, prefixed].into_iter().find(|key| is_there(key)) else {
                return Err(not_found(key, open));
            };
            match found.last() {
                Some(b'/') => wanted.beginnings.push(found),
                _ => wanted.exact.push(found),
            }
        }
        Ok(wanted)
    }

    fn is_one(&self) -> bool {
        self.exact.len() == 1 && self.beginnings.is_empty()
    }

    fn has(&self, key: &[u8]) -> bool {
        self.exact.iter().any(|exact| exact == key)
            || self.beginnings.iter().any(|beginning| key.starts_with(beginning))
    }
}

fn not_found(key: &str, open: &Open) -> CommandError {
    CommandError::new(format_args!("{}: there is no key {key:?}", open.name()))
        .hint("ichor etcd ls lists the keys; --deleted those of deleted objects too")
}

/// Objects, written as they come.
struct Writer {
    is_json: bool,
    /// One object alone, not in a list.
    is_one: bool,
    count: usize,
}

impl Writer {
    const fn json(is_one: bool) -> Self {
        Self { is_json: true, is_one, count: 0 }
    }

    const fn yaml() -> Self {
        Self { is_json: false, is_one: false, count: 0 }
    }

    fn object(&mut self, object: &Value, context: &mut Context<'_>) -> Result<(), CommandError> {
        let text = if self.is_json {
            let text = goyaml::json::to_json(object).map_err(CommandError::new)?;
            match (self.is_one, self.count) {
                (true, _) => text + "\n",
                (_, 0) => "{\"apiVersion\":\"v1\",\"items\":[\n".to_owned() + &text,
                _ => ",\n".to_owned() + &text,
            }
        } else {
            let text = goyaml::to_yaml(object).map_err(CommandError::new)?;
            if self.count == 0 { text } else { "---\n".to_owned() + &text }
        };
        self.count += 1;
        context.ui.result(text)
    }

    fn finish(&self, context: &mut Context<'_>) -> Result<(), CommandError> {
        if !self.is_json || self.is_one {
            return Ok(());
        }
        let head = if self.count == 0 { "{\"apiVersion\":\"v1\",\"items\":[" } else { "\n" };
        context.ui.result(format!("{head}],\"kind\":\"List\"}}\n"))
    }
}

/// All changes of a key.
fn history(
    arguments: &Arguments,
    key: &str,
    keys: Option<&Keys>,
    context: &mut Context<'_>,
) -> Result<Exit, CommandError> {
    let mut open = arguments.file.open(context)?;
    let prefixed = [open.layout.prefix(), b"/", key.as_bytes()].concat();
    let mut found = None;
    for key in [key.as_bytes().to_vec(), prefixed] {
        if open.index.get(&key).is_some() {
            found = Some(key);
            break;
        }
    }
    let Some(key) = found else { return Err(not_found(key, &open)) };
    // What is damaged was told when the file was opened.
    let mut faults = Faults::default();
    let last = open.index.revision();
    let mut changes = open.snapshot.history(&key, &mut |fault| faults.push(fault));
    changes.retain(|change| change.entry.revision.main <= last);
    match arguments.output {
        None | Some(Output::Table) => context.ui.result(table(&changes))?,
        Some(form) => {
            let mut all = Vec::new();
            for change in &changes {
                let mut row = Map::new();
                row.insert("revision", change.entry.revision.main);
                row.insert("version", change.entry.version);
                row.insert("deleted", change.is_deleted);
                if !change.is_deleted {
                    match open.object(&key, &change.entry, keys) {
                        Ok(stored) => drop(row.insert("object", arguments.shown(stored.object))),
                        Err(error) => {
                            let name = String::from_utf8_lossy(&key).into_owned();
                            let what = format!("{name}, revision {}", change.entry.revision.main);
                            open.warn(context, &what, &error);
                        }
                    }
                }
                all.push(Value::Map(row));
            }
            let all = Value::Seq(all);
            let text = match form {
                Output::Json => goyaml::json::to_json(&all).map_err(CommandError::new)? + "\n",
                _ => goyaml::to_yaml(&all).map_err(CommandError::new)?,
            };
            context.ui.result(text)?;
        }
    }
    let compacted = open.index.compacted();
    if compacted > 0 {
        context.ui.note(format!("changes before revision {compacted} were compacted"));
    }
    open.finish()
}

fn table(changes: &[Change]) -> String {
    let mut text = format!("{:>12}  {:>8}  {:9}  SIZE\n", "REVISION", "VERSION", "CHANGE");
    for Change { entry, is_deleted } in changes {
        let (what, bytes) = match (is_deleted, entry.version) {
            (true, _) => ("deleted", String::new()),
            (false, 1) => ("created", size(entry.size)),
            (false, _) => ("changed", size(entry.size)),
        };
        let version = if *is_deleted { String::new() } else { entry.version.to_string() };
        let revision = entry.revision.main;
        let line = format!("{revision:>12}  {version:>8}  {what:9}  {bytes}");
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}
