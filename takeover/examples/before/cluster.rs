//! A cluster on which somebody installed a chart with Helm, made in memory: the same bytes each time.

use std::path::PathBuf;
use std::sync::Arc;

use helm_rs::action::install::{InstallOptions, install};
use helm_rs::action::upgrade::{UpgradeOptions, upgrade};
use helm_rs::action::{ReleaseOptions, Session};
use helm_rs::apply::{Cancel, Method, Silent};
use helm_rs::chart::{Chart, Limits, load};
use helm_rs::cluster::memory::{MemoryCluster, MemoryOptions};
use helm_rs::cluster::snapshot::Secrets;
use helm_rs::cluster::{
    Clock as _, Cluster, DeleteOptions, ManualClock, Patch, PatchKind, Resource, ServerVersion,
    Subject, Target, WriteOptions, block_on,
};
use helm_rs::release::storage::{ObjectDriver, ObjectKind};
use helm_rs::render::host::{Clock, Randomness, Reading};
use helm_rs::render::time::Zone;
use helm_rs::render::{Engine, EngineOptions, Host};
use serde_json::{Value, json};

/// What fails here fails for want of something in the repository.
pub(crate) type Failure = Box<dyn std::error::Error>;

/// The sample chart.
///
/// # Errors
/// It does not load.
pub(crate) fn sample() -> Result<Chart, Failure> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../charts/sample-cni");
    Ok(load(&folder, &Limits::default(), &mut Vec::new())?)
}

/// The revisions of the sample's release: when, and with which values.
pub(crate) const REVISIONS: [(&str, &str); 2] = [
    (
        "2026-03-02T09:12:40Z",
        "
cluster: {name: east}
kubeProxyReplacement: true
k8sServiceHost: 192.0.2.10
k8sServicePort: 6443
mtu: 1450
flow: {tls: {method: helm}}
cgroup: {autoMount: {enabled: false}, hostRoot: /sys/fs/cgroup}
securityContext:
  capabilities:
    ciliumAgent: [CHOWN, KILL, NET_ADMIN, NET_RAW, IPC_LOCK, SYS_ADMIN, SYS_RESOURCE, DAC_OVERRIDE, FOWNER, SETGID, SETUID]
    cleanCiliumState: [NET_ADMIN, SYS_ADMIN, SYS_RESOURCE]
",
    ),
    ("2026-06-18T14:03:05Z", "extraConfig: {flow-sample-rate: '64'}\n"),
];
/// When the snapshot is taken.
const TAKEN: &str = "2026-11-02T08:30:00Z";

/// What the clusters serve.
fn options() -> MemoryOptions {
    MemoryOptions {
        seed: 20,
        version: ServerVersion {
            major: "1".to_owned(),
            minor: "36".to_owned(),
            git_version: "v1.36.1".to_owned(),
            platform: "linux/amd64".to_owned(),
        },
        identity: Subject {
            user: "ops@example.org".to_owned(),
            groups: vec!["ops".to_owned(), "system:authenticated".to_owned()],
            ..Subject::default()
        },
        controllers: true,
        ..MemoryOptions::default()
    }
}

fn memory(
    at: &str,
    objects: Vec<Value>,
) -> Result<(Arc<MemoryCluster>, Arc<ManualClock>), Failure> {
    let clock = Arc::new(ManualClock::new(at.parse()?));
    let memory = MemoryCluster::new(Arc::clone(&clock) as _, options());
    memory.load(objects.into_iter().map(|object| (String::new(), object)).collect())?;
    Ok((Arc::new(memory), clock))
}

fn node(name: &str, role: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, role: ""}},
        "status": {
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
            "nodeInfo": {"osImage": "Talos (v1.12.4)", "kubeletVersion": "v1.36.1"},
        },
    })
}

/// Nodes, namespaces, and who may do what.
fn bare() -> Vec<Value> {
    let rbac = "rbac.authorization.k8s.io";
    let mut objects = vec![
        json!({
            "apiVersion": format!("{rbac}/v1"),
            "kind": "ClusterRole",
            "metadata": {"name": "cluster-admin"},
            "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}],
        }),
        json!({
            "apiVersion": format!("{rbac}/v1"),
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "ops"},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"apiGroup": rbac, "kind": "Group", "name": "ops"}],
        }),
        node("control-1", "node-role.kubernetes.io/control-plane"),
        node("worker-1", "node-role.kubernetes.io/worker"),
        node("worker-2", "node-role.kubernetes.io/worker"),
    ];
    for name in ["default", "kube-system"] {
        objects.push(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}));
    }
    objects
}

/// The objects of a cluster on which a chart was installed and upgraded, by Helm, as release
/// `cilium` of kube-system.
///
/// # Errors
/// The chart does not render, or cannot be installed.
pub(crate) fn installed(chart: &Chart, revisions: &[(&str, &str)]) -> Result<Vec<Value>, Failure> {
    let mut objects = bare();
    let engine = Engine::new(EngineOptions::default());
    let (mut install_options, mut upgrade_options) =
        (InstallOptions::default(), UpgradeOptions::default());
    let release = ReleaseOptions {
        name: "cilium".to_owned(),
        namespace: "kube-system".to_owned(),
        // Its Job came and went.
        no_hooks: true,
        ..ReleaseOptions::default()
    };
    install_options.release = release.clone();
    upgrade_options.release = release;
    upgrade_options.values = helm_rs::action::upgrade::ValuesMode::Reuse;
    for (number, (at, values)) in revisions.iter().enumerate() {
        let (cluster, clock) = memory(at, objects)?;
        let mut driver = ObjectDriver::new(&*cluster, &*clock, ObjectKind::Secret, "kube-system");
        "helm".clone_into(&mut driver.field_manager);
        let session = Session {
            cluster: Arc::clone(&cluster) as _,
            driver: &driver,
            clock: &*clock,
            zone: Zone::utc(),
            observer: &Silent,
            cancel: &Cancel::default(),
            engine: &engine,
            method: Method::default(),
        };
        let now = Clock::Fixed(Reading::at(clock.now().as_second(), 0));
        let mut host = Host::new(Randomness::Seed(number as u64 + 1), now, Zone::utc());
        let limits = goyaml::Limits::default();
        let values = goyaml::from_yaml_map(values.as_bytes(), "values", &limits)?;
        let warnings = &mut Vec::new();
        let chart = chart.clone();
        if number == 0 {
            let options = &install_options;
            block_on(install(&session, chart, &values, options, &mut host, warnings))?;
        } else {
            let options = &upgrade_options;
            block_on(upgrade(&session, chart, &values, options, &mut host, warnings))?;
        }
        objects = cluster.objects().iter().map(|object| written_by_helm(object)).collect();
    }
    Ok(objects)
}

/// The object as Helm would have written it: ichor's own engine goes by another name.
fn written_by_helm(object: &Value) -> Value {
    let mut object = object.clone();
    let entries = object.pointer_mut("/metadata/managedFields").and_then(Value::as_array_mut);
    for entry in entries.into_iter().flatten() {
        if entry["manager"] == "ichor" {
            entry["manager"] = "helm".into();
        }
    }
    object
}

/// What people did to the sample since, past Helm.
async fn edits(cluster: &dyn Cluster) -> Result<(), Failure> {
    let target = |api_version: &str, kind: &str, plural: &str, name: &str| {
        let resource = Arc::new(Resource::builtin(api_version, kind, plural, true));
        Target::new(&resource, "kube-system", name)
    };
    let agent = target("apps/v1", "DaemonSet", "daemonsets", "cilium");
    let config = target("v1", "ConfigMap", "configmaps", "cilium-config");
    let service = target("v1", "Service", "services", "cilium-flow");
    let by = |manager: &str| WriteOptions {
        field_manager: manager.to_owned(),
        ..WriteOptions::default()
    };
    let patch = |body| Patch { kind: PatchKind::Strategic, body };
    // The night on which packets were dropped: a smaller MTU, and agents that say more.
    let body = patch(json!({"data": {"mtu": "1400"}}));
    cluster.patch(&config, &body, &by("kubectl-edit")).await?;
    let body = patch(json!({"spec": {"template": {"spec": {"containers": [
        {"name": "cilium-agent", "args": ["--config-dir=/etc/sample-cni", "--log-level=debug"]},
    ]}}}}));
    cluster.patch(&agent, &body, &by("kubectl-patch")).await?;
    // Who to call.
    let body = patch(json!({"metadata": {"annotations": {"example.org/on-call": "network-team"}}}));
    cluster.patch(&agent, &body, &by("kubectl-annotate")).await?;
    // Somebody who tidied up took it for a leftover.
    cluster.delete(&service, &DeleteOptions::default()).await?;
    Ok(())
}

/// The snapshot of the sample's cluster.
///
/// # Errors
/// As [`installed`].
pub(crate) fn before() -> Result<Vec<u8>, Failure> {
    let objects = installed(&sample()?, &REVISIONS)?;
    let (cluster, _) = memory("2026-09-11T02:47:31Z", objects)?;
    block_on(edits(&*cluster))?;
    let objects = cluster.objects().iter().map(|object| Value::clone(object)).collect();
    snapshot(objects)
}

/// The snapshot of the same cluster while another network plugin is there as well.
///
/// # Errors
/// As [`installed`].
pub(crate) fn refused() -> Result<Vec<u8>, Failure> {
    let mut objects = installed(&sample()?, &REVISIONS)?;
    let labels = json!({"app": "flannel"});
    objects.push(json!({
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "kube-flannel-ds", "namespace": "kube-system", "labels": labels},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [
                    {"name": "flannel", "image": "registry.example.org/flannel:v0.27.4"},
                ]},
            },
        },
    }));
    snapshot(objects)
}

/// A snapshot of objects, taken at a time of its own.
///
/// # Errors
/// The objects are none.
pub(crate) fn snapshot(objects: Vec<Value>) -> Result<Vec<u8>, Failure> {
    let (cluster, clock) = memory(TAKEN, objects)?;
    let options = takeover::snapshot::TakeOptions {
        program: "the example's generator",
        namespaces: &[],
        secrets: Secrets::Digests,
    };
    let taken = takeover::snapshot::take(&*cluster, &*clock, options, &Silent, Vec::new());
    let (bytes, _) = block_on(taken)?;
    Ok(bytes)
}
