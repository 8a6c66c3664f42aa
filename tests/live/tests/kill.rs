//! Killed before and after every write of an installation, an upgrade, a rollback and an
//! uninstallation, without and with hooks, and by server-side apply, then run again with the documented recovery: the same end state each time. `hack/proof kill-install`.

#![expect(clippy::unwrap_used, reason = "test code: a panic is how a test fails")]

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use live::objects::{Objects, differences, read};
use live::trial::{Action, Kind, Trial, kubeconfig_through};
use plane::support::or_skip;
use plane::{FaultProxy, Match, Plane, PlaneOptions};

struct Bed {
    plane: Plane,
    proxy: FaultProxy,
    through: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moment {
    Before,
    After,
}

/// The record, the first object, one in between, and the record again: the boundaries of the steps.
const SAMPLE: [usize; 4] = [0, 1, 5, 9];

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: hack/proof kill-install"]
async fn every_write() {
    let Some(bed) = Bed::open().await else { return };
    let began = Instant::now();
    let mut points = 0;
    let all = [Action::Install, Action::Upgrade, Action::Rollback, Action::Uninstall];
    for (kind, action) in [Kind::Plain, Kind::Hooks, Kind::Applied].into_iter().flat_map(|kind| {
        all.map(|action| (kind, action)).into_iter().filter(|(kind, action)| {
            // It is the same with both methods.
            *kind != Kind::Applied || *action != Action::Uninstall
        })
    }) {
        let wanted = bed.reference(kind, action);
        for moment in [Moment::Before, Moment::After] {
            let mut place = 0;
            while bed.ends_the_same(&wanted, kind, action, moment, place).await {
                place += 1;
            }
            points += place;
            println!("{kind:?}, {}: killed {moment:?} each of {place} writes", action.name());
            assert!(place > 8, "the {} has more writes than objects", action.name());
        }
    }
    println!(
        "{points} points, {:.0} s: the same end state each time",
        began.elapsed().as_secs_f64()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_at_the_boundaries_of_the_steps() {
    let Some(bed) = Bed::open().await else { return };
    for (kind, action, moment) in [
        (Kind::Plain, Action::Install, Moment::After),
        (Kind::Plain, Action::Upgrade, Moment::Before),
        (Kind::Hooks, Action::Rollback, Moment::After),
        (Kind::Hooks, Action::Uninstall, Moment::Before),
        // Fields are taken over, then the object is applied, one after the other.
        (Kind::Applied, Action::Upgrade, Moment::After),
    ] {
        let wanted = bed.reference(kind, action);
        for place in SAMPLE {
            let killed = bed.ends_the_same(&wanted, kind, action, moment, place).await;
            assert!(killed, "no write {place}");
        }
    }
}

impl Bed {
    async fn open() -> Option<Self> {
        let plane = or_skip(Plane::start(PlaneOptions::default()).await)?;
        let proxy = plane.fault_proxy().await.unwrap();
        let through = kubeconfig_through(&plane, &proxy.url(), "through-proxy");
        Some(Self { plane, proxy, through })
    }

    /// Kills the program at a write and recovers: the state is the wanted one. False when there
    /// are fewer writes.
    async fn ends_the_same(
        &self,
        wanted: &Objects,
        kind: Kind,
        action: Action,
        moment: Moment,
        place: usize,
    ) -> bool {
        let what = action.name();
        let namespace = format!("k-{kind:?}-{what}-{moment:?}-{place}").to_lowercase();
        let trial = Trial::prepare_with(&self.plane, action, &namespace, kind);
        let Some(killed_at) = self.kill(&trial, moment, place).await else { return false };
        trial.recover();
        let faults = differences(wanted, &self.state(&trial));
        assert!(
            faults.is_empty(),
            "{kind:?}: killed {moment:?} write {place} of the {what} ({killed_at}):\n{}",
            faults.join("\n")
        );
        true
    }

    /// The end state without a kill.
    fn reference(&self, kind: Kind, action: Action) -> Objects {
        let namespace = format!("reference-{kind:?}-{}", action.name()).to_lowercase();
        let trial = Trial::prepare_with(&self.plane, action, &namespace, kind);
        trial.succeed(&trial.arguments(action));
        self.state(&trial)
    }

    fn state(&self, trial: &Trial<'_>) -> Objects {
        assert_eq!(trial.unfinished(), None);
        trial.objects(&read(&self.plane).unwrap())
    }

    fn start(&self, trial: &Trial<'_>) -> Child {
        Command::new(test_support::place::ichor())
            .args(trial.arguments(trial.action))
            .env("KUBECONFIG", &self.through)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }

    /// Kills the program at a write; none when it has fewer writes.
    async fn kill(&self, trial: &Trial<'_>, moment: Moment, place: usize) -> Option<String> {
        let mut pauses = match moment {
            Moment::Before => self.proxy.pause_before(Match::writes()),
            Moment::After => self.proxy.pause_after(Match::writes()),
        };
        let mut child = self.start(trial);
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
        self.proxy.clear();
        drop(pauses);
        killed
    }
}
