//! A refused hand-over waits for a change: nothing is asked of the server again and again.

use std::collections::BTreeMap;
use std::time::Duration;

use controller_tests::apply;
use controller_tests::observe::Observed;
use controller_tests::site::talos_cluster;
use serde_json::json;

use crate::permissions::{job_ends, site};

/// Seconds, unless `ICHOR_REFUSAL_SECONDS` says otherwise.
const SECONDS: u64 = 12;

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_does_not_loop() {
    let Some(site) = site().await else { return };
    let seconds = std::env::var("ICHOR_REFUSAL_SECONDS").ok().and_then(|text| text.parse().ok());
    let seconds = seconds.unwrap_or(SECONDS);
    let observed = Observed::new(&site.plane.client().unwrap());
    job_ends(&site, 2, "refused: by the test");
    let proxy = site.plane.fault_proxy().await.unwrap();
    let controller = site.controller_at("one", &proxy.url());
    apply(&site.plane, &[talos_cluster("", &json!({ "preset": "cilium" }))]);
    let refused = site.until("Refused", 60).await;
    // What follows from the refusal itself is over.
    tokio::time::sleep(Duration::from_secs(1)).await;
    proxy.forget();
    let mark = site.plane.audit_log().mark();
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for request in proxy.requests() {
        let what = format!("{} {}", request.verb, request.resource);
        *counts.entry(what).or_default() += 1;
    }
    println!("refused for {seconds} s: {counts:?}");
    let renewals = counts.remove("update leases").unwrap_or_default();
    let most = seconds as usize / 5 + 1;
    assert!((1..=most).contains(&renewals), "{renewals} renewals");
    // A watch lasts for some minutes, and begins anew where it ended.
    let watches = counts.values().sum::<usize>();
    assert!(counts.keys().all(|what| what.starts_with("watch ")), "{counts:?}");
    assert!(watches <= 7 * (1 + seconds as usize / 200), "{counts:?}");
    let job = "system:serviceaccount:kube-system:ichor-cni";
    let asked = site.plane.audit_log().requests(job, mark).unwrap();
    assert_eq!(asked, [], "no Job asks for anything");
    assert_eq!(site.handover(), refused, "and nothing is written");
    observed.assert_one_at_a_time(1);
    drop(controller);
}
