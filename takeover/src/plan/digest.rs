//! The digest that a consent names, and hashes of single leaves.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::gate::{Classes, Leaves, is_secret};

/// What the stand-in of a credential begins with; its keyed digest in hexadecimal follows.
const STAND_IN: &str = "ichor-digest:";

/// What keeps hashes of credentials from being tried out by whoever has only the digest: the
/// cluster's own identity, the UID of the namespace kube-system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key(pub String);

impl Key {
    /// The keyed hash of a value, in hexadecimal.
    pub fn hash(&self, value: &Value) -> String {
        self.hash_bytes(value.to_string().as_bytes())
    }

    fn hash_bytes(&self, bytes: &[u8]) -> String {
        // A key of any length will do.
        Hmac::<Sha256>::new_from_slice(self.0.as_bytes()).map_or_else(
            |_| String::new(),
            |mut mac| {
                mac.update(bytes);
                hex(&mac.finalize().into_bytes())
            },
        )
    }

    /// What stands for a credential where it must not be read: a text with its keyed digest. Equal
    /// credentials have equal stand-ins, and a stand-in stands for itself, so that digests made
    /// over stand-ins are those made over credentials.
    pub fn stand_in(&self, credential: &[u8]) -> String {
        match std::str::from_utf8(credential) {
            Ok(text) if is_stand_in(text) => text.to_owned(),
            _ => format!("{STAND_IN}{}", self.hash_bytes(credential)),
        }
    }

    /// [`Self::stand_in`] of an entry of a Secret's data, which is base64 as the entry is.
    pub fn stand_in_entry(&self, entry: &str) -> String {
        STANDARD.encode(self.stand_in(&decoded(entry)))
    }

    /// A leaf's value as it enters the digest.
    pub(crate) fn leaf(
        &self,
        kind: &str,
        path: &crate::gate::Path,
        value: Option<&Value>,
    ) -> Value {
        match value {
            None => Value::Null,
            Some(value) if is_secret(kind, path) => {
                let credential = match value {
                    Value::String(text) if kind == "Secret" => decoded(text),
                    Value::String(text) => text.clone().into_bytes(),
                    value => value.to_string().into_bytes(),
                };
                json!({ "hash": self.stand_in(&credential) })
            }
            Some(value) => json!({ "value": value }),
        }
    }
}

/// Whether a text stands for a credential.
pub(crate) fn is_stand_in(text: &str) -> bool {
    let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    text.strip_prefix(STAND_IN).is_some_and(|hex| hex.len() == 64 && hex.bytes().all(is_hex))
}

/// Whether an entry of a Secret's data stands for a credential.
pub(crate) fn is_stand_in_entry(entry: &str) -> bool {
    // The length of what is looked for, so that certificates need not be decoded.
    entry.len() == (STAND_IN.len() + 64).div_ceil(3) * 4
        && std::str::from_utf8(&decoded(entry)).is_ok_and(is_stand_in)
}

/// The bytes of an entry of a Secret's data; what is no base64 stands for itself.
fn decoded(entry: &str) -> Vec<u8> {
    let text: String = entry.split(['\r', '\n']).collect();
    STANDARD.decode(text).unwrap_or_else(|_| entry.as_bytes().to_vec())
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
/// `kind` is the object's.
pub fn hash_leaves(key: &Key, kind: &str, leaves: &Leaves) -> String {
    let canonical: Vec<Value> = leaves
        .iter()
        .map(|(path, leaf)| json!([path.to_string(), key.leaf(kind, path, Some(&leaf.value))]))
        .collect();
    key.hash(&Value::Array(canonical))
}
