//! From a manifest to objects with addresses: what `Client.Build` makes with the builder of
//! `k8s.io/cli-runtime/pkg/resource`.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::Item;
use super::field::text;
use crate::cluster::{Discovery, Kind, Resource, Target};
use crate::gotext::quote;

/// A manifest that cannot be brought to the cluster.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// A document is no YAML.
    #[error("error parsing : {0}")]
    Parse(String),
    /// A document does not say what it is.
    #[error("error validating \"\": error validating data: {0}")]
    Validate(String),
    /// As before, when nothing is validated.
    #[error("unable to decode \"\": Object 'Kind' is missing in '{0}'")]
    NoKind(String),
    /// The metadata have a wrong type.
    #[error("unable to decode \"\": {0}")]
    Metadata(String),
    /// The server does not know the kind.
    #[error(
        "resource mapping not found for name: {} namespace: {} from \"\": no matches for kind {} in version {}\nensure CRDs are installed first{down}",
        quote(name),
        quote(namespace),
        quote(kind),
        quote(api_version)
    )]
    NoMatch {
        /// The object's name.
        name: String,
        /// The object's own namespace.
        namespace: String,
        /// Its kind.
        kind: String,
        /// Its version.
        api_version: String,
        /// What keeps the server from knowing, where that is known.
        down: String,
    },
    /// As before, for an object in a list.
    #[error(
        "unable to recognize no matches for kind {} in version {}",
        quote(kind),
        quote(api_version)
    )]
    NoMatchInList {
        /// The kind.
        kind: String,
        /// Its version.
        api_version: String,
    },
    /// Several of them (`utilerrors.Aggregate`).
    #[error("[{}]", distinct(errors))]
    Several {
        /// Each of them.
        errors: Vec<Self>,
    },
}

fn distinct(errors: &[BuildError]) -> String {
    let mut texts: Vec<String> = Vec::new();
    for error in errors {
        let text = error.to_string();
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    texts.join(", ")
}

/// The objects of a manifest, in its order, lists taken apart. Objects without a namespace get
/// `namespace`.
///
/// `validate` stands for Helm's OpenAPI validation. Against a server that validates fields itself,
/// as all of the last years do, Helm only checks that every object says what it is.
///
/// # Errors
/// All objects that are wrong, in one error.
pub fn build(
    discovery: &Discovery,
    manifest: &[u8],
    namespace: &str,
    validate: bool,
) -> Result<Vec<Item>, BuildError> {
    let mut items = Vec::new();
    let mut errors = Vec::new();
    for document in documents(manifest) {
        // As in the Go code, a broken document ends the stream.
        let value = match document.and_then(|document| read(document, validate)) {
            Ok(None) => continue,
            Ok(Some(value)) => value,
            Err(error) => {
                errors.push(error);
                break;
            }
        };
        if let Err(error) = place(discovery, value, namespace, &mut items) {
            errors.push(error);
        }
    }
    match errors.pop() {
        None => Ok(items),
        Some(error) if errors.is_empty() => Err(error),
        Some(error) => {
            errors.push(error);
            Err(BuildError::Several { errors })
        }
    }
}

/// Cuts the stream at lines that begin with three hyphens (`YAMLReader.Read`).
fn documents(manifest: &[u8]) -> Vec<Result<&[u8], BuildError>> {
    let mut documents = Vec::new();
    let (mut start, mut at) = (0, 0);
    while at < manifest.len() {
        let rest = manifest.get(at..).unwrap_or_default();
        let length = rest.iter().position(|&byte| byte == b'\n').map_or(rest.len(), |end| end + 1);
        let line = rest.get(..length).unwrap_or_default();
        if let Some(after) = line.strip_prefix(b"---") {
            let after = after.trim_ascii();
            if !after.is_empty() && !after.starts_with(b"#") {
                let after = String::from_utf8_lossy(after).into_owned();
                documents.push(Err(BuildError::Parse(format!(
                    "invalid Yaml document separator: {after}"
                ))));
                return documents;
            }
            documents.push(Ok(manifest.get(start..at).unwrap_or_default()));
            start = at + length;
        }
        at += length;
    }
    documents.push(Ok(manifest.get(start..).unwrap_or_default()));
    documents
}

/// One document as JSON; none when it is empty or null.
fn read(document: &[u8], validate: bool) -> Result<Option<Value>, BuildError> {
    if document.trim_ascii().is_empty() {
        return Ok(None);
    }
    let parse = |error: &dyn std::fmt::Display| BuildError::Parse(error.to_string());
    let value = goyaml::from_yaml_exact(document, &goyaml::Limits::default())
        .map_err(|error| parse(&error))?;
    let json = goyaml::json::to_json(&value).map_err(|error| parse(&error))?;
    drop(value);
    let value: Value = serde_json::from_str(&json).map_err(|error| parse(&error))?;
    if value.is_null() {
        return Ok(None);
    }
    let field = |name: &str| match value.get(name) {
        None | Some(Value::Null) => Some(format!("{name} not set")),
        Some(Value::String(_)) => None,
        Some(_) => Some(format!("{name} isn't string type")),
    };
    let faults: Vec<String> = ["apiVersion", "kind"].into_iter().filter_map(field).collect();
    match faults.as_slice() {
        [one] if validate => return Err(BuildError::Validate(one.clone())),
        [_, ..] if validate => {
            return Err(BuildError::Validate(format!("[{}]", faults.join(", "))));
        }
        _ => {}
    }
    if text(&value, "/kind").is_empty() {
        return Err(BuildError::NoKind(json));
    }
    Ok(Some(value))
}

/// Adds an object, or those of a list.
fn place(
    discovery: &Discovery,
    value: Value,
    namespace: &str,
    items: &mut Vec<Item>,
) -> Result<(), BuildError> {
    let kind = Kind::of(&value);
    if !matches!(value.get("items"), Some(Value::Array(_) | Value::Null)) {
        if let Some(fault) = super::metadata::fault(&value) {
            return Err(BuildError::Metadata(fault));
        }
        let resource = discovery.resource(&kind).cloned().ok_or_else(|| {
            let down = discovery
                .failed()
                .iter()
                .find(|failed| failed.group_version == kind.api_version())
                .map(|failed| {
                    format!(" (the server of {} is down: {})", failed.group_version, failed.problem)
                });
            BuildError::NoMatch {
                name: text(&value, "/metadata/name").to_owned(),
                namespace: text(&value, "/metadata/namespace").to_owned(),
                kind: kind.kind.clone(),
                api_version: kind.api_version(),
                down: down.unwrap_or_default(),
            }
        })?;
        items.push(item(&resource, value, namespace));
        return Ok(());
    }
    // Lists within lists are taken apart too, after the objects beside them.
    let mut errors = Vec::new();
    let mut lists = vec![value];
    let mut next = 0;
    while let Some(list) = lists.get_mut(next) {
        next += 1;
        let members = list.get_mut("items").map(Value::take).unwrap_or_default();
        let Value::Array(members) = members else { continue };
        for member in members {
            if matches!(member.get("items"), Some(Value::Array(_) | Value::Null)) {
                lists.push(member);
                continue;
            }
            let kind = Kind::of(&member);
            match discovery.resource(&kind) {
                Some(resource) => items.push(item(resource, member, namespace)),
                None => errors.push(BuildError::NoMatchInList {
                    api_version: kind.api_version(),
                    kind: kind.kind,
                }),
            }
        }
    }
    match errors.pop() {
        None => Ok(()),
        Some(error) if errors.is_empty() => Err(error),
        Some(error) => {
            errors.push(error);
            Err(BuildError::Several { errors })
        }
    }
}

/// The object with its namespace: given where it has none (`SetNamespace`). One that stands on a
/// cluster-scoped object is left there; the address has none.
fn item(resource: &Arc<Resource>, mut value: Value, namespace: &str) -> Item {
    let target = Target::of(resource, &value, namespace);
    if resource.namespaced
        && text(&value, "/metadata/namespace").is_empty()
        && let Some(object) = value.as_object_mut()
    {
        let metadata = object.entry("metadata").or_insert_with(|| Value::Object(Map::default()));
        if let Some(metadata) = metadata.as_object_mut() {
            metadata.insert("namespace".to_owned(), Value::from(target.namespace.as_str()));
        }
    }
    Item { target, value }
}
