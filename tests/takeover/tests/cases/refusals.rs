//! What a takeover refuses, with what it says; each proven to write nothing (A12).

use std::sync::Arc;

use helm_rs::cluster::memory::{MemoryCluster, MemoryOptions};
use helm_rs::cluster::{Clock, ManualClock, ServerVersion};
use plane::{Nodes, Plane, PodHealth};
use serde_json::json;
use takeover::plan::{Outcome, Plan, Request, prepare};
use takeover_tests::{Bed, export, kube_proxy, kube_proxy_on, prepared};

/// The only refusal.
fn message<'a>(plan: &'a Plan, reason: &str) -> &'a str {
    assert_eq!(plan.refusals.len(), 1, "{:?}", plan.refusals);
    assert_eq!(plan.refusals[0].reason, reason);
    &plan.refusals[0].message
}

fn daemon_set(bed: &Bed, namespace: &str, name: &str, image: &str, container: &str) {
    let labels = json!({"app": name});
    let set = json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": container, "image": image}]},
            },
        },
    });
    let file = bed.plane.folder().join("set.json");
    std::fs::write(&file, set.to_string()).unwrap();
    bed.kubectl_with(&["apply", "-f"], &file);
    let set = format!("ds/{name}");
    bed.kubectl(&["-n", namespace, "rollout", "status", &set, "--timeout=60s"]);
    // A new namespace's own objects are there a moment later.
    bed.kubectl(&["-n", namespace, "wait", "--for=create", "cm/kube-root-ca.crt", "--timeout=60s"]);
}

/// A plane without Cilium.
async fn bare() -> Option<Bed> {
    prepared("without-cni", "1", |plane: &Plane| kube_proxy_on(plane)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_other_cni() {
    let Some(bed) = bare().await else { return };
    bed.kubectl(&["create", "namespace", "kube-flannel"]);
    let image = "docker.io/flannel/flannel:v0.27.0";
    daemon_set(&bed, "kube-flannel", "kube-flannel-ds", image, "kube-flannel");
    let plan = bed.refused(None, false).await;
    assert_eq!(plan.found.cni, "flannel");
    assert_eq!(
        message(&plan, "Cni"),
        "the cluster's CNI is flannel (DaemonSet kube-flannel/kube-flannel-ds), and not Cilium: \
         ichor neither installs, operates nor migrates another CNI; to go on with the rest and \
         leave the CNI alone, give --cni-unmanaged"
    );
    // Told to leave it alone, ichor has nothing to do and does nothing.
    let request = Request { cni_unmanaged: true, ..bed.request(None) };
    let unmanaged = prepare(&request).await.unwrap().plan;
    assert_eq!((unmanaged.outcome, unmanaged.refusals.len()), (Outcome::Nothing, 0));
    assert_eq!(unmanaged.digest, "");
}

/// Cilium beside another CNI, told to leave it alone or not.
#[tokio::test(flavor = "multi_thread")]
async fn refused_two_cnis() {
    let Some(bed) = Bed::with_cilium("1.20.0", "01").await else { return };
    let image = "quay.io/calico/node:v3.30.0";
    daemon_set(&bed, "kube-system", "calico-node", image, "calico-node");
    for unmanaged in [false, true] {
        let plan = bed.refused(None, unmanaged).await;
        assert_eq!(
            message(&plan, "Cni"),
            "the cluster has two CNIs, Cilium (DaemonSet kube-system/cilium) and Calico (DaemonSet \
             kube-system/calico-node): ichor cannot tell which one carries the pods, so that it \
             touches neither, --cni-unmanaged or not; finish the migration (or remove the one that \
             is not in use), then try again"
        );
    }
    bed.kubectl(&["-n", "kube-system", "delete", "ds", "calico-node"]);
    let plan = bed.refused(None, true).await;
    assert_eq!(
        message(&plan, "Cni"),
        "--cni-unmanaged was given, but the cluster's CNI is Cilium (DaemonSet \
         kube-system/cilium), which ichor operates: leave the flag out"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_cilium_elsewhere() {
    let Some(bed) = bare().await else { return };
    bed.kubectl(&["create", "namespace", "cilium"]);
    daemon_set(&bed, "cilium", "cilium", "quay.io/cilium/cilium:v1.20.0", "cilium-agent");
    let plan = bed.refused(None, false).await;
    assert_eq!(
        message(&plan, "Cni"),
        "Cilium runs as DaemonSet cilium/cilium, and ichor's would be DaemonSet \
         kube-system/cilium: rendering the chart for kube-system would make a second Cilium beside \
         it; move Cilium to kube-system with the tool that installed it, or leave it with that tool"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_kube_proxy_mixed() {
    // Replacement on, and kube-proxy comes.
    let Some(bed) = Bed::with_cilium("1.20.0", "01").await else { return };
    kube_proxy(&bed);
    let plan = bed.refused(None, false).await;
    assert!(message(&plan, "KubeProxy").starts_with(
        "a DaemonSet kube-proxy runs and kube-proxy-replacement is on: both answer for Services"
    ));
    // Modes in which they share the Services.
    for mode in ["partial", "probe"] {
        let patch = json!({"data": {"kube-proxy-replacement": mode}}).to_string();
        bed.kubectl(&["-n", "kube-system", "patch", "cm", "cilium-config", "-p", &patch]);
        let plan = bed.refused(None, false).await;
        let start = format!("kube-proxy-replacement is {mode:?} in the ConfigMap cilium-config");
        assert!(message(&plan, "Settings").starts_with(&start), "{:?}", plan.refusals);
    }
    bed.plane.stop();
    // Replacement off, and nobody there.
    let Some(bed) = Bed::with_cilium("1.20.0", "03").await else { return };
    let plan = bed.refused(None, false).await;
    assert!(message(&plan, "KubeProxy").starts_with(
        "no DaemonSet kube-proxy runs and kube-proxy-replacement is off: nothing answers for Services"
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_when_sick() {
    let Some(bed) = Bed::with_cilium("1.20.0", "01").await else { return };
    let client = bed.plane.client().unwrap();
    for (label, workload, field, text) in [
        (
            "k8s-app=cilium",
            "ds/cilium",
            "{.status.numberReady}=4",
            "DaemonSet kube-system/cilium is Ready on 4 of 5 nodes: a sick Cilium is not taken \
             over; bring it to Ready first, then try again",
        ),
        (
            "name=cilium-operator",
            "deploy/cilium-operator",
            "{.status.readyReplicas}=1",
            "Deployment kube-system/cilium-operator has 1 of 2 replicas Ready: bring it to Ready \
             first, then try again",
        ),
    ] {
        let path = "jsonpath={.items[0].metadata.name}";
        let pod = bed.kubectl(&["-n", "kube-system", "get", "pods", "-l", label, "-o", path]);
        Nodes::set_pod(&client, "kube-system", &pod, PodHealth::Unready).await.unwrap();
        let field = format!("--for=jsonpath={field}");
        bed.kubectl(&["-n", "kube-system", "wait", &field, workload, "--timeout=60s"]);
        let plan = bed.refused(None, false).await;
        assert_eq!(message(&plan, "Unhealthy"), text);
        Nodes::set_pod(&client, "kube-system", &pod, PodHealth::Ready).await.unwrap();
        bed.kubectl(&["-n", "kube-system", "rollout", "status", workload, "--timeout=60s"]);
    }
    assert!(bed.plan(None).await.plan.gate_is_empty(), "well again");
}

/// The cluster's Kubernetes must be one that the pinned Cilium is tested with. A plane has one
/// version, so that its objects move to a cluster in memory that says another.
#[tokio::test(flavor = "multi_thread")]
async fn refused_kubernetes_minor() {
    let Some(bed) = Bed::with_cilium("1.20.0", "01").await else { return };
    let objects: Vec<_> = export(&*bed.cluster)
        .await
        .into_iter()
        .map(|object| ("export".to_owned(), object))
        .collect();
    bed.plane.stop();
    for (minor, is_tested) in [(32, false), (33, true), (36, true), (37, false)] {
        let clock = Arc::new(ManualClock::new("2026-01-01T00:00:00Z".parse().unwrap()));
        let version = ServerVersion {
            minor: minor.to_string(),
            git_version: format!("v1.{minor}.1"),
            ..MemoryOptions::default().version
        };
        let options = MemoryOptions { version, ..MemoryOptions::default() };
        let memory = MemoryCluster::new(Arc::clone(&clock) as Arc<dyn Clock>, options);
        memory.load(objects.clone()).unwrap();
        let request = Request {
            cluster: Arc::new(memory),
            clock: &*clock,
            engine: &bed.engine,
            pinned: &bed.pinned,
            values: None,
            cni_unmanaged: false,
            who_writes: takeover::plan::WhoWrites::Caller,
            entropy: [7; 32],
            kube_prism: takeover::plan::KubePrism::default(),
            dry_runs: None,
        };
        let plan = prepare(&request).await.unwrap().plan;
        println!("Kubernetes 1.{minor}: {:?} {:?}", plan.outcome, plan.refusals);
        if is_tested {
            assert_eq!(plan.refusals, []);
        } else {
            let text = message(&plan, "Kubernetes");
            assert!(text.contains("1.33") && text.contains("1.36"), "{text}");
        }
    }
}
