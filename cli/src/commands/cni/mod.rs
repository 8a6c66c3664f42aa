//! `ichor cni`: the cluster's Cilium under ichor's release.

pub(crate) mod account;
pub(crate) mod ask;
#[cfg(feature = "controller")]
mod change;
mod file;
mod manifest;
#[cfg(feature = "controller")]
mod ordered;
pub(crate) mod place;
mod plan;
pub(crate) mod planned;
pub(crate) mod rehearse;
pub(crate) mod report;
pub(crate) mod restore;
#[cfg(feature = "controller")]
pub(crate) mod rights;
#[cfg(feature = "network")]
mod run;
pub(crate) mod shared;
mod status;
pub(crate) mod trouble;
#[cfg(feature = "controller")]
mod upgrade;
#[cfg(feature = "controller")]
mod values;

use clap::Subcommand;

use super::Context;
use crate::error::CommandError;
use crate::exit::Exit;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Say what a takeover of the running Cilium would do; writes nothing
    Plan(Box<plan::Arguments>),
    #[cfg(feature = "network")]
    /// Take the running Cilium over, as a plan's digest says; what the Job runs
    Run(Box<run::Arguments>),
    /// Print the Job that carries a plan out, with its rights
    Manifest(Box<manifest::Arguments>),
    /// Say whose the running Cilium is, and what is left to do
    Status(Box<status::Arguments>),
    Restore(Box<restore::Arguments>),
    #[cfg(feature = "controller")]
    /// Look at the values of ichor's release, or change them
    #[command(subcommand, arg_required_else_help = true)]
    Values(values::Command),
    #[cfg(feature = "controller")]
    /// Bring ichor's release to the chart that this ichor brings
    Upgrade(Box<upgrade::Arguments>),
}

/// The definitions of `ichor adopt` and `ichor cni`, with the cluster's flags as they have them.
pub(crate) fn define(root: clap::Command) -> clap::Command {
    root.mut_subcommand("adopt", shared::of_cluster)
        .mut_subcommand("cni", |cni| cni.mut_subcommands(shared::of_cluster))
        .mut_subcommand("cni", |cni| cni.mut_subcommands(place::no_rehearsal))
}

pub(crate) fn run(command: Command, context: &mut Context<'_>) -> Result<Exit, CommandError> {
    context.ui.outlive_reader();
    match command {
        Command::Plan(arguments) => plan::run(*arguments, context),
        #[cfg(feature = "network")]
        Command::Run(arguments) => run::run(*arguments, context),
        Command::Manifest(arguments) => manifest::run(&arguments, context),
        Command::Status(arguments) => status::run(*arguments, context),
        Command::Restore(arguments) => restore::run(&arguments, context),
        #[cfg(feature = "controller")]
        Command::Values(command) => values::run(command, context),
        #[cfg(feature = "controller")]
        Command::Upgrade(arguments) => upgrade::run(*arguments, context),
    }
}
