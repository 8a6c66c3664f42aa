//! `ichor snapshot`: what a takeover looks at of a cluster, in a file.

mod diff;
mod file;
#[cfg(feature = "offline")]
mod open;
mod show;
#[cfg(feature = "network")]
mod take;

use clap::Subcommand;

use super::Context;
use crate::error::CommandError;
use crate::exit::Exit;
#[cfg(feature = "offline")]
pub(crate) use open::open;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Read what a takeover looks at from a cluster into a file; writes nothing to the cluster
    #[cfg(feature = "network")]
    #[command(after_help = take::EXAMPLES)]
    Take(Box<take::Arguments>),
    /// Say what a snapshot holds: when and where it was taken, what is missing
    #[command(after_help = show::EXAMPLES)]
    Show(show::Arguments),
    /// Compare two snapshots, such as before and after a takeover, leaf by leaf
    #[command(after_help = diff::EXAMPLES)]
    Diff(diff::Arguments),
}

pub(crate) fn run(command: Command, context: &mut Context<'_>) -> Result<Exit, CommandError> {
    match command {
        #[cfg(feature = "network")]
        Command::Take(arguments) => take::run(&arguments, context),
        Command::Show(arguments) => show::run(&arguments, context),
        Command::Diff(arguments) => diff::run(&arguments, context),
    }
}
