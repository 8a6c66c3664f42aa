//! `ichor release install`, as `cmd/helm/install.go`.

use clap::Args;
use helm_rs::action::install::{InstallOptions, install};
use helm_rs::gotext::quote;

use super::write::{WriteFlags, action_error, prefixed, run as run_session};
use crate::commands::Context;
use crate::commands::chart::options::print_warnings;
use crate::commands::chart::render::name_from_template;
use crate::error::CommandError;
use crate::exit::Exit;

/// What Helm puts before every error of an installation.
const FAILED: &str = "INSTALLATION FAILED: ";

#[derive(Debug, Args)]
#[command(
    override_usage = "ichor release install [NAME] CHART [OPTIONS]",
    after_help = concat!(
        "Does what `helm install` of Helm 3.21.4 does, and leaves a record that Helm reads.\n\n",
        "When the program dies in between, the release stays pending. Then:\n",
        "  ichor release repair NAME --yes\n",
        "  ichor release upgrade --install NAME CHART …\n\n",
        "Examples:\n",
        "  ichor release install web ./my-chart -n web --create-namespace --wait\n",
        "  ichor release plan install web ./my-chart -n web\n\n",
        "Exit codes:\n",
        "  0  done\n",
        "  1  an error, as in Helm"
    )
)]
pub(crate) struct Arguments {
    /// Name of the release, then the chart: a folder, an archive, REPOSITORY/CHART, an address, or a pinned one
    #[arg(value_name = "[NAME] CHART", num_args = 0..)]
    names: Vec<String>,
    /// Generate the name
    #[arg(short, long)]
    generate_name: bool,
    /// Name the release by a template
    #[arg(long, value_name = "TEMPLATE")]
    name_template: Option<String>,
    /// Take the name of a release that was uninstalled or has failed
    #[arg(long)]
    replace: bool,
    #[command(flatten)]
    write: WriteFlags,
}

pub(crate) fn run(
    mut arguments: Arguments,
    context: &mut Context<'_>,
) -> Result<Exit, CommandError> {
    arguments.write.check(context.environment)?;
    if arguments.names.is_empty() {
        return Err(CommandError::new(
            "\"ichor release install\" requires at least 1 argument\n\n\
             Usage:  ichor release install [NAME] [CHART] [flags]",
        ));
    }
    let (name, chart) =
        arguments.name_and_chart(context).map_err(|error| prefixed(FAILED, error))?;
    let first = arguments.names.first().cloned().unwrap_or_default();
    install_chart(FAILED, &first, &name, &chart, arguments.replace, &mut arguments.write, context)
}

/// Installs and prints the result; `upgrade --install` ends here too.
pub(super) fn install_chart(
    prefix: &str,
    told_name: &str,
    name: &str,
    chart: &str,
    replace: bool,
    flags: &mut WriteFlags,
    context: &mut Context<'_>,
) -> Result<Exit, CommandError> {
    let fail = |error| prefixed(prefix, error);
    let values = std::mem::take(&mut flags.values).merge(context.environment).map_err(fail)?;
    let chart = flags.chart(chart, true, context).map_err(fail)?;
    let options = InstallOptions {
        release: flags.options(name, context.environment).map_err(fail)?,
        create_namespace: flags.create_namespace,
        skip_crds: flags.skip_crds,
        replace,
    };
    let mut host = flags.render.host(context.environment).map_err(fail)?;
    let engine = flags.render.engine();
    let mut warnings = Vec::new();
    let (result, heard) = run_session(&flags.cluster, context, &engine, async |session| {
        install(session, chart, &values, &options, &mut host, &mut warnings).await
    })
    .map_err(fail)?;
    print_warnings(context.ui, &warnings);
    print_warnings(context.ui, &host.engine.log);
    // Where it cannot be told, what became of the release is more to know.
    let told = if heard.cancelled {
        context.ui.result(format!("Release {told_name} has been cancelled.\n"))
    } else {
        Ok(())
    };
    let record = result.map_err(|error| action_error(prefix, name, &error, &heard))?;
    told?;
    flags.print("", &record, context)?;
    Ok(Exit::Done)
}

impl Arguments {
    /// `Install.NameAndChart`
    fn name_and_chart(&self, context: &Context<'_>) -> Result<(String, String), CommandError> {
        let template = self.name_template.as_deref().filter(|template| !template.is_empty());
        match self.names.as_slice() {
            [] => Err(CommandError::new("no chart given")),
            [_, _, more @ ..] if !more.is_empty() => Err(CommandError::new(format_args!(
                "expected at most two arguments, unexpected arguments: {}",
                more.join(", ")
            ))),
            [_, _, ..] if self.generate_name => {
                Err(CommandError::new("cannot set --generate-name and also specify a name"))
            }
            [_, _, ..] if template.is_some() => {
                Err(CommandError::new("cannot set --name-template and also specify a name"))
            }
            [name, chart, ..] => Ok((name.clone(), chart.clone())),
            [chart] => {
                if let Some(template) = template {
                    let name = name_from_template(template, &self.write.render, context)?;
                    return Ok((name, chart.clone()));
                }
                if !self.generate_name {
                    return Err(CommandError::new(
                        "must either provide a name or specify --generate-name",
                    ));
                }
                let seconds = context
                    .environment
                    .now()
                    .duration_since(std::time::UNIX_EPOCH)
                    .unwrap_or_default()
                    .as_secs();
                let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
                Ok((helm_rs::name::generate(chart, seconds), chart.clone()))
            }
        }
    }
}

/// What `upgrade --install` says when it installs.
pub(super) fn missing_release(name: &str) -> String {
    format!("Release {} does not exist. Installing it now.\n", quote(name))
}
