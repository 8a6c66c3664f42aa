//! Killed before and after every write of an installation, an upgrade, a rollback, an uninstallation,
//! one that keeps the records, an upgrade that `--atomic` rolls back, and a test, without and with
//! hooks of every event and policy, and by server-side apply, then run again with the documented recovery: the same end state
//! each time. `hack/proof kill-install`.

#![expect(clippy::unwrap_used, reason = "test code: a panic is how a test fails")]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use live::at_once;
use live::objects::{Objects, differences, read};
use live::trial::{Action, Setup, Trial, kubeconfig_through, kubectl};
use plane::support::or_skip;
use plane::{FaultProxy, Match, Plane, PlaneOptions};
use tokio::runtime::Handle;

struct Bed {
    plane: Plane,
    /// Programs that are killed at the same time have a proxy each.
    proxies: Vec<(FaultProxy, PathBuf)>,
    /// The runtime of the proxies, for the threads that kill.
    runtime: Handle,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moment {
    Before,
    After,
}

/// All places of one action at one moment.
struct Series {
    kind: Setup,
    action: Action,
    moment: Moment,
    wanted: Arc<Objects>,
}

/// The record, the first object, one in between, and the record again: the boundaries of the steps.
const SAMPLE: [usize; 4] = [0, 1, 5, 9];

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: hack/proof kill-install"]
async fn every_write() {
    let Some(bed) = Bed::open(6).await else { return };
    let began = Instant::now();
    let cases: Vec<(Setup, Action)> = [Setup::Hooks, Setup::Plain, Setup::Applied]
        .into_iter()
        .flat_map(|kind| kind.actions().iter().map(move |action| (kind, *action)))
        .collect();
    let series: Vec<Series> = at_once(&bed.proxies, &cases, |_, (kind, action), _| {
        let wanted = Arc::new(bed.reference(*kind, *action));
        [Moment::Before, Moment::After].map(|moment| {
            let wanted = Arc::clone(&wanted);
            Series { kind: *kind, action: *action, moment, wanted }
        })
    })
    .into_iter()
    .flatten()
    .collect();
    let counts = at_once(&bed.proxies, &series, |_, series, proxy| {
        let mut place = 0;
        while bed.ends_the_same(series, place, proxy) {
            place += 1;
        }
        let Series { kind, action, moment, .. } = series;
        println!("{kind:?}, {}: killed {moment:?} each of {place} writes", action.name());
        assert!(place > 4, "the {} has more writes", action.name());
        place
    });
    println!(
        "{} points, {:.0} s: the same end state each time",
        counts.iter().sum::<usize>(),
        began.elapsed().as_secs_f64()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_at_the_boundaries_of_the_steps() {
    let Some(bed) = Bed::open(4).await else { return };
    let samples: Vec<(Setup, Action, Moment)> = vec![
        (Setup::Plain, Action::Install, Moment::After),
        (Setup::Plain, Action::Upgrade, Moment::Before),
        (Setup::Hooks, Action::Rollback, Moment::After),
        (Setup::Hooks, Action::Uninstall, Moment::Before),
        (Setup::Hooks, Action::Atomic, Moment::After),
        // Fields are taken over, then the object is applied, one after the other.
        (Setup::Applied, Action::Upgrade, Moment::After),
        (Setup::Hooks, Action::Test, Moment::Before),
    ];
    at_once(&bed.proxies, &samples, |_, (kind, action, moment), proxy| {
        let wanted = Arc::new(bed.reference(*kind, *action));
        let series = Series { kind: *kind, action: *action, moment: *moment, wanted };
        let places = if *action == Action::Test { &SAMPLE[..2] } else { &SAMPLE };
        for place in places {
            assert!(bed.ends_the_same(&series, *place, proxy), "no write {place}");
        }
    });
}

impl Bed {
    async fn open(workers: usize) -> Option<Self> {
        let plane = or_skip(Plane::start(PlaneOptions::default()).await)?;
        let mut proxies = Vec::new();
        for number in 0..workers {
            let proxy = plane.fault_proxy().await.unwrap();
            let through = kubeconfig_through(&plane, &proxy.url(), &format!("through-{number}"));
            proxies.push((proxy, through));
        }
        Some(Self { plane, proxies, runtime: Handle::current() })
    }

    /// Kills the program at a write and recovers: the state is the wanted one. False when there
    /// are fewer writes.
    fn ends_the_same(&self, series: &Series, place: usize, proxy: &(FaultProxy, PathBuf)) -> bool {
        let Series { kind, action, moment, wanted } = series;
        let what = action.name();
        let namespace = format!("k-{kind:?}-{what}-{moment:?}-{place}").to_lowercase();
        let trial = Trial::prepare_with(&self.plane, *action, &namespace, *kind);
        let killed = self.runtime.block_on(kill(&trial, *moment, place, proxy));
        if let Some(killed_at) = &killed {
            trial.recover();
            let faults = differences(wanted, &self.state(&trial));
            assert!(
                faults.is_empty(),
                "{kind:?}: killed {moment:?} write {place} of the {what} ({killed_at}):\n{}",
                faults.join("\n")
            );
        }
        // All objects are read after each kill.
        kubectl(&self.plane, &["delete", "namespace", &namespace, "--wait=false"]);
        killed.is_some()
    }

    /// The end state without a kill.
    fn reference(&self, kind: Setup, action: Action) -> Objects {
        let namespace = format!("reference-{kind:?}-{}", action.name()).to_lowercase();
        let trial = Trial::prepare_with(&self.plane, action, &namespace, kind);
        trial.complete(action);
        self.state(&trial)
    }

    fn state(&self, trial: &Trial<'_>) -> Objects {
        assert_eq!(trial.unfinished(), None);
        let mut objects = trial.objects(&read(&self.plane).unwrap());
        // How often its template changed, which is once more there and back where an upgrade that
        // was rolled back is made again.
        for object in objects.values_mut() {
            if let Some(annotations) = object.pointer_mut("/metadata/annotations") {
                annotations
                    .as_object_mut()
                    .and_then(|all| all.remove("deployment.kubernetes.io/revision"));
            }
        }
        objects
    }
}

fn start(trial: &Trial<'_>, through: &Path) -> Child {
    Command::new(test_support::place::ichor())
        .args(trial.arguments(trial.action))
        .env("KUBECONFIG", through)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Kills the program at a write; none when it has fewer writes.
async fn kill(
    trial: &Trial<'_>,
    moment: Moment,
    place: usize,
    (proxy, through): &(FaultProxy, PathBuf),
) -> Option<String> {
    let mut pauses = match moment {
        Moment::Before => proxy.pause_before(Match::writes()),
        Moment::After => proxy.pause_after(Match::writes()),
    };
    let mut child = start(trial, through);
    let mut seen = 0;
    let killed = loop {
        let paused = tokio::time::timeout(Duration::from_millis(200), pauses.recv()).await;
        match paused {
            Ok(Some(paused)) if seen == place => {
                child.kill().unwrap();
                child.wait().unwrap();
                let request = paused.request.to_string();
                paused.cut();
                break Some(request);
            }
            Ok(Some(paused)) => {
                seen += 1;
                paused.release();
            }
            Ok(None) => break None,
            Err(_) => {
                if child.try_wait().unwrap().is_some() {
                    break None;
                }
            }
        }
    };
    proxy.clear();
    drop(pauses);
    killed
}
