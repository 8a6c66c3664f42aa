//! `ichor cni plan`: what a takeover would do.

use clap::Args;

use super::report::ReportFlags;
use super::shared::{EXIT_CODES, PlanFlags};
use crate::commands::Context;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::output::Output;

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    plan: PlanFlags,
    #[command(flatten)]
    report: ReportFlags,
    /// Form of the plan
    #[arg(short, long, value_enum, value_name = "FORM", default_value_t)]
    output: Output,
}

pub(crate) fn run(arguments: Arguments, context: &mut Context<'_>) -> Result<Exit, CommandError> {
    arguments.report.check()?;
    let work = arguments.plan.work(context)?;
    let prepared = arguments.plan.plan(&work, context)?;
    arguments.report.show(&prepared.plan, arguments.output, context)?;
    Ok(exit(&prepared.plan))
}

/// 2 when the plan refuses or asks for consent.
pub(crate) fn exit(plan: &takeover::plan::Plan) -> Exit {
    if plan.is_refused() || !plan.consent.is_empty() { Exit::No } else { Exit::Done }
}
