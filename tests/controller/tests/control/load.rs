//! Two hundred unmanaged clusters: how much the controller asks and takes, busy and idle, and whether
//! one that is changed all the time keeps the others waiting.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use controller_tests::apply;
use controller_tests::site::Site;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams};
use kube::{Api, Client};
use plane::{Meter, Plane, PlaneOptions, RequestRecord};
use serde_json::{Value, json};

const CLUSTERS: usize = 200;

fn name(number: usize) -> String {
    format!("cluster-{number:03}")
}

fn unmanaged(number: usize) -> Value {
    json!({
        "apiVersion": "ichor.maesh.dev/v1alpha1",
        "kind": "TalosCluster",
        "metadata": {
            "name": name(number), "annotations": { "ichor.maesh.dev/adopted": "true" },
        },
        "spec": { "cni": { "preset": "unmanaged" } },
    })
}

fn clusters(client: &Client) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("ichor.maesh.dev", "v1alpha1", "TalosCluster");
    Api::all_with(client.clone(), &ApiResource::from_gvk_with_plural(&kind, "talosclusters"))
}

/// Whether a status is about the newest spec.
fn is_current(cluster: &DynamicObject) -> bool {
    cluster.metadata.generation.is_some()
        && cluster.data["status"]["observedGeneration"].as_i64() == cluster.metadata.generation
}

/// A change of one cluster's spec, and how long its status needs to follow.
async fn latency(api: &Api<DynamicObject>, number: usize, cni: &str) -> Duration {
    let patch = json!({ "spec": { "cni": { "unmanaged": { "talosCNI": cni } } } });
    let began = Instant::now();
    api.patch(&name(number), &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
    while !is_current(&api.get(&name(number)).await.unwrap()) {
        assert!(began.elapsed() < Duration::from_secs(30), "{} is starved", name(number));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    began.elapsed()
}

/// The middle one and the longest of some latencies, in milliseconds.
fn figures(mut latencies: Vec<Duration>) -> (u128, u128) {
    latencies.sort();
    let middle = latencies.get(latencies.len() / 2).map_or(0, Duration::as_millis);
    (middle, latencies.last().map_or(0, Duration::as_millis))
}

/// The latencies of some clusters, one after the other.
async fn latencies(api: &Api<DynamicObject>, cni: &str) -> (u128, u128) {
    let mut all = Vec::new();
    for number in (1..CLUSTERS).step_by(10) {
        all.push(latency(api, number, cni).await);
    }
    figures(all)
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_unmanaged_clusters_cost_next_to_nothing() {
    let prepare = |_: Arc<Plane>| async { Ok(()) };
    let options = PlaneOptions::default();
    let state = plane::support::prepared_state("controller-bare", "1", options, prepare).await;
    let Some(site) = Site::new(state).await else { return };
    let seconds: u64 =
        std::env::var("ICHOR_LOAD_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(15);
    let proxy = site.plane.fault_proxy().await.unwrap();
    let controller = site.controller_at("one", &proxy.url());
    controller.until_it_leads(30).await;
    let client = site.plane.client().unwrap();
    let api = clusters(&client);
    let meter = Meter::new(&[("controller".to_owned(), controller.pid())]);
    let began = Instant::now();
    let all: Vec<Value> = (0..CLUSTERS).map(unmanaged).collect();
    apply(&site.plane, &all);
    let applied = began.elapsed();
    loop {
        let list = api.list(&kube::api::ListParams::default()).await.unwrap();
        if list.items.len() == CLUSTERS && list.items.iter().all(is_current) {
            break;
        }
        assert!(began.elapsed() < Duration::from_mins(2), "no steady state");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let memory = |meter: &Meter| meter.footprint().total() as f64 / 1_048_576.0;
    println!(
        "{CLUSTERS} clusters: applied in {:.1} s, steady after {:.1} s, {} requests, {:.0} % of a \
         core, {:.1} MiB",
        applied.as_secs_f64(),
        began.elapsed().as_secs_f64(),
        proxy.requests().len(),
        meter.cpu_shares()[0].1 * 100.0,
        memory(&meter)
    );
    proxy.forget();
    let meter = Meter::new(&[("controller".to_owned(), controller.pid())]);
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    let requests = proxy.requests();
    let rate = requests.len() as f64 / seconds as f64;
    let megabytes = memory(&meter);
    println!(
        "idle for {seconds} s: {} requests, {rate:.2} a second, {:.2} % of a core, {megabytes:.1} MiB",
        requests.len(),
        meter.cpu_shares()[0].1 * 100.0
    );
    assert!(rate < 2.0, "{requests:?}");
    let is_lease = |request: &&RequestRecord| request.resource == "leases";
    let others: Vec<String> =
        requests.iter().filter(|r| !is_lease(r) && r.is_write()).map(ToString::to_string).collect();
    assert_eq!(others, [""; 0], "nothing is written by an idle controller");
    assert!(megabytes < 40.0, "{megabytes:.1} MiB");
    let quiet = latencies(&api, "none").await;
    // One is changed as fast as the server takes it, by several at once.
    let (stop, count) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let mut floods = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let (api, stop, count) = (api.clone(), Arc::clone(&stop), Arc::clone(&count));
        floods.spawn(async move {
            while !stop.load(Ordering::Relaxed) {
                let number = count.fetch_add(1, Ordering::Relaxed).to_string();
                let patch = json!({ "metadata": { "annotations": { "flood": number } } });
                let patch = Patch::Merge(&patch);
                api.patch(&name(0), &PatchParams::default(), &patch).await.unwrap();
            }
        });
    }
    proxy.forget();
    let began = Instant::now();
    let flooded = latencies(&api, "default").await;
    let took = began.elapsed();
    stop.store(true, Ordering::Relaxed);
    floods.join_all().await;
    println!(
        "latency of the others: quiet {} ms (longest {} ms); while one is changed {:.0} times a \
         second {} ms (longest {} ms), {} requests of the controller",
        quiet.0,
        quiet.1,
        count.load(Ordering::Relaxed) as f64 / took.as_secs_f64(),
        flooded.0,
        flooded.1,
        proxy.requests().len()
    );
    assert!(flooded.1 < 5000, "one keeps the others waiting");
    assert_eq!(site.kubectl(&["get", "jobs", "-A", "-o", "name"]), "");
}
