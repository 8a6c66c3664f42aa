//! The program as a user meets it: each file under `cases/` holds command lines and what they
//! print.
//!
//! ```text
//! # Comment.
//! $ ichor chart show values charts/small
//! 0
//! > a line of standard output
//! ! a line of standard error
//! ```
//!
//! A command runs in process, in this folder, with a sealed environment; `NAME=value` in front of it
//! is part of that, as in a shell. `ICHOR_BLESS=1`
//! writes what commands print into the files, to be reviewed like code.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use ichor_cli::{Buffer, Environment, Ui, run};

/// One command and what it printed.
fn execute(line: &str) -> String {
    let words = words(line);
    let variables: Vec<_> = words.iter().map_while(|word| word.split_once('=')).collect();
    let arguments: Vec<OsString> = words.iter().skip(variables.len()).map(Into::into).collect();
    let always = [("PATH", "/usr/bin:/bin"), ("HOME", "nowhere")];
    let environment = Environment::sealed(always.into_iter().chain(variables))
        .with_input("fromInput: yes\n")
        .with_now(SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000));
    let (out, err) = (Buffer::default(), Buffer::default());
    let mut ui = Ui::new(Box::new(out.clone()), Box::new(err.clone()), false);
    let exit = run(arguments, &environment, &mut ui);
    let mut text = format!("$ {line}\n{}\n", exit.code());
    for (mark, buffer) in [('>', out), ('!', err)] {
        let bytes = buffer.bytes();
        let stream = String::from_utf8_lossy(&bytes);
        for line in stream.lines() {
            text.push_str(format!("{mark} {line}").trim_end());
            text.push('\n');
        }
        if !stream.is_empty() && !stream.ends_with('\n') {
            text.push(mark);
            text.push_str("\\ no line end\n");
        }
    }
    text
}

/// Splits at blanks; single quotes keep them.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    let mut open = false;
    for c in line.chars() {
        match c {
            '\'' => {
                quoted = !quoted;
                open = true;
            }
            ' ' if !quoted => {
                if open || words.last().is_some_and(|word| !word.is_empty()) {
                    words.push(String::new());
                }
                open = false;
            }
            c => {
                if let Some(word) = words.last_mut() {
                    word.push(c);
                }
            }
        }
    }
    words
}

#[test]
fn commands_print_what_their_files_say() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    std::env::set_current_dir(&folder).expect("the tests' folder");
    let bless = std::env::var_os("ICHOR_BLESS").is_some();
    let mut wrong = Vec::new();
    let mut files: Vec<_> =
        fs::read_dir("cases").expect("cases").map(|entry| entry.expect("a case").path()).collect();
    files.sort();
    for file in files {
        let expected = fs::read_to_string(&file).expect("a case's text");
        let mut actual = String::new();
        for line in expected.lines() {
            if let Some(command) = line.strip_prefix("$ ") {
                actual.push_str(&execute(command));
            } else if line.is_empty() || line.starts_with('#') {
                actual.push_str(line);
                actual.push('\n');
            }
        }
        if actual != expected {
            if bless {
                fs::write(&file, &actual).expect("the blessed case");
            } else {
                let difference = expected
                    .lines()
                    .zip(actual.lines())
                    .find(|(a, b)| a != b)
                    .map_or_else(String::new, |(a, b)| format!("\n  expected {a}\n  got      {b}"));
                wrong.push(format!("{}{difference}", file.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "run with ICHOR_BLESS=1 and review:\n{}", wrong.join("\n"));
}

#[test]
fn a_closed_pipe_ends_quietly() {
    struct Closed;
    impl std::io::Write for Closed {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let err = Buffer::default();
    let mut ui = Ui::new(Box::new(Closed), Box::new(err.clone()), false);
    let arguments = ["ichor", "completions", "bash"].map(Into::into);
    let exit = run(arguments, &Environment::sealed([]), &mut ui);
    assert_eq!((exit.code(), err.bytes()), (0, Vec::new()));
}

#[test]
fn the_definition_is_sound() {
    ichor_cli::command().debug_assert();
}
