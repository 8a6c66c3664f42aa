//! Manifests: rendered files taken apart into objects and hooks, and put in order.
//!
//! ```text
//! rendered files ── take_notes ── sort_manifests ──┬─ hooks
//!                                                  └─ manifests ── release_manifest ── select
//! ```

mod assemble;
mod hook;
mod kind;
mod plain;
mod sort;
mod split;

pub use assemble::{
    NotFound, failed_manifest, hook_manifest, release_manifest, select_manifests, take_notes,
};
pub use hook::{Hook, HookEvent};
pub use kind::{INSTALL_ORDER, KindOrder, UNINSTALL_ORDER};
pub use sort::{Head, Manifest, SortError, Sorted, sort_manifests};
pub(crate) use split::has_more_values;
pub use split::split_manifests;
