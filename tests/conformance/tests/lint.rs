//! `ichor chart lint` against `helm lint`, both run as programs in one folder.
//!
//! The files in `lint/` hold cases:
//!
//! ```text
//! === NAME FLAGS           a case; the flags are optional
//! --- PATH                 a file of its chart, up to the next line of this kind
//! --- PATH/                an empty folder
//! --- PATH none            no such file, where the faultless chart below has one
//! ```
//!
//! What a case does not say is taken from a chart without faults. `\u{…}` in a line stands for
//! that character.
#![allow(clippy::print_stderr, reason = "a test program's report")]

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};
use test_support::sealed::Sealed;
use test_support::{difference, peer, place};

/// A chart in which there is nothing to find.
const FAULTLESS: [(&str, &str); 3] = [
    (
        "Chart.yaml",
        "apiVersion: v2\nname: chart\nversion: 1.0.0\nicon: https://example.org/icon.svg\n",
    ),
    ("values.yaml", "a: 1\n"),
    (
        "templates/map.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\n",
    ),
];

#[derive(Clone, Debug)]
struct Case {
    name: String,
    flags: Vec<String>,
    files: BTreeMap<String, String>,
}

fn read(path: &Path) -> io::Result<Vec<Case>> {
    let mut cases: Vec<Case> = Vec::new();
    let mut file: Option<String> = None;
    for (line, number) in fs::read_to_string(path)?.lines().zip(1..) {
        let wrong = || io::Error::other(format!("{}:{number}: {line}", path.display()));
        if let Some(head) = line.strip_prefix("=== ") {
            let mut words = head.split(' ').map(str::to_owned);
            cases.push(Case {
                name: words.next().ok_or_else(wrong)?,
                flags: words.collect(),
                files: FAULTLESS.map(|(name, text)| (name.to_owned(), text.to_owned())).into(),
            });
            file = None;
        } else if let Some(head) = line.strip_prefix("--- ") {
            let files = &mut cases.last_mut().ok_or_else(wrong)?.files;
            if let Some(name) = head.strip_suffix(" none") {
                files.remove(name).ok_or_else(wrong)?;
                file = None;
            } else {
                files.insert(head.to_owned(), String::new());
                file = Some(head.to_owned());
            }
        } else if let Some(name) = &file {
            let files = &mut cases.last_mut().ok_or_else(wrong)?.files;
            let text = files.get_mut(name).ok_or_else(wrong)?;
            text.push_str(&characters(line).ok_or_else(wrong)?);
            text.push('\n');
        } else if !(line.is_empty() || line.starts_with('#')) {
            return Err(wrong());
        }
    }
    Ok(cases)
}

/// Puts characters in the place of their `\u{…}`.
fn characters(line: &str) -> Option<String> {
    let mut parts = line.split("\\u{");
    let mut text = parts.next()?.to_owned();
    for part in parts {
        let (code, rest) = part.split_once('}')?;
        text.push(char::from_u32(u32::from_str_radix(code, 16).ok()?)?);
        text.push_str(rest);
    }
    Some(text)
}

fn write(case: &Case, folder: &Path) -> io::Result<()> {
    for (name, text) in &case.files {
        let path = folder.join(name);
        if name.ends_with('/') {
            fs::create_dir_all(path)?;
            continue;
        }
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        // A blank line before the next case is not part of the file.
        let text =
            text.strip_suffix("\n\n").map_or_else(|| text.clone(), |text| format!("{text}\n"));
        fs::write(path, text)?;
    }
    Ok(())
}

fn compare(case: &Case) -> Result<(), Failed> {
    let helm = peer::helm().map_err(|missing| missing.to_string())?;
    let folder = tempfile::tempdir()?;
    write(case, &folder.path().join("chart"))?;
    let run = |program: Sealed, command: &[&str]| {
        let flags = case.flags.iter().map(String::as_str);
        program.in_folder(folder.path()).run(command.iter().copied().chain(["chart"]).chain(flags))
    };
    let theirs = run(Sealed::new(&helm), &["lint"]);
    let ours = run(Sealed::ichor(), &["chart", "lint"]);
    if let Some(difference) = difference::first(&theirs.stdout, &ours.stdout) {
        return Err(difference.into());
    }
    if theirs.error_text() != ours.error_text() || theirs.code != ours.code {
        let show = |outcome: &test_support::sealed::Outcome| {
            format!("{:?}: {}", outcome.code, outcome.error_text().unwrap_or_default())
        };
        return Err(format!("Helm {}\nours {}", show(&theirs), show(&ours)).into());
    }
    Ok(())
}

fn main() -> ExitCode {
    if let Err(missing) = peer::helm() {
        missing.excuse();
        return libtest_mimic::run(&Arguments::from_args(), Vec::new()).exit_code();
    }
    let folder = place::repository().join("tests/conformance/lint");
    let cases = fs::read_dir(folder).and_then(|entries| {
        let mut cases = Vec::new();
        for entry in entries {
            cases.extend(read(&entry?.path())?);
        }
        Ok(cases)
    });
    let cases = match cases {
        Ok(cases) => cases,
        Err(error) => {
            eprintln!("Error: {error}");
            return ExitCode::FAILURE;
        }
    };
    let trials = cases
        .into_iter()
        .map(|case| Trial::test(case.name.clone(), move || compare(&case)))
        .collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
