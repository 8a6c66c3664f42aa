//! `ichor cni plan`: what a takeover would do.

use clap::Args;
use takeover::plan::WhoWrites;

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
    /// Check the rights of the Job (ServiceAccount kube-system/ichor-cni), not the caller's
    #[arg(long)]
    for_job: bool,
    /// Form of the plan
    #[arg(short, long, value_enum, value_name = "FORM", default_value_t)]
    output: Output,
}

pub(crate) fn run(
    mut arguments: Arguments,
    context: &mut Context<'_>,
) -> Result<Exit, CommandError> {
    arguments.report.check()?;
    if arguments.for_job {
        arguments.plan.who_writes = WhoWrites::Other(takeover::job::subject());
    }
    let work = arguments.plan.work(context)?;
    let prepared = arguments.plan.plan(&work, context)?;
    arguments.report.show(&prepared.plan, arguments.output, context)?;
    Ok(exit(&prepared.plan))
}

/// 2 when the plan refuses or asks for consent.
pub(crate) fn exit(plan: &takeover::plan::Plan) -> Exit {
    if plan.is_refused() || !plan.consent.is_empty() { Exit::No } else { Exit::Done }
}
