//! Comparison of `ichor` and `helm-rs` with real Helm 3.21.4.
//!
//! Each family of comparisons is one test program below `tests/`; the long forms of some are run
//! by `hack/proof`, and `hack/bless` writes stored expectations anew from Helm.
#![allow(
    clippy::panic,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "test code: a panic is how a test fails, and reports are printed"
)]

pub mod cases;
pub mod charts;
pub mod generated;
pub mod generator;
pub mod matrix;
pub mod ours;
pub mod random;
pub mod theirs;
