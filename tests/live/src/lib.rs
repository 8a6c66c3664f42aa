//! What the tests on a live cluster share: both programs on planes of their own, and the objects
//! that they leave.
#![allow(
    clippy::panic,
    clippy::expect_used,
    clippy::missing_panics_doc,
    reason = "test code: a panic is how a test says what is wrong"
)]

pub mod objects;
pub mod pair;
pub mod trial;

use std::path::{Path, PathBuf};
use std::time::Duration;

use plane::Plane;
use test_support::sealed::{Outcome, Sealed};

/// One of the two programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// Real Helm.
    Helm,
    /// Ours.
    Ichor,
}

impl Program {
    /// Runs a command of Helm's (`install …`), or the same one of ours, on a cluster.
    pub fn run(self, kubeconfig: &Path, arguments: &[&str]) -> Outcome {
        self.sealed(kubeconfig).run(self.arguments(arguments))
    }

    /// The command line for a command of Helm's.
    pub fn arguments<'a>(self, arguments: &[&'a str]) -> Vec<&'a str> {
        let mut all = if self == Self::Ichor { vec!["release"] } else { Vec::new() };
        all.extend(arguments);
        if self == Self::Ichor && arguments.first() == Some(&"get") {
            all.push("--show-secrets");
        }
        all
    }

    /// The program, ready to run on a cluster.
    pub fn sealed(self, kubeconfig: &Path) -> Sealed {
        let sealed = match self {
            Self::Helm => Sealed::new(&plane::find_peer("helm").expect("Helm is built").path),
            Self::Ichor => Sealed::ichor(),
        };
        sealed.variable("KUBECONFIG", &kubeconfig.to_string_lossy()).limit(Duration::from_mins(5))
    }
}

/// A program with a plane of its own.
#[derive(Debug)]
pub struct Side {
    /// The plane.
    pub plane: Plane,
    /// The program.
    pub program: Program,
}

impl Side {
    /// Runs a command.
    pub fn run(&self, arguments: &[&str]) -> Outcome {
        self.program.run(&self.plane.kubeconfig(), arguments)
    }
}

/// A chart of this crate.
pub fn chart(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("charts").join(name)
}

/// The names of this crate's charts.
pub fn charts() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("charts");
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .expect("the charts are there")
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// What two runs must have alike: exit status, standard output, the error; times and generated
/// certificates aside.
pub fn summary(outcome: &Outcome) -> String {
    let stdout = String::from_utf8_lossy(&outcome.stdout);
    let stdout: Vec<String> = stdout
        .lines()
        .map(|line| {
            let told = ["LAST DEPLOYED: ", "Last Started:   ", "Last Completed: ", "DEPLOYED_AT: "];
            let columns: Vec<&str> = line.split('\t').collect();
            match (told.into_iter().find(|what| line.starts_with(what)), columns.as_slice()) {
                (Some(what), _) => format!("{what}(time)"),
                // A history.
                (None, [revision, _, rest @ ..])
                    if revision.starts_with(|c: char| c.is_ascii_digit()) =>
                {
                    format!("{revision}\t(time)\t{}", rest.join("\t"))
                }
                (None, _) => line.to_owned(),
            }
        })
        .collect();
    let mut stdout = stdout.join("\n");
    if let Ok(record) = serde_json::from_str::<serde_json::Value>(&stdout) {
        for time in objects::times(&record) {
            stdout = stdout.replace(&time, "(time)");
        }
    }
    let error = outcome.error_text().unwrap_or_default();
    // What follows a hint is ours alone.
    let error = error.split("\nhint: ").next().unwrap_or_default();
    let text = format!("exit status {:?}\n{}\nError: {}\n", outcome.code, stdout, error.trim_end());
    test_support::mask::certificates(&text)
}
