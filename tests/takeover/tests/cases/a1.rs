//! A1: `helm template`, applied server-side as Talos does, and by plain `kubectl apply`.

use plane::Plane;
use serde_json::{Value, json};
use takeover::plan::Outcome;
use takeover_tests::{Bed, assert_forecast, prepared, values, values_path};

/// What `helm template` renders for the plane, as a list; `annotation` is put on every object.
pub(crate) fn rendered(plane: &Plane, number: &str, annotation: Option<(&str, &str)>) -> String {
    let mut helm = plane.helm().unwrap();
    helm.arg("template").arg("cilium").arg(plane::cilium::chart("1.20.0").unwrap());
    helm.args(["--namespace", "kube-system", "--kube-version", plane.kubernetes_version()]);
    helm.args(["--values", &values_path(number)]);
    for api in [
        "monitoring.coreos.com/v1",
        "cert-manager.io/v1",
        "gateway.networking.k8s.io/v1/GatewayClass",
    ] {
        helm.args(["--api-versions", api]);
    }
    let text = plane::support::run(&mut helm).unwrap();
    let mut items = Vec::new();
    for mut document in helm_rs::manifest::split_manifests(text.as_bytes()) {
        // Splitting trims; the newline belongs to a block scalar at the end.
        document.push(b'\n');
        let value = goyaml::from_yaml(&document, &goyaml::Limits::default()).unwrap();
        let json = goyaml::json::to_json(&value).unwrap();
        let mut object: Value = serde_json::from_str(&json).unwrap();
        if let (Some((key, value)), true) = (annotation, object.is_object()) {
            if !object["metadata"]["annotations"].is_object() {
                object["metadata"]["annotations"] = json!({});
            }
            object["metadata"]["annotations"][key] = value.into();
        }
        if object.is_object() {
            items.push(object);
        }
    }
    json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string()
}

fn apply(plane: &Plane, list: &str, arguments: &[&str]) {
    let file = plane.folder().join("template.json");
    std::fs::write(&file, list).unwrap();
    let mut kubectl = plane.kubectl().unwrap();
    plane::support::run(kubectl.arg("apply").args(arguments).arg("-f").arg(&file)).unwrap();
    for workload in ["ds/cilium", "ds/cilium-envoy", "deploy/cilium-operator"] {
        let mut kubectl = plane.kubectl().unwrap();
        kubectl.args(["-n", "kube-system", "rollout", "status", workload, "--timeout=90s"]);
        plane::support::run(&mut kubectl).unwrap();
    }
}

/// Takes it over and checks what A1 and A4 say.
async fn check(bed: &Bed, number: &str) {
    let before = bed.footprints().await;
    let values = values(number);
    let prepared = bed.plan(Some(&values)).await;
    println!("{}", takeover::plan::to_text(&prepared.plan, false));
    let figures = prepared.plan.figures();
    assert_eq!(prepared.plan.outcome, Outcome::TakeOver);
    assert_eq!(
        (figures.differences, figures.residue, figures.creations, figures.restarts),
        (0, 0, 0, 0)
    );
    assert!(figures.ownership > 0);
    let done = bed.take_over(Some(&values), &prepared.plan).await.unwrap();
    assert!(!done.patched.is_empty());
    assert_forecast(&before, &bed.footprints().await, &prepared.plan);
    let list = bed.helm(&["list", "-A"]);
    assert!(list.contains("ichor-system\t") || list.contains("kube-system"), "{list}");
    assert_eq!(bed.plan(None).await.plan.outcome, Outcome::Nothing);
}

pub(super) async fn as_talos_applies_it() -> Option<Bed> {
    prepared("template-talos-01", "2", |plane: &Plane| {
        let list = rendered(plane, "01", Some(("config.k8s.io/owning-inventory", "talos")));
        apply(plane, &list, &["--server-side", "--field-manager=talos"]);
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a1_inline_manifest_as_talos_applies_it() {
    let Some(bed) = as_talos_applies_it().await else { return };
    let plan = bed.plan(Some(&values("01"))).await.plan;
    assert!(plan.figures().others >= plan.objects.len(), "the inventory annotation is Talos'");
    check(&bed, "01").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a1_plain_kubectl_apply() {
    let bed = prepared("template-kubectl-01", "2", |plane: &Plane| {
        apply(plane, &rendered(plane, "01", None), &[]);
    })
    .await;
    let Some(bed) = bed else { return };
    check(&bed, "01").await;
}
