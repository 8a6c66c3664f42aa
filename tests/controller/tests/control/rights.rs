//! The Job's standing Roles in the chart are those that the pinned chart asks for: its objects
//! created or changed, and each rule of its Roles held. `ICHOR_BLESS=1` writes them anew.

use std::collections::BTreeSet;
use std::sync::Arc;

use controller_tests::{chart, yaml};
use goyaml::Map;
use helm_rs::action::template::{Options, template};
use helm_rs::apply::Item;
use helm_rs::cluster::memory::{MemoryCluster, MemoryOptions};
use helm_rs::cluster::{Clock, Cluster, ManualClock};
use helm_rs::render::host::{Clock as RenderClock, Randomness, Reading};
use helm_rs::render::time::Zone;
use helm_rs::render::{Engine, EngineOptions, Host};
use serde_json::Value;
use takeover::job;
use takeover::plan::Needs;
use takeover::rendered::manifest_objects;
use takeover_tests::{pinned, values_of};
use test_support::sealed::Sealed;

/// What the Roles are called in the chart: `ichor cni manifest` has its own of the Job's name.
const NAME: &str = "ichor-cni-standing";
/// Where the chart's Roles lie. Rights elsewhere depend on the cluster and come with a plan: in
/// namespaces that Cilium's chart creates, and on foreign records.
const PLACES: [&str; 3] = ["", "kube-system", "ichor-system"];

/// The pinned chart's objects with these values; none where they do not render.
pub(crate) fn objects(
    engine: &Engine,
    discovery: &helm_rs::cluster::Discovery,
    values: &Map,
) -> Option<Vec<Item>> {
    let clock = RenderClock::Fixed(Reading::at(1_767_225_600, 0));
    let mut host = Host::new(Randomness::Entropy([7; 32]), clock, Zone::utc());
    let mut options = Options {
        release_name: "cilium".to_owned(),
        namespace: "kube-system".to_owned(),
        ..Options::default()
    };
    options.capabilities.api_versions = discovery.api_versions();
    let mut chart = pinned().chart;
    let rendering =
        template(engine, &mut chart, values, &options, &mut host, &mut Vec::new()).ok()?;
    Some(manifest_objects(discovery, &rendering.manifest.to_string(), "kube-system"))
}

/// What only some sets of values bring, and a change of values may take away. What all have is never
/// deleted: neither the agents nor what they need.
pub(crate) fn passing(sets: &[Vec<Item>]) -> Vec<Item> {
    let in_all = |item: &Item| sets.iter().all(|set| set.iter().any(|other| other.matches(item)));
    let mut some: Vec<Item> = Vec::new();
    for item in sets.iter().flatten().filter(|item| !in_all(item)) {
        // A namespace would take along what is in it, so that it is left to its owner; a Job has done
        // its work, and goes by itself.
        let goes = !matches!(item.kind().kind.as_str(), "Namespace" | "Job");
        if goes && !some.iter().any(|other| other.matches(item)) {
            some.push(item.clone());
        }
    }
    some
}

/// The Roles for the defaults and all shared sets of values.
async fn standing(files: &[std::path::PathBuf]) -> Vec<Value> {
    let clock = ManualClock::new("2026-01-01T00:00:00Z".parse().unwrap());
    let cluster = MemoryCluster::new(Arc::new(clock) as Arc<dyn Clock>, MemoryOptions::default());
    cluster
        .load(plane::cilium::stub_definitions().map(|stub| ("a stub".to_owned(), stub)).collect())
        .unwrap();
    let discovery = cluster.discovery(false).await.unwrap();
    let engine = Engine::new(EngineOptions::default());
    let texts = files.iter().map(|file| std::fs::read_to_string(file).unwrap());
    let sets: Vec<Map> =
        [String::new()].into_iter().chain(texts).map(|text| values_of(&text)).collect();
    let mut needs = Needs::default();
    let sets: Vec<Vec<Item>> =
        sets.iter().filter_map(|values| objects(&engine, &discovery, values)).collect();
    for items in &sets {
        needs.list.extend(Needs::standing(&cluster, &discovery, items).await.list);
    }
    needs.list.extend(Needs::taking_away(&passing(&sets)).list);
    for right in needs.list.iter_mut().flat_map(|need| &mut need.alternatives).flatten() {
        // A Job of the chart has a hash of its values in its name, which is another one after each
        // change of these. Who makes Jobs here by any name gains nothing by changing one.
        if right.resource == "jobs" && right.verb == "patch" {
            right.name.clear();
        }
    }
    let mut roles = job::rights(&needs);
    let place = |object: &Value| object["metadata"]["namespace"].as_str().unwrap_or("").to_owned();
    let elsewhere: BTreeSet<String> =
        roles.iter().map(place).filter(|place| !PLACES.contains(&place.as_str())).collect();
    println!("rights that come with a plan: {elsewhere:?}");
    roles.retain(|role| PLACES.contains(&place(role).as_str()));
    for role in &mut roles {
        role["metadata"]["name"] = NAME.into();
        role["metadata"]["labels"]["app.kubernetes.io/name"] = NAME.into();
        if role["roleRef"].is_object() {
            role["roleRef"]["name"] = NAME.into();
        }
    }
    roles
}

#[tokio::test(flavor = "multi_thread")]
async fn the_jobs_standing_roles_are_current() {
    let files = match test_support::place::shared_files("values", ".yaml") {
        Ok(files) => files,
        Err(missing) => test_support::skip!(missing),
    };
    let roles = standing(&files).await;
    for role in &roles {
        let text = role.to_string();
        assert!(!text.contains("\"*\"") || text.contains("Binding"), "no wildcard: {text}");
    }
    let text = format!(
        "# Generated from the pinned chart of Cilium: ICHOR_BLESS=1 cargo test -p controller-tests rights\n\
         {{{{- if .Values.job.createRoles }}}}\n{}{{{{- end }}}}\n",
        yaml(&roles)
    );
    let file = chart().join("templates/job-rbac.yaml");
    if std::env::var_os("ICHOR_BLESS").is_some() {
        std::fs::write(&file, text).unwrap();
    } else {
        let there = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(
            there == text,
            "the Job's Roles are not current: run with ICHOR_BLESS=1 and review"
        );
    }
}

/// The Roles and bindings of the chart with its defaults.
fn rendered() -> Vec<Value> {
    let chart = chart().display().to_string();
    let arguments = ["chart", "template", "ichor", &chart, "--namespace", "ichor-system"];
    let output = Sealed::ichor().run(arguments);
    assert_eq!(output.code, Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let documents = text.split("\n---\n").map(|document| {
        let map = goyaml::from_yaml_map(document.as_bytes(), "chart", &goyaml::Limits::default());
        let json = goyaml::json::to_json(&goyaml::Value::Map(map.unwrap())).unwrap();
        serde_json::from_str(&json).unwrap()
    });
    let is_rbac =
        |object: &Value| object["apiVersion"].as_str().is_some_and(|api| api.starts_with("rbac."));
    documents.filter(is_rbac).collect()
}

fn texts(value: &Value) -> Vec<&str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// No wildcard, nobody is cluster-admin, and the manual lists every rule on Secrets outside
/// ichor-system. `ICHOR_BLESS=1` writes its table.
#[test]
fn the_manual_lists_the_rules_on_secrets() {
    let mut rows = BTreeSet::new();
    for object in rendered() {
        assert_ne!(object["roleRef"]["name"], "cluster-admin");
        for rule in object["rules"].as_array().into_iter().flatten() {
            for field in ["apiGroups", "resources", "resourceNames", "verbs", "nonResourceURLs"] {
                assert!(texts(&rule[field]).iter().all(|text| !text.contains('*')), "{rule}");
            }
            let place = object["metadata"]["namespace"].as_str();
            if !texts(&rule["resources"]).contains(&"secrets") || place == Some("ichor-system") {
                continue;
            }
            let who = match object["metadata"]["name"].as_str().unwrap() {
                NAME => "Job",
                name if name.starts_with("ichor-controller") => "controller",
                name => panic!("whose is {name}?"),
            };
            let place = place.map_or_else(|| "everywhere".to_owned(), |place| format!("`{place}`"));
            let names: Vec<String> =
                texts(&rule["resourceNames"]).iter().map(|name| format!("`{name}`")).collect();
            let names = if names.is_empty() { "any".to_owned() } else { names.join(", ") };
            let verbs = texts(&rule["verbs"]).join(", ");
            rows.insert(format!("| {who} | {place} | {verbs} | {names} |\n"));
        }
    }
    assert!(rows.len() > 3, "{rows:?}");
    let table = format!(
        "| who | where | may | which Secrets |\n|---|---|---|---|\n{}",
        rows.into_iter().collect::<String>()
    );
    let file = test_support::place::repository().join("docs/controller.md");
    let text = std::fs::read_to_string(&file).unwrap();
    let from = text.find("| who | where | may |").expect("the table");
    let length = text[from..].find("\n\n").map_or(text.len() - from, |end| end + 1);
    let there = &text[from..from + length];
    if std::env::var_os("ICHOR_BLESS").is_some() {
        std::fs::write(&file, text.replace(there, &table)).unwrap();
    } else {
        assert_eq!(there, table, "run with ICHOR_BLESS=1 and review");
    }
}
