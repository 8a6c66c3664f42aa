//! `ichor cni restore`: back to how it was before the takeover. What it has in common with `ichor release
//! restore` is here.

use clap::Args;
use helm_rs::error_chain;
use helm_rs::render::{Engine, EngineOptions};
use takeover::access::Purpose;
use takeover::place::{CILIUM, Place};
use takeover::plan;
use takeover::run::restore::{
    LeafBack, Restore, RestoreError, RestorePlan, Restored, plan_restore_at, restore_at,
};

use super::ask::confirm;
use super::place::PlaceFlags;
use super::planned::{Consent, PlanShape, show_json};
use super::shared::holder;
use super::trouble::{reading_error, server_error};
use crate::commands::Context;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::output::Output;
use crate::session::Host;

/// Leaves that are shown; more are counted.
const SHOWN: usize = 200;

#[derive(Debug, Args)]
#[command(
    about = "Put the foreign records back and give the objects their former owner and leaves",
    after_help = concat!(
        "Shows what will be done, asks whether to go on, and does it. Where nobody can be asked (no\n",
        "terminal), it takes --yes. Leaves that the takeover changed get their former values where\n",
        "nobody changed them since; pods restart for it where the plan says so. One that was killed is\n",
        "finished by the next one.\n\n",
        "Examples:\n",
        "  ichor cni restore                               # asks before it begins\n",
        "  ichor cni restore --plan\n",
        "  ichor cni restore --keep-leaves --yes           # records and ownership alone\n\n",
        "Exit codes:\n",
        "  0  restored\n",
        "  1  it failed; run it again to go on\n",
        "  2  the answer is no: refused, a right is missing, or nobody said yes; nothing was written\n",
        "     but the lock"
    )
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    restore: RestoreFlags,
    #[command(flatten)]
    place: PlaceFlags,
}

/// What both restores take.
#[derive(Debug, Args)]
pub(crate) struct RestoreFlags {
    /// Leave what was changed in objects as it is
    #[arg(long)]
    keep_leaves: bool,
    #[command(flatten)]
    pub(crate) shape: PlanShape,
    #[command(flatten)]
    consent: Consent,
}

pub(crate) fn run(arguments: &Arguments, context: &mut Context<'_>) -> Result<Exit, CommandError> {
    let (place, flags) = (&arguments.place, &arguments.restore);
    let engine = Engine::new(EngineOptions::default());
    let host = place.open(context)?;
    if let Some(about) = place.about(&host) {
        flags.shape.output.tell(&(about.headline() + ".\n"), context)?;
    }
    let (plan, _) = host.look(context, &engine, async |session| {
        plan_restore_at(&CILIUM, &*session.cluster, flags.keep_leaves).await
    })?;
    let plan = plan.map_err(|error| reading_error(&error, Purpose::Status, place, context))?;
    let see = "; see `ichor cni status`";
    flags.carry_out(&CILIUM, &plan, (&host, &engine), see, context)
}

impl RestoreFlags {
    /// Whether leaves that were changed stay.
    #[cfg(feature = "network")]
    pub(crate) const fn keep_leaves(&self) -> bool {
        self.keep_leaves
    }

    /// Shows a plan, asks, and carries it out. `see` is what the hint of an error names besides.
    pub(crate) fn carry_out(
        &self,
        place: &Place,
        plan: &RestorePlan,
        (host, engine): (&Host, &Engine),
        see: &str,
        context: &mut Context<'_>,
    ) -> Result<Exit, CommandError> {
        match self.shape.output {
            Output::Table => context.ui.result(account(plan))?,
            output => show_json(plan, output, context)?,
        }
        if !plan.refusals.is_empty() {
            return Ok(Exit::No);
        }
        if self.shape.plan {
            return Ok(if plan.asks() { Exit::No } else { Exit::Done });
        }
        self.consent.check(&plan.digest, &needed(plan))?;
        confirm("Put it back?", self.consent.yes, context)?;
        let holder = holder(context.environment)?;
        let (done, _) = host.run(context, engine, async |session| {
            let restore = Restore {
                place,
                keep_leaves: self.keep_leaves,
                digest: Some(&plan.digest),
                holder: &holder,
                observer: session.observer,
                cancel: session.cancel,
            };
            restore_at(&restore, &session.cluster, session.clock).await
        })?;
        let done = done.map_err(|error| restore_error(&error, see))?;
        self.shape.output.tell(&done_text(plan, &done), context)?;
        Ok(Exit::Done)
    }
}

/// What needs a consent by name: objects that changed since.
fn needed(plan: &RestorePlan) -> Vec<plan::Consent> {
    let (count, undoes) = (plan.changed.len(), &plan.undoes);
    let why = format!("{count} object(s) changed since the {undoes}, as listed");
    if plan.asks() {
        vec![plan::Consent { flag: "--accept-plan".to_owned(), why }]
    } else {
        Vec::new()
    }
}

/// What was done, for people.
fn done_text(plan: &RestorePlan, done: &Restored) -> String {
    // In the words of the plan. An owner that is the same before and after takes no write.
    let mut text = format!(
        "Restored: {} record(s) are back, {} object(s) have their former owner ({} had to be written \
         for it), {} leaves have their former values, {} record(s) of ichor's are backed up and \
         deleted.\n",
        done.records.len(),
        plan.objects.len(),
        done.objects,
        done.leaves,
        done.own.deleted.len()
    );
    for workload in &plan.restarts {
        text.push_str(&format!("Its pods restart now: {workload}\n"));
    }
    if plan.earlier > 0 {
        text.push_str("What was done under this name before can be undone by the next restore.\n");
    }
    text
}

/// A restore's error as the command's. `see` is what else the hint names.
fn restore_error(error: &RestoreError, see: &str) -> CommandError {
    let mut result = CommandError::new(error_chain(error));
    if error.is_refusal() {
        result.exit = Exit::No;
        return result;
    }
    let first = server_error(error).hint.map_or_else(String::new, |hint| format!("{hint}; then "));
    result.hint(format!("{first}run it again to go on{see}"))
}

/// What would be done, for people.
fn account(plan: &RestorePlan) -> String {
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
    let undoes = &plan.undoes;
    let lists = [
        (String::from("Leaves that get their former values"), leaves(&plan.leaves)),
        (String::from("Pods restart"), plan.restarts.clone()),
        (
            format!("Changed by the {undoes}, and left as it is"),
            plan.left
                .iter()
                .map(|leaf| format!("{}  {}: {}", leaf.object, leaf.path, leaf.why))
                .collect(),
        ),
        (
            format!("Created by the {undoes}, and left: delete what nothing needs"),
            plan.created.clone(),
        ),
        (format!("Changed since the {undoes}; what somebody changed stays"), plan.changed.clone()),
    ];
    for (title, items) in lists.iter().filter(|(_, items)| !items.is_empty()) {
        text.push_str(&format!("{title}:\n"));
        for item in items.iter().take(SHOWN) {
            text.push_str(&format!("  {item}\n"));
        }
        if items.len() > SHOWN {
            text.push_str(&format!("  and {} more (--output json)\n", items.len() - SHOWN));
        }
    }
    text.push_str(&format!("Digest  {}\n", plan.digest));
    text
}

fn leaves(leaves: &[LeafBack]) -> Vec<String> {
    let shown = |value: &Option<serde_json::Value>| {
        value.as_ref().map_or_else(|| "nothing".to_owned(), ToString::to_string)
    };
    let told = |leaf: &LeafBack| {
        let (live, former) = (shown(&leaf.live), shown(&leaf.former));
        format!("{}  {}: {live} → {former}", leaf.object, leaf.path)
    };
    leaves.iter().map(told).collect()
}
