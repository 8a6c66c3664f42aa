//! Helm's own golden files: the table names every one of them, and what applies is run by Helm and
//! by ichor on a real server.

#![expect(clippy::print_stdout, reason = "what was compared is told to whoever reads the output")]

use std::collections::BTreeSet;
use std::path::Path;

use live::goldens::{Golden, helms_folder, table};
use live::pair::{compare, same_objects, sides};
use live::{Side, at_once, trial::kubectl};
use serde_json::json;

/// Commands under way at once.
const WORKERS: [(); 4] = [(); 4];

#[test]
fn the_table_has_every_golden() {
    let Some(folder) = helms_folder() else {
        test_support::skip!("Helm's own tests are not in Go's module cache");
    };
    let there: BTreeSet<String> = std::fs::read_dir(folder.join("output"))
        .expect("the goldens are there")
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    let table = table();
    let told: BTreeSet<String> = table.iter().map(|golden| golden.name.clone()).collect();
    assert_eq!(told, there);
    assert_eq!(told.len(), table.len(), "one is there twice");
    for golden in table {
        let is_reproduced = !golden.commands.is_empty();
        assert!(is_reproduced == golden.why_not.is_empty(), "{}", golden.name);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn golden_cases() {
    let Some(folder) = helms_folder() else {
        test_support::skip!("Helm's own tests are not in Go's module cache");
    };
    let Some((helm, ichor)) = sides().await else { return };
    let cases: Vec<Golden> = table().into_iter().filter(|it| it.why_not.is_empty()).collect();
    let objects: Vec<_> = cases.iter().flat_map(Golden::objects).collect();
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": objects });
    for side in [&helm, &ichor] {
        let file = side.plane.folder().join("records.json");
        std::fs::write(&file, list.to_string()).expect("a file for the records");
        kubectl(&side.plane, &["create", "-f", &file.to_string_lossy()]);
        let account = ["wait", "--for=create", "serviceaccount/default", "--timeout=60s", "-n"];
        kubectl(&side.plane, &[&account[..], &[&cases[cases.len() - 1].namespace]].concat());
    }
    let charts = folder.join("testcharts");
    let faults = at_once(&WORKERS, &cases, |_, case, ()| faults_of(case, &charts, &helm, &ichor));
    let mut faults: Vec<String> = faults.into_iter().flatten().collect();
    let count = same_objects(&helm, &ichor, "after all", &mut faults);
    let commands: usize = cases.iter().map(|case| case.commands.len()).sum();
    println!("{} goldens, {commands} commands, {count} objects on each side", cases.len());
    assert!(faults.is_empty(), "{} differences:\n{}", faults.len(), faults.join("\n"));
}

fn faults_of(case: &Golden, charts: &Path, helm: &Side, ichor: &Side) -> Vec<String> {
    let mut faults = Vec::new();
    for words in &case.commands {
        let words: Vec<String> = words
            .iter()
            .map(|word| match word.strip_prefix('@') {
                Some(chart) => charts.join(chart).to_string_lossy().into_owned(),
                None => word.clone(),
            })
            .collect();
        let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
        words.extend(["-n", &case.namespace]);
        let mut got = ichor.run(&words);
        // ichor's commands read records from files too, without a name.
        let usage = String::from_utf8_lossy(&got.stderr)
            .replace("[RELEASE] [flags]", "RELEASE_NAME [flags]");
        got.stderr = usage.into_bytes();
        let fault = compare(&helm.run(&words), &got);
        faults.extend(fault.map(|fault| format!("{}: {}:\n{fault}", case.name, words.join(" "))));
    }
    for fault in &faults {
        println!("{fault}");
    }
    faults
}
