//! The cluster layer: the same contract on a real API server and in memory, and a real server
//! that fails. One program, so that all tests share one control plane.
#![expect(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how a test fails")]

mod contract;
mod faults;
mod live;
mod storage;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use helm_rs::cluster::live::{Connection, Live, LiveOptions, RetryPolicy};
use helm_rs::cluster::memory::{MemoryCluster, MemoryOptions};
use helm_rs::cluster::{Clock, Cluster, Kind, ManualClock, Resource, Target};
use plane::FaultProxy;
use plane::support::{self, TestCluster, TestNamespace};
use serde_json::{Value, json};

/// The shared cluster and a namespace, or `None` when the test is skipped.
async fn namespace(name: &str) -> Option<(Arc<TestCluster>, TestNamespace)> {
    let cluster = support::or_skip(support::shared().await)?;
    let namespace = support::or_skip(cluster.namespace(name).await)?;
    Some((cluster, namespace))
}

/// Options for tests: short waits, no patience.
fn options() -> LiveOptions {
    let mut options = LiveOptions::new("ichor/test", 1);
    options.retry = RetryPolicy {
        first: Duration::from_millis(20),
        longest: Duration::from_millis(200),
        patience: Duration::from_secs(10),
        ..RetryPolicy::default()
    };
    options
}

/// A client for a kubeconfig.
async fn live(kubeconfig: &Path) -> Live {
    Live::connect(&Connection::kubeconfig(kubeconfig), options()).await.unwrap()
}

/// A client that goes through a fault proxy.
async fn through(cluster: &TestCluster, proxy: &FaultProxy, options: LiveOptions) -> Live {
    let mut connection = Connection::kubeconfig(cluster.kubeconfig());
    connection.server = Some(proxy.url());
    Live::connect(&connection, options).await.unwrap()
}

/// An empty cluster in memory with one namespace.
fn memory(namespace: &str) -> MemoryCluster {
    let clock: Arc<dyn Clock> = Arc::new(ManualClock::new("2026-01-02T03:04:05Z".parse().unwrap()));
    let options = MemoryOptions { seed: 7, agent: "ichor".to_owned(), ..MemoryOptions::default() };
    let cluster = MemoryCluster::new(clock, options);
    let namespaces = json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace },
    });
    cluster.load(vec![("namespace".to_owned(), namespaces)]).unwrap();
    cluster
}

/// The resource of a kind.
async fn resource(cluster: &dyn Cluster, api_version: &str, kind: &str) -> Arc<Resource> {
    let discovery = cluster.discovery(false).await.unwrap();
    Arc::clone(discovery.resource(&Kind::new(api_version, kind)).unwrap())
}

/// A ConfigMap's address.
async fn config_map(cluster: &dyn Cluster, namespace: &str, name: &str) -> (Target, Value) {
    let target = Target::new(&resource(cluster, "v1", "ConfigMap").await, namespace, name);
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name },
        "data": { "a": "1" },
    });
    (target, object)
}
