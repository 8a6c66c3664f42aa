//! What a plan asks for: room for its Secrets, and consent.

use std::collections::BTreeMap;

use cilium::pinned::{RECORD_NAMESPACE, RELEASE};

use super::make::refusal;
use super::preconditions::Settled;
use super::{Consent, MAX_SECRET, Outcome, Plan, Refusal, Size};
use crate::rendered::Rendered;

/// Forecasts the Secrets' sizes, and refuses what does not fit.
pub(super) fn sizes(plan: &mut Plan, settled: &Settled, rendered: &Rendered) {
    if let Ok(record) = crate::run::record::draft(rendered, &settled.effective, 1, "", "")
        && let Ok(text) = helm_rs::release::encode(&record.to_json())
    {
        let what =
            format!("ichor's record (Secret {RECORD_NAMESPACE}/sh.helm.release.v1.{RELEASE}.v1)");
        plan.sizes.push(Size { what, bytes: text.len() });
    }
    let largest: BTreeMap<&str, usize> =
        plan.records.iter().map(|record| (record.about.name.as_str(), record.bytes)).collect();
    for (name, bytes) in largest {
        if bytes > MAX_SECRET {
            plan.sizes.push(Size { what: format!("the backup of {name}"), bytes });
        }
    }
    let total: usize = plan.records.iter().map(|record| record.bytes).sum();
    if total > 0 {
        plan.sizes.push(Size {
            what: "the backup of the foreign records, in all".to_owned(),
            bytes: total,
        });
    }
    let too_large: Vec<Refusal> = plan
        .sizes
        .iter()
        .filter(|size| size.bytes > MAX_SECRET && !size.what.ends_with("in all"))
        .map(|size| {
            refusal(
                "Room",
                format!(
                    "{} has {} bytes, and a Secret holds {MAX_SECRET}: shorten what is in the \
                     values or the chart",
                    size.what, size.bytes
                ),
            )
        })
        .collect();
    plan.refusals.extend(too_large);
}

pub(super) fn consent(plan: &mut Plan) {
    let figures = plan.figures();
    // Where nothing runs, all that is created is the installation itself.
    let installs = plan.outcome == Outcome::Install;
    let is_asked =
        if installs { figures.differences + figures.residue > 0 } else { !plan.gate_is_empty() };
    if is_asked {
        let mut why = Vec::new();
        for (count, what) in [
            (figures.differences, "leaves would change"),
            (figures.residue, "live-only leaves or objects would stay"),
            (figures.creations, "objects would be created"),
        ] {
            if count > 0 {
                why.push(format!("{count} {what}"));
            }
        }
        plan.consent.push(Consent { flag: "--accept-cilium-diff".to_owned(), why: why.join(", ") });
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
