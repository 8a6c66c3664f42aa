//! Records as Helm prints them: `json.Marshal` of `release.Release` (`pkg/release/*.go`).

use goyaml::{Limits, Map, Value, json};
use serde_json::value::RawValue;

use super::record::{FieldError, Hook, Record};
use crate::gojson::{Fields, string};

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
    /// change a manifest's text; `resources` is the JSON of what runs, if it is to be there.
    ///
    /// # Errors
    /// When a field is not what it should be.
    pub fn to_helm_json(
        &self,
        values: Option<Map>,
        edit: impl Fn(&str) -> String,
        edit_notes: impl Fn(&str) -> String,
        resources: Option<&str>,
    ) -> Result<String, FieldError> {
        let info = self.info()?;
        let mut about = Fields::default();
        about.time("first_deployed", &info.first_deployed);
        about.time("last_deployed", &info.last_deployed);
        about.time("deleted", &info.deleted);
        about.text("description", &info.description);
        about.text("status", &info.status_text);
        about.text("notes", &edit_notes(&info.notes));
        if let Some(resources) = resources {
            about.raw("resources", resources);
        }
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
