//! A real server that fails: each failure is survived, or reported as what it is, and no write is
//! done twice or lost.

use std::time::Duration;

use helm_rs::cluster::live::{Live, RetryPolicy};
use helm_rs::cluster::{
    Cluster, Count, DeleteOptions, Effect, ErrorKind, Fault as PlannedFault, Faults, Kind,
    ListQuery, ManualClock, Moment, Patch, PatchKind, Target, WatchEvent, WatchQuery, WriteOptions,
};
use plane::{Fault, FaultProxy, Match};
use serde_json::{Value, json};

use crate::{config_map, live, memory, namespace, options, resource, through};

/// A proxy and a client that goes through it.
async fn proxied(
    name: &str,
) -> Option<(std::sync::Arc<plane::support::TestCluster>, String, FaultProxy, Live)> {
    let (cluster, namespace) = namespace(name).await?;
    let plane = plane::support::or_skip(cluster.plane())?;
    let proxy = plane.fault_proxy().await.unwrap();
    let client = through(&cluster, &proxy, options()).await;
    // The address has answered once; before that, failures are taken for a wrong address.
    client.server_version().await.unwrap();
    Some((cluster, namespace.name.clone(), proxy, client))
}

fn survivable() -> Vec<Fault> {
    vec![
        Fault::TooManyRequests { retry_after: 1 },
        Fault::InternalError,
        Fault::Unavailable,
        Fault::CutBefore,
        Fault::CutAfter,
    ]
}

fn version(object: &Value) -> &str {
    object.pointer("/metadata/resourceVersion").and_then(Value::as_str).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_verb_survives_what_can_be_survived() {
    let Some((cluster, namespace, proxy, client)) = proxied("survive").await else { return };
    let direct = live(&cluster.kubeconfig()).await;
    for (index, fault) in survivable().into_iter().enumerate() {
        let name = format!("survivor-{index}");
        let (target, object) = config_map(&client, &namespace, &name).await;
        let options = WriteOptions::default();
        let strike = |verb: &str| {
            let rule = Match::any().verbs(&[verb]).resource("configmaps").namespace(&namespace);
            proxy.add_times(2, rule, fault.clone());
        };
        strike("create");
        let created = client.create(&target, &object, &options).await.unwrap();
        proxy.clear();
        assert_eq!(created, direct.get(&target).await.unwrap(), "create under {fault:?}");

        strike("get");
        assert_eq!(client.get(&target).await.unwrap(), created, "get under {fault:?}");
        proxy.clear();

        strike("list");
        let query = ListQuery { namespace: namespace.clone(), ..ListQuery::default() };
        client.list(&target.resource, &query).await.unwrap();
        proxy.clear();

        // An update of a version: its own earlier success is not taken for somebody else's.
        let mut changed = created.clone();
        changed["data"]["b"] = "2".into();
        strike("update");
        let updated = client.update(&target, &changed, &options).await.unwrap();
        proxy.clear();
        let live = direct.get(&target).await.unwrap();
        assert_eq!(updated, live, "update under {fault:?}");

        strike("patch");
        let patch = Patch { kind: PatchKind::Strategic, body: json!({ "data": { "c": "3" } }) };
        let patched = client.patch(&target, &patch, &options).await.unwrap();
        proxy.clear();
        assert_eq!(patched, direct.get(&target).await.unwrap(), "patch under {fault:?}");
        assert_eq!(patched["data"], json!({ "a": "1", "b": "2", "c": "3" }));

        strike("delete");
        client.delete(&target, &DeleteOptions::default()).await.unwrap();
        proxy.clear();
        assert!(direct.get(&target).await.unwrap_err().is_not_found(), "delete under {fault:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn races_are_won_and_lost_honestly() {
    let Some((cluster, namespace, proxy, client)) = proxied("races").await else { return };
    let direct = live(&cluster.kubeconfig()).await;
    let options = WriteOptions::default();
    let (target, object) = config_map(&client, &namespace, "raced").await;
    client.create(&target, &object, &options).await.unwrap();

    // A conflict of a patch that names no version comes from the server's own race.
    let rule = || Match::any().verbs(&["patch"]).resource("configmaps");
    proxy.add_times(2, rule(), Fault::Conflict);
    let patch = Patch { kind: PatchKind::Merge, body: json!({ "data": { "x": "1" } }) };
    client.patch(&target, &patch, &options).await.unwrap();
    proxy.clear();

    // One of an update that names a version is an answer.
    let read = client.get(&target).await.unwrap();
    direct
        .patch(
            &target,
            &Patch { kind: PatchKind::Merge, body: json!({ "data": { "y": "2" } }) },
            &options,
        )
        .await
        .unwrap();
    proxy.forget();
    let error = client.update(&target, &read, &options).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert_eq!(proxy.count(&Match::any().verbs(&["update"])), 1);

    // So it is after a lost answer, when somebody else wrote in between.
    let mut changed = client.get(&target).await.unwrap();
    changed["data"]["z"] = "3".into();
    direct
        .patch(
            &target,
            &Patch { kind: PatchKind::Merge, body: json!({ "data": { "y": "4" } }) },
            &options,
        )
        .await
        .unwrap();
    proxy.add_times(1, Match::any().verbs(&["update"]), Fault::CutBefore);
    let error = client.update(&target, &changed, &options).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);

    // A create whose answer is lost, while somebody else's object is there, is not a success.
    let (target, mut object) = config_map(&client, &namespace, "taken").await;
    object["metadata"]["labels"] = json!({ "by": "other" });
    direct
        .create(
            &target,
            &object,
            &WriteOptions { field_manager: "other".to_owned(), ..WriteOptions::default() },
        )
        .await
        .unwrap();
    proxy.add_times(1, Match::any().verbs(&["create"]).resource("configmaps"), Fault::CutBefore);
    object["metadata"]["labels"] = json!({ "by": "us" });
    let error = client.create(&target, &object, &options).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AlreadyExists);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_lasts_is_reported_as_what_it_is() {
    let Some((cluster, namespace, proxy, _)) = proxied("reported").await else { return };
    let mut impatient = options();
    impatient.timeout = Duration::from_millis(500);
    impatient.retry = RetryPolicy {
        tries: 3,
        first: Duration::from_millis(10),
        longest: Duration::from_millis(20),
        patience: Duration::from_secs(3),
    };
    let client = through(&cluster, &proxy, impatient).await;
    client.server_version().await.unwrap();
    let (target, object) = config_map(&client, &namespace, "reported").await;
    for (fault, kind, text) in [
        (
            Fault::TooManyRequests { retry_after: 1 },
            ErrorKind::TooManyRequests,
            "too many requests",
        ),
        (Fault::InternalError, ErrorKind::Internal, "an error on the server"),
        (
            Fault::Unavailable,
            ErrorKind::Unavailable,
            "the server is currently unable to handle the request",
        ),
        (Fault::ExpiredToken, ErrorKind::Unauthorized, "Unauthorized"),
        (
            Fault::Conflict,
            ErrorKind::Conflict,
            "the object has been modified; please apply your changes to the latest version and try again",
        ),
    ] {
        let rule = proxy.add(Match::any().resource("configmaps").namespace(&namespace), fault);
        let error = client.create(&target, &object, &WriteOptions::default()).await.unwrap_err();
        assert_eq!((error.kind(), error.to_string().as_str()), (kind, text));
        proxy.remove(rule);
    }
    let url = format!("{}/api/v1/namespaces/{namespace}/configmaps/reported", proxy.url());
    for (fault, text) in [
        (Fault::CutBefore, format!("Get \"{url}\": EOF")),
        (
            Fault::Delay(Duration::from_secs(3)),
            format!(
                "Get \"{url}\": net/http: request canceled (Client.Timeout exceeded while awaiting headers)"
            ),
        ),
    ] {
        let rule =
            proxy.add(Match::any().resource("configmaps").namespace(&namespace), fault.clone());
        let error = client.get(&target).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Transport, "{fault:?}");
        assert_eq!(error.to_string(), text, "{fault:?}");
        proxy.remove(rule);
    }
    let error = client.get(&target).await.unwrap_err();
    assert!(error.is_not_found(), "none of them took effect: {error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn watches_that_break_and_expire() {
    let Some((_cluster, namespace, proxy, client)) = proxied("watches").await else { return };
    let maps = resource(&client, "v1", "ConfigMap").await;
    let query = ListQuery { namespace: namespace.clone(), ..ListQuery::default() };
    let from = client.list(&maps, &query).await.unwrap().resource_version;
    let query = WatchQuery {
        namespace: namespace.clone(),
        resource_version: from,
        timeout_seconds: 60,
        ..WatchQuery::default()
    };
    let (target, object) = config_map(&client, &namespace, "watched").await;

    let mut watch = client.watch(&maps, &query).await.unwrap();
    client.create(&target, &object, &WriteOptions::default()).await.unwrap();
    let seen = loop {
        if let Some(WatchEvent::Added(object)) = watch.next().await.unwrap() {
            break object;
        }
    };
    proxy.cut_watches();
    let error = watch.next().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Transport, "{error}");
    drop(watch);

    // Taken up again where it was.
    let query = WatchQuery { resource_version: version(&seen).to_owned(), ..query };
    let mut watch = client.watch(&maps, &query).await.unwrap();
    client.delete(&target, &DeleteOptions::default()).await.unwrap();
    loop {
        match watch.next().await.unwrap() {
            Some(WatchEvent::Deleted(_)) => break,
            Some(_) => {}
            None => panic!("the watch ended"),
        }
    }
    proxy.expire_watches();
    let error = watch.next().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Expired);
    assert_eq!(error.to_string(), "too old resource version");
    drop(watch);

    // A watch that cannot be opened is tried again.
    proxy.add_times(1, Match::any().verbs(&["watch"]), Fault::Unavailable);
    drop(client.watch(&maps, &query).await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_that_is_down_leaves_the_others() {
    let Some((_cluster, _, proxy, client)) = proxied("group-down").await else { return };
    proxy.add(Match::any(), Fault::GroupDown { group: "autoscaling".to_owned() });
    let discovery = client.discovery(true).await.unwrap();
    assert_eq!(
        discovery.failure_text(),
        "unable to retrieve the complete list of server APIs: autoscaling/v1: stale GroupVersion \
         discovery: autoscaling/v1, autoscaling/v2: stale GroupVersion discovery: autoscaling/v2"
    );
    assert!(discovery.resource(&Kind::new("apps/v1", "Deployment")).is_some());
    assert!(discovery.resource(&Kind::new("autoscaling/v2", "HorizontalPodAutoscaler")).is_none());
    proxy.clear();
    assert!(client.discovery(true).await.unwrap().failed().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_api_service_without_a_server() {
    let Some((cluster, namespace)) = namespace("api-service").await else { return };
    let client = live(&cluster.kubeconfig()).await;
    let services = resource(&client, "apiregistration.k8s.io/v1", "APIService").await;
    let target = Target::new(&services, "", "v1.down.example.org");
    let object = json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": { "name": "v1.down.example.org" },
        "spec": {
            "group": "down.example.org", "version": "v1", "groupPriorityMinimum": 100,
            "versionPriority": 100, "insecureSkipTLSVerify": true,
            "service": { "name": "nobody", "namespace": namespace.name },
        },
    });
    client.create(&target, &object, &WriteOptions::default()).await.unwrap();
    let mut found = false;
    for _ in 0..100 {
        let discovery = client.discovery(true).await.unwrap();
        assert!(discovery.resource(&Kind::new("v1", "ConfigMap")).is_some());
        if discovery.failed().iter().any(|failed| failed.group_version == "down.example.org/v1") {
            assert!(discovery.failure_text().contains(
                "down.example.org/v1: stale GroupVersion discovery: down.example.org/v1"
            ));
            found = true;
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    client.delete(&target, &DeleteOptions::default()).await.unwrap();
    assert!(found, "the server tells the group as down");
}

#[tokio::test(flavor = "multi_thread")]
async fn kills_and_failures_at_chosen_calls() {
    let clock = std::sync::Arc::new(ManualClock::new("2026-01-02T03:04:05Z".parse().unwrap()));
    let options = WriteOptions::default();
    for moment in [Moment::Before, Moment::After] {
        let inner = memory("ns");
        let faults = Faults::new(&inner, clock.clone());
        let (target, object) = config_map(&faults, "ns", "a").await;
        let (other, second) = config_map(&faults, "ns", "b").await;
        faults.plan(PlannedFault { count: Count::Writes, at: 2, moment, effect: Effect::Poison });
        faults.create(&target, &object, &options).await.unwrap();
        faults.get(&target).await.unwrap();
        let error = faults.create(&other, &second, &options).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Killed);
        assert_eq!(faults.get(&target).await.unwrap_err().kind(), ErrorKind::Killed);
        assert_eq!(inner.get(&other).await.is_ok(), moment == Moment::After);
        let timeline: Vec<_> = faults.timeline().iter().map(ToString::to_string).collect();
        assert_eq!(
            timeline,
            [
                "discover ok",
                "discover ok",
                "create configmaps ns/a ok",
                "get configmaps ns/a ok",
                "create configmaps ns/b killed",
            ]
        );
        assert_eq!(faults.counts(), (5, 2));
    }
}
