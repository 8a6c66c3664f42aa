//! What the tests on a live cluster share: both programs on planes of their own, and the objects
//! that they leave.
#![allow(
    clippy::panic,
    clippy::expect_used,
    clippy::missing_panics_doc,
    reason = "test code: a panic is how a test says what is wrong"
)]

pub mod goldens;
pub mod lifecycle;
pub mod objects;
pub mod pair;
pub mod trial;

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
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

/// What two runs must have alike: exit status, standard output and standard error; times, generated
/// certificates and what only ichor adds after a hint aside.
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
    let stderr = String::from_utf8_lossy(&outcome.stderr);
    // What follows a hint is ours alone.
    let stderr = stderr.split("\nhint: ").next().unwrap_or_default();
    let (mut warnings, mut told): (Vec<String>, Vec<String>) = stderr
        .trim_end()
        .lines()
        // client-go's word, now and then, on a watch that it ends while an event arrives.
        .filter(|line| !line.contains("\" reflector=\"k8s.io/client-go"))
        .map(|line| without_pod(&without_klog(line)))
        .partition(|line| line.starts_with("Warning: "));
    // Helm tells a server's warning at every request, ichor once.
    warnings.sort();
    warnings.dedup();
    told.splice(0..0, warnings);
    let text = format!("exit status {:?}\n{stdout}\n{}\n", outcome.code, told.join("\n"));
    test_support::mask::certificates(&text)
}

/// A line without what klog puts around a server's warning.
fn without_klog(line: &str) -> String {
    let is_klog = line.starts_with(['W', 'E', 'I'])
        && line.get(1..5).is_some_and(|date| date.bytes().all(|byte| byte.is_ascii_digit()));
    match line.split_once("] ") {
        Some((_, text)) if is_klog => text.trim_matches('"').to_owned(),
        _ => line.to_owned(),
    }
}

/// A simulated container's log without the end that a controller gave to its pod's name.
fn without_pod(line: &str) -> String {
    match line.strip_suffix(" is simulated").and_then(|line| line.rsplit_once('-')) {
        Some((start, _)) if line.starts_with("container ") => format!("{start}-(any) is simulated"),
        _ => line.to_owned(),
    }
}

/// Works on all tasks, a few at once, each worker on one at a time; the results in the tasks' order.
///
/// # Panics
/// When the work does.
pub fn at_once<'t, W: Sync, T: Sync, R: Send>(
    workers: &[W],
    tasks: &'t [T],
    work: impl Fn(usize, &'t T, &W) -> R + Sync,
) -> Vec<R> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for worker in workers {
            let (next, done, work) = (&next, &done, &work);
            scope.spawn(move || {
                loop {
                    let number = next.fetch_add(1, Ordering::SeqCst);
                    let Some(task) = tasks.get(number) else { break };
                    let result = work(number, task, worker);
                    done.lock().expect("no worker panicked").push((number, result));
                }
            });
        }
    });
    let mut done = done.into_inner().expect("no worker panicked");
    done.sort_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, result)| result).collect()
}
