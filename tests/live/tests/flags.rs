//! Every flag of Helm's release commands is a flag of ichor's, or `flags.txt` says why not.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use live::Program;
use plane::support::or_skip;

const COMMANDS: [&str; 14] = [
    "install",
    "upgrade",
    "rollback",
    "uninstall",
    "test",
    "get all",
    "get hooks",
    "get manifest",
    "get metadata",
    "get notes",
    "get values",
    "status",
    "history",
    "list",
];

/// The flags in a help text, short ones too.
fn flags(program: Program, command: &str) -> BTreeSet<String> {
    let mut words: Vec<&str> = command.split(' ').collect();
    words.push("--help");
    // No cluster is asked.
    let outcome = program.sealed(Path::new("none")).run(match program {
        Program::Helm => words,
        Program::Ichor => [&["release"], &words[..]].concat(),
    });
    let text = String::from_utf8_lossy(&outcome.stdout).into_owned();
    let told = text.lines().filter_map(|line| {
        let line = line.trim_start();
        line.starts_with('-').then(|| line.split("   ").next().unwrap_or(line).to_owned())
    });
    told.flat_map(|line| {
        let words = line.split([' ', ',', '=', '[']).filter(|word| word.starts_with('-'));
        words.map(str::to_owned).collect::<Vec<_>>()
    })
    .collect()
}

#[test]
fn every_flag_is_there_or_told() {
    if or_skip(plane::find_peer("helm")).is_none() {
        return;
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("flags.txt");
    let text = std::fs::read_to_string(file).expect("the table is there");
    // Each flag of the table, and how often it was missing.
    let mut told: BTreeMap<String, usize> = BTreeMap::new();
    for line in text.lines().filter(|line| line.starts_with("--")) {
        let (flags, _) = line.split_once(" - ").expect("a reason");
        told.extend(flags.split(',').map(|flag| (flag.to_owned(), 0)));
    }
    let mut faults = Vec::new();
    for command in COMMANDS {
        let (helm, ichor) = (flags(Program::Helm, command), flags(Program::Ichor, command));
        assert!(helm.contains("--namespace") && ichor.contains("--namespace"), "{command}");
        for flag in helm.difference(&ichor) {
            match told.get_mut(flag) {
                Some(count) => *count += 1,
                None => faults.push(format!("{command} has no {flag}")),
            }
        }
    }
    let there = told.iter().filter(|(_, count)| **count == 0);
    faults.extend(there.map(|(flag, _)| format!("{flag} is there now: take it out of the table")));
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
