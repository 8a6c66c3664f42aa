//! Killed before and after every write of an installation and of an upgrade, then run again with
//! the documented recovery: the same end state each time. `hack/proof kill-install`.

#![expect(clippy::unwrap_used, reason = "test code: a panic is how a test fails")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use live::objects::{Objects, differences, read};
use live::{Program, chart};
use plane::support::{or_skip, run};
use plane::{FaultProxy, Match, Plane, PlaneOptions};
use serde_json::Value;

/// The chart has eight objects, cluster-scoped ones named after the namespace.
const CHART: &str = "admission";

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
    for upgrade in [false, true] {
        let what = if upgrade { "upgrade" } else { "install" };
        let wanted = bed.reference(what, upgrade);
        for moment in [Moment::Before, Moment::After] {
            let mut place = 0;
            while bed.ends_the_same(&wanted, upgrade, moment, place).await {
                place += 1;
            }
            points += place;
            println!("{what}: killed {moment:?} each of {place} writes");
            assert!(place > 8, "the {what} has more writes than objects");
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
    for (upgrade, moment) in [(false, Moment::After), (true, Moment::Before)] {
        let wanted = bed.reference(if upgrade { "upgrade" } else { "install" }, upgrade);
        for place in SAMPLE {
            let killed = bed.ends_the_same(&wanted, upgrade, moment, place).await;
            assert!(killed, "no write {place}");
        }
    }
}

impl Bed {
    async fn open() -> Option<Self> {
        let plane = or_skip(Plane::start(PlaneOptions::default()).await)?;
        let proxy = plane.fault_proxy().await.unwrap();
        let through = plane.folder().join("through-proxy.kubeconfig");
        plane.write_kubeconfig(&through, &proxy.url(), &plane.identities().admin.token).unwrap();
        Some(Self { plane, proxy, through })
    }

    /// Kills the program at a write and recovers: the state is the wanted one. False when there
    /// are fewer writes.
    async fn ends_the_same(
        &self,
        wanted: &Objects,
        upgrade: bool,
        moment: Moment,
        place: usize,
    ) -> bool {
        let what = if upgrade { "upgrade" } else { "install" };
        let namespace = format!("k-{what}-{moment:?}-{place}").to_lowercase();
        self.prepare(&namespace, upgrade);
        let Some(killed_at) = self.kill(&namespace, upgrade, moment, place).await else {
            return false;
        };
        self.recover(&namespace, upgrade);
        let faults = differences(wanted, &self.state(&namespace));
        assert!(
            faults.is_empty(),
            "killed {moment:?} write {place} of the {what} ({killed_at}):\n{}",
            faults.join("\n")
        );
        true
    }

    fn arguments(namespace: &str, upgrade: bool) -> Vec<String> {
        let step = if upgrade { 2 } else { 1 };
        let values = chart(CHART).join(format!("steps/{step}.yaml"));
        let mut all = vec!["release".to_owned()];
        all.push(if upgrade { "upgrade" } else { "install" }.to_owned());
        all.push("r".to_owned());
        all.push(chart(CHART).to_string_lossy().into_owned());
        all.extend(["-n", namespace, "-f"].map(str::to_owned));
        all.push(values.to_string_lossy().into_owned());
        all
    }

    fn ichor(&self, arguments: &[&str]) {
        let outcome = Program::Ichor.sealed(&self.plane.kubeconfig()).run(arguments);
        assert_eq!(
            outcome.code,
            Some(0),
            "{arguments:?}: {}{}",
            String::from_utf8_lossy(&outcome.stdout),
            String::from_utf8_lossy(&outcome.stderr)
        );
    }

    /// A namespace, for an upgrade with the release in it.
    fn prepare(&self, namespace: &str, upgrade: bool) {
        run(self.plane.kubectl().unwrap().args(["create", "namespace", namespace])).unwrap();
        if upgrade {
            let arguments = Self::arguments(namespace, false);
            self.ichor(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
        }
    }

    /// The end state without a kill.
    fn reference(&self, what: &str, upgrade: bool) -> Objects {
        let namespace = format!("reference-{what}");
        self.prepare(&namespace, upgrade);
        let arguments = Self::arguments(&namespace, upgrade);
        self.ichor(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
        self.state(&namespace)
    }

    fn start(&self, namespace: &str, upgrade: bool) -> Child {
        Command::new(test_support::place::ichor())
            .args(Self::arguments(namespace, upgrade))
            .env("KUBECONFIG", &self.through)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }

    /// Kills the program at a write; none when it has fewer writes.
    async fn kill(
        &self,
        namespace: &str,
        upgrade: bool,
        moment: Moment,
        place: usize,
    ) -> Option<String> {
        let mut pauses = match moment {
            Moment::Before => self.proxy.pause_before(Match::writes()),
            Moment::After => self.proxy.pause_after(Match::writes()),
        };
        let mut child = self.start(namespace, upgrade);
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

    /// What `ichor release install --help` says.
    fn recover(&self, namespace: &str, upgrade: bool) {
        let has_record = run(self.plane.kubectl().unwrap().args([
            "-n",
            namespace,
            "get",
            "secrets",
            "-l",
            "owner=helm",
            "-o",
            "name",
        ]))
        .is_ok_and(|names| !names.trim().is_empty());
        if has_record {
            self.ichor(&["release", "repair", "r", "-n", namespace, "--yes"]);
        }
        let mut arguments = Self::arguments(namespace, upgrade);
        "upgrade".clone_into(&mut arguments[1]);
        arguments.push("--install".to_owned());
        self.ichor(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    }

    /// The release's objects, the namespace's name taken out; of the records, that one is
    /// deployed and none is pending.
    fn state(&self, namespace: &str) -> Objects {
        let mut state = BTreeMap::new();
        let mut statuses = Vec::new();
        for (title, object) in read(&self.plane).unwrap() {
            let text = object.to_string();
            let own = title.contains(&format!(" {namespace}/"))
                || title.contains(&format!("/{namespace}-r"));
            if !own || title.contains("/default") {
                continue;
            }
            if title.contains("/sh.helm.release.v1.") {
                let status = object.pointer("/metadata/labels/status").and_then(Value::as_str);
                statuses.push(status.unwrap_or_default().to_owned());
                continue;
            }
            let text = text.replace(namespace, "(namespace)");
            let title = title.replace(namespace, "(namespace)");
            state.insert(title, serde_json::from_str(&text).unwrap());
        }
        let deployed = statuses.iter().filter(|status| *status == "deployed").count();
        assert_eq!(deployed, 1, "{namespace}: {statuses:?}");
        let ended =
            |status: &String| matches!(status.as_str(), "deployed" | "superseded" | "failed");
        assert!(statuses.iter().all(ended), "{namespace}: {statuses:?}");
        assert!(Path::new(&self.through).is_file());
        state
    }
}
