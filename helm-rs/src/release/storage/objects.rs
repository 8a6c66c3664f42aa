//! Records in Secrets and ConfigMaps (`driver/secrets.go`, `driver/cfgmaps.go`).

use std::collections::BTreeSet;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::error::check_label_value;
use super::{
    DecodeError, Driver, Entry, Labels, StorageError, StorageReply, Stored, decode_record,
    encode_record, labels_of, without_system,
};
use crate::cluster::{
    Clock, Cluster, ClusterError, DeleteOptions, ErrorKind, ListQuery, Resource, Target,
    WriteOptions, list_all, list_each,
};
use crate::release::Record;

/// Records of one release in one answer of the server. One of a large chart is some 400 KB, and an
/// answer is held twice while it is read; a release of ten revisions takes four answers.
const PAGE: usize = 3;

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
        WriteOptions { field_manager: self.field_manager.clone(), ..WriteOptions::default() }
    }

    /// Helm names what it was doing for Secrets and does not for ConfigMaps.
    fn error(&self, doing: impl Into<String>, source: ClusterError) -> StorageError {
        match self.kind {
            ObjectKind::Secret => StorageError::Cluster { doing: doing.into(), source },
            ObjectKind::ConfigMap => StorageError::Bare(source),
        }
    }

    fn object(&self, key: &str, record: &Record, labels: &Labels) -> Result<Value, StorageError> {
        let release = encode_record(record)?;
        let mut object = json!({
            "apiVersion": "v1",
            "metadata": { "name": key, "namespace": self.namespace, "labels": labels },
        });
        match self.kind {
            ObjectKind::Secret => {
                object["kind"] = "Secret".into();
                object["type"] = "helm.sh/release.v1".into();
                object["data"] = json!({ "release": STANDARD.encode(release) });
            }
            ObjectKind::ConfigMap => {
                object["kind"] = "ConfigMap".into();
                object["data"] = json!({ "release": release });
            }
        }
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

    fn record(&self, object: &Value) -> Result<Record, DecodeError> {
        let release =
            object.pointer("/data/release").and_then(Value::as_str).ok_or(DecodeError::Missing)?;
        match self.kind {
            ObjectKind::Secret => decode_record(&STANDARD.decode(release)?),
            ObjectKind::ConfigMap => decode_record(release.as_bytes()),
        }
    }
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
            let record = self
                .record(&object)
                .map_err(|source| StorageError::Decode { key: key.to_owned(), source })?;
            Ok(Stored { record, labels: without_system(labels(&object)) })
        })
    }

    fn query<'a>(&'a self, wanted: &'a Labels) -> StorageReply<'a, Vec<Entry>> {
        Box::pin(async move {
            let mut entries = Vec::new();
            self.each(wanted, &mut |entry| entries.push(entry)).await?;
            Ok(entries)
        })
    }

    fn each<'a>(
        &'a self,
        wanted: &'a Labels,
        visit: &'a mut (dyn FnMut(Entry) + Send),
    ) -> StorageReply<'a, ()> {
        Box::pin(async move {
            let mut selector = Vec::with_capacity(wanted.len());
            for (name, value) in wanted {
                check_label_value(value)?;
                selector.push(format!("{name}={value}"));
            }
            let query = ListQuery {
                namespace: self.namespace.clone(),
                labels: selector.join(","),
                limit: if wanted.contains_key("name") { PAGE } else { 0 },
                ..ListQuery::default()
            };
            let doing = if wanted.len() > 1 {
                "query: failed to query with labels"
            } else {
                "list: failed to list"
            };
            let mut seen = BTreeSet::new();
            let each = |object: Value| {
                let key = object.pointer("/metadata/name").and_then(Value::as_str);
                let key = key.unwrap_or_default().to_owned();
                if seen.insert(key.clone()) {
                    visit(Entry { key, labels: labels(&object), record: self.record(&object) });
                }
                Ok::<_, ClusterError>(())
            };
            self.list(&query, each).await.map_err(|error| self.error(doing, error))
        })
    }

    fn create<'a>(
        &'a self,
        key: &'a str,
        record: &'a Record,
        labels: &'a Labels,
    ) -> StorageReply<'a, ()> {
        Box::pin(async move {
            let labels = labels_of(record, labels, ("createdAt", self.clock.now().as_second()))?;
            let object = self.object(key, record, &labels)?;
            match self.cluster.create(&self.target(key), &object, &self.options()).await {
                Ok(_) => Ok(()),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(StorageError::Exists),
                Err(error) => Err(self.error("create: failed to create", error)),
            }
        })
    }

    fn update<'a>(
        &'a self,
        key: &'a str,
        record: &'a Record,
        labels: &'a Labels,
    ) -> StorageReply<'a, ()> {
        Box::pin(async move {
            let labels = labels_of(record, labels, ("modifiedAt", self.clock.now().as_second()))?;
            let object = self.object(key, record, &labels)?;
            self.cluster
                .update(&self.target(key), &object, &self.options())
                .await
                .map(drop)
                .map_err(|error| self.error("update: failed to update", error))
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
