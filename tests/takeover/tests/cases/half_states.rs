//! What a run leaves that ended in the middle, and what the next one makes of it: the rows of the
//! takeover rules, section 5, on the cluster in memory.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use helm_rs::apply::{Cancel, Observer};
use helm_rs::cluster::{Clock, Cluster, Moment, Patch, PatchKind, Resource, Target, WriteOptions};
use helm_rs::error_chain;
use helm_rs::release::Status;
use helm_rs::release::storage::{ObjectDriver, ObjectKind, Storage};
use serde_json::{Value, json};
use takeover::place::CILIUM;
use takeover::run::backup::backups;
use takeover::run::lock::LockError;
use takeover::run::{Run, RunError, left_over, take_over};
use takeover::snapshot::Stage;
use takeover_tests::records;
use takeover_tests::rehearsal::{Busy, Rehearsal, Tried, text};

pub(super) async fn rehearsal() -> Option<Rehearsal> {
    Some(Rehearsal::of_another(records::three_revisions("secret").await?).await)
}

/// The number of the first write whose object's name has this in it, from 1.
pub(super) async fn write_of(rehearsal: &Rehearsal, part: &str, skip: usize) -> usize {
    let (_, writes) = rehearsal.reference().await;
    let mut all = writes.iter().enumerate().filter(|(_, call)| call.object.contains(part));
    all.nth(skip).expect("a write").0 + 1
}

/// A stage on which a run was killed at that write.
pub(super) async fn killed(
    rehearsal: &Rehearsal,
    part: &str,
    skip: usize,
    moment: Moment,
) -> Stage {
    let at = write_of(rehearsal, part, skip).await;
    let stage = rehearsal.stage();
    stage.kill(at, moment);
    rehearsal.run(&stage, "killed").await.unwrap_err();
    stage.restart();
    stage
}

pub(super) const OWN: &str = "ichor-system/sh.helm.release.v1.cilium.v1";
pub(super) const FOREIGN: &str = "kube-system/sh.helm.release.v1.cilium.v";
pub(super) const BACKUP: &str = "ichor-cilium-prior-release";

fn statuses(stage: &Stage) -> Vec<(i64, String)> {
    stage.own_records()
}

fn is(revision: i64, status: &str) -> (i64, String) {
    (revision, status.to_owned())
}

/// The foreign records that are live.
fn foreign(stage: &Stage) -> usize {
    let all = stage.memory.objects();
    all.iter()
        .filter(|object| {
            text(object, "/metadata/namespace") == "kube-system"
                && text(object, "/metadata/name").starts_with("sh.helm.release.v1.cilium.v")
        })
        .count()
}

pub(super) async fn edit(
    stage: &Stage,
    kind: (&str, &str, &str),
    namespace: &str,
    name: &str,
    body: Value,
) {
    let (api_version, kind, plural) = kind;
    let resource = Arc::new(Resource::builtin(api_version, kind, plural, true));
    let target = Target::new(&resource, namespace, name);
    let patch = Patch { kind: PatchKind::Merge, body };
    stage.memory.patch(&target, &patch, &WriteOptions::default()).await.unwrap();
}

pub(super) const SECRET: (&str, &str, &str) = ("v1", "Secret", "secrets");
pub(super) const CONFIG_MAP: (&str, &str, &str) = ("v1", "ConfigMap", "configmaps");
const LEASE: (&str, &str, &str) = ("coordination.k8s.io/v1", "Lease", "leases");

async fn set_own_status(stage: &Stage, status: &Status) {
    let memory: &dyn Cluster = &*stage.memory;
    let driver = ObjectDriver::new(memory, &*stage.clock, ObjectKind::Secret, "ichor-system");
    let storage = Storage::new(&driver);
    let mut last = storage.last("cilium").await.unwrap();
    last.record.set_status(status, "set by a test").unwrap();
    storage.update(&last.record, &last.labels).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn half_state_pending_install() {
    let Some(rehearsal) = rehearsal().await else { return };
    let stage = killed(&rehearsal, OWN, 0, Moment::After).await;
    assert_eq!(statuses(&stage), [is(1, "pending-install")]);
    let left = left_over(&*stage.memory, &*stage.clock).await.unwrap().unwrap();
    assert_eq!((left.revision, left.records), (1, 3));
    // At once, whatever the record's age; and without a digest, by the stored plan.
    let done = rehearsal.take_over(&stage, "next", None).await.unwrap();
    assert!(done.resumed);
    assert_eq!((done.revision, done.digest.as_str()), (2, rehearsal.digest.as_str()));
    assert_eq!(statuses(&stage), [is(1, "failed"), is(2, "deployed")]);
    assert_eq!(foreign(&stage), 0);
    let memory: &dyn Cluster = &*stage.memory;
    let driver = ObjectDriver::new(memory, &*stage.clock, ObjectKind::Secret, "ichor-system");
    let first = Storage::new(&driver).get("cilium", 1).await.unwrap();
    let description = first.record.to_json();
    assert!(description.contains("ended before it was complete"), "its description");
}

#[tokio::test(flavor = "multi_thread")]
async fn half_state_pending_upgrade() {
    let Some(rehearsal) = rehearsal().await else { return };
    let stage = killed(&rehearsal, "kube-system/cilium-config", 0, Moment::Before).await;
    set_own_status(&stage, &Status::PendingUpgrade).await;
    let done = rehearsal.take_over(&stage, "next", Some(&rehearsal.digest)).await.unwrap();
    assert_eq!(done.revision, 2);
    assert_eq!(statuses(&stage), [is(1, "failed"), is(2, "deployed")]);
}

/// Hears everything, and asks for the end when a line has a word in it.
struct Stop<'a> {
    word: &'a str,
    cancel: &'a Cancel,
    lines: Mutex<Vec<String>>,
}

impl Observer for Stop<'_> {
    fn log(&self, line: &str) {
        if line.contains(self.word) {
            self.cancel.cancel();
        }
        self.lines.lock().unwrap().push(line.to_owned());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn half_state_failed() {
    let Some(rehearsal) = rehearsal().await else { return };
    let stage = rehearsal.stage();
    let cancel = Cancel::default();
    let observer = Stop { word: "writing revision", cancel: &cancel, lines: Mutex::default() };
    let run = Run {
        request: rehearsal.request(&stage),
        digest: Some(rehearsal.digest.clone()),
        accept_changes: true,
        accept_diff: true,
        holder: "stopped".to_owned(),
        observer: &observer,
        cancel: &cancel,
        timeout: Duration::from_mins(1),
    };
    let error = take_over(&run).await.unwrap_err();
    assert!(matches!(error, RunError::Cancelled), "{}", error_chain(&error));
    assert_eq!(statuses(&stage), [is(1, "failed")]);
    // The lock was given back: no wait.
    let done = rehearsal.take_over(&stage, "next", Some(&rehearsal.digest)).await.unwrap();
    assert_eq!(done.revision, 2);
    assert_eq!(stage.clock.elapsed(), Duration::ZERO);
    assert_eq!(statuses(&stage), [is(1, "failed"), is(2, "deployed")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn half_state_deployed_with_foreign_records() {
    let Some(rehearsal) = rehearsal().await else { return };
    let stage = killed(&rehearsal, BACKUP, 0, Moment::Before).await;
    assert_eq!(statuses(&stage), [is(1, "deployed")]);
    assert_eq!(foreign(&stage), 3);
    stage.restart();
    let done = rehearsal.take_over(&stage, "next", Some(&rehearsal.digest)).await.unwrap();
    assert!(done.resumed);
    assert_eq!((done.revision, done.records.deleted.len()), (1, 3));
    let writes: Vec<String> = stage.writes().iter().map(ToString::to_string).collect();
    let step_seven = |write: &String| {
        write.contains("leases") || write.contains(BACKUP) || write.contains(FOREIGN)
    };
    assert!(writes.iter().all(step_seven), "step 7 only: {writes:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn half_state_backup_and_equal_records() {
    let Some(rehearsal) = rehearsal().await else { return };
    let stage = killed(&rehearsal, FOREIGN, 0, Moment::Before).await;
    let version = |stage: &Stage| {
        let backup = stage.object("Secret", "ichor-system", BACKUP).unwrap();
        text(&backup, "/metadata/resourceVersion").to_owned()
    };
    let before = version(&stage);
    let done = rehearsal.take_over(&stage, "next", Some(&rehearsal.digest)).await.unwrap();
    assert_eq!((done.records.already, done.records.deleted.len()), (3, 3));
    assert!(done.records.backups.is_empty(), "{:?}", done.records.backups);
    assert_eq!(version(&stage), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn half_state_backup_and_a_different_record() {
    let Some(rehearsal) = rehearsal().await else { return };
    let stage = killed(&rehearsal, FOREIGN, 0, Moment::Before).await;
    let first = stage.object("Secret", "ichor-system", BACKUP).unwrap();
    let name = "sh.helm.release.v1.cilium.v3";
    edit(&stage, SECRET, "kube-system", name, json!({"metadata": {"labels": {"touched": "yes"}}}))
        .await;
    let done = rehearsal.take_over(&stage, "next", Some(&rehearsal.digest)).await.unwrap();
    // The three records have taken two names.
    assert_eq!(done.records.backups, [format!("{BACKUP}-3")]);
    assert_eq!(stage.object("Secret", "ichor-system", BACKUP).unwrap(), first, "not overwritten");
    let all = backups(&*stage.memory, &CILIUM).await.unwrap();
    let second = all.iter().find(|backup| backup.name == format!("{BACKUP}-3")).unwrap();
    let held: Vec<_> = second.verified().collect();
    assert_eq!(held.len(), 1);
    assert_eq!(held[0].labels.get("touched").and_then(Value::as_str), Some("yes"));
    assert_eq!(foreign(&stage), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn half_state_backup_and_no_foreign_record() {
    let Some(rehearsal) = rehearsal().await else { return };
    let stage = rehearsal.stage();
    rehearsal.run(&stage, "first").await.unwrap();
    stage.restart();
    let done = rehearsal.take_over(&stage, "next", Some(&rehearsal.digest)).await.unwrap();
    assert_eq!((done.revision, done.patched.len(), done.records.deleted.len()), (1, 0, 0));
    // These nodes do not run Talos.
    assert!(done.left.is_empty(), "{:?}", done.left);
    let writes = stage.writes();
    assert!(writes.iter().all(|call| call.object.contains("leases")), "{writes:?}");
    assert!(left_over(&*stage.memory, &*stage.clock).await.unwrap().is_none());
}

async fn renew(memory: &dyn Cluster, holder: &str, now: jiff::Timestamp) {
    let (api_version, kind, plural) = LEASE;
    let resource = Arc::new(Resource::builtin(api_version, kind, plural, true));
    let target = Target::new(&resource, "ichor-system", "ichor-cni");
    let body = json!({"spec": {"holderIdentity": holder, "renewTime": format!("{now:.6}")}});
    let patch = Patch { kind: PatchKind::Merge, body };
    memory.patch(&target, &patch, &WriteOptions::default()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn half_state_lease_renewed_by_another() {
    let Some(rehearsal) = rehearsal().await else { return };
    let stage = killed(&rehearsal, "kube-system/cilium-config", 0, Moment::Before).await;
    stage.restart();
    let clock = Busy::of(&stage, "ichor-system", "ichor-cni");
    let cancel = Cancel::default();
    let mut request = rehearsal.request(&stage);
    request.clock = &clock;
    let run = Run {
        request,
        digest: Some(rehearsal.digest.clone()),
        accept_changes: true,
        accept_diff: true,
        holder: "next".to_owned(),
        observer: &helm_rs::apply::Silent,
        cancel: &cancel,
        timeout: Duration::from_mins(1),
    };
    let error = take_over(&run).await.unwrap_err();
    assert!(error.is_refusal());
    let RunError::Lock(LockError::Held { holder, age, .. }) = &error else {
        panic!("{}", error_chain(&error));
    };
    assert_eq!((holder.as_str(), *age), ("living-run", 0));
    assert!(error_chain(&error).contains("held by living-run, who renewed it 0 s ago"));
    assert!(stage.writes().is_empty(), "{:?}", stage.writes());
}

#[tokio::test(flavor = "multi_thread")]
async fn half_state_lease_stale() {
    let Some(rehearsal) = rehearsal().await else { return };
    let stage = killed(&rehearsal, "kube-system/cilium-config", 0, Moment::Before).await;
    let before = stage.clock.elapsed();
    let cancel = Cancel::default();
    let observer = Stop { word: "nothing stops it", cancel: &cancel, lines: Mutex::default() };
    let run = Run {
        request: rehearsal.request(&stage),
        digest: Some(rehearsal.digest.clone()),
        accept_changes: true,
        accept_diff: true,
        holder: "next".to_owned(),
        observer: &observer,
        cancel: &cancel,
        timeout: Duration::from_mins(1),
    };
    take_over(&run).await.unwrap();
    let lines = observer.lines.into_inner().unwrap();
    // A warning, so that it is heard without a terminal too.
    assert!(lines[0].starts_with("WARNING: Lease ichor-system/ichor-cni is held by "), "{lines:?}");
    let waited = stage.clock.elapsed().saturating_sub(before);
    assert_eq!(waited, Duration::from_secs(15), "by its own clock");
    let lease = stage.object("Lease", "ichor-system", "ichor-cni").unwrap();
    assert_eq!(lease.pointer("/spec/leaseTransitions"), Some(&json!(1)));
    assert_eq!(text(&lease, "/spec/holderIdentity"), "", "given back");
}

#[tokio::test(flavor = "multi_thread")]
async fn half_state_a_stranger_wrote_meanwhile() {
    let Some(rehearsal) = rehearsal().await else { return };
    let stage = killed(&rehearsal, OWN, 0, Moment::After).await;
    let change = json!({"data": {"debug": "changed-by-somebody"}});
    edit(&stage, CONFIG_MAP, "kube-system", "cilium-config", change).await;
    stage.restart();
    for digest in [Some(rehearsal.digest.as_str()), None] {
        let error = rehearsal.take_over(&stage, "next", digest).await.unwrap_err();
        assert!(matches!(error, RunError::Stranger { .. }), "{}", error_chain(&error));
        assert!(error.is_refusal());
        assert!(error_chain(&error).contains("cilium-config"), "{}", error_chain(&error));
    }
    let writes = stage.writes();
    assert!(writes.iter().all(|call| call.object.contains("leases")), "{writes:?}");
    assert_eq!(statuses(&stage), [is(1, "pending-install")]);
    // With a new consent it goes on.
    let plan = rehearsal.plan(&stage).await.plan;
    assert!(!plan.is_refused(), "{:?}", plan.refusals);
    assert_ne!(plan.digest, rehearsal.digest);
    let done = rehearsal.take_over(&stage, "next", Some(&plan.digest)).await.unwrap();
    assert_eq!((done.resumed, done.revision), (false, 2));
    assert_eq!(statuses(&stage), [is(1, "failed"), is(2, "deployed")]);
    assert_eq!(foreign(&stage), 0);
}

/// When a run's clock jumps it renews first, and goes on when nobody else took the lock.
#[tokio::test(flavor = "multi_thread")]
async fn fencing_after_a_clock_jumped() {
    struct Jump<'a> {
        stage: &'a Stage,
        taken: bool,
    }
    impl Observer for Jump<'_> {
        fn log(&self, line: &str) {
            if line.contains("now the foreign records") {
                self.stage.clock.advance(Duration::from_mins(1));
                if self.taken {
                    let now = self.stage.clock.now();
                    let renewed = renew(&*self.stage.memory, "another", now);
                    tokio::task::block_in_place(|| {
                        tokio::runtime::Handle::current().block_on(renewed);
                    });
                }
            }
        }
    }
    let Some(rehearsal) = rehearsal().await else { return };
    for taken in [false, true] {
        let stage = rehearsal.stage();
        let (observer, cancel) = (Jump { stage: &stage, taken }, Cancel::default());
        let run = Run {
            request: rehearsal.request(&stage),
            digest: Some(rehearsal.digest.clone()),
            accept_changes: true,
            accept_diff: true,
            holder: "jumped".to_owned(),
            observer: &observer,
            cancel: &cancel,
            timeout: Duration::from_mins(5),
        };
        let result = take_over(&run).await;
        if taken {
            let error = error_chain(&result.unwrap_err());
            assert!(error.contains("the lock was lost"), "{error}");
            assert!(backups(&*stage.memory, &CILIUM).await.unwrap().is_empty());
            assert_eq!(foreign(&stage), 3);
            let lease = stage.object("Lease", "ichor-system", "ichor-cni").unwrap();
            assert_eq!(text(&lease, "/spec/holderIdentity"), "another");
        } else {
            result.unwrap();
            assert_eq!(foreign(&stage), 0);
        }
    }
}
