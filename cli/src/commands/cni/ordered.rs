//! What a TalosCluster is asked for, written into it.

use api::{MANAGED_NAME, TalosCluster};
use helm_rs::cluster::{Cluster, ErrorKind};
use serde_json::Value;

use crate::commands::managed::write::{Change, WriteError, change, read, write_error};
use crate::error::CommandError;

/// How often a TalosCluster is written into that others write all the time.
const TRIES: u32 = 5;

/// Why it is not asked for.
#[derive(Debug)]
pub(super) enum OrderError {
    /// Somebody else asked for something else since it was looked at.
    Changed,
    /// There is none any more.
    Gone,
    /// The server does not take it.
    Write(WriteError),
}

impl OrderError {
    /// The error as the command's.
    pub(super) fn told(&self) -> CommandError {
        match self {
            Self::Changed => CommandError::new(format_args!(
                "somebody changed TalosCluster {MANAGED_NAME} while this command ran (conflict): \
                 nothing was written"
            ))
            .hint("run it again, and look at the plan again: it is of what is asked for now"),
            Self::Gone => CommandError::new(format_args!(
                "TalosCluster {MANAGED_NAME} is gone: somebody deleted it while this command ran"
            ))
            .hint("see `ichor cluster status`"),
            Self::Write(error) => write_error(error),
        }
    }
}

/// Asks for a change, if what the TalosCluster asks for is still what was looked at. What the
/// controller says in its status meanwhile is no change of that.
pub(super) async fn ordered(
    cluster: &dyn Cluster,
    looked_at: &Value,
    order: &Change,
) -> Result<TalosCluster, OrderError> {
    let mut live = looked_at.clone();
    for _ in 1..TRIES {
        let error = match change(cluster, &live, order).await {
            Ok(written) => return Ok(written),
            Err(error) => error,
        };
        // A test of a JSON patch that does not hold is said by no code of its own.
        let may_be_old = matches!(&error, WriteError::Cluster { source, .. }
            if matches!(source.kind(), ErrorKind::Invalid | ErrorKind::Conflict));
        if !may_be_old {
            return Err(OrderError::Write(error));
        }
        let now = read(cluster).await.map_err(OrderError::Write)?.ok_or(OrderError::Gone)?;
        if asks(&now) != asks(looked_at) {
            return Err(OrderError::Changed);
        }
        if version(&now) == version(&live) {
            return Err(OrderError::Write(error));
        }
        live = now;
    }
    change(cluster, &live, order).await.map_err(OrderError::Write)
}

/// What a TalosCluster asks for, and which one it is.
fn asks(object: &Value) -> [Option<&Value>; 3] {
    ["/spec", "/metadata/annotations", "/metadata/uid"].map(|place| object.pointer(place))
}

fn version(object: &Value) -> Option<&Value> {
    object.pointer("/metadata/resourceVersion")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use helm_rs::cluster::memory::{MemoryCluster, MemoryOptions};
    use helm_rs::cluster::{Clock, ManualClock, Patch, PatchKind, Target, WriteOptions, block_on};
    use serde_json::json;

    use super::*;
    use crate::commands::managed::talos_cluster_resource;

    /// What comes of it when somebody patches the TalosCluster between look and write.
    fn after(patch: Value, subresource: &str) -> (Option<TalosCluster>, Option<OrderError>) {
        let clock = ManualClock::new("2026-01-01T00:00:00Z".parse().unwrap());
        let clock = Arc::new(clock) as Arc<dyn Clock>;
        let cluster = MemoryCluster::new(clock, MemoryOptions::default());
        let object = json!({
            "apiVersion": "ichor.maesh.dev/v1alpha1", "kind": "TalosCluster",
            "metadata": { "name": "cluster", "annotations": { "ichor.maesh.dev/adopted": "true" } },
            "spec": { "cni": { "preset": "cilium" } },
        });
        for object in [api::manifest::definition().unwrap(), object] {
            cluster.load(vec![("test".to_owned(), object)]).unwrap();
        }
        let order = Change {
            values: Some(json!({ "debug": { "enabled": true } })),
            annotations: vec![(api::annotation::ACCEPTED_PLAN, "sha256:0".to_owned())],
        };
        block_on(async {
            let live = read(&cluster).await.unwrap().unwrap();
            let mut target = Target::new(&talos_cluster_resource(), "", MANAGED_NAME);
            target.subresource = subresource.to_owned();
            let patch = Patch { kind: PatchKind::Merge, body: patch };
            cluster.patch(&target, &patch, &WriteOptions::default()).await.unwrap();
            match ordered(&cluster, &live, &order).await {
                Ok(written) => (Some(written), None),
                Err(error) => (None, Some(error)),
            }
        })
    }

    #[test]
    fn what_somebody_else_asked_for_meanwhile_is_not_overwritten() {
        for patch in [
            json!({ "spec": { "cni": { "cilium": { "values": { "a": 1 } } } } }),
            json!({ "metadata": { "annotations": { "ichor.maesh.dev/accepted-plan": "x" } } }),
        ] {
            let error = after(patch, "").1.unwrap();
            assert!(matches!(error, OrderError::Changed), "{error:?}");
            let told = error.told();
            let message = String::from_utf8(told.message.unwrap()).unwrap();
            assert!(
                message.contains("somebody changed") && message.contains("nothing was written")
            );
            assert!(told.hint.unwrap().starts_with("run it again"));
        }
    }

    #[test]
    fn a_status_is_no_other_question() {
        let (written, error) = after(json!({ "status": { "observedGeneration": 1 } }), "status");
        assert!(error.is_none(), "{error:?}");
        let values = written.unwrap().spec.cni.cilium.unwrap().values;
        assert_eq!(Value::from(values), json!({ "debug": { "enabled": true } }));
    }
}
