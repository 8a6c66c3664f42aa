//! What a plan asks consent for.

use super::{Consent, Outcome, Plan};
use crate::place::Place;

/// What needs consent, and why.
pub(super) fn consent(place: &Place, plan: &mut Plan) {
    let figures = plan.figures();
    // Where nothing runs, all that is created is the installation itself.
    let installs = plan.outcome == Outcome::Install;
    let is_asked =
        if installs { figures.differences + figures.residue > 0 } else { !plan.gate_is_empty() };
    if is_asked {
        // Only what is consented to: a takeover consented to what stays, and an installation is
        // asked for by the word to begin.
        let residue = if plan.is_change() { 0 } else { figures.residue };
        let creations = if installs { 0 } else { figures.creations };
        let mut why = Vec::new();
        for (count, one, many, verb) in [
            (figures.differences, "leaf", "leaves", "change"),
            (residue, "live-only leaf or object", "live-only leaves or objects", "stay"),
            (creations, "object", "objects", "be created"),
            (figures.deletions, "object", "objects", "be deleted"),
        ] {
            if count > 0 {
                let what = if count == 1 { one } else { many };
                why.push(format!("{count} {what} would {verb}"));
            }
        }
        plan.consent.push(Consent { flag: place.words.accept.to_owned(), why: why.join(", ") });
    }
    let changes: Vec<String> = plan
        .values
        .changes
        .iter()
        .filter(|change| change.needs_consent)
        .map(|change| format!("{} from {} to {}", change.key, change.from, change.to))
        .collect();
    if !changes.is_empty() {
        plan.consent.push(Consent {
            flag: "--accept-cilium-changes".to_owned(),
            why: format!("settings of the running data plane would change: {}", changes.join(", ")),
        });
    }
}
