//! A hand-over that can be stopped anywhere: each object of Cilium is written, the Job's requests go
//! through a proxy, and what is left can be compared.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use helm_rs::cluster::{Cluster, Moment};
use plane::{FaultProxy, Match, Paused, RequestRecord};
use serde_json::{Value, json};
use takeover_tests::process::{counts, nothing_is_lost, owned_by_another_saved, records, state};
use tokio::sync::mpsc::UnboundedReceiver;

use crate::apply;
use crate::observe::Observed;
use crate::site::{KubeProxy, Site, talos_cluster};

/// Seconds that a request is waited for.
const PATIENCE: Duration = Duration::from_mins(2);

/// A hand-over, not begun.
pub struct HandOver {
    /// The cluster.
    pub site: Site,
    /// What the Job's requests go through.
    pub proxy: FaultProxy,
    /// Its Jobs and pods.
    pub observed: Observed,
    client: Arc<dyn Cluster>,
    originals: Vec<Value>,
    digest: String,
}

/// What is left of a hand-over, by name.
pub type Left = BTreeMap<String, Value>;

impl HandOver {
    /// A cluster whose Cilium says that another release owns it, so that each object is written;
    /// none when something is missing.
    pub async fn new() -> Option<Self> {
        let state = owned_by_another_saved().await;
        Some(Self::of(Site::with(state, KubeProxy::Replaced).await?).await)
    }

    /// The same without the chart, which [`Self::of`] needs.
    pub async fn without_chart() -> Option<Site> {
        Site::bare(owned_by_another_saved().await, KubeProxy::Replaced).await
    }

    /// On a cluster with the chart.
    pub async fn of(site: Site) -> Self {
        let client = site.client().await;
        let mut originals = records(&*client).await;
        originals.retain(|record| record["metadata"]["namespace"] != "ichor-system");
        let digest = site.digest(&[]);
        let proxy = site.plane.fault_proxy().await.unwrap();
        site.route(&proxy);
        let observed = Observed::new(&site.plane.client().unwrap());
        Self { site, proxy, observed, client, originals, digest }
    }

    /// Asks for it.
    pub fn begin(&self) {
        apply(&self.site.plane, &[talos_cluster(&self.digest, &json!({ "preset": "cilium" }))]);
    }

    /// The writes of the Job so far.
    pub fn writes(&self) -> Vec<RequestRecord> {
        self.proxy.requests().into_iter().filter(counts).collect()
    }

    /// Holds the Job's write number `at`, from 0, before or after it took effect; none when it has
    /// fewer.
    pub async fn hold(&self, pauses: &mut UnboundedReceiver<Paused>, at: usize) -> Option<Paused> {
        held(pauses, at, counts, || self.site.handover()["status"] == "True").await
    }

    /// Every foreign record is there, or its backup.
    pub async fn nothing_is_lost(&self) {
        nothing_is_lost(&*self.client, &self.originals).await;
    }

    /// Waits until it is handed over, by so many Jobs, of which there never were two at once; what
    /// is left.
    pub async fn end(&self, jobs: usize) -> Left {
        self.site.until("HandedOver", 240).await;
        self.observed.assert_one_at_a_time(jobs);
        self.nothing_is_lost().await;
        let mut left = state(&*self.client).await;
        // The release of the controller's own chart has the time of its installation in it, its
        // ReplicaSet the Deployment's UID, and the Job which attempt it was.
        left.retain(|name, _| {
            let is_charts = name.contains("sh.helm.release.v1.ichor.");
            !is_charts && !name.starts_with("ReplicaSet ichor-system/")
        });
        left.remove("Job kube-system/ichor-cni").expect("the Job stays");
        left.remove("TalosCluster /cluster").expect("the TalosCluster stays");
        let mut status = self.site.cluster()["status"].clone();
        for condition in status["conditions"].as_array_mut().unwrap() {
            condition["lastTransitionTime"] = Value::Null;
            if condition["type"] == "CNIHandover" {
                // How many objects the last Job found as they should be.
                condition["message"] = Value::Null;
            }
        }
        left.insert("the status".to_owned(), status);
        left
    }
}

/// The next held request that counts and is number `at` of these, the others going on; none when
/// `is_over` says that no more will come.
pub async fn held(
    pauses: &mut UnboundedReceiver<Paused>,
    at: usize,
    counts: impl Fn(&RequestRecord) -> bool,
    is_over: impl Fn() -> bool,
) -> Option<Paused> {
    let began = std::time::Instant::now();
    let mut seen = 0;
    loop {
        match tokio::time::timeout(Duration::from_millis(500), pauses.recv()).await {
            Ok(Some(paused)) if counts(&paused.request) => {
                if seen == at {
                    return Some(paused);
                }
                seen += 1;
                paused.release();
            }
            Ok(Some(paused)) => paused.release(),
            Ok(None) => return None,
            Err(_) if is_over() => return None,
            Err(_) => assert!(began.elapsed() < PATIENCE, "no request number {at}, {seen} came"),
        }
    }
}

/// Holds all writes at a moment.
pub fn pauses(proxy: &FaultProxy, moment: Moment) -> UnboundedReceiver<Paused> {
    match moment {
        Moment::Before => proxy.pause_before(Match::writes()),
        Moment::After => proxy.pause_after(Match::writes()),
    }
}

/// Which step of the takeover each write of an undisturbed Job belongs to: the lock, the stored plan,
/// the record, the objects, the record again, the foreign records. (Takeover rules, section 4; nothing
/// is written in the fifth, the wait.)
pub fn steps(writes: &[RequestRecord]) -> Vec<u8> {
    let mut step = 0;
    let mut steps = Vec::new();
    for write in writes {
        let is_own = write.resource == "secrets" && write.namespace == "ichor-system";
        step = match (step, write.verb) {
            (0, _) => 1,
            (1 | 2, "create") if is_own => step + 1,
            (3 | 4, "update") if is_own => 6,
            (3 | 4, _) => 4,
            (6, _) => 7,
            (other, _) => other,
        };
        steps.push(step);
    }
    steps
}

/// Asserts that two hand-overs left the same.
pub fn assert_same(left: &Left, expected: &Left, title: &str) {
    for (name, object) in expected {
        assert_eq!(left.get(name), Some(object), "{name}, {title}");
    }
    let more: Vec<&String> = left.keys().filter(|name| !expected.contains_key(*name)).collect();
    assert!(more.is_empty(), "{more:?}, {title}");
}

/// A small generator of numbers that are the same for the same seed.
pub struct Seeded(u64);

impl Seeded {
    /// By `ICHOR_CONTROLLER_SEED`, else always the same.
    pub fn new() -> Self {
        let seed = std::env::var("ICHOR_CONTROLLER_SEED").ok().and_then(|seed| seed.parse().ok());
        Self(seed.unwrap_or(10))
    }

    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % end.max(1) as u64) as usize
    }
}

impl Default for Seeded {
    fn default() -> Self {
        Self::new()
    }
}
