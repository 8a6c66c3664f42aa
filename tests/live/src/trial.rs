//! One release in a namespace of its own, brought to an end by force or by faults, and run again.

use std::path::Path;

use helm_rs::gotext::quote;
use plane::Plane;
use plane::support::run;
use serde_json::{Value, json};

use crate::objects::Objects;
use crate::{Program, chart};

/// The chart has eight objects, cluster-scoped ones named after the namespace.
pub const CHART: &str = "admission";

/// What is done to the release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It is installed.
    Install,
    /// It is upgraded from the first step to the second.
    Upgrade,
    /// It is rolled back from the second step to the first.
    Rollback,
    /// It is uninstalled.
    Uninstall,
}

impl Action {
    /// The command's word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Install => "install",
            Self::Upgrade => "upgrade",
            Self::Rollback => "rollback",
            Self::Uninstall => "uninstall",
        }
    }

    /// What has to be done before.
    const fn before(self) -> &'static [Self] {
        match self {
            Self::Install => &[],
            Self::Upgrade | Self::Uninstall => &[Self::Install],
            Self::Rollback => &[Self::Install, Self::Upgrade],
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
    kind: Kind,
}

/// A chart, and how it is installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// [`CHART`], without hooks.
    Plain,
    /// A chart with a hook before and one after each action.
    Hooks,
    /// [`CHART`], installed by patches, then acted on by server-side apply.
    Applied,
}

impl Kind {
    const fn chart(self) -> &'static str {
        match self {
            Self::Plain | Self::Applied => CHART,
            Self::Hooks => "hooks",
        }
    }

    const fn values(self) -> &'static [&'static str] {
        match self {
            Self::Plain | Self::Applied => &[],
            // The same hooks for an installation and for the upgrade that goes on with it.
            Self::Hooks => &[
                "--set-json",
                r#"hooks=[{"name":"before","events":"pre-install,pre-upgrade,pre-rollback,pre-delete"},{"name":"after","events":"post-install,post-upgrade,post-rollback,post-delete","delete":"before-hook-creation,hook-succeeded"}]"#,
            ],
        }
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
        Self::prepare_with(plane, action, namespace, Kind::Plain)
    }

    /// [`Self::prepare`] with another chart.
    pub fn prepare_with(plane: &'p Plane, action: Action, namespace: &str, kind: Kind) -> Self {
        let trial = Self { plane, action, namespace: namespace.to_owned(), kind };
        kubectl(plane, &["create", "namespace", namespace]);
        for before in action.before() {
            trial.succeed(&trial.arguments(*before));
        }
        trial
    }

    /// The command line of an action.
    pub fn arguments(&self, action: Action) -> Vec<String> {
        let mut all = self.plain_arguments(action);
        if self.kind == Kind::Applied && action == self.action && action != Action::Uninstall {
            all.extend(["--apply-method", "ssa"].map(str::to_owned));
        }
        all
    }

    fn plain_arguments(&self, action: Action) -> Vec<String> {
        let short = match action {
            Action::Rollback => {
                Some(["release", "rollback", "r", "1", "-n", &self.namespace].to_vec())
            }
            Action::Uninstall => {
                Some(["release", "uninstall", "r", "-n", &self.namespace].to_vec())
            }
            Action::Install | Action::Upgrade => None,
        };
        if let Some(words) = short {
            return words.into_iter().map(str::to_owned).collect();
        }
        let step = if action == Action::Upgrade { 2 } else { 1 };
        let folder = chart(self.kind.chart());
        let values = folder.join(format!("steps/{step}.yaml"));
        let (folder, values) = (folder.to_string_lossy(), values.to_string_lossy());
        let words = ["release", action.name(), "r", &folder, "-n", &self.namespace, "-f", &values];
        words.iter().chain(self.kind.values()).map(|word| (*word).to_owned()).collect()
    }

    /// Runs the program without faults; it must succeed.
    pub fn succeed(&self, arguments: &[String]) {
        let outcome = Program::Ichor.sealed(&self.plane.kubeconfig()).run(arguments);
        let (stdout, stderr) = (&outcome.stdout, &outcome.stderr);
        let told = [&stdout[..], &stderr[..]].concat();
        assert_eq!(outcome.code, Some(0), "{arguments:?}: {}", String::from_utf8_lossy(&told));
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

    /// Runs the action again, as `ichor release install --help` says after a program that died.
    pub fn recover(&self) {
        if self.action == Action::Uninstall {
            let mut arguments = self.arguments(self.action);
            arguments.push("--ignore-not-found".to_owned());
            return self.succeed(&arguments);
        }
        if !self.history().is_empty() {
            let words = ["release", "repair", "r", "-n", &self.namespace, "--yes"];
            self.succeed(&words.map(str::to_owned));
        }
        if self.action == Action::Rollback {
            return self.succeed(&self.arguments(self.action));
        }
        let mut arguments = self.arguments(self.action);
        "upgrade".clone_into(&mut arguments[1]);
        arguments.push("--install".to_owned());
        self.succeed(&arguments);
    }

    /// The release's objects among all of the cluster, the namespace's name taken out, without
    /// records.
    pub fn objects(&self, all: &Objects) -> Objects {
        let namespace = self.namespace.as_str();
        let own = |title: &str| {
            (title.contains(&format!(" {namespace}/")) && !title.contains("/default"))
                || title.contains(&format!("/{namespace}-r"))
        };
        all.iter()
            .filter(|(title, _)| own(title) && !title.contains("/sh.helm.release.v1."))
            .map(|(title, object)| {
                let text = object.to_string().replace(namespace, "(namespace)");
                let object = serde_json::from_str(&text).expect("JSON stays JSON");
                (title.replace(namespace, "(namespace)"), object)
            })
            .collect()
    }

    /// What is wrong with the records of a release that is done: exactly one is deployed, and
    /// nothing is under way.
    pub fn unfinished(&self) -> Option<String> {
        let history = self.history();
        if self.action == Action::Uninstall {
            return (!history.is_empty()).then(|| format!("{}: {history:?}", self.namespace));
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
