//! `ichor release rollback`, as `cmd/helm/rollback.go`.

use clap::Args;
use helm_rs::action::rollback::{RollbackOptions, rollback};
use helm_rs::gotext::quote;
use helm_rs::render::{Engine, EngineOptions};

use super::upgrade::max_history;
use super::write::{HookFlags, ObjectFlags, action_error, run as run_session};
use crate::commands::Context;
use crate::connection::{ClusterFlags, record_kind};
use crate::error::CommandError;
use crate::exit::Exit;

#[derive(Debug, Args)]
#[command(
    override_usage = "ichor release rollback RELEASE [REVISION] [OPTIONS]",
    after_help = concat!(
        "Does what `helm rollback` of Helm 3.21.4 does, but leaves objects whose metadata says that\n",
        "they belong to another release, and says so; --helm-compat deletes these too.\n\n",
        "When the program dies in between, the release stays pending-rollback. Run it again with the\n",
        "revision, or mark it failed: ichor release repair RELEASE --yes\n\n",
        "Examples:\n",
        "  ichor release rollback web -n web --wait\n",
        "  ichor release rollback web 3 -n web\n\n",
        "Exit codes:\n",
        "  0  done\n",
        "  1  an error, as in Helm"
    )
)]
pub(crate) struct Arguments {
    /// Name of the release, then the revision; the one before the newest when it is 0 or not given
    #[arg(value_name = "RELEASE [REVISION]", num_args = 0.., allow_negative_numbers = true)]
    names: Vec<String>,
    /// Write nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    objects: ObjectFlags,
    #[command(flatten)]
    hooks: HookFlags,
    /// Delete the pods of what changed
    #[arg(long)]
    recreate_pods: bool,
    /// Delete what was created when the rollback fails
    #[arg(long)]
    cleanup_on_fail: bool,
    /// Revisions that are kept; 0 for all [default: 10, or HELM_MAX_HISTORY]
    #[arg(long, value_name = "COUNT")]
    history_max: Option<i64>,
    #[command(flatten)]
    cluster: ClusterFlags,
}

pub(crate) fn run(arguments: &Arguments, context: &mut Context<'_>) -> Result<Exit, CommandError> {
    let timeout = arguments.hooks.timeout()?;
    record_kind(context.environment)?;
    let Some(name) = arguments.names.first() else {
        return Err(CommandError::new(
            "\"ichor release rollback\" requires at least 1 argument\n\n\
             Usage:  ichor release rollback <RELEASE> [REVISION] [flags]",
        ));
    };
    let options = RollbackOptions {
        name: name.clone(),
        namespace: arguments.cluster.namespace(context.environment),
        revision: arguments.names.get(1).map_or(Ok(0), |text| revision(text))?,
        wait: arguments.objects.wait,
        wait_for_jobs: arguments.objects.wait_for_jobs,
        timeout,
        no_hooks: arguments.hooks.no_hooks,
        dry_run: arguments.dry_run,
        recreate_pods: arguments.recreate_pods,
        method: arguments.objects.method(),
        cleanup_on_fail: arguments.cleanup_on_fail,
        max_history: max_history(arguments.history_max, context),
        helm_compat: arguments.hooks.helm_compat,
    };
    let engine = Engine::new(EngineOptions::default());
    let (result, heard) = run_session(&arguments.cluster, context, &engine, async |session| {
        rollback(session, &options).await
    })?;
    let target = result.map_err(|error| action_error("", name, &error, &heard))?;
    let done = if options.dry_run {
        "nothing was to be written".to_owned()
    } else {
        format!("the rollback is done: revision {target} of {name} is deployed")
    };
    context.ui.result_of("Rollback was a success! Happy Helming!\n", done)?;
    Ok(Exit::Done)
}

/// A revision as `strconv.Atoi` reads it.
fn revision(text: &str) -> Result<i64, CommandError> {
    use std::num::IntErrorKind;
    text.parse::<i64>().map_err(|error| {
        let why = match error.kind() {
            IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
            _ => "invalid syntax",
        };
        CommandError::new(format_args!(
            "could not convert revision to a number: strconv.Atoi: parsing {}: {why}",
            quote(text)
        ))
    })
}
