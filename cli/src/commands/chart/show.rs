//! `ichor chart show`.

use clap::{Args, Subcommand};
use helm_rs::action::show::{Part, show};

use super::options::LimitFlags;
use super::source::ChartFlags;
use crate::commands::Context;
use crate::error::CommandError;
use crate::exit::Exit;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Print everything: definition, values, readme, CRDs
    #[command(after_help = "Examples:\n  ichor chart show all ./my-chart")]
    All(Arguments),
    /// Print Chart.yaml, in Helm's layout
    #[command(after_help = "Examples:\n  ichor chart show chart cilium-1.20.0.tgz")]
    Chart(Arguments),
    /// Print values.yaml
    #[command(after_help = "Examples:\n  ichor chart show values cilium > values.yaml")]
    Values(ValuesArguments),
    /// Print the readme
    #[command(after_help = "Examples:\n  ichor chart show readme ./my-chart")]
    Readme(Arguments),
    /// Print the manifests under crds/
    #[command(after_help = "Examples:\n  ichor chart show crds ./my-chart | kubectl apply -f -")]
    Crds(Arguments),
}

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// A chart's folder or archive, or the name of a pinned chart
    chart: String,
    #[command(flatten)]
    source: ChartFlags,
    #[command(flatten)]
    limits: LimitFlags,
}

#[derive(Debug, Args)]
pub(crate) struct ValuesArguments {
    #[command(flatten)]
    common: Arguments,
    #[arg(long, hide = true, value_name = "TEMPLATE")]
    jsonpath: Option<String>,
}

pub(crate) fn run(command: Command, context: &mut Context<'_>) -> Result<Exit, CommandError> {
    let (part, arguments) = match command {
        Command::All(arguments) => (Part::All, arguments),
        Command::Chart(arguments) => (Part::Chart, arguments),
        Command::Readme(arguments) => (Part::Readme, arguments),
        Command::Crds(arguments) => (Part::Crds, arguments),
        Command::Values(arguments) => {
            if arguments.jsonpath.is_some() {
                return Err(CommandError::new("--jsonpath is not supported")
                    .hint("print the values and filter them with another tool"));
            }
            (Part::Values, arguments.common)
        }
    };
    let chart = arguments.source.load(&arguments.chart, &arguments.limits, false, context)?;
    context.ui.result(show(&chart, part).map_err(CommandError::new)?)?;
    Ok(Exit::Done)
}
