//! The snapshots in `examples/` are what their generator makes, to the byte, and make a plan worth
//! looking at. `ICHOR_BLESS=1` writes them anew.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how a test fails")]

#[path = "../examples/before/cluster.rs"]
mod cluster;

use std::path::PathBuf;

fn check(name: &str, made: &[u8]) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../examples").join(name);
    if std::env::var_os("ICHOR_BLESS").is_some() {
        std::fs::write(&path, made).unwrap();
    }
    let there = std::fs::read(&path).unwrap();
    let lines = |bytes: &[u8]| -> Vec<String> {
        String::from_utf8_lossy(bytes).lines().map(str::to_owned).collect()
    };
    for (number, (made, there)) in lines(made).iter().zip(lines(&there)).enumerate() {
        assert_eq!(*made, there, "{name}, line {}", number + 1);
    }
    assert_eq!(made.len(), there.len(), "{name}");
    assert!(there.len() < 200_000, "{name}: {} bytes", there.len());
}

#[test]
fn the_snapshots_are_what_the_generator_makes() {
    check("before.ndjson", &cluster::before().unwrap());
    check("refused.ndjson", &cluster::refused().unwrap());
}
