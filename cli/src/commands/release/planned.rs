//! What `ichor release adopt`, `move` and `restore` share: a plan that is shown, its consent, and
//! the words for an answer that is no.

use clap::Args;
use helm_rs::error_chain;
use takeover::plan::{self, Plan};

use crate::commands::Context;
use crate::commands::cni::shared::{no, print_data, print_plan};
use crate::error::CommandError;
use crate::exit::Exit;
use crate::output::Output;

/// How a plan is shown.
#[derive(Debug, Args)]
pub(super) struct PlanShape {
    /// Only show what would be done
    #[arg(long)]
    pub(super) plan: bool,
    /// Form of the plan
    #[arg(short, long, value_enum, value_name = "FORM", default_value_t)]
    pub(super) output: Output,
}

impl PlanShape {
    /// Shows an adoption's plan.
    pub(super) fn show(&self, plan: &Plan, context: &mut Context<'_>) -> Result<(), CommandError> {
        print_plan(plan, self.output, context)
    }
}

/// Prints another plan as data.
pub(super) fn show_json(
    plan: &impl serde::Serialize,
    output: Output,
    context: &mut Context<'_>,
) -> Result<(), CommandError> {
    let json = serde_json::to_string(plan).map_err(CommandError::new)?;
    print_data(json, output, context)
}

/// What a plan may do.
#[derive(Debug, Args)]
#[command(next_help_heading = "Consent")]
pub(super) struct Consent {
    /// Accept exactly the plan with this digest
    #[arg(long, value_name = "DIGEST")]
    pub(super) accept_plan: Option<String>,
    /// Do not ask before it begins
    #[arg(short, long)]
    pub(super) yes: bool,
}

impl Consent {
    /// Whether what a plan asks for was given, and to this plan.
    pub(super) fn check(&self, digest: &str, needed: &[plan::Consent]) -> Result<(), CommandError> {
        match (&self.accept_plan, needed.first()) {
            (Some(given), _) if given != digest => Err(no(
                format_args!("the consent is to another plan: {given}, and this one is {digest}"),
                "look at the plan again; something changed in between",
            )),
            (None, Some(needed)) => Err(no(
                format_args!("consent is missing: {}", needed.why),
                format!("to accept exactly this plan, give --accept-plan={digest}"),
            )),
            _ => Ok(()),
        }
    }
}

/// An error whose answer is no: nothing was written.
pub(super) fn refused(error: &(dyn std::error::Error + 'static)) -> CommandError {
    let mut result = CommandError::new(error_chain(error)).hint("nothing was written");
    result.exit = Exit::No;
    result
}

/// Says something. Whoever reads a plan as data gets nothing else on standard output.
pub(super) fn tell(
    output: Output,
    text: &str,
    context: &mut Context<'_>,
) -> Result<(), CommandError> {
    match output {
        Output::Table => context.ui.result(text),
        Output::Json | Output::Yaml => {
            context.ui.warning(text.trim_end());
            Ok(())
        }
    }
}
