//! Questions about rights (`authorization.k8s.io/v1`).

use std::collections::BTreeMap;

/// What somebody wants to do.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccessQuestion {
    /// `get`, `create`, `escalate`, ….
    pub verb: String,
    /// The API group; empty for the core group.
    pub group: String,
    /// The plural name.
    pub resource: String,
    /// The subresource; empty for none.
    pub subresource: String,
    /// The namespace; empty for cluster-scoped objects, or all namespaces.
    pub namespace: String,
    /// The object's name; empty for any.
    pub name: String,
}

/// The authorizer's answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// Whether it is allowed.
    pub allowed: bool,
    /// Why, or why not, in the authorizer's words.
    pub reason: String,
    /// What kept the authorizer from a full answer; empty for nothing.
    pub evaluation_error: String,
}

/// Somebody, as the server knows them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    /// `system:serviceaccount:NAMESPACE:NAME` for a service account.
    pub user: String,
    /// The groups.
    pub groups: Vec<String>,
    /// What the authenticator adds.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl Subject {
    /// A service account with the groups that every one is in.
    pub fn service_account(namespace: &str, name: &str) -> Self {
        Self {
            user: format!("system:serviceaccount:{namespace}:{name}"),
            groups: vec![
                "system:serviceaccounts".to_owned(),
                format!("system:serviceaccounts:{namespace}"),
                "system:authenticated".to_owned(),
            ],
            extra: BTreeMap::new(),
        }
    }
}

/// One rule on resources, as RBAC has them; `*` stands for all.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceRule {
    /// Verbs.
    pub verbs: Vec<String>,
    /// Groups.
    pub api_groups: Vec<String>,
    /// Plural names, `pods/log` for a subresource.
    pub resources: Vec<String>,
    /// Names of objects; empty for all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resource_names: Vec<String>,
}

impl ResourceRule {
    /// Whether the rule allows what is asked, namespaces aside
    /// (`pkg/apis/rbac/v1/evaluation_helpers.go`).
    pub fn allows(&self, question: &AccessQuestion) -> bool {
        let has =
            |list: &[String], wanted: &str| list.iter().any(|one| one == "*" || one == wanted);
        let resource = if question.subresource.is_empty() {
            has(&self.resources, &question.resource)
        } else {
            let whole = format!("{}/{}", question.resource, question.subresource);
            let any = format!("*/{}", question.subresource);
            has(&self.resources, &whole) || self.resources.contains(&any)
        };
        has(&self.verbs, &question.verb)
            && has(&self.api_groups, &question.group)
            && resource
            && (self.resource_names.is_empty() || self.resource_names.contains(&question.name))
    }
}

/// What an identity may do in a namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// The rules on resources.
    pub resources: Vec<ResourceRule>,
    /// Whether there may be more that the server cannot name.
    pub incomplete: bool,
    /// Why they are incomplete.
    pub evaluation_error: String,
}
