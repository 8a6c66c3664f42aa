//! The table of what counts as ready says what Helm says.

use serde_json::{Value, json};
use test_support::driver::Driver;
use test_support::place::repository;
use test_support::skip;

#[test]
fn the_table_is_helms() {
    let driver = match Driver::shared() {
        Ok(driver) => driver,
        Err(missing) => skip!(missing),
    };
    let path = repository().join("helm-rs/tests/readiness/cases.json");
    let cases: Vec<Value> = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let mut faults = Vec::new();
    for case in &cases {
        let answer = driver.call("ready", json!({ "objects": case["objects"] })).unwrap();
        if answer.0["says"] != case["says"] {
            faults.push(format!("{}: Helm says {}", case["name"], answer.0["says"]));
        }
    }
    assert!(faults.is_empty(), "{} of {}:\n{}", faults.len(), cases.len(), faults.join("\n"));
}
