//! `ichor release status`, as `cmd/helm/status.go`.

use std::fmt::Write as _;

use clap::Args;
use goyaml::Limits;
use helm_rs::release::redact::Words;
use helm_rs::release::{FieldError, Record, Summary, redact};
#[cfg(feature = "network")]
use {
    crate::session::Host,
    helm_rs::action::resources::{ResourceForm, Resources, resources},
    helm_rs::error_chain,
    helm_rs::gojson::Fields,
    helm_rs::printer::TablePrinter,
    helm_rs::render::{Engine, EngineOptions},
};

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
    /// Print what of the release is on the cluster too, with the pods of its workloads
    #[cfg(feature = "network")]
    #[arg(long)]
    show_resources: bool,
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
    let resources = resources_of(record, arguments, context)?;
    let shown = Shown {
        description: arguments.show_desc,
        secrets: arguments.record.show_secrets,
        ..Shown::default()
    };
    let json = |record: &Record| {
        json(record, arguments.record.show_secrets, resources.as_deref()).map_err(fail)
    };
    let text = match arguments.output {
        Output::Table => {
            let shown = Shown { resources: resources.as_deref().unwrap_or_default(), ..shown };
            table(record, shown).map_err(fail)?
        }
        Output::Json => format!("{}\n", json(record)?),
        Output::Yaml => {
            let json = json(record)?;
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

fn json(
    record: &Record,
    show_secrets: bool,
    resources: Option<&str>,
) -> Result<String, FieldError> {
    let mut values = record.user_values()?;
    if show_secrets {
        return record.to_helm_json(values, str::to_owned, str::to_owned, resources);
    }
    values.iter_mut().for_each(redact::values);
    let words = Words::of_record(record);
    record.to_helm_json(
        values,
        |manifest| words.manifest(manifest),
        |notes| words.notes(notes),
        resources,
    )
}

#[cfg(not(feature = "network"))]
#[expect(clippy::unnecessary_wraps, reason = "as with a network")]
fn resources_of(
    _: &Record,
    _: &Arguments,
    _: &mut Context<'_>,
) -> Result<Option<String>, CommandError> {
    Ok(None)
}

/// What of the release is on the cluster, as it is to be printed; none where nothing is, or nobody
/// asked. What cannot be read is told on standard error.
#[cfg(feature = "network")]
fn resources_of(
    record: &Record,
    arguments: &Arguments,
    context: &mut Context<'_>,
) -> Result<Option<String>, CommandError> {
    if !arguments.show_resources {
        return Ok(None);
    }
    let Some(cluster) = arguments.record.cluster() else {
        let error = CommandError::new("--show-resources asks a cluster, and --from reads files");
        return Err(error.hint("leave one of them out"));
    };
    let manifest = record.manifest().map_err(|error| CommandError::new(error_chain(&error)))?;
    let namespace = cluster.namespace(context.environment);
    let form = match arguments.output {
        Output::Table => ResourceForm::Tables,
        Output::Json | Output::Yaml => ResourceForm::Objects,
    };
    let engine = Engine::new(EngineOptions::default());
    let host = Host::open(cluster, context)?;
    let (looked, _) = host.look(context, &engine, async |session| {
        let found = resources(session, &manifest, &namespace, form).await;
        found.map(|found| (found, session.clock.now()))
    })?;
    let (found, now) = looked.map_err(|error| CommandError::new(error_chain(&error)))?;
    for unread in &found.unread {
        context.ui.warning(format!("not shown: {}", error_chain(unread)));
    }
    if found.groups.is_empty() {
        return Ok(None);
    }
    match form {
        ResourceForm::Tables => Ok(Some(tables(&found, now))),
        ResourceForm::Objects => objects(&found, arguments.record.show_secrets).map(Some),
    }
}

#[cfg(feature = "network")]
fn tables(found: &Resources, now: jiff::Timestamp) -> String {
    let mut printer = TablePrinter::new(now);
    let mut out = "RESOURCES:\n".to_owned();
    for (group, values) in &found.groups {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "==> {group}");
        for value in values {
            printer.print(value, &mut out);
        }
        out.push('\n');
    }
    out.push('\n');
    out
}

/// Groups and the fields of objects in the order of their names, as Go writes maps.
#[cfg(feature = "network")]
fn objects(found: &Resources, show_secrets: bool) -> Result<String, CommandError> {
    let limits = Limits::default();
    let mut groups: Vec<_> = found.groups.iter().collect();
    groups.sort_by_key(|(group, _)| group.as_str());
    let mut fields = Fields::default();
    for (group, values) in groups {
        let texts: Result<Vec<String>, CommandError> = values
            .iter()
            .map(|value| {
                let mut value =
                    goyaml::json::from_json_exact(value.to_string().as_bytes(), &limits)
                        .map_err(CommandError::new)?;
                if !show_secrets {
                    redact::object(&mut value);
                }
                goyaml::json::to_json(&value).map_err(CommandError::new)
            })
            .collect();
        fields.raw_key(group.as_bytes(), &format!("[{}]", texts?.join(",")));
    }
    Ok(fields.end())
}

/// What of a record's state is printed (`statusPrinter`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Shown<'a> {
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
    /// What of the release is on the cluster, made up.
    pub(super) resources: &'a str,
}

/// A record's state for people.
pub(super) fn table(record: &Record, shown: Shown<'_>) -> Result<String, FieldError> {
    table_with(record, shown, "")
}

/// [`table`], with more of it before hooks and manifest.
pub(super) fn table_with(
    record: &Record,
    shown: Shown<'_>,
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
    out.push_str(shown.resources);
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
    let words = if shown.secrets { Words::default() } else { Words::of_record(record) };
    if shown.debug || info.description.eq_ignore_ascii_case("dry run complete") {
        let edit = |text: &str| {
            if shown.secrets { text.to_owned() } else { words.manifest(text) }
        };
        out.push_str("HOOKS:\n");
        for hook in &hooks {
            let _ = writeln!(out, "---\n# Source: {}\n{}", hook.path, edit(&hook.manifest));
        }
        let _ = writeln!(out, "MANIFEST:\n{}", edit(&record.manifest()?));
    }
    if !shown.hide_notes && !info.notes.is_empty() {
        let notes = if shown.secrets { info.notes } else { words.notes(&info.notes) };
        let _ = writeln!(out, "NOTES:\n{}", notes.trim());
    }
    Ok(out)
}
