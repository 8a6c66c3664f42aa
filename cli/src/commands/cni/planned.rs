//! What commands share that show a plan, ask for consent to it, and carry it out.

use clap::Args;
use goyaml::Limits;
use takeover::plan::{self, Look, Plan, to_terminal, to_text};

use super::shared::no;
use crate::commands::Context;
use crate::error::CommandError;
use crate::output::Output;

/// Columns where the environment names none.
const WIDTH: usize = 100;

/// How a plan is shown.
#[derive(Debug, Args)]
pub(crate) struct PlanShape {
    /// Only show what would be done
    #[arg(long)]
    pub(crate) plan: bool,
    /// Form of the plan
    #[arg(short, long, value_enum, value_name = "FORM", default_value_t)]
    pub(crate) output: Output,
}

/// Prints another plan as data.
pub(crate) fn show_json(
    plan: &impl serde::Serialize,
    output: Output,
    context: &mut Context<'_>,
) -> Result<(), CommandError> {
    let json = serde_json::to_string(plan).map_err(CommandError::new)?;
    print_data(json, output, context)
}

/// Prints a plan.
fn print_plan(plan: &Plan, output: Output, context: &mut Context<'_>) -> Result<(), CommandError> {
    if output == Output::Table {
        return context.ui.result(to_text(plan, context.global.verbose));
    }
    let json = plan.to_json().map_err(CommandError::new)?;
    print_data(json, output, context)
}

/// Prints JSON as it is, or as YAML.
fn print_data(json: String, output: Output, context: &mut Context<'_>) -> Result<(), CommandError> {
    if output != Output::Yaml {
        return context.ui.result(json + "\n");
    }
    let value =
        goyaml::json::from_json(json.as_bytes(), &Limits::default()).map_err(CommandError::new)?;
    context.ui.result(goyaml::to_yaml(&value).map_err(CommandError::new)?)
}

/// Which leaves of a plan are shown.
#[derive(Debug, Default, Args)]
pub(crate) struct LeafFlags {
    /// Show every leaf, those of controllers and the server too
    #[arg(long)]
    show_all: bool,
    /// The command, word by word and without consents, where a plan does not know it whole.
    #[arg(skip)]
    pub(super) typed: Vec<String>,
}

impl LeafFlags {
    /// Prints a plan of a takeover.
    pub(crate) fn show(
        &self,
        plan: &Plan,
        output: Output,
        context: &mut Context<'_>,
    ) -> Result<(), CommandError> {
        if !matches!(output, Output::Table) {
            return print_plan(plan, output, context);
        }
        let columns = context.environment.text("COLUMNS").and_then(|text| text.parse().ok());
        let look = Look {
            all: self.show_all || context.global.verbose,
            colour: context.ui.has_colour(),
            width: columns.unwrap_or(WIDTH),
            typed: &self.typed,
        };
        context.ui.result(to_terminal(plan, look))
    }
}

/// What a plan may do.
#[derive(Debug, Args)]
#[command(next_help_heading = "Consent")]
pub(crate) struct Consent {
    /// Accept exactly the plan with this digest
    #[arg(long, alias = "digest", value_name = "DIGEST")]
    pub(crate) accept_plan: Option<String>,
    /// Do not ask before it begins
    #[arg(short, long)]
    pub(crate) yes: bool,
}

impl Consent {
    /// Whether what a plan asks for was given, and to this plan.
    pub(crate) fn check(&self, digest: &str, needed: &[plan::Consent]) -> Result<(), CommandError> {
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
