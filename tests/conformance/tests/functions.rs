//! The functions that templates can call: ours are exactly Helm's.

use conformance::ours;
use serde_json::{Value, json};
use test_support::driver::Driver;
use test_support::skip;

#[test]
fn none_is_missing_and_none_is_extra() {
    let driver = match Driver::shared() {
        Ok(driver) => driver,
        Err(missing) => skip!(missing),
    };
    let answer = driver.call("functions", json!({})).unwrap();
    let theirs: Vec<&str> = answer.0["names"]
        .as_array()
        .map(|names| names.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    assert!(theirs.len() > 200, "the driver lists {} functions", theirs.len());
    if ours::unavailable().is_some() {
        return;
    }
    let ours = ours::function_names();
    let missing: Vec<&&str> =
        theirs.iter().filter(|name| !ours.iter().any(|own| own == *name)).collect();
    let extra: Vec<&String> = ours.iter().filter(|own| !theirs.contains(&own.as_str())).collect();
    assert!(missing.is_empty() && extra.is_empty(), "missing {missing:?}, extra {extra:?}");
}
