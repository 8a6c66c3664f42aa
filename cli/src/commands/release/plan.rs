//! `ichor release plan`: what an installation or upgrade would do; writes nothing.

use clap::{Args, Subcommand};
use goyaml::{Map, Value};
use helm_rs::action::install::InstallOptions;
use helm_rs::action::plan::{ObjectChange, Plan, PlanOptions, PlannedObject, plan};
use helm_rs::action::rights::{Right, manifest};
use helm_rs::apply::FieldConflict;

use super::table::table;
use super::upgrade::{UpgradeFlags, installs};
use super::write::{WriteFlags, action_error, run as run_session};
use crate::commands::Context;
use crate::commands::chart::options::print_warnings;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::output::Output;

/// What both plans say in `--help`.
const AFTER_HELP: &str = concat!(
    "Every request that the action would send is sent as a dry run; what the server answers is\n",
    "compared with what is live. Objects whose namespace or definition the plan itself creates are\n",
    "computed in memory, and marked so.\n\n",
    "Examples:\n",
    "  ichor release plan install web ./my-chart -n web\n",
    "  ichor release plan upgrade web ./my-chart -n web -f values.yaml -o json\n",
    "  ichor release plan upgrade web ./my-chart -n web --rights | kubectl apply -f -\n\n",
    "Exit codes:\n",
    "  0  the action is possible\n",
    "  1  an error, as of the action itself\n",
    "  2  the action is not possible: rights are missing, or the server refuses an object"
);

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Plan the installation of a chart
    #[command(after_help = AFTER_HELP)]
    Install(Box<InstallArguments>),
    /// Plan the upgrade of a release
    #[command(after_help = AFTER_HELP)]
    Upgrade(Box<UpgradeArguments>),
}

#[derive(Debug, Args)]
pub(crate) struct InstallArguments {
    /// Name of the release
    release: String,
    /// The chart: a folder, an archive, REPOSITORY/CHART, an address, or the name of a pinned chart
    chart: String,
    /// Print the RBAC rules that the action needs, as roles ready to apply
    #[arg(long)]
    rights: bool,
    /// Take the name of a release that was uninstalled or has failed
    #[arg(long)]
    replace: bool,
    #[command(flatten)]
    write: WriteFlags,
}

#[derive(Debug, Args)]
pub(crate) struct UpgradeArguments {
    /// Name of the release
    release: String,
    /// The chart: a folder, an archive, REPOSITORY/CHART, an address, or the name of a pinned chart
    chart: String,
    /// Print the RBAC rules that the action needs, as roles ready to apply
    #[arg(long)]
    rights: bool,
    /// Plan the installation if there is no such release
    #[arg(short, long)]
    install: bool,
    #[command(flatten)]
    modes: UpgradeFlags,
    #[command(flatten)]
    write: WriteFlags,
}

pub(crate) fn run(command: Command, context: &mut Context<'_>) -> Result<Exit, CommandError> {
    match command {
        Command::Install(arguments) => {
            let mut arguments = *arguments;
            let options =
                installation(&arguments.release, arguments.replace, &arguments.write, context)?;
            let (release, chart) = (arguments.release.clone(), arguments.chart.clone());
            make(&options, &release, &chart, arguments.rights, &mut arguments.write, context)
        }
        Command::Upgrade(arguments) => {
            let mut arguments = *arguments;
            let replace = if arguments.install {
                installs(&arguments.release, &arguments.write, context)?
            } else {
                None
            };
            let options = match replace {
                Some(replace) => {
                    installation(&arguments.release, replace, &arguments.write, context)?
                }
                None => PlanOptions::Upgrade(arguments.modes.options(
                    arguments.write.options(&arguments.release, context.environment)?,
                    context,
                )),
            };
            let (release, chart) = (arguments.release.clone(), arguments.chart.clone());
            make(&options, &release, &chart, arguments.rights, &mut arguments.write, context)
        }
    }
}

fn installation(
    name: &str,
    replace: bool,
    flags: &WriteFlags,
    context: &Context<'_>,
) -> Result<PlanOptions, CommandError> {
    Ok(PlanOptions::Install(InstallOptions {
        release: flags.options(name, context.environment)?,
        create_namespace: flags.create_namespace,
        skip_crds: flags.skip_crds,
        replace,
    }))
}

fn make(
    options: &PlanOptions,
    release: &str,
    chart: &str,
    only_rights: bool,
    flags: &mut WriteFlags,
    context: &mut Context<'_>,
) -> Result<Exit, CommandError> {
    flags.check(context.environment)?;
    let values = std::mem::take(&mut flags.values).merge(context.environment)?;
    let mut chart = flags.chart(chart, matches!(options, PlanOptions::Install(_)), context)?;
    let mut host = flags.render.host(context.environment)?;
    let engine = flags.render.engine();
    let mut warnings = Vec::new();
    let (result, heard) = run_session(&flags.cluster, context, &engine, async |session| {
        plan(session, &mut chart, &values, options, &mut host, &mut warnings).await
    })?;
    print_warnings(context.ui, &warnings);
    print_warnings(context.ui, &host.engine.log);
    let plan = result.map_err(|error| action_error("", release, &error, &heard))?;
    if only_rights {
        context.ui.result(role_text(&plan)?)?;
        return Ok(Exit::Done);
    }
    match flags.output {
        Output::Table => context.ui.result(text(&plan))?,
        Output::Json => {
            let json = goyaml::json::to_json(&value(&plan)).map_err(CommandError::new)?;
            context.ui.result(json)?;
            context.ui.result("\n")?;
        }
        Output::Yaml => {
            context.ui.result(goyaml::to_yaml(&value(&plan)).map_err(CommandError::new)?)?;
        }
    }
    Ok(if plan.is_possible() { Exit::Done } else { Exit::No })
}

fn role_text(plan: &Plan) -> Result<String, CommandError> {
    let mut text = String::new();
    for role in manifest(plan) {
        let limits = goyaml::Limits::default();
        let value = goyaml::json::from_json_exact(role.to_string().as_bytes(), &limits)
            .map_err(CommandError::new)?;
        text.push_str("---\n");
        text.push_str(&goyaml::to_yaml(&value).map_err(CommandError::new)?);
    }
    Ok(text)
}

fn text(plan: &Plan) -> String {
    let mut text = format!(
        "Plan: {} {} in namespace {}, revision {}\n",
        plan.action, plan.release, plan.namespace, plan.revision
    );
    if !plan.objects.is_empty() {
        let mut rows =
            vec![["CHANGE", "KIND", "NAMESPACE", "NAME", "NOTE"].map(str::to_owned).to_vec()];
        for object in &plan.objects {
            rows.push(vec![
                object.change.as_str().to_owned(),
                object.kind.kind.clone(),
                object.namespace.clone(),
                object.name.clone(),
                note(object),
            ]);
        }
        text.push('\n');
        for line in table(&rows).lines() {
            text.push_str(line.trim_end());
            text.push('\n');
        }
    }
    for object in plan.objects.iter().filter(|object| !object.leaves.is_empty()) {
        text.push_str(&format!("\n{}:\n", title(object)));
        for leaf in &object.leaves {
            let old = leaf.old.as_deref().unwrap_or("(none)");
            let new = leaf.new.as_deref().unwrap_or("(none)");
            text.push_str(&format!("  {}: {old} -> {new}\n", leaf.path));
        }
    }
    let conflicts: Vec<String> = plan
        .objects
        .iter()
        .flat_map(|object| object.conflicts.iter().map(move |conflict| (object, conflict)))
        .map(|(object, FieldConflict { field, manager })| {
            format!("  {}: {field} belongs to {manager}\n", title(object))
        })
        .collect();
    if !conflicts.is_empty() {
        text.push_str(&format!(
            "\nFields of other managers (--force-conflicts takes them; the chart can also leave them out):\n{}",
            conflicts.concat()
        ));
    }
    let restarts: Vec<String> = plan
        .objects
        .iter()
        .filter_map(|object| Some(format!("  {}: {} pods\n", title(object), object.restarts?)))
        .collect();
    if !plan.objects.is_empty() {
        if restarts.is_empty() {
            text.push_str("\nNo pod is restarted.\n");
        } else {
            text.push_str(&format!("\nRestarts:\n{}", restarts.concat()));
        }
    }
    if !plan.hooks.is_empty() {
        text.push_str("\nHooks that run (--no-hooks leaves them out):\n");
        for hook in &plan.hooks {
            text.push_str(&format!("  {hook}\n"));
        }
    }
    if !plan.hook_faults.is_empty() {
        text.push_str("\nHooks that cannot be made:\n");
        for fault in &plan.hook_faults {
            text.push_str(&format!("  {}\n", fault.replace('\n', " ")));
        }
    }
    if !plan.missing.is_empty() {
        text.push_str("\nMissing rights:\n");
        for right in &plan.missing {
            text.push_str(&format!("  {right}\n"));
        }
        if plan.objects.is_empty() {
            text.push_str("Without them nothing more can be said.\n");
        }
    }
    let count = |change| plan.objects.iter().filter(|object| object.change == change).count();
    text.push_str(&format!(
        "\n{} to create, {} to change, {} to delete, {} unchanged. Nothing was written.\n",
        count(ObjectChange::Create),
        count(ObjectChange::Change),
        count(ObjectChange::Delete),
        count(ObjectChange::None) + count(ObjectChange::Leave),
    ));
    text
}

fn title(object: &PlannedObject) -> String {
    let place =
        if object.namespace.is_empty() { String::new() } else { format!("{}/", object.namespace) };
    format!("{} {place}{}", object.kind.kind, object.name)
}

fn note(object: &PlannedObject) -> String {
    let mut notes = Vec::new();
    if !object.fault.is_empty() {
        notes.push(format!("refused: {}", object.fault));
    }
    if !object.in_memory.is_empty() {
        notes.push(format!("in memory: {}", object.in_memory));
    }
    if let Some(pods) = object.restarts {
        notes.push(format!("restarts {pods} pods"));
    }
    notes.join("; ").replace('\n', " ")
}

/// The plan as data.
fn value(plan: &Plan) -> Value {
    let texts = |list: &[String]| Value::Seq(list.iter().map(|text| string(text)).collect());
    let rights = |list: &[Right]| Value::Seq(list.iter().map(right).collect());
    map([
        ("action", string(plan.action)),
        ("release", string(&plan.release)),
        ("namespace", string(&plan.namespace)),
        ("revision", Value::from(plan.revision)),
        ("changes", Value::Bool(plan.changes())),
        ("possible", Value::Bool(plan.is_possible())),
        ("objects", Value::Seq(plan.objects.iter().map(object).collect())),
        ("hooks", texts(&plan.hooks)),
        ("hookFaults", texts(&plan.hook_faults)),
        ("rights", rights(&plan.rights)),
        ("missingRights", rights(&plan.missing)),
    ])
}

fn object(object: &PlannedObject) -> Value {
    let leaf = |leaf: &helm_rs::action::plan::Leaf| {
        let side = |text: &Option<String>| match text {
            Some(text) => {
                let limits = goyaml::Limits::default();
                goyaml::json::from_json_exact(text.as_bytes(), &limits)
                    .unwrap_or_else(|_| string(text))
            }
            None => Value::Null,
        };
        map([("path", string(&leaf.path)), ("old", side(&leaf.old)), ("new", side(&leaf.new))])
    };
    map([
        ("apiVersion", string(&object.kind.api_version())),
        ("kind", string(&object.kind.kind)),
        ("namespace", string(&object.namespace)),
        ("name", string(&object.name)),
        ("change", string(object.change.as_str())),
        ("leaves", Value::Seq(object.leaves.iter().map(leaf).collect())),
        ("restarts", object.restarts.map_or(Value::Null, Value::from)),
        ("inMemory", string(&object.in_memory)),
        ("fault", string(&object.fault)),
        ("conflicts", Value::Seq(object.conflicts.iter().map(conflict).collect())),
    ])
}

fn conflict(conflict: &FieldConflict) -> Value {
    map([("field", string(&conflict.field)), ("manager", string(&conflict.manager))])
}

fn right(right: &Right) -> Value {
    map([
        ("verb", string(&right.verb)),
        ("group", string(&right.group)),
        ("resource", string(&right.resource)),
        ("namespace", string(&right.namespace)),
        ("name", string(&right.name)),
        ("url", string(&right.url)),
    ])
}

fn string(text: &str) -> Value {
    Value::String(text.into())
}

fn map<const N: usize>(fields: [(&str, Value); N]) -> Value {
    let mut map = Map::new();
    for (name, value) in fields {
        map.insert(name, value);
    }
    Value::Map(map)
}
