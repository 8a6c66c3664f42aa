//! When an object counts as ready: the rules of `pkg/kube/ready.go`, as pure functions over live
//! objects. What an object needs besides itself (ReplicaSets of a Deployment, pods of a
//! ReplicaSet) is handed in.

use std::fmt;

use serde_json::Value;

use super::field::{integer, list, text, truth};

/// Kinds whose readiness is looked at; everything else is ready once it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "each variant is the kind of the same name")]
pub enum Watched {
    Pod,
    Job,
    Deployment,
    PersistentVolumeClaim,
    Service,
    DaemonSet,
    CustomResourceDefinition,
    StatefulSet,
    ReplicationController,
    ReplicaSet,
}

impl Watched {
    /// The kind that readiness is asked of, if the object is of one (`ReadyChecker.IsReady`).
    pub fn of(api_version: &str, kind: &str) -> Option<Self> {
        Some(match (api_version, kind) {
            ("v1", "Pod") => Self::Pod,
            ("batch/v1", "Job") => Self::Job,
            ("apps/v1" | "apps/v1beta1" | "apps/v1beta2" | "extensions/v1beta1", "Deployment") => {
                Self::Deployment
            }
            ("v1", "PersistentVolumeClaim") => Self::PersistentVolumeClaim,
            ("v1", "Service") => Self::Service,
            ("apps/v1" | "apps/v1beta2" | "extensions/v1beta1", "DaemonSet") => Self::DaemonSet,
            (
                "apiextensions.k8s.io/v1" | "apiextensions.k8s.io/v1beta1",
                "CustomResourceDefinition",
            ) => Self::CustomResourceDefinition,
            ("apps/v1" | "apps/v1beta1" | "apps/v1beta2", "StatefulSet") => Self::StatefulSet,
            ("v1", "ReplicationController") => Self::ReplicationController,
            ("apps/v1" | "apps/v1beta2" | "extensions/v1beta1", "ReplicaSet") => Self::ReplicaSet,
            _ => return None,
        })
    }

    /// The API version in which Helm reads the live object.
    pub const fn api_version(self) -> &'static str {
        match self {
            Self::Pod
            | Self::PersistentVolumeClaim
            | Self::Service
            | Self::ReplicationController => "v1",
            Self::Job => "batch/v1",
            Self::CustomResourceDefinition => "apiextensions.k8s.io/v1",
            Self::Deployment | Self::DaemonSet | Self::StatefulSet | Self::ReplicaSet => "apps/v1",
        }
    }
}

/// Whether an object is ready, and if not, why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// Nothing to wait for.
    Ready,
    /// Something is missing.
    NotReady(Reason),
    /// It will never become ready: a Job with more failures than it may have.
    Failed(Reason),
}

/// Why an object is not ready, in the words of Helm's debug log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason(pub String);

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Readiness {
    /// Whether there is nothing to wait for.
    pub const fn is_ready(&self) -> bool {
        matches!(self, Self::Ready)
    }
}

fn not_ready(reason: String) -> Readiness {
    Readiness::NotReady(Reason(reason))
}

/// `namespace/name`, as Helm's log lines name an object.
fn title(object: &Value) -> String {
    format!("{}/{}", text(object, "/metadata/namespace"), text(object, "/metadata/name"))
}

/// The generation that the controller has seen, against the object's own.
fn observed(kind: &str, object: &Value) -> Option<Readiness> {
    let (seen, wanted) =
        (integer(object, "/status/observedGeneration"), integer(object, "/metadata/generation"));
    (seen != wanted).then(|| {
        not_ready(format!(
            "{kind} is not ready: {}. observedGeneration ({seen}) does not match spec generation ({wanted}).",
            title(object)
        ))
    })
}

fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a str> {
    list(object, "/status/conditions")
        .iter()
        .find(|condition| text(condition, "/type") == kind)
        .map(|condition| text(condition, "/status"))
}

/// A pod's condition `Ready`.
pub fn pod(pod: &Value) -> Readiness {
    let ready = list(pod, "/status/conditions").iter().any(|condition| {
        text(condition, "/type") == "Ready" && text(condition, "/status") == "True"
    });
    if ready { Readiness::Ready } else { not_ready(format!("Pod is not ready: {}", title(pod))) }
}

/// A Job that has all its completions.
pub fn job(job: &Value) -> Readiness {
    // The server defaults it; Helm reads the pointer without looking.
    let backoff_limit = job.pointer("/spec/backoffLimit").and_then(Value::as_i64).unwrap_or(6);
    if integer(job, "/status/failed") > backoff_limit {
        return Readiness::Failed(Reason(format!("job is failed: {}", title(job))));
    }
    match job.pointer("/spec/completions").and_then(Value::as_i64) {
        Some(completions) if integer(job, "/status/succeeded") < completions => {
            not_ready(format!("Job is not completed: {}", title(job)))
        }
        _ => Readiness::Ready,
    }
}

/// A Service with an address, or one that needs none.
pub fn service(service: &Value) -> Readiness {
    let kind = text(service, "/spec/type");
    if kind == "ExternalName" {
        return Readiness::Ready;
    }
    if text(service, "/spec/clusterIP").is_empty() {
        return not_ready(format!("Service does not have cluster IP address: {}", title(service)));
    }
    if kind == "LoadBalancer"
        && list(service, "/spec/externalIPs").is_empty()
        && service.pointer("/status/loadBalancer/ingress").is_none_or(Value::is_null)
    {
        return not_ready(format!(
            "Service does not have load balancer ingress IP address: {}",
            title(service)
        ));
    }
    Readiness::Ready
}

/// A claim that is bound.
pub fn persistent_volume_claim(claim: &Value) -> Readiness {
    if text(claim, "/status/phase") == "Bound" {
        return Readiness::Ready;
    }
    not_ready(format!("PersistentVolumeClaim is not bound: {}", title(claim)))
}

/// A Deployment with its newest ReplicaSet; paused Deployments count as ready.
///
/// `replica_sets` are those of the namespace; the Deployment's own are picked out.
pub fn deployment(deployment: &Value, replica_sets: &[Value]) -> Readiness {
    if truth(deployment, "/spec/paused") {
        return Readiness::Ready;
    }
    let Some(newest) = new_replica_set(deployment, replica_sets) else {
        return not_ready(format!(
            "Deployment is not ready: {}. Its new ReplicaSet is not there yet",
            title(deployment)
        ));
    };
    if let Some(reason) = observed("ReplicaSet", newest) {
        return reason;
    }
    if let Some(reason) = observed("Deployment", deployment) {
        return reason;
    }
    let expected = integer_or(deployment, "/spec/replicas", 1) - max_unavailable(deployment);
    let ready = integer(newest, "/status/readyReplicas");
    if ready < expected {
        return not_ready(format!(
            "Deployment is not ready: {}. {ready} out of {expected} expected pods are ready",
            title(deployment)
        ));
    }
    Readiness::Ready
}

fn integer_or(object: &Value, path: &str, default: i64) -> i64 {
    object.pointer(path).and_then(Value::as_i64).unwrap_or(default)
}

/// `deploymentutil.MaxUnavailable`
fn max_unavailable(deployment: &Value) -> i64 {
    let replicas = integer_or(deployment, "/spec/replicas", 1);
    if text(deployment, "/spec/strategy/type") != "RollingUpdate" || replicas == 0 {
        return 0;
    }
    let rolling = |name: &str| deployment.pointer(&format!("/spec/strategy/rollingUpdate/{name}"));
    // `ResolveFenceposts`: at least one pod has to move.
    let surge = scaled(rolling("maxSurge"), replicas, true);
    let unavailable = scaled(rolling("maxUnavailable"), replicas, false);
    let unavailable = match (surge, unavailable) {
        (Some(surge), Some(unavailable)) if surge == 0 && unavailable == 0 => 1,
        (Some(_), Some(unavailable)) => unavailable,
        // What does not resolve counts as nothing.
        _ => 0,
    };
    unavailable.min(replicas)
}

/// `intstr.GetScaledValueFromIntOrPercent`; a missing value is 0.
fn scaled(value: Option<&Value>, total: i64, round_up: bool) -> Option<i64> {
    match value {
        None | Some(Value::Null) => Some(0),
        Some(Value::Number(number)) => number.as_i64(),
        Some(Value::String(text)) => {
            let percent: i64 = text.strip_suffix('%')?.parse().ok()?;
            let share = percent.checked_mul(total)?;
            Some(if round_up { (share + 99).div_euclid(100) } else { share.div_euclid(100) })
        }
        Some(_) => None,
    }
}

/// `deploymentutil.FindNewReplicaSet`: the oldest of the Deployment's ReplicaSets whose pod
/// template is the Deployment's.
fn new_replica_set<'a>(deployment: &Value, replica_sets: &'a [Value]) -> Option<&'a Value> {
    let owner = text(deployment, "/metadata/uid");
    let template = plain_template(deployment)?;
    replica_sets
        .iter()
        .filter(|set| {
            list(set, "/metadata/ownerReferences").iter().any(|reference| {
                truth(reference, "/controller") && text(reference, "/uid") == owner
            })
        })
        .filter(|set| plain_template(set).as_ref() == Some(&template))
        .min_by_key(|set| (text(set, "/metadata/creationTimestamp"), text(set, "/metadata/name")))
}

/// A pod template without the label that the controller adds, and without what means nothing.
fn plain_template(object: &Value) -> Option<Value> {
    let mut template = object.pointer("/spec/template")?.clone();
    if let Some(labels) = template.pointer_mut("/metadata/labels").and_then(Value::as_object_mut) {
        labels.remove("pod-template-hash");
    }
    let empty = |value: Option<&Value>| {
        value.and_then(Value::as_object).is_some_and(serde_json::Map::is_empty)
    };
    if let Some(metadata) = template.pointer_mut("/metadata").and_then(Value::as_object_mut) {
        for name in ["labels", "annotations"] {
            if empty(metadata.get(name)) {
                metadata.remove(name);
            }
        }
    }
    drop_empty(&mut template, 0);
    Some(template)
}

/// Removes nulls and empty lists, which to Go's semantic comparison are absent. Objects of the
/// server are not deep; what is deeper than the bound is compared as it is.
fn drop_empty(value: &mut Value, depth: usize) {
    if depth > 100 {
        return;
    }
    match value {
        Value::Object(fields) => {
            fields.retain(|_, field| {
                !field.is_null() && !field.as_array().is_some_and(Vec::is_empty)
            });
            fields.values_mut().for_each(|field| drop_empty(field, depth + 1));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| drop_empty(item, depth + 1)),
        _ => {}
    }
}

/// A DaemonSet whose rolling update is over.
pub fn daemon_set(set: &Value) -> Readiness {
    if let Some(reason) = observed("DaemonSet", set) {
        return reason;
    }
    if text(set, "/spec/updateStrategy/type") != "RollingUpdate" {
        return Readiness::Ready;
    }
    let desired = integer(set, "/status/desiredNumberScheduled");
    let updated = integer(set, "/status/updatedNumberScheduled");
    if updated != desired {
        return not_ready(format!(
            "DaemonSet is not ready: {}. {updated} out of {desired} expected pods have been scheduled",
            title(set)
        ));
    }
    let unavailable =
        scaled(set.pointer("/spec/updateStrategy/rollingUpdate/maxUnavailable"), desired, true)
            .unwrap_or(desired);
    let (ready, expected) = (integer(set, "/status/numberReady"), desired - unavailable);
    if ready < expected {
        return not_ready(format!(
            "DaemonSet is not ready: {}. {ready} out of {expected} expected pods are ready",
            title(set)
        ));
    }
    Readiness::Ready
}

/// A StatefulSet whose rolling update is over, up to its partition.
pub fn stateful_set(set: &Value) -> Readiness {
    if let Some(reason) = observed("StatefulSet", set) {
        return reason;
    }
    if text(set, "/spec/updateStrategy/type") != "RollingUpdate" {
        return Readiness::Ready;
    }
    let partition = integer(set, "/spec/updateStrategy/rollingUpdate/partition");
    let replicas = integer_or(set, "/spec/replicas", 1);
    let (updated, expected) = (integer(set, "/status/updatedReplicas"), replicas - partition);
    if updated < expected {
        return not_ready(format!(
            "StatefulSet is not ready: {}. {updated} out of {expected} expected pods have been scheduled",
            title(set)
        ));
    }
    let ready = integer(set, "/status/readyReplicas");
    if ready != replicas {
        return not_ready(format!(
            "StatefulSet is not ready: {}. {ready} out of {replicas} expected pods are ready",
            title(set)
        ));
    }
    let (current, update) =
        (text(set, "/status/currentRevision"), text(set, "/status/updateRevision"));
    if partition == 0 && current != update {
        return not_ready(format!(
            "StatefulSet is not ready: {}. currentRevision {current} does not yet match updateRevision {update}",
            title(set)
        ));
    }
    Readiness::Ready
}

/// A definition whose names the server serves. A conflict of names counts as ready too: Helm
/// leaves it to what comes next.
pub fn custom_resource_definition(definition: &Value) -> Readiness {
    if condition(definition, "Established") == Some("True")
        || condition(definition, "NamesAccepted") == Some("False")
    {
        return Readiness::Ready;
    }
    not_ready(format!(
        "CustomResourceDefinition is not established: {}",
        text(definition, "/metadata/name")
    ))
}

/// A ReplicaSet or ReplicationController that was seen, with all its pods ready.
pub fn replicas(kind: &str, set: &Value, pods: &[Value]) -> Readiness {
    if let Some(reason) = observed(kind, set) {
        return reason;
    }
    pods.iter().map(pod).find(|readiness| !readiness.is_ready()).unwrap_or(Readiness::Ready)
}
