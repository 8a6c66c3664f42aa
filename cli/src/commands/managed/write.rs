//! The TalosCluster, written.

use api::{MANAGED_NAME, TalosCluster, annotation};
use helm_rs::cluster::{Cluster, ClusterError, ErrorKind, Patch, PatchKind, Target, WriteOptions};
use serde_json::{Map, Value, json};

use super::talos_cluster_resource;
use crate::commands::cni::shared::no;
use crate::commands::cni::trouble::server_error;
use crate::error::CommandError;

/// The field manager of what the user has written by this program.
const MANAGER: &str = "ichor-cli";

/// A TalosCluster as it is to be.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wish {
    /// `spec.cni`, where there is no TalosCluster yet.
    pub(crate) cni: Value,
    /// The digest of the plan that was consented to; none for one that asks for nothing.
    pub(crate) accepted_plan: Option<String>,
    /// The inline manifest of Talos that Cilium came from.
    pub(crate) inline_manifest: Option<String>,
    /// Another value than before lets the controller try again what it refused.
    pub(crate) retry: Option<String>,
}

/// What became of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// The object is another one now.
    Changed,
    /// It was so already.
    Same,
}

/// Why it is not written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WriteError {
    /// The server does not take it.
    #[error("{doing} TalosCluster {MANAGED_NAME}")]
    Cluster {
        /// What was being done.
        doing: &'static str,
        /// What it says.
        source: ClusterError,
    },
    /// What it answers is none.
    #[error("the TalosCluster that the server answers cannot be read: {0}")]
    Object(serde_json::Error),
}

fn failed(doing: &'static str) -> impl FnOnce(ClusterError) -> WriteError {
    move |source| WriteError::Cluster { doing, source }
}

fn target() -> Target {
    Target::new(&talos_cluster_resource(), "", MANAGED_NAME)
}

fn options() -> WriteOptions {
    WriteOptions { field_manager: MANAGER.to_owned(), ..WriteOptions::default() }
}

/// The live one as the server has it; none when there is none.
pub(crate) async fn read(cluster: &dyn Cluster) -> Result<Option<Value>, WriteError> {
    match cluster.get(&target()).await {
        Ok(object) => Ok(Some(object)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(failed("read")(error)),
    }
}

/// Makes the TalosCluster an adopted one, by server-side apply: what somebody else wrote of its spec
/// stays theirs.
pub(crate) async fn adopt(cluster: &dyn Cluster, wish: &Wish) -> Result<Written, WriteError> {
    let live = read(cluster).await?;
    let patch = Patch { kind: PatchKind::Apply, body: body(live.as_ref(), wish) };
    let options = WriteOptions { force: true, ..options() };
    let written = cluster.patch(&target(), &patch, &options).await.map_err(failed("write"))?;
    let version = |object: &Value| object.pointer("/metadata/resourceVersion").cloned();
    let is_same = live.is_some_and(|live| version(&live) == version(&written));
    Ok(if is_same { Written::Same } else { Written::Changed })
}

/// What is applied. A spec that this program applied before is part of it as it is now: fields that
/// an apply leaves out are removed.
fn body(live: Option<&Value>, wish: &Wish) -> Value {
    let mut annotations = Map::new();
    annotations.insert(annotation::ADOPTED.to_owned(), "true".into());
    let kept = |name: &str| {
        let all = live?.pointer("/metadata/annotations")?;
        Some(all.get(name)?.as_str()?.to_owned())
    };
    for (name, value) in [
        (annotation::ACCEPTED_PLAN, wish.accepted_plan.clone()),
        (annotation::CNI_INLINE_MANIFEST, wish.inline_manifest.clone()),
        (annotation::RETRY, wish.retry.clone()),
    ] {
        if let Some(value) = value.or_else(|| kept(name)) {
            annotations.insert(name.to_owned(), value.into());
        }
    }
    let mut body = json!({
        "apiVersion": "ichor.maesh.dev/v1alpha1",
        "kind": "TalosCluster",
        "metadata": { "name": MANAGED_NAME, "annotations": annotations },
    });
    match live {
        None => body["spec"] = json!({ "cni": wish.cni }),
        Some(live) if was_applied(live) => body["spec"] = live["spec"].clone(),
        Some(_) => {}
    }
    body
}

/// Whether this program applied the object before.
fn was_applied(live: &Value) -> bool {
    let managers = live.pointer("/metadata/managedFields").and_then(Value::as_array);
    managers
        .into_iter()
        .flatten()
        .any(|entry| entry["manager"] == MANAGER && entry["operation"] == "Apply")
}

/// What is changed of a managed TalosCluster.
#[derive(Clone, Debug, Default)]
pub(crate) struct Change {
    /// `spec.cni.cilium.values`; none: as they are.
    pub(crate) values: Option<Value>,
    /// Annotations; an empty text takes one away.
    pub(crate) annotations: Vec<(&'static str, String)>,
}

/// Changes the TalosCluster, if it is still the one that was looked at.
pub(crate) async fn change(
    cluster: &dyn Cluster,
    live: &Value,
    change: &Change,
) -> Result<TalosCluster, WriteError> {
    let patch = Patch { kind: PatchKind::Json, body: operations(live, change) };
    let written = cluster.patch(&target(), &patch, &options()).await.map_err(failed("change"))?;
    serde_json::from_value(written).map_err(WriteError::Object)
}

fn operations(live: &Value, change: &Change) -> Value {
    let version = &live["metadata"]["resourceVersion"];
    let mut operations =
        vec![json!({ "op": "test", "path": "/metadata/resourceVersion", "value": version })];
    let add = |path: &str, value: &Value| json!({ "op": "add", "path": path, "value": value });
    if let Some(values) = &change.values {
        // Adding replaces what is there.
        operations.push(add("/spec/cni/cilium", &json!({ "values": values })));
    }
    if live.pointer("/metadata/annotations").is_none() && !change.annotations.is_empty() {
        operations.push(add("/metadata/annotations", &json!({})));
    }
    for (name, value) in &change.annotations {
        let path = format!("/metadata/annotations/{}", name.replace('~', "~0").replace('/', "~1"));
        let is_there = live["metadata"]["annotations"].get(*name).is_some();
        match value.as_str() {
            "" if is_there => operations.push(json!({ "op": "remove", "path": path })),
            "" => {}
            value => operations.push(add(&path, &value.into())),
        }
    }
    operations.into()
}

/// A write's error as the command's.
pub(crate) fn write_error(error: &WriteError) -> CommandError {
    let WriteError::Cluster { source, .. } = error else { return CommandError::new(error) };
    match source.kind() {
        ErrorKind::NotFound => no(
            "this cluster knows no TalosClusters: their definition is not installed",
            "kubectl apply --server-side -f charts/ichor/crds, then run it again",
        ),
        ErrorKind::Conflict => CommandError::new(error_text(error))
            .hint("somebody changed it in between: run it again, and look at the plan again"),
        // What a rule of the definition or of the policy says.
        ErrorKind::Invalid => no(error_text(error), "nothing was written"),
        _ => server_error(error),
    }
}

fn error_text(error: &WriteError) -> String {
    helm_rs::error_chain(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_wrote_stays_theirs() {
        let wish = Wish {
            cni: json!({ "preset": "cilium" }),
            accepted_plan: Some("sha256:0".to_owned()),
            inline_manifest: None,
            retry: None,
        };
        let fresh = body(None, &wish);
        assert_eq!(fresh["spec"], json!({ "cni": { "preset": "cilium" } }));
        assert_eq!(
            fresh["metadata"]["annotations"],
            json!({
                "ichor.maesh.dev/adopted": "true", "ichor.maesh.dev/accepted-plan": "sha256:0",
            })
        );
        let mut live = json!({
            "metadata": {
                "annotations": { "ichor.maesh.dev/cni-inline-manifest": "x", "a": "b" },
                "managedFields": [{ "manager": "kubectl", "operation": "Apply" }],
            },
            "spec": { "cni": { "preset": "cilium", "tunnel": "geneve" } },
        });
        let theirs = body(Some(&live), &wish);
        assert_eq!(theirs.get("spec"), None);
        assert_eq!(theirs["metadata"]["annotations"]["ichor.maesh.dev/cni-inline-manifest"], "x");
        assert_eq!(theirs["metadata"]["annotations"].get("a"), None);
        live["metadata"]["managedFields"][0]["manager"] = MANAGER.into();
        assert_eq!(body(Some(&live), &wish)["spec"], live["spec"], "what was ours is not dropped");
    }

    #[test]
    fn a_change_is_of_the_object_that_was_looked_at() {
        let change = Change {
            values: Some(json!({ "debug": { "enabled": true } })),
            annotations: vec![("a/b", "c".to_owned()), ("d", String::new())],
        };
        let live = json!({ "metadata": { "resourceVersion": "7" } });
        assert_eq!(
            operations(&live, &change),
            json!([
                { "op": "test", "path": "/metadata/resourceVersion", "value": "7" },
                {
                    "op": "add", "path": "/spec/cni/cilium",
                    "value": { "values": { "debug": { "enabled": true } } },
                },
                { "op": "add", "path": "/metadata/annotations", "value": {} },
                { "op": "add", "path": "/metadata/annotations/a~1b", "value": "c" },
            ])
        );
        let live = json!({
            "metadata": { "resourceVersion": "7", "annotations": { "d": "e" } },
        });
        let operations = operations(&live, &change);
        assert_eq!(operations[3], json!({ "op": "remove", "path": "/metadata/annotations/d" }));
    }
}
