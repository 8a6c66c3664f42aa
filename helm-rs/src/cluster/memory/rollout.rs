//! What controllers and kubelets would do, done at once: workloads become ready, Jobs complete,
//! claims are bound. Switched on for rehearsals, where nobody else would ever do it.

use serde_json::{Value, json};

use super::state::{Key, State};

/// Brings an object's status to what its spec asks for.
pub(super) fn settle(state: &mut State, key: &Key, time: &Value) {
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
