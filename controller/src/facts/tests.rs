use super::*;

fn job(status: &Value) -> Value {
    json!({
        "metadata": {
            "name": "ichor-cni", "uid": "1",
            "annotations": { ATTEMPT: "3", ASKED: "a", LIVE: "l" },
        },
        "status": status,
    })
}

fn pod(phase: &str, container: &Value) -> Value {
    json!({
        "metadata": { "name": "p", "labels": { "batch.kubernetes.io/controller-uid": "1" } },
        "status": { "phase": phase, "containerStatuses": [{ "state": container }] },
    })
}

fn failed() -> Value {
    job(&json!({ "conditions": [{
        "type": "Failed", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z",
        "reason": "BackoffLimitExceeded", "message": "Job has reached the specified backoff limit",
    }] }))
}

fn ending(job: &Value, pods: &[Value]) -> (Ending, String) {
    match read_job(job, pods, &[]).state {
        JobState::Ended { ending, message, .. } => (ending, message),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_jobs_memory_is_read() {
    let read = read_job(&failed(), &[], &[]);
    assert_eq!((read.attempt, read.asked.as_str(), read.live.as_str()), (3, "a", "l"));
    assert_eq!(read.owner, "", "an operator made it");
    let mut owned = failed();
    let (controller, kind) = ("ichor.maesh.dev/v1alpha1", "TalosCluster");
    owned["metadata"]["ownerReferences"] = json!([
        { "apiVersion": "v1", "kind": "ConfigMap", "uid": "0" },
        { "apiVersion": controller, "kind": kind, "uid": "c" },
    ]);
    assert_eq!(read_job(&owned, &[], &[]).owner, "c");
}

#[test]
fn ends_are_told_by_exit_code_and_consents_by_the_refusals_own_words() {
    let consent =
        takeover::run::Denied::Consent { missing: "x".to_owned(), plan: None }.to_string();
    let digest =
        takeover::run::Denied::Digest { consented: "a".into(), now: "b".into(), plan: None };
    for (code, message, expected) in [
        (1, "failed: the rollout is not Ready", Ending::Failed),
        (137, "failed: killed", Ending::Failed),
        (2, "refused: two CNIs", Ending::Refused),
        (2, &consent, Ending::ConsentRequired),
        (2, &digest.to_string(), Ending::ConsentRequired),
    ] {
        let end = json!({ "terminated": { "exitCode": code, "message": message } });
        assert_eq!(ending(&failed(), &[pod("Failed", &end)]), (expected, message.to_owned()));
    }
}

/// The pod was told to go, and its node does not answer: nobody will say that it went.
#[test]
fn a_pod_on_a_node_that_does_not_answer_is_given_up() {
    let node = |status: &str| {
        json!({
            "metadata": { "name": "one" },
            "status": { "conditions": [{ "type": "Ready", "status": status }] },
        })
    };
    assert_eq!(silent(&node("False")), None);
    let nodes = [silent(&node("Unknown")).unwrap()];
    let job = json!({ "metadata": { "uid": "1" }, "status": { "active": 1 } });
    let mut pod = pod("Running", &json!({ "running": {} }));
    pod["spec"] = json!({ "nodeName": "one" });
    let state =
        |pod: &Value, nodes: &[String]| read_job(&job, std::slice::from_ref(pod), nodes).state;
    let at_work = JobState::Running { waiting: String::new() };
    assert_eq!(state(&pod, &nodes), at_work, "it was not told to go yet");
    pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:02:00Z".into();
    assert_eq!(state(&pod, &[]), at_work, "its node answers, and will say that it went");
    let JobState::Ended { at, ending, message } = state(&pod, &nodes) else { panic!("not over") };
    assert_eq!((at.to_string().as_str(), ending), ("2026-01-01T00:02:00Z", Ending::Failed));
    assert!(message.starts_with("node one of pod "), "{message}");
}

/// A kubelet gives the end of the log where the program left no message.
#[test]
fn a_program_that_was_killed_left_no_last_word() {
    for (message, expected) in [
        ("", "the pod ended with exit code 137 (OOMKilled)"),
        (
            "info chart\ninfo plan x: writing revision 1\n\n",
            "the pod ended with exit code 137 (OOMKilled); the last it said: info plan x: writing \
             revision 1",
        ),
    ] {
        let end = json!({ "terminated": {
            "exitCode": 137, "reason": "OOMKilled", "message": message,
        } });
        let told = ending(&failed(), &[pod("Failed", &end)]);
        assert_eq!(told, (Ending::Failed, expected.to_owned()));
    }
}

#[test]
fn a_pod_that_is_gone_failed_and_one_that_is_not_seen_to_end_is_waited_for() {
    let (how, message) = ending(&failed(), &[]);
    assert_eq!(how, Ending::Failed);
    assert!(message.starts_with("the pod is gone (BackoffLimitExceeded: "), "{message}");
    let running = pod("Running", &json!({ "running": {} }));
    let state = read_job(&failed(), &[running], &[]).state;
    assert_eq!(state, JobState::Running { waiting: String::new() });
    // Another Job's pod says nothing of this one.
    let mut other = pod("Running", &json!({ "running": {} }));
    other["metadata"]["labels"]["batch.kubernetes.io/controller-uid"] = "0".into();
    assert_eq!(ending(&failed(), &[other]).0, Ending::Failed);
}

#[test]
fn why_a_pod_does_not_start_is_told() {
    let waiting =
        json!({ "waiting": { "reason": "ImagePullBackOff", "message": "no such image" } });
    let state = read_job(&job(&json!({})), &[pod("Pending", &waiting)], &[]).state;
    let expected = "pod p waits (ImagePullBackOff: no such image)".to_owned();
    assert_eq!(state, JobState::Running { waiting: expected });
    let unscheduled = json!({
        "metadata": { "name": "p", "labels": { "batch.kubernetes.io/controller-uid": "1" } },
        "status": { "phase": "Pending", "conditions": [
            { "type": "PodScheduled", "status": "False", "message": "0/1 nodes are available" },
        ] },
    });
    let state = read_job(&job(&json!({})), &[unscheduled], &[]).state;
    let expected = "pod p is not scheduled (0/1 nodes are available)".to_owned();
    assert_eq!(state, JobState::Running { waiting: expected });
}

#[test]
fn a_job_that_is_deleted_is_over_for_nobody() {
    let mut job = failed();
    job["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    assert_eq!(read_job(&job, &[], &[]).state, JobState::Deleting);
}

fn daemon_set(namespace: &str, name: &str, image: &str) -> Value {
    json!({
        "metadata": { "namespace": namespace, "name": name, "uid": name, "generation": 2 },
        "spec": { "template": { "spec": { "containers": [{ "name": "cilium-agent", "image": image }] } } },
        "status": {
            "observedGeneration": 2, "desiredNumberScheduled": 3, "numberReady": 3,
            "updatedNumberScheduled": 3,
        },
    })
}

fn cilium() -> Objects {
    Objects {
        daemon_sets: vec![
            daemon_set("kube-system", "cilium", "quay.io/cilium/cilium:v1.20.0@sha256:00"),
            json!({ "metadata": { "namespace": "shop", "name": "web" } }),
        ],
        config: Some(json!({ "data": { "tunnel-protocol": "vxlan" } })),
        operator: Some(json!({
            "metadata": { "name": "cilium-operator", "generation": 1 },
            "spec": { "replicas": 2 }, "status": { "availableReplicas": 2 },
        })),
        ..Objects::default()
    }
}

#[test]
fn cilium_is_detected_with_its_version_and_settings() {
    let facts = Facts::read(&cilium()).unwrap();
    assert_eq!((facts.cni, facts.version.as_deref()), (DetectedCni::Cilium, Some("v1.20.0")));
    assert_eq!(facts.agents, Some(Agents { wanted: 3, ready: 3 }));
    assert_eq!(facts.live.unwrap().tunnel_protocol.as_deref(), Some("vxlan"));
    assert_eq!(facts.job, None);
}

#[test]
fn flannel_has_its_own_version_and_no_agents() {
    let mut objects = cilium();
    let mut flannel =
        daemon_set("kube-flannel", "kube-flannel-ds", "ghcr.io/flannel-io/flannel:v0.26.1");
    flannel["spec"]["template"]["spec"]["containers"][0]["name"] = "kube-flannel".into();
    objects.daemon_sets = vec![flannel];
    let facts = Facts::read(&objects).unwrap();
    assert_eq!((facts.cni, facts.version.as_deref()), (DetectedCni::Flannel, Some("v0.26.1")));
    assert_eq!((facts.agents, facts.live), (None, None));
}

#[test]
fn ready_agents_of_an_old_template_do_not_count() {
    let mut objects = cilium();
    objects.daemon_sets[0]["status"]["updatedNumberScheduled"] = 1.into();
    assert_eq!(Facts::read(&objects).unwrap().agents.unwrap().ready, 1);
    objects.daemon_sets[0]["metadata"]["generation"] = 3.into();
    assert_eq!(Facts::read(&objects).unwrap().agents.unwrap().ready, 0);
}

/// What a refusal may come of changes the digest; what comes and goes by itself does not.
#[test]
fn the_digest_is_of_what_a_refusal_may_come_of() {
    let digest = |change: fn(&mut Objects)| {
        let mut objects = cilium();
        change(&mut objects);
        Facts::read(&objects).unwrap().digest
    };
    let before = digest(|_| {});
    let same: [fn(&mut Objects); 3] = [
        |objects| objects.daemon_sets[0]["status"]["numberUnavailable"] = 0.into(),
        |objects| objects.daemon_sets[0]["metadata"]["resourceVersion"] = "77".into(),
        |objects| objects.daemon_sets[1]["metadata"]["generation"] = 9.into(),
    ];
    for change in same {
        assert_eq!(digest(change), before);
    }
    let other: [fn(&mut Objects); 5] = [
        |objects| objects.daemon_sets[0]["metadata"]["generation"] = 3.into(),
        |objects| objects.daemon_sets[0]["status"]["numberReady"] = 2.into(),
        |objects| objects.config = Some(json!({ "data": { "tunnel-protocol": "geneve" } })),
        |objects| objects.operator = None,
        |objects| {
            objects.daemon_sets.push(daemon_set("kube-flannel", "kube-flannel-ds", "flannel:1"));
            objects.daemon_sets[2]["spec"]["template"]["spec"]["containers"][0]["name"] =
                "x".into();
        },
    ];
    for change in other {
        assert_ne!(digest(change), before);
    }
}
