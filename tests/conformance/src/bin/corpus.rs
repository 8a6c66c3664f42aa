//! Renders every chart below a folder with real Helm and with ichor, and compares.
//!
//! ```text
//! corpus FOLDER [--only TEXT] [--show N] [--table FILE]
//! ```
//!
//! The folder's first level names the projects. Each chart is rendered with its default values
//! and with each of its own test values (`ci/*values.yaml`). Helm runs twice: what differs between
//! its own two runs is generated and is not compared, everything else is, to the byte. Nothing of
//! the charts is kept.
#![allow(
    clippy::panic,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for people who run proofs; it reports on its own streams"
)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use test_support::sealed::{Outcome, Sealed};
use test_support::{difference, mask, peer, place};

/// One rendering to compare.
struct Case {
    project: String,
    chart: PathBuf,
    /// A values file of the chart's own, `None` for its defaults.
    values: Option<PathBuf>,
}

/// How a comparison ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    /// The same rendered text.
    Equal,
    /// The same error.
    EqualError,
    /// Helm's own two runs differ in more than single leaves, so that there is no one right text;
    /// the same set of lines was printed.
    Unordered,
    Different,
}

impl Verdict {
    const fn name(self) -> &'static str {
        match self {
            Self::Equal => "equal",
            Self::EqualError => "equal error",
            Self::Unordered => "equal lines (Helm's own order varies)",
            Self::Different => "DIFFERENT",
        }
    }
}

struct Options {
    folder: PathBuf,
    only: Option<String>,
    show: usize,
    table: Option<PathBuf>,
}

fn options() -> Result<Options, String> {
    let mut arguments = std::env::args().skip(1);
    let mut options = Options { folder: PathBuf::new(), only: None, show: 20, table: None };
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
        match argument.as_str() {
            "--only" => options.only = Some(value()?),
            "--show" => options.show = value()?.parse().map_err(|_| "--show takes a number")?,
            "--table" => options.table = Some(value()?.into()),
            _ if options.folder.as_os_str().is_empty() => options.folder = argument.into(),
            _ => return Err(format!("unknown argument {argument}")),
        }
    }
    if options.folder.is_dir() { Ok(options) } else { Err("corpus FOLDER [--only TEXT]".into()) }
}

fn main() -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(message) => {
            eprintln!("corpus: {message}");
            return ExitCode::from(2);
        }
    };
    let helm = peer::helm().expect("real Helm");
    let mut cases = cases(&options.folder);
    if let Some(only) = &options.only {
        cases.retain(|case| name(case, &options.folder).contains(only.as_str()));
    }
    let next = AtomicUsize::new(0);
    let shown = AtomicUsize::new(0);
    let rows = Mutex::new(BTreeMap::new());
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let name = name(case, &options.folder);
                    let (verdict, report) = compare(&helm, case);
                    if verdict == Verdict::Different
                        && shown.fetch_add(1, Ordering::Relaxed) < options.show
                    {
                        println!("== {name}\n{report}");
                    }
                    rows.lock().expect("no panic in another worker").insert(name, (case, verdict));
                }
            });
        }
    });
    let rows = rows.into_inner().expect("workers have ended");
    report(&rows, options.table.as_deref())
}

/// Prints the summary, writes the table, and gives the exit status.
fn report(rows: &BTreeMap<String, (&Case, Verdict)>, table: Option<&Path>) -> ExitCode {
    let mut counts = BTreeMap::new();
    let mut charts: BTreeMap<&Path, (&str, bool)> = BTreeMap::new();
    for (case, verdict) in rows.values() {
        *counts.entry(*verdict).or_insert(0) += 1;
        let entry = charts.entry(&case.chart).or_insert((&case.project, true));
        entry.1 &= *verdict != Verdict::Different;
    }
    if let Some(table) = table {
        let mut text = String::from("project\tchart\tversion\tequal\n");
        for (chart, (project, equal)) in &charts {
            let (name, version) = metadata(chart);
            let equal = if *equal { "yes" } else { "no" };
            let _ = writeln!(text, "{project}\t{name}\t{version}\t{equal}");
        }
        fs::write(table, text).expect("the table's folder is writable");
    }
    for (verdict, count) in &counts {
        println!("{count:6} {}", verdict.name());
    }
    let equal = charts.values().filter(|(_, equal)| *equal).count();
    let mut projects: Vec<_> = charts.values().map(|(project, _)| *project).collect();
    projects.dedup();
    println!("{} charts of {} projects, {equal} equal in every case", charts.len(), projects.len());
    let different = counts.get(&Verdict::Different).copied().unwrap_or(0);
    println!("{} passed, {different} failed", rows.len() - different);
    if different == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn name(case: &Case, folder: &Path) -> String {
    let chart = case.chart.strip_prefix(folder).unwrap_or(&case.chart).display().to_string();
    match &case.values {
        Some(values) => {
            format!("{chart} {}", values.file_name().unwrap_or_default().to_string_lossy())
        }
        None => chart,
    }
}

/// The charts below `folder`, not those inside the `charts/` of another one.
fn cases(folder: &Path) -> Vec<Case> {
    let mut charts = Vec::new();
    let mut projects: Vec<_> = fs::read_dir(folder)
        .expect("a readable folder")
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .collect();
    projects.sort();
    for project in projects {
        let name = project.file_name().unwrap_or_default().to_string_lossy().into_owned();
        find(&project, &mut |chart| charts.push((name.clone(), chart)));
    }
    let mut cases = Vec::new();
    for (project, chart) in charts {
        let mut values: Vec<PathBuf> = fs::read_dir(chart.join("ci"))
            .into_iter()
            .flatten()
            .filter_map(Result::ok)
            .map(|entry| entry.path())
            .filter(|path| path.to_string_lossy().ends_with("values.yaml"))
            .collect();
        values.sort();
        for values in std::iter::once(None).chain(values.into_iter().map(Some)) {
            cases.push(Case { project: project.clone(), chart: chart.clone(), values });
        }
    }
    cases
}

fn find(folder: &Path, found: &mut impl FnMut(PathBuf)) {
    if folder.join("Chart.yaml").is_file() {
        found(folder.to_path_buf());
        return;
    }
    let mut below: Vec<_> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .collect();
    below.sort();
    for path in below {
        find(&path, found);
    }
}

/// Name and version out of a `Chart.yaml`, by its plain lines.
fn metadata(chart: &Path) -> (String, String) {
    let text = fs::read_to_string(chart.join("Chart.yaml")).unwrap_or_default();
    let field = |key: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))
            .map(|value| value.split(" #").next().unwrap_or_default())
            .map(|value| value.trim().trim_matches(['"', '\'']).to_owned())
            .unwrap_or_default()
    };
    (field("name"), field("version"))
}

fn compare(helm: &Path, case: &Case) -> (Verdict, String) {
    let chart = case.chart.display().to_string();
    let mut arguments = vec!["rel".to_owned(), chart, "--namespace=spaces".to_owned()];
    if let Some(values) = &case.values {
        arguments.push(format!("--values={}", values.display()));
    }
    let limit = Duration::from_mins(3);
    let theirs = |_| {
        let verb = std::iter::once("template".to_owned());
        Sealed::new(helm).limit(limit).run(verb.chain(arguments.iter().cloned()))
    };
    let [first, second] = [0, 1].map(theirs);
    let verb = ["chart", "template"].map(str::to_owned).into_iter();
    let ours = Sealed::new(place::ichor()).limit(limit).run(verb.chain(arguments.iter().cloned()));
    judge(&first, &second, &ours)
}

fn judge(first: &Outcome, second: &Outcome, ours: &Outcome) -> (Verdict, String) {
    if first.code != Some(0) {
        let (theirs, our) = (first.error_text(), ours.error_text());
        if ours.code == first.code && theirs == our {
            return (Verdict::EqualError, String::new());
        }
        let sets =
            |text: &Option<String>| mask::as_set(text.as_deref().unwrap_or_default()).join("\n");
        if ours.code == first.code
            && (sets(&theirs) == sets(&our) || (first.error_text() != second.error_text()))
        {
            return (Verdict::Unordered, String::new());
        }
        return (
            Verdict::Different,
            format!("Helm: {:?} {theirs:?}\nours: {:?} {our:?}", first.code, ours.code),
        );
    }
    if ours.code != Some(0) {
        let error = String::from_utf8_lossy(&ours.stderr).into_owned();
        return (Verdict::Different, format!("Helm renders; ours: {:?} {error}", ours.code));
    }
    let [first, second, ours] = [first, second, ours]
        .map(|outcome| mask::certificates(&String::from_utf8_lossy(&outcome.stdout)));
    if first == ours || second == ours {
        return (Verdict::Equal, String::new());
    }
    let masked = masked(&first, &second, &ours);
    match difference::first(first.as_bytes(), masked.as_bytes()) {
        None => (Verdict::Equal, String::new()),
        Some(_) if first != second && mask::as_set(&first) == mask::as_set(&ours) => {
            (Verdict::Unordered, String::new())
        }
        Some(report) => (Verdict::Different, report),
    }
}

/// Our text with the leaves that Helm generates anew replaced by Helm's first ones: a line that
/// differs between Helm's two runs is generated in its middle, and there only.
fn masked(first: &str, second: &str, ours: &str) -> String {
    let (first, second): (Vec<_>, Vec<_>) =
        (first.split_inclusive('\n').collect(), second.split_inclusive('\n').collect());
    if first.len() != second.len() {
        return ours.to_owned();
    }
    let mut out = String::with_capacity(ours.len());
    for (index, line) in ours.split_inclusive('\n').enumerate() {
        match (first.get(index), second.get(index)) {
            (Some(one), Some(two)) if one != two && same_frame(one, two, line) => out.push_str(one),
            _ => out.push_str(line),
        }
    }
    out
}

/// Whether `ours` begins as both generated lines do, give or take what two random leaves may have
/// in common by chance (base64 of three bytes is four characters).
fn same_frame(one: &str, two: &str, ours: &str) -> bool {
    const CHANCE: usize = 8;
    let common = one.bytes().zip(two.bytes()).take_while(|(a, b)| a == b).count();
    let shared = one.bytes().zip(ours.bytes()).take_while(|(a, b)| a == b).count();
    shared + CHANCE >= common
}
