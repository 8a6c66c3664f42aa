//! A decoded record and typed views of its parts.

use std::borrow::Cow;

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};

use super::apply_method::ApplyMethod;
use super::raw::RawObject;
use super::status::Status;

/// The order in which Go writes a release's fields (`pkg/release/release.go`).
pub const RELEASE_FIELDS: &[&str] =
    &["name", "info", "chart", "config", "manifest", "hooks", "version", "namespace"];
/// The field of Helm 4 that says how the objects were written; Go writes it last.
const APPLY_METHOD: &str = "apply_method";
/// The order in which Go writes the fields of `info` (`pkg/release/info.go`).
pub const INFO_FIELDS: &[&str] =
    &["first_deployed", "last_deployed", "deleted", "description", "status", "notes", "resources"];
/// The order in which Go writes the fields of a hook (`pkg/release/hook.go`).
const HOOK_FIELDS: &[&str] = &[
    "name",
    "kind",
    "path",
    "manifest",
    "events",
    "last_run",
    "weight",
    "delete_policies",
    "output_log_policies",
];

/// One revision of a release, as its record holds it. Everything that this version does not
/// know or does not change keeps its exact text.
#[derive(Clone, Debug, Default)]
pub struct Record {
    object: RawObject,
}

/// A part of a record that is not what it should be.
#[derive(Debug, thiserror::Error)]
#[error("field {field} of the release record")]
pub struct FieldError {
    /// The field's path in the record's JSON.
    pub field: &'static str,
    /// What does not fit.
    pub source: serde_json::Error,
}

impl Record {
    /// Reads a record's JSON text.
    ///
    /// # Errors
    /// When it is not one JSON object.
    pub fn from_json(json: &str) -> Result<Self, serde_json::Error> {
        Ok(Self { object: RawObject::parse(json)? })
    }

    /// [`Self::from_json`] of a text that is kept and not copied.
    ///
    /// # Errors
    /// When it is not one JSON object.
    pub fn from_text(json: String) -> Result<Self, serde_json::Error> {
        Ok(Self { object: RawObject::from_text(json)? })
    }

    /// The record as JSON text; to the byte what was read, where nothing was set.
    pub fn to_json(&self) -> String {
        self.object.to_json()
    }

    /// The fields as they are stored.
    pub const fn object(&self) -> &RawObject {
        &self.object
    }

    fn text(&self, field: &'static str) -> Result<String, FieldError> {
        let value = self.object.read(field).map_err(|source| FieldError { field, source })?;
        Ok(value.unwrap_or_default())
    }

    /// The release's name.
    ///
    /// # Errors
    /// When the field is not a string.
    pub fn name(&self) -> Result<String, FieldError> {
        self.text("name")
    }

    /// The namespace that the release was installed into.
    ///
    /// # Errors
    /// When the field is not a string.
    pub fn namespace(&self) -> Result<String, FieldError> {
        self.text("namespace")
    }

    /// The revision; Helm's field `version`.
    ///
    /// # Errors
    /// When the field is not an integer.
    pub fn revision(&self) -> Result<i64, FieldError> {
        let field = "version";
        let value = self.object.read(field).map_err(|source| FieldError { field, source })?;
        Ok(value.unwrap_or_default())
    }

    /// The rendered manifest, hooks taken out.
    ///
    /// # Errors
    /// When the field is not a string.
    pub fn manifest(&self) -> Result<String, FieldError> {
        self.text("manifest")
    }

    /// How the objects were written; none in records of Helm 3, and where it is no known method.
    ///
    /// # Errors
    /// When the field is not a string.
    pub fn apply_method(&self) -> Result<Option<ApplyMethod>, FieldError> {
        Ok(ApplyMethod::from_text(&self.text(APPLY_METHOD)?))
    }

    /// Says how the objects are written; none takes the field out.
    ///
    /// # Errors
    /// None that is known: the text is a string.
    pub fn set_apply_method(&mut self, method: Option<ApplyMethod>) -> Result<(), FieldError> {
        let Some(method) = method else {
            self.object.remove(APPLY_METHOD);
            return Ok(());
        };
        let wrap = |source| FieldError { field: APPLY_METHOD, source };
        self.object.set(APPLY_METHOD, go_string(method.as_str()), RELEASE_FIELDS).map_err(wrap)
    }

    /// The status part.
    ///
    /// # Errors
    /// When the field is not an object of the known shape.
    pub fn info(&self) -> Result<Info, FieldError> {
        let field = "info";
        let value = self.object.read(field).map_err(|source| FieldError { field, source })?;
        Ok(value.unwrap_or_default())
    }

    /// The hooks with what their last run left.
    ///
    /// # Errors
    /// When the field is not a list of hooks.
    pub fn hooks(&self) -> Result<Vec<Hook>, FieldError> {
        let field = "hooks";
        let value: Option<Vec<Option<Hook>>> =
            self.object.read(field).map_err(|source| FieldError { field, source })?;
        Ok(value.unwrap_or_default().into_iter().flatten().collect())
    }

    /// Says that the release was uninstalled, or is about to be, since that moment.
    ///
    /// # Errors
    /// When `info` is not an object.
    pub fn set_deleted(&mut self, time: &str) -> Result<(), FieldError> {
        let wrap = |source| FieldError { field: "info", source };
        let mut info: RawObject = self.object.read("info").map_err(wrap)?.unwrap_or_default();
        info.set("deleted", go_string(time), INFO_FIELDS).map_err(wrap)?;
        self.object.set("info", info.to_json(), RELEASE_FIELDS).map_err(wrap)
    }

    /// Sets a hook's last run; hooks are counted as [`Self::hooks`] lists them.
    ///
    /// # Errors
    /// When the field is not a list of hooks.
    pub fn set_hook_run(&mut self, index: usize, run: &HookRun) -> Result<(), FieldError> {
        let wrap = |source| FieldError { field: "hooks", source };
        let mut hooks = self.raw_hooks()?;
        let Some(hook) = hooks.get_mut(index) else { return Ok(()) };
        let run = format!(
            "{{\"started_at\":{},\"completed_at\":{},\"phase\":{}}}",
            go_string(&run.started_at),
            go_string(&run.completed_at),
            go_string(&run.phase)
        );
        hook.set("last_run", run, HOOK_FIELDS).map_err(wrap)?;
        self.set_raw_hooks(&hooks)
    }

    /// Sets a hook's delete policies; hooks are counted as [`Self::hooks`] lists them.
    ///
    /// # Errors
    /// When the field is not a list of hooks.
    pub fn set_hook_policies(
        &mut self,
        index: usize,
        policies: &[String],
    ) -> Result<(), FieldError> {
        let wrap = |source| FieldError { field: "hooks", source };
        let mut hooks = self.raw_hooks()?;
        let Some(hook) = hooks.get_mut(index) else { return Ok(()) };
        let policies: Vec<String> = policies.iter().map(|policy| go_string(policy)).collect();
        let policies = format!("[{}]", policies.join(","));
        hook.set("delete_policies", policies, HOOK_FIELDS).map_err(wrap)?;
        self.set_raw_hooks(&hooks)
    }

    /// Puts the hooks with these indices, as [`Self::hooks`] counts them, before all others.
    ///
    /// # Errors
    /// When the field is not a list of hooks.
    pub fn move_hooks_to_front(&mut self, indices: &[usize]) -> Result<(), FieldError> {
        let hooks = self.raw_hooks()?;
        let (front, back): (Vec<_>, Vec<_>) =
            hooks.into_iter().enumerate().partition(|(index, _)| indices.contains(index));
        let mut sorted: Vec<(usize, RawObject)> = front;
        sorted.sort_by_key(|(index, _)| indices.iter().position(|wanted| wanted == index));
        let hooks: Vec<RawObject> = sorted.into_iter().chain(back).map(|(_, hook)| hook).collect();
        self.set_raw_hooks(&hooks)
    }

    fn raw_hooks(&self) -> Result<Vec<RawObject>, FieldError> {
        let wrap = |source| FieldError { field: "hooks", source };
        let hooks: Option<Vec<Option<RawObject>>> = self.object.read("hooks").map_err(wrap)?;
        Ok(hooks.unwrap_or_default().into_iter().flatten().collect())
    }

    fn set_raw_hooks(&mut self, hooks: &[RawObject]) -> Result<(), FieldError> {
        if hooks.is_empty() {
            return Ok(());
        }
        let hooks: Vec<String> = hooks.iter().map(RawObject::to_json).collect();
        let hooks = format!("[{}]", hooks.join(","));
        let wrap = |source| FieldError { field: "hooks", source };
        self.object.set("hooks", hooks, RELEASE_FIELDS).map_err(wrap)
    }

    /// The record of going back from `current` to what `self` holds, as a new revision of that
    /// release (`prepareRollback` in `pkg/action/rollback.go`). Name and number are those that were
    /// asked for: records that were copied from another release still name that one.
    ///
    /// # Errors
    /// When `info` of either is not an object, or `current` has no revision.
    pub fn rolled_back(
        &self,
        (name, wanted): (&str, i64),
        current: &Self,
        now: &str,
    ) -> Result<Self, FieldError> {
        let wrap = |source| FieldError { field: "info", source };
        let revision = current.revision()?;
        let old: RawObject = self.object.read("info").map_err(wrap)?.unwrap_or_default();
        let mut info = RawObject::default();
        let newest: RawObject = current.object.read("info").map_err(wrap)?.unwrap_or_default();
        let mut set = |name: &str, json: String| info.set(name, json, INFO_FIELDS).map_err(wrap);
        set("first_deployed", newest.get("first_deployed").unwrap_or("\"\"").to_owned())?;
        set("last_deployed", go_string(now))?;
        set("deleted", go_string(""))?;
        set("description", go_string(&format!("Rollback to {wanted}")))?;
        set("status", go_string(Status::PendingRollback.as_str()))?;
        if let Some(notes) = old.get("notes").filter(|notes| *notes != "\"\"") {
            set("notes", notes.to_owned())?;
        }
        let mut record = self.clone();
        let mut set = |name: &'static str, json: String| {
            let wrap = |source| FieldError { field: name, source };
            record.object.set(name, json, RELEASE_FIELDS).map_err(wrap)
        };
        set("name", go_string(name))?;
        set("info", info.to_json())?;
        set("version", revision.saturating_add(1).to_string())?;
        set("namespace", go_string(&current.namespace()?))?;
        Ok(record)
    }

    /// Sets status and description, and nothing else (`Release.SetStatus`).
    ///
    /// # Errors
    /// When `info` is not an object.
    pub fn set_status(&mut self, status: &Status, description: &str) -> Result<(), FieldError> {
        let wrap = |source| FieldError { field: "info", source };
        let mut info: RawObject = self.object.read("info").map_err(wrap)?.unwrap_or_default();
        if description.is_empty() {
            info.remove("description");
        } else {
            info.set("description", go_string(description), INFO_FIELDS).map_err(wrap)?;
        }
        info.set("status", go_string(status.as_str()), INFO_FIELDS).map_err(wrap)?;
        self.object.set("info", info.to_json(), RELEASE_FIELDS).map_err(wrap)
    }
}

/// A string as Go's `encoding/json` writes it.
fn go_string(text: &str) -> String {
    let value = goyaml::Value::String(text.into());
    // A string always encodes.
    goyaml::json::to_json(&value).map_or_else(|_| String::from("\"\""), Into::into)
}

/// What a record says about its revision. Times are kept as they are written; an empty text is
/// Go's zero time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Info {
    /// When the release was first deployed, RFC 3339.
    #[serde(deserialize_with = "or_default")]
    pub first_deployed: String,
    /// When this revision was deployed, RFC 3339.
    #[serde(deserialize_with = "or_default")]
    pub last_deployed: String,
    /// When the release was uninstalled, RFC 3339.
    #[serde(deserialize_with = "or_default")]
    pub deleted: String,
    /// What happened last, for people.
    #[serde(deserialize_with = "or_default")]
    pub description: String,
    /// The status' text; see [`Info::status`].
    #[serde(rename = "status", deserialize_with = "or_default")]
    pub status_text: String,
    /// The rendered `NOTES.txt`.
    #[serde(deserialize_with = "or_default")]
    pub notes: String,
}

impl Info {
    /// The status.
    pub fn status(&self) -> Status {
        Status::from(self.status_text.as_str())
    }
}

/// A hook of a record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Hook {
    /// The object's name.
    #[serde(deserialize_with = "or_default")]
    pub name: String,
    /// The object's kind.
    #[serde(deserialize_with = "or_default")]
    pub kind: String,
    /// The template that it came from.
    #[serde(deserialize_with = "or_default")]
    pub path: String,
    /// The rendered object.
    #[serde(deserialize_with = "or_default")]
    pub manifest: String,
    /// When it runs: `pre-install` and so on.
    #[serde(deserialize_with = "or_default")]
    pub events: Vec<String>,
    /// Its last run.
    #[serde(deserialize_with = "or_default")]
    pub last_run: HookRun,
    /// Its place among the hooks of an event.
    #[serde(deserialize_with = "or_default")]
    pub weight: i64,
    /// When it is deleted.
    #[serde(deserialize_with = "or_default")]
    pub delete_policies: Vec<String>,
    /// When its log is printed.
    #[serde(deserialize_with = "or_default")]
    pub output_log_policies: Vec<String>,
}

/// The last run of a hook; empty times and phase mean that it never ran.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct HookRun {
    /// When it began, RFC 3339.
    #[serde(deserialize_with = "or_default")]
    pub started_at: String,
    /// When it ended, RFC 3339.
    #[serde(deserialize_with = "or_default")]
    pub completed_at: String,
    /// `Unknown`, `Running`, `Succeeded` or `Failed`.
    #[serde(deserialize_with = "or_default")]
    pub phase: String,
}

/// `null` is a zero value, as for `json.Unmarshal`.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

/// What lists and audits show of a record, read in one pass that builds neither the chart nor
/// the manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The release's name.
    pub name: String,
    /// The namespace that the release was installed into.
    pub namespace: String,
    /// The revision.
    pub revision: i64,
    /// Times, status, description and notes.
    pub info: Info,
    /// Whether the record has a chart that says anything about itself.
    pub has_chart: bool,
    /// The chart's name.
    pub chart: String,
    /// The chart's version.
    pub chart_version: String,
    /// The version of what the chart installs.
    pub app_version: String,
    /// Bytes of the record's JSON.
    pub json_size: usize,
}

impl Summary {
    /// Reads the summary out of a record's JSON text.
    ///
    /// # Errors
    /// When it is not JSON or a field that the summary shows is of another type.
    pub fn from_json(json: &str) -> Result<Self, serde_json::Error> {
        #[derive(Deserialize)]
        struct Release<'a> {
            #[serde(borrow, default)]
            name: Option<Cow<'a, str>>,
            #[serde(borrow, default)]
            namespace: Option<Cow<'a, str>>,
            #[serde(default)]
            version: Option<i64>,
            #[serde(default)]
            info: Option<Info>,
            #[serde(borrow, default)]
            chart: Option<Chart<'a>>,
            #[serde(default, rename = "manifest")]
            _manifest: IgnoredAny,
        }
        #[derive(Deserialize)]
        struct Chart<'a> {
            #[serde(borrow, default)]
            metadata: Option<Metadata<'a>>,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Metadata<'a> {
            #[serde(borrow, default)]
            name: Option<Cow<'a, str>>,
            #[serde(borrow, default)]
            version: Option<Cow<'a, str>>,
            #[serde(borrow, default)]
            app_version: Option<Cow<'a, str>>,
        }
        let owned = |text: Option<Cow<'_, str>>| text.map(Cow::into_owned).unwrap_or_default();
        // Serde reads an array into a structure too.
        if !json.trim_start().starts_with('{') {
            return Err(serde::de::Error::custom("not an object"));
        }
        let release: Release<'_> = serde_json::from_str(json)?;
        let metadata = release.chart.and_then(|chart| chart.metadata);
        let has_chart = metadata.is_some();
        let (chart, chart_version, app_version) = metadata
            .map(|about| (owned(about.name), owned(about.version), owned(about.app_version)))
            .unwrap_or_default();
        Ok(Self {
            name: owned(release.name),
            namespace: owned(release.namespace),
            revision: release.version.unwrap_or_default(),
            info: release.info.unwrap_or_default(),
            has_chart,
            chart,
            chart_version,
            app_version,
            json_size: json.len(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{HookRun, Record, Status, Summary};

    const JSON: &str = r#"{"name":"web","info":{"first_deployed":"2026-01-02T03:04:05.678Z","deleted":"","description":"Install complete","status":"deployed","apply":"x"},"chart":{"metadata":{"name":"c","version":"1.0.0","appVersion":"2"},"templates":[]},"manifest":"a: \u003cb\u003e\n","version":3,"namespace":"ns","apply_method":"ssa"}"#;

    #[test]
    fn a_changed_status_leaves_the_rest_to_the_byte() {
        let mut record = Record::from_json(JSON).unwrap();
        assert_eq!(record.to_json(), JSON);
        record.set_status(&Status::Superseded, "a < b").unwrap();
        let expected = JSON
            .replace("Install complete", r"a \u003c b")
            .replace(r#""status":"deployed""#, r#""status":"superseded""#);
        assert_eq!(record.to_json(), expected);
        assert_eq!(record.manifest().unwrap(), "a: <b>\n");
    }

    #[test]
    fn hooks_are_changed_one_by_one() {
        let json = r#"{"name":"web","info":{},"hooks":[null,{"name":"a","events":["test"],"last_run":{"started_at":"","completed_at":"","phase":""},"weight":2,"own":1},{"name":"b"}],"version":3}"#;
        let mut record = Record::from_json(json).unwrap();
        let run = HookRun {
            started_at: "2026-01-02T03:04:05Z".to_owned(),
            phase: "Running".to_owned(),
            ..HookRun::default()
        };
        record.set_hook_policies(0, &["x<".to_owned()]).unwrap();
        record.set_hook_run(0, &run).unwrap();
        record.set_hook_run(7, &run).unwrap();
        record.move_hooks_to_front(&[1]).unwrap();
        let expected = r#"{"name":"web","info":{},"hooks":[{"name":"b"},{"name":"a","events":["test"],"last_run":{"started_at":"2026-01-02T03:04:05Z","completed_at":"","phase":"Running"},"weight":2,"own":1,"delete_policies":["x\u003c"]}],"version":3}"#;
        assert_eq!(record.to_json(), expected);
    }

    #[test]
    fn a_rollback_takes_all_but_times_and_namespace_from_the_older_record() {
        let old = Record::from_json(JSON).unwrap();
        let newest = r#"{"info":{"first_deployed":"x","notes":"n"},"version":8,"namespace":"now"}"#;
        let newest = Record::from_json(newest).unwrap();
        let record = old.rolled_back(("other", 3), &newest, "t").unwrap();
        assert_eq!(record.name().unwrap(), "other");
        let info = r#""info":{"first_deployed":"x","last_deployed":"t","deleted":"","description":"Rollback to 3","status":"pending-rollback"}"#;
        assert!(record.to_json().contains(info), "{}", record.to_json());
        assert_eq!(
            (record.revision().unwrap(), record.namespace().unwrap()),
            (9, "now".to_owned())
        );
        assert_eq!(record.manifest().unwrap(), old.manifest().unwrap());
    }

    #[test]
    fn the_summary_skips_what_it_does_not_show() {
        let summary = Summary::from_json(JSON).unwrap();
        assert_eq!((summary.name.as_str(), summary.revision), ("web", 3));
        assert_eq!((summary.chart.as_str(), summary.app_version.as_str()), ("c", "2"));
        assert_eq!(summary.info.status(), Status::Deployed);
    }
}
