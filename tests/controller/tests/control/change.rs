//! What follows a hand-over: other values, a newer chart, network policies, traces.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use controller_tests::site::{Site, condition, talos_cluster};
use controller_tests::{apply, chart};
use plane::{Plane, PlaneOptions};
use serde_json::{Value, json};

/// A collector of traces: the spans that it was sent.
struct Collector {
    port: u16,
    spans: Arc<Mutex<Vec<Value>>>,
}

impl Collector {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let spans = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&spans);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut text = Vec::new();
                let mut part = vec![0; 65536];
                loop {
                    let count = stream.read(&mut part).unwrap_or_default();
                    if count == 0 {
                        break;
                    }
                    text.extend_from_slice(&part[..count]);
                    let whole = String::from_utf8_lossy(&text).into_owned();
                    let Some((_, body)) = whole.split_once("\r\n\r\n") else { continue };
                    let Ok(body) = serde_json::from_str::<Value>(body) else { continue };
                    let new =
                        body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().cloned();
                    kept.lock().unwrap().extend(new.unwrap());
                    text.clear();
                    if stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").is_err()
                    {
                        break;
                    }
                }
            }
        });
        Self { port, spans }
    }

    fn names(&self) -> Vec<String> {
        let spans = self.spans.lock().unwrap();
        spans.iter().map(|span| span["name"].as_str().unwrap().to_owned()).collect()
    }
}

/// The values of the spec, and the consent to a plan.
pub(crate) fn asking(values: &Value, digest: &str, upgrade: &str) -> Value {
    let mut cni = json!({ "preset": "cilium" });
    // A table that an apply empties becomes a null, which the API server does not take for one.
    if values.as_object().is_some_and(|values| !values.is_empty()) {
        cni["cilium"]["values"] = values.clone();
    }
    let mut cluster = talos_cluster(digest, &cni);
    if !upgrade.is_empty() {
        cluster["metadata"]["annotations"]["ichor.maesh.dev/upgrade-to"] = upgrade.into();
    }
    cluster
}

/// The plan in short at the end of a message.
pub(crate) fn digest_of(condition: &Value) -> String {
    let message = condition["message"].as_str().unwrap();
    takeover::job::Summary::find(message).unwrap_or_else(|| panic!("{message}")).digest
}

/// Waits until a condition has a reason and is about the newest spec.
pub(crate) async fn until(site: &Site, kind: &str, reason: &str) -> Value {
    let began = Instant::now();
    loop {
        let cluster = site.cluster();
        let found = condition(&cluster, kind);
        let is_new = found["observedGeneration"] == cluster["metadata"]["generation"];
        if found["reason"] == reason && is_new {
            println!("{kind} {reason} after {:.1} s: {found}", began.elapsed().as_secs_f64());
            return found;
        }
        let late = began.elapsed() > Duration::from_mins(2);
        assert!(!late, "{reason} does not come: {}\n{}", cluster["status"], site.logs());
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
}

pub(crate) fn config(site: &Site) -> Value {
    site.get(&["-n", "kube-system", "configmap", "cilium-config"])["data"].clone()
}

/// Ichor's revisions: number, status and values.
pub(crate) fn history(site: &Site) -> Vec<(i64, String)> {
    let mut helm = site.plane.helm().unwrap();
    helm.args(["-n", "ichor-system", "history", "cilium", "-o", "json"]);
    let list: Value = serde_json::from_str(&plane::support::run(&mut helm).unwrap()).unwrap();
    let one = |one: &Value| {
        (one["revision"].as_i64().unwrap(), one["status"].as_str().unwrap().to_owned())
    };
    list.as_array().unwrap().iter().map(one).collect()
}

fn values_file(site: &Site, values: &Value) -> String {
    let file = site.plane.folder().join("asked.yaml");
    std::fs::write(&file, values.to_string()).unwrap();
    file.display().to_string()
}

/// Values that change no object need no consent; others do, and are taken away again. Spans of all
/// of it reach a collector.
#[tokio::test(flavor = "multi_thread")]
async fn new_values_are_planned_consented_to_and_applied() {
    let Some(site) = Site::new(plane::cilium::state("1.20.0", "03").await).await else { return };
    let collector = Collector::new();
    let digest = site.digest(&[]);
    let endpoint = format!("http://127.0.0.1:{}", collector.port);
    let one = site.controller_with("one", &[], &[("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint)]);
    apply(&site.plane, &[talos_cluster(&digest, &json!({ "preset": "cilium" }))]);
    site.until("HandedOver", 120).await;
    let first = until(&site, "ValuesApplied", "Applied").await;
    assert_eq!(first["status"], "True", "nothing is asked for beside what was taken over");
    assert_eq!(site.cluster()["status"]["cni"]["chartVersion"], "1.20.0");
    let current = until(&site, "CiliumUpgradeAvailable", "UpToDate").await;
    assert_eq!(current["status"], "False");
    assert_eq!(site.event_reasons(), ["JobCreated", "HandedOver"], "no Job follows by itself");

    // The chart's own default, said aloud: the record gets it, and no object changes.
    let harmless = json!({ "debug": { "enabled": false } });
    apply(&site.plane, &[asking(&harmless, &digest, "")]);
    let done = until(&site, "ValuesApplied", "Applied").await;
    assert_eq!(done["status"], "True");
    assert_eq!(history(&site), [(1, "superseded".to_owned()), (2, "deployed".to_owned())]);

    // A setting of the agents: it waits for the consent to its plan.
    let setting = json!({ "debug": { "enabled": false }, "MTU": 1400 });
    apply(&site.plane, &[asking(&setting, &digest, "")]);
    let waits = until(&site, "ValuesApplied", "ConsentRequired").await;
    assert_eq!(config(&site).get("mtu"), None, "nothing is written");
    assert_eq!(history(&site).len(), 2, "nothing is written");
    let planned = digest_of(&waits);
    let file = values_file(&site, &setting);
    let looked = site.planned(&["--change", "--cilium-values", &file]);
    assert_eq!(looked, planned, "whoever looks sees the plan that the Job makes");
    let metrics = one.get("/metrics");
    assert!(metrics.contains("ichor_gate_leaves{class=\"differences\"} 1\n"), "{metrics}");
    apply(&site.plane, &[asking(&setting, &planned, "")]);
    until(&site, "ValuesApplied", "Applied").await;
    assert_eq!(config(&site)["mtu"], "1400");
    let handed = site.handover();
    assert_eq!(handed["status"], "True", "whatever becomes of the values");

    // Asked for no longer: what was asked for goes, what was taken over stays.
    apply(&site.plane, &[asking(&json!({}), &planned, "")]);
    let waits = until(&site, "ValuesApplied", "ConsentRequired").await;
    apply(&site.plane, &[asking(&json!({}), &digest_of(&waits), "")]);
    until(&site, "ValuesApplied", "Applied").await;
    assert_eq!(config(&site).get("mtu"), None);
    let revisions = history(&site);
    let statuses: Vec<&str> = revisions.iter().map(|(_, status)| status.as_str()).collect();
    assert_eq!(statuses, ["superseded", "superseded", "superseded", "deployed"]);
    let mut helm = site.plane.helm().unwrap();
    helm.args(["-n", "ichor-system", "get", "values", "cilium", "-o", "json"]);
    let values: Value = serde_json::from_str(&plane::support::run(&mut helm).unwrap()).unwrap();
    assert_eq!((values.get("MTU"), values.get("debug")), (None, None), "{values}");

    // Nothing is left to do, and nothing is done.
    let job = ["-n", "kube-system", "get", "job", "ichor-cni", "-o", "jsonpath={.metadata.uid}"];
    let before = site.kubectl(&job);
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(site.kubectl(&job), before);
    println!("{}", site.kubectl(&["describe", "taloscluster", "cluster"]));
    assert_eq!(one.terminate(), Some(0));
    let spans = collector.names();
    let count = |name: &str| spans.iter().filter(|span| *span == name).count();
    let jobs = site.event_reasons().iter().filter(|reason| *reason == "JobCreated").count();
    println!("{} spans", spans.len());
    assert_eq!(count("create Job"), jobs, "{spans:?}");
    assert!(count("reconcile TalosCluster") > jobs, "{spans:?}");
}

/// A release of ichor's with the chart before the pinned one, as an ichor of that time left it.
pub(crate) async fn older(plane: Arc<Plane>) -> plane::Result<()> {
    plane::cilium::create_stubs(&plane.client()?).await?;
    plane::cilium::install(&plane, "1.19.6", "03")?;
    let name = "sh.helm.release.v1.cilium.v1";
    let mut kubectl = plane.kubectl()?;
    kubectl.args(["-n", "kube-system", "get", "secret", name, "-o", "json"]);
    let mut secret: Value = serde_json::from_str(&plane::support::run(&mut kubectl)?).unwrap();
    let labels = secret["metadata"]["labels"].take();
    secret["metadata"] = json!({ "name": name, "namespace": "ichor-system", "labels": labels });
    let namespace =
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "ichor-system" } });
    apply(&plane, &[namespace, secret]);
    let mut kubectl = plane.kubectl()?;
    plane::support::run(kubectl.args(["-n", "kube-system", "delete", "secret", name]))?;
    Ok(())
}

/// An older chart is told, and nothing done; what is asked for has to be what this ichor brings; it
/// goes through plan and consent.
#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_is_told_asked_for_and_made() {
    let options = PlaneOptions::default();
    let state = plane::support::prepared_state("controller-older", "2", options, older).await;
    let Some(site) = Site::new(state).await else { return };
    let digest = site.digest(&[]);
    let _one = site.controller("one");
    apply(&site.plane, &[talos_cluster(&digest, &json!({ "preset": "cilium" }))]);
    site.until("HandedOver", 120).await;
    let told = until(&site, "CiliumUpgradeAvailable", "NewerChart").await;
    assert_eq!(told["status"], "True");
    let message = told["message"].as_str().unwrap();
    assert!(message.contains("1.20.0") && message.contains("1.19.6 is deployed"), "{message}");

    // The older chart's Job has a name that no standing rule has; `ichor cni upgrade` grants it.
    let name = "ichor-cni-older";
    let place = json!({ "name": name, "namespace": "kube-system" });
    let job = json!({
        "apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["patch"],
        "resourceNames": ["hubble-generate-certs-4a8b800e16"],
    });
    let api = "rbac.authorization.k8s.io/v1";
    apply(
        &site.plane,
        &[
            json!({ "apiVersion": api, "kind": "Role", "metadata": place, "rules": [job] }),
            json!({
                "apiVersion": api, "kind": "RoleBinding", "metadata": place,
                "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name },
                "subjects": [{
                    "kind": "ServiceAccount", "name": "ichor-cni", "namespace": "kube-system",
                }],
            }),
        ],
    );

    // New values meanwhile keep the chart.
    let values = json!({ "MTU": 1400 });
    apply(&site.plane, &[asking(&values, "", "")]);
    let waits = until(&site, "ValuesApplied", "ConsentRequired").await;
    assert!(waits["message"].as_str().unwrap().contains("chart=1.19.6"), "{waits}");
    apply(&site.plane, &[asking(&values, &digest_of(&waits), "")]);
    until(&site, "ValuesApplied", "Applied").await;
    assert_eq!(site.cluster()["status"]["cni"]["detectedVersion"], "v1.19.6");

    // Another version than the one that this ichor brings.
    apply(&site.plane, &[asking(&values, "", "1.21.0")]);
    let refused = until(&site, "CiliumUpgradeAvailable", "Refused").await;
    assert!(refused["message"].as_str().unwrap().contains("say 1.20.0"), "{refused}");
    apply(&site.plane, &[asking(&values, "", "1.20.0")]);
    let waits = until(&site, "CiliumUpgradeAvailable", "ConsentRequired").await;
    let planned = digest_of(&waits);
    let file = values_file(&site, &values);
    let looked = site.planned(&["--change", "--upgrade", "--cilium-values", &file]);
    assert_eq!(looked, planned, "whoever looks sees the plan that the Job makes");
    apply(&site.plane, &[asking(&values, &planned, "1.20.0")]);
    let done = until(&site, "CiliumUpgradeAvailable", "UpToDate").await;
    assert_eq!(done["status"], "False");
    let cluster = site.cluster();
    assert_eq!(cluster["status"]["cni"]["detectedVersion"], "v1.20.0", "detected at once");
    assert_eq!(cluster["status"]["cni"]["chartVersion"], "1.20.0");
    assert_eq!(condition(&cluster, "ValuesApplied")["status"], "True");
    assert_eq!(config(&site)["mtu"], "1400");
    let mut helm = site.plane.helm().unwrap();
    let list = plane::support::run(helm.args(["list", "-A"])).unwrap();
    assert!(list.contains("cilium-1.20.0") && !list.contains("cilium-1.19.6"), "{list}");
}

fn policy(site: &Site) -> Option<Value> {
    let arguments = ["-n", "ichor-system", "get", "ciliumnetworkpolicies", "-o", "json"];
    let mut kubectl = site.plane.kubectl().unwrap();
    let list = plane::support::run(kubectl.args(arguments)).unwrap();
    let list: Value = serde_json::from_str(&list).unwrap();
    list["items"].as_array()?.first().cloned()
}

async fn eventually(what: &str, holds: impl Fn() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(45), "{what}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    println!("{what} after {:.1} s", began.elapsed().as_secs_f64());
}

/// The network policy is applied where Cilium runs and its kind is served, put right when somebody
/// changes it, and goes when it is switched off.
#[tokio::test(flavor = "multi_thread")]
async fn network_policies_are_applied_where_cilium_runs() {
    let Some(site) = Site::new(plane::cilium::state("1.20.0", "03").await).await else { return };
    let folder = chart().display().to_string();
    let switched = |value: &str| {
        let set = format!("networkPolicies.enabled={value},replicas=0");
        let arguments =
            ["release", "upgrade", "ichor", &folder, "-n", "ichor-system", "--set", &set];
        site.ichor(&arguments);
    };
    switched("true");
    let one = site.controller_with("one", &["--network-policies"], &[]);
    // Not adopted: nothing of Cilium is touched, and the policy does not wait for it.
    let mut cluster = talos_cluster("", &json!({ "preset": "cilium" }));
    cluster["metadata"].as_object_mut().unwrap().remove("annotations");
    apply(&site.plane, &[cluster]);
    let told = until(&site, "NetworkPoliciesApplied", "NoPolicyKind").await;
    assert_eq!(told["status"], "False");
    let definition = plane::cilium::stub_definition(
        "cilium.io",
        "v2",
        "CiliumNetworkPolicy",
        "ciliumnetworkpolicies",
        true,
    );
    apply(&site.plane, &[definition]);
    let told = until(&site, "NetworkPoliciesApplied", "PoliciesInPlace").await;
    assert_eq!(told["status"], "True");
    let there = policy(&site).unwrap();
    assert_eq!(there["metadata"]["name"], "ichor-controller");
    let managers = there["metadata"]["managedFields"].as_array();
    assert!(managers.is_none_or(|all| all.iter().all(|one| one["manager"] == "ichor-controller")));
    // Drift.
    let patch = r#"{"spec":{"egress":[]}}"#;
    let name = "ciliumnetworkpolicies/ichor-controller";
    site.kubectl(&["-n", "ichor-system", "patch", name, "--type=merge", "-p", patch]);
    eventually("the policy is put right", || {
        policy(&site).is_some_and(|now| now["spec"] == there["spec"])
    })
    .await;
    site.kubectl(&["-n", "ichor-system", "delete", name]);
    eventually("the policy is there again", || policy(&site).is_some()).await;
    // Switched off.
    assert_eq!(one.terminate(), Some(0));
    switched("false");
    let _two = site.controller("two");
    eventually("the policy is gone", || policy(&site).is_none()).await;
    eventually("nothing is said of it", || {
        condition(&site.cluster(), "NetworkPoliciesApplied").is_null()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn network_policies_are_not_applied_for_another_cni() {
    let prepare = |_: Arc<Plane>| async { Ok(()) };
    let options = PlaneOptions::default();
    let state = plane::support::prepared_state("controller-bare", "1", options, prepare).await;
    let Some(site) = Site::new(state).await else { return };
    let _one = site.controller_with("one", &["--network-policies"], &[]);
    let mut cluster = talos_cluster("", &json!({ "preset": "unmanaged" }));
    cluster["metadata"]["annotations"] = json!({ "ichor.maesh.dev/adopted": "true" });
    apply(&site.plane, &[cluster]);
    let told = until(&site, "NetworkPoliciesApplied", "CNINotCilium").await;
    assert_eq!(told["status"], "False");
    let conditions = site.cluster()["status"]["conditions"].as_array().map(Vec::len);
    assert_eq!(conditions, Some(1), "an unmanaged cluster has no other");
}
