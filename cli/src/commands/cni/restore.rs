//! `ichor cni restore`: back to how it was before the takeover.

use clap::Args;
use helm_rs::error_chain;
use helm_rs::render::{Engine, EngineOptions};
use takeover::access::Purpose;
use takeover::run::restore::{RestoreError, RestorePlan, Restored, plan_restore, restore};

use super::ask::confirm;
use super::place::PlaceFlags;
use super::shared::{holder, no};
use super::trouble::{reading_error, server_error};
use crate::commands::Context;
use crate::error::CommandError;
use crate::exit::Exit;

#[derive(Debug, Args)]
#[command(
    about = "Put the foreign records back and give the objects their former owner",
    after_help = concat!(
        "Shows what will be done, asks whether to go on, and does it. Where nobody can be asked (no\n",
        "terminal), it takes --yes. One that was killed is finished by the next one.\n\n",
        "Examples:\n",
        "  ichor cni restore                               # asks before it begins\n",
        "  ichor cni restore --yes\n\n",
        "Exit codes:\n",
        "  0  restored\n",
        "  1  it failed; run it again to go on\n",
        "  2  the answer is no: refused, a right is missing, or nobody said yes; nothing was written\n",
        "     but the lock"
    )
)]
pub(crate) struct Arguments {
    /// Do not ask before it begins
    #[arg(short, long)]
    yes: bool,
    /// Do it although objects changed since: the digest that was told
    #[arg(long, value_name = "DIGEST")]
    digest: Option<String>,
    #[command(flatten)]
    place: PlaceFlags,
}

pub(crate) fn run(arguments: &Arguments, context: &mut Context<'_>) -> Result<Exit, CommandError> {
    let place = &arguments.place;
    let engine = Engine::new(EngineOptions::default());
    let host = place.open(context)?;
    if let Some(about) = place.about(&host) {
        context.ui.result(about.headline() + ".\n")?;
    }
    let (plan, _) =
        host.look(context, &engine, async |session| plan_restore(&*session.cluster).await)?;
    let plan = plan.map_err(|error| reading_error(&error, Purpose::Status, place, context))?;
    context.ui.result(account(&plan))?;
    if !plan.refusals.is_empty() {
        return Ok(Exit::No);
    }
    let digest = arguments.digest.as_deref();
    may(&plan, digest, arguments.yes, context)?;
    let holder = holder(context.environment)?;
    let (done, _) = host.run(context, &engine, async |session| {
        let (cluster, clock) = (&session.cluster, session.clock);
        restore(cluster, clock, &holder, digest, session.observer, session.cancel).await
    })?;
    let done = done.map_err(|error| restore_error(&error, "; see `ichor cni status`"))?;
    context.ui.result(done_text(&done))?;
    Ok(Exit::Done)
}

/// Whether it may begin: objects that changed since need a consent by name, and somebody has to
/// want it.
pub(crate) fn may(
    plan: &RestorePlan,
    digest: Option<&str>,
    yes: bool,
    context: &mut Context<'_>,
) -> Result<(), CommandError> {
    if !plan.changed.is_empty() && digest != Some(plan.digest.as_str()) {
        let count = plan.changed.len();
        let hint = format!("to restore all the same, give --digest={}", plan.digest);
        return Err(no(
            format_args!("refused: {count} object(s) changed since the takeover, as listed"),
            hint,
        ));
    }
    confirm("Put it back?", yes, context)
}

/// What was done, for people.
pub(crate) fn done_text(done: &Restored) -> String {
    format!(
        "Restored: {} record(s) are back, {} object(s) have their former owner, {} record(s) of \
         ichor's are backed up and deleted.\n",
        done.records.len(),
        done.objects,
        done.own.deleted.len()
    )
}

/// A restore's error as the command's. `see` is what else the hint names.
pub(crate) fn restore_error(error: &RestoreError, see: &str) -> CommandError {
    let mut result = CommandError::new(error_chain(error));
    if error.is_refusal() {
        result.exit = Exit::No;
        return result;
    }
    let first = server_error(error).hint.map_or_else(String::new, |hint| format!("{hint}; then "));
    result.hint(format!("{first}run it again to go on{see}"))
}

/// What would be done, for people.
pub(crate) fn account(plan: &RestorePlan) -> String {
    let mut text = String::new();
    for refusal in &plan.refusals {
        text.push_str(&format!("Refused: {refusal}\n"));
    }
    if !plan.refusals.is_empty() {
        return text;
    }
    text.push_str("What happens\n");
    for record in &plan.records {
        text.push_str(&format!("  {record} is put back as it was\n"));
    }
    text.push_str(&format!("  {} object(s) get their former owner\n", plan.objects.len()));
    for record in &plan.own {
        text.push_str(&format!("  {} is backed up, then deleted\n", record.about));
    }
    if !plan.versions.is_empty() {
        text.push_str(&format!("  {}\n", plan.versions));
    }
    if !plan.changed.is_empty() {
        text.push_str("Changed since the takeover, and left as it is:\n");
        for object in &plan.changed {
            text.push_str(&format!("  {object}\n"));
        }
    }
    text
}
