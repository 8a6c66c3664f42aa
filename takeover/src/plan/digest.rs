//! The digest that a consent names, and hashes of single leaves.

use std::fmt::Write as _;

use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::gate::{Classes, Leaves, is_secret};

/// What keeps hashes of credentials from being tried out by whoever has only the digest: the
/// cluster's own identity, the UID of the namespace kube-system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key(pub String);

impl Key {
    /// The keyed hash of a value, in hexadecimal.
    pub fn hash(&self, value: &Value) -> String {
        let text = value.to_string();
        // A key of any length will do.
        Hmac::<Sha256>::new_from_slice(self.0.as_bytes()).map_or_else(
            |_| String::new(),
            |mut mac| {
                mac.update(text.as_bytes());
                hex(&mac.finalize().into_bytes())
            },
        )
    }

    /// A leaf's value as it enters the digest.
    fn leaf(&self, kind: &str, path: &crate::gate::Path, value: Option<&Value>) -> Value {
        match value {
            None => Value::Null,
            Some(value) if is_secret(kind, path) => json!({ "hash": self.hash(value) }),
            Some(value) => json!({ "value": value }),
        }
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// SHA-256 in hexadecimal.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// The part of the digest that one object contributes; null when it needs no consent.
pub(super) fn object_part(key: &Key, object: &str, kind: &str, classes: &Classes) -> Value {
    if classes.differences.is_empty() && classes.residue.is_empty() {
        return Value::Null;
    }
    let differences: Vec<Value> = classes
        .differences
        .iter()
        .map(|change| {
            let live = key.leaf(kind, &change.path, change.live.as_ref());
            let new = key.leaf(kind, &change.path, change.new.as_ref());
            json!([change.path.to_string(), live, new])
        })
        .collect();
    let residue: Vec<Value> = classes
        .residue
        .iter()
        .map(|left| json!([left.path.to_string(), key.leaf(kind, &left.path, Some(&left.value))]))
        .collect();
    json!({ "object": object, "differences": differences, "residue": residue })
}

/// The digest of a canonical form: JSON with sorted keys.
pub(super) fn digest(canonical: &Value) -> String {
    format!("sha256:{}", sha256(canonical.to_string().as_bytes()))
}

/// The hash of leaves with their places: an object's state, as far as a consent is about it.
pub fn hash_leaves(key: &Key, leaves: &Leaves) -> String {
    let canonical: Vec<Value> =
        leaves.iter().map(|(path, leaf)| json!([path.to_string(), leaf.value])).collect();
    key.hash(&Value::Array(canonical))
}
