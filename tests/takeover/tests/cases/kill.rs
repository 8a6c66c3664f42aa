//! A8: killed before and after every write, then run again: the same end. On the in-memory
//! cluster, filled with what a real plane held.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use helm_rs::apply::Cancel;

use helm_rs::cluster::memory::{MemoryCluster, MemoryOptions};
use helm_rs::cluster::{
    Clock, Cluster, Count, Effect, Fault, Faults, ManualClock, Moment,
};
use helm_rs::render::{Engine, EngineOptions};
use serde_json::Value;
use takeover::plan::{Request, WhoWrites, prepare};
use takeover::run::backup::backups;
use takeover::run::{Done, Run, RunError, take_over};
use takeover_tests::{Bed, export, pinned};

struct Loud;
impl helm_rs::apply::Observer for Loud {
    fn waiting(&self, objects: &[helm_rs::apply::Waiting]) {
        println!("{objects:?}");
    }
}

/// A run on a cluster in memory.
struct Rehearsal {
    objects: Vec<(String, Value)>,
    engine: Engine,
    pinned: cilium::pinned::Pinned,
}

impl Rehearsal {
    fn cluster(&self) -> (Arc<ManualClock>, &'static MemoryCluster) {
        let clock = Arc::new(ManualClock::new("2026-01-01T00:00:00Z".parse().unwrap()));
        let options = MemoryOptions { controllers: true, ..MemoryOptions::default() };
        let memory = MemoryCluster::new(Arc::clone(&clock) as Arc<dyn Clock>, options);
        memory.load(self.objects.clone()).unwrap();
        // The tests' clusters live as long as the process: actions share them.
        (clock, Box::leak(Box::new(memory)))
    }

    async fn digest(&self, clock: &ManualClock, cluster: &Arc<dyn Cluster>) -> String {
        let prepared = prepare(&self.request(clock, cluster)).await.unwrap();
        assert!(!prepared.plan.is_refused(), "{:?}", prepared.plan.refusals);
        prepared.plan.digest
    }

    fn request<'a>(&'a self, clock: &'a ManualClock, cluster: &Arc<dyn Cluster>) -> Request<'a> {
        Request {
            cluster: Arc::clone(cluster),
            clock,
            engine: &self.engine,
            pinned: &self.pinned,
            values: None,
            cni_unmanaged: false,
            who_writes: WhoWrites::Caller,
            entropy: [7; 32],
        }
    }

    async fn run(
        &self,
        clock: &ManualClock,
        cluster: &Arc<dyn Cluster>,
        digest: &str,
        holder: &str,
    ) -> Result<Done, RunError> {
        let cancel = Cancel::default();
        let run = Run {
            request: self.request(clock, cluster),
            digest: Some(digest.to_owned()),
            accept_changes: true,
            accept_diff: true,
            holder: holder.to_owned(),
            observer: &Loud,
            cancel: &cancel,
            timeout: Duration::from_mins(1),
        };
        take_over(&run).await
    }
}

/// What a run leaves, without what every run makes anew.
fn end_state(memory: &MemoryCluster) -> BTreeMap<String, Value> {
    let mut state = BTreeMap::new();
    for object in memory.objects() {
        let mut object = (*object).clone();
        let text = |object: &Value, pointer: &str| {
            object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let (kind, name) = (text(&object, "/kind"), text(&object, "/metadata/name"));
        if kind == "Lease" || name == "ichor-cni-plan" {
            continue;
        }
        let own = name.strip_prefix("sh.helm.release.v1.cilium.v");
        if text(&object, "/metadata/namespace") == "ichor-system" && own.is_some() {
            // Only the newest one's status counts.
            let status = text(&object, "/metadata/labels/status");
            if status == "deployed" {
                state.insert("ichor's record".to_owned(), status.into());
            }
            continue;
        }
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            for field in ["resourceVersion", "managedFields", "uid", "creationTimestamp", "generation"] {
                metadata.remove(field);
            }
        }
        object.as_object_mut().unwrap().remove("status");
        state.insert(format!("{kind} {}/{name}", text(&object, "/metadata/namespace")), object);
    }
    state
}

/// Every foreign record is there, or a verified backup of it is.
async fn nothing_is_lost(memory: &MemoryCluster, originals: &[(String, String)]) {
    let backups = backups(memory).await.unwrap();
    for (namespace, name) in originals {
        let is_live = memory.objects().iter().any(|object| {
            object.pointer("/metadata/name").and_then(Value::as_str) == Some(name)
                && object.pointer("/metadata/namespace").and_then(Value::as_str) == Some(namespace)
        });
        let is_safe = backups
            .iter()
            .any(|b| b.verified().any(|r| &r.name == name && &r.namespace == namespace));
        assert!(is_live || is_safe, "{namespace}/{name} is lost");
    }
}

async fn matrix(rehearsal: &Rehearsal, every: usize) {
    let originals: Vec<(String, String)> = rehearsal
        .objects
        .iter()
        .filter_map(|(_, object)| {
            let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
            let name = text("/metadata/name")?;
            let is_record = name.starts_with("sh.helm.release.v1.");
            is_record.then(|| (text("/metadata/namespace").unwrap_or_default().to_owned(), name.to_owned()))
        })
        .collect();
    let (clock, memory) = rehearsal.cluster();
    let faults = Arc::new(Faults::new(memory, Arc::clone(&clock) as Arc<dyn Clock>));
    let cluster: Arc<dyn Cluster> = Arc::clone(&faults) as Arc<dyn Cluster>;
    let digest = rehearsal.digest(&clock, &cluster).await;
    let before = faults.counts().1;
    let op = |memory: &MemoryCluster| memory.objects().iter().filter(|o| matches!(o["kind"].as_str(), Some("Deployment"|"ReplicaSet")) && o["metadata"]["name"].as_str().unwrap().starts_with("cilium-operator")).map(|o| (**o).clone()).collect::<Vec<_>>();
    std::fs::write("/tmp/kill-before.json", serde_json::to_string_pretty(&op(memory)).unwrap()).unwrap();
    let done = rehearsal.run(&clock, &cluster, &digest, "first").await;
    std::fs::write("/tmp/kill-after.json", serde_json::to_string_pretty(&op(memory)).unwrap()).unwrap();
    let done = done.unwrap();
    let writes = faults.counts().1 - before;
    println!("{writes} writes, {done:?}");
    for call in faults.timeline().iter().filter(|call| call.is_write()) {
        println!("  {call}");
    }
    let expected = end_state(memory);
    let mut kills = 0;
    for at in (1..=writes).step_by(every) {
        for moment in [Moment::Before, Moment::After] {
            let (clock, memory) = rehearsal.cluster();
            let faults = Arc::new(Faults::new(memory, Arc::clone(&clock) as Arc<dyn Clock>));
            faults.plan(Fault { count: Count::Writes, at, moment, effect: Effect::Poison });
            let cluster: Arc<dyn Cluster> = faults;
            let killed = rehearsal.run(&clock, &cluster, &digest, "killed").await;
            // The last write gives the lock back; what becomes of it is of no account.
            assert!(killed.is_err() || at == writes, "write {at} {moment:?}");
            nothing_is_lost(memory, &originals).await;
            let alive = Faults::new(memory, Arc::clone(&clock) as Arc<dyn Clock>);
            let cluster: Arc<dyn Cluster> = Arc::new(alive);
            let done = rehearsal.run(&clock, &cluster, &digest, "second").await;
            let done = done.unwrap_or_else(|error| {
                panic!("write {at} {moment:?}: {}", helm_rs::error_chain(&error))
            });
            nothing_is_lost(memory, &originals).await;
            let state = end_state(memory);
            for (name, object) in &expected {
                assert_eq!(state.get(name), Some(object), "{name} after write {at} {moment:?}, {done:?}");
            }
            assert_eq!(state.len(), expected.len(), "after write {at} {moment:?}");
            kills += 1;
        }
    }
    println!("{kills} kills, all with the same end");
}

async fn rehearsal(bed: &Bed) -> Rehearsal {
    let objects = export(&*bed.cluster).await;
    Rehearsal {
        objects: objects.into_iter().map(|object| ("export".to_owned(), object)).collect(),
        engine: Engine::new(EngineOptions::default()),
        pinned: pinned(),
    }
}

/// The objects say that another release owns them, so that every one of them is written.
#[tokio::test(flavor = "multi_thread")]
async fn a8_killed_at_every_write() {
    let Some(bed) = Bed::with_cilium("1.20.0", "01").await else { return };
    let mut rehearsal = rehearsal(&bed).await;
    bed.plane.stop();
    for (_, object) in &mut rehearsal.objects {
        let owned = object
            .pointer("/metadata/annotations")
            .is_some_and(|annotations| annotations.get("meta.helm.sh/release-name").is_some());
        let kind = object["kind"].as_str().unwrap_or_default().to_owned();
        if owned && kind != "DaemonSet" {
            object["metadata"]["annotations"]["meta.helm.sh/release-name"] = "other".into();
        }
    }
    matrix(&rehearsal, 1).await;
}
