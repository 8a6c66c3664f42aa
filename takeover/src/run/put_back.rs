//! Writing back what was: a record out of a backup, an object's ownership and leaves.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use helm_rs::apply::{FIELD_MANAGER, Item};
use helm_rs::cluster::{Cluster, ErrorKind, Patch, PatchKind, Target, WriteOptions};
use serde_json::{Map, Value, json};

use super::backup::{BackedUp, Backup, hash_of};
use super::restore::{RestoreError, failed, title};
use crate::survey::{read, resource_of, text};

/// How often a write is tried again when the object changed in between.
const TRIES: usize = 5;

pub(super) fn options() -> WriteOptions {
    WriteOptions { field_manager: FIELD_MANAGER.to_owned(), ..WriteOptions::default() }
}

/// Puts a record back as it was, labels and annotations too; one that is there and equal counts.
pub(super) async fn put_back(
    cluster: &dyn Cluster,
    backup: &Backup,
    record: &BackedUp,
) -> Result<(), RestoreError> {
    let title = title(record);
    let is_secret = record.kind == "Secret";
    let resource = resource_of(&record.kind);
    let mut data = Map::new();
    for (key, bytes) in backup.data_of(record).unwrap_or_default() {
        let value = if is_secret {
            STANDARD.encode(bytes)
        } else {
            String::from_utf8_lossy(&bytes).into_owned()
        };
        data.insert(key, value.into());
    }
    let mut object = json!({
        "apiVersion": "v1",
        "kind": record.kind,
        "metadata": { "name": record.name, "namespace": record.namespace },
        "data": data,
    });
    if !record.labels.is_empty() {
        object["metadata"]["labels"] = Value::Object(record.labels.clone());
    }
    if !record.annotations.is_empty() {
        object["metadata"]["annotations"] = Value::Object(record.annotations.clone());
    }
    if is_secret && !record.secret_type.is_empty() {
        object["type"] = record.secret_type.as_str().into();
    }
    if record.immutable {
        object["immutable"] = true.into();
    }
    let target = Target::new(&resource, &record.namespace, &record.name);
    match cluster.create(&target, &object, &options()).await {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let live = read(cluster, &resource, &record.namespace, &record.name)
                .await
                .map_err(failed(format!("read {title}")))?;
            let same = live
                .and_then(|live| hash_of(&record.kind, &live))
                .is_some_and(|hash| hash == record.hash);
            if same {
                return Ok(());
            }
            Err(RestoreError::Taken {
                kind: record.kind.clone(),
                namespace: record.namespace.clone(),
                name: record.name.clone(),
            })
        }
        Err(error) => Err(failed(format!("put {title} back"))(error)),
    }
}

/// Changes an object by a merge patch that `made` makes of it as it is now, and of no other version;
/// whether it was there and there was something to change.
pub(crate) async fn change(
    cluster: &dyn Cluster,
    item: &Item,
    made: impl Fn(&Value) -> Option<Value>,
) -> Result<bool, RestoreError> {
    for _ in 0..TRIES {
        let live = match cluster.get(&item.target).await {
            Ok(live) => live,
            Err(error) if error.is_not_found() => return Ok(false),
            Err(error) => return Err(failed(format!("read {}", item.target))(error)),
        };
        let Some(body) = made(&live) else { return Ok(false) };
        let mut patch = Patch { kind: PatchKind::Merge, body };
        let version = text(&live, "/metadata/resourceVersion");
        patch.body["metadata"]["resourceVersion"] = version.into();
        match cluster.patch(&item.target, &patch, &options()).await {
            Ok(_) => return Ok(true),
            Err(error) if error.is_not_found() => return Ok(false),
            Err(error) if error.kind() == ErrorKind::Conflict => {}
            Err(error) => return Err(failed(format!("give {} back", item.target))(error)),
        }
    }
    Err(RestoreError::Busy { object: item.target.to_string() })
}
