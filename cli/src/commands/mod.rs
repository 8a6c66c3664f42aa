//! The commands: one file each, named as the user types it.

#[cfg(feature = "offline")]
mod adopt;
pub(crate) mod chart;
#[cfg(feature = "controller")]
mod cluster;
#[cfg(feature = "offline")]
mod cni;
mod completions;
#[cfg(feature = "controller")]
mod controller;
pub(crate) mod etcd;
mod man;
#[cfg(feature = "controller")]
mod managed;
pub(crate) mod post_render;
mod registry;
mod release;
mod snapshot;

use std::ffi::OsString;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::environment::Environment;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::flags;
use crate::ui::{Colour, Ui};
use crate::usage::usage_error;

/// Ichor: a native Helm, and Cilium takeover on top of it.
#[derive(Debug, Parser)]
#[command(
    name = "ichor",
    version,
    args_override_self = true,
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = concat!(
        "Examples:\n",
        "  ichor chart template my-release ./my-chart -f values.yaml\n",
        "  ichor chart lint ./my-chart\n",
        "  kubectl get secrets -A -o yaml > dump.yaml; ichor release list --from dump.yaml\n",
        "  ichor completions bash > /etc/bash_completion.d/ichor\n\n",
        "Exit codes:\n",
        "  0  done\n",
        "  1  an error, as in Helm; wrong usage too\n",
        "  2  the answer is no: refused, differences or findings; nothing was written"
    )
)]
struct Arguments {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

/// Flags that every command has.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// Print more on failure: what was rendered up to the error
    #[arg(long, global = true)]
    pub(crate) debug: bool,
    /// Print what the program is doing
    #[arg(short, long, global = true)]
    pub(crate) verbose: bool,
    /// Print only results, warnings and errors
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// When to use colour
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t)]
    pub(crate) color: Colour,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Work with charts: render, check, pack, sign, fetch and push them
    #[command(subcommand, arg_required_else_help = true)]
    Chart(Box<chart::Command>),
    /// Read and audit releases, out of dumps or a cluster; install, upgrade, test and uninstall them
    #[command(subcommand, arg_required_else_help = true)]
    Release(Box<release::Command>),
    /// Log in to registries that charts are kept in, as `helm registry`
    #[command(subcommand, arg_required_else_help = true)]
    Registry(registry::Command),
    /// Look into an etcd snapshot: what a cluster had, without the cluster
    #[command(subcommand, arg_required_else_help = true)]
    Etcd(etcd::Command),
    /// A cluster in a file: take one, look at it, compare two
    #[command(subcommand, arg_required_else_help = true)]
    Snapshot(snapshot::Command),
    /// Bring a running cluster under ichor: its network
    #[cfg(feature = "offline")]
    Adopt(Box<adopt::Arguments>),
    /// Look at and take over the running Cilium
    #[cfg(feature = "offline")]
    #[command(subcommand, arg_required_else_help = true)]
    Cni(Box<cni::Command>),
    /// Look at the cluster as its TalosCluster has it
    #[cfg(feature = "controller")]
    #[command(subcommand, arg_required_else_help = true)]
    Cluster(Box<cluster::Command>),
    /// Run the controller; what its Deployment does
    #[cfg(feature = "controller")]
    Controller(controller::Arguments),
    /// Print a completion script for a shell
    Completions(completions::Arguments),
    /// Write a manual page for each command
    Man(man::Arguments),
}

/// What a command gets besides its own arguments.
pub(crate) struct Context<'a> {
    pub(crate) global: Global,
    pub(crate) environment: &'a Environment,
    pub(crate) ui: &'a mut Ui,
}

/// The definition of the command line.
pub fn command() -> clap::Command {
    let root = Arguments::command();
    #[cfg(feature = "offline")]
    let root = cni::define(root);
    #[cfg(feature = "controller")]
    let root = cluster::define(root);
    flags::take_any_value(flags::take_helms(root))
}

/// Runs the program. `arguments` begins with the program's name.
pub fn run(
    arguments: impl IntoIterator<Item = OsString>,
    environment: &Environment,
    ui: &mut Ui,
) -> Exit {
    let result = dispatch(arguments, environment, ui).and_then(|exit| ui.finish().map(|()| exit));
    match result {
        Ok(exit) => exit,
        Err(mut error) => {
            // What was printed before the error still belongs to the result.
            drop(ui.finish());
            if let Some(why) = environment.no_cluster() {
                error.hint = Some(why.to_owned());
            }
            ui.error(&error);
            error.exit
        }
    }
}

/// Reads the command line; `None` when it only asked for help, which is printed then. The definition
/// of the whole command line is let go with it: it takes a megabyte.
fn parse(
    arguments: impl IntoIterator<Item = OsString>,
    ui: &mut Ui,
) -> Result<Option<Arguments>, CommandError> {
    let mut definition = command();
    let arguments = flags::expand_booleans(&definition, arguments)?;
    let matches = match definition.try_get_matches_from_mut(&arguments) {
        Ok(matches) => matches,
        Err(error) if !error.use_stderr() => {
            ui.result(error.render().to_string())?;
            return Ok(None);
        }
        Err(error)
            if error.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand =>
        {
            // As Helm: a command group alone explains itself.
            ui.result(error.render().to_string())?;
            return Ok(None);
        }
        Err(error) => {
            let texts: Vec<String> =
                arguments.iter().map(|a| a.to_string_lossy().into_owned()).collect();
            return Err(usage_error(&definition, &error, &texts));
        }
    };
    Arguments::from_arg_matches(&matches).map(Some).map_err(CommandError::new)
}

fn dispatch(
    arguments: impl IntoIterator<Item = OsString>,
    environment: &Environment,
    ui: &mut Ui,
) -> Result<Exit, CommandError> {
    let Some(parsed) = parse(arguments, ui)? else { return Ok(Exit::Done) };
    let mut global = parsed.global;
    global.debug |= environment.flag("HELM_DEBUG");
    ui.configure(global.color, global.verbose || global.debug, global.quiet);
    let mut context = Context { global, environment, ui };
    match parsed.command {
        Command::Chart(command) => chart::run(*command, &mut context),
        Command::Release(command) => release::run(*command, &mut context),
        Command::Registry(command) => registry::run(&command, &mut context),
        Command::Etcd(command) => etcd::run(command, &mut context),
        Command::Snapshot(command) => snapshot::run(command, &mut context),
        #[cfg(feature = "offline")]
        Command::Adopt(arguments) => adopt::run(*arguments, &mut context),
        #[cfg(feature = "offline")]
        Command::Cni(command) => cni::run(*command, &mut context),
        #[cfg(feature = "controller")]
        Command::Cluster(command) => cluster::run(*command, &mut context),
        #[cfg(feature = "controller")]
        Command::Controller(arguments) => controller::run(arguments, &context),
        Command::Completions(arguments) => completions::run(&arguments, &mut context),
        Command::Man(arguments) => man::run(&arguments, &mut context),
    }
}
