//! `ichor release get all`, as `cmd/helm/get_all.go`.

use clap::Args;
use goyaml::Value;
use helm_rs::error_chain;
use helm_rs::release::storage::{Labels, SYSTEM_LABELS};
use helm_rs::release::{Record, redact};
use helm_rs::render::{RecordTemplateError, template_of_record};

use super::get::OneRecord;
use super::source::Chosen;
use super::status::{Shown, table_with};
use crate::commands::Context;
use crate::error::CommandError;
use crate::exit::Exit;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Print what this Go template makes of the record instead: {{.Release.Name}}
    #[arg(long, value_name = "TEMPLATE", default_value = "", hide_default_value = true)]
    template: String,
    #[command(flatten)]
    record: OneRecord,
}

pub(super) fn run(arguments: &Arguments, context: &mut Context<'_>) -> Result<Exit, CommandError> {
    let chosen = arguments.record.find(context)?;
    if !arguments.template.is_empty() {
        return templated(arguments, &chosen, context);
    }
    let secrets = arguments.record.show_secrets;
    let shown = Shown { secrets, metadata: true, debug: true, ..Shown::default() };
    let values = values(&chosen.record, secrets, false)?;
    let text = table_with(&chosen.record, shown, &values).map_err(|error| chosen.error(&error))?;
    context.ui.result(text)?;
    Ok(Exit::Done)
}

/// What the template makes of the record, up to where it failed.
fn templated(
    arguments: &Arguments,
    chosen: &Chosen,
    context: &mut Context<'_>,
) -> Result<Exit, CommandError> {
    let mut labels: Labels = chosen.labels.iter().cloned().collect();
    // Helm's drivers hand out the user's labels alone with a revision that is named.
    if arguments.record.names_revision() {
        labels.retain(|name, _| !SYSTEM_LABELS.contains(&name.as_str()));
    }
    let mut out = Vec::new();
    let done = template_of_record(
        &arguments.template,
        &chosen.record,
        &labels,
        arguments.record.show_secrets,
        &context.environment.zone(),
        &mut out,
    );
    context.ui.result(out)?;
    match done {
        Ok(()) => Ok(Exit::Done),
        Err(RecordTemplateError::Template { message }) => Err(CommandError::from_bytes(message)),
        Err(RecordTemplateError::Record(error)) => Err(chosen.error(&error)),
    }
}

/// What Helm prints of the values when it prints everything. Without any, they are null where the
/// record was read, and empty where it `is_new`.
pub(super) fn values(
    record: &Record,
    show_secrets: bool,
    is_new: bool,
) -> Result<String, CommandError> {
    let failed = |error: &(dyn std::error::Error + 'static)| CommandError::new(error_chain(error));
    let mut own = record.user_values().map_err(|error| failed(&error))?;
    if is_new {
        own.get_or_insert_default();
    }
    // Helm's warnings of this go to standard error, and are those of the installation.
    let all = record.coalesced_values(&mut Vec::new()).map_err(|error| failed(&error))?;
    let mut all = Some(all);
    if !show_secrets {
        own.iter_mut().chain(all.iter_mut()).for_each(redact::values);
    }
    let yaml = |values: Option<goyaml::Map>| {
        goyaml::to_yaml(&values.map_or(Value::Null, Value::Map)).map_err(CommandError::new)
    };
    Ok(format!("USER-SUPPLIED VALUES:\n{}\nCOMPUTED VALUES:\n{}\n", yaml(own)?, yaml(all)?))
}
