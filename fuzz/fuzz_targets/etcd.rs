//! etcd's files: pages, revisions, objects, encrypted values, whatever their bytes say.
#![no_main]

use etcd_snapshot::decrypt::{self, Keys};
use etcd_snapshot::storage::{self, Layout};
use etcd_snapshot::{Faults, Snapshot, is_snapshot};
use libfuzzer_sys::fuzz_target;

const CONFIG: &[u8] = b"apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- resources: [secrets]
  providers:
  - aescbc: {keys: [{name: key1, secret: MDEyMzQ1Njc4OWFiY2RlZg==}]}
  - aesgcm: {keys: [{name: key1, secret: MDEyMzQ1Njc4OWFiY2RlZg==}]}
  - secretbox: {keys: [{name: key1, secret: MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=}]}
";

/// Makes the checksums of both meta pages right: a fuzzer does not find them, and what is behind
/// them is what counts.
fn with_checksums(data: &[u8]) -> Vec<u8> {
    let mut bytes = data.to_vec();
    for at in [0, 1024] {
        let Some(meta) = bytes.get_mut(at + 16..at + 80) else { continue };
        let (said, sum) = meta.split_at_mut(56);
        let hash = said.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
        sum.copy_from_slice(&hash.to_le_bytes());
    }
    bytes
}

fn read(bytes: Vec<u8>, keys: &Keys) {
    let size = bytes.len();
    let known = is_snapshot(&bytes);
    let Ok(mut snapshot) = Snapshot::open(Box::new(bytes)) else { return };
    assert!(known, "what opens is told by its content");
    let mut faults = Faults::default();
    snapshot.check(&mut |fault| faults.push(fault));
    let Ok(index) = snapshot.index(None, &mut |fault| faults.push(fault)) else { return };
    let layout = Layout::of(&index);
    let mut first = None;
    assert!(index.totals().bytes <= size as u64, "values overlap");
    for (key, entry) in index.iter_all() {
        let _ = layout.read(key);
        first = first.or_else(|| Some(key.to_vec()));
        if let Ok(value) = snapshot.value(entry) {
            assert_eq!(value.value.len() as u64, entry.size);
            if let Ok(plain) = decrypt::open(&value.value, key, Some(keys)) {
                let _ = storage::object(&plain, entry.revision.main);
            }
        }
    }
    if let Some(key) = first {
        let changes = snapshot.history(&key, &mut |_| {});
        assert!(changes.is_sorted_by_key(|change| change.entry.revision));
        let at = index.revision() / 2;
        let _ = snapshot.index(Some(at), &mut |_| {});
    }
    let _ = (snapshot.buckets(), snapshot.cluster_version(), snapshot.storage_version());
    for fault in faults.into_told() {
        assert!(!fault.to_string().is_empty());
    }
}

fuzz_target!(|data: &[u8]| {
    let keys = Keys::read(CONFIG).expect("a configuration");
    // An object alone, as a value.
    if let Ok(stored) = storage::object(data, 1) {
        let object = goyaml::Value::Map(stored.object);
        goyaml::json::to_json(&object).expect("an object is JSON");
    }
    let _ = decrypt::open(data, b"/registry/secrets/a/b", Some(&keys));
    let _ = Keys::read(data);
    read(with_checksums(data), &keys);
});
