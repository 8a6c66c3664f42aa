//! Least rights: an action runs under exactly the rules of `plan --rights`, one fewer makes the
//! plan name the missing one, and a plan writes nothing.

#![expect(clippy::unwrap_used, reason = "test code: a panic is how a test fails")]

use std::path::PathBuf;

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

    /// The roles that a plan asks for.
    fn roles(&self, action: &str, chart: &str, values: &str) -> Vec<Value> {
        let plan =
            self.admin(&["plan", action, "r", chart, "-n", NAMESPACE, "-f", values, "--rights"]);
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
        for role in roles {
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
        let roles = bed.roles(action, &chart, &values);
        let mark = bed.plane.audit_log().mark();
        let mut tried = 0;
        for (index, role) in roles.iter().enumerate() {
            let rules = role["rules"].as_array().unwrap().len();
            for rule in 0..rules {
                let mut fewer = roles.clone();
                fewer[index]["rules"].as_array_mut().unwrap().remove(rule);
                bed.grant(&fewer);
                // The authorizer of the server sees a change a moment later.
                std::thread::sleep(std::time::Duration::from_millis(150));
                let plan = bed.worker(&arguments);
                let text = String::from_utf8_lossy(&plan.stdout).into_owned();
                let taken = &role["rules"][rule];
                let resource = taken["resources"][0].as_str().unwrap_or("/metrics");
                if taken.get("nonResourceURLs").is_none() {
                    assert_eq!(plan.code, Some(2), "without {taken}: {text}");
                    let missing = text.split("Missing rights:").nth(1).unwrap_or_default();
                    assert!(missing.contains(resource), "without {taken}: {text}");
                }
                tried += 1;
            }
        }
        let writes = bed.plane.audit_log().writes(USER, mark).unwrap();
        assert!(writes.is_empty(), "a plan wrote: {writes:?}");
        bed.grant(&roles);
        std::thread::sleep(std::time::Duration::from_millis(300));
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
            "{action}: {tried} plans with one rule fewer, {} writes of the action",
            writes.len()
        );
    }
}
