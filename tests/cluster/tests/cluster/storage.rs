//! Records over a real server, in memory and in files: the same history everywhere.

use std::sync::Arc;

use helm_rs::cluster::{Clock, Cluster, ErrorKind, ManualClock};
use helm_rs::release::storage::{
    Driver, FilesDriver, Labels, MemoryDriver, ObjectDriver, ObjectKind, Storage, StorageError,
    record_key,
};
use helm_rs::release::{Record, Status};

use crate::{live, memory, namespace};

fn record(name: &str, revision: i64, status: &str) -> Record {
    let json = format!(
        r#"{{"name":"{name}","info":{{"status":"{status}"}},"version":{revision},"namespace":"ns"}}"#
    );
    Record::from_json(&json).unwrap()
}

/// Runs a history of revisions and says what is left.
async fn script(driver: &dyn Driver) -> Vec<String> {
    let mut lines = Vec::new();
    let mut storage = Storage::new(driver);
    storage.max_history = 3;
    let user = Labels::from([("team".to_owned(), "a".to_owned())]);
    let error = storage.last("web").await.map(drop).unwrap_err();
    lines.push(error.to_string());
    storage.create(&record("web", 1, "deployed"), &user).await.unwrap();
    lines.push(storage.create(&record("web", 1, "deployed"), &user).await.unwrap_err().to_string());
    lines.push(storage.deployed("other").await.map(drop).unwrap_err().to_string());
    for revision in 2..=6 {
        storage.create(&record("web", revision, "failed"), &user).await.unwrap();
    }
    storage.create(&record("other", 1, "pending-install"), &Labels::new()).await.unwrap();
    let mut kept = Vec::new();
    for stored in storage.history("web").await.unwrap() {
        kept.push(stored.record.revision().unwrap());
        assert_eq!(stored.labels.get("team").map(String::as_str), Some("a"));
        assert_eq!(stored.labels.get("owner").map(String::as_str), Some("helm"));
    }
    kept.sort_unstable();
    lines.push(format!("kept {kept:?}: the deployed one and the newest"));
    let mut last = storage.last("web").await.unwrap();
    lines.push(format!("last {}", last.record.revision().unwrap()));
    lines.push(format!(
        "deployed {}",
        storage.deployed("web").await.unwrap().record.revision().unwrap()
    ));
    last.record.set_status(&Status::Deployed, "done").unwrap();
    storage.update(&last.record, &last.labels).await.unwrap();
    lines.push(format!(
        "deployed {}",
        storage.deployed("web").await.unwrap().record.revision().unwrap()
    ));
    let one = storage.get("web", 6).await.unwrap();
    lines.push(format!("{} {:?}", one.record.to_json(), one.labels));
    lines.push(storage.get("web", 2).await.map(drop).unwrap_err().to_string());
    lines.push(format!("{} records", storage.list().await.unwrap().len()));
    storage.delete("web", 6).await.unwrap();
    lines.push(storage.delete("web", 6).await.unwrap_err().to_string());
    lines
}

#[tokio::test(flavor = "multi_thread")]
async fn all_drivers_keep_the_same_history() {
    let clock: Arc<dyn Clock> = Arc::new(ManualClock::new("2026-01-02T03:04:05Z".parse().unwrap()));
    let expected = script(&MemoryDriver::new(Arc::clone(&clock))).await;
    assert_eq!(expected[3], "kept [1, 5, 6]: the deployed one and the newest");
    let folder = std::env::temp_dir().join(format!("ichor-records-{}", std::process::id()));
    let files = FilesDriver::new(&folder, "ns", Arc::clone(&clock));
    assert_eq!(script(&files).await, expected);
    std::fs::remove_dir_all(&folder).unwrap();
    let simulated = memory("ns");
    for kind in [ObjectKind::Secret, ObjectKind::ConfigMap] {
        let driver = ObjectDriver::new(&simulated, &*clock, kind, "ns");
        assert_eq!(script(&driver).await, expected, "{kind:?} in memory");
    }

    let Some((cluster, namespace)) = namespace("storage").await else { return };
    let live = live(&cluster.kubeconfig()).await;
    for kind in [ObjectKind::Secret, ObjectKind::ConfigMap] {
        let driver = ObjectDriver::new(&live, &*clock, kind, &namespace.name);
        assert_eq!(script(&driver).await, expected, "{kind:?} on a server");
    }
    helm_reads_them(&cluster, &namespace.name, &live, &*clock).await;
    let elsewhere = ObjectDriver::new(&live, &*clock, ObjectKind::Secret, "no-such-namespace");
    let error = elsewhere
        .create(&record_key("web", 1), &record("web", 1, "deployed"), &Labels::new())
        .await
        .unwrap_err();
    assert_eq!(
        helm_rs::error_chain(&error),
        "create: failed to create: namespaces \"no-such-namespace\" not found"
    );
    assert!(
        matches!(&error, StorageError::Cluster { source, .. } if source.kind() == ErrorKind::NotFound)
    );
}

async fn helm_reads_them(
    cluster: &plane::support::TestCluster,
    namespace: &str,
    live: &dyn Cluster,
    clock: &dyn Clock,
) {
    let Some(plane) = plane::support::or_skip(cluster.plane()) else { return };
    let Some(mut helm) = plane::support::or_skip(plane.helm()) else { return };
    let driver = ObjectDriver::new(live, clock, ObjectKind::Secret, namespace);
    let json = r#"{"name":"read","info":{"first_deployed":"2026-01-02T03:04:05Z","last_deployed":"2026-01-02T03:04:05Z","deleted":"","description":"Install complete","status":"deployed"},"chart":{"metadata":{"name":"c","version":"1.2.3","apiVersion":"v2"}},"version":1,"namespace":"ns"}"#;
    let record = Record::from_json(json).unwrap();
    Storage::new(&driver).create(&record, &Labels::new()).await.unwrap();
    helm.args(["--namespace", namespace, "history", "read"]);
    let text = plane::support::run(&mut helm).unwrap();
    assert!(text.contains("deployed") && text.contains("c-1.2.3"), "{text}");
}
