//! A8 on a real control plane: a real process killed at its writes, two at once, one that was
//! stopped and lost its lock.

use std::time::{Duration, Instant};

use helm_rs::cluster::Moment;
use plane::Match;
use takeover_tests::process::{Site, next, owned_by_another};

/// The end of every takeover, as real Helm lists it.
const END: &str = "ichor-system cilium";

async fn site() -> Option<Site> {
    Some(Site::new(owned_by_another().await?).await)
}

/// Checks that a run came to its end.
fn assert_done(output: &std::process::Output, title: &str) {
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{title}: {text}");
}

fn assert_helm_sees_the_end(site: &Site, title: &str) {
    let list = site.helm_list();
    assert_eq!(list.len(), 1, "{title}: {list:?}");
    assert!(list[0].starts_with(END) && list[0].ends_with("deployed"), "{title}: {list:?}");
}

/// More writes than a takeover has.
const MOST: usize = 40;

type Points = Vec<(usize, Moment)>;

/// Kills a process at each point, each on a plane of its own, and runs it again; what real Helm saw
/// after each kill.
async fn killed_at(points: Points) -> Option<Vec<Vec<String>>> {
    let reference = site().await?;
    assert_done(&reference.run(), "reference");
    let expected = reference.state().await;
    reference.bed.plane.stop();
    let mut all = Vec::new();
    for (at, moment) in points {
        let began = Instant::now();
        let site = site().await?;
        let Some(request) = site.kill_at(at, moment).await else {
            site.bed.plane.stop();
            continue;
        };
        let title = format!("killed {moment:?} write {at} ({request})");
        let seen = site.helm_list();
        site.nothing_is_lost().await;
        assert_done(&site.run(), &title);
        site.nothing_is_lost().await;
        let state = site.state().await;
        for (name, object) in &expected {
            assert_eq!(state.get(name), Some(object), "{name}, {title}");
        }
        let more: Vec<_> = state.keys().filter(|name| !expected.contains_key(*name)).collect();
        assert!(more.is_empty(), "{more:?}, {title}");
        assert_helm_sees_the_end(&site, &title);
        println!("{title}: Helm saw {seen:?}, {:.0} s", began.elapsed().as_secs_f64());
        site.bed.plane.stop();
        all.push(seen);
    }
    Some(all)
}

/// One point of each half: the record is pending; the record is deployed, no backup.
#[tokio::test(flavor = "multi_thread")]
async fn a8_a_process_killed_on_a_control_plane() {
    let points = vec![(9, Moment::After), (30, Moment::Before)];
    let Some(seen) = killed_at(points).await else { return };
    let before = "kube-system cilium 1 deployed";
    assert_eq!(seen[0], ["ichor-system cilium 1 pending-install", before]);
    assert_eq!(seen[1], ["ichor-system cilium 1 deployed", before]);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: hack/proof kill"]
async fn a_process_killed_at_every_write() {
    let began = Instant::now();
    // Several processes share the points: each has every n-th.
    let number = |name: &str, default: usize| {
        std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(default)
    };
    let (every, from) = (number("ICHOR_KILL_EVERY", 1), number("ICHOR_KILL_FROM", 0));
    let both = |at| [(at, Moment::Before), (at, Moment::After)];
    let points: Points = (0..MOST).flat_map(both).skip(from).step_by(every).collect();
    let Some(seen) = killed_at(points).await else { return };
    println!(
        "{} points with a real process on a real control plane, {:.0} s: the same end each time",
        seen.len(),
        began.elapsed().as_secs_f64()
    );
}

/// One run is at work, held at a write; another one refuses, and names it.
#[tokio::test(flavor = "multi_thread")]
async fn two_runs_at_once() {
    let Some(site) = site().await else { return };
    let mut pauses = site.proxy.pause_before(Match::writes().resource("configmaps"));
    let mut first = site.start();
    let held = next(&mut pauses, &mut first).await.expect("it writes a ConfigMap");
    let mark = site.bed.plane.audit_log().mark();
    let began = Instant::now();
    let second = site.run();
    let text = String::from_utf8_lossy(&second.stderr).into_owned();
    println!("{:.1} s: {text}", began.elapsed().as_secs_f64());
    assert_eq!(second.status.code(), Some(2), "{text}");
    assert!(text.contains("another run is at work") && text.contains("renewed it"), "{text}");
    let lease = site.bed.kubectl(&[
        "-n",
        "ichor-system",
        "get",
        "lease",
        "ichor-cni",
        "-o",
        "jsonpath={.spec.holderIdentity}",
    ]);
    assert!(!lease.is_empty() && text.contains(&lease), "{text}");
    let admin = &site.bed.plane.identities().admin.user;
    let writes = site.bed.plane.audit_log().writes(admin, mark).unwrap();
    let others: Vec<_> = writes.iter().filter(|write| write.resource != "leases").collect();
    assert!(others.is_empty(), "{others:?}");
    drop(pauses);
    held.release();
    site.proxy.clear();
    let (code, text) = first.end();
    assert_eq!(code, Some(0), "{text}");
    assert_helm_sees_the_end(&site, "two runs");
    site.bed.plane.stop();
}

/// A run is stopped in the middle, with a write on the wire. Another one takes over and finishes.
/// When the first goes on, that write is refused and it writes nothing more.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_lost_its_lock_writes_nothing_more() {
    let Some(site) = site().await else { return };
    let mut pauses = site.proxy.pause_before(Match::writes().resource("configmaps"));
    let mut first = site.start();
    let held = next(&mut pauses, &mut first).await.expect("it writes a ConfigMap");
    first.signal("STOP");
    let began = Instant::now();
    assert_done(&site.run(), "the second run");
    let waited = began.elapsed();
    assert!(waited > Duration::from_secs(14), "{waited:?}");
    let state = site.state().await;
    let versions = |objects: Vec<serde_json::Value>| -> Vec<String> {
        let version = |object: &serde_json::Value| {
            object["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned()
        };
        let lasting = objects.iter().filter(|o| {
            let namespace = o["metadata"]["namespace"].as_str().unwrap_or_default();
            namespace == "ichor-system" || o["kind"] == "ConfigMap" || o["kind"] == "DaemonSet"
        });
        lasting.map(version).collect()
    };
    let before = versions(takeover_tests::export(&*site.bed.cluster).await);
    site.proxy.clear();
    site.proxy.forget();
    drop(pauses);
    held.release();
    first.signal("CONT");
    let (code, text) = first.end();
    println!("second run {:.1} s; the first: {text}", waited.as_secs_f64());
    assert_eq!(code, Some(1), "{text}");
    let after = versions(takeover_tests::export(&*site.bed.cluster).await);
    assert_eq!(before, after, "nothing was written");
    assert_eq!(state, site.state().await);
    let succeeded: Vec<String> = site
        .proxy
        .requests()
        .iter()
        .filter(|request| request.is_write() && request.status.is_some_and(|status| status < 300))
        .map(ToString::to_string)
        .collect();
    assert!(succeeded.is_empty(), "{succeeded:?}");
    assert_helm_sees_the_end(&site, "fencing");
    site.bed.plane.stop();
}

/// Somebody changes an object between the plan, which reads it, and its write: it is not written.
#[tokio::test(flavor = "multi_thread")]
async fn changed_between_plan_and_write() {
    let Some(site) = site().await else { return };
    let mut pauses = site.proxy.pause_before(Match::writes().resource("configmaps"));
    let mut run = site.start();
    // The dry run of the plan passes first.
    let held = loop {
        let paused = next(&mut pauses, &mut run).await.expect("it writes a ConfigMap");
        if !paused.request.dry_run {
            break paused;
        }
        paused.release();
    };
    let patch = r#"{"spec": {"template": {"spec": {"terminationGracePeriodSeconds": 7}}}}"#;
    site.bed.kubectl(&["-n", "kube-system", "patch", "deploy", "cilium-operator", "-p", patch]);
    site.proxy.clear();
    drop(pauses);
    held.release();
    let (code, text) = run.end();
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("cilium-operator changed since the consent"), "{text}");
    let path = "jsonpath={.spec.template.spec.terminationGracePeriodSeconds}";
    let left =
        site.bed.kubectl(&["-n", "kube-system", "get", "deploy", "cilium-operator", "-o", path]);
    assert_eq!(left, "7", "it was not written");
    site.nothing_is_lost().await;
    site.bed.plane.stop();
}
