//! Lifecycles: what is done to one release from its first installation to its end, a command a line
//! in `lifecycles/NAME.txt`, each step by either program.

use std::path::{Path, PathBuf};

use plane::Plane;

use crate::objects::{self, Objects};
use crate::trial::kubectl;
use crate::{Program, chart, summary};

/// The lifecycle whose objects have one name in a cluster.
pub const CILIUM: &str = "cilium";

/// The commands of a lifecycle.
#[derive(Clone, Debug)]
pub struct Script {
    /// The file's name, and the chart's where the commands name no other.
    pub name: String,
    commands: Vec<Vec<String>>,
}

impl Script {
    /// Reads a lifecycle. `@` stands for the chart, `@/PATH` for a file of it, `@NAME` for what
    /// `paths` has, or else for another chart of this crate.
    ///
    /// # Panics
    /// When there is no such file.
    pub fn read(name: &str, paths: &[(&str, PathBuf)]) -> Self {
        let file = folder().join(format!("{name}.txt"));
        let text = std::fs::read_to_string(&file).expect("the lifecycle is there");
        let path = |word: &str| -> String {
            let Some(rest) = word.strip_prefix('@') else { return word.to_owned() };
            let (start, rest) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            let given = paths.iter().find(|(known, _)| *known == start);
            let start = match given {
                Some((_, path)) => path.clone(),
                None => chart(if start.is_empty() { name } else { start }),
            };
            format!("{}{rest}", start.to_string_lossy())
        };
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let commands = lines.map(|line| line.split_whitespace().map(path).collect()).collect();
        Self { name: name.to_owned(), commands }
    }

    /// How many commands there are.
    pub fn steps(&self) -> usize {
        self.commands.len()
    }

    /// A command in words, for reports.
    pub fn step(&self, step: usize) -> String {
        self.commands.get(step).map(|words| words.join(" ")).unwrap_or_default()
    }

    /// Who does which step: bit N is set where ichor does step N. All mixes but the one in which
    /// Helm does everything.
    pub fn mixes(&self) -> std::ops::Range<u64> {
        1..1 << self.steps()
    }

    /// The mixes in which the programs take turns. Together with ichor alone they have every pair of
    /// programs at every two steps that follow each other.
    pub fn turns(&self) -> [u64; 2] {
        let all = (1 << self.steps()) - 1;
        [0xAAAA_AAAA_AAAA_AAAA & all, 0x5555_5555_5555_5555 & all]
    }

    /// The mix in which ichor does everything.
    pub fn alone(&self) -> u64 {
        (1 << self.steps()) - 1
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("lifecycles")
}

/// The lifecycles of this crate's charts.
///
/// # Panics
/// When the folder cannot be read.
pub fn scripts() -> Vec<Script> {
    let mut names: Vec<String> = std::fs::read_dir(folder())
        .expect("the lifecycles are there")
        .flatten()
        .filter_map(|entry| Some(entry.path().file_stem()?.to_string_lossy().into_owned()))
        .filter(|name| name != CILIUM)
        .collect();
    names.sort();
    names.iter().map(|name| Script::read(name, &[])).collect()
}

/// One release that lives through a lifecycle, in a namespace of its own.
#[derive(Debug)]
pub struct Life<'l> {
    /// What is done to it.
    pub script: &'l Script,
    plane: &'l Plane,
    /// Who does which step, as in [`Script::mixes`].
    pub mix: u64,
    namespace: String,
    /// Whether nothing else is on the plane.
    is_alone: bool,
}

impl<'l> Life<'l> {
    /// A life in a namespace that is made for it; Cilium's is alone on the plane.
    pub fn new(plane: &'l Plane, script: &'l Script, mix: u64) -> Self {
        if script.name == CILIUM {
            let namespace = "kube-system".to_owned();
            return Self { script, plane, mix, namespace, is_alone: true };
        }
        let namespace = format!("{}-{mix:05x}", script.name);
        kubectl(plane, &["create", "namespace", &namespace]);
        // Pods need the account that a controller puts there.
        let account = ["--for=create", "serviceaccount/default", "--timeout=60s"];
        kubectl(plane, &[&["wait", "-n", &namespace][..], &account].concat());
        Self { script, plane, mix, namespace, is_alone: false }
    }

    /// The plane that it is on.
    pub fn plane(&self) -> &'l Plane {
        self.plane
    }

    /// Does a step; what the program said, without what differs from one life to the next. None when
    /// the life is over.
    pub fn live(&self, step: usize) -> Option<String> {
        let words = self.script.commands.get(step)?;
        let program = if self.mix >> step & 1 == 1 { Program::Ichor } else { Program::Helm };
        let mut arguments: Vec<&str> = words.iter().map(String::as_str).collect();
        arguments.extend(["-n", &self.namespace]);
        let outcome = program.run(&self.plane.kubeconfig(), &arguments);
        if self.is_alone {
            self.await_terminating_namespaces();
        }
        Some(self.masked(&summary(&outcome)))
    }

    /// Neither program waits for what it deleted to be gone, and how long a namespace takes to go is
    /// not the program's doing: the next step would meet it or not, by chance.
    fn await_terminating_namespaces(&self) {
        let named_by_phase =
            "jsonpath={range .items[*]}{.status.phase} {.metadata.name}{'\\n'}{end}";
        let namespaces = kubectl(self.plane, &["get", "namespaces", "-o", named_by_phase]);
        for name in namespaces.lines().filter_map(|line| line.strip_prefix("Terminating ")) {
            let wait = ["wait", "--for=delete", "namespace", name, "--timeout=60s"];
            kubectl(self.plane, &wait);
        }
    }

    fn masked(&self, text: &str) -> String {
        if self.is_alone { text.to_owned() } else { text.replace(&self.namespace, "(namespace)") }
    }

    /// What of a cluster is this life's.
    pub fn objects(&self, all: &Objects) -> Objects {
        if self.is_alone { all.clone() } else { objects::around(all, &self.namespace) }
    }

    /// The place in reports: which mix, as a word of `h` and `i`.
    pub fn title(&self) -> String {
        let who = |step| if self.mix >> step & 1 == 1 { 'i' } else { 'h' };
        format!("{} {}", self.script.name, (0..self.script.steps()).map(who).collect::<String>())
    }
}

impl Drop for Life<'_> {
    /// The namespace goes, so that reading all objects stays short.
    fn drop(&mut self) {
        if !self.is_alone && !std::thread::panicking() {
            kubectl(self.plane, &["delete", "namespace", &self.namespace, "--wait=false"]);
        }
    }
}
