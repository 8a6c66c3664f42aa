//! The checks that every object passes (`apimachinery/pkg/api/validation/objectmeta.go`).

use serde_json::Value;

use super::state::{finalizers, meta};
use super::status::{Invalid, bad_request, invalid};
use crate::cluster::{Kind, Resource, Status, Target};

const NAME_RULE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start \
                         and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or \
                         '123-abc', regex used for validation is \
                         '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const VALUE_RULE: &str = "a valid label must be an empty string or consist of alphanumeric \
                          characters, '-', '_' or '.', and must start and end with an alphanumeric \
                          character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for \
                          validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const SUBDOMAIN_RULE: &str = "a lowercase RFC 1123 subdomain must consist of lower case \
                              alphanumeric characters, '-' or '.', and must start and end with an \
                              alphanumeric character (e.g. 'example.com', regex used for \
                              validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL_RULE: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric \
                          characters or '-', and must start and end with an alphanumeric \
                          character (e.g. 'my-name',  or '123-abc', regex used for validation is \
                          '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";

/// Checks that what was sent is for this place.
pub(super) fn placed(target: &Target, object: &Value) -> Result<(), Status> {
    if !object.is_object() {
        return Err(bad_request("the object provided is unrecognized (must be of type object)"));
    }
    let kind = Kind::of(object);
    let wanted = &target.resource.kind;
    if !kind.kind.is_empty() && kind.kind != wanted.kind {
        return Err(bad_request(format!(
            "{} in version {} cannot be handled as a {}",
            kind.kind,
            crate::gotext::quote(kind.version),
            wanted.kind
        )));
    }
    if !kind.version.is_empty() && kind.api_version() != wanted.api_version() {
        return Err(bad_request(format!(
            "the API version in the data ({}) does not match the expected API version ({})",
            kind.api_version(),
            wanted.api_version()
        )));
    }
    let namespace = meta(object, "namespace");
    if target.resource.namespaced && !namespace.is_empty() && namespace != target.namespace {
        return Err(bad_request(
            "the namespace of the provided object does not match the namespace sent on the \
             request",
        ));
    }
    let name = meta(object, "name");
    if !target.name.is_empty() && name != target.name {
        return Err(bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            target.name
        )));
    }
    Ok(())
}

/// Checks the metadata of an object that is to be stored.
pub(super) fn metadata(resource: &Resource, object: &Value) -> Result<(), Status> {
    let name = meta(object, "name");
    let mut problems = Vec::new();
    if name.is_empty() {
        problems.push(Invalid::required("metadata.name", "name or generateName is required"));
    } else if let Some(why) = name_problem(resource, name) {
        problems.push(Invalid::value("metadata.name", name, &why));
    }
    for (field, values) in [("labels", true), ("annotations", false)] {
        let entries = object.pointer(&format!("/metadata/{field}")).and_then(Value::as_object);
        let path = format!("metadata.{field}");
        for (key, value) in entries.into_iter().flatten() {
            if let Some(why) = key_problem(key) {
                problems.push(Invalid::value(&path, key, &why));
            }
            let value = value.as_str().unwrap_or_default();
            if values && value.len() > 63 {
                problems.push(Invalid::value(&path, value, "must be no more than 63 bytes"));
            }
            if values && !value.is_empty() && !is_name(value) {
                problems.push(Invalid::value(&path, value, VALUE_RULE));
            }
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(invalid(resource, name, &problems)) }
}

/// Checks that an object that is being deleted gets no new finalizers.
pub(super) fn no_new_finalizers(
    resource: &Resource,
    before: &Value,
    after: &Value,
) -> Result<(), Status> {
    if meta(before, "deletionTimestamp").is_empty() {
        return Ok(());
    }
    let known = finalizers(before);
    let new: Vec<_> =
        finalizers(after).into_iter().filter(|finalizer| !known.contains(finalizer)).collect();
    if new.is_empty() {
        return Ok(());
    }
    let list: Vec<_> = new.into_iter().map(crate::gotext::quote).collect();
    let why = format!(
        "no new finalizers can be added if the object is being deleted, found new finalizers \
         []string{{{}}}",
        list.join(", ")
    );
    // A server checks it twice.
    let problem = || Invalid::forbidden("metadata.finalizers", &why);
    Err(invalid(resource, meta(before, "name"), &[problem(), problem()]))
}

/// Letters, digits and `-_.` inside, letters and digits at both ends.
fn is_name(text: &str) -> bool {
    let bytes = text.as_bytes();
    let edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    edge(bytes.first())
        && edge(bytes.last())
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
}

fn is_dns_label(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    bytes.first().copied().is_some_and(plain)
        && bytes.last().copied().is_some_and(plain)
        && bytes.iter().all(|byte| plain(*byte) || *byte == b'-')
}

fn name_problem(resource: &Resource, name: &str) -> Option<String> {
    match (resource.kind.group.as_str(), resource.plural.as_str()) {
        // Roles and bindings may have any name that fits a path segment.
        ("rbac.authorization.k8s.io", _) => {
            if name == "." || name == ".." {
                Some(format!("may not be '{name}'"))
            } else if name.contains('/') {
                Some("may not contain '/'".to_owned())
            } else if name.contains('%') {
                Some("may not contain '%'".to_owned())
            } else {
                None
            }
        }
        ("", "namespaces" | "services") => {
            if name.len() > 63 {
                Some("must be no more than 63 bytes".to_owned())
            } else {
                (!is_dns_label(name)).then(|| LABEL_RULE.to_owned())
            }
        }
        _ if name.len() > 253 => Some("must be no more than 253 bytes".to_owned()),
        _ => (!name.split('.').all(is_dns_label)).then(|| SUBDOMAIN_RULE.to_owned()),
    }
}

/// `IsQualifiedName`.
fn key_problem(key: &str) -> Option<String> {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    if name.contains('/') {
        return Some(format!(
            "a valid label key {NAME_RULE} with an optional DNS subdomain prefix and '/' (e.g. \
             'example.com/MyName')"
        ));
    }
    match prefix {
        Some("") => return Some("prefix part must be non-empty".to_owned()),
        Some(prefix) if !prefix.split('.').all(is_dns_label) => {
            return Some(format!("prefix part {SUBDOMAIN_RULE}"));
        }
        _ => {}
    }
    if name.is_empty() {
        return Some("name part must be non-empty".to_owned());
    }
    if name.len() > 63 {
        return Some("name part must be no more than 63 bytes".to_owned());
    }
    (!is_name(name)).then(|| format!("name part {NAME_RULE}"))
}
