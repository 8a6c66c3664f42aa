//! Snapshots of clusters: what is read is written again as it was, and fills a cluster in memory
//! or is told. The last line's digest is put right first, so that what comes before it is reached.
#![no_main]

use std::sync::Arc;

use helm_rs::cluster::memory::{MemoryCluster, MemoryOptions};
use helm_rs::cluster::snapshot::{About, End, Limits, SnapshotError, Writer, read};
use helm_rs::cluster::{Cluster, ManualClock, block_on};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

const LIMITS: Limits = Limits { line: 1 << 16, objects: 1000, total: 1 << 20 };

fn all(data: &[u8]) -> Result<(About, End, Vec<Value>), SnapshotError> {
    let mut objects = Vec::new();
    let (about, end) = read(data, &LIMITS, |_| {}, |object| objects.push(object))?;
    Ok((about, end, objects))
}

/// The head and the objects of a file, whatever its end says.
fn parts(data: &[u8]) -> Option<(About, Vec<Value>)> {
    let mut head = None;
    let mut objects = Vec::new();
    let _ = read(data, &LIMITS, |about| head = Some(about.clone()), |object| objects.push(object));
    Some((head?, objects))
}

fuzz_target!(|data: &[u8]| {
    let _ = all(data);
    let Some((about, objects)) = parts(data) else { return };
    let mut writer = Writer::new(Vec::new(), &about).expect("memory takes it");
    for object in &objects {
        writer.object(object).expect("memory takes it");
    }
    let text = writer.finish(Vec::new(), Vec::new()).expect("memory takes it");
    let Ok((again, end, read)) = all(&text) else { return };
    assert_eq!((&again, end.objects, &read), (&about, objects.len(), &objects));
    let clock = Arc::new(ManualClock::new("2026-01-01T00:00:00Z".parse().expect("a time")));
    let options = MemoryOptions {
        identity: about.subject(),
        version: about.server.clone(),
        served: Some(about.discovery()),
        ..MemoryOptions::default()
    };
    let memory = MemoryCluster::new(clock, options);
    let _ = memory.load(read.into_iter().map(|object| ("line".to_owned(), object)).collect());
    let _ = block_on(memory.discovery(true));
});
