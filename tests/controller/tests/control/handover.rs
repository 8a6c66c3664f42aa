//! The hand-over on a real control plane: the controller as a process under its ServiceAccount's
//! token with the chart's Roles, the Job's pod executed with its own.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use controller_tests::{apply, chart};
use plane::{NodeHealth, Nodes, Plane, PlaneOptions, SavedState};
use serde_json::{Value, json};
use takeover_tests::{kube_proxy_on, values, values_path};

const IMAGE: &str = "example.org/ichor";
/// Sites that were made, each of which has its image.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// A cluster with the chart installed, and no controller yet.
struct Site {
    plane: Plane,
    charts: String,
    /// What stands for the image.
    image: PathBuf,
}

impl Drop for Site {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.image));
    }
}

/// A controller under way; killed when it is dropped.
struct Running {
    child: Child,
    port: u16,
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Site {
    /// Restores a state and installs the chart without controllers of its own.
    async fn new(state: plane::Result<SavedState>) -> Option<Self> {
        let state = plane::support::or_skip(state)?;
        if let Err(reason) = plane::can_execute() {
            assert!(!test_support::peers_required(), "pods cannot be executed here: {reason}");
            eprintln!("skipped: pods cannot be executed here: {reason}");
            return None;
        }
        let charts = plane::cilium::chart("1.20.0").unwrap();
        let charts = charts.parent().unwrap().display().to_string();
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("ichor-image-{}-{number}", std::process::id());
        let image = std::env::temp_dir().join(name);
        fs::create_dir_all(&image).unwrap();
        // What the image says itself.
        let program = image.join("ichor");
        let ichor = test_support::place::ichor().display().to_string();
        let text = format!("#!/bin/sh\nICHOR_CHART_DIR='{charts}' exec '{ichor}' \"$@\"\n");
        fs::write(&program, text).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let mut options = PlaneOptions::default();
        options.images.insert(IMAGE.to_owned(), program);
        let plane = Plane::restore(&state, options).await.unwrap();
        // The values leave Services to kube-proxy, and the API server where every pod finds it.
        kube_proxy_on(&plane);
        let site = Self { plane, charts, image };
        site.ichor(&[
            "release",
            "install",
            "ichor",
            &chart().display().to_string(),
            "--namespace",
            "ichor-system",
            "--create-namespace",
            "--set",
            "replicas=0",
        ]);
        Some(site)
    }

    fn ichor(&self, arguments: &[&str]) -> String {
        let mut command = Command::new(test_support::place::ichor());
        command.env("KUBECONFIG", self.plane.kubeconfig()).env("ICHOR_CHART_DIR", &self.charts);
        plane::support::run(command.args(arguments)).unwrap()
    }

    fn kubectl(&self, arguments: &[&str]) -> String {
        plane::support::run(self.plane.kubectl().unwrap().args(arguments)).unwrap()
    }

    /// The plan's digest, once the rights that depend on the cluster are there.
    fn digest(&self, more: &[&str]) -> String {
        let mut arguments = vec!["cni", "manifest", "--rights", "--output=json"];
        arguments.extend(more);
        let list: Value = serde_json::from_str(&self.ichor(&arguments)).unwrap();
        let mut items = list["items"].as_array().unwrap().clone();
        // What the chart has, it has to have itself.
        items.retain(|object| {
            let name = object["metadata"]["name"].as_str().unwrap();
            let place = object["metadata"]["namespace"].as_str().unwrap_or_default();
            let elsewhere = !["", "kube-system", "ichor-system"].contains(&place);
            name != "ichor-cni" && name != "ichor-system" || elsewhere
        });
        apply(&self.plane, &items);
        let mut arguments = vec!["cni", "plan", "--for-job", "--output=json"];
        arguments.extend(more);
        let mut command = Command::new(test_support::place::ichor());
        command.env("KUBECONFIG", self.plane.kubeconfig()).env("ICHOR_CHART_DIR", &self.charts);
        // Exit code 2 where it asks for consent.
        let output = command.args(arguments).output().unwrap();
        let plan: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(plan["refusals"], json!([]), "the chart's Roles are enough");
        assert_eq!(plan["rights"]["missing"], json!([]), "the chart's Roles are enough");
        plan["digest"].as_str().unwrap().to_owned()
    }

    /// Starts a controller under the chart's ServiceAccount.
    fn controller(&self, identity: &str) -> Running {
        let token = self.kubectl(&[
            "-n",
            "ichor-system",
            "create",
            "token",
            "ichor-controller",
            "--duration=2h",
        ]);
        let kubeconfig = self.plane.folder().join(format!("{identity}.kubeconfig"));
        self.plane.write_kubeconfig(&kubeconfig, &self.plane.url(), token.trim()).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let log = fs::File::create(self.log(identity)).unwrap();
        let child = Command::new(test_support::place::ichor())
            .args(["controller", &format!("--image={IMAGE}:1"), &format!("--identity={identity}")])
            .arg(format!("--listen=127.0.0.1:{port}"))
            .env("KUBECONFIG", kubeconfig)
            .stdin(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        Running { child, port }
    }

    fn log(&self, identity: &str) -> PathBuf {
        self.plane.folder().join(format!("{identity}.log"))
    }

    fn cluster(&self) -> Value {
        serde_json::from_str(&self.kubectl(&["get", "taloscluster", "cluster", "-o", "json"]))
            .unwrap()
    }

    /// Waits for the hand-over's reason.
    async fn until(&self, reason: &str, seconds: u64) -> Value {
        let began = Instant::now();
        loop {
            let cluster = self.cluster();
            let conditions =
                cluster["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let handover = conditions.into_iter().find(|one| one["type"] == "CNIHandover");
            if let Some(found) = handover.as_ref().filter(|one| one["reason"] == reason) {
                println!(
                    "{reason} after {:.1} s: {}",
                    began.elapsed().as_secs_f64(),
                    found["message"]
                );
                return found.clone();
            }
            assert!(
                began.elapsed() < Duration::from_secs(seconds),
                "{reason} does not come: {handover:?}\n{}\n{}",
                self.kubectl(&["get", "jobs,pods", "-A", "-o", "wide"]),
                fs::read_to_string(self.log("one")).unwrap_or_default()
            );
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
    }

    /// Reasons and messages of the controller's Events, in their order.
    fn events(&self) -> Vec<(String, String)> {
        let list = self.kubectl(&[
            "-n",
            "default",
            "get",
            "events.events.k8s.io",
            "--sort-by=.metadata.creationTimestamp",
            "-o",
            "json",
            "--field-selector=regarding.kind=TalosCluster",
        ]);
        let list: Value = serde_json::from_str(&list).unwrap();
        let text = |event: &Value, field: &str| event[field].as_str().unwrap().to_owned();
        let events = list["items"].as_array().unwrap();
        events.iter().map(|event| (text(event, "reason"), text(event, "note"))).collect()
    }
}

fn talos_cluster(digest: &str, cni: &Value) -> Value {
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

/// A2, `helm install`: adopt, Job, hand-over. Then a sick node, which starts nothing, and an orderly
/// end that gives the Lease to the next controller.
#[tokio::test(flavor = "multi_thread")]
async fn a2_is_handed_over() {
    let Some(site) = Site::new(plane::cilium::state("1.20.0", "03").await).await else { return };
    let digest = site.digest(&[]);
    let mut one = site.controller("one");
    apply(&site.plane, &[talos_cluster(&digest, &json!({ "preset": "cilium" }))]);
    let handed = site.until("HandedOver", 120).await;
    assert_eq!(handed["status"], "True");
    assert!(handed["message"].as_str().unwrap().starts_with("done: Taken over: revision 1"));
    let cluster = site.cluster();
    assert_eq!(cluster["status"]["cni"]["detected"], "cilium");
    assert_eq!(cluster["status"]["cni"]["detectedVersion"], "v1.20.0");
    assert_eq!(cluster["status"]["cni"]["takenOverInlineManifest"], "cilium");
    let reasons: Vec<String> = site.events().into_iter().map(|(reason, _)| reason).collect();
    assert_eq!(reasons, ["JobCreated", "HandedOver"]);
    println!("{}", site.kubectl(&["get", "talosclusters"]));
    println!("{}", site.kubectl(&["describe", "taloscluster", "cluster"]));
    let jobs = || site.kubectl(&["-n", "kube-system", "get", "jobs", "-o", "jsonpath={..uid}"]);
    let before = jobs();
    let client = site.plane.client().unwrap();
    Nodes::set_node(&client, "node-1", NodeHealth::NotReady).await.unwrap();
    site.kubectl(&["-n", "kube-system", "delete", "pod", "-l", "k8s-app=cilium", "--wait=false"]);
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(site.until("HandedOver", 5).await, handed, "once True it stays True");
    assert_eq!(jobs(), before, "nothing starts");
    let get = |port: u16, path: &str| {
        let url = format!("http://127.0.0.1:{port}{path}");
        plane::support::run(Command::new("curl").args(["-sS", &url])).unwrap()
    };
    assert_eq!(get(one.port, "/healthz"), "ok\n");
    assert_eq!(get(one.port, "/readyz"), "ok\n");
    let metrics = get(one.port, "/metrics");
    assert!(metrics.contains("\nichor_handover_jobs_total 1\n"), "{metrics}");
    assert!(
        metrics.contains("ichor_handover_outcomes_total{reason=\"HandedOver\"} 1"),
        "{metrics}"
    );
    // The second one stands by, and takes over as the first one goes.
    let two = site.controller("two");
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(get(two.port, "/metrics").contains("\nichor_leading 0\n"));
    let pid = one.child.id().to_string();
    plane::support::run(Command::new("kill").args(["-TERM", &pid])).unwrap();
    assert!(one.child.wait().unwrap().success());
    let began = Instant::now();
    while !get(two.port, "/metrics").contains("\nichor_leading 1\n") {
        assert!(began.elapsed() < Duration::from_secs(10), "the Lease is not passed on");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    println!("the next controller leads after {:.1} s", began.elapsed().as_secs_f64());
    for line in fs::read_to_string(site.log("one")).unwrap().lines() {
        let line: Value = serde_json::from_str(line).expect("a log of JSON lines");
        assert!(line["timestamp"].is_string() && line["level"].is_string(), "{line}");
    }
}

/// A1, applied by kubectl: no record, the values are the spec's. A difference needs consent: the
/// hand-over waits for it, without another Job, and goes on as soon as it is there.
#[tokio::test(flavor = "multi_thread")]
async fn a1_waits_for_consent_and_is_handed_over() {
    let prepare = |plane: std::sync::Arc<Plane>| async move {
        plane::cilium::create_stubs(&plane.client()?).await?;
        let mut helm = plane.helm()?;
        helm.arg("template").arg("cilium").arg(plane::cilium::chart("1.20.0")?);
        helm.args(["--namespace", "kube-system", "--kube-version", plane.kubernetes_version()]);
        helm.args(["--values", &values_path("02")]);
        let text = plane::support::run(&mut helm)?;
        let file = plane.folder().join("cilium.yaml");
        fs::write(&file, text).unwrap();
        plane::support::run(plane.kubectl()?.args(["apply", "-f"]).arg(&file))?;
        for workload in ["ds/cilium", "deploy/cilium-operator"] {
            let status = ["-n", "kube-system", "rollout", "status", workload, "--timeout=90s"];
            plane::support::run(plane.kubectl()?.args(status))?;
        }
        Ok(())
    };
    let options = PlaneOptions::default();
    let state = plane::support::prepared_state("controller-a1", "1", options, prepare).await;
    let Some(site) = Site::new(state).await else { return };
    site.kubectl(&[
        "-n",
        "kube-system",
        "patch",
        "configmap",
        "cilium-config",
        "--type=merge",
        "-p",
        r#"{"data": {"by-hand": "x"}}"#,
    ]);
    let mut values = values("02");
    drop(cilium::owned::strip(&mut values));
    let text = goyaml::json::to_json(&goyaml::Value::Map(values)).unwrap();
    let file = site.plane.folder().join("values.json");
    fs::write(&file, &text).unwrap();
    let values: Value = serde_json::from_str(&text).unwrap();
    let digest = site.digest(&["--cilium-values", &file.display().to_string()]);
    let _one = site.controller("one");
    let cni = json!({ "preset": "cilium", "cilium": { "values": values } });
    apply(&site.plane, &[talos_cluster("", &cni)]);
    let waits = site.until("ConsentRequired", 90).await;
    assert!(waits["message"].as_str().unwrap().starts_with("refused: consent is missing"));
    let job = ["-n", "kube-system", "get", "job", "ichor-cni", "-o", "jsonpath={.metadata.uid}"];
    let before = site.kubectl(&job);
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(site.kubectl(&job), before, "a refusal waits");
    apply(&site.plane, &[talos_cluster(&digest, &cni)]);
    let handed = site.until("HandedOver", 120).await;
    assert!(handed["message"].as_str().unwrap().starts_with("done: Taken over: revision 1"));
    let reasons: Vec<String> = site.events().into_iter().map(|(reason, _)| reason).collect();
    assert_eq!(reasons, ["JobCreated", "ConsentRequired", "JobCreated", "HandedOver"]);
}

/// flannel, unmanaged: no Job and no hand-over, and what runs is told.
#[tokio::test(flavor = "multi_thread")]
async fn an_unmanaged_cluster_is_left_alone() {
    let prepare = |_: std::sync::Arc<Plane>| async { Ok(()) };
    let options = PlaneOptions::default();
    let state = plane::support::prepared_state("controller-bare", "1", options, prepare).await;
    let Some(site) = Site::new(state).await else { return };
    let flannel = json!({
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": { "name": "kube-flannel-ds", "namespace": "kube-system" },
        "spec": {
            "selector": { "matchLabels": { "app": "flannel" } },
            "template": {
                "metadata": { "labels": { "app": "flannel" } },
                "spec": { "containers": [{
                    "name": "kube-flannel", "image": "ghcr.io/flannel-io/flannel:v0.26.1",
                }] },
            },
        },
    });
    let _one = site.controller("one");
    let mut cluster = talos_cluster("", &json!({ "preset": "unmanaged" }));
    cluster["metadata"]["annotations"] = json!({ "ichor.maesh.dev/adopted": "true" });
    apply(&site.plane, &[cluster]);
    let detected = async |expected: &str, seconds: u64| {
        let began = Instant::now();
        while site.cluster()["status"]["cni"]["detected"] != expected {
            let limit = Duration::from_secs(seconds);
            assert!(began.elapsed() < limit, "{expected}: {}", site.cluster()["status"]);
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        println!("{expected} after {:.1} s", began.elapsed().as_secs_f64());
    };
    // Nodes are Ready by what nobody knows.
    detected("other", 30).await;
    apply(&site.plane, &[flannel]);
    detected("flannel", 5).await;
    let status = site.cluster()["status"].clone();
    assert_eq!(status["cni"], json!({ "detected": "flannel", "detectedVersion": "v0.26.1" }));
    assert_eq!(status.get("conditions"), None);
    assert_eq!(site.kubectl(&["get", "jobs", "-A", "-o", "name"]), "");
    assert_eq!(site.events(), []);
    let refused = |arguments: &[&str]| {
        let mut command = Command::new(test_support::place::ichor());
        command.env("KUBECONFIG", site.plane.kubeconfig()).env("ICHOR_CHART_DIR", &site.charts);
        let output = command.args(arguments).output().unwrap();
        let message = "the CNI is not managed by Ichor (spec.cni.preset: unmanaged)";
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(told.contains(message), "{arguments:?}: {told}");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    };
    for command in ["plan", "status", "restore"] {
        refused(&["cni", command]);
    }
    refused(&["cni", "manifest", "--rights"]);
    refused(&["cni", "run", "--takeover"]);
    refused(&["adopt", "--cilium-only", "--plan"]);
    let screen = site.ichor(&["cluster", "status"]);
    assert_eq!(
        screen,
        "cluster: cluster\ncni: unmanaged (flannel, not managed by Ichor)\nnext: nothing\n"
    );
}
