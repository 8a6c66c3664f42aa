//! `ichor cluster`: the TalosCluster of a cluster, on one screen.

use api::{CniPreset, Condition, ConditionStatus, DetectedCni, TalosCluster, reason, type_};
use clap::{Args, Subcommand};
use goyaml::Limits;
use helm_rs::cluster::{Cluster, ClusterError, ListQuery, Resource, list_all};
use helm_rs::error_chain;
use helm_rs::render::{Engine, EngineOptions};
use serde_json::{Value, json};
use takeover::access::Purpose;
use takeover::run::status::{Own, StatusError, status};

use super::Context;
use super::cni::place::PlaceFlags;
use super::cni::shared::{no, of_cluster};
use super::cni::trouble::reading_error;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::output::{Output, printable, write_structured};
use crate::session::Host;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Say whose the CNI is, how its hand-over stands, and what to do next
    Status(Arguments),
}

#[derive(Debug, Args)]
#[command(after_help = concat!(
    "Reads the TalosClusters, and ichor's release of Cilium. Writes nothing.\n\n",
    "Examples:\n",
    "  ichor cluster status\n",
    "  ichor cluster status --output json | jq -r '.clusters[0].status.cni.detected'\n\n",
    "Exit codes:\n",
    "  0  handed over and healthy, or unmanaged\n",
    "  1  it cannot be told\n",
    "  2  something is to be done or waited for; or there is no TalosCluster"
))]
pub(crate) struct Arguments {
    /// Form of the result
    #[arg(short, long, value_enum, value_name = "FORM", default_value_t)]
    output: Output,
    #[command(flatten)]
    place: PlaceFlags,
}

/// What was read.
struct Found {
    clusters: Vec<TalosCluster>,
    own: Result<Option<Own>, StatusError>,
}

/// The definition, with the cluster's flags as commands on Cilium have them.
pub(crate) fn define(root: clap::Command) -> clap::Command {
    root.mut_subcommand("cluster", |cluster| cluster.mut_subcommands(of_cluster))
}

pub(crate) fn run(command: Command, context: &mut Context<'_>) -> Result<Exit, CommandError> {
    let Command::Status(Arguments { output, place }) = command;
    let host = place.open_any(context)?;
    let engine = Engine::new(EngineOptions::default());
    let looked = host.look(context, &engine, async |session| {
        let objects = talos_clusters(&*session.cluster).await?;
        let own = status(&*session.cluster, session.clock).await.map(|status| status.facts.own);
        Ok::<_, ClusterError>((objects, own))
    })?;
    let (objects, own) =
        looked.0.map_err(|error| reading_error(&error, Purpose::Status, &place, context))?;
    let clusters: Vec<TalosCluster> =
        objects.into_iter().map(serde_json::from_value).collect::<Result<_, _>>().map_err(
            |error| CommandError::new(format_args!("a TalosCluster cannot be read: {error}")),
        )?;
    let found = Found { clusters, own };
    let data = data(&found)?;
    let screens: Vec<String> =
        found.clusters.iter().map(|cluster| account(cluster, &found)).collect();
    let text = if screens.is_empty() { NONE.to_owned() } else { screens.join("\n") };
    write_structured(context.ui, output, &data, text.as_bytes())?;
    let is_well = |cluster: &TalosCluster| next(cluster).is_none();
    let is_well = !found.clusters.is_empty() && found.clusters.iter().all(is_well);
    Ok(if is_well { Exit::Done } else { Exit::No })
}

const NONE: &str = "There is no TalosCluster: nothing hands this cluster's CNI over.\n\
                    next: ichor cni status, or install charts/ichor and write a TalosCluster\n";

/// The TalosClusters; none where their kind is not known.
pub(crate) async fn talos_clusters(cluster: &dyn Cluster) -> Result<Vec<Value>, ClusterError> {
    let resource =
        Resource::builtin("ichor.maesh.dev/v1alpha1", "TalosCluster", "talosclusters", false);
    match list_all(cluster, &resource, &ListQuery::default()).await {
        Ok(page) => Ok(page.items),
        Err(error) if error.is_not_found() => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Refuses what is about ichor's Cilium where a TalosCluster says that the CNI is somebody else's.
///
/// Who may not see TalosClusters goes on: that is the Job above all, which the controller makes for
/// a managed one only. A snapshot is rehearsed on as it is.
///
/// # Errors
/// It is unmanaged.
pub(crate) fn check_managed(host: &Host, context: &mut Context<'_>) -> Result<(), CommandError> {
    if host.as_stage().is_some() {
        return Ok(());
    }
    let engine = Engine::new(EngineOptions::default());
    let looked = host.look(context, &engine, async |session| {
        talos_clusters(&*session.cluster).await.unwrap_or_default()
    })?;
    let has = |preset: &str| {
        looked.0.iter().any(|cluster| {
            cluster.pointer("/spec/cni/preset").and_then(Value::as_str) == Some(preset)
        })
    };
    if has("unmanaged") && !has("cilium") {
        return Err(no(
            "the CNI is not managed by Ichor (spec.cni.preset: unmanaged)",
            "see `ichor cluster status`",
        ));
    }
    Ok(())
}

fn data(found: &Found) -> Result<goyaml::Value, CommandError> {
    let own = found.own.as_ref().ok();
    let data = json!({ "clusters": found.clusters, "release": own });
    goyaml::json::from_json(data.to_string().as_bytes(), &Limits::default())
        .map_err(CommandError::new)
}

/// One screen about one of them.
fn account(cluster: &TalosCluster, found: &Found) -> String {
    let name = cluster.metadata.name.as_deref().unwrap_or_default();
    let mut lines = vec![format!("cluster: {name}"), format!("cni: {}", cni(cluster))];
    if cluster.spec.cni.preset == CniPreset::Cilium {
        lines.push(match &found.own {
            Ok(Some(own)) => {
                format!("release: cilium, revision {}, {}", own.revision, own.status)
            }
            Ok(None) => "release: none of ichor's yet".to_owned(),
            Err(error) => format!("release: cannot be read ({})", error_chain(error)),
        });
    }
    let conditions = cluster.status.as_ref().map(|status| status.conditions.as_slice());
    lines.extend(conditions.unwrap_or_default().iter().map(condition));
    lines.push(format!("next: {}", next(cluster).unwrap_or("nothing")));
    lines.into_iter().map(|line| printable(&line) + "\n").collect()
}

fn cni(cluster: &TalosCluster) -> String {
    let status = cluster.status.as_ref().and_then(|status| status.cni.clone()).unwrap_or_default();
    let detected = status.detected.map_or("not looked at yet", DetectedCni::name);
    let version = status.detected_version.map_or_else(String::new, |version| format!(" {version}"));
    match cluster.spec.cni.preset {
        CniPreset::Unmanaged => format!("unmanaged ({detected}, not managed by Ichor)"),
        CniPreset::Cilium => format!("{detected}{version} (preset cilium, managed by Ichor)"),
    }
}

fn condition(condition: &Condition) -> String {
    let Condition { type_, status, reason, last_transition_time, message, .. } = condition;
    format!("{type_}: {status:?}, {reason}, since {last_transition_time}: {message}")
}

/// What is to be done; none when nothing is.
fn next(cluster: &TalosCluster) -> Option<&'static str> {
    if cluster.spec.cni.preset == CniPreset::Unmanaged {
        return None;
    }
    let Some(handover) = cluster.condition(type_::CNI_HANDOVER) else {
        return Some("wait for the controller (kubectl -n ichor-system get pods)");
    };
    if handover.status == ConditionStatus::True {
        let healthy = cluster.condition(type_::CNI_HEALTHY);
        let is_healthy = healthy.is_none_or(|one| one.status == ConditionStatus::True);
        return (!is_healthy)
            .then_some("look at Cilium's agents (kubectl -n kube-system get pods)");
    }
    Some(match handover.reason.as_str() {
        reason::NOT_ADOPTED => "annotate it with ichor.maesh.dev/adopted=true",
        reason::CONSENT_REQUIRED => {
            "look at the plan (ichor cni plan --for-job), then annotate the TalosCluster with \
             ichor.maesh.dev/accepted-plan and the plan's digest"
        }
        reason::REFUSED => "do what the message says; ichor cni plan --for-job tells more",
        _ => "wait",
    })
}
