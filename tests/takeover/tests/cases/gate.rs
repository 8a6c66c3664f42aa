//! The gate's first proof: no false alarm. What real Helm installed is what the chart renders.

use takeover::plan::{Outcome, to_text};
use takeover_tests::{Bed, assert_forecast, installed, kube_proxy};

/// After real Helm installed the chart, nothing differs, nothing stays, nothing is missing.
#[tokio::test(flavor = "multi_thread")]
async fn gate_is_empty_for_every_value_set() {
    for number in ["01", "02", "03", "05", "06", "09", "defaults"] {
        let Some(bed) = installed(number).await else { return };
        let plan = bed.plan(None).await.plan;
        let figures = plan.figures();
        println!("values {number}: {figures:?}");
        assert_eq!(
            (figures.differences, figures.residue, figures.creations, figures.restarts),
            (0, 0, 0, 0),
            "values {number}: {}",
            to_text(&plan, true)
        );
        assert_eq!(plan.outcome, Outcome::TakeOver, "{:?}", plan.refusals);
        bed.plane.stop();
    }
}

/// What controllers and a rollout restart write is others', and no difference.
#[tokio::test(flavor = "multi_thread")]
async fn gate_stays_empty_after_a_rollout_restart() {
    let Some(bed) = Bed::with_cilium("1.20.0", "03").await else { return };
    kube_proxy(&bed);
    for workload in ["ds/cilium-envoy", "deploy/cilium-operator"] {
        bed.kubectl(&["-n", "kube-system", "rollout", "restart", workload]);
        bed.kubectl(&["-n", "kube-system", "rollout", "status", workload, "--timeout=90s"]);
    }
    let plan = bed.plan(None).await.plan;
    assert!(plan.gate_is_empty(), "{}", to_text(&plan, true));
    let marks = plan
        .objects
        .iter()
        .flat_map(|object| &object.others)
        .filter(|other| other.path.contains("restartedAt"))
        .count();
    assert_eq!(marks, 2);
    let before = bed.footprints().await;
    bed.take_over(None, &plan).await.unwrap();
    // The mark stays, no pod restarts.
    assert_forecast(&before, &bed.footprints().await, &plan);
}
