//! `ichor cni status`: whose the running Cilium is, and where a takeover stands.

#[cfg(feature = "controller")]
use api::MANAGED_NAME;
use clap::Args;
use goyaml::{Limits, Value};
use helm_rs::error_chain;
use helm_rs::render::{Engine, EngineOptions};
use serde_json::json;
use takeover::access::Purpose;
use takeover::plan::{Figures, Plan, RehearsalAbout};
use takeover::run::status::{RecordState, State, Status, status};

use super::place::PlaceFlags;
use super::shared::{PlanFlags, Work};
use super::trouble::reading_error;
use crate::commands::Context;
#[cfg(feature = "controller")]
use crate::commands::managed::Managed;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::output::{Output, write_structured};

#[derive(Debug, Args)]
#[command(after_help = concat!(
    "Writes nothing. It looks at records, lock, stored plan, backups (each against its own digest),\n",
    "ownership and the objects themselves. States:\n",
    "  notBegun      Cilium is not ichor's; whether a takeover would be refused is told\n",
    "  begun         a takeover stopped in the middle; what to run is told\n",
    "  done          taken over, and nothing is missing\n",
    "  incomplete    taken over, but an object, its ownership, a record or a backup is missing\n",
    "  restoreBegun  a restore stopped in the middle\n",
    "  restored      it was taken over, and given back\n\n",
    "Examples:\n",
    "  ichor cni status\n",
    "  ichor cni status --output json | jq -r .state\n\n",
    "Exit codes:\n",
    "  0  notBegun (and it could be), done, restored, with nothing missing\n",
    "  1  it cannot be told: no answer, or one that does not read\n",
    "  2  the answer is no: begun, restoreBegun, incomplete; a takeover is refused now; a right to\n",
    "     look is missing"
))]
pub(crate) struct Arguments {
    /// Form of the result
    #[arg(short, long, value_enum, value_name = "FORM", default_value_t)]
    output: Output,
    #[command(flatten)]
    place: PlaceFlags,
}

pub(crate) fn run(arguments: Arguments, context: &mut Context<'_>) -> Result<Exit, CommandError> {
    let Arguments { output, place } = arguments;
    let host = place.open(context)?;
    let engine = Engine::new(EngineOptions::default());
    let (found, _) = host
        .look(context, &engine, async |session| status(&*session.cluster, session.clock).await)?;
    #[cfg_attr(not(feature = "controller"), expect(unused_mut, reason = "as with a controller"))]
    let mut status =
        found.map_err(|error| reading_error(&error, Purpose::Status, &place, context))?;
    let rehearsal = place.about(&host);
    #[cfg(feature = "controller")]
    let managed = crate::commands::managed::look(&host, context).unwrap_or_default();
    #[cfg(feature = "controller")]
    beside(&managed, &mut status);
    drop(host);
    // Where a takeover stands is told even when nothing can be planned.
    let flags = PlanFlags::of(place);
    let plan = flags.work(context).and_then(|work| flags.plan(&work, context));
    let plan = plan.map(|prepared| prepared.plan);
    #[cfg_attr(not(feature = "controller"), expect(unused_mut, reason = "as with a controller"))]
    let mut data = data(&status, &plan, rehearsal.as_ref())?;
    let mut text = rehearsal.map_or_else(String::new, |about| about.headline() + ".\n");
    text.push_str(&account(&status, &plan));
    #[cfg(feature = "controller")]
    {
        text.push_str(&managed.lines());
        if let Some(map) = data.as_map_mut() {
            map.insert("managed", managed.data()?);
        }
    }
    write_structured(context.ui, output, &data, text.as_bytes())?;
    let refused = plan.as_ref().is_ok_and(Plan::is_refused) && status.state == State::NotBegun;
    if !status.is_whole() || refused {
        return Ok(Exit::No);
    }
    // Whose Cilium it is was not seen: that is no answer.
    plan.map(|_| Exit::Done)
}

/// What is to be done where a TalosCluster manages the cluster: what writes from here is refused then.
#[cfg(feature = "controller")]
fn beside(managed: &Managed, status: &mut Status) {
    let acts = managed.acting().is_some();
    let is_begun = status.state == State::Begun;
    for next in &mut status.next {
        if acts && let Some((before, _)) = next.split_once("ichor adopt --cilium-only") {
            let instead = if is_begun {
                "ichor cluster status (the controller goes on with it by itself)"
            } else {
                "ichor adopt --plan, then ichor adopt; ichor cluster status says where the controller \
                 is with it"
            };
            *next = format!("{before}{instead}");
        } else if managed.cluster.is_some() && next.starts_with("ichor cni restore") {
            *next = format!(
                "kubectl delete taloscluster {MANAGED_NAME} (Cilium runs on as it is), then {next}"
            );
        }
    }
}

/// Where a takeover stands on the cluster of some work, for people.
pub(super) fn of_work(
    flags: &PlanFlags,
    work: &Work,
    context: &mut Context<'_>,
) -> Result<String, CommandError> {
    let found = flags
        .look(work, context, async |session| status(&*session.cluster, session.clock).await)?;
    let status = found.map_err(|error| CommandError::new(error_chain(&error)))?;
    let plan = flags.plan(work, context).map(|prepared| prepared.plan);
    Ok(account(&status, &plan))
}

/// The status as data, with what was found on the cluster.
fn data(
    status: &Status,
    plan: &Result<Plan, CommandError>,
    rehearsal: Option<&RehearsalAbout>,
) -> Result<Value, CommandError> {
    let mut data = serde_json::to_value(status).map_err(CommandError::new)?;
    if let Some(about) = rehearsal {
        data["rehearsal"] = serde_json::to_value(about).map_err(CommandError::new)?;
    }
    match plan {
        Ok(plan) => {
            data["found"] = serde_json::to_value(&plan.found).map_err(CommandError::new)?;
            data["refusals"] = serde_json::to_value(&plan.refusals).map_err(CommandError::new)?;
            if !plan.digest.is_empty() {
                let Figures { differences, residue, creations, .. } = plan.figures();
                data["againstTheChart"] = json!({
                    "differences": differences, "residue": residue, "creations": creations,
                });
            }
        }
        Err(error) => data["notFound"] = why(error).into(),
    }
    goyaml::json::from_json(data.to_string().as_bytes(), &Limits::default())
        .map_err(CommandError::new)
}

fn why(error: &CommandError) -> String {
    String::from_utf8_lossy(error.message.as_deref().unwrap_or_default()).into_owned()
}

/// The status for people: state and what to do first, then what that rests on.
fn account(status: &Status, plan: &Result<Plan, CommandError>) -> String {
    let mut lines = Vec::new();
    let mut line = |label: &str, text: String| lines.push(format!("{label}: {text}\n"));
    if let Ok(plan) = plan {
        line("cni", format!("{} {}", plan.found.cni, plan.found.version).trim().to_owned());
        line("comes from", plan.found.provenance.clone());
    }
    line("state", state(status, plan.as_ref().ok()));
    for problem in &status.problems {
        line("missing", problem.clone());
    }
    for next in &status.next {
        line("next", next.clone());
    }
    // What is live alone stays: that was consented to, or is nothing that an upgrade takes away.
    let has_drifted = |plan: &Plan| {
        let figures = plan.figures();
        !plan.is_refused() && (figures.differences, figures.creations) != (0, 0)
    };
    if status.state == State::Done && plan.as_ref().is_ok_and(has_drifted) {
        line("changed since", DRIFT.to_owned());
    }
    match plan {
        Ok(plan) => {
            for refusal in &plan.refusals {
                line(&refusal.reason, refusal.message.clone());
            }
            let figures = plan.figures();
            if !plan.digest.is_empty() {
                line(
                    "against the chart",
                    format!(
                        "{} difference(s), {} residue, {} to create",
                        figures.differences, figures.residue, figures.creations
                    ),
                );
            }
        }
        Err(error) => line("not seen", format!("what runs, since {}", why(error))),
    }
    let facts = &status.facts;
    if let Some(digest) = &facts.digest {
        line("takeover", format!("by plan {digest}"));
    }
    if let Some(own) = &facts.own {
        line("record", format!("ichor's, revision {}, {}", own.revision, own.status));
    }
    for record in &facts.records {
        let state = match record.state {
            RecordState::There => "still there",
            RecordState::Gone => "deleted",
            RecordState::Back => "put back",
            RecordState::Another => "there again, as another object",
            RecordState::Unknown => "not to be seen by this identity",
        };
        let backup = match record.backup.as_str() {
            "" => "in no backup".to_owned(),
            backup => format!("in backup {backup}"),
        };
        line("foreign record", format!("{}, {state}, {backup}", record.record));
    }
    for backup in &facts.backups {
        let whose = if backup.own { " (of ichor's)" } else { "" };
        line(
            "backup",
            format!(
                "Secret ichor-system/{}, {} of {} record(s) whole{whose}",
                backup.name, backup.whole, backup.records
            ),
        );
    }
    if let Some(lock) = &facts.lock {
        let stale = if lock.stale { ", and not since: the next run takes it" } else { "" };
        line("lock", format!("held by {}, renewed at {}{stale}", lock.holder, lock.renewed));
    }
    helm(&mut line, status);
    for left in &facts.left {
        line("not looked at", left.clone());
    }
    for unread in &facts.unread {
        line("not seen", format!("{unread}, which this identity may not read"));
    }
    lines.concat()
}

/// What to do about objects that are not as ichor's record has them.
const DRIFT: &str = "what runs is not what ichor's record renders (`ichor cni plan` shows each leaf); \
    to write it again as it should be: ichor release upgrade cilium cilium-VERSION.tgz -n \
    ichor-system --reset-then-reuse-values (docs/operator.md, \"Changing values afterwards\")";

/// What real Helm sees.
fn helm(line: &mut impl FnMut(&str, String), status: &Status) {
    let facts = &status.facts;
    for release in &facts.releases {
        let driver = if release.kind == "ConfigMap" { " (HELM_DRIVER=configmap)" } else { "" };
        line(
            "helm sees",
            format!(
                "release {} in namespace {}, revision {}, {}{driver}",
                release.name, release.namespace, release.revision, release.status
            ),
        );
    }
    let is_taken_over = matches!(status.state, State::Done | State::Incomplete);
    if is_taken_over && facts.unread.is_empty() && !facts.helm_agrees() {
        line("helm does not agree", "not exactly one deployed release, ichor's".to_owned());
    }
}

fn state(status: &Status, plan: Option<&Plan>) -> String {
    let running = status.facts.lock.as_ref().filter(|_| status.running).map(|lock| {
        // A run that was killed has not released it.
        let age = lock.age.unwrap_or_default();
        format!("; a run may be at work: {} renewed the lock {age} s ago", lock.holder)
    });
    let text = match status.state {
        State::NotBegun => match plan {
            Some(plan) if plan.is_refused() => {
                "not begun: Cilium is not ichor's, and a takeover is refused now".to_owned()
            }
            Some(plan) => format!("not begun: {}", not_begun(plan)),
            None => "not begun".to_owned(),
        },
        State::Begun => format!(
            "begun and not complete: stopped at step {}; {}",
            status.step.unwrap_or_default(),
            status.stopped
        ),
        State::Done => "taken over, and nothing is missing".to_owned(),
        State::Incomplete => "taken over, but something is missing".to_owned(),
        State::RestoreBegun => {
            format!("a restore was begun and is not complete: {}", status.stopped)
        }
        State::Restored => "restored: it was taken over, and given back".to_owned(),
    };
    text + &running.unwrap_or_default()
}

fn not_begun(plan: &Plan) -> &'static str {
    use takeover::plan::Outcome;
    match plan.outcome {
        Outcome::Nothing => "there is nothing to take over",
        Outcome::Install => "there is no CNI, and Cilium can be installed",
        Outcome::Refused => "a takeover is refused now",
        Outcome::Change => "Cilium is ichor's",
        Outcome::TakeOver | Outcome::Upgrade | Outcome::Resume => {
            "Cilium is not ichor's, and can be taken over"
        }
    }
}

#[cfg(all(test, feature = "controller"))]
mod tests {
    use super::*;
    use crate::commands::managed::{Controller, Leader};

    #[test]
    fn beside_a_controller_nothing_is_named_that_is_refused() {
        let object = serde_json::json!({
            "apiVersion": "ichor.maesh.dev/v1alpha1", "kind": "TalosCluster",
            "metadata": { "name": "cluster" }, "spec": { "cni": { "preset": "cilium" } },
        });
        let (name, renewed) = ("one".to_owned(), String::new());
        let leader = Some(Leader { name, renewed, age: Some(1), is_dead: false });
        let mut managed = Managed {
            cluster: serde_json::from_value(object).unwrap(),
            controller: Controller { leader, ..Controller::default() },
        };
        let next = |managed: &Managed, state, next: &str| {
            let mut status = Status { state, next: vec![next.to_owned()], ..Status::default() };
            beside(managed, &mut status);
            status.next.join("\n")
        };
        let plan = "ichor adopt --cilium-only --plan";
        assert!(next(&managed, State::NotBegun, plan).starts_with("ichor adopt --plan"));
        let go_on =
            next(&managed, State::Begun, "ichor adopt --cilium-only --yes (or the Job again)");
        assert!(go_on.starts_with("ichor cluster status"), "{go_on}");
        let back = next(&managed, State::RestoreBegun, "ichor cni restore --yes");
        assert!(back.ends_with("then ichor cni restore --yes"), "{back}");
        // Nobody acts: a takeover from here is not refused.
        managed.controller = Controller::default();
        assert_eq!(next(&managed, State::NotBegun, plan), plan);
        let alone = Managed::default();
        assert_eq!(
            next(&alone, State::RestoreBegun, "ichor cni restore --yes"),
            "ichor cni restore --yes"
        );
    }
}
