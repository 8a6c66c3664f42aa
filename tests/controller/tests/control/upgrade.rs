//! The controller is upgraded while it hands a cluster over: the old chart's pods go, the new ones
//! come, by ichor and by real Helm, and the Job that is at work is the only one.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use controller_tests::chart;
use controller_tests::handed::{HandOver, assert_same, pauses};
use controller_tests::site::Site;
use helm_rs::cluster::Moment;
use serde_json::Value;

/// A column that the older definition has not.
const NEW_COLUMN: &str = "Who operates the CNI";

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// The chart as it was in another version; the older one's definition lacks a column.
fn chart_of(site: &Site, version: &str, is_old: bool) -> PathBuf {
    let folder = site.plane.folder().join(format!("chart-{version}"));
    copy(&chart(), &folder);
    let edit = |file: &str, change: &dyn Fn(&str) -> String| {
        let path = folder.join(file);
        let text = fs::read_to_string(&path).unwrap();
        let changed = change(&text);
        assert_ne!(changed, text, "{file}");
        fs::write(path, changed).unwrap();
    };
    edit("Chart.yaml", &|text| {
        let lines = text.lines().map(|line| match line.split_once(": ") {
            Some((key @ ("version" | "appVersion"), _)) => format!("{key}: {version}"),
            _ => line.to_owned(),
        });
        lines.collect::<Vec<_>>().join("\n") + "\n"
    });
    if is_old {
        edit("crds/talosclusters.yaml", &|text| {
            let (before, rest) =
                text.split_once(&format!("    - description: {NEW_COLUMN}")).unwrap();
            let (_, after) = rest.split_once("\n    - ").unwrap();
            format!("{before}    - {after}")
        });
    }
    folder
}

/// Waits until the Deployment's pods are those of its newest template, and one of them acts.
async fn rolled_out(site: &Site, image: &str) {
    let status = ["rollout", "status", "deploy/ichor-controller", "--timeout=120s"];
    let began = Instant::now();
    site.kubectl(&[["-n", "ichor-system"].as_slice(), &status].concat());
    let rolled = began.elapsed().as_secs_f64();
    for _ in 0..300 {
        let holder = site.kubectl(&[
            "-n",
            "ichor-system",
            "get",
            "lease",
            "ichor-controller",
            "--ignore-not-found",
            "-o",
            "jsonpath={.spec.holderIdentity}",
        ]);
        let pods = site.get(&["-n", "ichor-system", "pods"]);
        let pods = pods["items"].as_array().unwrap();
        let is_new = |pod: &&Value| {
            pod["metadata"]["deletionTimestamp"].is_null()
                && pod["spec"]["containers"][0]["image"] == image
        };
        if pods.iter().filter(is_new).any(|pod| pod["metadata"]["name"] == holder.as_str()) {
            let acts = began.elapsed().as_secs_f64();
            println!("{image}: rolled out in {rolled:.1} s, one of them acts after {acts:.1} s");
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("no controller of {image} acts: {}", site.kubectl(&["get", "pods,leases", "-A"]));
}

/// A hand-over whose controller is upgraded in the middle.
async fn upgraded(by_helm: bool) -> Option<controller_tests::handed::Left> {
    let site = HandOver::without_chart().await?;
    let (old, new) = (chart_of(&site, "0.0.9", true), chart_of(&site, "0.9.0", false));
    site.install(&old, &[]);
    rolled_out(&site, "example.org/ichor:0.0.9").await;
    let over = HandOver::of(site).await;
    let site = &over.site;
    let mut pauses = pauses(&over.proxy, Moment::Before);
    over.begin();
    let held = over.hold(&mut pauses, 12).await.expect("the Job has that write");
    over.proxy.clear();
    drop(pauses);
    let first = site.get(&["-n", "kube-system", "job", "ichor-cni"]);
    // The definition first, as the manual says.
    let crds = new.join("crds").display().to_string();
    let definition = ["apply", "--server-side", "--force-conflicts", "-f", &crds];
    println!("{}", site.kubectl(&definition));
    let path = new.display().to_string();
    let flags = ["ichor", &path, "-n", "ichor-system"];
    if by_helm {
        let mut helm = site.plane.helm().unwrap();
        println!("{}", plane::support::run(helm.arg("upgrade").args(flags)).unwrap());
    } else {
        println!("{}", site.ichor(&[["release", "upgrade"].as_slice(), &flags].concat()));
    }
    rolled_out(site, "example.org/ichor:0.9.0").await;
    // What is held is no controller's business: the Job goes on with what it was made of.
    held.release();
    let left = over.end(1).await;
    let last = site.get(&["-n", "kube-system", "job", "ichor-cni"]);
    assert_eq!(last["metadata"]["uid"], first["metadata"]["uid"]);
    let image = &last["spec"]["template"]["spec"]["containers"][0]["image"];
    assert_eq!(*image, "example.org/ichor:0.0.9", "the Job of the old one");
    assert_eq!(site.event_reasons(), ["JobCreated", "HandedOver"]);
    let columns = site.kubectl(&["get", "talosclusters"]);
    println!("{columns}");
    assert!(columns.starts_with("NAME      PRESET   CNI"), "{columns}");
    Some(left)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_of_the_controller_leaves_the_hand_over_correct() {
    let (by_ichor, by_helm) = futures::join!(upgraded(false), upgraded(true));
    let (Some(mut by_ichor), Some(mut by_helm)) = (by_ichor, by_helm) else { return };
    // Made of the same chart, by release records with times of their own.
    for left in [&mut by_ichor, &mut by_helm] {
        left.retain(|name, _| !name.contains("ControllerRevision"));
    }
    assert_same(&by_ichor, &by_helm, "by ichor as by Helm");
}
