//! `ichor etcd ls`.

use clap::Args;
use etcd_snapshot::Entry;
use etcd_snapshot::storage::ObjectKey;
use goyaml::{Map, Value};

use super::shared::{FileFlags, Open};
use crate::commands::Context;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::output::{Output, printable, size};

pub(super) const EXAMPLES: &str = "\
Examples:
  ichor etcd ls snapshot.db
  ichor etcd ls snapshot.db secrets -n kube-system
  ichor etcd ls snapshot.db --deleted          # keys too whose deletion is not compacted yet
  ichor etcd ls snapshot.db cilium.io/ciliumnodes -o json";

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    file: FileFlags,
    /// Resource as the list names it, such as secrets or services/specs
    #[arg(value_name = "RESOURCE")]
    resource: Option<String>,
    /// Objects of one namespace
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,
    /// Deleted objects too
    #[arg(long)]
    deleted: bool,
    /// Form of the result
    #[arg(short, long, value_enum, value_name = "FORM", default_value_t)]
    output: Output,
}

/// Bytes of text that are written together.
const PIECE: usize = 64 << 10;

pub(crate) fn run(arguments: &Arguments, context: &mut Context<'_>) -> Result<Exit, CommandError> {
    let open = arguments.file.open(context)?;
    match arguments.output {
        Output::Table => table(arguments, &open, context)?,
        form => structured(arguments, &open, form, context)?,
    }
    open.finish()
}

impl Arguments {
    fn rows<'a>(
        &'a self,
        open: &'a Open,
    ) -> impl Iterator<Item = (ObjectKey<'a>, &'a [u8], &'a Entry)> {
        let all = open.index.iter_all().map(|(key, entry)| (open.key(key), key, entry));
        all.filter(|(key, _, entry)| {
            (self.deleted || !entry.is_deleted)
                && self.resource.as_deref().is_none_or(|wanted| key.resource == wanted)
                && self.namespace.as_deref().is_none_or(|wanted| key.namespace == wanted)
        })
    }
}

/// Rows are written as they come: a large cluster has millions.
fn table(
    arguments: &Arguments,
    open: &Open,
    context: &mut Context<'_>,
) -> Result<(), CommandError> {
    const HEADS: [&str; 5] = ["RESOURCE", "NAMESPACE", "NAME", "REVISION", "SIZE"];
    let cells = |key: ObjectKey<'_>, entry: &Entry| {
        let bytes = if entry.is_deleted { "deleted".to_owned() } else { size(entry.size) };
        let revision = entry.revision.main.to_string();
        [printable(key.resource), printable(key.namespace), printable(key.name), revision, bytes]
    };
    let mut widths = HEADS.map(str::len);
    let mut count = 0;
    for (key, _, entry) in arguments.rows(open) {
        count += 1;
        for (width, cell) in widths.iter_mut().zip(cells(key, entry)) {
            *width = (*width).max(cell.chars().count());
        }
    }
    if count == 0 {
        context.ui.note("no such objects");
        return Ok(());
    }
    let mut text = String::new();
    let mut push = |cells: &[&str]| {
        let start = text.len();
        for (cell, width) in cells.iter().zip(widths) {
            text.push_str(&format!("{cell:width$}  "));
        }
        let end = text.get(start..).unwrap_or_default().trim_end().len();
        text.truncate(start + end);
        text.push('\n');
        if text.len() < PIECE { None } else { Some(std::mem::take(&mut text)) }
    };
    let mut full = push(&HEADS);
    for (key, _, entry) in arguments.rows(open) {
        if let Some(piece) = full.take() {
            context.ui.result(piece)?;
        }
        let cells = cells(key, entry);
        full = push(&cells.each_ref().map(String::as_str));
    }
    if let Some(piece) = full {
        context.ui.result(piece)?;
    }
    context.ui.result(text)
}

fn structured(
    arguments: &Arguments,
    open: &Open,
    form: Output,
    context: &mut Context<'_>,
) -> Result<(), CommandError> {
    let mut text = String::from(if form == Output::Json { "[" } else { "" });
    let mut is_first = true;
    for (key, raw, entry) in arguments.rows(open) {
        let mut row = Map::new();
        row.insert("key", String::from_utf8_lossy(raw).into_owned());
        row.insert("resource", key.resource);
        row.insert("namespace", key.namespace);
        row.insert("name", key.name);
        row.insert("revision", entry.revision.main);
        row.insert("createRevision", entry.created);
        row.insert("version", entry.version);
        row.insert("size", i64::try_from(entry.size).unwrap_or(i64::MAX));
        row.insert("deleted", entry.is_deleted);
        let row = Value::Map(row);
        if form == Output::Json {
            text.push_str(if is_first { "" } else { "," });
            text.push_str(&goyaml::json::to_json(&row).map_err(CommandError::new)?);
        } else {
            let list = Value::Seq(vec![row]);
            text.push_str(&goyaml::to_yaml(&list).map_err(CommandError::new)?);
        }
        is_first = false;
        if text.len() >= PIECE {
            context.ui.result(std::mem::take(&mut text))?;
        }
    }
    text.push_str(match form {
        Output::Json => "]\n",
        _ if is_first => "[]\n",
        _ => "",
    });
    context.ui.result(text)
}
