//! The forms of a value: protobuf in an envelope, JSON, encrypted.

use crate::wire::{Message, Value, WireError};

/// What protobuf begins with (`serializer/protobuf/protobuf.go`).
const MAGIC: &[u8] = b"k8s\0";
/// What CBOR begins with, which servers may be told to store (`serializer/cbor`).
const CBOR: &[u8] = b"\xd9\xd9\xf7";
/// What an encrypted value begins with (`encryptionconfig/config.go`).
pub(crate) const ENCRYPTED: &[u8] = b"k8s:enc:";

/// A value that is no object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EnvelopeError {
    /// It is encrypted, and must be decrypted first.
    #[error("is encrypted")]
    Encrypted,
    /// The envelope does not read.
    #[error("the envelope does not read: {0}")]
    Wire(#[from] WireError),
    /// The envelope's content is compressed or of another type.
    #[error("the envelope has a content that is not known: {encoding:?}")]
    Encoding {
        /// `contentEncoding` and `contentType`.
        encoding: String,
    },
    /// CBOR, which is not read.
    #[error("is CBOR, which is not read")]
    Cbor,
    /// None of the forms.
    #[error("is no Kubernetes object")]
    Unknown,
}

/// What is in a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Envelope<'a> {
    /// JSON text.
    Json(&'a [u8]),
    /// `runtime.Unknown`.
    Protobuf {
        /// `v1`, `apps/v1`.
        api_version: String,
        /// The kind.
        kind: String,
        /// The object's message.
        raw: &'a [u8],
    },
}

impl<'a> Envelope<'a> {
    /// Looks into a value.
    ///
    /// # Errors
    /// When it has none of the forms.
    pub fn read(value: &'a [u8]) -> Result<Self, EnvelopeError> {
        if let Some(message) = value.strip_prefix(MAGIC) {
            return unknown(message);
        }
        if value.starts_with(ENCRYPTED) {
            return Err(EnvelopeError::Encrypted);
        }
        if value.starts_with(CBOR) {
            return Err(EnvelopeError::Cbor);
        }
        match value.trim_ascii_start().first() {
            Some(b'{') => Ok(Self::Json(value)),
            _ => Err(EnvelopeError::Unknown),
        }
    }
}

fn unknown(message: &[u8]) -> Result<Envelope<'_>, EnvelopeError> {
    let (mut api_version, mut kind) = (String::new(), String::new());
    let (mut raw, mut encoding) = (&[][..], String::new());
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    for field in Message::new(message) {
        match field? {
            (1, Value::Bytes(about)) => {
                for field in Message::new(about) {
                    match field? {
                        (1, Value::Bytes(bytes)) => api_version = text(bytes),
                        (2, Value::Bytes(bytes)) => kind = text(bytes),
                        _ => {}
                    }
                }
            }
            (2, Value::Bytes(bytes)) => raw = bytes,
            (3 | 4, Value::Bytes(bytes)) => encoding.push_str(&text(bytes)),
            _ => {}
        }
    }
    if encoding.is_empty() {
        Ok(Envelope::Protobuf { api_version, kind, raw })
    } else {
        Err(EnvelopeError::Encoding { encoding })
    }
}
