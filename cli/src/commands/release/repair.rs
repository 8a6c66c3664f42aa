//! `ichor release repair`: a release that stayed pending, because what worked on it died.

use clap::Args;
use helm_rs::action::repair::{ObjectState, Stuck, inspect, mark_failed};
use helm_rs::render::{Engine, EngineOptions};

use super::write::{action_error, run as run_session};
use crate::commands::Context;
use crate::connection::ClusterFlags;
use crate::error::CommandError;
use crate::exit::Exit;

#[derive(Debug, Args)]
#[command(
    after_help = concat!(
        "Shows who left the release pending, when, and how far it got. With --yes the revision is\n",
        "marked failed, so that the next upgrade may begin; nothing else is changed.\n",
        "Make sure first that nothing is at work on the release any more.\n\n",
        "Examples:\n",
        "  ichor release repair web -n web\n",
        "  ichor release repair web -n web --yes && ichor release upgrade --install web ./my-chart -n web\n\n",
        "Exit codes:\n",
        "  0  marked failed, or nothing to repair\n",
        "  1  an error\n",
        "  2  the release is pending; nothing was written"
    )
)]
pub(crate) struct Arguments {
    /// Name of the release
    release: String,
    /// Mark the pending revision as failed
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    cluster: ClusterFlags,
}

pub(crate) fn run(arguments: &Arguments, context: &mut Context<'_>) -> Result<Exit, CommandError> {
    let name = &arguments.release;
    let engine = Engine::new(EngineOptions::default());
    let (result, heard) = run_session(&arguments.cluster, context, &engine, async |session| {
        let Some(stuck) = inspect(session, name).await? else { return Ok(None) };
        let marked = if arguments.yes { Some(mark_failed(session, &stuck).await?) } else { None };
        Ok(Some((stuck, marked)))
    })?;
    match result.map_err(|error| action_error("", name, &error, &heard))? {
        None => {
            context.ui.result(format!("Release {name} is not pending: nothing to repair.\n"))?;
            Ok(Exit::Done)
        }
        Some((stuck, marked)) => {
            context.ui.result(account(name, &stuck))?;
            if let Some(description) = marked {
                context.ui.result(format!(
                    "Revision {} is marked failed: {description}\n",
                    stuck.revision
                ))?;
                return Ok(Exit::Done);
            }
            context.ui.result(
                "Nothing was written. If nothing is at work on it any more, repeat with --yes.\n",
            )?;
            Ok(Exit::No)
        }
    }
}

fn account(name: &str, stuck: &Stuck) -> String {
    let mut text = format!(
        "Release {name}, revision {}, is {} since {}.\n",
        stuck.revision, stuck.status, stuck.since
    );
    if !stuck.description.is_empty() {
        text.push_str(&format!("Its record says: {}\n", stuck.description));
    }
    if !stuck.writer.is_empty() {
        text.push_str(&format!("It was written last by {}.\n", stuck.writer));
    }
    if !stuck.unknown.is_empty() {
        text.push_str(&format!("How far it got cannot be told: {}\n", stuck.unknown));
        return text;
    }
    let present =
        stuck.objects.iter().filter(|object| object.state == ObjectState::Present).count();
    text.push_str(&format!("Of its {} objects {present} are there:\n", stuck.objects.len()));
    for object in &stuck.objects {
        let state = match &object.state {
            ObjectState::Present => "there".to_owned(),
            ObjectState::Foreign => "there, but not this release's".to_owned(),
            ObjectState::Missing => "missing".to_owned(),
            ObjectState::Unreadable(reason) => format!("cannot be read: {reason}"),
        };
        text.push_str(&format!("  {}: {state}\n", object.object));
    }
    text
}
