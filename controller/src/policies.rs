//! Ichor's own network policies: what the controller's pods may talk to where Cilium runs.
//!
//! Off unless they are asked for: a policy that forgets something cuts the controller off from what
//! it would mend that with, and who writes default-deny policies for a cluster knows what else has to
//! be allowed there. The Job needs none: it is on the host's network, which these policies are not
//! about.
//!
//! What is there is watched, so that drift is repaired at once and nothing is sent when there is
//! none.

use std::collections::BTreeMap;

use api::{ConditionStatus, DetectedCni, reason};
use cilium::pinned::{NAMESPACE, RECORD_NAMESPACE};
use serde_json::{Value, json};

use crate::NAME;
use crate::facts::Facts;

/// The kind's API.
pub(crate) const API: &str = "cilium.io/v2";
/// The kind.
pub(crate) const KIND: &str = "CiliumNetworkPolicy";
/// Its name in paths.
pub(crate) const PLURAL: &str = "ciliumnetworkpolicies";
/// What the one policy is called.
pub(crate) const POLICY: &str = NAME;

/// What the policies are to allow beside the API server and names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policies {
    /// The port of probes and scrapes.
    pub port: u16,
    /// The port that traces are sent to; none when none are.
    pub traces: Option<u16>,
}

/// What is to be done about them, and what is said of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Steps {
    /// Objects to apply.
    pub(crate) apply: Vec<Value>,
    /// Names to delete.
    pub(crate) delete: Vec<String>,
    /// What the condition says; none where they are switched off.
    pub(crate) told: Option<(ConditionStatus, &'static str, String)>,
}

/// Decides. `wanted` is none when they are switched off: then what is left of them goes.
pub(crate) fn decide(facts: &Facts, wanted: Option<Policies>) -> Steps {
    let nothing = BTreeMap::new();
    let there = facts.policies.as_ref().unwrap_or(&nothing);
    let Some(wanted) = wanted else {
        return Steps { delete: there.keys().cloned().collect(), ..Steps::default() };
    };
    let no = |reason, message: String| Steps {
        told: Some((ConditionStatus::False, reason, message)),
        ..Steps::default()
    };
    if facts.cni != DetectedCni::Cilium {
        let message = format!(
            "the CNI is {}: ichor's network policies are CiliumNetworkPolicy objects",
            facts.cni.name()
        );
        return no(reason::CNI_NOT_CILIUM, message);
    }
    if facts.policies.is_none() {
        let message = format!(
            "the API server serves no {KIND} of {API} yet: Cilium's operator brings its definition"
        );
        return no(reason::NO_POLICY_KIND, message);
    }
    let objects = objects(wanted);
    let names: Vec<&str> = objects.iter().filter_map(name).collect();
    let message = format!("applied in namespace {RECORD_NAMESPACE}: {}", names.join(", "));
    let differs = |object: &&Value| {
        name(object).and_then(|name| there.get(name)).is_none_or(|there| !has(there, object))
    };
    Steps {
        apply: objects.iter().filter(differs).cloned().collect(),
        delete: Vec::new(),
        told: Some((ConditionStatus::True, reason::POLICIES_IN_PLACE, message)),
    }
}

fn name(object: &Value) -> Option<&str> {
    object.pointer("/metadata/name").and_then(Value::as_str)
}

/// Whether an object has all that is wanted: more is somebody else's.
fn has(there: &Value, wanted: &Value) -> bool {
    match (there, wanted) {
        (Value::Object(there), Value::Object(wanted)) => wanted
            .iter()
            .all(|(key, wanted)| there.get(key).is_some_and(|there| has(there, wanted))),
        _ => there == wanted,
    }
}

/// The policies as they are applied.
fn objects(wanted: Policies) -> Vec<Value> {
    let ports = |port: String, protocol: &str| json!([{ "ports": [{ "port": port, "protocol": protocol }] }]);
    let mut egress = vec![
        json!({ "toEntities": ["kube-apiserver"] }),
        json!({
            "toEndpoints": [{ "matchLabels": {
                "k8s:io.kubernetes.pod.namespace": NAMESPACE, "k8s:k8s-app": "kube-dns",
            } }],
            "toPorts": ports("53".to_owned(), "ANY"),
        }),
    ];
    if let Some(port) = wanted.traces {
        egress.push(json!({ "toEntities": ["all"], "toPorts": ports(port.to_string(), "TCP") }));
    }
    vec![json!({
        "apiVersion": API,
        "kind": KIND,
        "metadata": {
            "name": POLICY,
            "namespace": RECORD_NAMESPACE,
            "labels": { "app.kubernetes.io/name": NAME, "app.kubernetes.io/managed-by": NAME },
        },
        "spec": {
            "description": "ichor's controller: the API server, names, probes and scrapes",
            "endpointSelector": { "matchLabels": { "app.kubernetes.io/name": NAME } },
            "egress": egress,
            // Kubelets, and whoever scrapes from within the cluster.
            "ingress": [{
                "fromEntities": ["cluster"],
                "toPorts": ports(wanted.port.to_string(), "TCP"),
            }],
        },
    })]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Objects;

    const WANTED: Policies = Policies { port: 8080, traces: None };

    fn facts(cni: DetectedCni, there: Option<Vec<Value>>) -> Facts {
        let objects = Objects { policies: there, ..Objects::default() };
        Facts { cni, ..Facts::read(&objects).unwrap() }
    }

    fn told(steps: &Steps) -> (ConditionStatus, &'static str) {
        steps.told.as_ref().map(|(status, reason, _)| (*status, *reason)).unwrap()
    }

    #[test]
    fn nothing_where_cilium_does_not_run_or_its_kind_is_not_there() {
        for (cni, there, expected) in [
            (DetectedCni::Flannel, None, reason::CNI_NOT_CILIUM),
            (DetectedCni::None, Some(vec![]), reason::CNI_NOT_CILIUM),
            (DetectedCni::Cilium, None, reason::NO_POLICY_KIND),
        ] {
            let steps = decide(&facts(cni, there), Some(WANTED));
            assert_eq!(told(&steps), (ConditionStatus::False, expected));
            assert_eq!((steps.apply.len(), steps.delete.len()), (0, 0));
        }
    }

    #[test]
    fn what_is_missing_or_changed_is_applied_and_the_rest_is_not() {
        let wanted = objects(WANTED);
        let mut more = wanted[0].clone();
        more["metadata"]["annotations"] = json!({ "theirs": "1" });
        let mut drifted = wanted[0].clone();
        drifted["spec"]["egress"] = json!([]);
        for (there, count) in
            [(vec![], 1), (vec![drifted], 1), (wanted.clone(), 0), (vec![more], 0)]
        {
            let steps = decide(&facts(DetectedCni::Cilium, Some(there)), Some(WANTED));
            assert_eq!(told(&steps), (ConditionStatus::True, reason::POLICIES_IN_PLACE));
            assert_eq!((steps.apply.len(), steps.delete.len()), (count, 0));
        }
    }

    #[test]
    fn switched_off_they_go_and_nothing_is_said() {
        let steps = decide(&facts(DetectedCni::Cilium, Some(objects(WANTED))), None);
        assert_eq!((steps.delete, steps.told), (vec![POLICY.to_owned()], None));
        assert_eq!(decide(&facts(DetectedCni::Cilium, None), None), Steps::default());
    }

    /// The controller's lifelines, without which it could not even take the policy back.
    #[test]
    fn the_lifelines_are_open() {
        let spec = &objects(Policies { port: 9000, traces: Some(4318) })[0]["spec"];
        assert_eq!(spec["egress"][0], json!({ "toEntities": ["kube-apiserver"] }));
        assert_eq!(spec["egress"][1]["toPorts"][0]["ports"][0]["port"], "53");
        assert_eq!(spec["egress"][2]["toPorts"][0]["ports"][0]["port"], "4318");
        assert_eq!(spec["ingress"][0]["toPorts"][0]["ports"][0]["port"], "9000");
        assert_eq!(objects(WANTED)[0]["spec"]["egress"].as_array().map(Vec::len), Some(2));
    }
}
