//! `ichor release status`, as `cmd/helm/status.go`.

use std::fmt::Write as _;

use clap::Args;
use goyaml::Limits;
use helm_rs::release::{FieldError, Record, Summary, redact};

use super::{get, time};
use crate::commands::Context;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::output::Output;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Print the description too
    #[arg(long)]
    show_desc: bool,
    /// Form of the result
    #[arg(short, long, value_enum, value_name = "FORM", default_value_t)]
    output: Output,
    #[command(flatten)]
    record: get::OneRecord,
}

pub(crate) fn run(arguments: &Arguments, context: &mut Context<'_>) -> Result<Exit, CommandError> {
    let chosen = arguments.record.find(context)?;
    let fail = |error: FieldError| chosen.error(&error);
    let record = &if arguments.record.show_secrets {
        chosen.record.clone()
    } else {
        without_quotes(&chosen.record).map_err(fail)?
    };
    let shown = Shown {
        description: arguments.show_desc,
        secrets: arguments.record.show_secrets,
        ..Shown::default()
    };
    let text = match arguments.output {
        Output::Table => table(record, shown).map_err(fail)?,
        Output::Json => format!("{}\n", json(record, arguments.record.show_secrets).map_err(fail)?),
        Output::Yaml => {
            let json = json(record, arguments.record.show_secrets).map_err(fail)?;
            let value = goyaml::json::from_json_exact(json.as_bytes(), &Limits::default())
                .map_err(CommandError::new)?;
            goyaml::to_yaml(&value).map_err(CommandError::new)?
        }
    };
    context.ui.result(text)?;
    Ok(Exit::Done)
}

/// A record whose description, where Helm writes a failed operation's error, quotes no credential.
fn without_quotes(record: &Record) -> Result<Record, FieldError> {
    let mut record = record.clone();
    let info = record.info()?;
    let description = redact::description_of(&record, &info.description);
    if description != info.description {
        record.set_status(&info.status(), &description)?;
    }
    Ok(record)
}

fn json(record: &Record, show_secrets: bool) -> Result<String, FieldError> {
    let mut values = record.user_values()?;
    if show_secrets {
        return record.to_helm_json(values, str::to_owned);
    }
    values.iter_mut().for_each(redact::values);
    record.to_helm_json(values, redact::manifest)
}

/// What of a record's state is printed (`statusPrinter`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Shown {
    /// The description.
    pub(super) description: bool,
    /// Credentials, as they are.
    pub(super) secrets: bool,
    /// The chart's name and versions.
    pub(super) metadata: bool,
    /// Not the notes.
    pub(super) hide_notes: bool,
    /// Hooks and manifest, whatever the description says.
    pub(super) debug: bool,
}

/// A record's state for people.
pub(super) fn table(record: &Record, shown: Shown) -> Result<String, FieldError> {
    table_with(record, shown, "")
}

/// [`table`], with more of it before hooks and manifest.
pub(super) fn table_with(
    record: &Record,
    shown: Shown,
    values: &str,
) -> Result<String, FieldError> {
    let info = record.info()?;
    let mut out = format!("NAME: {}\n", record.name()?);
    // Writing to a String cannot fail.
    if time::read(&info.last_deployed).is_some() {
        let _ = writeln!(out, "LAST DEPLOYED: {}", time::ansic(&info.last_deployed));
    }
    let _ = writeln!(out, "NAMESPACE: {}", record.namespace()?);
    let _ = writeln!(out, "STATUS: {}", info.status_text);
    let _ = writeln!(out, "REVISION: {}", record.revision()?);
    if shown.metadata {
        let about = Summary::from_json(&record.to_json())
            .map_err(|source| FieldError { field: "chart", source })?;
        let _ = writeln!(
            out,
            "CHART: {}\nVERSION: {}\nAPP_VERSION: {}",
            about.chart, about.chart_version, about.app_version
        );
    }
    if shown.description {
        let _ = writeln!(out, "DESCRIPTION: {}", info.description);
    }
    let hooks = record.hooks()?;
    // A hook that names the event twice is listed twice, as in Helm.
    let tests: Vec<_> = hooks
        .iter()
        .flat_map(|hook| hook.events.iter().filter(|event| *event == "test").map(move |_| hook))
        .collect();
    if tests.is_empty() {
        out.push_str("TEST SUITE: None\n");
    }
    for hook in tests {
        let run = &hook.last_run;
        if time::read(&run.started_at).is_some() {
            let _ = writeln!(
                out,
                "TEST SUITE:     {}\nLast Started:   {}\nLast Completed: {}\nPhase:          {}",
                hook.name,
                time::ansic(&run.started_at),
                time::ansic(&run.completed_at),
                run.phase
            );
        }
    }
    out.push_str(values);
    if shown.debug || info.description.eq_ignore_ascii_case("dry run complete") {
        let edit = |text: &str| {
            if shown.secrets { text.to_owned() } else { redact::manifest(text) }
        };
        out.push_str("HOOKS:\n");
        for hook in &hooks {
            let _ = writeln!(out, "---\n# Source: {}\n{}", hook.path, edit(&hook.manifest));
        }
        let _ = writeln!(out, "MANIFEST:\n{}", edit(&record.manifest()?));
    }
    if !shown.hide_notes && !info.notes.is_empty() {
        let _ = writeln!(out, "NOTES:\n{}", info.notes.trim());
    }
    Ok(out)
}
