//! `ichor cluster`: the network of a cluster and who looks after it, on one screen.

use api::{CniPreset, DetectedCni, TalosCluster, type_};
use cilium::detect::{Detected, detect};
use cilium::version::image_tag;
use clap::{Args, Subcommand};
use goyaml::Limits;
use helm_rs::cluster::{Cluster, ListQuery, Resource, list_all};
use helm_rs::error_chain;
use helm_rs::render::{Engine, EngineOptions};
use serde_json::json;
use takeover::access::Purpose;
use takeover::run::status::{Own, status};

use super::Context;
use super::cni::place::PlaceFlags;
use super::cni::shared::of_cluster;
use super::cni::trouble::reading_error;
use super::managed::next::{Step, next};
use super::managed::{
    ClustersError, Controller, condition_line, look_at_controller, talos_clusters, waiting_job_pods,
};
use crate::error::CommandError;
use crate::exit::Exit;
use crate::output::{Output, printable, write_structured};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Say whose the CNI is, how its hand-over stands, and what to do next
    Status(Arguments),
}

#[derive(Debug, Args)]
#[command(after_help = concat!(
    "Reads the TalosClusters, the controller, and ichor's release of Cilium. Writes nothing. What this\n",
    "identity may not read is said in its place.\n\n",
    "Examples:\n",
    "  ichor cluster status\n",
    "  ichor cluster status --output json | jq -r '.clusters[0].status.cni.detected'\n",
    "  ichor cluster status --output json | jq -r '.next[].text'\n\n",
    "Exit codes:\n",
    "  0  handed over and healthy, or unmanaged\n",
    "  1  it cannot be told\n",
    "  2  something is to be done or waited for; or there is no TalosCluster; or they may not be read"
))]
pub(crate) struct Arguments {
    /// Form of the result
    #[arg(short, long, value_enum, value_name = "FORM", default_value_t)]
    output: Output,
    #[command(flatten)]
    place: PlaceFlags,
}

/// What was read. What may not be read is its reason.
struct Found {
    /// None where their kind is not known.
    clusters: Option<Vec<TalosCluster>>,
    controller: Controller,
    own: Result<Option<Own>, String>,
    /// What runs; looked at where no controller says it.
    cni: Result<Detected, String>,
    /// Why the Job's pods do not start.
    pods: Vec<String>,
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
        let cluster = &*session.cluster;
        let clusters = talos_clusters(cluster).await?;
        let own = status(cluster, session.clock).await.map(|status| status.facts.own);
        Ok::<_, ClustersError>(Found {
            clusters,
            controller: look_at_controller(cluster, session.clock).await,
            own: own.map_err(|error| error_chain(&error)),
            cni: what_runs(cluster).await,
            pods: waiting_job_pods(cluster).await,
        })
    })?;
    let found =
        looked.0.map_err(|error| reading_error(&error, Purpose::Status, &place, context))?;
    let clusters = found.clusters.as_deref().unwrap_or_default();
    let steps: Vec<Vec<Step>> =
        clusters.iter().map(|cluster| next(cluster, &found.controller, &found.pods)).collect();
    let screens: Vec<String> = clusters
        .iter()
        .zip(&steps)
        .map(|(cluster, steps)| screen(cluster, steps, &found))
        .collect();
    let text = if screens.is_empty() { nobody(&found) } else { screens.join("\n") };
    let is_well = !screens.is_empty() && !steps.iter().flatten().any(|step| step.is_due);
    let data = data(&found, steps)?;
    write_structured(context.ui, output, &data, text.as_bytes())?;
    Ok(if is_well { Exit::Done } else { Exit::No })
}

/// The network plugins and nodes.
async fn what_runs(cluster: &dyn Cluster) -> Result<Detected, String> {
    let mut lists = Vec::new();
    for resource in [
        Resource::builtin("v1", "Node", "nodes", false),
        Resource::builtin("apps/v1", "DaemonSet", "daemonsets", true),
    ] {
        let page = list_all(cluster, &resource, &ListQuery::default()).await;
        lists.push(page.map_err(|error| error.to_string())?.items);
    }
    let (Some(daemon_sets), Some(nodes)) = (lists.pop(), lists.pop()) else {
        return Err(String::new());
    };
    detect(&nodes, &daemon_sets).map_err(|error| error.to_string())
}

/// In one word, with its version.
fn name_of(detected: &Detected) -> String {
    let version = match (detected.agents.first(), detected.others.first()) {
        (Some(agent), _) => image_tag(&agent.image),
        (None, other) => other.and_then(|other| other.version.as_deref()),
    };
    match version {
        Some(version) => format!("{} {version}", detected.kind()),
        None => detected.kind().to_string(),
    }
}

fn data(found: &Found, steps: Vec<Vec<Step>>) -> Result<goyaml::Value, CommandError> {
    let own = found.own.as_ref().ok();
    let steps: Vec<Step> = steps.into_iter().flatten().collect();
    let mut data = json!({
        "clusters": found.clusters.as_deref().unwrap_or_default(),
        "controller": found.controller,
        "release": own,
        "next": steps,
    });
    if let Ok(cni) = &found.cni {
        data["detected"] = json!(cni.kind());
    }
    let unread: Vec<&String> =
        found.own.as_ref().err().into_iter().chain(found.cni.as_ref().err()).collect();
    if !unread.is_empty() {
        data["unread"] = json!(unread);
    }
    goyaml::json::from_json(data.to_string().as_bytes(), &Limits::default())
        .map_err(CommandError::new)
}

/// Where there is no TalosCluster.
fn nobody(found: &Found) -> String {
    let mut lines = vec![match &found.clusters {
        None => {
            "There is no TalosCluster, and its definition is not installed: nothing hands this \
                 cluster's CNI over."
                .to_owned()
        }
        Some(_) => "There is no TalosCluster: nothing hands this cluster's CNI over.".to_owned(),
    }];
    lines.push(match &found.cni {
        Ok(detected) => format!("cni: {}", name_of(detected)),
        Err(why) => format!("cni: not seen ({why})"),
    });
    lines.push(release(found));
    lines.push(format!("controller: {}", found.controller.tell()));
    lines.push(
        match (&found.own, found.controller.is_there()) {
            (Ok(Some(own)), false) if own.status == "deployed" => {
                "next: ichor cni status (Cilium is ichor's, without a controller)"
            }
            (_, true) => "next: ichor adopt (shows the plan, asks, and hands Cilium over)",
            (_, false) => {
                "next: ichor adopt --cilium-only --plan (a takeover from here), or install the \
                 controller, charts/ichor, and then ichor adopt"
            }
        }
        .to_owned(),
    );
    lines_of(&lines)
}

fn lines_of(lines: &[String]) -> String {
    lines.iter().map(|line| printable(line) + "\n").collect()
}

fn release(found: &Found) -> String {
    match &found.own {
        Ok(Some(own)) => format!("release: cilium, revision {}, {}", own.revision, own.status),
        Ok(None) => "release: none of ichor's yet".to_owned(),
        Err(why) => format!("release: not seen ({why})"),
    }
}

/// One screen about one of them.
fn screen(cluster: &TalosCluster, steps: &[Step], found: &Found) -> String {
    let name = cluster.metadata.name.as_deref().unwrap_or_default();
    let mut lines = vec![format!("cluster: {name}"), format!("cni: {}", cni(cluster))];
    if cluster.spec.cni.preset == CniPreset::Cilium {
        lines.push(release(found));
        lines.push(format!("controller: {}", found.controller.tell()));
    }
    let conditions = cluster.status.as_ref().map(|status| status.conditions.as_slice());
    lines.extend(conditions.unwrap_or_default().iter().map(condition_line));
    if is_in_progress(cluster) {
        lines.extend(found.pods.iter().map(|pod| format!("waiting: {pod}")));
    }
    match steps {
        [] => lines.push("next: nothing".to_owned()),
        steps => lines.extend(steps.iter().map(|step| format!("next: {}", step.text))),
    }
    lines_of(&lines)
}

/// Whether a Job may be at work.
fn is_in_progress(cluster: &TalosCluster) -> bool {
    [type_::CNI_HANDOVER, type_::VALUES_APPLIED, type_::CILIUM_UPGRADE_AVAILABLE]
        .into_iter()
        .filter_map(|type_| cluster.condition(type_))
        .any(|condition| condition.reason == api::reason::IN_PROGRESS)
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
