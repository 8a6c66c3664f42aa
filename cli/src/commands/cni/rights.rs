//! Granting the Job what it lacks.

use std::time::Duration;

use helm_rs::cluster::{Cluster, ClusterError, Patch, PatchKind, Resource, Target, WriteOptions};
use serde_json::Value;
use takeover::job;
use takeover::plan::{Prepared, WhoWrites};

use super::shared::{PlanFlags, Work, no};
use super::trouble::server_error;
use crate::commands::Context;
use crate::error::CommandError;

/// The field manager of what this program applies.
const MANAGER: &str = "ichor-cli";
/// How often the authorizer is asked whether it knows of what was granted.
const TRIES: u32 = 20;
/// Time in between.
const PAUSE: Duration = Duration::from_millis(500);

/// Why a Role is not there.
#[derive(Debug, thiserror::Error)]
#[error("grant the Job {what}")]
struct GrantError {
    what: String,
    source: ClusterError,
}

/// Applies those Roles of the Job in which something is missing, and makes the plan again as the Job
/// will: it has to be the one that was consented to.
///
/// # Errors
/// A Role cannot be written; rights are still missing; another plan comes of it.
pub(crate) fn grant(
    flags: &mut PlanFlags,
    work: &Work,
    prepared: &Prepared,
    context: &mut Context<'_>,
) -> Result<(), CommandError> {
    let roles = job::missing_rights(&prepared.needs, &prepared.plan.rights.missing);
    if roles.is_empty() {
        return Ok(());
    }
    let granted = flags.session(work, context, async |session| {
        for role in &roles {
            apply(&*session.cluster, role).await?;
        }
        Ok::<_, GrantError>(())
    })?;
    granted.map_err(|error| {
        server_error(&error).hint(
            "who grants a right has to hold it, or the verbs `escalate` and `bind`; have `ichor cni \
             manifest --rights` applied by somebody who does, then run it again",
        )
    })?;
    for role in roles.iter().step_by(2) {
        context.ui.note(format!("granted: {}", title(role)));
    }
    flags.who_writes = WhoWrites::Other(job::subject());
    for _ in 1..TRIES {
        let again = flags.plan(work, context)?.plan;
        if again.rights.missing.is_empty() {
            return same(&prepared.plan.digest, &again.digest);
        }
        // The authorizer hears of new Roles a moment later.
        flags.session(work, context, async |session| session.clock.sleep(PAUSE).await)?;
    }
    let again = flags.plan(work, context)?.plan;
    match again.rights.refusal() {
        Some(refusal) => Err(no(
            format_args!("refused: {}", refusal.message),
            "what could be granted is granted; see `ichor cni plan --for-job`",
        )),
        None => same(&prepared.plan.digest, &again.digest),
    }
}

fn same(consented: &str, now: &str) -> Result<(), CommandError> {
    if consented == now {
        return Ok(());
    }
    Err(no(
        format_args!("the plan is another one now: {now}, and {consented} was consented to"),
        "something changed in between: run it again, and look at the plan again",
    ))
}

fn title(role: &Value) -> String {
    let text = |field: &str| role.pointer(field).and_then(Value::as_str).unwrap_or_default();
    match text("/metadata/namespace") {
        "" => format!("{} {}", text("/kind"), text("/metadata/name")),
        namespace => format!("{} {namespace}/{}", text("/kind"), text("/metadata/name")),
    }
}

async fn apply(cluster: &dyn Cluster, role: &Value) -> Result<(), GrantError> {
    let text = |field: &str| role.pointer(field).and_then(Value::as_str).unwrap_or_default();
    let (kind, namespace) = (text("/kind"), text("/metadata/namespace"));
    let plural = format!("{}s", kind.to_lowercase());
    let resource = Resource::builtin(text("/apiVersion"), kind, &plural, !namespace.is_empty());
    let target = Target::new(&resource.into(), namespace, text("/metadata/name"));
    let patch = Patch { kind: PatchKind::Apply, body: role.clone() };
    let options =
        WriteOptions { field_manager: MANAGER.to_owned(), force: true, ..WriteOptions::default() };
    let written = cluster.patch(&target, &patch, &options).await;
    written.map(drop).map_err(|source| GrantError { what: title(role), source })
}
