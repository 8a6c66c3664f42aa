//! Worlds for tests of charts as artefacts: a folder, a server of it, a registry, keys.
//!
//! - [`server`]: a small HTTP and HTTPS server with passwords and redirects, that remembers who asked
//! - [`registry`]: a real OCI registry
//! - [`keys`]: OpenPGP keyrings
//! - [`scenario`]: commands that Helm and ichor run in folders of their own
//! - [`compare`]: archives and folders made comparable
#![allow(
    clippy::panic,
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "test code: a panic is how a test says that its surroundings are wrong"
)]

pub mod compare;
pub mod keys;
pub mod registry;
pub mod scenario;
pub mod server;
