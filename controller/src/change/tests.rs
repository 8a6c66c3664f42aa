use api::{CniPreset, CniSpec, CniStatus, DetectedCni, KubeProxy, TalosClusterSpec};
use kube::api::ObjectMeta;
use takeover::job::Summary;

use super::*;
use crate::decide::decide as whole;
use crate::facts::{Agents, Job};

const NOW: &str = "2026-01-01T01:00:00Z";

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

/// A cluster after its hand-over, with what the status says of it.
fn cluster(values: &serde_json::Value, applied: Option<&str>, chart: Option<&str>) -> TalosCluster {
    let values = values.as_object().unwrap().clone();
    let mut cluster = TalosCluster {
        metadata: ObjectMeta {
            name: Some("cluster".to_owned()),
            uid: Some("c".to_owned()),
            annotations: Some([(annotation::ADOPTED.to_owned(), "true".to_owned())].into()),
            ..ObjectMeta::default()
        },
        spec: TalosClusterSpec {
            cni: CniSpec {
                preset: CniPreset::Cilium,
                unmanaged: None,
                kube_proxy: None,
                tunnel: None,
                cilium: Some(api::CiliumSpec { values }),
            },
        },
        status: None,
    };
    let handed = (ConditionStatus::True, reason::HANDED_OVER, "done".to_owned());
    let condition = condition(type_::CNI_HANDOVER, handed, &cluster, now());
    cluster.status = Some(api::TalosClusterStatus {
        conditions: vec![condition],
        cni: Some(CniStatus {
            applied_spec: applied.map(str::to_owned),
            chart_version: chart.map(str::to_owned),
            ..CniStatus::default()
        }),
        ..api::TalosClusterStatus::default()
    });
    cluster
}

fn facts(job: Option<Job>) -> Facts {
    Facts {
        cni: DetectedCni::Cilium,
        version: Some(format!("v{}", *PINNED)),
        agents: Some(Agents { wanted: 1, ready: 1 }),
        live: None,
        talos: false,
        silent: Vec::new(),
        digest: "live".to_owned(),
        policies: None,
        job,
    }
}

/// A Job for a goal, made from what the cluster says now.
fn job(cluster: &TalosCluster, goal: &str, ending: Option<Ending>) -> Job {
    let summary = Summary { chart: PINNED.clone(), ..Summary::default() };
    Job {
        uid: "j".to_owned(),
        owner: "c".to_owned(),
        attempt: 1,
        asked: crate::decide::asked(cluster),
        live: "live".to_owned(),
        goal: goal.to_owned(),
        summary: ending.map(|_| summary),
        state: match ending {
            None => JobState::Running { waiting: String::new() },
            Some(ending) => JobState::Ended { at: now(), ending, message: "why".to_owned() },
        },
    }
}

/// Status and reason of both conditions, the action, and what is applied.
fn told(cluster: &TalosCluster, facts: &Facts) -> (String, String, Option<Action>, String) {
    let decision = whole(cluster, facts, now());
    let of = |type_: &str| {
        let found = decision.status.conditions.iter().find(|one| one.type_ == type_);
        found.map(|one| format!("{:?} {}", one.status, one.reason)).unwrap_or_default()
    };
    assert_eq!(of(type_::CNI_HANDOVER), "True HandedOver", "it stays True");
    let applied = decision.status.cni.clone().unwrap().applied_spec.unwrap_or_default();
    (of(type_::VALUES_APPLIED), of(type_::CILIUM_UPGRADE_AVAILABLE), decision.action, applied)
}

fn none() -> serde_json::Value {
    json!({})
}
fn some() -> serde_json::Value {
    json!({ "hubble": { "enabled": true } })
}

#[test]
fn a_spec_without_values_asks_for_what_was_taken_over() {
    let done = job(&cluster(&none(), None, None), "", Some(Ending::Done));
    for job in [None, Some(done)] {
        let cluster = cluster(&none(), None, None);
        let (values, upgrade, action, applied) = told(&cluster, &facts(job));
        assert_eq!((values.as_str(), upgrade.as_str()), ("True Applied", "False UpToDate"));
        assert_eq!((action, applied), (None, wanted(&cluster)));
    }
}

#[test]
fn values_that_the_hand_over_did_not_take_are_brought_by_a_job() {
    let plain = cluster(&some(), None, None);
    assert_eq!(at_hand_over(&plain), NONE);
    let after = cluster(&some(), Some(NONE), None);
    let handed = job(&after, "", Some(Ending::Done));
    let replace = Some(Action::Replace { uid: "j".to_owned(), attempt: 1 });
    let (values, _, action, applied) = told(&after, &facts(Some(handed)));
    assert_eq!((values.as_str(), action, applied.as_str()), ("False InProgress", replace, NONE));
}

/// Each row: what the Job for the values is, what is said, what is done, what counts as applied.
#[test]
fn new_values() {
    let before = wanted(&cluster(&none(), None, None));
    let cluster = cluster(&some(), Some(&before), Some(&PINNED));
    let goal = wanted(&cluster);
    let create = Some(Action::Create { attempt: 1 });
    let mut later = job(&cluster, &goal, Some(Ending::Failed));
    let long_ago = now().saturating_sub(jiff::SignedDuration::from_mins(2)).unwrap();
    later.state =
        JobState::Ended { at: long_ago, ending: Ending::Failed, message: "why".to_owned() };
    let again = Some(Action::Replace { uid: "j".to_owned(), attempt: 2 });
    for (job, says, does, applied) in [
        (None, "False InProgress", create, before.as_str()),
        (Some(job(&cluster, &goal, None)), "False InProgress", None, &before),
        (Some(job(&cluster, &goal, Some(Ending::Done))), "True Applied", None, &goal),
        (Some(job(&cluster, &goal, Some(Ending::Failed))), "False JobFailed", None, NONE),
        (Some(later), "False InProgress", again, NONE),
        (
            Some(job(&cluster, &goal, Some(Ending::ConsentRequired))),
            "False ConsentRequired",
            None,
            &before,
        ),
        (Some(job(&cluster, &goal, Some(Ending::Refused))), "False Refused", None, &before),
    ] {
        let (values, upgrade, action, now) = told(&cluster, &facts(job.clone()));
        assert_eq!((values.as_str(), action, now.as_str()), (says, does, applied), "{job:?}");
        assert_eq!(upgrade, "False UpToDate");
    }
}

#[test]
fn values_that_are_taken_back_need_a_job_only_where_something_may_be_written() {
    let old = cluster(&none(), None, None);
    let applied = wanted(&old);
    let refused = wanted(&cluster(&some(), None, None));
    let back = cluster(&none(), Some(&applied), None);
    let job_of = |ending| Some(job(&back, &refused, Some(ending)));
    let (values, _, action, _) = told(&back, &facts(job_of(Ending::Refused)));
    assert_eq!((values.as_str(), action), ("True Applied", None));
    let replace = Some(Action::Replace { uid: "j".to_owned(), attempt: 1 });
    for ending in [Ending::Failed, Ending::Done] {
        let (values, _, action, _) = told(&back, &facts(job_of(ending)));
        assert_eq!((values.as_str(), action), ("False InProgress", replace.clone()), "{ending:?}");
    }
    // While it is at work there is nothing to be decided.
    let (.., action, _) = told(&back, &facts(Some(job(&back, &refused, None))));
    assert_eq!(action, None);
    // The Job is deleted by hand after it failed: it is still known that something is missing.
    let after = cluster(&none(), Some(NONE), None);
    let create = Some(Action::Create { attempt: 1 });
    assert_eq!(told(&after, &facts(None)).2, create);
}

/// Ten minutes of looks, one a second: a refusal makes no Job, and neither does what is applied.
#[test]
fn nothing_loops() {
    let before = wanted(&cluster(&none(), None, None));
    let asked = cluster(&some(), Some(&before), Some(&PINNED));
    let goal = wanted(&asked);
    for ending in [Ending::Refused, Ending::ConsentRequired, Ending::Done] {
        let facts = facts(Some(job(&asked, &goal, Some(ending))));
        for second in 0..600 {
            let then = now().saturating_add(jiff::SignedDuration::from_secs(second)).unwrap();
            let decision = whole(&asked, &facts, then);
            assert_eq!((decision.action, decision.again), (None, REFRESH), "{ending:?}");
        }
    }
    // Consent: at once.
    let mut consented = asked.clone();
    let annotations = consented.metadata.annotations.as_mut().unwrap();
    annotations.insert(annotation::ACCEPTED_PLAN.to_owned(), "sha256:1".to_owned());
    let facts = facts(Some(job(&asked, &goal, Some(Ending::ConsentRequired))));
    let replace = Some(Action::Replace { uid: "j".to_owned(), attempt: 1 });
    assert_eq!(told(&consented, &facts).2, replace);
}

#[test]
fn a_newer_chart_is_told_and_brought_when_it_is_asked_for() {
    let applied = wanted(&cluster(&none(), None, None));
    let old = cluster(&none(), Some(&applied), Some("1.19.6"));
    let (values, upgrade, action, _) = told(&old, &facts(None));
    assert_eq!((values.as_str(), upgrade.as_str()), ("True Applied", "True NewerChart"));
    assert_eq!(action, None, "never by itself");
    let asking = |version: &str| {
        let mut cluster = old.clone();
        let annotations = cluster.metadata.annotations.as_mut().unwrap();
        annotations.insert(annotation::UPGRADE_TO.to_owned(), version.to_owned());
        cluster
    };
    let (_, upgrade, action, _) = told(&asking("1.18.0"), &facts(None));
    assert_eq!((upgrade.as_str(), action), ("True Refused", None));
    let asked = asking(&PINNED);
    let create = Some(Action::Create { attempt: 1 });
    let (values, upgrade, action, _) = told(&asked, &facts(None));
    assert_eq!((values.as_str(), upgrade.as_str()), ("True Applied", "True InProgress"));
    assert_eq!(action, create);
    let goal = Goal { wanted: applied.clone(), upgrade: Some(PINNED.clone()) };
    assert_eq!(whole(&asked, &facts(None), now()).goal.as_ref(), Some(&goal));
    let goal = goal.to_string();
    let consent = facts(Some(job(&asked, &goal, Some(Ending::ConsentRequired))));
    let (values, upgrade, action, _) = told(&asked, &consent);
    assert_eq!((values.as_str(), upgrade.as_str()), ("True Applied", "True ConsentRequired"));
    assert_eq!(action, None);
    // Done, whether or not its pod is there to say so.
    for told_itself in [true, false] {
        let mut done = job(&asked, &goal, Some(Ending::Done));
        done.summary = done.summary.filter(|_| told_itself);
        let decision = whole(&asked, &facts(Some(done.clone())), now());
        assert_eq!(decision.status.cni.unwrap().chart_version.as_deref(), Some(PINNED.as_str()));
        let (values, upgrade, action, _) = told(&asked, &facts(Some(done)));
        assert_eq!((values.as_str(), upgrade.as_str()), ("True Applied", "False UpToDate"));
        assert_eq!(action, None);
    }
}

#[test]
fn without_a_jobs_word_the_image_tells_the_version() {
    let applied = wanted(&cluster(&none(), None, None));
    let cluster = cluster(&none(), Some(&applied), None);
    for (tag, expected) in [
        (Some("v1.19.6"), "True NewerChart"),
        (Some("v1.99.0"), "False OlderIchor"),
        (Some("latest"), ""),
        (None, ""),
    ] {
        let mut facts = facts(None);
        facts.version = tag.map(str::to_owned);
        assert_eq!(told(&cluster, &facts).1, expected, "{tag:?}");
    }
}

/// The agents' image is the new one long before the release is: that ends no upgrade.
#[test]
fn what_runs_during_an_upgrade_is_not_what_the_release_has() {
    let applied = wanted(&cluster(&none(), None, None));
    let mut cluster = cluster(&none(), Some(&applied), None);
    let mut facts = facts(None);
    facts.version = Some("v1.19.6".to_owned());
    cluster.status = Some(whole(&cluster, &facts, now()).status);
    assert_eq!(
        cluster.status.clone().unwrap().cni.unwrap().chart_version.as_deref(),
        Some("1.19.6")
    );
    let annotations = cluster.metadata.annotations.as_mut().unwrap();
    annotations.insert(annotation::UPGRADE_TO.to_owned(), PINNED.clone());
    facts.version = Some(format!("v{}", *PINNED));
    let goal = Goal { wanted: applied, upgrade: Some(PINNED.clone()) }.to_string();
    facts.job = Some(job(&cluster, &goal, None));
    assert_eq!(told(&cluster, &facts).1, "True InProgress");
}

#[test]
fn kube_proxy_is_part_of_what_is_wanted() {
    let before = wanted(&cluster(&none(), None, None));
    let mut asked = cluster(&none(), Some(&before), None);
    asked.spec.cni.kube_proxy = Some(KubeProxy::Replaced);
    assert_eq!(told(&asked, &facts(None)).2, Some(Action::Create { attempt: 1 }));
    let goal = Goal { wanted: wanted(&asked), upgrade: None };
    let objects = crate::job::objects(&asked, &facts(None), "image", 1, Some(&goal));
    let job = objects.iter().find(|object| object["kind"] == "Job").unwrap();
    let container = &job["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(
        container["args"],
        json!(["cni", "run", "--kube-proxy=replaced", "--cilium-values=/etc/ichor/values.yaml"])
    );
    assert_eq!(job["metadata"]["annotations"][crate::job::GOAL], goal.wanted);
    // Values that are asked for no longer are taken away by a Secret that says so.
    let secret = objects.iter().find(|object| object["kind"] == "Secret").unwrap();
    assert_eq!(secret["data"]["values.yaml"], "e30=");
}

#[test]
fn what_is_news_is_told_once() {
    let before = wanted(&cluster(&none(), None, None));
    let mut asked = cluster(&some(), Some(&before), Some(&PINNED));
    let goal = wanted(&asked);
    let facts_of = |ending| facts(Some(job(&asked, &goal, Some(ending))));
    let (refused, done) = (facts_of(Ending::Refused), facts_of(Ending::Done));
    let first = whole(&asked, &refused, now());
    let event = first.event.unwrap();
    assert_eq!(
        (event.condition, event.reason, event.is_warning),
        (type_::VALUES_APPLIED, "Refused", true)
    );
    asked.status = Some(first.status);
    assert_eq!(whole(&asked, &refused, now()).event, None);
    let second = whole(&asked, &done, now());
    let event = second.event.unwrap();
    assert_eq!(
        (event.condition, event.reason, event.is_warning),
        (type_::VALUES_APPLIED, "Applied", false)
    );
    asked.status = Some(second.status);
    assert_eq!(whole(&asked, &done, now()).event, None);
}
