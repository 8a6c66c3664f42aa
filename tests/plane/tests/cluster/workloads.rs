//! Simulated pods: workloads truly roll out, and not before what they need is there.

use plane::support::{TestCluster, TestNamespace, eventually, or_skip};
use plane::{EXIT_CODE, HEALTH, NodeHealth, Nodes, PodHealth};
use serde_json::{Value, json};

use crate::{apply, kubectl, namespace, try_kubectl};

/// A workload of one container that stays; the image exists, for clusters with real nodes.
fn workload(kind: &str, name: &str, version: &str) -> Value {
    let mut spec = json!({
        "selector": {"matchLabels": {"app": name}},
        "template": {
            "metadata": {"labels": {"app": name}},
            "spec": {
                "terminationGracePeriodSeconds": 1,
                "containers": [{"name": "main", "image": format!("nginx:{version}")}],
            },
        },
    });
    if kind == "Deployment" {
        spec["replicas"] = json!(3);
    }
    json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": spec})
}

fn pod_uids(cluster: &TestCluster, namespace: &TestNamespace, app: &str) -> Vec<String> {
    let path = "jsonpath={range .items[*]}{.metadata.uid}{'\\n'}{end}";
    let selector = format!("app={app}");
    let text = kubectl(cluster, namespace, &["get", "pods", "-l", &selector, "-o", path]);
    text.lines().map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_are_ready_and_look_as_asked() {
    let Some((cluster, namespace)) = namespace("nodes").await else { return };
    let Some(plane) = or_skip(cluster.plane()) else { return };
    let text = kubectl(&cluster, &namespace, &["get", "nodes", "--no-headers", "-o", "wide"]);
    let ready: Vec<&str> = text.lines().filter(|line| line.contains(" Ready ")).collect();
    let ours: Vec<&&str> = ready.iter().filter(|line| line.starts_with("node-")).collect();
    assert_eq!(ours.len(), 5, "{text}");
    assert!(ours.iter().all(|line| line.contains("Debian GNU/Linux")), "{text}");
    assert!(text.contains("control-plane"), "{text}");
    let version = kubectl(&cluster, &namespace, &["version", "-o", "json"]);
    let version: Value = serde_json::from_str(&version).unwrap();
    assert_eq!(version["serverVersion"]["gitVersion"], plane.kubernetes_version());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemonset_rolls_out_on_five_nodes_and_updates() {
    let Some((cluster, namespace)) = namespace("daemonset").await else { return };
    apply(&cluster, &namespace, &workload("DaemonSet", "agent", "1.28"));
    kubectl(&cluster, &namespace, &["rollout", "status", "ds/agent", "--timeout=60s"]);
    let before = pod_uids(&cluster, &namespace, "agent");
    if cluster.plane().is_ok() {
        assert_eq!(before.len(), 5);
    }
    apply(&cluster, &namespace, &workload("DaemonSet", "agent", "1.29"));
    kubectl(&cluster, &namespace, &["rollout", "status", "ds/agent", "--timeout=60s"]);
    let after = pod_uids(&cluster, &namespace, "agent");
    assert!(after.iter().all(|uid| !before.contains(uid)), "every pod was replaced");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deployment_updates_and_gives_every_pod_an_address() {
    let Some((cluster, namespace)) = namespace("deployment").await else { return };
    apply(&cluster, &namespace, &workload("Deployment", "web", "1.28"));
    kubectl(&cluster, &namespace, &["rollout", "status", "deploy/web", "--timeout=60s"]);
    apply(&cluster, &namespace, &workload("Deployment", "web", "1.29"));
    kubectl(&cluster, &namespace, &["rollout", "status", "deploy/web", "--timeout=60s"]);
    let path = "jsonpath={range .items[?(@.status.phase=='Running')]}{.status.podIP}{'\\n'}{end}";
    let text = kubectl(&cluster, &namespace, &["get", "pods", "-o", path]);
    let mut addresses: Vec<&str> = text.lines().collect();
    addresses.sort_unstable();
    addresses.dedup();
    assert!(addresses.len() >= 3, "{text}");
    if cluster.plane().is_ok() {
        let text = kubectl(&cluster, &namespace, &["logs", "deploy/web"]);
        assert!(text.contains("simulated"), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_completes_and_one_that_fails_says_so() {
    let Some((cluster, namespace)) = namespace("jobs").await else { return };
    if or_skip(cluster.plane()).is_none() {
        return;
    }
    let job = |name: &str, code: &str| {
        json!({
            "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
            "spec": {"backoffLimit": 0, "completions": 2, "template": {
                "metadata": {"annotations": {EXIT_CODE: code}},
                "spec": {
                    "restartPolicy": "Never",
                    "initContainers": [{"name": "first", "image": "example.org/first"},
                        {"name": "side", "image": "example.org/side", "restartPolicy": "Always"}],
                    "containers": [{"name": "main", "image": "example.org/main"}],
                },
            }},
        })
    };
    apply(&cluster, &namespace, &job("good", "0"));
    kubectl(
        &cluster,
        &namespace,
        &["wait", "--for=condition=Complete", "job/good", "--timeout=60s"],
    );
    let mut bad = job("bad", "3");
    bad["spec"]["template"]["spec"]["initContainers"] = json!([]);
    apply(&cluster, &namespace, &bad);
    kubectl(&cluster, &namespace, &["wait", "--for=condition=Failed", "job/bad", "--timeout=60s"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_waits_for_its_secret_and_configmap() {
    let Some((cluster, namespace)) = namespace("needs").await else { return };
    let mut deployment = workload("Deployment", "needy", "1.28");
    deployment["spec"]["replicas"] = json!(1);
    let pod = &mut deployment["spec"]["template"]["spec"];
    pod["volumes"] = json!([
        {"name": "s", "secret": {"secretName": "late"}},
        {"name": "o", "configMap": {"name": "never", "optional": true}},
    ]);
    pod["containers"][0]["env"] = json!([
        {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "a"}}},
    ]);
    apply(&cluster, &namespace, &deployment);
    let reason = |wanted: &'static str| {
        let (cluster, namespace) = (&cluster, &namespace);
        eventually(wanted, 30, move || async move {
            let path = "jsonpath={.items[*].status.containerStatuses[*].state.waiting}";
            let text = try_kubectl(cluster, namespace, &["get", "pods", "-o", path])?;
            Ok(text.contains(wanted).then_some(()))
        })
    };
    if cluster.plane().is_ok() {
        // A kubelet tells it in an event only.
        reason("secret \\\"late\\\" not found").await.unwrap();
    }
    kubectl(&cluster, &namespace, &["create", "secret", "generic", "late"]);
    reason("CreateContainerConfigError").await.unwrap();
    let short = ["rollout", "status", "deploy/needy", "--timeout=1s"];
    assert!(try_kubectl(&cluster, &namespace, &short).is_err(), "must not be Ready");
    kubectl(&cluster, &namespace, &["create", "configmap", "settings", "--from-literal=a=b"]);
    kubectl(&cluster, &namespace, &["rollout", "status", "deploy/needy", "--timeout=30s"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_is_made_sick_and_well_again() {
    let Some((cluster, namespace)) = namespace("sick-pod").await else { return };
    if or_skip(cluster.plane()).is_none() {
        return;
    }
    let mut deployment = workload("Deployment", "web", "1.28");
    deployment["spec"]["replicas"] = json!(1);
    apply(&cluster, &namespace, &deployment);
    kubectl(&cluster, &namespace, &["rollout", "status", "deploy/web", "--timeout=60s"]);
    let name = kubectl(&cluster, &namespace, &["get", "pods", "-o", "name"]);
    let name = name.trim().trim_start_matches("pod/");
    let set = |health| Nodes::set_pod(&namespace.client, &namespace.name, name, health);
    let pod = format!("pod/{name}");
    let wait = |what: &str| {
        kubectl(&cluster, &namespace, &["wait", what, &pod, "--timeout=30s"]);
    };
    set(PodHealth::Unready).await.unwrap();
    wait("--for=condition=Ready=False");
    set(PodHealth::Ready).await.unwrap();
    wait("--for=condition=Ready");
    set(PodHealth::Crash).await.unwrap();
    wait("--for=jsonpath={.status.containerStatuses[0].state.waiting.reason}=CrashLoopBackOff");
    set(PodHealth::Ready).await.unwrap();
    wait("--for=condition=Ready");

    let mut broken = workload("Deployment", "broken", "1.28");
    broken["spec"]["template"]["metadata"]["annotations"] = json!({HEALTH: "image"});
    apply(&cluster, &namespace, &broken);
    let path =
        "--for=jsonpath={.status.containerStatuses[0].state.waiting.reason}=ImagePullBackOff";
    kubectl(&cluster, &namespace, &["wait", "pod", "-l", "app=broken", path, "--timeout=30s"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_is_made_sick_and_well_again() {
    let Some((cluster, namespace)) = namespace("sick-node").await else { return };
    let Some(plane) = or_skip(cluster.plane()) else { return };
    let Some(nodes) = plane.nodes() else { panic!("the plane has nodes") };
    // A node of its own, so that the other tests keep theirs; the taint keeps their pods away.
    let mut spec = plane::NodeSpec::new("sick").talos("v1.13.0");
    let taint = json!({"key": "example.org/sick", "effect": "NoSchedule"});
    spec.taints = vec![serde_json::from_value(taint).unwrap()];
    nodes.add(&namespace.client, spec).await.unwrap();
    kubectl(&cluster, &namespace, &["wait", "--for=condition=Ready", "node/sick", "--timeout=30s"]);
    let path = "jsonpath={.status.nodeInfo.osImage}";
    let image = kubectl(&cluster, &namespace, &["get", "node", "sick", "-o", path]);
    assert_eq!(image, "Talos (v1.13.0)");
    Nodes::set_node(&namespace.client, "sick", NodeHealth::NotReady).await.unwrap();
    let not_ready = "--for=condition=Ready=False";
    kubectl(&cluster, &namespace, &["wait", not_ready, "node/sick", "--timeout=30s"]);
    Nodes::set_node(&namespace.client, "sick", NodeHealth::Ready).await.unwrap();
    kubectl(&cluster, &namespace, &["wait", "--for=condition=Ready", "node/sick", "--timeout=30s"]);
    kubectl(&cluster, &namespace, &["delete", "node", "sick"]);
}
