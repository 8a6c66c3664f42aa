//! What Helm's commands do, without their command line: options in, result out.

pub mod generated;
pub mod lint;
pub mod show;
pub mod template;
