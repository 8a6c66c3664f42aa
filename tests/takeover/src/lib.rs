//! What the tests of takeovers share: a cluster with Cilium as somebody installed it, a plan, a
//! takeover, and what is left afterwards.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::missing_errors_doc,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    reason = "test code: a panic is how a test says that its surroundings are wrong, and figures \
              are printed"
)]

pub mod by_hand;
pub mod job;
pub mod process;
pub mod records;
pub mod rehearsal;
pub mod releases;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cilium::pinned::{LOCK, Pinned, pin};
use goyaml::Map;
use helm_rs::apply::{Cancel, Silent};
use helm_rs::chart::Limits;
use helm_rs::cluster::live::{Connection, Live, LiveOptions, SystemClock};
use helm_rs::cluster::{Cluster, ListQuery, Resource, list_all};
use helm_rs::render::{Engine, EngineOptions};
use plane::{Plane, PlaneOptions, SavedState};
use serde_json::Value;
use takeover::plan::{Action, Outcome, Plan, Prepared, Request, WhoWrites, prepare};
use takeover::run::{Done, Run, RunError, take_over};

/// A cluster and what plans and takes over on it.
pub struct Bed {
    /// The plane.
    pub plane: Plane,
    /// The client.
    pub cluster: Arc<dyn Cluster>,
    /// What renders.
    pub engine: Engine,
    /// The pinned chart.
    pub pinned: Pinned,
    /// The clock.
    pub clock: SystemClock,
}

/// The pinned chart out of the shared inputs.
pub fn pinned() -> Pinned {
    let pin = pin(LOCK).expect("the pins");
    let archive = std::fs::read(plane::cilium::chart(&pin.version).expect("the chart"));
    Pinned::load(&pin, &archive.expect("the archive"), &Limits::default(), &mut Vec::new())
        .expect("the pinned chart")
}

impl Bed {
    /// The bed around a plane.
    pub async fn new(plane: Plane) -> Self {
        let connection = Connection::kubeconfig(plane.kubeconfig());
        let live = Live::connect(&connection, LiveOptions::new("ichor/test", 1)).await;
        Self {
            plane,
            cluster: Arc::new(live.expect("a client")),
            engine: Engine::new(EngineOptions::default()),
            pinned: pinned(),
            clock: SystemClock::new(),
        }
    }

    /// A plane with Cilium installed by real Helm; none when something is missing.
    pub async fn with_cilium(version: &str, values: &str) -> Option<Self> {
        Self::of(plane::cilium::state(version, values).await).await
    }

    /// The bed on a saved state; none when something is missing.
    pub async fn of(state: plane::Result<SavedState>) -> Option<Self> {
        let state = plane::support::or_skip(state)?;
        let plane = Plane::restore(&state, PlaneOptions::default()).await;
        Some(Self::new(plane.expect("a plane")).await)
    }

    /// What to plan.
    pub fn request<'a>(&'a self, values: Option<&'a Map>) -> Request<'a> {
        Request {
            cluster: Arc::clone(&self.cluster),
            clock: &self.clock,
            engine: &self.engine,
            pinned: &self.pinned,
            values,
            cni_unmanaged: false,
            who_writes: WhoWrites::Caller,
            entropy: [7; 32],
            kube_prism: takeover::plan::KubePrism::default(),
            dry_runs: None,
        }
    }

    /// A plan, with its figures printed.
    pub async fn plan(&self, values: Option<&Map>) -> Prepared {
        let mark = self.plane.audit_log().mark();
        let began = Instant::now();
        let prepared = self.plan_only(values).await;
        let seconds = began.elapsed().as_secs_f64();
        let figures = prepared.plan.figures();
        println!("plan: {seconds:.2} s, {} requests, {figures:?}", self.requests(mark));
        prepared
    }

    /// A plan.
    pub async fn plan_only(&self, values: Option<&Map>) -> Prepared {
        prepare(&self.request(values)).await.unwrap_or_else(|error| {
            panic!("{}", helm_rs::error_chain(&error));
        })
    }

    /// Requests of this identity since a mark.
    pub fn requests(&self, mark: plane::AuditMark) -> usize {
        self.plane.audit_log().requests(plane::ADMIN_USER, mark).map_or(0, |all| all.len())
    }

    /// A takeover with the consent that the plan asks for.
    pub async fn take_over(&self, values: Option<&Map>, plan: &Plan) -> Result<Done, RunError> {
        Box::pin(self.take_over_with(values, plan, true, true)).await
    }

    /// A takeover with some of the consents.
    pub async fn take_over_with(
        &self,
        values: Option<&Map>,
        plan: &Plan,
        accept_changes: bool,
        accept_diff: bool,
    ) -> Result<Done, RunError> {
        let cancel = Cancel::default();
        let run = Run {
            request: self.request(values),
            digest: Some(plan.digest.clone()),
            accept_changes,
            accept_diff,
            holder: format!("test-{}", std::process::id()),
            observer: &Silent,
            cancel: &cancel,
            timeout: Duration::from_mins(2),
        };
        let mark = self.plane.audit_log().mark();
        let began = Instant::now();
        let done = take_over(&run).await;
        let seconds = began.elapsed().as_secs_f64();
        println!("takeover: {seconds:.2} s, {} requests, {done:?}", self.requests(mark));
        done
    }

    /// A takeover that is refused, as A12 asks: planning it writes nothing, and running it nothing
    /// but the namespace and the lock; every object keeps its resourceVersion. Gives the plan.
    pub async fn refused(&self, values: Option<&Map>, cni_unmanaged: bool) -> Plan {
        let request = || Request { cni_unmanaged, ..self.request(values) };
        let versions = self.versions().await;
        let mark = self.plane.audit_log().mark();
        let began = Instant::now();
        let plan = prepare(&request()).await.expect("a plan").plan;
        let seconds = began.elapsed().as_secs_f64();
        println!("refused: {seconds:.2} s, {} requests, {:?}", self.requests(mark), plan.refusals);
        assert!(plan.is_refused() && plan.outcome == Outcome::Refused, "{:?}", plan.outcome);
        let writes = || self.plane.audit_log().writes(plane::ADMIN_USER, mark).expect("the log");
        assert_eq!(writes(), []);
        let cancel = Cancel::default();
        let run = Run {
            request: request(),
            digest: None,
            accept_changes: true,
            accept_diff: true,
            holder: "test-refused".to_owned(),
            observer: &Silent,
            cancel: &cancel,
            timeout: Duration::from_mins(2),
        };
        let error = take_over(&run).await.expect_err("a refusal");
        assert!(error.is_refusal(), "{error}");
        let strange: Vec<String> =
            writes().iter().filter(|write| !is_lock(write)).map(ToString::to_string).collect();
        assert_eq!(strange, [] as [String; 0], "only the namespace and the lock are written");
        assert_eq!(self.versions().await, versions);
        plan
    }

    /// The resourceVersion of the chart's objects and of all records.
    pub async fn versions(&self) -> BTreeMap<String, String> {
        let mut versions = BTreeMap::new();
        for (api, kind, plural, namespaced) in [
            ("v1", "Secret", "secrets", true),
            ("v1", "ConfigMap", "configmaps", true),
            ("v1", "Service", "services", true),
            ("v1", "ServiceAccount", "serviceaccounts", true),
            ("apps/v1", "DaemonSet", "daemonsets", true),
            ("apps/v1", "Deployment", "deployments", true),
            ("rbac.authorization.k8s.io/v1", "Role", "roles", true),
            ("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings", true),
            ("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles", false),
            ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "clusterrolebindings", false),
        ] {
            let resource = Resource::builtin(api, kind, plural, namespaced);
            let page = list_all(&*self.cluster, &resource, &ListQuery::default()).await;
            for item in page.expect("a list").items {
                // Others' workloads go on writing their status.
                let name = text_at(&item, "/metadata/name");
                let names = ["cilium", "clustermesh", "hubble", "sh.helm.release.v1."];
                if names.iter().any(|start| name.starts_with(start)) {
                    // A controller writes a workload's status whenever it gets to it.
                    let version = match kind {
                        "DaemonSet" | "Deployment" => {
                            format!("{:?} {:?}", item["metadata"]["annotations"], item["spec"])
                        }
                        _ => text_at(&item, "/metadata/resourceVersion"),
                    };
                    versions.insert(format!("{kind} {}", place(&item)), version);
                }
            }
        }
        versions
    }

    /// Real Helm, with arguments; its standard output.
    pub fn helm(&self, arguments: &[&str]) -> String {
        let mut helm = self.plane.helm().expect("helm");
        plane::support::run(helm.args(arguments))
            .unwrap_or_else(|error| panic!("{}", error.chain()))
    }

    /// kubectl, with arguments; its standard output.
    pub fn kubectl(&self, arguments: &[&str]) -> String {
        let mut kubectl = self.plane.kubectl().expect("kubectl");
        run(kubectl.args(arguments))
    }

    /// What `kubectl apply` and the like get from standard input.
    pub fn kubectl_with(&self, arguments: &[&str], file: &Path) -> String {
        let mut kubectl = self.plane.kubectl().expect("kubectl");
        run(kubectl.args(arguments).arg(file))
    }

    /// Every pod and workload of all namespaces.
    pub async fn footprints(&self) -> Footprints {
        let mut all = Footprints::default();
        for (api, kind, plural) in [
            ("v1", "Pod", "pods"),
            ("apps/v1", "DaemonSet", "daemonsets"),
            ("apps/v1", "Deployment", "deployments"),
            ("apps/v1", "ReplicaSet", "replicasets"),
            ("apps/v1", "StatefulSet", "statefulsets"),
        ] {
            let resource = Resource::builtin(api, kind, plural, true);
            let page = list_all(&*self.cluster, &resource, &ListQuery::default()).await;
            for item in page.expect("a list").items {
                all.0.insert(format!("{kind} {}", place(&item)), Footprint::of(&item));
            }
        }
        all
    }
}

/// Whether a request is about the lock or the namespace that it stands in.
pub fn is_lock(write: &plane::AuditedRequest) -> bool {
    write.resource == "leases" && write.uri.contains("/ichor-system/")
        || write.resource == "namespaces"
            && (write.name == "ichor-system" || write.verb == "create")
}

/// What tells whether a pod or workload is still the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Footprint {
    /// Its UID.
    pub uid: String,
    /// Its generation.
    pub generation: i64,
    /// The node of a pod.
    pub node: String,
    /// The title of what owns it.
    pub owner: String,
}

/// Pods and workloads by title, as `Pod kube-system/cilium-x`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Footprints(pub BTreeMap<String, Footprint>);

fn text_at(object: &Value, pointer: &str) -> String {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn place(object: &Value) -> String {
    format!("{}/{}", text_at(object, "/metadata/namespace"), text_at(object, "/metadata/name"))
}

impl Footprint {
    fn of(object: &Value) -> Self {
        let owner = object.pointer("/metadata/ownerReferences/0");
        let owner = owner.map(|owner| {
            let namespace = text_at(object, "/metadata/namespace");
            format!("{} {namespace}/{}", text_at(owner, "/kind"), text_at(owner, "/name"))
        });
        Self {
            uid: text_at(object, "/metadata/uid"),
            generation: object.pointer("/metadata/generation").and_then(Value::as_i64).unwrap_or(0),
            node: text_at(object, "/spec/nodeName"),
            owner: owner.unwrap_or_default(),
        }
    }
}

impl Footprints {
    /// UID and node of a workload's pods.
    pub fn pods_of(&self, workload: &str) -> BTreeMap<&str, &str> {
        let owned = |print: &Footprint, by: &str| print.owner == by;
        let sets = self.0.iter().filter(|(_, print)| owned(print, workload));
        let mut owners: Vec<&str> = vec![workload];
        owners
            .extend(sets.map(|(title, _)| title.as_str()).filter(|t| t.starts_with("ReplicaSet ")));
        self.0
            .iter()
            .filter(|(title, print)| {
                title.starts_with("Pod ") && owners.iter().any(|owner| owned(print, owner))
            })
            .map(|(_, print)| (print.uid.as_str(), print.node.as_str()))
            .collect()
    }
}

/// The forecast is what happened: of each workload that the plan says restarts, every pod was
/// replaced, as many as it says on as many nodes; every other pod and workload is as it was, with
/// its UID and its generation.
///
/// The API server counts a Deployment's generation up when its annotations change
/// (`pkg/registry/apps/deployment/strategy.go`, `PrepareForUpdate`), so that one whose ownership
/// annotations were written moves by one, with its ReplicaSets as they were.
pub fn assert_forecast(before: &Footprints, after: &Footprints, plan: &Plan) {
    let mut restarted = 0;
    let mut loose: Vec<String> = Vec::new();
    let mut moved: BTreeMap<String, i64> = BTreeMap::new();
    for object in &plan.objects {
        let title = object.about.to_string();
        if object.action == Action::Create {
            // What the plan creates brings its own pods, as a Job that issues certificates does.
            loose.push(title);
            continue;
        }
        let Some(print) = before.0.get(&title) else { continue };
        let (old, new) = (before.pods_of(&title), after.pods_of(&title));
        let in_spec = object.differences.iter().any(|d| d.path.starts_with("spec"));
        let annotated = |path: &str| path.starts_with("metadata.annotations");
        let annotated = object.about.kind == "Deployment"
            && object.ownership.iter().chain(&object.differences).any(|o| annotated(&o.path));
        moved.insert(title.clone(), print.generation + i64::from(in_spec || annotated));
        if let Some(restart) = plan.restarts.iter().find(|r| r.about == object.about) {
            let nodes: std::collections::BTreeSet<&&str> = old.values().collect();
            assert_eq!(restart.pods, old.len() as u64, "{title}: forecast pods");
            assert_eq!(restart.nodes, nodes.len() as u64, "{title}: forecast nodes");
            if restart.on_delete {
                assert_eq!(new, old, "{title}: pods stay until somebody deletes them");
                continue;
            }
            let kept: Vec<_> = old.keys().filter(|uid| new.contains_key(**uid)).collect();
            assert!(kept.is_empty(), "{title}: {} pods were to restart and did not", kept.len());
            restarted += old.len();
            loose.push(title);
        } else {
            assert_eq!(new, old, "{title}: pods were replaced, and no restart was forecast");
        }
    }
    let is_loose = |title: &str, print: &Footprint| {
        let owner = |print: &Footprint| {
            before
                .0
                .get(&print.owner)
                .or_else(|| after.0.get(&print.owner))
                .map(|p| p.owner.clone())
        };
        !title.starts_with("Pod ") && loose.contains(&print.owner)
            || title.starts_with("Pod ")
                && (loose.contains(&print.owner)
                    || owner(print).is_some_and(|above| loose.contains(&above)))
    };
    for (title, print) in &before.0 {
        if is_loose(title, print) {
            continue;
        }
        let mut expected = print.clone();
        expected.generation = moved.get(title).copied().unwrap_or(print.generation);
        assert_eq!(after.0.get(title), Some(&expected), "{title}");
    }
    for (title, print) in &after.0 {
        let is_forecast = loose.contains(title) || is_loose(title, print);
        assert!(before.0.contains_key(title) || is_forecast, "{title} is new");
    }
    println!(
        "forecast held: {} workloads restart, {restarted} pods; {} pods and workloads watched",
        plan.restarts.len(),
        before.0.len()
    );
}

fn run(command: &mut Command) -> String {
    plane::support::run(command).unwrap_or_else(|error| panic!("{}", error.chain()))
}

/// A stand-in for kube-proxy, for value sets without its replacement; waits until it runs.
pub fn kube_proxy(bed: &Bed) {
    kube_proxy_on(&bed.plane);
    bed.kubectl(&["-n", "kube-system", "rollout", "status", "ds/kube-proxy", "--timeout=60s"]);
}

fn kube_proxy_manifest() -> String {
    serde_json::json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {"name": "kube-proxy", "namespace": "kube-system"},
        "spec": {
            "selector": {"matchLabels": {"k8s-app": "kube-proxy"}},
            "template": {
                "metadata": {"labels": {"k8s-app": "kube-proxy"}},
                "spec": {"containers": [
                    {"name": "kube-proxy", "image": "registry.k8s.io/kube-proxy:v1.36.4"},
                ]},
            },
        },
    })
    .to_string()
}

/// A plane prepared once: the stubs, then what `prepare` does; none when something is missing.
pub async fn prepared(
    name: &str,
    key: &str,
    prepare: impl Fn(&Plane) + Send + Sync + Clone + 'static,
) -> Option<Bed> {
    prepared_on(PlaneOptions::default(), name, key, prepare).await
}

/// Five nodes that run Talos.
pub fn talos() -> PlaneOptions {
    let nodes = plane::NodeSpec::several(5).into_iter().map(|node| node.talos("v1.13.0"));
    PlaneOptions { nodes: nodes.collect(), ..PlaneOptions::default() }
}

/// As [`prepared`], on other nodes.
pub async fn prepared_on(
    options: PlaneOptions,
    name: &str,
    key: &str,
    prepare: impl Fn(&Plane) + Send + Sync + Clone + 'static,
) -> Option<Bed> {
    Bed::of(saved(options, name, key, prepare).await).await
}

/// The state that [`prepared_on`] restores.
///
/// # Errors
/// As [`plane::support::prepared_state`].
pub async fn saved(
    options: PlaneOptions,
    name: &str,
    key: &str,
    prepare: impl Fn(&Plane) + Send + Sync + Clone + 'static,
) -> plane::Result<SavedState> {
    let work = |plane: Arc<Plane>| async move {
        plane::cilium::create_stubs(&plane.client()?).await?;
        prepare(&plane);
        Ok::<(), plane::Error>(())
    };
    plane::support::prepared_state(name, key, options, work).await
}

/// A plane on which real Helm installed the pinned chart with a set of the shared values and
/// `ipam.mode: kubernetes`, or with the latter alone (`defaults`).
pub async fn installed(number: &str) -> Option<Bed> {
    let values = (number != "defaults").then(|| values_path(number));
    let prepare = move |plane: &Plane| {
        if !values.as_deref().is_some_and(replaces_kube_proxy) {
            kube_proxy_on(plane);
        }
        let mut helm = plane.helm().expect("helm");
        helm.args(["install", "cilium"])
            .arg(plane::cilium::chart("1.20.0").expect("the chart"))
            .args(["--namespace", "kube-system", "--set", "ipam.mode=kubernetes"]);
        helm.args(values.iter().flat_map(|path| ["--values", path]));
        run(&mut helm);
        for workload in ["ds/cilium", "deploy/cilium-operator"] {
            let status = ["-n", "kube-system", "rollout", "status", workload, "--timeout=120s"];
            run(plane.kubectl().expect("kubectl").args(status));
        }
    };
    prepared(&format!("installed-{number}"), "1", prepare).await
}

/// Whether a file of values has Cilium replace kube-proxy.
fn replaces_kube_proxy(path: &str) -> bool {
    let text = std::fs::read_to_string(path).expect("the values");
    text.lines().any(|line| {
        matches!(line.trim(), "kubeProxyReplacement: true" | "kubeProxyReplacement: \"true\"")
    })
}

/// `helm install`, waiting until all is Ready.
pub fn helm_install(plane: &Plane, release: &str, namespace: &str, version: &str, more: &[&str]) {
    let mut helm = plane.helm().expect("helm");
    helm.args(["install", release])
        .arg(plane::cilium::chart(version).expect("the chart"))
        .args(["--namespace", namespace, "--wait", "--timeout", "3m"])
        .args(more);
    run(&mut helm);
}

/// Applies the stand-in for kube-proxy on a plane.
pub fn kube_proxy_on(plane: &Plane) {
    let file = plane.folder().join("kube-proxy.json");
    std::fs::write(&file, kube_proxy_manifest()).expect("a file");
    run(plane.kubectl().expect("kubectl").args(["apply", "-f"]).arg(&file));
}

/// The path of a values file of the shared inputs.
pub fn values_path(number: &str) -> String {
    plane::cilium::values(number).expect("the values").display().to_string()
}

/// The values of a file of the shared inputs.
pub fn values(number: &str) -> Map {
    let text = std::fs::read(values_path(number)).expect("the values");
    goyaml::from_yaml_map(&text, "values", &goyaml::Limits::default()).expect("values")
}

/// Values out of a text.
pub fn values_of(text: &str) -> Map {
    goyaml::from_yaml_map(text.as_bytes(), "values", &goyaml::Limits::default()).expect("values")
}

/// Every object of a cluster, each kind in one version, as `kubectl get -o json` shows it.
pub async fn export(cluster: &dyn Cluster) -> Vec<Value> {
    let discovery = cluster.discovery(true).await.expect("discovery");
    let mut seen = std::collections::BTreeSet::new();
    let mut objects = Vec::new();
    for resource in discovery.resources() {
        let name = (resource.kind.group.clone(), resource.plural.clone());
        if !resource.can("list") || !seen.insert(name) || resource.plural == "events" {
            continue;
        }
        if let Ok(page) = list_all(cluster, resource, &ListQuery::default()).await {
            objects.extend(page.items);
        }
    }
    objects
}

/// A stored release string with another revision and status.
pub fn edit_record(data: &str, revision: i64, status: &str) -> String {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use helm_rs::release::{
        CodecLimits, RELEASE_FIELDS, RawObject, Record, Status, decode, encode,
    };
    let stored = STANDARD.decode(data).expect("base64");
    let json = decode(&stored, CodecLimits::default()).expect("a record");
    let mut object = RawObject::parse(&json).expect("a record");
    object.set("version", revision.to_string(), RELEASE_FIELDS).expect("a revision");
    let mut record = Record::from_json(&object.to_json()).expect("a record");
    record.set_status(&Status::from(status), "edited by a test").expect("a status");
    STANDARD.encode(encode(&record.to_json()).expect("a record"))
}
