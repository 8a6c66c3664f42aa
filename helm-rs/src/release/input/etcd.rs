//! etcd's own files: snapshots and databases, told by their content.
//!
//! The Secrets and ConfigMaps of the cluster go on as they are stored; all other objects are
//! counted. Whatever cannot be read may have been a record, and is a fault.

use std::collections::BTreeMap;
use std::io::{self, Read, Seek as _};

use etcd_snapshot::decrypt::{self, DecryptError, Keys};
use etcd_snapshot::storage::{self, Envelope, EnvelopeError, Layout, ObjectKey};
use etcd_snapshot::{FileSource, OpenError, RevisionError, Snapshot, Source};

use super::parts::NAME_PREFIX;
use super::sniff::Sink;
use super::{Chunk, End, Fault, Form, Hidden, InputLimits, Piece, Storage};

/// Where a file's second number shows that it is one of bbolt: page head, then the meta page's.
const MAGIC: (usize, &[u8]) = (16, &[0xed, 0xda, 0x0c, 0xed]);

/// How etcd's files are read.
#[derive(Clone, Debug, Default)]
pub struct EtcdOptions {
    /// What opens values that were encrypted at rest.
    pub keys: Option<Keys>,
    /// The revision of etcd that is looked at; the last one when `None`. Inputs that are no etcd
    /// files are faults then: they have none.
    pub at_revision: Option<i64>,
}

/// What of an etcd file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum EtcdError {
    /// The file as a whole.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A revision that it does not hold.
    #[error(transparent)]
    Revision(#[from] RevisionError),
    /// A part of it.
    #[error(transparent)]
    Damage(#[from] etcd_snapshot::Fault),
    /// Objects that are encrypted.
    #[error(transparent)]
    Encrypted(#[from] DecryptError),
    /// A value that is no object.
    #[error(transparent)]
    Envelope(#[from] EnvelopeError),
    /// Records of another API server, of which several may share an etcd.
    #[error("is a release record under another prefix than {prefix}, and only that is read")]
    Prefix {
        /// The prefix that is read.
        prefix: String,
    },
    /// An object that its key does not lead to: one of the two is damaged.
    #[error("holds {kind} {found}, and is no key of that: one of the two is damaged")]
    Elsewhere {
        /// The kind.
        kind: String,
        /// Namespace and name.
        found: String,
    },
    /// A revision of a file that has none.
    #[error("is no etcd snapshot, and only these have revisions")]
    NoRevisions,
}

/// Whether a stream's first bytes are those of an etcd file.
pub(super) fn is_head(head: &[u8]) -> bool {
    head.get(MAGIC.0..).is_some_and(|head| head.starts_with(MAGIC.1))
}

/// Splits a stream, which goes into a nameless file first: a tree has no order that could be
/// streamed.
pub(super) fn split_stream(
    place: &str,
    reader: &mut dyn Read,
    limits: &InputLimits,
    options: &EtcdOptions,
    sink: &mut Sink<'_>,
) -> bool {
    let mut spool = || {
        let mut file = tempfile::tempfile()?;
        io::copy(reader, &mut file)?;
        file.rewind()?;
        FileSource::new(file)
    };
    match spool() {
        Ok(source) => split(place, Box::new(source), limits, options, sink),
        Err(source) => sink(Piece::Fault(Fault::io(place, source))),
    }
}

/// Splits an etcd file into Secrets, ConfigMaps and others.
pub(super) fn split(
    place: &str,
    source: Box<dyn Source>,
    limits: &InputLimits,
    options: &EtcdOptions,
    sink: &mut Sink<'_>,
) -> bool {
    let fault = |error: EtcdError| Piece::Fault(Fault::new(place, error.into()));
    let mut snapshot = match Snapshot::open(source) {
        Ok(snapshot) => snapshot,
        // containerd's, for one; a backup of a machine has several. One without any buckets is
        // more likely an etcd's that was copied too early.
        Err(OpenError::NotEtcd { ref found })
            if options.at_revision.is_none() && !found.is_empty() =>
        {
            return sink(Piece::Other);
        }
        Err(error) => return sink(fault(error.into())),
    };
    let mut damage = etcd_snapshot::Faults::default();
    snapshot.check(&mut |found| damage.push(found));
    let index = snapshot.index(options.at_revision, &mut |found| damage.push(found));
    for found in damage.into_told() {
        // What is lost is told by itself; the digest alone tells that something is not as it was.
        let hides = match found {
            etcd_snapshot::Fault::Digest | etcd_snapshot::Fault::DigestCut { .. } => {
                Hidden::Releases(Vec::new())
            }
            _ => Hidden::Any,
        };
        let found = Fault::new(place, EtcdError::from(found).into());
        if !sink(Piece::Fault(found.hiding(hides))) {
            return false;
        }
    }
    let index = match index {
        Ok(index) => index,
        Err(error) => return sink(fault(error.into())),
    };
    let layout = Layout::of(&index);
    let mut reader = Reader {
        place,
        snapshot: &snapshot,
        limits,
        options,
        closed: BTreeMap::new(),
        others: Several::default(),
    };
    for (key, entry) in index.iter() {
        let (storage, at) = match layout.read(key) {
            Some(at @ ObjectKey { resource: "secrets", .. }) => (Storage::Secret, at),
            Some(at @ ObjectKey { resource: "configmaps", .. }) => (Storage::ConfigMap, at),
            read => {
                if let Some(name) = other_record(key).filter(|_| read.is_none()) {
                    reader.others.add(&format!("{place}: {}", text(key)), name);
                    continue;
                }
                let is_known = read.is_some_and(|at| is_known(at.resource));
                let piece = if is_known { None } else { reader.stray(key, entry) };
                if !sink(piece.unwrap_or(Piece::Other)) {
                    return false;
                }
                continue;
            }
        };
        if let Some(piece) = reader.object(key, at, entry, storage)
            && !sink(piece)
        {
            return false;
        }
    }
    let Reader { closed, others, .. } = reader;
    let prefix = text(layout.prefix());
    closed
        .into_iter()
        .map(|(error, several)| several.fault(error.into()))
        .chain((!others.first.is_empty()).then(|| others.fault(EtcdError::Prefix { prefix })))
        .all(|fault| sink(Piece::Fault(fault)))
}

struct Reader<'a> {
    place: &'a str,
    snapshot: &'a Snapshot,
    limits: &'a InputLimits,
    options: &'a EtcdOptions,
    /// Values that do not open, by reason.
    closed: BTreeMap<DecryptError, Several>,
    /// Records under another prefix.
    others: Several,
}

/// Values that are not read for one reason.
struct Several {
    /// The first one's place; empty for none.
    first: String,
    more: usize,
    hides: Hidden,
}

impl Default for Several {
    fn default() -> Self {
        Self { first: String::new(), more: 0, hides: Hidden::Releases(Vec::new()) }
    }
}

impl Several {
    /// Takes one more: its place, and its object's name, which says whose record it may be.
    fn add(&mut self, place: &str, name: &str) {
        if self.first.is_empty() {
            place.clone_into(&mut self.first);
        } else {
            self.more += 1;
        }
        self.hides.add(Hidden::of_object(name, &[]));
    }

    fn fault(self, error: EtcdError) -> Fault {
        let Self { first, more, hides } = self;
        let place = if more == 0 { first } else { format!("{first} and {more} more") };
        Fault::new(&place, error.into()).hiding(hides)
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The name in a key that ends as a record's does, whatever it begins with.
fn other_record(key: &[u8]) -> Option<&str> {
    let (rest, name) = std::str::from_utf8(key).ok()?.rsplit_once('/')?;
    let (resource, _) = rest.rsplit_once('/')?;
    let is_record = ["/secrets", "/configmaps"].iter().any(|end| resource.ends_with(end))
        && name.starts_with(NAME_PREFIX);
    is_record.then_some(name)
}

/// Whether a resource is one that Secrets and ConfigMaps are not under: a group of custom resources,
/// or what clusters have most of. Of all others the value is looked at.
fn is_known(resource: &str) -> bool {
    const MOST: [&str; 22] = [
        "clusterrolebindings",
        "clusterroles",
        "controllerrevisions",
        "cronjobs",
        "daemonsets",
        "deployments",
        "endpointslices",
        "events",
        "ingress",
        "jobs",
        "leases",
        "minions",
        "namespaces",
        "persistentvolumeclaims",
        "persistentvolumes",
        "pods",
        "replicasets",
        "rolebindings",
        "roles",
        "serviceaccounts",
        "statefulsets",
        "networkpolicies",
    ];
    resource.contains('.') || resource.starts_with("services/") || MOST.contains(&resource)
}

impl Reader<'_> {
    /// A Secret or a `ConfigMap` under a key of something else, whose key was damaged.
    fn stray(&self, key: &[u8], entry: &etcd_snapshot::Entry) -> Option<Piece> {
        let stored = self.snapshot.value(entry).ok()?;
        let plain = decrypt::open(&stored.value, key, self.options.keys.as_ref()).ok()?;
        let Ok(Envelope::Protobuf { kind, raw, .. }) = Envelope::read(&plain) else { return None };
        Storage::of_kind(&kind)?;
        let (namespace, name) = storage::names(raw).unwrap_or_default();
        let place = format!("{}: {}", self.place, text(key));
        let hides = Hidden::of_object(&name, &[]);
        let error = EtcdError::Elsewhere { kind, found: format!("{namespace}/{name}") };
        Some(Piece::Fault(Fault::new(&place, error.into()).hiding(hides)))
    }

    fn object(
        &mut self,
        key: &[u8],
        at: ObjectKey<'_>,
        entry: &etcd_snapshot::Entry,
        storage: Storage,
    ) -> Option<Piece> {
        let name = at.name;
        // Of what does not read, the key still says whose record it is.
        let hides = || Hidden::of_object(name, &[]);
        let place = format!("{}: {}", self.place, text(key));
        if entry.size > self.limits.object as u64 {
            return Some(Piece::Fault(Fault::too_large(&place, self.limits).hiding(hides())));
        }
        let fault = |error: EtcdError, hides: Hidden| {
            Some(Piece::Fault(Fault::new(&place, error.into()).hiding(hides)))
        };
        let stored = match self.snapshot.value(entry) {
            Ok(stored) => stored,
            Err(error) => return fault(error.into(), hides()),
        };
        let plain = match decrypt::open(&stored.value, key, self.options.keys.as_ref()) {
            Ok(plain) => plain,
            Err(error) => {
                self.closed.entry(error).or_default().add(&place, name);
                return None;
            }
        };
        let (form, list_of, text) = match Envelope::read(&plain) {
            Ok(Envelope::Json(text)) => (Form::Json, None, text),
            Ok(Envelope::Protobuf { kind, raw, .. }) => {
                let (namespace, found) = storage::names(raw).unwrap_or_default();
                if Storage::of_kind(&kind) != Some(storage)
                    || (namespace.as_str(), found.as_str()) != (at.namespace, name)
                {
                    let mut hides = hides();
                    hides.add(Hidden::of_object(&found, &[]));
                    let found = format!("{namespace}/{found}");
                    return fault(EtcdError::Elsewhere { kind, found }, hides);
                }
                (Form::Protobuf, Some(storage), raw)
            }
            Err(error) => {
                let hides = match hides() {
                    Hidden::Any => Hidden::of_text(&plain, true),
                    known @ Hidden::Releases(_) => known,
                };
                return fault(error.into(), hides);
            }
        };
        let text = text.to_vec();
        Some(Piece::Chunk(Chunk { place, form, list_of, end: End::Told, text }))
    }
}
