//! ichor beside real Helm, command by command.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use test_support::place::ichor;

use super::made::{Helm, driver_of};

/// One command line of Helm's.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) words: Vec<String>,
    driver: &'static str,
    zone: &'static str,
    origins: Vec<Origin>,
}

/// Where ichor reads the records from.
#[derive(Clone, Debug)]
pub(super) enum Origin {
    Live,
    Dump(PathBuf),
}

impl Case {
    pub(super) fn new(words: &[&str]) -> Self {
        let words = words.iter().map(|&word| word.to_owned()).collect();
        Self { words, driver: "secret", zone: "UTC", origins: Vec::new() }
    }

    pub(super) fn driver(mut self, driver: &'static str) -> Self {
        self.driver = driver;
        self
    }

    fn zone(mut self, zone: &'static str) -> Self {
        self.zone = zone;
        self
    }

    pub(super) fn variables(&self) -> [(&'static str, &'static str); 2] {
        [("HELM_DRIVER", self.driver), ("TZ", self.zone)]
    }
}

/// All comparisons.
pub(super) struct Comparison<'a> {
    helm: &'a Helm,
    cases: Vec<Case>,
}

impl<'a> Comparison<'a> {
    pub(super) fn new(helm: &'a Helm) -> Self {
        Self { helm, cases: Vec::new() }
    }

    /// Every form of every command about one release.
    pub(super) fn release(&mut self, namespace: &str, name: &str, origins: &[Origin]) {
        let mut add = |words: &[&str]| {
            let words: Vec<&str> = words.iter().copied().chain([name, "-n", namespace]).collect();
            let mut case = Case::new(&words).driver(driver_of(namespace));
            case.origins = origins.to_vec();
            self.cases.push(case);
        };
        for output in ["table", "json", "yaml"] {
            add(&["history", "-o", output]);
            add(&["status", "-o", output]);
            add(&["get", "values", "-o", output]);
            add(&["get", "values", "--all", "-o", output]);
        }
        add(&["history", "--max", "2"]);
        add(&["status", "--show-desc"]);
        add(&["status", "--revision", "1"]);
        add(&["get", "values", "--revision", "2"]);
        add(&["get", "manifest"]);
        add(&["get", "manifest", "--revision", "1"]);
        add(&["get", "hooks"]);
        add(&["get", "notes"]);
    }

    /// Every form of `list`.
    pub(super) fn list(&mut self, namespace: Option<&str>, origins: &[Origin]) {
        let flags: [&[&str]; 27] = [
            &[],
            &["-a"],
            &["--all", "-o", "json"],
            &["--all", "-o", "yaml"],
            &["-o", "json"],
            &["--uninstalled"],
            &["--superseded", "-o", "json"],
            &["--uninstalling"],
            &["--deployed"],
            &["--failed"],
            &["--pending"],
            &["--failed", "--pending", "--superseded"],
            &["-a", "-d"],
            &["-a", "-r"],
            &["-a", "--date", "--reverse"],
            &["-q"],
            &["-a", "--short", "-o", "json"],
            &["-a", "-q", "-o", "yaml"],
            &["-a", "--no-headers"],
            &["-a", "--time-format", "2006-01-02 15:04:05 Z0700 MST"],
            &["-a", "-m", "3"],
            &["-a", "--max", "3", "--offset", "2"],
            &["-a", "--offset", "100"],
            &["-a", "-f", "^(stuck|p0)"],
            &["-a", "-l", "team=core"],
            &["-a", "--selector", "team in (core, x),tier!=web"],
            &["-a", "-l", "!team,status notin (failed)", "-o", "json"],
        ];
        let scope = namespace.map_or_else(|| vec!["-A"], |namespace| vec!["-n", namespace]);
        let drivers = match namespace {
            Some(namespace) => vec![driver_of(namespace)],
            None => vec!["secret", "configmap"],
        };
        for driver in drivers {
            for (index, flags) in flags.iter().enumerate() {
                let words: Vec<&str> = ["list"]
                    .into_iter()
                    .chain(flags.iter().copied())
                    .chain(scope.clone())
                    .collect();
                let zones = ["UTC", "Europe/Berlin", "Asia/Kolkata"];
                let zone = zones.get(index % zones.len()).copied().unwrap_or("UTC");
                let mut case = Case::new(&words).driver(driver).zone(zone);
                case.origins = origins.to_vec();
                self.cases.push(case);
            }
        }
    }

    /// Runs everything and fails with all differences.
    pub(super) fn finish(self) {
        let different: Vec<String> = each(&self.cases, |case| {
            let mut theirs = self.helm.answer(case);
            theirs.stdout = settled(case, theirs.stdout);
            let mut all = String::new();
            for origin in &case.origins {
                let (title, mut ours) = self.ours(case, origin);
                ours.stdout = settled(case, ours.stdout);
                all.extend(difference(&title, &theirs, &ours));
            }
            (!all.is_empty()).then_some(all)
        });
        let origins: usize = self.cases.iter().map(|case| case.origins.len()).sum();
        eprintln!("{} commands of Helm compared with {origins} of ichor", self.cases.len());
        assert!(
            different.is_empty(),
            "{} commands differ\n{}",
            different.len(),
            different.join("\n")
        );
    }

    /// The same of ichor; its command line is Helm's with `get` left out.
    fn ours(&self, case: &Case, origin: &Origin) -> (String, Output) {
        let mut words: Vec<&str> = vec!["release"];
        let mut wanted = case.words.iter().map(String::as_str).peekable();
        let first = wanted.next_if(|&word| word != "get");
        if first.is_none() {
            let _get = wanted.next();
        }
        words.extend(first.into_iter().chain(wanted));
        let shows_secrets =
            matches!(words.get(1), Some(&"status" | &"values" | &"manifest" | &"hooks"));
        if shows_secrets {
            words.push("--show-secrets");
        }
        let mut command = Command::new(ichor());
        command.env_clear().env("HOME", &self.helm.home).env("TZ", case.zone).stdin(Stdio::null());
        let path = match origin {
            Origin::Live => {
                command.env("KUBECONFIG", &self.helm.kubeconfig).env("HELM_DRIVER", case.driver);
                None
            }
            Origin::Dump(path) => Some(path.display().to_string()),
        };
        if let Some(path) = &path {
            words.extend(["--from", path, "--driver", case.driver]);
        }
        let output = command.args(&words).output().unwrap();
        (format!("ichor {}", words.join(" ")), output)
    }
}

/// An answer with what Helm leaves open in one order: releases of the same second when sorted by
/// date, revisions of the same name when superseded ones are listed. Go's sort is not stable, and
/// what it sorts comes out of a map.
fn settled(case: &Case, stdout: Vec<u8>) -> Vec<u8> {
    let has = |flags: &[&str]| case.words.iter().any(|word| flags.contains(&&**word));
    if has(&["-d", "--date"]) {
        let text = String::from_utf8_lossy(&stdout).into_owned();
        let second = |line: &str| {
            line.split('\t').nth(3).and_then(|time| time.get(..19)).unwrap_or_default().to_owned()
        };
        let mut lines: Vec<&str> = text.lines().collect();
        for group in lines.chunk_by_mut(|a, b| second(a) == second(b)) {
            group.sort_unstable();
        }
        return lines.join("\n").into_bytes();
    }
    if has(&["--superseded"]) && has(&["json"]) {
        let mut items: Vec<serde_json::Value> = serde_json::from_slice(&stdout).unwrap();
        items.sort_by_key(|item| {
            ["name", "namespace", "revision"].map(|field| item[field].to_string())
        });
        return serde_json::to_vec(&items).unwrap();
    }
    stdout
}

/// Does something for each case, two at a time; the results that there are, in order.
pub(super) fn each<T: Send>(cases: &[Case], work: impl Fn(&Case) -> Option<T> + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(case) = cases.get(index) else { return };
                    if let Some(result) = work(case) {
                        let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
                        results.push((index, result));
                    }
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

/// What two answers do not have in common: exit status, output, the error's line.
pub(super) fn difference(title: &str, theirs: &Output, ours: &Output) -> Option<String> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut found = String::new();
    if theirs.status.code() != ours.status.code() {
        found.push_str(&format!("exit {:?}, not {:?}\n", ours.status.code(), theirs.status.code()));
    }
    if theirs.stdout != ours.stdout {
        found.extend(test_support::difference::first(&theirs.stdout, &ours.stdout));
    }
    let error = |output: &Output| {
        let text = text(&output.stderr);
        text.lines().find(|line| line.starts_with("Error: ")).map(str::to_owned)
    };
    if error(theirs) != error(ours) {
        found.push_str(&format!("{:?}, not {:?}\n", error(ours), error(theirs)));
    }
    (!found.is_empty()).then(|| format!("{title}\n{found}"))
}
