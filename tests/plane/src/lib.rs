//! A real control plane for tests: etcd, the API server, the controller manager and the scheduler,
//! with nodes that are no machines.
//!
//! ```no_run
//! # async fn example() -> plane::Result<()> {
//! let plane = plane::Plane::start(plane::PlaneOptions::default()).await?;
//! let client = plane.client()?;
//! let state = plane.save(std::path::Path::new("/tmp/prepared"))?;
//! let copy = plane::Plane::restore(&state, plane::PlaneOptions::default()).await?;
//! # drop((client, copy)); Ok(()) }
//! ```
//!
//! Reading order: [`Plane`] starts, saves and restores; [`support`] is what tests call first (skip,
//! shared plane, namespace); [`cilium`] prepares a cluster with Cilium in it; [`Nodes`] makes pods run; [`FaultProxy`] breaks requests;
//! [`AuditLog`] proves that nothing was written.

mod audit;
pub mod cilium;
mod client;
mod copy;
mod error;
mod footprint;
mod https;
mod identity;
mod nodes;
mod peers;
mod pki;
mod plane;
mod process;
mod proxy;
mod servers;
pub mod support;

pub use audit::{AuditLog, AuditMark, AuditedRequest};
pub use client::client;
pub use error::{Error, Result};
pub use footprint::{Footprint, Meter};
pub use identity::{ADMIN_USER, Identities, Identity, NODES_USER};
pub use nix::sys::signal::Signal;
pub use nodes::{
    API_SERVER, EXECUTE, EXIT_CODE, HEALTH, NodeHealth, NodeSpec, Nodes, PodHealth, can_execute,
};
pub use peers::{Peer, find as find_peer};
pub use pki::{ClientCertificate, Pki};
pub use plane::{Plane, PlaneOptions, SavedState, StartTimes};
pub use process::{Folder, Server, is_running, signal};
pub use proxy::{Fault, FaultProxy, Match, Paused, RequestRecord, RuleId};
