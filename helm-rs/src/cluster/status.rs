//! The server's own account of a failure: `metav1.Status`.

use serde_json::{Map, Value, json};

use crate::protobuf::{self, MAGIC, Message, ProtobufError};

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

    /// Reads a `Status` in Kubernetes' protobuf form; none when it is something else.
    pub fn from_protobuf(body: &[u8]) -> Option<Self> {
        let mut raw: &[u8] = &[];
        let mut kind: &[u8] = &[];
        for field in Message::new(body.strip_prefix(MAGIC)?) {
            match field.ok()? {
                // `runtime.Unknown`: what it is, and it.
                (1, protobuf::Value::Bytes(about)) => kind = last_text(about, 2).ok()?,
                (2, protobuf::Value::Bytes(text)) => raw = text,
                _ => {}
            }
        }
        if kind == b"Status" { status(raw).ok() } else { None }
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

/// The text of a field.
fn last_text(message: &[u8], wanted: u64) -> Result<&[u8], ProtobufError> {
    let mut found: &[u8] = &[];
    for field in Message::new(message) {
        if let (number, protobuf::Value::Bytes(text)) = field?
            && number == wanted
        {
            found = text;
        }
    }
    Ok(found)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// `Status` of `k8s.io/apimachinery/pkg/apis/meta/v1/generated.proto`.
fn status(message: &[u8]) -> Result<Status, ProtobufError> {
    let mut status = Status::new(0, "", "");
    for field in Message::new(message) {
        match field? {
            (3, protobuf::Value::Bytes(message)) => status.message = text(message),
            (4, protobuf::Value::Bytes(reason)) => status.reason = text(reason),
            (5, protobuf::Value::Bytes(message)) => status.details = details(message)?,
            (6, protobuf::Value::Number(code)) => {
                status.code = u16::try_from(code).unwrap_or_default();
            }
            _ => {}
        }
    }
    Ok(status)
}

/// `StatusDetails`
fn details(message: &[u8]) -> Result<Value, ProtobufError> {
    let mut details = Map::new();
    let mut causes = Vec::new();
    for field in Message::new(message) {
        let (number, value) = field?;
        let name = match number {
            1 => "name",
            2 => "group",
            3 => "kind",
            6 => "uid",
            4 => {
                if let protobuf::Value::Bytes(cause) = value {
                    causes.push(json!({
                        "reason": text(last_text(cause, 1)?),
                        "message": text(last_text(cause, 2)?),
                        "field": text(last_text(cause, 3)?),
                    }));
                }
                continue;
            }
            5 => "retryAfterSeconds",
            _ => continue,
        };
        match value {
            // Go writes what is empty, too.
            protobuf::Value::Bytes(b"") | protobuf::Value::Number(0) | protobuf::Value::Other => {}
            protobuf::Value::Bytes(value) => {
                details.insert(name.to_owned(), text(value).into());
            }
            protobuf::Value::Number(value) => {
                details.insert(name.to_owned(), value.into());
            }
        }
    }
    if !causes.is_empty() {
        details.insert("causes".to_owned(), causes.into());
    }
    Ok(if details.is_empty() { Value::Null } else { details.into() })
}

#[cfg(test)]
mod tests {
    use super::Status;

    #[test]
    fn a_refusal_in_protobuf_keeps_its_words() {
        let field = |number: u8, text: &[u8]| {
            let mut out = vec![number << 3 | 2, u8::try_from(text.len()).unwrap()];
            out.extend_from_slice(text);
            out
        };
        let details = [field(3, b"secrets"), field(4, &field(2, b"why")), vec![5 << 3, 3]].concat();
        let status = [
            field(1, b""),
            field(2, b"Failure"),
            field(3, b"secrets is forbidden"),
            field(4, b"Forbidden"),
            field(5, &details),
            vec![6 << 3, 0x93, 0x03],
        ]
        .concat();
        let about = [field(1, b"v1"), field(2, b"Status")].concat();
        let body = [b"k8s\0".to_vec(), field(1, &about), field(2, &status)].concat();
        let status = Status::from_protobuf(&body).unwrap();
        assert_eq!((status.code, status.reason.as_str()), (403, "Forbidden"));
        assert_eq!(status.message, "secrets is forbidden");
        assert_eq!(status.retry_after_seconds(), Some(3));
        assert_eq!(status.causes().next().unwrap().message, "why");
        for broken in [&body[..4], &body[..20], &body[..body.len() - 1], b"k8s"] {
            assert_eq!(Status::from_protobuf(broken), None);
        }
        let other = [b"k8s\0".to_vec(), field(1, &field(2, b"Secret"))].concat();
        assert_eq!(Status::from_protobuf(&other), None);
    }
}
