//! What a plan does, in a few lines.

use cilium::detect::Kind;

use super::{count, safe};
use crate::plan::{Outcome, Plan};

/// `1.20` of `1.20.0`.
fn minor(version: &str) -> &str {
    version.rsplit_once('.').map_or(version, |(minor, _)| minor)
}

/// What comes of it, in one line, and how that is coloured.
pub(super) fn headline(plan: &Plan) -> (String, &'static str) {
    let (headline, mood) = what_comes(plan);
    match plan.rehearsal {
        Some(_) => (format!("Rehearsal: {headline}"), mood),
        None => (headline, mood),
    }
}

fn what_comes(plan: &Plan) -> (String, &'static str) {
    let version =
        |text: &str| if text.is_empty() { String::new() } else { format!(" {}", safe(text)) };
    let (from, chart) = (version(&plan.found.version), version(&plan.chart.version));
    let mood = if plan.consent.is_empty() { "ready" } else { "consent" };
    if plan.is_refused() {
        return ("Refused: nothing is written".to_owned(), "refused");
    }
    match plan.outcome {
        Outcome::Refused => ("Refused: nothing is written".to_owned(), "refused"),
        Outcome::Nothing => ("Nothing to take over".to_owned(), "nothing"),
        Outcome::TakeOver if plan.release.is_some() => {
            (format!("{} is adopted", safe(&plan.subject())), mood)
        }
        Outcome::TakeOver => (format!("Cilium{from} is taken over in place"), mood),
        Outcome::Upgrade => (format!("Cilium{from} is taken over and upgraded to{chart}"), mood),
        Outcome::Resume => (format!("An earlier takeover of Cilium{from} is finished"), mood),
        Outcome::Install => (format!("Cilium{chart} is installed"), mood),
        Outcome::Change => (format!("Ichor's release of Cilium{from} is changed"), mood),
    }
}

/// What happens when the plan is carried out.
pub(super) fn happens(plan: &Plan) -> Vec<String> {
    let figures = plan.figures();
    let mut lines = Vec::new();
    let (from, chart) = (safe(&plan.found.version), safe(&plan.chart.version));
    // What is refused would have been one of the two.
    let outcome = match plan.outcome {
        Outcome::Refused
            if !plan.is_change() && !from.is_empty() && minor(&from) != minor(&chart) =>
        {
            Outcome::Upgrade
        }
        outcome => outcome,
    };
    lines.push(match outcome {
        Outcome::Nothing if plan.release.is_some() => {
            format!("nothing: {} was adopted already", safe(&plan.subject()))
        }
        Outcome::TakeOver | Outcome::Refused if plan.release.is_some() => format!(
            "{} is made of what is there, with chart {} {chart}",
            safe(&plan.subject()),
            safe(&plan.chart.name)
        ),
        Outcome::Nothing if plan.is_change() => {
            "nothing: the release has these values and this chart".to_owned()
        }
        Outcome::Nothing if plan.found.cni != Kind::Cilium.name() => {
            "nothing: the CNI is somebody else's, and is left alone".to_owned()
        }
        Outcome::Nothing => "nothing: this Cilium is ichor's already".to_owned(),
        Outcome::Upgrade => {
            format!("Cilium {from} is taken over and UPGRADED to {chart} (chart {chart})")
        }
        Outcome::Resume => "a takeover that was begun is finished".to_owned(),
        Outcome::Install => {
            format!("Cilium {chart} is installed, and managed from then on")
        }
        Outcome::Change | Outcome::Refused if plan.is_change() && from != chart => {
            format!("ichor's release of Cilium is UPGRADED from {from} to {chart}")
        }
        Outcome::Change | Outcome::Refused if plan.is_change() => {
            format!("ichor's release of Cilium {from} gets other values")
        }
        Outcome::TakeOver | Outcome::Refused | Outcome::Change => format!(
            "Cilium {from} is taken over in place with chart {} {chart}",
            safe(&plan.chart.name)
        ),
    });
    let of_objects = count(plan.objects.len(), "object", "objects");
    let strays = figures.differences + figures.creations + figures.ownership;
    if plan.outcome == Outcome::Nothing && strays > 0 {
        // Nothing of this is written: a takeover is done, and somebody changed what it left.
        lines.push(format!(
            "what is there is not what the chart renders, and is left as it is: {}, {}, {} \
             (docs/operator.md, \"Changing values afterwards\", says how it is put right)",
            count(figures.differences, "leaf differs", "leaves differ"),
            count(figures.creations, "object is missing", "objects are missing"),
            count(figures.ownership, "ownership leaf differs", "ownership leaves differ"),
        ));
        return lines;
    }
    if plan.gate_is_empty() && plan.is_refused() {
        // An object whose write the server refuses is not among those that were compared.
        lines.push(format!(
            "{of_objects} could be compared, and nothing was found but {}; what a refusal names may \
             not be among them",
            count(figures.ownership, "ownership leaf to set", "ownership leaves to set")
        ));
    } else if plan.gate_is_empty() {
        lines.push(format!(
            "the gate is empty: {of_objects} as the chart renders them, {}",
            count(figures.ownership, "ownership leaf is set", "ownership leaves are set")
        ));
    } else {
        lines.push(format!(
            "{of_objects}: {}, {}, {}, {}",
            count(figures.differences, "leaf changes", "leaves change"),
            count(
                figures.residue,
                "live-only leaf or object stays",
                "live-only leaves or objects stay"
            ),
            count(figures.creations, "object is created", "objects are created"),
            count(figures.ownership, "ownership leaf", "ownership leaves"),
        ));
    }
    if figures.deletions > 0 {
        lines.push(format!(
            "{} DELETED: the chart does not render what the release had",
            count(figures.deletions, "object is", "objects are")
        ));
    }
    let pods: u64 = plan.restarts.iter().map(|restart| restart.pods).sum();
    lines.push(if plan.restarts.is_empty() && plan.is_refused() {
        "no pod restarts because of what could be compared".to_owned()
    } else if plan.restarts.is_empty() {
        "no pod restarts".to_owned()
    } else {
        format!(
            "{} RESTART: {}",
            count(plan.restarts.len(), "workload's pods", "workloads' pods"),
            count(usize::try_from(pods).unwrap_or(usize::MAX), "pod", "pods")
        )
    });
    if !plan.records.is_empty() {
        lines.push(format!(
            "{} backed up to {}, read back and compared, then deleted",
            count(plan.records.len(), "foreign record is", "foreign records are"),
            safe(plan.home())
        ));
    }
    lines
}
