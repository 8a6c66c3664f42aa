//! Times three-way patches: `three_way OLD NEW [ROUNDS]`, files of one JSON object a line.
//!
//! Objects are matched by kind, namespace and name. The old object is both what was applied and
//! what is live; each round makes and applies all patches. Prints the best round.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a program for whoever measures"
)]

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use mergepatch::{Schemas as _, Untyped, apply, embedded, helm};
use serde_json::Value;

fn objects(path: &str) -> BTreeMap<String, Value> {
    let text = std::fs::read_to_string(path).expect("a file of objects");
    text.lines()
        .map(|line| {
            let object: Value = serde_json::from_str(line).expect("one JSON object a line");
            let metadata = &object["metadata"];
            (format!("{} {} {}", object["kind"], metadata["namespace"], metadata["name"]), object)
        })
        .collect()
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let (old, new) = (objects(&arguments[1]), objects(&arguments[2]));
    let rounds = arguments.get(3).and_then(|count| count.parse().ok()).unwrap_or(200);
    let pairs: Vec<(&Value, &Value)> =
        new.iter().filter_map(|(key, new)| Some((old.get(key)?, new))).collect();
    let began = Instant::now();
    let kinds = embedded().kinds().count();
    let table = began.elapsed();
    let mut best = (Duration::MAX, Duration::MAX);
    let mut changed = 0;
    for _ in 0..rounds {
        let began = Instant::now();
        let patches: Vec<_> = pairs
            .iter()
            .map(|(old, new)| helm(old, new, old, embedded(), Untyped::ThreeWay).expect("a patch"))
            .collect();
        let made = began.elapsed();
        changed = patches.iter().filter(|patch| !patch.is_empty()).count();
        for ((old, new), patch) in pairs.iter().zip(&patches) {
            let word = |field: &str| new[field].as_str().unwrap_or_default();
            let schema = embedded().schema(word("apiVersion"), word("kind"));
            drop(apply(old, patch, schema).expect("an object"));
        }
        let total = began.elapsed();
        best = (best.0.min(made), best.1.min(total));
    }
    println!(
        "{} objects, {changed} change: {:?} to make, {:?} with applying; {kinds} kinds read in {table:?}",
        pairs.len(),
        best.0,
        best.1
    );
}
