//! A9: a foreign release `net` with its records in namespace `infra`: ten revisions of about
//! 600 KB.

use std::time::Instant;

use helm_rs::cluster::Moment;
use serde_json::{Value, json};
use takeover::place::CILIUM;
use takeover::run::RunError;
use takeover::run::backup::{BackupError, backups};
use takeover_tests::rehearsal::{Rehearsal, Tried, holds, text};
use takeover_tests::{export, records};

fn is_record(object: &Value) -> bool {
    text(object, "/metadata/namespace") == "infra"
        && text(object, "/metadata/name").starts_with("sh.helm.release.v1.net.v")
}

#[tokio::test(flavor = "multi_thread")]
async fn a9_large_records_in_another_namespace() {
    let Some(bed) = records::ten_revisions().await else { return };
    let originals: Vec<Value> = export(&*bed.cluster).await.into_iter().filter(is_record).collect();
    assert_eq!(originals.len(), 10);
    let before = bed.footprints().await;
    let plan = bed.plan(None).await.plan;
    assert!(!plan.is_refused(), "{:?}", plan.refusals);
    assert_eq!(plan.records.len(), 10);
    for record in &plan.records {
        assert_eq!(record.about.namespace, "infra");
        assert!((550_000..650_000).contains(&record.bytes), "{} bytes", record.bytes);
    }
    let began = Instant::now();
    let done = bed.take_over(None, &plan).await.unwrap();
    assert_eq!((done.records.deleted.len(), done.records.backups.len()), (10, 10));
    let backups = backups(&*bed.cluster, &CILIUM).await.unwrap();
    for original in &originals {
        let name = text(original, "/metadata/name");
        assert!(backups.iter().any(|backup| holds(backup, original)), "{name} is not backed up");
    }
    let left = export(&*bed.cluster).await.iter().filter(|object| is_record(object)).count();
    assert_eq!(left, 0);
    // The owner's name changes, and a Deployment's generation counts its annotations.
    assert!(plan.restarts.is_empty());
    takeover_tests::assert_forecast(&before, &bed.footprints().await, &plan);
    let list = bed.helm(&["list", "-A", "-a", "-q"]);
    assert_eq!(list.trim(), "cilium");
    println!(
        "a9: 10 records of {} KB in {} backups, {:.1} s",
        plan.records[0].bytes / 1000,
        done.records.backups.len(),
        began.elapsed().as_secs_f64()
    );
    bed.plane.stop();
}

/// An original that is another object under the same name is not deleted, and nothing else is.
#[tokio::test(flavor = "multi_thread")]
async fn a9_only_the_same_object_is_deleted() {
    let Some(bed) = records::three_revisions("secret").await else { return };
    let rehearsal = Rehearsal::of(bed).await;
    let (_, writes) = rehearsal.reference().await;
    let name = "sh.helm.release.v1.cilium.v2";
    let place = format!("kube-system/{name}");
    let at = writes.iter().position(|call| call.object.ends_with(&place)).unwrap() + 1;
    let stage = rehearsal.stage();
    stage.kill(at, Moment::Before);
    rehearsal.run(&stage, "killed").await.unwrap_err();
    let mut replaced = (*stage.object("Secret", "kube-system", name).unwrap()).clone();
    replaced["metadata"]["uid"] = json!("00000000-0000-4000-8000-000000000000");
    stage.memory.load(vec![("test".to_owned(), replaced)]).unwrap();
    stage.restart();
    let error = rehearsal.take_over(&stage, "next", Some(&rehearsal.digest)).await.unwrap_err();
    let is_changed = matches!(&error, RunError::Backup(BackupError::Changed { record }) if record.ends_with(name));
    assert!(is_changed, "{}", helm_rs::error_chain(&error));
    assert!(stage.object("Secret", "kube-system", name).is_some());
    assert!(stage.object("Secret", "kube-system", "sh.helm.release.v1.cilium.v3").is_some());
}
