//! The controller: hands a cluster's CNI over by a Job, and says where that stands.
//!
//! ```text
//! watches ─ facts (plain data) ─┐
//!                               ├─ decide ─► status, one action at most, when to look again
//! TalosCluster ─────────────────┘                │
//!                                     reconcile: Job created or replaced, status, Event
//! ```
//!
//! [`facts`], [`decide`] and [`change`] are functions on plain data: no client, no clock. The rest is thin:
//! [`job`] says how a Job looks, `watch` keeps the facts current, `reconcile` sends what was decided,
//! `leader` and `fence` make sure that one of several controllers acts, `serve` answers probes and scrapes, and
//! [`run`] ties them together.
//!
//! # Never two Jobs at once
//!
//! The Job has one name in one namespace, so that the API server allows one. A new one takes the
//! place of an old one only when that has ended, by a delete that names the old one's UID. A
//! controller that lost its Lease changes nothing more (`fence`), and what it had sent by then does
//! no harm that the next one does not see. The takeover has a lock of its own besides ([`takeover::run::lock`]).
//!
//! # Where it keeps what it knows
//!
//! In the cluster: how often it was tried, and what the last attempt was made of, are annotations of
//! the Job, which therefore has no time to live. Deleting the Job by hand starts over.

pub mod change;
pub mod decide;
pub mod facts;
mod fence;
pub mod job;
mod leader;
mod metrics;
pub mod policies;
mod reconcile;
mod run;
mod serve;
mod trace;
mod watch;

pub use run::{Options, RunError, run};
pub use trace::Traces;

/// The controller's field manager, the name of its Lease, and what its Events are reported by.
pub const NAME: &str = "ichor-controller";
