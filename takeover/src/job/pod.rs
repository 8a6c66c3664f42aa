//! The Job itself, and the values that it is given.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cilium::pinned::NAMESPACE;
use serde_json::{Value, json};

use super::{LABEL, NAME, metadata};
use crate::plan::Prepared;

/// The Secret with the operator's values, where there is no record to take them from.
pub const VALUES_SECRET: &str = "ichor-cni-values";
/// Where the Job finds them.
const VALUES_FOLDER: &str = "/etc/ichor";
/// Their file.
const VALUES_FILE: &str = "values.yaml";
/// The user of the image; any number but 0 that nobody else has will do.
const USER: u32 = 65532;
/// Seconds for which a finished Job is kept.
const KEPT: u32 = 24 * 60 * 60;
/// Seconds that a Job which is told to stop may take to write what it did.
const GRACE: u32 = 60;

/// Seconds that a pod stays on a node that does not answer.
const UNREACHABLE: u32 = 60;

/// Where a pod of the host's network reaches the API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiServer {
    /// Host name or address.
    pub host: String,
    /// Port.
    pub port: u16,
}

/// What a Job is made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobOptions {
    /// The image with the program.
    pub image: String,
    /// The digest of the plan that was consented to; empty for a Job that carries out what needs no
    /// consent, and is refused otherwise.
    pub digest: String,
    /// Whether changes of owned keys were consented to.
    pub accept_changes: bool,
    /// How long the rollout may take, as `--timeout` reads it; empty for the program's default.
    pub timeout: String,
    /// Where the API server is; none for the cluster's own Service.
    pub api_server: Option<ApiServer>,
    /// The operator's values file; none when there is a record.
    pub values: Option<Vec<u8>>,
    /// What is changed of ichor's own release; none to take over.
    pub change: Option<ChangeOptions>,
}

/// A change of ichor's own release, beside its values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangeOptions {
    /// Whether the release is brought to the pinned chart.
    pub upgrade: bool,
    /// Who is to answer for Services, as `--kube-proxy` reads it; empty: as it is.
    pub kube_proxy: String,
}

/// KubePrism, which every node of Talos has.
pub const TALOS_API_SERVER: (&str, u16) = ("localhost", 7445);

/// Where the API server is for a Job that carries out this plan: KubePrism under Talos, else what
/// the agents themselves use, else the cluster's own Service.
pub fn api_server(prepared: &Prepared) -> Option<ApiServer> {
    if prepared.plan.found.talos {
        let (host, port) = TALOS_API_SERVER;
        return Some(ApiServer { host: host.to_owned(), port });
    }
    let text = |key: &str| match prepared.values.get(key.as_bytes()) {
        Some(goyaml::Value::String(text)) => text.to_string(),
        Some(other) => goyaml::json::to_json(other).unwrap_or_default(),
        None => String::new(),
    };
    let (host, port) = (text("k8sServiceHost"), text("k8sServicePort"));
    if host.is_empty() || host == "auto" {
        return None;
    }
    Some(ApiServer { host, port: port.parse().ok()? })
}

/// The Secret with the values, if any, and the Job.
pub(super) fn objects(options: &JobOptions) -> Vec<Value> {
    let mut objects = Vec::new();
    if let Some(values) = &options.values {
        objects.push(json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": metadata(VALUES_SECRET, NAMESPACE),
            "data": { VALUES_FILE: STANDARD.encode(values) },
        }));
    }
    objects.push(job(options));
    objects
}

fn job(options: &JobOptions) -> Value {
    json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata(NAME, NAMESPACE),
        "spec": {
            // One attempt a Job: whoever watches it decides on the next one.
            "backoffLimit": 0,
            "ttlSecondsAfterFinished": KEPT,
            "template": {
                "metadata": { "labels": { LABEL.0: LABEL.1 } },
                "spec": pod(options),
            },
        },
    })
}

fn pod(options: &JobOptions) -> Value {
    let mut pod = json!({
        "serviceAccountName": NAME,
        "automountServiceAccountToken": true,
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": GRACE,
        // Without the pod network, which is what is being worked on, and on a node that may not
        // be Ready for want of it.
        "hostNetwork": true,
        "dnsPolicy": "Default",
        // But for a node that does not answer: its pod is told to go, so that whoever watches the
        // Job may give it up and start the next one.
        "tolerations": [
            {
                "key": "node.kubernetes.io/unreachable",
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": UNREACHABLE,
            },
            { "operator": "Exists" },
        ],
        "priorityClassName": "system-cluster-critical",
        "nodeSelector": { "kubernetes.io/os": "linux" },
        "securityContext": {
            "runAsNonRoot": true,
            "runAsUser": USER,
            "runAsGroup": USER,
            "seccompProfile": { "type": "RuntimeDefault" },
        },
        "containers": [container(options)],
    });
    if options.values.is_some() {
        let mode = 0o440;
        pod["securityContext"]["fsGroup"] = USER.into();
        pod["volumes"] = json!([{
            "name": "values",
            "secret": { "secretName": VALUES_SECRET, "defaultMode": mode },
        }]);
    }
    pod
}

fn container(options: &JobOptions) -> Value {
    let mut container = json!({
        "name": NAME,
        "image": options.image,
        "args": arguments(options),
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "privileged": false,
            "readOnlyRootFilesystem": true,
            "capabilities": { "drop": ["ALL"] },
        },
        "resources": {
            "requests": { "cpu": "100m", "memory": "128Mi" },
            "limits": { "memory": "512Mi" },
        },
    });
    if let Some(api_server) = &options.api_server {
        container["env"] = json!([
            { "name": "KUBERNETES_SERVICE_HOST", "value": api_server.host },
            { "name": "KUBERNETES_SERVICE_PORT", "value": api_server.port.to_string() },
        ]);
    }
    if options.values.is_some() {
        container["volumeMounts"] =
            json!([{ "name": "values", "mountPath": VALUES_FOLDER, "readOnly": true }]);
    }
    container
}

fn arguments(options: &JobOptions) -> Vec<String> {
    let mut arguments: Vec<String> = ["cni", "run"].into_iter().map(str::to_owned).collect();
    match &options.change {
        None => arguments.push("--takeover".to_owned()),
        Some(change) => {
            if change.upgrade {
                arguments.push("--upgrade".to_owned());
            }
            if !change.kube_proxy.is_empty() {
                arguments.push(format!("--kube-proxy={}", change.kube_proxy));
            }
        }
    }
    if !options.digest.is_empty() {
        arguments.push(format!("--digest={}", options.digest));
    }
    if options.accept_changes {
        arguments.push("--accept-cilium-changes".to_owned());
    }
    if !options.timeout.is_empty() {
        arguments.push(format!("--timeout={}", options.timeout));
    }
    if options.values.is_some() {
        arguments.push(format!("--cilium-values={VALUES_FOLDER}/{VALUES_FILE}"));
    }
    arguments
}
