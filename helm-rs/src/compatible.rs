//! Versions against constraints, as Helm's `pkg/chartutil/compatible.go`.

use crate::semver::{Constraint, Version};

/// Whether a text is a version for `semver.NewVersion`, which is lenient: a leading `v` and
/// missing minor or patch numbers are fine.
pub fn is_version(text: &str) -> bool {
    Version::parse(text).is_ok()
}

/// Whether a version satisfies a constraint; no if either cannot be read.
///
/// ```
/// use helm_rs::compatible::is_compatible_range;
///
/// assert!(is_compatible_range(">= 1.21.0-0", "v1.36.0"));
/// assert!(!is_compatible_range("", "1.0.0"));
/// ```
pub fn is_compatible_range(constraint: &str, version: &str) -> bool {
    match (Version::parse(version), Constraint::parse(constraint)) {
        (Ok(version), Ok(constraint)) => constraint.check(&version),
        _ => false,
    }
}
