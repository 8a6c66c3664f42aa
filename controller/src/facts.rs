//! What is known of the cluster, out of its objects.

use std::collections::BTreeMap;

use api::{DetectedCni, TalosCluster};
use cilium::detect::{Detected, detect};
use cilium::object::FieldError;
use cilium::owned::Live;
use cilium::version::image_tag;
use helm_rs::repo::Digest;
use jiff::Timestamp;
use serde_json::{Value, json};
use takeover::job::Summary;

use crate::job::{ASKED, ATTEMPT, GOAL, LIVE};

/// The objects that the controller watches, as the API server returns them.
#[derive(Clone, Debug, Default)]
pub struct Objects {
    /// All nodes.
    pub nodes: Vec<Value>,
    /// The DaemonSets of all namespaces.
    pub daemon_sets: Vec<Value>,
    /// The ConfigMap `cilium-config`.
    pub config: Option<Value>,
    /// The Deployment `cilium-operator`.
    pub operator: Option<Value>,
    /// The Job `ichor-cni`.
    pub job: Option<Value>,
    /// Its pods.
    pub pods: Vec<Value>,
    /// Ichor's own network policies; none where their kind is not served.
    pub policies: Option<Vec<Value>>,
}

/// What follows from them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Which CNI runs.
    pub cni: DetectedCni,
    /// Its version, by its image's tag.
    pub version: Option<String>,
    /// Cilium's agents; none where Cilium does not run.
    pub agents: Option<Agents>,
    /// The settings of the running Cilium; none where it does not run, or where they cannot be told.
    pub live: Option<Live>,
    /// Whether all nodes run Talos.
    pub talos: bool,
    /// Nodes that do not answer, by name.
    pub silent: Vec<String>,
    /// A digest of what a refusal may come of: changes when one of these objects does.
    pub digest: String,
    /// Ichor's own network policies by their names; none where their kind is not served.
    pub policies: Option<BTreeMap<String, Value>>,
    /// The Job.
    pub job: Option<Job>,
}

/// Cilium's agents, by the status of their DaemonSet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Agents {
    /// Nodes that are to have one.
    pub wanted: i64,
    /// Nodes that have a Ready one of the newest template.
    pub ready: i64,
}

impl Agents {
    /// Whether there is a Ready agent on every node that is to have one.
    pub const fn are_ready(self) -> bool {
        self.wanted > 0 && self.ready >= self.wanted
    }
}

/// The Job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// Its UID.
    pub uid: String,
    /// The UID of the TalosCluster that it was made for; empty when the controller did not make it.
    pub owner: String,
    /// Which attempt in a row it is, counted from 1.
    pub attempt: u32,
    /// What the user asked for when it was made; empty when the controller did not make it.
    pub asked: String,
    /// The live objects when it was made, likewise.
    pub live: String,
    /// What it is to bring about after the hand-over; empty for the hand-over itself.
    pub goal: String,
    /// Its plan in short, once it is over and told it.
    pub summary: Option<Summary>,
    /// Where it stands.
    pub state: JobState,
}

impl Job {
    /// Whether it was made for this TalosCluster.
    pub fn is_of(&self, cluster: &TalosCluster) -> bool {
        cluster.metadata.uid.as_deref().is_some_and(|uid| !uid.is_empty() && uid == self.owner)
    }
}

/// Where a Job stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobState {
    /// At work, or about to be.
    Running {
        /// Why its pod has not started; empty when it has.
        waiting: String,
    },
    /// Being deleted.
    Deleting,
    /// Over.
    Ended {
        /// When.
        at: Timestamp,
        /// How.
        ending: Ending,
        /// The termination message, or what else is known.
        message: String,
    },
}

/// How a Job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Exit code 0: the takeover is complete.
    Done,
    /// Exit code 2, and a consent is what is missing.
    ConsentRequired,
    /// Exit code 2 otherwise.
    Refused,
    /// Any other exit code, or the pod died.
    Failed,
}

impl Facts {
    /// Reads the objects.
    ///
    /// # Errors
    /// [`FieldError`] with the first object that is none.
    pub fn read(objects: &Objects) -> Result<Self, FieldError> {
        let detected = detect(&objects.nodes, &objects.daemon_sets)?;
        let agent = detected.agents.first().map(|agent| (&agent.daemon_set, agent.image.as_str()));
        let daemon_set = agent.and_then(|(name, _)| {
            let is_it = |object: &&Value| {
                text(object, "/metadata/namespace") == name.namespace
                    && text(object, "/metadata/name") == name.name
            };
            objects.daemon_sets.iter().find(is_it)
        });
        let version = match agent {
            Some((_, image)) => image_tag(image).map(str::to_owned),
            None => detected.others.first().and_then(|other| other.version.clone()),
        };
        let agents = daemon_set.map(agents);
        let config = objects.config.as_ref();
        let silent: Vec<String> = objects.nodes.iter().filter_map(silent).collect();
        Ok(Self {
            cni: detected.kind(),
            version,
            agents,
            live: daemon_set.zip(config).and_then(|(set, config)| Live::read(set, config).ok()),
            talos: detected.runs_talos(),
            silent: silent.clone(),
            digest: digest(objects, &detected),
            policies: objects.policies.as_ref().map(|policies| {
                let named =
                    |object: &Value| (text(object, "/metadata/name").to_owned(), object.clone());
                policies.iter().map(named).collect()
            }),
            job: objects.job.as_ref().map(|job| read_job(job, &objects.pods, &silent)),
        })
    }
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn number(object: &Value, pointer: &str) -> i64 {
    object.pointer(pointer).and_then(Value::as_i64).unwrap_or_default()
}

/// Numbers that the DaemonSet controller wrote about another generation say nothing of this one.
fn agents(daemon_set: &Value) -> Agents {
    let current = number(daemon_set, "/status/observedGeneration")
        >= number(daemon_set, "/metadata/generation");
    let ready = number(daemon_set, "/status/numberReady")
        .min(number(daemon_set, "/status/updatedNumberScheduled"));
    Agents {
        wanted: number(daemon_set, "/status/desiredNumberScheduled"),
        ready: if current { ready } else { 0 },
    }
}

/// What a refusal may come of and is watched: the plugins' DaemonSets, the operator, Cilium's
/// configuration, and whether agents and operator are Ready.
fn digest(objects: &Objects, detected: &Detected) -> String {
    let relevant = detected
        .agents
        .iter()
        .map(|agent| &agent.daemon_set)
        .chain(detected.others.iter().map(|other| &other.seen))
        .chain(&detected.kube_proxy);
    let mut sets: Vec<String> = relevant.map(ToString::to_string).collect();
    sets.sort();
    let about = |object: &Value| {
        json!([
            text(object, "/metadata/namespace"),
            text(object, "/metadata/name"),
            text(object, "/metadata/uid"),
            number(object, "/metadata/generation"),
        ])
    };
    let mut generations: Vec<Value> = objects
        .daemon_sets
        .iter()
        .filter(|object| {
            let name = format!(
                "DaemonSet {}/{}",
                text(object, "/metadata/namespace"),
                text(object, "/metadata/name")
            );
            sets.contains(&name)
        })
        .map(|object| json!([about(object), agents(object).are_ready()]))
        .collect();
    generations.sort_by_key(ToString::to_string);
    let operator = objects.operator.as_ref().map(|object| {
        let wanted = object.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(1);
        json!([about(object), number(object, "/status/availableReplicas") >= wanted])
    });
    let config = objects.config.as_ref().and_then(|object| object.get("data"));
    hash(&json!([sets, generations, operator, config]))
}

/// SHA-256 of a value's text.
pub(crate) fn hash(value: &Value) -> String {
    Digest::of(value.to_string().as_bytes()).to_string()
}

/// The name of a node that does not answer: what the controller manager says when it has heard
/// nothing of a kubelet for a while.
fn silent(node: &Value) -> Option<String> {
    let conditions = node.pointer("/status/conditions").and_then(Value::as_array)?;
    let ready = conditions.iter().find(|one| text(one, "/type") == "Ready")?;
    let is_silent = text(ready, "/status") == "Unknown";
    is_silent.then(|| text(node, "/metadata/name").to_owned())
}

fn read_job(job: &Value, pods: &[Value], silent: &[String]) -> Job {
    let annotation = |name: &str| {
        let annotations = job.pointer("/metadata/annotations");
        annotations.and_then(|all| all.get(name)?.as_str()).unwrap_or_default()
    };
    let state = job_state(job, pods, silent);
    Job {
        uid: text(job, "/metadata/uid").to_owned(),
        owner: owner(job).to_owned(),
        attempt: annotation(ATTEMPT).parse().unwrap_or(1),
        asked: annotation(ASKED).to_owned(),
        live: annotation(LIVE).to_owned(),
        goal: annotation(GOAL).to_owned(),
        summary: match &state {
            JobState::Ended { message, .. } => Summary::find(message),
            JobState::Running { .. } | JobState::Deleting => None,
        },
        state,
    }
}

/// The TalosCluster that a Job was made for, by its UID; empty for any other Job.
fn owner(job: &Value) -> &str {
    let owners = job.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    let is_ours = |one: &&Value| {
        text(one, "/kind") == "TalosCluster"
            && text(one, "/apiVersion").starts_with("ichor.maesh.dev/")
    };
    owners.into_iter().flatten().find(is_ours).map_or("", |one| text(one, "/uid"))
}

fn job_state(job: &Value, pods: &[Value], silent: &[String]) -> JobState {
    if job.pointer("/metadata/deletionTimestamp").is_some() {
        return JobState::Deleting;
    }
    let uid = text(job, "/metadata/uid");
    let pods: Vec<&Value> = pods
        .iter()
        .filter(|pod| text(pod, "/metadata/labels/batch.kubernetes.io~1controller-uid") == uid)
        .collect();
    let over = |type_: &str| {
        let conditions = job.pointer("/status/conditions").and_then(Value::as_array);
        conditions
            .into_iter()
            .flatten()
            .find(|one| text(one, "/type") == type_ && text(one, "/status") == "True")
    };
    let lost: Vec<&Value> = pods.iter().copied().filter(|pod| is_lost(pod, silent)).collect();
    if let Some(pod) = lost.first()
        && lost.len() == pods.len()
        && over("Complete").is_none()
    {
        let (name, node) = (text(pod, "/metadata/name"), text(pod, "/spec/nodeName"));
        let message = format!("node {node} of pod {name} does not answer: the pod is given up");
        let at = text(pod, "/metadata/deletionTimestamp").parse().unwrap_or(Timestamp::UNIX_EPOCH);
        return JobState::Ended { at, ending: Ending::Failed, message };
    }
    let Some(condition) = over("Complete").or_else(|| over("Failed")) else {
        let waiting = pods.iter().find_map(|pod| waiting(pod)).unwrap_or_default();
        return JobState::Running { waiting };
    };
    let at = text(condition, "/lastTransitionTime").parse().unwrap_or(Timestamp::UNIX_EPOCH);
    let last = pods.iter().find_map(|pod| {
        pod.pointer("/status/containerStatuses/0/state/terminated").filter(|end| end.is_object())
    });
    if text(condition, "/type") == "Complete" {
        let message = last.map_or("", |end| text(end, "/message")).to_owned();
        return JobState::Ended { at, ending: Ending::Done, message };
    }
    // The Job may be seen to have failed before its pod is: then the pod's last word is to come.
    let at_work = |pod: &&Value| !matches!(text(pod, "/status/phase"), "Failed" | "Succeeded");
    if last.is_none() && pods.iter().any(at_work) {
        return JobState::Running { waiting: String::new() };
    }
    let Some(end) = last else {
        let (reason, message) = (text(condition, "/reason"), text(condition, "/message"));
        let message = format!("the pod is gone ({reason}: {message})");
        return JobState::Ended { at, ending: Ending::Failed, message };
    };
    let (code, message) = (number(end, "/exitCode"), text(end, "/message").to_owned());
    let ending = match code {
        2 if asks_for_consent(&message) => Ending::ConsentRequired,
        2 => Ending::Refused,
        _ => Ending::Failed,
    };
    let message = if is_last_word(&message) {
        message
    } else {
        // A program that was killed wrote none; then the kubelet gives the end of the log.
        let last = message.lines().rfind(|line| !line.trim().is_empty()).map(str::trim);
        let last = last.map(|line| format!("; the last it said: {line}")).unwrap_or_default();
        format!("the pod ended with exit code {code} ({}){last}", text(end, "/reason"))
    };
    JobState::Ended { at, ending, message }
}

/// Whether a pod was told to go by a node that does not answer, so that nobody will ever say that it
/// went. If it is at work nevertheless, the takeover's lock keeps it from writing
/// ([`takeover::run::lock`]).
fn is_lost(pod: &Value, silent: &[String]) -> bool {
    let is_going = pod.pointer("/metadata/deletionTimestamp").is_some();
    let is_over = matches!(text(pod, "/status/phase"), "Failed" | "Succeeded");
    is_going && !is_over && silent.iter().any(|node| node == text(pod, "/spec/nodeName"))
}

/// Whether a message is the one that the program leaves at its end.
fn is_last_word(message: &str) -> bool {
    ["done: ", "failed: ", "refused: "].iter().any(|start| message.starts_with(start))
}

/// Whether what a Job said at its refusal means that it waits for a consent: it has none, or one to
/// another plan ([`takeover::run::Denied::Consent`], [`takeover::run::Denied::Digest`]).
fn asks_for_consent(message: &str) -> bool {
    ["refused: consent is missing", "refused: what would be done is not what was consented to"]
        .iter()
        .any(|start| message.starts_with(start))
}

/// Why a pod has not started.
fn waiting(pod: &Value) -> Option<String> {
    let name = text(pod, "/metadata/name");
    if let Some(waiting) = pod.pointer("/status/containerStatuses/0/state/waiting") {
        let (reason, message) = (text(waiting, "/reason"), text(waiting, "/message"));
        let colon = if message.is_empty() { "" } else { ": " };
        return Some(format!("pod {name} waits ({reason}{colon}{message})"));
    }
    let conditions = pod.pointer("/status/conditions").and_then(Value::as_array)?;
    let unscheduled = conditions
        .iter()
        .find(|one| text(one, "/type") == "PodScheduled" && text(one, "/status") == "False")?;
    Some(format!("pod {name} is not scheduled ({})", text(unscheduled, "/message")))
}

#[cfg(test)]
mod tests;
