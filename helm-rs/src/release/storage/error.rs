//! What can go wrong with stored records, in Helm's words (`pkg/storage/driver/driver.go`).

use std::path::PathBuf;

use crate::cluster::ClusterError;
use crate::release::{CodecError, FieldError};

/// An entry that holds no record that can be read.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// There is no release string.
    #[error("the entry holds no release")]
    Missing,
    /// The store's own base64, around the release string.
    #[error("base64 of the object")]
    Base64(#[from] base64::DecodeError),
    /// A layer of the release string.
    #[error(transparent)]
    Codec(#[from] CodecError),
    /// A file's JSON.
    #[error("JSON of the object")]
    Object(#[from] serde_json::Error),
}

/// Why a call of the storage failed.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// There is no such release or revision.
    #[error("release: not found")]
    NotFound,
    /// The revision is taken.
    #[error("release: already exists")]
    Exists,
    /// The key names no revision.
    #[error("release: invalid key")]
    InvalidKey,
    /// No revision of the release is deployed.
    #[error("{} has no deployed releases", crate::gotext::quote(.name))]
    NoDeployed {
        /// The release.
        name: String,
    },
    /// There is no revision at all.
    #[error("no revision for release {}", crate::gotext::quote(.name))]
    NoRevision {
        /// The release.
        name: String,
    },
    /// A label value that Kubernetes does not take.
    #[error("invalid label value: {}: {reason}", crate::gotext::quote(.value))]
    LabelValue {
        /// The value.
        value: String,
        /// Kubernetes' rule.
        reason: String,
    },
    /// The cluster refused or did not answer.
    #[error("{doing}")]
    Cluster {
        /// What was being done, as Helm says it.
        doing: String,
        /// The cluster's words.
        source: ClusterError,
    },
    /// The same where Helm adds no words.
    #[error(transparent)]
    Bare(#[from] ClusterError),
    /// The record does not decode.
    #[error("get: failed to decode data {}", crate::gotext::quote(.key))]
    Decode {
        /// The entry.
        key: String,
        /// Why.
        source: DecodeError,
    },
    /// A field that the store needs is not what it should be.
    #[error(transparent)]
    Field(#[from] FieldError),
    /// The record does not encode.
    #[error("failed to encode release")]
    Encode {
        /// Why.
        source: std::io::Error,
    },
    /// Old revisions could not be deleted.
    #[error("encountered {count} deletion errors. First is: {first}")]
    Prune {
        /// How many.
        count: usize,
        /// The first one's text.
        first: String,
    },
    /// A file of the file store.
    #[error("{doing} {}", path.display())]
    File {
        /// What was being done.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
}

impl StorageError {
    /// Whether the release or revision is not there.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound) || self.cluster().is_some_and(ClusterError::is_not_found)
    }

    /// The cluster's error, where one is the cause.
    pub const fn cluster(&self) -> Option<&ClusterError> {
        match self {
            Self::Cluster { source, .. } | Self::Bare(source) => Some(source),
            _ => None,
        }
    }
}

/// `IsValidLabelValue` of `k8s.io/apimachinery/pkg/util/validation`.
pub(super) fn check_label_value(value: &str) -> Result<(), StorageError> {
    let mut problems = Vec::new();
    if value.len() > 63 {
        problems.push("must be no more than 63 bytes".to_owned());
    }
    let edge = |byte: Option<&u8>| byte.is_none_or(u8::is_ascii_alphanumeric);
    let bytes = value.as_bytes();
    let inner = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if !(edge(bytes.first()) && edge(bytes.last()) && bytes.iter().all(inner)) {
        problems.push(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' \
             or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or \
             'my_value',  or '12345', regex used for validation is \
             '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
                .to_owned(),
        );
    }
    if problems.is_empty() {
        return Ok(());
    }
    Err(StorageError::LabelValue { value: value.to_owned(), reason: problems.join("; ") })
}

impl StorageError {
    /// Whether a write that failed so may have been done all the same.
    pub fn may_have_taken_effect(&self) -> bool {
        match self {
            Self::Cluster { source, .. } | Self::Bare(source) => source.may_have_taken_effect(),
            _ => false,
        }
    }
}
