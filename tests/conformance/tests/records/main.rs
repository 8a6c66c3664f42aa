//! Release records of real Helm: written on a control plane in every state that Helm has, read by
//! ichor from dumps and from the live server, and written again by ours for Helm to read.
//!
//! The charts are those of `records/charts`, some of `tests/charts` and five versions of Cilium.
#![expect(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how a test fails")]
#![expect(clippy::print_stderr, reason = "what is compared is told to whoever reads the output")]

mod compare;
mod dump;
mod made;

use std::path::Path;

use compare::{Case, Comparison, Origin};
use helm_rs::release::input::{Input, InputLimits, StoredRecord, scan};
use helm_rs::release::{CodecLimits, Record, Status, Summary, decode, encode};
use plane::support::{or_skip, run};
use plane::{Plane, PlaneOptions};

/// Everything that a dump holds.
fn records(dump: &Path) -> Vec<StoredRecord> {
    let found = scan(vec![Input::Path(dump.to_owned())], &InputLimits::default(), None, Some);
    assert!(found.faults.is_empty(), "{:?}", found.faults);
    found.items
}

#[tokio::test(flavor = "multi_thread")]
async fn records_of_real_helm() {
    let Some(plane) = or_skip(Plane::start(PlaneOptions::default()).await) else { return };
    let helm = made::Helm::new(&plane);
    let releases = made::releases(&helm);
    let folder = tempfile::tempdir().unwrap();
    let dumps = dump::all(&plane, folder.path());
    let stored = records(&dumps.yaml);

    every_state(&stored);
    same_bytes(&stored);
    newer_fields(&stored);

    let mut comparison = Comparison::new(&helm);
    let per_namespace = |namespace: &str| dump::of_namespace(&plane, folder.path(), namespace);
    for (namespace, names) in &releases {
        let files = per_namespace(namespace);
        for name in names {
            comparison.release(
                namespace,
                name,
                &[Origin::Live, Origin::Dump(files.yaml.clone()), Origin::Dump(files.json.clone())],
            );
        }
        comparison.list(Some(namespace), &[Origin::Live, Origin::Dump(files.yaml.clone())]);
    }
    let origins =
        [Origin::Live, Origin::Dump(dumps.yaml.clone()), Origin::Dump(dumps.json.clone())];
    comparison.list(None, &origins);
    comparison.finish();

    read_by_helm(&helm, &stored, &releases).await;
}

/// Helm stores nine statuses; the test is worth nothing when one of them is missing.
fn every_state(stored: &[StoredRecord]) {
    let summaries: Vec<Summary> = stored
        .iter()
        .map(|record| Summary::from_json(&record.decode(&CodecLimits::default()).unwrap()).unwrap())
        .collect();
    for status in Status::ALL {
        assert!(summaries.iter().any(|summary| summary.info.status() == status), "no {status}");
    }
    let mut charts: Vec<String> = summaries
        .iter()
        .map(|summary| format!("{} {}", summary.chart, summary.chart_version))
        .collect();
    charts.sort();
    charts.dedup();
    eprintln!("{} records of {} charts", stored.len(), charts.len());
    if made::cilium().is_some() {
        assert!(charts.len() >= 20, "{charts:?}");
    }
}

/// What is decoded and encoded again is the same JSON, to the byte.
fn same_bytes(stored: &[StoredRecord]) {
    for record in stored {
        let json = record.decode(&CodecLimits::default()).unwrap();
        let again = Record::from_json(&json).unwrap().to_json();
        assert_eq!(again, json, "{}", record.title());
        let stored = encode(&again).unwrap();
        assert_eq!(decode(stored.as_bytes(), CodecLimits::default()).unwrap(), json);
    }
}

/// Records of Helm 4 keep what Helm 3 does not know, also when their status changes.
fn newer_fields(stored: &[StoredRecord]) {
    let newer = stored.iter().filter(|record| record.namespace == "four");
    let (mut applied, mut rolled_back) = (0, 0);
    for record in newer {
        let json = record.decode(&CodecLimits::default()).unwrap();
        let mut changed = Record::from_json(&json).unwrap();
        assert_eq!(changed.object().get("apply_method"), Some("\"ssa\""), "{}", record.title());
        applied += 1;
        changed.set_status(&Status::Superseded, "by ours").unwrap();
        let again = changed.to_json();
        assert!(again.ends_with(r#","apply_method":"ssa"}"#), "{}", record.title());
        let mark = r#""rollback_revision":1"#;
        rolled_back += usize::from(json.contains(mark));
        assert_eq!(json.contains(mark), again.contains(mark), "{}", record.title());
    }
    if made::has_helm4() {
        assert!(applied >= 4 && rolled_back == 1, "{applied} records of Helm 4, {rolled_back}");
    }
}

/// Records that ours wrote, on another server: Helm says the same of them as of its own.
async fn read_by_helm(theirs: &made::Helm, stored: &[StoredRecord], releases: &made::Releases) {
    let plane = or_skip(Plane::start(PlaneOptions::default()).await).unwrap();
    for namespace in releases.keys().filter(|name| *name != "kube-system") {
        run(plane.kubectl().unwrap().args(["create", "namespace", namespace])).unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    dump::write_again(&plane, folder.path(), stored);
    let ours = made::Helm::new(&plane);
    let mut cases = Vec::new();
    for output in ["table", "json", "yaml"] {
        for driver in ["secret", "configmap"] {
            cases.push(Case::new(&["list", "-A", "-a", "-o", output]).driver(driver));
            cases.push(Case::new(&["list", "-A", "--superseded", "-o", output]).driver(driver));
        }
    }
    for (namespace, names) in releases {
        for name in names {
            let driver = made::driver_of(namespace);
            for words in [&["history"][..], &["status"], &["status", "-o", "json"], &["get", "all"]]
            {
                let words: Vec<&str> =
                    words.iter().copied().chain([&**name, "-n", namespace]).collect();
                cases.push(Case::new(&words).driver(driver));
            }
        }
    }
    let different: Vec<String> = compare::each(&cases, |case| {
        let (before, after) = (theirs.answer(case), ours.answer(case));
        compare::difference(&format!("helm {}", case.words.join(" ")), &before, &after)
    });
    eprintln!("{} answers of Helm about records that ours wrote", cases.len());
    assert!(different.is_empty(), "{}", different.join("\n"));
}
