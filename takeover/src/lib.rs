//! Taking a running Cilium over: plan, gate, consent, act, survive.
//!
//! ```text
//! survey ─ preconditions ─ rendered ─ gate ─ plan ─ consent (digest) ─ run ─ verify
//! ```
//!
//! - [`survey`] reads the cluster; [`plan::prepare`] makes a [`plan::Plan`] of it and writes
//!   nothing.
//! - [`gate`] puts every leaf of every object into a class.
//! - [`run::take_over`] plans again inside the lock, holds the digest against the consent, and
//!   carries the plan out so that a kill between any two calls can be finished by the next run.
//! - [`adopt`] is the same for any chart: its objects come from another release, or from none.
//! - [`change`] brings ichor's own release of Cilium to other values or another version.
//! - [`relocation`] moves a release's records to another namespace, name or driver.
//! - [`report`] shows a plan as a page, as Markdown or as JSON.
//! - [`access`] tells which rights are missing to look at all of it.
//! - [`inventory`] is what Talos keeps of what it applied, and what has to leave it.

pub mod access;
pub mod adopt;
pub mod change;
mod credentials;
pub mod gate;
pub mod inventory;
pub mod job;
pub mod place;
pub mod plan;
pub mod relocation;
pub mod rendered;
pub mod report;
mod room;
pub mod run;
pub mod snapshot;
mod stand_in;
pub mod subject;
pub mod survey;
