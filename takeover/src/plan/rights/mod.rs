//! Whether the one who writes may, checked before anything is written.
//!
//! RBAC escalation included: whoever creates a Role must hold every rule in it, or the verb
//! `escalate` (on a create without a name); whoever changes one, its annotations alone too, must
//! hold its rules or `escalate` on that name; a binding needs the rules of its role or `bind`.
//! (`pkg/registry/rbac/{role,rolebinding}/policybased/storage.go` of Kubernetes)
//!
//! ```text
//! plan ─ needs ─┬─ check: review by review ─► Rights (missing: rule, Role to add it to)
//!               └─ job::roles ─► the Roles of the Job: exactly what is checked
//! ```

mod ask;
pub(crate) mod needs;

use std::collections::{BTreeMap, BTreeSet};

use helm_rs::action::rights::Right;
use helm_rs::cluster::{Cluster, Subject};
use serde::{Deserialize, Serialize};

pub use needs::{Need, Needs, Part};

use super::Refusal;
use crate::job;
use crate::place::Deed;

/// Missing rights that a refusal names; the plan has them all.
const NAMED: usize = 20;

/// Who will write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum WhoWrites {
    /// The one who plans.
    #[default]
    Caller,
    /// Somebody else: the Job's ServiceAccount.
    Other(Subject),
    /// Somebody else, whom the one who plans grants what is missing before it is begun.
    Granted(Subject),
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
    /// Whether what is missing is granted before anything is begun.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub granted: bool,
    /// What they are needed for.
    #[serde(skip)]
    pub(crate) deed: Deed,
}

/// A right that is missing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Missing {
    /// The rule: verb, resource, place.
    pub rule: String,
    /// What it is needed for.
    pub needed_for: String,
    /// The Role or ClusterRole to add it to.
    #[serde(default)]
    pub role: String,
}

impl std::fmt::Display for Missing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({}): add it to {}", self.rule, self.needed_for, self.role)
    }
}

impl Rights {
    /// What keeps the takeover from being begun; none when nothing is missing.
    pub fn refusal(&self) -> Option<Refusal> {
        if self.missing.is_empty() || self.granted {
            return None;
        }
        let mut names: Vec<String> =
            self.missing.iter().take(NAMED).map(ToString::to_string).collect();
        if self.missing.len() > NAMED {
            names.push(format!("and {} more", self.missing.len() - NAMED));
        }
        Some(Refusal {
            reason: "Rights".to_owned(),
            message: format!(
                "{} lacks rights that the {} needs, so that it would stop in the middle: {}",
                self.identity,
                self.deed.name(),
                names.join("; ")
            ),
        })
    }
}

/// Checks everything that is needed. `caller` is who plans.
pub(crate) async fn check(
    cluster: &dyn Cluster,
    who: &WhoWrites,
    caller: &str,
    needs: &Needs,
) -> Rights {
    let mut unchecked = needs.unchecked.clone();
    let rights: BTreeSet<&Right> =
        needs.list.iter().flat_map(|need| need.alternatives.iter().flatten()).collect();
    let answers = ask::answers(cluster, who, rights, &mut unchecked).await;
    let identity = match who {
        WhoWrites::Caller => caller,
        WhoWrites::Other(subject) | WhoWrites::Granted(subject) => &subject.user,
    };
    let allowed = |right: &Right| answers.get(right).copied().unwrap_or(false);
    // A right that several things need is one right to grant.
    let mut missing: BTreeMap<(String, String), BTreeSet<&str>> = BTreeMap::new();
    for need in &needs.list {
        if need.alternatives.iter().any(|all| all.iter().all(allowed)) {
            continue;
        }
        // The first alternative is the one that is told.
        for right in need.alternatives.first().into_iter().flatten() {
            if !allowed(right) {
                let told = (right.to_string(), role_of(identity, need, right, needs));
                missing.entry(told).or_default().insert(&need.needed_for);
            }
        }
    }
    let missing = missing.into_iter().map(|((rule, role), needed_for)| {
        let needed_for: Vec<&str> = needed_for.into_iter().collect();
        Missing { rule, needed_for: needed_for.join(", "), role }
    });
    unchecked.sort();
    unchecked.dedup();
    Rights {
        identity: if identity.is_empty() {
            "this identity".to_owned()
        } else {
            identity.to_owned()
        },
        checked: answers.len(),
        missing: missing.collect(),
        unchecked,
        granted: matches!(who, WhoWrites::Granted(_)),
        deed: needs.deed,
    }
}

/// Where a missing right is to be added: for the Job, the very Role that its manifest has.
fn role_of(identity: &str, need: &Need, right: &Right, needs: &Needs) -> String {
    if identity == job::subject().user {
        return job::place(need.part, right, &needs.new_namespaces).to_string();
    }
    let who = if identity.is_empty() { "this identity" } else { identity };
    if right.namespace.is_empty() || needs.new_namespaces.contains(&right.namespace) {
        format!("a ClusterRole of {who}")
    } else {
        format!("a Role of {who} in namespace {}", right.namespace)
    }
}

/// Checks what is needed before anything else: reading the installation, and ichor's namespace.
///
/// Says nothing when the caller cannot be asked for. Who that is matters only to the words of a
/// refusal.
pub(crate) async fn check_first(cluster: &dyn Cluster, needs: Needs) -> Rights {
    let rights = check(cluster, &WhoWrites::Caller, "", &needs).await;
    if rights.missing.is_empty() {
        return rights;
    }
    let caller = cluster.identity().await.map(|subject| subject.user).unwrap_or_default();
    check(cluster, &WhoWrites::Caller, &caller, &needs).await
}
