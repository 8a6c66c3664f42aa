//! What Helm's commands do, without their command line: options in, result out.

mod error;
mod failure;
pub mod generated;
mod hook_rights;
mod hooks;
pub mod install;
pub mod lint;
mod lookup;
mod method;
pub mod plan;
mod planned;
mod prepare;
pub mod repair;
pub mod resources;
pub mod rights;
pub mod rollback;
mod session;
pub mod show;
pub mod template;
pub mod testing;
mod undo;
pub mod uninstall;
pub mod upgrade;

pub use error::{ActionError, ConflictError, CrdError};
pub use hooks::HookError;
pub use lookup::ClusterLookup;
pub use method::MethodOptions;
pub use session::{DryRun, PostRenderer, ReleaseOptions, Session};
