//! Whether the one who writes may, checked before anything is written.
//!
//! RBAC escalation included: whoever creates a Role must hold every rule in it, or the verb
//! `escalate` (on a create without a name); whoever changes one, its annotations alone too, must
//! hold its rules or `escalate` on that name; a binding needs the rules of its role or `bind`.
//! (`pkg/registry/rbac/{role,rolebinding}/policybased/storage.go` of Kubernetes)

use std::collections::{BTreeMap, BTreeSet};

use cilium::pinned::RECORD_NAMESPACE;
use futures::stream::{self, StreamExt as _};
use helm_rs::cluster::{AccessQuestion, Cluster, Discovery, Kind, ResourceRule, Rules, Subject};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::make::{PreparedObject, Request};
use super::{Action, Plan};
use crate::survey::{Survey, text};

/// Requests under way at once.
const CONCURRENCY: usize = 16;
/// A namespace that nobody has, whose rules are those that hold in the whole cluster.
const NO_NAMESPACE: &str = "ichor-has-no-such-namespace";

/// Who will write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum WhoWrites {
    /// The one who plans.
    #[default]
    Caller,
    /// Somebody else: the Job's ServiceAccount.
    Other(Subject),
}

/// Rights of the one who writes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rights {
    /// Who writes.
    pub identity: String,
    /// How many rights were checked.
    pub checked: usize,
    /// Those that are missing.
    pub missing: Vec<Missing>,
    /// What could not be checked.
    pub unchecked: Vec<String>,
}

/// A right that is missing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Missing {
    /// The rule: verb, resource, place.
    pub rule: String,
    /// What it is needed for.
    pub needed_for: String,
}

impl std::fmt::Display for Missing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.rule, self.needed_for)
    }
}

/// Something that is needed: all of one of the alternatives.
struct Need {
    alternatives: Vec<Vec<AccessQuestion>>,
    needed_for: String,
}

fn question(verb: &str, group: &str, resource: &str, namespace: &str, name: &str) -> AccessQuestion {
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    AccessQuestion {
        verb: verb.to_owned(),
        group: group.to_owned(),
        resource: resource.to_owned(),
        subresource: subresource.to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    }
}

fn rule_text(question: &AccessQuestion) -> String {
    let mut resource = question.resource.clone();
    if !question.group.is_empty() {
        resource = format!("{resource}.{}", question.group);
    }
    if !question.subresource.is_empty() {
        resource = format!("{resource}/{}", question.subresource);
    }
    let name = if question.name.is_empty() { String::new() } else { format!(" {}", question.name) };
    let place = if question.namespace.is_empty() {
        String::new()
    } else {
        format!(" in namespace {}", question.namespace)
    };
    format!("{} {resource}{name}{place}", question.verb)
}

/// Checks every right that the plan needs.
pub(super) async fn check(
    request: &Request<'_>,
    survey: &Survey,
    plan: &Plan,
    objects: &[PreparedObject],
) -> Rights {
    let cluster = &*request.cluster;
    let mut unchecked = Vec::new();
    let needs = needs(cluster, &survey.discovery, plan, objects, &mut unchecked).await;
    let questions: BTreeSet<AccessQuestion> =
        needs.iter().flat_map(|need| need.alternatives.iter().flatten().cloned()).collect();
    let answers = answers(cluster, &request.who_writes, questions, &mut unchecked).await;
    let allowed = |question: &AccessQuestion| answers.get(question).copied().unwrap_or(false);
    let mut missing: BTreeSet<Missing> = BTreeSet::new();
    for need in &needs {
        if need.alternatives.iter().any(|all| all.iter().all(allowed)) {
            continue;
        }
        // The first alternative is the one that is told.
        for question in need.alternatives.first().into_iter().flatten() {
            if !allowed(question) {
                missing.insert(Missing {
                    rule: rule_text(question),
                    needed_for: need.needed_for.clone(),
                });
            }
        }
    }
    let identity = match &request.who_writes {
        WhoWrites::Caller => survey.identity.user.clone(),
        WhoWrites::Other(subject) => subject.user.clone(),
    };
    unchecked.sort();
    unchecked.dedup();
    Rights {
        identity: if identity.is_empty() { "this identity".to_owned() } else { identity },
        checked: answers.len(),
        missing: missing.into_iter().collect(),
        unchecked,
    }
}

async fn needs(
    cluster: &dyn Cluster,
    discovery: &Discovery,
    plan: &Plan,
    objects: &[PreparedObject],
    unchecked: &mut Vec<String>,
) -> Vec<Need> {
    let mut needs = Vec::new();
    let mut plain = |question: AccessQuestion, what: &str| {
        needs.push(Need { alternatives: vec![vec![question]], needed_for: what.to_owned() });
    };
    for verb in ["get", "create"] {
        plain(question(verb, "", "namespaces", "", if verb == "get" { RECORD_NAMESPACE } else { "" }), "ichor's namespace");
    }
    let leases = "coordination.k8s.io";
    plain(question("create", leases, "leases", RECORD_NAMESPACE, ""), "the lock");
    for verb in ["get", "update", "patch"] {
        let name = crate::run::lock::LEASE;
        plain(question(verb, leases, "leases", RECORD_NAMESPACE, name), "the lock");
    }
    for verb in ["get", "list", "create", "update"] {
        plain(
            question(verb, "", "secrets", RECORD_NAMESPACE, ""),
            "ichor's record, plan and backup",
        );
    }
    for record in &plan.records {
        let resource = if record.about.kind == "Secret" { "secrets" } else { "configmaps" };
        for verb in ["get", "delete"] {
            plain(
                question(verb, "", resource, &record.about.namespace, &record.about.name),
                "the foreign record",
            );
        }
    }
    let actions: BTreeMap<String, Action> =
        plan.objects.iter().map(|object| (object.about.to_string(), object.action)).collect();
    let mut roles: BTreeMap<(String, String, String), Vec<Value>> = BTreeMap::new();
    for object in objects.iter().filter(|object| is_role(object)) {
        let target = &object.item.target;
        let rules = object.item.value.get("rules").and_then(Value::as_array).cloned();
        let kind = object.item.kind().kind.clone();
        roles.insert((kind, target.namespace.clone(), target.name.clone()), rules.unwrap_or_default());
    }
    for object in objects {
        let (target, kind) = (&object.item.target, object.item.kind());
        let title = format!("{} {}", kind.kind, target.name);
        let about = super::ObjectAbout {
            api_version: String::new(),
            kind: kind.kind.clone(),
            namespace: target.namespace.clone(),
            name: target.name.clone(),
        };
        let action = actions.get(&about.to_string()).copied().unwrap_or_default();
        let (group, plural) = (&kind.group, &target.resource.plural);
        let place = &target.namespace;
        let mut need = |alternatives: Vec<Vec<AccessQuestion>>, needed_for: String| {
            needs.push(Need { alternatives, needed_for });
        };
        need(vec![vec![question("get", group, plural, place, &target.name)]], title.clone());
        let (verb, name) = match action {
            Action::Create => ("create", ""),
            Action::Patch => ("patch", target.name.as_str()),
            Action::Keep | Action::Hook => continue,
        };
        need(vec![vec![question(verb, group, plural, place, name)]], title.clone());
        let rules = match kind.kind.as_str() {
            _ if kind.group != "rbac.authorization.k8s.io" => continue,
            "Role" | "ClusterRole" => {
                let key = (kind.kind.clone(), place.clone(), target.name.clone());
                let escalate = question("escalate", group, plural, place, name);
                (roles.get(&key).cloned().unwrap_or_default(), escalate)
            }
            "RoleBinding" | "ClusterRoleBinding" => {
                let role = text(&object.item.value, "/roleRef/name").to_owned();
                let of = text(&object.item.value, "/roleRef/kind").to_owned();
                let at = if of == "ClusterRole" { String::new() } else { place.clone() };
                let plural = if of == "ClusterRole" { "clusterroles" } else { "roles" };
                let bind = question("bind", group, plural, place, &role);
                let rules = match roles.get(&(of.clone(), at.clone(), role.clone())) {
                    Some(rules) => rules.clone(),
                    None => live_rules(cluster, discovery, &of, &at, &role).await,
                };
                (rules, bind)
            }
            _ => continue,
        };
        let (rules, verb) = rules;
        for rule in rules {
            let Ok(rule) = serde_json::from_value::<ResourceRule>(rule.clone()) else { continue };
            if rule.resources.is_empty() {
                unchecked.push(format!("rules of {title} on paths that are no resources"));
                continue;
            }
            for one in expand(&rule, place) {
                let needed_for =
                    format!("{title} grants it, and RBAC lets only a holder {} it", match action {
                        Action::Create => "create",
                        _ => "change",
                    });
                need(vec![vec![one], vec![verb.clone()]], needed_for);
            }
        }
    }
    needs
}

fn is_role(object: &PreparedObject) -> bool {
    let kind = object.item.kind();
    kind.group == "rbac.authorization.k8s.io" && matches!(kind.kind.as_str(), "Role" | "ClusterRole")
}

async fn live_rules(
    cluster: &dyn Cluster,
    discovery: &Discovery,
    kind: &str,
    namespace: &str,
    name: &str,
) -> Vec<Value> {
    let kind = Kind::new("rbac.authorization.k8s.io/v1", kind);
    let Some(resource) = discovery.resource(&kind) else { return Vec::new() };
    let role = crate::survey::read(cluster, resource, namespace, name).await;
    let role = role.ok().flatten().unwrap_or_default();
    role.get("rules").and_then(Value::as_array).cloned().unwrap_or_default()
}

/// Every single right that a rule grants.
fn expand(rule: &ResourceRule, namespace: &str) -> Vec<AccessQuestion> {
    let mut questions = Vec::new();
    let none = [String::new()];
    let names = if rule.resource_names.is_empty() { &none[..] } else { &rule.resource_names };
    for verb in &rule.verbs {
        for group in &rule.api_groups {
            for resource in &rule.resources {
                for name in names {
                    questions.push(question(verb, group, resource, namespace, name));
                }
            }
        }
    }
    questions
}

/// Asks everything: by the rules that the server names, and one by one where these do not say yes.
async fn answers(
    cluster: &dyn Cluster,
    who: &WhoWrites,
    questions: BTreeSet<AccessQuestion>,
    unchecked: &mut Vec<String>,
) -> BTreeMap<AccessQuestion, bool> {
    let mut answers = BTreeMap::new();
    let mut open = Vec::new();
    if *who == WhoWrites::Caller {
        let places: BTreeSet<String> =
            questions.iter().map(|question| place(question).to_owned()).collect();
        let mut rules: BTreeMap<String, Rules> = BTreeMap::new();
        for place in places {
            if let Ok(found) = cluster.rules(&place).await {
                rules.insert(place, found);
            }
        }
        for question in questions {
            let allowed = rules
                .get(place(&question))
                .is_some_and(|rules| rules.resources.iter().any(|rule| rule.allows(&question)));
            if allowed {
                answers.insert(question, true);
            } else {
                open.push(question);
            }
        }
    } else {
        open.extend(questions);
    }
    let decided: Vec<_> = stream::iter(open.into_iter().map(|question| async move {
        let decision = match who {
            WhoWrites::Caller => cluster.may(&question).await,
            WhoWrites::Other(subject) => cluster.subject_may(subject, &question).await,
        };
        (question, decision)
    }))
    .buffered(CONCURRENCY)
    .collect()
    .await;
    for (question, decision) in decided {
        match decision {
            Ok(decision) => {
                answers.insert(question, decision.allowed);
            }
            Err(error) => {
                // Who may not ask is told so, and not stopped.
                unchecked.push(format!("rights, since they cannot be asked for: {error}"));
                answers.insert(question, true);
            }
        }
    }
    answers
}

fn place(question: &AccessQuestion) -> &str {
    if question.namespace.is_empty() { NO_NAMESPACE } else { &question.namespace }
}
