//! SIGINT and SIGTERM in the middle of an action: it stops, and the record says that it failed and
//! why, in the same words as Helm's.

#![expect(clippy::unwrap_used, reason = "test code: a panic is how a test fails")]

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use live::trial::kubectl;
use live::{Program, chart, summary};
use plane::support::or_skip;
use plane::{Plane, PlaneOptions};
use serde_json::Value;
use test_support::sealed::Outcome;

/// Runs an action that waits for pods which never become ready, and sends a signal meanwhile.
fn interrupted(plane: &Plane, program: Program, signal: &str, action: &str, space: &str) -> String {
    let web = chart("web").to_string_lossy().into_owned();
    let arguments = [action, "r", &web, "-n", space, "--wait", "--set", "health=unready"];
    let child = Command::new(match program {
        Program::Helm => plane::find_peer("helm").unwrap().path,
        Program::Ichor => test_support::place::ichor().to_path_buf(),
    })
    .args(program.arguments(&arguments))
    .env("KUBECONFIG", plane.kubeconfig())
    .env("HOME", plane.folder())
    .stdin(Stdio::null())
    .stdout(Stdio::piped())
    .stderr(Stdio::piped())
    .spawn()
    .unwrap();
    // The last object of the chart; the upgrade changes the pods' annotations.
    let began = Instant::now();
    let written = || {
        let mut command = plane.kubectl().unwrap();
        let path = "jsonpath={.spec.template.metadata.annotations}";
        command.args(["get", "deployment", "r", "-n", space, "-o", path]);
        plane::support::run(&mut command).is_ok_and(|text| text.contains("unready"))
    };
    while !written() {
        assert!(began.elapsed() < Duration::from_mins(1), "{space}: nothing is written");
        std::thread::sleep(Duration::from_millis(50));
    }
    std::thread::sleep(Duration::from_millis(500));
    let mut kill = Command::new("kill");
    assert!(kill.args(["-s", signal, &child.id().to_string()]).status().unwrap().success());
    let sent = Instant::now();
    let output = child.wait_with_output().unwrap();
    assert!(sent.elapsed() < Duration::from_secs(20), "{space}: it goes on");
    let (stdout, stderr) = (output.stdout, output.stderr);
    let outcome = Outcome { stdout, stderr, code: output.status.code(), timed_out: false };
    let history = ["history", "r", "-n", space, "-o", "json"];
    let history = Program::Helm.run(&plane.kubeconfig(), &history);
    let mut revisions: Vec<Value> = serde_json::from_slice(&history.stdout).unwrap();
    for revision in &mut revisions {
        revision["updated"] = Value::Null;
    }
    let text = summary(&outcome) + &Value::from(revisions).to_string();
    text.replace(space, "(namespace)")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_stops_an_action_as_it_stops_helms() {
    if or_skip(plane::find_peer("helm")).is_none() {
        return;
    }
    let Some(plane) = or_skip(Plane::start(PlaneOptions::default()).await) else { return };
    let mut told = Vec::new();
    for program in [Program::Helm, Program::Ichor] {
        for (signal, action) in [("TERM", "install"), ("INT", "install"), ("TERM", "upgrade")] {
            let space = format!("{program:?}-{signal}-{action}").to_lowercase();
            kubectl(&plane, &["create", "namespace", &space]);
            if action == "upgrade" {
                let web = chart("web").to_string_lossy().into_owned();
                let outcome =
                    program.run(&plane.kubeconfig(), &["install", "r", &web, "-n", &space]);
                assert_eq!(outcome.code, Some(0));
            }
            told.push(interrupted(&plane, program, signal, action, &space));
        }
    }
    let (helm, ichor) = told.split_at(3);
    for (helm, ichor) in helm.iter().zip(ichor) {
        assert!(helm.contains("context canceled"), "{helm}");
        assert_eq!(helm, ichor);
    }
}
