//! What `ichor release install` and `upgrade` share: flags, the session, the result.

mod post_renderer;
mod shared;

use clap::Args;
use helm_rs::action::{ActionError, DryRun, ReleaseOptions};
use helm_rs::apply::WaitError;
use helm_rs::chart::Chart;
use helm_rs::error_chain;
use helm_rs::release::{Record, Status};

use super::everything::values;
use super::status::{Shown, table_with};
use crate::commands::Context;
use crate::commands::chart::options::{LimitFlags, ValueFlags, check_chart};
use crate::commands::chart::render::RenderFlags;
use crate::commands::chart::source::ChartFlags;
use crate::commands::chart::template::error_text;
use crate::connection::{ClusterFlags, record_kind};
use crate::environment::Environment;
use crate::error::CommandError;
use crate::flags;
use crate::output::Output;

pub(crate) use crate::session::{Heard, Host, run};
use post_renderer::PostRendererFlags;
pub(super) use shared::{HookFlags, ObjectFlags};

/// Flags of installations and upgrades.
#[derive(Debug, Args)]
pub(super) struct WriteFlags {
    /// Only say what would be made; `server` lets templates look at the cluster
    #[arg(long, value_name = "client|server|none", num_args = 0..=1, require_equals = true, default_missing_value = "client")]
    dry_run: Option<String>,
    /// Leave the contents of Secrets out of a dry run's result
    #[arg(long)]
    hide_secret: bool,
    #[command(flatten)]
    objects: ObjectFlags,
    #[command(flatten)]
    hooks: HookFlags,
    /// Undo what was done when it fails: uninstall, or roll back; waits as --wait
    #[arg(long)]
    atomic: bool,
    /// Create the release's namespace if it is missing
    #[arg(long)]
    pub(super) create_namespace: bool,
    /// Do not install what is under crds/
    #[arg(long)]
    pub(super) skip_crds: bool,
    /// Take objects that belong to no release or to another one
    #[arg(long)]
    take_ownership: bool,
    /// Description for the record
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// Labels for the record: key1=val1,key2=val2 (repeatable)
    #[arg(short, long, value_name = "KEY=VALUE")]
    labels: Vec<String>,
    /// Do not check that every object says what it is
    #[arg(long)]
    disable_openapi_validation: bool,
    /// Do not check values against values.schema.json
    #[arg(long)]
    skip_schema_validation: bool,
    /// Make subcharts' notes part of the notes
    #[arg(long)]
    render_subchart_notes: bool,
    /// Do not print the notes
    #[arg(long)]
    hide_notes: bool,
    /// Form of the result
    #[arg(short, long, value_enum, value_name = "FORM", default_value_t)]
    pub(super) output: Output,
    /// Bring in missing dependencies first: `ichor chart dependency update`
    #[arg(long)]
    dependency_update: bool,

    #[command(flatten)]
    pub(super) values: ValueFlags,
    #[command(flatten)]
    pub(super) cluster: ClusterFlags,
    #[command(flatten)]
    pub(super) render: RenderFlags,
    #[command(flatten)]
    source: ChartFlags,
    #[command(flatten)]
    limits: LimitFlags,
    #[command(flatten)]
    post_renderer: PostRendererFlags,
}

impl WriteFlags {
    /// Refuses what this program cannot do, before anything is read.
    pub(super) fn check(&self, environment: &Environment) -> Result<(), CommandError> {
        // Helm reads these before anything that has a heading in its errors.
        self.hooks.timeout()?;
        flags::string_map("-l, --labels", &self.labels)?;
        self.post_renderer.find(environment)?;
        record_kind(environment)?;
        Ok(())
    }

    /// Loads the chart and looks whether it can be installed. Values are read before.
    pub(super) fn chart(
        &self,
        name: &str,
        installable: bool,
        context: &mut Context<'_>,
    ) -> Result<Chart, CommandError> {
        let chart = self.source.load(name, &self.limits, self.dependency_update, context)?;
        check_chart(&chart, installable, context)?;
        Ok(chart)
    }

    /// The library's options.
    pub(super) fn options(
        &self,
        name: &str,
        environment: &Environment,
    ) -> Result<ReleaseOptions, CommandError> {
        let dry_run = match self.dry_run.as_deref() {
            None | Some("" | "none" | "false") => DryRun::No,
            Some("client" | "true") => DryRun::Client,
            Some("server") => DryRun::Server,
            Some(_) => {
                return Err(CommandError::new(
                    "Invalid dry-run flag. Flag must one of the following: false, true, none, client, server",
                ));
            }
        };
        Ok(ReleaseOptions {
            name: name.to_owned(),
            namespace: self.cluster.namespace(environment),
            description: self.description.clone().unwrap_or_default(),
            labels: flags::string_map("-l, --labels", &self.labels)?.into_iter().collect(),
            dry_run,
            hide_secret: self.hide_secret,
            wait: self.objects.wait,
            wait_for_jobs: self.objects.wait_for_jobs,
            timeout: self.hooks.timeout()?,
            take_ownership: self.take_ownership,
            disable_validation: self.disable_openapi_validation,
            no_hooks: self.hooks.no_hooks,
            skip_schema_validation: self.skip_schema_validation,
            subchart_notes: self.render_subchart_notes,
            atomic: self.atomic,
            method: self.objects.method(),
            post_renderer: self.post_renderer.find(environment)?,
            helm_compat: self.hooks.helm_compat,
            ..ReleaseOptions::default()
        })
    }

    /// Prints what became of the release, as Helm does, after a line of its own.
    pub(super) fn print(
        &self,
        head: &str,
        record: &Record,
        context: &mut Context<'_>,
    ) -> Result<(), CommandError> {
        let text = match self.output {
            Output::Table => {
                let shown = Shown {
                    secrets: true,
                    hide_notes: self.hide_notes,
                    debug: context.global.debug,
                    ..Shown::default()
                };
                let values = if shown.debug { values(record, true, true)? } else { String::new() };
                table_with(record, shown, &values)
                    .map_err(|error| CommandError::new(error_chain(&error)))?
            }
            Output::Json => format!("{}\n", record.to_json()),
            Output::Yaml => {
                let json = record.to_json();
                let limits = goyaml::Limits::default();
                let value = goyaml::json::from_json_exact(json.as_bytes(), &limits)
                    .map_err(CommandError::new)?;
                goyaml::to_yaml(&value).map_err(CommandError::new)?
            }
        };
        let info = record.info().map_err(|error| CommandError::new(error_chain(&error)))?;
        let revision = record.revision().unwrap_or_default();
        let name = record.name().unwrap_or_default();
        let done = match info.status() {
            Status::Deployed => format!("it is done: revision {revision} of {name} is deployed"),
            status => format!("revision {revision} of {name} would be {status}"),
        };
        context.ui.result_of(format!("{head}{text}"), done)
    }
}

/// An action's error as the command's, with what Helm puts before it and what to do next.
pub(super) fn action_error(
    prefix: &str,
    release: &str,
    error: &ActionError,
    heard: &Heard,
) -> CommandError {
    let text = match error {
        ActionError::Template(error) => error_text(error),
        error => error_chain(error).into_bytes(),
    };
    let error_with = CommandError::from_bytes([prefix.as_bytes(), &text].concat());
    if error.has_field_conflicts() {
        return error_with.hint(
            "--force-conflicts takes these fields; the chart can also leave them to the others",
        );
    }
    match error {
        ActionError::LeftPending { status, .. } => error_with.hint(format!(
            "the record says {status}, as it does after Helm: roll back again, or run: ichor release \
             repair {release}"
        )),
        ActionError::NotDeleted { errors, .. } => error_with.hint(format!(
            "nothing of the record was deleted, so that this can be tried again: {}",
            errors.join("; ")
        )),
        ActionError::Pending => error_with.hint(format!(
            "if nothing is at work any more, see how far it got: ichor release repair {release}"
        )),
        ActionError::Unrecorded { .. } => {
            error_with.hint(format!("then run: ichor release repair {release}"))
        }
        ActionError::PerhapsPending(_) => error_with.hint(format!(
            "nothing else was written, but the record may be there, and pending; see: ichor release \
             repair {release}"
        )),
        ActionError::StillPending { status, record, .. } => error_with.hint(format!(
            "the record still says {status}, as it could not be written: {}; when it can be, run: \
             ichor release repair {release}",
            error_chain(&**record)
        )),
        ActionError::Wait(WaitError::Deadline) if !heard.waiting.is_empty() => {
            error_with.hint(heard.not_ready().trim_end())
        }
        _ => error_with,
    }
}

/// Puts Helm's words before an error.
pub(super) fn prefixed(prefix: &str, mut error: CommandError) -> CommandError {
    if let Some(message) = &mut error.message {
        *message = [prefix.as_bytes(), message].concat();
    }
    error
}
