//! Restore: back to how it was before the takeover.

use std::sync::Arc;

use helm_rs::apply::{Cancel, Silent};
use helm_rs::cluster::{Cluster, Patch, PatchKind, Resource, Target, WriteOptions};
use serde_json::{Value, json};
use takeover::run::restore::{RestoreError, Restored, plan_restore, restore};
use takeover::snapshot::{Stage, lasting};
use takeover_tests::rehearsal::{Rehearsal, Tried, end_state, same_record, text};
use takeover_tests::{Bed, export, records};

fn foreign(objects: &[Value]) -> Vec<&Value> {
    let is_one = |object: &&Value| {
        text(object, "/metadata/namespace") == "kube-system"
            && text(object, "/metadata/name").starts_with("sh.helm.release.v1.cilium.v")
    };
    objects.iter().filter(is_one).collect()
}

/// Chart objects and records, without what ichor's namespace holds and what lives by itself.
fn outside(objects: Vec<Value>) -> std::collections::BTreeMap<String, Value> {
    let passing = ["Node", "Pod", "Endpoints", "EndpointSlice", "Lease", "ReplicaSet", "Namespace"];
    lasting(objects.into_iter().filter(|object| {
        text(object, "/metadata/namespace") != "ichor-system"
            && !passing.contains(&text(object, "/kind"))
    }))
}

/// On a real control plane: taken over, restored, upgraded by real Helm, and all of it again.
#[tokio::test(flavor = "multi_thread")]
async fn restore_and_real_helm_goes_on() {
    let Some(bed) = records::three_revisions("secret").await else { return };
    let before = export(&*bed.cluster).await;
    let pods = bed.footprints().await;
    for round in 1..=2 {
        let before = export(&*bed.cluster).await;
        let plan = bed.plan(None).await.plan;
        let done = bed.take_over(None, &plan).await.unwrap();
        assert_eq!(done.records.deleted.len(), foreign(&before).len());
        let restored = restored(&bed).await;
        assert_eq!(restored.records.len(), foreign(&before).len());
        assert_eq!(restored.own.deleted.len(), 1);
        let after = export(&*bed.cluster).await;
        for record in foreign(&before) {
            let name = text(record, "/metadata/name");
            let back = after.iter().find(|object| {
                text(object, "/metadata/name") == name
                    && text(object, "/metadata/namespace") == "kube-system"
            });
            assert!(back.is_some_and(|back| same_record(back, record)), "{name}, round {round}");
        }
        let (was, is) = (outside(before), outside(after));
        for (name, object) in &was {
            assert_eq!(is.get(name), Some(object), "{name}, round {round}");
        }
        assert_eq!(was.len(), is.len());
    }
    assert_eq!(pods, bed.footprints().await, "no pod is replaced");
    let chart = plane::cilium::chart("1.20.0").unwrap().display().to_string();
    let values = takeover_tests::values_path("01");
    bed.helm(&["-n", "kube-system", "upgrade", "cilium", &chart, "-f", &values]);
    let history = bed.helm(&["-n", "kube-system", "history", "cilium", "-o", "json"]);
    let history: Vec<Value> = serde_json::from_str(&history).unwrap();
    assert_eq!(history.len(), foreign(&before).len() + 1);
    assert_eq!(history.last().unwrap()["status"], "deployed");
    assert_eq!(bed.helm(&["list", "-A", "-a", "-q"]).trim(), "cilium");
    bed.plane.stop();
}

async fn restored(bed: &Bed) -> Restored {
    let done =
        restore(&bed.cluster, &bed.clock, "restore", None, &Silent, &Cancel::default()).await;
    done.unwrap_or_else(|error| panic!("{}", helm_rs::error_chain(&error)))
}

async fn taken_over() -> Option<(Rehearsal, Stage)> {
    let bed = records::three_revisions("secret").await?;
    let mut objects = export(&*bed.cluster).await;
    bed.plane.stop();
    // One record as somebody may have marked it.
    let marked = objects
        .iter_mut()
        .find(|object| text(object, "/metadata/name") == "sh.helm.release.v1.cilium.v2");
    let marked = marked.unwrap();
    marked["immutable"] = true.into();
    marked["metadata"]["annotations"] = json!({ "note": "kept for the auditors" });
    let rehearsal = Rehearsal::takeover(objects).await;
    let stage = rehearsal.stage();
    rehearsal.run(&stage, "first").await.unwrap();
    Some((rehearsal, stage))
}

async fn try_restore(stage: &Stage, digest: Option<&str>) -> Result<Restored, RestoreError> {
    let cluster: Arc<dyn Cluster> = stage.cluster();
    restore(&cluster, &*stage.clock, "restore", digest, &Silent, &Cancel::default()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn restore_brings_records_back_to_the_byte() {
    let Some((rehearsal, stage)) = taken_over().await else { return };
    let before = end_state(&rehearsal.stage().memory);
    let done = try_restore(&stage, None).await.unwrap();
    assert_eq!(done.records.len(), 3);
    for original in &rehearsal.originals {
        let name = text(original, "/metadata/name");
        let back = stage.object("Secret", "kube-system", name).unwrap();
        assert!(same_record(&back, original), "{name}");
    }
    let after = end_state(&stage.memory);
    for (name, object) in &before {
        assert_eq!(after.get(name), Some(object), "{name}");
    }
    assert!(stage.own_records().is_empty());
    // And there is nothing more to do.
    let again = try_restore(&stage, None).await.unwrap_err();
    assert!(again.is_refusal());
}

#[tokio::test(flavor = "multi_thread")]
async fn restore_refuses_when_objects_changed() {
    let Some((_, stage)) = taken_over().await else { return };
    let resource = Arc::new(Resource::builtin("v1", "ConfigMap", "configmaps", true));
    let target = Target::new(&resource, "kube-system", "cilium-config");
    let patch = Patch { kind: PatchKind::Merge, body: json!({ "data": { "debug": "changed" } }) };
    stage.memory.patch(&target, &patch, &WriteOptions::default()).await.unwrap();
    stage.restart();
    let error = try_restore(&stage, None).await.unwrap_err();
    let RestoreError::Changed { changed, digest, .. } = &error else {
        panic!("{}", helm_rs::error_chain(&error));
    };
    assert!(changed.len() == 1 && changed[0].contains("cilium-config"), "{changed:?}");
    let wrong = try_restore(&stage, Some("sha256:another")).await.unwrap_err();
    assert!(matches!(wrong, RestoreError::Changed { .. }));
    let writes = stage.writes();
    assert!(writes.iter().all(|call| call.object.contains("leases")), "{writes:?}");
    try_restore(&stage, Some(digest)).await.unwrap();
    let left = stage.object("ConfigMap", "kube-system", "cilium-config").unwrap();
    assert_eq!(text(&left, "/data/debug"), "changed", "what somebody wrote stays");
}

#[tokio::test(flavor = "multi_thread")]
async fn restore_refuses_under_a_talos_cluster() {
    let Some((_, stage)) = taken_over().await else { return };
    let definition = plane::cilium::stub_definition(
        "ichor.maesh.dev",
        "v1alpha1",
        "TalosCluster",
        "talosclusters",
        false,
    );
    let cluster = |preset: &str| {
        json!({
            "apiVersion": "ichor.maesh.dev/v1alpha1", "kind": "TalosCluster",
            "metadata": { "name": "main" }, "spec": { "cni": { "preset": preset } },
        })
    };
    for object in [definition, cluster("cilium")] {
        stage.memory.load(vec![("test".to_owned(), object)]).unwrap();
    }
    stage.restart();
    // Discovery is read once by a run.
    stage.memory.discovery(true).await.unwrap();
    let error = try_restore(&stage, None).await.unwrap_err();
    assert!(error.is_refusal());
    assert!(helm_rs::error_chain(&error).contains("TalosCluster main"), "{error}");
    assert!(stage.writes().is_empty());
    stage.memory.load(vec![("test".to_owned(), cluster("unmanaged"))]).unwrap();
    try_restore(&stage, None).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn restore_refuses_a_damaged_backup() {
    let Some((_, stage)) = taken_over().await else { return };
    let mut backup =
        (*stage.object("Secret", "ichor-system", "ichor-cilium-prior-release").unwrap()).clone();
    backup["data"]["1.release"] = "AAAA".into();
    stage.memory.load(vec![("test".to_owned(), backup)]).unwrap();
    stage.restart();
    let plan = plan_restore(&*stage.memory).await.unwrap();
    assert!(plan.refusals.iter().any(|refusal| refusal.contains("damaged")), "{:?}", plan.refusals);
    assert!(try_restore(&stage, None).await.unwrap_err().is_refusal());
    assert!(stage.writes().is_empty());
}

/// After an upgrade, the preview says what runs, which record comes back, and that both are of
/// another version; and that is what happens.
#[tokio::test(flavor = "multi_thread")]
async fn restore_after_an_upgrade_says_what_runs() {
    let Some(bed) = Bed::with_cilium("1.19.6", "01").await else { return };
    let rehearsal = Rehearsal::of(bed).await;
    let stage = rehearsal.stage();
    rehearsal.run(&stage, "first").await.unwrap();
    let plan = plan_restore(&*stage.memory).await.unwrap();
    assert_eq!(plan.refusals, [] as [String; 0]);
    println!("{}", plan.versions);
    for part in [
        "Cilium 1.20.0 runs and stays as it is",
        "revision 1 of release cilium (Secret kube-system/sh.helm.release.v1.cilium.v1, deployed)",
        "it is of 1.19.6",
        "`helm upgrade`, `helm rollback`",
    ] {
        assert!(plan.versions.contains(part), "{part}: {}", plan.versions);
    }
    try_restore(&stage, None).await.unwrap();
    let set = stage.object("DaemonSet", "kube-system", "cilium").unwrap();
    assert!(text(&set, "/spec/template/spec/containers/0/image").contains(":v1.20.0"));
}

/// Where there was no release before, the one that a plain `helm install` makes is in the way too.
#[tokio::test(flavor = "multi_thread")]
async fn restore_refuses_where_a_record_came_that_was_not_there() {
    let Some(bed) = Bed::with_cilium("1.20.0", "01").await else { return };
    bed.kubectl(&["-n", "kube-system", "delete", "secret", "-l", "owner=helm"]);
    let rehearsal = Rehearsal::of(bed).await;
    let stage = rehearsal.stage();
    let plan = plan_restore(&*stage.memory).await.unwrap();
    assert!(plan.refusals.iter().any(|refusal| refusal.contains("no stored plan")));
    rehearsal.run(&stage, "first").await.unwrap();
    let plan = plan_restore(&*stage.memory).await.unwrap();
    assert_eq!((plan.refusals.len(), plan.records.len()), (0, 0), "{:?}", plan.refusals);
    let name = "sh.helm.release.v1.cilium.v1";
    let mut record = (*stage.object("Secret", "ichor-system", name).unwrap()).clone();
    record["metadata"]["namespace"] = "kube-system".into();
    stage.memory.load(vec![("test".to_owned(), record)]).unwrap();
    let plan = plan_restore(&*stage.memory).await.unwrap();
    let [refusal] = plan.refusals.as_slice() else { panic!("{:?}", plan.refusals) };
    assert!(refusal.contains(&format!("Secret kube-system/{name} is there")), "{refusal}");
}

/// One who is told to stop stops before the next write, and the next run goes on.
#[tokio::test(flavor = "multi_thread")]
async fn restore_stops_when_asked() {
    let Some((_, stage)) = taken_over().await else { return };
    let cancel = Cancel::default();
    cancel.cancel();
    let cluster = stage.cluster();
    let stopped = restore(&cluster, &*stage.clock, "restore", None, &Silent, &cancel).await;
    assert!(matches!(stopped, Err(RestoreError::Cancelled)), "{stopped:?}");
    assert!(stage.object("Secret", "kube-system", "sh.helm.release.v1.cilium.v1").is_none());
    try_restore(&stage, None).await.unwrap();
    assert!(stage.object("Secret", "kube-system", "sh.helm.release.v1.cilium.v1").is_some());
}

/// Somebody installed the release anew: its record has the name of one that would come back.
#[tokio::test(flavor = "multi_thread")]
async fn restore_refuses_where_a_record_stands() {
    let Some((_, stage)) = taken_over().await else { return };
    let plan = plan_restore(&*stage.memory).await.unwrap();
    assert!(plan.versions.contains("of the same version, counts again"), "{}", plan.versions);
    let name = "sh.helm.release.v1.cilium.v1";
    let mut record = (*stage.object("Secret", "ichor-system", name).unwrap()).clone();
    record["metadata"]["namespace"] = "kube-system".into();
    record["metadata"]["uid"] = "00000000-0000-4000-8000-000000000000".into();
    stage.memory.load(vec![("test".to_owned(), record)]).unwrap();
    stage.restart();
    let plan = plan_restore(&*stage.memory).await.unwrap();
    let [refusal] = plan.refusals.as_slice() else { panic!("{:?}", plan.refusals) };
    println!("{refusal}");
    for part in [
        "Secret kube-system/sh.helm.release.v1.cilium.v1 is there and is none of the backup's",
        "helm -n kube-system history cilium",
        "kubectl -n kube-system delete secret sh.helm.release.v1.cilium.v1",
    ] {
        assert!(refusal.contains(part), "{part}: {refusal}");
    }
    assert!(try_restore(&stage, None).await.unwrap_err().is_refusal());
    assert!(stage.writes().is_empty());
}
