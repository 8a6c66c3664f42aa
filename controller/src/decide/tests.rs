use super::*;
use api::DetectedCni;
use cilium::owned::Live;

use crate::facts::Agents;

const NOW: &str = "2026-01-01T01:00:00Z";

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

fn cluster() -> TalosCluster {
    serde_json::from_value(json!({
        "apiVersion": "ichor.maesh.dev/v1alpha1",
        "kind": "TalosCluster",
        "metadata": {
            "name": "cluster", "uid": "c", "generation": 4,
            "annotations": {
                annotation::ADOPTED: "true", annotation::CNI_INLINE_MANIFEST: "cilium-inline",
            },
        },
        "spec": { "cni": { "preset": "cilium" } },
    }))
    .unwrap()
}

fn facts() -> Facts {
    let config = json!({ "data": {
        "tunnel-protocol": "vxlan", "kube-proxy-replacement": "true",
    } });
    Facts {
        cni: DetectedCni::Cilium,
        version: Some("v1.20.0".to_owned()),
        agents: Some(Agents { wanted: 3, ready: 3 }),
        live: Some(Live::read(&json!({}), &config).unwrap()),
        talos: false,
        silent: Vec::new(),
        digest: "live".to_owned(),
        policies: None,
        job: None,
    }
}

fn job(state: JobState, attempt: u32) -> Job {
    Job {
        uid: "j".to_owned(),
        owner: "c".to_owned(),
        attempt,
        asked: asked(&cluster()),
        live: "live".to_owned(),
        goal: String::new(),
        summary: None,
        state,
    }
}

fn ended(ending: Ending, at: &str, attempt: u32) -> Job {
    let state = JobState::Ended { at: at.parse().unwrap(), ending, message: "why".to_owned() };
    job(state, attempt)
}

/// The hand-over's status, reason and message, and the action.
fn told(
    cluster: &TalosCluster,
    facts: &Facts,
) -> (ConditionStatus, String, String, Option<Action>) {
    let decision = decide(cluster, facts, now());
    let condition = &decision.status.conditions[0];
    assert_eq!(condition.type_, "CNIHandover");
    (condition.status, condition.reason.clone(), condition.message.clone(), decision.action)
}

#[test]
fn an_unmanaged_cluster_is_only_looked_at() {
    let mut cluster = cluster();
    cluster.spec.cni.preset = CniPreset::Unmanaged;
    let mut facts = facts();
    facts.cni = DetectedCni::Flannel;
    let decision = decide(&cluster, &facts, now());
    assert_eq!((decision.action, decision.event), (None, None));
    assert_eq!(decision.status.conditions, []);
    assert_eq!(decision.status.cni.unwrap().detected, Some(DetectedCni::Flannel));
    assert_eq!(decision.again, REFRESH);
}

#[test]
fn nothing_is_taken_over_that_nobody_adopted() {
    let mut cluster = cluster();
    cluster.metadata.annotations = None;
    let (_, reason, _, action) = told(&cluster, &facts());
    assert_eq!((reason.as_str(), action), ("NotAdopted", None));
}

/// One that an operator applied, or that was made for a TalosCluster of before, took over another
/// time: what became of it is no hand-over of this one.
#[test]
fn a_job_of_another_owner_is_replaced_once_it_has_ended() {
    for owner in ["", "another"] {
        let mut facts = facts();
        facts.job = Some(Job { owner: owner.to_owned(), ..ended(Ending::Done, NOW, 3) });
        let (status, reason, _, action) = told(&cluster(), &facts);
        assert_eq!((status, reason.as_str()), (ConditionStatus::False, "InProgress"));
        assert_eq!(action, Some(Action::Replace { uid: "j".to_owned(), attempt: 1 }), "{owner}");
        let running = job(JobState::Running { waiting: String::new() }, 1);
        facts.job = Some(Job { owner: owner.to_owned(), ..running });
        assert_eq!(told(&cluster(), &facts).3, None, "never two at once");
    }
}

#[test]
fn a_job_that_cannot_be_made_is_told_once() {
    let mut cluster = cluster();
    let facts = facts();
    let mut decision = decide(&cluster, &facts, now());
    not_made(&mut decision, &cluster, "denied by a policy", now());
    let told = decision.event.clone().unwrap();
    assert_eq!((told.reason, told.condition, told.is_warning), ("NotMade", "CNIHandover", true));
    let condition = &decision.status.conditions[0];
    assert_eq!((condition.status, condition.reason.as_str()), (ConditionStatus::False, "NotMade"));
    assert!(condition.message.ends_with("denied by a policy"), "{condition:?}");
    cluster.status = Some(decision.status.clone());
    let mut again = decide(&cluster, &facts, now());
    assert_eq!(again.action, Some(Action::Create { attempt: 1 }), "it is tried again");
    not_made(&mut again, &cluster, "denied by a policy", now());
    assert_eq!((again.event, again.status), (None, decision.status), "and nothing new is told");
}

#[test]
fn what_is_not_seen_is_told() {
    let cluster = cluster();
    let mut status = decide(&cluster, &facts(), now()).status;
    not_seen(&mut status, &cluster, "nodes (forbidden)", now());
    let of = |type_: &str| status.conditions.iter().filter(|one| one.type_ == type_).count();
    assert_eq!((of("CNIHealthy"), of("CNIHandover")), (1, 1));
    let condition = status.conditions.iter().find(|one| one.type_ == "CNIHealthy").unwrap();
    assert_eq!(
        (condition.status, condition.reason.as_str()),
        (ConditionStatus::Unknown, "NotSeen")
    );
}

#[test]
fn a_job_is_made_and_watched() {
    let mut facts = facts();
    let (_, reason, _, action) = told(&cluster(), &facts);
    assert_eq!((reason.as_str(), action), ("InProgress", Some(Action::Create { attempt: 1 })));
    facts.job = Some(job(JobState::Running { waiting: String::new() }, 2));
    let (_, reason, message, action) = told(&cluster(), &facts);
    assert_eq!((reason.as_str(), action), ("InProgress", None));
    assert_eq!(message, "Job kube-system/ichor-cni is at work, attempt 2");
    facts.job = Some(job(JobState::Deleting, 2));
    assert_eq!(told(&cluster(), &facts).3, None);
}

#[test]
fn done_is_true_once_the_agents_are_ready_and_stays_true() {
    let mut facts = facts();
    facts.job = Some(ended(Ending::Done, NOW, 1));
    facts.agents = Some(Agents { wanted: 3, ready: 2 });
    let (status, reason, message, _) = told(&cluster(), &facts);
    assert_eq!((status, reason.as_str()), (ConditionStatus::False, "WaitingForAgents"));
    assert_eq!(message, "2 of 3 nodes have a Ready agent of Cilium");
    facts.agents = Some(Agents { wanted: 3, ready: 3 });
    let mut cluster = cluster();
    let decision = decide(&cluster, &facts, now());
    assert_eq!(decision.status.conditions[0].status, ConditionStatus::True);
    let cni = decision.status.cni.as_ref().unwrap();
    assert_eq!(cni.taken_over_inline_manifest.as_deref(), Some("cilium-inline"));
    assert_eq!(decision.event.unwrap().reason, "HandedOver");
    cluster.status = Some(decision.status.clone());
    // A sick node, a Job that is gone, a Job that somebody else made and that failed.
    facts.agents = Some(Agents { wanted: 3, ready: 2 });
    for job in [None, Some(ended(Ending::Failed, NOW, 1))] {
        facts.job = job;
        let after = decide(&cluster, &facts, now());
        assert_eq!((after.action, after.event), (None, None));
        assert_eq!(after.status.conditions[0], decision.status.conditions[0]);
        assert_eq!(after.status.conditions[1].reason, "AgentsNotReady");
        assert_eq!(after.status.cni, decision.status.cni);
    }
}

#[test]
fn failures_are_followed_by_later_and_later_attempts() {
    let minutes: Vec<u64> = (0..8).map(|attempt| backoff(attempt).as_secs() / 60).collect();
    assert_eq!(minutes, [1, 1, 2, 4, 8, 15, 15, 15]);
    assert_eq!(backoff(u32::MAX), LAST_RETRY);
    let mut facts = facts();
    facts.job = Some(ended(Ending::Failed, "2026-01-01T00:59:30Z", 1));
    let (_, reason, message, action) = told(&cluster(), &facts);
    assert_eq!((reason.as_str(), action), ("JobFailed", None));
    assert_eq!(message, "why (attempt 1; again at 2026-01-01T01:00:30Z)");
    assert_eq!(decide(&cluster(), &facts, now()).again, Duration::from_secs(30));
    facts.job = Some(ended(Ending::Failed, "2026-01-01T00:59:00Z", 1));
    let replace = |attempt| Some(Action::Replace { uid: "j".to_owned(), attempt });
    assert_eq!(told(&cluster(), &facts).3, replace(2));
    facts.job = Some(ended(Ending::Failed, "2026-01-01T00:59:00Z", 2));
    assert_eq!(told(&cluster(), &facts).3, None);
}

/// Ten minutes of looks, one a second: none of them makes a Job.
#[test]
fn a_refusal_waits_for_a_change() {
    let replace = |attempt| Some(Action::Replace { uid: "j".to_owned(), attempt });
    for (ending, expected) in
        [(Ending::Refused, "Refused"), (Ending::ConsentRequired, "ConsentRequired")]
    {
        let mut facts = facts();
        facts.job = Some(ended(ending, NOW, 1));
        for second in 0..600 {
            let then = now().saturating_add(SignedDuration::from_secs(second)).unwrap();
            let decision = decide(&cluster(), &facts, then);
            assert_eq!(decision.action, None);
            assert_eq!(decision.status.conditions[0].reason, expected);
            assert_eq!(decision.again, REFRESH);
        }
        // The user says something else: at once.
        let mut consented = cluster();
        let annotations = consented.metadata.annotations.as_mut().unwrap();
        annotations.insert(annotation::ACCEPTED_PLAN.to_owned(), "sha256:1".to_owned());
        assert_eq!(told(&consented, &facts).3, replace(1));
        // Live objects change: not before a minute is over.
        facts.digest = "other".to_owned();
        assert_eq!(told(&cluster(), &facts).3, None);
        let later = now().saturating_add(SignedDuration::from_secs(60)).unwrap();
        assert_eq!(decide(&cluster(), &facts, later).action, replace(2));
    }
}

#[test]
fn what_kubectl_remembers_is_nothing_that_is_asked_for() {
    let mut applied = cluster();
    let annotations = applied.metadata.annotations.as_mut().unwrap();
    annotations
        .insert("kubectl.kubernetes.io/last-applied-configuration".to_owned(), "{}".to_owned());
    assert_eq!(asked(&applied), asked(&cluster()));
}

#[test]
fn a_spec_that_says_otherwise_than_what_runs_is_refused_without_a_job() {
    let mut cluster = cluster();
    cluster.spec.cni.tunnel = Some(api::Tunnel::Geneve);
    let (_, reason, message, action) = told(&cluster, &facts());
    assert_eq!((reason.as_str(), action), ("Refused", None));
    assert!(
        message.starts_with("spec.cni.tunnel is geneve, and the running Cilium's"),
        "{message}"
    );
    cluster.spec.cni.tunnel = Some(api::Tunnel::Vxlan);
    cluster.spec.cni.kube_proxy = Some(KubeProxy::Enabled);
    let (_, reason, message, action) = told(&cluster, &facts());
    assert_eq!((reason.as_str(), action), ("Refused", None));
    assert!(message.contains("kube-proxy is replaced in the running Cilium"), "{message}");
    cluster.spec.cni.kube_proxy = Some(KubeProxy::Replaced);
    assert_eq!(told(&cluster, &facts()).3, Some(Action::Create { attempt: 1 }));
}

#[test]
fn a_conditions_time_is_that_of_its_status() {
    let mut cluster = cluster();
    let mut facts = facts();
    facts.job = Some(ended(Ending::Refused, NOW, 1));
    let first = decide(&cluster, &facts, now());
    assert_eq!(first.status.conditions[0].last_transition_time, NOW);
    assert!(first.event.as_ref().is_some_and(|event| event.is_warning));
    cluster.status = Some(first.status.clone());
    let later = now().saturating_add(SignedDuration::from_secs(60)).unwrap();
    let second = decide(&cluster, &facts, later);
    assert_eq!(second.status, first.status, "nothing to write");
    assert_eq!(second.event, None, "nothing new to tell");
}

#[test]
fn an_object_that_is_going_starts_nothing() {
    let mut cluster = cluster();
    cluster.metadata.deletion_timestamp =
        Some(serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap());
    assert_eq!(decide(&cluster, &facts(), now()).action, None);
}
