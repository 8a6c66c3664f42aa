//! The status of a pod from what is known of its containers: a pure function.

use k8s_openapi::api::core::v1::{Container, Pod, PodCondition, PodSpec};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::PodHealth;
use super::life::{ContainerLife, Ended, Life, State, is_sidecar};

/// The present moment as the API writes it.
pub(super) fn now() -> String {
    format_time(Timestamp::now())
}

/// A moment in whole seconds, as `metav1.Time` writes it.
pub(super) fn format_time(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The status to write: only fields that a kubelet owns, and all conditions, foreign ones kept.
pub(super) fn status(pod: &Pod, life: &Life, health: PodHealth, host_address: &str) -> Value {
    let Some(spec) = &pod.spec else { return json!({}) };
    let init = spec.init_containers.as_deref().unwrap_or_default();
    let phase = phase(spec, life);
    let main_ready = spec.containers.iter().all(|c| is_ready(life, c, health));
    let sidecars_ready = init.iter().filter(|c| is_sidecar(c)).all(|c| is_ready(life, c, health));
    let done = matches!(phase, "Succeeded" | "Failed");
    let containers_ready = main_ready && sidecars_ready && !done;

    let mut conditions = Conditions::new(pod);
    conditions.set("PodReadyToStartContainers", life.address.is_some() && !done, "");
    conditions.set(
        "Initialized",
        initialized(spec, life),
        if done { "PodCompleted" } else { "ContainersNotInitialized" },
    );
    let reason = match phase {
        "Succeeded" => "PodCompleted",
        "Failed" => "PodFailed",
        _ => "ContainersNotReady",
    };
    conditions.set("ContainersReady", containers_ready, reason);
    let gates = spec.readiness_gates.iter().flatten();
    let gates_open = gates.map(|gate| gate.condition_type.as_str()).all(|g| conditions.is_true(g));
    let reason = if containers_ready { "ReadinessGatesNotReady" } else { reason };
    conditions.set("Ready", containers_ready && gates_open, reason);

    let mut status = Map::new();
    status.insert("phase".to_owned(), json!(phase));
    status.insert("conditions".to_owned(), Value::Array(conditions.list));
    status.insert("hostIP".to_owned(), json!(host_address));
    status.insert("hostIPs".to_owned(), json!([{"ip": host_address}]));
    if let Some(address) = &life.address {
        status.insert("podIP".to_owned(), json!(address));
        status.insert("podIPs".to_owned(), json!([{"ip": address}]));
    }
    if let Some(start) = &life.start_time {
        status.insert("startTime".to_owned(), json!(start));
    }
    let uid = pod.metadata.uid.as_deref().unwrap_or_default();
    let list = |containers: &[Container]| {
        let one = |c: &Container| container_status(uid, c, life, is_ready(life, c, health));
        Value::Array(containers.iter().map(one).collect())
    };
    if !init.is_empty() {
        status.insert("initContainerStatuses".to_owned(), list(init));
    }
    status.insert("containerStatuses".to_owned(), list(&spec.containers));
    Value::Object(status)
}

/// Mirrors `pkg/kubelet/kubelet_pods.go`, `getPhase`, for the states that occur here.
fn phase(spec: &PodSpec, life: &Life) -> &'static str {
    if !initialized(spec, life) {
        let policy = spec.restart_policy.as_deref();
        let init = spec.init_containers.iter().flatten().filter(|c| !is_sidecar(c));
        let failed = |c: &Container| exit_code(life, &c.name).is_some_and(|code| code != 0);
        return if policy == Some("Never") && init.into_iter().any(failed) {
            "Failed"
        } else {
            "Pending"
        };
    }
    let codes: Vec<Option<i32>> =
        spec.containers.iter().map(|c| exit_code(life, &c.name)).collect();
    if codes.iter().all(Option::is_some) {
        return if codes.iter().flatten().all(|code| *code == 0) { "Succeeded" } else { "Failed" };
    }
    let begun = |c: &Container| {
        life.containers
            .get(&c.name)
            .is_some_and(|c| c.last.is_some() || !matches!(c.state, State::Waiting { .. }))
    };
    if spec.containers.iter().any(begun) { "Running" } else { "Pending" }
}

/// All init containers ended well, and all sidecars have started.
pub(super) fn initialized(spec: &PodSpec, life: &Life) -> bool {
    spec.init_containers.iter().flatten().all(|container| {
        let known = life.containers.get(&container.name);
        known.is_some_and(|known| {
            if is_sidecar(container) {
                known.is_running() || known.last.is_some() || known.exit_code().is_some()
            } else {
                known.exit_code() == Some(0)
            }
        })
    })
}

fn exit_code(life: &Life, name: &str) -> Option<i32> {
    life.containers.get(name).and_then(ContainerLife::exit_code)
}

fn is_ready(life: &Life, container: &Container, health: PodHealth) -> bool {
    let running = life.containers.get(&container.name).is_some_and(ContainerLife::is_running);
    running && health == PodHealth::Ready
}

fn container_status(uid: &str, container: &Container, life: &Life, ready: bool) -> Value {
    let new = ContainerLife::new();
    let known = life.containers.get(&container.name).unwrap_or(&new);
    let image = container.image.as_deref().unwrap_or_default();
    // A finished init container counts as ready, as with a kubelet.
    let ready =
        ready || known.exit_code() == Some(0) && known.last.is_none() && !known.is_running();
    let mut status = json!({
        "name": container.name,
        "image": image,
        "imageID": "",
        "ready": ready,
        "started": known.is_running(),
        "restartCount": known.restarts,
        "state": state(&known.state),
        "lastState": known.last.as_ref().map_or_else(|| json!({}), terminated),
    });
    if !matches!(known.state, State::Waiting { .. }) || known.last.is_some() {
        let id = format!("containerd://{uid}-{}-{}", container.name, known.restarts);
        status["containerID"] = json!(id);
        status["imageID"] = json!(image);
    }
    status
}

fn state(state: &State) -> Value {
    match state {
        State::Waiting { reason, message } if message.is_empty() => {
            json!({"waiting": {"reason": reason}})
        }
        State::Waiting { reason, message } => {
            json!({"waiting": {"reason": reason, "message": message}})
        }
        State::Running { since } => json!({"running": {"startedAt": since}}),
        State::Terminated(ended) => terminated(ended),
    }
}

fn terminated(ended: &Ended) -> Value {
    let mut terminated = json!({
        "exitCode": ended.code,
        "reason": ended.reason,
        "startedAt": ended.started,
        "finishedAt": ended.finished,
    });
    if !ended.message.is_empty() {
        terminated["message"] = json!(ended.message);
    }
    json!({"terminated": terminated})
}

/// The pod's conditions: ours are set, others' stay.
struct Conditions {
    list: Vec<Value>,
}

impl Conditions {
    fn new(pod: &Pod) -> Self {
        let known = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
        let value = |condition: &PodCondition| serde_json::to_value(condition).unwrap_or_default();
        Self { list: known.into_iter().flatten().map(value).collect() }
    }

    fn is_true(&self, kind: &str) -> bool {
        self.list.iter().any(|c| c["type"] == kind && c["status"] == "True")
    }

    /// Sets a condition; the time of its last change stays when the status does.
    fn set(&mut self, kind: &str, holds: bool, reason: &str) {
        let status = if holds { "True" } else { "False" };
        let old = self.list.iter().position(|condition| condition["type"] == kind);
        let since = old
            .and_then(|index| self.list.get(index))
            .filter(|condition| condition["status"] == status)
            .and_then(|condition| condition["lastTransitionTime"].as_str().map(str::to_owned))
            .unwrap_or_else(now);
        let mut condition = json!({"type": kind, "status": status, "lastTransitionTime": since});
        let told = !holds || reason == "PodCompleted";
        if told && !reason.is_empty() {
            condition["reason"] = json!(reason);
        }
        match old.and_then(|index| self.list.get_mut(index)) {
            Some(place) => *place = condition,
            None => self.list.push(condition),
        }
    }
}

/// True when the fields of `wanted` are in `current` already; absent, null and empty are the same.
pub(super) fn covers(current: &Value, wanted: &Value) -> bool {
    match (current, wanted) {
        (Value::Object(current), Value::Object(wanted)) => wanted.iter().all(|(key, value)| {
            current.get(key).map_or_else(|| is_empty(value), |current| covers(current, value))
        }),
        (Value::Array(current), Value::Array(wanted)) => {
            current.len() == wanted.len()
                && current.iter().zip(wanted).all(|(current, wanted)| covers(current, wanted))
        }
        _ => current == wanted || (is_empty(current) && is_empty(wanted)),
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Object(map) => map.values().all(is_empty),
        Value::Array(list) => list.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(spec: &Value) -> Pod {
        serde_json::from_value(json!({"metadata": {"uid": "u"}, "spec": spec})).unwrap()
    }

    fn running(life: &mut Life, name: &str) {
        life.container(name).state = State::Running { since: now() };
    }

    #[test]
    fn a_sidecar_starts_before_the_pod_is_initialised_and_counts_for_readiness() {
        let pod = pod(&json!({
            "initContainers": [{"name": "s", "restartPolicy": "Always"}, {"name": "i"}],
            "containers": [{"name": "m"}],
        }));
        let mut life = Life { address: Some("10.0.0.1".into()), ..Life::default() };
        running(&mut life, "s");
        assert_eq!(status(&pod, &life, PodHealth::Ready, "h")["phase"], "Pending");
        life.container("i").end(0, "Completed", String::new());
        running(&mut life, "m");
        let ready = status(&pod, &life, PodHealth::Ready, "h");
        assert_eq!(ready["phase"], "Running");
        assert!(ready["conditions"].as_array().unwrap().iter().all(|c| c["status"] == "True"));
        life.container("s").state = State::Waiting { reason: "Error", message: String::new() };
        life.container("s").last = None;
        let sick = status(&pod, &life, PodHealth::Ready, "h");
        assert!(sick["conditions"].as_array().unwrap().iter().any(|c| c["status"] == "False"));
    }

    #[test]
    fn a_closed_readiness_gate_keeps_the_pod_unready() {
        let pod = pod(&json!({
            "readinessGates": [{"conditionType": "x/y"}], "containers": [{"name": "m"}],
        }));
        let mut life = Life::default();
        running(&mut life, "m");
        let status = status(&pod, &life, PodHealth::Ready, "h");
        let ready = status["conditions"].as_array().unwrap().iter().find(|c| c["type"] == "Ready");
        assert_eq!(ready.unwrap()["reason"], "ReadinessGatesNotReady");
    }

    #[test]
    fn covering_ignores_what_is_empty_or_foreign() {
        let current = json!({"a": 1, "foreign": 2, "list": [{"b": 1}]});
        assert!(covers(&current, &json!({"a": 1, "lastState": {}, "list": [{"b": 1, "c": ""}]})));
        assert!(!covers(&current, &json!({"a": 2})));
        assert!(!covers(&current, &json!({"list": []})));
    }
}
