//! A takeover rehearsed on a snapshot: the very run, on a cluster in memory; killed or failed where
//! that is asked for, and run again.

mod folder;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use clap::Args;
use helm_rs::cluster::{Count, Effect, Fault, Moment, Status};
use serde_json::Value;
use takeover::plan::Plan;
use takeover::snapshot::{RunCalls, Stage, Timeline, lasting, summary};

use super::shared::Work;
use super::status;
use crate::commands::Context;
use crate::commands::adopt::{self, Attempt, adopt};
use crate::error::CommandError;
use crate::exit::Exit;
use crate::output::Output;
use crate::ui::{Buffer, Ui};

/// The flag of a call that fails.
const FAIL_AT: &str = "--fail-at";

/// What becomes of a rehearsal, and what is tried in it.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Rehearsal")]
pub(crate) struct RehearsalFlags {
    /// Write what the rehearsal leaves into this folder, which is new or empty: the cluster
    /// afterwards, records, backups, every call, the plan and its report
    #[arg(long, value_name = "DIR", requires = "snapshot")]
    output_dir: Option<PathBuf>,
    /// Let call N of the run fail with a server error, then run again; timeline.txt has the numbers
    #[arg(long, value_name = "N", requires = "snapshot", conflicts_with_all = ["kill_at", "plan"])]
    fail_at: Option<Number>,
    /// Kill the run after call N, or before it (before:N), then run again
    #[arg(long, value_name = "[before:]N", requires = "snapshot", conflicts_with = "plan")]
    kill_at: Option<Kill>,
}

/// The number of a call, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Number(usize);

impl FromStr for Number {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            Ok(number @ 1..) => Ok(Self(number)),
            _ => Err("expected the number of a call, from 1".to_owned()),
        }
    }
}

/// Where a run is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kill {
    at: Number,
    moment: Moment,
}

impl FromStr for Kill {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (moment, number) = match text.split_once(':') {
            None => (Moment::After, text),
            Some(("before", number)) => (Moment::Before, number),
            Some(("after", number)) => (Moment::After, number),
            Some(_) => return Err("expected N, before:N or after:N".to_owned()),
        };
        Ok(Self { at: number.parse()?, moment })
    }
}

impl RehearsalFlags {
    /// Whether the folder can be written.
    ///
    /// # Errors
    /// It cannot.
    pub(crate) fn check(&self) -> Result<(), CommandError> {
        self.output_dir.as_deref().map_or(Ok(()), folder::check)
    }

    /// What is tried, and the flag that says so.
    fn fault(&self) -> Option<(&'static str, Fault)> {
        let count = Count::Calls;
        if let Some(Number(at)) = self.fail_at {
            let text = "a failure that --fail-at asked for";
            let effect = Effect::Fail(Status::new(500, "InternalError", text).into());
            return Some((FAIL_AT, Fault { count, at, moment: Moment::Before, effect }));
        }
        let Kill { at: Number(at), moment } = self.kill_at?;
        Some(("--kill-at", Fault { count, at, moment, effect: Effect::Poison }))
    }
}

/// How a run ends that nothing disturbs.
struct Reference {
    calls: usize,
    left: BTreeMap<String, Value>,
}

/// Rehearses a takeover.
pub(crate) fn rehearse(
    arguments: &adopt::Arguments,
    stage: &Arc<Stage>,
    mut work: Work,
    context: &mut Context<'_>,
) -> Result<Exit, CommandError> {
    let mut first = Attempt::new(arguments.yes);
    let fault = match arguments.rehearsal.fault() {
        None => None,
        Some(fault) => reference(arguments, &work, context)?.map(|reference| (fault, reference)),
    };
    let Some((fault, reference)) = fault else {
        let exit = adopt(arguments, &work, &mut first, context)?;
        let runs = vec![RunCalls { ended: "done".to_owned(), calls: stage.timeline() }];
        return finish(arguments, &work, first.plan.as_ref(), (stage, runs), context)
            .map(|()| exit);
    };
    let (flag, at, moment) = (fault.0, fault.1.at, fault.1.moment);
    if at > reference.calls {
        let calls = reference.calls;
        return Err(CommandError::new(format_args!("{flag} {at}: the run has {calls} calls"))
            .hint("timeline.txt of --output-dir numbers them"));
    }
    stage.plan_fault(fault.1);
    let ended = adopt(arguments, &work, &mut first, context);
    let calls = stage.timeline();
    let struck = calls.get(at - 1).map(ToString::to_string).unwrap_or_default();
    let what = match (flag, moment) {
        (FAIL_AT, _) => format!("call {at} failed: {struck}"),
        (_, Moment::Before) => format!("killed before call {at}: {struck}"),
        (_, Moment::After) => format!("killed after call {at}: {struck}"),
    };
    let mut runs = vec![RunCalls { ended: what.clone(), calls }];
    tell(arguments, context, &format!("\n{flag}: {what}\n"))?;
    let ended = match ended {
        Ok(Exit::Done) if flag == FAIL_AT => {
            tell(arguments, context, "The run went on all the same.\n")?;
            None
        }
        // A plan takes an answer that does not come for the server's no.
        Ok(exit) => Some(format!("exit code {}", exit.code())),
        Err(error) => {
            let text = error.message.as_deref().unwrap_or_default();
            Some(String::from_utf8_lossy(text).into_owned())
        }
    };
    if let Some(text) = ended {
        tell(arguments, context, &format!("The run ended with: {text}\n\nWhat it leaves\n"))?;
        stage.restart();
        let state = status::of_work(&arguments.flags, &work, context)?;
        let state = state.trim_end().replace('\n', "\n  ");
        tell(arguments, context, &format!("  {state}\n\nThe next run\n"))?;
        stage.restart();
        work.begin_anew(context.environment)?;
        let mut second = Attempt { unseen: first.carried_out, ..Attempt::new(true) };
        adopt(arguments, &work, &mut second, context)?;
        if !first.carried_out {
            first.plan = second.plan;
        }
        runs.push(RunCalls { ended: "done".to_owned(), calls: stage.timeline() });
    }
    let left = left(stage);
    let names = left.keys().chain(reference.left.keys()).collect::<BTreeSet<_>>();
    let other = names.into_iter().filter(|name| left.get(*name) != reference.left.get(*name));
    let other: Vec<&str> = other.map(String::as_str).collect();
    if !other.is_empty() {
        return Err(CommandError::new(format_args!(
            "it did not end as a run does that nothing disturbs: {}",
            other.join(", ")
        )));
    }
    tell(arguments, context, "It ended as a run does that nothing disturbs.\n")?;
    finish(arguments, &work, first.plan.as_ref(), (stage, runs), context).map(|()| Exit::Done)
}

/// The run without a fault, on another copy of the cluster; none when nothing is carried out.
fn reference(
    arguments: &adopt::Arguments,
    work: &Work,
    context: &Context<'_>,
) -> Result<Option<Reference>, CommandError> {
    let mut ui = Ui::new(Box::new(Buffer::default()), Box::new(Buffer::default()), false);
    let mut unheard =
        Context { global: context.global.clone(), environment: context.environment, ui: &mut ui };
    let work = work.twin(context.environment)?;
    let host = arguments.flags.host(&work, &mut unheard)?;
    let mut attempt = Attempt { unseen: true, ..Attempt::new(true) };
    let ended = adopt(arguments, &work, &mut attempt, &mut unheard);
    let done = ended.is_ok() && attempt.carried_out;
    Ok(host
        .as_stage()
        .filter(|_| done)
        .map(|stage| Reference { calls: stage.timeline().len(), left: left(stage) }))
}

fn left(stage: &Stage) -> BTreeMap<String, Value> {
    lasting(stage.objects().iter().map(|object| (**object).clone()))
}

/// Says what was sent, and writes what is left.
fn finish(
    arguments: &adopt::Arguments,
    work: &Work,
    plan: Option<&Plan>,
    (stage, runs): (&Stage, Vec<RunCalls>),
    context: &mut Context<'_>,
) -> Result<(), CommandError> {
    let Some(about) = arguments.flags.rehearsal(work, context)? else { return Ok(()) };
    let timeline = Timeline { about, runs };
    let mut text = format!("\n{}.\n", timeline.about.headline());
    for run in &timeline.runs {
        text.push_str(&format!("  {}\n", summary(&run.calls)));
    }
    if let (Some(directory), Some(plan)) = (&arguments.rehearsal.output_dir, plan) {
        for (file, what) in folder::write(directory, stage, &timeline, plan)? {
            text.push_str(&format!("  {:34} {what}\n", file.display()));
        }
    }
    tell(arguments, context, &text)
}

/// Whoever reads the plan as data gets nothing else on standard output.
fn tell(
    arguments: &adopt::Arguments,
    context: &mut Context<'_>,
    text: &str,
) -> Result<(), CommandError> {
    if arguments.output == Output::Table {
        return context.ui.result(text);
    }
    context.ui.warning(text.trim_end());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_a_run_is_killed() {
        let kill = |text: &str| text.parse::<Kill>().map(|kill| (kill.moment, kill.at.0));
        assert_eq!(kill("7"), Ok((Moment::After, 7)));
        assert_eq!(kill("after:7"), Ok((Moment::After, 7)));
        assert_eq!(kill("before:1"), Ok((Moment::Before, 1)));
        for wrong in ["", "0", "-1", "before:", "before:0", "x:1", "1:before", "1.5"] {
            assert!(kill(wrong).is_err(), "{wrong:?}");
        }
    }
}
