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
    for document in parsed(manifest) {
        let value = match document.and_then(|document| check(document, validate)) {
            Ok(value) => value,
            Err(error) => {
                // What cannot be decoded is told with the others; what does not parse or is not
                // valid ends the stream (`StreamVisitor.Visit`).
                let ends = matches!(error, BuildError::Parse(_) | BuildError::Validate(_));
                errors.push(error);
                if ends {
                    break;
                }
                continue;
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

/// A document, and its JSON as Go's messages quote it.
type Document = (Value, String);

/// The documents of a stream up to the first that does not read; those without a value are left
/// out (`YAMLOrJSONDecoder`). A stream that begins as JSON is read as JSON for as long as that
/// goes, and then as YAML; where the first document after that is no YAML either, it is JSON's
/// error that is told.
fn parsed(manifest: &[u8]) -> Vec<Result<Document, BuildError>> {
    let mut found = Vec::new();
    let Ok((rest, mut no_json)) = json(manifest, &mut found) else { return found };
    for document in documents(rest) {
        let read = document.and_then(read);
        let no_json = no_json.take();
        match read {
            Ok(None) => {}
            Ok(Some(document)) => found.push(Ok(document)),
            Err(error) => {
                found.push(Err(no_json.unwrap_or(error)));
                break;
            }
        }
    }
    found
}

/// More JSON documents than this are no YAML that looked like JSON at first.
const AMBIGUOUS: usize = 1;

/// What broke a stream off of which nothing more is read.
struct Ended;

/// The JSON documents that a stream begins with. Returns what is left to be read as YAML and why it
/// is no JSON.
fn json<'m>(
    manifest: &'m [u8],
    found: &mut Vec<Result<Document, BuildError>>,
) -> Result<(&'m [u8], Option<BuildError>), Ended> {
    if !manifest.trim_ascii_start().starts_with(b"{") {
        return Ok((manifest, None));
    }
    let mut at = 0;
    loop {
        let rest = manifest.get(at..).unwrap_or_default();
        if rest.trim_ascii_start().is_empty() {
            return Err(Ended);
        }
        let mut stream = serde_json::Deserializer::from_slice(rest).into_iter::<Value>();
        if let Some(Ok(value)) = stream.next() {
            let text = rest.get(..stream.byte_offset()).unwrap_or_default().trim_ascii();
            if !value.is_null() {
                found.push(Ok((value, String::from_utf8_lossy(text).into_owned())));
            }
            at += stream.byte_offset();
            continue;
        }
        let error = match goyaml::json::from_json_prefix(rest, &goyaml::Limits::default()) {
            Err(goyaml::json::Error::Syntax { message, .. }) if found.len() > AMBIGUOUS => message,
            Err(goyaml::json::Error::Syntax { message, offset }) => {
                format!("json: offset {}: {message}", at + offset)
            }
            Err(error) => error.to_string(),
            Ok(_) => "the JSON is too deep, or no UTF-8".to_owned(),
        };
        let error = BuildError::Parse(error);
        if found.len() > AMBIGUOUS {
            found.push(Err(error));
            return Err(Ended);
        }
        // Up to the end of a line: a line of dashes may follow.
        let blanks = rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let line = rest.iter().take(blanks).position(|byte| *byte == b'\n').map(|end| end + 1);
        return Ok((rest.get(line.unwrap_or(blanks)..).unwrap_or_default(), Some(error)));
    }
}

/// One YAML document as JSON; none when it is empty or null.
fn read(document: &[u8]) -> Result<Option<Document>, BuildError> {
    if document.trim_ascii().is_empty() {
        return Ok(None);
    }
    let parse = |error: &dyn std::fmt::Display| BuildError::Parse(error.to_string());
    let value = goyaml::from_yaml_exact(document, &goyaml::Limits::default())
        .map_err(|error| parse(&error))?;
    let json = goyaml::json::to_json(&value).map_err(|error| parse(&error))?;
    drop(value);
    let value: Value = serde_json::from_str(&json).map_err(|error| parse(&error))?;
    Ok((!value.is_null()).then_some((value, json)))
}

/// A document that says what it is.
fn check((value, json): Document, validate: bool) -> Result<Value, BuildError> {
    if !value.is_object() {
        return Err(if validate {
            BuildError::Validate("invalid object to validate".to_owned())
        } else {
            BuildError::Metadata(format!(
                "json: cannot unmarshal {} into Go value of type unstructured.detector",
                super::metadata::word(&value)
            ))
        });
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
    Ok(value)
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
        let version = value.get("apiVersion").filter(|it| !it.is_null() && !it.is_string());
        if let Some(version) = version {
            return Err(BuildError::Metadata(format!(
                "json: cannot unmarshal {} into Go struct field \
                 metadataOnlyObject.TypeMeta.apiVersion of type string",
                super::metadata::word(version)
            )));
        }
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

#[cfg(test)]
mod tests {
    use super::{BuildError, build};
    use crate::cluster::Discovery;

    #[test]
    fn what_is_no_object_is_told_in_gos_words() {
        let text = |manifest: &str, validate| match build(
            &Discovery::default(),
            manifest.as_bytes(),
            "default",
            validate,
        ) {
            Ok(items) => format!("{} objects", items.len()),
            Err(error) => error.to_string(),
        };
        for nothing in ["", "# x\n", "---\n", "null\n", "{}{}"] {
            let expected = if nothing == "{}{}" { "Object 'Kind' is missing" } else { "0 objects" };
            assert!(text(nothing, false).contains(expected), "{nothing}");
        }
        let decode = "unable to decode \"\": json: cannot unmarshal";
        let into = "into Go value of type unstructured.detector";
        for (manifest, kind) in
            [("foo", "string"), ("[]", "array"), ("5", "number"), ("true", "bool")]
        {
            assert_eq!(text(manifest, false), format!("{decode} {kind} {into}"));
            let invalid =
                "error validating \"\": error validating data: invalid object to validate";
            assert_eq!(text(manifest, true), invalid);
        }
        assert_eq!(
            text("{{ bad\n", false),
            "error parsing : json: offset 2: invalid character '{' looking for beginning of object \
             key string"
        );
        assert_eq!(text("{\"a\":1\n", false), "error parsing : unexpected EOF");
        let missing = "unable to decode \"\": Object 'Kind' is missing in";
        assert_eq!(
            text("{\"a\":1}{\"b\":2}x", false),
            format!(
                "[{missing} '{{\"a\":1}}', {missing} '{{\"b\":2}}', error parsing : invalid \
                 character 'x' looking for beginning of value]"
            )
        );
        // No JSON, and YAML.
        assert!(text("{bad}", false).contains("Object 'Kind' is missing in '{\"bad\":null}'"));
        let two = build(
            &Discovery::default(),
            b"{\"kind\":\"A\",\"apiVersion\":\"v1\"} {\"kind\":\"B\",\"apiVersion\":\"v1\"}",
            "",
            false,
        );
        let Err(BuildError::Several { errors }) = two else { panic!("{two:?}") };
        assert_eq!(errors.len(), 2);
    }
}
