//! What controllers and kubelets would do, done at once: workloads become ready, Jobs complete,
//! claims are bound. Switched on for rehearsals, where nobody else would ever do it.

use serde_json::{Value, json};

use super::state::{Key, State, meta};

/// The label by which a Deployment tells its ReplicaSets apart.
const HASH_LABEL: &str = "pod-template-hash";

/// Brings an object's status to what its spec asks for.
pub(super) fn settle(state: &mut State, key: &Key, time: &Value) {
    if (key.group.as_str(), key.plural.as_str()) == ("apps", "deployments") {
        replica_set(state, key, time);
    }
    let Some(object) = state.get(key) else { return };
    let number = |pointer: &str, default: i64| {
        object.pointer(pointer).and_then(Value::as_i64).unwrap_or(default)
    };
    let generation = number("/metadata/generation", 1);
    let replicas = number("/spec/replicas", 1);
    let condition = |kind: &str, reason: &str| {
        json!({
            "type": kind, "status": "True", "reason": reason, "message": "simulated",
            "lastTransitionTime": time,
        })
    };
    let status = match (key.group.as_str(), key.plural.as_str()) {
        ("apps", "deployments") => json!({
            "observedGeneration": generation,
            "replicas": replicas,
            "updatedReplicas": replicas,
            "readyReplicas": replicas,
            "availableReplicas": replicas,
            "conditions": [
                condition("Available", "MinimumReplicasAvailable"),
                condition("Progressing", "NewReplicaSetAvailable"),
            ],
        }),
        ("apps", "statefulsets") => json!({
            "observedGeneration": generation,
            "replicas": replicas,
            "updatedReplicas": replicas,
            "currentReplicas": replicas,
            "readyReplicas": replicas,
            "availableReplicas": replicas,
            "currentRevision": "simulated",
            "updateRevision": "simulated",
        }),
        ("apps", "replicasets") | ("", "replicationcontrollers") => json!({
            "observedGeneration": generation,
            "replicas": replicas,
            "fullyLabeledReplicas": replicas,
            "readyReplicas": replicas,
            "availableReplicas": replicas,
        }),
        ("apps", "daemonsets") => {
            let nodes = state
                .objects
                .keys()
                .filter(|key| key.group.is_empty() && key.plural == "nodes")
                .count();
            let pods = object
                .pointer("/status/desiredNumberScheduled")
                .and_then(Value::as_i64)
                .filter(|pods| *pods > 0)
                .unwrap_or(nodes as i64);
            json!({
                "observedGeneration": generation,
                "currentNumberScheduled": pods,
                "desiredNumberScheduled": pods,
                "numberAvailable": pods,
                "numberMisscheduled": 0,
                "numberReady": pods,
                "updatedNumberScheduled": pods,
            })
        }
        ("batch", "jobs") => json!({
            "startTime": time,
            "completionTime": time,
            "succeeded": number("/spec/completions", 1),
            "conditions": [
                condition("SuccessCriteriaMet", "CompletionsReached"),
                condition("Complete", "CompletionsReached"),
            ],
        }),
        ("", "persistentvolumeclaims") => json!({
            "phase": "Bound",
            "accessModes": object.pointer("/spec/accessModes"),
            "capacity": object.pointer("/spec/resources/requests"),
        }),
        ("", "pods") => json!({
            "phase": "Running",
            "startTime": time,
            "conditions": [condition("Ready", "Simulated")],
        }),
        _ => return,
    };
    if object.get("status") == Some(&status) {
        return;
    }
    let mut settled = Value::clone(object);
    settled["status"] = status;
    state.store(key.clone(), settled, false);
}

/// Makes the ReplicaSet of a Deployment's template when there is none. Those of earlier templates
/// stay as they are.
fn replica_set(state: &mut State, key: &Key, time: &Value) {
    let Some(deployment) = state.get(key).cloned() else { return };
    let Some(template) = deployment.pointer("/spec/template") else { return };
    let uid = meta(&deployment, "uid");
    let mut all = Key { plural: "replicasets".to_owned(), ..key.clone() };
    all.name = String::new();
    let is_its = |set: &Value| {
        let owners = set.pointer("/metadata/ownerReferences").and_then(Value::as_array);
        owners.is_some_and(|all| {
            all.iter().any(|owner| owner.get("uid").and_then(Value::as_str) == Some(uid))
        })
    };
    let is_there = state
        .objects
        .range(all.clone()..)
        .take_while(|(other, _)| other.plural == all.plural && other.namespace == all.namespace)
        .any(|(_, set)| is_its(set) && without_hash(set.pointer("/spec/template")) == *template);
    if is_there {
        return;
    }
    // FNV-1a: a name that follows from the template alone.
    let hash = template.to_string().bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let hash = format!("{hash:016x}");
    let name = format!("{}-{hash}", key.name);
    let mut template = template.clone();
    let mut selector = deployment.pointer("/spec/selector").cloned().unwrap_or_default();
    // Without labels it selects nothing, and a server would not have taken it.
    let Some(labels) = template.pointer_mut("/metadata/labels").and_then(Value::as_object_mut)
    else {
        return;
    };
    labels.insert(HASH_LABEL.to_owned(), hash.as_str().into());
    let labels = Value::Object(labels.clone());
    if let Some(wanted) = selector.pointer_mut("/matchLabels").and_then(Value::as_object_mut) {
        wanted.insert(HASH_LABEL.to_owned(), hash.into());
    }
    let replicas = deployment.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(1);
    let uid_of_set = state.uid();
    let set = json!({
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": name,
            "namespace": key.namespace,
            "uid": uid_of_set,
            "creationTimestamp": time,
            "generation": 1,
            "labels": labels,
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "Deployment", "name": key.name, "uid": uid,
                "controller": true, "blockOwnerDeletion": true,
            }],
        },
        "spec": { "replicas": replicas, "selector": selector, "template": template },
    });
    let place = Key { name, ..all };
    state.store(place.clone(), set, false);
    settle(state, &place, time);
}

fn without_hash(template: Option<&Value>) -> Value {
    let mut template = template.cloned().unwrap_or_default();
    let labels = template.pointer_mut("/metadata/labels").and_then(Value::as_object_mut);
    if let Some(labels) = labels {
        labels.remove(HASH_LABEL);
    }
    template
}
