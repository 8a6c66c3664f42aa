//! `ichor release restore`: a release that was adopted or moved, back to how it was.

use clap::Args;
use helm_rs::render::{Engine, EngineOptions};
use takeover::run::restore::{RestoreError, place_of, plan_restore_at};

use super::planned::refused;
use super::write::Host;
use crate::commands::Context;
use crate::commands::cni::restore::RestoreFlags;
use crate::commands::cni::trouble::server_error;
use crate::connection::ClusterFlags;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::flags;

#[derive(Debug, Args)]
#[command(
    about = "Undo `release adopt` or `release move`: records, ownership and leaves as they were",
    after_help = concat!(
        "The release is named as it is now. Its records of before are put back to the byte, its\n",
        "objects get their former owner, leaves that an adoption changed get their former values\n",
        "where nobody changed them since, and the records that were made since go into a backup.\n",
        "What was created stays and is listed. The last move or adoption under a name is undone\n",
        "first, the one before it by the next restore. One that was killed is finished by the next\n",
        "one.\n\n",
        "Examples:\n",
        "  ichor release restore web -n shop --plan\n",
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
    #[arg(value_parser = flags::release_name)]
    name: String,
    #[command(flatten)]
    restore: RestoreFlags,
    #[command(flatten)]
    cluster: ClusterFlags,
}

pub(crate) fn run(arguments: &Arguments, context: &mut Context<'_>) -> Result<Exit, CommandError> {
    let namespace = arguments.cluster.checked_namespace(context.environment)?;
    let flags = &arguments.restore;
    let engine = Engine::new(EngineOptions::default());
    let host = Host::open(&arguments.cluster, context)?;
    let (found, _) = host.look(context, &engine, async |session| {
        let place = place_of(&*session.cluster, &arguments.name, &namespace).await?;
        let plan = plan_restore_at(&place, &*session.cluster, flags.keep_leaves()).await?;
        Ok::<_, RestoreError>((place, plan))
    })?;
    let (place, plan) = found
        .map_err(|error| if error.is_refusal() { refused(&error) } else { server_error(&error) })?;
    flags.carry_out(&place, &plan, (&host, &engine), "", context)
}
