//! Flags that several actions on releases share.

use std::time::Duration;

use clap::{Args, ValueEnum};
use helm_rs::action::MethodOptions;
use helm_rs::release::ApplyMethod;

use crate::error::CommandError;
use crate::flags;

/// Flags of actions that run hooks.
#[derive(Debug, Args)]
pub(in crate::commands::release) struct HookFlags {
    /// Do not run hooks
    #[arg(long)]
    pub(in crate::commands::release) no_hooks: bool,
    /// How long to wait, and how long a hook may take
    #[arg(long, value_name = "DURATION", default_value = "5m0s")]
    timeout: String,
    /// Delete objects of other releases too, where Helm does
    #[arg(long)]
    pub(in crate::commands::release) helm_compat: bool,
}

impl HookFlags {
    /// How long to wait.
    pub(in crate::commands::release) fn timeout(&self) -> Result<Duration, CommandError> {
        flags::helms_duration("timeout", &self.timeout)
    }
}

/// Flags of actions that write objects.
#[derive(Debug, Args)]
pub(in crate::commands::release) struct ObjectFlags {
    /// Wait until everything is ready
    #[arg(long)]
    pub(in crate::commands::release) wait: bool,
    /// With --wait, wait until Jobs have completed too
    #[arg(long)]
    pub(in crate::commands::release) wait_for_jobs: bool,
    /// Replace objects instead of patching them
    #[arg(long)]
    force: bool,
    /// How objects are written: patched by this program, or applied by the server [default: as the
    /// record before says, else csa]
    #[arg(long, value_name = "csa|ssa", hide_possible_values = true)]
    apply_method: Option<Method>,
    /// Under server-side apply, take fields that other managers own
    #[arg(long)]
    force_conflicts: bool,
}

/// The words of records.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Method {
    Csa,
    Ssa,
}

impl ObjectFlags {
    /// The library's options.
    pub(in crate::commands::release) fn method(&self) -> MethodOptions {
        MethodOptions {
            apply_method: self.apply_method.map(|method| match method {
                Method::Csa => ApplyMethod::ClientSide,
                Method::Ssa => ApplyMethod::ServerSide,
            }),
            force_conflicts: self.force_conflicts,
            force: self.force,
        }
    }
}
