//! Registering nodes and keeping them alive.
//!
//! A node's `InternalIP` is an address that looks like one of a real cluster; the API server is told
//! (`--kubelet-preferred-address-types`) to reach kubelets by `InternalDNS`, which is `localhost`
//! for all of them, where the log server listens.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Patch, PatchParams, PostParams};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, watcher};
use kube::{Api, Client};
use serde_json::{Value, json};

use super::context::{Context, NodeState, node_address};
use super::status::now;
use super::{NodeHealth, NodeSpec};
use crate::error::{Error, Result};

const LEASES: &str = "kube-node-lease";
/// As a kubelet's: renewed every quarter of the Lease's 40 s.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// Registers all nodes at once.
pub(super) async fn register_all(context: &Context) -> Result<()> {
    let nodes = context.nodes();
    let registered =
        nodes.iter().map(|node| register(&context.client, context, &node.spec, node.index));
    for result in futures::future::join_all(registered).await {
        result?;
    }
    Ok(())
}

/// Creates the node if it is missing, then writes its status and Lease.
pub(super) async fn register(
    client: &Client,
    context: &Context,
    spec: &NodeSpec,
    index: usize,
) -> Result<()> {
    let failed = || Error::api(format!("register node {}", spec.name));
    let api = Api::<Node>::all(client.clone());
    let known = api.get_opt(&spec.name).await.map_err(failed())?;
    let node = if let Some(node) = known {
        node
    } else {
        let node = node_object(spec)
            .map_err(|source| Error::Document { what: format!("node {}", spec.name), source })?;
        api.create(&PostParams::default(), &node).await.map_err(failed())?
    };
    context.update(&node);
    renew_lease(client, spec).await?;
    write_status(client, context, spec, index, NodeHealth::of(&node)).await
}

fn node_object(spec: &NodeSpec) -> serde_json::Result<Node> {
    let mut labels: BTreeMap<String, String> = [
        ("kubernetes.io/os", "linux"),
        ("kubernetes.io/arch", "amd64"),
        ("beta.kubernetes.io/os", "linux"),
        ("beta.kubernetes.io/arch", "amd64"),
        ("kubernetes.io/hostname", spec.name.as_str()),
    ]
    .iter()
    .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
    .collect();
    labels.extend(spec.labels.clone());
    serde_json::from_value(json!({
        "metadata": {"name": spec.name, "labels": labels},
        "spec": {"taints": spec.taints},
    }))
}

/// Writes the status that a kubelet would.
async fn write_status(
    client: &Client,
    context: &Context,
    spec: &NodeSpec,
    index: usize,
    health: NodeHealth,
) -> Result<()> {
    let status = json!({"status": {
        "capacity": spec.capacity,
        "allocatable": spec.capacity,
        "addresses": [
            {"type": "InternalIP", "address": node_address(index)},
            {"type": "Hostname", "address": spec.name},
            {"type": "InternalDNS", "address": "localhost"},
        ],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": context.log_port}},
        "nodeInfo": {
            "architecture": "amd64",
            "bootID": format!("00000000-0000-4000-8000-{index:012}"),
            "containerRuntimeVersion": "containerd://2.1.4",
            "kernelVersion": spec.kernel_version,
            "kubeProxyVersion": "",
            "kubeletVersion": context.setup.kubernetes_version,
            "machineID": format!("{index:032}"),
            "operatingSystem": "linux",
            "osImage": spec.os_image,
            "systemUUID": format!("00000000-0000-4000-9000-{index:012}"),
        },
        "conditions": conditions(health),
    }});
    // Conditions are merged by their type, so those of others (NetworkUnavailable) stay.
    Api::<Node>::all(client.clone())
        .patch_status(&spec.name, &PatchParams::default(), &Patch::Strategic(status))
        .await
        .map(drop)
        .map_err(Error::api(format!("write the status of node {}", spec.name)))
}

fn conditions(health: NodeHealth) -> Vec<Value> {
    let now = now();
    let condition = |kind: &str, status: bool, reason: &str, message: &str| {
        json!({
            "type": kind, "status": if status { "True" } else { "False" },
            "reason": reason, "message": message,
            "lastHeartbeatTime": now, "lastTransitionTime": now,
        })
    };
    let ready = health != NodeHealth::NotReady;
    vec![
        condition("MemoryPressure", false, "KubeletHasSufficientMemory", "memory is sufficient"),
        condition("DiskPressure", false, "KubeletHasNoDiskPressure", "there is no disk pressure"),
        condition("PIDPressure", false, "KubeletHasSufficientPID", "process ids are sufficient"),
        if ready {
            condition("Ready", true, "KubeletReady", "the node helper is ready")
        } else {
            condition("Ready", false, "KubeletNotReady", "made sick on request")
        },
    ]
}

/// Creates or renews the node's Lease. Server-side apply does both in one request.
async fn renew_lease(client: &Client, spec: &NodeSpec) -> Result<()> {
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": spec.name, "namespace": LEASES},
        "spec": {
            "holderIdentity": spec.name,
            "leaseDurationSeconds": 40,
            "renewTime": Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string(),
        },
    });
    let api = Api::<Lease>::namespaced(client.clone(), LEASES);
    let params = PatchParams::apply("ichor-nodes").force();
    let failed = || Error::api(format!("renew the Lease of node {}", spec.name));
    // A fresh server is ready a moment before it has made its own namespaces.
    for _ in 0..100 {
        match api.patch(&spec.name, &params, &Patch::Apply(&lease)).await {
            Ok(_) => return Ok(()),
            Err(kube::Error::Api(status)) if status.code == 404 => {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            Err(error) => return Err(failed()(error)),
        }
    }
    Err(Error::Timeout {
        what: format!("namespace {LEASES}"),
        seconds: 5,
        last: "it does not exist".to_owned(),
    })
}

/// Renews all Leases, for ever. A failed renewal is tried again at the next beat, as a kubelet does.
pub(super) async fn heartbeat(context: Arc<Context>) {
    loop {
        tokio::time::sleep(HEARTBEAT).await;
        for node in context.nodes() {
            if node.health != NodeHealth::Silent {
                drop(renew_lease(&context.client, &node.spec).await);
            }
        }
    }
}

/// Follows the nodes' pod ranges and requested health.
pub(super) async fn watch(context: Arc<Context>) {
    let api = Api::<Node>::all(context.client.clone());
    let events = watcher(api, watcher::Config::default()).default_backoff().applied_objects();
    let mut events = std::pin::pin!(events);
    while let Some(event) = events.next().await {
        let Ok(node) = event else { continue };
        if !context.update(&node) {
            continue;
        }
        let name = node.metadata.name.as_deref().unwrap_or_default();
        if let Some(NodeState { spec, index, health, .. }) = context.node(name)
            && health != NodeHealth::Silent
        {
            drop(renew_lease(&context.client, &spec).await);
            drop(write_status(&context.client, &context, &spec, index, health).await);
        }
    }
}
