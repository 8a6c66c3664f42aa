//! A2: `helm install cilium` with user values.

use takeover::plan::{Outcome, to_text};
use takeover_tests::{Bed, assert_forecast};

#[tokio::test(flavor = "multi_thread")]
async fn a2_helm_install() {
    for values in ["01", "03"] {
        let Some(bed) = Bed::with_cilium("1.20.0", values).await else { return };
        if values == "03" {
            takeover_tests::kube_proxy(&bed);
        }
        let before = bed.footprints().await;
        let record = bed.kubectl(&[
            "-n",
            "kube-system",
            "get",
            "secret",
            "sh.helm.release.v1.cilium.v1",
            "-o",
            "jsonpath={.data.release}",
        ]);
        let prepared = bed.plan(None).await;
        println!("{}", to_text(&prepared.plan, true));
        let figures = prepared.plan.figures();
        assert_eq!(prepared.plan.outcome, Outcome::TakeOver);
        assert_eq!(
            (figures.differences, figures.residue, figures.creations, figures.restarts),
            (0, 0, 0, 0),
            "the gate is empty"
        );
        let done = bed.take_over(None, &prepared.plan).await.unwrap();
        assert_eq!(done.revision, 1);
        assert_eq!(done.records.deleted.len(), 1);
        assert_forecast(&before, &bed.footprints().await, &prepared.plan);
        let list = bed.helm(&["list", "-A"]);
        println!("{list}");
        assert_eq!(list.lines().count(), 2, "{list}");
        assert!(list.contains("deployed") && list.contains("cilium-1.20.0"), "{list}");
        println!("{}", bed.helm(&["-n", "ichor-system", "status", "cilium"]));
        println!("{}", bed.helm(&["-n", "ichor-system", "history", "cilium"]));
        bed.helm(&["-n", "ichor-system", "get", "manifest", "cilium"]);
        let backup = bed.kubectl(&[
            "-n",
            "ichor-system",
            "get",
            "secret",
            "ichor-cilium-prior-release",
            "-o",
            "jsonpath={.data.1\\.release}",
        ]);
        assert_eq!(backup, record, "the backup is the record to the byte");
        let again = bed.plan(None).await;
        assert_eq!(again.plan.outcome, Outcome::Nothing);
        bed.plane.stop();
    }
}
