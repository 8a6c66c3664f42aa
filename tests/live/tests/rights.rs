//! Least rights: an action runs under exactly the rules of `plan --rights`, one fewer makes the
//! plan name the missing one, and a plan writes nothing.

#![expect(clippy::unwrap_used, reason = "test code: a panic is how a test fails")]

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use live::{Program, chart};
use plane::support::{or_skip, run};
use plane::{Plane, PlaneOptions};
use serde_json::{Value, json};
use test_support::sealed::Outcome;

const NAMESPACE: &str = "least";
const USER: &str = "system:serviceaccount:least:worker";

struct Bed {
    plane: Plane,
    worker: PathBuf,
}

impl Bed {
    async fn start() -> Option<Self> {
        let plane = or_skip(Plane::start(PlaneOptions::default()).await)?;
        let kubectl = |arguments: &[&str]| run(plane.kubectl().unwrap().args(arguments)).unwrap();
        kubectl(&["create", "namespace", NAMESPACE]);
        kubectl(&["-n", NAMESPACE, "create", "serviceaccount", "worker"]);
        let token = kubectl(&["-n", NAMESPACE, "create", "token", "worker"]);
        let worker = plane.folder().join("worker.kubeconfig");
        plane.write_kubeconfig(&worker, &plane.url(), token.trim()).unwrap();
        Some(Self { plane, worker })
    }

    fn admin(&self, arguments: &[&str]) -> Outcome {
        Program::Ichor.run(&self.plane.kubeconfig(), arguments)
    }

    fn worker(&self, arguments: &[&str]) -> Outcome {
        Program::Ichor.run(&self.worker, arguments)
    }

    /// The objects that a plan asks for: roles, and a namespace for them.
    fn roles(&self, arguments: &[&str]) -> Vec<Value> {
        let plan = self.admin(&[arguments, &["--rights"]].concat());
        let text = String::from_utf8_lossy(&plan.stdout).into_owned();
        assert_eq!(plan.code, Some(0), "{text}{}", String::from_utf8_lossy(&plan.stderr));
        text.split("---\n")
            .filter(|document| !document.trim().is_empty())
            .map(|document| {
                let value = goyaml_json(document);
                serde_json::from_str(&value).unwrap()
            })
            .collect()
    }

    /// Gives the worker these roles and nothing else.
    fn grant(&self, roles: &[Value]) {
        let mut objects = roles.to_vec();
        for role in roles.iter().filter(|role| role.get("rules").is_some()) {
            let mut binding = role.clone();
            let kind = role["kind"].as_str().unwrap();
            binding["kind"] = json!(format!("{kind}Binding"));
            binding.as_object_mut().unwrap().remove("rules");
            binding["roleRef"] = json!({
                "apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role["metadata"]["name"],
            });
            binding["subjects"] =
                json!([{ "kind": "ServiceAccount", "name": "worker", "namespace": NAMESPACE }]);
            objects.push(binding);
        }
        let file = self.plane.folder().join("roles.json");
        let list = json!({ "apiVersion": "v1", "kind": "List", "items": objects });
        std::fs::write(&file, list.to_string()).unwrap();
        run(self.plane.kubectl().unwrap().args(["apply", "-f"]).arg(&file)).unwrap();
    }

    /// A plan by the worker: exit status, and the rights that it says are missing.
    fn missing(&self, arguments: &[&str]) -> (Option<i32>, BTreeSet<String>) {
        let plan = self.worker(arguments);
        let text = String::from_utf8_lossy(&plan.stdout).into_owned();
        let part = text.split("Missing rights:\n").nth(1).unwrap_or_default();
        let lines = part.lines().map_while(|line| line.strip_prefix("  ").map(str::to_owned));
        (plan.code, lines.collect())
    }

    /// Plans with one verb of one rule fewer each, which must name exactly that right; how many.
    fn one_fewer(&self, roles: &[Value], arguments: &[&str]) -> usize {
        let mut tried = 0;
        for (index, role) in roles.iter().enumerate() {
            for (at, rule) in role["rules"].as_array().into_iter().flatten().enumerate() {
                // Rights on URLs cannot be asked for.
                if rule.get("nonResourceURLs").is_some() {
                    continue;
                }
                for verb in rule["verbs"].as_array().unwrap() {
                    let mut fewer = roles.to_vec();
                    let verbs = fewer[index]["rules"][at]["verbs"].as_array_mut().unwrap();
                    verbs.retain(|other| other != verb);
                    if verbs.is_empty() {
                        fewer[index]["rules"].as_array_mut().unwrap().remove(at);
                    }
                    self.grant(&fewer);
                    let wanted = (Some(2), lines(role, rule, verb.as_str().unwrap()));
                    self.comes_to(&wanted, arguments, &format!("{verb} of {rule}"));
                    tried += 1;
                }
            }
        }
        self.grant(roles);
        self.comes_to(&(Some(0), BTreeSet::new()), arguments, "all rights");
        tried
    }

    /// The authorizer of the server sees a change of roles a moment later.
    fn comes_to(&self, wanted: &(Option<i32>, BTreeSet<String>), arguments: &[&str], what: &str) {
        let began = Instant::now();
        loop {
            let told = self.missing(arguments);
            if told == *wanted {
                return;
            }
            if began.elapsed() > Duration::from_secs(20) {
                assert_eq!(told, *wanted, "{what}");
            }
        }
    }
}

/// How a plan says that a verb of a rule is missing: a line for each object.
fn lines(role: &Value, rule: &Value, verb: &str) -> BTreeSet<String> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let mut what = format!("{verb} {}", text(&rule["resources"][0]));
    let group = text(&rule["apiGroups"][0]);
    if !group.is_empty() {
        what = format!("{what}.{group}");
    }
    let place = match role["metadata"].get("namespace") {
        Some(namespace) => format!(" in namespace {}", text(namespace)),
        None => String::new(),
    };
    match rule.get("resourceNames").and_then(Value::as_array) {
        Some(names) => names.iter().map(|name| format!("{what} {}{place}", text(name))).collect(),
        None => BTreeSet::from([what + &place]),
    }
}

/// YAML as JSON, by the library that wrote it.
fn goyaml_json(document: &str) -> String {
    let value = goyaml::from_yaml_exact(document.as_bytes(), &goyaml::Limits::default()).unwrap();
    goyaml::json::to_json(&value).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn exactly_the_rights_of_the_plan() {
    let Some(bed) = Bed::start().await else { return };
    let folder = chart("admission");
    let chart = folder.to_string_lossy().into_owned();
    for (action, step) in [("install", 1), ("upgrade", 2)] {
        let values = folder.join(format!("steps/{step}.yaml")).to_string_lossy().into_owned();
        let arguments = ["plan", action, "r", &chart, "-n", NAMESPACE, "-f", &values];
        let roles = bed.roles(&arguments);
        let mark = bed.plane.audit_log().mark();
        let tried = bed.one_fewer(&roles, &arguments);
        let writes = bed.plane.audit_log().writes(USER, mark).unwrap();
        assert!(writes.is_empty(), "a plan wrote: {writes:?}");
        let plan = bed.worker(&arguments);
        let text = String::from_utf8_lossy(&plan.stdout).into_owned();
        assert_eq!(plan.code, Some(0), "{text}");
        let writes = bed.plane.audit_log().writes(USER, mark).unwrap();
        assert!(writes.is_empty(), "a plan wrote: {writes:?}");
        let done = bed.worker(&arguments[1..]);
        assert_eq!(
            done.code,
            Some(0),
            "{action} with the rights of the plan: {}",
            String::from_utf8_lossy(&done.stderr)
        );
        // The check sees writes when there are some.
        let writes = bed.plane.audit_log().writes(USER, mark).unwrap();
        assert!(writes.len() > 8, "{writes:?}");
        println!(
            "{action}: {tried} plans with one right fewer, {} writes of the action",
            writes.len()
        );
    }
}

/// Fields are taken over and objects applied with the rights of the plan.
#[tokio::test(flavor = "multi_thread")]
async fn server_side_apply_with_the_rights_of_the_plan() {
    let Some(bed) = Bed::start().await else { return };
    let folder = chart("admission");
    let chart = folder.to_string_lossy().into_owned();
    let values = folder.join("steps/2.yaml").to_string_lossy().into_owned();
    let installed = bed.admin(&["install", "r", &chart, "-n", NAMESPACE]);
    assert_eq!(installed.code, Some(0), "{}", String::from_utf8_lossy(&installed.stderr));
    let apply = ["--apply-method", "ssa"];
    let upgrade = ["plan", "upgrade", "r", &chart, "-n", NAMESPACE, "-f", &values];
    let upgrade = [&upgrade[..], &apply].concat();
    let roles = bed.roles(&upgrade);
    let mark = bed.plane.audit_log().mark();
    let tried = bed.one_fewer(&roles, &upgrade);
    let writes = bed.plane.audit_log().writes(USER, mark).unwrap();
    assert!(writes.is_empty(), "a plan wrote: {writes:?}");
    let done = bed.worker(&upgrade[1..]);
    assert_eq!(done.code, Some(0), "{}", String::from_utf8_lossy(&done.stderr));
    let uninstalled = bed.admin(&["uninstall", "r", "-n", NAMESPACE]);
    assert_eq!(uninstalled.code, Some(0), "{}", String::from_utf8_lossy(&uninstalled.stderr));
    let install = ["plan", "install", "r", &chart, "-n", NAMESPACE];
    let install = [&install[..], &apply].concat();
    let roles = bed.roles(&install);
    let tried = tried + bed.one_fewer(&roles, &install);
    let done = bed.worker(&install[1..]);
    assert_eq!(done.code, Some(0), "{}", String::from_utf8_lossy(&done.stderr));
    println!("server-side apply: {tried} plans with one right fewer");
}

/// Hooks are created, watched, read, shown and deleted with the rights of the plan.
#[tokio::test(flavor = "multi_thread")]
async fn hooks_with_the_rights_of_the_plan() {
    let Some(bed) = Bed::start().await else { return };
    let chart = chart("hooks").to_string_lossy().into_owned();
    for (action, step) in [("install", "step=1"), ("upgrade", "step=2"), ("upgrade", "step=3")] {
        let arguments = ["plan", action, "r", &chart, "-n", NAMESPACE, "--set", step];
        let roles = bed.roles(&arguments);
        bed.grant(&roles);
        bed.comes_to(&(Some(0), BTreeSet::new()), &arguments, "all rights");
        let done = bed.worker(&arguments[1..]);
        let told = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.code, Some(0), "{action}: {told}");
        assert!(!told.contains("WARNING") && told.contains("is simulated"), "{action}: {told}");
    }
}

/// With `--atomic` the plan has what the way back takes, and names it where it is missing.
#[tokio::test(flavor = "multi_thread")]
async fn undone_with_the_rights_of_the_plan() {
    let Some(bed) = Bed::start().await else { return };
    let chart = chart("hooks").to_string_lossy().into_owned();
    let hooks = |events: &str| {
        let fails = format!(r#"{{"name":"fails","events":"post-{events}","exit":1}}"#);
        let back = r#"{"name":"back","events":"pre-delete,post-rollback","kind":"Pod","log":"hook-succeeded"}"#;
        format!("hooks=[{fails},{back}]")
    };
    let (install, upgrade) = (hooks("install"), hooks("upgrade"));
    let at = ["r", &chart, "-n", NAMESPACE, "--set-json"];
    let failing = |action: &'static str, hooks: &str, more: &[&str]| -> Vec<String> {
        let words = [&["plan", action], &at[..], &[hooks], more].concat();
        words.into_iter().map(str::to_owned).collect()
    };
    for (arguments, undone) in [
        (failing("install", &install, &[]), "uninstalled"),
        (failing("upgrade", &upgrade, &["--set", "step=2"]), "rolled back"),
        (failing("upgrade", &upgrade, &["--set", "step=3", "--force"]), "rolled back"),
    ] {
        let plain: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let atomic = [&plain[..], &["--atomic", "--cleanup-on-fail"]].concat();
        let atomic =
            if undone == "uninstalled" { &atomic[..atomic.len() - 1] } else { &atomic[..] };
        bed.grant(&bed.roles(&plain));
        bed.comes_to(&(Some(0), BTreeSet::new()), &plain, "the rights without --atomic");
        let (code, missing) = bed.missing(atomic);
        println!("{undone}: without the rights of --atomic, these are missing: {missing:#?}");
        assert_eq!(code, Some(2));
        let needed = match undone {
            "uninstalled" => "delete deployments.apps r in namespace least",
            _ => "delete configmaps r-only-2 in namespace least",
        };
        assert!(missing.contains(needed) || plain.contains(&"--force"));
        bed.grant(&bed.roles(atomic));
        bed.comes_to(&(Some(0), BTreeSet::new()), atomic, "all rights");
        let done = bed.worker(&atomic[1..]);
        let told = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.code, Some(1), "{told}");
        assert!(told.contains(&format!("{undone} due to atomic being set")), "{told}");
        if undone == "uninstalled" {
            let installed = bed.admin(&[
                "install",
                "r",
                &chart,
                "-n",
                NAMESPACE,
                "--set-json",
                &hooks("upgrade"),
            ]);
            assert_eq!(installed.code, Some(0));
        }
    }
}

/// The namespace comes with the roles: nothing is granted in other namespaces, and no right to
/// create any.
#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_that_is_created_for_the_release() {
    let Some(bed) = Bed::start().await else { return };
    let folder = chart("admission");
    let chart = folder.to_string_lossy().into_owned();
    let values = folder.join("steps/1.yaml").to_string_lossy().into_owned();
    let at = ["r", &chart, "-n", "fresh", "-f", &values, "--create-namespace"];
    for command in [&["plan", "install"][..], &["plan", "upgrade", "--install"]] {
        let plan = bed.admin(&[command, &at].concat());
        let text = String::from_utf8_lossy(&plan.stdout).into_owned();
        assert_eq!(plan.code, Some(0), "{text}");
        let row = text.lines().find(|line| line.contains("Namespace")).unwrap_or_default();
        assert_eq!(row.split_whitespace().collect::<Vec<_>>(), ["create", "Namespace", "fresh"]);
    }
    let arguments = [&["plan", "install"], &at[..]].concat();
    let roles = bed.roles(&arguments);
    assert_eq!(
        (&roles[0]["kind"], &roles[0]["metadata"]["name"]),
        (&json!("Namespace"), &json!("fresh"))
    );
    for rule in roles
        .iter()
        .filter(|role| role["kind"] == "ClusterRole")
        .flat_map(|role| role["rules"].as_array().unwrap())
    {
        let wide = json!(["secrets", "serviceaccounts", "roles", "rolebindings"]);
        let resource = &rule["resources"][0];
        assert!(!wide.as_array().unwrap().contains(resource), "{rule}");
        assert!(*resource != "namespaces" || rule["verbs"] == json!(["get"]), "{rule}");
    }
    bed.grant(&roles);
    let tried = bed.one_fewer(&roles, &arguments);
    let done = bed.worker(&arguments[1..]);
    assert_eq!(done.code, Some(0), "{}", String::from_utf8_lossy(&done.stderr));
    println!("--create-namespace: {tried} plans with one right fewer");
}
