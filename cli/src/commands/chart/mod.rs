//! `ichor chart`: charts, and where they come from.

mod dependency;
mod lint;
mod locate;
pub(crate) mod options;
mod package;
mod pull;
mod push;
pub(crate) mod render;
mod repo;
mod show;
pub(crate) mod source;
pub(crate) mod template;
mod verify;

use clap::Subcommand;

pub(super) use locate::failed;
pub(super) use repo::read_password;

use super::Context;
use crate::error::CommandError;
use crate::exit::Exit;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Render a chart's templates and print the manifests, as `helm template`
    Template(Box<template::Arguments>),
    /// Print what a chart says about itself, as `helm show`
    #[command(subcommand, arg_required_else_help = true, visible_alias = "inspect")]
    Show(show::Command),
    /// Check a chart for faults, as `helm lint`
    Lint(lint::Arguments),
    /// Pack a chart's folder into an archive, as `helm package`
    Package(Box<package::Arguments>),
    /// Manage the charts that a chart asks for, as `helm dependency`
    #[command(subcommand, arg_required_else_help = true, visible_aliases = ["dep", "dependencies"])]
    Dependency(dependency::Command),
    /// Manage chart repositories, as `helm repo`
    #[command(subcommand, arg_required_else_help = true)]
    Repo(repo::Command),
    /// Download charts, as `helm pull`; a pinned chart is checked against its digest
    #[command(visible_alias = "fetch")]
    Pull(Box<pull::Arguments>),
    /// Put a packed chart into a registry, as `helm push`
    Push(Box<push::Arguments>),
    /// Check the signature of a packed chart, as `helm verify`
    Verify(verify::Arguments),
}

#[cfg(feature = "network")]
impl Command {
    /// Whether it makes files, and nothing else that would have to be ended in order.
    const fn writes(&self) -> bool {
        matches!(
            self,
            Self::Package(_) | Self::Dependency(_) | Self::Repo(_) | Self::Pull(_) | Self::Show(_)
        )
    }
}

pub(crate) fn run(command: Command, context: &mut Context<'_>) -> Result<Exit, CommandError> {
    #[cfg(feature = "network")]
    if command.writes() {
        crate::leftovers::taken_away_on_signals()?;
    }
    match command {
        Command::Template(arguments) => template::run(*arguments, context),
        Command::Show(command) => show::run(command, context),
        Command::Lint(arguments) => lint::run(arguments, context),
        Command::Package(arguments) => package::run(&arguments, context),
        Command::Dependency(command) => dependency::run(&command, context),
        Command::Repo(command) => repo::run(&command, context),
        Command::Pull(arguments) => pull::run(&arguments, context),
        Command::Push(arguments) => push::run(&arguments, context),
        Command::Verify(arguments) => verify::run(&arguments, context),
    }
}
