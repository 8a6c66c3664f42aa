//! One script, run on a real API server and in memory: both must answer the same, word by word.
//! What differs by nature (UIDs, versions, times, the namespace's name) is masked.

mod kinds;
mod reads;
mod run;
mod writes;

use helm_rs::cluster::Cluster;

use crate::{live, memory, namespace};
use kinds::{custom, generations};
use reads::{lists, rights, watches};
use run::Run;
use writes::{deletes, dry_runs, refusals, writes};

async fn script(cluster: &dyn Cluster, namespace: &str) -> Vec<String> {
    let mut run = Run { cluster, namespace, lines: Vec::new(), masks: Vec::new() };
    run.say("# writes");
    writes(&mut run).await;
    run.say("# dry runs");
    dry_runs(&mut run).await;
    run.say("# deletes");
    deletes(&mut run).await;
    run.say("# refusals");
    refusals(&mut run).await;
    run.say("# lists");
    lists(&mut run).await;
    run.say("# generations");
    generations(&mut run).await;
    run.say("# custom objects");
    custom(&mut run, &format!("{namespace}.example.org")).await;
    run.say("# watches");
    watches(&mut run).await;
    run.say("# rights");
    rights(&mut run).await;
    run.lines
}

/// What a real server answered; made by a run with `ICHOR_BLESS=1`.
fn golden() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("contract.txt")
}

#[track_caller]
fn compare(who: &str, lines: &[String]) {
    let expected = std::fs::read_to_string(golden()).unwrap();
    let expected: Vec<&str> = expected.lines().collect();
    let mut differences = Vec::new();
    for (index, (expected, found)) in expected.iter().zip(lines).enumerate() {
        if expected != found {
            differences.push(format!("{}\n  expected {expected}\n  {who} {found}", index + 1));
        }
    }
    let (count, all) = (differences.len(), expected.len());
    assert!(differences.is_empty(), "{count} of {all}:\n{}", differences.join("\n"));
    assert_eq!(all, lines.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_real_server_answers_so() {
    let Some((cluster, namespace)) = namespace("contract-run").await else { return };
    let live = live(&cluster.kubeconfig()).await;
    let lines = script(&live, &namespace.name).await;
    if std::env::var_os("ICHOR_BLESS").is_some() {
        std::fs::write(golden(), format!("{}\n", lines.join("\n"))).unwrap();
    }
    compare("server", &lines);
}

#[tokio::test]
async fn memory_answers_as_a_server_does() {
    let memory = memory("in-memory");
    compare("memory", &script(&memory, "in-memory").await);
}
