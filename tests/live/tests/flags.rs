//! Every flag of Helm's commands is taken by ichor's, or `flags.txt` says why not; and ichor's usage
//! has as many arguments.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use live::Program;
use plane::support::or_skip;
use test_support::sealed::Outcome;

/// Commands that are below `release` here.
const RELEASE: [&str; 14] = [
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

/// Commands that are below `chart` here.
const CHART: [&str; 20] = [
    "template",
    "lint",
    "package",
    "pull",
    "push",
    "verify",
    "show all",
    "show chart",
    "show crds",
    "show readme",
    "show values",
    "dependency build",
    "dependency list",
    "dependency update",
    "repo add",
    "repo index",
    "repo list",
    "repo remove",
    "repo update",
    "registry login",
];

/// A command of Helm's, with what stands before it in ichor.
fn commands() -> impl Iterator<Item = (&'static str, &'static str)> {
    let release = RELEASE.into_iter().map(|command| ("release", command));
    let chart = CHART.into_iter().chain(["registry logout"]).map(|command| {
        if command.starts_with("registry ") { ("", command) } else { ("chart", command) }
    });
    release.chain(chart)
}

fn run(program: Program, (group, command): (&str, &str), more: &[&str]) -> Outcome {
    let group = if program == Program::Ichor { group } else { "" };
    let words = [group].into_iter().chain(command.split(' ')).filter(|word| !word.is_empty());
    // No cluster is asked.
    program.sealed(Path::new("none")).run(words.chain(more.iter().copied()))
}

fn help(program: Program, command: (&str, &str)) -> String {
    String::from_utf8_lossy(&run(program, command, &["--help"]).stdout).into_owned()
}

/// The flags in a help text, short ones too; each with whether a value follows it.
fn flags(text: &str) -> BTreeMap<String, bool> {
    let told = text.lines().filter_map(|line| {
        let line = line.trim_start();
        let is_short = line.starts_with('-') && line.get(2..3) == Some(",");
        (is_short || line.starts_with("--")).then(|| line.split("   ").next().unwrap_or(line))
    });
    told.flat_map(|line| {
        // What may be left out is given with an equals sign.
        let has_value = line.split(' ').any(|word| !word.starts_with('-')) && !line.contains("[=");
        let words = line.split([' ', ',', '=', '[']).filter(|word| word.starts_with('-'));
        words.map(move |word| (word.to_owned(), has_value))
    })
    .collect()
}

/// How many arguments the usage names after the command.
fn arguments(text: &str, (_, command): (&str, &str)) -> usize {
    let usage = text.split_once("Usage:").map(|(_, after)| after.trim_start());
    let line = usage.and_then(|usage| usage.lines().next()).unwrap_or_default();
    let (_, mut rest) = line.split_once(command).unwrap_or_default();
    let (mut count, mut depth) = (0, 0);
    while let Some(word) = rest.split_whitespace().next() {
        let is_argument = !matches!(word, "[flags]" | "[OPTIONS]" | "[...]");
        count += usize::from(depth == 0 && is_argument);
        depth += word.matches(['[', '<']).count();
        depth = depth.saturating_sub(word.matches([']', '>']).count());
        rest = rest.trim_start().get(word.len()..).unwrap_or_default();
    }
    count
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
    let (mut faults, mut compared, mut hidden) = (Vec::new(), 0, BTreeSet::new());
    for command in commands() {
        let (helm, ichor) = (help(Program::Helm, command), help(Program::Ichor, command));
        let (wanted, there) = (flags(&helm), flags(&ichor));
        assert!(wanted.contains_key("--namespace"), "{command:?}");
        compared += wanted.len();
        for (flag, has_value) in wanted.iter().filter(|(flag, _)| !there.contains_key(*flag)) {
            // It may be taken and not be told.
            let given: &[&str] =
                if *has_value { &[flag, "1", "--help"] } else { &[flag, "--help"] };
            if run(Program::Ichor, command, given).code == Some(0) {
                hidden.insert(flag.clone());
                continue;
            }
            match told.get_mut(flag) {
                Some(count) => *count += 1,
                None => faults.push(format!("{command:?} has no {flag}")),
            }
        }
        let (wanted, there) = (arguments(&helm, command), arguments(&ichor, command));
        if there < wanted {
            faults.push(format!("{command:?}: the usage has {there} arguments, Helm's {wanted}"));
        }
    }
    let there = told.iter().filter(|(_, count)| **count == 0);
    faults.extend(there.map(|(flag, _)| format!("{flag} is there now: take it out of the table")));
    // The check sees a flag that is not there.
    assert_eq!(run(Program::Ichor, ("chart", "pull"), &["--no-such", "--help"]).code, Some(1));
    println!("{compared} flags; taken and not told: {hidden:?}");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
