//! The Roles of the Job: what a plan needs, sorted into the places where RBAC grants it.

use std::collections::{BTreeMap, BTreeSet};

use cilium::pinned::NAMESPACE;
use helm_rs::action::rights::{Right, rule_list};
use serde_json::{Value, json};

use super::{NAME, NEW_NAMESPACES_ROLE, RECORDS_ROLE, metadata};
use crate::plan::{Needs, Part};

const API: &str = "rbac.authorization.k8s.io/v1";

/// A Role or ClusterRole of the Job.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The namespace; empty for a ClusterRole.
    pub namespace: String,
    /// The name.
    pub name: &'static str,
}

impl Place {
    /// `Role` or `ClusterRole`
    pub fn kind(&self) -> &'static str {
        if self.namespace.is_empty() { "ClusterRole" } else { "Role" }
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&title(&self.namespace, self.name))
    }
}

/// What a Role of the Job is called where a right is missing in it.
pub(super) fn title(namespace: &str, name: &str) -> String {
    match namespace {
        "" => format!("ClusterRole {name}"),
        namespace => format!("Role {name} in namespace {namespace}"),
    }
}

/// Which of the Job's Roles holds a right.
pub fn place(part: Part, right: &Right, new_namespaces: &BTreeSet<String>) -> Place {
    let namespace = right.namespace.clone();
    if new_namespaces.contains(&namespace) {
        return Place { namespace: String::new(), name: NEW_NAMESPACES_ROLE };
    }
    let name = if part == Part::Records { RECORDS_ROLE } else { NAME };
    Place { namespace, name }
}

/// The Roles, each followed by its binding.
pub(super) fn objects(needs: &Needs) -> Vec<Value> {
    let mut places: BTreeMap<Place, Vec<Right>> = BTreeMap::new();
    for need in needs.list.iter().filter(|need| need.part != Part::Namespace) {
        for right in need.alternatives.first().into_iter().flatten() {
            let place = place(need.part, right, &needs.new_namespaces);
            let mut right = right.clone();
            right.namespace.clone_from(&place.namespace);
            places.entry(place).or_default().push(right);
        }
    }
    places.iter_mut().flat_map(|(place, rights)| role(place, rights)).collect()
}

fn role(place: &Place, rights: &mut Vec<Right>) -> [Value; 2] {
    // A right on a name stays beside the same one on all names, which is held for a Role to come:
    // where somebody takes the wide one away, the Job still sees enough to name it.
    rights.sort();
    rights.dedup();
    let rights: Vec<&Right> = rights.iter().collect();
    let kind = place.kind();
    let role = json!({
        "apiVersion": API,
        "kind": kind,
        "metadata": metadata(place.name, &place.namespace),
        "rules": rule_list(&rights),
    });
    let binding = json!({
        "apiVersion": API,
        "kind": format!("{kind}Binding"),
        "metadata": metadata(place.name, &place.namespace),
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": place.name },
        "subjects": [{ "kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE }],
    });
    [role, binding]
}
