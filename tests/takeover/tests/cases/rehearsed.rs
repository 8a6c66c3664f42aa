//! Rehearsal and reality agree: a snapshot of a real plane is rehearsed by the program without the
//! plane, then the program does it on the plane: the same plan, the same writes in the same order,
//! the same objects and records afterwards.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use helm_rs::apply::Silent;
use helm_rs::cluster::snapshot::{Limits, Secrets, read};
use helm_rs::release::{CodecLimits, decode};
use serde_json::Value;
use takeover::snapshot::{TakeOptions, is_own_record, lasting, select, take};
use takeover_tests::process::{command, told};
use takeover_tests::rehearsal::text;
use takeover_tests::{Bed, export, records, values_path};

use super::{a1, a5, a6};

/// What a controller of a live plane writes by itself, a moment later.
const CONTROLLERS: [&str; 2] =
    ["deployment.kubernetes.io/revision", "deprecated.daemonset.template.generation"];

/// Objects that controllers, kubelets and agents of a live plane make: beginnings or ends of their
/// names.
const PASSING: [&str; 12] = [
    "ReplicaSet ",
    "Pod ",
    "PodMetrics ",
    "Endpoints ",
    "EndpointSlice ",
    "ControllerRevision ",
    "CiliumEndpoint ",
    "Event ",
    "Node ",
    "NodeMetrics ",
    "/kube-root-ca.crt",
    "/default",
];

async fn snapshot(bed: &Bed, secrets: Secrets) -> PathBuf {
    let name = if secrets == Secrets::Included { "included" } else { "digests" };
    let file = bed.plane.folder().join(format!("{name}.ndjson"));
    let options = TakeOptions { program: "test", namespaces: &[], secrets };
    let out = fs::File::create(&file).unwrap();
    let (_, taken) =
        take(&*bed.cluster, &bed.clock, options, &Silent, std::io::BufWriter::new(out))
            .await
            .unwrap();
    assert_eq!(taken.unread, [] as [String; 0]);
    println!("{name}: {} objects, {} bytes", taken.objects, fs::metadata(&file).unwrap().len());
    file
}

fn objects(snapshot: &Path) -> Vec<Value> {
    let mut objects = Vec::new();
    let file = fs::File::open(snapshot).unwrap();
    read(file, &Limits::default(), |_| {}, |object| objects.push(object)).unwrap();
    objects
}

/// Runs the program; what it printed and its exit code.
fn ichor(kubeconfig: &Path, arguments: &[&str]) -> (i32, String) {
    let output = command(kubeconfig, arguments).output().unwrap();
    if output.status.code() == Some(1) {
        println!("{}", told(&output).1);
    }
    (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&output.stdout).into_owned())
}

fn digest(kubeconfig: &Path, more: &[&str]) -> String {
    let (_, json) = ichor(kubeconfig, &[&["cni", "plan", "-o", "json"], more].concat());
    let plan: Value = serde_json::from_str(&json).unwrap_or_else(|error| panic!("{error}: {json}"));
    let digest = text(&plan, "/digest").to_owned();
    assert!(digest.starts_with("sha256:"), "{json}");
    digest
}

/// A write as both sides tell it. The audit log names nothing that is created, and says of a
/// namespace that it lies in itself.
fn write(verb: &str, resource: &str, namespace: &str, name: &str) -> String {
    let name = if verb == "create" { "" } else { name };
    let namespace = if resource == "namespaces" { "" } else { namespace };
    format!("{verb} {resource} {namespace}/{name}")
}

/// The lock is renewed as time goes by, and in memory none does.
fn is_renewal(write: &str) -> bool {
    write.starts_with("patch leases.coordination.k8s.io ")
}

fn rehearsed_writes(directory: &Path) -> Vec<String> {
    let timeline: Value =
        serde_json::from_slice(&fs::read(directory.join("timeline.json")).unwrap()).unwrap();
    let calls = timeline["runs"][0]["calls"].as_array().unwrap();
    println!("rehearsed: {} calls", calls.len());
    calls
        .iter()
        .filter(|call| call["mutating"] == true)
        .map(|call| {
            let [verb, resource, namespace, name] = ["verb", "resource", "namespace", "name"]
                .map(|field| call[field].as_str().unwrap());
            write(verb, resource, namespace, name)
        })
        .filter(|write: &String| !is_renewal(write))
        .collect()
}

/// Objects that last, without what the controllers of a live plane write.
fn settled(objects: Vec<Value>) -> BTreeMap<String, Value> {
    let mut all = lasting(objects);
    all.retain(|name, _| {
        !PASSING.iter().any(|part| name.starts_with(part) || name.ends_with(part))
    });
    for object in all.values_mut() {
        let annotations = object.pointer_mut("/metadata/annotations");
        if let Some(annotations) = annotations.and_then(Value::as_object_mut) {
            annotations.retain(|key, _| !CONTROLLERS.contains(&key.as_str()));
            if annotations.is_empty() {
                object["metadata"].as_object_mut().unwrap().remove("annotations");
            }
        }
    }
    all
}

/// What ichor's records say, by name, their times aside.
fn own_records(objects: &[Value]) -> BTreeMap<String, Value> {
    let own = objects.iter().filter(|object| is_own_record(object));
    own.map(|object| {
        let stored = STANDARD.decode(text(object, "/data/release")).unwrap();
        let json = decode(&stored, CodecLimits::default()).unwrap();
        let mut record: Value = serde_json::from_slice(json.as_ref()).unwrap();
        for time in ["first_deployed", "last_deployed"] {
            assert!(record["info"].as_object_mut().unwrap().remove(time).is_some());
        }
        (text(object, "/metadata/name").to_owned(), record)
    })
    .collect()
}

/// The paths at which two objects differ, for the message of a failure.
fn differences(path: &str, one: &Value, other: &Value, out: &mut Vec<String>) {
    match (one, other) {
        (Value::Object(left), Value::Object(right)) => {
            for key in left.keys().chain(right.keys().filter(|key| !left.contains_key(*key))) {
                let null = Value::Null;
                let side =
                    |map: &serde_json::Map<String, Value>| map.get(key).unwrap_or(&null).clone();
                differences(&format!("{path}.{key}"), &side(left), &side(right), out);
            }
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            for (index, (left, right)) in left.iter().zip(right).enumerate() {
                differences(&format!("{path}[{index}]"), left, right, out);
            }
        }
        _ if one == other => {}
        // A server writes a quantity that is a number as a text.
        (Value::Number(number), Value::String(text))
            if path.contains(".resources.") && number.to_string() == *text => {}
        _ => {
            let short = |value: &Value| value.to_string().chars().take(200).collect::<String>();
            out.push(format!("{path}: rehearsed {}, real {}", short(one), short(other)));
        }
    }
}

/// Both, and that they agree.
async fn agree(bed: Bed, values: Option<&str>) {
    let folder = bed.plane.folder().to_owned();
    let nowhere = folder.join("nowhere.kubeconfig");
    let more: Vec<&str> = values.iter().flat_map(|file| ["--cilium-values", file]).collect();
    let live = bed.plane.kubeconfig();
    let digests = snapshot(&bed, Secrets::Digests).await;
    let included = snapshot(&bed, Secrets::Included).await;
    let real = digest(&live, &more);
    for file in [&digests, &included] {
        let file = file.to_str().unwrap();
        let rehearsed = digest(&nowhere, &[&["--snapshot", file][..], &more].concat());
        assert_eq!(rehearsed, real, "{file}");
    }
    let consent = format!("--accept-cilium-diff={real}");
    let adopt = ["adopt", "--cilium-only", "--accept-cilium-changes", "--yes", &consent];
    let adopt = [&adopt[..], &more].concat();
    let mut writes = Vec::new();
    for file in [&digests, &included] {
        let directory = file.with_extension("after");
        let (from, to) = (file.to_str().unwrap(), directory.to_str().unwrap());
        let rehearse = [&adopt[..], &["--snapshot", from, "--output-dir", to]].concat();
        let (code, said) = ichor(&nowhere, &rehearse);
        assert!(code == 0 && said.contains("no cluster is touched"), "{code}: {said}");
        writes.push(rehearsed_writes(&directory));
    }
    assert_eq!(writes[0], writes[1]);

    let mark = bed.plane.audit_log().mark();
    let (code, said) = ichor(&live, &adopt);
    assert!(code == 0 && !said.contains("REHEARSAL"), "{code}: {said}");
    let audited = bed.plane.audit_log().writes(plane::ADMIN_USER, mark).unwrap();
    let done: Vec<String> = audited
        .iter()
        .map(|one| {
            let dot = if one.group.is_empty() { "" } else { "." };
            let resource = format!("{}{dot}{}", one.resource, one.group);
            write(&one.verb, &resource, &one.namespace, &one.name)
        })
        .filter(|write: &String| !is_renewal(write))
        .collect();
    assert_eq!(writes[1], done, "the writes, rehearsed and real");

    let rehearsed = objects(&included.with_extension("after").join("after.ndjson"));
    let exported = export(&*bed.cluster).await;
    assert_eq!(own_records(&rehearsed), own_records(&exported), "ichor's records");
    let (before, after) = (settled(objects(&included)), settled(rehearsed));
    let mut real = settled(exported);
    let mut found = Vec::new();
    for (name, object) in &after {
        let null = Value::Null;
        differences(name, object, real.get(name).unwrap_or(&null), &mut found);
    }
    let gone = before.keys().filter(|name| !after.contains_key(*name));
    found.extend(gone.filter(|name| real.contains_key(*name)).map(|name| format!("{name} stays")));
    // What is new on the plane and not in the rehearsal, of the namespaces that were looked at.
    let places = select::namespaces(&<(String, String)>::default(), &[]);
    real.retain(|name, object| {
        let place = text(object, "/metadata/namespace");
        !after.contains_key(name) && places.iter().any(|looked| looked == place)
    });
    found.extend(real.keys().map(|name| format!("{name} is there in reality alone")));
    assert_eq!(found, [] as [String; 0], "what is left, rehearsed and real");
    println!("{} writes, {} objects: rehearsal and reality agree", done.len(), after.len());
    bed.plane.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn rehearsal_a1() {
    let Some(bed) = a1::as_talos_applies_it().await else { return };
    agree(bed, Some(&values_path("01"))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rehearsal_a2() {
    let Some(bed) = Bed::with_cilium("1.20.0", "01").await else { return };
    agree(bed, None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rehearsal_a5() {
    let Some(bed) = Bed::with_cilium("1.20.0", "01").await else { return };
    a5::add_by_hand(&bed);
    agree(bed, None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rehearsal_a6() {
    let Some(bed) = Bed::with_cilium("1.19.6", "01").await else { return };
    agree(bed, None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rehearsal_a9() {
    let Some(bed) = records::ten_revisions().await else { return };
    agree(bed, None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rehearsal_a14() {
    let Some(bed) = a6::with_defaults().await else { return };
    agree(bed, None).await;
}

/// A run that is killed at some call, or of which one fails: what it leaves is told, and the next
/// run ends where one ends that nothing disturbs.
#[tokio::test(flavor = "multi_thread")]
async fn rehearsal_killed_and_failed() {
    let Some(bed) = Bed::with_cilium("1.20.0", "01").await else { return };
    let snapshot = snapshot(&bed, Secrets::Digests).await;
    let folder = bed.plane.folder().to_owned();
    let nowhere = folder.join("nowhere.kubeconfig");
    let file = snapshot.to_str().unwrap();
    let rehearse = |more: &[&str]| {
        let adopt = ["adopt", "--cilium-only", "--yes", "--snapshot", file];
        told(&command(&nowhere, &[&adopt[..], more].concat()).output().unwrap())
    };
    let directory = folder.join("whole");
    let (code, said) = rehearse(&["--output-dir", directory.to_str().unwrap()]);
    assert_eq!(code, 0, "{said}");
    let (code, again) = rehearse(&["--output-dir", directory.to_str().unwrap()]);
    assert!(code == 1 && again.contains("this folder is not empty"), "{again}");
    let timeline: Value =
        serde_json::from_slice(&fs::read(directory.join("timeline.json")).unwrap()).unwrap();
    let calls = timeline["runs"][0]["calls"].as_array().unwrap();
    let writes: Vec<usize> =
        (0..calls.len()).filter(|at| calls[*at]["mutating"] == true).map(|at| at + 1).collect();
    let some = [writes[1], writes[3], writes[writes.len() / 2], writes[writes.len() - 2]];
    for at in some {
        for (flag, value) in [
            ("--kill-at", format!("before:{at}")),
            ("--kill-at", at.to_string()),
            ("--fail-at", at.to_string()),
        ] {
            let after = folder.join(format!("after-{flag}-{value}").replace(':', "-"));
            let (code, said) = rehearse(&[flag, &value, "--output-dir", after.to_str().unwrap()]);
            println!("{flag} {value}: {said}");
            assert_eq!(code, 0, "{flag} {value}: {said}");
            assert!(said.contains("It ended as a run does that nothing disturbs"), "{said}");
            let died = said.contains("What it leaves");
            assert!(flag == "--fail-at" || died && said.contains("state: "), "{said}");
            let text = fs::read_to_string(after.join("timeline.txt")).unwrap();
            assert_eq!(text.contains("\nRun 2: done"), died, "{text}");
        }
    }
    let (code, said) = rehearse(&["--kill-at", "100000"]);
    assert!(code == 1 && said.contains(&format!("the run has {} calls", calls.len())), "{said}");

    // What is left is a snapshot: taken over, its records readable, and a restore of it.
    let after = directory.join("after.ndjson");
    let run = |arguments: &[&str]| told(&command(&nowhere, arguments).output().unwrap());
    let (code, said) = run(&["cni", "status", "--snapshot", after.to_str().unwrap()]);
    assert!(code == 0 && said.contains("state: taken over"), "{said}");
    let records = directory.join("records");
    for from in [&records, &after] {
        let (code, said) = run(&["release", "list", "-A", "--from", from.to_str().unwrap()]);
        assert!(code == 0 && said.contains("cilium-1.20.0"), "{said}");
    }
    let (code, said) = run(&["cni", "restore", "--yes", "--snapshot", after.to_str().unwrap()]);
    assert!(code == 0 && said.contains("REHEARSAL") && said.contains("Restored: 1"), "{said}");
    bed.plane.stop();
}
