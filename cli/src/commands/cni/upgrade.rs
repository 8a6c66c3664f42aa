//! `ichor cni upgrade`: ichor's release is brought to the chart that this ichor brings.

use clap::Args;

use super::change::{ChangeArguments, Wish, change};
use crate::commands::Context;
use crate::error::CommandError;
use crate::exit::Exit;

#[derive(Debug, Args)]
#[command(after_help = concat!(
    "Shows leaf by leaf what the pinned chart changes, asks whether to go on, and has it done: where a\n",
    "TalosCluster is handed over, by the controller, for which the wish and the consent are written into\n",
    "it; else from here. Nothing is ever upgraded without being asked for.\n\n",
    "Examples:\n",
    "  ichor cni upgrade --plan\n",
    "  ichor cni upgrade\n",
    "  ichor cni upgrade --accept-cilium-diff=sha256:… --yes\n\n",
    "Exit codes:\n",
    "  0  done, or nothing to do\n",
    "  1  it failed, or time was up; run it again to go on\n",
    "  2  the answer is no: refused, or consent is missing"
))]
pub(crate) struct Arguments {
    #[command(flatten)]
    change: ChangeArguments,
}

pub(crate) fn run(arguments: Arguments, context: &mut Context<'_>) -> Result<Exit, CommandError> {
    change(arguments.change, &Wish::Upgrade, context)
}
