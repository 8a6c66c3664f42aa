//! KubePrism: where every node of Talos, and what runs on it, reaches the API server.
//! (Takeover rules, section 2, point 6)

use super::make::refusal;
use super::{Plan, Refusal};

/// What is known of KubePrism on the node on which this program runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum KubePrism {
    /// Nothing: this is no node of the cluster, as far as is known.
    #[default]
    NotAsked,
    /// It answers.
    Answers,
    /// It does not.
    Silent {
        /// What became of the try.
        why: String,
    },
}

/// Refuses where nodes run Talos and it does not answer on this one.
pub(super) fn check(found: &KubePrism) -> Option<Refusal> {
    let KubePrism::Silent { why } = found else { return None };
    let message = format!(
        "KubePrism (localhost:7445) does not answer on this node ({why}), and under Talos it is \
         where Cilium's agents reach the API server: enable machine.features.kubePrism in the \
         machine configuration, then try again"
    );
    Some(refusal("KubePrism", message))
}

/// What was not checked where nodes run Talos.
pub(super) fn unchecked(plan: &mut Plan, found: &KubePrism) {
    if *found == KubePrism::Answers {
        plan.unchecked.push("KubePrism (localhost:7445) on the other nodes".to_owned());
    }
    let what = match found {
        KubePrism::Answers => "the",
        _ => "KubePrism (localhost:7445) and the",
    };
    plan.unchecked.push(format!(
        "{what} inline manifest of the machine configuration: this command makes no Talos call"
    ));
}
