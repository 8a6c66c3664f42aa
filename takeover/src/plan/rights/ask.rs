//! Asking the authorizer.

use std::collections::{BTreeMap, BTreeSet};

use futures::stream::{self, StreamExt as _};
use helm_rs::action::rights::Right;
use helm_rs::cluster::{Cluster, Rules};

use super::WhoWrites;

/// Requests under way at once.
const CONCURRENCY: usize = 16;
/// A namespace that nobody has, whose rules are those that hold in the whole cluster.
const NO_NAMESPACE: &str = "ichor-has-no-such-namespace";

/// Asks everything: by the rules that the server names, and one by one where these do not say yes.
pub(super) async fn answers<'a>(
    cluster: &dyn Cluster,
    who: &WhoWrites,
    rights: BTreeSet<&'a Right>,
    unchecked: &mut Vec<String>,
) -> BTreeMap<&'a Right, bool> {
    let mut answers = BTreeMap::new();
    let mut open = Vec::new();
    if *who == WhoWrites::Caller {
        let places: BTreeSet<&str> = rights.iter().map(|right| place(right)).collect();
        let found: Vec<(&str, Option<Rules>)> = stream::iter(places)
            .map(|place| async move { (place, cluster.rules(place).await.ok()) })
            .buffered(CONCURRENCY)
            .collect()
            .await;
        let rules: BTreeMap<&str, Rules> =
            found.into_iter().filter_map(|(place, rules)| Some((place, rules?))).collect();
        for right in rights {
            let question = right.question();
            let allowed = rules
                .get(place(right))
                .is_some_and(|rules| rules.resources.iter().any(|rule| rule.allows(&question)));
            if allowed {
                answers.insert(right, true);
            } else {
                open.push(right);
            }
        }
    } else {
        open.extend(rights);
    }
    let decided: Vec<_> = stream::iter(open.into_iter().map(|right| async move {
        let question = right.question();
        let decision = match who {
            WhoWrites::Caller => cluster.may(&question).await,
            WhoWrites::Other(subject) | WhoWrites::Granted(subject) => {
                cluster.subject_may(subject, &question).await
            }
        };
        (right, decision)
    }))
    .buffered(CONCURRENCY)
    .collect()
    .await;
    for (right, decision) in decided {
        match decision {
            Ok(decision) => {
                answers.insert(right, decision.allowed);
            }
            Err(error) => {
                // Who may not ask is told so, and not stopped.
                unchecked.push(format!("rights, since they cannot be asked for: {error}"));
                answers.insert(right, true);
            }
        }
    }
    answers
}

fn place(right: &Right) -> &str {
    if right.namespace.is_empty() { NO_NAMESPACE } else { &right.namespace }
}
