//! Random patches against the Go libraries: `--cases N` (2000), `--seed N` (1).
//!
//! Exit status: 0 all equal or skipped, 2 something differs.
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

mod generator;
#[path = "../peer/mod.rs"]
mod peer;

use std::collections::BTreeMap;
use std::time::Instant;

fn argument(name: &str, otherwise: u64) -> u64 {
    let arguments: Vec<String> = std::env::args().collect();
    let position = arguments.iter().position(|argument| argument == name);
    position
        .and_then(|position| arguments.get(position + 1))
        .and_then(|value| value.parse().ok())
        .unwrap_or(otherwise)
}

fn main() {
    let (cases, seed) = (argument("--cases", 2_000), argument("--seed", 1));
    let first = argument("--first", 0);
    let table = concat!(env!("CARGO_MANIFEST_DIR"), "/src/schema/table.txt");
    let types = generator::Types::read(&std::fs::read_to_string(table).unwrap());
    let mut peer = match peer::Peer::start() {
        Ok(peer) => peer,
        Err(missing) => return missing.excuse(),
    };
    let began = Instant::now();
    let mut outcomes: BTreeMap<&str, u64> = BTreeMap::new();
    let (mut varying, mut different) = (0_u64, 0_u64);
    for number in first..first + cases {
        let request = generator::case(&types, seed, number);
        let ours = peer::answer(&request);
        let outcome = match (&ours.error[..], &ours.panic[..], &ours.result[..]) {
            ("", "", "") if ours.result_error.is_empty() => "panic when applied",
            ("", "", "") => "error when applied",
            ("", "", _) if ours.patch == "{}" => "no change",
            ("", "", _) => "patched",
            (_, "", _) => "error",
            _ => "panic",
        };
        *outcomes.entry(outcome).or_default() += 1;
        match peer::agrees(&mut peer, &request, &ours) {
            Ok(true) => {}
            Ok(false) => varying += 1,
            Err(theirs) => {
                different += 1;
                if different <= argument("--limit", 3) {
                    println!("case {number} of seed {seed} differs");
                    println!("  request {}", serde_json::to_string(&request).unwrap());
                    println!("  ours    {}", serde_json::to_string(&ours).unwrap());
                    for answer in theirs.iter().take(3) {
                        println!("  Go      {}", serde_json::to_string(answer).unwrap());
                    }
                }
            }
        }
    }
    println!(
        "{cases} cases of seed {seed} in {:.1} s: {different} differ; \
         {varying} where Go's own answer varies and ours is one of them; {outcomes:?}",
        began.elapsed().as_secs_f64()
    );
    // The line that continuous integration adds up: the whole run is one test.
    let (passed, failed) = if different > 0 { (0, 1) } else { (1, 0) };
    let verdict = if failed > 0 { "FAILED" } else { "ok" };
    println!("test result: {verdict}. {passed} passed; {failed} failed");
    if different > 0 {
        std::process::exit(2);
    }
}
