//! Carrying a plan out: lock, record, objects, records, and what a kill leaves behind.
//!
//! ```text
//! namespace ─ lock ─ plan again, digest ─ stored plan ─ pending record ─ objects ─ wait
//!                                        ─ deployed record ─ backup ─ foreign records deleted
//! ```
//!
//! Each step leaves a state that the next run recognises. (Takeover rules, sections 4 and 5.)

pub mod backup;
mod change;
mod error;
mod execute;
mod fence;
pub(crate) mod former;
mod left_over;
pub mod lock;
pub(crate) mod own;
mod put_back;
pub(crate) mod record;
pub mod restore;
mod rights;
pub mod status;
pub mod stored;
mod strangers;

pub use error::{Denied, RunError};
pub(crate) use execute::no_namespace;
pub use execute::{Done, Run, take_over};
pub use fence::Fenced;
pub use left_over::{LeftOver, LeftOverError, left_over, left_over_at};
pub use own::OwnError;
pub(crate) use put_back::change;
pub use strangers::LookError;
