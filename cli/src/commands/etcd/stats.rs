//! `ichor etcd stats`.

use std::collections::BTreeMap;

use clap::Args;
use etcd_snapshot::decrypt;
use goyaml::{Map, Value};

use super::shared::{FileFlags, Open};
use crate::commands::Context;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::output::{Output, printable, size, write_structured};

pub(super) const EXAMPLES: &str = "\
Examples:
  ichor etcd stats snapshot.db
  ichor etcd stats snapshot.db --largest 50 -o json";

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    file: FileFlags,
    /// How many of the largest objects
    #[arg(long, value_name = "COUNT", default_value_t = 10)]
    largest: usize,
    /// Form of the result
    #[arg(short, long, value_enum, value_name = "FORM", default_value_t)]
    output: Output,
}

#[derive(Clone, Copy, Default)]
struct Sum {
    objects: u64,
    bytes: u64,
}

impl Sum {
    fn add(&mut self, bytes: u64) {
        self.objects += 1;
        self.bytes += bytes;
    }
}

#[derive(Default)]
struct Sums {
    all: Sum,
    resources: BTreeMap<String, Sum>,
    namespaces: BTreeMap<String, Sum>,
    /// How objects are encrypted, and how many.
    encryptions: BTreeMap<String, u64>,
    /// Size and key, largest first.
    largest: Vec<(u64, String)>,
}

pub(crate) fn run(arguments: &Arguments, context: &mut Context<'_>) -> Result<Exit, CommandError> {
    let mut open = arguments.file.open(context)?;
    let sums = sums(arguments, &mut open, context);
    let value = structured(&open, &sums);
    let text = printable(&text(&open, &sums));
    write_structured(context.ui, arguments.output, &value, text.as_bytes())?;
    open.finish()
}

fn sums(arguments: &Arguments, open: &mut Open, context: &mut Context<'_>) -> Sums {
    let mut sums = Sums::default();
    let mut encrypted = Vec::new();
    for (key, entry) in open.index.iter() {
        let object = open.key(key);
        sums.all.add(entry.size);
        add(&mut sums.resources, object.resource, entry.size);
        add(&mut sums.namespaces, object.namespace, entry.size);
        sums.largest.push((entry.size, String::from_utf8_lossy(key).into_owned()));
        // Sorted now and then, so that it stays short.
        if sums.largest.len() > arguments.largest.saturating_add(1000) {
            shorten(&mut sums.largest, arguments.largest);
        }
        if entry.is_encrypted {
            encrypted.push((String::from_utf8_lossy(key).into_owned(), *entry));
        }
    }
    shorten(&mut sums.largest, arguments.largest);
    for (key, entry) in encrypted {
        let how = match open.snapshot.value(&entry) {
            Ok(stored) => match decrypt::encryption(&stored.value) {
                Ok(Some((how, _))) => how.to_string(),
                Ok(None) => continue,
                Err(error) => error.to_string(),
            },
            Err(error) => {
                open.warn_of(context, &key, &helm_rs::error_chain(&error));
                continue;
            }
        };
        *sums.encryptions.entry(how).or_default() += 1;
    }
    sums
}

fn add(sums: &mut BTreeMap<String, Sum>, name: &str, bytes: u64) {
    match sums.get_mut(name) {
        Some(sum) => sum.add(bytes),
        None => sums.entry(name.to_owned()).or_default().add(bytes),
    }
}

fn shorten(largest: &mut Vec<(u64, String)>, wanted: usize) {
    largest.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    largest.truncate(wanted);
}

/// Largest first, then by name.
fn ordered(sums: &BTreeMap<String, Sum>) -> Vec<(&str, Sum)> {
    let mut all: Vec<(&str, Sum)> = sums.iter().map(|(name, sum)| (name.as_str(), *sum)).collect();
    all.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.bytes));
    all
}

fn text(open: &Open, sums: &Sums) -> String {
    let Open { snapshot, index, .. } = open;
    let totals = index.totals();
    let kind = if snapshot.has_digest() { "snapshot with SHA-256" } else { "database" };
    let mut text = String::new();
    let mut line = |name: &str, value: String| text.push_str(&format!("{name:20}{value}\n"));
    let pages = size(snapshot.page_size());
    line("file", format!("{kind}, {}, pages of {pages}", size(snapshot.size())));
    if let Some(version) = snapshot.cluster_version() {
        line("etcd", version);
    }
    line("prefix", String::from_utf8_lossy(open.layout.prefix()).into_owned());
    line("revision", index.revision().to_string());
    line(
        "compacted",
        match index.compacted() {
            0 => "never".to_owned(),
            revision => format!("up to {revision}"),
        },
    );
    let changes = totals.revisions;
    let deletions = totals.deletions;
    line("changes", format!("{changes} ({deletions} deletions), {}", size(totals.bytes)));
    line("objects", format!("{}, {}", sums.all.objects, size(sums.all.bytes)));
    let encrypted: u64 = sums.encryptions.values().sum();
    if encrypted > 0 {
        let ways = sums.encryptions.iter().map(|(how, count)| format!("{how}: {count}"));
        line("encrypted", ways.collect::<Vec<_>>().join("; "));
    }
    for (title, sums) in [("RESOURCE", &sums.resources), ("NAMESPACE", &sums.namespaces)] {
        let rows = ordered(sums);
        let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or_default();
        let width = width.max(title.len()).max("(none)".len());
        text.push_str(&format!("\n{title:width$}  {:>8}  {:>9}\n", "OBJECTS", "SIZE"));
        for (name, sum) in rows {
            let name = if name.is_empty() { "(none)" } else { name };
            let bytes = size(sum.bytes);
            text.push_str(&format!("{name:width$}  {:>8}  {bytes:>9}\n", sum.objects));
        }
    }
    if !sums.largest.is_empty() {
        text.push_str(&format!("\n{:>9}  LARGEST\n", "SIZE"));
        for (bytes, key) in &sums.largest {
            text.push_str(&format!("{:>9}  {key}\n", size(*bytes)));
        }
    }
    text
}

fn structured(open: &Open, sums: &Sums) -> Value {
    let Open { snapshot, index, .. } = open;
    let number = |number: u64| Value::Int(i64::try_from(number).unwrap_or(i64::MAX));
    let totals = index.totals();
    let mut all = Map::new();
    all.insert("size", number(snapshot.size()));
    all.insert("pageSize", number(snapshot.page_size()));
    all.insert("transaction", number(snapshot.transaction()));
    all.insert("hasDigest", snapshot.has_digest());
    all.insert("prefix", String::from_utf8_lossy(open.layout.prefix()).into_owned());
    all.insert("revision", index.revision());
    all.insert("compactedRevision", index.compacted());
    for (name, version) in [
        ("clusterVersion", snapshot.cluster_version()),
        ("storageVersion", snapshot.storage_version()),
    ] {
        if let Some(version) = version {
            all.insert(name, version);
        }
    }
    let mut changes = Map::new();
    changes.insert("count", number(totals.revisions));
    changes.insert("deletions", number(totals.deletions));
    changes.insert("bytes", number(totals.bytes));
    all.insert("changes", Value::Map(changes));
    let sum = |sum: Sum| {
        let mut fields = Map::new();
        fields.insert("objects", number(sum.objects));
        fields.insert("bytes", number(sum.bytes));
        Value::Map(fields)
    };
    all.insert("all", sum(sums.all));
    for (name, sums) in [("resources", &sums.resources), ("namespaces", &sums.namespaces)] {
        let map: Map = sums.iter().map(|(name, value)| (name.as_str(), sum(*value))).collect();
        all.insert(name, Value::Map(map));
    }
    let encryptions: Map =
        sums.encryptions.iter().map(|(how, count)| (how.as_str(), number(*count))).collect();
    all.insert("encrypted", Value::Map(encryptions));
    let largest = sums.largest.iter().map(|(bytes, key)| {
        let mut row = Map::new();
        row.insert("key", key.as_str());
        row.insert("bytes", number(*bytes));
        Value::Map(row)
    });
    all.insert("largest", Value::Seq(largest.collect()));
    Value::Map(all)
}
