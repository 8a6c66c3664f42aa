//! Label and field selectors.

use serde_json::Value;

use super::status::bad_request;
use crate::cluster::{Resource, Status};
use crate::gotext::quote;

/// One requirement on a label.
#[derive(Debug, PartialEq, Eq)]
enum Requirement {
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Exists(String),
    Absent(String),
}

/// A label selector (`apimachinery/pkg/labels`).
#[derive(Debug, Default)]
pub(super) struct Labels(Vec<Requirement>);

impl Labels {
    pub(super) fn parse(text: &str) -> Result<Self, Status> {
        let mut rest = text.trim();
        let mut requirements = Vec::new();
        while !rest.is_empty() {
            let (requirement, after) = requirement(rest)?;
            requirements.push(requirement);
            rest = after.trim_start();
            match rest.strip_prefix(',') {
                Some(after) if !after.trim_start().is_empty() => rest = after.trim_start(),
                Some(_) => return Err(fail("found '', expected: identifier after ','")),
                None if rest.is_empty() => {}
                None => {
                    return Err(fail(&format!("found '{rest}', expected: ',' or 'end of string'")));
                }
            }
        }
        Ok(Self(requirements))
    }

    pub(super) fn matches(&self, object: &Value) -> bool {
        let label = |name: &str| {
            object.pointer("/metadata/labels").and_then(|labels| labels.get(name)?.as_str())
        };
        self.0.iter().all(|requirement| match requirement {
            Requirement::In(name, values) => {
                label(name).is_some_and(|value| values.iter().any(|one| one == value))
            }
            Requirement::NotIn(name, values) => {
                label(name).is_none_or(|value| values.iter().all(|one| one != value))
            }
            Requirement::Exists(name) => label(name).is_some(),
            Requirement::Absent(name) => label(name).is_none(),
        })
    }
}

fn fail(why: &str) -> Status {
    bad_request(format!("unable to parse requirement: {why}"))
}

/// A word: everything up to a space or a sign.
fn word(text: &str) -> (&str, &str) {
    let end = text
        .find(|c: char| c.is_whitespace() || matches!(c, ',' | '=' | '!' | '(' | ')' | '<' | '>'))
        .unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    (word, rest.trim_start())
}

fn requirement(text: &str) -> Result<(Requirement, &str), Status> {
    if let Some(rest) = text.strip_prefix('!') {
        let (name, rest) = word(rest.trim_start());
        return Ok((Requirement::Absent(name.to_owned()), rest));
    }
    let (name, rest) = word(text);
    if name.is_empty() {
        let found: String = rest.chars().take(1).collect();
        return Err(fail(&format!("found '{found}', expected: !, identifier, or 'end of string'")));
    }
    let name = name.to_owned();
    if rest.is_empty() || rest.starts_with(',') {
        return Ok((Requirement::Exists(name), rest));
    }
    for (sign, positive) in [("==", true), ("!=", false), ("=", true)] {
        if let Some(rest) = rest.strip_prefix(sign) {
            let (value, rest) = word(rest.trim_start());
            if rest.starts_with('=') {
                return Err(fail("found '=', expected: identifier"));
            }
            let values = vec![value.to_owned()];
            let requirement = if positive {
                Requirement::In(name, values)
            } else {
                Requirement::NotIn(name, values)
            };
            return Ok((requirement, rest));
        }
    }
    let (operator, rest) = word(rest);
    if matches!(operator, "in" | "notin") && rest.starts_with('(') && !rest.contains(')') {
        return Err(fail("found '', expected: ',' or ')'"));
    }
    let inside = rest.strip_prefix('(').and_then(|rest| rest.split_once(')'));
    let (Some((values, rest)), "in" | "notin") = (inside, operator) else {
        return Err(fail(&format!("found '{operator}', expected: in, notin, =, ==, !=, gt, lt")));
    };
    let values = values.split(',').map(|value| value.trim().to_owned()).collect();
    let requirement = if operator == "in" {
        Requirement::In(name, values)
    } else {
        Requirement::NotIn(name, values)
    };
    Ok((requirement, rest))
}

/// A field selector: terms that must all hold.
#[derive(Debug, Default)]
pub(super) struct Fields(Vec<(String, String, bool)>);

/// The fields that a resource can be selected by, beside name and namespace
/// (`kubernetes/pkg/apis/*/v1/conversion.go`).
fn known(resource: &Resource, field: &str) -> bool {
    if field == "metadata.name" || field == "metadata.namespace" && resource.namespaced {
        return true;
    }
    let fields: &[&str] = match (resource.kind.group.as_str(), resource.plural.as_str()) {
        ("", "pods") => &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.nominatedNodeName",
        ],
        ("", "nodes") => &["spec.unschedulable"],
        ("", "namespaces") => &["status.phase"],
        ("", "secrets") => &["type"],
        ("", "services") => &["spec.clusterIP", "spec.type"],
        ("", "events") => &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
        ("batch", "jobs") => &["status.successful"],
        _ => &[],
    };
    fields.contains(&field)
}

impl Fields {
    pub(super) fn parse(text: &str, resource: &Resource) -> Result<Self, Status> {
        let mut terms = Vec::new();
        for term in text.split(',').filter(|term| !term.is_empty()) {
            let (field, value, equal) = if let Some((field, value)) = term.split_once("!=") {
                (field, value, false)
            } else if let Some((field, value)) = term.split_once("==") {
                (field, value, true)
            } else if let Some((field, value)) = term.split_once('=') {
                (field, value, true)
            } else {
                return Err(bad_request(format!(
                    "invalid selector: '{text}'; can't understand '{term}'"
                )));
            };
            if !known(resource, field) {
                return Err(bad_request(unknown_field(resource, field)));
            }
            terms.push((field.to_owned(), value.to_owned(), equal));
        }
        Ok(Self(terms))
    }

    pub(super) fn matches(&self, object: &Value) -> bool {
        self.0.iter().all(|(field, value, equal)| {
            let pointer = format!("/{}", field.replace('.', "/"));
            let found = match object.pointer(&pointer) {
                Some(Value::String(text)) => text.clone(),
                Some(Value::Null) | None => String::new(),
                Some(other) => other.to_string(),
            };
            (found == *value) == *equal
        })
    }
}

/// The server's words, which depend on whether the kind has a list of its own.
fn unknown_field(resource: &Resource, field: &str) -> String {
    match (resource.kind.group.as_str(), resource.plural.as_str()) {
        ("", "pods" | "nodes" | "namespaces" | "secrets" | "services" | "events") => {
            format!("field label not supported: {field}")
        }
        ("batch", "jobs") => format!("field label {} not supported for Job", quote(field)),
        _ => format!(
            "{} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"",
            quote(field)
        ),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Labels;

    #[test]
    fn selectors_select() {
        let object = json!({ "metadata": { "labels": { "a": "1", "b": "x" } } });
        for (selector, expected) in [
            ("", true),
            ("a=1,b==x", true),
            ("a!=1", false),
            ("c!=1", true),
            ("a in (1, 2), b", true),
            ("a notin (1,2)", false),
            ("!c", true),
            ("!a", false),
            ("c", false),
        ] {
            assert_eq!(Labels::parse(selector).unwrap().matches(&object), expected, "{selector}");
        }
        for broken in ["a===", "a in 1", "=", "a b", "a,"] {
            assert!(Labels::parse(broken).is_err(), "{broken}");
        }
    }
}
