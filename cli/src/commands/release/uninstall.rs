//! `ichor release uninstall`, as `cmd/helm/uninstall.go`.

use clap::Args;
use helm_rs::action::uninstall::{UninstallOptions, uninstall};
use helm_rs::cluster::Propagation;
use helm_rs::render::{Engine, EngineOptions};

use super::write::{HookFlags, Host, action_error};
use crate::commands::Context;
use crate::connection::{ClusterFlags, record_kind};
use crate::error::CommandError;
use crate::exit::Exit;

#[derive(Debug, Args)]
#[command(
    override_usage = "ichor release uninstall RELEASE_NAME [...] [OPTIONS]",
    after_help = concat!(
        "Does what `helm uninstall` of Helm 3.21.4 does, but leaves objects whose metadata says that\n",
        "they belong to another release, and says so; --helm-compat deletes these too.\n\n",
        "When the program dies in between, run it again: it goes on.\n\n",
        "Examples:\n",
        "  ichor release uninstall web -n web --wait\n",
        "  ichor release uninstall web -n web --keep-history\n\n",
        "Exit codes:\n",
        "  0  done\n",
        "  1  an error, as in Helm"
    )
)]
pub(crate) struct Arguments {
    /// Names of the releases
    #[arg(value_name = "RELEASE_NAME", num_args = 0..)]
    names: Vec<String>,
    /// Only look whether there are such releases
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    hooks: HookFlags,
    /// A release that is not there is no error
    #[arg(long)]
    ignore_not_found: bool,
    /// Keep the records
    #[arg(long)]
    keep_history: bool,
    /// Wait until the objects are gone
    #[arg(long)]
    wait: bool,
    /// What happens to what the objects own: background, orphan or foreground
    #[arg(long, value_name = "HOW", default_value = "background")]
    cascade: String,
    /// Description for the record
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    #[command(flatten)]
    cluster: ClusterFlags,
}

pub(crate) fn run(arguments: &Arguments, context: &mut Context<'_>) -> Result<Exit, CommandError> {
    let timeout = arguments.hooks.timeout()?;
    record_kind(context.environment)?;
    if arguments.names.is_empty() {
        return Err(CommandError::new(
            "\"ichor release uninstall\" requires at least 1 argument\n\n\
             Usage:  ichor release uninstall RELEASE_NAME [...] [flags]",
        ));
    }
    let propagation = match arguments.cascade.as_str() {
        "background" => Propagation::Background,
        "foreground" => Propagation::Foreground,
        "orphan" => Propagation::Orphan,
        other => {
            return Err(CommandError::new(format_args!(
                "invalid cascade value ({other}). Must be \"background\", \"foreground\", or \
                 \"orphan\""
            )));
        }
    };
    let host = Host::open(&arguments.cluster, context)?;
    let engine = Engine::new(EngineOptions::default());
    for name in &arguments.names {
        let options = UninstallOptions {
            name: name.clone(),
            namespace: arguments.cluster.namespace(context.environment),
            no_hooks: arguments.hooks.no_hooks,
            dry_run: arguments.dry_run,
            ignore_not_found: arguments.ignore_not_found,
            keep_history: arguments.keep_history,
            wait: arguments.wait,
            propagation,
            timeout,
            description: arguments.description.clone().unwrap_or_default(),
            helm_compat: arguments.hooks.helm_compat,
        };
        let (result, heard) =
            host.run(context, &engine, async |session| uninstall(session, &options).await)?;
        let done = result.map_err(|error| action_error("", name, &error, &heard))?;
        let what = if options.dry_run {
            format!("nothing of {name} was to be deleted")
        } else {
            format!("the release {name} is uninstalled")
        };
        if !done.kept.is_empty() {
            context.ui.result_of(format!("{}\n", done.kept), &what)?;
        }
        context.ui.result_of(format!("release \"{name}\" uninstalled\n"), &what)?;
    }
    Ok(Exit::Done)
}
