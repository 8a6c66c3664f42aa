//! New records: the JSON of `release.Release` as Go marshals it, chart included
//! (`pkg/release/*.go`, `pkg/chart/*.go`).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use goyaml::{Map, json};

use super::record::Record;
use super::status::Status;
use crate::chart::encode::{array, lock, metadata};
use crate::chart::{Chart, File};
use crate::gojson::{Fields, string};
use crate::manifest::Hook;

/// What a new record says.
#[derive(Clone, Copy, Debug)]
pub struct NewRecord<'a> {
    /// The release's name.
    pub name: &'a str,
    /// The release's namespace.
    pub namespace: &'a str,
    /// The revision.
    pub revision: i64,
    /// The chart, dependencies processed.
    pub chart: &'a Chart,
    /// The user's values.
    pub config: &'a Map,
    /// The rendered manifest, hooks taken out.
    pub manifest: &'a [u8],
    /// The rendered hooks.
    pub hooks: &'a [Hook],
    /// The rendered notes.
    pub notes: &'a [u8],
    /// When the release was first deployed, RFC 3339.
    pub first_deployed: &'a str,
    /// When this revision was deployed, RFC 3339.
    pub last_deployed: &'a str,
    /// The status.
    pub status: &'a Status,
    /// What happened last, for people.
    pub description: &'a str,
}

impl NewRecord<'_> {
    /// The record.
    ///
    /// # Errors
    /// When a value cannot be written as JSON: one that is no number, or nests too deep.
    pub fn build(&self) -> Result<Record, goyaml::json::Error> {
        let mut info = Fields::default();
        info.time("first_deployed", self.first_deployed);
        info.time("last_deployed", self.last_deployed);
        info.raw("deleted", "\"\"");
        info.text("description", self.description);
        info.text("status", self.status.as_str());
        info.bytes("notes", self.notes);
        // One text, written once: it is the largest thing that an action holds.
        let mut fields = Fields::with_capacity(self.likely_size());
        fields.text("name", self.name);
        fields.raw("info", &info.end());
        fields.object("chart", |fields| chart(fields, self.chart))?;
        if !self.config.is_empty() {
            values(&mut fields, "config", self.config)?;
        }
        fields.bytes("manifest", self.manifest);
        if !self.hooks.is_empty() {
            fields.raw("hooks", &array(self.hooks.iter().map(hook)));
        }
        fields.number("version", self.revision);
        fields.text("namespace", self.namespace);
        // The text was made here, so it is an object.
        Ok(Record::from_text(fields.end()).unwrap_or_default())
    }

    /// Bytes of the record's JSON, and some to spare.
    fn likely_size(&self) -> usize {
        let files = self.chart.templates.iter().chain(&self.chart.files);
        let files = files.map(|file| file.name.len() + file.data.len() * 4 / 3 + 32);
        let schema = self.chart.schema.as_deref().map_or(0, <[u8]>::len) * 4 / 3;
        let hooks = self.hooks.iter().map(|hook| hook.manifest.len() + 512);
        let text = self.manifest.len() + self.notes.len() + hooks.sum::<usize>();
        files.sum::<usize>() + schema + text + text / 4 + 64 * 1024
    }
}

fn hook(hook: &Hook) -> String {
    let mut run = Fields::default();
    run.raw("started_at", "\"\"");
    run.raw("completed_at", "\"\"");
    run.raw("phase", "\"\"");
    let events: Vec<String> = hook.events.iter().map(|event| event.as_str().to_owned()).collect();
    let mut fields = Fields::default();
    fields.text("name", &hook.name);
    fields.text("kind", &hook.kind);
    fields.text("path", &hook.path);
    fields.bytes("manifest", &hook.manifest);
    fields.texts("events", &events);
    fields.raw("last_run", &run.end());
    fields.number("weight", hook.weight);
    fields.texts("delete_policies", &hook.delete_policies);
    fields.texts("output_log_policies", &hook.output_log_policies);
    fields.end()
}

fn chart(fields: &mut Fields, chart: &Chart) -> Result<(), goyaml::json::Error> {
    fields.raw("metadata", &metadata(&chart.metadata)?);
    let lock = chart.lock.as_ref().map(lock).transpose()?;
    fields.raw("lock", lock.as_deref().unwrap_or("null"));
    fields.write("templates", |out| files(out, &chart.templates));
    match &chart.values {
        Some(map) => values(fields, "values", map)?,
        None => fields.raw("values", "null"),
    }
    match &chart.schema {
        Some(schema) => fields.write("schema", |out| base64(out, schema)),
        None => fields.raw("schema", "null"),
    }
    fields.write("files", |out| files(out, &chart.files));
    Ok(())
}

/// Values as `encoding/json` writes a map.
fn values(fields: &mut Fields, name: &str, values: &Map) -> Result<(), goyaml::json::Error> {
    fields.object(name, |fields| {
        for (key, value) in values {
            fields.raw_key(key, &json::to_json(value)?);
        }
        Ok(())
    })
}

/// A slice of files; Go's slice is nil when no file was appended.
fn files(out: &mut String, files: &[File]) {
    if files.is_empty() {
        out.push_str("null");
        return;
    }
    for (index, file) in files.iter().enumerate() {
        out.push_str(if index == 0 { "[{\"name\":" } else { ",{\"name\":" });
        out.push_str(&string(&file.name));
        out.push_str(",\"data\":");
        base64(out, &file.data);
        out.push('}');
    }
    out.push(']');
}

/// Bytes as `encoding/json` writes them.
fn base64(out: &mut String, data: &[u8]) {
    out.push('"');
    STANDARD.encode_string(data, out);
    out.push('"');
}
