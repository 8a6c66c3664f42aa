//! Adoptions and moves of any chart's release: killed at writes and run again, given back to the
//! byte, refused, and seen by real Helm.

use std::sync::Arc;

use helm_rs::cluster::{CallRecord, Cluster, Moment};
use helm_rs::release::storage::ObjectKind;
use helm_rs::render::{Engine, EngineOptions};
use serde_json::Value;
use takeover_tests::process::Site;
use takeover_tests::rehearsal::{
    Rehearsal, Tried as _, every_write, same_record, step_boundaries, text,
};
use takeover_tests::releases::{Case, applied, chart, depot, drifted, store};
use takeover_tests::{Bed, export, pinned};

async fn objects(bed: Option<Bed>) -> Option<Vec<Value>> {
    let bed = bed?;
    let objects = export(&*bed.cluster).await;
    bed.plane.stop();
    Some(objects)
}

fn adopt_depot() -> Case {
    Case::adopt(chart("depot"), "depot", "shop", Some(("old", "infra")))
}

fn move_depot() -> Case {
    Case::moved(("old", "infra"), ("depot", "shop", ObjectKind::Secret))
}

/// Every scenario: an adoption from another name and namespace, of applied objects, of Cilium as any
/// chart; a move to another name and namespace, to another driver, of Cilium to another name.
async fn scenarios() -> Option<Vec<(&'static str, Rehearsal)>> {
    let depot = objects(depot().await).await?;
    let store = objects(store().await).await?;
    let applied = objects(applied().await).await?;
    let cilium = objects(Bed::with_cilium("1.20.0", "01").await).await?;
    let web = Case::adopt(chart("store"), "web", "shop", None);
    let net = Case::adopt(pinned().chart, "net", "kube-system", Some(("cilium", "kube-system")));
    let driver = Case::moved(("web", "shop"), ("web", "shop", ObjectKind::ConfigMap));
    let named = Case::moved(("cilium", "kube-system"), ("net", "kube-system", ObjectKind::Secret));
    let mut changed = depot.clone();
    drifted(&mut changed);
    Some(vec![
        ("adopt depot, changed by hand", Rehearsal::release(changed, adopt_depot()).await),
        ("adopt depot", Rehearsal::release(depot.clone(), adopt_depot()).await),
        ("adopt store, applied", Rehearsal::release(applied, web).await),
        ("adopt Cilium as any chart", Rehearsal::release(cilium.clone(), net).await),
        ("move depot", Rehearsal::release(depot, move_depot()).await),
        ("move store to ConfigMaps", Rehearsal::release(store, driver).await),
        ("move Cilium to another name", Rehearsal::release(cilium, named).await),
    ])
}

/// Kills at the chosen writes of an action, then of its restore; the points.
async fn killed(
    name: &str,
    rehearsal: &Rehearsal,
    choose: fn(&[CallRecord]) -> Vec<usize>,
    twice: usize,
) -> usize {
    let points = rehearsal.matrix(choose).await;
    rehearsal.killed_twice(8, twice).await;
    let stage = rehearsal.stage();
    rehearsal.run(&stage, "first").await.unwrap();
    let undo = rehearsal.undo_of(&stage).await;
    let back = undo.matrix(choose).await;
    undo.killed_twice(8, twice).await;
    println!("{name}: {points} points, its restore {back}, {} double kills", 2 * twice);
    points + back
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_the_boundaries() {
    let Some(depot) = objects(depot().await).await else { return };
    let mut changed = depot.clone();
    drifted(&mut changed);
    for (name, objects, case) in [
        ("adopt depot", &depot, adopt_depot()),
        ("adopt depot, changed by hand", &changed, adopt_depot()),
        ("move depot", &depot, move_depot()),
    ] {
        let rehearsal = Rehearsal::release(objects.clone(), case).await;
        killed(name, &rehearsal, step_boundaries, 3).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: hack/proof kill-move"]
async fn every_write_of_adoptions_and_moves() {
    let began = std::time::Instant::now();
    let Some(scenarios) = scenarios().await else { return };
    let mut points = 0;
    for (name, rehearsal) in &scenarios {
        points += killed(name, rehearsal, every_write, 10).await;
    }
    println!(
        "{points} points, {} double kills, {:.0} s: the same end each time",
        scenarios.len() * 20,
        began.elapsed().as_secs_f64()
    );
}

/// Done and undone, everything is as it was: records to the byte, objects but for their versions.
#[tokio::test(flavor = "multi_thread")]
async fn given_back_to_the_byte() {
    let Some(scenarios) = scenarios().await else { return };
    for (name, rehearsal) in scenarios {
        let stage = rehearsal.stage();
        let undo = rehearsal.case.as_ref().unwrap().undo();
        let all = |stage: &takeover::snapshot::Stage| {
            undo.lasting(stage.memory.objects().iter().map(|object| (**object).clone()))
        };
        let before = all(&stage);
        rehearsal.run(&stage, "first").await.unwrap();
        assert_ne!(all(&stage), before, "{name}");
        let back = rehearsal.undo_of(&stage).await;
        let stage = back.stage();
        back.run(&stage, "second").await.unwrap();
        for original in &rehearsal.originals {
            let [kind, namespace, record] = ["/kind", "/metadata/namespace", "/metadata/name"]
                .map(|pointer| text(original, pointer));
            let live = stage.object(kind, namespace, record);
            assert!(live.is_some_and(|live| same_record(&live, original)), "{name}: {record}");
        }
        let mut after = all(&stage);
        after.retain(|object, _| {
            !object.starts_with("Lease ") && !object.contains("/ichor-release-")
        });
        for (object, was) in &before {
            if !object.starts_with("Lease ") {
                assert_eq!(after.get(object), Some(was), "{name}: {object}");
            }
        }
    }
}

struct Live {
    bed: Bed,
    engine: Engine,
}

impl Live {
    fn of(bed: Option<Bed>) -> Option<Self> {
        Some(Self { bed: bed?, engine: Engine::new(EngineOptions::default()) })
    }

    async fn run(&self, case: &Case) {
        let cluster: Arc<dyn Cluster> = Arc::clone(&self.bed.cluster) as Arc<dyn Cluster>;
        let digest = case.digest(&cluster, &self.bed.clock, &self.engine).await;
        case.run((&cluster, &self.bed.clock, &self.engine), "live", &digest).await.unwrap();
    }

    /// Every pod, by its UID. (A workload's generation counts its annotations.)
    async fn pods(&self) -> Vec<String> {
        let all = self.bed.footprints().await.0.into_iter();
        let pods = all.filter(|(name, _)| name.starts_with("Pod "));
        pods.map(|(name, pod)| format!("{name} {}", pod.uid)).collect()
    }

    fn helm(&self, words: &str) -> String {
        self.bed.helm(&words.split(' ').collect::<Vec<_>>())
    }

    fn revisions(&self, words: &str) -> Vec<Value> {
        serde_json::from_str(&self.helm(&format!("history {words} -o json"))).unwrap()
    }
}

/// After a move, real Helm lists, tells, upgrades and rolls back, with the whole history; and what
/// it upgrades are the objects that were there.
#[tokio::test(flavor = "multi_thread")]
async fn real_helm_goes_on_after_a_move() {
    let Some(live) = Live::of(depot().await) else { return };
    let pods = live.pods().await;
    live.run(&move_depot()).await;
    assert_eq!(live.helm("list -A -q").trim(), "depot");
    assert_eq!(live.revisions("depot -n shop").len(), 2);
    let path = takeover_tests::releases::chart_path("depot").display().to_string();
    live.helm("get manifest depot -n shop");
    assert!(live.helm("get values depot -n shop").contains("size: 2"));
    assert_eq!(pods, live.pods().await, "no pod is replaced");
    live.helm(&format!("upgrade depot {path} -n shop --set size=3"));
    live.helm("rollback depot 1 -n shop");
    let all = live.revisions("depot -n shop");
    assert_eq!(all.len(), 4);
    assert_eq!(all.last().unwrap()["status"], "deployed");
    let sizes = ["-n", "shop", "get", "configmap", "depot", "-o", "jsonpath={.data.size}"];
    assert_eq!(live.bed.kubectl(&sizes), "1");
    live.helm("uninstall depot -n shop");
    let left = live.bed.kubectl(&["-n", "shop", "get", "deployments", "-o", "name"]);
    assert_eq!(left.trim(), "");
    live.bed.plane.stop();
}

/// The same after an adoption of what another release held.
#[tokio::test(flavor = "multi_thread")]
async fn real_helm_goes_on_after_an_adoption() {
    let Some(live) = Live::of(depot().await) else { return };
    let secret = ["-n", "shop", "get", "secret", "depot", "-o", "jsonpath={.data.password}"];
    let password = live.bed.kubectl(&secret);
    let pods = live.pods().await;
    live.run(&adopt_depot()).await;
    assert_eq!(live.bed.kubectl(&secret), password, "what is generated is kept");
    assert_eq!(pods, live.pods().await, "no pod is replaced");
    assert_eq!(live.helm("list -A -q").trim(), "depot");
    assert!(live.helm("get values depot -n shop").contains("size: 2"), "values are lifted");
    let path = takeover_tests::releases::chart_path("depot").display().to_string();
    live.helm(&format!("upgrade depot {path} -n shop --set size=3"));
    assert_eq!(live.revisions("depot -n shop").len(), 2);
    live.bed.plane.stop();
}

/// A move to another namespace of objects that name none is refused; this is what real Helm does
/// after such a move that was made by hand: a second copy, and the first one is forgotten.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_is_what_helm_would_double() {
    let Some(live) = Live::of(store().await) else { return };
    let cluster: Arc<dyn Cluster> = Arc::clone(&live.bed.cluster) as Arc<dyn Cluster>;
    let case = Case::moved(("web", "shop"), ("web", "infra", ObjectKind::Secret));
    let plan = case.plan_move(&cluster, &live.bed.clock, &live.engine).await;
    let reasons: Vec<&str> = plan.refusals.iter().map(|one| one.reason.as_str()).collect();
    assert_eq!(reasons, ["Namespace"], "{:?}", plan.refusals);
    let file = live.bed.plane.folder().join("by-hand.yaml");
    let kubeconfig = live.bed.plane.kubeconfig();
    let words = ["release", "export", "web", "-n", "shop", "--into-namespace", "infra"];
    let exported = takeover_tests::process::command(&kubeconfig, &words).output().unwrap();
    assert!(exported.status.success(), "{}", String::from_utf8_lossy(&exported.stderr));
    std::fs::write(&file, exported.stdout).unwrap();
    live.bed.kubectl_with(&["apply", "-f"], &file);
    live.bed.kubectl(&["-n", "shop", "delete", "secret", "-l", "owner=helm"]);
    let path = takeover_tests::releases::chart_path("store").display().to_string();
    live.helm(&format!("upgrade web {path} -n infra"));
    for place in ["shop", "infra"] {
        let there = live.bed.kubectl(&["-n", place, "get", "statefulset", "web", "-o", "name"]);
        assert_eq!(there.trim(), "statefulset.apps/web", "{place}");
    }
    live.bed.plane.stop();
}

/// What is refused, each by its rule, with nothing written.
#[tokio::test(flavor = "multi_thread")]
async fn refused_by_a_named_rule() {
    let Some(store) = objects(store().await).await else { return };
    let rehearsal = Rehearsal::release(
        store,
        Case::moved(("web", "shop"), ("web", "shop", ObjectKind::ConfigMap)),
    )
    .await;
    let engine = Engine::new(EngineOptions::default());
    let secret = ObjectKind::Secret;
    let moves = [
        (("web", "shop"), ("web", "shop", secret), "Same"),
        (("none", "shop"), ("web2", "shop", secret), "Unknown"),
        (("web", "shop"), ("web", "nowhere", secret), "Namespace"),
    ];
    for (from, to, rule) in moves {
        let stage = rehearsal.stage();
        let cluster: Arc<dyn Cluster> = stage.cluster();
        let case = Case::moved(from, to);
        let plan = case.plan_move(&cluster, &*stage.clock, &engine).await;
        assert!(plan.refusals.iter().any(|one| one.reason == rule), "{rule}: {:?}", plan.refusals);
        let on = (&cluster, &*stage.clock as &dyn helm_rs::cluster::Clock, &engine);
        let error = case.shift(on, "refused", &plan.digest).await.unwrap_err();
        assert!(error.is_refusal(), "{error}");
        assert!(stage.writes().is_empty(), "{rule}: {:?}", stage.writes());
    }
    let adoptions = [
        ("web", Some(("other", "shop")), "Taken"),
        ("web", Some(("web", "shop")), "Same"),
        ("new", Some(("none", "shop")), "Foreign"),
    ];
    for (name, from, rule) in adoptions {
        let stage = rehearsal.stage();
        let cluster: Arc<dyn Cluster> = stage.cluster();
        let case = Case::adopt(chart("store"), name, "shop", from);
        let plan = case.plan_adoption(&cluster, &*stage.clock, &engine).await.plan;
        assert!(plan.refusals.iter().any(|one| one.reason == rule), "{rule}: {:?}", plan.refusals);
        let on = (&cluster, &*stage.clock as &dyn helm_rs::cluster::Clock, &engine);
        let error = case.take(on, "refused", &plan.digest).await.unwrap_err();
        assert!(error.is_refusal(), "{error}");
        let writes = stage.writes();
        assert!(writes.iter().all(|call| call.object.contains("leases")), "{rule}: {writes:?}");
    }
}

/// The next upgrade of a chart that names its objects after the release is told, and asks.
#[tokio::test(flavor = "multi_thread")]
async fn the_next_upgrade_is_told() {
    let Some(store) = objects(store().await).await else { return };
    let case = Case::moved(("web", "shop"), ("db", "shop", ObjectKind::Secret));
    let rehearsal = Rehearsal::release(store, case.clone()).await;
    let stage = rehearsal.stage();
    let cluster: Arc<dyn Cluster> = stage.cluster();
    let engine = Engine::new(EngineOptions::default());
    let plan = case.plan_move(&cluster, &*stage.clock, &engine).await;
    assert_eq!(plan.next_upgrade.created.len(), 4, "{:?}", plan.next_upgrade);
    assert_eq!(plan.next_upgrade.deleted.len(), 4);
    assert_eq!(plan.consent.len(), 1);
    assert_eq!(plan.consent[0].flag, "--accept-next-upgrade");
}

/// A move by the program, killed at a write and run again; whether it had that write.
async fn process_killed_at(at: usize, moment: Moment) -> Option<bool> {
    let move_it = ["release", "move", "old", "-n", "infra", "--to-namespace", "shop"];
    let move_it = [&move_it[..], &["--to-name", "depot", "--yes"]].concat();
    let expected = {
        let site = Site::of(depot().await?, &move_it).await;
        assert_eq!(site.run().status.code(), Some(0));
        let state = move_depot().lasting(export(&*site.bed.cluster).await);
        site.bed.plane.stop();
        state
    };
    let site = Site::of(depot().await?, &move_it).await;
    let Some(request) = site.kill_at(at, moment).await else {
        site.bed.plane.stop();
        return Some(false);
    };
    let title = format!("killed {moment:?} write {at} ({request})");
    let output = site.run();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{title}: {told}");
    let state = move_depot().lasting(export(&*site.bed.cluster).await);
    for (name, object) in expected.iter().filter(|(name, _)| !lives(name)) {
        assert_eq!(state.get(name), Some(object), "{name}, {title}");
    }
    let list = site.bed.helm(&["list", "-A", "-q"]);
    assert_eq!(list.trim(), "depot", "{title}");
    println!("{title}: the same end");
    site.bed.plane.stop();
    Some(true)
}

/// What lives by itself on a plane, or is another on each.
fn lives(name: &str) -> bool {
    ["Lease ", "Pod ", "ReplicaSet ", "Node ", "Endpoint", "ConfigMap kube-system/"]
        .iter()
        .chain(&["Secret shop/ichor-release-"])
        .any(|start| name.starts_with(start))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_moving_process_killed_on_a_control_plane() {
    // One old record is deleted, the other one is there.
    let Some(had) = process_killed_at(11, Moment::After).await else { return };
    assert!(had);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: hack/proof kill-move"]
async fn a_moving_process_killed_at_every_write() {
    for moment in [Moment::Before, Moment::After] {
        let mut at = 0;
        loop {
            match process_killed_at(at, moment).await {
                None => return,
                Some(false) => break,
                Some(true) => at += 1,
            }
        }
        println!("killed {moment:?} each of {at} writes");
        assert!(at > 8);
    }
}
