//! Rights by RBAC: roles and bindings that the cluster holds, as the RBAC authorizer reads them
//! (`plugin/pkg/auth/authorizer/rbac`, `pkg/registry/rbac/validation/rule.go`).

use serde_json::Value;

use super::state::{Key, State};
use crate::cluster::{AccessQuestion, Decision, Resource, ResourceRule, Rules, Subject};

const GROUP: &str = "rbac.authorization.k8s.io";

/// The group that may do everything.
const MASTERS: &str = "system:masters";

/// Whether a subject may do something.
pub(super) fn decide(state: &State, subject: &Subject, question: &AccessQuestion) -> Decision {
    if subject.groups.iter().any(|group| group == MASTERS) {
        return Decision { allowed: true, ..Decision::default() };
    }
    for (rules, reason) in bound(state, subject, &question.namespace) {
        if rules.iter().any(|rule| rule.allows(question)) {
            return Decision {
                allowed: true,
                reason: format!("RBAC: allowed by {reason}"),
                ..Decision::default()
            };
        }
    }
    Decision::default()
}

/// All rules of a subject in a namespace.
pub(super) fn rules(state: &State, subject: &Subject, namespace: &str) -> Rules {
    let mut resources = Vec::new();
    if subject.groups.iter().any(|group| group == MASTERS) {
        let all = || vec!["*".to_owned()];
        resources.push(ResourceRule {
            verbs: all(),
            api_groups: all(),
            resources: all(),
            resource_names: Vec::new(),
        });
    }
    resources.extend(bound(state, subject, namespace).into_iter().flat_map(|(rules, _)| rules));
    Rules { resources, ..Rules::default() }
}

/// The rules of each binding that names the subject: of the cluster, then of the namespace.
fn bound(state: &State, subject: &Subject, namespace: &str) -> Vec<(Vec<ResourceRule>, String)> {
    let api_version = format!("{GROUP}/v1");
    let everywhere =
        Resource::builtin(&api_version, "ClusterRoleBinding", "clusterrolebindings", false);
    let here = Resource::builtin(&api_version, "RoleBinding", "rolebindings", true);
    let mut found = Vec::new();
    let mut add = |binding: &Value, key: &Key, kind: &str| {
        let Some(which) = named_subject(binding, subject) else { return };
        let text = |pointer| binding.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (role_kind, role) = (text("/roleRef/kind"), text("/roleRef/name"));
        let binding_name = if key.namespace.is_empty() {
            key.name.clone()
        } else {
            format!("{}/{}", key.name, key.namespace)
        };
        let reason = format!("{kind} \"{binding_name}\" of {role_kind} \"{role}\" to {which}");
        found.push((role_rules(state, role_kind, &key.namespace, role), reason));
    };
    for (key, binding) in state.of_resource(&everywhere, "", None) {
        add(binding, key, "ClusterRoleBinding");
    }
    if !namespace.is_empty() {
        for (key, binding) in state.of_resource(&here, namespace, None) {
            add(binding, key, "RoleBinding");
        }
    }
    found
}

/// The subject of a binding that fits, as the authorizer's reasons name it.
fn named_subject(binding: &Value, subject: &Subject) -> Option<String> {
    let subjects = binding.get("subjects").and_then(Value::as_array)?;
    subjects.iter().find_map(|named| {
        let text = |field| named.get(field).and_then(Value::as_str).unwrap_or_default();
        let (name, namespace) = (text("name"), text("namespace"));
        match text("kind") {
            "User" => (name == subject.user).then(|| format!("User \"{name}\"")),
            "Group" => subject
                .groups
                .iter()
                .any(|group| group == name)
                .then(|| format!("Group \"{name}\"")),
            "ServiceAccount" => (subject.user
                == format!("system:serviceaccount:{namespace}:{name}"))
            .then(|| format!("ServiceAccount \"{name}/{namespace}\"")),
            _ => None,
        }
    })
}

fn role_rules(state: &State, kind: &str, namespace: &str, name: &str) -> Vec<ResourceRule> {
    let (plural, namespace) =
        if kind == "Role" { ("roles", namespace) } else { ("clusterroles", "") };
    let key = Key {
        group: GROUP.to_owned(),
        plural: plural.to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    };
    let rules = state.get(&key).and_then(|role| role.get("rules")).and_then(Value::as_array);
    rules
        .into_iter()
        .flatten()
        .filter_map(|rule| serde_json::from_value(rule.clone()).ok())
        .collect()
}
