//! A takeover that was begun and cut short, and then somebody changed an object: it is not finished
//! by its plan, and a new plan with a consent of its own goes on from there. (Takeover rules,
//! section 4, step 2, and section 5)

use helm_rs::cluster::Moment;
use helm_rs::error_chain;
use serde_json::{Value, json};
use takeover::plan::Outcome;
use takeover::run::{RunError, left_over};
use takeover::snapshot::Stage;
use takeover_tests::process::Site;
use takeover_tests::rehearsal::{Rehearsal, Tried, end_state, text};
use takeover_tests::{Bed, records};

use crate::half_states::{CONFIG_MAP, edit, killed};
use crate::status::remove;

const DAEMON_SET: &str = "daemonsets.apps kube-system/cilium";

/// What a stranger does.
async fn change(stage: &Stage) {
    let body = json!({"data": {"debug": "changed-by-somebody"}});
    edit(stage, CONFIG_MAP, "kube-system", "cilium-config", body).await;
}

/// The run that was begun is refused, a new plan is possible, and leads to the end that the
/// undisturbed run leads to; also when that run is killed as well.
async fn goes_on(rehearsal: &Rehearsal, stage: Stage) {
    let (expected, _) = rehearsal.reference().await;
    change(&stage).await;
    stage.restart();
    let left = left_over(&*stage.memory, &*stage.clock).await.unwrap().unwrap();
    assert!(left.strangers.len() == 1 && left.strangers[0].contains("cilium-config"), "{left:?}");
    for digest in [None, Some(rehearsal.digest.as_str())] {
        let error = rehearsal.take_over(&stage, "next", digest).await.unwrap_err();
        assert!(error.is_refusal(), "{}", error_chain(&error));
        let RunError::Stranger { objects, .. } = &error else { panic!("{}", error_chain(&error)) };
        assert_eq!(objects, &left.strangers);
    }
    let prepared = rehearsal.plan(&stage).await;
    let plan = &prepared.plan;
    println!("{:?} {:?}", plan.outcome, plan.figures());
    assert!(!plan.is_refused(), "{:?}", plan.refusals);
    assert_ne!(plan.digest, rehearsal.digest);
    assert_eq!(plan.found.version, left.plan.found.version, "what ran before");
    assert_eq!(plan.records, left.plan.records, "the records of before");
    assert_eq!(plan.chart, left.plan.chart);
    assert!(plan.found.provenance.contains("a takeover was begun"), "{}", plan.found.provenance);
    let named = |path: &str| {
        plan.objects.iter().flat_map(|object| &object.differences).any(|d| d.path == path)
    };
    assert!(named("data.debug"), "the change is in the plan");
    // Killed once more, in the middle: the new plan is the one that is finished.
    stage.kill(5, Moment::After);
    rehearsal.take_over(&stage, "killed", Some(&plan.digest)).await.unwrap_err();
    rehearsal.nothing_is_lost(&stage).await;
    stage.restart();
    let done = rehearsal.take_over(&stage, "last", None).await.unwrap();
    assert_eq!(done.digest, plan.digest);
    assert_eq!(done.records.deleted.len(), plan.records.len());
    let state = end_state(&stage.memory);
    for (name, object) in &expected {
        assert_eq!(state.get(name), Some(object), "{name}");
    }
    assert_eq!(state.len(), expected.len());
    assert!(left_over(&*stage.memory, &*stage.clock).await.unwrap().is_none());
    assert_eq!(rehearsal.plan(&stage).await.plan.outcome, Outcome::Nothing);
}

#[tokio::test(flavor = "multi_thread")]
async fn begun_same_version() {
    let Some(bed) = records::three_revisions("secret").await else { return };
    let rehearsal = Rehearsal::of_another(bed).await;
    let stage = killed(&rehearsal, "kube-system/hubble-", 0, Moment::After).await;
    goes_on(&rehearsal, stage).await;
}

/// Half of the objects are of the new version: the agents' DaemonSet is, the operator is not.
#[tokio::test(flavor = "multi_thread")]
async fn begun_in_the_middle_of_an_upgrade() {
    let Some(bed) = Bed::with_cilium("1.19.6", "01").await else { return };
    let rehearsal = Rehearsal::of(bed).await;
    let stage = killed(&rehearsal, DAEMON_SET, 0, Moment::After).await;
    let image = |kind: &str, name: &str| {
        let object = stage.object(kind, "kube-system", name).unwrap();
        text(&object, "/spec/template/spec/containers/0/image").to_owned()
    };
    assert!(image("DaemonSet", "cilium").contains(":v1.20.0"));
    assert!(image("Deployment", "cilium-operator").contains(":v1.19.6"));
    goes_on(&rehearsal, stage).await;
}

/// The DaemonSet says already that it is ichor's: whose it was is in the stored plan.
#[tokio::test(flavor = "multi_thread")]
async fn begun_with_records_elsewhere() {
    let Some(bed) = records::in_another_namespace().await else { return };
    let rehearsal = Rehearsal::of(bed).await;
    let stage = killed(&rehearsal, DAEMON_SET, 0, Moment::After).await;
    let owner = "/metadata/annotations/meta.helm.sh~1release-name";
    let set = stage.object("DaemonSet", "kube-system", "cilium").unwrap();
    assert_eq!(text(&set, owner), "cilium");
    goes_on(&rehearsal, stage).await;
}

/// Somebody deleted the agents' DaemonSet: a new plan creates it, with a consent of its own.
async fn goes_on_without_the_daemon_set(rehearsal: &Rehearsal, stage: Stage) {
    let (expected, _) = rehearsal.reference().await;
    remove(&stage, ("apps/v1", "DaemonSet", "daemonsets"), "kube-system", "cilium").await;
    stage.restart();
    let left = left_over(&*stage.memory, &*stage.clock).await.unwrap().unwrap();
    assert!(left.strangers.iter().any(|one| one.contains("cilium (gone)")), "{left:?}");
    let error = rehearsal.take_over(&stage, "next", None).await.unwrap_err();
    assert!(matches!(error, RunError::Stranger { .. }), "{}", error_chain(&error));
    let plan = rehearsal.plan(&stage).await.plan;
    println!("{:?} {:?}", plan.outcome, plan.figures());
    assert!(!plan.is_refused(), "{:?}", plan.refusals);
    let told = &plan.found.provenance;
    assert!(told.contains("DaemonSet kube-system/cilium was deleted since"), "{told}");
    assert_eq!(plan.found.version, left.plan.found.version, "what ran before");
    assert_eq!(plan.outcome, left.plan.outcome);
    assert_eq!(plan.records, left.plan.records, "the records of before");
    assert_eq!(plan.figures().creations, 1);
    assert!(plan.consent.iter().any(|one| one.flag.starts_with("--accept-cilium-diff")));
    let done = rehearsal.take_over(&stage, "last", Some(&plan.digest)).await.unwrap();
    assert_eq!(done.created.len(), 1, "{done:?}");
    assert_eq!(done.records.deleted.len(), plan.records.len());
    rehearsal.nothing_is_lost(&stage).await;
    let state = end_state(&stage.memory);
    // What went with the DaemonSet are pods and revisions, which its controller makes.
    let missing: Vec<&String> = expected.keys().filter(|name| !state.contains_key(*name)).collect();
    let made = |name: &&String| ["Pod ", "ControllerRevision "].iter().any(|k| name.starts_with(k));
    assert!(missing.iter().all(made), "{missing:?}");
    assert!(left_over(&*stage.memory, &*stage.clock).await.unwrap().is_none());
    assert_eq!(rehearsal.plan(&stage).await.plan.outcome, Outcome::Nothing);
}

#[tokio::test(flavor = "multi_thread")]
async fn begun_and_the_daemon_set_deleted() {
    let Some(bed) = records::three_revisions("secret").await else { return };
    let rehearsal = Rehearsal::of_another(bed).await;
    let stage = killed(&rehearsal, "kube-system/hubble-", 0, Moment::After).await;
    goes_on_without_the_daemon_set(&rehearsal, stage).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn begun_upgrade_and_the_daemon_set_deleted() {
    let Some(bed) = Bed::with_cilium("1.19.6", "01").await else { return };
    let rehearsal = Rehearsal::of(bed).await;
    for moment in [Moment::Before, Moment::After] {
        let stage = killed(&rehearsal, DAEMON_SET, 0, moment).await;
        goes_on_without_the_daemon_set(&rehearsal, stage).await;
    }
}

/// The same as a user does it, on a control plane: killed in the middle of an upgrade, a stranger's
/// change, `adopt` shows the new plan and takes its digest.
#[tokio::test(flavor = "multi_thread")]
async fn begun_upgrade_by_hand() {
    let Some(bed) = Bed::with_cilium("1.19.6", "01").await else { return };
    let site = Site::new(bed).await;
    // Past the DaemonSet's write, before the operator's.
    let mut pauses = site.proxy.pause_before(
        plane::Match::writes().verbs(&["patch"]).resource("deployments").name("cilium-operator"),
    );
    let mut program = site.start();
    loop {
        let paused = takeover_tests::process::next(&mut pauses, &mut program).await;
        let paused = paused.expect("the operator is written");
        if !paused.request.dry_run {
            program.kill();
            paused.cut();
            break;
        }
        paused.release();
    }
    site.proxy.clear();
    let patch = json!({"data": {"debug": "changed"}}).to_string();
    site.bed.kubectl(&["-n", "kube-system", "patch", "cm", "cilium-config", "-p", &patch]);
    let told = |output: &std::process::Output| {
        String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr)
    };
    let shown = site.ichor(&["adopt", "--cilium-only", "--plan", "--output=json"]);
    assert_eq!(shown.status.code(), Some(2), "{}", told(&shown));
    let plan: Value = serde_json::from_slice(&shown.stdout).unwrap();
    let digest = plan["digest"].as_str().unwrap();
    assert_ne!(digest, site.digest);
    assert_eq!(
        (&plan["outcome"], &plan["found"]["version"]),
        (&json!("upgrade"), &json!("1.19.6"))
    );
    let refused = site.ichor(&["adopt", "--cilium-only", "--yes"]);
    let text = told(&refused);
    assert_eq!(refused.status.code(), Some(2), "{text}");
    assert!(text.contains("cannot be finished") && text.contains("cilium-config"), "{text}");
    assert!(text.contains(&format!("--accept-cilium-diff={digest}")), "{text}");
    let consent = format!("--accept-cilium-diff={digest}");
    let done = site.ichor(&["adopt", "--cilium-only", "--yes", &consent]);
    let text = told(&done);
    println!("{text}");
    assert_eq!(done.status.code(), Some(0), "{text}");
    assert_eq!(site.helm_list(), ["ichor-system cilium 2 deployed"]);
    site.nothing_is_lost().await;
    site.bed.plane.stop();
}

/// Killed when only the foreign records were left: what is left is shown and asks for nothing but
/// to be finished, and whoever finishes it hears that the lock is waited for.
#[tokio::test(flavor = "multi_thread")]
async fn begun_and_only_records_are_left() {
    let Some(bed) = Bed::with_cilium("1.20.0", "01").await else { return };
    let site = Site::new(bed).await;
    let deletion = plane::Match::writes().verbs(&["delete"]).resource("secrets");
    let mut pauses = site.proxy.pause_before(deletion);
    let mut program = site.start();
    let paused = takeover_tests::process::next(&mut pauses, &mut program).await;
    program.kill();
    paused.expect("a record is deleted").cut();
    site.proxy.clear();
    let run = |arguments: &[&str]| takeover_tests::process::told(&site.ichor(arguments));
    let (code, text) = run(&["adopt", "--cilium-only", "--plan"]);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("A takeover was begun and is not complete: revision 1 is deployed"));
    assert!(text.contains("none needed beside the word to begin"), "{text}");
    let (code, text) = run(&["cni", "plan"]);
    assert_eq!(code, 0, "{text}");
    let (code, text) = run(&["cni", "status"]);
    assert!(code == 2 && text.contains("stopped at step 7"), "{text}");
    let (code, text) = run(&["adopt", "--cilium-only", "--yes"]);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("WARNING: Lease ichor-system/ichor-cni is held by "), "{text}");
    assert!(text.contains("An earlier takeover was finished."), "{text}");
    site.nothing_is_lost().await;
    site.bed.plane.stop();
}
