//! Something of ichor's own was edited or cut short: what it is, what is wrong with it and what to
//! do about it is said, and nothing is written.

use std::sync::Arc;

use helm_rs::apply::Silent;
use helm_rs::cluster::{Cluster, Moment};
use helm_rs::error_chain;
use serde_json::{Value, json};
use takeover::plan::Outcome;
use takeover::run::left_over;
use takeover::run::restore::{plan_restore, restore};
use takeover::snapshot::Stage;
use takeover_tests::records;
use takeover_tests::rehearsal::{Rehearsal, Tried, text};

use crate::half_states::{SECRET, edit, killed};

const OWN: &str = "sh.helm.release.v1.cilium.v1";
const BACKUP: &str = "ichor-cilium-prior-release";
const PLAN: &str = "ichor-cni-plan";
/// A record whose gzip layer is cut short.
const NO_GZIP: &str = "SDRzSUFBQUFBQUFBQTZxcQ==";

async fn begun(part: &str) -> Option<(Rehearsal, Stage)> {
    let bed = records::three_revisions("secret").await?;
    let rehearsal = Rehearsal::of_another(bed).await;
    let stage = killed(&rehearsal, part, 0, Moment::After).await;
    Some((rehearsal, stage))
}

async fn done() -> Option<(Rehearsal, Stage)> {
    let bed = records::three_revisions("secret").await?;
    let rehearsal = Rehearsal::of_another(bed).await;
    let stage = rehearsal.stage();
    rehearsal.run(&stage, "first").await.unwrap();
    stage.restart();
    Some((rehearsal, stage))
}

fn has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in: {text}");
    }
    println!("{text}");
}

/// Every command says the same.
async fn refused(rehearsal: &Rehearsal, stage: &Stage, reason: &str, parts: &[&str]) {
    let error = left_over(&*stage.memory, &*stage.clock).await.unwrap_err();
    assert!(error.is_refusal());
    has(&error_chain(&error), parts);
    for digest in [None, Some(rehearsal.digest.as_str())] {
        let error = rehearsal.take_over(stage, "next", digest).await.unwrap_err();
        assert!(error.is_refusal(), "{}", error_chain(&error));
        has(&error_chain(&error), parts);
    }
    let plan = rehearsal.plan(stage).await.plan;
    assert_eq!(plan.outcome, Outcome::Refused);
    let refusal = plan.refusals.iter().find(|refusal| refusal.reason == reason);
    has(&refusal.expect("a refusal").message, parts);
    let writes = stage.writes();
    assert!(writes.iter().all(|call| call.object.contains("leases")), "{writes:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_newest_record() {
    let Some((rehearsal, stage)) = begun("kube-system/cilium-config").await else { return };
    let body = json!({"data": {"release": NO_GZIP}});
    edit(&stage, SECRET, "ichor-system", OWN, body).await;
    let secret = format!("Secret ichor-system/{OWN}");
    refused(&rehearsal, &stage, "Record", &[&secret, "gzip", "ichor cni restore --yes"]).await;
    // What it says to do leads on.
    let cluster: Arc<dyn Cluster> = stage.cluster();
    let restored = restore(&cluster, &*stage.clock, "restore", None, &Silent).await.unwrap();
    assert_eq!(restored.own.deleted, [format!("Secret ichor-system/{OWN}")]);
    let plan = rehearsal.plan(&stage).await.plan;
    assert!(!plan.is_refused(), "{:?}", plan.refusals);
    let done = rehearsal.take_over(&stage, "again", Some(&plan.digest)).await.unwrap();
    assert_eq!(done.records.deleted.len(), 3);
}

/// Also when the takeover was complete: an older record is not taken for the newest.
#[tokio::test(flavor = "multi_thread")]
async fn damaged_deployed_record() {
    let Some((rehearsal, stage)) = done().await else { return };
    let body = json!({"data": {"release": "AAAA"}});
    edit(&stage, SECRET, "ichor-system", OWN, body).await;
    let secret = format!("Secret ichor-system/{OWN}");
    refused(&rehearsal, &stage, "Record", &[&secret, "ichor cni restore --yes"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_stored_plan() {
    let Some((rehearsal, stage)) = begun("kube-system/cilium-config").await else { return };
    edit(&stage, SECRET, "ichor-system", PLAN, json!({"data": {"plan": "AAAA"}})).await;
    let parts =
        ["Secret ichor-system/ichor-cni-plan", "gzip", "kubectl -n ichor-system delete secret"];
    refused(&rehearsal, &stage, "StoredPlan", &parts).await;
    // Deleted, as it says: a new plan with a new consent goes on.
    let secrets = Arc::new(helm_rs::cluster::Resource::builtin("v1", "Secret", "secrets", true));
    let target = helm_rs::cluster::Target::new(&secrets, "ichor-system", PLAN);
    stage.memory.delete(&target, &helm_rs::cluster::DeleteOptions::default()).await.unwrap();
    let plan = rehearsal.plan(&stage).await.plan;
    assert!(!plan.is_refused(), "{:?}", plan.refusals);
    let done = rehearsal.take_over(&stage, "again", Some(&plan.digest)).await.unwrap();
    assert_eq!((done.revision, done.records.deleted.len()), (2, 3));
}

/// A backup whose data, index or record is no longer what was written; and one that is needed by
/// nothing, since another backup holds the same.
#[tokio::test(flavor = "multi_thread")]
async fn damaged_backup() {
    let Some((_, stage)) = done().await else { return };
    let whole = (*stage.object("Secret", "ichor-system", BACKUP).unwrap()).clone();
    let index = "/metadata/annotations/ichor.maesh.dev~1prior-records";
    let edited = |change: &dyn Fn(&mut Value)| {
        let mut backup = whole.clone();
        change(&mut backup);
        backup
    };
    let other = text(&whole, index).replace("superseded", "uninstalled");
    for (backup, wrong) in [
        (edited(&|b| b["data"]["1.release"] = "AAAA".into()), "is not what was backed up"),
        (edited(&|b| *b.pointer_mut(index).unwrap() = other.clone().into()), "is not what was"),
        (edited(&|b| *b.pointer_mut(index).unwrap() = "[{".into()), "is no list of records"),
        (edited(&|b| drop(b["data"].as_object_mut().unwrap().remove("1.release"))), "is missing"),
    ] {
        stage.memory.load(vec![("test".to_owned(), backup)]).unwrap();
        let plan = plan_restore(&*stage.memory).await.unwrap();
        let refusal = plan.refusals.iter().find(|refusal| refusal.contains(BACKUP));
        let refusal = refusal.unwrap_or_else(|| panic!("{:?}", plan.refusals));
        has(refusal, &["Secret ichor-system/", wrong, "write it back"]);
    }
    // The same beside it, whole: the damaged one can go.
    let copy = edited(&|b| b["metadata"]["name"] = format!("{BACKUP}-9").into());
    let damaged = edited(&|b| b["data"]["1.release"] = "AAAA".into());
    stage.memory.load(vec![("test".into(), copy), ("test".into(), damaged)]).unwrap();
    let plan = plan_restore(&*stage.memory).await.unwrap();
    let delete = format!("kubectl -n ichor-system delete secret {BACKUP}");
    has(&plan.refusals.join("\n"), &[&delete, "whole elsewhere"]);
}
