//! `ichor release values`, as `cmd/helm/get_values.go`.

use clap::Args;
use goyaml::{Map, Value};
use helm_rs::release::redact;

use super::get;
use crate::commands::Context;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::output::Output;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Print all values: the user's over the chart's
    #[arg(short, long)]
    all: bool,
    /// Form of the result
    #[arg(short, long, value_enum, value_name = "FORM", default_value_t)]
    output: Output,
    #[command(flatten)]
    record: get::OneRecord,
}

pub(crate) fn run(arguments: &Arguments, context: &mut Context<'_>) -> Result<Exit, CommandError> {
    let chosen = arguments.record.find(context)?;
    let record = &chosen.record;
    let mut values: Option<Map> = if arguments.all {
        let mut warnings = Vec::new();
        let all = record.coalesced_values(&mut warnings).map_err(|error| chosen.error(&error))?;
        // Warnings quote what they are about.
        let mut sensitive = None;
        for warning in warnings {
            let text = warning.to_string();
            let text = if arguments.record.show_secrets {
                text
            } else {
                sensitive.get_or_insert_with(|| redact::Sensitive::of_record(record)).scrub(&text)
            };
            context.ui.warning(text);
        }
        Some(all)
    } else {
        record.user_values().map_err(|error| chosen.error(&error))?
    };
    if !arguments.record.show_secrets {
        values.iter_mut().for_each(redact::values);
    }
    let value = values.map_or(Value::Null, Value::Map);
    let text = match arguments.output {
        Output::Table => {
            let head = if arguments.all { "COMPUTED VALUES:" } else { "USER-SUPPLIED VALUES:" };
            format!("{head}\n{}", goyaml::to_yaml(&value).map_err(CommandError::new)?)
        }
        Output::Json => {
            format!("{}\n", goyaml::json::to_json(&value).map_err(CommandError::new)?)
        }
        Output::Yaml => goyaml::to_yaml(&value).map_err(CommandError::new)?,
    };
    context.ui.result(text)?;
    Ok(Exit::Done)
}
