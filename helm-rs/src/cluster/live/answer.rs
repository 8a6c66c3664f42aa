//! The server's answers.

use bytes::Bytes;
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::cluster::{ClusterError, Kind, Page, ReadError, Status};

/// A good answer: its body, read to the end.
pub(super) struct Answer {
    pub(super) body: Bytes,
    /// The server's time.
    pub(super) date: Option<Timestamp>,
}

impl Answer {
    pub(super) fn parse<T: DeserializeOwned>(&self) -> Result<T, ClusterError> {
        serde_json::from_slice(&self.body)
            .map_err(|error| ReadError { reason: format!("the server's answer: {error}") }.into())
    }

    pub(super) fn value(&self) -> Result<Value, ClusterError> {
        let value: Value = self.parse()?;
        if value.get("kind").is_some_and(|kind| kind == "Status")
            && value.get("status").is_some_and(|status| status == "Failure")
        {
            return Err(ClusterError::from_status_object(&value));
        }
        Ok(value)
    }

    /// A page of a list; its items get the kind that the list implies.
    pub(super) fn page(&self, kind: &Kind) -> Result<Page, ClusterError> {
        #[derive(serde::Deserialize)]
        struct List {
            #[serde(default)]
            metadata: Metadata,
            #[serde(default)]
            items: Option<Vec<Value>>,
        }
        #[derive(Default, serde::Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        struct Metadata {
            resource_version: Option<String>,
            #[serde(rename = "continue")]
            next: Option<String>,
        }
        let list: List = self.parse()?;
        let mut items = list.items.unwrap_or_default();
        let api_version = kind.api_version();
        for item in items.iter_mut().filter_map(Value::as_object_mut) {
            item.insert("apiVersion".to_owned(), api_version.as_str().into());
            item.insert("kind".to_owned(), kind.kind.as_str().into());
        }
        Ok(Page {
            items,
            resource_version: list.metadata.resource_version.unwrap_or_default(),
            next: list.metadata.next.unwrap_or_default(),
        })
    }
}

/// The error for a bad answer: its `Status`, or what client-go makes of an answer without one
/// (`rest/request.go`, `newUnstructuredResponseError`).
pub(super) fn refusal(
    code: u16,
    method: &str,
    (resource, name): (&str, &str),
    content_type: &str,
    body: &[u8],
) -> Status {
    if let Ok(object) = serde_json::from_slice::<Value>(body)
        && object.get("kind").is_some_and(|kind| kind == "Status")
    {
        let mut status = Status::from_object(&object);
        if status.code == 0 {
            status.code = code;
        }
        return status;
    }
    // Asked for in protobuf, the refusal is in protobuf too.
    if let Some(mut status) = Status::from_protobuf(body) {
        if status.code == 0 {
            status.code = code;
        }
        return status;
    }
    let body = body.get(..2048).unwrap_or(body);
    let text = if content_type.is_empty() || content_type.starts_with("text/") {
        String::from_utf8_lossy(body).trim().to_owned()
    } else {
        "unknown".to_owned()
    };
    Status::generic(code, method, resource, name, &text)
}
