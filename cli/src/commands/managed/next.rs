//! What to do next about a TalosCluster: one step for each condition that asks for one.

use api::{CniPreset, Condition, ConditionStatus, TalosCluster, annotation, reason, type_};
use serde::Serialize;
use takeover::job::Summary;

use super::{Controller, is_handed_over};

/// Something to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Step {
    /// What.
    pub(crate) text: String,
    /// Whether something is not as it is to be until then; else it may be left.
    pub(crate) is_due: bool,
}

/// What happens by itself, or what the user is to do; nothing when all is well.
pub(crate) fn next(
    cluster: &TalosCluster,
    controller: &Controller,
    waiting_pods: &[String],
) -> Vec<Step> {
    if cluster.spec.cni.preset == CniPreset::Unmanaged {
        return Vec::new();
    }
    let mut steps = Vec::new();
    let mut due = |text: &str| steps.push(Step { text: text.to_owned(), is_due: true });
    if let Some(text) = no_controller(controller) {
        due(text);
    }
    if cluster.metadata.deletion_timestamp.is_some() {
        due(
            "wait until it is gone: it is being deleted, and the controller leaves it alone (what \
             holds it: kubectl get taloscluster cluster -o jsonpath='{.metadata.finalizers}')",
        );
        return steps;
    }
    let observed = cluster.status.as_ref().and_then(|status| status.observed_generation);
    if controller.acts() && observed.is_some() && observed < cluster.metadata.generation {
        due(
            "wait: the controller has not looked at the newest spec yet; what is said here is of the \
             one before (its log: kubectl -n ichor-system logs deployment/ichor-controller)",
        );
    }
    match cluster.condition(type_::CNI_HANDOVER) {
        None if controller.acts() => due("wait: the controller looks at it within a second"),
        Some(handover) if handover.status != ConditionStatus::True => {
            due(&hand_over(handover, waiting_pods));
        }
        None | Some(_) => {}
    }
    if is_handed_over(cluster) {
        later(cluster, waiting_pods, &mut steps);
    }
    steps
}

/// What is to be done that the controller acts; none when it does, or when that was not seen.
fn no_controller(controller: &Controller) -> Option<&'static str> {
    if controller.acts() || !controller.unread.is_empty() {
        return None;
    }
    Some(match &controller.deployment {
        None => {
            "install the controller: ichor release install ichor charts/ichor -n ichor-system \
             --create-namespace --set image.repository=…"
        }
        Some(rollout) if rollout.wanted == 0 => {
            "start the controller: kubectl -n ichor-system scale deployment ichor-controller \
             --replicas=2"
        }
        Some(rollout) if !rollout.is_done() => {
            "see why the controller's pods do not start: kubectl -n ichor-system describe pods"
        }
        Some(_) => {
            "see why no controller acts: kubectl -n ichor-system logs deployment/ichor-controller; \
             then kubectl -n ichor-system rollout restart deployment ichor-controller"
        }
    })
}

const POD: &str = "see why the Job's pod does not start: kubectl -n kube-system describe job,pod -l \
                   app.kubernetes.io/name=ichor-cni";
const LOG: &str = "nothing: the Job is made anew by itself; its log: kubectl -n kube-system logs \
                   job/ichor-cni";
const NOT_MADE: &str = "do what the message says; it is tried again by itself";
const REFUSED: &str = "do what the message says; a new attempt is made by itself when the \
                       TalosCluster or what runs changes, and at once with: kubectl annotate \
                       taloscluster cluster retry=1 --overwrite (another value each time)";

/// A command that shows a plan and asks for the consent to it, or consents to the one that the Job
/// found without being asked.
fn consent(command: &str, condition: &Condition) -> String {
    let mut text = format!("{command} (shows the plan, and asks for the consent to it");
    if let Some(summary) = Summary::find(&condition.message) {
        let digest = summary.digest;
        text.push_str(&format!(
            "; --accept-cilium-diff={digest} --yes consents to what the Job found"
        ));
    }
    text + ")"
}

fn hand_over(condition: &Condition, waiting_pods: &[String]) -> String {
    match condition.reason.as_str() {
        reason::CONSENT_REQUIRED => return consent("ichor adopt", condition),
        reason::NOT_ADOPTED => {
            "ichor adopt (shows the plan, asks, and writes down what was agreed to)"
        }
        reason::REFUSED => {
            return format!("{REFUSED}; rights that the Job lacks are granted by: ichor adopt");
        }
        reason::IN_PROGRESS if !waiting_pods.is_empty() => POD,
        reason::IN_PROGRESS => {
            "wait: kubectl wait --for=condition=CNIHandover taloscluster/cluster --timeout=15m"
        }
        reason::WAITING_FOR_AGENTS => {
            "wait, or see which agent is not Ready: kubectl -n kube-system get pods -l \
             k8s-app=cilium -o wide"
        }
        reason::JOB_FAILED => LOG,
        reason::NOT_MADE => NOT_MADE,
        _ => "do what the message says",
    }
    .to_owned()
}

/// What comes after the hand-over.
fn later(cluster: &TalosCluster, waiting_pods: &[String], steps: &mut Vec<Step>) {
    let mut push = |text: &str, is_due: bool| steps.push(Step { text: text.to_owned(), is_due });
    let with = |type_: &str, status: ConditionStatus| {
        cluster.condition(type_).filter(|condition| condition.status == status)
    };
    if with(type_::CNI_HEALTHY, ConditionStatus::False).is_some() {
        push(
            "see which agent is not Ready: kubectl -n kube-system get pods -l k8s-app=cilium -o \
             wide",
            true,
        );
    }
    let under_way = |condition: &Condition, command: &str| {
        if condition.reason == reason::CONSENT_REQUIRED {
            return Some(consent(command, condition));
        }
        let text = match condition.reason.as_str() {
            reason::REFUSED => REFUSED,
            reason::IN_PROGRESS if !waiting_pods.is_empty() => POD,
            reason::IN_PROGRESS => "wait: the Job is at work",
            reason::JOB_FAILED => LOG,
            reason::NOT_MADE => NOT_MADE,
            _ => return None,
        };
        Some(text.to_owned())
    };
    if with(type_::CNI_HEALTHY, ConditionStatus::Unknown).is_some() {
        push("do what the message of CNIHealthy says", true);
    }
    if let Some(values) = with(type_::VALUES_APPLIED, ConditionStatus::False) {
        let step = under_way(values, "ichor cni values set");
        push(step.as_deref().unwrap_or("do what the message says"), true);
    }
    if let Some(upgrade) = with(type_::CILIUM_UPGRADE_AVAILABLE, ConditionStatus::True) {
        let is_asked_for = cluster.annotation(annotation::UPGRADE_TO).is_some();
        match under_way(upgrade, "ichor cni upgrade") {
            Some(text) if is_asked_for => push(&text, true),
            _ => push(
                "whenever you like: ichor cni upgrade (shows the plan first; nothing is upgraded by \
                 itself)",
                false,
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::commands::managed::{Leader, Rollout};

    fn cluster(conditions: &Value) -> TalosCluster {
        let mut conditions = conditions.clone();
        for condition in conditions.as_array_mut().unwrap() {
            condition["message"] = "m".into();
            condition["lastTransitionTime"] = "2026-01-01T00:00:00Z".into();
        }
        serde_json::from_value(json!({
            "apiVersion": "ichor.maesh.dev/v1alpha1", "kind": "TalosCluster",
            "metadata": { "name": "cluster" }, "spec": { "cni": { "preset": "cilium" } },
            "status": { "conditions": conditions },
        }))
        .unwrap()
    }

    fn acting() -> Controller {
        let (name, renewed) = ("one".to_owned(), String::new());
        let leader = Some(Leader { name, renewed, age: Some(1), is_dead: false });
        let rollout =
            Rollout { wanted: 2, updated: 2, available: 2, is_current: true, waiting: vec![] };
        Controller { deployment: Some(rollout), leader, unread: Vec::new() }
    }

    fn first(cluster: &TalosCluster, controller: &Controller, pods: &[String]) -> String {
        next(cluster, controller, pods).first().map(|step| step.text.clone()).unwrap_or_default()
    }

    #[test]
    fn each_reason_has_its_step() {
        let pods = ["pod x waits".to_owned()];
        let cases: [(&str, &[String], &str); 9] = [
            ("NotAdopted", &[], "ichor adopt ("),
            ("ConsentRequired", &[], "ichor adopt ("),
            ("Refused", &[], "do what the message says"),
            ("InProgress", &[], "wait: kubectl wait"),
            ("InProgress", &pods, "see why the Job's pod"),
            ("WaitingForAgents", &[], "wait, or see which agent"),
            ("JobFailed", &[], "nothing: the Job is made anew"),
            ("NotMade", &[], "do what the message says; it is tried again"),
            ("Another", &[], "do what the message says"),
        ];
        for (reason, pods, expected) in cases {
            let cluster =
                cluster(&json!([{ "type": "CNIHandover", "status": "False", "reason": reason }]));
            let told = first(&cluster, &acting(), pods);
            assert!(told.starts_with(expected), "{reason}: {told}");
        }
    }

    #[test]
    fn after_the_hand_over() {
        let handed = json!({ "type": "CNIHandover", "status": "True", "reason": "HandedOver" });
        assert_eq!(next(&cluster(&json!([handed])), &acting(), &[]), []);
        for (type_, status, reason, expected, is_due) in [
            ("CNIHealthy", "False", "AgentsNotReady", "see which agent", true),
            ("ValuesApplied", "False", "ConsentRequired", "ichor cni values set", true),
            ("ValuesApplied", "False", "InProgress", "wait: the Job", true),
            ("CiliumUpgradeAvailable", "True", "NewerChart", "whenever you like", false),
        ] {
            let one = json!({ "type": type_, "status": status, "reason": reason });
            let steps = next(&cluster(&json!([handed, one])), &acting(), &[]);
            let [step] = steps.as_slice() else { panic!("{type_} {reason}: {steps:?}") };
            assert!(step.text.starts_with(expected) && step.is_due == is_due, "{step:?}");
        }
        let all_well = json!([
            handed,
            { "type": "ValuesApplied", "status": "True", "reason": "Applied" },
            { "type": "CiliumUpgradeAvailable", "status": "False", "reason": "UpToDate" },
            { "type": "CNIHealthy", "status": "True", "reason": "AgentsReady" },
        ]);
        assert_eq!(next(&cluster(&all_well), &acting(), &[]), []);
    }

    #[test]
    fn what_was_said_of_an_older_spec_is_no_end() {
        let handed = json!({ "type": "CNIHandover", "status": "True", "reason": "HandedOver" });
        let mut cluster = cluster(&json!([handed]));
        cluster.metadata.generation = Some(2);
        let status = cluster.status.as_mut().unwrap();
        status.observed_generation = Some(1);
        assert!(first(&cluster, &acting(), &[]).starts_with("wait: the controller has not looked"));
        cluster.status.as_mut().unwrap().observed_generation = Some(2);
        assert_eq!(next(&cluster, &acting(), &[]), []);
        cluster.metadata.deletion_timestamp =
            serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
        assert!(first(&cluster, &acting(), &[]).starts_with("wait until it is gone"));
    }

    #[test]
    fn a_controller_that_does_not_act() {
        let cluster = cluster(&json!([]));
        let mut controller = Controller::default();
        assert!(first(&cluster, &controller, &[]).starts_with("install the controller"));
        controller.deployment = Some(Rollout::default());
        assert!(first(&cluster, &controller, &[]).starts_with("start the controller"));
        controller = acting();
        controller.leader.as_mut().unwrap().is_dead = true;
        assert!(first(&cluster, &controller, &[]).starts_with("see why no controller acts"));
        controller.deployment.as_mut().unwrap().available = 1;
        assert!(first(&cluster, &controller, &[]).contains("describe pods"));
        controller.unread.push("x".to_owned());
        assert_eq!(first(&cluster, &controller, &[]), "", "what was not seen is no fault");
    }
}
