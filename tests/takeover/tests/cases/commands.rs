//! The commands as people use them on a real control plane: with too few rights, without an answer,
//! with files in odd places.

use std::fs;
use std::path::Path;

use serde_json::Value;
use takeover_tests::process::{command, told};
use takeover_tests::{Bed, installed, values_path};

/// Runs the program; its exit code and all that it printed.
fn ichor(kubeconfig: &Path, arguments: &[&str]) -> (i32, String) {
    told(&command(kubeconfig, arguments).output().unwrap())
}

/// Every command that looks first, as one writes it.
const COMMANDS: [&[&str]; 6] = [
    &["cni", "status"],
    &["cni", "plan"],
    &["cni", "manifest", "--image", "example.org/ichor:1"],
    &["cni", "restore", "--yes"],
    &["cni", "run", "--takeover"],
    &["adopt", "--cilium-only", "--yes"],
];

/// A kubeconfig for a ServiceAccount.
fn account(bed: &Bed, name: &str) -> std::path::PathBuf {
    let token = bed.kubectl(&["-n", "default", "create", "token", name]);
    let file = bed.plane.folder().join(format!("{name}.kubeconfig"));
    bed.plane.write_kubeconfig(&file, &bed.plane.url(), token.trim()).unwrap();
    file
}

/// Too few rights, a token that is not taken, a server that does not answer: each is said in words,
/// with what to do, and with the exit code that the help names.
#[tokio::test(flavor = "multi_thread")]
async fn commands_say_what_is_missing() {
    let Some(bed) = Bed::with_cilium("1.20.0", "01").await else { return };
    bed.kubectl(&["-n", "default", "create", "serviceaccount", "viewer"]);
    let binding = ["create", "clusterrolebinding", "viewer", "--clusterrole=view"];
    bed.kubectl(&[&binding[..], &["--serviceaccount=default:viewer"]].concat());
    let versions = bed.versions().await;
    let viewer = account(&bed, "viewer");
    let user = "system:serviceaccount:default:viewer";
    for arguments in COMMANDS {
        let (code, text) = ichor(&viewer, arguments);
        println!("{arguments:?}: {code}\n{text}");
        assert_eq!(code, 2, "{arguments:?}: {text}");
        assert!(text.contains("refused: ") && text.contains(user), "{arguments:?}: {text}");
        let names = ["list secrets in namespace ichor-system", "list nodes"];
        assert!(names.iter().any(|right| text.contains(right)), "{arguments:?}: {text}");
        assert!(!text.contains("query: failed to query"), "{arguments:?}: {text}");
    }
    // All that is missing to look is told at once, what tells where Cilium comes from included.
    let (_, told) = ichor(&viewer, &["cni", "plan"]);
    for right in [
        "list nodes (",
        "get leases.coordination.k8s.io ichor-cni in namespace ichor-system (",
        "get secrets in namespace ichor-system (",
        "list secrets in namespace ichor-system (",
        "list secrets in namespace kube-system (finding the foreign records)",
        "get secrets cilium-cli-helm-values in namespace kube-system (the Cilium CLI's values)",
    ] {
        assert!(told.contains(right), "{right}: {told}");
    }
    // ConfigMaps it may list, and with values of the operator's own nobody looks for others.
    assert!(!told.contains("configmaps"), "{told}");
    let file = values_path("01");
    let (_, told) = ichor(&viewer, &["cni", "plan", "--cilium-values", &file]);
    assert!(told.contains("list secrets in namespace kube-system ("), "{told}");
    assert!(!told.contains("cilium-cli-helm-values"), "{told}");
    // What the command says is missing is all that is missing to look.
    let rule = |file: &str, name: &str, rest: &[&str]| {
        let kind = if rest.contains(&"-n") { "role" } else { "clusterrole" };
        bed.kubectl(&[&["create", kind, name][..], rest].concat());
        let to = if kind == "role" { "rolebinding" } else { "clusterrolebinding" };
        let role = format!("--{kind}={name}");
        let place: &[&str] = if kind == "role" { &["-n", file] } else { &[] };
        let subject = ["--serviceaccount=default:viewer"];
        bed.kubectl(&[&["create", to, name, &role][..], &subject, place].concat());
    };
    bed.kubectl(&["create", "namespace", "ichor-system"]);
    let secrets = ["--verb=get,list", "--resource=secrets", "-n", "ichor-system"];
    rule("ichor-system", "look-secrets", &secrets);
    let leases = ["--verb=get", "--resource=leases.coordination.k8s.io", "-n", "ichor-system"];
    rule("ichor-system", "look-leases", &leases);
    let nodes = ["--verb=get,list", "--resource=nodes,namespaces"];
    rule("", "look-nodes", &nodes);
    let user_may = helm_rs::cluster::Subject::service_account("default", "viewer");
    let list = helm_rs::action::rights::Right::any("list", "", "nodes", "");
    while !bed.cluster.subject_may(&user_may, &list.question()).await.unwrap().allowed {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    let (code, text) = ichor(&viewer, &["cni", "status"]);
    println!("{text}");
    assert!(text.contains("state: not begun"), "{code}: {text}");
    // The release's record lies where it may not look: it is not taken for missing.
    for arguments in
        [&["cni", "status"][..], &["cni", "plan"], &["adopt", "--cilium-only", "--plan"]]
    {
        let (code, text) = ichor(&viewer, arguments);
        let right = "list secrets in namespace kube-system (finding the foreign records): add it to \
                     a Role of system:serviceaccount:default:viewer in namespace kube-system";
        assert!(code == 2 && text.contains(right), "{arguments:?}: {code}: {text}");
        assert!(!text.contains("recovered from what runs"), "{arguments:?}: {text}");
    }

    let expired = bed.plane.folder().join("expired.kubeconfig");
    bed.plane.write_kubeconfig(&expired, &bed.plane.url(), "not-a-token").unwrap();
    let away = bed.plane.folder().join("away.kubeconfig");
    bed.plane.write_kubeconfig(&away, "https://127.0.0.1:9", "x").unwrap();
    for arguments in COMMANDS {
        let (code, text) = ichor(&expired, arguments);
        assert_eq!(code, 1, "{arguments:?}: {text}");
        assert!(text.contains("credentials") || text.contains("Unauthorized"), "{text}");
        assert!(text.contains("expired"), "{arguments:?}: {text}");
        let (code, text) = ichor(&away, arguments);
        assert_eq!(code, 1, "{arguments:?}: {text}");
        assert!(text.contains("connection refused"), "{arguments:?}: {text}");
        assert!(text.contains("is the server up"), "{arguments:?}: {text}");
    }
    assert_eq!(bed.versions().await, versions, "nothing was written");
    bed.plane.stop();
}

/// The ways from a plan to a takeover and back, by the commands alone.
#[tokio::test(flavor = "multi_thread")]
async fn commands_from_plan_to_restore() {
    let Some(bed) = Bed::with_cilium("1.20.0", "01").await else { return };
    let config = bed.plane.kubeconfig();
    let run = |arguments: &[&str]| ichor(&config, arguments);
    let status = |wanted: &str, code: i32| {
        let (found, text) = run(&["cni", "status", "-o", "json"]);
        let json: Value = serde_json::from_str(text.trim()).unwrap_or_else(|_| panic!("{text}"));
        assert_eq!((json["state"].as_str(), found), (Some(wanted), code), "{text}");
        run(&["cni", "status"]).1
    };
    status("notBegun", 0);
    // Something that takes consent.
    bed.kubectl(&["-n", "kube-system", "annotate", "service", "cilium-envoy", "team=net"]);
    let (code, plan) = run(&["cni", "plan", "--for-job"]);
    assert_eq!(code, 2, "{plan}");
    let (code, plan) = run(&["cni", "plan"]);
    assert_eq!(code, 2, "{plan}");
    let at = plan.find("--accept-cilium-diff=sha256:").unwrap();
    let flag = plan[at..].split_whitespace().next().unwrap();
    let digest = flag.split_once('=').unwrap().1;
    let (code, text) = run(&["adopt", "--cilium-only", "--yes"]);
    assert!(code == 2 && text.contains("consent is missing"), "{text}");
    let (code, text) = run(&["adopt", "--cilium-only", "--yes", "--accept-cilium-diff", digest]);
    assert!(code == 1 && text.contains("takes its digest after an equals sign"), "{text}");
    assert!(text.contains(&format!("hint: {flag}")), "{text}");
    // A variable that is not set is no consent, and no time to wait is none.
    let (code, text) = run(&["adopt", "--cilium-only", "--yes", "--accept-cilium-diff="]);
    assert!(code == 1 && text.contains("no digest after the equals sign"), "{text}");
    for time in ["0", "-5s", "abc"] {
        let timeout = format!("--timeout={time}");
        for command in [
            &["adopt", "--cilium-only", "--yes", flag][..],
            &["cni", "run", "--takeover", flag],
            &["cni", "manifest", "--image", "example.org/ichor:1", flag],
        ] {
            let (code, text) = run(&[command, &[&timeout]].concat());
            assert!(code == 1 && text.contains("--timeout: "), "{command:?}: {text}");
        }
    }
    // Without a terminal nobody can be asked.
    let (code, text) = run(&["adopt", "--cilium-only", flag]);
    assert!(code == 2 && text.contains("give --yes as well"), "{text}");
    let (code, text) = run(&["cni", "run", "--takeover", "--digest=sha256:0", flag]);
    assert!(code == 2 && text.contains("give one of them"), "{text}");
    status("notBegun", 0);
    // The digest alone is the consent.
    let (code, text) = run(&["cni", "run", "--takeover", flag]);
    assert_eq!(code, 0, "{text}");
    let text = status("done", 0);
    assert!(text.contains("state: taken over, and nothing is missing"), "{text}");
    values_are_changed_afterwards(&bed, &config);
    status("done", 0);
    bed.kubectl(&["-n", "kube-system", "delete", "service", "cilium-envoy"]);
    let text = status("incomplete", 2);
    assert!(text.contains("missing: 1 object(s) of ichor's record are gone: "), "{text}");
    assert!(text.contains("ichor release upgrade cilium CHART -n ichor-system"), "{text}");
    let chart = plane::cilium::chart("1.20.0").expect("the chart").display().to_string();
    let again = ["upgrade", "cilium", &chart, "-n", "ichor-system", "--reset-then-reuse-values"];
    let (code, text) = run(&[&["release"][..], &again].concat());
    assert_eq!(code, 0, "{text}");
    status("done", 0);
    // It was written anew: another object than the takeover left.
    let (code, text) = run(&["cni", "restore", "--yes"]);
    assert!(code == 2 && text.contains("consent is missing: 2 object(s) changed since"), "{text}");
    assert!(text.contains("services kube-system/cilium-envoy"), "{text}");
    assert!(text.contains("configmaps kube-system/cilium-config"), "{text}");
    let at = text.find("--accept-plan=sha256:").unwrap();
    let flag = text[at..].split_whitespace().next().unwrap();
    let (code, text) = run(&["cni", "restore", flag]);
    assert!(code == 2 && text.contains("give --yes as well"), "{text}");
    let (code, text) = run(&["cni", "restore", flag, "--yes"]);
    assert!(code == 0 && text.contains("Restored: 1 record(s) are back"), "{text}");
    status("restored", 0);
    bed.plane.stop();
}

/// The release is audited, planned and upgraded where its records are, as docs/operator.md says;
/// again a run finds nothing to do.
fn values_are_changed_afterwards(bed: &Bed, config: &Path) {
    let run = |arguments: &[&str]| ichor(config, arguments);
    let audit = |revisions: usize| {
        let (code, text) = run(&["release", "verify", "-A", "-o", "json"]);
        let json: Value = serde_json::from_str(text.trim()).unwrap_or_else(|_| panic!("{text}"));
        let found: Vec<_> = json["findings"].as_array().unwrap().iter().collect();
        // The chart has Roles in another namespace, which is no fault of the takeover's.
        assert!(found.iter().all(|found| found["code"] == "other-namespace"), "{text}");
        assert_eq!((found.len(), code), (revisions, 2), "{text}");
    };
    audit(1);
    let chart = plane::cilium::chart("1.20.0").expect("the chart").display().to_string();
    let change = ["cilium", &chart, "-n", "ichor-system", "--reset-then-reuse-values"];
    let change = [&change[..], &["--set", "debug.enabled=true"]].concat();
    let (code, text) = run(&[&["release", "plan", "upgrade"][..], &change].concat());
    assert!(code == 0 && text.contains("data.debug: \"false\" -> \"true\""), "{text}");
    assert!(text.contains("0 to create, 1 to change, 0 to delete, 24 unchanged"), "{text}");
    let (code, text) = run(&[&["release", "upgrade"][..], &change].concat());
    assert!(code == 0 && text.contains("NAMESPACE: kube-system"), "{text}");
    let owner = "jsonpath={.data.debug} {.metadata.annotations}";
    let found = bed.kubectl(&["-n", "kube-system", "get", "cm", "cilium-config", "-o", owner]);
    assert!(found.starts_with("true ") && found.contains("\"kube-system\""), "{found}");
    audit(2);
    for arguments in [&["adopt", "--cilium-only", "--yes"][..], &["cni", "run", "--takeover"]] {
        let (code, text) = run(arguments);
        assert_eq!(code, 0, "{text}");
        let is_told = text.contains("nothing: this Cilium is ichor's already")
            || text.contains("Nothing was left to do: Cilium is ichor's, revision 2");
        assert!(is_told && !text.contains("Taken over"), "{text}");
    }
}

/// A pipeline that knows nothing of the takeover goes on: what it made is told everywhere, named,
/// and in the way of plans and of a restore until it is gone.
#[tokio::test(flavor = "multi_thread")]
async fn another_tool_after_the_takeover() {
    let Some(bed) = Bed::with_cilium("1.20.0", "01").await else { return };
    let config = bed.plane.kubeconfig();
    let run = |arguments: &[&str]| ichor(&config, arguments);
    let chart = plane::cilium::chart("1.20.0").expect("the chart").display().to_string();
    let values = values_path("01");
    let helm = ["upgrade", "--install", "cilium", &chart, "-n", "kube-system", "-f", &values];
    // Revisions 2 and 3 are what is taken over, so that another's first has a name of its own.
    for _ in 0..2 {
        bed.helm(&[&helm[..], &["--history-max", "1"]].concat());
    }
    let (code, text) = run(&["adopt", "--cilium-only", "--yes"]);
    assert_eq!(code, 0, "{text}");
    bed.helm(&helm);
    let record = "Secret kube-system/sh.helm.release.v1.cilium.v1";
    for arguments in [
        &["cni", "plan"][..],
        &["adopt", "--cilium-only", "--plan"],
        &["adopt", "--cilium-only", "--yes"],
        &["cni", "run", "--takeover"],
        &["cni", "manifest", "--image", "example.org/ichor:1"],
    ] {
        let (code, text) = run(arguments);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(code, 2, "{arguments:?}: {text}");
        assert!(text.contains("another tool installed or upgraded it since"), "{text}");
        assert!(text.contains(record), "{arguments:?}: {text}");
    }
    let (code, text) = run(&["cni", "status"]);
    println!("{text}");
    assert!(code == 2 && text.contains("taken over, but something is missing"), "{text}");
    let removal = "kubectl -n kube-system delete secret sh.helm.release.v1.cilium.v1";
    assert!(text.contains(removal), "{text}");
    let (code, text) = run(&["cni", "restore", "--yes"]);
    assert!(code == 2 && text.contains(record), "{text}");
    bed.kubectl(&["-n", "kube-system", "delete", "secret", "sh.helm.release.v1.cilium.v1"]);
    let (code, text) = run(&["cni", "status"]);
    assert_eq!(code, 0, "{text}");
    // What somebody changed by hand is told, with the way back, which works.
    let patch = r#"{"data":{"debug":"changed"}}"#;
    bed.kubectl(&["-n", "kube-system", "patch", "cm", "cilium-config", "-p", patch]);
    let (code, text) = run(&["cni", "status"]);
    assert!(code == 0 && text.contains("changed since: what runs is not what"), "{text}");
    let again = ["cilium", &chart, "-n", "ichor-system", "--reset-then-reuse-values"];
    let (code, text) = run(&[&["release", "upgrade"][..], &again].concat());
    assert_eq!(code, 0, "{text}");
    let (code, text) = run(&["cni", "status"]);
    assert!(code == 0 && !text.contains("changed since"), "{text}");
    // An upgrade that fails is no takeover to be finished: nothing is written over it.
    let wrong = [&again[..], &["--set", "podLabels.wrong=no label"]].concat();
    let (code, text) = run(&[&["release", "upgrade"][..], &wrong].concat());
    assert!(code == 1 && text.contains("no label"), "{text}");
    for arguments in [
        &["cni", "status"][..],
        &["cni", "plan"],
        &["adopt", "--cilium-only", "--yes"],
        &["cni", "run", "--takeover"],
    ] {
        let (code, text) = run(arguments);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(code, 2, "{arguments:?}: {text}");
        assert!(text.contains("`ichor release rollback cilium -n ichor-system`"), "{text}");
    }
    let (code, text) = run(&["release", "rollback", "cilium", "-n", "ichor-system"]);
    assert_eq!(code, 0, "{text}");
    let (code, text) = run(&["cni", "status"]);
    assert_eq!(code, 0, "{text}");
    let (code, text) = run(&["cni", "restore", "--yes"]);
    assert!(code == 0 && text.contains("Restored: 2 record(s) are back"), "{text}");
    bed.plane.stop();
}

/// What was recovered is saved, and the file is as good as the search; reports are whole, and where
/// they cannot be written that is said before anything else is done.
#[tokio::test(flavor = "multi_thread")]
async fn commands_write_files_whole_or_not_at_all() {
    let Some(bed) = installed("06").await else { return };
    bed.kubectl(&["-n", "kube-system", "delete", "secret", "-l", "owner=helm"]);
    let config = bed.plane.kubeconfig();
    let folder = bed.plane.folder().join("files");
    fs::create_dir_all(&folder).unwrap();
    let path = |name: &str| folder.join(name).display().to_string();
    let (values, html, md, json) = (path("v.yaml"), path("p.html"), path("p.md"), path("p.json"));
    fs::write(&values, "before").unwrap();
    let plan = ["cni", "plan", "--save-recovered-values", &values];
    let reports = ["--report", &html, "--report", &md, "--report", &json];
    let (code, text) = ichor(&config, &[&plan[..], &reports].concat());
    println!("{text}\n{}", fs::read_to_string(&values).unwrap());
    assert_eq!(code, 0, "{text}");
    assert!(!text.to_lowercase().contains("unexplained"), "an empty gate alarms nobody: {text}");
    let reported: Value = serde_json::from_slice(&fs::read(&json).unwrap()).unwrap();
    let digest = reported["digest"].as_str().unwrap();
    let (page, markdown) = (fs::read_to_string(&html).unwrap(), fs::read_to_string(&md).unwrap());
    assert!(page.ends_with("</html>\n") && page.contains(digest) && markdown.contains(digest));
    // What the server fills in is nobody's value.
    let saved = fs::read_to_string(&values).unwrap();
    assert!(!saved.contains("maxSurge") && !saved.contains("metadata.name"), "{saved}");
    // The file gives the same plan, with an empty gate.
    let (code, text) = ichor(&config, &["cni", "plan", "--cilium-values", &values, "-o", "json"]);
    assert_eq!(code, 0, "{text}");
    let again: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(again["digest"], digest);
    assert_eq!(again["consent"].as_array().map(Vec::len), Some(0), "{}", again["consent"]);
    // Odd places.
    let before = listing(&folder);
    let inner = path("folder.md");
    fs::create_dir(&inner).unwrap();
    let values_json = path("v.json");
    fs::write(&values_json, "{}").unwrap();
    for (arguments, why) in [
        (vec!["--report", &inner], "this is a directory"),
        (vec!["--report", "/proc/p.md"], "nothing can be written in /proc"),
        (vec!["--report", "/nowhere/p.md"], "there is no directory /nowhere"),
        (vec!["--report", &md, "--report", &md], "this is the file of --report too"),
        (
            vec!["--cilium-values", &values_json, "--report", &values_json],
            "this is the file of --cilium-values too",
        ),
        (vec!["--save-recovered-values", "/proc/v"], "nothing can be written in /proc"),
        (vec!["--save-recovered-values", &inner], "this is a directory"),
        (vec!["--cilium-values", &values, "--save-recovered-values", &md], "cannot be used with"),
    ] {
        for command in [&["cni", "plan"][..], &["adopt", "--cilium-only", "--yes"]] {
            let mark = bed.plane.audit_log().mark();
            let (code, text) = ichor(&config, &[command, &arguments].concat());
            assert!(code == 1 && text.contains(why), "{arguments:?}: {text}");
            assert_eq!(bed.requests(mark), 0, "told before anything is asked");
        }
    }
    fs::remove_dir(&inner).unwrap();
    fs::remove_file(&values_json).unwrap();
    assert_eq!(listing(&folder), before, "nothing half-written stays");
    bed.plane.stop();
}

fn listing(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut all: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.display().to_string(), fs::read(&path).unwrap_or_default()))
        .collect();
    all.sort();
    all
}
