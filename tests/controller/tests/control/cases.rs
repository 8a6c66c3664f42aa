//! A6 and A9 through the controller: an accepted upgrade, and large records of another release in
//! another namespace.

use std::time::{Duration, Instant};

use controller_tests::apply;
use controller_tests::observe::Observed;
use controller_tests::site::{KubeProxy, Site, condition, talos_cluster};
use serde_json::json;
use takeover_tests::process::{nothing_is_lost, records};
use takeover_tests::records::ten_revisions_saved;

/// A6: 1.19 is taken over as an upgrade once that is consented to, and the detected version follows
/// within 5 s of the hand-over.
#[tokio::test(flavor = "multi_thread")]
async fn a6_is_handed_over_as_an_upgrade() {
    let state = plane::cilium::state("1.19.6", "03").await;
    let Some(site) = Site::new(state).await else { return };
    let observed = Observed::new(&site.plane.client().unwrap());
    // What only the old release has is read as well: the names of these come with a plan.
    apply(&site.plane, &site.rights(&[]));
    let digest = site.planned(&[]);
    let _one = site.controller("one");
    let cni = json!({ "preset": "cilium" });
    apply(&site.plane, &[talos_cluster("", &cni)]);
    let waits = site.until("ConsentRequired", 120).await;
    assert!(waits["message"].as_str().unwrap().starts_with("refused: consent is missing"));
    assert_eq!(site.cluster()["status"]["cni"]["detectedVersion"], "v1.19.6");
    apply(&site.plane, &[talos_cluster(&digest, &cni)]);
    let began = Instant::now();
    let mut handed: Option<Instant> = None;
    let detected = loop {
        let cluster = site.cluster();
        let is_handed = condition(&cluster, "CNIHandover")["status"] == "True";
        if is_handed && handed.is_none() {
            handed = Some(Instant::now());
        }
        let is_detected = cluster["status"]["cni"]["detectedVersion"] == "v1.20.0";
        if let Some(handed) = handed.filter(|_| is_detected) {
            break handed.elapsed();
        }
        assert!(began.elapsed() < Duration::from_mins(4), "{}", cluster["status"]);
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    println!("v1.20.0 is detected {:.2} s after the hand-over", detected.as_secs_f64());
    assert!(detected < Duration::from_secs(5), "{detected:?}");
    let reasons = site.event_reasons();
    assert_eq!(reasons, ["JobCreated", "ConsentRequired", "JobCreated", "HandedOver"]);
    observed.assert_one_at_a_time(2);
    let mut helm = site.plane.helm().unwrap();
    let list = plane::support::run(helm.args(["list", "-A"])).unwrap();
    assert!(list.contains("cilium-1.20.0"), "{list}");
}

/// A9: release `net` with its records in namespace `infra`, ten revisions of 600 KB each.
#[tokio::test(flavor = "multi_thread")]
async fn a9_is_handed_over() {
    let Some(site) = Site::with(ten_revisions_saved().await, KubeProxy::Replaced).await else {
        return;
    };
    let client = site.client().await;
    let mut originals = records(&*client).await;
    originals.retain(|record| record["metadata"]["namespace"] == "infra");
    assert_eq!(originals.len(), 10);
    let digest = site.digest(&[]);
    let _one = site.controller("one");
    apply(&site.plane, &[talos_cluster(&digest, &json!({ "preset": "cilium" }))]);
    let handed = site.until("HandedOver", 180).await;
    assert!(handed["message"].as_str().unwrap().starts_with("done: Taken over: revision 1"));
    nothing_is_lost(&*client, &originals).await;
    let left = records(&*client).await;
    assert!(left.iter().all(|record| record["metadata"]["namespace"] == "ichor-system"));
    let mut helm = site.plane.helm().unwrap();
    let list = plane::support::run(helm.args(["list", "-A", "-a", "-q"])).unwrap();
    assert_eq!(list, "cilium\nichor\n");
}
