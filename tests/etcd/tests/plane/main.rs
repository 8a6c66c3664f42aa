//! Snapshots of a control plane beside the control plane: the same releases, the same objects.
//! Written by etcd 3.6 and 3.5, as snapshots and as databases, before and after compaction and
//! defragmentation, encrypted and plain.

#![expect(clippy::print_stdout, reason = "what was compared is told to whoever reads the output")]

mod encrypted;
mod story;

use std::path::Path;

use etcd_tests::{differences, etcdctl, ichor, kubectl, live, objects, output, snapshot};
use plane::support::or_skip;
use plane::{Plane, PlaneOptions};
use serde_json::Value;
use story::Story;

fn options(etcd: &str) -> PlaneOptions {
    PlaneOptions { etcd: etcd.to_owned(), ..PlaneOptions::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn etcd_3_6() {
    audit("etcd").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn etcd_3_5() {
    audit("etcd35").await;
}

async fn audit(etcd: &str) {
    for peer in ["helm", "etcdctl", etcd] {
        if or_skip(plane::find_peer(peer)).is_none() {
            return;
        }
    }
    let Some(plane) = or_skip(Plane::start(options(etcd)).await) else { return };
    let folder = tempfile::tempdir().unwrap();
    let story = Story::happen(&plane);
    let mut faults = Vec::new();

    let first = folder.path().join("first.db");
    snapshot(&plane, &first);
    same_releases(&plane, &story, &first, "a snapshot", &mut faults);
    same_objects(&plane, folder.path(), &mut faults);
    history(&plane, &story, &first, &mut faults);

    // The records that were deleted are there, at the revision before.
    let deleted = story.before_deletion.to_string();
    let list = output(&[
        "release",
        "list",
        "-A",
        "-o",
        "json",
        "--from",
        &first.to_string_lossy(),
        "--at-revision",
        &deleted,
    ]);
    if !list.contains("\"gone\"") {
        faults.push(format!("at revision {deleted} the deleted release is not there: {list}"));
    }

    let revision = current_revision(&plane).to_string();
    etcdctl(&plane, &["compact", &revision, "--physical"]);
    let compacted = folder.path().join("compacted.db");
    snapshot(&plane, &compacted);
    same_releases(&plane, &story, &compacted, "after compaction", &mut faults);
    let outcome = ichor(&[
        "release",
        "list",
        "-A",
        "--from",
        &compacted.to_string_lossy(),
        "--at-revision",
        &deleted,
    ]);
    let said = String::from_utf8_lossy(&outcome.stderr).into_owned();
    if outcome.code != Some(1) || !said.contains("was compacted") {
        faults.push(format!("a compacted revision: {:?} {said}", outcome.code));
    }

    etcdctl(&plane, &["defrag"]);
    let defragmented = folder.path().join("defragmented.db");
    snapshot(&plane, &defragmented);
    same_releases(&plane, &story, &defragmented, "after defragmentation", &mut faults);

    // A copy while etcd runs may be torn; one of a database that nobody writes is not.
    let sizes = (first.metadata().unwrap().len(), defragmented.metadata().unwrap().len());
    let expected = releases(&plane, &story);
    let saved = folder.path().join("saved");
    plane.save(&saved).unwrap();
    let copy = saved.join("etcd/member/snap/db");
    compare(&expected, &story, &copy, "a copied database", &mut faults);
    println!("{etcd}: snapshots of {} and {} bytes", sizes.0, sizes.1);
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

fn current_revision(plane: &Plane) -> i64 {
    let text = etcdctl(plane, &["endpoint", "status", "-w", "json"]);
    let status: Value = serde_json::from_str(&text).unwrap();
    status[0]["Status"]["header"]["revision"].as_i64().unwrap()
}

/// The commands whose output must be alike.
fn questions(story: &Story) -> Vec<Vec<String>> {
    let words = |text: String| text.split(' ').map(ToOwned::to_owned).collect::<Vec<String>>();
    let mut all = vec![
        words("list -A".to_owned()),
        words("list -A -o json".to_owned()),
        words("export -A --summaries".to_owned()),
    ];
    for (namespace, name) in &story.releases {
        for command in ["history", "values --all", "manifest", "notes", "status"] {
            all.push(words(format!("{command} {name} -n {namespace}")));
        }
    }
    all
}

/// What ichor says of the live cluster.
fn releases(plane: &Plane, story: &Story) -> Vec<String> {
    let kubeconfig = plane.kubeconfig();
    let kubeconfig = kubeconfig.to_string_lossy();
    let ask = |question: &Vec<String>| {
        let mut arguments: Vec<&str> = vec!["release"];
        arguments.extend(question.iter().map(String::as_str));
        arguments.extend(["--kubeconfig", &kubeconfig]);
        output(&arguments)
    };
    questions(story).iter().map(ask).collect()
}

fn same_releases(plane: &Plane, story: &Story, file: &Path, when: &str, faults: &mut Vec<String>) {
    compare(&releases(plane, story), story, file, when, faults);
    // The audit of a file beside the audit of a dump: places aside, the same.
    let dump = kubectl(plane, &["get", "secrets,configmaps", "-A", "-o", "yaml"]);
    let path = file.with_extension("yaml");
    std::fs::write(&path, dump).unwrap();
    let verify = |path: &Path| {
        let outcome =
            ichor(&["release", "verify", "-o", "json", "--from", &path.to_string_lossy()]);
        let mut found: Value = serde_json::from_slice(&outcome.stdout).unwrap();
        for finding in found["findings"].as_array_mut().into_iter().flatten() {
            finding["place"] = Value::Null;
        }
        (outcome.code, found)
    };
    let (wanted, got) = (verify(&path), verify(file));
    if wanted != got {
        faults.push(format!("{when}: verify: {wanted:?}\n{got:?}"));
    }
}

fn compare(expected: &[String], story: &Story, file: &Path, when: &str, faults: &mut Vec<String>) {
    let file = file.to_string_lossy();
    for (question, wanted) in questions(story).iter().zip(expected) {
        let mut arguments: Vec<&str> = vec!["release"];
        arguments.extend(question.iter().map(String::as_str));
        arguments.extend(["--from", &file]);
        let got = output(&arguments);
        if got != *wanted {
            faults.push(format!("{when}: {}:\n{wanted}---\n{got}", question.join(" ")));
        }
    }
    println!("{when}: {} questions", expected.len());
}

/// All objects of a snapshot beside what the server says of those that did not change meanwhile.
fn same_objects(plane: &Plane, folder: &Path, faults: &mut Vec<String>) {
    let file = folder.join("objects.db");
    snapshot(plane, &file);
    let text = output(&[
        "etcd",
        "get",
        &file.to_string_lossy(),
        "-o",
        "json",
        "--show-secrets",
        "--show-managed-fields",
    ]);
    let stored = objects(&serde_json::from_str(&text).unwrap());
    let live = live(plane, &stored);
    let (mut compared, mut changed, mut missing) = (0, 0, Vec::new());
    let mut kinds = std::collections::BTreeSet::new();
    for (key, got) in &stored {
        let Some(wanted) = live.get(key) else {
            missing.push(key.join(" "));
            continue;
        };
        if wanted["metadata"]["resourceVersion"] != got["metadata"]["resourceVersion"] {
            changed += 1;
            continue;
        }
        compared += 1;
        kinds.insert(format!("{} {}", key[0], key[1]));
        let mut found = Vec::new();
        differences(wanted, got, "", &mut found);
        faults.extend(found.into_iter().map(|it| format!("{}: {it}", key.join(" "))));
    }
    println!(
        "{compared} objects of {} kinds compared, {changed} changed meanwhile, {} not listed: {}",
        kinds.len(),
        missing.len(),
        missing.join(", ")
    );
    println!("kinds: {}", kinds.into_iter().collect::<Vec<_>>().join(", "));
    if compared < 200 {
        faults.push(format!("{compared} objects compared"));
    }
}

/// The history of a key beside what was done to it.
fn history(plane: &Plane, story: &Story, file: &Path, faults: &mut Vec<String>) {
    let text = output(&[
        "etcd",
        "get",
        &file.to_string_lossy(),
        "configmaps/default/settings",
        "--history",
        "-o",
        "json",
    ]);
    let changes: Value = serde_json::from_str(&text).unwrap();
    let seen: Vec<String> = changes
        .as_array()
        .unwrap()
        .iter()
        .map(|change| match change["object"]["data"]["number"].as_str() {
            Some(number) => number.to_owned(),
            None => format!("deleted {}", change["deleted"]),
        })
        .collect();
    if seen != story.settings {
        faults.push(format!("history: {seen:?} instead of {:?}", story.settings));
    }
    // etcd itself says the same of the last change.
    let last = changes.as_array().unwrap().iter().rev().find(|it| it["deleted"] == false).unwrap();
    let revision = last["revision"].as_i64().unwrap();
    let text = etcdctl(
        plane,
        &[
            "get",
            "/registry/configmaps/default/settings",
            "-w",
            "json",
            "--rev",
            &revision.to_string(),
        ],
    );
    let answer: Value = serde_json::from_str(&text).unwrap();
    let key = &answer["kvs"][0];
    if key["mod_revision"] != last["revision"] || key["version"] != last["version"] {
        faults.push(format!("history: etcd says {key}"));
    }
}
