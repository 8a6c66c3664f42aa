//! A6: versions; A7: what is never changed; A13: records of every kind; A14: generated material.

use plane::Plane;
use takeover::plan::Outcome;
use takeover_tests::{Bed, assert_forecast, helm_install, kube_proxy_on, prepared, values_path};

#[tokio::test(flavor = "multi_thread")]
async fn a6_versions() {
    for (version, reason) in [("1.18.0", "too old"), ("1.17.18", "too old"), ("1.16.19", "too old")]
    {
        let Some(bed) = Bed::with_cilium(version, "01").await else { return };
        let plan = bed.refused(None, false).await;
        println!("{version} is {reason}");
        let refusal = plan.refusals.iter().find(|refusal| refusal.reason == "Version").unwrap();
        assert!(refusal.message.contains("1.19"), "{}", refusal.message);
        assert_eq!(plan.digest, "");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a6_one_minor_older_is_an_upgrade() {
    for number in ["01", "03"] {
        let Some(bed) = Bed::with_cilium("1.19.6", number).await else { return };
        if number == "03" {
            takeover_tests::kube_proxy(&bed);
        }
        let prepared = bed.plan(None).await;
        println!("{}", takeover::plan::to_text(&prepared.plan, false));
        let plan = &prepared.plan;
        assert_eq!(plan.outcome, Outcome::Upgrade);
        let before = bed.footprints().await;
        bed.take_over(None, plan).await.unwrap();
        let after = bed.footprints().await;
        assert!(plan.restarts.len() >= 3, "{:?}", plan.restarts);
        assert_forecast(&before, &after, plan);
        assert!(bed.helm(&["list", "-A"]).contains("cilium-1.20.0"));
        bed.plane.stop();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a6_a_newer_minor() {
    let Some(bed) = Bed::with_cilium("1.20.0", "01").await else { return };
    bed.kubectl(&["-n", "kube-system", "delete", "secret", "-l", "owner=helm"]);
    bed.kubectl(&[
        "-n",
        "kube-system",
        "set",
        "image",
        "ds/cilium",
        "cilium-agent=quay.io/cilium/cilium:v1.21.0",
    ]);
    bed.kubectl(&["-n", "kube-system", "rollout", "status", "ds/cilium", "--timeout=90s"]);
    let plan = bed.refused(None, false).await;
    assert!(plan.refusals.iter().any(|r| r.reason == "Version" && r.message.contains("newer")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a7_routing_and_tunnel_are_kept() {
    for (name, set, data) in [
        (
            "native",
            "routingMode=native,ipv4NativeRoutingCIDR=10.0.0.0/8",
            ("routing-mode", "native"),
        ),
        ("geneve", "tunnelProtocol=geneve", ("tunnel-protocol", "geneve")),
        ("vxlan", "tunnelProtocol=vxlan", ("tunnel-protocol", "vxlan")),
    ] {
        let bed = prepared(&format!("a7-{name}"), "1", move |plane: &Plane| {
            kube_proxy_on(plane);
            let set = format!("ipam.mode=kubernetes,{set}");
            helm_install(plane, "cilium", "kube-system", "1.20.0", &["--set", &set]);
        })
        .await;
        let Some(bed) = bed else { return };
        let prepared = bed.plan(None).await;
        assert!(
            prepared.plan.gate_is_empty(),
            "{}",
            takeover::plan::to_text(&prepared.plan, false)
        );
        bed.take_over(None, &prepared.plan).await.unwrap();
        let path = format!("jsonpath={{.data.{}}}", data.0);
        let live = bed.kubectl(&["-n", "kube-system", "get", "cm", "cilium-config", "-o", &path]);
        assert_eq!(live, data.1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a7_cluster_pool_is_refused() {
    let bed = prepared("a7-cluster-pool", "1", |plane: &Plane| {
        kube_proxy_on(plane);
        helm_install(plane, "cilium", "kube-system", "1.20.0", &[]);
    })
    .await;
    let Some(bed) = bed else { return };
    let plan = bed.refused(None, false).await;
    assert!(plan.refusals.iter().any(|refusal| refusal.reason == "Ipam"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a3_as_the_cilium_cli_installs() {
    let bed = prepared("a3-cli", "1", |plane: &Plane| {
        kube_proxy_on(plane);
        let set = "ipam.mode=kubernetes,cluster.name=test,routingMode=tunnel,tunnelProtocol=vxlan,\
                   operator.replicas=1";
        helm_install(plane, "cilium", "kube-system", "1.20.0", &["--set", set]);
    })
    .await;
    let Some(bed) = bed else { return };
    let before = bed.footprints().await;
    let prepared = bed.plan(None).await;
    assert!(prepared.plan.gate_is_empty(), "{}", takeover::plan::to_text(&prepared.plan, false));
    let done = bed.take_over(None, &prepared.plan).await.unwrap();
    assert_eq!(done.records.deleted.len(), 1);
    assert_forecast(&before, &bed.footprints().await, &prepared.plan);
}

pub(super) async fn with_defaults() -> Option<Bed> {
    prepared("a14-defaults", "1", |plane: &Plane| {
        kube_proxy_on(plane);
        helm_install(plane, "cilium", "kube-system", "1.20.0", &["--set", "ipam.mode=kubernetes"]);
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a14_generated_certificates_are_kept() {
    let Some(bed) = with_defaults().await else { return };
    let secrets =
        ["-n", "kube-system", "get", "secrets", "-o", "json", "cilium-ca", "hubble-server-certs"];
    let before = bed.kubectl(&secrets);
    let prepared = bed.plan(None).await;
    println!("{}", takeover::plan::to_text(&prepared.plan, true));
    assert!(prepared.plan.gate_is_empty());
    bed.take_over(None, &prepared.plan).await.unwrap();
    assert_eq!(bed.kubectl(&secrets), before, "nothing is rotated");
}

/// Moves the release's records into ConfigMaps, as `HELM_DRIVER=configmap` has them.
#[tokio::test(flavor = "multi_thread")]
async fn a13_config_map_driver() {
    let values = values_path("01");
    let bed = prepared("a13-configmaps", "1", move |plane: &Plane| {
        let mut helm = plane.helm().unwrap();
        helm.env("HELM_DRIVER", "configmap")
            .args(["install", "cilium"])
            .arg(plane::cilium::chart("1.20.0").unwrap())
            .args(["--namespace", "kube-system", "--wait", "--timeout", "3m", "--values", &values]);
        plane::support::run(&mut helm).unwrap();
    })
    .await;
    let Some(bed) = bed else { return };
    let prepared = bed.plan(None).await;
    assert!(prepared.plan.gate_is_empty());
    assert_eq!(prepared.plan.records[0].about.kind, "ConfigMap");
    let done = bed.take_over(None, &prepared.plan).await.unwrap();
    assert_eq!(done.records.deleted, ["ConfigMap kube-system/sh.helm.release.v1.cilium.v1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a13_newest_failed_and_newest_pending_and_gone() {
    let Some(bed) = Bed::with_cilium("1.20.0", "01").await else { return };
    let edit = |status: &str| {
        let name = "sh.helm.release.v1.cilium.v2";
        let text = bed.kubectl(&[
            "-n",
            "kube-system",
            "get",
            "secret",
            "sh.helm.release.v1.cilium.v1",
            "-o",
            "json",
        ]);
        let mut secret: serde_json::Value = serde_json::from_str(&text).unwrap();
        let stored = secret["data"]["release"].as_str().unwrap().to_owned();
        let record = takeover_tests::edit_record(&stored, 2, status);
        secret["data"]["release"] = record.into();
        let metadata = &mut secret["metadata"];
        metadata["name"] = name.into();
        metadata["labels"]["version"] = "2".into();
        metadata["labels"]["status"] = status.into();
        for field in ["uid", "resourceVersion", "creationTimestamp", "managedFields"] {
            metadata.as_object_mut().unwrap().remove(field);
        }
        let file = bed.plane.folder().join("record.json");
        std::fs::write(&file, secret.to_string()).unwrap();
        bed.kubectl_with(&["apply", "--server-side", "--force-conflicts", "-f"], &file);
    };
    edit("pending-upgrade");
    let plan = bed.refused(None, false).await;
    assert!(plan.refusals.iter().any(|r| r.reason == "Pending" && r.message.contains("repair")));
    edit("failed");
    let plan = bed.plan(None).await.plan;
    println!("{}", plan.found.provenance);
    assert!(plan.found.provenance.contains("revision 2 failed"));
    assert_eq!((plan.outcome, plan.records.len()), (Outcome::TakeOver, 2));
    bed.kubectl(&["-n", "kube-system", "delete", "secret", "-l", "owner=helm"]);
    let plan = bed.plan(Some(&takeover_tests::values("01"))).await.plan;
    println!("{}", plan.found.provenance);
    assert!(plan.found.provenance.contains("there is no record"));
    assert!(plan.gate_is_empty());
}
