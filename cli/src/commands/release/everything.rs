//! `ichor release get all`, as `cmd/helm/get_all.go`.

use goyaml::Value;
use helm_rs::error_chain;
use helm_rs::release::{Record, redact};

use super::get::OneRecord;
use super::status::{Shown, table_with};
use crate::commands::Context;
use crate::error::CommandError;
use crate::exit::Exit;

pub(super) fn run(arguments: &OneRecord, context: &mut Context<'_>) -> Result<Exit, CommandError> {
    let chosen = arguments.find(context)?;
    let secrets = arguments.show_secrets;
    let shown = Shown { secrets, metadata: true, debug: true, ..Shown::default() };
    let values = values(&chosen.record, secrets, false)?;
    let text = table_with(&chosen.record, shown, &values).map_err(|error| chosen.error(&error))?;
    context.ui.result(text)?;
    Ok(Exit::Done)
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
