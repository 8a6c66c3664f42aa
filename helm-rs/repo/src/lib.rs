//! Charts as artefacts: packed, signed, indexed, fetched, pushed, and brought together as
//! dependencies, as Helm 3.21.4 does it and with its files.
//!
//! ```text
//! folder ─ package::save ─► NAME-VERSION.tgz ─ provenance::sign ─► .prov
//!                                  │
//!              index::of_directory ▼                       registry::Client::push
//!                              index.yaml                           │
//!                                  └──────────► download ◄──────────┘
//!                                     (repo/chart, URL, oci://)
//!                                                  │
//!            Chart.yaml ─ dependency::resolve ─► Chart.lock ─► charts/
//! ```
//!
//! Nothing here reads the environment or the clock: [`Settings`] and times are handed in. What is
//! written to disk is there whole or not at all.

pub mod credentials;
pub mod dependency;
pub mod download;
pub mod expand;
pub mod fetch;
pub mod files;
pub mod index;
pub mod package;
pub mod provenance;
pub mod reference;
pub mod registry;
pub mod repositories;
mod text;
pub mod unfinished;
pub mod url;

use std::path::PathBuf;

/// Where Helm keeps what it knows of repositories and registries (`pkg/cli/environment.go`).
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The file of known repositories: `repositories.yaml`.
    pub repository_config: PathBuf,
    /// The folder of downloaded indexes.
    pub repository_cache: PathBuf,
    /// The file of registries' credentials: `registry/config.json`.
    pub registry_config: PathBuf,
    /// Docker's file of the same form, which is looked in after Helm's.
    pub docker_config: PathBuf,
    /// What requests say who they are.
    pub user_agent: String,
}

/// The digest that Helm names files by: `sha256:` is not part of it (`provenance.Digest`).
pub fn digest(bytes: &[u8]) -> String {
    use sha2::Digest as _;
    text::hex(&sha2::Sha256::digest(bytes))
}
