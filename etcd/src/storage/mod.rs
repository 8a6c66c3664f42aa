//! What an API server stores: Kubernetes objects under keys.
//!
//! ```text
//! /registry/secrets/default/name ─ key ─► resource, namespace, name
//! value ─ k8s\0 ─► runtime.Unknown { apiVersion, kind, raw } ─ table of kinds ─► object
//!       └ JSON (custom resources, CRDs, APIServices) ───────────────────────────► object
//! ```
//!
//! An object is what `kubectl get -o json` shows of it in the version that it is stored in, without
//! the defaults that a newer server adds while reading; CRDs in the version that is served.

mod crd;
mod decode;
mod envelope;
mod key;
mod kinds;

use goyaml::{Limits, Map, Value};

pub use decode::DecodeError;
pub(crate) use envelope::ENCRYPTED;
pub use envelope::{Envelope, EnvelopeError};
pub use key::{Layout, ObjectKey};

/// Bytes of an object's text that are read: more than etcd takes.
const VALUES: usize = 1_000_000;

/// A value that is no object.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// It has none of the forms.
    #[error(transparent)]
    Envelope(#[from] EnvelopeError),
    /// The JSON does not read.
    #[error("the JSON does not read")]
    Json(#[from] goyaml::json::Error),
    /// The protobuf does not read.
    #[error("the {kind} does not read")]
    Decode {
        /// Version and kind.
        kind: String,
        /// What is wrong.
        source: DecodeError,
    },
    /// The JSON is no object.
    #[error("the JSON is no object")]
    NoObject,
}

/// An object as it was stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored {
    /// The object.
    pub object: Map,
    /// Whether all of it was read. Of a kind that the table does not have, only the head is.
    pub is_whole: bool,
}

/// Reads a value that is not encrypted, or no longer. `revision` is that of its last change, which
/// is the object's `resourceVersion` (`PrepareObjectForStorage` in apiserver's `storage` leaves it
/// out of what is stored).
///
/// # Errors
/// [`StorageError`] says what the value is not.
pub fn object(value: &[u8], revision: i64) -> Result<Stored, StorageError> {
    let (mut object, is_whole) = match Envelope::read(value)? {
        Envelope::Json(text) => {
            let limits = Limits { max_nodes: VALUES, ..Limits::default() };
            match goyaml::json::from_json_exact(text, &limits)? {
                Value::Map(mut object) => {
                    crd::convert(&mut object);
                    (object, true)
                }
                _ => return Err(StorageError::NoObject),
            }
        }
        Envelope::Protobuf { api_version, kind, raw } => {
            let failed =
                |source| StorageError::Decode { kind: format!("{api_version} {kind}"), source };
            let (mut object, is_whole) = match kinds::table().kind(&api_version, &kind) {
                Some(number) => (decode::message(raw, number).map_err(failed)?, true),
                None => (decode::head(raw).map_err(failed)?, false),
            };
            object.insert("apiVersion", api_version.as_str());
            object.insert("kind", kind.as_str());
            (object, is_whole)
        }
    };
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_map_mut) {
        metadata.insert("resourceVersion", revision.to_string());
    }
    Ok(Stored { object, is_whole })
}

/// The namespace and the name that a built-in object says it has; `None` when it does not read.
pub fn names(raw: &[u8]) -> Option<(String, String)> {
    let object = decode::head(raw).ok()?;
    let metadata = object.get("metadata")?.as_map()?;
    let text = |field| {
        metadata.get(field).and_then(Value::as_str).map(ToString::to_string).unwrap_or_default()
    };
    Some((text("namespace"), text("name")))
}

#[cfg(test)]
mod tests {
    use super::object;

    #[test]
    fn json_is_read_as_it_stands() {
        let stored =
            object(b"{\"kind\":\"A\",\"metadata\":{\"name\":\"a\"},\"x\":[1]}\n", 7).unwrap();
        let text = goyaml::json::to_json(&goyaml::Value::Map(stored.object)).unwrap();
        assert_eq!(text, r#"{"kind":"A","metadata":{"name":"a","resourceVersion":"7"},"x":[1]}"#);
    }

    #[test]
    fn a_secret() {
        let message =
            b"k8s\0\x0a\x0c\x0a\x02v1\x12\x06Secret\x12\x1c\x0a\x09\x0a\x01n\x12\0\x1a\x02ns\
            \x12\x07\x0a\x01k\x12\x02hi\x1a\x06Opaque\x1a\0\x22\0";
        let stored = object(message, 3).unwrap();
        assert!(stored.is_whole);
        let text = goyaml::json::to_json(&goyaml::Value::Map(stored.object)).unwrap();
        assert_eq!(
            text,
            r#"{"apiVersion":"v1","data":{"k":"aGk="},"kind":"Secret","metadata":{"name":"n","namespace":"ns","resourceVersion":"3"},"type":"Opaque"}"#
        );
    }

    #[test]
    fn a_kind_that_is_not_known_has_a_head() {
        let message = b"k8s\0\x0a\x08\x0a\x02v9\x12\x02Un\x12\x0a\x0a\x05\x0a\x03abc\x12\x01x";
        let stored = object(message, 3).unwrap();
        assert!(!stored.is_whole);
        assert_eq!(
            goyaml::json::to_json(&goyaml::Value::Map(stored.object)).unwrap(),
            r#"{"apiVersion":"v9","kind":"Un","metadata":{"name":"abc","resourceVersion":"3"}}"#
        );
    }
}
