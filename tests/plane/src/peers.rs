//! Where the built servers and tools are.
//!
//! `hack/tools` owns the cache; this module only asks it and never builds, so that a test run
//! without peers takes no hour by surprise.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use test_support::place::repository;

use crate::error::{Error, Result};

/// A test peer as `hack/tools list` shows it.
#[derive(Debug, Clone)]
pub struct Peer {
    /// Version of the peer, such as `v1.36.4`.
    pub version: String,
    /// Where the binary is, or would be.
    pub path: PathBuf,
}

/// Finds a built binary by its name.
///
/// # Errors
///
/// [`Error::MissingPeer`] when it is not built or `hack/tools` does not know it.
pub fn find(name: &str) -> Result<Peer> {
    let missing = |reason: String| Error::MissingPeer { name: name.to_owned(), reason };
    let peers = list().as_ref().map_err(|reason| missing(reason.clone()))?;
    let peer = peers.get(name).ok_or_else(|| missing("hack/tools does not list it".to_owned()))?;
    if peer.path.is_file() {
        Ok(peer.clone())
    } else {
        Err(missing(format!("{} does not exist", peer.path.display())))
    }
}

/// Asks `hack/tools` once per process.
fn list() -> &'static Result<BTreeMap<String, Peer>, String> {
    static LIST: OnceLock<Result<BTreeMap<String, Peer>, String>> = OnceLock::new();
    LIST.get_or_init(|| {
        let output = Command::new(repository().join("hack/tools"))
            .arg("list")
            .output()
            .map_err(|error| format!("hack/tools cannot run: {error}"))?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
        }
        Ok(String::from_utf8_lossy(&output.stdout).lines().filter_map(parse_line).collect())
    })
}

/// One line is name, peer, version, state and path, separated by tabs.
fn parse_line(line: &str) -> Option<(String, Peer)> {
    let mut fields = line.split('\t');
    let name = fields.next()?.to_owned();
    let version = fields.nth(1)?.to_owned();
    let path = PathBuf::from(fields.nth(1)?);
    Some((name, Peer { version, path }))
}
