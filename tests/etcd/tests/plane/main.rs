//! Snapshots of a control plane beside the control plane: the same releases, the same objects.
//! Written by etcd 3.6 and 3.5, as snapshots and as databases, before and after compaction and
//! defragmentation, encrypted and plain.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "test code: what was compared is told, and a panic is how a test says what is wrong"
)]

mod encrypted;
mod story;

use std::path::Path;

use etcd_tests::{
    differences, etcdctl, ichor, kubectl, live, objects, output, resources, snapshot,
};
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

    partly_damaged(&first, &mut faults);

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

/// The value of one record is damaged: what can be read is printed, what cannot is told, and only
/// the commands that may miss something fail.
fn partly_damaged(whole: &Path, faults: &mut Vec<String>) {
    let key = b"/registry/secrets/default/sh.helm.release.v1.one.v5";
    let mut bytes = std::fs::read(whole).unwrap();
    for at in 0..bytes.len() - 200 {
        if bytes[at..].starts_with(key) {
            let envelope = bytes[at..at + 200].windows(4).position(|four| four == b"k8s\0");
            bytes[at + envelope.unwrap()] = b'x';
        }
    }
    let path = whole.with_extension("damaged");
    std::fs::write(&path, bytes).unwrap();
    let path = path.to_string_lossy();
    for (arguments, code, printed, said) in [
        (&["release", "list", "-A", "-a"][..], 1, "three", "SHA-256"),
        (&["release", "history", "three"], 0, "Upgrade complete", "SHA-256"),
        (&["release", "history", "one"], 1, "", "one.v5"),
        (&["release", "history", "one", "--at-revision"], 0, "Install complete", "SHA-256"),
        (&["etcd", "get", "secrets/default/"], 1, "sh.helm.release.v1.one.v4", "one.v5"),
    ] {
        let mut arguments = arguments.to_vec();
        let revision;
        if arguments.last() == Some(&"--at-revision") {
            let text = output_of(&["etcd", "ls", &path, "secrets", "-n", "default", "-o", "json"]);
            let keys: Value = serde_json::from_str(&text).unwrap();
            let is_fifth = |it: &&Value| it["name"] == "sh.helm.release.v1.one.v5";
            let fifth = keys.as_array().unwrap().iter().find(is_fifth).unwrap();
            revision = (fifth["createRevision"].as_i64().unwrap() - 1).to_string();
            arguments.push(&revision);
        }
        if arguments[0] == "etcd" {
            arguments.insert(2, &path);
        } else {
            arguments.extend(["--from", &path]);
        }
        let outcome = ichor(&arguments);
        let out = String::from_utf8_lossy(&outcome.stdout);
        let err = String::from_utf8_lossy(&outcome.stderr);
        if outcome.code != Some(code) || !out.contains(printed) || !err.contains(said) {
            let question = arguments.join(" ");
            faults.push(format!("damaged: {question}: {:?}\n{out}\n{err}", outcome.code));
        }
    }
}

/// What is printed, whatever else is said.
fn output_of(arguments: &[&str]) -> String {
    String::from_utf8(ichor(arguments).stdout).unwrap()
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
        words("export -A".to_owned()),
    ];
    for (namespace, name) in &story.releases {
        for command in ["history", "values --all", "manifest", "notes", "status"] {
            all.push(words(format!("{command} {name} -n {namespace}")));
        }
    }
    all
}

/// Where a record was found is what differs.
fn without_places(text: &str) -> String {
    let without = |line: &str| match serde_json::from_str::<Value>(line) {
        Ok(Value::Object(mut record)) if record.contains_key("place") => {
            record.remove("place");
            Value::Object(record).to_string()
        }
        _ => line.to_owned(),
    };
    text.lines().map(|line| without(line) + "\n").collect()
}

/// What ichor says of the live cluster.
fn releases(plane: &Plane, story: &Story) -> Vec<String> {
    let kubeconfig = plane.kubeconfig();
    let kubeconfig = kubeconfig.to_string_lossy();
    let ask = |question: &Vec<String>| {
        let mut arguments: Vec<&str> = vec!["release"];
        arguments.extend(question.iter().map(String::as_str));
        arguments.extend(["--kubeconfig", &kubeconfig]);
        without_places(&output(&arguments))
    };
    questions(story).iter().map(ask).collect()
}

fn same_releases(plane: &Plane, story: &Story, file: &Path, when: &str, faults: &mut Vec<String>) {
    compare(&releases(plane, story), story, file, when, faults);
    // The audit of a file beside the audit of the cluster and of a dump: places aside, the same.
    let dump = kubectl(plane, &["get", "secrets,configmaps", "-A", "-o", "yaml"]);
    let path = file.with_extension("yaml");
    std::fs::write(&path, dump).unwrap();
    let verify = |flag: &str, path: &Path| {
        let path = path.to_string_lossy();
        let outcome = ichor(&["release", "verify", "-A", "-o", "json", flag, &path]);
        let mut found: Value = serde_json::from_slice(&outcome.stdout).unwrap();
        for finding in found["findings"].as_array_mut().into_iter().flatten() {
            finding["place"] = Value::Null;
        }
        (outcome.code, found)
    };
    let got = verify("--from", file);
    for (flag, path) in [("--kubeconfig", &plane.kubeconfig()), ("--from", &path)] {
        let wanted = verify(flag, path);
        if wanted != got {
            faults.push(format!("{when}: verify {flag}: {wanted:?}\n{got:?}"));
        }
    }
}

fn compare(expected: &[String], story: &Story, file: &Path, when: &str, faults: &mut Vec<String>) {
    let file = file.to_string_lossy();
    for (question, wanted) in questions(story).iter().zip(expected) {
        let mut arguments: Vec<&str> = vec!["release"];
        arguments.extend(question.iter().map(String::as_str));
        arguments.extend(["--from", &file]);
        let got = without_places(&output(&arguments));
        let lines = wanted.lines().zip(got.lines());
        if let Some((wanted, got)) = lines.into_iter().find(|(wanted, got)| wanted != got) {
            faults.push(format!("{when}: {}:\n{wanted}\n{got}", question.join(" ")));
        } else if got != *wanted {
            faults.push(format!("{when}: {}: other ends", question.join(" ")));
        }
    }
    println!("{when}: {} questions", expected.len());
}

/// What a server adds to an object while it reads it, and does not store.
fn is_default(kind: &str, difference: &str) -> bool {
    kind == "PersistentVolumeClaim" && difference.starts_with("/status/phase: Some(")
}

/// Kinds that are served and not stored as such: made up for each answer, or stored as another
/// version.
const NOT_STORED: [&str; 5] = [
    "admissionregistration.k8s.io/v1 MutatingAdmissionPolicy",
    "admissionregistration.k8s.io/v1 MutatingAdmissionPolicyBinding",
    "v1 ComponentStatus",
    "autoscaling/v1 HorizontalPodAutoscaler",
    "events.k8s.io/v1 Event",
];

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
        found.retain(|it| !is_default(&key[1], it));
        faults.extend(found.into_iter().map(|it| format!("{}: {it}", key.join(" "))));
    }
    let known: std::collections::BTreeSet<[&String; 2]> =
        stored.keys().map(|[version, kind, ..]| [version, kind]).collect();
    let served = resources(plane).into_keys();
    let none: Vec<String> = served
        .filter(|(version, kind)| {
            !(known.contains(&[version, kind])
                || version.contains("alpha")
                || version.contains("beta"))
        })
        .map(|(version, kind)| format!("{version} {kind}"))
        .collect();
    println!("served and not stored: {}", none.join(", "));
    for kind in none {
        if !NOT_STORED.contains(&kind.as_str()) {
            faults.push(format!("no object of {kind} was compared"));
        }
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
    // A record that Helm deleted: what it was, and that it went.
    let key = "secrets/default/sh.helm.release.v1.gone.v1";
    let text = output(&["etcd", "get", &file.to_string_lossy(), key, "--history", "-o", "json"]);
    let gone: Value = serde_json::from_str(&text).unwrap();
    let gone = gone.as_array().unwrap();
    let is_record = gone.first().is_some_and(|it| it["object"]["type"] == "helm.sh/release.v1");
    if !is_record || gone.last().is_none_or(|it| it["deleted"] != true) {
        faults.push(format!("history of a deleted record: {text}"));
    }
    println!("history: {} changes of a key, {} of a deleted record", seen.len(), gone.len());
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
