//! The Job as a program: exit codes, termination message, signals; and as a pod on the plane.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use helm_rs::action::rights::Right;
use plane::{Match, Plane, PlaneOptions};
use serde_json::{Value, json};
use takeover::plan::Outcome;
use takeover_tests::{Bed, records};
use test_support::sealed::Sealed;

const IMAGE: &str = "example.org/ichor";

/// The folder with the pinned chart.
fn charts() -> String {
    let chart = plane::cilium::chart("1.20.0").unwrap();
    chart.parent().unwrap().display().to_string()
}

fn ichor(kubeconfig: &Path) -> Sealed {
    Sealed::ichor()
        .variable("KUBECONFIG", &kubeconfig.display().to_string())
        .variable("ICHOR_CHART_DIR", &charts())
        .limit(Duration::from_mins(5))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The program as the Job's identity: refused, refused for a right, done, nothing left to do.
#[tokio::test(flavor = "multi_thread")]
async fn a10_exit_codes_and_last_words() {
    let Some(bed) = Bed::with_cilium("1.20.0", "01").await else { return };
    let admin = bed.plane.kubeconfig();
    let rights = ichor(&admin).run(["cni", "manifest", "--rights"]);
    assert_eq!(rights.code, Some(0), "{}", text(&rights.stderr));
    let file = bed.plane.folder().join("rights.yaml");
    std::fs::write(&file, &rights.stdout).unwrap();
    bed.kubectl_with(&["apply", "-f"], &file);
    let worker = bed.login().await;
    bed.until_allowed(&Right::any("list", "", "nodes", ""), true).await;
    let planned = ichor(&admin).run(["cni", "plan", "--for-job", "--output", "json"]);
    assert_eq!(planned.code, Some(0), "{}{}", text(&planned.stdout), text(&planned.stderr));
    let plan: Value = serde_json::from_slice(&planned.stdout).unwrap();
    assert_eq!(plan["rights"]["identity"], "system:serviceaccount:kube-system:ichor-cni");
    let digest = format!("--digest={}", plan["digest"].as_str().unwrap());
    let message = bed.plane.folder().join("message");
    let run = |arguments: &[&str]| {
        let mut all = vec!["cni", "run", "--takeover"];
        all.extend(arguments);
        let outcome = ichor(&worker.kubeconfig)
            .variable("ICHOR_TERMINATION_MESSAGE", &message.display().to_string())
            .run(all);
        let told = std::fs::read_to_string(&message).unwrap_or_default();
        println!("{:?}: {told}\n{}", outcome.code, text(&outcome.stderr));
        assert!(told.len() <= 4096 && !told.contains('\n'), "{told}");
        (outcome, told)
    };
    let (refused, told) = run(&["--digest=sha256:0000"]);
    assert_eq!(refused.code, Some(2));
    assert!(told.starts_with("refused: what would be done is not what was consented to"), "{told}");
    bed.kubectl(&[
        "-n",
        "ichor-system",
        "patch",
        "role",
        "ichor-cni",
        "--type=json",
        "-p",
        r#"[{"op": "replace", "path": "/rules", "value": []}]"#,
    ]);
    bed.until_allowed(&Right::any("list", "", "secrets", "ichor-system"), false).await;
    let (refused, told) = run(&[&digest]);
    assert_eq!(refused.code, Some(2));
    assert!(told.contains("list secrets in namespace ichor-system"), "{told}");
    assert!(told.contains("add it to Role ichor-cni in namespace ichor-system"), "{told}");
    bed.kubectl_with(&["apply", "-f"], &file);
    bed.until_allowed(&Right::any("list", "", "secrets", "ichor-system"), true).await;
    let (done, told) = run(&[&digest, "--log-format=json"]);
    assert_eq!(done.code, Some(0));
    assert!(told.starts_with("done: Taken over: revision 1"), "{told}");
    assert!(done.stdout.is_empty(), "everything is in the log");
    for line in text(&done.stderr).lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        assert!(line["time"].is_string() && line["level"] == "info", "{line}");
    }
    let (again, _) = run(&[&digest]);
    assert_eq!(again.code, Some(0));
    // The rights on foreign records end with the hand-over, the others stay.
    let roles = || {
        let label = "app.kubernetes.io/name=ichor-cni";
        let all = bed.kubectl(&["get", "role,rolebinding", "-A", "-l", label, "-o", "name"]);
        let of_records = all.lines().filter(|name| name.ends_with("ichor-cni-records-role"));
        (of_records.count(), all.lines().count())
    };
    let (records, all) = roles();
    assert_eq!(records, 2, "a Role and its binding");
    let look = ichor(&admin).run(["adopt", "--cilium-only"]);
    assert_eq!(look.code, Some(0));
    assert!(text(&look.stderr).contains("--yes removes it"), "{}", text(&look.stderr));
    assert_eq!(roles(), (2, all));
    let removed = ichor(&admin).run(["adopt", "--cilium-only", "--yes"]);
    assert_eq!(removed.code, Some(0), "{}", text(&removed.stderr));
    assert!(text(&removed.stderr).contains("the hand-over is complete"));
    assert_eq!(roles(), (0, all - 2));
    // Nobody listens there: nothing can be said of the cluster.
    bed.plane.write_kubeconfig(&worker.kubeconfig, "https://127.0.0.1:1", "none").unwrap();
    let (failed, told) = run(&[&digest]);
    assert_eq!(failed.code, Some(1));
    assert!(told.starts_with("failed: "), "{told}");
}

/// SIGTERM between two writes: exit code 1, the record says so, the next run goes on.
#[tokio::test(flavor = "multi_thread")]
async fn a10_stopped_by_a_signal() {
    let Some(bed) = records::in_another_namespace().await else { return };
    let prepared = bed.plan(None).await;
    let worker = bed.worker(&prepared.needs).await;
    bed.until_allowed(&Right::any("list", "", "secrets", "infra"), true).await;
    let matching = Match::writes().verbs(&["patch"]).resource("daemonsets").name("cilium");
    let mut paused = worker.proxy.pause_before(matching);
    let message = bed.plane.folder().join("message");
    let child = Command::new(test_support::place::ichor())
        .args(["cni", "run", "--takeover", &format!("--digest={}", prepared.plan.digest)])
        .args(["--termination-message", &message.display().to_string()])
        .env("KUBECONFIG", &worker.kubeconfig)
        .env("ICHOR_CHART_DIR", charts())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The dry run of the plan passes: only the write is held.
    let held = tokio::time::timeout(Duration::from_mins(2), paused.recv()).await;
    let held = held.unwrap_or_else(|_| {
        panic!("no write came: {}", std::fs::read_to_string(&message).unwrap_or_default())
    });
    let held = held.unwrap();
    let pid = child.id().to_string();
    plane::support::run(Command::new("kill").args(["-TERM", &pid])).unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    held.release();
    let outcome = tokio::task::spawn_blocking(|| child.wait_with_output()).await.unwrap().unwrap();
    let told = std::fs::read_to_string(&message).unwrap();
    println!("{:?}: {told}\n{}", outcome.status, text(&outcome.stderr));
    assert_eq!(outcome.status.code(), Some(1));
    assert!(told.starts_with("failed: ") && told.contains("run it again to go on"), "{told}");
    let status = bed.helm(&["-n", "ichor-system", "history", "cilium"]);
    assert!(status.contains("failed"), "{status}");
    worker.proxy.clear();
    let done = bed.run_of(&worker, None, &prepared.plan.digest).await.unwrap();
    assert!(done.resumed && done.revision == 2, "{done:?}");
    assert_eq!(bed.plan(None).await.plan.outcome, Outcome::Nothing);
}

/// The whole manifest applied: the Job's pod runs under its ServiceAccount and takes over.
#[tokio::test(flavor = "multi_thread")]
async fn a10_the_job_runs_in_a_pod() {
    let state = plane::cilium::state("1.20.0", "03").await;
    let Some(state) = plane::support::or_skip(state) else { return };
    if let Err(reason) = plane::can_execute() {
        test_support::skip!(format!("pods cannot be executed here: {reason}"));
    }
    let mut options = PlaneOptions::default();
    options.images.insert(IMAGE.to_owned(), test_support::place::ichor().to_owned());
    let bed = Bed::new(Plane::restore(&state, options).await.unwrap()).await;
    takeover_tests::kube_proxy(&bed);
    let image = format!("--image={IMAGE}:1");
    let manifest = ichor(&bed.plane.kubeconfig()).run(["cni", "manifest", &image, "--output=json"]);
    assert_eq!(manifest.code, Some(0), "{}", text(&manifest.stderr));
    let mut list: Value = serde_json::from_slice(&manifest.stdout).unwrap();
    let apply = |list: &Value| {
        let file = bed.plane.folder().join("manifest.json");
        std::fs::write(&file, list.to_string()).unwrap();
        bed.kubectl_with(&["apply", "-f"], &file);
    };
    let job = list["items"].as_array().unwrap().len() - 1;
    {
        // What the image says itself.
        let container = &mut list["items"][job]["spec"]["template"]["spec"]["containers"][0];
        container["env"] = json!([{ "name": "ICHOR_CHART_DIR", "value": charts() }]);
    }
    let mut wrong = list.clone();
    wrong["items"][job]["spec"]["template"]["spec"]["containers"][0]["args"][3] =
        "--digest=sha256:0".into();
    apply(&wrong);
    assert_eq!(ended(&bed).await, (2, true), "another digest");
    bed.kubectl(&["-n", "kube-system", "delete", "job", "ichor-cni", "--wait"]);
    apply(&list);
    assert_eq!(ended(&bed).await, (0, false));
    bed.kubectl(&[
        "-n",
        "kube-system",
        "wait",
        "--for=condition=complete",
        "job/ichor-cni",
        "--timeout=30s",
    ]);
    assert_eq!(bed.plan(None).await.plan.outcome, Outcome::Nothing);
}

/// Waits for the Job's pod: its exit code, and whether its message says that it refused.
async fn ended(bed: &Bed) -> (i64, bool) {
    let pods = ["-n", "kube-system", "get", "pods", "-l", "job-name=ichor-cni", "-o", "json"];
    for _ in 0..600 {
        let list: Value = serde_json::from_str(&bed.kubectl(&pods)).unwrap();
        let state = list.pointer("/items/0/status/containerStatuses/0/state/terminated");
        if let Some(state) = state {
            let told = state["message"].as_str().unwrap_or_default();
            println!("{}: {told}", state["exitCode"]);
            assert!(told.starts_with("done: ") || told.starts_with("refused: "), "{state}");
            return (state["exitCode"].as_i64().unwrap(), told.starts_with("refused: "));
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    panic!("the Job's pod does not end: {}", bed.kubectl(&pods));
}
