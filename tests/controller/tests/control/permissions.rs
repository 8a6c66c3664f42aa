//! The controller has what it needs and no more: with everything a hand-over comes to its end, and
//! without any single permission of the chart's Roles it does not, and the controller says which one
//! is missing.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use controller_tests::handed::Seeded;
use controller_tests::site::{KubeProxy, Running, Site, condition, talos_cluster};
use controller_tests::{apply, chart, kubectl};
use plane::{NodeSpec, PlaneOptions};
use serde_json::{Value, json};

/// Permissions that are taken away in CI; all with `ICHOR_RIGHTS_PROOF`.
const SAMPLE: usize = 4;
/// Seconds that each step of a hand-over may take.
const PATIENCE: Duration = Duration::from_secs(15);
/// What a refusal that the controller told must outlast: a step that is only slow.
const GRACE: Duration = Duration::from_secs(2);

/// Ichor's own network policy.
const POLICY: &str = "ciliumnetworkpolicies/ichor-controller";

/// Changes so far, so that each is another one.
static CHANGES: AtomicUsize = AtomicUsize::new(1);

/// One verb of one rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Permission {
    /// `Role` or `ClusterRole`.
    kind: String,
    namespace: String,
    role: String,
    /// The rule's number.
    rule: usize,
    verb: String,
    resource: String,
    names: Vec<String>,
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, namespace, role, verb, resource, names, .. } = self;
        write!(f, "{kind} {namespace}/{role}: {verb} {resource} {names:?}")
    }
}

/// What changes in the cluster while a refusal waits; each is watched for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Config,
    Operator,
}

fn roles(site: &Site) -> Vec<Value> {
    let all = site.get(&["clusterroles,roles", "-A"]);
    let is_ours = |role: &&Value| {
        let name = role["metadata"]["name"].as_str().unwrap();
        name == "ichor-controller" || name.starts_with("ichor-controller-")
    };
    all["items"].as_array().unwrap().iter().filter(is_ours).cloned().collect()
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().map(|text| text.as_str().unwrap().to_owned()).collect()
}

/// Every verb of every rule, none of which is a wildcard.
fn permissions(roles: &[Value]) -> Vec<Permission> {
    let mut all = Vec::new();
    for role in roles {
        for (number, rule) in role["rules"].as_array().unwrap().iter().enumerate() {
            for field in ["apiGroups", "resources", "resourceNames", "verbs", "nonResourceURLs"] {
                assert!(texts(&rule[field]).iter().all(|text| !text.contains('*')), "{rule}");
            }
            for resource in texts(&rule["resources"]) {
                for verb in texts(&rule["verbs"]) {
                    let text = |field: &str| {
                        role["metadata"][field].as_str().unwrap_or_default().to_owned()
                    };
                    all.push(Permission {
                        kind: role["kind"].as_str().unwrap().to_owned(),
                        namespace: text("namespace"),
                        role: text("name"),
                        rule: number,
                        verb,
                        resource: resource.clone(),
                        names: texts(&rule["resourceNames"]),
                    });
                }
            }
        }
    }
    all
}

/// Writes a role with other rules; null for those that it had.
fn put(site: &Site, role: &Value, rules: &Value) {
    let mut object = json!({
        "apiVersion": role["apiVersion"], "kind": role["kind"], "metadata": {
            "name": role["metadata"]["name"], "namespace": role["metadata"]["namespace"],
            "labels": role["metadata"]["labels"], "annotations": role["metadata"]["annotations"],
        },
        "rules": rules,
    });
    if rules.is_null() {
        object["rules"] = role["rules"].clone();
    }
    let output = kubectl(&site.plane, &["replace"], &object);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn without(role: &Value, gone: &Permission) -> Value {
    let mut rules = role["rules"].clone();
    let rule = &mut rules[gone.rule];
    let (mut verbs, mut resources) = (texts(&rule["verbs"]), texts(&rule["resources"]));
    verbs.retain(|verb| *verb != gone.verb);
    resources.retain(|resource| *resource != gone.resource);
    let mut less = rule.clone();
    less["verbs"] = json!(verbs);
    less["resources"] = json!([gone.resource]);
    rule["resources"] = json!(resources);
    let list = rules.as_array_mut().unwrap();
    list.push(less);
    let is_something =
        |rule: &Value| !texts(&rule["verbs"]).is_empty() && !texts(&rule["resources"]).is_empty();
    list.retain(is_something);
    rules
}

/// One node, and of Cilium what the controller looks at.
pub(crate) async fn site() -> Option<Site> {
    let prepare = |plane: std::sync::Arc<plane::Plane>| async move {
        apply(&plane, &cilium());
        let definition = plane::cilium::stub_definition(
            "cilium.io",
            "v2",
            "CiliumNetworkPolicy",
            "ciliumnetworkpolicies",
            true,
        );
        apply(&plane, &[definition]);
        for workload in ["ds/cilium", "deploy/cilium-operator"] {
            let status = ["-n", "kube-system", "rollout", "status", workload, "--timeout=90s"];
            plane::support::run(plane.kubectl()?.args(status))?;
        }
        Ok(())
    };
    let options = PlaneOptions { nodes: NodeSpec::several(1), ..PlaneOptions::default() };
    let state = plane::support::prepared_state("controller-rights", "2", options, prepare).await;
    let site = Site::bare(state, KubeProxy::Runs).await?;
    // Everything is switched on that asks for rights.
    site.install(&chart(), &["--set", "replicas=0,networkPolicies.enabled=true"]);
    Some(site)
}

fn cilium() -> Vec<Value> {
    let workload = |kind: &str, name: &str, image: &str| {
        json!({
            "apiVersion": "apps/v1", "kind": kind,
            "metadata": { "name": name, "namespace": "kube-system" },
            "spec": {
                "selector": { "matchLabels": { "app": name } },
                "template": {
                    "metadata": { "labels": { "app": name } },
                    "spec": { "containers": [{ "name": "cilium-agent", "image": image }] },
                },
            },
        })
    };
    vec![
        workload("DaemonSet", "cilium", "quay.io/cilium/cilium:v1.20.0"),
        workload("Deployment", "cilium-operator", "quay.io/cilium/operator:v1.20.0"),
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": "cilium-config", "namespace": "kube-system" },
            "data": { "tunnel-protocol": "vxlan", "kube-proxy-replacement": "false" },
        }),
    ]
}

/// What the Job's pod does.
pub(crate) fn job_ends(site: &Site, code: u8, message: &str) {
    site.image_is(&format!("#!/bin/sh\nprintf '{message}' >/dev/termination-log\nexit {code}\n"));
}

/// Everything as before any hand-over; a Lease is there only when it is to be updated.
fn reset(site: &Site, has_lease: bool) {
    let gone = ["--ignore-not-found", "--wait", "--timeout=30s"];
    for what in [
        ["delete", "taloscluster", "cluster"].as_slice(),
        &["-n", "kube-system", "delete", "job/ichor-cni", "secret/ichor-cni-values"],
        &["-n", "kube-system", "delete", "pods", "-l", "job-name=ichor-cni"],
        &["-n", "ichor-system", "delete", "lease/ichor-controller", POLICY],
    ] {
        site.kubectl(&[what, &gone].concat());
    }
    if has_lease {
        apply(
            &site.plane,
            &[json!({
                "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                "metadata": { "name": "ichor-controller", "namespace": "ichor-system" },
                "spec": { "holderIdentity": "" },
            })],
        );
    }
    site.kubectl(&["-n", "default", "delete", "events.events.k8s.io", "--all"]);
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": cilium() });
    let output = kubectl(&site.plane, &["apply", "--server-side", "--force-conflicts"], &list);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    os_image(site, "Debian");
}

/// What the node says that it runs.
fn os_image(site: &Site, image: &str) {
    let patch = json!({ "status": { "nodeInfo": { "osImage": image } } }).to_string();
    let node = ["patch", "node", "node-1", "--subresource=status", "--type=merge", "-p", &patch];
    site.kubectl(&node);
}

/// Waits until something is so; why not, when the controller told that it may not.
async fn until(what: &str, controller: &Running, is_so: impl Fn() -> bool) -> Result<(), String> {
    let began = Instant::now();
    let mut refused: Option<Instant> = None;
    loop {
        if is_so() {
            return Ok(());
        }
        if refused.is_none() && controller.told().contains("cannot ") {
            refused = Some(Instant::now());
        }
        let is_slow = began.elapsed() > PATIENCE;
        if is_slow || refused.is_some_and(|at| at.elapsed() > GRACE && began.elapsed() > GRACE) {
            return Err(what.to_owned());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// A hand-over that uses everything: refused at first, told again as the cluster changes, asked for
/// anew, done. What it waited for in vain, if it did.
async fn hand_over(
    site: &Site,
    controller: &Running,
    change: Change,
    policies: bool,
) -> Result<(), String> {
    let reason = |reason: &str| condition(&site.cluster(), "CNIHandover")["reason"] == reason;
    job_ends(site, 2, "refused: by the test");
    let cni =
        json!({ "preset": "cilium", "cilium": { "values": { "debug": { "enabled": true } } } });
    apply(&site.plane, &[talos_cluster("", &cni)]);
    until("a refusal", controller, || reason("Refused")).await?;
    let policy = || {
        let name = ["-n", "ichor-system", "get", POLICY, "--ignore-not-found", "-o", "name"];
        !site.kubectl(&name).is_empty()
    };
    let what = if policies { "the network policy" } else { "no network policy" };
    until(what, controller, || policy() == policies).await?;
    if policies {
        site.kubectl(&["-n", "ichor-system", "delete", POLICY]);
        until("the network policy again", controller, policy).await?;
    }
    let number = CHANGES.fetch_add(1, Ordering::Relaxed);
    let (target, patch) = match change {
        Change::Config => {
            ("configmap/cilium-config", json!({ "data": { "n": number.to_string() } }))
        }
        Change::Operator => {
            ("deploy/cilium-operator", json!({ "spec": { "minReadySeconds": number } }))
        }
    };
    let patch = patch.to_string();
    site.kubectl(&["-n", "kube-system", "patch", target, "--type=merge", "-p", &patch]);
    until("the live objects changed", controller, || {
        let message = condition(&site.cluster(), "CNIHandover")["message"].clone();
        message.as_str().is_some_and(|text| text.contains("since live objects changed"))
    })
    .await?;
    until("the same Event again", controller, || {
        site.get(&["-n", "default", "events.events.k8s.io"])["items"]
            .as_array()
            .unwrap()
            .iter()
            .any(|event| event["reason"] == "Refused" && event["series"].is_object())
    })
    .await?;
    let image = ["set", "image", "ds/cilium", "cilium-agent=quay.io/cilium/cilium:v1.20.1"];
    site.kubectl(&[["-n", "kube-system"].as_slice(), &image].concat());
    until("the version", controller, || {
        site.cluster()["status"]["cni"]["detectedVersion"] == "v1.20.1"
    })
    .await?;
    os_image(site, "Talos (v1.13.0)");
    // The next Job is made of what is known of the nodes by then.
    tokio::time::sleep(Duration::from_millis(700)).await;
    job_ends(site, 0, "done: by the test");
    site.kubectl(&["annotate", "taloscluster", "cluster", "retry=1"]);
    until("the hand-over", controller, || reason("HandedOver")).await?;
    // The Job may be in the middle of making way for the one that looks at the values.
    until("a Job that knows that the nodes run Talos", controller, || {
        let first = "jsonpath={.spec.template.spec.containers[0].env[0].value}";
        let get = ["-n", "kube-system", "get", "job", "ichor-cni", "--ignore-not-found", "-o"];
        site.kubectl(&[get.as_slice(), &[first]].concat()) == "localhost"
    })
    .await?;
    until("its Events", controller, || {
        let reasons = site.event_reasons();
        let of_jobs = ["JobCreated", "Refused", "HandedOver"];
        let reasons: Vec<&str> =
            reasons.iter().map(String::as_str).filter(|one| of_jobs.contains(one)).collect();
        // One more Job finds out whether the values of the spec are what was taken over.
        reasons.starts_with(&["JobCreated", "Refused", "JobCreated", "HandedOver"])
    })
    .await
}

/// One hand-over with what the Roles grant now.
async fn try_it(
    site: &Site,
    name: &str,
    change: Change,
    has_lease: bool,
    policies: bool,
) -> (Result<(), String>, String) {
    reset(site, has_lease);
    // Switched off, what is left of it goes.
    if !policies {
        apply(
            &site.plane,
            &[json!({
                "apiVersion": "cilium.io/v2", "kind": "CiliumNetworkPolicy",
                "metadata": { "name": "ichor-controller", "namespace": "ichor-system" },
            })],
        );
    }
    let flags: &[&str] = if policies { &["--network-policies"] } else { &[] };
    let controller = site.controller_with(name, flags, &[]);
    let result = hand_over(site, &controller, change, policies).await;
    (result, controller.told())
}

/// The controller's rules of the chart, one by one. A rule that is added needs a step in
/// [`hand_over`] that fails without it.
#[tokio::test(flavor = "multi_thread")]
async fn without_any_single_permission_of_the_controller_nothing_is_handed_over() {
    let Some(site) = site().await else { return };
    for change in [Change::Config, Change::Operator] {
        let is_one = change == Change::Config;
        let (result, log) = try_it(&site, "whole", change, is_one, is_one).await;
        assert_eq!(result, Ok(()), "with everything, {change:?}\n{log}");
    }
    let roles = roles(&site);
    let all = permissions(&roles);
    let whole = std::env::var_os("ICHOR_RIGHTS_PROOF").is_some();
    let mut chosen: BTreeSet<usize> = (0..all.len()).collect();
    let mut seeded = Seeded::new();
    while !whole && chosen.len() > SAMPLE {
        let at = *chosen.iter().nth(seeded.below(chosen.len())).unwrap();
        chosen.remove(&at);
    }
    let began = Instant::now();
    let mut needless = Vec::new();
    for (number, gone) in all.iter().enumerate().filter(|(number, _)| chosen.contains(number)) {
        let role = roles
            .iter()
            .find(|role| {
                let metadata = &role["metadata"];
                role["kind"] == gone.kind.as_str()
                    && metadata["name"] == gone.role.as_str()
                    && metadata["namespace"].as_str().unwrap_or_default() == gone.namespace
            })
            .unwrap();
        put(&site, role, &without(role, gone));
        // The authorizer hears of it in a moment.
        tokio::time::sleep(Duration::from_millis(300)).await;
        let change = match gone.resource.as_str() {
            "deployments" => Change::Operator,
            _ => Change::Config,
        };
        let has_lease = gone.resource == "leases" && gone.verb == "update";
        let name = format!("without-{number}");
        let policies = gone.resource != "ciliumnetworkpolicies" || gone.verb != "delete";
        let (result, log) = try_it(&site, &name, change, has_lease, policies).await;
        put(&site, role, &Value::Null);
        let resource = gone.resource.as_str();
        let told = format!("cannot {} resource \\\"{resource}\\\"", gone.verb);
        match result {
            Ok(()) => needless.push(gone.to_string()),
            Err(waited) => {
                assert!(log.contains(&told), "{gone}: waited for {waited}, without {told}\n{log}");
                println!("{gone}: in vain for {waited}");
            }
        }
    }
    assert_eq!(needless, [""; 0], "nothing needs these");
    println!(
        "{} permissions in {} Roles, {} taken away, {:.0} s",
        all.len(),
        roles.len(),
        chosen.len(),
        began.elapsed().as_secs_f64()
    );
}
