//! Changes of ichor's own release: killed before and after writes, then run again: the same end. On
//! the cluster in memory, filled with what a real plane held; `hack/proof kill` takes every write.

use cilium::kube_proxy::Replacement;
use goyaml::Limits;
use helm_rs::cluster::CallRecord;
use serde_json::{Value, json};
use takeover::snapshot::Stage;
use takeover_tests::rehearsal::{Rehearsal, Tried as _, Wish, every_write, step_boundaries, text};
use takeover_tests::{Bed, export, kube_proxy_on};

fn asking(values: &Value) -> Wish {
    match goyaml::json::from_json(values.to_string().as_bytes(), &Limits::default()) {
        Ok(goyaml::Value::Map(values)) => Wish { values, ..Wish::default() },
        other => panic!("{other:?}"),
    }
}

/// A change of what a takeover of a plane's Cilium leaves.
async fn after_takeover(values: &str, wish: Wish) -> Option<Rehearsal> {
    let bed = Bed::with_cilium("1.20.0", values).await?;
    kube_proxy_on(&bed.plane);
    let takeover = Rehearsal::of(bed).await;
    let stage = takeover.stage();
    takeover.run(&stage, "first").await.unwrap();
    Some(takeover.change_of(&stage, wish).await)
}

/// Leaves come, and others are changed.
async fn other_settings() -> Option<Rehearsal> {
    after_takeover("03", asking(&json!({ "debug": { "enabled": true }, "MTU": 1400 }))).await
}

/// Whole objects go: Deployments, Services, Roles, in several namespaces.
async fn fewer_objects() -> Option<Rehearsal> {
    let off = json!({ "enabled": false });
    after_takeover("03", asking(&json!({ "hubble": { "relay": off, "ui": off } }))).await
}

async fn without_kube_proxy() -> Option<Rehearsal> {
    let wish = Wish { kube_proxy: Some(Replacement::On), ..Wish::default() };
    after_takeover("02", wish).await
}

/// From the chart before the pinned one, as an ichor of that time left it.
async fn newer_chart() -> Option<Rehearsal> {
    let bed = Bed::with_cilium("1.19.6", "03").await?;
    let mut objects = export(&*bed.cluster).await;
    bed.plane.stop();
    for object in &mut objects {
        if text(object, "/metadata/name") == "sh.helm.release.v1.cilium.v1" {
            object["metadata"]["namespace"] = "ichor-system".into();
        }
    }
    objects.push(json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": { "name": "ichor-system", "uid": "00000000-0000-4000-8000-000000000010" },
        "status": { "phase": "Active" },
    }));
    let release = Rehearsal::owned(objects);
    let wish = Wish { upgrade: true, ..Wish::default() };
    Some(release.change_of(&release.stage(), wish).await)
}

async fn boundaries(name: &str, rehearsal: Option<Rehearsal>) {
    let Some(rehearsal) = rehearsal else { return };
    let points = rehearsal.matrix(step_boundaries).await;
    rehearsal.killed_twice(8, 6).await;
    println!("{name}: {points} points and 6 double kills, each with the same end");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_change_of_settings_is_finished() {
    boundaries("other settings", other_settings().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_change_that_deletes_is_finished() {
    let Some(rehearsal) = fewer_objects().await else { return };
    let stage = rehearsal.stage();
    let relay = |stage: &Stage| stage.object("Deployment", "kube-system", "hubble-relay").is_some();
    assert!(relay(&stage));
    rehearsal.run(&stage, "first").await.unwrap();
    assert!(!relay(&stage), "what the values no longer ask for is deleted");
    boundaries("fewer objects", Some(rehearsal)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_change_of_kube_proxy_is_finished() {
    boundaries("without kube-proxy", without_kube_proxy().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_upgrade_is_finished() {
    boundaries("newer chart", newer_chart().await).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: hack/proof kill"]
async fn every_write_of_every_change() {
    let began = std::time::Instant::now();
    let every: fn(&[CallRecord]) -> Vec<usize> = every_write;
    let mut points = 0;
    for (name, rehearsal) in [
        ("other settings", other_settings().await),
        ("fewer objects", fewer_objects().await),
        ("without kube-proxy", without_kube_proxy().await),
        ("newer chart", newer_chart().await),
    ] {
        let Some(rehearsal) = rehearsal else { return };
        let count = rehearsal.matrix(every).await;
        rehearsal.killed_twice(20_261_201, 20).await;
        println!("{name}: {count} points, 20 double kills");
        points += count;
    }
    println!(
        "{points} points and 80 double kills in memory, {:.0} s: the same end each time",
        began.elapsed().as_secs_f64()
    );
}
