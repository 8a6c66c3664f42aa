//! What the difference between a rendered and a stored manifest looks like.

use std::collections::BTreeMap;

use super::Verdict;
use super::attempt::{Difference, DifferenceKind, Outcome, Subject};
use super::search::Found;

/// What fits, and why.
pub(super) fn classify(subject: &Subject, outcome: &Outcome, found: &Found) -> (Verdict, String) {
    let cluster = other_cluster(subject, found);
    if outcome.differences.is_empty() && !outcome.text_differs {
        return match cluster {
            Some(cluster) => (
                Verdict::Capabilities,
                format!("capabilities differed: the chart renders to the manifest with {cluster}"),
            ),
            None => (Verdict::Reproduces, reproduced(subject, found)),
        };
    }
    let (verdict, mut reason) = residue(outcome);
    if let Some(cluster) = cluster {
        reason.push_str(&format!(" (the chart comes closest with {cluster})"));
    }
    (verdict, reason)
}

/// How the chart was rendered, where not as the record says.
fn reproduced(subject: &Subject, found: &Found) -> String {
    let (attempt, first) = (&found.attempt, subject.first());
    let mut how = Vec::new();
    if attempt.integers {
        how.push("whole numbers as --set gives them".to_owned());
    }
    if attempt.stored_lookup {
        how.push("lookups answered from the manifest".to_owned());
    }
    if attempt.revision != first.revision || attempt.is_upgrade != first.is_upgrade {
        let action = if attempt.is_upgrade { "an upgrade" } else { "an installation" };
        how.push(format!("revision {} as {action}", attempt.revision));
    }
    if how.is_empty() {
        "the chart renders to the manifest".to_owned()
    } else {
        format!("the chart renders to the manifest with {}", how.join(", "))
    }
}

/// The cluster of the best attempt, where it is another than that of the first.
fn other_cluster(subject: &Subject, found: &Found) -> Option<String> {
    let first = subject.first().capabilities;
    let best = &found.attempt.capabilities;
    let mut parts = Vec::new();
    if best.kube_version != first.kube_version {
        parts.push(format!("Kubernetes {}", best.kube_version.version));
    }
    let of = |all: &crate::capabilities::Capabilities,
              other: &crate::capabilities::Capabilities| {
        let mut extra: Vec<String> =
            all.api_versions.iter().filter(|version| !other.has_api(version)).cloned().collect();
        extra.sort();
        extra.join(", ")
    };
    let (added, gone) = (of(best, &first), of(&first, best));
    if !added.is_empty() {
        parts.push(format!("API versions {added}"));
    }
    if !gone.is_empty() {
        parts.push(format!("no API versions {gone}"));
    }
    (!parts.is_empty()).then(|| parts.join(" and "))
}

fn residue(outcome: &Outcome) -> (Verdict, String) {
    let post = |why: String| (Verdict::PostRendered, format!("a post-renderer ran: {why}"));
    if outcome.comments_gone {
        return post("the comments that Helm writes over objects are gone".to_owned());
    }
    if outcome.differences.is_empty() {
        return post("the objects are the same, their text is not".to_owned());
    }
    // A post-renderer does not see hooks.
    if let Some((count, place)) = common_change(&outcome.differences) {
        return post(format!("the same change in {count} objects, {place}"));
    }
    if outcome.looked_up {
        let why = "templates read the cluster, and what they found is not in the record";
        return (Verdict::Lookup, why.to_owned());
    }
    (Verdict::Edited, "the record was edited".to_owned())
}

/// The change that all changed objects share, if nothing else is different and no hook is.
fn common_change(differences: &[Difference]) -> Option<(usize, String)> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut objects = 0;
    for difference in differences {
        let DifferenceKind::Changed(changes) = &difference.kind else { return None };
        if difference.is_hook {
            return None;
        }
        objects += 1;
        for change in changes {
            let key = format!("{}\0{:?}\0{:?}", change.path, change.old, change.new);
            *counts.entry(key).or_default() += 1;
        }
    }
    let shared = |count: &usize| *count >= 2;
    if objects < 2 || !counts.values().all(shared) {
        return None;
    }
    let (key, _) = counts.iter().max_by_key(|(_, count)| **count)?;
    let place = key.split('\0').next().unwrap_or_default().to_owned();
    Some((objects, place))
}
