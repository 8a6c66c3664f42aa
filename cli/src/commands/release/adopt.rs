//! `ichor release adopt`: a release made of objects that another release holds, or none.

use std::sync::Arc;

use clap::Args;
use goyaml::Map;
use helm_rs::action::Session;
use helm_rs::chart::Chart;
use helm_rs::error_chain;
use helm_rs::render::{Engine, EngineOptions};
use takeover::adopt::{From, Request, chart_digest, prepare};
use takeover::place::{Deed, Place};
use takeover::plan::{DryRuns, Plan, RELEASE_SCHEMA_VERSION};
use takeover::run::{Done, LeftOver, Run, RunError, left_over_at, take_over};

use super::planned::refused;
use super::write::Host;
use crate::commands::Context;
use crate::commands::chart::options::{LimitFlags, ValueFlags, check_chart};
use crate::commands::chart::source::ChartFlags;
use crate::commands::cni::ask::confirm;
use crate::commands::cni::planned::{Consent, LeafFlags, PlanShape};
use crate::commands::cni::shared::{holder, no, random};
use crate::commands::cni::trouble::server_error;
use crate::connection::{ClusterFlags, record_kind};
use crate::error::CommandError;
use crate::exit::Exit;
use crate::flags;

#[derive(Debug, Args)]
#[command(
    override_usage = "ichor release adopt NAME CHART [OPTIONS]",
    after_help = concat!(
        "Makes release NAME of objects that are there: those of another release (--from-release,\n",
        "whoever made it), or those that were applied without one. Every leaf that would change is\n",
        "shown first; nothing is deleted but the records of the release before, after a backup that\n",
        "was read back and compared. Values are those that are given, else those of that release.\n",
        "Hooks do not run. `ichor release restore NAME` gives records,\n",
        "ownership and leaves back.\n\n",
        "Examples:\n",
        "  ichor release adopt web ./my-chart -n shop --from-release old-web --plan\n",
        "  ichor release adopt web ./my-chart -n shop -f values.yaml --plan   # applied, no release\n",
        "  ichor release adopt web ./my-chart -n shop --accept-plan=sha256:… --yes\n\n",
        "Exit codes:\n",
        "  0  done, or nothing to do\n",
        "  1  it failed; run it again to go on\n",
        "  2  the answer is no: refused, or consent is missing; nothing was written"
    )
)]
pub(crate) struct Arguments {
    /// Name of the release that is made
    #[arg(value_parser = flags::release_name)]
    name: String,
    /// The chart: a folder, an archive, REPOSITORY/CHART, an address, or the name of a pinned chart
    chart: String,
    /// Release that holds the objects now; none for objects that were applied without one
    #[arg(long, value_name = "NAME", value_parser = flags::release_name)]
    from_release: Option<String>,
    /// Namespace of its records [default: that of the release that is made]
    #[arg(
        long,
        value_name = "NAMESPACE",
        requires = "from_release",
        value_parser = flags::namespace
    )]
    from_namespace: Option<String>,
    /// How long the rollout may take
    #[arg(long, value_name = "DURATION", default_value = "10m0s")]
    timeout: String,
    #[command(flatten)]
    shape: PlanShape,
    #[command(flatten)]
    leaves: LeafFlags,
    #[command(flatten)]
    consent: Consent,
    #[command(flatten)]
    values: ValueFlags,
    #[command(flatten)]
    source: ChartFlags,
    #[command(flatten)]
    limits: LimitFlags,
    #[command(flatten)]
    cluster: ClusterFlags,
}

/// What plans are made with.
struct Work {
    engine: Engine,
    place: Place,
    chart: Chart,
    digest: String,
    values: Option<Map>,
    from: Option<From>,
    entropy: [u8; 32],
    dry_runs: DryRuns,
    timeout: std::time::Duration,
}

impl Work {
    fn request<'a>(&'a self, session: &Session<'a>) -> Request<'a> {
        Request {
            cluster: Arc::clone(&session.cluster),
            clock: session.clock,
            engine: &self.engine,
            place: self.place.clone(),
            chart: &self.chart,
            chart_digest: self.digest.clone(),
            values: self.values.as_ref(),
            from: self.from.clone(),
            entropy: self.entropy,
            dry_runs: Some(&self.dry_runs),
        }
    }
}

pub(crate) fn run(
    mut arguments: Arguments,
    context: &mut Context<'_>,
) -> Result<Exit, CommandError> {
    let work = work(&mut arguments, context)?;
    let host = Host::open(&arguments.cluster, context)?;
    let (left, _) = host.look(context, &work.engine, async |session| {
        left_over_at(&work.place, &*session.cluster, session.clock).await
    })?;
    let left = left
        .map_err(|error| if error.is_refusal() { refused(&error) } else { server_error(&error) })?;
    let begun = |left: &LeftOver| left.plan.schema_version == RELEASE_SCHEMA_VERSION;
    if let Some(left) = left.filter(begun) {
        let text = format!(
            "An adoption was begun and is not complete: revision {} is {}, {} record(s) of the \
             release before are still there.\n",
            left.revision, left.status, left.records
        );
        if left.strangers.is_empty() {
            return resume(&arguments, &work, &host, &left, &text, context);
        }
        let strangers = left.strangers.join(", ");
        arguments
            .shape
            .output
            .tell(&format!("{text}Somebody changed what it writes: {strangers}.\n"), context)?;
    }
    let plan = plan(&work, &host, context)?;
    arguments.leaves.show(&plan, arguments.shape.output, context)?;
    if arguments.shape.plan {
        let asks = plan.is_refused() || !plan.consent.is_empty();
        return Ok(if asks { Exit::No } else { Exit::Done });
    }
    if plan.is_refused() {
        return Ok(Exit::No);
    }
    if plan.outcome == takeover::plan::Outcome::Nothing {
        return Ok(Exit::Done);
    }
    arguments.consent.check(&plan.digest, &plan.consent)?;
    confirm("Carry this plan out?", arguments.consent.yes, context)?;
    carry_out(&arguments, &work, &host, Some(plan.digest), context)
}

/// Reads what the flags name.
fn work(arguments: &mut Arguments, context: &mut Context<'_>) -> Result<Work, CommandError> {
    let timeout = flags::duration("timeout", &arguments.timeout)?;
    let kind = record_kind(context.environment)?;
    let namespace = arguments.cluster.checked_namespace(context.environment)?;
    let values = std::mem::take(&mut arguments.values).merge(context.environment)?;
    let chart = arguments.source.load(&arguments.chart, &arguments.limits, false, context)?;
    check_chart(&chart, true, context)?;
    let look = format!("ichor release adopt {} … --plan", arguments.name);
    let from = arguments.from_release.as_ref().map(|release| From {
        release: release.clone(),
        namespace: arguments.from_namespace.clone().unwrap_or_else(|| namespace.clone()),
    });
    Ok(Work {
        engine: Engine::new(EngineOptions::default()),
        place: Place::release(&arguments.name, &namespace, kind, Deed::Adoption, look),
        digest: chart_digest(&chart),
        chart,
        values: Some(values).filter(|values| !values.is_empty()),
        from,
        entropy: random()?,
        dry_runs: DryRuns::default(),
        timeout,
    })
}

fn plan(work: &Work, host: &Host, context: &mut Context<'_>) -> Result<Plan, CommandError> {
    let (result, _) =
        host.look(context, &work.engine, async |session| prepare(&work.request(session)).await)?;
    let prepared = result.map_err(|error| match error {
        takeover::plan::PlanError::Rights(_) => refused(&error),
        error => server_error(&error),
    })?;
    Ok(prepared.plan)
}

/// Finishes what an earlier run began, by its stored plan.
fn resume(
    arguments: &Arguments,
    work: &Work,
    host: &Host,
    left: &LeftOver,
    text: &str,
    context: &mut Context<'_>,
) -> Result<Exit, CommandError> {
    let digest = &left.plan.digest;
    arguments.shape.output.tell(
        &format!("{text}It is finished by the plan that was consented to then, {digest}.\n"),
        context,
    )?;
    if arguments.shape.plan {
        arguments.leaves.show(&left.plan, arguments.shape.output, context)?;
        return Ok(Exit::Done);
    }
    let given = arguments.consent.accept_plan.clone();
    if let Some(given) = given.as_ref().filter(|given| *given != digest) {
        return Err(no(
            format_args!("the consent is to another plan: {given}"),
            "to finish what was begun, give --yes without a digest, or with that one",
        ));
    }
    confirm("Finish it?", arguments.consent.yes, context)?;
    carry_out(arguments, work, host, given, context)
}

fn carry_out(
    arguments: &Arguments,
    work: &Work,
    host: &Host,
    digest: Option<String>,
    context: &mut Context<'_>,
) -> Result<Exit, CommandError> {
    let holder = holder(context.environment)?;
    let (result, heard) = host.run(context, &work.engine, async |session| {
        let run = Run {
            request: work.request(session),
            digest,
            accept_changes: false,
            accept_diff: arguments.consent.accept_plan.is_some(),
            holder,
            observer: session.observer,
            cancel: session.cancel,
            timeout: work.timeout,
        };
        take_over(&run).await
    })?;
    let done = result.map_err(|error: RunError| {
        if error.is_refusal() {
            return refused(&error);
        }
        let mut first = heard.not_ready();
        if let Some(hint) = server_error(&error).hint {
            first.push_str(&format!("{hint}; then "));
        }
        CommandError::new(error_chain(&error))
            .hint(format!("{first}run it again to go on where it stopped"))
    })?;
    arguments.shape.output.tell(&account(&work.place, &done), context)?;
    Ok(Exit::Done)
}

/// What was done, for people.
fn account(place: &Place, done: &Done) -> String {
    let Place { release, home, .. } = place;
    let revision = done.revision;
    if done.nothing {
        return format!(
            "Nothing was left to do: release {release} in namespace {home}, revision {revision}.\n"
        );
    }
    let mut text =
        if done.resumed { "An earlier adoption was finished.\n".to_owned() } else { String::new() };
    text.push_str(&format!(
        "Adopted: revision {revision} of release {release} in namespace {home}.\n\
         {} object(s) patched, {} created, {} as they should be; {} record(s) of the release before \
         backed up and deleted.\n",
        done.patched.len(),
        done.created.len(),
        done.unchanged,
        done.records.deleted.len(),
    ));
    for backup in &done.records.backups {
        text.push_str(&format!("Backup: Secret {home}/{backup}\n"));
    }
    text
}
