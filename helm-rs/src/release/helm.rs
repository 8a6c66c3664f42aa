//! Records as Helm prints them: `json.Marshal` of `release.Release` (`pkg/release/*.go`).

use goyaml::{Limits, Map, Value, json};
use serde_json::value::RawValue;

use super::record::{FieldError, Hook, Record};
use crate::render::time::{Time, Zone};

const RFC3339: &str = "2006-01-02T15:04:05Z07:00";

/// Fields of a Go struct, written in the order in which they are added.
#[derive(Default)]
pub(super) struct Fields {
    text: String,
    /// Whether the object, which may be nested, has a field.
    begun: bool,
}

impl Fields {
    /// An object for which there is room.
    pub(super) fn with_capacity(size: usize) -> Self {
        Self { text: String::with_capacity(size), begun: false }
    }

    fn separator(&mut self) {
        self.text.push(if self.begun { ',' } else { '{' });
        self.begun = true;
    }

    fn key(&mut self, name: &str) {
        self.separator();
        self.text.push('"');
        self.text.push_str(name);
        self.text.push_str("\":");
    }

    pub(super) fn raw(&mut self, name: &str, json: &str) {
        self.key(name);
        self.text.push_str(json);
    }

    /// A field whose name may hold any character.
    pub(super) fn raw_key(&mut self, name: &[u8], json: &str) {
        self.separator();
        let name = json::to_json(&Value::String(name.into()));
        // A string always encodes.
        self.text.push_str(name.as_deref().unwrap_or("\"\""));
        self.text.push(':');
        self.text.push_str(json);
    }

    /// A field whose JSON is written in place.
    pub(super) fn write(&mut self, name: &str, write: impl FnOnce(&mut String)) {
        self.key(name);
        write(&mut self.text);
    }

    /// A field that is an object, written in place.
    pub(super) fn object<E>(
        &mut self,
        name: &str,
        write: impl FnOnce(&mut Self) -> Result<(), E>,
    ) -> Result<(), E> {
        self.key(name);
        let mut inner = Self { text: std::mem::take(&mut self.text), begun: false };
        let result = write(&mut inner);
        self.text = inner.end();
        result
    }

    /// A text that may not be UTF-8, as Go writes it: wrong bytes become U+FFFD.
    pub(super) fn bytes(&mut self, name: &str, text: &[u8]) {
        if !text.is_empty() {
            let json = json::to_json(&Value::String(text.into()));
            self.raw(name, json.as_deref().unwrap_or("\"\""));
        }
    }

    pub(super) fn text(&mut self, name: &str, text: &str) {
        if !text.is_empty() {
            self.raw(name, &string(text));
        }
    }

    pub(super) fn number(&mut self, name: &str, number: i64) {
        if number != 0 {
            self.raw(name, &number.to_string());
        }
    }

    pub(super) fn texts(&mut self, name: &str, texts: &[String]) {
        if !texts.is_empty() {
            let texts: Vec<String> = texts.iter().map(|text| string(text)).collect();
            self.raw(name, &format!("[{}]", texts.join(",")));
        }
    }

    pub(super) fn time(&mut self, name: &str, text: &str) {
        self.raw(name, &string(&go_time(text)));
    }

    pub(super) fn end(mut self) -> String {
        self.text.push_str(if self.begun { "}" } else { "{}" });
        self.text
    }
}

/// A string as `encoding/json` writes it.
pub(super) fn string(text: &str) -> String {
    // A string always encodes.
    json::to_json(&Value::String(text.into())).unwrap_or_else(|_| String::from("\"\""))
}

/// A time as Go writes back what it read.
fn go_time(text: &str) -> String {
    match Time::parse(RFC3339, text, &Zone::utc()) {
        Ok(time) if time.is_zero() => String::new(),
        Ok(time) => time.to_rfc3339().unwrap_or_else(|_| text.to_owned()),
        Err(_) => text.to_owned(),
    }
}

impl Record {
    /// The user-supplied values; `None` when there are none, which Helm prints as null.
    ///
    /// # Errors
    /// When the field is not an object.
    pub fn user_values(&self) -> Result<Option<Map>, FieldError> {
        let field = "config";
        let fail = |source| FieldError { field, source };
        let Some(raw) = self.object().read::<&RawValue>(field).map_err(fail)? else {
            return Ok(None);
        };
        read_map(raw.get()).map(Some).map_err(fail)
    }

    /// The release as `helm status -o json` prints it: without the chart, and without anything
    /// that Helm 3.21 does not know. `values` stands for the user-supplied values, `edit` can
    /// change a manifest's text.
    ///
    /// # Errors
    /// When a field is not what it should be.
    pub fn to_helm_json(
        &self,
        values: Option<Map>,
        edit: impl Fn(&str) -> String,
    ) -> Result<String, FieldError> {
        let info = self.info()?;
        let mut about = Fields::default();
        about.time("first_deployed", &info.first_deployed);
        about.time("last_deployed", &info.last_deployed);
        about.time("deleted", &info.deleted);
        about.text("description", &info.description);
        about.text("status", &info.status_text);
        about.text("notes", &info.notes);
        let mut fields = Fields::default();
        fields.text("name", &self.name()?);
        if self.object().get("info").is_some_and(|info| info != "null") {
            fields.raw("info", &about.end());
        }
        if let Some(values) = values.filter(|values| !values.is_empty())
            && let Ok(text) = json::to_json(&Value::Map(values))
        {
            fields.raw("config", &text);
        }
        fields.text("manifest", &edit(&self.manifest()?));
        let hooks: Vec<String> = self.hooks()?.iter().map(|hook| hook_json(hook, &edit)).collect();
        if !hooks.is_empty() {
            fields.raw("hooks", &format!("[{}]", hooks.join(",")));
        }
        fields.number("version", self.revision()?);
        fields.text("namespace", &self.namespace()?);
        Ok(fields.end())
    }
}

/// A JSON object as `json.Unmarshal` reads it into a map.
pub(super) fn read_map(text: &str) -> Result<Map, serde_json::Error> {
    use serde::de::Error as _;
    match json::from_json(text.as_bytes(), &Limits::default()) {
        Ok(Value::Map(map)) => Ok(map),
        Ok(_) => Err(serde_json::Error::custom("not an object")),
        Err(error) => Err(serde_json::Error::custom(error)),
    }
}

fn hook_json(hook: &Hook, edit: impl Fn(&str) -> String) -> String {
    let mut run = Fields::default();
    run.time("started_at", &hook.last_run.started_at);
    run.time("completed_at", &hook.last_run.completed_at);
    run.raw("phase", &string(&hook.last_run.phase));
    let mut fields = Fields::default();
    fields.text("name", &hook.name);
    fields.text("kind", &hook.kind);
    fields.text("path", &hook.path);
    fields.text("manifest", &edit(&hook.manifest));
    fields.texts("events", &hook.events);
    fields.raw("last_run", &run.end());
    fields.number("weight", hook.weight);
    fields.texts("delete_policies", &hook.delete_policies);
    fields.texts("output_log_policies", &hook.output_log_policies);
    fields.end()
}
