//! A cluster whose every write first makes sure that the lock is held, and names what it is based
//! on. [`lock`](super::lock) says what comes of the two.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use helm_rs::cluster::wrapper::{Answer, Call, Wrapper};
use helm_rs::cluster::{Cluster, ClusterError, Reply};
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

    /// Remembers the versions in which Secrets and ConfigMaps were read or written.
    fn saw(&self, answer: &impl Answer) {
        let is_record = |kind: &str| matches!(kind, "Secret" | "ConfigMap");
        let objects = answer.objects().iter().filter(|object| is_record(text(object, "/kind")));
        for object in objects {
            let version = text(object, "/metadata/resourceVersion").to_owned();
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen.insert(place(object), version);
        }
    }
}

fn place(object: &Value) -> String {
    ["/kind", "/metadata/namespace", "/metadata/name"]
        .map(|pointer| text(object, pointer))
        .join("/")
}

impl Wrapper for Fenced<'_> {
    fn inner(&self) -> &dyn Cluster {
        &*self.inner
    }

    fn around<'a, T: Answer + 'a>(&'a self, call: Call<'a>, answer: Reply<'a, T>) -> Reply<'a, T> {
        match call {
            Call::Get(_) | Call::List(..) => Box::pin(async move {
                self.lock.check().await.map_err(stopped)?;
                let answer = answer.await?;
                self.saw(&answer);
                Ok(answer)
            }),
            _ if call.is_write() => Box::pin(async move {
                let answer = self.lock.keep(answer).await.map_err(stopped)??;
                if !call.is_dry_run() {
                    self.saw(&answer);
                }
                Ok(answer)
            }),
            _ => answer,
        }
    }

    /// The object with the version that it is based on, where it names none.
    fn updated<'o>(&self, object: &'o Value) -> Cow<'o, Value> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(version) = seen.get(&place(object)) else { return Cow::Borrowed(object) };
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
