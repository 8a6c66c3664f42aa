//! The rights that an action needs, and which of them are missing.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::plan::Plan;
use super::session::{ReleaseOptions, Session};
use crate::apply::readiness::Watched;
use crate::apply::{Item, Method};
use crate::cluster::{AccessQuestion, ClusterError};

/// A right: one verb on one resource, of one object or of any.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Right {
    /// The namespace; empty for cluster-scoped resources.
    pub namespace: String,
    /// The API group; empty for the core group.
    pub group: String,
    /// The plural name, with `/SUBRESOURCE` where there is one; empty for a URL.
    pub resource: String,
    /// The verb.
    pub verb: String,
    /// The object; empty for any.
    pub name: String,
    /// A path of the server that is no resource; empty for a resource.
    pub url: String,
}

impl Right {
    /// A verb on any object of a resource.
    pub fn any(verb: &str, group: &str, resource: &str, namespace: &str) -> Self {
        Self::named(verb, group, resource, namespace, "")
    }

    /// A verb on one object.
    pub fn named(verb: &str, group: &str, resource: &str, namespace: &str, name: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            group: group.to_owned(),
            resource: resource.to_owned(),
            verb: verb.to_owned(),
            name: name.to_owned(),
            url: String::new(),
        }
    }

    /// A verb on a rendered object.
    pub fn on_object(verb: &str, item: &Item) -> Self {
        let target = &item.target;
        let group = &item.kind().group;
        Self::named(verb, group, &target.resource.plural, &target.namespace, &target.name)
    }

    /// Creating names no object, so the right cannot either.
    pub fn create(item: &Item) -> Self {
        let target = &item.target;
        Self::any("create", &item.kind().group, &target.resource.plural, &target.namespace)
    }

    /// The right as a question to the authorizer.
    pub fn question(&self) -> AccessQuestion {
        let (resource, subresource) =
            self.resource.split_once('/').unwrap_or((self.resource.as_str(), ""));
        AccessQuestion {
            verb: self.verb.clone(),
            group: self.group.clone(),
            resource: resource.to_owned(),
            subresource: subresource.to_owned(),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
        }
    }
}

impl std::fmt::Display for Right {
    /// `create deployments.apps in namespace web`, `get secrets x in namespace web`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.url.is_empty() {
            return write!(f, "{} {}", self.verb, self.url);
        }
        write!(f, "{} {}", self.verb, self.resource)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        if !self.name.is_empty() {
            write!(f, " {}", self.name)?;
        }
        if !self.namespace.is_empty() {
            write!(f, " in namespace {}", self.namespace)?;
        }
        Ok(())
    }
}

/// Orders rights and drops what a wider one among them covers.
pub fn sort(rights: &mut Vec<Right>) {
    rights.sort();
    rights.dedup();
    let any: BTreeSet<Right> =
        rights.iter().filter(|right| right.name.is_empty()).cloned().collect();
    rights.retain(|right| {
        right.name.is_empty() || !any.contains(&Right { name: String::new(), ..right.clone() })
    });
}

/// What creating an object needs; an apply that creates is a patch as well.
pub(super) fn creation(method: Method, item: &Item) -> Vec<Right> {
    let mut needed = vec![Right::create(item)];
    if matches!(method, Method::Apply { .. }) {
        needed.push(Right::on_object("patch", item));
    }
    needed
}

/// What granting rights needs: whoever creates a role holds every rule in it, whoever changes one
/// may `escalate` it by name, whoever binds one may `bind` it by name. A name-scoped `escalate`
/// does not cover a creation, whose request has no name.
pub(super) fn escalation(item: &Item, is_new: bool) -> Vec<Right> {
    let kind = item.kind();
    if kind.group != "rbac.authorization.k8s.io" {
        return Vec::new();
    }
    let namespace = &item.target.namespace;
    match kind.kind.as_str() {
        "Role" | "ClusterRole" if is_new => granted(&item.value, namespace),
        "Role" | "ClusterRole" => vec![Right::on_object("escalate", item)],
        "RoleBinding" | "ClusterRoleBinding" => {
            let text = |path: &str| item.value.pointer(path).and_then(Value::as_str);
            let (kind, name) = (text("/roleRef/kind"), text("/roleRef/name").unwrap_or_default());
            let (plural, at) = match kind {
                Some("Role") => ("roles", namespace.as_str()),
                // Asked in the binding's namespace, granted there or in the whole cluster.
                _ => ("clusterroles", namespace.as_str()),
            };
            vec![Right::named("bind", &item.kind().group, plural, at, name)]
        }
        _ => Vec::new(),
    }
}

/// What a Role or ClusterRole grants in a namespace, one by one.
pub fn granted(role: &Value, namespace: &str) -> Vec<Right> {
    let texts = |rule: &Value, name: &str| -> Vec<String> {
        let list = rule.get(name).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(|text| text.as_str().map(str::to_owned)).collect()
    };
    let mut rights = Vec::new();
    for rule in role.get("rules").and_then(Value::as_array).into_iter().flatten() {
        let names = match texts(rule, "resourceNames") {
            names if names.is_empty() => vec![String::new()],
            names => names,
        };
        for verb in texts(rule, "verbs") {
            for url in texts(rule, "nonResourceURLs") {
                rights.push(Right { verb: verb.clone(), url, ..Right::default() });
            }
            for group in texts(rule, "apiGroups") {
                for resource in texts(rule, "resources") {
                    for name in &names {
                        rights.push(Right::named(&verb, &group, &resource, namespace, name));
                    }
                }
            }
        }
    }
    rights
}

/// What waiting reads besides the objects themselves.
pub(super) fn waiting(items: &[Item], options: &ReleaseOptions) -> Vec<Right> {
    if !options.wait && !options.atomic {
        return Vec::new();
    }
    items
        .iter()
        .filter_map(|item| {
            let namespace = &item.target.namespace;
            match Watched::of(&item.kind().api_version(), &item.kind().kind)? {
                Watched::Deployment => Some(Right::any("list", "apps", "replicasets", namespace)),
                Watched::ReplicaSet | Watched::ReplicationController => {
                    Some(Right::any("list", "", "pods", namespace))
                }
                _ => None,
            }
        })
        .collect()
}

/// The rights that this identity lacks.
///
/// What a namespace's rules already say needs no question of its own; everything else is asked
/// one by one. Rights on URLs are not asked: no review that the cluster trait has covers them.
///
/// # Errors
/// When the server cannot be asked.
pub(super) async fn missing(
    session: &Session<'_>,
    rights: &[Right],
) -> Result<Vec<Right>, ClusterError> {
    let mut rules = BTreeMap::new();
    let mut missing = Vec::new();
    for right in rights.iter().filter(|right| right.url.is_empty()) {
        let question = right.question();
        if !right.namespace.is_empty() {
            if !rules.contains_key(&right.namespace) {
                let found = session.cluster.rules(&right.namespace).await?;
                rules.insert(right.namespace.clone(), found);
            }
            let known = rules.get(&right.namespace);
            if known.is_some_and(|rules| rules.resources.iter().any(|rule| rule.allows(&question)))
            {
                continue;
            }
        }
        if !session.cluster.may(&question).await?.allowed {
            missing.push(right.clone());
        }
    }
    Ok(missing)
}

/// The rights of a plan as RBAC objects, named after the release: a ClusterRole for what has no
/// namespace, a Role for each namespace. Empty parts are left out.
///
/// A Role cannot be there before its namespace. The release's own, where the action was told to
/// create it, comes first, so that nothing is granted in others; the action then finds it. What is
/// needed in a namespace that the chart itself creates stands in the ClusterRole.
pub fn manifest(plan: &Plan) -> Vec<Value> {
    let mut rights: Vec<Right> = plan.rights.clone();
    let mut elsewhere = plan.new_namespaces.clone();
    let mut objects = Vec::new();
    if plan.creates_namespace {
        elsewhere.remove(&plan.namespace);
        if elsewhere.is_empty() {
            let create = Right::any("create", "", "namespaces", "");
            rights.retain(|right| *right != create);
        }
        rights.push(Right::named("get", "", "namespaces", "", &plan.namespace));
        objects.push(json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": { "name": plan.namespace, "labels": { "name": plan.namespace } },
        }));
    }
    objects.extend(roles(&plan.release, &rights, &elsewhere));
    objects
}

fn roles(release: &str, rights: &[Right], new_namespaces: &BTreeSet<String>) -> Vec<Value> {
    let mut by_namespace: BTreeMap<&str, Vec<&Right>> = BTreeMap::new();
    for right in rights {
        let namespace = right.namespace.as_str();
        let place = if new_namespaces.contains(namespace) { "" } else { namespace };
        by_namespace.entry(place).or_default().push(right);
    }
    by_namespace
        .into_iter()
        .map(|(namespace, rights)| {
            let mut metadata = json!({ "name": format!("ichor-release-{release}") });
            if !namespace.is_empty() {
                metadata["namespace"] = namespace.into();
            }
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": if namespace.is_empty() { "ClusterRole" } else { "Role" },
                "metadata": metadata,
                "rules": rule_list(&rights),
            })
        })
        .collect()
}

/// One rule for each resource and set of verbs, names gathered.
pub fn rule_list(rights: &[&Right]) -> Vec<Value> {
    let mut rules = Vec::new();
    // group, resource, name → verbs; then names with the same verbs share a rule.
    let mut verbs: BTreeMap<(&str, &str, &str), BTreeSet<&str>> = BTreeMap::new();
    let mut urls: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for right in rights {
        if right.url.is_empty() {
            let key = (right.group.as_str(), right.resource.as_str(), right.name.as_str());
            verbs.entry(key).or_default().insert(&right.verb);
        } else {
            urls.entry(&right.url).or_default().insert(&right.verb);
        }
    }
    let mut shared: BTreeMap<(&str, &str, bool, BTreeSet<&str>), Vec<&str>> = BTreeMap::new();
    for ((group, resource, name), verbs) in verbs {
        shared.entry((group, resource, !name.is_empty(), verbs)).or_default().push(name);
    }
    for ((group, resource, named, verbs), names) in shared {
        let mut rule = json!({ "apiGroups": [group], "resources": [resource], "verbs": verbs });
        if named {
            rule["resourceNames"] = json!(names);
        }
        rules.push(rule);
    }
    for (url, verbs) in urls {
        rules.push(json!({ "nonResourceURLs": [url], "verbs": verbs }));
    }
    rules
}
