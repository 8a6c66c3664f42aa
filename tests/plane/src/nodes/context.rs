//! What the parts of the node helper share.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::core::v1::Node;
use kube::Client;
use nix::sys::signal::Signal;

use super::{NodeHealth, NodeSpec, NodesSetup};
use crate::process::signal_group;

/// Shared state of the node helper.
pub(super) struct Context {
    pub(super) client: Client,
    pub(super) log_port: u16,
    pub(super) setup: NodesSetup,
    nodes: Mutex<BTreeMap<String, NodeState>>,
    /// Leaders of the groups of executed pods, with `NAMESPACE/POD`; `None` once the helper is stopped.
    processes: Mutex<Option<BTreeMap<u32, String>>>,
    pod_api_server: Mutex<SocketAddr>,
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context").field("nodes", &self.nodes).finish_non_exhaustive()
    }
}

/// One node of ours.
#[derive(Debug, Clone)]
pub(super) struct NodeState {
    pub(super) spec: NodeSpec,
    /// Counts from 0; part of the node's address.
    pub(super) index: usize,
    pub(super) health: NodeHealth,
    /// The node's part of the pod addresses, such as `10.244.3.`.
    prefix: Option<String>,
    used: BTreeSet<u8>,
}

impl NodeState {
    /// Address of the node; nothing listens there, see [`super::node`].
    pub(super) fn address(&self) -> String {
        node_address(self.index)
    }
}

/// Address of the node with this index.
pub(super) fn node_address(index: usize) -> String {
    let number = index + 1;
    format!("10.250.{}.{}", number / 250, number % 250)
}

impl Context {
    pub(super) fn new(client: Client, log_port: u16, setup: NodesSetup) -> Arc<Self> {
        let context = Self {
            client,
            log_port,
            nodes: Mutex::default(),
            processes: Mutex::new(Some(BTreeMap::new())),
            pod_api_server: Mutex::new(setup.pod_api_server),
            setup,
        };
        for spec in &context.setup.nodes {
            context.add(spec.clone());
        }
        Arc::new(context)
    }

    /// Adds a node and returns its index.
    pub(super) fn add(&self, spec: NodeSpec) -> usize {
        let mut nodes = lock(&self.nodes);
        let index = nodes.len();
        let name = spec.name.clone();
        let health = NodeHealth::Ready;
        nodes.insert(name, NodeState { spec, index, health, prefix: None, used: BTreeSet::new() });
        index
    }

    /// All nodes in the order of their names.
    pub(super) fn nodes(&self) -> Vec<NodeState> {
        lock(&self.nodes).values().cloned().collect()
    }

    /// The node with this name, if it is one of ours.
    pub(super) fn node(&self, name: &str) -> Option<NodeState> {
        lock(&self.nodes).get(name).cloned()
    }

    /// Takes health and pod range from the API; tells whether the health has changed.
    pub(super) fn update(&self, node: &Node) -> bool {
        let name = node.metadata.name.as_deref().unwrap_or_default();
        let mut nodes = lock(&self.nodes);
        let Some(state) = nodes.get_mut(name) else { return false };
        let range = node.spec.as_ref().and_then(|spec| spec.pod_cidr.as_deref());
        if let Some((prefix, _)) = range.and_then(|range| range.rsplit_once('.')) {
            state.prefix = Some(format!("{prefix}."));
        }
        let health = NodeHealth::of(node);
        let changed = state.health != health;
        state.health = health;
        changed
    }

    /// A free pod address on a node, or `None` while the node has no pod range yet.
    pub(super) fn take_address(&self, node: &str) -> Option<String> {
        let mut nodes = lock(&self.nodes);
        let state = nodes.get_mut(node)?;
        let prefix = state.prefix.clone()?;
        let number = (2..=254_u8).find(|number| !state.used.contains(number))?;
        state.used.insert(number);
        Some(format!("{prefix}{number}"))
    }

    /// Notes an address that a pod has already.
    pub(super) fn keep_address(&self, node: &str, address: &str) {
        if let (Some(state), Some(number)) = (lock(&self.nodes).get_mut(node), last_number(address))
        {
            state.used.insert(number);
        }
    }

    /// Gives an address back.
    pub(super) fn free_address(&self, node: &str, address: &str) {
        if let (Some(state), Some(number)) = (lock(&self.nodes).get_mut(node), last_number(address))
        {
            state.used.remove(&number);
        }
    }

    /// Folder of a pod.
    pub(super) fn pod_folder(&self, namespace: &str, name: &str) -> PathBuf {
        self.setup.folder.join("pods").join(namespace).join(name)
    }

    /// Notes a process of an executed pod; one that comes too late is killed at once.
    pub(super) fn add_process(&self, pid: u32, pod: String) {
        match lock(&self.processes).as_mut() {
            Some(processes) => drop(processes.insert(pid, pod)),
            None => signal_group(pid, Signal::SIGKILL),
        }
    }

    /// Forgets a process that has ended.
    pub(super) fn remove_process(&self, pid: u32) {
        if let Some(processes) = lock(&self.processes).as_mut() {
            processes.remove(&pid);
        }
    }

    /// Kills all executed pods, for good.
    pub(super) fn kill_all(&self) {
        for pid in lock(&self.processes).take().unwrap_or_default().into_keys() {
            signal_group(pid, Signal::SIGKILL);
        }
    }

    /// Kills the processes of one executed pod and counts them.
    pub(super) fn kill_pod(&self, pod: &str) -> usize {
        let processes = lock(&self.processes);
        let of_pod = processes.iter().flatten().filter(|(_, owner)| *owner == pod);
        of_pod.map(|(pid, _)| signal_group(*pid, Signal::SIGKILL)).count()
    }

    /// Where executed pods reach the API server.
    pub(super) fn pod_api_server(&self) -> SocketAddr {
        *lock(&self.pod_api_server)
    }

    /// Sets where pods that start from now on reach the API server.
    pub(super) fn route_pods(&self, address: SocketAddr) {
        *lock(&self.pod_api_server) = address;
    }
}

fn last_number(address: &str) -> Option<u8> {
    address.rsplit('.').next()?.parse().ok()
}

/// A lock that a panic elsewhere does not spoil: the data is plain.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
