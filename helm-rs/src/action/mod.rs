//! What Helm's commands do, without their command line: options in, result out.

mod error;
pub mod generated;
pub mod install;
pub mod lint;
mod lookup;
pub mod plan;
mod planned;
mod prepare;
pub mod repair;
pub mod rights;
mod session;
pub mod show;
pub mod template;
pub mod upgrade;

pub use error::{ActionError, ConflictError, CrdError};
pub use lookup::ClusterLookup;
pub use session::{DryRun, ReleaseOptions, Session};
