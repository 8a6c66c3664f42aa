//! The Job dies at any point: a new one starts by itself, repairs and finishes, never two at once,
//! and what is left is what an undisturbed hand-over leaves.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use controller_tests::handed::{HandOver, Left, Seeded, assert_same, pauses, steps};
use helm_rs::cluster::Moment;
use plane::{NodeHealth, Nodes};

/// Random points of the long proof.
const RANDOM: usize = 10;

/// A point at which the Job dies: the number of its write, and whether that took effect.
type Point = (usize, Moment);

/// An undisturbed hand-over: the step that each of the Job's writes belongs to, and what is left.
async fn reference() -> Option<(Vec<u8>, Left)> {
    let over = HandOver::new().await?;
    let _one = over.site.controller("one");
    over.begin();
    let left = over.end(1).await;
    assert_eq!(over.site.event_reasons(), ["JobCreated", "HandedOver"]);
    let steps = steps(&over.writes());
    println!("{} writes of the Job, by step: {steps:?}", steps.len());
    Some((steps, left))
}

/// The Job is killed once, at a point; how long after its failure the next one came.
async fn killed(point: Point, steps: &[u8], expected: &Left) -> Duration {
    let over = HandOver::new().await.expect("the reference ran");
    let (at, moment) = point;
    let mut pauses = pauses(&over.proxy, moment);
    let one = over.site.controller("one");
    over.begin();
    let held = over.hold(&mut pauses, at).await.expect("the Job has that write");
    let title = format!("killed {moment:?} write {at}, step {} ({})", steps[at], held.request);
    over.site.kill_job();
    held.cut();
    over.proxy.clear();
    drop(pauses);
    let began = Instant::now();
    over.nothing_is_lost().await;
    let failed = over.site.until("JobFailed", 30).await;
    let told = failed["message"].as_str().unwrap();
    assert!(told.starts_with("the pod ended with exit code 137 (Error)"), "{told}");
    assert!(told.contains("(attempt 1; again at "), "{told}");
    over.observed.until_job(2, 90).await;
    let after = began.elapsed();
    assert_same(&over.end(2).await, expected, &title);
    let reasons = over.site.event_reasons();
    assert_eq!(reasons, ["JobCreated", "JobFailed", "JobCreated", "HandedOver"], "{title}");
    println!(
        "{title}: the next Job after {:.1} s, done after {:.1} s",
        after.as_secs_f64(),
        began.elapsed().as_secs_f64()
    );
    drop(one);
    over.site.plane.stop();
    after
}

/// The first write of each step, the last object (which the wait follows), and random points.
fn points(steps: &[u8], random: usize) -> Vec<Point> {
    let mut points = BTreeSet::new();
    for number in 1..=7 {
        if let Some(at) = steps.iter().position(|step| *step == number) {
            points.insert((at, false));
        }
    }
    // The fifth: between the last object and the record.
    if let Some(at) = steps.iter().rposition(|step| *step == 4) {
        points.insert((at, true));
    }
    points.insert((steps.len() - 1, true));
    let mut seeded = Seeded::new();
    let least = points.len() + random;
    while points.len() < least {
        points.insert((seeded.below(steps.len()), seeded.below(2) == 1));
    }
    let moment = |after| if after { Moment::After } else { Moment::Before };
    points.into_iter().map(|(at, after)| (at, moment(after))).collect()
}

/// One point in real time, another one with each seed.
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_job_is_followed_by_one_that_finishes() {
    let Some((steps, expected)) = reference().await else { return };
    let mut seeded = Seeded::new();
    let point = (seeded.below(steps.len()), Moment::After);
    let after = killed(point, &steps, &expected).await;
    assert!(after < Duration::from_secs(90), "{after:?}");
}

/// Each step and ten random points, several side by side, since most of each is waiting.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: hack/proof controller-kill"]
async fn a_job_killed_at_each_step_and_at_random() {
    let Some((steps, expected)) = reference().await else { return };
    let points = points(&steps, RANDOM);
    let side_by_side: usize =
        std::env::var("ICHOR_CONTROLLER_SHARDS").ok().and_then(|n| n.parse().ok()).unwrap_or(3);
    let mut slowest = Duration::ZERO;
    for some in points.chunks(side_by_side) {
        let runs = some.iter().map(|point| killed(*point, &steps, &expected));
        for after in futures::future::join_all(runs).await {
            assert!(after < Duration::from_secs(90), "{after:?}");
            slowest = slowest.max(after);
        }
    }
    println!(
        "{} points: the same end each time, the next Job after {:.1} s at most",
        points.len(),
        slowest.as_secs_f64()
    );
}

/// The pod is taken away, as by whoever forces a node's pods out: the same.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: hack/proof controller-kill"]
async fn a_job_whose_pod_is_taken_away() {
    let Some((steps, expected)) = reference().await else { return };
    let over = HandOver::new().await.expect("the reference ran");
    let mut pauses = pauses(&over.proxy, Moment::Before);
    let _one = over.site.controller("one");
    over.begin();
    let held = over.hold(&mut pauses, steps.len() / 2).await.expect("the Job has that write");
    let pod = over.site.pod().expect("a pod");
    over.site.kubectl(&["-n", "kube-system", "delete", "pod", &pod, "--force", "--grace-period=0"]);
    held.cut();
    over.proxy.clear();
    drop(pauses);
    let failed = over.site.until("JobFailed", 30).await;
    println!("{}", failed["message"]);
    over.observed.until_job(2, 90).await;
    assert_same(&over.end(2).await, &expected, "the pod was taken away");
}

/// The node of the pod dies and does not come back: the pod is told to go, never says that it went,
/// and the next Job starts without anybody's help.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: hack/proof controller-kill"]
async fn a_job_whose_node_dies() {
    let Some((steps, expected)) = reference().await else { return };
    let over = HandOver::new().await.expect("the reference ran");
    let mut pauses = pauses(&over.proxy, Moment::Before);
    let _one = over.site.controller("one");
    over.begin();
    let held = over.hold(&mut pauses, steps.len() / 2).await.expect("the Job has that write");
    let pods = ["-n", "kube-system", "pods", "-l", "job-name=ichor-cni"];
    let node = over.site.get(&pods)["items"][0]["spec"]["nodeName"].as_str().unwrap().to_owned();
    let began = Instant::now();
    let client = over.site.plane.client().unwrap();
    Nodes::set_node(&client, &node, NodeHealth::Silent).await.unwrap();
    over.site.kill_job();
    held.cut();
    over.proxy.clear();
    drop(pauses);
    over.observed.give_up_pods();
    let failed = over.site.until("JobFailed", 300).await;
    println!("after {:.0} s: {}", began.elapsed().as_secs_f64(), failed["message"]);
    let told = format!("node {node} of pod ");
    assert!(failed["message"].as_str().unwrap().starts_with(&told), "{failed}");
    over.observed.until_job(2, 180).await;
    println!("the next Job after {:.0} s", began.elapsed().as_secs_f64());
    // The Job is done; the hand-over is not, as long as a node has no agent.
    let done = ["-n", "kube-system", "wait", "job/ichor-cni", "--for=condition=complete"];
    over.site.kubectl(&[done.as_slice(), &["--timeout=180s"]].concat());
    println!("done after {:.0} s", began.elapsed().as_secs_f64());
    let waits = over.site.until("WaitingForAgents", 30).await;
    assert!(waits["message"].as_str().unwrap().contains("4 of 5 nodes"), "{waits}");
    Nodes::set_node(&client, &node, NodeHealth::Ready).await.unwrap();
    let left = over.end(2).await;
    assert_same(&left, &expected, "the node died");
}
