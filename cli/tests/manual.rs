//! The manual: every command has an example, every page renders, and the reference names what there
//! is.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how a test fails")]

use std::process::{Command, Stdio};

use ichor_cli::{Buffer, Environment, Ui, run};
use test_support::peer;

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
