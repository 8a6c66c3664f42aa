//! Manifests taken apart into objects, and two manifests compared.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;

use bstr::{BString, ByteSlice};
use goyaml::{Limits, Value};

use super::compare::{Change, Lists, compare};
use super::path::LeafPath;
use crate::manifest::{has_more_values, split_manifests};

/// Which object it is. The API's version is not part of it: an object keeps its identity when
/// its manifest moves to another one.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity {
    /// API group; empty for the core group.
    pub group: String,
    /// `kind`
    pub kind: String,
    /// `metadata.namespace`; empty when the manifest does not say, and for cluster-wide objects.
    pub namespace: String,
    /// `metadata.name`; empty for an object that gets a generated one.
    pub name: String,
}

impl Identity {
    /// The identity of an object of the given form.
    pub fn of(object: &Value) -> Self {
        let text = |path: &[&str]| {
            object.at(path).and_then(Value::as_str).map(ToString::to_string).unwrap_or_default()
        };
        let api_version = text(&["apiVersion"]);
        Self {
            group: api_version.rsplit_once('/').map_or("", |(group, _)| group).to_owned(),
            kind: text(&["kind"]),
            namespace: text(&["metadata", "namespace"]),
            name: text(&["metadata", "name"]),
        }
    }

    /// The identity on a cluster, for a manifest that is applied into `namespace`.
    #[must_use]
    pub fn in_namespace(mut self, namespace: &str) -> Self {
        if is_cluster_scoped(&self.group, &self.kind) {
            self.namespace.clear();
        } else if self.namespace.is_empty() {
            namespace.clone_into(&mut self.namespace);
        }
        self
    }
}

/// `Deployment web`, with the namespace where it says one: `Deployment prod/web`.
impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind)?;
        f.write_str(" ")?;
        if !self.namespace.is_empty() {
            write!(f, "{}/", self.namespace)?;
        }
        f.write_str(&self.name)
    }
}

/// One object of a manifest.
#[derive(Clone, Debug, PartialEq)]
pub struct ManifestObject {
    /// Which one.
    pub identity: Identity,
    /// `apiVersion`
    pub api_version: String,
    /// The template that made it, as a `# Source:` comment says; empty without one.
    pub source: String,
    /// What it holds, numbers as they are written. The text, when it does not read.
    pub value: Value,
    /// The document's text. The items of a list share their document's.
    pub text: BString,
    /// Why it does not read.
    pub fault: Option<String>,
}

/// Values that a manifest may have, texts and structure together; a cluster full of objects has
/// not a tenth of them.
const MAX_VALUES: usize = 2_000_000;
/// Bytes that texts may come to when aliases repeat them (128 MiB).
const MAX_TEXT: usize = 128 << 20;

/// The objects of a manifest in their order, the items of lists on their own. Documents without
/// content are left out; one that does not read, or is no object, is an object with a fault. So is
/// a manifest with more than two million values, as a whole.
pub fn read_objects(manifest: &[u8]) -> Vec<ManifestObject> {
    let mut objects = Vec::new();
    each_object(manifest, &mut |object| objects.push(object));
    objects
}

/// As [`read_objects`], one object at a time: a manifest of a hundred thousand needs no more
/// memory than its text.
pub fn each_object(manifest: &[u8], sink: &mut dyn FnMut(ManifestObject)) {
    let unreadable = |name: String, source: &str, text: &BString, fault: String| ManifestObject {
        identity: Identity { name, kind: "unreadable".to_owned(), ..Identity::default() },
        api_version: String::new(),
        source: source.to_owned(),
        value: Value::String(text.clone()),
        text: text.clone(),
        fault: Some(fault),
    };
    if has_more_values(manifest, MAX_VALUES) {
        let fault = format!("more than {MAX_VALUES} values");
        return sink(unreadable("manifest".to_owned(), "", &BString::default(), fault));
    }
    let mut left = MAX_TEXT;
    for (index, text) in split_manifests(manifest).into_iter().enumerate() {
        let source = source(&text);
        let name = || format!("document {}", index + 1);
        let limits = Limits { max_nodes: MAX_VALUES, max_alias_bytes: left, ..Limits::default() };
        match goyaml::from_yaml_exact(&text, &limits) {
            Ok(Value::Null) => {}
            Ok(value @ Value::Map(_)) => {
                left = left.saturating_sub(size(&value));
                push(value, &source, &text, 0, sink);
            }
            Ok(_) => {
                sink(unreadable(name(), &source, &text, "it is no object".to_owned()));
            }
            Err(error) => {
                sink(unreadable(name(), &source, &text, crate::error_chain(&error)));
            }
        }
    }
}

/// Bytes of texts and, roughly, of structure. The depth is bounded by the reader.
fn size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Seq(items) => items.iter().map(|item| 32 + size(item)).sum(),
        Value::Map(map) => map.iter().map(|(key, value)| 64 + key.len() + size(value)).sum(),
        _ => 0,
    }
}

/// Lists in lists are taken apart this deep; Kubernetes has none at all.
const MAX_LISTS: usize = 8;

fn push(
    mut value: Value,
    source: &str,
    text: &BString,
    depth: usize,
    sink: &mut dyn FnMut(ManifestObject),
) {
    let is_list =
        value.get("kind").and_then(Value::as_str).is_some_and(|kind| kind.ends_with_str("List"))
            && value.get("items").is_some_and(|items| items.as_seq().is_some());
    if is_list && depth < MAX_LISTS {
        let head = item_head(&value);
        let items = value.as_map_mut().and_then(|map| map.remove("items"));
        if let Some(Value::Seq(items)) = items {
            for mut item in items.into_iter().filter(|item| item.as_map().is_some()) {
                if let (Some((api_version, kind)), Some(map)) = (&head, item.as_map_mut())
                    && !map.contains_key("apiVersion")
                    && !map.contains_key("kind")
                {
                    map.insert("apiVersion", api_version.clone());
                    map.insert("kind", kind.as_str());
                }
                push(item, source, text, depth + 1, sink);
            }
        }
        return;
    }
    let api_version = value.get("apiVersion").and_then(Value::as_str);
    sink(ManifestObject {
        identity: Identity::of(&value),
        api_version: api_version.map(ToString::to_string).unwrap_or_default(),
        source: source.to_owned(),
        value,
        text: text.clone(),
        fault: None,
    });
}

/// What the items of a `SecretList` are that do not say so themselves: `decodeToList` of
/// `k8s.io/apimachinery/pkg/apis/meta/v1/unstructured/helpers.go`. Those of a plain `List` must.
fn item_head(list: &Value) -> Option<(Value, String)> {
    let kind = list.get("kind")?.as_str()?.to_string();
    let kind = kind.strip_suffix("List").filter(|kind| !kind.is_empty())?;
    Some((list.get("apiVersion")?.clone(), kind.to_owned()))
}

/// What the first `# Source:` comment at the head of a document says.
fn source(text: &[u8]) -> String {
    text.lines()
        .take_while(|line| line.starts_with(b"#") || line.trim().is_empty())
        .find_map(|line| line.strip_prefix(b"# Source: "))
        .map(|name| name.trim().to_str_lossy().into_owned())
        .unwrap_or_default()
}

/// An object that two manifests do not have alike.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectDifference<'a> {
    /// The object in the old manifest.
    pub old: Option<&'a ManifestObject>,
    /// The object in the new manifest.
    pub new: Option<&'a ManifestObject>,
    /// Where the two differ; of an object that only one manifest has, the whole of it.
    pub changes: Vec<Change>,
}

impl ObjectDifference<'_> {
    /// Which object; as the new manifest has it when both do.
    pub fn identity(&self) -> Identity {
        self.new.or(self.old).map(|object| object.identity.clone()).unwrap_or_default()
    }
}

/// The objects that differ, in the order of the old manifest, then what only the new one has.
/// Of several objects with one identity the first is compared with the first, and so on.
pub fn compare_objects<'a>(
    old: &'a [ManifestObject],
    new: &'a [ManifestObject],
    lists: Lists,
) -> Vec<ObjectDifference<'a>> {
    let mut left: BTreeMap<&Identity, VecDeque<&ManifestObject>> = BTreeMap::new();
    for object in new {
        left.entry(&object.identity).or_default().push_back(object);
    }
    let whole = |old: Option<&'a ManifestObject>, new: Option<&'a ManifestObject>| {
        let value = |side: Option<&ManifestObject>| side.map(|object| object.value.clone());
        let change = Change { path: LeafPath::default(), old: value(old), new: value(new) };
        ObjectDifference { old, new, changes: vec![change] }
    };
    let mut differences = Vec::new();
    for object in old {
        match left.get_mut(&object.identity).and_then(VecDeque::pop_front) {
            Some(other) => {
                let changes = compare(&object.value, &other.value, lists);
                if !changes.is_empty() {
                    let (old, new) = (Some(object), Some(other));
                    differences.push(ObjectDifference { old, new, changes });
                }
            }
            None => differences.push(whole(Some(object), None)),
        }
    }
    // Those of the new manifest that found no partner are the last ones of their identity.
    for object in new {
        if let Some(rest) = left.get_mut(&object.identity)
            && rest.front().is_some_and(|front| std::ptr::eq(*front, object))
        {
            rest.pop_front();
            differences.push(whole(None, Some(object)));
        }
    }
    differences
}

/// Whether a kind is known to be cluster-wide: those of Kubernetes itself, and of the operators
/// that charts most often install. A kind that is not known counts as namespaced.
pub fn is_cluster_scoped(group: &str, kind: &str) -> bool {
    CLUSTER_SCOPED.iter().any(|(known, kinds)| *known == group && kinds.contains(&kind))
}

const CLUSTER_SCOPED: &[(&str, &[&str])] = &[
    ("", &["ComponentStatus", "Namespace", "Node", "PersistentVolume"]),
    (
        "admissionregistration.k8s.io",
        &[
            "MutatingAdmissionPolicy",
            "MutatingAdmissionPolicyBinding",
            "MutatingWebhookConfiguration",
            "ValidatingAdmissionPolicy",
            "ValidatingAdmissionPolicyBinding",
            "ValidatingWebhookConfiguration",
        ],
    ),
    ("apiextensions.k8s.io", &["CustomResourceDefinition"]),
    ("apiregistration.k8s.io", &["APIService"]),
    ("authentication.k8s.io", &["SelfSubjectReview", "TokenReview"]),
    (
        "authorization.k8s.io",
        &["SelfSubjectAccessReview", "SelfSubjectRulesReview", "SubjectAccessReview"],
    ),
    ("certificates.k8s.io", &["CertificateSigningRequest", "ClusterTrustBundle"]),
    ("cert-manager.io", &["ClusterIssuer"]),
    (
        "cilium.io",
        &[
            "CiliumBGPAdvertisement",
            "CiliumBGPClusterConfig",
            "CiliumBGPNodeConfig",
            "CiliumBGPNodeConfigOverride",
            "CiliumBGPPeerConfig",
            "CiliumBGPPeeringPolicy",
            "CiliumCIDRGroup",
            "CiliumClusterwideEnvoyConfig",
            "CiliumClusterwideNetworkPolicy",
            "CiliumEgressGatewayPolicy",
            "CiliumExternalWorkload",
            "CiliumIdentity",
            "CiliumL2AnnouncementPolicy",
            "CiliumLoadBalancerIPPool",
            "CiliumNode",
            "CiliumPodIPPool",
        ],
    ),
    ("extensions", &["PodSecurityPolicy"]),
    ("flowcontrol.apiserver.k8s.io", &["FlowSchema", "PriorityLevelConfiguration"]),
    ("gateway.networking.k8s.io", &["GatewayClass"]),
    ("networking.k8s.io", &["IPAddress", "IngressClass", "ServiceCIDR"]),
    ("node.k8s.io", &["RuntimeClass"]),
    ("policy", &["PodSecurityPolicy"]),
    ("rbac.authorization.k8s.io", &["ClusterRole", "ClusterRoleBinding"]),
    ("resource.k8s.io", &["DeviceClass", "DeviceTaintRule", "ResourceSlice"]),
    ("scheduling.k8s.io", &["PriorityClass"]),
    ("snapshot.storage.k8s.io", &["VolumeSnapshotClass", "VolumeSnapshotContent"]),
    (
        "storage.k8s.io",
        &["CSIDriver", "CSINode", "StorageClass", "VolumeAttachment", "VolumeAttributesClass"],
    ),
    ("storagemigration.k8s.io", &["StorageVersionMigration"]),
];

#[cfg(test)]
mod tests {
    use super::{Lists, compare_objects, read_objects};

    #[test]
    fn pairs_by_identity_lists_taken_apart() {
        let old = read_objects(
            b"---\n# Source: c/templates/a.yaml\nkind: ConfigMap\nmetadata: {name: a}\n---\nkind: List\napiVersion: v1\nitems:\n- {kind: ConfigMap, metadata: {name: b}, data: {x: old}}\n- {kind: Gone, metadata: {name: g}}\n",
        );
        let new = read_objects(
            b"kind: ConfigMap\nmetadata: {name: b}\ndata: {x: new}\n---\nkind: ConfigMap\nmetadata: {name: a}\n---\nkind: New\nmetadata: {name: new}\n---\n# nothing\n",
        );
        assert_eq!(old.first().unwrap().source, "c/templates/a.yaml");
        let differences = compare_objects(&old, &new, Lists::ByKey);
        let text: Vec<String> = differences
            .iter()
            .map(|d| format!("{} {}", d.identity(), d.changes.first().unwrap().path))
            .collect();
        assert_eq!(text, ["ConfigMap b data.x", "Gone g ", "New new "]);
    }

    #[test]
    fn what_does_not_read_is_compared_as_text() {
        let broken = read_objects(b"a: [\n---\njust text\n---\nkind: A\n");
        let faults: Vec<bool> = broken.iter().map(|object| object.fault.is_some()).collect();
        assert_eq!(faults, [true, true, false]);
        assert!(compare_objects(&broken, &broken, Lists::ByKey).is_empty());
    }

    #[test]
    fn of_equal_identities_each_is_compared_once() {
        let twice = read_objects(b"kind: A\n---\nkind: A\nx: 1\n");
        let once = read_objects(b"kind: A\n");
        assert_eq!(compare_objects(&twice, &once, Lists::ByKey).len(), 1);
        assert_eq!(compare_objects(&once, &twice, Lists::ByKey).len(), 1);
    }
}
