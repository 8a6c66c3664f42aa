//! Case C without a file of values: they are recovered from what runs, and the gate proves them.

use takeover::plan::{Outcome, Prepared, to_text};
use takeover_tests::{Bed, assert_forecast, installed};

/// Forgets who installed it: no record is left.
fn forget(bed: &Bed) {
    bed.kubectl(&["-n", "kube-system", "delete", "secret", "-l", "owner=helm"]);
}

fn tell(name: &str, prepared: &Prepared) {
    println!("{name}: {}", prepared.plan.values.source);
    let recovered = prepared.plan.values.recovered.as_ref().unwrap();
    for place in &recovered.unexplained {
        println!("    unexplained: {place} ({})", place.side);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn c_values_are_recovered() {
    for number in ["defaults", "06"] {
        let Some(bed) = installed(number).await else { return };
        forget(&bed);
        let prepared = bed.plan(None).await;
        tell(number, &prepared);
        let plan = &prepared.plan;
        assert_eq!(plan.outcome, Outcome::TakeOver, "{:?}", plan.refusals);
        assert!(plan.gate_is_empty(), "{}", to_text(plan, true));
        let recovered = plan.values.recovered.as_ref().unwrap();
        assert_eq!(recovered.explained, recovered.differing);
        assert!(plan.found.provenance.contains("there is no record of it"), "{:?}", plan.found);
        // The saved file is as good as the search: the same consent, and quick.
        let values = prepared.recovered.as_ref().unwrap();
        let file = goyaml::to_yaml(&goyaml::Value::Map(values.clone())).unwrap();
        let from_file = bed.plan(Some(&takeover_tests::values_of(&file))).await.plan;
        assert_eq!(from_file.digest, plan.digest);
        assert_eq!(from_file.values.recovered, None);
        let before = bed.footprints().await;
        bed.take_over(Some(values), plan).await.unwrap();
        assert_forecast(&before, &bed.footprints().await, plan);
        let after = bed.plan(None).await.plan;
        assert_eq!(after.outcome, Outcome::Nothing);
        bed.plane.stop();
    }
}

/// What no value explains stays named: as unexplained, and by the gate.
#[tokio::test(flavor = "multi_thread")]
async fn c_what_stays_unexplained_is_named() {
    let Some(bed) = installed("01").await else { return };
    forget(&bed);
    let system = ["-n", "kube-system"];
    let label = ["label", "service", "cilium-envoy", "team=net"];
    bed.kubectl(&[&system[..], &label].concat());
    let extra = ["create", "configmap", "cilium-extra", "--from-literal=a=b"];
    bed.kubectl(&[&system[..], &extra].concat());
    let prepared = bed.plan(None).await;
    tell("01", &prepared);
    let plan = &prepared.plan;
    let recovered = plan.values.recovered.as_ref().unwrap();
    let unexplained: Vec<String> = recovered.unexplained.iter().map(ToString::to_string).collect();
    assert_eq!(
        unexplained,
        [
            "ConfigMap kube-system/cilium-extra",
            "Service kube-system/cilium-envoy metadata.labels.team"
        ]
    );
    let figures = plan.figures();
    assert_eq!((figures.differences, figures.residue, figures.restarts), (0, 1, 0));
}

/// From the version before: what only one of the versions has is not taken for the user's.
#[tokio::test(flavor = "multi_thread")]
async fn c_recovered_over_an_upgrade() {
    let Some(bed) = Bed::with_cilium("1.19.6", "01").await else { return };
    let with_record = bed.plan(None).await.plan;
    forget(&bed);
    let prepared = bed.plan(None).await;
    tell("01 of 1.19.6", &prepared);
    let plan = &prepared.plan;
    assert_eq!(plan.outcome, Outcome::Upgrade, "{:?}", plan.refusals);
    let (forgotten, recorded) = (plan.figures(), with_record.figures());
    println!("with the record {recorded:?}\nrecovered       {forgotten:?}");
    assert_eq!(forgotten.restarts, recorded.restarts);
}
