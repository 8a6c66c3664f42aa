//! Credentials out of values, manifests and release records: each one gives way to its stand-in
//! ([`Key::stand_in`]), so that what is rendered of it is its stand-in too.
//!
//! A value is a credential when its key says so ([`redact`]), or when a Secret of the release's own
//! manifest holds it; but one that another object of the manifest holds in clear, such as a
//! container's environment, stays: it can be read there, and live.

use std::collections::BTreeSet;

use bstr::{BStr, BString, ByteSlice};
use goyaml::{Limits, Map, Value};
use helm_rs::manifest::split_manifests;
use helm_rs::release::redact::Sensitive;
use helm_rs::release::{Record, redact};
use serde_json::value::RawValue;

use crate::plan::Key;

/// Shorter texts of Secrets are words: a user's name, a port.
const SHORTEST: usize = 8;

/// What a release's manifest holds.
#[derive(Default)]
struct Held {
    /// In Secrets, and nowhere else.
    secret: BTreeSet<BString>,
    /// The other documents.
    clear: Vec<BString>,
}

impl Held {
    fn is_clear(&self, text: &[u8]) -> bool {
        text.len() >= SHORTEST && self.clear.iter().any(|document| document.contains_str(text))
    }
}

impl Key {
    /// Values with stand-ins in place of credentials.
    pub fn values(&self, values: &Map) -> Map {
        self.without_credentials(values, &Held::default(), &mut Vec::new())
    }

    /// The same; `places` gets the credentials' paths.
    fn without_credentials(&self, values: &Map, held: &Held, places: &mut Vec<String>) -> Map {
        let mut hidden = values.clone();
        redact::values(&mut hidden);
        let (mut shown, hidden) = (Value::Map(values.clone()), Value::Map(hidden));
        self.replace(&mut shown, Some(&hidden), held, "", places);
        shown.into_map().unwrap_or_default()
    }

    /// Puts stand-ins where `hidden` says something else.
    fn replace(
        &self,
        value: &mut Value,
        hidden: Option<&Value>,
        held: &Held,
        place: &str,
        places: &mut Vec<String>,
    ) {
        match value {
            Value::Map(map) => {
                for (key, below) in map.iter_mut() {
                    let dot = if place.is_empty() { "" } else { "." };
                    let at = format!("{place}{dot}{key}");
                    self.replace(below, hidden.and_then(|it| it.get(key)), held, &at, places);
                }
            }
            Value::Seq(items) => {
                let hidden = hidden.and_then(Value::as_seq).unwrap_or_default();
                for (index, item) in items.iter_mut().enumerate() {
                    let at = format!("{place}[{index}]");
                    self.replace(item, hidden.get(index), held, &at, places);
                }
            }
            Value::Null | Value::Bool(_) => {}
            Value::String(text) => {
                let is_hidden = hidden.and_then(Value::as_str) != Some(text.as_bstr());
                let is_named = is_hidden && !held.is_clear(text);
                if !text.is_empty() && (is_named || held.secret.contains(text)) {
                    *value = Value::from(self.stand_in(text));
                    places.push(place.to_owned());
                }
            }
            number => {
                if hidden != Some(&*number)
                    && let Ok(text) = goyaml::json::to_json(&*number)
                {
                    *number = Value::from(self.stand_in(text.as_bytes()));
                    places.push(place.to_owned());
                }
            }
        }
    }

    /// The data of a Secret, as digests; of a list, that of its Secrets. Whether there was any.
    fn secret(&self, object: &mut Value) -> bool {
        let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
        if kind.ends_with(b"List") {
            let items = object.as_map_mut().and_then(|map| map.get_mut("items"));
            let items = items.and_then(Value::as_seq_mut).into_iter().flatten();
            let found: Vec<bool> = items.map(|item| self.secret(item)).collect();
            return found.contains(&true);
        }
        if kind != "Secret" {
            return false;
        }
        let mut found = false;
        for (field, is_plain) in [("data", false), ("stringData", true)] {
            let entries = object.as_map_mut().and_then(|map| map.get_mut(field)?.as_map_mut());
            for value in entries.into_iter().flat_map(Map::values_mut) {
                let Some(text) = value.as_str() else { continue };
                let stand_in = if is_plain {
                    self.stand_in(text)
                } else {
                    self.stand_in_entry(&text.to_str_lossy())
                };
                *value = Value::from(stand_in);
                found = true;
            }
        }
        found
    }

    /// A manifest whose Secrets hold digests; none where it has no Secret. Secrets that cannot be
    /// read are left out.
    fn manifest(&self, manifest: &str) -> Option<String> {
        let documents = split_manifests(manifest.as_bytes());
        let mut changed = false;
        let mut out = String::with_capacity(manifest.len());
        for document in &documents {
            let mut text = document.to_str_lossy().into_owned();
            if document.contains_str("Secret") {
                if let Ok(mut object) = goyaml::from_yaml_exact(document, &Limits::default()) {
                    if self.secret(&mut object) {
                        changed = true;
                        let source = text.lines().take_while(|line| line.starts_with('#'));
                        let source: String = source.flat_map(|line| [line, "\n"]).collect();
                        text = source + &goyaml::to_yaml(&object).unwrap_or_default();
                    }
                } else {
                    changed = true;
                    "# left out: this document does not read".clone_into(&mut text);
                }
            }
            out.extend(["---\n", text.as_str()]);
            if !out.ends_with('\n') {
                out.push('\n');
            }
        }
        changed.then_some(out)
    }

    /// A record's JSON without credentials, none where it has none; `places` gets where they were.
    ///
    /// # Errors
    /// A text that says what of the record cannot be read.
    pub(crate) fn record(
        &self,
        json: &str,
        places: &mut Vec<String>,
    ) -> Result<Option<String>, String> {
        let record = Record::from_json(json).map_err(|error| error.to_string())?;
        let manifest = record.manifest().map_err(told)?;
        let mut object = record.object().clone();
        let mut changed = false;
        let mut set = |name: &str, json: String| -> Result<(), String> {
            changed = true;
            object.set(name, json, &[]).map_err(|error| error.to_string())
        };
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let held = held(manifest.as_bytes());
        if let Some(manifest) = self.manifest(&manifest) {
            places.push("manifest".to_owned());
            set("manifest", quoted(&manifest))?;
        }
        if let Some(config) = self.table(record.object().get("config"), &held, "config", places)? {
            set("config", config)?;
        }
        if let Some(chart) = record.object().get("chart") {
            let mut chart =
                helm_rs::release::RawObject::parse(chart).map_err(|error| text(&error))?;
            if let Some(values) = self.table(chart.get("values"), &held, "chart.values", places)? {
                chart.set("values", values, &[]).map_err(|error| text(&error))?;
                set("chart", chart.to_json())?;
            }
        }
        if let Some(hooks) = self.hooks(record.object().get("hooks"))? {
            places.push("hooks".to_owned());
            set("hooks", hooks)?;
        }
        // Notes and descriptions quote anything.
        if let Some(info) = record.object().get("info") {
            let scrubbed = Sensitive::of_record(&record).scrub(info);
            let is_json = serde_json::from_str::<&RawValue>(&scrubbed).is_ok();
            if scrubbed != info && is_json {
                places.push("info".to_owned());
                set("info", scrubbed)?;
            }
        }
        Ok(changed.then(|| object.to_json()))
    }

    /// Values in JSON without credentials, none where they have none.
    fn table(
        &self,
        json: Option<&str>,
        held: &Held,
        name: &str,
        places: &mut Vec<String>,
    ) -> Result<Option<String>, String> {
        let Some(json) = json else { return Ok(None) };
        let values = goyaml::json::from_json_exact(json.as_bytes(), &Limits::default());
        let Value::Map(values) = values.map_err(told)? else { return Ok(None) };
        let mut found = Vec::new();
        let shown = self.without_credentials(&values, held, &mut found);
        if found.is_empty() {
            return Ok(None);
        }
        places.extend(found.into_iter().map(|place| format!("{name}.{place}")));
        goyaml::json::to_json(&Value::Map(shown)).map(Some).map_err(told)
    }

    fn hooks(&self, json: Option<&str>) -> Result<Option<String>, String> {
        let hooks: Vec<serde_json::Value> = match json {
            None | Some("null") => return Ok(None),
            Some(json) => serde_json::from_str(json).map_err(|error| text(&error))?,
        };
        let mut changed = false;
        let mut hooks = hooks;
        for manifest in hooks.iter_mut().filter_map(|hook| hook.get_mut("manifest")) {
            if let Some(shown) = manifest.as_str().and_then(|text| self.manifest(text)) {
                *manifest = shown.into();
                changed = true;
            }
        }
        Ok(changed.then(|| serde_json::Value::from(hooks).to_string()))
    }
}

fn text(error: &serde_json::Error) -> String {
    error.to_string()
}

fn told(error: impl std::error::Error) -> String {
    helm_rs::error_chain(&error)
}

/// What Secrets and other objects of a manifest hold.
fn held(manifest: &[u8]) -> Held {
    let mut held = Held::default();
    for document in split_manifests(manifest) {
        let object = goyaml::from_yaml_exact(&document, &Limits::default()).ok();
        match object.filter(|object| object.get("kind").is_some_and(is_secret_kind)) {
            Some(object) => texts(&object, &mut held.secret),
            None => held.clear.push(document),
        }
    }
    let Held { secret, clear } = &mut held;
    secret.retain(|text| !clear.iter().any(|other| other.contains_str(text.as_slice())));
    held
}

fn is_secret_kind(kind: &Value) -> bool {
    kind.as_str().is_some_and(|kind| kind == "Secret" || kind == "SecretList")
}

fn texts(object: &Value, held: &mut BTreeSet<BString>) {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    for item in object.get("items").and_then(Value::as_seq).unwrap_or_default() {
        texts(item, held);
    }
    let mut add = |text: &BStr| {
        if text.len() >= SHORTEST {
            held.insert(text.to_owned());
        }
    };
    for field in ["data", "stringData"] {
        for entry in object.get(field).and_then(Value::as_map).into_iter().flat_map(Map::values) {
            let Some(text) = entry.as_str() else { continue };
            add(text);
            if field == "data"
                && let Ok(decoded) = STANDARD.decode(text)
            {
                add(decoded.as_bstr());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> Key {
        Key("uid".to_owned())
    }

    fn map(yaml: &str) -> Map {
        goyaml::from_yaml_exact(yaml.as_bytes(), &Limits::default()).unwrap().into_map().unwrap()
    }

    #[test]
    fn values_that_are_named_so_are_stand_ins() {
        let shown = key().values(&map("a: {password: x, port: 1, pin: {token: 7}}\nlist: [b]"));
        let text = goyaml::to_yaml(&Value::Map(shown.clone())).unwrap();
        assert!(text.contains("port: 1") && text.contains("- b"), "{text}");
        let stand_in = Value::from(key().stand_in(b"x"));
        assert_eq!(shown.get("a").unwrap().get("password"), Some(&stand_in));
        let number = Value::from(key().stand_in(b"7"));
        assert_eq!(shown.get("a").unwrap().at(&["pin", "token"]), Some(&number));
        assert_eq!(key().values(&shown), shown, "a stand-in stands for itself");
    }

    #[test]
    fn what_can_be_read_elsewhere_stays() {
        let manifest = "---\nkind: DaemonSet\nenv:\n- name: PASSWORD\n  value: hunter2222\n";
        let env = serde_json::json!([{"name": "PASSWORD", "value": "hunter2222"}]);
        let config = serde_json::json!({"extraEnv": env, "other": {"password": "hunter3333"}});
        let json = serde_json::json!({"name": "a", "manifest": manifest, "config": config});
        let mut places = Vec::new();
        let shown = key().record(&json.to_string(), &mut places).unwrap().unwrap();
        assert_eq!(places, ["config.other.password"]);
        assert!(shown.matches("hunter2222").count() == 2 && !shown.contains("hunter3333"));
    }

    #[test]
    fn records_keep_all_but_credentials() {
        let manifest = "---\n# Source: a/s.yaml\napiVersion: v1\nkind: Secret\nmetadata:\n  name: s\n\
                        data:\n  k: aHVudGVyMjIyMg==\n  w: d29yZGluZ3M=\n---\nkind: ConfigMap\n\
                        data:\n  w: wordings\n";
        let json = serde_json::json!({
            "name": "a", "manifest": manifest,
            "config": {"plain": "hunter2222", "word": "wordings", "password": "p"},
            "chart": {"metadata": {"name": "a"}, "values": {"word": "wordings"}},
            "info": {"notes": "say hunter2222"},
        });
        let mut places = Vec::new();
        let shown = key().record(&json.to_string(), &mut places).unwrap().unwrap();
        assert_eq!(places, ["manifest", "config.password", "config.plain", "info"]);
        assert!(!shown.contains("hunter2222") && !shown.contains("aHVudGVyMjIyMg"), "{shown}");
        assert!(shown.contains("# Source: a/s.yaml") && shown.contains("wordings"), "{shown}");
        // What is rendered of a stand-in is the Secret's stand-in.
        let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
        let plain = shown.pointer("/config/plain").unwrap().as_str().unwrap();
        assert_eq!(plain, key().stand_in(b"hunter2222"));
        let entry = key().stand_in_entry("aHVudGVyMjIyMg==");
        assert!(shown["manifest"].as_str().unwrap().contains(&entry));
        let mut again = Vec::new();
        assert_eq!(key().record(&json["chart"].to_string(), &mut again).unwrap(), None);
        let twice = key().record(&shown.to_string(), &mut again).unwrap();
        assert!(twice.is_none_or(|twice| twice.contains(plain)));
    }
}
