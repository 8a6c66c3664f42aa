//! Releases that real Helm makes, in every state that it has.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use helm_rs::release::{CodecLimits, Record, Status, decode, encode};
use plane::Plane;
use test_support::place::{repository, shared};

use super::compare::Case;

/// The names of the releases by namespace.
pub(super) type Releases = BTreeMap<String, Vec<String>>;

/// Charts of other tests that a server takes.
const OTHERS: [&str; 7] =
    ["ignore", "kube-version", "library", "links", "schema", "subcharts", "tpl"];

/// Real Helm and kubectl on one plane.
pub(super) struct Helm {
    helm: PathBuf,
    kubectl: PathBuf,
    helm4: Option<PathBuf>,
    pub(super) kubeconfig: PathBuf,
    pub(super) home: PathBuf,
}

/// The five archives of Cilium, oldest first; `None` when the shared inputs do not have them.
pub(super) fn cilium() -> Option<Vec<PathBuf>> {
    let folder = shared().ok()?.join("charts");
    let versions = ["1.16.19", "1.17.18", "1.18.0", "1.19.6", "1.20.0"];
    let paths = versions.map(|version| folder.join(format!("cilium-{version}.tgz"))).to_vec();
    paths.iter().all(|path| path.is_file()).then_some(paths)
}

/// Whether Helm 4 is built.
pub(super) fn has_helm4() -> bool {
    test_support::peer::program("helm4").is_ok()
}

/// The driver that the releases of a namespace are stored with.
pub(super) fn driver_of(namespace: &str) -> &'static str {
    if namespace == "maps" { "configmap" } else { "secret" }
}

impl Helm {
    pub(super) fn new(plane: &Plane) -> Self {
        let program = |command: Command| PathBuf::from(command.get_program());
        let helm4 = test_support::peer::program("helm4");
        Self {
            helm: program(plane.helm().unwrap()),
            kubectl: program(plane.kubectl().unwrap()),
            helm4: helm4.map_err(|missing| missing.excuse()).ok(),
            kubeconfig: plane.kubeconfig(),
            home: plane.folder().to_owned(),
        }
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("HOME", &self.home)
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .env("KUBECONFIG", &self.kubeconfig)
            .env("TZ", "UTC")
            .stdin(Stdio::null());
        command
    }

    /// What Helm says.
    pub(super) fn answer(&self, case: &Case) -> Output {
        self.command(&self.helm).args(&case.words).envs(case.variables()).output().unwrap()
    }

    /// A change that must succeed, or must fail.
    fn change(&self, expected: bool, words: &[&str], variables: &[(&str, &str)]) {
        let output =
            self.command(&self.helm).args(words).envs(variables.iter().copied()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.success(), expected, "helm {words:?}: {text}");
    }

    fn good(&self, words: &str) {
        self.change(true, &split(words), &[]);
    }

    fn bad(&self, words: &str) {
        self.change(false, &split(words), &[]);
    }

    /// Starts a change that hangs in a hook, and kills Helm there.
    fn killed(&self, words: &str, namespace: &str, job: &str) {
        let mut child = self
            .command(&self.helm)
            .args(split(words))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let until = Instant::now() + Duration::from_mins(1);
        while !self.kubectl(&["get", "job", job, "-n", namespace]).status.success() {
            assert!(Instant::now() < until, "helm {words}: no job {job}");
            std::thread::sleep(Duration::from_millis(200));
        }
        // SIGKILL: nothing is cleaned up.
        child.kill().unwrap();
        drop(child.wait());
    }

    pub(super) fn kubectl(&self, words: &[&str]) -> Output {
        self.command(&self.kubectl).args(words).output().unwrap()
    }
}

/// Words at blanks; nothing here needs quotes.
fn split(words: &str) -> Vec<&str> {
    words.split_whitespace().collect()
}

/// Makes all releases.
pub(super) fn releases(helm: &Helm) -> Releases {
    let mut all = Releases::new();
    all.insert("plain".to_owned(), plain(helm));
    all.insert("others".to_owned(), others(helm));
    all.insert("states".to_owned(), states(helm));
    all.insert("maps".to_owned(), maps(helm));
    match cilium() {
        Some(charts) => {
            for chart in charts {
                helm.good(&format!(
                    "upgrade --install cilium {} -n kube-system --set hubble.relay.enabled=true",
                    chart.display()
                ));
            }
            helm.good("rollback cilium 2 -n kube-system");
            all.insert("kube-system".to_owned(), vec!["cilium".to_owned()]);
        }
        None => test_support::Missing {
            what: "charts of Cilium".to_owned(),
            why: "not all five are in the shared inputs".to_owned(),
        }
        .excuse(),
    }
    if helm.helm4.is_some() {
        all.insert("four".to_owned(), newer(helm));
    }
    all
}

fn own(chart: &str) -> String {
    repository().join("tests/conformance/records/charts").join(chart).display().to_string()
}

fn other(chart: &str) -> String {
    repository().join("tests/charts").join(chart).join("chart").display().to_string()
}

/// Charts that other tests render.
fn others(helm: &Helm) -> Vec<String> {
    let names = OTHERS.map(|chart| format!("o-{chart}"));
    for (name, chart) in names.iter().zip(OTHERS) {
        helm.good(&format!("install {name} {} -n others --create-namespace", other(chart)));
    }
    names.to_vec()
}

/// Charts of every make, with several revisions.
fn plain(helm: &Helm) -> Vec<String> {
    let mut names = Vec::new();
    let owned = ["bare", "numbers", "files", "family", "clusterwide", "many"].map(own);
    for (index, chart) in owned.iter().chain([&other("override")]).enumerate() {
        let name = format!("p{index:02}");
        helm.good(&format!("install {name} {chart} -n plain --create-namespace"));
        names.push(name);
    }
    let chart = own("everyday");
    // Written in another time zone, with labels, then changed six times under a history limit.
    helm.change(
        true,
        &split(&format!("install greeter {chart} -n plain --labels team=core,tier=web")),
        &[("TZ", "Europe/Berlin")],
    );
    for revision in 2..=6 {
        let values = format!("replicas={revision},languages.emoji=🚀{revision},api.endpoint=null");
        helm.change(
            true,
            &[
                "upgrade",
                "greeter",
                &chart,
                "-n",
                "plain",
                "--history-max",
                "4",
                "--set",
                &values,
                "--description",
                "Grüße <b> & \"more\", wide: 日本",
            ],
            &[("TZ", "Asia/Kolkata")],
        );
    }
    helm.good("rollback greeter 4 -n plain --history-max 4");
    helm.good(&format!(
        "upgrade p01 {} -n plain --set big=1e3,float=7.10,list[1]=x",
        own("numbers")
    ));
    names.push("greeter".to_owned());
    names
}

/// Every status; those of running operations by killing Helm.
fn states(helm: &Helm) -> Vec<String> {
    let chart = own("hooked");
    let install = |name: &str, more: &str| {
        helm.good(&format!("install {name} {chart} -n states --create-namespace {more}"));
    };
    install("tested", "--labels team=core");
    helm.good("test tested -n states");
    helm.bad(&format!("install failed-install {chart} -n states --set exit.post-install=1"));
    install("failed-upgrade", "");
    helm.bad(&format!("upgrade failed-upgrade {chart} -n states --set exit.pre-upgrade=3"));
    install("back", "");
    helm.good(&format!("upgrade back {chart} -n states --set a=b"));
    helm.good("rollback back 1 -n states");
    install("gone", "");
    helm.good("uninstall gone --keep-history -n states");
    helm.killed(
        &format!("install stuck-install {chart} -n states --set hang.pre-install=1"),
        "states",
        "stuck-install-pre-install",
    );
    install("stuck-upgrade", "");
    helm.killed(
        &format!("upgrade stuck-upgrade {chart} -n states --set hang.pre-upgrade=1"),
        "states",
        "stuck-upgrade-pre-upgrade",
    );
    install("stuck-rollback", "--set hang.pre-rollback=1");
    helm.good(&format!("upgrade stuck-rollback {chart} -n states"));
    helm.killed("rollback stuck-rollback 1 -n states", "states", "stuck-rollback-pre-rollback");
    install("stuck-uninstall", "--set hang.pre-delete=1");
    helm.killed("uninstall stuck-uninstall -n states", "states", "stuck-uninstall-pre-delete");
    helm.good(&format!("install strange {} -n states", own("bare")));
    strange(helm);
    [
        "tested",
        "failed-install",
        "failed-upgrade",
        "back",
        "gone",
        "stuck-install",
        "stuck-upgrade",
        "stuck-rollback",
        "stuck-uninstall",
        "strange",
    ]
    .map(str::to_owned)
    .to_vec()
}

/// Sets a record's status to "unknown", which Helm itself never does.
fn strange(helm: &Helm) {
    let name = "sh.helm.release.v1.strange.v1";
    let found = helm.kubectl(&["get", "secret", name, "-n", "states", "-o", "json"]);
    let mut object: serde_json::Value = serde_json::from_slice(&found.stdout).unwrap();
    let release = super::dump::unpack(object["data"]["release"].as_str().unwrap());
    let json = decode(&release, CodecLimits::default()).unwrap();
    let mut record = Record::from_json(&json).unwrap();
    record.set_status(&Status::Unknown, "by hand").unwrap();
    let release = encode(&record.to_json()).unwrap();
    object["data"]["release"] = super::dump::pack(release.as_bytes()).into();
    object["metadata"]["labels"]["status"] = "unknown".into();
    let path = helm.home.join("strange.json");
    std::fs::write(&path, object.to_string()).unwrap();
    let replaced = helm.kubectl(&["replace", "-f", &path.display().to_string()]);
    assert!(replaced.status.success(), "{}", String::from_utf8_lossy(&replaced.stderr));
}

/// Releases in ConfigMaps.
fn maps(helm: &Helm) -> Vec<String> {
    let driver = [("HELM_DRIVER", "configmap")];
    let change = |words: &str| helm.change(true, &split(words), &driver);
    change(&format!(
        "install in-map {} -n maps --create-namespace --labels team=core",
        own("everyday")
    ));
    change(&format!("upgrade in-map {} -n maps --set replicas=1", own("everyday")));
    change(&format!("install small-map {} -n maps", own("bare")));
    vec!["in-map".to_owned(), "small-map".to_owned()]
}

/// Releases of Helm 4.
fn newer(helm: &Helm) -> Vec<String> {
    let Some(program) = &helm.helm4 else { return Vec::new() };
    let change = |words: &str| {
        let output = helm.command(program).args(split(words)).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "helm4 {words}: {text}");
    };
    let chart = own("everyday");
    change(&format!("install fresh {chart} -n four --create-namespace"));
    change(&format!("upgrade fresh {chart} -n four --set replicas=3"));
    change("rollback fresh 1 -n four");
    change(&format!("install fresh-hooks {} -n four", own("hooked")));
    vec!["fresh".to_owned(), "fresh-hooks".to_owned()]
}
