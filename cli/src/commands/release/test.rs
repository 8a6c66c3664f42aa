//! `ichor release test`, as `cmd/helm/release_testing.go`.

use clap::Args;
use helm_rs::action::testing::{TestOptions, logs, test};
use helm_rs::error_chain;
use helm_rs::render::{Engine, EngineOptions};

use super::everything::values;
use super::status::{Shown, table_with};
use super::write::{Host, action_error};
use crate::commands::Context;
use crate::connection::{ClusterFlags, record_kind};
use crate::error::CommandError;
use crate::exit::Exit;
use crate::flags;

#[derive(Debug, Args)]
#[command(
    after_help = concat!(
        "Does what `helm test` of Helm 3.21.4 does: creates the chart's test hooks, waits for them,\n",
        "records how they ended, and prints it.\n\n",
        "Examples:\n",
        "  ichor release test web -n web --logs\n",
        "  ichor release test web -n web --filter name=web-reach\n",
        "  ichor release test web -n web --filter '!name=web-slow'\n\n",
        "Exit codes:\n",
        "  0  all tests succeeded\n",
        "  1  one did not, or another error, as in Helm"
    )
)]
pub(crate) struct Arguments {
    /// Name of the release
    release: String,
    /// How long one test may take
    #[arg(long, value_name = "DURATION", default_value = "5m0s")]
    timeout: String,
    /// Print the logs of test pods
    #[arg(long)]
    logs: bool,
    /// Run only these tests, or with ! all others: name=x, !name=x (repeatable)
    #[arg(long, value_name = "[!]name=NAME")]
    filter: Vec<String>,
    /// Do not print the notes
    #[arg(long)]
    hide_notes: bool,
    /// Delete objects of other releases too, as Helm does
    #[arg(long)]
    helm_compat: bool,
    #[command(flatten)]
    cluster: ClusterFlags,
}

pub(crate) fn run(arguments: &Arguments, context: &mut Context<'_>) -> Result<Exit, CommandError> {
    let name = &arguments.release;
    let timeout = flags::helms_duration("timeout", &arguments.timeout)?;
    let filters = flags::string_slice("filter", &arguments.filter)?;
    record_kind(context.environment)?;
    let without = filters.iter().filter_map(|filter| {
        let rest = filter.strip_prefix('!')?;
        rest.strip_prefix([' ', '\t', '\n', '\r', '\x0C']).unwrap_or(rest).strip_prefix("name=")
    });
    let options = TestOptions {
        name: name.clone(),
        namespace: arguments.cluster.namespace(context.environment),
        timeout,
        only: filters.iter().filter_map(|it| it.strip_prefix("name=")).map(str::to_owned).collect(),
        without: without.map(str::to_owned).collect(),
        helm_compat: arguments.helm_compat,
    };
    let host = Host::open(&arguments.cluster, context)?;
    let engine = Engine::new(EngineOptions::default());
    let (result, heard) =
        host.run(context, &engine, async |session| test(session, &options).await)?;
    let tested = result.map_err(|error| action_error("", name, &error, &heard))?;
    let shown = Shown {
        secrets: true,
        hide_notes: arguments.hide_notes,
        debug: context.global.debug,
        ..Shown::default()
    };
    let debug = if shown.debug { values(&tested.record, true, false)? } else { String::new() };
    let text = table_with(&tested.record, shown, &debug);
    let text = text.map_err(|error| CommandError::new(error_chain(&error)))?;
    context.ui.result_of(text, format_args!("the tests of {name} ran"))?;
    if arguments.logs {
        context.ui.result("\n")?;
        let mut out = Vec::new();
        let (result, heard) = host.run(context, &engine, async |session| {
            logs(session, &tested.record, &options, &mut out).await
        })?;
        context.ui.result(out)?;
        result.map_err(|error| action_error("", name, &error, &heard))?;
    }
    match tested.failure {
        Some(error) => Err(action_error("", name, &error, &heard)),
        None => Ok(Exit::Done),
    }
}
