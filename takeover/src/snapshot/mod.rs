//! A cluster's file for a takeover: taking it, and rehearsing on it.
//!
//! ```text
//! live cluster ─ take ─► file (helm_rs::cluster::snapshot) ─ Stage ─► memory ─► the same plan,
//!                                                                               the same run
//! ```
//!
//! A rehearsal is no other code: `prepare`, `take_over` and `restore` run over the cluster in
//! memory, whose every call is recorded.

mod digests;
mod dump;
mod lasting;
pub mod select;
mod stage;
mod take;
#[cfg(test)]
mod tests;
mod timeline;

pub use dump::Dump;
pub use lasting::{drop_server_fields, is_own_record, lasting};
pub use stage::{Stage, StageError};
pub use take::{TakeError, TakeOptions, Taken, take};
pub use timeline::{RunCalls, Timeline, summary};
