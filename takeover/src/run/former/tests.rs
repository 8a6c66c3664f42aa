use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{CHANGED, FormerLeaf, groups, undo};
use crate::gate::{Desired, apply_in_memory, classify, patch};
use crate::plan::Key;
use crate::run::stored::{StoredObject, StoredPlan};

/// What a takeover that writes `desired` over `before` stores of it, and makes of it.
fn taken(before: &Value, desired: &Value) -> (StoredPlan, StoredObject, Value) {
    let key = Key("cluster".to_owned());
    let after = match patch(desired, before).unwrap() {
        Some(patch) => apply_in_memory(before, &patch).unwrap(),
        None => before.clone(),
    };
    let all = Desired { object: desired.clone(), ..Desired::default() };
    let mut credentials = BTreeMap::new();
    let kind = before["kind"].as_str().unwrap();
    let object = StoredObject {
        desired: desired.clone(),
        exempt: BTreeSet::new(),
        keep: false,
        before: String::new(),
        after: String::new(),
        original: None,
        former: None,
        leaves: classify(before, &after, &all)
            .differences
            .iter()
            .map(|change| FormerLeaf::of(&key, kind, change, &mut credentials))
            .collect(),
        origin: String::new(),
    };
    let mut stored = StoredPlan::default();
    stored.key = key.0;
    stored.credentials = credentials;
    (stored, object, after)
}

fn deployment(labels: &Value, pod: &Value) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "a", "namespace": "n", "labels": labels},
        "spec": {"template": {"spec": pod}},
    })
}

/// Objects before, and what is written over them.
fn cases() -> Vec<(Value, Value)> {
    let map = |data: Value| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data});
    let secret = |data: Value| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "data": data});
    let service = |ports: Value| json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": {"ports": ports}});
    let custom = |spec: Value| json!({"apiVersion": "x.io/v1", "kind": "X", "metadata": {"name": "a"}, "spec": spec});
    let pod =
        |container: Value| deployment(&json!({"app": "a"}), &json!({"containers": [container]}));
    vec![
        (map(json!({"a": "1", "b": "2"})), map(json!({"a": "3", "c": "4"}))),
        (
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}),
            map(json!({"a": "1"})),
        ),
        (
            secret(json!({"password": "b2xk", "a": "b2xk"})),
            secret(json!({"password": "bmV3", "b": "bmV3"})),
        ),
        (
            service(
                json!([{"port": 53, "name": "dns"}, {"port": 53, "protocol": "UDP", "name": "udp"}]),
            ),
            service(json!([
                {"port": 53, "name": "other"}, {"port": 53, "protocol": "UDP", "name": "udp"},
                {"port": 80, "name": "web"},
            ])),
        ),
        (
            custom(json!({"list": [1, {"a": 1}], "map": {}})),
            custom(json!({"list": [2], "map": {"a": {"b": 1}}})),
        ),
        (
            pod(json!({"name": "c", "image": "x:1", "args": ["a"], "resources": {}})),
            pod(json!({
                "name": "c", "image": "x:2", "args": ["a", "b"],
                "resources": {"limits": {"cpu": "1"}},
                "env": [{"name": "A", "value": "1"}, {"name": "TOKEN", "value": "hidden"}],
                "ports": [{"containerPort": 80, "name": "web"}],
                "securityContext": {"capabilities": {"drop": ["ALL"]}},
            })),
        ),
        (
            pod(
                json!({"name": "c", "image": "x", "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}),
            ),
            deployment(
                &json!({"app": "b", "more": "1"}),
                &json!({
                    "containers": [
                        {"name": "c", "image": "x", "env": [{"name": "B", "value": "3"}, {"name": "A", "value": "1"}]},
                        {"name": "d", "image": "y", "env": [{"name": "C", "value": "1"}]},
                    ],
                    "nodeSelector": {"os": "linux"},
                    "tolerations": [{"operator": "Exists"}],
                }),
            ),
        ),
    ]
}

#[test]
fn what_was_written_is_undone_to_the_byte() {
    for (before, desired) in cases() {
        let (stored, object, after) = taken(&before, &desired);
        assert!(!object.leaves.is_empty() && after != before, "{desired}");
        let undone = undo(&stored, &object, &after, &|_| true);
        assert_eq!(undone.object, before);
        assert_eq!((undone.back.len(), undone.left.len()), (object.leaves.len(), 0));
        // Once more, nothing is done.
        let again = undo(&stored, &object, &before, &|_| true);
        assert_eq!(again.object, before);
        assert!(again.back.is_empty() && again.left.is_empty(), "{:?}", again.left);
        // What is stored without credentials says nothing of them.
        let text = serde_json::to_string(&object.leaves).unwrap();
        assert!(!text.contains("b2xk") && !text.contains("hidden"), "{text}");
        let read: Vec<FormerLeaf> = serde_json::from_str(&text).unwrap();
        assert_eq!(read, object.leaves);
    }
}

/// Each leaf that a restore killed in the middle had given back counts as back.
#[test]
fn leaf_by_leaf_it_ends_the_same() {
    for (before, desired) in cases() {
        let (stored, object, after) = taken(&before, &desired);
        let all: Vec<usize> = (0..object.leaves.len()).collect();
        let mut live = after;
        for group in groups(&object, &all) {
            live = undo(&stored, &object, &live, &|index| group.contains(&index)).object;
        }
        let rest = undo(&stored, &object, &live, &|_| true);
        assert_eq!(rest.object, before);
        assert!(rest.left.is_empty(), "{:?}", rest.left);
    }
}

#[test]
fn what_somebody_changed_since_stays() {
    let before = deployment(&json!({}), &json!({"containers": [{"name": "c", "image": "x:1"}]}));
    let desired = deployment(
        &json!({"tier": "1"}),
        &json!({"containers": [{"name": "c", "image": "x:2"}, {"name": "d", "image": "y"}]}),
    );
    let (stored, object, mut live) = taken(&before, &desired);
    live["metadata"]["labels"]["tier"] = "theirs".into();
    live["metadata"]["labels"]["other"] = "theirs".into();
    live["spec"]["template"]["spec"]["containers"][1]["args"] = json!(["theirs"]);
    let undone = undo(&stored, &object, &live, &|_| true);
    let labels = &undone.object["metadata"]["labels"];
    assert_eq!(*labels, json!({"tier": "theirs", "other": "theirs"}));
    let containers = &undone.object["spec"]["template"]["spec"]["containers"];
    assert_eq!(containers[0]["image"], "x:1");
    assert_eq!(containers[1]["args"], json!(["theirs"]), "an item with something of theirs stays");
    let left: Vec<String> = undone
        .left
        .iter()
        .map(|(index, why)| format!("{}: {why}", object.leaves[*index].path))
        .collect();
    assert!(left.contains(&format!("metadata.labels.tier: {CHANGED}")), "{left:?}");
    assert!(left.iter().any(|line| line.starts_with("spec.template.spec.containers[name=d].name")));
}

/// A credential whose former value is gone, or is another one, stays and is told.
#[test]
fn a_credential_that_is_not_stored_stays() {
    let secret = |value: &str| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "data": {"k": value}});
    let (mut stored, object, after) = taken(&secret("b2xk"), &secret("bmV3"));
    for value in stored.credentials.values_mut() {
        *value = "b3RoZXI=".into();
    }
    let undone = undo(&stored, &object, &after, &|_| true);
    assert_eq!(undone.object, after);
    assert_eq!(undone.left.len(), 1);
    stored.is_hidden = true;
    let undone = undo(&stored, &object, &after, &|_| true).object;
    let stand_in = Key("cluster".to_owned()).stand_in_entry("b2xk");
    assert_eq!(undone["data"]["k"], stand_in.as_str(), "in a snapshot its digest stands for it");
}
