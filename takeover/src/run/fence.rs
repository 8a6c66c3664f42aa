//! A cluster whose every write first makes sure that the lock is held, and names what it is based
//! on. [`lock`](super::lock) says what comes of the two.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use helm_rs::cluster::{
    AccessQuestion, Cluster, ClusterError, Decision, DeleteOptions, Discovery, ListQuery, Page,
    Patch, Reply, Resource, Rules, ServerVersion, Subject, Target, Watch, WatchQuery, WriteOptions,
};
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
    /// Versions of Secrets by `namespace/name`.
    seen: Mutex<BTreeMap<String, String>>,
}

fn stopped(error: LockError) -> ClusterError {
    match error {
        LockError::Cluster(error) => error,
        other => ClusterError::Configuration { reason: other.to_string() },
    }
}

impl<'a> Fenced<'a> {
    /// The cluster, as long as the lock is held.
    pub fn new(inner: &Arc<dyn Cluster>, lock: &'a Lock<'a>) -> Self {
        Self { inner: Arc::clone(inner), lock, seen: Mutex::new(BTreeMap::new()) }
    }

    async fn read<T>(&self, call: Reply<'_, T>) -> Result<T, ClusterError> {
        self.lock.check().await.map_err(stopped)?;
        call.await
    }

    async fn write<T>(&self, call: Reply<'_, T>) -> Result<T, ClusterError> {
        self.lock.keep(call).await.map_err(stopped)?
    }

    fn saw(&self, object: &Value) {
        if text(object, "/kind") == "Secret" {
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen.insert(place(object), text(object, "/metadata/resourceVersion").to_owned());
        }
    }

    /// The object with the version that it is based on, where it names none.
    fn based(&self, object: &Value) -> Value {
        let mut object = object.clone();
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if text(&object, "/metadata/resourceVersion").is_empty()
            && let Some(version) = seen.get(&place(&object))
            && let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut)
        {
            metadata.insert("resourceVersion".to_owned(), version.as_str().into());
        }
        object
    }
}

fn place(object: &Value) -> String {
    format!("{}/{}", text(object, "/metadata/namespace"), text(object, "/metadata/name"))
}

/// A call that is made when it is awaited: some clusters act at once.
fn later<'a, T: Send + 'a>(call: impl FnOnce() -> Reply<'a, T> + Send + 'a) -> Reply<'a, T> {
    Box::pin(async move { call().await })
}

impl Cluster for Fenced<'_> {
    fn get<'a>(&'a self, target: &'a Target) -> Reply<'a, Value> {
        Box::pin(async move {
            let object = self.read(later(|| self.inner.get(target))).await?;
            self.saw(&object);
            Ok(object)
        })
    }

    fn list<'a>(&'a self, resource: &'a Resource, query: &'a ListQuery) -> Reply<'a, Page> {
        Box::pin(async move {
            let page = self.read(later(|| self.inner.list(resource, query))).await?;
            page.items.iter().for_each(|object| self.saw(object));
            Ok(page)
        })
    }

    fn create<'a>(
        &'a self,
        target: &'a Target,
        object: &'a Value,
        options: &'a WriteOptions,
    ) -> Reply<'a, Value> {
        Box::pin(async move {
            let created = self.write(later(|| self.inner.create(target, object, options))).await?;
            self.saw(&created);
            Ok(created)
        })
    }

    fn update<'a>(
        &'a self,
        target: &'a Target,
        object: &'a Value,
        options: &'a WriteOptions,
    ) -> Reply<'a, Value> {
        Box::pin(async move {
            let object = self.based(object);
            let updated = self.write(later(|| self.inner.update(target, &object, options))).await?;
            self.saw(&updated);
            Ok(updated)
        })
    }

    fn patch<'a>(
        &'a self,
        target: &'a Target,
        patch: &'a Patch,
        options: &'a WriteOptions,
    ) -> Reply<'a, Value> {
        Box::pin(
            async move { self.write(later(|| self.inner.patch(target, patch, options))).await },
        )
    }

    fn delete<'a>(&'a self, target: &'a Target, options: &'a DeleteOptions) -> Reply<'a, Value> {
        Box::pin(async move { self.write(later(|| self.inner.delete(target, options))).await })
    }

    fn watch<'a>(
        &'a self,
        resource: &'a Resource,
        query: &'a WatchQuery,
    ) -> Reply<'a, Box<dyn Watch + 'a>> {
        self.inner.watch(resource, query)
    }

    fn logs<'a>(&'a self, pod: &'a Target, container: &'a str) -> Reply<'a, Vec<u8>> {
        self.inner.logs(pod, container)
    }

    fn discovery(&self, refresh: bool) -> Reply<'_, Arc<Discovery>> {
        self.inner.discovery(refresh)
    }

    fn server_version(&self) -> Reply<'_, ServerVersion> {
        self.inner.server_version()
    }

    fn openapi<'a>(&'a self, group_version: &'a str) -> Reply<'a, Option<Arc<Value>>> {
        self.inner.openapi(group_version)
    }

    fn may<'a>(&'a self, question: &'a AccessQuestion) -> Reply<'a, Decision> {
        self.inner.may(question)
    }

    fn subject_may<'a>(
        &'a self,
        subject: &'a Subject,
        question: &'a AccessQuestion,
    ) -> Reply<'a, Decision> {
        self.inner.subject_may(subject, question)
    }

    fn rules<'a>(&'a self, namespace: &'a str) -> Reply<'a, Rules> {
        self.inner.rules(namespace)
    }

    fn identity(&self) -> Reply<'_, Subject> {
        self.inner.identity()
    }
}
