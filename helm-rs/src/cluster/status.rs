//! The server's own account of a failure: `metav1.Status`.

use serde_json::{Value, json};

/// A `Status` as the server sent it, or as client-go would make one from an answer that is none.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    /// HTTP status code.
    pub code: u16,
    /// Machine-readable reason, such as `AlreadyExists`; empty when unknown.
    pub reason: String,
    /// What client-go prints.
    pub message: String,
    /// `details`, as sent: the object, causes, seconds to wait; null for none.
    pub details: Value,
}

/// One cause of a failure (`metav1.StatusCause`); texts that are not sent are empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cause<'a> {
    /// Machine-readable, such as `FieldManagerConflict`.
    pub reason: &'a str,
    /// For people.
    pub message: &'a str,
    /// The field that it is about.
    pub field: &'a str,
}

impl Status {
    /// A status without details.
    pub fn new(code: u16, reason: &str, message: impl Into<String>) -> Self {
        Self { code, reason: reason.to_owned(), message: message.into(), details: Value::Null }
    }

    /// Reads a `Status` object.
    pub fn from_object(object: &Value) -> Self {
        let text = |field| object.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        let code = object.get("code").and_then(Value::as_u64);
        Self {
            code: code.and_then(|code| u16::try_from(code).ok()).unwrap_or_default(),
            reason: text("reason"),
            message: text("message"),
            details: object.get("details").cloned().unwrap_or_default(),
        }
    }

    /// The `Status` as an object.
    pub fn to_object(&self) -> Value {
        let mut object = json!({
            "apiVersion": "v1",
            "kind": "Status",
            "metadata": {},
            "status": "Failure",
            "code": self.code,
            "message": self.message,
        });
        if !self.reason.is_empty() {
            object["reason"] = self.reason.as_str().into();
        }
        if !self.details.is_null() {
            object["details"] = self.details.clone();
        }
        object
    }

    /// `details.retryAfterSeconds`.
    pub fn retry_after_seconds(&self) -> Option<u64> {
        self.details.get("retryAfterSeconds").and_then(Value::as_u64).filter(|seconds| *seconds > 0)
    }

    /// Why, one by one.
    pub fn causes(&self) -> impl Iterator<Item = Cause<'_>> {
        let causes = self.details.get("causes").and_then(Value::as_array);
        causes.into_iter().flatten().map(|cause| {
            let text = |field| cause.get(field).and_then(Value::as_str).unwrap_or_default();
            Cause { reason: text("reason"), message: text("message"), field: text("field") }
        })
    }

    /// The status for an answer that brings none, as client-go makes it
    /// (`k8s.io/apimachinery/pkg/api/errors`, `NewGenericServerResponse`).
    ///
    /// `method` is the HTTP method, `resource` the qualified resource (empty for none) and `body`
    /// what came instead.
    pub fn generic(code: u16, method: &str, resource: &str, name: &str, body: &str) -> Self {
        let (reason, message) = match code {
            409 if method == "POST" => ("AlreadyExists", "the server reported a conflict"),
            409 => ("Conflict", "the server reported a conflict"),
            404 => ("NotFound", "the server could not find the requested resource"),
            400 => ("BadRequest", "the server rejected our request for an unknown reason"),
            401 => ("Unauthorized", "the server has asked for the client to provide credentials"),
            403 => ("Forbidden", body),
            406 if body.is_empty() || body == "unknown" => (
                "NotAcceptable",
                "the server was unable to respond with a content type that the client supports",
            ),
            406 => ("NotAcceptable", body),
            415 => ("UnsupportedMediaType", body),
            405 => (
                "MethodNotAllowed",
                "the server does not allow this method on the requested resource",
            ),
            422 => ("Invalid", "the server rejected our request due to an error in our request"),
            503 => ("ServiceUnavailable", "the server is currently unable to handle the request"),
            504 => (
                "Timeout",
                "the server was unable to return a response in the time allotted, but may still be \
                 processing the request",
            ),
            429 => (
                "TooManyRequests",
                "the server has received too many requests and has asked us to try again later",
            ),
            _ => ("", ""),
        };
        let mut message = match (message, code) {
            ("", 403 | 406 | 415) => String::new(),
            ("", 500..) => format!(
                "an error on the server ({}) has prevented the request from succeeding",
                crate::gotext::quote(body)
            ),
            ("", _) => format!(
                "the server responded with the status code {code} but did not return more \
                 information"
            ),
            (message, _) => message.to_owned(),
        };
        let reason = if reason.is_empty() && code >= 500 { "InternalError" } else { reason };
        if !resource.is_empty() {
            let verb = method.to_ascii_lowercase();
            let space = if name.is_empty() { "" } else { " " };
            message.push_str(&format!(" ({verb} {resource}{space}{name})"));
        }
        let (kind, group) = resource.split_once('.').unwrap_or((resource, ""));
        Self {
            code,
            reason: reason.to_owned(),
            message,
            details: json!({
                "group": group,
                "kind": kind,
                "name": name,
                "causes": [{ "reason": "UnexpectedServerResponse", "message": body }],
            }),
        }
    }
}
