//! Nodes that run Talos: what ichor decides there, and what of it needs consent.

use plane::Plane;
use takeover::plan::{KubePrism, Outcome, OwnedChange, Request, prepare, to_text};
use takeover::run::{Denied, RunError};
use takeover_tests::{
    Bed, assert_forecast, helm_install, is_lock, prepared_on, talos, values_path,
};

pub(super) async fn with_01() -> Option<Bed> {
    let values = values_path("01");
    prepared_on(talos(), "talos-01", "1", move |plane: &Plane| {
        helm_install(plane, "cilium", "kube-system", "1.20.0", &["--values", &values]);
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a2_on_talos() {
    let Some(bed) = with_01().await else { return };
    let before = bed.footprints().await;
    let plan = bed.plan(None).await.plan;
    assert!(plan.found.talos);
    assert_eq!(
        (plan.values.changes.as_slice(), plan.values.overridden.as_slice()),
        (&[][..], &[][..])
    );
    assert!(plan.gate_is_empty(), "{}", to_text(&plan, true));
    bed.take_over(None, &plan).await.unwrap();
    assert_forecast(&before, &bed.footprints().await, &plan);
}

/// The agents reach the API elsewhere than at KubePrism: a change of the running data plane.
#[tokio::test(flavor = "multi_thread")]
async fn owned_changes_need_consent() {
    let Some(bed) = with_01().await else { return };
    let chart = plane::cilium::chart("1.20.0").unwrap().display().to_string();
    let upgrade = ["upgrade", "cilium", &chart, "--namespace", "kube-system", "--reuse-values"];
    let set = ["--set", "k8sServiceHost=10.0.0.1,k8sServicePort=6443", "--wait", "--timeout", "3m"];
    bed.helm(&[&upgrade[..], &set].concat());
    let plan = bed.plan(None).await.plan;
    println!("{}", to_text(&plan, false));
    assert_eq!(plan.outcome, Outcome::TakeOver);
    let change = |key: &str, from: &str, to: &str| OwnedChange {
        key: key.to_owned(),
        from: from.to_owned(),
        to: to.to_owned(),
        needs_consent: true,
    };
    assert_eq!(
        plan.values.changes,
        [
            change("k8sServiceHost", "10.0.0.1", "localhost"),
            change("k8sServicePort", "6443", "7445")
        ]
    );
    let flags: Vec<&str> = plan.consent.iter().map(|consent| consent.flag.as_str()).collect();
    assert_eq!(flags, ["--accept-cilium-diff", "--accept-cilium-changes"]);
    // Neither consent alone is enough, and nothing is written.
    let mark = bed.plane.audit_log().mark();
    for (changes, diff, missing) in
        [(false, true, "--accept-cilium-changes"), (true, false, "--accept-cilium-diff")]
    {
        let error = bed.take_over_with(None, &plan, changes, diff).await.unwrap_err();
        assert!(
            matches!(&error, RunError::Denied(Denied::Consent { missing: m, .. }) if m.starts_with(missing)),
            "{error}"
        );
        assert!(error.is_refusal());
    }
    let writes = bed.plane.audit_log().writes(plane::ADMIN_USER, mark).unwrap();
    assert!(writes.iter().all(is_lock), "{writes:?}");
    let before = bed.footprints().await;
    bed.take_over(None, &plan).await.unwrap();
    assert_forecast(&before, &bed.footprints().await, &plan);
    assert!(!plan.restarts.is_empty());
    let after = bed.plan(None).await.plan;
    assert_eq!((after.outcome, after.values.changes.len()), (Outcome::Nothing, 0));
}

/// The Job asks KubePrism on its own node; what it did not ask is said.
#[tokio::test(flavor = "multi_thread")]
async fn kube_prism_of_the_own_node() {
    let Some(bed) = with_01().await else { return };
    let plan = async |kube_prism: KubePrism| {
        let request = Request { kube_prism, ..bed.request(None) };
        prepare(&request).await.unwrap().plan
    };
    let not_asked = plan(KubePrism::NotAsked).await;
    assert!(
        not_asked.unchecked.iter().any(|what| what.starts_with("KubePrism (localhost:7445) and"))
    );
    let answers = plan(KubePrism::Answers).await;
    assert_eq!(answers.digest, not_asked.digest);
    assert!(
        answers
            .unchecked
            .iter()
            .any(|what| what == "KubePrism (localhost:7445) on the other nodes")
    );
    let silent = plan(KubePrism::Silent { why: "connection refused".to_owned() }).await;
    let [refusal] = silent.refusals.as_slice() else { panic!("{:?}", silent.refusals) };
    assert_eq!((silent.outcome, refusal.reason.as_str()), (Outcome::Refused, "KubePrism"));
    assert!(refusal.message.contains("machine.features.kubePrism"), "{}", refusal.message);
}
