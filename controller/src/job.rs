//! The Job, as the controller makes it.

use api::{CniPreset, KubeProxy, TalosCluster, annotation};
use kube::{Resource as _, ResourceExt as _};
use serde_json::{Value, json};
use takeover::job::{ApiServer, ChangeOptions, JobOptions, TALOS_API_SERVER};
use takeover::plan::Needs;

use crate::change::Goal;
use crate::decide::asked;
use crate::facts::Facts;

/// Annotation of the Job: which attempt in a row it is.
pub const ATTEMPT: &str = "ichor.maesh.dev/attempt";
/// Annotation of the Job: a digest of the spec and the annotations that it was made from.
pub const ASKED: &str = "ichor.maesh.dev/asked";
/// Annotation of the Job: a digest of the live objects when it was made.
pub const LIVE: &str = "ichor.maesh.dev/live";
/// Annotation of the Job: what it is to bring about after the hand-over.
pub const GOAL: &str = "ichor.maesh.dev/goal";
/// Seconds after which a Job is ended that does not end itself. A rollout may take 10 min; whatever
/// is left by then is what the next attempt goes on with.
const DEADLINE: u32 = 30 * 60;

/// The objects of an attempt: the Secret with the values if there are any, and the Job. `goal` is
/// what is to be brought about after the hand-over; none for the hand-over itself.
pub fn objects(
    cluster: &TalosCluster,
    facts: &Facts,
    image: &str,
    attempt: u32,
    goal: Option<&Goal>,
) -> Vec<Value> {
    debug_assert_eq!(cluster.spec.cni.preset, CniPreset::Cilium);
    let values = cluster.spec.cni.cilium.as_ref().map(|cilium| &cilium.values);
    let options = JobOptions {
        image: image.to_owned(),
        digest: cluster.annotation(annotation::ACCEPTED_PLAN).unwrap_or_default().to_owned(),
        // A digest is the consent to all that its plan says.
        accept_changes: false,
        timeout: String::new(),
        api_server: api_server(facts),
        // JSON is YAML.
        values: values
            .filter(|values| !values.is_empty())
            .map(|values| json!(values).to_string().into_bytes())
            // Values that are asked for no longer are taken away by what says so.
            .or_else(|| goal.map(|_| b"{}".to_vec())),
        change: goal.map(|goal| ChangeOptions {
            upgrade: goal.upgrade.is_some(),
            kube_proxy: cluster.spec.cni.kube_proxy.map_or("", KubeProxy::name).to_owned(),
        }),
    };
    let mut objects = takeover::job::objects(&Needs::default(), &options);
    objects.retain(|object| matches!(object["kind"].as_str(), Some("Secret" | "Job")));
    for object in &mut objects {
        object["metadata"]["ownerReferences"] = owner(cluster);
        if object["kind"] == "Job" {
            finish(object, cluster, facts, attempt);
            if let Some(goal) = goal {
                object["metadata"]["annotations"][GOAL] = goal.to_string().into();
            }
        }
    }
    objects
}

/// What makes the Job the controller's: its memory, and an end that the controller decides on.
fn finish(job: &mut Value, cluster: &TalosCluster, facts: &Facts, attempt: u32) {
    job["metadata"]["annotations"] = json!({
        ATTEMPT: attempt.to_string(),
        ASKED: asked(cluster),
        LIVE: facts.digest,
    });
    job["spec"]["activeDeadlineSeconds"] = DEADLINE.into();
    if !facts.silent.is_empty() {
        // It tolerates everything, so that a node which does not answer would be as good as any.
        // A field has one value in such a term.
        let other = |node: &String| json!({ "key": "metadata.name", "operator": "NotIn", "values": [node] });
        let others: Vec<Value> = facts.silent.iter().map(other).collect();
        job["spec"]["template"]["spec"]["affinity"] = json!({ "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{ "matchFields": others }],
            },
        } });
    }
    if let Some(spec) = job["spec"].as_object_mut() {
        spec.remove("ttlSecondsAfterFinished");
    }
}

/// The owner is not blocked by it: the Job is gone a little later than its TalosCluster.
fn owner(cluster: &TalosCluster) -> Value {
    json!([{
        "apiVersion": TalosCluster::api_version(&()),
        "kind": TalosCluster::kind(&()),
        "name": cluster.name_any(),
        "uid": cluster.uid().unwrap_or_default(),
        "controller": true,
    }])
}

/// Where a pod of the host's network reaches the API server, by the rule of
/// [`takeover::job::api_server`]: KubePrism under Talos, else what the agents use.
fn api_server(facts: &Facts) -> Option<ApiServer> {
    if facts.talos {
        let (host, port) = TALOS_API_SERVER;
        return Some(ApiServer { host: host.to_owned(), port });
    }
    let live = facts.live.as_ref()?;
    let (host, port) = (live.api_host.clone()?, live.api_port.as_deref()?.parse().ok()?);
    Some(ApiServer { host, port })
}
