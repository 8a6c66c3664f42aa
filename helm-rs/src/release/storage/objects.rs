//! Records in Secrets and ConfigMaps (`driver/secrets.go`, `driver/cfgmaps.go`).

use std::collections::BTreeSet;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::error::check_label_value;
use super::{
    DecodeError, Driver, Entry, Head, Labels, StorageError, StorageReply, Stored, Write,
    decode_record, encode_record,
};
use crate::cluster::{
    Clock, Cluster, ClusterError, DeleteOptions, ErrorKind, ListQuery, Resource, Target,
    WriteOptions, list_all, list_each,
};
use crate::release::Record;

/// Records of one release in one answer of the server. One of a large chart is some 400 KB, and an
/// answer is held twice while it is read; a release of ten revisions takes four answers.
const PAGE: usize = 3;

/// What Helm says to be doing when it looks for the records of a release.
const QUERY: &str = "query: failed to query with labels";

/// Which objects hold the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectKind {
    /// Secrets, Helm's default.
    Secret,
    /// ConfigMaps (`HELM_DRIVER=configmap`).
    ConfigMap,
}

/// Records in objects of one namespace.
pub struct ObjectDriver<'a> {
    cluster: &'a dyn Cluster,
    clock: &'a dyn Clock,
    kind: ObjectKind,
    namespace: String,
    resource: Arc<Resource>,
    /// Who owns the fields of what is written; empty for the server's default.
    pub field_manager: String,
}

impl<'a> ObjectDriver<'a> {
    /// Records in objects of that kind and namespace; an empty namespace lists all of them.
    pub fn new(
        cluster: &'a dyn Cluster,
        clock: &'a dyn Clock,
        kind: ObjectKind,
        namespace: &str,
    ) -> Self {
        let (name, plural) = match kind {
            ObjectKind::Secret => ("Secret", "secrets"),
            ObjectKind::ConfigMap => ("ConfigMap", "configmaps"),
        };
        Self {
            cluster,
            clock,
            kind,
            namespace: namespace.to_owned(),
            resource: Arc::new(Resource::builtin("v1", name, plural, true)),
            field_manager: String::new(),
        }
    }

    fn target(&self, key: &str) -> Target {
        Target::new(&self.resource, &self.namespace, key)
    }

    fn options(&self) -> WriteOptions {
        WriteOptions {
            field_manager: self.field_manager.clone(),
            // The record itself is known.
            metadata_only: true,
            ..WriteOptions::default()
        }
    }

    /// The query for entries with labels, and what Helm says to be doing then.
    fn query_for(&self, wanted: &Labels) -> Result<(ListQuery, &'static str), StorageError> {
        let mut selector = Vec::with_capacity(wanted.len());
        for (name, value) in wanted {
            check_label_value(value)?;
            selector.push(format!("{name}={value}"));
        }
        let query = ListQuery {
            namespace: self.namespace.clone(),
            labels: selector.join(","),
            ..ListQuery::default()
        };
        Ok((query, if wanted.len() > 1 { QUERY } else { "list: failed to list" }))
    }

    /// Helm names what it was doing for Secrets and does not for ConfigMaps.
    fn error(&self, doing: impl Into<String>, source: ClusterError) -> StorageError {
        match self.kind {
            ObjectKind::Secret => StorageError::Cluster { doing: doing.into(), source },
            ObjectKind::ConfigMap => StorageError::Bare(source),
        }
    }

    fn object(&self, key: &str, record: &Record, labels: &Labels) -> Result<Value, StorageError> {
        let is_secret = self.kind == ObjectKind::Secret;
        let mut object = json!({
            "apiVersion": "v1",
            "kind": self.resource.kind.kind,
            "metadata": { "name": key, "namespace": self.namespace, "labels": labels },
        });
        if is_secret {
            object["type"] = "helm.sh/release.v1".into();
        }
        // Moved in, since it is large.
        object["data"]["release"] = Value::String(encode_record(record, is_secret)?);
        Ok(object)
    }

    /// Hands over the objects of a list, a page at a time. When the server has forgotten the list
    /// midway, it is read again whole: some objects then come twice.
    async fn list(
        &self,
        query: &ListQuery,
        mut each: impl FnMut(Value) -> Result<(), ClusterError> + Send,
    ) -> Result<(), ClusterError> {
        match list_each(self.cluster, &self.resource, query, &mut each).await {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == ErrorKind::Expired => {
                let whole = list_all(self.cluster, &self.resource, query).await?;
                whole.items.into_iter().try_for_each(each)
            }
            Err(error) => Err(error),
        }
    }

    /// Takes an object apart.
    fn entry_of(&self, mut object: Value) -> Entry {
        let release = object.pointer_mut("/data/release").map(Value::take);
        let Head { key, labels } = head(&object);
        drop(object);
        Entry { key, labels, record: self.record(release) }
    }

    fn record(&self, release: Option<Value>) -> Result<Record, DecodeError> {
        let Some(Value::String(release)) = release else { return Err(DecodeError::Missing) };
        let release = match self.kind {
            ObjectKind::Secret => STANDARD.decode(release)?,
            ObjectKind::ConfigMap => release.into_bytes(),
        };
        decode_record(release)
    }
}

fn head(object: &Value) -> Head {
    let key = object.pointer("/metadata/name").and_then(Value::as_str);
    Head { key: key.unwrap_or_default().to_owned(), labels: labels(object) }
}

fn labels(object: &Value) -> Labels {
    let labels = object.pointer("/metadata/labels").and_then(Value::as_object);
    let text = |(name, value): (&String, &Value)| Some((name.clone(), value.as_str()?.to_owned()));
    labels.into_iter().flat_map(Map::iter).filter_map(text).collect()
}

impl Driver for ObjectDriver<'_> {
    fn name(&self) -> &'static str {
        match self.kind {
            ObjectKind::Secret => "Secret",
            ObjectKind::ConfigMap => "ConfigMap",
        }
    }

    fn clock(&self) -> &dyn Clock {
        self.clock
    }

    fn get<'a>(&'a self, key: &'a str) -> StorageReply<'a, Stored> {
        Box::pin(async move {
            let object = match self.cluster.get(&self.target(key)).await {
                Ok(object) => object,
                Err(error) if error.is_not_found() => return Err(StorageError::NotFound),
                Err(error) => {
                    let doing = format!("get: failed to get {}", crate::gotext::quote(key));
                    return Err(self.error(doing, error));
                }
            };
            self.entry_of(object).stored(key)
        })
    }

    /// Asked for as a list of one, which needs no other right than the list of all.
    fn entry<'a>(&'a self, key: &'a str) -> StorageReply<'a, Option<Entry>> {
        Box::pin(async move {
            let query = ListQuery {
                namespace: self.namespace.clone(),
                fields: format!("metadata.name={key}"),
                limit: 1,
                ..ListQuery::default()
            };
            let page = self.cluster.list(&self.resource, &query).await;
            let page = page.map_err(|error| self.error(QUERY, error))?;
            Ok(page.items.into_iter().next().map(|object| self.entry_of(object)))
        })
    }

    fn each<'a>(
        &'a self,
        wanted: &'a Labels,
        visit: &'a mut (dyn FnMut(Entry) + Send),
    ) -> StorageReply<'a, ()> {
        Box::pin(async move {
            let (mut query, doing) = self.query_for(wanted)?;
            query.limit = if wanted.contains_key("name") { PAGE } else { 0 };
            let mut seen = BTreeSet::new();
            let each = |object: Value| {
                let entry = self.entry_of(object);
                if seen.insert(entry.key.clone()) {
                    visit(entry);
                }
                Ok::<_, ClusterError>(())
            };
            self.list(&query, each).await.map_err(|error| self.error(doing, error))
        })
    }

    fn heads<'a>(&'a self, wanted: &'a Labels) -> StorageReply<'a, Vec<Head>> {
        Box::pin(async move {
            let (mut query, doing) = self.query_for(wanted)?;
            query.metadata_only = true;
            let found = list_all(self.cluster, &self.resource, &query).await;
            let found = found.map_err(|error| self.error(doing, error))?;
            Ok(found.items.iter().map(head).collect())
        })
    }

    fn write<'a>(
        &'a self,
        key: &'a str,
        record: &'a Record,
        labels: Labels,
        write: Write,
    ) -> StorageReply<'a, ()> {
        Box::pin(async move {
            let object = self.object(key, record, &labels)?;
            let (target, options) = (self.target(key), self.options());
            match write {
                Write::New => match self.cluster.create(&target, &object, &options).await {
                    Ok(_) => Ok(()),
                    Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                        Err(StorageError::Exists)
                    }
                    Err(error) => Err(self.error("create: failed to create", error)),
                },
                Write::Replace => match self.cluster.update(&target, &object, &options).await {
                    Ok(_) => Ok(()),
                    Err(error) => Err(self.error("update: failed to update", error)),
                },
            }
        })
    }

    fn delete<'a>(&'a self, key: &'a str) -> StorageReply<'a, ()> {
        Box::pin(async move {
            match self.cluster.delete(&self.target(key), &DeleteOptions::default()).await {
                Ok(_) => Ok(()),
                Err(error) if error.is_not_found() => Err(StorageError::NotFound),
                Err(error) => Err(StorageError::Bare(error)),
            }
        })
    }
}
