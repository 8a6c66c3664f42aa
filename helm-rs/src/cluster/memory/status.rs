//! The API server's refusals, in its words (`apimachinery/pkg/api/errors`).

use serde_json::{Value, json};

use crate::cluster::{Resource, Status};
use crate::gotext::quote;

fn about(resource: &Resource, name: &str) -> Value {
    let mut details = json!({ "name": name, "kind": resource.plural });
    if !resource.kind.group.is_empty() {
        details["group"] = resource.kind.group.as_str().into();
    }
    details
}

fn with_details(mut status: Status, details: Value) -> Status {
    status.details = details;
    status
}

pub(super) fn not_found(resource: &Resource, name: &str) -> Status {
    let message = format!("{} {} not found", resource.qualified(), quote(name));
    with_details(Status::new(404, "NotFound", message), about(resource, name))
}

pub(super) fn already_exists(resource: &Resource, name: &str) -> Status {
    let message = format!("{} {} already exists", resource.qualified(), quote(name));
    with_details(Status::new(409, "AlreadyExists", message), about(resource, name))
}

pub(super) fn conflict(resource: &Resource, name: &str, why: &str) -> Status {
    let message =
        format!("Operation cannot be fulfilled on {} {}: {why}", resource.qualified(), quote(name));
    with_details(Status::new(409, "Conflict", message), about(resource, name))
}

pub(super) fn modified(resource: &Resource, name: &str) -> Status {
    let why = "the object has been modified; please apply your changes to the latest version and try \
         again";
    conflict(resource, name, why)
}

/// A delete's precondition that does not hold; the server names the kind here, not the resource.
pub(super) fn precondition(resource: &Resource, name: &str, why: &str) -> Status {
    let kind = &resource.kind;
    let qualified = if kind.group.is_empty() {
        kind.kind.clone()
    } else {
        format!("{}.{}", kind.kind, kind.group)
    };
    let message = format!("Operation cannot be fulfilled on {qualified} {}: {why}", quote(name));
    let mut details = about(resource, name);
    details["kind"] = kind.kind.as_str().into();
    with_details(Status::new(409, "Conflict", message), details)
}

pub(super) fn bad_request(message: impl Into<String>) -> Status {
    Status::new(400, "BadRequest", message)
}

/// A field that does not pass validation.
pub(super) struct Invalid {
    pub(super) field: String,
    /// `FieldValueInvalid`, `FieldValueRequired`, ….
    pub(super) reason: &'static str,
    /// `Invalid value: "x": …`.
    pub(super) message: String,
}

impl Invalid {
    pub(super) fn value(field: &str, value: &str, why: &str) -> Self {
        Self {
            field: field.to_owned(),
            reason: "FieldValueInvalid",
            message: format!("Invalid value: {}: {why}", quote(value)),
        }
    }

    pub(super) fn required(field: &str, why: &str) -> Self {
        Self {
            field: field.to_owned(),
            reason: "FieldValueRequired",
            message: format!("Required value: {why}"),
        }
    }

    pub(super) fn forbidden(field: &str, why: &str) -> Self {
        Self {
            field: field.to_owned(),
            reason: "FieldValueForbidden",
            message: format!("Forbidden: {why}"),
        }
    }
}

/// `NewInvalid`: one problem bare, several in brackets, each distinct one once.
pub(super) fn invalid(resource: &Resource, name: &str, problems: &[Invalid]) -> Status {
    let kind = &resource.kind;
    let qualified = if kind.group.is_empty() {
        kind.kind.clone()
    } else {
        format!("{}.{}", kind.kind, kind.group)
    };
    let mut texts: Vec<String> = Vec::new();
    for problem in problems {
        let text = format!("{}: {}", problem.field, problem.message);
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    let text = match texts.as_slice() {
        [one] => one.clone(),
        several => format!("[{}]", several.join(", ")),
    };
    let causes: Vec<Value> = problems
        .iter()
        .map(|problem| {
            json!({
                "reason": problem.reason, "message": problem.message, "field": problem.field,
            })
        })
        .collect();
    let mut details = json!({ "kind": kind.kind, "causes": causes });
    if !name.is_empty() {
        details["name"] = name.into();
    }
    if !kind.group.is_empty() {
        details["group"] = kind.group.as_str().into();
    }
    let message = format!("{qualified} {} is invalid: {text}", quote(name));
    with_details(Status::new(422, "Invalid", message), details)
}

/// What a path gets that nothing serves.
pub(super) fn no_resource() -> Status {
    let message = "the server could not find the requested resource";
    with_details(Status::new(404, "NotFound", message), json!({}))
}

/// What a JSON patch gets that does not fit, whatever is wrong (`endpoints/handlers/patch.go`).
pub(super) fn rejected() -> Status {
    let message = "the server rejected our request due to an error in our request";
    with_details(Status::new(422, "Invalid", message), json!({}))
}

/// What client-go makes of the page that a group gets that nobody serves.
pub(super) fn no_group(resource: &Resource, name: &str, verb: &str) -> Status {
    let method = match verb {
        "create" => "POST",
        "update" => "PUT",
        "patch" => "PATCH",
        "delete" => "DELETE",
        _ => "GET",
    };
    Status::generic(404, method, &resource.qualified(), name, "404 page not found")
}

/// The authorizer's refusal (`responsewriters/errors.go`, `ForbiddenStatusError`).
pub(super) fn forbidden(
    resource: &Resource,
    (namespace, name): (&str, &str),
    user: &str,
    verb: &str,
) -> Status {
    let scope = if namespace.is_empty() {
        "at the cluster scope".to_owned()
    } else {
        format!("in the namespace {}", quote(namespace))
    };
    let named = if name.is_empty() { String::new() } else { format!(" {}", quote(name)) };
    let message = format!(
        "{}{named} is forbidden: User {} cannot {verb} resource {} in API group {} {scope}",
        resource.qualified(),
        quote(user),
        quote(&resource.plural),
        quote(&resource.kind.group),
    );
    with_details(Status::new(403, "Forbidden", message), about(resource, name))
}
