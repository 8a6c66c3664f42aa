//! Records as objects that can be applied: where they were, or in another namespace, under
//! another name, in another kind of object.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use goyaml::{Map, Value};

use super::codec;
use super::input::{Storage, StoredRecord};
use super::record::{FieldError, RELEASE_FIELDS, Record};
use crate::gojson::string;
use crate::name::{NameError, validate_release_name};

/// What to change on the way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExportTarget {
    /// The kind of object; the one that the record is in when not given, a Secret for a release
    /// that is in none.
    pub storage: Option<Storage>,
    /// The release's new namespace.
    pub namespace: Option<String>,
    /// The release's new name.
    pub name: Option<String>,
}

/// A record as an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Exported {
    /// The object's name: `sh.helm.release.v1.NAME.vREVISION`.
    pub name: String,
    /// The object's namespace; empty when nobody knows it.
    pub namespace: String,
    /// The object, ready to apply.
    pub object: Value,
}

/// Why a record cannot be exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// Its JSON does not read.
    #[error("JSON layer")]
    Json(#[from] serde_json::Error),
    /// A field does not read.
    #[error(transparent)]
    Field(#[from] FieldError),
    /// The release's name cannot be one.
    #[error("release name {name:?}")]
    Name {
        /// The name.
        name: String,
        /// What is wrong with it.
        source: NameError,
    },
    /// The namespace's name cannot be one.
    #[error("namespace {namespace:?} is no name that Kubernetes accepts")]
    Namespace {
        /// The name.
        namespace: String,
    },
    /// Helm numbers revisions from 1.
    #[error("revision {revision} is none that Helm reads")]
    Revision {
        /// The number.
        revision: i64,
    },
    /// Kubernetes takes 63 letters, digits, `-`, `_` and `.` for a label.
    #[error("label {label} cannot be {value:?} in Kubernetes")]
    Label {
        /// The label.
        label: String,
        /// What it would be.
        value: String,
    },
    /// Compressing failed.
    #[error("the record does not compress")]
    Encode(#[from] std::io::Error),
}

/// Makes the object that holds a record.
///
/// The release string, or the JSON where there is none, stays what it was when nothing in it changes. A new namespace or name is
/// set in the body, the labels and the object; manifests keep what they say. Custom labels stay.
///
/// # Errors
/// When the record does not read, or Kubernetes would not accept its names.
pub fn export(
    stored: &StoredRecord,
    json: &str,
    target: &ExportTarget,
) -> Result<Exported, ExportError> {
    let record = Record::from_json(json)?;
    let (old_name, old_namespace) = (record.name()?, record.namespace()?);
    let status = record.info()?.status_text;
    let revision = record.revision()?;
    if revision < 1 {
        return Err(ExportError::Revision { revision });
    }
    let name = target.name.clone().unwrap_or_else(|| old_name.clone());
    validate_release_name(&name)
        .map_err(|source| ExportError::Name { name: name.clone(), source })?;
    let namespace = target.namespace.clone().unwrap_or_else(|| {
        if stored.namespace.is_empty() { old_namespace.clone() } else { stored.namespace.clone() }
    });
    if !namespace.is_empty() && !is_namespace(&namespace) {
        return Err(ExportError::Namespace { namespace });
    }
    let mut body = record.object().clone();
    let mut is_changed = false;
    if name != old_name {
        body.set("name", string(&name), RELEASE_FIELDS)?;
        is_changed = true;
    }
    if target.namespace.as_ref().is_some_and(|namespace| *namespace != old_namespace) {
        body.set("namespace", string(&namespace), RELEASE_FIELDS)?;
        is_changed = true;
    }
    let release = match stored.release_string() {
        _ if is_changed => codec::encode(&body.to_json())?,
        Some(release) => String::from_utf8_lossy(release).into_owned(),
        None => codec::encode(json)?,
    };
    let object_name = format!("sh.helm.release.v1.{name}.v{revision}");
    let mut labels: Map = stored
        .labels
        .iter()
        .map(|(key, value)| (bstr::BString::from(key.as_str()), Value::from(value.as_str())))
        .collect();
    for (label, value) in [
        ("name", &*name),
        ("owner", "helm"),
        ("status", &status),
        ("version", &revision.to_string()),
    ] {
        if !is_label(value) {
            return Err(ExportError::Label { label: label.to_owned(), value: value.to_owned() });
        }
        labels.insert(label, value);
    }
    let mut metadata = Map::new();
    metadata.insert("name", object_name.as_str());
    metadata.insert("labels", labels);
    if !namespace.is_empty() {
        metadata.insert("namespace", namespace.as_str());
    }
    let mut object = Map::new();
    object.insert("apiVersion", "v1");
    object.insert("metadata", metadata);
    let mut data = Map::new();
    match target.storage.unwrap_or(stored.storage) {
        Storage::ConfigMap => {
            object.insert("kind", "ConfigMap");
            data.insert("release", release);
        }
        Storage::Secret | Storage::Bare => {
            object.insert("kind", "Secret");
            object.insert("type", "helm.sh/release.v1");
            data.insert("release", STANDARD.encode(release));
        }
    }
    object.insert("data", data);
    Ok(Exported { name: object_name, namespace, object: Value::Map(object) })
}

/// Whether Kubernetes accepts a label's value, its edges aside.
fn is_label(value: &str) -> bool {
    value.len() <= 63
        && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

/// Whether Kubernetes accepts a namespace's name (RFC 1123 label).
fn is_namespace(name: &str) -> bool {
    let is_edge = |byte: Option<&u8>| {
        byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    let bytes = name.as_bytes();
    name.len() <= 63
        && is_edge(bytes.first())
        && is_edge(bytes.last())
        && bytes.iter().all(|&byte| byte == b'-' || is_edge(Some(&byte)))
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;
    use crate::release::CodecLimits;
    use crate::release::input::{Input, InputLimits, scan};

    /// Found by fuzzing: spaces between a bare record's tokens went.
    #[test]
    fn a_bare_record_stays_as_it_was() {
        let json = include_str!("../../../fuzz/seeds/record/spaced");
        let read = |text: Vec<u8>| {
            let input = Input::Stream("test".to_owned(), Box::new(Cursor::new(text)));
            scan(vec![input], &InputLimits::default(), None, Some).items.remove(0)
        };
        let exported = export(&read(json.into()), json, &ExportTarget::default()).unwrap().object;
        let again = read(goyaml::to_yaml(&exported).unwrap().into_bytes());
        assert_eq!(again.decode(&CodecLimits::default()).unwrap(), json);
    }
}
