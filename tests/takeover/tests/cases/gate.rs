//! The gate's first proof: no false alarm. What real Helm installed is what the chart renders.

use std::collections::BTreeSet;

use helm_rs::cluster::{ErrorKind, Kind, Target, WriteOptions};
use serde_json::{Value, json};
use takeover::gate::{Wanted, classify, desired, normalize, patch};
use takeover::plan::{Action, ObjectPlan, Outcome, Plan, to_text};
use takeover_tests::{Bed, assert_forecast, installed, kube_proxy};

fn object<'a>(plan: &'a Plan, kind: &str, name: &str) -> &'a ObjectPlan {
    plan.objects.iter().find(|o| o.about.kind == kind && o.about.name == name).unwrap()
}

fn others(object: &ObjectPlan) -> Vec<(&str, &str)> {
    object.others.iter().map(|other| (other.path.as_str(), other.manager.as_str())).collect()
}

/// After real Helm installed the chart, nothing differs, nothing stays, nothing is missing.
#[tokio::test(flavor = "multi_thread")]
async fn gate_is_empty_for_every_value_set() {
    for number in ["01", "02", "03", "05", "06", "09", "defaults"] {
        let Some(bed) = installed(number).await else { return };
        let plan = bed.plan(None).await.plan;
        let figures = plan.figures();
        println!("values {number}: {figures:?}");
        assert_eq!(
            (figures.differences, figures.residue, figures.creations, figures.restarts),
            (0, 0, 0, 0),
            "values {number}: {}",
            to_text(&plan, true)
        );
        assert_eq!(plan.outcome, Outcome::TakeOver, "{:?}", plan.refusals);
        bed.plane.stop();
    }
}

/// What controllers and a rollout restart write is others', and no difference.
#[tokio::test(flavor = "multi_thread")]
async fn gate_stays_empty_after_a_rollout_restart() {
    let Some(bed) = Bed::with_cilium("1.20.0", "03").await else { return };
    kube_proxy(&bed);
    for workload in ["ds/cilium-envoy", "deploy/cilium-operator"] {
        bed.kubectl(&["-n", "kube-system", "rollout", "restart", workload]);
        bed.kubectl(&["-n", "kube-system", "rollout", "status", workload, "--timeout=90s"]);
    }
    let plan = bed.plan(None).await.plan;
    assert!(plan.gate_is_empty(), "{}", to_text(&plan, true));
    let marks = plan
        .objects
        .iter()
        .flat_map(|object| &object.others)
        .filter(|other| other.path.contains("restartedAt"))
        .count();
    assert_eq!(marks, 2);
    let before = bed.footprints().await;
    bed.take_over(None, &plan).await.unwrap();
    // The mark stays, no pod restarts.
    assert_forecast(&before, &bed.footprints().await, &plan);
}

/// What an autoscaler drives is left out of the write, and an object with nothing else to say is
/// not written at all.
#[tokio::test(flavor = "multi_thread")]
async fn gate_stays_empty_with_an_autoscaler() {
    let Some(bed) = Bed::with_cilium("1.20.0", "01").await else { return };
    let system = ["-n", "kube-system"];
    let operator = |what: &str| {
        let path = format!("jsonpath={{{what}}}");
        bed.kubectl(&[system[0], system[1], "get", "deploy", "cilium-operator", "-o", &path])
    };
    let scaler = json!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "operator", "namespace": "kube-system"},
        "spec": {
            "minReplicas": 3, "maxReplicas": 4,
            "scaleTargetRef": {
                "apiVersion": "apps/v1", "kind": "Deployment", "name": "cilium-operator",
            },
            "metrics": [{"type": "Resource", "resource": {
                "name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80},
            }}],
        },
    });
    let file = bed.plane.folder().join("scaler.json");
    std::fs::write(&file, scaler.to_string()).unwrap();
    bed.kubectl_with(&["apply", "-f"], &file);
    let scaled = "--for=jsonpath={.status.readyReplicas}=3";
    bed.kubectl(&[system[0], system[1], "wait", scaled, "deploy/cilium-operator", "--timeout=90s"]);
    let plan = bed.plan(None).await.plan;
    assert!(plan.gate_is_empty(), "{}", to_text(&plan, true));
    let scaled = object(&plan, "Deployment", "cilium-operator");
    assert_eq!(scaled.action, Action::Keep);
    assert!(others(scaled).contains(&("spec.replicas", "kube-controller-manager")), "{scaled:?}");
    // Something to write beside: the replicas are left out of it.
    let label = "app.kubernetes.io/managed-by-";
    bed.kubectl(&[system[0], system[1], "label", "deploy", "cilium-operator", label]);
    let plan = bed.plan(None).await.plan;
    assert!(plan.gate_is_empty());
    let written = object(&plan, "Deployment", "cilium-operator");
    assert_eq!((written.action, written.ownership.len()), (Action::Patch, 1), "{written:?}");
    let before = bed.footprints().await;
    bed.take_over(None, &plan).await.unwrap();
    assert_forecast(&before, &bed.footprints().await, &plan);
    assert_eq!(operator(".spec.replicas"), "3");
    assert_eq!(operator(".metadata.labels.app\\.kubernetes\\.io/managed-by"), "Helm");
}

/// What controllers write beside their status, with who did; what a person adds is residue.
#[tokio::test(flavor = "multi_thread")]
async fn gate_tells_controllers_from_people() {
    let Some(bed) = Bed::with_cilium("1.20.0", "01").await else { return };
    for (manager, kind, name, mark) in [
        ("cilium-operator-generic", "service", "cilium-envoy", "operator.example/seen=yes"),
        ("kube-controller-manager", "serviceaccount", "cilium", "controller.example/seen=yes"),
        ("cert-manager-issuing", "configmap", "cilium-config", "cert.example/seen=yes"),
        ("person", "configmap", "cilium-envoy-config", "person.example/seen=yes"),
    ] {
        let manager = format!("--field-manager={manager}");
        bed.kubectl(&["-n", "kube-system", "annotate", &manager, kind, name, mark]);
    }
    // A status that a controller wrote is left out, whatever it says.
    let condition = r#"{"status":{"conditions":[{"type":"Seen","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}"#;
    let status = ["patch", "service", "cilium-envoy", "--subresource=status", "--type=merge", "-p"];
    bed.kubectl(&[&["-n", "kube-system"][..], &status, &[condition]].concat());
    let plan = bed.plan(None).await.plan;
    let figures = plan.figures();
    assert_eq!((figures.differences, figures.creations, figures.restarts), (0, 0, 0));
    for (kind, name, path, manager) in [
        ("Service", "cilium-envoy", "operator.example/seen", "cilium-operator-generic"),
        ("ServiceAccount", "cilium", "controller.example/seen", "kube-controller-manager"),
        ("ConfigMap", "cilium-config", "cert.example/seen", "cert-manager-issuing"),
    ] {
        let path = format!("metadata.annotations[\"{path}\"]");
        let found = object(&plan, kind, name);
        assert!(others(found).contains(&(path.as_str(), manager)), "{found:?}");
    }
    let left: Vec<(&str, &str)> = plan
        .objects
        .iter()
        .flat_map(|object| &object.residue)
        .map(|left| (left.path.as_str(), left.manager.as_str()))
        .collect();
    assert_eq!(left, [("metadata.annotations[\"person.example/seen\"]", "person")]);
}

/// CA bundles belong to whoever injects them, whether the chart renders one or not. Cilium's chart
/// has no object with one, so that these are made here, as Helm makes them.
#[tokio::test(flavor = "multi_thread")]
async fn gate_names_injected_ca_bundles() {
    let Some(bed) = Bed::with_cilium("1.20.0", "01").await else { return };
    let hook = |bundle: Option<&str>| {
        let mut config = json!({
            "service": {"name": "hook", "namespace": "default", "path": "/check"},
        });
        if let Some(bundle) = bundle {
            config["caBundle"] = bundle.into();
        }
        config
    };
    let webhook = |kind: &str, name: &str, config: Value| {
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
            "metadata": {"name": name},
            "webhooks": [{
                "name": "check.example.org", "admissionReviewVersions": ["v1"],
                "sideEffects": "None", "failurePolicy": "Ignore", "clientConfig": config,
                "rules": [{
                    "apiGroups": ["none.example.org"], "apiVersions": ["v1"],
                    "operations": ["CREATE"], "resources": ["nothings"],
                }],
            }],
        })
    };
    let service = json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": {"name": "v1.none.example.org"},
        "spec": {
            "group": "none.example.org", "version": "v1", "groupPriorityMinimum": 1000,
            "versionPriority": 15, "service": {"name": "hook", "namespace": "default"},
        },
    });
    // The certificate is not looked at where the server needs none: any base64 of a PEM block.
    let (first, second) = (certificate(&bed, "first"), certificate(&bed, "second"));
    let at = "/webhooks/0/clientConfig/caBundle";
    for (rendered, place, manager) in [
        (webhook("ValidatingWebhookConfiguration", "bare", hook(None)), at, "cainjector"),
        (webhook("ValidatingWebhookConfiguration", "set", hook(Some(&first))), at, "cainjector"),
        (webhook("MutatingWebhookConfiguration", "other", hook(None)), at, "my-injector"),
        (service, "/spec/caBundle", "cainjector"),
    ] {
        let discovery = bed.cluster.discovery(false).await.unwrap();
        let resource = discovery.resource(&Kind::of(&rendered)).unwrap();
        let target = Target::of(resource, &rendered, "");
        let by = |manager: &str, dry_run| WriteOptions {
            field_manager: manager.to_owned(),
            dry_run,
            ..WriteOptions::default()
        };
        bed.cluster.create(&target, &rendered, &by("helm", false)).await.unwrap();
        // The server's own controllers write its status at the same time.
        let live = loop {
            let mut live = bed.cluster.get(&target).await.unwrap();
            if place == at {
                live["webhooks"][0]["clientConfig"]["caBundle"] = second.as_str().into();
            } else {
                live["spec"]["caBundle"] = second.as_str().into();
            }
            match bed.cluster.update(&target, &live, &by(manager, false)).await {
                Ok(live) => break live,
                Err(error) => assert_eq!(error.kind(), ErrorKind::Conflict, "{error}"),
            }
        };
        let mut wanted = Wanted { object: rendered, generated: BTreeSet::new() };
        normalize(&mut wanted.object);
        let desired = desired(&wanted, &live);
        let after = match patch(&desired.object, &live).unwrap() {
            Some(patch) => bed.cluster.patch(&target, &patch, &by("helm", true)).await.unwrap(),
            None => live.clone(),
        };
        assert_eq!(after.pointer(place), Some(&Value::from(second.as_str())), "{target}");
        let classes = classify(&live, &after, &desired);
        assert_eq!((&classes.differences, &classes.residue), (&vec![], &vec![]), "{target}");
        let found: Vec<_> = classes
            .others
            .iter()
            .filter(|(path, _)| path.last_key() == "caBundle")
            .map(|(_, manager)| manager.as_str())
            .collect();
        assert_eq!(found, [manager], "{target}");
    }
    // An API group that is down does not keep a plan from being made.
    assert!(bed.plan(None).await.plan.gate_is_empty());
}

/// A certificate in base64: the plane's own, with a comment to tell two apart.
fn certificate(bed: &Bed, comment: &str) -> String {
    use base64::Engine as _;
    let pem = bed.plane.pki().ca_certificate().unwrap();
    base64::engine::general_purpose::STANDARD.encode(format!("# {comment}\n{pem}"))
}
