//! `ichor release history`, as `cmd/helm/history.go`.

use clap::Args;
use goyaml::{Map, Value};

use super::list::{app_version, chart_name};
use super::source::{Listed, SourceFlags};
use super::table::table;
use super::time;
use crate::commands::Context;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::output::Output;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The release's name
    release: String,
    /// Maximum number of revisions to print
    #[arg(long, value_name = "NUMBER", default_value_t = 256, allow_negative_numbers = true)]
    max: i64,
    /// Form of the result
    #[arg(short, long, value_enum, value_name = "FORM", default_value_t)]
    output: Output,
    /// Show credentials that descriptions quote
    #[arg(long)]
    show_secrets: bool,
    #[command(flatten)]
    source: SourceFlags,
}

pub(crate) fn run(arguments: &Arguments, context: &mut Context<'_>) -> Result<Exit, CommandError> {
    let reading =
        arguments.source.revisions(&arguments.release, arguments.show_secrets, context)?;
    let namespace = reading.made.first().map(|listed| listed.namespace.clone());
    let complete = reading.check_all(&arguments.release, &namespace.unwrap_or_default());
    let mut revisions = reading.made;
    revisions.sort_by_key(|listed| listed.summary.revision);
    let keep = usize::try_from(arguments.max).unwrap_or(0).min(revisions.len());
    let revisions = revisions.split_off(revisions.len() - keep);
    let text = match arguments.output {
        Output::Table => {
            let heads = ["REVISION", "UPDATED", "STATUS", "CHART", "APP VERSION", "DESCRIPTION"];
            let mut rows = vec![heads.map(str::to_owned).to_vec()];
            rows.extend(revisions.iter().map(row));
            table(&rows)
        }
        Output::Json => json(&revisions),
        Output::Yaml => yaml(&revisions).map_err(CommandError::new)?,
    };
    context.ui.result(text)?;
    // What could be read is printed, and is not all.
    complete.map(|()| Exit::Done)
}

fn row(listed: &Listed) -> Vec<String> {
    let summary = &listed.summary;
    vec![
        summary.revision.to_string(),
        time::ansic(&summary.info.last_deployed),
        summary.info.status_text.clone(),
        chart_name(summary),
        app_version(summary),
        summary.info.description.clone(),
    ]
}

/// The fields in the order of the Go struct, which JSON keeps.
fn fields(listed: &Listed) -> [(&'static str, Value); 6] {
    let summary = &listed.summary;
    [
        ("revision", Value::from(summary.revision)),
        ("updated", Value::from(time::rfc3339(&summary.info.last_deployed))),
        ("status", Value::from(summary.info.status_text.as_str())),
        ("chart", Value::from(chart_name(summary))),
        ("app_version", Value::from(app_version(summary))),
        ("description", Value::from(summary.info.description.as_str())),
    ]
}

fn json(revisions: &[Listed]) -> String {
    super::ordered_json(revisions.iter().map(fields))
}

fn yaml(revisions: &[Listed]) -> Result<String, goyaml::Error> {
    let items = revisions.iter().map(|listed| Value::Map(Map::from_iter(fields(listed)))).collect();
    goyaml::to_yaml(&Value::Seq(items))
}
