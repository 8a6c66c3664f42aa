//! Peers: programs that ours is compared with, built by `hack/tools` on first use.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use crate::place::repository;

/// Something that a test needs and that is not there.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{what}: {why}")]
pub struct Missing {
    /// What is missing, in a word or two.
    pub what: String,
    /// Why, and what would help.
    pub why: String,
}

impl Missing {
    /// Prints the reason when that is allowed.
    ///
    /// # Panics
    /// When [`crate::peers_required`]: then something missing is a failure.
    pub fn excuse(&self) {
        assert!(!crate::peers_required(), "missing, and ICHOR_REQUIRE_PEERS=1: {self}");
        eprintln!("skipped: {self}");
    }
}

/// The path of a peer's program (`helm`, `helm-driver`, …), built if need be.
///
/// # Errors
/// [`Missing`] with the build's last words when it cannot be built (no Go, no network).
pub fn program(name: &str) -> Result<PathBuf, Missing> {
    static KNOWN: Mutex<BTreeMap<String, Result<PathBuf, Missing>>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = known.get(name) {
        return found.clone();
    }
    let found = build(name);
    known.insert(name.to_owned(), found.clone());
    found
}

fn build(name: &str) -> Result<PathBuf, Missing> {
    let missing = |why: String| Missing { what: format!("peer {name}"), why };
    let output = Command::new(repository().join("hack/tools"))
        .args(["path", name])
        .output()
        .map_err(|error| missing(format!("hack/tools does not run: {error}")))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let lines: Vec<&str> = said.lines().collect();
        return Err(missing(lines[lines.len().saturating_sub(3)..].join("; ")));
    }
    let path = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim_end());
    if path.is_file() { Ok(path) } else { Err(missing(format!("no file {}", path.display()))) }
}

/// Real Helm 3.21.4.
///
/// # Errors
/// As [`program`].
pub fn helm() -> Result<PathBuf, Missing> {
    program("helm")
}
