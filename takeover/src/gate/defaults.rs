//! Values that the API server fills in where nobody says anything, by kind
//! (`pkg/apis/*/v1/defaults.go` of Kubernetes).
//!
//! A live leaf that the chart does not name is no residue when it has the server's default: it
//! would be there just the same after a fresh install. Any other value is residue.

use serde_json::{Value, json};

use super::leaf::Path;

/// Kinds that hold a pod template, and where.
const TEMPLATES: [(&str, &[&str]); 6] = [
    ("DaemonSet", &["spec", "template"]),
    ("Deployment", &["spec", "template"]),
    ("StatefulSet", &["spec", "template"]),
    ("ReplicaSet", &["spec", "template"]),
    ("Job", &["spec", "template"]),
    ("CronJob", &["spec", "jobTemplate", "spec", "template"]),
];

/// Where an object's pods are described; none for kinds without pods.
pub fn pod_template(kind: &str) -> Option<&'static [&'static str]> {
    TEMPLATES.iter().find(|(known, _)| *known == kind).map(|(_, path)| *path)
}

/// Whether a live leaf has the value that the server puts there by default. `desired` is what the
/// chart says of the object.
pub(super) fn is_default(desired: &Value, object: &Value, path: &Path, value: &Value) -> bool {
    let kind = desired.get("kind").and_then(Value::as_str).unwrap_or_default();
    let keys = path.keys();
    if value.as_object().is_some_and(serde_json::Map::is_empty) {
        return is_empty_struct(kind, &keys)
            && parent(desired, path).is_some_and(|parent| {
                // A volume without a source is an emptyDir; one with a source that somebody turned
                // into an emptyDir is not what the chart asked for.
                path.last_key() != "emptyDir" || !parent.keys().any(|key| key != "name")
            });
    }
    if let Some(template) = pod_template(kind)
        && let Some(below) = keys.strip_prefix(template)
        && let Some(below) = below.strip_prefix(&["spec"])
    {
        return in_pod(object, template, path, below, value);
    }
    if kind == "CronJob"
        && let Some(below) = keys.strip_prefix(&["spec", "jobTemplate", "spec"])
    {
        return in_job(below, value);
    }
    match (kind, keys.as_slice()) {
        ("DaemonSet" | "StatefulSet" | "Deployment", ["spec", "revisionHistoryLimit"]) => {
            *value == 10
        }
        ("Deployment" | "StatefulSet" | "ReplicaSet", ["spec", "replicas"])
        | ("DaemonSet", ["spec", "updateStrategy", "rollingUpdate", "maxUnavailable"]) => {
            *value == 1
        }
        ("Deployment", ["spec", "progressDeadlineSeconds"]) => *value == 600,
        ("Deployment", ["spec", "strategy", "type"]) => value == "RollingUpdate",
        ("Deployment", ["spec", "strategy", "rollingUpdate", "maxSurge" | "maxUnavailable"]) => {
            value == "25%"
        }
        ("DaemonSet" | "StatefulSet", ["spec", "updateStrategy", "type"]) => {
            value == "RollingUpdate"
        }
        ("DaemonSet", ["spec", "updateStrategy", "rollingUpdate", "maxSurge"])
        | ("StatefulSet", ["spec", "updateStrategy", "rollingUpdate", "partition"]) => *value == 0,
        ("StatefulSet", ["spec", "podManagementPolicy"]) => value == "OrderedReady",
        ("StatefulSet", ["spec", "persistentVolumeClaimRetentionPolicy", _]) => value == "Retain",
        ("Job", ["spec", rest @ ..]) => in_job(rest, value),
        ("CronJob", ["spec", "concurrencyPolicy"]) => value == "Allow",
        ("CronJob", ["spec", "failedJobsHistoryLimit"])
        | ("HorizontalPodAutoscaler", ["spec", "minReplicas"]) => *value == 1,
        ("CronJob", ["spec", "successfulJobsHistoryLimit"]) => *value == 3,
        ("CronJob", ["spec", "suspend"]) => *value == false,
        ("Service", ["spec", rest @ ..]) => in_service(object, path, rest, value),
        ("Secret", ["type"]) => value == "Opaque",
        ("Namespace", ["spec", "finalizers"]) => *value == json!(["kubernetes"]),
        ("Namespace", ["spec", "finalizers", "[]"]) => value == "kubernetes",
        ("Namespace", ["metadata", "labels", "kubernetes.io/metadata.name"]) => {
            Some(value) == object.pointer("/metadata/name")
        }
        ("PriorityClass", ["preemptionPolicy"]) => value == "PreemptLowerPriority",
        ("ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration", rest) => {
            in_webhook(rest, value)
        }
        ("ValidatingAdmissionPolicy" | "MutatingAdmissionPolicy", ["spec", "failurePolicy"]) => {
            value == "Fail"
        }
        (
            "ValidatingAdmissionPolicy" | "MutatingAdmissionPolicy",
            ["spec", "matchConstraints", "matchPolicy"],
        )
        | (
            "ValidatingAdmissionPolicyBinding" | "MutatingAdmissionPolicyBinding",
            ["spec", "matchResources", "matchPolicy"],
        ) => value == "Equivalent",
        ("CustomResourceDefinition", ["spec", "conversion", "strategy"]) => value == "None",
        ("APIService", ["spec", "service", "port"])
        | (
            "CustomResourceDefinition",
            ["spec", "conversion", "webhook", "clientConfig", "service", "port"],
        ) => *value == 443,
        ("PersistentVolumeClaim", ["spec", "volumeMode"]) => value == "Filesystem",
        ("NetworkPolicy", ["spec", "policyTypes"]) => {
            let egress = object.pointer("/spec/egress").is_some();
            *value == if egress { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) }
        }
        _ => false,
    }
}

/// Whether the server writes an empty map at a place where nobody says anything: fields of its Go
/// types that are structs and no pointers are always written, and some pointers are filled in.
/// That counts only below what the chart names: a volume that somebody added stays somebody's.
fn is_empty_struct(kind: &str, keys: &[&str]) -> bool {
    if let Some(template) = pod_template(kind)
        && let Some(below) = keys.strip_prefix(template)
    {
        return matches!(
            below,
            ["metadata"]
                | ["spec", "securityContext"]
                | ["spec", "containers" | "initContainers", "[]", "resources"]
                | ["spec", "volumes", "[]", "emptyDir"]
                | ["spec", "volumes", "[]", "ephemeral", "volumeClaimTemplate", "metadata"]
                | [
                    "spec",
                    "volumes",
                    "[]",
                    "ephemeral",
                    "volumeClaimTemplate",
                    "spec",
                    "resources"
                ]
        );
    }
    matches!(
        (kind, keys),
        ("CronJob", ["spec", "jobTemplate", "metadata"])
            | ("NetworkPolicy", ["spec", "podSelector"])
            | ("PersistentVolumeClaim", ["spec", "resources"])
            | (
                "IngressClass" | "Lease" | "LimitRange" | "PodDisruptionBudget" | "ResourceQuota",
                ["spec"],
            )
            | (
                "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration",
                ["webhooks", "[]", "namespaceSelector" | "objectSelector"],
            )
            | (
                "ValidatingAdmissionPolicy" | "MutatingAdmissionPolicy",
                ["spec", "matchConstraints", "namespaceSelector" | "objectSelector"],
            )
            | (
                "ValidatingAdmissionPolicyBinding" | "MutatingAdmissionPolicyBinding",
                ["spec", "matchResources", "namespaceSelector" | "objectSelector"],
            )
    )
}

/// What the chart has above a place; none when it does not name that.
fn parent<'a>(desired: &'a Value, path: &Path) -> Option<&'a serde_json::Map<String, Value>> {
    use super::leaf::Step;
    let (_, above) = path.0.split_last()?;
    let found = above.iter().try_fold(desired, |value, step| match step {
        Step::Key(key) => value.get(key),
        Step::Item(_) => value.as_array()?.iter().find(|item| super::leaf::is_at(step, item)),
    });
    found?.as_object()
}

fn in_job(keys: &[&str], value: &Value) -> bool {
    match keys {
        ["backoffLimit"] => *value == 6,
        ["completions" | "parallelism"] => *value == 1,
        ["completionMode"] => value == "NonIndexed",
        ["suspend" | "manualSelector"] => *value == false,
        ["podReplacementPolicy"] => value == "TerminatingOrFailed",
        _ => false,
    }
}

fn in_service(object: &Value, path: &Path, keys: &[&str], value: &Value) -> bool {
    match keys {
        ["type"] => value == "ClusterIP",
        ["internalTrafficPolicy" | "externalTrafficPolicy"] => value == "Cluster",
        ["sessionAffinity"] => value == "None",
        ["sessionAffinityConfig", "clientIP", "timeoutSeconds"] => *value == 10_800,
        ["ipFamilyPolicy"] => value == "SingleStack",
        ["allocateLoadBalancerNodePorts"] => *value == true,
        ["publishNotReadyAddresses"] => *value == false,
        ["ports", "[]", "protocol"] => value == "TCP",
        ["ports", "[]", "targetPort"] => item(object, path).get("port") == Some(value),
        _ => false,
    }
}

fn in_webhook(keys: &[&str], value: &Value) -> bool {
    match keys {
        ["webhooks", "[]", "timeoutSeconds"] => *value == 10,
        ["webhooks", "[]", "failurePolicy"] => value == "Fail",
        ["webhooks", "[]", "matchPolicy"] => value == "Equivalent",
        ["webhooks", "[]", "reinvocationPolicy"] => value == "Never",
        ["webhooks", "[]", "clientConfig", "service", "port"] => *value == 443,
        _ => false,
    }
}

/// Below the spec of a pod template.
fn in_pod(object: &Value, template: &[&str], path: &Path, keys: &[&str], value: &Value) -> bool {
    let pod = at(object, template).and_then(|template| template.get("spec"));
    let of_pod = |field: &str| pod.and_then(|pod| pod.get(field));
    match keys {
        ["restartPolicy"] => value == "Always",
        ["dnsPolicy"] => value == "ClusterFirst",
        ["schedulerName"] => value == "default-scheduler",
        ["terminationGracePeriodSeconds"] => *value == 30,
        // The old name of serviceAccountName, which the server keeps equal.
        ["serviceAccount"] => of_pod("serviceAccountName") == Some(value),
        ["enableServiceLinks"] => *value == true,
        ["containers" | "initContainers", "[]", rest @ ..] => {
            in_container(item(object, path), of_pod("hostNetwork"), path, rest, value, object)
        }
        ["volumes", "[]", rest @ ..] => match rest {
            ["configMap" | "secret" | "projected" | "downwardAPI", "defaultMode"] => *value == 420,
            ["hostPath", "type"] => value == "",
            _ => false,
        },
        ["topologySpreadConstraints", "[]", "nodeAffinityPolicy"] => value == "Honor",
        ["topologySpreadConstraints", "[]", "nodeTaintsPolicy"] => value == "Ignore",
        _ => false,
    }
}

fn in_container(
    container: &Value,
    host_network: Option<&Value>,
    path: &Path,
    keys: &[&str],
    value: &Value,
    object: &Value,
) -> bool {
    match keys {
        ["terminationMessagePath"] => value == "/dev/termination-log",
        ["terminationMessagePolicy"] => value == "File",
        ["imagePullPolicy"] => {
            let image = container.get("image").and_then(Value::as_str).unwrap_or_default();
            let tag = cilium::version::image_tag(image);
            // A digest decides as a tag other than latest does.
            let latest = !image.contains('@') && tag.is_none_or(|tag| tag == "latest");
            value == if latest { "Always" } else { "IfNotPresent" }
        }
        ["ports", "[]", "protocol"] => value == "TCP",
        ["ports", "[]", "hostPort"] => {
            host_network == Some(&Value::Bool(true))
                && last_item(object, path).and_then(|port| port.get("containerPort")) == Some(value)
        }
        ["env", "[]", "valueFrom", "fieldRef", "apiVersion"] => value == "v1",
        ["env", "[]", "valueFrom", "resourceFieldRef", "divisor"] => value == "0",
        ["livenessProbe" | "readinessProbe" | "startupProbe", rest @ ..] => match rest {
            ["timeoutSeconds" | "successThreshold"] => *value == 1,
            ["periodSeconds"] => *value == 10,
            ["failureThreshold"] => *value == 3,
            ["httpGet", "scheme"] => value == "HTTP",
            ["httpGet", "path"] => value == "/",
            ["grpc", "service"] => value == "",
            _ => false,
        },
        ["lifecycle", _, "httpGet", "scheme"] => value == "HTTP",
        _ => false,
    }
}

fn at<'a>(object: &'a Value, keys: &[&str]) -> Option<&'a Value> {
    keys.iter().try_fold(object, |value, key| value.get(key))
}

static NOTHING: Value = Value::Null;

/// The first list item on the way to a place.
fn item<'a>(object: &'a Value, path: &Path) -> &'a Value {
    items(object, path).into_iter().next().unwrap_or(&NOTHING)
}

/// The last list item on the way.
fn last_item<'a>(object: &'a Value, path: &Path) -> Option<&'a Value> {
    items(object, path).pop()
}

fn items<'a>(object: &'a Value, path: &Path) -> Vec<&'a Value> {
    use super::leaf::Step;
    let mut found = Vec::new();
    let mut at = Some(object);
    for step in &path.0 {
        at = match step {
            Step::Key(key) => at.and_then(|value| value.get(key)),
            Step::Item(_) => {
                let item = at
                    .and_then(Value::as_array)
                    .and_then(|items| items.iter().find(|item| super::leaf::is_at(step, item)));
                found.extend(item);
                item
            }
        };
    }
    found
}

#[cfg(test)]
mod tests {
    use mergepatch::{Schemas as _, embedded};
    use serde_json::json;

    use super::super::leaf::leaves;
    use super::is_default;

    #[test]
    fn defaults_are_told_from_the_same_leaf_with_another_value() {
        let object = json!({
            "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "x"},
            "spec": {
                "revisionHistoryLimit": 10, "updateStrategy": {"rollingUpdate": {"maxSurge": 1}},
                "template": {"spec": {
                    "hostNetwork": true, "dnsPolicy": "Default", "serviceAccountName": "a", "serviceAccount": "a",
                    "containers": [{
                        "name": "c", "image": "i:1@sha256:2", "imagePullPolicy": "IfNotPresent",
                        "ports": [{"containerPort": 1, "hostPort": 1, "protocol": "TCP"}],
                        "livenessProbe": {"periodSeconds": 11, "timeoutSeconds": 1},
                        "resources": {},
                    }, {"name": "added", "resources": {}}],
                    "securityContext": {}, "affinity": {},
                    "volumes": [
                        {"name": "v", "emptyDir": {}}, {"name": "h", "emptyDir": {}},
                        {"name": "added", "emptyDir": {}},
                    ],
                }},
            },
        });
        let chart = json!({
            "kind": "DaemonSet",
            "spec": {"template": {"spec": {"containers": [{"name": "c"}], "volumes": [{"name": "v"}, {"name": "h", "hostPath": {}}]}}},
        });
        let all = leaves(&object, embedded().schema("apps/v1", "DaemonSet"));
        let found: Vec<String> = all
            .iter()
            .filter(|(path, leaf)| is_default(&chart, &object, path, &leaf.value))
            .map(|(path, _)| path.to_string())
            .collect();
        let at = "spec.template.spec.containers[name=c]";
        assert_eq!(
            found,
            [
                "spec.revisionHistoryLimit".to_owned(),
                format!("{at}.imagePullPolicy"),
                format!("{at}.livenessProbe.timeoutSeconds"),
                format!("{at}.ports[containerPort=1].hostPort"),
                format!("{at}.ports[containerPort=1].protocol"),
                format!("{at}.resources"),
                "spec.template.spec.securityContext".to_owned(),
                "spec.template.spec.serviceAccount".to_owned(),
                "spec.template.spec.volumes[name=v].emptyDir".to_owned(),
            ]
        );
    }
}
