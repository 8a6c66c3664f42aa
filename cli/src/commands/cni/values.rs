//! `ichor cni values`: the values of ichor's release of Cilium, looked at and changed.

use api::MANAGED_NAME;
use cilium::owned::strip;
use cilium::pinned::{RECORD_NAMESPACE, RELEASE};
use clap::{Args, Subcommand};
use goyaml::{Limits, Map, Value};
use helm_rs::error_chain;
use helm_rs::release::redact;
use helm_rs::release::storage::{ObjectDriver, ObjectKind, Storage, StorageError, Stored};
use helm_rs::render::{Engine, EngineOptions};
use helm_rs::values::merge_maps;
use takeover::access::Purpose;

use super::change::{ChangeArguments, Wish, change};
use super::place::PlaceFlags;
use super::shared::no;
use super::trouble::reading_error;
use crate::commands::Context;
use crate::commands::chart::options::ValueFlags;
use crate::commands::managed::look;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::output::{Output, write_structured};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Print the values that ichor's release has, and those that its TalosCluster asks for
    Get(Box<GetArguments>),
    /// Ask for other values: shows what they change, asks, and has them applied
    Set(Box<SetArguments>),
}

#[derive(Debug, Args)]
#[command(after_help = concat!(
    "Prints the user's values of ichor's newest record, which it renders with, and what\n",
    "spec.cni.cilium.values of the TalosCluster asks for, if there is one. Credentials are hidden.\n\n",
    "Examples:\n",
    "  ichor cni values get\n",
    "  ichor cni values get --output json | jq .release.values.hubble\n\n",
    "Exit codes:\n",
    "  0  printed\n",
    "  1  an error\n",
    "  2  there is no release of ichor's; or a right to look is missing"
))]
pub(crate) struct GetArguments {
    /// Form of the result
    #[arg(short, long, value_enum, value_name = "FORM", default_value_t)]
    output: Output,
    /// Print credentials as they are
    #[arg(long)]
    show_secrets: bool,
    #[command(flatten)]
    place: PlaceFlags,
}

#[derive(Debug, Args)]
#[command(after_help = concat!(
    "The values are laid over those that were asked for before, and all of them over those that were\n",
    "taken over. Shows leaf by leaf what that changes, asks whether to go on, and has it done: where a\n",
    "TalosCluster is handed over, by the controller, for which values and consent are written into it;\n",
    "else from here. Without values it consents to what the TalosCluster asks for. Keys that ichor\n",
    "decides (ipam.mode, routingMode, …) are refused.\n\n",
    "Examples:\n",
    "  ichor cni values set --set hubble.relay.enabled=true --plan\n",
    "  ichor cni values set -f more.yaml\n",
    "  ichor cni values set --reset --yes              # nothing but what was taken over\n",
    "  ichor cni values set -f more.yaml --accept-cilium-diff=sha256:… --yes\n\n",
    "Exit codes:\n",
    "  0  done, or nothing to do\n",
    "  1  it failed, or time was up; run it again to go on\n",
    "  2  the answer is no: refused, or consent is missing"
))]
pub(crate) struct SetArguments {
    /// Forget what was asked for before
    #[arg(long)]
    reset: bool,
    #[command(flatten)]
    change: ChangeArguments,
    #[command(flatten)]
    values: ValueFlags,
}

pub(crate) fn run(command: Command, context: &mut Context<'_>) -> Result<Exit, CommandError> {
    match command {
        Command::Get(arguments) => get(*arguments, context),
        Command::Set(arguments) => set(*arguments, context),
    }
}

fn set(arguments: SetArguments, context: &mut Context<'_>) -> Result<Exit, CommandError> {
    let SetArguments { reset, values, change: mut arguments } = arguments;
    let mut typed = ["ichor", "cni", "values", "set"].map(str::to_owned).to_vec();
    if reset {
        typed.push("--reset".to_owned());
    }
    typed.extend(values.words());
    arguments.report.typed(typed);
    let given = values.merge(context.environment)?;
    let decided: Vec<String> = strip(&mut given.clone()).into_iter().map(|one| one.key).collect();
    if !decided.is_empty() {
        return Err(no(
            format_args!("refused: ichor decides {}", decided.join(", ")),
            "leave them out: what runs is kept (docs/operator.md, \"Changing values afterwards\")",
        ));
    }
    let of = |before: &Map| {
        let mut values = if reset { Map::new() } else { before.clone() };
        merge_maps(&mut values, given.clone());
        values
    };
    change(arguments, &Wish::Values(&of), context)
}

fn get(arguments: GetArguments, context: &mut Context<'_>) -> Result<Exit, CommandError> {
    let GetArguments { output, show_secrets, place } = arguments;
    let host = place.open(context)?;
    let managed = look(&host, context)?;
    let engine = Engine::new(EngineOptions::default());
    let (found, _) = host.look(context, &engine, async |session| {
        let driver = ObjectDriver::new(
            &*session.cluster,
            session.clock,
            ObjectKind::Secret,
            RECORD_NAMESPACE,
        );
        Storage::new(&driver).last(RELEASE).await
    })?;
    let stored = match found {
        Ok(stored) => stored,
        Err(StorageError::NotFound) => {
            return Err(no(
                "there is no release of ichor's here",
                "see `ichor cluster status`; `ichor adopt` takes Cilium over",
            ));
        }
        Err(error) => return Err(reading_error(&error, Purpose::Status, &place, context)),
    };
    let hidden = |mut values: Map| {
        if !show_secrets {
            redact::values(&mut values);
        }
        values
    };
    let mut data = Map::new();
    data.insert("release", Value::Map(release(&stored, hidden)?));
    if let Some(cluster) = &managed.cluster {
        let values = cluster.spec.cni.cilium.as_ref().map(|cilium| &cilium.values);
        let text = serde_json::to_string(&values).map_err(CommandError::new)?;
        let values = goyaml::json::from_json(text.as_bytes(), &Limits::default())
            .map_err(CommandError::new)?;
        let values = values.as_map().cloned().unwrap_or_default();
        data.insert("asked", Value::Map(hidden(values)));
    }
    let text = text(&data)?;
    write_structured(context.ui, output, &Value::Map(data), text.as_bytes())?;
    Ok(Exit::Done)
}

fn release(stored: &Stored, hidden: impl Fn(Map) -> Map) -> Result<Map, CommandError> {
    let wrong = |error: &dyn std::error::Error| {
        CommandError::new(format_args!("ichor's newest record: {}", error_chain(&error)))
    };
    let record = &stored.record;
    let values = record.user_values().map_err(|error| wrong(&error))?.unwrap_or_default();
    let mut about = Map::new();
    about.insert("revision", record.revision().map_err(|error| wrong(&error))?);
    let status = record.info().map_err(|error| wrong(&error))?.status();
    about.insert("status", status.to_string());
    about.insert("values", Value::Map(hidden(values)));
    Ok(about)
}

/// Both sets of values as YAML documents, each below a comment that says which it is.
fn text(data: &Map) -> Result<String, CommandError> {
    let yaml = |value: &Value| goyaml::to_yaml(value).map_err(CommandError::new);
    let mut text = String::new();
    if let Some(release) = data.get("release").and_then(Value::as_map) {
        let say = |key: &str| match release.get(key) {
            Some(Value::String(text)) => text.to_string(),
            Some(other) => goyaml::json::to_json(other).unwrap_or_default(),
            None => String::new(),
        };
        text.push_str(&format!(
            "# Release {RELEASE}, records in {RECORD_NAMESPACE}: revision {}, {}\n",
            say("revision"),
            say("status")
        ));
        text.push_str(&yaml(release.get("values").unwrap_or(&Value::Null))?);
    }
    if let Some(asked) = data.get("asked") {
        text.push_str(&format!("---\n# Asked for by TalosCluster {MANAGED_NAME}, over them\n"));
        text.push_str(&yaml(asked)?);
    }
    Ok(text)
}
