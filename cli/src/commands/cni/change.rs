//! A change of ichor's own release of Cilium, planned, consented to, and made: by the controller,
//! for which it is written into the TalosCluster, or from here.

use std::time::Duration;

use api::{ConditionStatus, KubeProxy, MANAGED_NAME, TalosCluster, annotation, reason, type_};
use cilium::kube_proxy::Replacement;
use clap::Args;
use goyaml::{Limits, Map};
use serde_json::Value;
use takeover::job;
use takeover::plan::{Outcome, Plan, Prepared, WhoWrites};

use super::account::account;
use super::ask::confirm;
use super::ordered::ordered;
use super::place::PlaceFlags;
use super::report::ReportFlags;
use super::shared::{Change, ConsentFlags, PlanFlags, Work, no, run_error};
use super::{plan, rights};
use crate::commands::Context;
use crate::commands::adopt::check_consent;
use crate::commands::managed::wait::{Goal, until};
use crate::commands::managed::write::{self, write_error};
use crate::commands::managed::{Managed, is_handed_over, look, until_available};
use crate::error::CommandError;
use crate::exit::Exit;
use crate::flags;
use crate::output::Output;

/// What every change takes.
#[derive(Debug, Args)]
pub(super) struct ChangeArguments {
    /// Only show what would be done
    #[arg(long)]
    plan: bool,
    /// Do not ask before it begins
    #[arg(short, long)]
    yes: bool,
    /// Form of the plan
    #[arg(short, long, value_enum, value_name = "FORM", default_value_t)]
    output: Output,
    /// With a controller: how long it may take to be there, and then to make the change
    #[arg(long, value_name = "DURATION", default_value = "15m0s")]
    wait_timeout: String,
    #[command(flatten)]
    pub(super) place: PlaceFlags,
    #[command(flatten)]
    consent: ConsentFlags,
    #[command(flatten)]
    pub(super) report: ReportFlags,
}

/// What is to be changed.
pub(super) enum Wish<'a> {
    /// The values that are asked for, out of those that were asked for last.
    Values(&'a dyn Fn(&Map) -> Map),
    /// The pinned chart.
    Upgrade,
}

/// Where the values that are asked for lie.
struct Asked {
    /// Those that are asked for now.
    values: Map,
    /// The TalosCluster as it was looked at; none where no controller looks after the release.
    live: Option<(TalosCluster, Value)>,
}

/// Plans, asks, and makes a change.
pub(super) fn change(
    arguments: ChangeArguments,
    wish: &Wish<'_>,
    context: &mut Context<'_>,
) -> Result<Exit, CommandError> {
    context.ui.outlive_reader();
    let limit = flags::duration("wait-timeout", &arguments.wait_timeout)?;
    arguments.consent.timeout()?;
    if arguments.place.is_rehearsal() {
        return Err(CommandError::new(
            "a change is not rehearsed on a snapshot: leave --snapshot out",
        ));
    }
    let ChangeArguments { plan: only_plan, yes, output, place, consent, report, .. } = arguments;
    let mut flags = PlanFlags::of(place);
    report.check(&flags)?;
    let mut work = flags.work(context)?;
    let asked = asked(&flags, &work, context)?;
    let values = match wish {
        Wish::Values(of) => of(&asked.values),
        Wish::Upgrade => asked.values.clone(),
    };
    flags.change = Some(the_change(wish, asked.live.as_ref().map(|(cluster, _)| cluster), &work));
    if asked.live.is_some() {
        flags.who_writes = WhoWrites::Granted(job::subject());
    }
    work.ask_for(values.clone());
    let prepared = flags.plan(&work, context)?;
    report.show(&prepared.plan, output, context)?;
    if only_plan {
        return Ok(plan::exit(&prepared.plan));
    }
    if prepared.plan.is_refused() {
        return Ok(Exit::No);
    }
    let is_nothing = prepared.plan.outcome == Outcome::Nothing;
    let order = asked.live.as_ref().map(|(_, live)| order(wish, live, &values, &prepared.plan));
    let order = order.transpose()?;
    if is_nothing && order.as_ref().is_none_or(|order| order.values.is_none()) {
        return Ok(Exit::Done);
    }
    let begun = match &asked.live {
        None => begun(&flags, &work, context)?,
        // The Job knows itself what it began.
        Some(_) => None,
    };
    let begun = begun.filter(|begun| consent.digest().is_none_or(|given| given == begun));
    if let Some(begun) = begun {
        context.ui.warning(format!(
            "A change was begun and is not complete. It is finished by the plan that was consented to \
             then, {begun}, of which the one above is what is left."
        ));
        confirm("Finish it?", yes, context)?;
        let (done, heard) = flags.carry_out(&work, &consent, Some(begun), context)?;
        let done = done.map_err(|error| run_error(&error, &heard))?;
        tell(output, &account(&done), context)?;
        return Ok(Exit::Done);
    }
    if !is_nothing {
        check_consent(&prepared.plan, &consent, yes, context)?;
    }
    confirm("Carry this plan out?", yes, context)?;
    if let (Some(order), Some((_, live))) = (order, &asked.live) {
        let wanted = Ordered { order, live, prepared: &prepared, goal: goal(wish), limit };
        let message = by_controller(&mut flags, &work, wanted, context)?;
        return tell(output, &format!("Done. {message}\n"), context).map(|()| Exit::Done);
    }
    let digest = Some(prepared.plan.digest.clone());
    let (done, heard) = flags.carry_out(&work, &consent, digest, context)?;
    let done = done.map_err(|error| run_error(&error, &heard))?;
    tell(output, &account(&done), context)?;
    Ok(Exit::Done)
}

/// The digest of the plan of a change that was begun from here, asks for the same, and stopped.
fn begun(
    flags: &PlanFlags,
    work: &Work,
    context: &mut Context<'_>,
) -> Result<Option<String>, CommandError> {
    let Some(change) = flags.change else { return Ok(None) };
    let found = flags.look(work, context, async |session| {
        takeover::change::begun(&flags.change_request(change, work, session)).await
    })?;
    found.map_err(|error| flags.plan_error(&error, context))
}

/// A result, or a line beside it where standard output is the plan as data.
fn tell(output: Output, text: &str, context: &mut Context<'_>) -> Result<(), CommandError> {
    if output == Output::Table {
        return context.ui.result(text);
    }
    context.ui.warning(text.trim_end());
    Ok(())
}

/// What is asked for now: by the TalosCluster where there is one, else by the last change.
fn asked(flags: &PlanFlags, work: &Work, context: &mut Context<'_>) -> Result<Asked, CommandError> {
    let host = flags.host(work, context)?;
    host.tell_progress();
    let Managed { cluster, .. } = look(host, context)?;
    let Some(cluster) = cluster else {
        let found = flags.look(work, context, async |session| {
            takeover::change::asked(&*session.cluster).await
        })?;
        let found = found.map_err(|error| super::trouble::server_error(&error))?;
        return Ok(Asked { values: table(&found)?, live: None });
    };
    if !is_handed_over(&cluster) {
        return Err(no(
            "refused: the hand-over of this cluster's Cilium is not complete",
            "`ichor cluster status` says where it stands; `ichor adopt` goes on with it",
        ));
    }
    let live = flags.look(work, context, async |session| write::read(&*session.cluster).await)?;
    let live = live.map_err(|error| write_error(&error))?.ok_or_else(|| {
        CommandError::new(format_args!("TalosCluster {MANAGED_NAME} is gone")).hint("try again")
    })?;
    let values = live.pointer("/spec/cni/cilium/values").cloned().unwrap_or_default();
    Ok(Asked { values: table(&values)?, live: Some((cluster, live)) })
}

fn table(values: &Value) -> Result<Map, CommandError> {
    if values.is_null() {
        return Ok(Map::new());
    }
    match goyaml::json::from_json(values.to_string().as_bytes(), &Limits::default()) {
        Ok(goyaml::Value::Map(map)) => Ok(map),
        Ok(_) => Err(CommandError::new("the values that were asked for last are no table")),
        Err(error) => Err(CommandError::new(error)),
    }
}

/// What the Job would be asked for beside the values, so that its plan is this one.
fn the_change(wish: &Wish<'_>, cluster: Option<&TalosCluster>, work: &Work) -> Change {
    let asked_for = cluster.and_then(|cluster| cluster.annotation(annotation::UPGRADE_TO));
    let is_asked_for =
        asked_for.is_some_and(|version| version.trim_start_matches('v') == work.version());
    let kube_proxy = cluster.and_then(|cluster| cluster.spec.cni.kube_proxy);
    Change {
        upgrade: matches!(wish, Wish::Upgrade) || is_asked_for,
        kube_proxy: kube_proxy.map(|state| match state {
            KubeProxy::Enabled => Replacement::Off,
            KubeProxy::Replaced => Replacement::On,
        }),
    }
}

/// What is written into the TalosCluster.
fn order(
    wish: &Wish<'_>,
    live: &Value,
    values: &Map,
    plan: &Plan,
) -> Result<write::Change, CommandError> {
    let text = goyaml::json::to_json(&goyaml::Value::Map(values.clone()));
    let values: Value =
        serde_json::from_str(&text.map_err(CommandError::new)?).map_err(CommandError::new)?;
    let empty = Value::Object(serde_json::Map::new());
    let before = live.pointer("/spec/cni/cilium/values").unwrap_or(&empty);
    let mut order = write::Change {
        values: (*before != values).then_some(values),
        // A digest of another plan would be a consent that does not fit.
        annotations: vec![(annotation::ACCEPTED_PLAN, plan.digest.clone())],
    };
    if matches!(wish, Wish::Upgrade) {
        order.annotations.push((annotation::UPGRADE_TO, plan.chart.version.clone()));
    }
    Ok(order)
}

/// What is waited for.
fn goal(wish: &Wish<'_>) -> Goal {
    let consent = "something changed since the plan: run it again, and look at the plan again";
    match wish {
        Wish::Values(_) => Goal {
            type_: type_::VALUES_APPLIED,
            is_done: |condition| condition.status == ConditionStatus::True,
            generation: 0,
            what: "the change",
            consent,
        },
        Wish::Upgrade => Goal {
            type_: type_::CILIUM_UPGRADE_AVAILABLE,
            is_done: |condition| condition.reason == reason::UP_TO_DATE,
            generation: 0,
            what: "the upgrade",
            consent,
        },
    }
}

/// A change that the controller is to make.
struct Ordered<'a> {
    order: write::Change,
    live: &'a Value,
    prepared: &'a Prepared,
    goal: Goal,
    limit: Duration,
}

/// Has the controller make it, and waits.
fn by_controller(
    flags: &mut PlanFlags,
    work: &Work,
    wanted: Ordered<'_>,
    context: &mut Context<'_>,
) -> Result<String, CommandError> {
    let Ordered { order, live, prepared, mut goal, limit } = wanted;
    flags.session(work, context, async |session| until_available(session, limit).await)??;
    rights::grant(flags, work, prepared, context)?;
    let written = flags
        .session(work, context, async |session| ordered(&*session.cluster, live, &order).await)?;
    let written = written.map_err(|error| error.told())?;
    context.ui.note(format!("TalosCluster {MANAGED_NAME} is written"));
    // What was said of an earlier spec, which may be somebody else's, is no answer.
    goal.generation = written.metadata.generation.unwrap_or_default();
    flags.session(work, context, async |session| until(session, goal, limit).await)?
}
