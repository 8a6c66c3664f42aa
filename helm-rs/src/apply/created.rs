//! What a plan creates that its other objects need to be there.

use std::collections::BTreeSet;

use super::Item;
use super::field::text;

/// What a plan creates that other objects of it need: the server cannot try these before.
#[derive(Clone, Debug, Default)]
pub struct Created {
    namespaces: BTreeSet<String>,
    /// Group and kind.
    kinds: BTreeSet<(String, String)>,
    /// Kind, namespace and name.
    roles: BTreeSet<(String, String, String)>,
}

impl Created {
    /// What there is of it among objects that are created.
    pub fn of<'a>(items: impl IntoIterator<Item = &'a Item>) -> Self {
        let mut created = Self::default();
        for item in items {
            let (kind, target) = (item.kind(), &item.target);
            match (kind.group.as_str(), kind.kind.as_str()) {
                ("", "Namespace") => created.namespace(&target.name),
                ("rbac.authorization.k8s.io", "Role" | "ClusterRole") => {
                    let role = (kind.kind.clone(), target.namespace.clone(), target.name.clone());
                    created.roles.insert(role);
                }
                _ => {}
            }
        }
        created
    }

    /// Adds a namespace.
    pub fn namespace(&mut self, name: &str) {
        self.namespaces.insert(name.to_owned());
    }

    /// Adds a kind that a definition brings.
    pub fn kind(&mut self, group: &str, kind: &str) {
        self.kinds.insert((group.to_owned(), kind.to_owned()));
    }

    /// Whether the object's kind is among them: nothing of it can be live.
    pub fn has_kind_of(&self, item: &Item) -> bool {
        self.kinds.contains(&(item.kind().group.clone(), item.kind().kind.clone()))
    }

    /// The namespaces.
    pub const fn namespaces(&self) -> &BTreeSet<String> {
        &self.namespaces
    }

    /// Why the server cannot try an object's creation now.
    pub fn lacking(&self, item: &Item) -> Option<&'static str> {
        if self.has_kind_of(item) {
            return Some("its definition is created by the same plan");
        }
        if self.namespaces.contains(&item.target.namespace) {
            return Some("its namespace is created by the same plan");
        }
        // Who may not bind everything is asked for the role's rules, and there are none yet.
        let role = |pointer: &str| text(&item.value, &format!("/roleRef/{pointer}")).to_owned();
        let namespace =
            if role("kind") == "Role" { item.target.namespace.clone() } else { String::new() };
        let is_binding = matches!(item.kind().kind.as_str(), "RoleBinding" | "ClusterRoleBinding");
        (is_binding && self.roles.contains(&(role("kind"), namespace, role("name"))))
            .then_some("its role is created by the same plan")
    }
}
