//! Whole installations and upgrades through a server that fails: what passes is survived, what
//! lasts is reported as what it is, and no record says that something is under way that is not,
//! unless it could not be written, which the program then says.

#![expect(clippy::unwrap_used, reason = "test code: a panic is how a test fails")]
#![expect(clippy::print_stdout, reason = "how the trials went is told to whoever reads the output")]

mod strikes;

use std::ops::Range;
use std::time::Duration;

use live::trial::{Action, Trial, kubeconfig_through, kubectl, token_in_file};
use live::{Program, chart, summary};
use plane::support::or_skip;
use plane::{Fault, Match, Plane, PlaneOptions};
use serde_json::json;

use strikes::{Bed, CASES, Course, KINDS, Places, assert_none, told};

/// The cases whose every request is struck by every kind of fault; the others' requests are struck
/// by one kind each, in turns.
const WHOLE: usize = 2;

/// Strikes some of the cases, each on a plane of its own: hundreds of releases with their workloads
/// would slow a server down until faults of its own come in.
async fn one_by_one(course: Course, cases: Range<usize>, places: Places) {
    let mut faults = Vec::new();
    for case in cases {
        let Some(bed) = Bed::open(case..case + 1).await else { return };
        faults.extend(bed.strike(course, case..case + 1, places));
    }
    assert_none(&faults);
}

/// Every request is struck: by every kind of fault.
async fn by_every_kind(course: Course) {
    one_by_one(course, 0..WHOLE, |_, requests| (0..requests).collect()).await;
}

/// Every request is struck: by one kind of fault each.
async fn in_turns(course: Course) {
    one_by_one(course, WHOLE..CASES.len(), |kind, requests| {
        (kind..requests).step_by(KINDS.len()).collect()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: hack/proof faults"]
async fn passing_by_every_kind() {
    by_every_kind(Course::Passes).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: hack/proof faults"]
async fn passing_in_turns() {
    in_turns(Course::Passes).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: hack/proof faults"]
async fn lasting_by_every_kind() {
    by_every_kind(Course::Lasts).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: hack/proof faults"]
async fn lasting_in_turns() {
    in_turns(Course::Lasts).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn some_requests() {
    let Some(bed) = Bed::open(0..CASES.len()).await else { return };
    let whole = |course, places: Places| assert_none(&bed.strike(course, 0..WHOLE, places));
    whole(Course::Passes, |kind, requests| vec![kind * requests / KINDS.len(), requests - 1]);
    whole(Course::Lasts, |kind, requests| vec![kind * requests / KINDS.len()]);
    whole(Course::OneObject, |_, _| vec![0]);
    assert_none(&bed.strike(Course::Passes, WHOLE..CASES.len(), |kind, requests| match kind % 3 {
        0 => vec![kind * requests / KINDS.len() + requests / 12],
        _ => Vec::new(),
    }));
}

/// Readiness is asked for, not watched, so that no watch can be dropped or expire.
#[tokio::test(flavor = "multi_thread")]
async fn waiting() {
    let Some(plane) = or_skip(Plane::start(PlaneOptions::default()).await) else { return };
    let proxy = plane.fault_proxy().await.unwrap();
    let through = kubeconfig_through(&plane, &proxy.url(), "through");
    token_in_file(&through, &plane.folder().join("token"));
    let web = chart("web");
    let install = |namespace: &str, more: &[&str]| {
        kubectl(&plane, &["create", "namespace", namespace]);
        let web = web.to_string_lossy();
        let arguments = ["release", "install", "r", &web, "-n", namespace, "--wait"];
        let more = [&["--request-timeout", "3s"], more].concat();
        Program::Ichor.sealed(&through).run([&arguments[..], &more].concat())
    };
    // The first read is the one that looks for objects in the way.
    let reads = || Match::any().verbs(&["get"]).resource("deployments");
    for (index, kind) in KINDS.iter().enumerate() {
        proxy.add_later(1, Some(kind.passing), reads(), kind.fault.clone());
        let outcome = install(&format!("wait-{index}"), &["--timeout", "60s"]);
        let struck = proxy.requests().iter().filter(|request| request.fault.is_some()).count();
        proxy.clear();
        proxy.cut_watches();
        proxy.expire_watches();
        assert_eq!(outcome.code, Some(0), "{}: {}", kind.name, told(&outcome));
        assert!(struck > 0, "{} struck nothing", kind.name);
        let watches = proxy.count(&Match::any().verbs(&["watch"]));
        assert_eq!(watches, 0, "{}", kind.name);
        proxy.forget();
    }
    // What cannot be read until time is up is no success.
    proxy.add_later(1, None, reads(), Fault::Busy);
    let outcome = install("wait-lasting", &["--timeout", "12s"]);
    proxy.clear();
    assert_eq!(outcome.code, Some(1));
    assert!(told(&outcome).contains("context deadline exceeded"), "{}", told(&outcome));
    let history = ["release", "history", "r", "-n", "wait-lasting"];
    let history = Program::Ichor.sealed(&plane.kubeconfig()).run(history);
    let history = String::from_utf8_lossy(&history.stdout).into_owned();
    assert!(history.contains("failed"), "{history}");
    assert!(history.contains("context deadline exceeded"), "{history}");
}

/// An API group whose server is away does not keep releases from being made that have nothing of
/// it, as in Helm; those that have are told of it.
#[tokio::test(flavor = "multi_thread")]
async fn an_api_group_that_is_down() {
    if or_skip(plane::find_peer("helm")).is_none() {
        return;
    }
    let Some(plane) = or_skip(Plane::start(PlaneOptions::default()).await) else { return };
    let service = json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": { "name": "v1.down.example.org" },
        "spec": {
            "group": "down.example.org", "version": "v1", "groupPriorityMinimum": 100,
            "versionPriority": 100, "insecureSkipTLSVerify": true,
            "service": { "name": "nobody", "namespace": "default" },
        },
    });
    let file = plane.folder().join("service.json");
    std::fs::write(&file, service.to_string()).unwrap();
    kubectl(&plane, &["create", "-f", &file.to_string_lossy()]);
    // The server needs a moment to know it.
    let web = chart("web").to_string_lossy().into_owned();
    let mut warning = String::new();
    for _ in 0..100 {
        let arguments = ["install", "r", &web, "--dry-run=server"];
        warning = strikes::told(&Program::Ichor.run(&plane.kubeconfig(), &arguments));
        if !warning.is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(warning.contains("stale GroupVersion discovery: down.example.org/v1"), "{warning}");
    let mut told = Vec::new();
    for program in [Program::Helm, Program::Ichor] {
        let namespace = format!("down-{program:?}").to_lowercase();
        let mut summaries = String::new();
        for (action, step) in [("install", "step=1"), ("upgrade", "step=2")] {
            let arguments =
                [action, "r", &web, "-n", &namespace, "--create-namespace", "--set", step];
            let outcome = program.run(&plane.kubeconfig(), &arguments);
            assert_eq!(outcome.code, Some(0), "{}", strikes::told(&outcome));
            summaries += &summary(&outcome);
        }
        told.push(summaries.replace(&namespace, "(namespace)"));
    }
    // Helm says of the group with --debug alone.
    let is_warned = |line: &&str| line.starts_with("WARNING: The Kubernetes server has");
    assert!(told[1].lines().any(|line| is_warned(&line)), "{}", told[1]);
    let rest = |text: &str| {
        let lines = text.lines().filter(|line| !line.is_empty() && !is_warned(line));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(rest(&told[0]), rest(&told[1]));

    // The group goes down after it was found, and before.
    let proxy = plane.fault_proxy().await.unwrap();
    let through = kubeconfig_through(&plane, &proxy.url(), "through");
    let rules = Match::any().group("rbac.authorization.k8s.io").verbs(&["create"]);
    proxy.add(rules, Fault::Unavailable);
    let trial = Trial::prepare(&plane, Action::Install, "down-late");
    let outcome = strikes::act(&trial, &through);
    proxy.clear();
    let unable = "the server is currently unable to handle the request";
    assert_eq!(outcome.code, Some(1));
    assert!(strikes::told(&outcome).contains(unable), "{}", strikes::told(&outcome));
    let history = trial.history();
    assert_eq!(history[0].status, "failed");
    assert!(history[0].description.contains(unable), "{history:?}");
    proxy.add(Match::any(), Fault::GroupDown { group: "rbac.authorization.k8s.io".to_owned() });
    let trial = Trial::prepare(&plane, Action::Install, "down-early");
    let outcome = strikes::act(&trial, &through);
    let down = "(the server of rbac.authorization.k8s.io/v1 is down: stale GroupVersion discovery: \
                rbac.authorization.k8s.io/v1)";
    assert!(strikes::told(&outcome).contains(down), "{}", strikes::told(&outcome));
    assert!(trial.history().is_empty());
}

/// A token that the server takes no more, in the middle of an installation: a file with a new one
/// is read; without one the program says that it is refused, and that the record is pending.
#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_expires() {
    let Some(plane) = or_skip(Plane::start(PlaneOptions::default()).await) else { return };
    kubectl(&plane, &["create", "serviceaccount", "worker"]);
    let binding = ["create", "clusterrolebinding", "worker", "--clusterrole=cluster-admin"];
    kubectl(&plane, &[&binding[..], &["--serviceaccount=default:worker"]].concat());
    let token = |secret: &str| {
        kubectl(&plane, &["create", "secret", "generic", secret]);
        let bound = ["--bound-object-kind=Secret", "--bound-object-name", secret];
        kubectl(&plane, &[&["create", "token", "worker"], &bound[..]].concat())
    };
    let proxy = plane.fault_proxy().await.unwrap();
    for rotated in [true, false] {
        let old = format!("old-{rotated}");
        let through = plane.folder().join(format!("{old}.kubeconfig"));
        plane.write_kubeconfig(&through, &proxy.url(), token(&old).trim()).unwrap();
        let file = plane.folder().join(format!("{old}.token"));
        if rotated {
            token_in_file(&through, &file);
        }
        let trial = Trial::prepare(&plane, Action::Install, &format!("expires-{rotated}"));
        let mut pauses = proxy.pause_before(Match::writes());
        let arguments = trial.arguments(Action::Install);
        let kubeconfig = through.clone();
        let running = std::thread::spawn(move || Program::Ichor.sealed(&kubeconfig).run(arguments));
        // The record, and one object.
        for _ in 0..2 {
            pauses.recv().await.unwrap().release();
        }
        let paused = pauses.recv().await.unwrap();
        kubectl(&plane, &["delete", "secret", &old]);
        if rotated {
            std::fs::write(&file, token("new").trim()).unwrap();
        }
        // The server remembers for ten seconds whom a token stands for.
        tokio::time::sleep(Duration::from_secs(12)).await;
        proxy.clear();
        paused.release();
        let outcome = running.join().unwrap();
        let last = trial.history().pop().unwrap();
        if rotated {
            assert_eq!((outcome.code, last.status.as_str()), (Some(0), "deployed"));
        } else {
            let told = told(&outcome);
            assert_eq!((outcome.code, last.status.as_str()), (Some(1), "pending-install"));
            assert!(told.contains("Unauthorized"), "{told}");
            assert!(told.contains("ichor release repair r"), "{told}");
            trial.recover();
        }
        assert_eq!(trial.unfinished(), None);
    }
}
