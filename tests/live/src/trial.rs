//! One release in a namespace of its own, brought to an end by force or by faults, and run again.

use std::path::Path;

use helm_rs::gotext::quote;
use plane::Plane;
use plane::support::run;
use serde_json::{Value, json};

use crate::objects::{self, Objects};
use crate::{Program, chart};

/// The chart has eight objects, cluster-scoped ones named after the namespace.
pub const CHART: &str = "admission";

/// What is done to the release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Action {
    /// It is installed.
    Install,
    /// It is upgraded from the first step to the second.
    Upgrade,
    /// It is rolled back from the second step to the first.
    Rollback,
    /// It is uninstalled.
    Uninstall,
    /// It is uninstalled, and its records stay.
    UninstallKeep,
    /// It is upgraded, a hook fails in the end, and `--atomic` rolls it back.
    Atomic,
    /// Its tests are run.
    Test,
}

impl Action {
    /// What it is called in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Install => "install",
            Self::Upgrade => "upgrade",
            Self::Rollback => "rollback",
            Self::Uninstall => "uninstall",
            // Not `uninstall-…`: namespaces are named after it, and told apart by how they begin.
            Self::UninstallKeep => "keep-history",
            Self::Atomic => "atomic",
            Self::Test => "test",
        }
    }

    /// The command's word.
    const fn word(self) -> &'static str {
        match self {
            Self::UninstallKeep => "uninstall",
            Self::Atomic => "upgrade",
            other => other.name(),
        }
    }

    /// What has to be done before.
    const fn before(self) -> &'static [Self] {
        match self {
            Self::Install => &[],
            Self::Rollback => &[Self::Install, Self::Upgrade],
            _ => &[Self::Install],
        }
    }

    /// How many revisions there are before it is done.
    pub const fn revisions_before(self) -> usize {
        self.before().len()
    }

    /// The exit status when nothing goes wrong, and what is told then.
    const fn end(self) -> (i32, &'static str) {
        match self {
            Self::Atomic => (1, "has been rolled back due to atomic being set"),
            _ => (0, ""),
        }
    }
}

/// A release `r` in a namespace.
#[derive(Clone, Debug)]
pub struct Trial<'p> {
    plane: &'p Plane,
    /// The action under test.
    pub action: Action,
    /// The namespace, in which nothing else is.
    pub namespace: String,
    setup: Setup,
}

/// A chart, and how it is installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Setup {
    /// [`CHART`], without hooks.
    Plain,
    /// A chart with hooks of every event and every policy.
    Hooks,
    /// [`CHART`], installed by patches, then acted on by server-side apply.
    Applied,
}

/// Each of these is there while hooks run; one stays in the way of the next when the program dies
/// meanwhile, as its policy does not say that an older one is deleted first.
const IN_THE_WAY: &str = "r-passing";

impl Setup {
    /// What can be done to it.
    pub const fn actions(self) -> &'static [Action] {
        use Action::{Atomic, Install, Rollback, Test, Uninstall, UninstallKeep, Upgrade};
        match self {
            Self::Plain => &[Install, Upgrade, Rollback, Uninstall, UninstallKeep],
            Self::Hooks => &[Install, Upgrade, Rollback, Uninstall, UninstallKeep, Atomic, Test],
            // An uninstallation is the same with both methods.
            Self::Applied => &[Install, Upgrade, Rollback],
        }
    }

    const fn chart(self) -> &'static str {
        match self {
            Self::Plain | Self::Applied => CHART,
            Self::Hooks => "hooks",
        }
    }

    /// The values that say which hooks there are: the same for an installation and for the upgrade
    /// that goes on with it.
    fn values(self, action: Action) -> Vec<String> {
        if self != Self::Hooks {
            return Vec::new();
        }
        let every = |when: &str| {
            ["install", "upgrade", "rollback", "delete"].map(|it| format!("{when}-{it}")).join(",")
        };
        let (before, after) = (every("pre"), every("post"));
        let both = format!("{before},{after}");
        let mut hooks = vec![
            json!({ "name": "before", "events": before }),
            json!({ "name": "after", "events": after, "delete": "before-hook-creation,hook-succeeded" }),
            json!({ "name": "passing", "kind": "ConfigMap", "events": both, "weight": -1, "delete": "hook-succeeded" }),
            json!({ "name": "failing", "kind": "ConfigMap", "events": after, "weight": 1, "delete": "hook-failed,before-hook-creation" }),
            json!({ "name": "check", "kind": "Pod", "events": "test" }),
            json!({ "name": "more", "events": "test", "weight": 1, "delete": "hook-succeeded,before-hook-creation" }),
        ];
        if action == Action::Atomic {
            hooks.push(json!({ "name": "fails", "kind": "Pod", "events": "post-upgrade", "weight": 9, "exit": 1, "delete": "hook-failed,before-hook-creation" }));
        }
        vec!["--set-json".to_owned(), format!("hooks={}", Value::from(hooks))]
    }
}

/// One revision, as `release history` tells it.
#[derive(Clone, Debug)]
pub struct Revision {
    /// `deployed`, `failed` and so on.
    pub status: String,
    /// Why.
    pub description: String,
}

impl<'p> Trial<'p> {
    /// Makes the namespace, and the release where the action needs one.
    pub fn prepare(plane: &'p Plane, action: Action, namespace: &str) -> Self {
        Self::prepare_with(plane, action, namespace, Setup::Plain)
    }

    /// [`Self::prepare`] with another chart.
    pub fn prepare_with(plane: &'p Plane, action: Action, namespace: &str, setup: Setup) -> Self {
        let trial = Self { plane, action, namespace: namespace.to_owned(), setup };
        kubectl(plane, &["create", "namespace", namespace]);
        for before in action.before() {
            trial.complete(*before);
        }
        trial
    }

    /// The command line of an action.
    pub fn arguments(&self, action: Action) -> Vec<String> {
        let mut words = vec!["release", action.word(), "r", "-n", &self.namespace];
        match action {
            Action::Rollback => words.push("1"),
            Action::UninstallKeep => words.push("--keep-history"),
            Action::Atomic => words.extend(["--atomic", "--timeout", "2m"]),
            _ => {}
        }
        let mut words: Vec<String> = words.into_iter().map(str::to_owned).collect();
        if matches!(action, Action::Install | Action::Upgrade | Action::Atomic) {
            let step = if action == Action::Install { 1 } else { 2 };
            let folder = chart(self.setup.chart());
            let values = folder.join(format!("steps/{step}.yaml"));
            let files = [folder.to_string_lossy().into_owned(), "-f".to_owned()];
            words.extend(files);
            words.push(values.to_string_lossy().into_owned());
            words.extend(self.setup.values(action));
        }
        if self.setup == Setup::Applied && action == self.action {
            words.extend(["--apply-method", "ssa"].map(str::to_owned));
        }
        words
    }

    /// Runs the program without faults; it must end as the action does.
    pub fn complete(&self, action: Action) {
        self.try_to(action, &self.arguments(action)).unwrap_or_else(|told| panic!("{told}"));
    }

    /// Runs the program; what it told when it did not end as the action does.
    fn try_to(&self, action: Action, arguments: &[String]) -> Result<(), String> {
        let outcome = Program::Ichor.sealed(&self.plane.kubeconfig()).run(arguments);
        let told = [&outcome.stdout[..], &outcome.stderr[..]].concat();
        let told = String::from_utf8_lossy(&told).into_owned();
        let (code, says) = action.end();
        if outcome.code == Some(code) && told.contains(says) {
            return Ok(());
        }
        Err(format!("{}: {arguments:?}: {told}", self.namespace))
    }

    /// The revisions, the oldest first; none when there is no release.
    pub fn history(&self) -> Vec<Revision> {
        let arguments = ["release", "history", "r", "-n", &self.namespace, "-o", "json"];
        let outcome = Program::Ichor.sealed(&self.plane.kubeconfig()).run(arguments);
        let list: Vec<Value> = serde_json::from_slice(&outcome.stdout).unwrap_or_default();
        let text = |revision: &Value, field: &str| {
            revision.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        list.iter()
            .map(|revision| Revision {
                status: text(revision, "status"),
                description: text(revision, "description"),
            })
            .collect()
    }

    /// Runs the action again, as the page on live releases says after a program that died.
    ///
    /// # Errors
    /// What it told when it did not end as the action does.
    pub fn recovered(&self) -> Result<(), String> {
        let Err(told) = self.try_to_recover() else { return Ok(()) };
        if !told.contains(&format!("\"{IN_THE_WAY}\" already exists")) {
            return Err(told);
        }
        kubectl(self.plane, &["delete", "configmap", IN_THE_WAY, "-n", &self.namespace]);
        self.try_to_recover()
    }

    /// A rollback that failed is run again by Helm.
    ///
    /// # Errors
    /// What it told when it failed.
    pub fn recovered_by_helm(&self) -> Result<(), String> {
        let again = || {
            let arguments = ["rollback", "r", "1", "-n", &self.namespace];
            let outcome = Program::Helm.run(&self.plane.kubeconfig(), &arguments);
            let told = String::from_utf8_lossy(&outcome.stderr).into_owned();
            if outcome.code == Some(0) { Ok(()) } else { Err(told) }
        };
        again().or_else(|told| {
            if !told.contains(IN_THE_WAY) {
                return Err(told);
            }
            kubectl(self.plane, &["delete", "configmap", IN_THE_WAY, "-n", &self.namespace]);
            again()
        })
    }

    /// As [`Self::recovered`].
    ///
    /// # Panics
    /// When it does not end as the action does.
    pub fn recover(&self) {
        self.recovered().unwrap_or_else(|told| panic!("{told}"));
    }

    fn try_to_recover(&self) -> Result<(), String> {
        let mut arguments = self.arguments(self.action);
        let history = self.history();
        match self.action {
            Action::Uninstall => arguments.push("--ignore-not-found".to_owned()),
            Action::UninstallKeep => {
                if history.last().is_some_and(|last| last.status == "uninstalled") {
                    return Ok(());
                }
            }
            Action::Test => {}
            _ => {
                if !history.is_empty() {
                    let words = ["release", "repair", "r", "-n", &self.namespace, "--yes"];
                    self.try_to(Action::Install, &words.map(str::to_owned))?;
                }
            }
        }
        if matches!(self.action, Action::Install | Action::Upgrade) {
            "upgrade".clone_into(&mut arguments[1]);
            arguments.push("--install".to_owned());
        }
        self.try_to(self.action, &arguments)
    }

    /// Whether an object is a hook's, which may be there or not after an action that failed.
    pub fn is_hook(&self, title: &str) -> bool {
        self.setup == Setup::Hooks
            && ["before", "after", "passing", "failing", "fails", "check", "more"]
                .iter()
                .any(|hook| title.ends_with(&format!("/r-{hook}")))
    }

    /// The release's objects among all of the cluster, the namespace's name taken out, without
    /// records.
    pub fn objects(&self, all: &Objects) -> Objects {
        let mut own = objects::around(all, &self.namespace);
        own.retain(|title, _| {
            !title.contains("/sh.helm.release.v1.") && !title.starts_with("Namespace ")
        });
        own
    }

    /// What is wrong with the records of a release that is done: exactly one is deployed, and
    /// nothing is under way.
    pub fn unfinished(&self) -> Option<String> {
        let history = self.history();
        if self.action == Action::Uninstall {
            return (!history.is_empty()).then(|| format!("{}: {history:?}", self.namespace));
        }
        if self.action == Action::UninstallKeep {
            let is_done = history.last().is_some_and(|last| last.status == "uninstalled")
                && !history.iter().any(|revision| revision.status == "deployed");
            return (!is_done).then(|| format!("{}: {history:?}", self.namespace));
        }
        let count =
            |wanted: &str| history.iter().filter(|revision| revision.status == wanted).count();
        let ended = count("deployed") + count("superseded") + count("failed");
        (count("deployed") != 1 || ended != history.len())
            .then(|| format!("{}: {history:?}", quote(&self.namespace)))
    }
}

/// Runs kubectl as the admin.
pub fn kubectl(plane: &Plane, arguments: &[&str]) -> String {
    let mut command = plane.kubectl().expect("kubectl is built with the servers");
    run(command.args(arguments)).unwrap_or_else(|error| panic!("{}", error.chain()))
}

/// A kubeconfig of the admin for another address of the server.
pub fn kubeconfig_through(plane: &Plane, url: &str, name: &str) -> std::path::PathBuf {
    let path = plane.folder().join(format!("{name}.kubeconfig"));
    plane
        .write_kubeconfig(&path, url, &plane.identities().admin.token)
        .unwrap_or_else(|error| panic!("{}", error.chain()));
    path
}

/// Puts the token of a kubeconfig into a file, which is read anew when the server refuses it.
pub fn token_in_file(kubeconfig: &Path, file: &Path) {
    let text = std::fs::read_to_string(kubeconfig).expect("the kubeconfig was written");
    let mut config: Value = serde_json::from_str(&text).expect("it was written as JSON");
    let user = &mut config["users"][0]["user"];
    let token = user["token"].as_str().unwrap_or_default().to_owned();
    *user = json!({ "tokenFile": file });
    std::fs::write(file, token).expect("a file for the token");
    std::fs::write(kubeconfig, config.to_string()).expect("the kubeconfig can be written");
}
