//! `ichor cni plan`: what a takeover would do, or a change of ichor's own release.

use clap::Args;
use takeover::plan::WhoWrites;

use super::report::ReportFlags;
use super::shared::{ChangeFlags, PlanFlags};
use crate::commands::Context;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::output::Output;

#[derive(Debug, Args)]
#[command(after_help = concat!(
    "Writes nothing: dry runs and access reviews only.\n\n",
    "Examples:\n",
    "  ichor cni plan\n",
    "  ichor cni plan --output json | jq .consent\n",
    "  ichor cni plan --report plan.html --report plan.md\n",
    "  ichor cni plan --change --cilium-values more.yaml   # after the takeover: other values\n",
    "  ichor cni plan --change --upgrade                   # the pinned chart\n\n",
    "Exit codes:\n",
    "  0  it can be carried out and needs no consent, or there is nothing to do\n",
    "  1  no plan could be made\n",
    "  2  the answer is no: refused, a right to look is missing, or consent is needed"
))]
pub(crate) struct Arguments {
    /// Check the rights of the Job (ServiceAccount kube-system/ichor-cni), not the caller's
    #[arg(long)]
    for_job: bool,
    /// Form of the plan
    #[arg(short, long, value_enum, value_name = "FORM", default_value_t)]
    output: Output,
    /// Plan a change of ichor's own release: the values of --cilium-values over those that it has
    #[arg(long)]
    change: bool,
    #[command(flatten)]
    changes: ChangeFlags,
    #[command(flatten)]
    plan: PlanFlags,
    #[command(flatten)]
    report: ReportFlags,
}

pub(crate) fn run(
    mut arguments: Arguments,
    context: &mut Context<'_>,
) -> Result<Exit, CommandError> {
    arguments.report.check(&arguments.plan)?;
    if arguments.for_job {
        arguments.plan.who_writes = WhoWrites::Other(takeover::job::subject());
    }
    if arguments.change {
        arguments.plan.change = Some(arguments.changes.change());
    } else if let Some(flag) = arguments.changes.given() {
        return Err(CommandError::new(format_args!("{flag} is for --change")));
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
