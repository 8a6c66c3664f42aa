//! The defaults that a server writes into objects, for the kinds that charts hold most
//! (`kubernetes/pkg/apis/*/v1/defaults.go`). Kinds that are not named here are stored as sent.

use mergepatch::{Schemas as _, embedded};
use serde_json::{Value, json};

use super::state::{meta, set};

/// The annotation in which a DaemonSet's old template generation is kept.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// Sets a field that is missing or null.
fn fill(object: &mut Value, field: &str, value: Value) {
    let Some(fields) = object.as_object_mut() else { return };
    match fields.get(field) {
        Some(known) if !known.is_null() => {}
        _ => {
            fields.insert(field.to_owned(), value);
        }
    }
}

/// The items of a list; none when it is missing.
fn items<'a>(object: &'a mut Value, field: &str) -> impl Iterator<Item = &'a mut Value> {
    object.get_mut(field).and_then(Value::as_array_mut).into_iter().flatten()
}

fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// Writes the defaults into an object.
pub(super) fn apply(object: &mut Value) {
    let kind = crate::cluster::Kind::of(object);
    if let Some(schema) = embedded().schema(&kind.api_version(), &kind.kind) {
        schema.drop_false(object);
    }
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "Secret") => secret(object),
        ("", "Namespace") => namespace(object),
        ("", "Service") => service(object),
        ("", "Pod") => {
            if let Some(spec) = object.get_mut("spec") {
                pod(spec);
                host_ports(spec);
                fill(spec, "enableServiceLinks", true.into());
            }
        }
        ("", "PersistentVolumeClaim") => {
            if let Some(spec) = object.get_mut("spec") {
                fill(spec, "volumeMode", "Filesystem".into());
            }
            fill(object, "status", json!({ "phase": "Pending" }));
        }
        ("apps", _) => workload(&kind.kind, object),
        ("batch", "Job") => {
            if let Some(spec) = object.get_mut("spec") {
                job(spec);
            }
        }
        ("batch", "CronJob") => cron_job(object),
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => binding(object),
        ("networking.k8s.io", "NetworkPolicy") => network_policy(object),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => definition(object),
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration") => {
            webhooks(object, false);
        }
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration") => webhooks(object, true),
        ("storage.k8s.io", "StorageClass") => {
            fill(object, "reclaimPolicy", "Delete".into());
            fill(object, "volumeBindingMode", "Immediate".into());
        }
        ("scheduling.k8s.io", "PriorityClass") => {
            fill(object, "preemptionPolicy", "PreemptLowerPriority".into());
        }
        ("autoscaling", "HorizontalPodAutoscaler") => {
            if let Some(spec) = object.get_mut("spec") {
                fill(spec, "minReplicas", 1.into());
            }
        }
        _ => {}
    }
}

fn secret(secret: &mut Value) {
    use base64::Engine as _;
    fill(secret, "type", "Opaque".into());
    let Some(fields) = secret.as_object_mut() else { return };
    let Some(Value::Object(plain)) = fields.remove("stringData") else { return };
    let data = fields.entry("data").or_insert_with(|| json!({}));
    for (name, value) in plain {
        let bytes = value.as_str().unwrap_or_default();
        let encoded = base64::engine::general_purpose::STANDARD.encode(bytes);
        if let Some(data) = data.as_object_mut() {
            data.insert(name, encoded.into());
        }
    }
}

fn namespace(namespace: &mut Value) {
    let name = meta(namespace, "name").to_owned();
    let labels = namespace.pointer("/metadata/labels").cloned().unwrap_or_else(|| json!({}));
    if let Value::Object(mut labels) = labels {
        labels.insert("kubernetes.io/metadata.name".to_owned(), name.into());
        set(namespace, "labels", Value::Object(labels));
    }
    fill(namespace, "spec", json!({ "finalizers": ["kubernetes"] }));
    fill(namespace, "status", json!({ "phase": "Active" }));
}

fn service(service: &mut Value) {
    fill(service, "spec", json!({}));
    let Some(spec) = service.get_mut("spec") else { return };
    fill(spec, "type", "ClusterIP".into());
    fill(spec, "sessionAffinity", "None".into());
    let kind = text(spec, "type").to_owned();
    if kind != "ExternalName" {
        fill(spec, "internalTrafficPolicy", "Cluster".into());
        fill(spec, "ipFamilies", json!(["IPv4"]));
        fill(spec, "ipFamilyPolicy", "SingleStack".into());
        if let Some(address) = spec.get("clusterIP").cloned() {
            fill(spec, "clusterIPs", json!([address]));
        }
    }
    if matches!(kind.as_str(), "NodePort" | "LoadBalancer") {
        fill(spec, "externalTrafficPolicy", "Cluster".into());
    }
    if kind == "LoadBalancer" {
        fill(spec, "allocateLoadBalancerNodePorts", true.into());
    }
    for port in items(spec, "ports") {
        fill(port, "protocol", "TCP".into());
        let number = port.get("port").cloned().unwrap_or_default();
        fill(port, "targetPort", number);
    }
    fill(service, "status", json!({ "loadBalancer": {} }));
}

/// Gives a service an address out of 10.96.0.0/16, as the allocator of a server would.
pub(super) fn allocate(object: &mut Value, number: usize) {
    let kind = crate::cluster::Kind::of(object);
    if !kind.group.is_empty() || kind.kind != "Service" {
        return;
    }
    let Some(spec) = object.get_mut("spec") else { return };
    if text(spec, "type") != "ExternalName" {
        let number = number + 10;
        let address = format!("10.96.{}.{}", (number >> 8) & 0xff, number & 0xff);
        fill(spec, "clusterIP", address.into());
        let address = spec.get("clusterIP").cloned().unwrap_or_default();
        fill(spec, "clusterIPs", json!([address]));
    }
}

/// Keeps what a server allocated when an update leaves it out.
pub(super) fn keep_allocated(before: &Value, after: &mut Value) {
    let kind = crate::cluster::Kind::of(after);
    let fields: &[&str] = match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "Service") => &["clusterIP", "clusterIPs", "healthCheckNodePort"],
        ("", "PersistentVolumeClaim") => &["volumeName", "storageClassName"],
        _ => return,
    };
    let Some(spec) = after.get_mut("spec") else { return };
    if text(spec, "type") == "ExternalName" {
        return;
    }
    for field in fields {
        if let Some(value) = before.pointer(&format!("/spec/{field}")) {
            fill(spec, field, value.clone());
        }
    }
}

fn workload(kind: &str, object: &mut Value) {
    let Some(spec) = object.get_mut("spec") else { return };
    match kind {
        "Deployment" => {
            fill(spec, "replicas", 1.into());
            fill(spec, "revisionHistoryLimit", 10.into());
            fill(spec, "progressDeadlineSeconds", 600.into());
            fill(spec, "strategy", json!({}));
            if let Some(strategy) = spec.get_mut("strategy") {
                rolling_update(strategy, &json!({ "maxSurge": "25%", "maxUnavailable": "25%" }));
            }
        }
        "DaemonSet" => {
            fill(spec, "revisionHistoryLimit", 10.into());
            fill(spec, "updateStrategy", json!({}));
            if let Some(strategy) = spec.get_mut("updateStrategy") {
                rolling_update(strategy, &json!({ "maxSurge": 0, "maxUnavailable": 1 }));
            }
        }
        "StatefulSet" => {
            fill(spec, "replicas", 1.into());
            fill(spec, "revisionHistoryLimit", 10.into());
            fill(spec, "podManagementPolicy", "OrderedReady".into());
            fill(spec, "updateStrategy", json!({}));
            fill(
                spec,
                "persistentVolumeClaimRetentionPolicy",
                json!({ "whenDeleted": "Retain", "whenScaled": "Retain" }),
            );
            if let Some(strategy) = spec.get_mut("updateStrategy") {
                rolling_update(strategy, &json!({ "partition": 0 }));
            }
            for claim in items(spec, "volumeClaimTemplates") {
                fill(claim, "apiVersion", "v1".into());
                fill(claim, "kind", "PersistentVolumeClaim".into());
                apply(claim);
            }
        }
        "ReplicaSet" => fill(spec, "replicas", 1.into()),
        _ => return,
    }
    template(spec);
    if kind == "DaemonSet" && object.pointer("/metadata/generation").is_none() {
        annotate(object, TEMPLATE_GENERATION, "1");
    }
}

fn annotate(object: &mut Value, name: &str, value: &str) {
    let annotations = object.pointer("/metadata/annotations").cloned();
    let mut annotations = match annotations {
        Some(Value::Object(annotations)) => annotations,
        _ => serde_json::Map::new(),
    };
    annotations.insert(name.to_owned(), value.into());
    set(object, "annotations", Value::Object(annotations));
}

/// Counts a DaemonSet's templates, which no client can (`apps/daemonset/strategy.go`).
pub(super) fn template_generation(before: &Value, after: &mut Value) {
    let kind = crate::cluster::Kind::of(after);
    if kind.group != "apps" || kind.kind != "DaemonSet" {
        return;
    }
    let known = before.pointer("/metadata/annotations").map(|all| text(all, TEMPLATE_GENERATION));
    let known: i64 = known.and_then(|text| text.parse().ok()).unwrap_or(1);
    let changed = before.pointer("/spec/template") != after.pointer("/spec/template");
    annotate(after, TEMPLATE_GENERATION, &(known + i64::from(changed)).to_string());
}

fn rolling_update(strategy: &mut Value, defaults: &Value) {
    fill(strategy, "type", "RollingUpdate".into());
    if text(strategy, "type") != "RollingUpdate" {
        return;
    }
    fill(strategy, "rollingUpdate", json!({}));
    let Some(rolling) = strategy.get_mut("rollingUpdate") else { return };
    for (name, value) in defaults.as_object().into_iter().flatten() {
        fill(rolling, name, value.clone());
    }
}

fn job(spec: &mut Value) {
    fill(spec, "backoffLimit", 6.into());
    fill(spec, "completionMode", "NonIndexed".into());
    fill(spec, "suspend", false.into());
    fill(spec, "podReplacementPolicy", "TerminatingOrFailed".into());
    if spec.get("completions").is_none() && spec.get("parallelism").is_none() {
        fill(spec, "completions", 1.into());
    }
    fill(spec, "parallelism", 1.into());
    template(spec);
}

fn cron_job(object: &mut Value) {
    let Some(spec) = object.get_mut("spec") else { return };
    fill(spec, "concurrencyPolicy", "Allow".into());
    fill(spec, "suspend", false.into());
    fill(spec, "successfulJobsHistoryLimit", 3.into());
    fill(spec, "failedJobsHistoryLimit", 1.into());
    if let Some(job) = spec.get_mut("jobTemplate") {
        fill(job, "metadata", json!({}));
        if let Some(spec) = job.get_mut("spec") {
            template(spec);
        }
    }
}

/// A pod template, whose metadata a server always writes.
fn template(spec: &mut Value) {
    let Some(template) = spec.get_mut("template") else { return };
    fill(template, "metadata", json!({}));
    if let Some(spec) = template.get_mut("spec") {
        pod(spec);
    }
}

/// `SetDefaults_PodSpec` and what is below it.
fn pod(spec: &mut Value) {
    fill(spec, "restartPolicy", "Always".into());
    fill(spec, "dnsPolicy", "ClusterFirst".into());
    fill(spec, "schedulerName", "default-scheduler".into());
    fill(spec, "terminationGracePeriodSeconds", 30.into());
    fill(spec, "securityContext", json!({}));
    let account = spec.get("serviceAccountName").or_else(|| spec.get("serviceAccount")).cloned();
    if let Some(account) = account {
        fill(spec, "serviceAccountName", account.clone());
        fill(spec, "serviceAccount", account);
    }
    for list in ["containers", "initContainers"] {
        for container in items(spec, list) {
            self::container(container);
        }
    }
    for volume in items(spec, "volumes") {
        self::volume(volume);
    }
}

/// Ports of the node for a pod in its network; templates are left as they are.
fn host_ports(spec: &mut Value) {
    if spec.get("hostNetwork") != Some(&Value::Bool(true)) {
        return;
    }
    for list in ["containers", "initContainers"] {
        for container in items(spec, list) {
            for port in items(container, "ports") {
                let number = port.get("containerPort").cloned().unwrap_or_default();
                fill(port, "hostPort", number);
            }
        }
    }
}

fn container(container: &mut Value) {
    let image = text(container, "image").to_owned();
    let name = image.rsplit('/').next().unwrap_or_default();
    let latest = !image.contains('@') && (!name.contains(':') || name.ends_with(":latest"));
    let policy = if latest { "Always" } else { "IfNotPresent" };
    fill(container, "imagePullPolicy", policy.into());
    fill(container, "resources", json!({}));
    fill(container, "terminationMessagePath", "/dev/termination-log".into());
    fill(container, "terminationMessagePolicy", "File".into());
    for port in items(container, "ports") {
        fill(port, "protocol", "TCP".into());
    }
    for variable in items(container, "env") {
        if let Some(field) = variable.pointer_mut("/valueFrom/fieldRef") {
            fill(field, "apiVersion", "v1".into());
        }
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let Some(probe) = container.get_mut(name).filter(|probe| probe.is_object()) else {
            continue;
        };
        fill(probe, "timeoutSeconds", 1.into());
        fill(probe, "periodSeconds", 10.into());
        fill(probe, "successThreshold", 1.into());
        fill(probe, "failureThreshold", 3.into());
        // No pointer in the Go type: a zero is not stored.
        if let Some(probe) = probe.as_object_mut()
            && probe.get("initialDelaySeconds").and_then(Value::as_i64) == Some(0)
        {
            probe.remove("initialDelaySeconds");
        }
        handler(probe);
    }
    for name in ["postStart", "preStop"] {
        if let Some(hook) = container.pointer_mut(&format!("/lifecycle/{name}")) {
            handler(hook);
        }
    }
}

fn handler(handler: &mut Value) {
    if let Some(get) = handler.get_mut("httpGet") {
        fill(get, "path", "/".into());
        fill(get, "scheme", "HTTP".into());
    }
    if let Some(grpc) = handler.get_mut("grpc") {
        fill(grpc, "service", "".into());
    }
}

fn volume(volume: &mut Value) {
    for source in ["secret", "configMap", "projected", "downwardAPI"] {
        if let Some(source) = volume.get_mut(source).filter(|source| source.is_object()) {
            fill(source, "defaultMode", 420.into());
        }
    }
    if let Some(path) = volume.get_mut("hostPath").filter(|path| path.is_object()) {
        fill(path, "type", "".into());
    }
    if let Some(projected) = volume.get_mut("projected") {
        for source in items(projected, "sources") {
            if let Some(token) = source.get_mut("serviceAccountToken") {
                fill(token, "expirationSeconds", 3600.into());
            }
            if let Some(fields) = source.get_mut("downwardAPI") {
                downward(fields);
            }
        }
    }
    if let Some(fields) = volume.get_mut("downwardAPI") {
        downward(fields);
    }
}

fn downward(fields: &mut Value) {
    for item in items(fields, "items") {
        if let Some(field) = item.get_mut("fieldRef") {
            fill(field, "apiVersion", "v1".into());
        }
    }
}

fn binding(binding: &mut Value) {
    const GROUP: &str = "rbac.authorization.k8s.io";
    if let Some(role) = binding.get_mut("roleRef") {
        fill(role, "apiGroup", GROUP.into());
    }
    for subject in items(binding, "subjects") {
        if matches!(text(subject, "kind"), "User" | "Group") {
            fill(subject, "apiGroup", GROUP.into());
        }
    }
}

fn network_policy(policy: &mut Value) {
    let Some(spec) = policy.get_mut("spec") else { return };
    let types = if spec.get("egress").is_some() {
        json!(["Ingress", "Egress"])
    } else {
        json!(["Ingress"])
    };
    fill(spec, "policyTypes", types);
    for direction in ["ingress", "egress"] {
        for rule in items(spec, direction) {
            for port in items(rule, "ports") {
                fill(port, "protocol", "TCP".into());
            }
        }
    }
}

fn definition(definition: &mut Value) {
    let Some(spec) = definition.get_mut("spec") else { return };
    fill(spec, "conversion", json!({ "strategy": "None" }));
    if let Some(names) = spec.get_mut("names") {
        let kind = text(names, "kind").to_owned();
        fill(names, "singular", kind.to_lowercase().into());
        fill(names, "listKind", format!("{kind}List").into());
    }
}

fn webhooks(configuration: &mut Value, mutating: bool) {
    for hook in items(configuration, "webhooks") {
        fill(hook, "failurePolicy", "Fail".into());
        fill(hook, "matchPolicy", "Equivalent".into());
        fill(hook, "namespaceSelector", json!({}));
        fill(hook, "objectSelector", json!({}));
        fill(hook, "timeoutSeconds", 10.into());
        if mutating {
            fill(hook, "reinvocationPolicy", "Never".into());
        }
        for rule in items(hook, "rules") {
            fill(rule, "scope", "*".into());
        }
        if let Some(service) = hook.pointer_mut("/clientConfig/service") {
            fill(service, "port", 443.into());
        }
    }
}
