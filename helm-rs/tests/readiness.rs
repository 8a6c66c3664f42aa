//! When an object counts as ready: objects of every kind that Helm knows, ready and nearly so, and
//! what `ReadyChecker.IsReady` of Helm 3.21.4 says of them (`pkg/kube/ready.go`, with paused
//! Deployments ready and Jobs looked at, as `--wait --wait-for-jobs` does).
//!
//! In `readiness/cases.json`, the first object of each case is looked at; the others are there
//! beside it. Where Helm gives no reason, ours is its own.
#![expect(clippy::unwrap_used, reason = "test code: a panic is how a test fails")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use helm_rs::apply::{Cancel, Item, Observer, WaitError, WaitOptions, Waiting, wait};
use helm_rs::cluster::memory::{MemoryCluster, MemoryOptions};
use helm_rs::cluster::{Kind, ManualClock, Resource, Target, block_on};
use serde_json::Value;

#[derive(serde::Deserialize)]
struct Case {
    name: String,
    /// Helm's answer.
    says: String,
    objects: Vec<Value>,
}

/// Hears why an object is not ready.
#[derive(Default)]
struct Reason(Mutex<String>);

impl Observer for Reason {
    fn waiting(&self, objects: &[Waiting]) {
        if let Some(first) = objects.first() {
            first.reason.clone_into(&mut self.0.lock().unwrap());
        }
    }
}

fn item(object: &Value) -> Item {
    let kind = Kind::of(object);
    let name = kind.kind.to_lowercase();
    let plural = if name.ends_with('s') { format!("{name}es") } else { format!("{name}s") };
    let namespaced = object.pointer("/metadata/namespace").is_some();
    let resource =
        Arc::new(Resource::builtin(&kind.api_version(), &kind.kind, &plural, namespaced));
    Item { target: Target::of(&resource, object, "ns"), value: object.clone() }
}

/// What is live is read in the newest version of the kind.
fn live(object: &Value) -> Value {
    let text = object.to_string().replacen("/v1beta1\"", "/v1\"", 1);
    serde_json::from_str(&text).unwrap()
}

fn look(case: &Case) -> String {
    let clock = Arc::new(ManualClock::new(jiff::Timestamp::UNIX_EPOCH));
    let cluster = MemoryCluster::new(clock.clone(), MemoryOptions::default());
    let objects = case.objects.iter().map(|object| (case.name.clone(), live(object))).collect();
    cluster.load(objects).unwrap();
    let (reason, cancel) = (Reason::default(), Cancel::default());
    let items = [item(case.objects.first().unwrap())];
    let options = WaitOptions { timeout: Duration::ZERO, jobs: true };
    match block_on(wait(&cluster, &*clock, &items, options, &reason, &cancel)) {
        Ok(()) => "ready".to_owned(),
        Err(WaitError::Deadline) => format!("not ready: {}", reason.0.lock().unwrap()),
        Err(error) => format!("error: {error}"),
    }
}

#[test]
fn as_helm_says() {
    let cases: Vec<Case> = serde_json::from_str(include_str!("readiness/cases.json")).unwrap();
    let mut faults = Vec::new();
    for case in &cases {
        let got = look(case);
        let silent = case.says == "not ready" && got.starts_with("not ready: ");
        if got != case.says && !silent {
            faults.push(format!("{}:\n  wanted {}\n  got    {got}", case.name, case.says));
        }
    }
    assert!(faults.is_empty(), "{} of {}:\n{}", faults.len(), cases.len(), faults.join("\n"));
    println!("{} cases", cases.len());
}
