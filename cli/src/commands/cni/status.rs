//! `ichor cni status`: whose the running Cilium is.

use clap::Args;
use takeover::plan::Outcome;

use super::shared::{EXIT_CODES, PlanFlags};
use crate::commands::Context;
use crate::error::CommandError;
use crate::exit::Exit;

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    plan: PlanFlags,
}

pub(crate) fn run(arguments: Arguments, context: &mut Context<'_>) -> Result<Exit, CommandError> {
    let work = arguments.plan.work(context)?;
    let prepared = arguments.plan.plan(&work, context)?;
    let plan = &prepared.plan;
    let found = &plan.found;
    let mut text = format!("cni: {} {}\n", found.cni, found.version);
    text.push_str(&format!("comes from: {}\n", found.provenance));
    let figures = plan.figures();
    text.push_str(match plan.outcome {
        Outcome::Nothing => "state: ichor's, nothing to take over\n",
        Outcome::Resume => "state: a takeover was begun and is not complete: run it again\n",
        Outcome::Refused => "state: not ichor's, and a takeover is refused now\n",
        Outcome::Install => "state: there is no CNI, Cilium can be installed\n",
        Outcome::TakeOver | Outcome::Upgrade => "state: not ichor's, can be taken over\n",
    });
    if !plan.digest.is_empty() {
        text.push_str(&format!(
            "against the chart: {} difference(s), {} residue, {} to create\n",
            figures.differences, figures.residue, figures.creations
        ));
    }
    for refusal in &plan.refusals {
        text.push_str(&format!("{}: {}\n", refusal.reason, refusal.message));
    }
    context.ui.result(text)?;
    Ok(if plan.is_refused() { Exit::No } else { Exit::Done })
}
