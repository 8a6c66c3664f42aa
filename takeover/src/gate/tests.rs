use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{Classes, Wanted, apply_in_memory, classify, desired, patch};

fn gate(rendered: &Value, live: &Value) -> Classes {
    let wanted = Wanted { object: rendered.clone(), generated: BTreeSet::new() };
    let desired = desired(&wanted, live);
    let after = match patch(&desired.object, live).unwrap() {
        Some(patch) => apply_in_memory(live, &patch).unwrap(),
        None => live.clone(),
    };
    classify(live, &after, &desired)
}

fn daemon_set() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {"name": "c", "namespace": "n"},
        "spec": {"template": {"spec": {"containers": [
            {"name": "a", "image": "i:1", "args": ["x"], "env": [{"name": "E", "value": "1"}]},
        ]}}},
    })
}

/// Case A5: an annotation, an argument and a variable added by hand.
#[test]
fn what_was_added_by_hand_is_named() {
    let mut live = daemon_set();
    live["metadata"]["annotations"] = json!({"hand": "made"});
    let container = &mut live["spec"]["template"]["spec"]["containers"][0];
    container["args"] = json!(["x", "y"]);
    container["env"] = json!([{"name": "E", "value": "1"}, {"name": "F", "value": "2"}]);
    container["imagePullPolicy"] = json!("IfNotPresent");
    let classes = gate(&daemon_set(), &live);
    let differences: Vec<String> =
        classes.differences.iter().map(|change| change.path.to_string()).collect();
    assert_eq!(differences, ["spec.template.spec.containers[name=a].args"]);
    let residue: Vec<String> =
        classes.residue.iter().map(|residue| residue.path.to_string()).collect();
    assert_eq!(
        residue,
        [
            "metadata.annotations.hand",
            "spec.template.spec.containers[name=a].env[name=F].name",
            "spec.template.spec.containers[name=a].env[name=F].value",
        ]
    );
    assert_eq!(classes.defaults.len(), 1);
}

#[test]
fn what_a_controller_drives_is_left_out_of_the_write() {
    let rendered = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
        "spec": {"replicas": 2},
    });
    let mut live = rendered.clone();
    live["spec"]["replicas"] = json!(5);
    let fields = json!({"f:spec": {"f:replicas": {}}});
    let manager =
        |name: &str| json!([{"manager": name, "subresource": "scale", "fieldsV1": fields.clone()}]);
    live["metadata"]["managedFields"] = manager("kube-controller-manager");
    let classes = gate(&rendered, &live);
    assert_eq!(classes.differences, []);
    assert_eq!(classes.others.len(), 1);
    live["metadata"]["managedFields"] = manager("kubectl");
    assert_eq!(gate(&rendered, &live).differences.len(), 1);
}

#[test]
fn a_generated_leaf_keeps_its_live_value() {
    let secret = |data: &str| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"k": data}});
    let live = secret("bGl2ZQ==");
    let path = super::leaves_of(&live).into_keys().find(|p| p.last_key() == "k").unwrap();
    let wanted = Wanted { object: secret("bmV3"), generated: BTreeSet::from([path.clone()]) };
    let desired = desired(&wanted, &live);
    assert_eq!(patch(&desired.object, &live).unwrap(), None);
    assert_eq!(classify(&live, &live, &desired).generated, [path]);
}
