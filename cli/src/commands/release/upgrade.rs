//! `ichor release upgrade`, as `cmd/helm/upgrade.go`.

use clap::Args;
use helm_rs::action::upgrade::{UpgradeOptions, ValuesMode, upgrade};
use helm_rs::action::{ActionError, ReleaseOptions};
use helm_rs::gotext::quote;
use helm_rs::name::validate_release_name;
use helm_rs::release::Status;
use helm_rs::release::storage::StorageError;

use super::install::{install_chart, missing_release};
use super::write::{WriteFlags, action_error, prefixed, run as run_session};
use crate::commands::Context;
use crate::commands::chart::options::print_warnings;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::output::Output;

/// What Helm puts before every error of the upgrade itself.
const FAILED: &str = "UPGRADE FAILED: ";

#[derive(Debug, Args)]
#[command(
    after_help = concat!(
        "Does what `helm upgrade` of Helm 3.21.4 does, and leaves a record that Helm reads.\n\n",
        "When the program dies in between, the release stays pending. Then:\n",
        "  ichor release repair NAME --yes\n",
        "  ichor release upgrade --install NAME CHART …\n\n",
        "Examples:\n",
        "  ichor release upgrade web ./my-chart -n web -f values.yaml --wait\n",
        "  ichor release upgrade --install web ./my-chart -n web --create-namespace\n",
        "  ichor release upgrade web ./my-chart -n web --reuse-values --set replicas=3\n\n",
        "Exit codes:\n",
        "  0  done\n",
        "  1  an error, as in Helm"
    )
)]
pub(crate) struct Arguments {
    /// Name of the release
    release: String,
    /// The chart: a folder, an archive, REPOSITORY/CHART, an address, or the name of a pinned chart
    chart: String,
    /// Install the chart if there is no such release
    #[arg(short, long)]
    install: bool,
    #[command(flatten)]
    modes: UpgradeFlags,
    #[command(flatten)]
    write: WriteFlags,
}

/// Flags that only an upgrade has.
#[derive(Debug, Args)]
pub(super) struct UpgradeFlags {
    /// Forget the values of the release before
    #[arg(long)]
    reset_values: bool,
    /// Keep the values of the release before, and its chart's defaults
    #[arg(long)]
    reuse_values: bool,
    /// Keep the values of the release before, over the new chart's defaults
    #[arg(long)]
    reset_then_reuse_values: bool,
    /// Revisions that are kept; 0 for all [default: 10, or HELM_MAX_HISTORY]
    #[arg(long, value_name = "COUNT")]
    history_max: Option<i64>,
    /// Delete what was created when the upgrade fails
    #[arg(long)]
    cleanup_on_fail: bool,
    /// Delete the pods of what changed
    #[arg(long, hide = true)]
    recreate_pods: bool,
}

impl UpgradeFlags {
    fn mode(&self) -> ValuesMode {
        if self.reset_values {
            ValuesMode::Reset
        } else if self.reuse_values {
            ValuesMode::Reuse
        } else if self.reset_then_reuse_values {
            ValuesMode::ResetThenReuse
        } else {
            ValuesMode::Default
        }
    }

    /// The library's options.
    pub(super) fn options(
        &self,
        release: ReleaseOptions,
        context: &mut Context<'_>,
    ) -> UpgradeOptions {
        if self.recreate_pods {
            context.ui.warning(
                "Flag --recreate-pods has been deprecated, functionality will no longer be updated. \
                 Consult the documentation for other methods to recreate pods",
            );
        }
        UpgradeOptions {
            release: ReleaseOptions {
                cleanup_on_fail: self.cleanup_on_fail,
                recreate_pods: self.recreate_pods,
                ..release
            },
            values: self.mode(),
            max_history: max_history(self.history_max, context),
        }
    }
}

/// How many revisions are kept.
pub(super) fn max_history(given: Option<i64>, context: &Context<'_>) -> usize {
    let configured =
        || context.environment.text("HELM_MAX_HISTORY").and_then(|text| text.parse().ok());
    usize::try_from(given.or_else(configured).unwrap_or(10)).unwrap_or_default()
}

pub(crate) fn run(
    mut arguments: Arguments,
    context: &mut Context<'_>,
) -> Result<Exit, CommandError> {
    arguments.write.check(context.environment)?;
    let name = arguments.release.clone();
    if arguments.install
        && let Some(replace) = installs(&name, &arguments.write, context)?
    {
        if arguments.write.output == Output::Table {
            context.ui.result(missing_release(&name))?;
        }
        let chart = &arguments.chart;
        return install_chart("", &name, &name, chart, replace, &mut arguments.write, context);
    }
    let engine = arguments.write.render.engine();
    let values = std::mem::take(&mut arguments.write.values).merge(context.environment)?;
    let options =
        arguments.modes.options(arguments.write.options(&name, context.environment)?, context);
    let chart = arguments.write.chart(&arguments.chart, false, context)?;
    let mut host = arguments.write.render.host(context.environment)?;
    let mut warnings = Vec::new();
    let (result, heard) =
        run_session(&arguments.write.cluster, context, &engine, async |session| {
            upgrade(session, chart, &values, &options, &mut host, &mut warnings).await
        })
        .map_err(|error| prefixed(FAILED, error))?;
    print_warnings(context.ui, &warnings);
    print_warnings(context.ui, &host.engine.log);
    // Where it cannot be told, what became of the release is more to know.
    let told = if heard.cancelled {
        context.ui.result(format!("Release {name} has been cancelled.\n"))
    } else {
        Ok(())
    };
    let record = result.map_err(|error| action_error(FAILED, &name, &error, &heard))?;
    told?;
    let head = match arguments.write.output {
        Output::Table => format!("Release {} has been upgraded. Happy Helming!\n", quote(&name)),
        _ => String::new(),
    };
    arguments.write.print(&head, &record, context)?;
    Ok(Exit::Done)
}

/// Whether `upgrade --install` installs: nothing when there is a release to upgrade, else whether an
/// uninstalled one is replaced.
pub(super) fn installs(
    name: &str,
    flags: &WriteFlags,
    context: &mut Context<'_>,
) -> Result<Option<bool>, CommandError> {
    let engine = flags.render.engine();
    let (heads, heard) = run_session(&flags.cluster, context, &engine, async |session| {
        // `History.Run` in `pkg/action/history.go`
        session.reach().await?;
        if validate_release_name(name).is_err() {
            return Err(ActionError::InvalidName(name.to_owned()));
        }
        Ok(session.storage().heads(name).await?)
    })?;
    match heads {
        Err(ActionError::Storage(StorageError::NotFound)) => Ok(Some(false)),
        Err(error) => Err(action_error("", name, &error, &heard)),
        Ok(heads) => {
            let last = heads.last();
            let is_gone = last.is_some_and(|last| last.has_status(&Status::Uninstalled));
            Ok(is_gone.then_some(true))
        }
    }
}
