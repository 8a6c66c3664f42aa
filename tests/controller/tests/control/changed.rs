//! Changes after a hand-over on real control planes: a Job that dies in the middle, whole objects that
//! go, kube-proxy replaced, a newer chart by the command, a command that dies.

use std::process::Stdio;
use std::time::Duration;

use controller_tests::handed::{HandOver, held, pauses};
use controller_tests::site::{KubeProxy, Site, condition, talos_cluster};
use controller_tests::{apply, chart};
use helm_rs::cluster::Moment;
use plane::PlaneOptions;
use serde_json::{Value, json};
use takeover_tests::process::counts;

use crate::change::{asking, config, digest_of, history, older, until};
use crate::cli::{CONTROLLER, digest, run};

/// Debugging on: Cilium's Job for certificates gets another name, so that the rights on it are not
/// those on a name. Relay and UI off: Deployments, Services, accounts and roles go.
fn settings() -> Value {
    let off = json!({ "enabled": false });
    json!({ "debug": { "enabled": true }, "hubble": { "relay": off, "ui": off } })
}

fn is_there(site: &Site, kind: &str, name: &str) -> bool {
    let arguments = ["-n", "kube-system", "get", kind, name, "-o", "name", "--ignore-not-found"];
    !site.kubectl(&arguments).is_empty()
}

/// The Job of a change is killed at its write number `at`: the next one goes on with the same
/// revision, and finishes.
async fn killed(at: usize, moment: Moment) -> Option<()> {
    let site = Site::new(plane::cilium::state("1.20.0", "03").await).await?;
    let over = HandOver::of(site).await;
    let _one = over.site.controller("one");
    over.begin();
    over.site.until("HandedOver", 120).await;
    until(&over.site, "ValuesApplied", "Applied").await;
    apply(&over.site.plane, &[asking(&settings(), "", "")]);
    let waits = until(&over.site, "ValuesApplied", "ConsentRequired").await;
    let planned = digest_of(&waits);
    let mut pauses = pauses(&over.proxy, moment);
    apply(&over.site.plane, &[asking(&settings(), &planned, "")]);
    let stopped = held(&mut pauses, at, counts, || false).await.expect("the Job has that write");
    println!("killed {moment:?} write {at} of the change ({})", stopped.request);
    over.site.kill_job();
    stopped.cut();
    over.proxy.clear();
    drop(pauses);
    let failed = until(&over.site, "ValuesApplied", "JobFailed").await;
    assert!(failed["message"].as_str().unwrap().contains("exit code 137"), "{failed}");
    let jobs = over.observed.jobs();
    over.observed.until_job(jobs + 1, 90).await;
    until(&over.site, "ValuesApplied", "Applied").await;
    over.observed.assert_one_at_a_time(jobs + 1);
    assert_eq!(over.site.handover()["status"], "True", "whatever becomes of the values");
    let revisions = [(1, "superseded".to_owned()), (2, "deployed".to_owned())];
    assert_eq!(history(&over.site), revisions, "attempts do not add up");
    assert_eq!(config(&over.site)["debug"], "true");
    for (kind, name) in
        [("deployment", "hubble-relay"), ("deployment", "hubble-ui"), ("service", "hubble-relay")]
    {
        assert!(!is_there(&over.site, kind, name), "{kind} {name}");
    }
    assert!(is_there(&over.site, "service", "hubble-peer"), "what is still wanted stays");
    over.site.plane.stop();
    Some(())
}

/// In the middle of the objects.
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_change_is_finished_by_the_next_job() {
    killed(6, Moment::After).await;
}

/// Between the stored plan and the record, at objects, at deletions, before the record is deployed.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: hack/proof controller-kill"]
async fn a_change_killed_at_several_writes() {
    for (at, moment) in [
        (1, Moment::Before),
        (1, Moment::After),
        (2, Moment::After),
        (4, Moment::Before),
        (9, Moment::After),
        (12, Moment::Before),
    ] {
        if killed(at, moment).await.is_none() {
            return;
        }
    }
}

/// kube-proxy is replaced by what the spec says, and comes back only where it runs.
#[tokio::test(flavor = "multi_thread")]
async fn kube_proxy_is_replaced_and_comes_back() {
    let Some(site) = Site::new(plane::cilium::state("1.20.0", "03").await).await else { return };
    let digest = site.digest(&[]);
    let _one = site.controller("one");
    let with = |state: &str, digest: &str| {
        apply(
            &site.plane,
            &[talos_cluster(digest, &json!({ "preset": "cilium", "kubeProxy": state }))],
        );
    };
    with("enabled", &digest);
    site.until("HandedOver", 120).await;
    until(&site, "ValuesApplied", "Applied").await;
    with("replaced", &digest);
    let waits = until(&site, "ValuesApplied", "ConsentRequired").await;
    assert_eq!(config(&site)["kube-proxy-replacement"], "false", "nothing is written");
    with("replaced", &digest_of(&waits));
    until(&site, "ValuesApplied", "Applied").await;
    assert_eq!(config(&site)["kube-proxy-replacement"], "true");

    // Nothing would answer for Services.
    site.kubectl(&["-n", "kube-system", "delete", "daemonset", "kube-proxy"]);
    with("enabled", &digest);
    let refused = until(&site, "ValuesApplied", "Refused").await;
    let why = refused["message"].as_str().unwrap();
    assert!(why.contains("no DaemonSet kube-proxy runs"), "{refused}");
    assert_eq!(config(&site)["kube-proxy-replacement"], "true", "nothing is written");
    takeover_tests::kube_proxy_on(&site.plane);
    with("enabled", &digest);
    let waits = until(&site, "ValuesApplied", "ConsentRequired").await;
    with("enabled", &digest_of(&waits));
    until(&site, "ValuesApplied", "Applied").await;
    assert_eq!(config(&site)["kube-proxy-replacement"], "false");
}

/// `ichor cni upgrade` from 1.19.6 to the pinned chart: shown, refused, consented to, made by the
/// Job, whose right on the older chart's Job the command grants.
#[tokio::test(flavor = "multi_thread")]
async fn the_command_upgrades_by_the_controller() {
    let options = PlaneOptions::default();
    let state = plane::support::prepared_state("controller-older", "2", options, older).await;
    let Some(site) = Site::bare(state, KubeProxy::Runs).await else { return };
    site.install(&chart(), &CONTROLLER);
    run(&site, &["adopt", "--yes"]).expect(0, &["> Handed over. "]);
    run(&site, &["cluster", "status"]).expect(0, &["> next: whenever you like: ichor cni upgrade"]);
    run(&site, &["cni", "upgrade", "--plan"]).expect(2, &["> 1.19.6", "> 1.20.0"]);
    let refused = run(&site, &["cni", "upgrade", "--yes"]);
    refused.expect(2, &["consent is missing"]);
    assert_eq!(site.cluster()["status"]["cni"]["detectedVersion"], "v1.19.6");
    let accept = format!("--accept-cilium-diff={}", digest(&refused.err));
    let accepting = ["cni", "upgrade", "--yes", "--accept-cilium-changes", &accept];
    run(&site, &accepting).expect(0, &["> Done. "]);
    let cluster = site.cluster();
    assert_eq!(cluster["status"]["cni"]["detectedVersion"], "v1.20.0");
    assert_eq!(condition(&cluster, "CiliumUpgradeAvailable")["reason"], "UpToDate");
    run(&site, &["cni", "upgrade", "--yes"]).expect(0, &["> nothing: "]);
    run(&site, &["cluster", "status"]).expect(0, &["> cni: cilium v1.20.0"]);
}

/// The command itself makes the change and dies: the same command again finishes it.
#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_died_is_run_again() {
    let state = plane::cilium::state("1.20.0", "03").await;
    let Some(site) = Site::bare(state, KubeProxy::Runs).await else { return };
    run(&site, &["adopt", "--cilium-only", "--yes"]).expect(0, &["> Taken over: revision 1"]);
    let set = ["cni", "values", "set", "--set=debug.enabled=true", "--yes"];
    let refused = run(&site, &set);
    let accept = format!("--accept-cilium-diff={}", digest(&refused.err));
    let arguments = [set.as_slice(), &[&accept]].concat();

    let proxy = site.plane.fault_proxy().await.unwrap();
    let through = site.plane.folder().join("through.kubeconfig");
    let token = site.plane.identities().admin.token.clone();
    site.plane.write_kubeconfig(&through, &proxy.url(), &token).unwrap();
    let mut pauses = pauses(&proxy, Moment::After);
    let mut command = site.command(&arguments);
    command.env("KUBECONFIG", &through).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let stopped = held(&mut pauses, 3, counts, || false).await.expect("it has that write");
    println!("killed after {}", stopped.request);
    child.kill().unwrap();
    child.wait().unwrap();
    stopped.cut();
    proxy.clear();
    drop(pauses);
    let stands = history(&site);
    assert_eq!(stands[0], (1, "deployed".to_owned()), "{stands:?}");
    run(&site, &["cni", "status"]).expect(2, &["> next: "]);

    let began = std::time::Instant::now();
    let finished = run(&site, &arguments);
    finished.expect(0, &["> Changed: revision 2", "A change was begun and is not complete."]);
    // The dead run's lock is waited for.
    assert!(began.elapsed() < Duration::from_mins(1), "{:?}", began.elapsed());
    assert_eq!(history(&site), [(1, "superseded".to_owned()), (2, "deployed".to_owned())]);
    assert_eq!(config(&site)["debug"], "true");
    run(&site, &arguments).expect(0, &["> nothing: "]);
}

/// Whoever may see only some of it sees that, and what was not seen is said in its place.
#[tokio::test(flavor = "multi_thread")]
async fn the_status_says_what_may_not_be_read() {
    let Some(site) = Site::new(plane::cilium::state("1.20.0", "03").await).await else { return };
    let digest = site.digest(&[]);
    let _one = site.controller("one");
    apply(&site.plane, &[talos_cluster(&digest, &json!({ "preset": "cilium" }))]);
    site.until("HandedOver", 120).await;
    let account = ["-n", "default", "create", "serviceaccount", "looks"];
    site.kubectl(&account);
    let token = site.kubectl(&["-n", "default", "create", "token", "looks"]);
    let looks = site.plane.folder().join("looks.kubeconfig");
    site.plane.write_kubeconfig(&looks, &site.plane.url(), token.trim()).unwrap();
    let status = |more: &[&str]| {
        let arguments = [&["cluster", "status"], more].concat();
        let mut command = site.command(&arguments);
        let output = command.env("KUBECONFIG", &looks).output().unwrap();
        let told = crate::cli::told(&output);
        println!("{}{}[{:?}]\n", told.out, told.err, told.code);
        told
    };
    status(&[]).expect(2, &["talosclusters", "default:looks"]);

    let role = ["create", "clusterrole", "looks", "--verb=get,list"];
    site.kubectl(&[role.as_slice(), &["--resource=talosclusters.ichor.maesh.dev"]].concat());
    let binding = ["create", "clusterrolebinding", "looks", "--clusterrole=looks"];
    site.kubectl(&[binding.as_slice(), &["--serviceaccount=default:looks"]].concat());
    let told = status(&[]);
    let lines = ["> CNIHandover: True (HandedOver)", "> release: not seen (", "> controller: "];
    told.expect(0, &lines);
    let data = status(&["--output=json"]);
    let data: Value = serde_json::from_str(&data.out).unwrap();
    assert_eq!(data["clusters"][0]["metadata"]["name"], "cluster");
    assert_eq!(data["release"], Value::Null);
    assert!(data["unread"][0].as_str().unwrap().contains("forbidden"), "{data}");
}
