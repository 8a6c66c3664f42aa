//! What tests of this workspace share.
//!
//! - [`place`]: the repository, the shared inputs, the program under test
//! - [`peer`]: real Helm and other peers, built on first use; [`Missing`] says why one is not there
//! - [`driver`]: Helm's packages behind one long-lived process, for many small questions
//! - [`sealed`]: a program run with a cleared environment, its own home and a time limit
//! - [`mask`]: generated certificates and keys made equal on both sides
//! - [`difference`]: the first differences of two texts, shown compactly
//!
//! A test whose input is missing calls [`skip!`], which prints the reason; with
//! `ICHOR_REQUIRE_PEERS=1` in the environment it fails instead.
#![allow(
    clippy::panic,
    clippy::expect_used,
    clippy::print_stderr,
    reason = "test code: a panic is how a test says that its surroundings are wrong"
)]

pub mod difference;
pub mod driver;
pub mod mask;
pub mod peer;
pub mod place;
pub mod sealed;

pub use peer::Missing;

/// Whether a missing peer or input is a failure: `ICHOR_REQUIRE_PEERS=1`, as continuous
/// integration sets it.
pub fn peers_required() -> bool {
    std::env::var_os("ICHOR_REQUIRE_PEERS").is_some_and(|value| value == "1")
}

/// Ends a `#[test]` early because of something missing: prints the reason and returns, or panics
/// when [`peers_required`].
#[macro_export]
macro_rules! skip {
    ($reason:expr) => {{
        let reason = $reason;
        assert!(!$crate::peers_required(), "missing, and ICHOR_REQUIRE_PEERS=1: {reason}");
        eprintln!("skipped: {reason}");
        return;
    }};
}
