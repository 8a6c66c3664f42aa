//! Real Helm on one server and ichor on its copy: the same objects, records, exit status and
//! messages; and each goes on with what the other made.

#![expect(clippy::unwrap_used, reason = "test code: a panic is how a test fails")]
#![expect(clippy::print_stdout, reason = "what was compared is told to whoever reads the output")]

use std::time::Instant;

use live::pair::{both, sides};
use live::{Program, Side, chart, charts};
use plane::support::or_skip;

fn same_objects(helm: &Side, ichor: &Side, when: &str, faults: &mut Vec<String>) {
    let count = live::pair::same_objects(helm, ichor, when, faults);
    println!("{when}: {count} objects on each side");
}

#[tokio::test(flavor = "multi_thread")]
async fn own_charts() {
    let began = Instant::now();
    let Some((helm, ichor)) = sides().await else { return };
    let mut faults = Vec::new();
    let each =
        |faults: &mut Vec<String>, helm: &Side, ichor: &Side, step: &str, command: &[&str]| {
            for name in charts() {
                let folder = chart(&name);
                let values = folder.join("steps").join(format!("{step}.yaml"));
                let mut arguments: Vec<&str> = command.to_vec();
                let namespace = format!("ns-{name}");
                let (folder, values) = (folder.to_string_lossy(), values.to_string_lossy());
                arguments.extend([&*name, &*folder, "-n", &namespace, "-f", &*values]);
                both(helm, ichor, &arguments, faults);
            }
        };
    each(&mut faults, &helm, &ichor, "1", &["install", "--create-namespace"]);
    same_objects(&helm, &ichor, "after the installation", &mut faults);
    each(&mut faults, &helm, &ichor, "2", &["upgrade"]);
    same_objects(&helm, &ichor, "after the upgrade", &mut faults);
    each(&mut faults, &helm, &ichor, "2", &["upgrade"]);
    same_objects(&helm, &ichor, "after an upgrade to the same", &mut faults);
    // Each goes on with what the other made.
    let helm = Side { program: Program::Ichor, ..helm };
    let ichor = Side { program: Program::Helm, ..ichor };
    each(&mut faults, &ichor, &helm, "1", &["upgrade", "--reset-values", "--description", "back"]);
    same_objects(&ichor, &helm, "after each upgraded the other's", &mut faults);
    println!("{:.0} s", began.elapsed().as_secs_f64());
    assert!(faults.is_empty(), "{} differences:\n{}", faults.len(), faults.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn flags_and_faults() {
    let Some((helm, ichor)) = sides().await else { return };
    let mut faults = Vec::new();
    let (web, nulls, custom) = (chart("web"), chart("nulls"), chart("custom"));
    let (web, nulls) = (web.to_string_lossy(), nulls.to_string_lossy());
    let custom = custom.to_string_lossy();
    let mut run = |arguments: &[&str]| both(&helm, &ichor, arguments, &mut faults);
    run(&["install", "web", &web]);
    run(&["install", "web", &web]);
    run(&["install", "WEB", &web]);
    run(&["install", &web]);
    run(&["install", "a", "b", "c"]);
    run(&["install", "other", &web, "-n", "missing"]);
    run(&["install", "unknown", &custom, "--skip-crds"]);
    run(&["upgrade", "nothing", &web]);
    run(&["upgrade", "WEB", &web]);
    run(&["upgrade", "web", &web, "--dry-run"]);
    run(&["upgrade", "web", &web, "--dry-run=server", "--description", "try"]);
    run(&["install", "dry", &web, "--dry-run=server"]);
    run(&["install", "dry", &web, "--dry-run=wrong"]);
    run(&["install", "json", &nulls, "-o", "json"]);
    run(&["upgrade", "json", &nulls, "-o", "json", "--set", "step=2"]);
    run(&["upgrade", "web", &web, "--set", "replicas=3", "--reuse-values"]);
    run(&[
        "upgrade",
        "web",
        &web,
        "--set",
        "step=2",
        "--reset-then-reuse-values",
        "-l",
        "team=a,x=y",
    ]);
    run(&["upgrade", "web", &web, "-l", "team=null", "-l", "z=1", "--history-max", "2"]);
    run(&["upgrade", "web", &web, "-l", "owner=me"]);
    run(&["upgrade", "web", &web, "--timeout", "x"]);
    run(&["install", "other", &web, "--timeout", "x"]);
    run(&["install", "other", &web, "--labels", "x"]);
    run(&["upgrade", "web", &web, "--history-max=x"]);
    run(&["upgrade", "web", &web, "-o", "xml"]);
    let (longest, longer) = ("a".repeat(53), "a".repeat(54));
    for name in ["", ".", "a..b", "-a", "a-", "a_b", "a/b", "a b", &longer] {
        run(&["install", name, &web]);
        run(&["upgrade", name, &web]);
        run(&["upgrade", "-i", name, &web]);
    }
    // A revision that failed and has to make room for the next one.
    run(&["install", "room", &web, "--set", "replicas=-1"]);
    run(&["upgrade", "room", &web, "--history-max", "1"]);
    run(&["install", &longest, &web]);
    run(&["upgrade", "-i", "1", &nulls]);
    run(&["upgrade", "-i", "fresh", &nulls, "--hide-notes", "--description", "first"]);
    run(&["upgrade", "-i", "fresh", &nulls, "--set", "step=2"]);
    for side in [&helm, &ichor] {
        let mut kubectl = side.plane.kubectl().unwrap();
        kubectl.args(["create", "configmap", "taken", "--from-literal=own=1"]);
        plane::support::run(&mut kubectl).unwrap();
    }
    run(&["install", "taken", &web]);
    run(&["install", "taken", &web, "--take-ownership", "--set", "step=2"]);
    run(&["upgrade", "taken", &web, "--set", "step=1"]);
    // Objects without a name, and metadata of a wrong type: nothing is written, nothing recorded.
    let odd = odd_metadata();
    let odd = odd.path().to_string_lossy();
    for metadata in [
        "{}",
        r#"{"name":null}"#,
        r#"{"generateName":"x-"}"#,
        r#"{"name":"a/b"}"#,
        r#"{"name":"x","labels":{"v":7}}"#,
        r#"{"name":"x","labels":{"v":true}}"#,
        r#"{"name":"x","labels":"x"}"#,
        r#"{"name":"x","annotations":{"v":[1]}}"#,
        r#"{"name":"x","namespace":7}"#,
        r#"{"name":"x","finalizers":"x"}"#,
        r#"{"name":"x","generation":"x"}"#,
        r#"{"name":"x","generation":1.5}"#,
        r#"{"name":"x","uid":7}"#,
        r#"{"name":"x","creationTimestamp":"yesterday"}"#,
        r#"{"name":"x","creationTimestamp":"2026-01-02"}"#,
        r#"{"name":"x","deletionTimestamp":7}"#,
        r#"{"name":"x","annotations":7,"creationTimestamp":"x"}"#,
        r#"{"name":"x","ownerReferences":"x"}"#,
        r#"{"name":"x","ownerReferences":["x"]}"#,
        r#"{"name":"x","ownerReferences":[{"uid":7}]}"#,
        r#"{"name":"x","ownerReferences":[{"controller":"x","kind":[]}]}"#,
        r#"{"name":"x","ownerReferences":[{"apiVersion":"v1"}]}"#,
        r#"{"name":"x","managedFields":{}}"#,
        r#"{"name":"x","managedFields":[{"operation":7}]}"#,
        r#"{"name":"x","managedFields":[{"time":"x"}]}"#,
        r#""x""#,
    ] {
        let set = format!("metadata={metadata}");
        run(&["install", "odd", &odd, "--set-json", &set]);
        run(&["install", "odd", &odd, "--set-json", &set, "--take-ownership"]);
    }
    run(&["install", "odd", &odd, "--set-json", r#"metadata={"name":"fine"}"#]);
    run(&["upgrade", "odd", &odd, "--set-json", "metadata={}"]);
    run(&["upgrade", "web", &web, "--set", "image=null", "--reset-values"]);
    run(&["upgrade", "web", &web, "--set", "replicas=-1"]);
    run(&["upgrade", "web", &web, "--reset-values"]);
    run(&["upgrade", "web", &web, "--wait", "--timeout", "30s"]);
    run(&["upgrade", "web", &web, "--wait", "--timeout", "3s", "--set", "health=unready"]);
    // The newest record does not decode: an older one counts, whose next revision is taken.
    run(&["upgrade", "fresh", &nulls]);
    for side in [&helm, &ichor] {
        let mut kubectl = side.plane.kubectl().unwrap();
        let patch = r#"{"data":{"release":"eA=="}}"#;
        kubectl.args(["patch", "secret", "sh.helm.release.v1.fresh.v3", "-p", patch]);
        plane::support::run(&mut kubectl).unwrap();
    }
    let mut run = |arguments: &[&str]| both(&helm, &ichor, arguments, &mut faults);
    run(&["upgrade", "fresh", &nulls]);
    run(&["upgrade", "-i", "fresh", &nulls]);
    run(&["install", "fresh", &nulls]);
    for side in [&helm, &ichor] {
        let mut kubectl = side.plane.kubectl().unwrap();
        kubectl.args(["delete", "secret", "sh.helm.release.v1.fresh.v3"]);
        plane::support::run(&mut kubectl).unwrap();
    }
    same_objects(&helm, &ichor, "after all", &mut faults);
    assert!(faults.is_empty(), "{} differences:\n{}", faults.len(), faults.join("\n"));
}

/// A chart with one object, whose metadata the values give.
fn odd_metadata() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    std::fs::create_dir(folder.path().join("templates")).unwrap();
    write("Chart.yaml", "apiVersion: v2\nname: odd\nversion: 0.1.0\n");
    let object =
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{ toJson .Values.metadata }}\ndata: {a: b}\n";
    write("templates/object.yaml", object);
    folder
}

/// Cilium 1.19.6, then 1.20.0, with three value sets.
#[tokio::test(flavor = "multi_thread")]
async fn cilium() {
    for number in ["01", "02", "05"] {
        let began = Instant::now();
        let (Some(old), Some(new), Some(values)) = (
            or_skip(plane::cilium::chart("1.19.6")),
            or_skip(plane::cilium::chart("1.20.0")),
            or_skip(plane::cilium::values(number)),
        ) else {
            return;
        };
        let (old, new) = (old.to_string_lossy(), new.to_string_lossy());
        let values = values.to_string_lossy();
        let Some((helm, ichor)) = sides().await else { return };
        for side in [&helm, &ichor] {
            plane::cilium::create_stubs(&side.plane.client().unwrap()).await.unwrap();
        }
        let mut faults = Vec::new();
        let at = ["cilium", &*old, "-n", "kube-system", "-f", &*values];
        both(&helm, &ichor, &[&["install"], &at[..]].concat(), &mut faults);
        same_objects(&helm, &ichor, &format!("{number}: 1.19.6"), &mut faults);
        let at = ["cilium", &*new, "-n", "kube-system", "-f", &*values];
        both(&helm, &ichor, &[&["upgrade"], &at[..]].concat(), &mut faults);
        same_objects(&helm, &ichor, &format!("{number}: 1.20.0"), &mut faults);
        // Each goes on with what the other made.
        let helm = Side { program: Program::Ichor, ..helm };
        let ichor = Side { program: Program::Helm, ..ichor };
        let at =
            ["cilium", &*new, "-n", "kube-system", "--reuse-values", "--set", "debug.enabled=true"];
        both(&ichor, &helm, &[&["upgrade"], &at[..]].concat(), &mut faults);
        same_objects(&ichor, &helm, &format!("{number}: each upgraded the other's"), &mut faults);
        println!("{number}: {:.0} s", began.elapsed().as_secs_f64());
        assert!(faults.is_empty(), "{} differences:\n{}", faults.len(), faults.join("\n"));
    }
}
