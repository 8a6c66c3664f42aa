//! Helm 3, Helm 4 and ichor on planes, under one set of words.

use std::time::{Duration, Instant};

use live::objects::{Objects, differences, read_owned};
use live::{Program, chart};
use plane::support::or_skip;
use plane::{Plane, PlaneOptions};
use serde_json::Value;
use test_support::sealed::{Outcome, Sealed};

/// A program that acts on releases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    /// Helm 3.21.4.
    Helm3,
    /// Helm 4.
    Helm4,
    /// Ours.
    Ichor,
}

impl Peer {
    /// Runs a command in our words; `@NAME` stands for a chart of this crate.
    pub(crate) fn run(self, plane: &Plane, command: &str) -> Outcome {
        let words: Vec<String> = command
            .split_whitespace()
            .map(|word| match word.strip_prefix('@') {
                Some(name) => chart(name).to_string_lossy().into_owned(),
                None => word.to_owned(),
            })
            .collect();
        let kubeconfig = plane.kubeconfig();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match self {
            Self::Helm3 => Program::Helm.run(&kubeconfig, &words),
            Self::Ichor => Program::Ichor.run(&kubeconfig, &words),
            Self::Helm4 => Sealed::new(&plane::find_peer("helm4").expect("looked for before").path)
                .variable("KUBECONFIG", &kubeconfig.to_string_lossy())
                .limit(Duration::from_mins(5))
                .run(helm4_words(&words)),
        }
    }

    /// [`Self::run`], which must succeed.
    pub(crate) fn succeed(self, plane: &Plane, command: &str) {
        let outcome = self.run(plane, command);
        assert_eq!(outcome.code, Some(0), "{self:?}: {command}\n{}", told(&outcome));
    }
}

/// Helm 4 has other words for the same.
fn helm4_words<'a>(words: &[&'a str]) -> Vec<&'a str> {
    let mut all = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        all.push(match *word {
            "--apply-method" if words.next() == Some(&"csa") => "--server-side=false",
            "--apply-method" => "--server-side=true",
            "--atomic" => "--rollback-on-failure",
            word => word,
        });
    }
    all
}

/// Both streams of a run.
pub(crate) fn told(outcome: &Outcome) -> String {
    String::from_utf8_lossy(&[&outcome.stdout[..], &outcome.stderr[..]].concat()).into_owned()
}

/// A plane; none when it or a peer is missing.
pub(crate) async fn plane() -> Option<Plane> {
    or_skip(plane::find_peer("helm"))?;
    or_skip(plane::find_peer("helm4"))?;
    or_skip(Plane::start(PlaneOptions::default()).await)
}

/// Helm 4 on one plane and ichor on another one.
pub(crate) struct Pair {
    /// Helm 4's.
    pub(crate) helm4: Plane,
    /// Ours.
    pub(crate) ichor: Plane,
    faults: Vec<String>,
    commands: usize,
    began: Instant,
}

impl Pair {
    /// Starts both planes.
    pub(crate) async fn open() -> Option<Self> {
        let (helm4, ichor) = tokio::join!(plane(), plane());
        let (helm4, ichor) = (helm4?, ichor?);
        Some(Self { helm4, ichor, faults: Vec::new(), commands: 0, began: Instant::now() })
    }

    /// Runs a command on both: the exit status must be the same.
    pub(crate) fn run(&mut self, command: &str) -> Outcome {
        self.commands += 1;
        let (wanted, got) = std::thread::scope(|scope| {
            let helm4 = scope.spawn(|| Peer::Helm4.run(&self.helm4, command));
            let ichor = scope.spawn(|| Peer::Ichor.run(&self.ichor, command));
            (helm4.join().expect("Helm 4 ran"), ichor.join().expect("ichor ran"))
        });
        if wanted.code != got.code {
            let (wanted, got) = (told(&wanted), told(&got));
            self.fault(format!("{command}:\n--- Helm 4\n{wanted}\n--- ichor\n{got}"));
        }
        got
    }

    /// Runs kubectl on both.
    pub(crate) fn kubectl(&self, arguments: &[&str]) {
        for plane in [&self.helm4, &self.ichor] {
            live::trial::kubectl(plane, arguments);
        }
    }

    /// Compares all objects, who owns their fields, and the records.
    pub(crate) fn compare(&mut self, when: &str) {
        // Controllers need a moment to follow.
        let began = Instant::now();
        let (count, found) = loop {
            let (left, right) = (objects(&self.helm4), objects(&self.ichor));
            let found = differences(&left, &right);
            if found.is_empty() || began.elapsed() > Duration::from_secs(10) {
                break (left.len(), found);
            }
        };
        println!("{when}: {count} objects on each side");
        for difference in found {
            self.fault(format!("{when}: {difference}"));
        }
    }

    fn fault(&mut self, fault: String) {
        println!("{fault}");
        self.faults.push(fault);
    }

    /// Fails when anything differed.
    pub(crate) fn end(self) {
        let seconds = self.began.elapsed().as_secs_f64();
        println!("{} commands, {seconds:.0} s", self.commands);
        let faults = &self.faults;
        assert!(faults.is_empty(), "{} differences:\n{}", faults.len(), faults.join("\n"));
    }
}

/// All objects with the owners of their fields; records as what they say, without what Helm 4 alone
/// writes or leaves out (docs/release-live.md).
pub(crate) fn objects(plane: &Plane) -> Objects {
    let mut objects = read_owned(plane).unwrap_or_else(|error| panic!("{}", error.chain()));
    for (_, object) in objects.iter_mut().filter(|(title, _)| title.contains("/sh.helm.release.")) {
        object["metadata"].as_object_mut().map(|fields| fields.remove("managedFields"));
        let text = object["data"]["release"].as_str().unwrap_or_default();
        let mut record: Value = serde_json::from_str(text).unwrap_or_default();
        let description = record.pointer("/info/description").and_then(Value::as_str);
        if description.is_some_and(|text| text.contains(" failed: ")) {
            record["info"]["description"] = "(each program's own)".into();
        }
        without_dialect(&mut record);
        object["data"]["release"] = record;
    }
    objects
}

/// What Helm 4 alone writes; texts that it leaves out where Helm 3 writes empty ones; the blank line
/// that it leaves after some documents.
fn without_dialect(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for name in ["rollback_revision", "modtime", "schemamodtime"] {
                fields.remove(name);
            }
            fields.retain(|_, value| value != "");
            fields.values_mut().for_each(without_dialect);
            if let Some(Value::String(manifest)) = fields.get_mut("manifest") {
                *manifest = format!("{}\n", manifest.replace("\n\n---\n", "\n---\n").trim_end());
            }
        }
        Value::Array(items) => items.iter_mut().for_each(without_dialect),
        _ => {}
    }
}
