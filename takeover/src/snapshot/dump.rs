//! A stage of objects alone, out of `kubectl get` or etcd: nothing there says what the server is,
//! what it serves, or who asks. What can be told by the objects is, and what cannot is listed.

use std::collections::BTreeSet;
use std::sync::Arc;

use cilium::pinned::{CONFIG_MAP, NAMESPACE};
use helm_rs::cluster::memory::{LoadError, MemoryCluster, MemoryOptions};
use helm_rs::cluster::snapshot::{About, End, Secrets};
use helm_rs::cluster::{Cluster, Discovery, Kind, ManualClock, Resource, ServerVersion, block_on};
use serde_json::Value;

use super::select::{Selection, is_begun, is_record};
use super::{Stage, StageError};
use crate::survey::{is_agent, text};

/// Objects with their places, and what is known besides.
#[derive(Debug, Default)]
pub struct Dump {
    /// What it is, such as `a folder of kubectl output`.
    pub what: String,
    /// The objects.
    pub objects: Vec<(String, Value)>,
    /// When it was made (RFC 3339), or a guess at it.
    pub made: String,
    /// What could not be read, for people.
    pub unread: Vec<String>,
    /// What is not there, for people, besides what the objects tell.
    pub notes: Vec<String>,
}

impl Stage {
    /// The cluster of a dump.
    ///
    /// # Errors
    /// [`StageError`]
    pub fn of_dump(dump: Dump) -> Result<Self, StageError> {
        let Dump { what, mut objects, made, unread, mut notes } = dump;
        objects.retain(|(_, object)| {
            object.is_object()
                && !Kind::of(object).kind.is_empty()
                && !text(object, "/metadata/name").is_empty()
        });
        let (discovery, guessed) = served(&objects)?;
        let agent = objects.iter().map(|(_, object)| object).find(|object| is_agent(object));
        let begun = objects.iter().any(|(_, object)| is_begun(object));
        let mut selection = Selection::of(agent, begun, &[]);
        objects.retain(|(_, object)| {
            let resource = discovery.resource(&Kind::of(object));
            selection.keeps(object, resource.map_or("", |resource| &resource.plural))
        });
        let all: Vec<&Value> = objects.iter().map(|(_, object)| object).collect();
        notes.extend(missing(&all));
        notes.extend(guessed);
        notes.extend(selection.note());
        let (server, how) = server(&all);
        notes.push(how);
        let mut about = About::new(server, &MemoryOptions::default().identity, &discovery);
        about.taken_by = what;
        about.taken = made;
        about.secrets = Secrets::Included;
        about.cluster = find(&all, "Namespace", "", NAMESPACE)
            .map(|system| text(system, "/metadata/uid").to_owned())
            .unwrap_or_default();
        let mut end = End::default();
        (end.objects, end.unread, end.notes) = (objects.len(), unread, notes);
        Self::of(about, end, objects)
    }
}

/// What is served: what Kubernetes 1.36 serves, what CRDs define, and what else there are objects
/// of, with a guess at its name.
fn served(objects: &[(String, Value)]) -> Result<(Discovery, Option<String>), LoadError> {
    let clock = Arc::new(ManualClock::new(jiff::Timestamp::UNIX_EPOCH));
    let memory = MemoryCluster::new(clock, MemoryOptions::default());
    let is_definition =
        |(_, object): &&(String, Value)| text(object, "/kind") == "CustomResourceDefinition";
    memory.load(objects.iter().filter(is_definition).cloned().collect())?;
    let discovery = block_on(memory.discovery(true)).map(|all| Discovery::clone(&all));
    let discovery = discovery.unwrap_or_default();
    let mut unknown: BTreeSet<(Kind, bool)> = BTreeSet::new();
    for (_, object) in objects {
        let kind = Kind::of(object);
        if discovery.resource(&kind).is_none() {
            unknown.insert((kind, !text(object, "/metadata/namespace").is_empty()));
        }
    }
    if unknown.is_empty() {
        return Ok((discovery, None));
    }
    let names: Vec<String> =
        unknown.iter().map(|(kind, _)| format!("{}/{}", kind.api_version(), kind.kind)).collect();
    let note = format!(
        "what serves {}: no CustomResourceDefinition is there, so that the resource's name is a guess",
        names.join(", ")
    );
    let guess = |(kind, namespaced): (Kind, bool)| {
        let plural = kind.kind.to_lowercase() + "s";
        let mut resource = Resource::builtin(&kind.api_version(), &kind.kind, &plural, namespaced);
        resource.verbs = ["get", "list", "watch", "create", "update", "patch", "delete"]
            .map(str::to_owned)
            .to_vec();
        resource
    };
    Ok((discovery.extended(unknown.into_iter().map(guess)), Some(note)))
}

fn find<'a>(objects: &[&'a Value], kind: &str, namespace: &str, name: &str) -> Option<&'a Value> {
    let is_it = |object: &&&Value| {
        text(object, "/kind") == kind
            && text(object, "/metadata/namespace") == namespace
            && text(object, "/metadata/name") == name
    };
    objects.iter().find(is_it).copied()
}

/// The server's version: no kubelet is newer than its server.
fn server(objects: &[&Value]) -> (ServerVersion, String) {
    let default = MemoryOptions::default().version;
    let kubelets = objects.iter().filter(|object| text(object, "/kind") == "Node");
    let kubelets = kubelets.map(|node| text(node, "/status/nodeInfo/kubeletVersion"));
    let numbers = |found: &str| -> Vec<u64> {
        let parts = found.trim_start_matches('v').split(['.', '-', '+']);
        parts.map_while(|part| part.parse().ok()).collect()
    };
    let newest = kubelets.map(|found| (numbers(found), found)).max();
    let newest = newest.filter(|(numbers, _)| numbers.len() > 1);
    let Some((_, found)) = newest else {
        let note = format!("the server's version: {} is assumed", default.git_version);
        return (default, note);
    };
    let mut parts = found.trim_start_matches('v').split('.').map(str::to_owned);
    let server = ServerVersion {
        major: parts.next().unwrap_or_default(),
        minor: parts.next().unwrap_or_default(),
        git_version: found.to_owned(),
        ..default
    };
    (server, format!("the server's version: {found} is assumed, that of its newest kubelet"))
}

/// What a full answer takes and is not there.
fn missing(objects: &[&Value]) -> Vec<String> {
    let mut missing = vec![
        "which API groups other servers add (APIServices), and whether all answered".to_owned(),
        "who would ask: rights are not checked".to_owned(),
    ];
    let has = |kind: &str| objects.iter().any(|object| text(object, "/kind") == kind);
    let mut tell = |is_there: bool, text: &str| {
        if !is_there {
            missing.push(text.to_owned());
        }
    };
    let system = find(objects, "Namespace", "", NAMESPACE);
    tell(
        system.is_some_and(|system| !text(system, "/metadata/uid").is_empty()),
        "the UID of Namespace kube-system, which stands for the cluster: the plan's digest is \
         another one than the cluster's (kubectl get namespaces)",
    );
    tell(has("Node"), "the nodes (kubectl get nodes)");
    tell(
        find(objects, "ConfigMap", NAMESPACE, CONFIG_MAP).is_some(),
        "ConfigMap kube-system/cilium-config (kubectl get configmaps -n kube-system)",
    );
    tell(has("CustomResourceDefinition"), "the CRDs (kubectl get crds)");
    tell(
        has("ClusterRole"),
        "roles and bindings (kubectl get clusterroles,clusterrolebindings; kubectl get \
         roles,rolebindings -A)",
    );
    tell(
        has("ServiceAccount"),
        "ServiceAccounts, Services and the like: what is not there counts as to be created",
    );
    let agent = objects.iter().find(|object| is_agent(object));
    tell(
        agent.is_some(),
        "DaemonSet kube-system/cilium, and those that tell another network plugin (kubectl get \
         daemonsets -A)",
    );
    let names_release =
        agent.is_some_and(|agent| !crate::survey::claimed_release(agent).0.is_empty());
    tell(
        !names_release || objects.iter().any(|object| is_record(object)),
        "the release records of the running Cilium (kubectl get secrets -A -l owner=helm)",
    );
    tell(
        agent.is_none_or(|agent| agent.pointer("/metadata/managedFields").is_some()),
        "who set which field: leaves of controllers count as left over (kubectl get \
         --show-managed-fields)",
    );
    missing
}
