//! The gate's two proofs: no false alarm, no false silence.

use std::collections::BTreeMap;

use plane::Plane;
use serde_json::{Value, json};
use takeover::gate::{
    Classes, Path, Step, Wanted, apply_in_memory, classify, desired, leaves_of, patch,
};
use takeover::plan::{Outcome, to_text};
use takeover_tests::{Bed, assert_forecast, kube_proxy, kube_proxy_on, prepared, values_path};

/// After real Helm installed the chart, nothing differs, nothing stays, nothing is missing.
#[tokio::test(flavor = "multi_thread")]
async fn gate_is_empty_for_every_value_set() {
    for number in ["01", "02", "03", "05", "06", "09"] {
        let path = values_path(number);
        let bed = prepared(&format!("empty-gate-{number}"), "1", move |plane: &Plane| {
            if !matches!(path.rsplit('/').next(), Some(name) if name.starts_with("01")) {
                kube_proxy_on(plane);
            }
            let set = ["--values", path.as_str(), "--set", "ipam.mode=kubernetes"];
            let mut helm = plane.helm().unwrap();
            helm.args(["install", "cilium"])
                .arg(plane::cilium::chart("1.20.0").unwrap())
                .args(["--namespace", "kube-system"])
                .args(set);
            plane::support::run(&mut helm).unwrap();
            for workload in ["ds/cilium", "deploy/cilium-operator"] {
                let mut kubectl = plane.kubectl().unwrap();
                kubectl.args([
                    "-n",
                    "kube-system",
                    "rollout",
                    "status",
                    workload,
                    "--timeout=120s",
                ]);
                plane::support::run(&mut kubectl).unwrap();
            }
        })
        .await;
        let Some(bed) = bed else { return };
        let plan = bed.plan(None).await.plan;
        let replaced = plan.refusals.iter().any(|refusal| refusal.reason == "KubeProxy");
        if replaced {
            bed.kubectl(&["-n", "kube-system", "delete", "ds/kube-proxy"]);
        }
        let plan = bed.plan(None).await.plan;
        let figures = plan.figures();
        println!("values {number}: {figures:?}");
        assert_eq!(
            (figures.differences, figures.residue, figures.creations, figures.restarts),
            (0, 0, 0, 0),
            "values {number}: {}",
            to_text(&plan, true)
        );
        assert_eq!(plan.outcome, Outcome::TakeOver, "{:?}", plan.refusals);
        bed.plane.stop();
    }
}

/// What controllers and a rollout restart write is others', and no difference.
#[tokio::test(flavor = "multi_thread")]
async fn gate_stays_empty_after_a_rollout_restart() {
    let Some(bed) = Bed::with_cilium("1.20.0", "03").await else { return };
    kube_proxy(&bed);
    for workload in ["ds/cilium-envoy", "deploy/cilium-operator"] {
        bed.kubectl(&["-n", "kube-system", "rollout", "restart", workload]);
        bed.kubectl(&["-n", "kube-system", "rollout", "status", workload, "--timeout=90s"]);
    }
    let plan = bed.plan(None).await.plan;
    assert!(plan.gate_is_empty(), "{}", to_text(&plan, true));
    let marks = plan
        .objects
        .iter()
        .flat_map(|object| &object.others)
        .filter(|other| other.path.contains("restartedAt"))
        .count();
    assert_eq!(marks, 2);
    let before = bed.footprints().await;
    bed.take_over(None, &plan).await.unwrap();
    // The mark stays, no pod restarts.
    assert_forecast(&before, &bed.footprints().await, &plan);
}

fn changed(value: &Value) -> Value {
    match value {
        Value::Null => json!("x"),
        Value::Bool(is) => json!(!is),
        Value::Number(number) => json!(number.as_i64().unwrap_or_default() + 1),
        Value::String(text) => json!(format!("{text}x")),
        Value::Array(items) => {
            let mut items = items.clone();
            items.push(items.first().map_or_else(|| json!("x"), changed));
            items.into()
        }
        Value::Object(map) => {
            let mut map = map.clone();
            map.insert("x".to_owned(), json!("y"));
            map.into()
        }
    }
}

fn set(object: &mut Value, path: &Path, new: &Value) {
    let mut at = object;
    for step in &path.0 {
        at = match step {
            Step::Key(key) => &mut at[key.as_str()],
            Step::Item(keys) => {
                let is_it = |item: &Value| {
                    keys.iter().all(|(key, wanted)| {
                        let value = if key.is_empty() { Some(item) } else { item.get(key) };
                        match value {
                            Some(Value::String(text)) => text == wanted,
                            Some(other) => other.to_string() == *wanted,
                            None => wanted == "TCP" || wanted.is_empty(),
                        }
                    })
                };
                at.as_array_mut().unwrap().iter_mut().find(|item| is_it(item)).unwrap()
            }
        };
    }
    *at = new.clone();
}

/// Whether some class names a place at, above or below `path`, or in the same list when a key
/// that identifies an item changed.
fn names(classes: &Classes, path: &Path) -> bool {
    let mut prefixes = vec![path.clone()];
    if let Some(at) = path.0.iter().rposition(|step| matches!(step, Step::Item(_))) {
        prefixes.push(Path(path.0[..at].to_vec()));
    }
    let all = classes
        .differences
        .iter()
        .chain(&classes.ownership)
        .map(|change| &change.path)
        .chain(classes.residue.iter().map(|residue| &residue.path))
        .chain(classes.others.iter().map(|(path, _)| path))
        .chain(&classes.generated);
    all.into_iter()
        .any(|named| named.is_above(path) || prefixes.iter().any(|prefix| prefix.is_above(named)))
}

/// Every leaf of every live object, changed one at a time, is named in some class.
#[tokio::test(flavor = "multi_thread")]
async fn gate_is_never_silent() {
    let Some(bed) = Bed::with_cilium("1.20.0", "03").await else { return };
    kube_proxy(&bed);
    let prepared = bed.plan(None).await;
    bed.plane.stop();
    let (mut checked, mut silent) = (0_usize, Vec::new());
    let mut exempt: BTreeMap<String, usize> = BTreeMap::new();
    for object in &prepared.objects {
        let live = object.live.as_ref().unwrap();
        let wanted =
            Wanted { object: object.desired.object.clone(), generated: object.generated.clone() };
        for (path, leaf) in leaves_of(live) {
            if path.is_order() {
                continue;
            }
            let text = path.to_string();
            let first = text.split(['.', '[']).next().unwrap_or_default().to_owned();
            let is_exempt = matches!(first.as_str(), "apiVersion" | "kind" | "status")
                || [
                    "metadata.managedFields",
                    "metadata.resourceVersion",
                    "metadata.uid",
                    "metadata.generation",
                    "metadata.creationTimestamp",
                    "metadata.name",
                    "metadata.namespace",
                ]
                .iter()
                .any(|start| text.starts_with(start))
                    && !text.starts_with("metadata.name[");
            if is_exempt {
                let name = if first == "metadata" {
                    text.split('[').next().unwrap().to_owned()
                } else {
                    first
                };
                *exempt.entry(name).or_default() += 1;
                continue;
            }
            let mut hand = live.clone();
            set(&mut hand, &path, &changed(&leaf.value));
            checked += 1;
            let desired = desired(&wanted, &hand);
            let after = match patch(&desired.object, &hand) {
                Ok(Some(patch)) => match apply_in_memory(&hand, &patch) {
                    Ok(after) => after,
                    // An object that cannot be merged is an error, and not silence.
                    Err(_) => continue,
                },
                Ok(None) => hand.clone(),
                Err(_) => continue,
            };
            if !names(&classify(&hand, &after, &desired), &path) {
                silent.push(format!("{} {text}", object.item.target));
            }
        }
    }
    println!("{checked} leaves changed one at a time, exempt: {exempt:?}");
    assert!(checked > 1000, "{checked}");
    assert_eq!(silent, [] as [String; 0]);
}
