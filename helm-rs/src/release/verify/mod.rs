//! The audit of records: what in them is wrong, or will be, by codes that do not change.
//!
//! ```text
//! each record ─ audit ─► Audited ┬─ verify ─► findings
//!                                └─ expected ─► objects ─ look, compare_live ─► findings
//! ```
//!
//! [`audit`] looks at one record on its own, and can run on many threads; [`verify`] adds what
//! the records say together. [`Code`] lists everything that can be found.

mod apis;
mod code;
mod intern;
mod live;
mod record;
mod rerender;
mod together;

pub use code::{Code, Severity};
pub use intern::Interner;
pub use live::{Expected, Live, compare_live, expected, look};
pub use record::{Audited, audit, no_record, undecodable};
pub use rerender::{Interrupt, Rerender, Rerendered, Verdict, rerender};
pub use together::{verify, verify_beside};

use crate::capabilities::KubeVersion;

/// What an API server accepts as one Secret's or ConfigMap's data, in bytes
/// (`MaxSecretSize` of Kubernetes).
pub const OBJECT_LIMIT: usize = 1024 * 1024;

/// Something wrong with a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What it is about.
    pub code: Code,
    /// The release's namespace; empty when unknown.
    pub namespace: String,
    /// The release's name; empty when unknown.
    pub release: String,
    /// The revision; none when it is about the release, or unknown.
    pub revision: Option<i64>,
    /// Where the record was read.
    pub place: String,
    /// What is wrong.
    pub message: String,
}

/// What the audit needs to know from outside.
#[derive(Clone, Debug, Default)]
pub struct Question {
    /// Seconds since 1970.
    pub now: i64,
    /// The Kubernetes that removed APIs are looked up for, and that charts are rendered for.
    pub kube_version: Option<KubeVersion>,
    /// Whether and how to render each record's chart again.
    pub rerender: Option<Rerender>,
    /// What the records' objects are kept in: many records have the same ones.
    pub interner: Interner,
    /// A release whose records are not in its namespace, and should not be.
    pub kept_apart: Option<KeptApart>,
}

/// A release whose records lie in another namespace than its own, by design: whoever operates it
/// knows both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptApart {
    /// The release's name.
    pub release: String,
    /// Its own namespace, which its records and its objects' annotations name.
    pub namespace: String,
    /// The namespace of its records.
    pub records: String,
}

/// Orders findings by namespace, release, revision, code.
pub fn sort(findings: &mut [Finding]) {
    findings.sort_by(|a, b| {
        fn key(finding: &Finding) -> (&str, &str, Option<i64>, Code, &str) {
            let Finding { namespace, release, revision, code, message, .. } = finding;
            (namespace, release, *revision, *code, message)
        }
        key(a).cmp(&key(b))
    });
}
