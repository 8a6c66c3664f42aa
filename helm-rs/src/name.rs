//! Names of releases and objects, as Helm's `pkg/chartutil/validate_name.go` and
//! `pkg/action/install.go` (`NameAndChart`).

use crate::gopath;

/// Longest release name in bytes.
pub const MAX_RELEASE_NAME: usize = 53;

/// Longest name of a Kubernetes object in bytes.
pub const MAX_METADATA_NAME: usize = 253;

/// Longest name of a namespace in bytes.
pub const MAX_NAMESPACE: usize = 63;

/// A name that Helm refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// No release name is given.
    #[error("no name provided")]
    Missing,
    /// The release name is too long or has characters that it may not have.
    #[error(
        "invalid release name, must match regex \
         ^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$ \
         and the length must not be longer than 53"
    )]
    Release,
    /// The object name is too long or has characters that it may not have.
    #[error(
        "invalid metadata name, must match regex \
         ^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$ \
         and the length must not be longer than 253"
    )]
    Metadata,
    /// The namespace's name is too long or has characters that it may not have.
    #[error(
        "invalid namespace, must match regex ^[a-z0-9]([-a-z0-9]*[a-z0-9])?$ and the length must \
         not be longer than 63"
    )]
    Namespace,
}

/// Checks a release name, as `ValidateReleaseName`.
///
/// # Errors
///
/// [`NameError::Missing`] or [`NameError::Release`].
pub fn validate_release_name(name: &str) -> Result<(), NameError> {
    match name {
        "" => Err(NameError::Missing),
        name if name.len() > MAX_RELEASE_NAME || !is_subdomain(name) => Err(NameError::Release),
        _ => Ok(()),
    }
}

/// Checks the name of an object, as `ValidateMetadataName`.
///
/// # Errors
///
/// [`NameError::Metadata`]
pub fn validate_metadata_name(name: &str) -> Result<(), NameError> {
    if name.len() > MAX_METADATA_NAME || !is_subdomain(name) {
        return Err(NameError::Metadata);
    }
    Ok(())
}

/// Checks the name of a namespace, as the server does (`ValidateNamespaceName` of Kubernetes, an RFC
/// 1123 label).
///
/// # Errors
///
/// [`NameError::Namespace`]
pub fn validate_namespace(name: &str) -> Result<(), NameError> {
    if name.len() > MAX_NAMESPACE || name.contains('.') || !is_subdomain(name) {
        return Err(NameError::Namespace);
    }
    Ok(())
}

/// The name that `--generate-name` makes from a chart reference and the time in Unix seconds.
///
/// ```
/// assert_eq!(helm_rs::name::generate("./charts/cilium-1.20.0.tgz", 17), "cilium-1-17");
/// assert_eq!(helm_rs::name::generate(".", 17), "chart-17");
/// ```
pub fn generate(chart: &str, unix_seconds: i64) -> String {
    let mut base = gopath::base(chart);
    if base == "." {
        base = "chart";
    }
    let base = base.split('.').next().unwrap_or(base);
    format!("{base}-{unix_seconds}")
}

/// Labels of lower-case letters, digits and inner hyphens, joined by dots.
fn is_subdomain(name: &str) -> bool {
    let alphanumeric = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    name.split('.').all(|label| {
        let label = label.as_bytes();
        label.first().is_some_and(alphanumeric)
            && label.last().is_some_and(alphanumeric)
            && label.iter().all(|b| alphanumeric(b) || *b == b'-')
    })
}
