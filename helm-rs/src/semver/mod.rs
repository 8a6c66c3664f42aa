//! Semantic versions and constraints as Helm understands them.
//!
//! Helm decides `semverCompare`, `kubeVersion`, dependency ranges and `--version` with
//! Masterminds' semver 3.5, whose constraint language no Rust crate shares. This module
//! gives the same answers and the same error texts.
//!
//! ```
//! use helm_rs::semver::{Constraint, Version};
//!
//! let constraint = Constraint::parse(">=1.25-0 <1.33 || ~> 2.x")?;
//! assert!(constraint.check(&Version::parse("v1.31")?));
//! assert!(!constraint.check(&Version::parse("1.33.0")?));
//! # Ok::<(), helm_rs::semver::Error>(())
//! ```

mod constraint;
mod version;

pub use constraint::{Constraint, Mismatch};
pub use version::Version;

/// The longest version that is parsed, in bytes (`version.go`, `MaxVersionLen`).
pub const MAX_VERSION_LENGTH: usize = 256;

/// The longest constraint that is parsed, in bytes (`constraints.go`, `MaxConstraintLen`).
pub const MAX_CONSTRAINT_LENGTH: usize = 512;

/// The most `||` groups in a constraint (`constraints.go`, `MaxConstraintGroups`).
pub const MAX_CONSTRAINT_GROUPS: usize = 32;

/// Why a text is not a version or not a constraint; the messages are those of
/// Masterminds' semver, which Helm prints.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The text does not look like a version at all.
    #[error("invalid semantic version")]
    InvalidVersion,
    /// A strict version must not be empty.
    #[error("version string empty")]
    Empty,
    /// A segment of a strict version is not a number.
    #[error("invalid characters in version")]
    InvalidCharacters,
    /// A number has a leading zero where none is allowed.
    #[error("version segment starts with 0")]
    SegmentStartsZero,
    /// The build metadata is malformed.
    #[error("invalid metadata string")]
    InvalidMetadata,
    /// The prerelease is malformed.
    #[error("invalid prerelease string")]
    InvalidPrerelease,
    /// The text is longer than [`MAX_VERSION_LENGTH`].
    #[error("version string is too long (max {MAX_VERSION_LENGTH} bytes)")]
    VersionTooLong,
    /// A segment is no `u64`, in a version that was coerced.
    #[error("error parsing version segment: {0}")]
    Segment(NumberError),
    /// A segment is no `u64`, in a version that was read strictly.
    #[error("{0}")]
    Number(NumberError),
    /// The constraint is longer than [`MAX_CONSTRAINT_LENGTH`].
    #[error("constraint string is too long (max {MAX_CONSTRAINT_LENGTH} bytes)")]
    ConstraintTooLong,
    /// There are more than [`MAX_CONSTRAINT_GROUPS`] alternatives.
    #[error("too many constraint groups (max {MAX_CONSTRAINT_GROUPS})")]
    TooManyGroups,
    /// An alternative is not a list of constraints; `group` is its text in Go's quotes.
    #[error("improper constraint: {group}")]
    ImproperConstraint {
        /// The alternative after hyphen ranges were rewritten, quoted as Go's `%q` does.
        group: String,
    },
    /// The version inside a constraint does not parse.
    #[error("constraint parser error")]
    ConstraintVersion,
}

/// Go's `strconv.NumError` of `ParseUint`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NumberError {
    /// Not digits: here, nothing at all.
    #[error("strconv.ParseUint: parsing \"{0}\": invalid syntax")]
    Syntax(String),
    /// More than 64 bits.
    #[error("strconv.ParseUint: parsing \"{0}\": value out of range")]
    Range(String),
}
