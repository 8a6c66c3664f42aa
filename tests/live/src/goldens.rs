//! `goldens.txt`: what is run here for each of Helm's golden files.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

/// A golden file of Helm's, and what is done about it.
#[derive(Clone, Debug)]
pub struct Golden {
    /// The file's name.
    pub name: String,
    /// Why it does not apply; empty when it does.
    pub why_not: String,
    /// The namespace of the case; that of an earlier one where they share their records.
    pub namespace: String,
    /// Whether the namespace is an earlier one's.
    is_guest: bool,
    /// Records that are there before.
    pub records: Vec<Value>,
    /// Commands in words; `@NAME` is a chart of Helm's test charts.
    pub commands: Vec<Vec<String>>,
}

/// Reads the table.
///
/// # Panics
/// When it cannot be read.
pub fn table() -> Vec<Golden> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("goldens.txt");
    let text = std::fs::read_to_string(file).expect("the table is there");
    let mut goldens: Vec<Golden> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let Some(step) = line.strip_prefix("  ") else {
            let (name, why_not) = line.split_once(" - ").unwrap_or((line, ""));
            goldens.push(Golden {
                name: name.to_owned(),
                why_not: why_not.to_owned(),
                namespace: format!("golden-{}", goldens.len()),
                is_guest: false,
                records: Vec::new(),
                commands: Vec::new(),
            });
            continue;
        };
        if let Some(other) = step.strip_prefix("same ") {
            let other = goldens.iter().find(|golden| golden.name == other).cloned();
            let golden = goldens.last_mut().expect("a golden comes first");
            golden.namespace = other.expect("an earlier golden").namespace;
            golden.is_guest = true;
            continue;
        }
        let golden = goldens.last_mut().expect("a golden comes first");
        if let Some(record) = step.strip_prefix("record ") {
            golden.records.push(serde_json::from_str(record).expect("a record is JSON"));
        } else {
            golden.commands.push(words(step));
        }
    }
    goldens
}

/// The words of a command; what stands between single quotes is one.
fn words(command: &str) -> Vec<String> {
    let parts = command.split('\'').enumerate();
    parts
        .flat_map(|(index, part)| match index % 2 {
            0 => part.split_whitespace().map(str::to_owned).collect(),
            _ => vec![part.to_owned()],
        })
        .collect()
}

impl Golden {
    /// The namespace, where it is no other golden's, and the records, as objects.
    pub fn objects(&self) -> Vec<Value> {
        if self.is_guest {
            return Vec::new();
        }
        let namespace = json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": self.namespace },
        });
        let records = self.records.iter().map(|overlay| stored(&self.namespace, overlay));
        std::iter::once(namespace).chain(records).collect()
    }
}

/// A record that says hardly anything, with an overlay, as the Secret in which Helm keeps it.
fn stored(namespace: &str, overlay: &Value) -> Value {
    let mut record = json!({
        "name": "r",
        "info": {
            "first_deployed": "2026-01-02T03:04:05Z",
            "last_deployed": "2026-01-02T03:04:05Z",
            "deleted": "",
            "description": "Written by a test",
            "status": "deployed",
            "notes": "Some notes.",
        },
        "chart": {
            "metadata": {
                "name": "some", "version": "0.1.0-beta.1", "apiVersion": "v2", "appVersion": "1.0",
                "annotations": { "one": "1", "two": "2" },
                "dependencies": [
                    { "name": "first", "version": "1.0.0", "repository": "https://example.org", "enabled": true },
                    { "name": "second", "version": "2.0.0", "repository": "" },
                ],
            },
            "lock": null, "templates": [], "values": {}, "schema": null, "files": null,
        },
        "manifest": "---\n# Source: some/map.yaml\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: written\n",
        "version": 1,
        "namespace": namespace,
    });
    lay_over(&mut record, overlay);
    let text = |path: &str| record.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let (name, status) = (text("/name"), text("/info/status"));
    let version = record["version"].to_string();
    let release = helm_rs::release::encode(&in_order(&record)).expect("a record can be written");
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "helm.sh/release.v1",
        "metadata": {
            "name": format!("sh.helm.release.v1.{name}.v{version}"),
            "namespace": namespace,
            "labels": {
                "name": name, "owner": "helm", "status": status, "version": version,
                "createdAt": "1767323045",
            },
        },
        "stringData": { "release": release },
    })
}

/// The fields of records in the order in which Helm writes them, whichever object they are in.
const FIELDS: [&str; 33] = [
    "name",
    "first_deployed",
    "last_deployed",
    "deleted",
    "description",
    "status",
    "notes",
    "info",
    "metadata",
    "lock",
    "templates",
    "values",
    "schema",
    "files",
    "chart",
    "config",
    "kind",
    "path",
    "manifest",
    "events",
    "hooks",
    "started_at",
    "completed_at",
    "phase",
    "last_run",
    "version",
    "repository",
    "enabled",
    "apiVersion",
    "appVersion",
    "annotations",
    "dependencies",
    "namespace",
];

/// JSON with its fields as Helm writes them: it sorts a record's fields anew whenever it writes it.
fn in_order(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            let place = |name: &str| FIELDS.iter().position(|field| *field == name);
            fields.sort_by_key(|(name, _)| place(name).unwrap_or(FIELDS.len()));
            let fields = fields
                .iter()
                .map(|(name, value)| format!("{}:{}", Value::from(name.as_str()), in_order(value)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
        }
        Value::Array(items) => {
            format!("[{}]", items.iter().map(in_order).collect::<Vec<_>>().join(","))
        }
        other => other.to_string(),
    }
}

fn lay_over(value: &mut Value, overlay: &Value) {
    match (value, overlay) {
        (Value::Object(fields), Value::Object(more)) => {
            for (name, more) in more {
                lay_over(fields.entry(name.clone()).or_insert(Value::Null), more);
            }
        }
        (value, overlay) => *value = overlay.clone(),
    }
}

/// The folder of Helm's tests of its commands, in Go's module cache; none when Go or the module is
/// not there.
pub fn helms_folder() -> Option<PathBuf> {
    let output = Command::new("go")
        .args(["mod", "download", "-json", "helm.sh/helm/v3"])
        .current_dir(test_support::place::repository().join("tests/tools/helm"))
        .env("GOFLAGS", "-mod=readonly")
        .output()
        .ok()?;
    let told: Value = serde_json::from_slice(&output.stdout).ok()?;
    Some(Path::new(told.get("Dir")?.as_str()?).join("cmd/helm/testdata"))
}
