//! What the tests of takeovers share: a cluster with Cilium as somebody installed it, a plan, a
//! takeover, and what is left afterwards.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "test code: a panic is how a test says that its surroundings are wrong"
)]

pub mod job;

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
use plane::{Plane, PlaneOptions};
use serde_json::Value;
use takeover::plan::{Plan, Prepared, Request, WhoWrites, prepare};
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
        let state = plane::support::or_skip(plane::cilium::state(version, values).await)?;
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
        }
    }

    /// A plan.
    pub async fn plan(&self, values: Option<&Map>) -> Prepared {
        let began = Instant::now();
        let prepared = prepare(&self.request(values)).await;
        let prepared = prepared.unwrap_or_else(|error| {
            panic!("{}", helm_rs::error_chain(&error));
        });
        println!("plan: {:.2} s, {:?}", began.elapsed().as_secs_f64(), prepared.plan.figures());
        prepared
    }

    /// A takeover with the consent that the plan asks for.
    pub async fn take_over(&self, values: Option<&Map>, plan: &Plan) -> Result<Done, RunError> {
        let cancel = Cancel::default();
        let run = Run {
            request: self.request(values),
            digest: Some(plan.digest.clone()),
            accept_changes: true,
            accept_diff: true,
            holder: format!("test-{}", std::process::id()),
            observer: &Silent,
            cancel: &cancel,
            timeout: Duration::from_mins(2),
        };
        let began = Instant::now();
        let done = take_over(&run).await;
        println!("takeover: {:.2} s, {done:?}", began.elapsed().as_secs_f64());
        done
    }

    /// Real Helm, with arguments; its standard output.
    pub fn helm(&self, arguments: &[&str]) -> String {
        let mut helm = self.plane.helm().expect("helm");
        plane::support::run(helm.args(arguments)).unwrap_or_else(|error| panic!("{}", error.chain()))
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

    /// UID and generation of every pod and workload of all namespaces.
    pub async fn footprints(&self) -> BTreeMap<String, (String, i64)> {
        let mut all = BTreeMap::new();
        for (api, kind, plural) in [
            ("v1", "Pod", "pods"),
            ("apps/v1", "DaemonSet", "daemonsets"),
            ("apps/v1", "Deployment", "deployments"),
        ] {
            let resource = Resource::builtin(api, kind, plural, true);
            let page = list_all(&*self.cluster, &resource, &ListQuery::default()).await;
            for item in page.expect("a list").items {
                let text = |pointer| {
                    item.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
                };
                let generation = item.pointer("/metadata/generation").and_then(Value::as_i64);
                let name = format!("{kind} {}/{}", text("/metadata/namespace"), text("/metadata/name"));
                all.insert(name, (text("/metadata/uid"), generation.unwrap_or_default()));
            }
        }
        all
    }
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
    let work = {
        let prepare = prepare.clone();
        move |plane: Arc<Plane>| async move {
            plane::cilium::create_stubs(&plane.client()?).await?;
            prepare(&plane);
            Ok::<(), plane::Error>(())
        }
    };
    let state = plane::support::prepared_state(name, key, PlaneOptions::default(), work).await;
    let state = plane::support::or_skip(state)?;
    let plane = Plane::restore(&state, PlaneOptions::default()).await.expect("a plane");
    Some(Bed::new(plane).await)
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
    use helm_rs::release::{CodecLimits, RELEASE_FIELDS, RawObject, Record, Status, decode, encode};
    let stored = STANDARD.decode(data).expect("base64");
    let json = decode(&stored, CodecLimits::default()).expect("a record");
    let mut object = RawObject::parse(&json).expect("a record");
    object.set("version", revision.to_string(), RELEASE_FIELDS).expect("a revision");
    let mut record = Record::from_json(&object.to_json()).expect("a record");
    record.set_status(&Status::from(status), "edited by a test").expect("a status");
    STANDARD.encode(encode(&record.to_json()).expect("a record"))
}
