//! `ichor snapshot show`.

use std::collections::BTreeMap;

use clap::Args;
use goyaml::{Map, Value};
use helm_rs::cluster::Kind;
use helm_rs::cluster::snapshot::{About, End, Secrets};

use super::file;
#[cfg(feature = "offline")]
use super::open::Form;
use crate::commands::Context;
use crate::commands::etcd::EtcdFlags;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::output::{Output, printable, size, write_structured};

pub(super) const EXAMPLES: &str = "\
Examples:
  ichor snapshot show before.ndjson
  ichor snapshot show before.ndjson.gz --output json
  ichor snapshot show ./kubectl-output/          # what is missing in it
  ichor snapshot show etcd.db --encryption-config enc.yaml
  ssh admin@far ichor snapshot take /dev/stdout | ichor snapshot show -

Exit codes:
  0  done
  1  an error: the file is no snapshot, or is not whole";

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// A snapshot; or a folder of `kubectl get -o yaml` output, or an etcd snapshot, of which it is
    /// said what is missing; - is standard input
    #[arg(value_name = "FILE")]
    file: String,
    /// Form of the result
    #[arg(short, long, value_enum, value_name = "FORM", default_value_t)]
    output: Output,
    #[command(flatten)]
    etcd: EtcdFlags,
}

/// What is counted.
#[derive(Default)]
struct Counts {
    kinds: BTreeMap<String, usize>,
    namespaces: BTreeMap<String, usize>,
    records: usize,
    bytes: usize,
}

impl Counts {
    fn add(&mut self, object: &serde_json::Value) {
        let text = |at: &str| object.pointer(at).and_then(|it| it.as_str()).unwrap_or_default();
        let kind = Kind::of(object);
        let dot = if kind.group.is_empty() { "" } else { "." };
        *self.kinds.entry(format!("{}{dot}{}", kind.kind, kind.group)).or_default() += 1;
        *self.namespaces.entry(text("/metadata/namespace").to_owned()).or_default() += 1;
        let is_record = text("/metadata/labels/owner") == "helm"
            && text("/metadata/name").starts_with("sh.helm.release.v1.");
        self.records += usize::from(is_record);
        self.bytes += object.to_string().len() + 1;
    }
}

pub(crate) fn run(arguments: &Arguments, context: &mut Context<'_>) -> Result<Exit, CommandError> {
    let (about, end, counts) = read(arguments, context)?;
    let text = match arguments.output {
        Output::Table => table(&about, &end, &counts),
        _ => String::new(),
    };
    let value = structured(&about, &end, &counts);
    write_structured(context.ui, arguments.output, &value, printable(&text).as_bytes())?;
    Ok(Exit::Done)
}

/// Counts without holding the objects, where the file is a snapshot.
fn read(
    arguments: &Arguments,
    context: &mut Context<'_>,
) -> Result<(About, End, Counts), CommandError> {
    let mut counts = Counts::default();
    #[cfg(feature = "offline")]
    if Form::of(&arguments.file, context)? != Form::Snapshot {
        let stage = super::open(&arguments.file, &arguments.etcd, context)?;
        stage.objects().iter().for_each(|object| counts.add(object));
        return Ok((stage.about.clone(), stage.end.clone(), counts));
    }
    arguments.etcd.check_unused()?;
    let (about, end) = file::each(&arguments.file, context, |_| {}, |object| counts.add(&object))?;
    Ok((about, end, counts))
}

const fn secrets(about: &About) -> &'static str {
    match about.secrets {
        Secrets::Digests => "digests: nothing of them can be read",
        Secrets::Included => "included: this file is a credential",
    }
}

fn table(about: &About, end: &End, counts: &Counts) -> String {
    let mut text = String::new();
    let mut fact = |name: &str, value: String| text.push_str(&format!("{name:11} {value}\n"));
    fact("taken", format!("{} by {}", about.taken, about.taken_by));
    let groups = match about.identity.groups.as_slice() {
        [] => String::new(),
        groups => format!(" ({})", groups.join(", ")),
    };
    let or_none = |text: &str| if text.is_empty() { "(not said)".to_owned() } else { text.into() };
    fact("identity", or_none(&about.identity.user) + &groups);
    fact("server", about.server.git_version.clone());
    fact("cluster", or_none(&about.cluster));
    fact("secrets", secrets(about).to_owned());
    let records = match counts.records {
        0 => "no release record".to_owned(),
        1 => "1 release record".to_owned(),
        more => format!("{more} release records"),
    };
    fact("objects", format!("{}, {}; {records}", end.objects, size(counts.bytes as u64)));
    for (title, all) in [("KIND", &counts.kinds), ("NAMESPACE", &counts.namespaces)] {
        let name = |name: &str| if name.is_empty() { "(none)".to_owned() } else { name.to_owned() };
        let rows: Vec<(String, usize)> = all.iter().map(|(at, n)| (name(at), *n)).collect();
        let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
        let width = width.max(title.len());
        text.push_str(&format!("\n{title:width$}  OBJECTS\n"));
        for (name, count) in rows {
            text.push_str(&format!("{name:width$}  {count:7}\n"));
        }
    }
    for (title, lines) in [("not read:", &end.unread), ("not as in the cluster:", &end.notes)] {
        if !lines.is_empty() {
            text.push_str(&format!("\n{title}\n"));
        }
        for line in lines {
            text.push_str(&format!("  {line}\n"));
        }
    }
    text
}

fn structured(about: &About, end: &End, counts: &Counts) -> Value {
    let number = |count: usize| Value::Int(i64::try_from(count).unwrap_or(i64::MAX));
    let counted = |all: &BTreeMap<String, usize>| {
        Value::Map(all.iter().map(|(name, count)| (name.as_str(), number(*count))).collect())
    };
    let texts = |all: &[String]| Value::Seq(all.iter().map(|one| one.as_str().into()).collect());
    let secrets = match about.secrets {
        Secrets::Digests => "digests",
        Secrets::Included => "included",
    };
    let mut identity = Map::new();
    identity.insert("user", about.identity.user.as_str());
    identity.insert("groups", texts(&about.identity.groups));
    let fields: [(&str, Value); 13] = [
        ("taken", about.taken.as_str().into()),
        ("takenBy", about.taken_by.as_str().into()),
        ("identity", Value::Map(identity)),
        ("server", about.server.git_version.as_str().into()),
        ("cluster", about.cluster.as_str().into()),
        ("secrets", secrets.into()),
        ("objects", number(end.objects)),
        ("bytes", number(counts.bytes)),
        ("records", number(counts.records)),
        ("kinds", counted(&counts.kinds)),
        ("namespaces", counted(&counts.namespaces)),
        ("unread", texts(&end.unread)),
        ("notes", texts(&end.notes)),
    ];
    Value::Map(fields.into_iter().collect())
}
