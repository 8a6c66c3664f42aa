//! The README's transcript is what the program prints. Where a block has a line of three dots, lines
//! are left out. `ICHOR_BLESS=1` puts the plan's digest of today into it.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "test code: a panic is how a test fails"
)]

use std::ffi::OsString;

use ichor_cli::{Buffer, Environment, Ui, run};
use test_support::place;

/// What stands before the program's own arguments.
const STARTS: [&str; 2] = [
    "cargo run --profile quick --no-default-features --features offline -- ",
    "target/quick/ichor ",
];

/// The blocks that begin with such a command: the command's arguments, and what it prints.
fn blocks(readme: &str) -> Vec<(String, Vec<&str>)> {
    let blocks = readme.split("```console\n").skip(1).filter_map(|rest| rest.split("\n```").next());
    blocks
        .filter_map(|block| {
            let mut lines = block.lines();
            let mut command = lines.next()?.strip_prefix("$ ")?.to_owned();
            while let Some(begun) = command.strip_suffix('\\') {
                command = format!("{}{}", begun, lines.next()?.trim_start());
            }
            let arguments = STARTS.iter().find_map(|start| command.strip_prefix(start))?;
            Some((arguments.to_owned(), lines.collect()))
        })
        .collect()
}

/// Whether lines are as expected, where three dots stand for any.
fn matches(expected: &[&str], actual: &[&str]) -> bool {
    match expected.split_first() {
        None => actual.is_empty(),
        Some((first, rest)) if *first == "…" => {
            (0..=actual.len()).any(|skipped| matches(rest, &actual[skipped..]))
        }
        Some((first, rest)) => actual
            .split_first()
            .is_some_and(|(line, others)| line == first && matches(rest, others)),
    }
}

fn digest(text: &str) -> Option<&str> {
    let rest = text.split_once("--accept-cilium-diff=sha256:")?.1;
    rest.get(..64).filter(|digest| digest.chars().all(|c| c.is_ascii_hexdigit()))
}

#[test]
fn the_transcript_is_what_is_printed() {
    let root = place::repository();
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    // A folder like the repository, to which the rehearsal may write.
    let folder = tempfile::tempdir().unwrap();
    for name in ["charts", "examples"] {
        std::os::unix::fs::symlink(root.join(name), folder.path().join(name)).unwrap();
    }
    std::env::set_current_dir(folder.path()).unwrap();
    let blocks = blocks(&readme);
    assert!(blocks.len() >= 3, "the transcript");
    for (arguments, printed) in blocks {
        let (out, err) = (Buffer::default(), Buffer::default());
        let mut ui = Ui::new(Box::new(out.clone()), Box::new(err.clone()), false);
        let words = std::iter::once("ichor").chain(arguments.split_whitespace());
        let words: Vec<OsString> = words.map(Into::into).collect();
        run(words, &Environment::sealed([("HOME", "nowhere")]), &mut ui);
        let (out, err) = (out.bytes(), err.bytes());
        let actual = format!("{}{}", String::from_utf8_lossy(&out), String::from_utf8_lossy(&err));
        if std::env::var_os("ICHOR_BLESS").is_some()
            && let (Some(old), Some(new)) = (digest(&readme), digest(&actual))
        {
            std::fs::write(root.join("README.md"), readme.replace(old, new)).unwrap();
            return;
        }
        let lines: Vec<&str> = actual.lines().map(str::trim_end).collect();
        assert!(matches(&printed, &lines), "ichor {arguments}\n{actual}");
    }
}
