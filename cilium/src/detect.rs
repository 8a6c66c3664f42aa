//! Which network plugins a cluster has, which nodes, and what follows for ichor.
//!
//! (Takeover rules, section 1, and section 2 where it speaks of nodes.)

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::object::{Field, FieldError, ObjectRef};
use crate::pinned::{AGENT, DAEMON_SET, NAMESPACE};
use crate::version::{image_repository, image_tag};

/// A plugin as `status.cni.detected` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Cilium.
    Cilium,
    /// flannel.
    Flannel,
    /// Calico, Canal included.
    Calico,
    /// Any other.
    Other,
    /// None.
    None,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Cilium, Self::Flannel, Self::Calico, Self::Other, Self::None];

    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cilium => "cilium",
            Self::Flannel => "flannel",
            Self::Calico => "calico",
            Self::Other => "other",
            Self::None => "none",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How a plugin other than Cilium is known: by its image, else by the names that its manifests
/// give to DaemonSet and pod label.
struct Known {
    kind: Kind,
    title: &'static str,
    /// Ends of image repositories, whole path components.
    images: &'static [&'static str],
    /// Names of DaemonSets, and values of the pods' labels `k8s-app`, `app` and the like.
    names: &'static [&'static str],
}

const fn known(
    kind: Kind,
    title: &'static str,
    images: &'static [&'static str],
    names: &'static [&'static str],
) -> Known {
    Known { kind, title, images, names }
}

/// Multus and other plugins that call a second one are not here: they run beside any.
static KNOWN: [Known; 11] = [
    known(Kind::Calico, "Calico", &["calico/node"], &["calico-node", "canal", "rke2-canal"]),
    known(Kind::Flannel, "flannel", &["flannel"], &["flannel", "kube-flannel", "kube-flannel-ds"]),
    known(Kind::Other, "Weave Net", &["weave-kube"], &["weave-net"]),
    known(
        Kind::Other,
        "Antrea",
        &["antrea-agent-ubuntu", "antrea-agent-ubi", "antrea-ubuntu"],
        &["antrea-agent"],
    ),
    known(Kind::Other, "kube-router", &["kube-router"], &["kube-router"]),
    known(Kind::Other, "the Amazon VPC CNI", &["amazon-k8s-cni"], &["aws-node"]),
    known(Kind::Other, "Azure CNI", &["azure-cns", "azure-cni"], &["azure-cns", "azure-cni"]),
    known(Kind::Other, "Kube-OVN", &["kube-ovn"], &["kube-ovn-cni"]),
    known(Kind::Other, "OVN-Kubernetes", &["ovn-kube"], &["ovnkube-node", "ovn-kubernetes"]),
    known(Kind::Other, "kindnet", &["kindnetd"], &["kindnet"]),
    known(Kind::Other, "Romana", &["romana/agent"], &["romana-agent"]),
];

/// Labels by which manifests name what a pod is.
const NAME_LABELS: [&str; 4] = ["k8s-app", "app", "app.kubernetes.io/name", "name"];

/// Annotations that a plugin leaves on its nodes, for those that run inside the kubelet's own
/// process and have no DaemonSet (flannel in k3s).
const NODE_MARKS: [(Kind, &str, &str); 2] = [
    (Kind::Flannel, "flannel", "flannel.alpha.coreos.com/backend-type"),
    (Kind::Calico, "Calico", "projectcalico.org/IPv4Address"),
];

/// A DaemonSet that runs Cilium's agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    /// The DaemonSet.
    pub daemon_set: ObjectRef,
    /// The agent's image; empty when there is none.
    pub image: String,
}

/// A plugin other than Cilium.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherCni {
    /// Which one, in one word.
    pub kind: Kind,
    /// Its name.
    pub title: String,
    /// Where it was seen: its DaemonSet, or a node that it marked.
    pub seen: ObjectRef,
    /// The tag of its image, if there is one.
    pub version: Option<String>,
}

impl fmt::Display for OtherCni {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.title, self.seen)
    }
}

/// A node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// `status.nodeInfo.osImage`
    pub os_image: String,
    /// `status.nodeInfo.kubeletVersion`
    pub kubelet: String,
    /// Whether its condition Ready is true.
    pub is_ready: bool,
}

impl Node {
    /// Whether it runs Talos: its osImage says so, as `Talos (v1.13.0)`.
    pub fn runs_talos(&self) -> bool {
        self.os_image.to_ascii_lowercase().contains("talos")
    }
}

/// What a cluster has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Detected {
    /// DaemonSets with Cilium's agent, by namespace and name.
    pub agents: Vec<Agent>,
    /// Other plugins, in the order of the table of plugins.
    pub others: Vec<OtherCni>,
    /// The DaemonSet `kube-proxy`, when it runs.
    pub kube_proxy: Option<ObjectRef>,
    /// The nodes, by name.
    pub nodes: Vec<Node>,
}

/// What ichor does about the network of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// There is one Cilium, where ichor's would be.
    Cilium(Agent),
    /// Another plugin, which ichor leaves alone because it was told to. None of them: the
    /// operator will bring one.
    Unmanaged(Vec<OtherCni>),
    /// There is none: ichor installs Cilium.
    Install,
}

/// Why ichor does nothing about the network of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Cilium runs where ichor's would not.
    #[error(
        "Cilium runs as {daemon_set}, and ichor's would be DaemonSet {NAMESPACE}/{DAEMON_SET}: \
         rendering the chart for {NAMESPACE} would make a second Cilium beside it; move Cilium to \
         {NAMESPACE} with the tool that installed it, or leave it with that tool"
    )]
    Elsewhere {
        /// The DaemonSet.
        daemon_set: ObjectRef,
    },
    /// There are several Ciliums.
    #[error(
        "there is more than one Cilium ({}): remove what is not in use, then try again",
        join(daemon_sets)
    )]
    Several {
        /// The DaemonSets.
        daemon_sets: Vec<ObjectRef>,
    },
    /// Another plugin, and ichor was not told to leave it alone.
    #[error(
        "the cluster's CNI is {}, and not Cilium: ichor neither installs, operates nor migrates \
         another CNI; to go on with the rest and leave the CNI alone, give --cni-unmanaged",
        join(others)
    )]
    OtherCni {
        /// The plugins.
        others: Vec<OtherCni>,
    },
    /// Nodes are ready, by a plugin that is not known.
    #[error(
        "node {node} is Ready, so that the cluster has a CNI, and it is none that ichor knows: \
         ichor neither installs, operates nor migrates another CNI than Cilium; to go on with the \
         rest and leave the CNI alone, give --cni-unmanaged"
    )]
    UnknownCni {
        /// The first such node.
        node: String,
    },
    /// Cilium and another plugin.
    #[error(
        "the cluster has two CNIs, Cilium ({cilium}) and {}: ichor cannot tell which one carries \
         the pods, so that it touches neither, --cni-unmanaged or not; finish the migration (or \
         remove the one that is not in use), then try again",
        join(others)
    )]
    Mixed {
        /// Cilium's DaemonSet.
        cilium: ObjectRef,
        /// The others.
        others: Vec<OtherCni>,
    },
    /// Cilium is there, and ichor was told to leave the CNI alone.
    #[error(
        "--cni-unmanaged was given, but the cluster's CNI is Cilium ({cilium}), which ichor \
         operates: leave the flag out"
    )]
    NotUnmanaged {
        /// Cilium's DaemonSet.
        cilium: ObjectRef,
    },
}

fn join<T: fmt::Display>(items: &[T]) -> String {
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Reads the nodes and the DaemonSets of all namespaces.
///
/// # Errors
/// [`FieldError`] with the first object that is none.
pub fn detect(nodes: &[Value], daemon_sets: &[Value]) -> Result<Detected, FieldError> {
    let mut detected = Detected::default();
    let mut others = Vec::new();
    for object in daemon_sets {
        let mut daemon_set = ObjectRef::of(object);
        // Items of a list do not say their kind.
        "DaemonSet".clone_into(&mut daemon_set.kind);
        if let Some(image) = agent_image(object)? {
            detected.agents.push(Agent { daemon_set, image });
        } else if daemon_set.name == "kube-proxy" && daemon_set.namespace == NAMESPACE {
            if runs_pods(object)? {
                detected.kube_proxy = Some(daemon_set);
            }
        } else if let Some((rank, other)) = other_cni(object, daemon_set)? {
            others.push((rank, other));
        }
    }
    detected.agents.sort_by(|a, b| a.daemon_set.cmp(&b.daemon_set));
    detected.nodes = nodes.iter().map(node).collect::<Result<_, _>>()?;
    detected.nodes.sort_by(|a, b| a.name.cmp(&b.name));
    if detected.agents.is_empty() && others.is_empty() {
        others.extend(marked(nodes)?);
    }
    others.sort_by(|(a, one), (b, two)| (a, &one.seen).cmp(&(b, &two.seen)));
    detected.others = others.into_iter().map(|(_, other)| other).collect();
    Ok(detected)
}

impl Detected {
    /// The plugin in one word: Cilium when it is there at all.
    pub fn kind(&self) -> Kind {
        match (self.agents.first(), self.others.first()) {
            (Some(_), _) => Kind::Cilium,
            (None, Some(other)) => other.kind,
            (None, None) if self.nodes.iter().any(|node| node.is_ready) => Kind::Other,
            (None, None) => Kind::None,
        }
    }

    /// Whether every node runs Talos, and there are nodes.
    pub fn runs_talos(&self) -> bool {
        !self.nodes.is_empty() && self.nodes.iter().all(Node::runs_talos)
    }

    /// The kubelets' versions, each once.
    pub fn kubelets(&self) -> BTreeSet<&str> {
        self.nodes.iter().map(|node| node.kubelet.as_str()).collect()
    }

    /// What follows: the table of section 1.
    ///
    /// # Errors
    /// [`Refusal`], which says what to do instead.
    pub fn decide(&self, cni_unmanaged: bool) -> Result<Outcome, Refusal> {
        let others = || self.others.clone();
        if let Some(agent) = self.agents.first() {
            let cilium = agent.daemon_set.clone();
            if !self.others.is_empty() {
                return Err(Refusal::Mixed { cilium, others: others() });
            }
            if self.agents.len() > 1 {
                let daemon_sets = self.agents.iter().map(|a| a.daemon_set.clone()).collect();
                return Err(Refusal::Several { daemon_sets });
            }
            if cilium.namespace != NAMESPACE || cilium.name != DAEMON_SET {
                return Err(Refusal::Elsewhere { daemon_set: cilium });
            }
            if cni_unmanaged {
                return Err(Refusal::NotUnmanaged { cilium });
            }
            return Ok(Outcome::Cilium(agent.clone()));
        }
        if cni_unmanaged {
            return Ok(Outcome::Unmanaged(others()));
        }
        if !self.others.is_empty() {
            return Err(Refusal::OtherCni { others: others() });
        }
        match self.nodes.iter().find(|node| node.is_ready) {
            Some(node) => Err(Refusal::UnknownCni { node: node.name.clone() }),
            None => Ok(Outcome::Install),
        }
    }
}

/// The agent's image, if this DaemonSet runs Cilium's agent. The container tells, or the name
/// and place that only Cilium's chart uses.
fn agent_image(object: &Value) -> Result<Option<String>, FieldError> {
    let containers = Field::root(object).at(&["spec", "template", "spec", "containers"])?;
    for container in containers.items()? {
        let program = container.get("command")?.items()?;
        let program = program.first().map_or(Ok(None), Field::text)?;
        let program = program.and_then(|path| path.rsplit('/').next());
        if container.get("name")?.text()? == Some(AGENT) || program == Some(AGENT) {
            return Ok(Some(container.get("image")?.text()?.unwrap_or_default().to_owned()));
        }
    }
    let about = ObjectRef::of(object);
    let is_ours = about.namespace == NAMESPACE && about.name == DAEMON_SET;
    Ok(is_ours.then(String::new))
}

/// Whether a DaemonSet has pods to run. One that was turned off by a node selector that fits no
/// node is there and does not run.
fn runs_pods(object: &Value) -> Result<bool, FieldError> {
    let object = Field::root(object);
    let status = object.get("status")?;
    let generation = object.at(&["metadata", "generation"])?.integer()?;
    let observed = status.get("observedGeneration")?.integer()?;
    let desired = status.get("desiredNumberScheduled")?.integer()?;
    Ok(observed.is_none() || observed < generation || desired != Some(0))
}

fn other_cni(object: &Value, seen: ObjectRef) -> Result<Option<(usize, OtherCni)>, FieldError> {
    let template = Field::root(object).at(&["spec", "template"])?;
    let labels = template.at(&["metadata", "labels"])?;
    let mut names = vec![seen.name.as_str()];
    for label in NAME_LABELS {
        names.extend(labels.get(label)?.text()?);
    }
    let mut images = Vec::new();
    for container in template.at(&["spec", "containers"])?.items()? {
        images.extend(container.get("image")?.text()?);
    }
    let found = KNOWN.iter().enumerate().find_map(|(rank, known)| {
        let image = images.iter().find(|image| known.has_image(image));
        let is_named = names.iter().any(|name| known.names.contains(name));
        (image.is_some() || is_named).then_some((rank, known, image.or(images.first())))
    });
    Ok(found.map(|(rank, known, image)| {
        let version = image.and_then(|image| image_tag(image)).map(str::to_owned);
        (rank, OtherCni { kind: known.kind, title: known.title.to_owned(), seen, version })
    }))
}

impl Known {
    fn has_image(&self, image: &str) -> bool {
        let repository = image_repository(image);
        self.images.iter().any(|end| {
            repository
                .strip_suffix(end)
                .is_some_and(|start| start.is_empty() || start.ends_with('/'))
        })
    }
}

fn node(object: &Value) -> Result<Node, FieldError> {
    let field = Field::root(object);
    let text = |path: &[&str]| -> Result<String, FieldError> {
        Ok(field.at(path)?.text()?.unwrap_or_default().to_owned())
    };
    let mut is_ready = false;
    for condition in field.at(&["status", "conditions"])?.items()? {
        if condition.get("type")?.text()? == Some("Ready") {
            is_ready = condition.get("status")?.text()? == Some("True");
        }
    }
    Ok(Node {
        name: text(&["metadata", "name"])?,
        os_image: text(&["status", "nodeInfo", "osImage"])?,
        kubelet: text(&["status", "nodeInfo", "kubeletVersion"])?,
        is_ready,
    })
}

/// Plugins that show by their marks on ready nodes only.
fn marked(nodes: &[Value]) -> Result<Vec<(usize, OtherCni)>, FieldError> {
    let mut others = Vec::new();
    for (rank, (kind, title, annotation)) in NODE_MARKS.into_iter().enumerate() {
        for object in nodes {
            let annotations = Field::root(object).at(&["metadata", "annotations"])?;
            if annotations.get(annotation)?.value().is_some() && node(object)?.is_ready {
                let seen = ObjectRef::new("Node", "", &ObjectRef::of(object).name);
                let title = title.to_owned();
                others.push((rank, OtherCni { kind, title, seen, version: None }));
                break;
            }
        }
    }
    Ok(others)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn daemon_set(namespace: &str, name: &str, container: &str, image: &str) -> Value {
        json!({
            "metadata": {"namespace": namespace, "name": name, "generation": 1},
            "spec": {"template": {
                "metadata": {"labels": {"k8s-app": name}},
                "spec": {"containers": [{"name": container, "image": image}]},
            }},
        })
    }

    fn cilium() -> Value {
        daemon_set("kube-system", "cilium", "cilium-agent", "quay.io/cilium/cilium:v1.20.0")
    }

    fn flannel() -> Value {
        daemon_set("kube-system", "kube-flannel", "kube-flannel", "ghcr.io/x/flannel:v0.27.4")
    }

    fn a_node(os: &str, ready: &str) -> Value {
        json!({
            "metadata": {"name": "n1"},
            "status": {
                "nodeInfo": {"osImage": os, "kubeletVersion": "v1.34.1"},
                "conditions": [{"type": "Ready", "status": ready}],
            },
        })
    }

    fn decide(sets: &[Value], unmanaged: bool) -> Result<Outcome, String> {
        let nodes = [a_node("Talos (v1.13.0)", "True")];
        let detected = detect(&nodes, sets).map_err(|error| error.to_string())?;
        detected.decide(unmanaged).map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn cilium_alone_in_its_place() {
        let envoy = daemon_set("kube-system", "cilium-envoy", "cilium-envoy", "q/cilium-envoy:v1");
        let multus = daemon_set("kube-system", "kube-multus-ds", "kube-multus", "g/multus-cni:v4");
        let outcome = decide(&[envoy, multus, cilium()], false).unwrap();
        let Outcome::Cilium(agent) = outcome else { panic!("{outcome:?}") };
        assert_eq!(agent.image, "quay.io/cilium/cilium:v1.20.0");
        assert!(decide(&[cilium()], true).unwrap_err().contains("leave the flag out"));
    }

    #[test]
    fn cilium_elsewhere_is_refused() {
        let elsewhere = daemon_set("cilium", "cilium", "cilium-agent", "c:v1.20.0");
        let error = decide(std::slice::from_ref(&elsewhere), false).unwrap_err();
        assert!(error.contains("Cilium runs as DaemonSet cilium/cilium,"), "{error}");
        assert!(error.contains("would make a second Cilium"), "{error}");
        let renamed = daemon_set("kube-system", "cilium-2", "cilium-agent", "c:v1.20.0");
        assert!(decide(&[renamed], false).is_err());
        assert!(decide(&[elsewhere, cilium()], false).unwrap_err().contains("more than one"));
    }

    #[test]
    fn another_cni_needs_the_flag() {
        let error = decide(&[flannel()], false).unwrap_err();
        assert_eq!(
            error,
            "the cluster's CNI is flannel (DaemonSet kube-system/kube-flannel), and not Cilium: \
             ichor neither installs, operates nor migrates another CNI; to go on with the rest and \
             leave the CNI alone, give --cni-unmanaged"
        );
        let outcome = decide(&[flannel()], true).unwrap();
        let Outcome::Unmanaged(others) = outcome else { panic!("{outcome:?}") };
        assert_eq!(others[0].version.as_deref(), Some("v0.27.4"));
        // Under another name, the image tells.
        let hidden = daemon_set("net", "x", "y", "docker.io/calico/node:v3.30.0");
        assert!(decide(&[hidden], false).unwrap_err().contains("Calico (DaemonSet net/x)"));
    }

    #[test]
    fn two_cnis_are_refused_whatever_the_flag() {
        for flag in [false, true] {
            let error = decide(&[flannel(), cilium()], flag).unwrap_err();
            assert!(error.contains("Cilium (DaemonSet kube-system/cilium) and flannel"), "{error}");
        }
    }

    #[test]
    fn nothing_known() {
        let ready = detect(&[a_node("Debian", "True")], &[]).unwrap();
        assert!(matches!(ready.decide(false), Err(Refusal::UnknownCni { .. })));
        assert_eq!((ready.kind(), ready.runs_talos()), (Kind::Other, false));
        let down = detect(&[a_node("Talos (v1.13.0)", "False")], &[]).unwrap();
        assert_eq!(down.decide(false), Ok(Outcome::Install));
        assert_eq!((down.kind(), down.runs_talos()), (Kind::None, true));
        let mut marked = a_node("K3s", "True");
        marked["metadata"]["annotations"] =
            json!({"flannel.alpha.coreos.com/backend-type": "vxlan"});
        let marked = detect(&[marked], &[]).unwrap();
        assert!(marked.decide(false).unwrap_err().to_string().contains("flannel (Node n1)"));
    }

    #[test]
    fn kube_proxy_that_fits_no_node_does_not_run() {
        let mut proxy = daemon_set("kube-system", "kube-proxy", "kube-proxy", "k/kube-proxy:v1");
        let runs =
            |proxy: &Value| detect(&[], std::slice::from_ref(proxy)).unwrap().kube_proxy.is_some();
        assert!(runs(&proxy));
        proxy["status"] = json!({"observedGeneration": 1, "desiredNumberScheduled": 0});
        assert!(!runs(&proxy));
        proxy["status"] = json!({"observedGeneration": 1, "desiredNumberScheduled": 3});
        assert!(runs(&proxy));
        proxy["metadata"]["generation"] = json!(2);
        proxy["status"] = json!({"observedGeneration": 1, "desiredNumberScheduled": 0});
        assert!(runs(&proxy), "the controller has not seen the change yet");
    }

    #[test]
    fn hostile_objects_are_errors() {
        for object in [
            json!(1),
            json!({"spec": []}),
            json!({"spec": {"template": {"spec": {"containers": {}}}}}),
            json!({"spec": {"template": {"spec": {"containers": [1]}}}}),
            json!({"spec": {"template": {"spec": {"containers": [{"command": [1]}]}}}}),
        ] {
            assert!(detect(&[], std::slice::from_ref(&object)).is_err(), "{object}");
        }
        assert!(detect(&[json!({"status": {"conditions": {}}})], &[]).is_err());
        assert!(detect(&[json!("x")], &[]).is_err());
        assert!(detect(&[json!({})], &[json!({})]).is_ok());
    }
}
