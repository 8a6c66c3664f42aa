//! What the pinned chart's Roles grant is held by the Job that creates them: for the defaults and
//! every shared value set, judged by the RBAC rules of the cluster in memory.

use std::sync::Arc;

use goyaml::Map;
use helm_rs::action::rights::{Right, granted};
use helm_rs::action::template::{Options, template};
use helm_rs::apply::Item;
use helm_rs::cluster::memory::{MemoryCluster, MemoryOptions};
use helm_rs::cluster::{Clock, Cluster, ManualClock};
use helm_rs::render::host::{Clock as RenderClock, Randomness, Reading};
use helm_rs::render::time::Zone;
use helm_rs::render::{Engine, EngineOptions, Host};
use serde_json::{Value, json};
use takeover::job;
use takeover::plan::Needs;
use takeover::rendered::manifest_objects;
use takeover_tests::{pinned, values_of};

fn memory() -> MemoryCluster {
    let clock = ManualClock::new("2026-01-01T00:00:00Z".parse().unwrap());
    MemoryCluster::new(Arc::new(clock) as Arc<dyn Clock>, MemoryOptions::default())
}

/// The chart's objects of built-in kinds, or what is wrong with the values.
fn render(values: &Map) -> Result<String, String> {
    let mut chart = pinned().chart;
    let clock = RenderClock::Fixed(Reading::at(1_767_225_600, 0));
    let mut host = Host::new(Randomness::Entropy([7; 32]), clock, Zone::utc());
    let options = Options {
        release_name: "cilium".to_owned(),
        namespace: "kube-system".to_owned(),
        ..Options::default()
    };
    let engine = Engine::new(EngineOptions::default());
    template(&engine, &mut chart, values, &options, &mut host, &mut Vec::new())
        .map(|rendering| rendering.manifest.to_string())
        .map_err(|error| error.to_string())
}

/// Everything that the Roles among the objects grant, and the Job does not hold.
async fn not_held(items: &[Item], roles: &[Value]) -> Vec<String> {
    let judge = memory();
    let held = roles.iter().map(|role| ("the Job's".to_owned(), role.clone())).collect();
    judge.load(held).unwrap();
    let mut missing = Vec::new();
    for item in items {
        if !matches!(item.kind().kind.as_str(), "Role" | "ClusterRole") {
            continue;
        }
        for right in granted(&item.value, &item.target.namespace) {
            assert!(right.url.is_empty(), "a rule on paths: {right}");
            let decision = judge.subject_may(&job::subject(), &right.question()).await.unwrap();
            if !decision.allowed {
                missing.push(right.to_string());
            }
        }
    }
    missing
}

async fn of_values(values: &Map) -> Result<(Vec<Item>, Vec<Value>), String> {
    let manifest = render(values)?;
    let cluster = memory();
    let discovery = cluster.discovery(false).await.unwrap();
    let items = manifest_objects(&discovery, &manifest, "kube-system");
    let needs = Needs::creating(&cluster, &discovery, &items).await;
    Ok((items, job::rights(&needs)))
}

#[tokio::test(flavor = "multi_thread")]
async fn a10_the_job_holds_what_the_chart_grants() {
    let mut sets = vec![
        ("the defaults".to_owned(), Map::new()),
        ("ipam.mode: kubernetes".to_owned(), values_of("ipam: {mode: kubernetes}")),
        (
            "SPIRE".to_owned(),
            values_of(
                "authentication: {enabled: true, mutual: {spire: {enabled: true, install: {enabled: true}}}}",
            ),
        ),
        ("preflight".to_owned(), values_of("preflight: {enabled: true}")),
    ];
    let files = match test_support::place::shared_files("values", ".yaml") {
        Ok(files) => files,
        Err(missing) => test_support::skip!(missing),
    };
    for file in files {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        sets.push((name, values_of(&std::fs::read_to_string(&file).unwrap())));
    }
    let (mut grants, mut rendered) = (0, 0);
    for (name, values) in sets {
        let (mut items, roles) = match of_values(&values).await {
            Ok(found) => found,
            Err(error) if name.contains("-bad-") => {
                println!("{name}: not rendered: {}", error.lines().next().unwrap_or_default());
                continue;
            }
            Err(error) => panic!("{name}: {error}"),
        };
        let missing = not_held(&items, &roles).await;
        assert_eq!(missing, [""; 0], "{name}: the chart grants what the Job does not hold");
        let is_role =
            |item: &&mut Item| matches!(item.kind().kind.as_str(), "Role" | "ClusterRole");
        let mut count = 0;
        // The check is no empty one: one rule more in any Role, and it fails with that rule.
        for at in 0..items.iter_mut().filter(is_role).count() {
            let mut mutated = items.clone();
            let role = mutated.iter_mut().filter(is_role).nth(at).unwrap();
            count += granted(&role.value, "").len();
            let rule = json!({
                "apiGroups": ["example.org"], "resources": ["widgets"], "verbs": ["impersonate"],
            });
            match role.value["rules"].as_array_mut() {
                Some(rules) => rules.push(rule),
                None => role.value["rules"] = json!([rule]),
            }
            let place = role.target.namespace.clone();
            let expected = Right::any("impersonate", "example.org", "widgets", &place).to_string();
            assert_eq!(not_held(&mutated, &roles).await, [expected], "{name}");
        }
        items.retain(|item| matches!(item.kind().kind.as_str(), "Role" | "ClusterRole"));
        println!("{name}: {} Roles grant {count} rights, all held", items.len());
        grants += count;
        rendered += 1;
    }
    println!("{rendered} value sets, {grants} rights granted");
    assert!(rendered >= 12 && grants > 500);
}
