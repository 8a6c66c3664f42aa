//! The hand-over on a real control plane: the controller as a process under its ServiceAccount's
//! token with the chart's Roles, the Job's pod executed with its own.

use std::fs;
use std::time::{Duration, Instant};

use controller_tests::site::{Site, condition, talos_cluster};
use controller_tests::{apply, flannel};
use plane::{NodeHealth, Nodes, Plane, PlaneOptions};
use serde_json::{Value, json};
use takeover_tests::{values, values_path};

/// A2, `helm install`: adopt, Job, hand-over. Then a sick node, which starts nothing, and an orderly
/// end that gives the Lease to the next controller.
#[tokio::test(flavor = "multi_thread")]
async fn a2_is_handed_over() {
    let Some(site) = Site::new(plane::cilium::state("1.20.0", "03").await).await else { return };
    let digest = site.digest(&[]);
    let one = site.controller("one");
    apply(&site.plane, &[talos_cluster(&digest, &json!({ "preset": "cilium" }))]);
    let handed = site.until("HandedOver", 120).await;
    assert_eq!(handed["status"], "True");
    assert!(handed["message"].as_str().unwrap().starts_with("done: Taken over: revision 1"));
    let cluster = site.cluster();
    assert_eq!(cluster["status"]["cni"]["detected"], "cilium");
    assert_eq!(cluster["status"]["cni"]["detectedVersion"], "v1.20.0");
    assert_eq!(cluster["status"]["cni"]["takenOverInlineManifest"], "cilium");
    assert_eq!(site.event_reasons(), ["JobCreated", "HandedOver"]);
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
    assert_eq!(one.get("/healthz"), "ok\n");
    assert_eq!(one.get("/readyz"), "ok\n");
    let metrics = one.get("/metrics");
    assert!(metrics.contains("\nichor_handover_jobs_total 1\n"), "{metrics}");
    assert!(
        metrics.contains("ichor_handover_outcomes_total{reason=\"HandedOver\"} 1"),
        "{metrics}"
    );
    // The second one stands by, and takes over as the first one goes.
    let two = site.controller("two");
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(!two.leads());
    let log = one.told();
    assert_eq!(one.terminate(), Some(0));
    let after = two.until_it_leads(10).await;
    println!("the next controller leads after {:.1} s", after.as_secs_f64());
    for line in log.lines() {
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
    let reasons = site.event_reasons();
    assert_eq!(reasons[..4], ["JobCreated", "ConsentRequired", "JobCreated", "HandedOver"]);
    // Whether the values of a spec are what was taken over, another Job finds out: it changes nothing.
    let began = Instant::now();
    let applied = || condition(&site.cluster(), "ValuesApplied")["status"] == "True";
    while !applied() {
        assert!(began.elapsed() < Duration::from_mins(1), "{}", site.cluster()["status"]);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let mut helm = site.plane.helm().unwrap();
    let history = plane::support::run(helm.args(["history", "cilium", "-n", "ichor-system"]));
    assert_eq!(history.unwrap().lines().count(), 2, "one revision under a title");
}

/// flannel, unmanaged: no Job and no hand-over, and what runs is told.
#[tokio::test(flavor = "multi_thread")]
async fn an_unmanaged_cluster_is_left_alone() {
    let prepare = |_: std::sync::Arc<Plane>| async { Ok(()) };
    let options = PlaneOptions::default();
    let state = plane::support::prepared_state("controller-bare", "1", options, prepare).await;
    let Some(site) = Site::new(state).await else { return };
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
    apply(&site.plane, &[flannel()]);
    detected("flannel", 5).await;
    let status = site.cluster()["status"].clone();
    assert_eq!(status["cni"], json!({ "detected": "flannel", "detectedVersion": "v0.26.1" }));
    assert_eq!(status.get("conditions"), None);
    assert_eq!(site.kubectl(&["get", "jobs", "-A", "-o", "name"]), "");
    assert_eq!(site.events(), []);
    let refused = |arguments: &[&str]| {
        let output = site.try_ichor(arguments);
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
