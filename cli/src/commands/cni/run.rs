//! `ichor cni run`: the takeover that a digest names; what the Job runs.

use std::fs;

use clap::Args;

use super::shared::{ConsentFlags, EXIT_CODES, PlanFlags, account, run_error};
use crate::commands::Context;
use crate::error::CommandError;
use crate::exit::Exit;

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Arguments {
    /// The digest of the plan that was consented to
    #[arg(long, value_name = "DIGEST")]
    digest: Option<String>,
    /// Take over: what every Job of an adopted cluster says until the hand-over is complete
    #[arg(long, required = true)]
    takeover: bool,
    /// Write one line about the end to this file
    #[arg(long, value_name = "FILE")]
    termination_message: Option<String>,
    #[command(flatten)]
    plan: PlanFlags,
    #[command(flatten)]
    consent: ConsentFlags,
}

pub(crate) fn run(arguments: Arguments, context: &mut Context<'_>) -> Result<Exit, CommandError> {
    let mut consent = arguments.consent;
    // The digest is the consent to everything that the plan told.
    if arguments.digest.is_some() {
        consent.accept_cilium_diff.get_or_insert_default();
    }
    let work = arguments.plan.work(context)?;
    let (result, _) = arguments.plan.carry_out(&work, &consent, arguments.digest, context)?;
    let outcome = result.as_ref().map(account).map_err(run_error);
    if let Some(path) = &arguments.termination_message {
        let line = match &outcome {
            Ok(text) => text.lines().next().unwrap_or_default().to_owned(),
            Err(error) => {
                String::from_utf8_lossy(error.message.as_deref().unwrap_or_default()).into_owned()
            }
        };
        fs::write(path, line.replace('\n', " ") + "\n").map_err(|error| {
            CommandError::new(format_args!("--termination-message {path}: {error}"))
        })?;
    }
    context.ui.result(outcome?)?;
    Ok(Exit::Done)
}
