//! A marker in values, in a Secret and in a record appears in nothing that people or logs see.

use std::io::Read as _;
use std::sync::Mutex;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use helm_rs::apply::Silent;
use helm_rs::apply::{Cancel, Observer, Waiting};
use helm_rs::cluster::Moment;
use helm_rs::error_chain;
use serde_json::Value;
use takeover::plan::to_text;
use takeover::report::{Form, render};
use takeover::run::restore::{plan_restore, restore};
use takeover::run::status::status;
use takeover::run::{Run, left_over, take_over};
use takeover::snapshot::Stage;
use takeover_tests::process::Site;
use takeover_tests::rehearsal::{Rehearsal, Tried, text};
use takeover_tests::{Bed, export, prepared, values_path};

const MARKER: &str = "hunter2-ichor-marker";

/// Keeps every line.
#[derive(Default)]
struct Ears(Mutex<Vec<String>>);

impl Observer for Ears {
    fn log(&self, line: &str) {
        self.0.lock().unwrap().push(line.to_owned());
    }

    fn waiting(&self, objects: &[Waiting]) {
        self.0.lock().unwrap().push(format!("{objects:?}"));
    }
}

/// Fails when one of the forms of the marker is in a text.
fn clean(what: &str, text: &str) {
    let plain = STANDARD.encode(MARKER);
    for form in [MARKER, plain.trim_end_matches('=')] {
        assert!(!text.contains(form), "{what} shows the marker: {text}");
    }
}

async fn marked_bed() -> Option<Bed> {
    prepared("marked", "1", |plane| {
        let values = values_path("01");
        let secret = format!("extraEnv[0].value={MARKER}");
        let arguments = [
            "-f",
            &values,
            "--set",
            "extraEnv[0].name=API_PASSWORD",
            "--set",
            &secret,
            "--set",
            &format!("ichorTestToken={MARKER}"),
        ];
        takeover_tests::helm_install(plane, "cilium", "kube-system", "1.20.0", &arguments);
    })
    .await
}

async fn marked() -> Option<Rehearsal> {
    let bed = marked_bed().await?;
    let mut objects = export(&*bed.cluster).await;
    bed.plane.stop();
    for object in &mut objects {
        // A leaf of the chart's Secret that somebody added: residue.
        if text(object, "/kind") == "Secret" && text(object, "/metadata/name") == "cilium-ca" {
            object["data"]["extra"] = STANDARD.encode(MARKER).into();
        }
        let owned = object.pointer("/metadata/annotations/meta.helm.sh~1release-name").is_some();
        if owned && text(object, "/kind") == "Secret" {
            object["metadata"]["annotations"]["meta.helm.sh/release-name"] = "other".into();
        }
    }
    Some(Rehearsal::takeover(objects).await)
}

/// What the stored plan holds, unpacked.
fn stored(stage: &Stage) -> Option<String> {
    let secret = stage.object("Secret", "ichor-system", "ichor-cni-plan")?;
    let packed = STANDARD.decode(text(&secret, "/data/plan")).unwrap();
    let mut plain = String::new();
    flate2::read::GzDecoder::new(packed.as_slice()).read_to_string(&mut plain).unwrap();
    Some(plain)
}

/// Everything of a stage that may not show the marker.
async fn look(stage: &Stage, what: &str) {
    if let Some(plan) = stored(stage) {
        clean(&format!("{what}: the stored plan"), &plan);
    }
    if let Some(lease) = stage.object("Lease", "ichor-system", "ichor-cni") {
        clean(&format!("{what}: the Lease"), &lease.to_string());
    }
    for call in &stage.timeline() {
        clean(&format!("{what}: the timeline"), &call.to_string());
    }
    let left = left_over(&*stage.memory, &*stage.clock).await.unwrap();
    clean(&format!("{what}: what is left over"), &format!("{left:?}"));
    clean(
        &format!("{what}: status"),
        &format!("{:?}", status(&*stage.memory, &*stage.clock).await.unwrap()),
    );
    for object in stage.memory.objects() {
        let annotations = object.pointer("/metadata/annotations").map(Value::to_string);
        if text(&object, "/metadata/namespace") == "ichor-system" {
            clean(&format!("{what}: annotations"), &annotations.unwrap_or_default());
        }
    }
}

async fn run(rehearsal: &Rehearsal, stage: &Stage, digest: Option<&str>) -> bool {
    let (ears, cancel) = (Ears::default(), Cancel::default());
    let run = Run {
        request: rehearsal.request(stage),
        digest: digest.map(str::to_owned),
        accept_changes: true,
        accept_diff: true,
        holder: "credentials".to_owned(),
        observer: &ears,
        cancel: &cancel,
        timeout: Duration::from_mins(1),
    };
    let result = take_over(&run).await;
    let is_done = result.is_ok();
    match result {
        Ok(done) => clean("what was done", &format!("{done:?}")),
        Err(error) => {
            clean("the error", &error_chain(&error));
            clean("the error", &format!("{error:?}"));
        }
    }
    for line in ears.0.lock().unwrap().iter() {
        clean("the log", line);
    }
    is_done
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_appear_nowhere() {
    let Some(rehearsal) = marked().await else { return };
    let mut stage = rehearsal.stage();
    let prepared = rehearsal.plan(&stage).await;
    let plan = &prepared.plan;
    assert!(plan.figures().residue > 0, "the marker is residue");
    clean("the plan's JSON", &plan.to_json().unwrap());
    for verbose in [false, true] {
        clean("the plan's text", &to_text(plan, verbose));
    }
    clean("the plan", &format!("{plan:?}"));
    for form in [Form::Html, Form::Markdown, Form::Json] {
        clean(&format!("the report as {form:?}"), &render(plan, form).unwrap());
    }
    // Without consent, with another one, killed, stopped by a stranger, and whole.
    assert!(!run(&rehearsal, &stage, None).await);
    assert!(!run(&rehearsal, &stage, Some("sha256:another")).await);
    look(&stage, "refused").await;
    let digest = rehearsal.digest.as_str();
    let (_, writes) = rehearsal.reference().await;
    for at in [4, writes.len() / 2, writes.len() - 2] {
        stage = rehearsal.stage();
        stage.kill(at, Moment::After);
        assert!(!run(&rehearsal, &stage, Some(digest)).await);
        look(&stage, "killed").await;
        stage.restart();
        assert!(run(&rehearsal, &stage, Some(digest)).await, "killed at {at}");
        look(&stage, "recovered").await;
    }
    let back = plan_restore(&*stage.memory).await.unwrap();
    clean("the plan of the restore", &format!("{back:?}"));
    let cluster: std::sync::Arc<dyn helm_rs::cluster::Cluster> = stage.cluster();
    let done = restore(&cluster, &*stage.clock, "credentials", None, &Silent).await.unwrap();
    clean("what was restored", &format!("{done:?}"));
    look(&stage, "restored").await;
    // The marker is where it has to be.
    let live = stage.object("DaemonSet", "kube-system", "cilium").unwrap();
    assert!(live.to_string().contains(MARKER));
}

/// What the program itself lets anybody see, and what the cluster shows of it: output, reports,
/// termination message, events.
#[tokio::test(flavor = "multi_thread")]
async fn credentials_in_no_output() {
    let Some(bed) = marked_bed().await else { return };
    // A leaf of the chart's Secret that somebody added, and a record that somebody marked.
    let data = serde_json::json!({ "data": { "extra": STANDARD.encode(MARKER) } }).to_string();
    bed.kubectl(&["-n", "kube-system", "patch", "secret", "cilium-ca", "-p", &data]);
    let site = Site::new(bed).await;
    let folder = site.bed.plane.folder();
    let file = |name: &str| folder.join(name).display().to_string();
    let run = |arguments: &[&str], code: i32| {
        let output = site.ichor(arguments);
        let text = String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}");
        clean(&format!("{arguments:?}"), &text);
    };
    let reports = ["plan.html", "plan.md", "plan.json"].map(file);
    let mut arguments = vec!["adopt", "--cilium-only", "--plan", "--show-all", "--verbose"];
    arguments.extend(reports.iter().flat_map(|report| ["--report", report.as_str()]));
    run(&arguments, 2);
    for report in &reports {
        clean(report, &std::fs::read_to_string(report).unwrap());
    }
    let message = file("message");
    let mut takeover = vec!["cni", "run", "--takeover", "--termination-message", &message];
    let told = |what: &str| clean(what, &std::fs::read_to_string(&message).unwrap());
    run(&takeover, 2);
    told("the message of a refusal");
    takeover.extend(["--log-format=json", "--digest", &site.digest]);
    run(&takeover, 0);
    told("the message of the end");
    run(&["cni", "status"], 0);
    run(&["adopt", "--cilium-only"], 0);
    run(&["cni", "restore"], 2);
    let events = site.bed.kubectl(&["get", "events", "-A", "-o", "json"]);
    clean("events", &events);
    clean("the Lease", &site.bed.kubectl(&["-n", "ichor-system", "get", "lease", "-o", "json"]));
    site.bed.plane.stop();
}
