//! The fault proxy: every fault reaches a real client, and requests are counted.

use std::time::{Duration, Instant};

use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, ListParams, PostParams, WatchEvent, WatchParams};
use kube::{Api, Client};
use plane::support::{TestNamespace, or_skip, run};
use plane::{Fault, FaultProxy, Match, Plane};
use serde_json::json;

use crate::namespace;

fn client(plane: &Plane, proxy: &FaultProxy) -> Client {
    let ca = plane.pki().ca_certificate().unwrap();
    plane::client(&proxy.url(), &ca, &plane.identities().admin.token).unwrap()
}

fn config_map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}, "data": {"a": "b"}})).unwrap()
}

fn config_maps(client: &Client, namespace: &TestNamespace) -> Api<ConfigMap> {
    Api::namespaced(client.clone(), &namespace.name)
}

fn code<T>(result: kube::Result<T>) -> u16 {
    match result {
        Ok(_) => 200,
        Err(kube::Error::Api(status)) => status.code,
        Err(_) => 0,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_are_replaced_and_requests_counted() {
    let Some((cluster, namespace)) = namespace("faults-answers").await else { return };
    let Some(plane) = or_skip(cluster.plane()) else { return };
    let proxy = plane.fault_proxy().await.unwrap();
    let api = config_maps(&client(plane, &proxy), &namespace);
    let post = PostParams::default();
    let creates = || Match::any().verbs(&["create"]).resource("configmaps");
    let faults = [
        (Fault::TooManyRequests { retry_after: 1 }, 429),
        (Fault::Conflict, 409),
        (Fault::InternalError, 500),
        (Fault::Unavailable, 503),
        (Fault::ExpiredToken, 401),
        (Fault::CutBefore, 0),
    ];
    for (fault, status) in faults {
        proxy.add_times(1, creates(), fault.clone());
        assert_eq!(code(api.create(&post, &config_map("one")).await), status, "{fault:?}");
    }
    assert_eq!(code(api.get("one").await), 404, "none of them took effect");

    proxy.add_times(1, creates(), Fault::CutAfter);
    assert_eq!(code(api.create(&post, &config_map("one")).await), 0);
    assert_eq!(code(api.get("one").await), 200, "this one did");

    let began = Instant::now();
    proxy.add_times(1, Match::any().verbs(&["get"]), Fault::Delay(Duration::from_millis(300)));
    api.get("one").await.unwrap();
    assert!(began.elapsed() >= Duration::from_millis(300));

    api.delete("one", &DeleteParams::default().dry_run()).await.unwrap();
    assert_eq!(proxy.count(&Match::any().verbs(&["create"])), 7);
    assert_eq!(proxy.count(&Match::writes()), 7, "the dry run is none");
    let last = proxy.requests().pop().unwrap();
    let path = format!("/api/v1/namespaces/{}/configmaps/one", namespace.name);
    assert_eq!(last.to_string(), format!("delete {path} (dry run) 200"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_waits_before_and_after_its_effect() {
    let Some((cluster, namespace)) = namespace("faults-pause").await else { return };
    let Some(plane) = or_skip(cluster.plane()) else { return };
    let proxy = plane.fault_proxy().await.unwrap();
    let api = config_maps(&client(plane, &proxy), &namespace);
    let direct = config_maps(&namespace.client, &namespace);

    let mut pauses = proxy.pause_before(Match::writes());
    let creating = tokio::spawn({
        let api = api.clone();
        async move { code(api.create(&PostParams::default(), &config_map("before")).await) }
    });
    let paused = pauses.recv().await.unwrap();
    assert_eq!(code(direct.get("before").await), 404);
    paused.cut();
    assert_eq!(creating.await.unwrap(), 0);
    assert_eq!(code(direct.get("before").await), 404, "it never got through");
    proxy.clear();

    let mut pauses = proxy.pause_after(Match::writes());
    let creating = tokio::spawn({
        let api = api.clone();
        async move { code(api.create(&PostParams::default(), &config_map("after")).await) }
    });
    let paused = pauses.recv().await.unwrap();
    assert_eq!(paused.request.status, Some(201));
    assert_eq!(code(direct.get("after").await), 200, "in effect, not yet answered");
    paused.release();
    assert_eq!(creating.await.unwrap(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn watches_expire_and_are_cut() {
    let Some((cluster, namespace)) = namespace("faults-watch").await else { return };
    let Some(plane) = or_skip(cluster.plane()) else { return };
    let proxy = plane.fault_proxy().await.unwrap();
    let api = config_maps(&client(plane, &proxy), &namespace);
    let version =
        api.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
    let start = || async { api.watch(&WatchParams::default(), &version).await.unwrap().boxed() };
    let expired = |event: &kube::Result<WatchEvent<ConfigMap>>| matches!(event, Ok(WatchEvent::Error(status)) if status.code == 410);

    let mut running = start().await;
    api.create(&PostParams::default(), &config_map("seen")).await.unwrap();
    loop {
        match running.next().await.unwrap().unwrap() {
            WatchEvent::Added(map) if map.metadata.name.as_deref() == Some("seen") => break,
            _ => {}
        }
    }
    proxy.expire_watches();
    let event = running.next().await.unwrap();
    assert!(expired(&event), "{event:?}");
    assert!(running.next().await.is_none());

    let mut running = start().await;
    proxy.cut_watches();
    // Events that were on their way come first.
    let ended = async { while let Some(Ok(_)) = running.next().await {} };
    tokio::time::timeout(Duration::from_secs(10), ended).await.unwrap();

    proxy.add_times(1, Match::any().verbs(&["watch"]), Fault::Expired);
    let event = start().await.next().await.unwrap();
    assert!(expired(&event), "{event:?}");
    proxy.add_times(1, Match::any().verbs(&["list"]), Fault::Expired);
    assert_eq!(code(api.list(&ListParams::default()).await), 410);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_goes_down_and_the_rest_stays() {
    let Some((cluster, namespace)) = namespace("faults-group").await else { return };
    let Some(plane) = or_skip(cluster.plane()) else { return };
    let proxy = plane.fault_proxy().await.unwrap();
    let config = plane.folder().join("through-proxy.kubeconfig");
    plane.write_kubeconfig(&config, &proxy.url(), &plane.identities().admin.token).unwrap();
    let through = |arguments: &[&str]| {
        let mut command = plane.kubectl().unwrap();
        command.env("KUBECONFIG", &config).args(["-n", &namespace.name]).args(arguments);
        run(&mut command)
    };
    through(&["get", "networkpolicies"]).unwrap();
    let rule = proxy.add(Match::any(), Fault::GroupDown { group: "networking.k8s.io".to_owned() });
    let error = through(&["get", "--raw", "/apis/networking.k8s.io/v1/ingresses"]).unwrap_err();
    assert!(error.to_string().contains("currently unable to handle"), "{error}");
    through(&["get", "configmaps"]).unwrap();
    let groups = through(&["get", "--raw", "/apis"]).unwrap();
    assert!(groups.contains("networking.k8s.io"), "the group is still known");
    proxy.remove(rule);
    through(&["get", "networkpolicies"]).unwrap();
}
