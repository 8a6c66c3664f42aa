//! `ichor adopt`: a running cluster comes under ichor, by the controller where one runs, else from
//! here.

#[cfg(feature = "controller")]
mod managed;

use clap::Args;
use helm_rs::cluster::ClusterError;
use takeover::job::{records_roles, remove_records_roles};
use takeover::plan::{Outcome, Plan, Prepared};
use takeover::run::{Done, LeftOver, RunError};

use crate::commands::Context;
use crate::commands::cni::account::account;
use crate::commands::cni::ask::confirm;
use crate::commands::cni::rehearse::{RehearsalFlags, rehearse};
use crate::commands::cni::report::ReportFlags;
use crate::commands::cni::shared::{ConsentFlags, PlanFlags, Work, no, run_error};
use crate::error::CommandError;
use crate::exit::Exit;
use crate::output::Output;
use crate::session::Heard;

#[derive(Debug, Args)]
#[command(
    after_help = concat!(
        "Shows what will be done, asks whether to go on, and has it done: by the controller, for which it\n",
        "writes TalosCluster `cluster` and waits until the hand-over is complete; with --cilium-only, or\n",
        "where no controller is to come, from here. Where nobody can be asked (no terminal), it takes\n",
        "--yes. What needs consent takes its flag as well; with a terminal, --accept-cilium-diff alone is\n",
        "the consent to the plan that is shown. Nothing is deleted but the records of the release before,\n",
        "after a backup that was read back and compared.\n\n",
        "Examples:\n",
        "  ichor adopt --plan                              # with a controller: what its Job would do\n",
        "  ichor adopt                                     # asks, writes the TalosCluster, waits\n",
        "  ichor adopt --accept-cilium-diff=sha256:… --yes\n",
        "  ichor adopt --cni-unmanaged                     # a cluster whose CNI is somebody else's\n",
        "  ichor adopt --cilium-only --plan\n",
        "  ichor adopt --cilium-only --plan --report plan.html --report plan.md\n",
        "  ichor adopt --cilium-only                       # asks before it begins\n",
        "  ichor adopt --cilium-only --yes\n",
        "  ichor adopt --cilium-only --accept-cilium-diff=sha256:… --yes\n",
        "  ichor adopt --cilium-only --snapshot before.ndjson --yes --output-dir after   # rehearsed\n\n",
        "Exit codes:\n",
        "  0  done, or nothing to do\n",
        "  1  it failed, or time was up; run it again to go on\n",
        "  2  the answer is no: refused, or consent is missing; nothing was written but what the Job that\n",
        "     refused was made from"
    )
)]
pub(crate) struct Arguments {
    /// Take the running Cilium over from here, without a controller
    #[arg(long)]
    cilium_only: bool,
    /// Only show what would be done
    #[arg(long)]
    pub(super) plan: bool,
    /// Do not ask before it begins
    #[arg(short, long)]
    pub(super) yes: bool,
    /// Form of the plan
    #[arg(short, long, value_enum, value_name = "FORM", default_value_t)]
    pub(super) output: Output,
    #[command(flatten)]
    pub(super) flags: PlanFlags,
    #[cfg(feature = "controller")]
    #[command(flatten)]
    managed: managed::ManagedFlags,
    #[command(flatten)]
    consent: ConsentFlags,
    #[command(flatten)]
    report: ReportFlags,
    #[command(flatten)]
    pub(super) rehearsal: RehearsalFlags,
}

/// One run of the command on one cluster.
pub(super) struct Attempt {
    /// Do not ask whether to begin.
    pub(super) yes: bool,
    /// Nobody looks: the plan is not printed, and no report is written.
    pub(super) unseen: bool,
    /// The plan that was shown, or that of what was begun.
    pub(super) plan: Option<Plan>,
    /// Whether a plan was carried out.
    pub(super) carried_out: bool,
}

impl Attempt {
    pub(super) const fn new(yes: bool) -> Self {
        Self { yes, unseen: false, plan: None, carried_out: false }
    }
}

/// What comes of plan and questions.
#[cfg_attr(
    not(feature = "controller"),
    expect(dead_code, reason = "the controller's way reads it")
)]
enum Decision {
    /// The command ends here.
    Ended(Exit),
    /// There is nothing to take over.
    Nothing(Box<Prepared>),
    /// It was consented to: the digest, and the plan. None for one that was begun, and for which the
    /// consent of then holds.
    Go(Option<String>, Option<Box<Prepared>>),
}

pub(crate) fn run(
    #[cfg_attr(not(feature = "controller"), expect(unused_mut, reason = "as with a controller"))]
    mut arguments: Arguments,
    context: &mut Context<'_>,
) -> Result<Exit, CommandError> {
    context.ui.outlive_reader();
    arguments.report.check(&arguments.flags)?;
    arguments.consent.timeout()?;
    arguments.rehearsal.check()?;
    if !arguments.cilium_only {
        #[cfg(feature = "controller")]
        return managed::run(&mut arguments, context);
        #[cfg(not(feature = "controller"))]
        return Err(CommandError::new("this build knows no controller: give --cilium-only"));
    }
    let work = arguments.flags.work(context)?;
    let host = arguments.flags.host(&work, context)?;
    if let Some(stage) = host.as_stage().cloned() {
        return rehearse(&arguments, &stage, work, context);
    }
    #[cfg(feature = "controller")]
    if !arguments.plan {
        managed::check_nobody_hands_over(host, context)?;
    }
    adopt(&arguments, &work, &mut Attempt::new(arguments.yes), context)
}

/// Plans, asks, takes over.
pub(super) fn adopt(
    arguments: &Arguments,
    work: &Work,
    attempt: &mut Attempt,
    context: &mut Context<'_>,
) -> Result<Exit, CommandError> {
    let digest = match decide(arguments, work, attempt, context)? {
        Decision::Ended(exit) => return Ok(exit),
        Decision::Nothing(_) => {
            hand_over(arguments, work, arguments.yes, context)?;
            return Ok(Exit::Done);
        }
        Decision::Go(digest, _) => digest,
    };
    attempt.carried_out = true;
    let done = arguments.flags.carry_out(work, &arguments.consent, digest, context)?;
    finish(arguments, work, done, context)
}

/// Plans, and asks.
fn decide(
    arguments: &Arguments,
    work: &Work,
    attempt: &mut Attempt,
    context: &mut Context<'_>,
) -> Result<Decision, CommandError> {
    if let Some(left) = arguments.flags.left_over(work, context)? {
        if left.strangers.is_empty() {
            attempt.plan.get_or_insert_with(|| left.plan.clone());
            return resume(arguments, &left, attempt, context);
        }
        tell_strangers(arguments, &left, context)?;
    }
    let prepared = arguments.flags.plan(work, context)?;
    if !attempt.unseen {
        arguments.report.show(&prepared.plan, arguments.output, context)?;
    }
    let plan = attempt.plan.insert(prepared.plan.clone());
    if arguments.plan {
        let asks = plan.is_refused() || !plan.consent.is_empty();
        return Ok(Decision::Ended(if asks { Exit::No } else { Exit::Done }));
    }
    if plan.outcome == Outcome::Nothing {
        return Ok(Decision::Nothing(Box::new(prepared)));
    }
    if plan.is_refused() {
        return Ok(Decision::Ended(Exit::No));
    }
    check_consent(plan, &arguments.consent, arguments.yes, context)?;
    confirm("Carry this plan out?", attempt.yes, context)?;
    Ok(Decision::Go(Some(plan.digest.clone()), Some(Box::new(prepared))))
}

/// A takeover that was begun cannot be finished by its plan: another one is shown, and needs a
/// consent of its own.
fn tell_strangers(
    arguments: &Arguments,
    left: &LeftOver,
    context: &mut Context<'_>,
) -> Result<(), CommandError> {
    let text = format!(
        "A takeover was begun and is not complete: revision {} is {}.\nIts plan, {}, cannot be \
         finished, since somebody changed what it writes: {}.\nThis is the plan for what is there \
         now; undo the change to go on with the one before.\n\n",
        left.revision,
        left.status,
        left.plan.digest,
        left.strangers.join(", ")
    );
    if arguments.output == Output::Table {
        context.ui.result(text)
    } else {
        context.ui.warning(text.trim_end());
        Ok(())
    }
}

/// What an earlier run began is finished by its stored plan.
fn resume(
    arguments: &Arguments,
    left: &LeftOver,
    attempt: &Attempt,
    context: &mut Context<'_>,
) -> Result<Decision, CommandError> {
    let begun = format!(
        "A takeover was begun and is not complete: revision {} is {}, {} foreign record(s) are \
         still there.\nIt is finished by the plan that was consented to then, {}.\n",
        left.revision, left.status, left.records, left.plan.digest
    );
    // Whoever reads the plan as data gets nothing else on standard output.
    if arguments.output == Output::Table {
        context.ui.result(begun)?;
    } else {
        context.ui.warning(begun.trim_end());
    }
    if arguments.plan {
        arguments.report.show(&left.plan, arguments.output, context)?;
        // What that plan asked for was given; nothing but --yes is needed to finish it.
        return Ok(Decision::Ended(Exit::Done));
    }
    // A consent that names a plan is to that plan alone.
    let named = arguments.consent.digest();
    if let Some(given) = named.filter(|given| *given != left.plan.digest) {
        return Err(no(
            format_args!(
                "the consent is to another plan: {given}, and the one that was begun is {}",
                left.plan.digest
            ),
            "to finish what was begun, give --yes without a digest, or with that one",
        ));
    }
    let digest = named.map(str::to_owned);
    confirm("Finish it?", attempt.yes, context)?;
    Ok(Decision::Go(digest, None))
}

/// When nothing is left of a takeover to be done, the Job's rights on foreign records go.
fn hand_over(
    arguments: &Arguments,
    work: &Work,
    remove: bool,
    context: &mut Context<'_>,
) -> Result<(), CommandError> {
    let done = arguments.flags.session(work, context, async |session| {
        let roles = records_roles(&*session.cluster).await?;
        if remove {
            remove_records_roles(&*session.cluster, &roles).await?;
        }
        Ok::<_, ClusterError>(roles)
    })?;
    let roles = done.map_err(|error| {
        CommandError::new(format_args!("the Job's rights on foreign records: {error}"))
    })?;
    for role in roles {
        context.ui.warning(if remove {
            format!("{role} is removed: the hand-over is complete")
        } else {
            format!("{role} is not needed any more: --yes removes it")
        });
    }
    Ok(())
}

/// Says what was done, and looks at it once more.
fn finish(
    arguments: &Arguments,
    work: &Work,
    (result, heard): (Result<Done, RunError>, Heard),
    context: &mut Context<'_>,
) -> Result<Exit, CommandError> {
    let done = result.map_err(|error| run_error(&error, &heard))?;
    // Whoever reads the plan as data gets nothing else on standard output.
    let tell = |context: &mut Context<'_>, text: &str| match arguments.output {
        Output::Table => context.ui.result(text),
        Output::Json | Output::Yaml => {
            context.ui.warning(text.trim_end());
            Ok(())
        }
    };
    tell(context, &account(&done))?;
    let after = arguments.flags.plan(work, context)?.plan;
    let figures = after.figures();
    let matches = after.outcome == Outcome::Nothing
        && (figures.differences, figures.creations, figures.ownership) == (0, 0, 0);
    let stays = if figures.residue == 0 {
        String::new()
    } else {
        format!("; {} live-only leaves or objects stay", figures.residue)
    };
    if matches {
        hand_over(arguments, work, arguments.yes, context)?;
        let verified = "Verified: the record is deployed, what runs is what the chart renders";
        tell(context, &format!("{verified}{stays}.\n"))?;
        return Ok(Exit::Done);
    }
    Err(CommandError::new(format_args!(
        "the takeover is done, but what runs is not what the chart renders: {} difference(s), {} \
         missing, {} ownership leaves",
        figures.differences, figures.creations, figures.ownership
    ))
    .hint("see `ichor cni plan`, and `ichor cni status`"))
}

/// Whether the consent that the plan asks for was given, and to this plan. `unseen`: nobody looks
/// at it before it is carried out, so that the consent has to name it.
pub(crate) fn check_consent(
    plan: &Plan,
    consent: &ConsentFlags,
    unseen: bool,
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
        match (consent.accept_cilium_diff.is_some(), consent.digest()) {
            (false, _) => {
                let message = format!("consent is missing: {}", needed.why);
                return Err(no(message, format!("to accept exactly this plan, give {exact}")));
            }
            (true, None) if unseen || !context.environment.is_terminal() => {
                return Err(no(
                    "consent is missing: nobody saw this plan before it would be carried out",
                    format!("to accept exactly this plan, give {exact}"),
                ));
            }
            _ => {}
        }
    }
    if let Some(given) = consent.digest()
        && given != plan.digest
    {
        return Err(no(
            format_args!(
                "the consent is to another plan: {given}, and this one is {}",
                plan.digest
            ),
            "look at the plan again; something changed in between",
        ));
    }
    Ok(())
}
