//! Nodes without machines: what kubelets would do, done by one helper in this process.
//!
//! ```text
//! Nodes ── heartbeat ── Lease and status of every node
//!      ├── pod watch ── one worker per pod ── status, and a process when the pod is executed
//!      └── log server ── answers the API server as a kubelet would
//! ```
//!
//! Pods are *simulated* (they become Ready when everything that they need is there, Jobs complete)
//! unless they are marked for execution; then the pod's command really runs, see [`execute`].
//! How a pod or node is to behave is asked for by annotations, so that a template can carry it and
//! `kubectl annotate` works:
//!
//! | annotation | on | values |
//! |---|---|---|
//! | [`HEALTH`] | node | `ready`, `notready` (says so), `silent` (no heartbeat, its pods stand still) |
//! | [`HEALTH`] | pod | `ready`, `unready`, `crash`, `image` (cannot be pulled), `hang` (neither starts nor ends) |
//! | [`EXIT_CODE`] | pod | exit code of simulated containers that end (Jobs, init containers) |
//! | [`EXECUTE`] | pod | `true`, or the path of the local program to run |
//! | [`API_SERVER`] | pod | `ADDRESS:PORT` at which an executed pod finds the API server |

mod context;
mod environment;
mod execute;
mod life;
mod logs;
mod node;
mod objects;
mod status;
mod volumes;
mod worker;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, Pod, Taint};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::runtime::Handle;
use tokio::task::JoinSet;

use crate::client;
use crate::error::{Error, Result};
use context::Context;

pub use execute::can_execute;

/// Annotation: how healthy a node or pod is to be.
pub const HEALTH: &str = "plane.ichor.maesh.dev/health";
/// Annotation: exit code of a simulated container that ends.
pub const EXIT_CODE: &str = "plane.ichor.maesh.dev/exit-code";
/// Annotation: run the pod's command for real.
pub const EXECUTE: &str = "plane.ichor.maesh.dev/execute";
/// Annotation: where an executed pod finds the API server, such as a fault proxy.
pub const API_SERVER: &str = "plane.ichor.maesh.dev/api-server";

/// One node to register.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeSpec {
    /// Name, also in the label `kubernetes.io/hostname`.
    pub name: String,
    /// Labels beside the usual ones.
    pub labels: BTreeMap<String, String>,
    /// `status.nodeInfo.osImage`; Talos is recognised by it.
    pub os_image: String,
    /// `status.nodeInfo.kernelVersion`.
    pub kernel_version: String,
    /// Capacity, such as `cpu: "8"`.
    pub capacity: BTreeMap<String, String>,
    /// Taints that it registers with.
    #[serde(default)]
    pub taints: Vec<Taint>,
}

impl NodeSpec {
    /// A Debian node of 8 cores and 32 GiB.
    pub fn new(name: impl Into<String>) -> Self {
        let capacity = [
            ("cpu", "8"),
            ("memory", "32Gi"),
            ("pods", "110"),
            ("ephemeral-storage", "100Gi"),
            ("hugepages-2Mi", "0"),
        ];
        Self {
            name: name.into(),
            labels: BTreeMap::new(),
            os_image: "Debian GNU/Linux 13 (trixie)".to_owned(),
            kernel_version: "6.12.48+deb13-amd64".to_owned(),
            capacity: capacity.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
            taints: Vec::new(),
        }
    }

    /// Nodes `node-1` to `node-COUNT`; the first is labelled as a control plane.
    pub fn several(count: usize) -> Vec<Self> {
        let mut nodes: Vec<Self> =
            (1..=count).map(|number| Self::new(format!("node-{number}"))).collect();
        if let Some(first) = nodes.first_mut() {
            let label = "node-role.kubernetes.io/control-plane".to_owned();
            first.labels.insert(label, String::new());
        }
        nodes
    }

    /// The same node under Talos.
    #[must_use]
    pub fn talos(mut self, version: &str) -> Self {
        self.os_image = format!("Talos ({version})");
        "6.18.6-talos".clone_into(&mut self.kernel_version);
        self
    }
}

/// What a node is to be like, see [`HEALTH`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeHealth {
    /// Ready, with heartbeats.
    Ready,
    /// Says that it is not ready.
    NotReady,
    /// Sends nothing; its pods stand still.
    Silent,
}

/// What a pod is to be like, see [`HEALTH`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PodHealth {
    /// Becomes Ready when its needs are met.
    Ready,
    /// Runs and never becomes Ready.
    Unready,
    /// Crashes again and again.
    Crash,
    /// Its image cannot be pulled.
    Image,
    /// Neither starts nor ends.
    Hang,
}

impl NodeHealth {
    fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::NotReady => "notready",
            Self::Silent => "silent",
        }
    }

    fn of(node: &Node) -> Self {
        match health(node.metadata.annotations.as_ref()) {
            Some("notready") => Self::NotReady,
            Some("silent") => Self::Silent,
            _ => Self::Ready,
        }
    }
}

impl PodHealth {
    fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Unready => "unready",
            Self::Crash => "crash",
            Self::Image => "image",
            Self::Hang => "hang",
        }
    }

    fn of(pod: &Pod) -> Self {
        match health(pod.metadata.annotations.as_ref()) {
            Some("unready") => Self::Unready,
            Some("crash") => Self::Crash,
            Some("image") => Self::Image,
            Some("hang") => Self::Hang,
            _ => Self::Ready,
        }
    }
}

fn health(annotations: Option<&BTreeMap<String, String>>) -> Option<&str> {
    annotations?.get(HEALTH).map(String::as_str)
}

/// What the helper needs to know.
#[derive(Debug, Clone)]
pub struct NodesSetup {
    /// Address of the API server.
    pub server: String,
    /// CA certificate in PEM.
    pub ca: String,
    /// Token of the helper's identity.
    pub token: String,
    /// Version that the nodes report as their kubelet's.
    pub kubernetes_version: String,
    /// Server certificate for the log server.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
    /// The plane's folder; executed pods have theirs in `pods` in it.
    pub folder: PathBuf,
    /// The nodes.
    pub nodes: Vec<NodeSpec>,
    /// Image without tag or digest to local program.
    pub images: BTreeMap<String, PathBuf>,
    /// `KUBERNETES_SERVICE_HOST` and `_PORT` of executed pods, unless [`Nodes::route_pods`] or
    /// the pod's [`API_SERVER`] says another.
    pub pod_api_server: SocketAddr,
}

/// The running helper; dropping it ends the heartbeats and kills executed pods.
#[derive(Debug)]
pub struct Nodes {
    context: Arc<Context>,
    // Dropped with the helper, which aborts them.
    _tasks: JoinSet<()>,
}

impl Nodes {
    /// Registers the nodes (or renews them, when they exist) and starts to run pods.
    ///
    /// # Errors
    ///
    /// When a node cannot be registered.
    pub async fn start(runtime: &Handle, setup: NodesSetup) -> Result<Self> {
        // A client's connections live in the runtime it is made in, which must be the plane's.
        let started = runtime.spawn(async move {
            let client = client::client(&setup.server, &setup.ca, &setup.token)?;
            let mut tasks = JoinSet::new();
            let log_port = logs::serve(&mut tasks, &setup).await?;
            let context = Context::new(client, log_port, setup);
            node::register_all(&context).await?;
            tasks.spawn(node::heartbeat(Arc::clone(&context)));
            tasks.spawn(node::watch(Arc::clone(&context)));
            tasks.spawn(worker::watch_pods(Arc::clone(&context)));
            Ok(Self { context, _tasks: tasks })
        });
        started.await.unwrap_or_else(|error| {
            Err(Error::NotPossible { reason: format!("the node helper did not start: {error}") })
        })
    }

    /// Adds a node to the cluster; `client` is one of the caller's runtime.
    ///
    /// # Errors
    ///
    /// When it cannot be registered.
    pub async fn add(&self, client: &Client, spec: NodeSpec) -> Result<()> {
        let index = self.context.add(spec.clone());
        node::register(client, &self.context, &spec, index).await
    }

    /// Lets pods that are executed from now on reach the API server at another address, such as a
    /// fault proxy's.
    pub fn route_pods(&self, address: SocketAddr) {
        self.context.route_pods(address);
    }

    /// Kills the programs of an executed pod, as a crash or the kernel does, and tells how many.
    /// The pod is not deleted: it fails, or its containers start again.
    pub fn kill_pod(&self, namespace: &str, name: &str) -> usize {
        self.context.kill_pod(&format!("{namespace}/{name}"))
    }

    /// Makes a node healthy or sick.
    ///
    /// # Errors
    ///
    /// When the node cannot be annotated.
    pub async fn set_node(client: &Client, name: &str, health: NodeHealth) -> Result<()> {
        let patch = json!({"metadata": {"annotations": {HEALTH: health.as_str()}}});
        Api::<Node>::all(client.clone())
            .patch(name, &PatchParams::default(), &Patch::Merge(patch))
            .await
            .map(drop)
            .map_err(Error::api(format!("annotate node {name}")))
    }

    /// Makes a pod healthy or sick.
    ///
    /// # Errors
    ///
    /// When the pod cannot be annotated.
    pub async fn set_pod(
        client: &Client,
        namespace: &str,
        name: &str,
        health: PodHealth,
    ) -> Result<()> {
        let patch = json!({"metadata": {"annotations": {HEALTH: health.as_str()}}});
        Api::<Pod>::namespaced(client.clone(), namespace)
            .patch(name, &PatchParams::default(), &Patch::Merge(patch))
            .await
            .map(drop)
            .map_err(Error::api(format!("annotate pod {namespace}/{name}")))
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        self.context.kill_all();
    }
}
