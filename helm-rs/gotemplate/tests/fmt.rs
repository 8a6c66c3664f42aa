//! `gotemplate::fmt` against expectations that Go's `fmt` wrote.
//!
//! Each line of a case file is `FUNCTION<tab>FORMAT<tab>ARGUMENTS<tab>EXPECTED`, texts
//! quoted as Go literals. `GOTEMPLATE_FMT_CASES` names another file to check.

#![allow(clippy::panic, clippy::expect_used, reason = "a broken case file stops the test")]

mod support;

use gotemplate::{Value, fmt, strconv};
use support::{parse_value, unquote};

#[test]
fn prints_as_go_does() {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cases/fmt.txt");
    let path = std::env::var("GOTEMPLATE_FMT_CASES").unwrap_or_else(|_| default.to_owned());
    let cases = std::fs::read_to_string(&path).expect("case file");
    let mut differences = 0;
    let mut count = 0;
    for line in cases.lines().filter(|line| !line.is_empty() && !line.starts_with("//")) {
        let fields: Vec<&str> = line.split('\t').collect();
        let [function, format, args, expected] = fields[..] else { panic!("case {line:?}") };
        let Value::List(args) = parse_value(args) else { panic!("arguments of {line:?}") };
        let actual = match function {
            "sprintf" => fmt::sprintf(&unquote(format), args.items()),
            "sprint" => fmt::sprint(args.items()),
            "sprintln" => fmt::sprintln(args.items()),
            _ => panic!("function of {line:?}"),
        };
        count += 1;
        if actual != unquote(expected) {
            differences += 1;
            if differences <= 20 {
                let actual = String::from_utf8_lossy(&strconv::quote(&actual)).into_owned();
                println!("{line}\n    got {actual}");
            }
        }
    }
    assert!(count > 0, "no cases in {path}");
    assert_eq!(differences, 0, "{differences} of {count} cases differ");
    println!("{count} cases");
}
