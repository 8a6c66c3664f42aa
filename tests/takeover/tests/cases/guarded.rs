//! What keeps an adoption or a move from being begun: each right that is missing, an action of
//! another tool that did not end, another run that holds the lock. Nothing is written then.

use std::collections::BTreeSet;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use helm_rs::cluster::memory::{MemoryCluster, MemoryOptions};
use helm_rs::cluster::{Clock, Cluster, ManualClock, Moment, Subject};
use helm_rs::release::storage::ObjectKind;
use helm_rs::release::{CodecLimits, Record, Status, decode, encode};
use helm_rs::render::{Engine, EngineOptions};
use serde_json::{Value, json};
use takeover_tests::export;
use takeover_tests::rehearsal::{Busy, Rehearsal, Tried as _, text};
use takeover_tests::releases::{Case, chart, depot};

const USER: &str = "mover";

async fn objects() -> Option<Vec<Value>> {
    let bed = depot().await?;
    let objects = export(&*bed.cluster).await;
    bed.plane.stop();
    Some(objects)
}

fn cases() -> [(&'static str, Case); 2] {
    let to = ("depot", "shop", ObjectKind::Secret);
    [
        ("adoption", Case::adopt(chart("depot"), "depot", "shop", Some(("old", "infra")))),
        ("move", Case::moved(("old", "infra"), to)),
    ]
}

/// A right as a message names it: `get secrets x in namespace web`.
fn rule(text: &str) -> (String, Value) {
    let (what, namespace) = text.split_once(" in namespace ").unwrap_or((text, ""));
    let words: Vec<&str> = what.split(' ').collect();
    let (resource, group) = words[1].split_once('.').unwrap_or((words[1], ""));
    let mut rule = json!({"verbs": [words[0]], "apiGroups": [group], "resources": [resource]});
    if let Some(name) = words.get(2) {
        rule["resourceNames"] = json!([name]);
    }
    (namespace.to_owned(), rule)
}

/// The same right without the name of an object.
fn unnamed(right: &str) -> String {
    let (what, namespace) = right.split_once(" in namespace ").unwrap_or((right, ""));
    let wide: Vec<&str> = what.split(' ').take(2).collect();
    let wide = wide.join(" ");
    if namespace.is_empty() { wide } else { format!("{wide} in namespace {namespace}") }
}

/// The Roles that grant these rights to the user.
fn granting(rights: &BTreeSet<String>) -> Vec<Value> {
    let mut objects = Vec::new();
    for (number, right) in rights.iter().enumerate() {
        let (namespace, rule) = rule(right);
        let (role, binding) = match namespace.as_str() {
            "" => ("ClusterRole", "ClusterRoleBinding"),
            _ => ("Role", "RoleBinding"),
        };
        let group = "rbac.authorization.k8s.io";
        let mut metadata = json!({"name": format!("granted-{number}")});
        if !namespace.is_empty() {
            metadata["namespace"] = namespace.into();
        }
        objects.push(json!({
            "apiVersion": format!("{group}/v1"), "kind": role, "metadata": metadata, "rules": [rule],
        }));
        objects.push(json!({
            "apiVersion": format!("{group}/v1"), "kind": binding, "metadata": metadata,
            "roleRef": {"apiGroup": group, "kind": role, "name": metadata["name"]},
            "subjects": [{"apiGroup": group, "kind": "User", "name": USER}],
        }));
    }
    objects
}

struct Tried {
    missing: Vec<String>,
    error: String,
    digest: String,
}

/// Plans and carries out as one who has these rights alone; what is missing, or what went wrong. A
/// refused one has written nothing.
async fn tried(objects: &[Value], case: &Case, rights: &BTreeSet<String>, digest: &str) -> Tried {
    let clock = Arc::new(ManualClock::new("2026-01-01T00:00:00Z".parse().unwrap()));
    let identity = Subject { user: USER.to_owned(), ..Subject::default() };
    let options = MemoryOptions { identity, controllers: true, ..MemoryOptions::default() };
    let memory = Arc::new(MemoryCluster::new(Arc::clone(&clock) as Arc<dyn Clock>, options));
    let all = objects.iter().cloned().chain(granting(rights));
    memory.load(all.map(|object| (String::new(), object)).collect()).unwrap();
    let cluster: Arc<dyn Cluster> = Arc::clone(&memory) as Arc<dyn Cluster>;
    let engine = Engine::new(EngineOptions::default());
    let (missing, planned) = case.missing(&cluster, &*clock, &engine).await;
    let written = |memory: &MemoryCluster| {
        let mut objects = memory.objects();
        objects.retain(|object| text(object, "/kind") != "Lease");
        objects
    };
    let before = written(&memory);
    let digest = if digest.is_empty() { planned } else { digest.to_owned() };
    let done = case.run((&cluster, &*clock, &engine), "run", &digest).await;
    if done.is_err() {
        assert_eq!(written(&memory), before, "{missing:?}: nothing is written");
    }
    Tried { missing, error: done.err().unwrap_or_default(), digest }
}

/// With the rights that refusals name one after the other it is done; without a single one of them it
/// is refused, by name, before anything is written.
#[tokio::test(flavor = "multi_thread")]
async fn each_missing_right_is_named_before_any_write() {
    let Some(objects) = objects().await else { return };
    for (name, case) in cases() {
        let mut rights = BTreeSet::new();
        let done = loop {
            let tried = tried(&objects, &case, &rights, "").await;
            if tried.missing.is_empty() {
                break tried;
            }
            let said = format!("lacks rights that the {name} needs");
            assert!(tried.error.contains(&said), "{name}: {}", tried.error);
            let before = rights.len();
            rights.extend(tried.missing);
            assert!(rights.len() > before, "{name}: {rights:?}");
        };
        assert_eq!(done.error, "", "{name}: with {rights:?}");
        for right in &rights {
            let mut less = rights.clone();
            less.remove(right);
            let tried = tried(&objects, &case, &less, &done.digest).await;
            // Where a wider right was held, a narrower one that it covered is told at its place.
            let [told] = tried.missing.as_slice() else { panic!("{name}: {:?}", tried.missing) };
            assert!(told == right || unnamed(told) == *right, "{name}, without {right}: {told}");
            // A plan stops at the object that it may not read and names that one; a run has looked for
            // its stored plan before, and names the right that is gone.
            let is_named = [told, right].into_iter().any(|one| tried.error.contains(one.as_str()));
            assert!(is_named, "{name}, without {right}: {}", tried.error);
        }
        println!("{name}: {} rights, each of them needed", rights.len());
    }
}

/// Another tool is at work on the release, or died at it.
#[tokio::test(flavor = "multi_thread")]
async fn a_pending_release_is_refused() {
    let Some(mut objects) = objects().await else { return };
    let newest = "sh.helm.release.v1.old.v2";
    let record =
        objects.iter_mut().find(|object| text(object, "/metadata/name") == newest).unwrap();
    let stored = STANDARD.decode(text(record, "/data/release")).unwrap();
    let mut inner = Record::from_json(&decode(&stored, CodecLimits::default()).unwrap()).unwrap();
    inner.set_status(&Status::PendingUpgrade, "Preparing upgrade").unwrap();
    record["data"]["release"] = STANDARD.encode(encode(&inner.to_json()).unwrap()).into();
    record["metadata"]["labels"]["status"] = "pending-upgrade".into();
    let clock = Arc::new(ManualClock::new("2026-01-01T00:00:00Z".parse().unwrap()));
    let engine = Engine::new(EngineOptions::default());
    for (name, case) in cases() {
        let memory =
            Arc::new(MemoryCluster::new(Arc::clone(&clock) as _, MemoryOptions::default()));
        memory.load(objects.iter().map(|o| (String::new(), o.clone())).collect()).unwrap();
        let cluster: Arc<dyn Cluster> = Arc::clone(&memory) as Arc<dyn Cluster>;
        let refusals = match &case {
            Case::Move { .. } => case.plan_move(&cluster, &*clock, &engine).await.refusals,
            _ => case.plan_adoption(&cluster, &*clock, &engine).await.plan.refusals,
        };
        let reasons: Vec<&str> = refusals.iter().map(|one| one.reason.as_str()).collect();
        assert_eq!(reasons, ["Pending"], "{name}: {refusals:?}");
        let error = case.run((&cluster, &*clock, &engine), "run", "sha256:any").await.unwrap_err();
        assert!(error.contains("pending-upgrade"), "{name}: {error}");
        let records = memory.objects();
        let there = records.iter().filter(|o| text(o, "/metadata/namespace") == "infra");
        assert!(there.clone().any(|object| text(object, "/metadata/name") == newest));
    }
}

/// The second of two runs is refused, and told who holds the lock: that of the old name as well as
/// that of the new one.
#[tokio::test(flavor = "multi_thread")]
async fn the_second_of_two_runs_is_refused() {
    let Some(objects) = objects().await else { return };
    for (name, case) in cases() {
        let rehearsal = Rehearsal::release(objects.clone(), case.clone()).await;
        for (namespace, lease) in [("shop", "ichor-release-depot"), ("infra", "ichor-release-old")]
        {
            let stage = rehearsal.stage();
            // One that died while it held both locks.
            let (_, writes) = rehearsal.reference().await;
            let first = writes.iter().position(|call| !call.object.contains("leases")).unwrap();
            stage.kill(first + 1, Moment::Before);
            rehearsal.run(&stage, "killed").await.unwrap_err();
            stage.restart();
            let clock = Busy::of(&stage, namespace, lease);
            let cluster: Arc<dyn Cluster> = stage.cluster();
            let engine = Engine::new(EngineOptions::default());
            let on = (&cluster, &clock as &dyn Clock, &engine);
            let error = case.run(on, "second", &rehearsal.digest).await.unwrap_err();
            let held = format!("Lease {namespace}/{lease} is held by living-run");
            assert!(error.contains(&held), "{name}: {error}");
            let writes = stage.writes();
            let is_lock = |call: &helm_rs::cluster::CallRecord| call.object.contains("leases");
            assert!(writes.iter().all(is_lock), "{name}: {writes:?}");
        }
    }
}

/// What is refused tells the driver that the records are in, and no other rule.
#[tokio::test(flavor = "multi_thread")]
async fn the_other_driver_is_named() {
    let Some(objects) = objects().await else { return };
    let to_map = Case::moved(("old", "infra"), ("old", "infra", ObjectKind::ConfigMap));
    let rehearsal = Rehearsal::release(objects, to_map).await;
    let stage = rehearsal.stage();
    rehearsal.run(&stage, "first").await.unwrap();
    let cluster: Arc<dyn Cluster> = stage.cluster();
    let engine = Engine::new(EngineOptions::default());
    for to in [("new", "infra", ObjectKind::Secret), ("old", "infra", ObjectKind::Secret)] {
        let case = Case::moved(("old", "infra"), to);
        let plan = case.plan_move(&cluster, &*stage.clock, &engine).await;
        let [refusal] = plan.refusals.as_slice() else { panic!("{:?}", plan.refusals) };
        assert_eq!(refusal.reason, "Driver");
        assert!(refusal.message.contains("HELM_DRIVER=configmap"), "{}", refusal.message);
    }
}

#[test]
fn a_right_is_read_as_it_is_named() {
    let (namespace, read) = rule("get secrets x in namespace web");
    assert_eq!(namespace, "web");
    assert_eq!(read["resourceNames"], json!(["x"]));
    let (namespace, read) = rule("create deployments.apps");
    assert_eq!((namespace.as_str(), &read["apiGroups"]), ("", &json!(["apps"])));
}
