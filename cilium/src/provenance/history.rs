//! Release records as objects of a cluster, grouped into histories.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use helm_rs::release::{CodecLimits, Record, Status, Summary, decode};
use serde_json::Value;

use crate::object::{Field, FieldError, ObjectRef};

/// How the objects of records are called (`pkg/storage/storage.go`).
const PREFIX: &str = "sh.helm.release.v1.";

/// All records of a release in one namespace, of whichever driver.
#[derive(Clone, Debug)]
pub struct History {
    /// The release's name.
    pub release: String,
    /// The namespace that the records lie in.
    pub storage_namespace: String,
    /// By revision; of one revision in both drivers, the Secret comes last and counts.
    pub revisions: Vec<Revision>,
}

/// A revision's record.
#[derive(Clone, Debug)]
pub struct Revision {
    /// The Secret or ConfigMap.
    pub object: ObjectRef,
    /// Its UID; empty when the object has none, as in a file.
    pub uid: String,
    /// The revision, as the object's name has it.
    pub revision: i64,
    /// The label `status`, for a record that cannot be read.
    label: String,
    /// The stored text, base64 of Kubernetes taken off.
    stored: Vec<u8>,
    /// Read when it is asked for: a cluster has many records of other releases.
    summary: OnceLock<Result<Summary, String>>,
}

impl History {
    /// The newest revision.
    pub fn newest(&self) -> Option<&Revision> {
        self.revisions.last()
    }

    /// Bytes that the stored records have in all.
    pub fn size(&self) -> usize {
        self.revisions.iter().map(Revision::size).sum()
    }
}

impl Revision {
    /// What the record says, or why it cannot be read.
    pub fn summary(&self) -> &Result<Summary, String> {
        self.summary.get_or_init(|| {
            let json = decode(&self.stored, CodecLimits::default()).map_err(super::text)?;
            Summary::from_json(&json).map_err(super::text)
        })
    }

    /// The status; unknown for a record that cannot be read.
    pub fn status(&self) -> Status {
        self.summary().as_ref().map_or(Status::Unknown, |summary| summary.info.status())
    }

    /// Whether an unreadable record is labelled as deployed, or not labelled.
    pub(super) fn may_be_deployed(&self) -> bool {
        self.label.is_empty() || self.label == Status::Deployed.as_str()
    }

    /// Bytes of the stored text.
    pub const fn size(&self) -> usize {
        self.stored.len()
    }

    /// Seconds since the revision was begun.
    pub fn age(&self, now: i64) -> Option<i64> {
        let text = &self.summary().as_ref().ok()?.info.last_deployed;
        let time: jiff::Timestamp = text.parse().ok()?;
        now.checked_sub(time.as_second())
    }

    /// The whole record.
    ///
    /// # Errors
    /// A text with the layer or the field that is broken.
    pub fn record(&self) -> Result<Record, String> {
        let json = decode(&self.stored, CodecLimits::default()).map_err(super::text)?;
        Record::from_json(&json).map_err(super::text)
    }

    fn read(kind: &str, object: &Value) -> Option<(String, Self)> {
        let mut about = ObjectRef::of(object);
        kind.clone_into(&mut about.kind);
        let (release, revision) = about.name.strip_prefix(PREFIX)?.rsplit_once(".v")?;
        let (release, revision) = (release.to_owned(), revision.parse().ok()?);
        let text = |pointer| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (stored, summary) = match stored(kind, object) {
            Ok(stored) => (stored, OnceLock::new()),
            Err(reason) => (Vec::new(), OnceLock::from(Err(reason))),
        };
        let revision = Self {
            uid: text("/metadata/uid").to_owned(),
            label: text("/metadata/labels/status").to_owned(),
            object: about,
            revision,
            stored,
            summary,
        };
        Some((release, revision))
    }
}

/// The release string of a record's object.
fn stored(kind: &str, object: &Value) -> Result<Vec<u8>, String> {
    let field = || -> Result<_, FieldError> {
        let field = Field::root(object).at(&["data", "release"])?;
        field.text()?.ok_or_else(|| field.unexpected("a string"))
    };
    let release = field().map_err(super::text)?;
    if kind == "Secret" {
        STANDARD.decode(release).map_err(|_| "data.release is not base64".to_owned())
    } else {
        Ok(release.as_bytes().to_vec())
    }
}

/// The histories among some objects, by namespace and release. Objects that are no records by
/// their name are passed over.
pub fn group(secrets: &[Value], config_maps: &[Value]) -> Vec<History> {
    let mut groups: BTreeMap<(String, String), Vec<Revision>> = BTreeMap::new();
    // ConfigMaps first: the sort is stable, and the Secret of a revision is to come last.
    let objects = config_maps
        .iter()
        .map(|object| ("ConfigMap", object))
        .chain(secrets.iter().map(|object| ("Secret", object)));
    for (release, revision) in objects.filter_map(|(kind, object)| Revision::read(kind, object)) {
        let namespace = revision.object.namespace.clone();
        groups.entry((namespace, release)).or_default().push(revision);
    }
    let history = |((storage_namespace, release), mut revisions): (_, Vec<Revision>)| {
        revisions.sort_by_key(|revision| revision.revision);
        History { release, storage_namespace, revisions }
    };
    groups.into_iter().map(history).collect()
}
