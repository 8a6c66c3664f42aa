//! Takeovers and restores on the cluster in memory, filled with what a real plane held, killed at
//! chosen writes and run again.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cilium::kube_proxy::Replacement;
use goyaml::Map;
use helm_rs::apply::{Cancel, Silent};
use helm_rs::cluster::memory::{MemoryCluster, MemoryOptions};
use helm_rs::cluster::snapshot::{About, End};
use helm_rs::cluster::{
    CallRecord, Clock as _, Cluster, Count, Discovery, Effect, Fault, ManualClock, Moment, Patch,
    PatchKind, Resource, Target, WriteOptions,
};
use helm_rs::error_chain;
use helm_rs::render::{Engine, EngineOptions};
use serde_json::{Value, json};
use takeover::change;
use takeover::place::{CILIUM, Place};
use takeover::plan::{Outcome, Prepared, Request, WhoWrites, prepare};
use takeover::run::backup::{Backup, backups};
use takeover::run::restore::restore;
use takeover::run::{Done, Run, RunError, take_over};
use takeover::snapshot::{Stage, lasting};
use takeover::subject::Subject;

use crate::releases::Case;
use crate::{Bed, export, pinned};

/// What is rehearsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A takeover.
    TakeOver,
    /// A restore.
    Restore,
    /// What is done to a release of any chart.
    Release,
    /// A change of ichor's own release.
    Change,
}

/// A change of ichor's own release.
#[derive(Clone, Debug, Default)]
pub struct Wish {
    /// The values that are asked for.
    pub values: Map,
    /// Whether the release is brought to the pinned chart.
    pub upgrade: bool,
    /// Who is to answer for Services; none: as it is.
    pub kube_proxy: Option<Replacement>,
}

/// Something that is done on a cluster in memory, again and again from the same state.
pub struct Rehearsal {
    /// What is done.
    pub action: Action,
    /// The objects at the beginning.
    pub objects: Vec<Value>,
    /// The foreign records as they were before the takeover.
    pub originals: Vec<Value>,
    /// The digest of the plan; empty for a restore.
    pub digest: String,
    /// What is done, where that is an action on a release of any chart.
    pub case: Option<Case>,
    /// What is changed, where that is a change of ichor's own release.
    pub wish: Option<Wish>,
    engine: Engine,
    pinned: cilium::pinned::Pinned,
}

/// What tests do to a cluster in memory, and look at.
pub trait Tried {
    /// Kills the next run at its write number `at`, from 1.
    fn kill(&self, at: usize, moment: Moment);
    /// The writes of the runs since the last restart.
    fn writes(&self) -> Vec<CallRecord>;
    /// An object by kind, namespace and name.
    fn object(&self, kind: &str, namespace: &str, name: &str) -> Option<Arc<Value>>;
    /// Ichor's records: revision and status, oldest first.
    fn own_records(&self) -> Vec<(i64, String)>;
}

impl Tried for Stage {
    fn kill(&self, at: usize, moment: Moment) {
        self.restart();
        self.plan_fault(Fault { count: Count::Writes, at, moment, effect: Effect::Poison });
    }

    fn writes(&self) -> Vec<CallRecord> {
        self.timeline().into_iter().filter(CallRecord::is_write).collect()
    }

    fn object(&self, kind: &str, namespace: &str, name: &str) -> Option<Arc<Value>> {
        self.memory.objects().into_iter().find(|object| {
            text(object, "/kind") == kind
                && text(object, "/metadata/namespace") == namespace
                && text(object, "/metadata/name") == name
        })
    }

    fn own_records(&self) -> Vec<(i64, String)> {
        let mut records: Vec<(i64, String)> = self
            .memory
            .objects()
            .iter()
            .filter(|object| text(object, "/metadata/namespace") == "ichor-system")
            .filter_map(|object| {
                let name = text(object, "/metadata/name");
                let revision = name.strip_prefix("sh.helm.release.v1.cilium.v")?.parse().ok()?;
                Some((revision, text(object, "/metadata/labels/status").to_owned()))
            })
            .collect();
        records.sort_unstable();
        records
    }
}

fn objects_of(stage: &Stage) -> Vec<Value> {
    stage.memory.objects().iter().map(|object| (**object).clone()).collect()
}

/// Whether an object is a record that is no Cilium's of ichor's.
fn is_record(object: &Value) -> bool {
    let name = text(object, "/metadata/name");
    matches!(text(object, "/kind"), "Secret" | "ConfigMap")
        && name.starts_with("sh.helm.release.v1.")
        && text(object, "/metadata/namespace") != "ichor-system"
}

/// A text of an object; empty for none.
pub fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

impl Rehearsal {
    /// As [`Rehearsal::of`]; the objects say that another release owns them, so that each is
    /// written.
    pub async fn of_another(bed: Bed) -> Self {
        let mut objects = export(&*bed.cluster).await;
        bed.plane.stop();
        for object in &mut objects {
            let owner = "/metadata/annotations/meta.helm.sh~1release-name";
            // The DaemonSet keeps it: provenance goes by it.
            let is_daemon_set = text(object, "/kind") == "DaemonSet";
            if let Some(owner) = object.pointer_mut(owner).filter(|_| !is_daemon_set) {
                *owner = "other".into();
            }
        }
        Self::takeover(objects).await
    }

    /// A takeover of what a plane holds, which is stopped.
    pub async fn of(bed: Bed) -> Self {
        let objects = export(&*bed.cluster).await;
        bed.plane.stop();
        Self::takeover(objects).await
    }

    fn new(action: Action, objects: Vec<Value>, originals: Vec<Value>) -> Self {
        Self {
            action,
            objects,
            originals,
            digest: String::new(),
            case: None,
            wish: None,
            engine: Engine::new(EngineOptions::default()),
            pinned: pinned(),
        }
    }

    /// A takeover of objects.
    pub async fn takeover(objects: Vec<Value>) -> Self {
        let originals = objects.iter().filter(|object| is_record(object)).cloned().collect();
        let mut rehearsal = Self::new(Action::TakeOver, objects, originals);
        let prepared = rehearsal.plan(&rehearsal.stage()).await;
        assert!(!prepared.plan.is_refused(), "{:?}", prepared.plan.refusals);
        println!("{:?}", prepared.plan.figures());
        rehearsal.digest = prepared.plan.digest;
        rehearsal
    }

    /// Ichor's own release as it stands among objects, which nothing is done to by itself.
    pub fn owned(objects: Vec<Value>) -> Self {
        Self::new(Action::Change, objects, Vec::new())
    }

    /// The restore of a takeover that was made.
    pub fn restore_of(stage: &Stage, originals: Vec<Value>) -> Self {
        Self::new(Action::Restore, objects_of(stage), originals)
    }

    /// A change of the release that a takeover, or another change, left.
    pub async fn change_of(&self, stage: &Stage, wish: Wish) -> Self {
        let mut rehearsal = Self::new(Action::Change, objects_of(stage), self.originals.clone());
        rehearsal.wish = Some(wish);
        let prepared = rehearsal.planned_change(&rehearsal.stage()).await;
        assert_eq!(prepared.plan.outcome, Outcome::Change, "{:?}", prepared.plan.refusals);
        println!("{:?}", prepared.plan.figures());
        rehearsal.digest = prepared.plan.digest;
        rehearsal
    }

    /// An action on a release of any chart.
    pub async fn release(objects: Vec<Value>, case: Case) -> Self {
        let originals = objects.iter().filter(|object| is_record(object)).cloned().collect();
        Self::release_of(objects, originals, case).await
    }

    /// The restore of an action on a release that was done.
    pub async fn undo_of(&self, stage: &Stage) -> Self {
        let undo = self.case.as_ref().expect("a release").undo();
        Self::release_of(objects_of(stage), self.originals.clone(), undo).await
    }

    async fn release_of(objects: Vec<Value>, originals: Vec<Value>, case: Case) -> Self {
        let mut rehearsal = Self::new(Action::Release, objects, originals);
        let stage = rehearsal.stage();
        let cluster: Arc<dyn Cluster> = stage.cluster();
        rehearsal.digest = case.digest(&cluster, &*stage.clock, &rehearsal.engine).await;
        rehearsal.case = Some(case);
        rehearsal
    }

    /// The release that is at stake.
    fn place(&self) -> Place {
        self.case.as_ref().map_or_else(|| CILIUM.clone(), Case::place)
    }

    /// What a run leaves, without what every run makes anew.
    fn end(&self, stage: &Stage) -> BTreeMap<String, Value> {
        match &self.case {
            None => end_state(&stage.memory),
            Some(case) => {
                case.lasting(stage.memory.objects().iter().map(|object| (**object).clone()))
            }
        }
    }

    /// A cluster as it is at the beginning.
    pub fn stage(&self) -> Stage {
        let MemoryOptions { version, identity, .. } = MemoryOptions::default();
        let mut about = About::new(version, &identity, &Discovery::default());
        "2026-01-01T00:00:00Z".clone_into(&mut about.taken);
        let objects = self.objects.iter().map(|object| ("export".to_owned(), object.clone()));
        Stage::of(about, End::default(), objects.collect()).expect("objects")
    }

    /// What is planned on a stage.
    pub fn request<'a>(&'a self, stage: &'a Stage) -> Request<'a> {
        Request {
            cluster: stage.cluster(),
            clock: &*stage.clock,
            engine: &self.engine,
            pinned: &self.pinned,
            values: None,
            cni_unmanaged: false,
            who_writes: WhoWrites::Caller,
            entropy: [7; 32],
            kube_prism: takeover::plan::KubePrism::default(),
            dry_runs: None,
        }
    }

    /// A plan.
    pub async fn plan(&self, stage: &Stage) -> Prepared {
        prepare(&self.request(stage))
            .await
            .unwrap_or_else(|error| panic!("{}", error_chain(&error)))
    }

    /// A takeover with a consent.
    pub async fn take_over(
        &self,
        stage: &Stage,
        holder: &str,
        digest: Option<&str>,
    ) -> Result<Done, RunError> {
        Self::carry_out(self.request(stage), holder, digest).await
    }

    fn change<'a>(&'a self, stage: &'a Stage) -> change::Request<'a> {
        let wish = self.wish.as_ref().expect("a change");
        change::Request {
            cluster: stage.cluster(),
            clock: &*stage.clock,
            engine: &self.engine,
            pinned: &self.pinned,
            values: Some(&wish.values),
            upgrade: wish.upgrade,
            kube_proxy: wish.kube_proxy,
            who_writes: WhoWrites::Caller,
            entropy: [7; 32],
            dry_runs: None,
        }
    }

    /// The plan of a change.
    pub async fn planned_change(&self, stage: &Stage) -> Prepared {
        Box::pin(change::prepare(&self.change(stage)))
            .await
            .unwrap_or_else(|error| panic!("{}", error_chain(&error)))
    }

    /// Plans and carries out what is asked for.
    async fn carry_out<S: Subject>(
        request: S,
        holder: &str,
        digest: Option<&str>,
    ) -> Result<Done, RunError> {
        let cancel = Cancel::default();
        let run = Run {
            request,
            digest: digest.map(str::to_owned),
            accept_changes: true,
            accept_diff: true,
            holder: holder.to_owned(),
            observer: &Silent,
            cancel: &cancel,
            timeout: Duration::from_mins(1),
        };
        Box::pin(take_over(&run)).await
    }

    /// Does it; the error as text.
    pub async fn run(&self, stage: &Stage, holder: &str) -> Result<(), String> {
        match self.action {
            Action::TakeOver => self
                .take_over(stage, holder, Some(&self.digest))
                .await
                .map(drop)
                .map_err(|error| error_chain(&error)),
            Action::Change => Self::carry_out(self.change(stage), holder, Some(&self.digest))
                .await
                .map(drop)
                .map_err(|error| error_chain(&error)),
            Action::Restore => {
                let cluster = stage.cluster();
                let done =
                    restore(&cluster, &*stage.clock, holder, None, &Silent, &Cancel::default())
                        .await;
                done.map(drop).map_err(|error| error_chain(&error))
            }
            Action::Release => {
                let cluster: Arc<dyn Cluster> = stage.cluster();
                let case = self.case.as_ref().expect("a release");
                case.run((&cluster, &*stage.clock, &self.engine), holder, &self.digest).await
            }
        }
    }

    /// Every foreign record is there, or a verified backup of it, to the byte; and at most one
    /// record of ichor's says that it is deployed. A change has two for a moment: the record before
    /// is superseded once the new one is deployed, so that there never is none.
    pub async fn nothing_is_lost(&self, stage: &Stage) {
        let backups = backups(&*stage.memory, &self.place()).await.expect("backups");
        for original in &self.originals {
            let place = ["/kind", "/metadata/namespace", "/metadata/name"];
            let [kind, namespace, name] = place.map(|pointer| text(original, pointer));
            let live = stage.object(kind, namespace, name);
            let is_live = live.is_some_and(|live| same_record(&live, original));
            let is_safe = backups.iter().any(|backup| holds(backup, original));
            assert!(is_live || is_safe, "{kind} {namespace}/{name} is lost");
        }
        let own = stage.own_records();
        let deployed = own.iter().filter(|(_, status)| status == "deployed").count();
        let least = usize::from(self.action == Action::Change);
        assert!((least..=1 + least).contains(&deployed), "{own:?}");
    }

    /// Kills the run at each point, runs it again, and compares the end; the number of points.
    pub async fn matrix(&self, choose: fn(&[CallRecord]) -> Vec<usize>) -> usize {
        let (expected, writes) = self.reference().await;
        let mut points = 0;
        for at in choose(&writes) {
            for moment in [Moment::Before, Moment::After] {
                let call = writes.get(at - 1).map(ToString::to_string).unwrap_or_default();
                let title = format!("killed {moment:?} write {at} ({call})");
                let stage = self.stage();
                stage.kill(at, moment);
                let killed = self.run(&stage, "killed").await;
                // The last writes give the lock back; what becomes of it is of no account.
                let is_lock = title.contains("patch leases");
                assert!(killed.is_err() || is_lock, "{title}");
                self.nothing_is_lost(&stage).await;
                self.recover(&stage, &title).await;
                self.ends_as(&stage, &expected, &title);
                points += 1;
            }
        }
        points
    }

    /// Kills the run, then the run that recovers, then recovers: a sample by a seed.
    pub async fn killed_twice(&self, seed: u64, count: usize) {
        let (expected, writes) = self.reference().await;
        let mut random = seed;
        for _ in 0..count {
            let mut number = || {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                usize::try_from(random >> 33).unwrap_or_default()
            };
            let moment = |number: usize| {
                if number.is_multiple_of(2) { Moment::Before } else { Moment::After }
            };
            let work = writes.len() - if self.case.is_some() { 2 } else { 1 };
            let (one, two) = (number() % work + 1, number() % (writes.len() + 2) + 1);
            let (first, second) = (moment(number()), moment(number()));
            let title = format!("killed {first:?} write {one}, then {second:?} write {two}");
            let stage = self.stage();
            stage.kill(one, first);
            assert!(self.run(&stage, "killed").await.is_err(), "{title}");
            self.nothing_is_lost(&stage).await;
            stage.kill(two, second);
            // It may have fewer writes left than that.
            let killed = self.run(&stage, "killed again").await;
            self.nothing_is_lost(&stage).await;
            if killed.is_err() {
                self.recover(&stage, &title).await;
            }
            self.ends_as(&stage, &expected, &title);
        }
    }

    /// The cluster is as after a run that nobody disturbed.
    fn ends_as(&self, stage: &Stage, expected: &BTreeMap<String, Value>, title: &str) {
        let state = self.end(stage);
        for (name, object) in expected {
            assert_eq!(state.get(name), Some(object), "{name}, {title}");
        }
        let more: Vec<&String> =
            state.keys().filter(|name| !expected.contains_key(*name)).collect();
        assert!(more.is_empty(), "{more:?}, {title}");
    }

    /// The end without a kill, and the writes that lead to it.
    pub async fn reference(&self) -> (BTreeMap<String, Value>, Vec<CallRecord>) {
        let stage = self.stage();
        self.run(&stage, "first").await.unwrap_or_else(|error| panic!("{error}"));
        (self.end(&stage), stage.writes())
    }

    /// Runs it again after a kill: it succeeds, and waits for a dead run's lock as long as the
    /// rules say and no longer.
    async fn recover(&self, stage: &Stage, title: &str) {
        let objects = stage.memory.objects();
        let held = objects.iter().filter(|object| {
            text(object, "/kind") == "Lease"
                && text(object, "/metadata/name").starts_with("ichor-")
                && !text(object, "/spec/holderIdentity").is_empty()
        });
        // One after the other is waited for.
        let held = u64::try_from(held.count()).expect("a count");
        let before = stage.clock.elapsed();
        stage.restart();
        match self.run(stage, "second").await {
            Ok(()) => {}
            // The last step was done: a restore has nothing to put back any more.
            Err(error)
                if self.action == Action::Restore && stage.own_records().is_empty()
                    || matches!(self.case, Some(Case::Undo(_))) =>
            {
                assert!(error.contains("nothing to restore"), "{title}: {error}");
                return;
            }
            Err(error) => panic!("{title}: {error}"),
        }
        let waited = stage.clock.elapsed().saturating_sub(before).as_secs();
        assert!((15 * held..15 * held + 5).contains(&waited), "{title}: {waited} s");
        self.nothing_is_lost(stage).await;
    }
}

/// Whether a record's object is what it was, its UID and version aside.
pub fn same_record(live: &Value, original: &Value) -> bool {
    ["/data", "/metadata/labels", "/metadata/annotations", "/type", "/immutable"]
        .into_iter()
        .all(|pointer| live.pointer(pointer) == original.pointer(pointer))
}

/// Whether a backup holds a record whole: data to the byte, labels, annotations, type.
pub fn holds(backup: &Backup, original: &Value) -> bool {
    backup.verified().any(|record| {
        let map = |pointer: &str| {
            original.pointer(pointer).and_then(Value::as_object).cloned().unwrap_or_default()
        };
        let data: BTreeMap<String, Vec<u8>> = map("/data")
            .into_iter()
            .map(|(key, value)| {
                let value = value.as_str().expect("text").to_owned();
                let is_secret = record.kind == "Secret";
                (
                    key,
                    if is_secret { STANDARD.decode(value).expect("base64") } else { value.into() },
                )
            })
            .collect();
        record.kind == text(original, "/kind")
            && record.namespace == text(original, "/metadata/namespace")
            && record.name == text(original, "/metadata/name")
            && record.uid == text(original, "/metadata/uid")
            && record.labels == map("/metadata/labels")
            && record.annotations == map("/metadata/annotations")
            && record.secret_type == text(original, "/type")
            && backup.data_of(record) == Some(data)
    })
}

/// What a run leaves, without what every run makes anew.
pub fn end_state(memory: &MemoryCluster) -> BTreeMap<String, Value> {
    lasting(memory.objects().iter().map(|object| (**object).clone()))
}

/// The steps of a run, in their order.
fn step(call: &CallRecord) -> &'static str {
    let object = call.object.as_str();
    [
        ("namespaces ichor-system", "namespace"),
        ("-plan", "stored plan"),
        ("-prior", "backup"),
        ("ichor-system/sh.helm.release.v1.", "own record"),
        ("/sh.helm.release.v1.", "foreign record"),
        ("leases", "lock"),
    ]
    .into_iter()
    .find(|(part, _)| object.contains(part))
    .map_or("object", |(_, step)| step)
}

/// Every write.
pub fn every_write(writes: &[CallRecord]) -> Vec<usize> {
    (1..=writes.len()).collect()
}

/// The first and the last write of each step.
pub fn step_boundaries(writes: &[CallRecord]) -> Vec<usize> {
    let steps: Vec<&str> = writes.iter().map(step).collect();
    let is_boundary = |at: usize| {
        at == 0 || at + 1 == steps.len() || steps[at] != steps[at - 1] || steps[at] != steps[at + 1]
    };
    (0..steps.len()).filter(|at| is_boundary(*at)).map(|at| at + 1).collect()
}

/// A clock on which another run renews a Lease whenever one waits.
pub struct Busy {
    inner: Arc<ManualClock>,
    memory: Arc<MemoryCluster>,
    lease: Target,
}

impl Busy {
    /// The holder is `living-run`.
    pub fn of(stage: &Stage, namespace: &str, name: &str) -> Self {
        let leases = Resource::builtin("coordination.k8s.io/v1", "Lease", "leases", true);
        let lease = Target::new(&Arc::new(leases), namespace, name);
        Self { inner: Arc::clone(&stage.clock), memory: Arc::clone(&stage.memory), lease }
    }
}

impl helm_rs::cluster::Clock for Busy {
    fn now(&self) -> jiff::Timestamp {
        self.inner.now()
    }

    fn elapsed(&self) -> Duration {
        self.inner.elapsed()
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async move {
            self.inner.sleep(duration).await;
            let time = format!("{:.6}", self.inner.now());
            let body = json!({"spec": {"holderIdentity": "living-run", "renewTime": time}});
            let patch = Patch { kind: PatchKind::Merge, body };
            self.memory
                .patch(&self.lease, &patch, &WriteOptions::default())
                .await
                .expect("a Lease");
        })
    }
}
