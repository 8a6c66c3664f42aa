//! The manual: every command has an example, every page renders, and the reference names what there
//! is.
#![allow(
    clippy::unwrap_used,
    clippy::string_slice,
    reason = "test code: a panic is how a test fails"
)]

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use ichor_cli::{Buffer, Environment, Exit, Ui, run};
use test_support::{peer, place};

/// Every command without commands below it, as it is typed.
fn commands() -> Vec<(String, clap::Command)> {
    fn walk(command: &clap::Command, path: &str, found: &mut Vec<(String, clap::Command)>) {
        for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
            let path = format!("{path} {}", below.get_name());
            if below.has_subcommands() {
                walk(below, &path, found);
            } else {
                found.push((path, below.clone()));
            }
        }
    }
    let mut found = Vec::new();
    walk(&ichor_cli::command(), "ichor", &mut found);
    found
}

#[test]
fn every_command_has_examples_of_itself() {
    let mut without = Vec::new();
    for (path, command) in commands() {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let (_, examples) = help.split_once("Examples:\n").unwrap_or_default();
        let examples = examples.split("\n\n").next().unwrap_or_default();
        if !examples.lines().any(|line| line.contains(&path) && line.starts_with("  ")) {
            without.push(path);
        }
    }
    assert!(without.is_empty(), "without an example: {without:?}");
}

#[test]
fn every_page_renders() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("man/man1");
    let (out, err) = (Buffer::default(), Buffer::default());
    let mut ui = Ui::new(Box::new(out.clone()), Box::new(err.clone()), false);
    let arguments = ["ichor".into(), "man".into(), pages.clone().into()];
    assert_eq!(run(arguments, &Environment::sealed([]), &mut ui).code(), 0);
    let mut names: Vec<_> =
        std::fs::read_dir(&pages).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    let told = String::from_utf8(out.bytes()).unwrap();
    assert_eq!(told, format!("{} pages in {}\n", names.len(), pages.display()));
    assert!(names.len() > commands().len());
    assert!(err.bytes().is_empty());
    let man = match peer::program("man") {
        Ok(man) => man,
        Err(missing) => test_support::skip!(missing),
    };
    for page in names {
        let output = Command::new(&man)
            .args(["--warnings=w", "--encoding=UTF-8", "--local-file"])
            .arg(&page)
            .envs([("MANWIDTH", "100"), ("LC_ALL", "C.UTF-8"), ("MAN_KEEP_FORMATTING", "")])
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.is_empty(), "{}: {said}", page.display());
        let text = String::from_utf8_lossy(&output.stdout);
        for heading in ["NAME", "SYNOPSIS", "OPTIONS"] {
            assert!(text.contains(heading), "{}: {text}", page.display());
        }
    }
}

/// The program's own sources, with the place of each.
fn sources() -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut folders = vec![place::repository().join("cli/src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push((path.clone(), std::fs::read_to_string(path).unwrap()));
            }
        }
    }
    found
}

/// The first column of a table under a heading, without its marks.
fn first_column(page: &str, heading: &str) -> BTreeSet<String> {
    let (_, below) = page.split_once(&format!("\n## {heading}\n")).unwrap();
    let section = below.split("\n## ").next().unwrap();
    let cells = section.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
    cells.map(|cell| cell.replace('`', "")).collect()
}

#[test]
fn the_reference_has_every_variable_and_exit_code() {
    let page = std::fs::read_to_string(place::repository().join("docs/reference.md")).unwrap();
    // Every variable is asked of the environment by one of these, or under a name like these.
    let asked =
        ["variable(\"", "text(\"", "flag(\"", "bytes(b\"", "\"ICHOR_", "\"HELM_", "\"OTEL_"];
    let mut read = BTreeSet::new();
    for (path, source) in sources() {
        for start in asked {
            for (at, _) in source.match_indices(start) {
                let rest = source[at..].split_once('"').unwrap().1;
                let name = rest.split('"').next().unwrap().to_owned();
                let is_name = |c: char| c.is_ascii_uppercase() || c == '_';
                if name.len() > 1 && name.chars().all(is_name) {
                    read.insert(name);
                }
            }
        }
        // Nothing else asks the process.
        let is_environment = path.ends_with("environment.rs");
        assert!(is_environment || !source.contains("env::var"), "{}", path.display());
    }
    let mut told = first_column(&page, "Environment variables");
    told.remove("variable");
    assert_eq!(told, read, "docs/reference.md beside the sources");
    let codes = first_column(&page, "Exit codes");
    for exit in [Exit::Done, Exit::Error, Exit::No] {
        assert!(codes.contains(&exit.code().to_string()), "{exit:?}");
    }
}

/// Each page under `docs/` names only files and sections that are there.
#[test]
fn links_between_pages_lead_somewhere() {
    let root = place::repository();
    let mut pages = vec![root.join("README.md"), root.join("ARCHITECTURE.md")];
    pages.extend(std::fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path()));
    let anchors = |text: &str| -> BTreeSet<String> {
        let titles = text.lines().filter(|line| line.starts_with('#'));
        let title = |line: &str| line.trim_start_matches('#').trim().to_lowercase();
        let keep = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
        titles
            .map(|line| title(line).chars().filter(keep).collect::<String>().replace(' ', "-"))
            .collect()
    };
    let mut broken = Vec::new();
    for page in pages.iter().filter(|page| page.extension().is_some_and(|e| e == "md")) {
        let text = std::fs::read_to_string(page).unwrap();
        for (at, _) in text.match_indices("](") {
            let link = text[at + 2..].split(')').next().unwrap();
            if link.contains("://") {
                continue;
            }
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target =
                if file.is_empty() { page.clone() } else { page.parent().unwrap().join(file) };
            let is_there = if anchor.is_empty() {
                target.exists()
            } else {
                std::fs::read_to_string(&target).is_ok_and(|text| anchors(&text).contains(anchor))
            };
            if !is_there {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:?}");
}
