//! The program as a process of its own, killed and stopped at chosen writes through the fault
//! proxy of a plane.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use helm_rs::cluster::{Cluster, Moment};
use plane::{FaultProxy, Match, Paused, Plane, PlaneOptions, RequestRecord, SavedState};
use serde_json::Value;
use takeover::snapshot::lasting;
use tokio::sync::mpsc::UnboundedReceiver;

use crate::Bed;
use crate::rehearsal::{holds, same_record, text};

/// A plane with a proxy before it and the program.
pub struct Site {
    /// The plane and what looks at it.
    pub bed: Bed,
    /// What the program goes through.
    pub proxy: FaultProxy,
    through: PathBuf,
    /// The foreign records.
    pub originals: Vec<Value>,
    /// The digest of the plan of Cilium; empty where it is not taken over.
    pub digest: String,
    /// What the program is run with.
    arguments: Vec<String>,
}

/// A program under way, ended when it is dropped.
pub struct Program {
    child: Child,
}

impl Drop for Program {
    fn drop(&mut self) {
        // Gone already is fine.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Program {
    /// Ends it as a crash does.
    pub fn kill(mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }

    /// Whether it ended by itself.
    pub fn is_over(&mut self) -> bool {
        self.child.try_wait().expect("a child").is_some()
    }

    /// Stops it, or lets it go on: `STOP` and `CONT`.
    pub fn signal(&self, signal: &str) {
        let id = self.child.id().to_string();
        let status = Command::new("kill").args([&format!("-{signal}"), &id]).status();
        assert!(status.expect("kill").success());
    }

    /// What it said and its exit code.
    pub fn end(mut self) -> (Option<i32>, String) {
        let status = self.child.wait().expect("it ends");
        let mut text = String::new();
        for pipe in [self.child.stdout.take().map(read_all), self.child.stderr.take().map(read_all)]
        {
            text.push_str(&pipe.unwrap_or_default());
        }
        (status.code(), text)
    }
}

fn read_all(mut pipe: impl std::io::Read) -> String {
    let mut text = String::new();
    pipe.read_to_string(&mut text).expect("text");
    text
}

/// Whether a request is one of the takeover's writes: no review, and no renewal of the Lease.
pub fn counts(request: &RequestRecord) -> bool {
    let is_review = request.resource.ends_with("reviews");
    let is_renewal = request.resource == "leases" && request.verb == "patch";
    request.is_write() && !is_review && !is_renewal
}

/// The program on a cluster, with the shared charts.
pub fn command(kubeconfig: &Path, arguments: &[&str]) -> Command {
    let charts = plane::cilium::chart("1.20.0").expect("the chart");
    let mut command = Command::new(test_support::place::ichor());
    command
        .args(arguments)
        .env("KUBECONFIG", kubeconfig)
        .env("ICHOR_CHART_DIR", charts.parent().expect("a folder"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

impl Site {
    /// A plane on which Cilium is taken over.
    pub async fn new(bed: Bed) -> Self {
        let digest = bed.plan(None).await.plan.digest;
        let mut site = Self::of(
            bed,
            &["cni", "run", "--takeover", "--accept-cilium-changes", "--digest", &digest],
        )
        .await;
        site.digest = digest;
        site
    }

    /// A plane on which the program is run with these arguments.
    pub async fn of(bed: Bed, arguments: &[&str]) -> Self {
        let proxy = bed.plane.fault_proxy().await.expect("a proxy");
        let through = bed.plane.folder().join("through-proxy.kubeconfig");
        let token = &bed.plane.identities().admin.token;
        bed.plane.write_kubeconfig(&through, &proxy.url(), token).expect("a kubeconfig");
        let originals = records(&*bed.cluster).await;
        let arguments = arguments.iter().map(|word| (*word).to_owned()).collect();
        Self { bed, proxy, through, originals, digest: String::new(), arguments }
    }

    fn run_arguments(&self) -> Vec<&str> {
        self.arguments.iter().map(String::as_str).collect()
    }

    /// Starts the program through the proxy.
    pub fn start(&self) -> Program {
        let child = command(&self.through, &self.run_arguments()).spawn();
        Program { child: child.expect("it starts") }
    }

    /// Runs the program to its end, past the proxy.
    pub fn run(&self) -> Output {
        command(&self.bed.plane.kubeconfig(), &self.run_arguments()).output().expect("it runs")
    }

    /// Runs another command of the program.
    pub fn ichor(&self, arguments: &[&str]) -> Output {
        command(&self.bed.plane.kubeconfig(), arguments).output().expect("it runs")
    }

    /// Starts the program and kills it at its write number `at`, from 0; the request, or none when
    /// it has fewer writes and came to its end.
    pub async fn kill_at(&self, at: usize, moment: Moment) -> Option<String> {
        let mut pauses = match moment {
            Moment::Before => self.proxy.pause_before(Match::writes()),
            Moment::After => self.proxy.pause_after(Match::writes()),
        };
        let mut program = self.start();
        let mut seen = 0;
        let paused = loop {
            match next(&mut pauses, &mut program).await {
                None => break None,
                Some(paused) if counts(&paused.request) => {
                    if seen == at {
                        break Some(paused);
                    }
                    seen += 1;
                    paused.release();
                }
                Some(paused) => paused.release(),
            }
        };
        self.proxy.clear();
        if let Some(paused) = paused {
            program.kill();
            let request = paused.request.to_string();
            paused.cut();
            return Some(request);
        }
        let (code, text) = program.end();
        assert_eq!(code, Some(0), "after {seen} writes: {text}");
        println!("{seen} writes");
        None
    }

    /// Every foreign record is there, or a verified backup of it, to the byte.
    pub async fn nothing_is_lost(&self) {
        nothing_is_lost(&*self.bed.cluster, &self.originals).await;
    }

    /// What is left, without what every run makes anew and what lives by itself.
    pub async fn state(&self) -> BTreeMap<String, Value> {
        state(&*self.bed.cluster).await
    }

    /// What real Helm sees: the namespace of the records, release, revision and status of every
    /// release of ichor's namespace and of kube-system.
    pub fn helm_list(&self) -> Vec<String> {
        let mut all = Vec::new();
        for namespace in ["ichor-system", "kube-system"] {
            let list = self.bed.helm(&["list", "-n", namespace, "-a", "-o", "json"]);
            let list: Vec<Value> = serde_json::from_str(&list).expect("JSON");
            for release in &list {
                let fields = ["name", "revision", "status"];
                let fields = fields.map(|field| release[field].as_str().unwrap_or_default());
                all.push(format!("{namespace} {}", fields.join(" ")));
            }
        }
        all
    }
}

/// The records of Helm's that a cluster has.
pub async fn records(cluster: &dyn Cluster) -> Vec<Value> {
    let is_record =
        |object: &Value| text(object, "/metadata/name").starts_with("sh.helm.release.v1.");
    crate::export(cluster).await.into_iter().filter(is_record).collect()
}

/// Asserts that each record is there, or a verified backup of it, to the byte.
pub async fn nothing_is_lost(cluster: &dyn Cluster, originals: &[Value]) {
    let backups =
        takeover::run::backup::backups(cluster, &takeover::place::CILIUM).await.expect("backups");
    let objects = crate::export(cluster).await;
    for original in originals {
        let place = |object: &Value| {
            ["/kind", "/metadata/namespace", "/metadata/name"].map(|p| text(object, p).to_owned())
        };
        let live = objects.iter().find(|object| place(object) == place(original));
        let is_live = live.is_some_and(|live| same_record(live, original));
        let is_safe = backups.iter().any(|backup| holds(backup, original));
        assert!(is_live || is_safe, "{:?} is lost", place(original));
    }
}

/// What a cluster holds, without what every run makes anew and what lives by itself.
pub async fn state(cluster: &dyn Cluster) -> BTreeMap<String, Value> {
    let all = crate::export(cluster).await;
    let passing = [
        "Node",
        "Pod",
        "Endpoints",
        "EndpointSlice",
        "Event",
        "Lease",
        "IPAddress",
        "PodMetrics",
        "NodeMetrics",
        "ServiceCIDR",
    ];
    lasting(all.into_iter().filter(|object| !passing.contains(&text(object, "/kind"))))
}

/// The exit code of a program that ended, and all that it printed.
pub fn told(output: &Output) -> (i32, String) {
    let text = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    (output.status.code().unwrap_or(-1), text.concat())
}

/// The next paused request; none when the program has come to its end.
pub async fn next(pauses: &mut UnboundedReceiver<Paused>, program: &mut Program) -> Option<Paused> {
    loop {
        let wait = Duration::from_millis(200);
        match tokio::time::timeout(wait, pauses.recv()).await {
            Ok(paused) => return paused,
            Err(_) if program.is_over() => return None,
            Err(_) => {}
        }
    }
}

/// Cilium 1.20.0 whose objects say that another release owns them, so that each one is written.
pub async fn owned_by_another() -> Option<Bed> {
    Bed::of(owned_by_another_saved().await).await
}

/// The state of [`owned_by_another`].
///
/// # Errors
/// As [`crate::saved`].
pub async fn owned_by_another_saved() -> plane::Result<SavedState> {
    crate::saved(PlaneOptions::default(), "owned-by-another", "1", |plane: &Plane| {
        let values = crate::values_path("01");
        crate::helm_install(plane, "cilium", "kube-system", "1.20.0", &["-f", &values]);
        let mut helm = plane.helm().expect("helm");
        let manifest = crate::run(helm.args(["-n", "kube-system", "get", "manifest", "cilium"]));
        let file = plane.folder().join("manifest.yaml");
        std::fs::write(&file, manifest).expect("a file");
        let annotate = |arguments: &[&str]| {
            let mut kubectl = plane.kubectl().expect("kubectl");
            crate::run(kubectl.args(["annotate", "--overwrite"]).args(arguments));
        };
        let file = file.display().to_string();
        annotate(&["-f", &file, "meta.helm.sh/release-name=other"]);
        // The DaemonSet keeps its owner: provenance goes by it.
        annotate(&["-n", "kube-system", "ds/cilium", "meta.helm.sh/release-name=cilium"]);
    })
    .await
}
