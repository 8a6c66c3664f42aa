//! A cluster whose every write first makes sure that the lock is held.

use std::sync::Arc;

use helm_rs::cluster::{
    AccessQuestion, Cluster, ClusterError, Decision, DeleteOptions, Discovery, ListQuery, Page,
    Patch, Reply, Resource, Rules, ServerVersion, Subject, Target, Watch, WatchQuery, WriteOptions,
};
use serde_json::Value;

use super::lock::{Lock, LockError};

/// A cluster behind a lock. Reads renew the lock too, so that it is kept during a long wait.
pub struct Fenced<'a> {
    inner: Arc<dyn Cluster>,
    lock: &'a Lock<'a>,
}

impl<'a> Fenced<'a> {
    /// The cluster, as long as the lock is held.
    pub fn new(inner: &Arc<dyn Cluster>, lock: &'a Lock<'a>) -> Self {
        Self { inner: Arc::clone(inner), lock }
    }

    async fn check(&self) -> Result<(), ClusterError> {
        self.lock.check().await.map_err(|error| match error {
            LockError::Cluster(error) => error,
            other => ClusterError::Configuration { reason: other.to_string() },
        })
    }
}

impl Cluster for Fenced<'_> {
    fn get<'a>(&'a self, target: &'a Target) -> Reply<'a, Value> {
        Box::pin(async move {
            self.check().await?;
            self.inner.get(target).await
        })
    }

    fn list<'a>(&'a self, resource: &'a Resource, query: &'a ListQuery) -> Reply<'a, Page> {
        Box::pin(async move {
            self.check().await?;
            self.inner.list(resource, query).await
        })
    }

    fn create<'a>(
        &'a self,
        target: &'a Target,
        object: &'a Value,
        options: &'a WriteOptions,
    ) -> Reply<'a, Value> {
        Box::pin(async move {
            self.check().await?;
            self.inner.create(target, object, options).await
        })
    }

    fn update<'a>(
        &'a self,
        target: &'a Target,
        object: &'a Value,
        options: &'a WriteOptions,
    ) -> Reply<'a, Value> {
        Box::pin(async move {
            self.check().await?;
            self.inner.update(target, object, options).await
        })
    }

    fn patch<'a>(
        &'a self,
        target: &'a Target,
        patch: &'a Patch,
        options: &'a WriteOptions,
    ) -> Reply<'a, Value> {
        Box::pin(async move {
            self.check().await?;
            self.inner.patch(target, patch, options).await
        })
    }

    fn delete<'a>(&'a self, target: &'a Target, options: &'a DeleteOptions) -> Reply<'a, Value> {
        Box::pin(async move {
            self.check().await?;
            self.inner.delete(target, options).await
        })
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
