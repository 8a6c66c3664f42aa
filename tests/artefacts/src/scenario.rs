//! Scenarios: what Helm and ichor do, each in a folder of its own, side by side.
//!
//! ```text
//! # a comment
//! file PATH                write a file; its lines follow, each after a bar and a blank
//! | apiVersion: v2
//! run COMMAND              run `helm COMMAND`, and `ichor chart COMMAND`
//! fails COMMAND            the same, and both have to fail
//! silent COMMAND           run it, and do not compare what is said
//! other COMMAND            run it with the other program: ichor where Helm was, and Helm where ichor was
//! ours COMMAND             ichor alone; it has to fail, and leave the folder as it is
//! copy FROM TO             copy a file
//! remove PATH              remove a file or folder
//! tamper PATH              append a byte to a file
//! input TEXT               what the next command reads from standard input
//! ```
//!
//! In commands and files `$HTTP`, `$HTTPS` and `$REGISTRY` stand for `127.0.0.1:PORT` of the server of
//! the folder `www` and of the registry (`$LOCKED`: the one with a password), `$SIDE` for a word that
//! differs between the two, `$KEYS` for the folder of keyrings, `$CA` for the server's authority.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use test_support::{difference, peer, place};

use crate::compare;
use crate::registry::Registry;
use crate::server::Server;

/// Words for the sides, as long as each other: they stand in tables.
const THEIRS: &str = "side-of-helm";
const OURS: &str = "side-of-ours";

/// What scenarios share: servers and keys.
#[derive(Debug)]
pub struct Stage {
    /// The server; one after the other uses it.
    pub server: Server,
    /// A registry without password.
    pub registry: Option<Registry>,
    /// A registry with one.
    pub locked: Option<Registry>,
    /// The folder of keyrings.
    pub keys: PathBuf,
}

/// What a command left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Outcome {
    command: String,
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

/// A run of all steps by one program.
struct Side<'a> {
    stage: &'a Stage,
    name: &'static str,
    /// The program of this side, and that of the other.
    programs: [PathBuf; 2],
    world: tempfile::TempDir,
    input: String,
    outcomes: Vec<Outcome>,
}

/// Runs a scenario by both and compares what they say and leave.
///
/// # Errors
/// The differences, or why there are none.
///
/// # Panics
/// When a file of the test itself cannot be written.
pub fn play(text: &str, stage: &Stage) -> Result<(), String> {
    let helm = peer::helm().map_err(|missing| missing.to_string())?;
    let ichor = place::ichor().to_owned();
    let sides = [(THEIRS, [helm.clone(), ichor.clone()]), (OURS, [ichor, helm])];
    let mut sides = sides.map(|(name, programs)| {
        let world = tempfile::tempdir().expect("a folder");
        Side { stage, name, programs, world, input: String::new(), outcomes: Vec::new() }
    });
    for side in &mut sides {
        side.play(text)?;
    }
    let [theirs, ours] = &sides;
    let mut differences = Vec::new();
    for (theirs, ours) in theirs.outcomes.iter().zip(&ours.outcomes) {
        let show = |outcome: &Outcome| {
            format!("exit {:?}\n{}--\n{}", outcome.code, outcome.stdout, outcome.stderr)
        };
        if let Some(first) = difference::first(show(theirs).as_bytes(), show(ours).as_bytes()) {
            differences.push(format!("{}: {first}", theirs.command));
        }
    }
    let (theirs, ours) = (theirs.files(), ours.files());
    let names: BTreeSet<&String> = theirs.keys().chain(ours.keys()).collect();
    for name in names {
        let of = |side: &BTreeMap<String, String>| side.get(name).cloned().unwrap_or("none".into());
        if let Some(first) = difference::first(of(&theirs).as_bytes(), of(&ours).as_bytes()) {
            differences.push(format!("file {name}: {first}"));
        }
    }
    if differences.is_empty() { Ok(()) } else { Err(differences.join("\n")) }
}

impl Side<'_> {
    fn fill(&self, text: &str) -> String {
        let host = |port: u16| format!("127.0.0.1:{port}");
        let registry = |registry: &Option<Registry>| {
            registry.as_ref().map(|registry| registry.host.clone()).unwrap_or_default()
        };
        text.replace("$HTTPS", &host(self.stage.server.https))
            .replace("$HTTP", &host(self.stage.server.http))
            .replace("$REGISTRY", &registry(&self.stage.registry))
            .replace("$LOCKED", &registry(&self.stage.locked))
            .replace("$SIDE", self.name)
            .replace("$KEYS", &self.stage.keys.to_string_lossy())
            .replace("$CA", "ca.crt")
    }

    /// What is there, as both sides have it.
    fn mask(&self, text: &str) -> String {
        text.replace(&*self.world.path().to_string_lossy(), "WORLD").replace(self.name, "SIDE")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.world.path().join(self.fill(name))
    }

    fn play(&mut self, text: &str) -> Result<(), String> {
        let root = self.world.path().to_owned();
        fs::create_dir_all(root.join("www")).expect("a folder");
        fs::write(root.join("ca.crt"), self.stage.server.authority()).expect("a file");
        self.stage.server.serve(&root.join("www"));
        let mut file: Option<(PathBuf, String)> = None;
        for line in text.lines() {
            if let Some(content) = line.strip_prefix('|') {
                let content = self.fill(content.strip_prefix(' ').unwrap_or(content));
                let (_, text) = file.as_mut().ok_or("a line of no file")?;
                text.push_str(&content);
                text.push('\n');
                continue;
            }
            write(file.take());
            let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
            match verb {
                "file" => file = Some((self.path(rest), String::new())),
                "input" => self.input = format!("{rest}\n"),
                "copy" => {
                    let (from, to) = rest.split_once(' ').ok_or("copy FROM TO")?;
                    let to = self.path(to);
                    fs::create_dir_all(to.parent().expect("a folder")).expect("a folder");
                    fs::copy(self.path(from), to).map_err(|error| format!("{line}: {error}"))?;
                }
                "remove" => remove(&self.path(rest)),
                "tamper" => {
                    let mut bytes =
                        fs::read(self.path(rest)).map_err(|e| format!("{line}: {e}"))?;
                    bytes.push(0);
                    fs::write(self.path(rest), bytes).expect("a file");
                }
                "run" | "fails" | "other" | "silent" => {
                    let mut outcome = self.run(rest, verb == "other");
                    if verb == "fails" && outcome.code == Some(0) {
                        return Err(format!("{}: {rest} did not fail", self.name));
                    }
                    if verb != "fails" && outcome.code != Some(0) {
                        let Outcome { stdout, stderr, .. } = &outcome;
                        return Err(format!("{}: {rest} failed: {stdout}{stderr}", self.name));
                    }
                    if verb == "silent" {
                        outcome.stdout.clear();
                        outcome.stderr.clear();
                    }
                    self.outcomes.push(outcome);
                }
                "ours" if self.name == OURS => self.refuses(rest)?,
                "" | "#" | "ours" => {}
                _ => return Err(format!("what is {line:?}?")),
            }
        }
        write(file);
        Ok(())
    }

    /// Runs a command that only ichor refuses; nothing may be left of it.
    fn refuses(&mut self, command: &str) -> Result<(), String> {
        let before = self.files();
        let outcome = self.run(command, false);
        if outcome.code == Some(0) {
            return Err(format!("{command} was not refused"));
        }
        if outcome.stderr.contains("secret") {
            return Err(format!("{command} tells the password: {}", outcome.stderr));
        }
        let after = self.files();
        let changed = after.iter().find(|(name, text)| before.get(*name) != Some(text));
        match changed {
            Some((name, _)) => Err(format!("{command} was refused, and left {name}")),
            None => Ok(()),
        }
    }

    fn run(&mut self, command: &str, by_other: bool) -> Outcome {
        let filled = self.fill(command);
        let words = filled.split(' ').filter(|word| !word.is_empty());
        let root = self.world.path();
        let home = root.join("home");
        let is_ichor = (self.name == OURS) != by_other;
        let mut process = Command::new(&self.programs[usize::from(by_other)]);
        if is_ichor && !filled.starts_with("registry ") {
            process.arg("chart");
        }
        process
            .args(words)
            .env_clear()
            .env("HOME", &home)
            .env("XDG_CONFIG_HOME", home.join("config"))
            .env("XDG_CACHE_HOME", home.join("cache"))
            .env("TMPDIR", root.join("tmp"))
            .env("TZ", "UTC")
            .env("KUBECONFIG", root.join("none"))
            .current_dir(root)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        fs::create_dir_all(root.join("tmp")).expect("a folder");
        let mut child = process.spawn().expect("the program starts");
        {
            use std::io::Write as _;
            let mut stdin = child.stdin.take().expect("an input");
            drop(stdin.write_all(std::mem::take(&mut self.input).as_bytes()));
        }
        let output = child.wait_with_output().expect("an output");
        drop(fs::remove_dir_all(root.join("tmp")));
        let text = |bytes: &[u8]| {
            let text = self.mask(&String::from_utf8_lossy(bytes));
            let kept = text.split_inclusive('\n').filter(|line| !line.starts_with("hint: "));
            in_order(kept.map(compare::mask_line).collect())
        };
        Outcome {
            command: command.to_owned(),
            code: output.status.code(),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
        }
    }

    fn files(&self) -> BTreeMap<String, String> {
        let all = compare::folder(self.world.path());
        all.into_iter().map(|(name, text)| (self.mask(&name), self.mask(&text))).collect()
    }
}

/// Lines that tell of a repository each, sorted: Helm asks them side by side.
fn in_order(mut lines: Vec<String>) -> String {
    let is_one = |line: &String| line.starts_with("...");
    let mut told: Vec<String> = lines.iter().filter(|line| is_one(line)).cloned().collect();
    told.sort();
    for (to, from) in lines.iter_mut().filter(|line| is_one(line)).zip(told) {
        *to = from;
    }
    lines.concat()
}

fn write(file: Option<(PathBuf, String)>) {
    if let Some((path, text)) = file {
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    }
}

fn remove(path: &Path) {
    if path.is_dir() {
        fs::remove_dir_all(path).expect("a folder");
    } else {
        drop(fs::remove_file(path));
    }
}
