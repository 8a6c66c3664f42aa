//! What must hold before the chart is rendered.

use cilium::detect;
use cilium::kube_proxy::{self, Replacement};
use cilium::owned::{self, Facts, Live};
use cilium::pinned::NAMESPACE;
use cilium::provenance::{self, Evidence, Provenance, Source as Origin};
use cilium::values;
use cilium::version::{self, Step};
use goyaml::Map;
use helm_rs::action::rights::Right;
use helm_rs::error_chain;
use serde_json::Value;

use super::begun::Begun;
use super::make::{Request, refusal};
use super::origin::{records, tell, user_values};
use super::{Found, Outcome, OwnedChange, Plan, RecoveredAbout, Refusal, unseen};
use crate::survey::{Survey, cli_right};

/// What the preconditions found.
pub(super) struct Checked {
    pub(super) provenance: Provenance,
    pub(super) facts: Facts,
    pub(super) step: Step,
    /// There is no CNI, so that Cilium is installed.
    pub(super) installs: bool,
}

/// What is settled before the gate.
pub(crate) struct Settled {
    pub(crate) provenance: Provenance,
    /// The namespace that objects of the foreign release lie in which name none.
    pub(crate) namespace: String,
    pub(crate) user: Map,
    pub(crate) effective: Map,
    pub(crate) step: Step,
    /// What it takes to know that there is nothing but what was found.
    pub(crate) looking: Vec<Right>,
}

/// Everything that is checked before the chart is rendered. All that is wrong is told at once.
pub(super) fn preconditions(
    request: &Request<'_>,
    survey: &Survey,
    begun: Option<&Begun>,
    plan: &mut Plan,
) -> Option<Checked> {
    let detected = &survey.detected;
    plan.found = Found {
        kubernetes: survey.server.git_version.clone(),
        nodes: detected.nodes.len(),
        talos: detected.runs_talos(),
        cni: detected.kind().name().to_owned(),
        ..Found::default()
    };
    let deleted = begun.and_then(Begun::daemon_set).filter(|_| survey.daemon_set.is_none());
    let image = match detected.decide(request.cni_unmanaged) {
        Ok(detect::Outcome::Cilium(agent)) => agent.image,
        // What ran when the takeover was begun is known, and is created anew.
        Ok(detect::Outcome::Install) | Err(detect::Refusal::UnknownCni { .. })
            if deleted.is_some() =>
        {
            String::new()
        }
        Ok(detect::Outcome::Unmanaged(others)) => {
            plan.outcome = Outcome::Nothing;
            let names: Vec<String> = others.iter().map(ToString::to_string).collect();
            plan.found.provenance =
                format!("the CNI is left alone, as --cni-unmanaged says: {}", names.join(", "));
            return None;
        }
        Ok(detect::Outcome::Install) => return installation(request, survey, plan),
        Err(error) => {
            plan.refusals.push(refusal("Cni", error));
            return None;
        }
    };
    let daemon_set = survey.daemon_set.as_ref().or(deleted);
    let (Some(daemon_set), Some(config_map)) = (daemon_set, &survey.config_map) else {
        plan.refusals.push(refusal(
            "NoConfig",
            "the ConfigMap kube-system/cilium-config is missing, so that the settings of the \
             running Cilium are not known: restore it with the tool that installed Cilium",
        ));
        return None;
    };
    let mut live: Vec<Value> = vec![daemon_set.clone(), config_map.clone()];
    live.extend(survey.operator.clone());
    if let Some(begun) = begun {
        begun.give_back(&mut live);
    }
    let evidence = Evidence {
        live: &live,
        secrets: &survey.secrets,
        config_maps: &survey.config_maps,
        now: request.clock.now().as_second(),
    };
    let provenance = provenance::provenance(&evidence)
        .map_err(|error| {
            let reason = match &error {
                provenance::ProvenanceError::InProgress { .. } => "Pending",
                _ => "Provenance",
            };
            plan.refusals.push(refusal(reason, error_chain(&error)));
        })
        .ok();
    if let Some(provenance) = &provenance {
        plan.found.installer = provenance.installer.to_string();
        plan.found.provenance = tell(provenance) + &begun.map(Begun::tell).unwrap_or_default();
        if deleted.is_some() {
            plan.found.provenance.push_str(
                "; DaemonSet kube-system/cilium was deleted since, so that it is created anew",
            );
        }
        plan.records = records(provenance, survey);
        if !provenance.unreadable.is_empty() {
            let objects: Vec<String> =
                provenance.unreadable.iter().map(|(object, _)| object.to_string()).collect();
            plan.unchecked.push(format!("records that cannot be read: {}", objects.join(", ")));
        }
    }
    let recorded = provenance.as_ref().and_then(|provenance| match &provenance.source {
        Origin::Release(release) => Some(release.app_version.clone()),
        _ => None,
    });
    let pinned = &request.pinned.version;
    let running = match begun {
        None => version::live(Some(&image), recorded.as_deref()).map(Some),
        Some(begun) => begun.version(&image, recorded.as_deref()),
    };
    let step = running
        .and_then(|live| {
            // Nothing ran before an installation that was begun.
            let Some(live) = live else { return Ok(Step::Same) };
            plan.found.version = live.to_string();
            version::step(&live, pinned)
        })
        .map_err(|error| plan.refusals.push(refusal("Version", error)))
        .ok();
    if let Err(error) = version::check_kubernetes(&survey.server.git_version, pinned) {
        plan.refusals.push(refusal("Kubernetes", error));
    }
    let facts = match Live::read(daemon_set, config_map) {
        Ok(live) => {
            if let Err(error) = owned::check_ipam(&live) {
                plan.refusals.push(refusal("Ipam", error));
            }
            match kube_proxy::KubeProxy::agree(detected.kube_proxy.is_some(), live.replacement) {
                Ok(state) => plan.found.kube_proxy = state.to_string(),
                Err(error) => plan.refusals.push(refusal("KubeProxy", error)),
            }
            Some(Facts::running(live, detected.runs_talos()))
        }
        Err(error) => {
            plan.refusals.push(refusal("Settings", error));
            None
        }
    };
    if begun.is_none() {
        plan.refusals.extend(health(survey));
        plan.refusals.extend(kube_prism(request, detected));
    } else {
        plan.unchecked.push(
            "whether DaemonSet and operator are Ready: a takeover was begun, and its own half-done \
             work may be why they are not"
                .to_owned(),
        );
    }
    Some(Checked { provenance: provenance?, facts: facts?, step: step?, installs: false })
}

/// There is no CNI: Cilium is installed first, and managed from then on.
fn installation(request: &Request<'_>, survey: &Survey, plan: &mut Plan) -> Option<Checked> {
    let evidence = Evidence {
        live: &[],
        secrets: &survey.secrets,
        config_maps: &survey.config_maps,
        now: request.clock.now().as_second(),
    };
    let provenance = provenance::provenance(&evidence)
        .map_err(|error| plan.refusals.push(refusal("Provenance", error_chain(&error))))
        .ok()?;
    if let Origin::Release(release) = &provenance.source {
        let history = &release.history;
        plan.refusals.push(refusal(
            "Provenance",
            format!(
                "there is no CNI, and yet a record of Cilium: Helm release {}, records in \
                 namespace {}; bring that release to run with the tool that installed it, or \
                 uninstall it, then try again",
                history.release, history.storage_namespace
            ),
        ));
    }
    if let Err(error) =
        version::check_kubernetes(&survey.server.git_version, &request.pinned.version)
    {
        plan.refusals.push(refusal("Kubernetes", error));
    }
    // What the cluster has decides: with a kube-proxy Cilium leaves Services to it.
    let (state, replacement) = match survey.detected.kube_proxy {
        Some(_) => (kube_proxy::KubeProxy::Enabled, Replacement::Off),
        None => (kube_proxy::KubeProxy::Replaced, Replacement::On),
    };
    plan.found.kube_proxy = state.to_string();
    "nothing: there is no CNI, and no node is Ready".clone_into(&mut plan.found.provenance);
    let facts = Facts::bootstrap(Some(replacement), survey.detected.runs_talos());
    Some(Checked { provenance, facts, step: Step::Same, installs: true })
}

/// Settles the values and what comes of the plan. `recovered` are values that were recovered from
/// what runs, where nobody says what they are.
pub(super) fn settle(
    request: &Request<'_>,
    checked: Checked,
    begun: Option<&Begun>,
    recovered: Option<(Map, RecoveredAbout)>,
    plan: &mut Plan,
) -> Option<Settled> {
    let Checked { provenance, facts, step, installs } = checked;
    let mut looking = unseen::looking(request, &provenance, begun);
    if recovered.is_some() {
        // Whoever carries it out gets these values along, and does not look for others.
        looking.retain(|right| *right != cli_right());
    }
    let user = match begun {
        Some(begun) => {
            "ichor's own record of the takeover that was begun".clone_into(&mut plan.values.source);
            begun.values.clone()
        }
        None => user_values(request, &provenance, recovered, &mut plan.values),
    };
    let effective = match values::effective(&user, &facts) {
        Ok(effective) => effective,
        Err(error) => {
            plan.refusals.push(refusal("Values", error));
            return None;
        }
    };
    plan.values.overridden = overridden(&effective);
    plan.values.added = effective
        .added
        .iter()
        .map(|(key, value)| OwnedChange {
            key: key.clone(),
            from: String::new(),
            to: shown(Some(value)),
            needs_consent: false,
        })
        .collect();
    plan.values.changes = owned::changes(&facts).into_iter().map(owned_change).collect();
    plan.outcome =
        if matches!(step, Step::Upgrade { .. }) { Outcome::Upgrade } else { Outcome::TakeOver };
    if installs {
        plan.outcome = Outcome::Install;
    }
    if matches!(provenance.source, Origin::Own) {
        plan.outcome = own_outcome(&provenance);
    }
    let (namespace, effective) = (NAMESPACE.to_owned(), effective.values);
    Some(Settled { provenance, namespace, user, effective, step, looking })
}

/// A change of an owned key, for people.
pub(crate) fn owned_change(change: owned::Change) -> OwnedChange {
    OwnedChange {
        from: shown(change.live.as_ref()),
        to: shown(Some(&change.wanted)),
        key: change.key,
        needs_consent: change.needs_consent,
    }
}

/// What is left to do when there are only ichor's own records.
fn own_outcome(provenance: &Provenance) -> Outcome {
    if is_deployed(provenance) { Outcome::Nothing } else { Outcome::Resume }
}

/// Whether ichor's newest record is deployed.
pub(super) fn is_deployed(provenance: &Provenance) -> bool {
    let newest = provenance.own.as_ref().and_then(|own| own.newest());
    newest.map(provenance::Revision::status) == Some(helm_rs::release::Status::Deployed)
}

/// What the user said under keys that are decided otherwise.
pub(crate) fn overridden(effective: &values::Effective) -> Vec<OwnedChange> {
    let told = |one: &values::Overridden| OwnedChange {
        key: one.key.clone(),
        from: shown(Some(&one.said)),
        to: shown(one.wanted.as_ref()),
        needs_consent: false,
    };
    effective.overridden.iter().map(told).collect()
}

pub(crate) fn shown(value: Option<&goyaml::Value>) -> String {
    value.map_or_else(String::new, |value| match value {
        goyaml::Value::String(text) => text.to_string(),
        other => goyaml::json::to_json(other).unwrap_or_default(),
    })
}

/// Under Talos, KubePrism must answer where it was asked.
fn kube_prism(request: &Request<'_>, detected: &detect::Detected) -> Option<Refusal> {
    super::kube_prism::check(&request.kube_prism).filter(|_| detected.runs_talos())
}

/// DaemonSet and operator must be Ready.
pub(crate) fn health(survey: &Survey) -> Vec<Refusal> {
    let number = |object: &Value, pointer: &str| {
        object.pointer(pointer).and_then(Value::as_i64).unwrap_or_default()
    };
    let mut refusals = Vec::new();
    if let Some(set) = &survey.daemon_set {
        let (ready, wanted) =
            (number(set, "/status/numberReady"), number(set, "/status/desiredNumberScheduled"));
        if ready < wanted || wanted == 0 && !survey.detected.nodes.is_empty() {
            refusals.push(refusal(
                "Unhealthy",
                format!(
                    "DaemonSet kube-system/cilium is Ready on {ready} of {wanted} nodes: a sick \
                     Cilium is not taken over; bring it to Ready first, then try again"
                ),
            ));
        }
    }
    match &survey.operator {
        Some(operator) => {
            let wanted = operator.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(1);
            let ready = number(operator, "/status/readyReplicas");
            if ready < wanted {
                refusals.push(refusal(
                    "Unhealthy",
                    format!(
                        "Deployment kube-system/cilium-operator has {ready} of {wanted} replicas \
                         Ready: bring it to Ready first, then try again"
                    ),
                ));
            }
        }
        None => refusals.push(refusal(
            "Unhealthy",
            "the Deployment kube-system/cilium-operator is missing: restore it with the tool that \
             installed Cilium, then try again",
        )),
    }
    refusals
}
