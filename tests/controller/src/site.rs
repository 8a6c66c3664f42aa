//! A cluster with the chart installed, controllers as processes or as pods, and what they say.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use helm_rs::cluster::Cluster;
use helm_rs::cluster::live::{Connection, Live, LiveOptions};
use plane::{FaultProxy, Plane, PlaneOptions, SavedState};
use serde_json::{Value, json};
use takeover_tests::kube_proxy_on;
use test_support::place;

use crate::{apply, chart};

/// The image of controller and Job.
pub const IMAGE: &str = "example.org/ichor";
/// Sites that were made, each of which has its image.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// What Cilium leaves to kube-proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KubeProxy {
    /// Services: a stand-in for kube-proxy runs.
    Runs,
    /// Nothing.
    Replaced,
}

/// A cluster with the chart installed, and no controller yet.
pub struct Site {
    /// The plane.
    pub plane: Plane,
    /// The folder of the pinned chart.
    pub charts: String,
    image: Image,
}

/// What stands for the image: a program that says what the image says itself.
struct Image {
    folder: PathBuf,
}

/// A controller under way; killed when it is dropped.
pub struct Running {
    child: Child,
    /// Where its probes and metrics are.
    pub port: u16,
    /// Its log.
    pub log: PathBuf,
}

impl Image {
    fn new() -> Self {
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("ichor-image-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).unwrap();
        Self { folder }
    }

    fn program(&self) -> PathBuf {
        self.folder.join("ichor")
    }

    /// Writes the program. Pods share the network of this machine, so that it also stands for what
    /// a node has: KubePrism at localhost:7445, and a port of its own for each pod.
    fn write(&self, charts: &str, prism: u16) {
        let ichor = place::ichor().display().to_string();
        let text = format!(
            r#"#!/bin/sh
export ICHOR_CHART_DIR='{charts}'
if [ "$KUBERNETES_SERVICE_HOST:$KUBERNETES_SERVICE_PORT" = localhost:7445 ]; then
  export KUBERNETES_SERVICE_HOST=127.0.0.1 KUBERNETES_SERVICE_PORT={prism}
fi
for word; do
  shift
  case $word in --listen=*) word=--listen=127.0.0.1:0 ;; esac
  set -- "$@" "$word"
done
exec '{ichor}' "$@"
"#
        );
        self.put(&text);
    }

    /// Replaces the program. A pod that starts meanwhile runs one or the other.
    fn put(&self, script: &str) {
        let next = self.folder.join("next");
        fs::write(&next, script).unwrap();
        fs::set_permissions(&next, fs::Permissions::from_mode(0o755)).unwrap();
        fs::rename(next, self.program()).unwrap();
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.folder));
    }
}

impl Running {
    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends it as a crash does.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Asks it to end, and waits: its exit code.
    pub fn terminate(mut self) -> Option<i32> {
        self.signal("TERM");
        self.child.wait().unwrap().code()
    }

    /// Its exit code, once it has ended.
    pub async fn ended(mut self, seconds: u64) -> Option<i32> {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(began.elapsed() < Duration::from_secs(seconds), "it does not end");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Sends it a signal, such as `STOP` and `CONT`.
    pub fn signal(&self, signal: &str) {
        let pid = self.child.id().to_string();
        plane::support::run(Command::new("kill").args([&format!("-{signal}"), &pid])).unwrap();
    }

    /// What it answers at a path.
    pub fn get(&self, path: &str) -> String {
        let url = format!("http://127.0.0.1:{}{path}", self.port);
        plane::support::run(Command::new("curl").args(["-sS", &url])).unwrap()
    }

    /// Whether it is the one that acts; false until it answers.
    pub fn leads(&self) -> bool {
        let url = format!("http://127.0.0.1:{}/metrics", self.port);
        let output = Command::new("curl").args(["-sS", &url]).output().unwrap();
        String::from_utf8_lossy(&output.stdout).contains("\nichor_leading 1\n")
    }

    /// Waits until it is the one that acts; how long that took.
    pub async fn until_it_leads(&self, seconds: u64) -> Duration {
        let began = Instant::now();
        while !self.leads() {
            let log = fs::read_to_string(&self.log).unwrap_or_default();
            assert!(began.elapsed() < Duration::from_secs(seconds), "it does not lead: {log}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        began.elapsed()
    }

    /// Its log.
    pub fn told(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Site {
    /// Restores a state, with kube-proxy, and installs the chart without controllers of its own.
    pub async fn new(state: plane::Result<SavedState>) -> Option<Self> {
        Self::with(state, KubeProxy::Runs).await
    }

    /// Restores a state and installs the chart without controllers of its own; none when something
    /// is missing.
    pub async fn with(state: plane::Result<SavedState>, kube_proxy: KubeProxy) -> Option<Self> {
        let site = Self::bare(state, kube_proxy).await?;
        let folder = chart();
        site.install(&folder, &["--set", "replicas=0"]);
        Some(site)
    }

    /// Restores a state without the chart.
    pub async fn bare(state: plane::Result<SavedState>, kube_proxy: KubeProxy) -> Option<Self> {
        let state = plane::support::or_skip(state)?;
        if let Err(reason) = plane::can_execute() {
            assert!(!test_support::peers_required(), "pods cannot be executed here: {reason}");
            eprintln!("skipped: pods cannot be executed here: {reason}");
            return None;
        }
        let charts = plane::cilium::chart("1.20.0").unwrap();
        let charts = charts.parent().unwrap().display().to_string();
        let image = Image::new();
        let mut options = PlaneOptions::default();
        options.images.insert(IMAGE.to_owned(), image.program());
        let plane = Plane::restore(&state, options).await.unwrap();
        let port = plane.url().rsplit_once(':').unwrap().1.parse().unwrap();
        image.write(&charts, port);
        if kube_proxy == KubeProxy::Runs {
            kube_proxy_on(&plane);
        }
        Some(Self { plane, charts, image })
    }

    /// Installs a chart of the controller with ichor.
    pub fn install(&self, chart: &Path, more: &[&str]) {
        let chart = chart.display().to_string();
        let mut arguments = vec!["release", "install", "ichor", &chart];
        arguments.extend(["--namespace", "ichor-system", "--create-namespace"]);
        arguments.extend(more);
        self.ichor(&arguments);
    }

    /// A client of the engine's, as the administrator.
    pub async fn client(&self) -> Arc<dyn Cluster> {
        let connection = Connection::kubeconfig(self.plane.kubeconfig());
        Arc::new(Live::connect(&connection, LiveOptions::new("ichor/test", 1)).await.unwrap())
    }

    /// The Job's pod that is at work.
    pub fn pod(&self) -> Option<String> {
        let pods = self.get(&["-n", "kube-system", "pods", "-l", "job-name=ichor-cni"]);
        let at_work =
            |pod: &&Value| !matches!(pod["status"]["phase"].as_str(), Some("Failed" | "Succeeded"));
        let pod = pods["items"].as_array()?.iter().find(at_work)?;
        pod["metadata"]["name"].as_str().map(str::to_owned)
    }

    /// Kills the program of the Job's pod, as a crash does.
    pub fn kill_job(&self) {
        let pod = self.pod().expect("the Job's pod is at work");
        let killed = self.plane.nodes().unwrap().kill_pod("kube-system", &pod);
        assert_eq!(killed, 1, "{pod}");
    }

    /// Lets the image be another program, a script, for pods that start from now on.
    pub fn image_is(&self, script: &str) {
        self.image.put(script);
    }

    /// Lets pods that start from now on reach the API server through a proxy.
    pub fn route(&self, proxy: &FaultProxy) {
        let address = ([127, 0, 0, 1], proxy.port()).into();
        self.plane.nodes().unwrap().route_pods(address);
        self.image.write(&self.charts, proxy.port());
    }

    /// The program as the administrator.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(place::ichor());
        command.env("KUBECONFIG", self.plane.kubeconfig()).env("ICHOR_CHART_DIR", &self.charts);
        command.args(arguments);
        command
    }

    /// Runs the program as the administrator: its standard output.
    pub fn ichor(&self, arguments: &[&str]) -> String {
        plane::support::run(&mut self.command(arguments))
            .unwrap_or_else(|e| panic!("{}", e.chain()))
    }

    /// Runs the program as the administrator, whatever it answers.
    pub fn try_ichor(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// `kubectl` as the administrator: its standard output.
    pub fn kubectl(&self, arguments: &[&str]) -> String {
        plane::support::run(self.plane.kubectl().unwrap().args(arguments))
            .unwrap_or_else(|error| panic!("{}", error.chain()))
    }

    /// An object or a list as `kubectl get` shows it.
    pub fn get(&self, arguments: &[&str]) -> Value {
        let mut all = vec!["get", "-o", "json"];
        all.extend(arguments);
        serde_json::from_str(&self.kubectl(&all)).unwrap()
    }

    /// The plan's digest, once the rights that depend on the cluster are there: those on old records
    /// alone. Everything else the chart's Roles have to have.
    pub fn digest(&self, more: &[&str]) -> String {
        let mut items = self.rights(more);
        items.retain(|object| {
            let name = object["metadata"]["name"].as_str().unwrap();
            let place = object["metadata"]["namespace"].as_str().unwrap_or_default();
            let elsewhere = !["", "kube-system", "ichor-system"].contains(&place);
            name != "ichor-cni" && name != "ichor-system" || elsewhere
        });
        apply(&self.plane, &items);
        self.planned(more)
    }

    /// What `ichor cni manifest --rights` says that the Job needs here.
    pub fn rights(&self, more: &[&str]) -> Vec<Value> {
        let mut arguments = vec!["cni", "manifest", "--rights", "--output=json"];
        arguments.extend(more);
        let list: Value = serde_json::from_str(&self.ichor(&arguments)).unwrap();
        list["items"].as_array().unwrap().clone()
    }

    /// The digest of the plan as the Job makes it, which lacks no right.
    pub fn planned(&self, more: &[&str]) -> String {
        let mut arguments = vec!["cni", "plan", "--for-job", "--output=json"];
        arguments.extend(more);
        // Exit code 2 where it asks for consent.
        let output = self.try_ichor(&arguments);
        let told = String::from_utf8_lossy(&output.stderr);
        let plan: Value = serde_json::from_slice(&output.stdout).expect(&told);
        assert_eq!(plan["refusals"], json!([]), "the Job's rights are enough");
        assert_eq!(plan["rights"]["missing"], json!([]), "the Job's rights are enough");
        plan["digest"].as_str().unwrap().to_owned()
    }

    /// Starts a controller under the chart's ServiceAccount.
    pub fn controller(&self, identity: &str) -> Running {
        self.controller_at(identity, &self.plane.url())
    }

    /// The same through a proxy.
    pub fn controller_at(&self, identity: &str, server: &str) -> Running {
        self.controller_of(identity, server, &[], &[])
    }

    /// The same with more flags and variables.
    pub fn controller_with(
        &self,
        identity: &str,
        flags: &[&str],
        variables: &[(&str, &str)],
    ) -> Running {
        self.controller_of(identity, &self.plane.url(), flags, variables)
    }

    fn controller_of(
        &self,
        identity: &str,
        server: &str,
        flags: &[&str],
        variables: &[(&str, &str)],
    ) -> Running {
        let token = ["create", "token", "ichor-controller", "--duration=2h"];
        let token = self.kubectl(&[["-n", "ichor-system"].as_slice(), &token].concat());
        let kubeconfig = self.plane.folder().join(format!("{identity}.kubeconfig"));
        self.plane.write_kubeconfig(&kubeconfig, server, token.trim()).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let path = self.plane.folder().join(format!("{identity}.log"));
        let log = fs::File::create(&path).unwrap();
        let child = Command::new(place::ichor())
            .args(["controller", &format!("--image={IMAGE}:1"), &format!("--identity={identity}")])
            .arg(format!("--listen=127.0.0.1:{port}"))
            .args(flags)
            .envs(variables.iter().copied())
            .env("KUBECONFIG", kubeconfig)
            .stdin(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        Running { child, port, log: path }
    }

    /// The logs of all controllers that ran as processes.
    pub fn logs(&self) -> String {
        let mut text = String::new();
        for entry in fs::read_dir(self.plane.folder()).unwrap().flatten() {
            if entry.path().extension().is_some_and(|end| end == "log") {
                let log = fs::read_to_string(entry.path()).unwrap_or_default();
                let from = log.len().saturating_sub(4000);
                let end = String::from_utf8_lossy(&log.as_bytes()[from..]).into_owned();
                text.push_str(&format!("{}:\n{end}\n", entry.path().display()));
            }
        }
        text
    }

    /// The TalosCluster `cluster`.
    pub fn cluster(&self) -> Value {
        self.get(&["taloscluster", "cluster"])
    }

    /// The condition `CNIHandover`; null where there is none.
    pub fn handover(&self) -> Value {
        condition(&self.cluster(), "CNIHandover")
    }

    /// Waits for the hand-over's reason.
    pub async fn until(&self, reason: &str, seconds: u64) -> Value {
        self.until_condition("CNIHandover", reason, seconds).await
    }

    /// Waits for a condition's reason.
    pub async fn until_condition(&self, kind: &str, reason: &str, seconds: u64) -> Value {
        let began = Instant::now();
        loop {
            let found = condition(&self.cluster(), kind);
            if found["reason"] == reason {
                let seconds = began.elapsed().as_secs_f64();
                println!("{reason} after {seconds:.1} s: {}", found["message"]);
                return found;
            }
            assert!(
                began.elapsed() < Duration::from_secs(seconds),
                "{reason} does not come: {found}\n{}\n{}",
                self.kubectl(&["get", "jobs,pods", "-A", "-o", "wide"]),
                self.logs()
            );
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
    }

    /// Reasons and messages of the controller's Events, in their order.
    pub fn events(&self) -> Vec<(String, String)> {
        let list = self.get(&[
            "-n",
            "default",
            "events.events.k8s.io",
            "--sort-by=.metadata.creationTimestamp",
            "--field-selector=regarding.kind=TalosCluster",
        ]);
        let text = |event: &Value, field: &str| event[field].as_str().unwrap().to_owned();
        let events = list["items"].as_array().unwrap();
        events.iter().map(|event| (text(event, "reason"), text(event, "note"))).collect()
    }

    /// The reasons alone.
    pub fn event_reasons(&self) -> Vec<String> {
        self.events().into_iter().map(|(reason, _)| reason).collect()
    }
}

/// A condition of an object; null where it has none of that type.
pub fn condition(object: &Value, kind: &str) -> Value {
    let conditions = object["status"]["conditions"].as_array();
    let found = conditions.into_iter().flatten().find(|one| one["type"] == kind);
    found.cloned().unwrap_or_default()
}

/// The managed TalosCluster, adopted, with the consent to a plan if there is one.
pub fn talos_cluster(digest: &str, cni: &Value) -> Value {
    let mut annotations = json!({
        "ichor.maesh.dev/adopted": "true",
        "ichor.maesh.dev/cni-inline-manifest": "cilium",
    });
    if !digest.is_empty() {
        annotations["ichor.maesh.dev/accepted-plan"] = digest.into();
    }
    json!({
        "apiVersion": "ichor.maesh.dev/v1alpha1",
        "kind": "TalosCluster",
        "metadata": { "name": "cluster", "annotations": annotations },
        "spec": { "cni": cni },
    })
}
