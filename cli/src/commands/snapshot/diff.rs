//! `ichor snapshot diff`.

use std::collections::BTreeMap;

use clap::Args;
use goyaml::{Limits, Map, Value};
use helm_rs::cluster::snapshot::{About, Secrets};
use helm_rs::diff::{Change, Identity, Lists, compare};
use helm_rs::release::redact::{self, HIDDEN};
use serde_json::Value as Json;
use takeover::snapshot::drop_server_fields;

use super::file;
use crate::changes::{change_lines, changes_value, mark, word};
use crate::commands::Context;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::output::{Output, printable, write_structured};

pub(super) const EXAMPLES: &str = "\
What a server counts and writes on its own is left out: status, managed fields, UIDs, versions and
times of metadata. Credentials are compared and not shown, unless --show-secrets is given.

Examples:
  ichor snapshot diff before.ndjson after.ndjson
  ichor snapshot diff monday.ndjson.gz friday.ndjson.gz --output json

Exit codes:
  0  no differences
  1  an error
  2  there are differences";

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// What to compare from
    #[arg(value_name = "A")]
    old: String,
    /// What to compare with
    #[arg(value_name = "B")]
    new: String,
    /// Form of the result
    #[arg(short, long, value_enum, value_name = "FORM", default_value_t)]
    output: Output,
    /// Print credentials as they are
    #[arg(long)]
    show_secrets: bool,
}

/// An object that two snapshots do not have alike.
struct Difference {
    object: Identity,
    has_old: bool,
    has_new: bool,
    leaves: Vec<Change>,
}

/// Two snapshots compared.
struct Comparison<'a> {
    arguments: &'a Arguments,
    /// The data of Secrets cannot be compared: one snapshot has digests.
    without_data: bool,
    /// The older objects that have found no partner yet, as JSON: that is a quarter of what they
    /// take as values.
    old: BTreeMap<Identity, String>,
    found: Vec<Difference>,
    wrong: Option<CommandError>,
}

pub(crate) fn run(arguments: &Arguments, context: &mut Context<'_>) -> Result<Exit, CommandError> {
    if arguments.old == "-" && arguments.new == "-" {
        return Err(CommandError::new("standard input is one snapshot at most"));
    }
    let mut old = BTreeMap::new();
    let (before, _) = file::each(
        &arguments.old,
        context,
        |_| {},
        |mut object| {
            drop_server_fields(&mut object);
            old.insert(identity(&object), object.to_string());
        },
    )?;
    let mut comparison =
        Comparison { arguments, without_data: false, old, found: Vec::new(), wrong: None };
    // The head comes before the objects, and both closures work on the same comparison.
    let after = {
        let comparison = std::cell::RefCell::new(&mut comparison);
        let head = |after: &About| {
            comparison.borrow_mut().without_data = before.secrets != after.secrets;
        };
        let object = |object| comparison.borrow_mut().object(object);
        file::each(&arguments.new, context, head, object)?.0
    };
    if let Some(error) = comparison.wrong.take() {
        return Err(error);
    }
    if before.cluster != after.cluster {
        context.ui.warning("warning: these are snapshots of different clusters");
    }
    if comparison.without_data {
        let which = |about: &About, file: &str| match about.secrets {
            Secrets::Digests => format!("{file} has digests of Secrets alone"),
            Secrets::Included => format!("{file} has Secrets as they are"),
        };
        context.ui.warning(format!(
            "warning: {}, {}: their data is not compared",
            which(&before, &arguments.old),
            which(&after, &arguments.new)
        ));
    }
    let gone: Vec<Difference> = std::mem::take(&mut comparison.old)
        .into_keys()
        .map(|object| Difference { object, has_old: true, has_new: false, leaves: Vec::new() })
        .collect();
    let mut found = comparison.found;
    found.extend(gone);
    found.sort_by(|one, other| one.object.cmp(&other.object));
    let server = (before.server.git_version.as_str(), after.server.git_version.as_str());
    let text = match arguments.output {
        Output::Table => context.ui.painted_diff(&table(arguments, server, &found), true),
        _ => String::new(),
    };
    let value = structured(arguments, [&before, &after], &found);
    write_structured(context.ui, arguments.output, &value, text.as_bytes())?;
    let is_same = found.is_empty() && server.0 == server.1;
    Ok(if is_same { Exit::Done } else { Exit::No })
}

impl Comparison<'_> {
    fn object(&mut self, mut object: Json) {
        drop_server_fields(&mut object);
        let identity = identity(&object);
        let Some(old) = self.old.remove(&identity) else {
            let (has_old, has_new, leaves) = (false, true, Vec::new());
            self.found.push(Difference { object: identity, has_old, has_new, leaves });
            return;
        };
        let new = object.to_string();
        if old == new {
            return;
        }
        match self.leaves(&old, &new) {
            Ok(leaves) if leaves.is_empty() => {}
            Ok(leaves) => {
                let (has_old, has_new) = (true, true);
                self.found.push(Difference { object: identity, has_old, has_new, leaves });
            }
            Err(error) => self.wrong = self.wrong.take().or(Some(error)),
        }
    }

    fn leaves(&self, old: &str, new: &str) -> Result<Vec<Change>, CommandError> {
        let read = |json: &str| {
            goyaml::json::from_json_exact(json.as_bytes(), &Limits::default())
                .map_err(CommandError::new)
        };
        let (mut old, mut new) = (read(old)?, read(new)?);
        if self.without_data {
            for object in [&mut old, &mut new] {
                if object.get("kind").and_then(Value::as_str).is_some_and(|kind| kind == "Secret")
                    && let Some(object) = object.as_map_mut()
                {
                    object.remove("data");
                }
            }
        }
        let mut changes = compare(&old, &new, Lists::ByKey);
        if !self.arguments.show_secrets {
            redact::object(&mut old);
            redact::object(&mut new);
            for Change { path, old: before, new: after } in &mut changes {
                // The order of a list is no place in it.
                let is_order = matches!(path.0.last(), Some(helm_rs::diff::Step::Order));
                for (value, shown) in [(before, &old), (after, &new)] {
                    if value.is_some() && !is_order {
                        *value = Some(path.find(shown).cloned().unwrap_or_else(|| HIDDEN.into()));
                    }
                }
            }
        }
        Ok(changes)
    }
}

fn identity(object: &Json) -> Identity {
    let text = |at: &str| object.pointer(at).and_then(Json::as_str).unwrap_or_default().to_owned();
    let kind = helm_rs::cluster::Kind::of(object);
    Identity {
        group: kind.group,
        kind: kind.kind,
        namespace: text("/metadata/namespace"),
        name: text("/metadata/name"),
    }
}

/// For people: an object a line, its leaves below it.
fn table(arguments: &Arguments, server: (&str, &str), found: &[Difference]) -> String {
    let mut out = format!("{} -> {}\n", arguments.old, arguments.new);
    let count = |has: (bool, bool)| {
        found.iter().filter(|difference| (difference.has_old, difference.has_new) == has).count()
    };
    if found.is_empty() && server.0 == server.1 {
        out.push_str("no differences\n");
        return out;
    }
    out.push_str(&format!(
        "{} added, {} removed, {} changed\n",
        count((false, true)),
        count((true, false)),
        count((true, true))
    ));
    if server.0 != server.1 {
        out.push_str(&format!("~ server: {} -> {}\n", server.0, server.1));
    }
    for difference in found {
        let mark = mark(difference.has_old, difference.has_new);
        out.push_str(&format!("{mark} {}\n", difference.object));
        change_lines(&difference.leaves, "    ", &mut out);
    }
    printable(&out)
}

fn structured(arguments: &Arguments, sides: [&About; 2], found: &[Difference]) -> Value {
    let files = [&arguments.old, &arguments.new];
    let mut fields = Map::new();
    for ((name, about), file) in ["old", "new"].into_iter().zip(sides).zip(files) {
        let side: [(&str, Value); 4] = [
            ("file", file.as_str().into()),
            ("taken", about.taken.as_str().into()),
            ("server", about.server.git_version.as_str().into()),
            ("cluster", about.cluster.as_str().into()),
        ];
        fields.insert(name, Value::Map(side.into_iter().collect()));
    }
    let object = |difference: &Difference| {
        let object = &difference.object;
        let fields: [(&str, Value); 6] = [
            ("group", object.group.as_str().into()),
            ("kind", object.kind.as_str().into()),
            ("namespace", object.namespace.as_str().into()),
            ("name", object.name.as_str().into()),
            ("change", word(difference.has_old, difference.has_new).into()),
            ("leaves", changes_value(&difference.leaves)),
        ];
        Value::Map(fields.into_iter().collect())
    };
    fields.insert("objects", Value::Seq(found.iter().map(object).collect()));
    Value::Map(fields)
}
