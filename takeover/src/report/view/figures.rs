//! Figures in words.

use serde::Serialize;

use crate::plan::Plan;

/// A count with its name.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct FigureView {
    pub(crate) count: usize,
    pub(crate) name: &'static str,
    /// Whether it needs a look when it is not 0.
    pub(crate) loud: bool,
}

/// A count with its noun: `1 pod`, `2 pods`.
pub(crate) fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

pub(super) fn figures(plan: &Plan) -> Vec<FigureView> {
    let figures = plan.figures();
    [
        (figures.differences, "differences", true),
        (figures.residue, "residue", true),
        (figures.creations, "creations", true),
        (figures.restarts, "restarts", true),
        (figures.ownership, "ownership", false),
        (figures.generated, "generated, kept", false),
        (figures.others, "others' leaves", false),
        (figures.defaults, "server defaults", false),
    ]
    .into_iter()
    .map(|(count, name, needs_look)| FigureView { count, name, loud: needs_look && count > 0 })
    .collect()
}

pub(super) fn stays(plan: &Plan) -> Vec<String> {
    let figures = plan.figures();
    let leaves = figures.residue - plan.left_objects.len();
    let mut stays = Vec::new();
    if leaves > 0 {
        stays.push(format!(
            "{} the chart does not name and that nothing explains (residue)",
            count(leaves, "leaf that", "leaves that")
        ));
    }
    if !plan.left_objects.is_empty() {
        stays.push(format!(
            "{} of the release before that the chart does not render",
            count(plan.left_objects.len(), "object", "objects")
        ));
    }
    if figures.generated > 0 {
        stays.push(format!(
            "{} that the chart generates (certificates, passwords): the live ones are kept",
            count(figures.generated, "leaf", "leaves")
        ));
    }
    if figures.others > 0 {
        stays.push(format!(
            "{} of controllers and the server",
            count(figures.others, "leaf", "leaves")
        ));
    }
    if figures.defaults > 0 {
        stays.push(format!("{} of the server", count(figures.defaults, "default", "defaults")));
    }
    stays
}

/// Bytes for people.
pub(super) fn bytes(count: usize) -> String {
    if count < 10 * 1024 {
        return format!("{count} bytes");
    }
    format!("{} KiB", count.div_ceil(1024))
}
