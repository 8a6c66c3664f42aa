//! What the tests of takeovers share: a cluster with Cilium as somebody installed it, a plan, a
//! takeover, and what is left afterwards.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "test code: a panic is how a test says that its surroundings are wrong"
)]

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

/// A stand-in for kube-proxy, for value sets without its replacement.
pub fn kube_proxy(bed: &Bed) {
    let manifest = serde_json::json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {"name": "kube-proxy", "namespace": "kube-system"},
        "spec": {
            "selector": {"matchLabels": {"k8s-app": "kube-proxy"}},
            "template": {
                "metadata": {"labels": {"k8s-app": "kube-proxy"}},
                "spec": {"containers": [{"name": "kube-proxy", "image": "registry.k8s.io/kube-proxy:v1.36.4"}]},
            },
        },
    });
    let file = bed.plane.folder().join("kube-proxy.json");
    std::fs::write(&file, manifest.to_string()).expect("a file");
    bed.kubectl_with(&["apply", "-f"], &file);
    bed.kubectl(&["-n", "kube-system", "rollout", "status", "ds/kube-proxy", "--timeout=60s"]);
}
