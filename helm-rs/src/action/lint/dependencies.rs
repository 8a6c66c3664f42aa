//! Rules about dependencies (`pkg/lint/rules/dependencies.go`).

use std::collections::BTreeSet;
use std::path::Path;

use super::report::{Linter, Severity};
use crate::chart::{Chart, Limits, Warning, load_directory};

pub(super) fn check(
    linter: &mut Linter,
    folder: &Path,
    limits: &Limits,
    warnings: &mut Vec<Warning>,
) {
    let chart = match load_directory(folder, limits, warnings) {
        Ok(chart) => chart,
        Err(error) => {
            let found = format!("unable to load chart\n\t{}", crate::error_chain(&error));
            linter.rule(Severity::Error, "", Some(found));
            return;
        }
    };
    let place = folder.display().to_string();
    let wanted: Vec<&str> = names(&chart).collect();
    let present: Vec<&str> = chart.dependencies.iter().map(Chart::name).collect();
    linter.rule(
        Severity::Error,
        &place,
        missing("chart metadata is missing these dependencies", &present, &wanted),
    );
    linter.rule(Severity::Error, &place, shadowing(&chart));
    linter.rule(
        Severity::Warning,
        &place,
        missing("chart directory is missing these dependencies", &wanted, &present),
    );
}

fn names(chart: &Chart) -> impl Iterator<Item = &str> {
    chart.metadata.dependencies.iter().flatten().map(|dependency| dependency.name.as_str())
}

fn missing(complaint: &str, wanted: &[&str], present: &[&str]) -> Option<String> {
    let missing: Vec<&str> =
        wanted.iter().filter(|name| !present.contains(name)).copied().collect();
    (!missing.is_empty()).then(|| format!("{complaint}: {}", missing.join(",")))
}

fn shadowing(chart: &Chart) -> Option<String> {
    let mut seen = BTreeSet::new();
    let mut shadowing = Vec::new();
    for dependency in chart.metadata.dependencies.iter().flatten() {
        let key = if dependency.alias.is_empty() { &dependency.name } else { &dependency.alias };
        if !seen.insert(key) {
            shadowing.push(key.as_str());
        }
    }
    let list = shadowing.join(",");
    (!shadowing.is_empty()).then(|| format!("multiple dependencies with name or alias: {list}"))
}
