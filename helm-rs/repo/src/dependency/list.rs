//! What a chart asks for, and what of it is there (`pkg/action/dependency.go`).

use std::fs;
use std::path::{Path, PathBuf};

use helm_rs::chart::{self, Chart, Dependency, Limits};
use helm_rs::gopath;
use helm_rs::semver::{Constraint, Version};

/// A dependency and what is known of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The chart's name.
    pub name: String,
    /// The version or range that is asked for.
    pub version: String,
    /// Where it is from.
    pub repository: String,
    /// `ok`, `unpacked`, `missing`, `wrong version`, …
    pub status: &'static str,
}

/// The dependencies of a chart at `path`; `None` when it lists none.
pub fn list(chart: &Chart, path: &Path) -> Option<Vec<Row>> {
    let all = chart.metadata.dependencies.as_ref()?;
    let row = |dependency: &Dependency| Row {
        name: dependency.name.clone(),
        version: dependency.version.clone(),
        repository: dependency.repository.clone(),
        status: status(chart, path, dependency),
    };
    Some(all.iter().map(row).collect())
}

/// What `helm dependency list` says of charts in `charts/` that nobody asked for, a line each
/// (`printMissing`).
pub fn strangers(chart: &Chart, path: &Path, limits: &Limits) -> Vec<String> {
    let asked = chart.metadata.dependencies.as_deref().unwrap_or_default();
    let mut lines = Vec::new();
    for file in entries(&path.join("charts")) {
        let shown = gopath::clean(&file.to_string_lossy());
        let is_archive = gopath::ext(&shown) == ".tgz";
        if !(file.is_dir() || is_archive) {
            continue;
        }
        let quoted = helm_rs::gotext::quote(&shown);
        match chart::load(&file, limits, &mut Vec::new()) {
            Err(_) => lines.push(format!("WARNING: {quoted} is not a chart.")),
            Ok(found) if !asked.iter().any(|known| known.name == found.name()) => {
                lines.push(format!("WARNING: {quoted} is not in Chart.yaml."));
            }
            Ok(_) => {}
        }
    }
    lines
}

/// What is in a folder, by name.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    all.sort();
    all
}

fn status(chart: &Chart, path: &Path, dependency: &Dependency) -> &'static str {
    let pattern = format!("{}-*.tgz", dependency.name);
    let mut archives = Vec::new();
    for file in entries(&path.join("charts")) {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match gopath::matches(&pattern, &name) {
            Ok(true) => archives.push((name, file)),
            Ok(false) => {}
            Err(_) => return "bad pattern",
        }
    }
    if archives.len() > 1 {
        // Names may begin alike: what follows has to be a version.
        archives.retain(|(name, _)| {
            let rest = name.strip_suffix(".tgz").unwrap_or(name);
            let rest = rest.strip_prefix(&format!("{}-", dependency.name)).unwrap_or(rest);
            Version::parse_strict(rest).is_ok()
        });
        if archives.len() > 1 {
            return "too many matches";
        }
    }
    if let Some((_, archive)) = archives.first() {
        return packed_status(archive, dependency);
    }
    let found = chart.dependencies.iter().rfind(|found| found.name() == dependency.name);
    let Some(found) = found else { return "missing" };
    wrong_version(found, dependency).unwrap_or("unpacked")
}

/// The status of a packed dependency (`statArchiveForStatus`).
fn packed_status(archive: &Path, dependency: &Dependency) -> &'static str {
    match chart::load(archive, &Limits::default(), &mut Vec::new()) {
        Err(_) => "corrupt",
        Ok(found) if found.name() != dependency.name => "misnamed",
        Ok(found) => wrong_version(&found, dependency).unwrap_or("ok"),
    }
}

fn wrong_version(found: &Chart, dependency: &Dependency) -> Option<&'static str> {
    if found.metadata.version == dependency.version {
        return None;
    }
    let parsed = (Constraint::parse(&dependency.version), Version::parse(&found.metadata.version));
    match parsed {
        (Ok(range), Ok(version)) if range.check(&version) => None,
        (Ok(_), Ok(_)) => Some("wrong version"),
        _ => Some("invalid version"),
    }
}
