//! A cluster comes under the controller: the same plan and the same questions, then the
//! TalosCluster, then waiting for the hand-over.

use std::path::PathBuf;
use std::time::Duration;

use api::{
    CiliumSpec, CniPreset, CniSpec, ConditionStatus, KubeProxy, MANAGED_NAME, TalosCluster,
    TalosCni, Tunnel, UnmanagedSpec, annotation, reason, type_,
};
use cilium::detect::{Detected, Kind, Node};
use cilium::inline_manifest::in_machine_config;
use cilium::owned::{Live, strip};
use cilium::pinned::NAMESPACE;
use clap::Args;
use helm_rs::error_chain;
use takeover::job;
use takeover::plan::{Prepared, WhoWrites};

use super::{Arguments, Attempt, Decision, decide, hand_over};
use crate::commands::Context;
use crate::commands::cni::ask::confirm;
use crate::commands::cni::rights;
use crate::commands::cni::shared::{Work, no};
use crate::commands::managed::wait::{Goal, until, until_detected};
use crate::commands::managed::write::{Wish, Written, adopt, write_error};
use crate::commands::managed::{
    Managed, check_nobody_acts, is_handed_over, look, look_if_allowed, until_available,
};
use crate::error::CommandError;
use crate::exit::Exit;
use crate::flags;
use crate::output::{Output, write_structured};
use crate::session::Host;

/// Bytes that a machine configuration may have.
const MAX_CONFIG: u64 = 64 * 1024 * 1024;

/// Flags for the side of the controller.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Controller")]
pub(super) struct ManagedFlags {
    /// How long the controller may take to be there, and then the hand-over
    #[arg(long, value_name = "DURATION", default_value = "15m0s")]
    wait_timeout: String,
    /// Machine configuration of a control plane of Talos: which of its inline manifests holds Cilium
    /// is noted in the TalosCluster
    #[arg(long, value_name = "FILE", conflicts_with = "cilium_only")]
    machine_config: Option<PathBuf>,
}

impl ManagedFlags {
    fn limit(&self) -> Result<Duration, CommandError> {
        flags::duration("wait-timeout", &self.wait_timeout)
    }

    /// The name of the inline manifest that holds Cilium.
    fn inline_manifest(&self) -> Result<Option<String>, CommandError> {
        let Some(path) = &self.machine_config else { return Ok(None) };
        let fail = |why: String| {
            CommandError::new(format_args!("--machine-config {}: {why}", path.display()))
        };
        let about = std::fs::metadata(path).map_err(|e| fail(helm_rs::gotext::io_text(&e)))?;
        if !about.is_file() || about.len() > MAX_CONFIG {
            return Err(fail(format!("no file of at most {MAX_CONFIG} bytes")));
        }
        let text = std::fs::read(path).map_err(|e| fail(helm_rs::gotext::io_text(&e)))?;
        let found = in_machine_config(&text).map_err(|error| fail(error_chain(&error)))?;
        match found.entries.as_slice() {
            [entry] => Ok(Some(entry.name.clone())),
            [] => Err(fail(
                "no entry of cluster.inlineManifests holds Cilium (DaemonSet kube-system/cilium): \
                 name the configuration of a control plane, or leave the flag out"
                    .to_owned(),
            )),
            several => {
                let names: Vec<&str> = several.iter().map(|entry| entry.name.as_str()).collect();
                Err(fail(format!("more than one entry holds Cilium: {}", names.join(", "))))
            }
        }
    }
}

/// Refuses a takeover from here where a controller is to make it.
pub(super) fn check_nobody_hands_over(
    host: &Host,
    context: &mut Context<'_>,
) -> Result<(), CommandError> {
    let managed = look_if_allowed(host, context)?;
    if managed.cluster.as_ref().is_some_and(is_handed_over) {
        // There is nothing left to meet its Job in.
        return Ok(());
    }
    check_nobody_acts(host, "`ichor adopt` has the controller do it", context)
}

pub(super) fn run(
    arguments: &mut Arguments,
    context: &mut Context<'_>,
) -> Result<Exit, CommandError> {
    let limit = arguments.managed.limit()?;
    let inline_manifest = arguments.managed.inline_manifest()?;
    if arguments.flags.place.is_rehearsal() {
        return Err(CommandError::new(
            "--snapshot rehearses a takeover from here, without a controller",
        )
        .hint("give --cilium-only as well"));
    }
    // Who says that the CNI is somebody else's may find that it is written down already.
    arguments.flags.whoever = arguments.flags.cni_unmanaged;
    arguments.flags.who_writes = WhoWrites::Granted(job::subject());
    let mut work = arguments.flags.work(context)?;
    let left_out = work.without_owned();
    if !left_out.is_empty() {
        context.ui.warning(format!(
            "--cilium-values: left out, since ichor decides them: {}",
            left_out.join(", ")
        ));
    }
    let host = arguments.flags.host(&work, context)?;
    host.tell_progress();
    let managed = look(host, context)?;
    if !managed.controller.is_there() {
        return Err(no_controller(&managed));
    }
    if let Some(cluster) = &managed.cluster {
        check_stays(cluster)?;
    }
    if let Some(cluster) = managed.cluster.as_ref().filter(|one| is_handed_over(one))
        && !arguments.plan
    {
        if arguments.flags.cni_unmanaged {
            return Err(has_preset_cilium());
        }
        let handover = cluster.condition(type_::CNI_HANDOVER);
        let since = handover.map_or("", |one| one.last_transition_time.as_str());
        let told = format!("Cilium is ichor's already, handed over at {since}.\n");
        if arguments.output == Output::Table {
            context.ui.result(&told)?;
        } else {
            // No plan is made, so that what it stands for is what is there.
            let data = managed.data()?;
            write_structured(context.ui, arguments.output, &data, told.as_bytes())?;
        }
        hand_over(arguments, &work, true, context)?;
        return Ok(Exit::Done);
    }
    let mut attempt = Attempt::new(arguments.yes);
    let (digest, prepared) = match decide(arguments, &work, &mut attempt, context)? {
        Decision::Ended(exit) => return Ok(exit),
        Decision::Nothing(found) if found.plan.found.cni != Kind::Cilium.name() => {
            return leave_alone(arguments, &work, &managed, &found.survey.detected, limit, context);
        }
        Decision::Nothing(prepared) => {
            confirm("Have the controller look after it?", arguments.yes, context)?;
            (None, prepared)
        }
        // What was begun has its consent by the plan's digest, and is planned for its rights.
        Decision::Go(_, prepared) => {
            let digest = attempt.plan.as_ref().map(|plan| plan.digest.clone());
            let prepared = match prepared {
                Some(prepared) => prepared,
                None => Box::new(arguments.flags.plan(&work, context)?),
            };
            (digest, prepared)
        }
    };
    wait_for_controller(arguments, &work, limit, context)?;
    rights::grant(&mut arguments.flags, &work, &prepared, context)?;
    let wish = Wish {
        cni: spec(&work, &prepared)?,
        accepted_plan: digest.filter(|digest| !digest.is_empty()),
        inline_manifest,
        retry: managed.cluster.as_ref().and_then(retry),
    };
    write(arguments, &work, &wish, context)?;
    let goal = Goal {
        type_: type_::CNI_HANDOVER,
        is_done: |condition| condition.status == ConditionStatus::True,
        generation: 0,
        what: "the hand-over",
        consent: "something changed since the plan: run it again, and look at the plan again",
    };
    let waited = arguments
        .flags
        .session(&work, context, async |session| until(session, goal, limit).await)?;
    tell(arguments, context, &format!("Handed over. {}\n", waited?))?;
    hand_over(arguments, &work, true, context)?;
    Ok(Exit::Done)
}

/// Something for the controller to see as another question, where its last answer would stand: what
/// was refused may have been mended where it does not look, such as in a machine configuration.
fn retry(cluster: &TalosCluster) -> Option<String> {
    let handover = cluster.condition(type_::CNI_HANDOVER)?;
    let stands = matches!(handover.reason.as_str(), reason::REFUSED | reason::JOB_FAILED);
    let before = cluster.annotation(annotation::RETRY).and_then(|text| text.parse::<u64>().ok());
    stands.then(|| before.unwrap_or_default().saturating_add(1).to_string())
}

fn no_controller(managed: &Managed) -> CommandError {
    match managed.controller.unread.first() {
        Some(unread) => no(
            format_args!("refused: whether a controller runs here cannot be seen: {unread}"),
            "have the right granted, or give --cilium-only to take Cilium over from here",
        ),
        None => no(
            "no controller runs here (there is no Deployment ichor-system/ichor-controller)",
            "install it (ichor release install ichor charts/ichor -n ichor-system \
             --create-namespace --set image.repository=…), or give --cilium-only to take Cilium over \
             from here",
        ),
    }
}

/// A result, or a line beside it where standard output is the plan as data.
fn tell(arguments: &Arguments, context: &mut Context<'_>, text: &str) -> Result<(), CommandError> {
    if arguments.output == Output::Table {
        return context.ui.result(text);
    }
    context.ui.warning(text.trim_end());
    Ok(())
}

fn wait_for_controller(
    arguments: &Arguments,
    work: &Work,
    limit: Duration,
    context: &mut Context<'_>,
) -> Result<(), CommandError> {
    let flags = &arguments.flags;
    flags.session(work, context, async |session| until_available(session, limit).await)?
}

fn write(
    arguments: &Arguments,
    work: &Work,
    wish: &Wish,
    context: &mut Context<'_>,
) -> Result<(), CommandError> {
    let flags = &arguments.flags;
    let written =
        flags.session(work, context, async |session| adopt(&*session.cluster, wish).await)?;
    let told = match written.map_err(|error| write_error(&error))? {
        Written::Changed => "is written",
        Written::Same => "is as it should be",
    };
    context.ui.note(format!("TalosCluster {MANAGED_NAME} {told}"));
    Ok(())
}

/// What the owner of a cluster would say of it who wants it to stay as it is.
fn spec(work: &Work, prepared: &Prepared) -> Result<serde_json::Value, CommandError> {
    let survey = &prepared.survey;
    let live = survey.daemon_set.as_ref().zip(survey.config_map.as_ref());
    let live = live.and_then(|(set, config)| Live::read(set, config).ok());
    let tunnel = live.as_ref().and_then(|live| live.tunnel_protocol.as_deref());
    let kube_proxy = prepared.plan.found.kube_proxy.as_str();
    // A record has its values itself.
    let given = work.values().or(prepared.recovered.as_ref());
    let values = given.filter(|_| prepared.plan.records.is_empty()).map(plain).transpose()?;
    let cni = CniSpec {
        preset: CniPreset::Cilium,
        unmanaged: None,
        kube_proxy: [KubeProxy::Enabled, KubeProxy::Replaced]
            .into_iter()
            .find(|one| one.name() == kube_proxy),
        tunnel: [Tunnel::Vxlan, Tunnel::Geneve].into_iter().find(|one| Some(one.name()) == tunnel),
        cilium: values.filter(|values| !values.is_empty()).map(|values| CiliumSpec { values }),
    };
    serde_json::to_value(cni).map_err(CommandError::new)
}

/// Values as a TalosCluster has them: without the keys that ichor decides.
fn plain(values: &goyaml::Map) -> Result<serde_json::Map<String, serde_json::Value>, CommandError> {
    let mut values = values.clone();
    drop(strip(&mut values));
    let text = goyaml::json::to_json(&goyaml::Value::Map(values)).map_err(CommandError::new)?;
    serde_json::from_str(&text).map_err(CommandError::new)
}

fn has_preset_cilium() -> CommandError {
    no(
        format_args!(
            "refused: TalosCluster {MANAGED_NAME} has preset cilium, which cannot be changed"
        ),
        "leave --cni-unmanaged out; or delete the TalosCluster, if nothing of Cilium is to come",
    )
}

/// The controller does nothing about one that is being deleted.
fn check_stays(cluster: &TalosCluster) -> Result<(), CommandError> {
    if cluster.metadata.deletion_timestamp.is_none() {
        return Ok(());
    }
    Err(no(
        format_args!("refused: TalosCluster {MANAGED_NAME} is being deleted"),
        format!(
            "wait until it is gone, then again; what holds it is in its finalizers: kubectl get \
             taloscluster {MANAGED_NAME} -o jsonpath='{{.metadata.finalizers}}'"
        ),
    ))
}

/// A cluster whose CNI is somebody else's, and is to stay so.
fn leave_alone(
    arguments: &Arguments,
    work: &Work,
    managed: &Managed,
    detected: &Detected,
    limit: Duration,
    context: &mut Context<'_>,
) -> Result<Exit, CommandError> {
    if managed.cluster.is_some() {
        return Err(has_preset_cilium());
    }
    confirm(
        "Write that the CNI is somebody else's (TalosCluster with preset unmanaged)?",
        arguments.yes,
        context,
    )?;
    wait_for_controller(arguments, work, limit, context)?;
    let spec = CniSpec {
        preset: CniPreset::Unmanaged,
        unmanaged: talos_cni(detected).map(|talos_cni| UnmanagedSpec { talos_cni }),
        kube_proxy: None,
        tunnel: None,
        cilium: None,
    };
    let cni = serde_json::to_value(spec).map_err(CommandError::new)?;
    write(arguments, work, &Wish { cni, ..Wish::default() }, context)?;
    let flags = &arguments.flags;
    let found =
        flags.session(work, context, async |session| until_detected(session, limit).await)?;
    tell(
        arguments,
        context,
        &format!("cni: unmanaged ({}, not managed by Ichor)\n", found?.name()),
    )?;
    Ok(Exit::Done)
}

/// What Talos installs: its default is flannel, as DaemonSet kube-flannel of kube-system. Other
/// systems have no such setting.
fn talos_cni(detected: &Detected) -> Option<TalosCni> {
    if !detected.nodes.iter().any(Node::runs_talos) {
        return None;
    }
    let is_default = detected.others.iter().any(|other| {
        other.kind == Kind::Flannel
            && (other.seen.namespace.as_str(), other.seen.name.as_str())
                == (NAMESPACE, "kube-flannel")
    });
    Some(if is_default { TalosCni::Default } else { TalosCni::None })
}
