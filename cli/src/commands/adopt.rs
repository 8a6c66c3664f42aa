//! `ichor adopt`: a running cluster comes under ichor.

use clap::Args;
use takeover::plan::{Outcome, Plan};

use super::cni::shared::{ConsentFlags, PlanFlags, account, no, print_plan, run_error};
use crate::commands::Context;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::output::Output;

#[derive(Debug, Args)]
#[command(
    after_help = concat!(
        "Shows what will be done, and does it with --yes. Nothing is deleted but the records of the\n",
        "release before, after a backup that was read back and compared.\n\n",
        "Examples:\n",
        "  ichor adopt --cilium-only --plan\n",
        "  ichor adopt --cilium-only --yes\n",
        "  ichor adopt --cilium-only --accept-cilium-diff=sha256:… --yes\n\n",
        "Exit codes:\n",
        "  0  done, or nothing to do\n",
        "  1  it failed; run it again to go on\n",
        "  2  the answer is no: refused, or consent is missing; nothing was written"
    )
)]
pub(crate) struct Arguments {
    /// Take over the running Cilium, and nothing else
    #[arg(long, required = true)]
    cilium_only: bool,
    /// Only show what would be done
    #[arg(long)]
    plan: bool,
    /// Begin without asking
    #[arg(short, long)]
    yes: bool,
    #[command(flatten)]
    flags: PlanFlags,
    #[command(flatten)]
    consent: ConsentFlags,
    /// Form of the plan
    #[arg(short, long, value_enum, value_name = "FORM", default_value_t)]
    output: Output,
}

pub(crate) fn run(arguments: Arguments, context: &mut Context<'_>) -> Result<Exit, CommandError> {
    let work = arguments.flags.work(context)?;
    let prepared = arguments.flags.plan(&work, context)?;
    let plan = &prepared.plan;
    print_plan(plan, arguments.output, context)?;
    if arguments.plan {
        let asks = plan.is_refused() || !plan.consent.is_empty();
        return Ok(if asks { Exit::No } else { Exit::Done });
    }
    if plan.outcome == Outcome::Nothing {
        return Ok(Exit::Done);
    }
    // A takeover that was begun is finished by its own, stored plan.
    let digest = if plan.outcome == Outcome::Resume {
        None
    } else {
        if plan.is_refused() {
            return Ok(Exit::No);
        }
        check_consent(plan, &arguments.consent, context)?;
        Some(plan.digest.clone())
    };
    if !arguments.yes {
        return Err(no("nothing was written", "to begin, give --yes as well"));
    }
    let (result, _) = arguments.flags.carry_out(&work, &arguments.consent, digest, context)?;
    let done = result.map_err(|error| run_error(&error))?;
    context.ui.result(account(&done))?;
    Ok(Exit::Done)
}

/// Whether the consent that the plan asks for was given, and to this plan.
fn check_consent(
    plan: &Plan,
    consent: &ConsentFlags,
    context: &Context<'_>,
) -> Result<(), CommandError> {
    for needed in &plan.consent {
        if needed.flag == "--accept-cilium-changes" {
            if !consent.accept_cilium_changes {
                let message = format!("consent is missing: {}", needed.why);
                return Err(no(message, "to accept it, give --accept-cilium-changes"));
            }
            continue;
        }
        let exact = format!("--accept-cilium-diff={}", plan.digest);
        match consent.accept_cilium_diff.as_deref() {
            None => {
                let message = format!("consent is missing: {}", needed.why);
                return Err(no(message, format!("to accept exactly this plan, give {exact}")));
            }
            Some("") if !context.environment.is_terminal() => {
                return Err(no(
                    "consent is missing: nobody saw this plan, since this is no terminal",
                    format!("to accept exactly this plan, give {exact}"),
                ));
            }
            _ => {}
        }
    }
    if let Some(given) = consent.accept_cilium_diff.as_deref().filter(|given| !given.is_empty())
        && given != plan.digest
    {
        return Err(no(
            format_args!("the consent is to another plan: {given}, and this one is {}", plan.digest),
            "look at the plan again; something changed in between",
        ));
    }
    Ok(())
}
