//! A8: killed before and after every write, then run again: the same end. On the cluster in memory,
//! filled with what a real plane held; `hack/proof kill` takes every write.

use helm_rs::cluster::CallRecord;
use takeover_tests::Bed;
use takeover_tests::records;
use takeover_tests::rehearsal::{Rehearsal, every_write, step_boundaries};

/// The same version; the objects say that another release owns them, so that each one is written.
async fn same_version() -> Option<Rehearsal> {
    Some(Rehearsal::of_another(Bed::with_cilium("1.20.0", "01").await?).await)
}

async fn upgrade() -> Option<Rehearsal> {
    Some(Rehearsal::of(Bed::with_cilium("1.19.6", "01").await?).await)
}

async fn three_revisions() -> Option<Rehearsal> {
    Some(Rehearsal::of(records::three_revisions("secret").await?).await)
}

async fn config_maps() -> Option<Rehearsal> {
    Some(Rehearsal::of(records::three_revisions("configmap").await?).await)
}

async fn several_backups() -> Option<Rehearsal> {
    Some(Rehearsal::of(records::ten_revisions().await?).await)
}

async fn boundaries(name: &str, rehearsal: Option<Rehearsal>) {
    let Some(rehearsal) = rehearsal else { return };
    let points = rehearsal.matrix(step_boundaries).await;
    rehearsal.killed_twice(8, 6).await;
    println!("{name}: {points} points and 6 double kills, each with the same end");
}

#[tokio::test(flavor = "multi_thread")]
async fn a8_same_version() {
    boundaries("same version", same_version().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a8_upgrade() {
    boundaries("upgrade", upgrade().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a8_three_revisions() {
    boundaries("three revisions", three_revisions().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a8_config_maps() {
    boundaries("ConfigMaps", config_maps().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a8_several_backups() {
    boundaries("several backups", several_backups().await).await;
}

/// A takeover, then its restore, killed.
async fn restore_of(rehearsal: &Rehearsal) -> Rehearsal {
    let stage = rehearsal.stage();
    rehearsal.run(&stage, "first").await.unwrap();
    Rehearsal::restore_of(&stage, rehearsal.originals.clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn a8_restore() {
    let Some(rehearsal) = three_revisions().await else { return };
    boundaries("restore", Some(restore_of(&rehearsal).await)).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: hack/proof kill"]
async fn every_write_of_every_scenario() {
    let began = std::time::Instant::now();
    let every: fn(&[CallRecord]) -> Vec<usize> = every_write;
    let (mut points, mut twice) = (0, 0);
    let scenarios = [
        ("same version", same_version().await),
        ("upgrade 1.19.6 to 1.20.0", upgrade().await),
        ("three revisions", three_revisions().await),
        ("three revisions in ConfigMaps", config_maps().await),
        ("ten revisions, several backups", several_backups().await),
    ];
    for (name, rehearsal) in scenarios {
        let Some(rehearsal) = rehearsal else { return };
        for (what, rehearsal) in
            [("takeover", &rehearsal), ("restore", &restore_of(&rehearsal).await)]
        {
            let count = rehearsal.matrix(every).await;
            rehearsal.killed_twice(20_261_130, 20).await;
            println!("{what}, {name}: {count} points, 20 double kills");
            points += count;
            twice += 20;
        }
    }
    println!(
        "{points} points and {twice} double kills in memory, {:.0} s: the same end each time",
        began.elapsed().as_secs_f64()
    );
}
