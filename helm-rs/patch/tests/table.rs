//! The table of cases under `cases/`: what changed on which side, the patch and the object after.
//!
//! Each file has a base object and cases; `original`, `modified` and `current` are operations of a
//! JSON patch on the base, none means the base itself. The expectations beside them were made by
//! the Go libraries (`hack/bless patch`) and are checked against them again when they are there.
//!
//! Exit status: 0 all equal, 2 something differs.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::exit,
    missing_docs,
    unreachable_pub,
    reason = "a test program"
)]

mod peer;

use std::path::PathBuf;

use serde_json::{Value, json};

use peer::{Answer, Peer, Request};

/// The fields of a case that say what was done, in the order in which they are written.
const INPUTS: [&str; 4] = ["name", "original", "modified", "current"];
const EXPECTATIONS: [&str; 6] = ["patch", "error", "panic", "result", "resultError", "resultPanic"];

fn files() -> Vec<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// One side of a case.
fn document(base: &Value, case: &Value, side: &str) -> String {
    let mut document = base.clone();
    if let Some(operations) = case.get(side) {
        let operations: json_patch::Patch = serde_json::from_value(operations.clone())
            .unwrap_or_else(|error| panic!("{side} of {case}: {error}"));
        json_patch::patch(&mut document, &operations)
            .unwrap_or_else(|error| panic!("{side} of {case}: {error}"));
    }
    document.to_string()
}

fn request(file: &Value, case: &Value) -> Request {
    let base = &file["base"];
    let word = |field: &str| base[field].as_str().unwrap_or_default().to_owned();
    Request {
        op: file["op"].as_str().unwrap_or("three-way").to_owned(),
        api_version: word("apiVersion"),
        kind: word("kind"),
        original: document(base, case, "original"),
        modified: document(base, case, "modified"),
        current: document(base, case, "current"),
        ..Request::default()
    }
}

/// What a case's file holds of an answer: documents as JSON, errors as text.
fn stored(answer: &Answer) -> Value {
    let mut stored = json!({});
    let parse = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let fields = [
        ("patch", &answer.patch, true),
        ("error", &answer.error, false),
        ("panic", &answer.panic, false),
        ("result", &answer.result, true),
        ("resultError", &answer.result_error, false),
        ("resultPanic", &answer.result_panic, false),
    ];
    for (name, text, document) in fields {
        if !text.is_empty() {
            stored[name] = if document { parse(text) } else { json!(text) };
        }
    }
    stored
}

fn expectation(case: &Value) -> Value {
    let mut expected = json!({});
    for name in EXPECTATIONS {
        if let Some(value) = case.get(name) {
            expected[name] = value.clone();
        }
    }
    expected
}

/// The file as it is kept: one line for each side and each expectation.
fn write(path: &PathBuf, file: &Value) {
    let mut out = String::from("{\n");
    for name in ["about", "op", "base"] {
        if let Some(value) = file.get(name) {
            out.push_str(&format!(" \"{name}\": {value},\n"));
        }
    }
    out.push_str(" \"cases\": [\n");
    let cases = file["cases"].as_array().unwrap();
    for (position, case) in cases.iter().enumerate() {
        let lines: Vec<String> = INPUTS
            .iter()
            .chain(&EXPECTATIONS)
            .filter_map(|name| Some(format!("   \"{name}\": {}", case.get(*name)?)))
            .collect();
        let comma = if position + 1 < cases.len() { "," } else { "" };
        out.push_str(&format!("  {{\n{}\n  }}{comma}\n", lines.join(",\n")));
    }
    out.push_str(" ]\n}\n");
    std::fs::write(path, out).unwrap();
}

fn main() {
    let bless = std::env::args().any(|argument| argument == "bless");
    let mut peer = match Peer::start() {
        Ok(peer) => Some(peer),
        Err(missing) => {
            missing.excuse();
            None
        }
    };
    let (mut count, mut failures) = (0, 0);
    for path in files() {
        let text = std::fs::read_to_string(&path).unwrap();
        let mut file: Value = serde_json::from_str(&text)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let whole = file.clone();
        let mut fail = |case: &Value, what: &str, expected: &Value, found: &Value| {
            failures += 1;
            let name = path.file_stem().unwrap().to_string_lossy();
            println!("{name}: {}: {what}\n  expected {expected}\n  found    {found}", case["name"]);
        };
        for case in file["cases"].as_array_mut().unwrap() {
            count += 1;
            let request = request(&whole, case);
            let ours = peer::answer(&request);
            if let Some(peer) = &mut peer {
                match peer::agrees(peer, &request, &ours) {
                    Ok(_) => {}
                    Err(theirs) => {
                        fail(case, "differs from Go", &stored(&theirs[0]), &stored(&ours));
                        continue;
                    }
                }
            }
            if bless {
                for name in EXPECTATIONS {
                    case.as_object_mut().unwrap().remove(name);
                }
                let expected = stored(&ours);
                for (name, value) in expected.as_object().unwrap() {
                    case[name.as_str()] = value.clone();
                }
            } else if expectation(case) != stored(&ours) {
                fail(case, "differs from the file", &expectation(case), &stored(&ours));
            }
        }
        if bless && peer.is_some() {
            write(&path, &file);
        }
    }
    // The line that continuous integration adds up.
    let verdict = if failures > 0 { "FAILED" } else { "ok" };
    println!("test result: {verdict}. {} passed; {failures} failed", count - failures);
    if failures > 0 {
        std::process::exit(2);
    }
}
