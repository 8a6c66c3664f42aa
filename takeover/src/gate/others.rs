//! Leaves that the server and controllers write and own.
//!
//! A leaf is theirs by what it is ([`by_place`]) or by who alone set it ([`is_controller`]).

use serde_json::Value;

use super::leaf::{Leaf, Path};

/// Field managers of programs that run in a cluster and write on their own account. A name with a
/// trailing `*` stands for all that begin so.
const CONTROLLERS: [&str; 12] = [
    "kube-controller-manager",
    "kube-apiserver",
    "kube-scheduler",
    "kubelet",
    "cloud-controller-manager",
    "cilium-operator*",
    "cilium-agent",
    "cilium-certgen",
    "clustermesh-apiserver",
    "cainjector",
    "cert-manager*",
    "vpa-*",
];

/// Annotations of the server, of controllers and of commands that leave a mark behind.
const ANNOTATIONS: [(&str, &str); 5] = [
    ("kubectl.kubernetes.io/restartedAt", "kubectl rollout restart"),
    ("config.k8s.io/owning-inventory", "talos"),
    ("deployment.kubernetes.io/revision", "kube-controller-manager"),
    ("deprecated.daemonset.template.generation", "kube-apiserver"),
    ("pv.kubernetes.io/bind-completed", "kube-controller-manager"),
];

/// Kinds whose `caBundle` says whom the API server trusts; whoever issues the certificate sets it.
const TRUSTING: [&str; 4] = [
    "APIService",
    "CustomResourceDefinition",
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
];

/// Who sets a `caBundle` when nobody is named.
const CA_INJECTOR: &str = "a CA injector";

/// Labels that the server puts on a Job and its pods.
const JOB_LABELS: [&str; 4] = [
    "controller-uid",
    "job-name",
    "batch.kubernetes.io/controller-uid",
    "batch.kubernetes.io/job-name",
];

/// Whether a field manager is a controller.
pub fn is_controller(name: &str) -> bool {
    CONTROLLERS.iter().any(|known| match known.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == *known,
    })
}

/// Whether only controllers set this leaf.
pub(super) fn by_manager(leaf: &Leaf) -> Option<String> {
    let first = leaf.managers.first()?;
    leaf.managers.iter().all(|manager| is_controller(&manager.name)).then(|| first.name.clone())
}

/// Who owns a leaf by what it is; none when it may be anybody's.
pub(super) fn by_place(kind: &str, object: &Value, path: &Path) -> Option<&'static str> {
    let keys = path.keys();
    if let [.., "annotations", key] = keys.as_slice()
        && let Some((_, owner)) = ANNOTATIONS.iter().find(|(known, _)| known == key)
    {
        return Some(owner);
    }
    if path.last_key() == "caBundle" && TRUSTING.contains(&kind) {
        return Some(CA_INJECTOR);
    }
    match (kind, keys.as_slice()) {
        (
            "Service",
            ["spec", "clusterIP" | "clusterIPs" | "ipFamilies" | "healthCheckNodePort", ..]
            | ["spec", "ports", "[]", "nodePort"],
        ) => Some("kube-apiserver"),
        ("ServiceAccount", ["secrets", ..]) => Some("kube-controller-manager"),
        ("ClusterRole", ["rules", ..]) if object.get("aggregationRule").is_some() => {
            Some("kube-controller-manager")
        }
        ("Job", [.., "labels" | "matchLabels", key]) if JOB_LABELS.contains(key) => {
            Some("kube-apiserver")
        }
        _ => None,
    }
}

/// Who owns a leaf by what it is, with the manager's name where any program may.
pub(super) fn owner(
    kind: &str,
    object: &Value,
    path: &Path,
    leaf: Option<&Leaf>,
) -> Option<String> {
    let owner = by_place(kind, object, path)?;
    let manager = leaf.and_then(|leaf| leaf.managers.first()).filter(|_| owner == CA_INJECTOR);
    Some(manager.map_or_else(|| owner.to_owned(), |manager| manager.name.clone()))
}

/// Leaves that say nothing about what an object is meant to be. (Takeover rules, section 3.)
pub(super) fn is_left_out(path: &Path) -> bool {
    match path.keys().as_slice() {
        ["apiVersion" | "kind" | "status", ..]
        | [
            "metadata",
            "managedFields" | "resourceVersion" | "uid" | "generation" | "creationTimestamp"
            | "selfLink",
            ..,
        ] => true,
        ["metadata", "annotations", key] => *key == helm_rs::release::redact::LAST_APPLIED,
        _ => false,
    }
}
