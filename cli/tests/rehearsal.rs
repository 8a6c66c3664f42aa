//! A rehearsed takeover that is killed, or of which a call fails, ends as one that nothing disturbs.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how a test fails")]

use std::ffi::OsString;

use ichor_cli::{Buffer, Environment, Ui, run};
use test_support::place;

/// What it prints, and its exit code.
fn rehearse(more: &[&str]) -> (String, String) {
    let root = place::repository();
    let snapshot = root.join("examples/before.ndjson").display().to_string();
    let chart = root.join("charts/sample-cni").display().to_string();
    let (out, err) = (Buffer::default(), Buffer::default());
    let mut ui = Ui::new(Box::new(out.clone()), Box::new(err.clone()), false);
    let base =
        ["ichor", "adopt", "--cilium-only", "--snapshot", &snapshot, "--chart", &chart, "--yes"];
    let words: Vec<OsString> = base.iter().chain(more).map(Into::into).collect();
    let exit = run(words, &Environment::sealed([("HOME", "nowhere")]), &mut ui);
    let text = [out.bytes(), err.bytes()].concat();
    (String::from_utf8_lossy(&text).into_owned(), format!("{exit:?}"))
}

#[test]
fn what_strikes_a_run_does_not_change_its_end() {
    let (asked, _) = rehearse(&["--accept-cilium-changes"]);
    let at = asked.find("--accept-cilium-diff=sha256:").unwrap();
    let consent = asked.get(at..).unwrap().split_whitespace().next().unwrap();
    let consent = ["--accept-cilium-changes", consent.trim_end_matches(['`', ',', '.'])];
    let (all, done) = rehearse(&consent);
    let calls = all.split(" calls (").next().unwrap().rsplit([' ', '\n']).next().unwrap();
    let calls: usize = calls.parse().unwrap();
    assert!(calls > 100, "{all}");
    // Among the objects, the one that is created has an address that the server allots.
    let points = [1, calls / 4, calls / 2, 68, 69, 70, 71, calls - 10, calls];
    for point in points {
        for flag in ["--kill-at=", "--kill-at=before:", "--fail-at="] {
            let strike = format!("{flag}{point}");
            let (text, exit) = rehearse(&[&consent[..], &[&strike]].concat());
            let ended = "It ended as a run does that nothing disturbs.";
            assert!(exit == done && text.contains(ended), "{strike}: {exit}\n{text}");
        }
    }
    let (text, exit) = rehearse(&[&consent[..], &["--kill-at=100000"]].concat());
    assert!(exit != done && text.contains(&format!("the run has {calls} calls")), "{text}");
}
