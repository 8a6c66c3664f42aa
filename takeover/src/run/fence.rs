//! A cluster whose every write first makes sure that the lock is held, and names what it is based
//! on. [`lock`](super::lock) says what comes of the two.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use helm_rs::cluster::wrapper::{Answer, Call, Wrapper};
use helm_rs::cluster::{Cluster, ClusterError, Reply, Target};
use serde_json::Value;

use super::lock::{Lock, LockError};
use crate::survey::text;

/// A cluster behind a lock. Reads renew the lock too, so that it is kept during a long wait.
///
/// An update that names no version, as those of release records do, is bound to the version in
/// which this run read or wrote the object last.
pub struct Fenced<'a> {
    inner: Arc<dyn Cluster>,
    lock: &'a Lock<'a>,
    /// Versions of Secrets and ConfigMaps by kind, namespace and name.
    seen: Mutex<BTreeMap<String, String>>,
}

fn stopped(error: LockError) -> ClusterError {
    match error {
        LockError::Cluster { source, .. } => source,
        other => ClusterError::Configuration { reason: other.to_string() },
    }
}

impl<'a> Fenced<'a> {
    /// The cluster, as long as the lock is held.
    pub fn new(inner: &Arc<dyn Cluster>, lock: &'a Lock<'a>) -> Self {
        Self { inner: Arc::clone(inner), lock, seen: Mutex::new(BTreeMap::new()) }
    }

    /// Remembers the versions in which Secrets and ConfigMaps were read or written. The answer to a
    /// call about one object is that object, whatever it says of its kind: one that has only its
    /// metadata says `PartialObjectMetadata`.
    fn saw(&self, about: Option<&Target>, answer: &impl Answer) {
        let is_record = |kind: &str| matches!(kind, "Secret" | "ConfigMap");
        for object in answer.objects() {
            let kind =
                about.map_or_else(|| text(object, "/kind"), |target| &target.resource.kind.kind);
            if is_record(kind) {
                let version = text(object, "/metadata/resourceVersion").to_owned();
                let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
                seen.insert(place(kind, object), version);
            }
        }
    }
}

fn place(kind: &str, object: &Value) -> String {
    let [namespace, name] =
        ["/metadata/namespace", "/metadata/name"].map(|pointer| text(object, pointer));
    [kind, namespace, name].join("/")
}

/// The object that a call is about; none for a list.
const fn target<'a>(call: &Call<'a>) -> Option<&'a Target> {
    match call {
        Call::Get(target)
        | Call::Create(target, _)
        | Call::Update(target, _)
        | Call::Patch(target, ..)
        | Call::Delete(target, _) => Some(target),
        _ => None,
    }
}

impl Wrapper for Fenced<'_> {
    fn inner(&self) -> &dyn Cluster {
        &*self.inner
    }

    fn around<'a, T: Answer + 'a>(&'a self, call: Call<'a>, answer: Reply<'a, T>) -> Reply<'a, T> {
        let about = target(&call);
        match call {
            Call::Get(_) | Call::List(..) => Box::pin(async move {
                self.lock.check().await.map_err(stopped)?;
                let answer = answer.await?;
                self.saw(about, &answer);
                Ok(answer)
            }),
            _ if call.is_write() => Box::pin(async move {
                let answer = self.lock.keep(answer).await.map_err(stopped)??;
                if !call.is_dry_run() {
                    self.saw(about, &answer);
                }
                Ok(answer)
            }),
            _ => answer,
        }
    }

    /// The object with the version that it is based on, where it names none.
    fn updated<'o>(&self, object: &'o Value) -> Cow<'o, Value> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(version) = seen.get(&place(text(object, "/kind"), object)) else {
            return Cow::Borrowed(object);
        };
        if !text(object, "/metadata/resourceVersion").is_empty() {
            return Cow::Borrowed(object);
        }
        let mut object = object.clone();
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert("resourceVersion".to_owned(), version.as_str().into());
        }
        Cow::Owned(object)
    }
}
