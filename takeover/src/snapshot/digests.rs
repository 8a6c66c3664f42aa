//! A snapshot without credentials: the data of Secrets as digests, and records without what may be
//! a credential.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cilium::pinned::{NAMESPACE, RECORD_NAMESPACE};
use cilium::provenance::CLI_SECRET;
use goyaml::Limits;
use helm_rs::release::redact::LAST_APPLIED;
use helm_rs::release::{CodecLimits, decode, encode};
use serde_json::{Map, Value};

use super::select::is_record;
use crate::place::CILIUM;
use crate::plan::Key;
use crate::run::backup::{Backup, is_backup, reindex};
use crate::run::stored::CREDENTIALS;
use crate::survey::text;

/// Places of credentials that are named; more are counted.
const NAMED: usize = 8;

/// Takes credentials out of objects.
pub(super) struct Digests {
    key: Key,
    /// What is not as it was, for people.
    pub(super) notes: Vec<String>,
}

impl Digests {
    pub(super) const fn new(key: Key) -> Self {
        Self { key, notes: Vec::new() }
    }

    /// Takes them out of one object.
    pub(super) fn object(&mut self, object: &mut Value) {
        let name = (text(object, "/metadata/namespace"), text(object, "/metadata/name"));
        let is_secret = text(object, "/kind") == "Secret";
        if is_record(object) {
            let title = format!("{} {}/{}", text(object, "/kind"), name.0, name.1);
            self.record(&title, is_secret, object);
        } else if !is_secret {
            return;
        } else if name == (NAMESPACE, CLI_SECRET) {
            self.cli_values(object);
        } else if name.0 == RECORD_NAMESPACE && is_backup(object) {
            self.backup(&format!("{}/{}", name.0, name.1), object);
        } else if name != (RECORD_NAMESPACE, &*CILIUM.plan) {
            for entry in data(object) {
                *entry = self.key.stand_in_entry(entry.as_str().unwrap_or_default()).into();
            }
        } else if let Some(entry) = object.pointer_mut("/data").and_then(|d| d.get_mut(CREDENTIALS))
        {
            *entry = self.key.stand_in_entry(entry.as_str().unwrap_or_default()).into();
        }
        if is_secret {
            self.last_applied(object);
        }
    }

    /// A record: what of it may be a credential gives way to digests; one that cannot be read as a
    /// whole.
    fn record(&mut self, title: &str, is_secret: bool, object: &mut Value) {
        let Some(entry) = object.pointer_mut("/data/release") else { return };
        let stored = entry.as_str().unwrap_or_default();
        match self.release(stored, is_secret) {
            Ok(None) => {}
            Ok(Some((shown, places))) => {
                *entry = shown.into();
                self.notes.push(told(title, &places));
            }
            Err(reason) => {
                *entry = self.key.stand_in_entry(stored).into();
                let note = format!("{title} cannot be read ({reason}): it is a digest alone");
                self.notes.push(note);
            }
        }
    }

    /// A release's text without credentials and where they were; none where it has none.
    fn release(
        &self,
        stored: &str,
        is_secret: bool,
    ) -> Result<Option<(String, Vec<String>)>, String> {
        let plain = if is_secret {
            STANDARD.decode(stored).map_err(|error| error.to_string())?
        } else {
            stored.as_bytes().to_vec()
        };
        let json = decode(&plain, CodecLimits::default());
        let json = json.map_err(|error| helm_rs::error_chain(&error))?;
        let mut places = Vec::new();
        let Some(shown) = self.key.record(&json, &mut places)? else { return Ok(None) };
        let packed = encode(&shown).map_err(|error| error.to_string())?;
        Ok(Some((if is_secret { STANDARD.encode(packed) } else { packed }, places)))
    }

    /// A backup of records. One of those that changes is not what was backed up any more.
    fn backup(&mut self, title: &str, object: &mut Value) {
        let mut changed = false;
        // What is damaged in the cluster is damaged in the snapshot.
        let damaged = !Backup::of(object).damage().is_empty();
        for entry in data(object) {
            let stored = entry.as_str().unwrap_or_default();
            match self.release(stored, true) {
                Ok(None) => continue,
                Ok(Some((shown, _))) => *entry = shown.into(),
                Err(_) => *entry = self.key.stand_in_entry(stored).into(),
            }
            changed = true;
        }
        if changed && !damaged {
            reindex(object);
            self.notes.push(format!(
                "Secret {title}: digests stand in the backed up records in place of what may be \
                 credentials, and its index is adapted to that: a restore brings those back"
            ));
        }
    }

    /// The values that an old Cilium CLI left.
    fn cli_values(&mut self, object: &mut Value) {
        let mut places = Vec::new();
        for entry in data(object) {
            let stored = entry.as_str().unwrap_or_default();
            let plain = STANDARD.decode(stored).unwrap_or_default();
            let Ok(goyaml::Value::Map(values)) =
                goyaml::from_yaml_exact(&plain, &Limits::default())
            else {
                // The chart's version stands beside the values.
                continue;
            };
            let shown = self.key.values(&values);
            if shown != values
                && let Ok(yaml) = goyaml::to_yaml(&goyaml::Value::Map(shown))
            {
                *entry = STANDARD.encode(yaml).into();
                places.push("its values".to_owned());
            }
        }
        if !places.is_empty() {
            self.notes.push(told(&format!("Secret {NAMESPACE}/{CLI_SECRET}"), &places));
        }
    }

    /// What `kubectl apply` was given has the data in clear.
    fn last_applied(&self, object: &mut Value) {
        let annotations = object.pointer_mut("/metadata/annotations");
        let Some(annotations) = annotations.and_then(Value::as_object_mut) else { return };
        let Some(applied) = annotations.remove(LAST_APPLIED) else { return };
        let Some(Ok(mut applied)) = applied.as_str().map(serde_json::from_str::<Value>) else {
            return;
        };
        for entry in data(&mut applied) {
            *entry = self.key.stand_in_entry(entry.as_str().unwrap_or_default()).into();
        }
        if let Some(Value::Object(texts)) = applied.get_mut("stringData") {
            for text in texts.values_mut() {
                *text = self.key.stand_in(text.as_str().unwrap_or_default().as_bytes()).into();
            }
        }
        annotations.insert(LAST_APPLIED.to_owned(), applied.to_string().into());
    }
}

fn data(object: &mut Value) -> impl Iterator<Item = &mut Value> {
    let data = object.get_mut("data").and_then(Value::as_object_mut);
    data.into_iter().flat_map(Map::values_mut)
}

fn told(title: &str, places: &[String]) -> String {
    let (named, more) = places.split_at(places.len().min(NAMED));
    let mut places = named.join(", ");
    if !more.is_empty() {
        places.push_str(&format!(" and {} more", more.len()));
    }
    format!("{title}: digests stand in place of what may be credentials ({places})")
}
