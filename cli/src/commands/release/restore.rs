//! `ichor release restore`: a release that was adopted or moved, back to how it was.

use clap::Args;
use helm_rs::release::storage::ObjectKind;
use helm_rs::render::{Engine, EngineOptions};
use takeover::place::Place;
use takeover::run::restore::{plan_restore_at, restore_at};
use takeover::run::stored::StoredPlan;

use super::planned::refused;
use super::write::Host;
use crate::commands::Context;
use crate::commands::cni::restore::{account, done_text, may, restore_error};
use crate::commands::cni::shared::holder;
use crate::commands::cni::trouble::server_error;
use crate::connection::ClusterFlags;
use crate::error::CommandError;
use crate::exit::Exit;

#[derive(Debug, Args)]
#[command(
    about = "Undo `release adopt` or `release move`: records and ownership as they were",
    after_help = concat!(
        "The release is named as it is now. Its records of before are put back to the byte, its\n",
        "objects get their former owner, and the records that were made since go into a backup. One\n",
        "that was killed is finished by the next one.\n\n",
        "Examples:\n",
        "  ichor release restore web -n shop               # asks before it begins\n",
        "  ichor release restore web -n shop --yes\n\n",
        "Exit codes:\n",
        "  0  restored\n",
        "  1  it failed; run it again to go on\n",
        "  2  the answer is no: refused, a right is missing, or nobody said yes; nothing was written\n",
        "     but the lock"
    )
)]
pub(crate) struct Arguments {
    /// Name of the release
    name: String,
    /// Do not ask before it begins
    #[arg(short, long)]
    yes: bool,
    /// Do it although objects changed since: the digest that was told
    #[arg(long, value_name = "DIGEST")]
    digest: Option<String>,
    #[command(flatten)]
    cluster: ClusterFlags,
}

pub(crate) fn run(arguments: &Arguments, context: &mut Context<'_>) -> Result<Exit, CommandError> {
    let namespace = arguments.cluster.namespace(context.environment);
    let engine = Engine::new(EngineOptions::default());
    let host = Host::open(&arguments.cluster, context)?;
    let of = |records| Place::release(&arguments.name, &namespace, records, String::new());
    let (found, _) = host.look(context, &engine, async |session| {
        // Which driver holds the records is in the stored plan, the same for both.
        let stored = StoredPlan::read(&*session.cluster, &of(ObjectKind::Secret)).await?;
        let release = stored.and_then(|stored| stored.plan.release);
        let is_map = release.is_some_and(|release| release.records == "ConfigMap");
        let place = of(if is_map { ObjectKind::ConfigMap } else { ObjectKind::Secret });
        let plan = plan_restore_at(&place, &*session.cluster).await?;
        Ok::<_, takeover::run::restore::RestoreError>((place, plan))
    })?;
    let (place, plan) = found
        .map_err(|error| if error.is_refusal() { refused(&error) } else { server_error(&error) })?;
    context.ui.result(account(&plan))?;
    if !plan.refusals.is_empty() {
        return Ok(Exit::No);
    }
    let digest = arguments.digest.as_deref();
    may(&plan, digest, arguments.yes, context)?;
    let holder = holder(context.environment)?;
    let (done, _) = host.run(context, &engine, async |session| {
        let (cluster, clock) = (&session.cluster, session.clock);
        let (observer, cancel) = (session.observer, session.cancel);
        restore_at(&place, cluster, clock, &holder, digest, observer, cancel).await
    })?;
    let done = done.map_err(|error| restore_error(&error, ""))?;
    context.ui.result(done_text(&done))?;
    Ok(Exit::Done)
}
