//! Tests that share one plane: each has a namespace of its own. One program, so that CI starts one
//! control plane for all of them.
#![expect(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how a test fails")]

mod audit;
mod execute;
mod faults;
mod rbac;
mod workloads;

use std::sync::Arc;

use plane::support::{self, TestCluster, TestNamespace};

/// The shared cluster and a namespace, or `None` when the test is skipped.
async fn namespace(name: &str) -> Option<(Arc<TestCluster>, TestNamespace)> {
    let cluster = support::or_skip(support::shared().await)?;
    let namespace = support::or_skip(cluster.namespace(name).await)?;
    Some((cluster, namespace))
}

/// `kubectl` on the cluster, in the namespace; returns its standard output.
fn kubectl(cluster: &TestCluster, namespace: &TestNamespace, arguments: &[&str]) -> String {
    try_kubectl(cluster, namespace, arguments).unwrap_or_else(|error| panic!("{}", error.chain()))
}

/// The same, for a command that may fail.
fn try_kubectl(
    cluster: &TestCluster,
    namespace: &TestNamespace,
    arguments: &[&str],
) -> plane::Result<String> {
    let mut command = cluster.kubectl()?;
    command.args(["--namespace", &namespace.name]).args(arguments);
    support::run(&mut command)
}

/// Applies a manifest from text.
fn apply(cluster: &TestCluster, namespace: &TestNamespace, manifest: &serde_json::Value) {
    let file = std::env::temp_dir().join(format!(
        "ichor-manifest-{}-{}.json",
        std::process::id(),
        namespace.name
    ));
    std::fs::write(&file, manifest.to_string()).unwrap();
    let path = file.display().to_string();
    kubectl(cluster, namespace, &["apply", "-f", &path]);
    std::fs::remove_file(&file).unwrap();
}
