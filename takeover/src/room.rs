//! Whether the server takes a Secret that is to be written.
//!
//! Three limits hold: bytes of data (`MaxSecretSize` in `pkg/apis/core/types.go` of Kubernetes),
//! bytes of all annotations with their keys (`TotalAnnotationSizeLimitB` in
//! `pkg/api/validation/objectmeta.go` of apimachinery), and what etcd takes in one request
//! (`DefaultMaxRequestBytes` in `server/embed/config.go` of etcd), which counts the object as it is
//! stored: data as bytes, with its metadata.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::plan::MAX_SECRET;

/// Bytes of annotations that an object may have.
const MAX_ANNOTATIONS: usize = 256 * 1024;
/// Bytes that etcd takes in one request, unless it is told otherwise.
const MAX_REQUEST: usize = 3 * 512 * 1024;
/// Bytes that the server adds to an object: UID, time, managed fields without the keys of its data.
const ADDED: usize = 2 * 1024;

/// What a Secret takes, as its writers count it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Weight {
    /// Bytes of data.
    pub(crate) data: usize,
    /// Bytes of annotations.
    pub(crate) annotations: usize,
    /// Bytes of the whole, as it is stored.
    pub(crate) request: usize,
}

impl Weight {
    /// The weight of a Secret as it is sent.
    pub(crate) fn of(secret: &Value) -> Self {
        let entries = |pointer: &str| secret.pointer(pointer).and_then(Value::as_object);
        let mut weight = Self::default();
        let mut keys = 0;
        for (key, value) in entries("/data").into_iter().flatten() {
            let text = value.as_str().unwrap_or_default();
            weight.data += STANDARD.decode(text).map_or(text.len(), |bytes| bytes.len());
            // Once in the data, once in the managed fields.
            keys += 2 * key.len() + 16;
        }
        for (key, value) in entries("/metadata/annotations").into_iter().flatten() {
            weight.annotations += key.len() + value.as_str().unwrap_or_default().len();
        }
        let labels = entries("/metadata/labels").into_iter().flatten();
        let labels: usize =
            labels.map(|(key, value)| key.len() + value.as_str().unwrap_or_default().len()).sum();
        weight.request = weight.data + keys + weight.annotations + labels + ADDED;
        weight
    }

    /// What the server would not take of it; none when all of it fits.
    pub(crate) fn excess(&self) -> Option<String> {
        let Self { data, annotations, request } = *self;
        if data > MAX_SECRET {
            Some(format!("{data} bytes of data, and a Secret holds {MAX_SECRET}"))
        } else if annotations > MAX_ANNOTATIONS {
            Some(format!(
                "{annotations} bytes of annotations, and an object may have {MAX_ANNOTATIONS}"
            ))
        } else if request > MAX_REQUEST {
            Some(format!("{request} bytes in all, and etcd takes {MAX_REQUEST} in a request"))
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_limit_is_exact() {
        let secret = |data: usize, note: usize| {
            json!({
                "metadata": { "annotations": { "note": "n".repeat(note) } },
                "data": { "release": STANDARD.encode("d".repeat(data)) },
            })
        };
        let excess = |data, note| Weight::of(&secret(data, note)).excess();
        assert_eq!(excess(MAX_SECRET, MAX_ANNOTATIONS - 4), None);
        assert!(excess(MAX_SECRET + 1, 0).is_some_and(|text| text.contains("of data")));
        assert!(excess(0, MAX_ANNOTATIONS - 3).is_some_and(|text| text.contains("annotations")));
        let mut many = secret(MAX_SECRET, 0);
        for key in 0..20_000 {
            many["data"][format!("a-key-of-some-length-{key}")] = "".into();
        }
        assert!(Weight::of(&many).excess().is_some_and(|text| text.contains("etcd")));
    }
}
