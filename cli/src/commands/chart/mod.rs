//! `ichor chart`: charts, offline.

mod lint;
pub(crate) mod options;
mod pull;
pub(crate) mod render;
mod show;
pub(crate) mod template;

use clap::Subcommand;

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
    /// Download a pinned chart and check its digest
    Pull(pull::Arguments),
}

pub(crate) fn run(command: Command, context: &mut Context<'_>) -> Result<Exit, CommandError> {
    match command {
        Command::Template(arguments) => template::run(*arguments, context),
        Command::Show(command) => show::run(command, context),
        Command::Lint(arguments) => lint::run(arguments, context),
        Command::Pull(arguments) => pull::run(&arguments, context),
    }
}
