//! `ichor cni status`: what is said of each state that a run, a kill or somebody else leaves.

use goyaml::Limits;
use helm_rs::cluster::{Cluster, DeleteOptions, Moment, Resource, Target};
use serde_json::{Value, json};
use std::sync::Arc;
use takeover::plan::{Outcome, Request, prepare, to_text};
use takeover::run::status::{RecordState, State, Status, status};
use takeover::snapshot::Stage;
use takeover_tests::rehearsal::{Rehearsal, Tried};

use super::half_states::{
    BACKUP, CONFIG_MAP, FOREIGN, OWN, SECRET, edit, killed, rehearsal, write_of,
};

async fn look(stage: &Stage) -> Status {
    status(&*stage.memory, &*stage.clock).await.unwrap()
}

pub(super) async fn remove(stage: &Stage, kind: (&str, &str, &str), namespace: &str, name: &str) {
    let (api_version, kind, plural) = kind;
    let resource = Arc::new(Resource::builtin(api_version, kind, plural, true));
    let target = Target::new(&resource, namespace, name);
    stage.memory.delete(&target, &DeleteOptions::default()).await.unwrap();
}

/// What is wrong, as one text.
fn problems(status: &Status) -> String {
    assert!(!status.problems.is_empty() && !status.is_whole(), "{status:?}");
    status.problems.join("\n")
}

async fn done(rehearsal: &Rehearsal) -> Stage {
    let stage = rehearsal.stage();
    rehearsal.run(&stage, "first").await.unwrap();
    stage.restart();
    stage
}

/// The steps of the takeover rules, section 4, one kill after the other.
#[tokio::test(flavor = "multi_thread")]
async fn status_tells_the_step() {
    let Some(rehearsal) = rehearsal().await else { return };
    let before = look(&rehearsal.stage()).await;
    assert_eq!((before.state, before.step), (State::NotBegun, None));
    assert!(before.is_whole() && before.facts.lock.is_none());

    let stage = killed(&rehearsal, "leases", 0, Moment::After).await;
    assert_eq!(look(&stage).await.state, State::NotBegun, "a lock alone is no beginning");

    let stage = killed(&rehearsal, "ichor-cni-plan", 0, Moment::After).await;
    let found = look(&stage).await;
    assert_eq!((found.state, found.step), (State::Begun, Some(3)));

    let stage = killed(&rehearsal, OWN, 0, Moment::After).await;
    let found = look(&stage).await;
    assert_eq!((found.state, found.step), (State::Begun, Some(4)));
    let first = found.facts.objects.written;
    assert!(found.facts.objects.waiting.len() > 5 && first < found.facts.objects.all);

    let stage = killed(&rehearsal, "kube-system/cilium-config", 0, Moment::After).await;
    let found = look(&stage).await;
    assert_eq!((found.state, found.step), (State::Begun, Some(4)));
    assert!(found.facts.objects.written > first, "{:?}", found.facts.objects);
    assert!(found.stopped.contains("revision 1 is pending-install"), "{}", found.stopped);
    assert!(found.problems.is_empty() && !found.is_whole());
    // The dead run's Lease looks alive for 15 s.
    assert!(found.running && found.next[0].starts_with("wait"), "{:?}", found.next);
    stage.clock.advance(std::time::Duration::from_secs(16));
    let found = look(&stage).await;
    assert!(!found.running && found.next[0].contains("ichor adopt"), "{:?}", found.next);

    let stage = killed(&rehearsal, OWN, 1, Moment::Before).await;
    let found = look(&stage).await;
    assert_eq!((found.state, found.step), (State::Begun, Some(5)), "{}", found.stopped);

    let stage = killed(&rehearsal, BACKUP, 0, Moment::Before).await;
    let found = look(&stage).await;
    assert_eq!((found.state, found.step), (State::Begun, Some(7)));
    assert!(found.stopped.contains("3 of 3") && found.stopped.contains("0 are in a backup"));

    let stage = killed(&rehearsal, FOREIGN, 1, Moment::Before).await;
    let found = look(&stage).await;
    assert_eq!((found.state, found.step), (State::Begun, Some(7)));
    assert!(found.stopped.contains("2 of 3") && found.stopped.contains("3 are in a backup"));
    assert!(found.problems.is_empty());

    let found = look(&done(&rehearsal).await).await;
    assert_eq!((found.state, found.step), (State::Done, None));
    assert!(found.is_whole() && found.next.is_empty() && found.facts.helm_agrees());
    assert_eq!(found.facts.objects.written, found.facts.objects.all);
    assert!(found.facts.records.iter().all(|r| r.state == RecordState::Gone));
    let json = serde_json::to_value(&found).unwrap();
    assert_eq!(json["state"], "done");
    assert_eq!(json["schemaVersion"], "ichor.maesh.dev/cni-status/v1");
}

/// What was done and is not whole: a backup that is gone or was edited, an object, its ownership,
/// the stored plan, a record of ichor's.
#[tokio::test(flavor = "multi_thread")]
async fn status_names_what_is_missing() {
    let Some(rehearsal) = rehearsal().await else { return };
    let incomplete = async |stage: &Stage| {
        let found = look(stage).await;
        assert_eq!(found.state, State::Incomplete, "{found:?}");
        problems(&found)
    };
    let stage = done(&rehearsal).await;
    remove(&stage, SECRET, "ichor-system", BACKUP).await;
    let text = incomplete(&stage).await;
    assert!(text.contains("no backup holds them whole: Secret kube-system/sh.helm"), "{text}");

    for body in [
        json!({"data": {"1.release": "AAAA"}}),
        json!({"metadata": {"annotations": {"ichor.maesh.dev/prior-records": "[]"}}}),
        json!({"metadata": {"annotations": {"ichor.maesh.dev/prior-records": "{"}}}),
    ] {
        let stage = done(&rehearsal).await;
        edit(&stage, SECRET, "ichor-system", BACKUP, body).await;
        let text = incomplete(&stage).await;
        assert!(text.contains("backup Secret ichor-system/ichor-cilium-prior-release was changed"));
        assert!(text.contains("no backup holds them whole"), "{text}");
    }

    let stage = done(&rehearsal).await;
    remove(&stage, CONFIG_MAP, "kube-system", "cilium-config").await;
    let text = incomplete(&stage).await;
    assert!(text.contains("1 object(s) of ichor's record are gone: "), "{text}");
    assert!(text.contains("cilium-config"), "{text}");

    let stage = done(&rehearsal).await;
    let stranger = json!({"metadata": {"annotations": {"meta.helm.sh/release-name": "other"}}});
    edit(&stage, CONFIG_MAP, "kube-system", "cilium-config", stranger).await;
    let text = incomplete(&stage).await;
    assert!(text.contains("do not say that they belong to it: ") && text.contains("cilium-config"));

    let stage = done(&rehearsal).await;
    remove(&stage, SECRET, "ichor-system", "ichor-cni-plan").await;
    assert!(incomplete(&stage).await.contains("the stored plan"));

    for data in [json!({"plan": "AAAA"}), json!({"plan": null})] {
        let stage = done(&rehearsal).await;
        edit(&stage, SECRET, "ichor-system", "ichor-cni-plan", json!({ "data": data })).await;
        let text = incomplete(&stage).await;
        assert!(text.contains("ichor-cni-plan"), "{text}");
    }

    for data in [json!({"release": "AAAA"}), json!({"release": null})] {
        let stage = done(&rehearsal).await;
        let own = "sh.helm.release.v1.cilium.v1";
        edit(&stage, SECRET, "ichor-system", own, json!({ "data": data })).await;
        let text = incomplete(&stage).await;
        assert!(text.contains("ichor's newest record in namespace ichor-system"), "{text}");
    }

    let stage = done(&rehearsal).await;
    let record = rehearsal.originals[0].clone();
    let mut other = record;
    other["metadata"]["uid"] = "written-again".into();
    other["metadata"]["labels"]["status"] = "superseded".into();
    other["metadata"]["annotations"] = json!({"written": "again"});
    stage.memory.load(vec![("test".to_owned(), other)]).unwrap();
    let text = incomplete(&stage).await;
    assert!(text.contains("are not those that were taken over"), "{text}");
}

/// A stranger's write in the middle is told, and what there is to do about it.
#[tokio::test(flavor = "multi_thread")]
async fn status_names_a_strangers_write() {
    let Some(rehearsal) = rehearsal().await else { return };
    let stage = killed(&rehearsal, "kube-system/cilium-config", 0, Moment::After).await;
    edit(&stage, CONFIG_MAP, "kube-system", "cilium-config", json!({"data": {"debug": "maybe"}}))
        .await;
    let found = look(&stage).await;
    assert_eq!(found.state, State::Begun);
    let text = problems(&found);
    assert!(text.contains("somebody else wrote them: ") && text.contains("cilium-config"));
}

/// A restore, from its first write to its end.
#[tokio::test(flavor = "multi_thread")]
async fn status_of_a_restore() {
    let Some(rehearsal) = rehearsal().await else { return };
    let stage = done(&rehearsal).await;
    let restore = Rehearsal::restore_of(&stage, rehearsal.originals.clone());
    for (part, skip) in [(FOREIGN, 0), ("cilium-config", 0), (OWN, 0)] {
        let at = write_of(&restore, part, skip).await;
        let stage = restore.stage();
        let moment = if part == OWN { Moment::Before } else { Moment::After };
        stage.kill(at, moment);
        restore.run(&stage, "killed").await.unwrap_err();
        stage.clock.advance(std::time::Duration::from_secs(16));
        let found = look(&stage).await;
        assert_eq!(found.state, State::RestoreBegun, "{part}: {found:?}");
        assert!(found.next[0].starts_with("ichor cni restore"), "{:?}", found.next);
        // Nor is it taken for a release that can be taken over, or for what is ichor's already.
        stage.restart();
        let plan = rehearsal.plan(&stage).await.plan;
        assert_eq!(plan.outcome, Outcome::Refused, "{part}");
        let told = plan.refusals.iter().any(|refusal| {
            refusal.reason == "Restore" && refusal.message.contains("ichor cni restore --yes")
        });
        assert!(told, "{part}: {:?}", plan.refusals);
        let error = rehearsal.take_over(&stage, "next", None).await.unwrap_err();
        assert!(error.is_refusal(), "{part}: {}", helm_rs::error_chain(&error));
    }
    let stage = restore.stage();
    restore.run(&stage, "whole").await.unwrap();
    let found = look(&stage).await;
    assert_eq!(found.state, State::Restored, "{found:?}");
    assert!(found.is_whole(), "{:?}", found.problems);
    assert!(found.facts.records.iter().all(|record| record.state == RecordState::Back));
    assert!(found.facts.backups.iter().any(|backup| backup.own));
    // Whoever goes on with it changes records as he likes.
    let old = "sh.helm.release.v1.cilium.v1";
    remove(&stage, SECRET, "kube-system", old).await;
    assert!(look(&stage).await.is_whole());
    let owned: Value = json!({"metadata": {"annotations": {
        "meta.helm.sh/release-name": "cilium", "meta.helm.sh/release-namespace": "kube-system",
    }}});
    edit(&stage, CONFIG_MAP, "kube-system", "cilium-config", owned).await;
    let text = problems(&look(&stage).await);
    assert!(text.contains("still name ichor's release as their owner"), "{text}");
    // Taken over again, and the old backups do not confuse it.
    let again = Rehearsal::takeover(
        restore_end(&restore).await.memory.objects().iter().map(|o| (**o).clone()).collect(),
    )
    .await;
    let found = look(&done(&again).await).await;
    assert_eq!(found.state, State::Done, "{found:?}");
}

async fn restore_end(restore: &Rehearsal) -> Stage {
    let stage = restore.stage();
    restore.run(&stage, "whole").await.unwrap();
    stage
}

/// What was taken over and then changed is left, and the plan does not say otherwise; nor do values
/// count that the release was not made with.
#[tokio::test(flavor = "multi_thread")]
async fn a_plan_of_what_is_ichors_already() {
    let Some(rehearsal) = rehearsal().await else { return };
    let stage = done(&rehearsal).await;
    let whole = rehearsal.plan(&stage).await.plan;
    assert_eq!((whole.outcome, whole.figures().differences), (Outcome::Nothing, 0));
    let values = goyaml::from_yaml_map(b"debug: {enabled: true}", "values", &Limits::default());
    let values = values.unwrap();
    let request = Request { values: Some(&values), ..rehearsal.request(&stage) };
    let given = prepare(&request).await.unwrap().plan;
    assert_eq!((given.outcome, given.figures().differences), (Outcome::Nothing, 0));
    assert!(given.values.source.contains("--cilium-values is not used"), "{}", given.values.source);
    remove(&stage, ("v1", "ServiceAccount", "serviceaccounts"), "kube-system", "cilium-envoy")
        .await;
    let plan = rehearsal.plan(&stage).await.plan;
    assert_eq!((plan.outcome, plan.figures().creations), (Outcome::Nothing, 1));
    let text = to_text(&plan, false);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("is left as it is: 0 leaves differ, 1 object is missing"), "{text}");
    assert!(!text.contains("is created"), "{text}");
}
