//! `Chart.lock` and its digest (`internal/resolver/resolver.go`, `pkg/downloader/manager.go`).

use std::fs;
use std::path::Path;

use helm_rs::chart::{Dependency, Lock, encode};

use super::DependencyError;
use crate::files::{self, FileError};
use crate::package;

/// The digest of what is asked for and what was chosen (`HashReq`).
///
/// # Errors
/// When an entry of `import-values` is no JSON.
pub fn digest(
    wanted: &[Dependency],
    chosen: Option<&[Dependency]>,
) -> Result<String, goyaml::json::Error> {
    let chosen = chosen.map_or(Ok("null".to_owned()), encode::dependencies)?;
    let json = format!("[{},{chosen}]", encode::dependencies(wanted)?);
    Ok(format!("sha256:{}", crate::digest(json.as_bytes())))
}

/// The digest that Helm 2 wrote (`HashV2Req`).
///
/// # Errors
/// As [`digest()`].
pub fn former_digest(wanted: &[Dependency]) -> Result<String, goyaml::json::Error> {
    let json = format!("{{\"dependencies\":{}}}", encode::dependencies(wanted)?);
    Ok(format!("sha256:{}", crate::digest(json.as_bytes())))
}

/// Writes the lock of a chart (`writeLock`). `is_v1` charts have another name for it.
///
/// # Errors
/// [`DependencyError::Link`] when the file is a link; [`DependencyError`] when it cannot be written.
pub fn write(chart: &Path, lock: &Lock, is_v1: bool) -> Result<(), DependencyError> {
    let name = if is_v1 { "requirements.lock" } else { "Chart.lock" };
    let path = chart.join(name);
    if fs::symlink_metadata(&path).is_ok_and(|about| about.is_symlink()) {
        let target =
            fs::read_link(&path).map_err(|error| FileError::new("readlink", &path, error))?;
        return Err(DependencyError::Link { name, target });
    }
    let text = package::yaml(&encode::lock(lock)?)?;
    Ok(files::write(&path, text.as_bytes(), 0o644)?)
}
