//! `ichor cni status`: whose the running Cilium is.

use clap::Args;
use helm_rs::error_chain;
use takeover::plan::Outcome;
use takeover::run::status::{Status, status};

use super::shared::{EXIT_CODES, PlanFlags};
use crate::commands::Context;
use crate::error::CommandError;
use crate::exit::Exit;

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    plan: PlanFlags,
}

pub(crate) fn run(arguments: &Arguments, context: &mut Context<'_>) -> Result<Exit, CommandError> {
    let work = arguments.plan.work(context)?;
    let prepared = arguments.plan.plan(&work, context)?;
    let plan = &prepared.plan;
    let found = &plan.found;
    let mut text = format!("cni: {} {}\n", found.cni, found.version);
    text.push_str(&format!("comes from: {}\n", found.provenance));
    let figures = plan.figures();
    text.push_str(match plan.outcome {
        Outcome::Nothing => "state: ichor's, nothing to take over\n",
        Outcome::Resume => "state: a takeover was begun and is not complete: run it again\n",
        Outcome::Refused => "state: not ichor's, and a takeover is refused now\n",
        Outcome::Install => "state: there is no CNI, Cilium can be installed\n",
        Outcome::TakeOver | Outcome::Upgrade => "state: not ichor's, can be taken over\n",
    });
    if !plan.digest.is_empty() {
        text.push_str(&format!(
            "against the chart: {} difference(s), {} residue, {} to create\n",
            figures.differences, figures.residue, figures.creations
        ));
    }
    let after =
        arguments.plan.session(&work, context, async |session| status(&*session.cluster).await)?;
    text.push_str(&account(&after.map_err(|error| CommandError::new(error_chain(&error)))?));
    for refusal in &plan.refusals {
        text.push_str(&format!("{}: {}\n", refusal.reason, refusal.message));
    }
    context.ui.result(text)?;
    Ok(if plan.is_refused() { Exit::No } else { Exit::Done })
}

/// What a takeover did, what is left, and what real Helm sees.
fn account(status: &Status) -> String {
    let mut text = String::new();
    let Some(digest) = &status.digest else { return text };
    text.push_str(&format!("takeover: by plan {digest}\n"));
    for (name, whole, all) in &status.backups {
        text.push_str(&format!(
            "backup: Secret ichor-system/{name}, {whole} of {all} records whole\n"
        ));
    }
    for record in &status.records {
        text.push_str(&format!("left to do: {record} is still there\n"));
    }
    if let Some((holder, renewed)) = &status.lock {
        text.push_str(&format!("lock: held by {holder}, renewed at {renewed}\n"));
    }
    for release in &status.releases {
        text.push_str(&format!(
            "helm sees: release {} in namespace {}, revision {}, {}{}\n",
            release.name,
            release.namespace,
            release.revision,
            release.status,
            if release.kind == "ConfigMap" { " (HELM_DRIVER=configmap)" } else { "" }
        ));
    }
    for unread in &status.unread {
        text.push_str(&format!("not seen: {unread}, which may not be listed\n"));
    }
    if status.unread.is_empty() {
        text.push_str(if status.helm_agrees() {
            "helm agrees: one deployed release, ichor's\n"
        } else {
            "helm does not agree: not exactly one deployed release, ichor's\n"
        });
    }
    text
}
