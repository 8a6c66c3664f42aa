//! A5: what was added by hand is named; A11: a change between consent and run; A12: nothing is
//! written by a refusal.

use serde_json::json;
use takeover::plan::{Action, Cause};
use takeover::run::Denied;
use takeover::run::RunError;
use takeover_tests::{Bed, assert_forecast};

pub(super) fn add_by_hand(bed: &Bed) {
    let set = ["-n", "kube-system"];
    bed.kubectl(&[set[0], set[1], "annotate", "service", "cilium-envoy", "team=net"]);
    let patch = json!({"spec": {"template": {"spec": {"containers": [{
        "name": "cilium-operator",
        "args": ["--config-dir=/tmp/cilium/config-map", "--debug=$(CILIUM_DEBUG)", "--extra=1"],
        "env": [{"name": "EXTRA", "value": "1"}],
    }]}}}});
    let patch = patch.to_string();
    bed.kubectl(&[set[0], set[1], "patch", "deployment", "cilium-operator", "-p", &patch]);
    bed.kubectl(&[set[0], set[1], "create", "configmap", "cilium-extra", "--from-literal=a=b"]);
    bed.kubectl(&[
        set[0],
        set[1],
        "rollout",
        "status",
        "deployment/cilium-operator",
        "--timeout=60s",
    ]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a5_added_by_hand() {
    let Some(bed) = Bed::with_cilium("1.20.0", "01").await else { return };
    add_by_hand(&bed);
    let prepared = bed.plan(None).await;
    println!("{}", takeover::plan::to_text(&prepared.plan, false));
    let plan = &prepared.plan;
    let object = |kind: &str, name: &str| {
        plan.objects.iter().find(|o| o.about.kind == kind && o.about.name == name).unwrap()
    };
    let service = object("Service", "cilium-envoy");
    let residue: Vec<&str> = service.residue.iter().map(|r| r.path.as_str()).collect();
    assert_eq!(residue, ["metadata.annotations.team"]);
    let operator = object("Deployment", "cilium-operator");
    assert_eq!(operator.action, Action::Patch);
    let paths: Vec<&str> = operator.differences.iter().map(|d| d.path.as_str()).collect();
    assert_eq!(paths, ["spec.template.spec.containers[name=cilium-operator].args"]);
    assert_eq!(operator.differences[0].cause, Cause::OtherManager);
    assert_eq!(operator.residue.len(), 2, "name and value of the variable");
    assert_eq!(plan.restarts.len(), 1);
    assert_eq!(plan.restarts[0].about.name, "cilium-operator");
    assert_eq!(plan.consent.len(), 1);
    let untouched =
        bed.kubectl(&["-n", "kube-system", "get", "configmap", "cilium-extra", "-o", "json"]);
    let before = bed.footprints().await;
    bed.take_over(None, plan).await.unwrap();
    let after = bed.footprints().await;
    assert_forecast(&before, &after, plan);
    assert_eq!(
        bed.kubectl(&["-n", "kube-system", "get", "configmap", "cilium-extra", "-o", "json"]),
        untouched
    );
    let team = bed.kubectl(&[
        "-n",
        "kube-system",
        "get",
        "service",
        "cilium-envoy",
        "-o",
        "jsonpath={.metadata.annotations.team}",
    ]);
    assert_eq!(team, "net", "residue stays");
}

#[tokio::test(flavor = "multi_thread")]
async fn a11_changed_between_consent_and_run() {
    let Some(bed) = Bed::with_cilium("1.20.0", "01").await else { return };
    let prepared = bed.plan(None).await;
    bed.kubectl(&["-n", "kube-system", "annotate", "service", "cilium-envoy", "team=net"]);
    let mark = bed.plane.audit_log().mark();
    let error = bed.take_over(None, &prepared.plan).await.unwrap_err();
    println!("{error}");
    assert!(matches!(error, RunError::Denied(Denied::Digest { .. })), "{error}");
    assert!(error.is_refusal());
    let writes = bed.plane.audit_log().writes(plane::ADMIN_USER, mark).unwrap();
    let elsewhere: Vec<String> = writes
        .iter()
        .filter(|write| !takeover_tests::is_lock(write))
        .map(ToString::to_string)
        .collect();
    assert_eq!(elsewhere, [] as [String; 0], "only the namespace and the lock");
}

#[tokio::test(flavor = "multi_thread")]
async fn a12_a_refusal_writes_nothing() {
    let Some(bed) = Bed::with_cilium("1.20.0", "01").await else { return };
    bed.kubectl(&[
        "-n",
        "kube-system",
        "patch",
        "configmap",
        "cilium-config",
        "-p",
        r#"{"data": {"ipam": "cluster-pool"}}"#,
    ]);
    let plan = bed.refused(None, false).await;
    assert!(plan.refusals.iter().any(|refusal| refusal.reason == "Ipam"));
    // The control run: one object written trips both checks.
    let (mark, versions) = (bed.plane.audit_log().mark(), bed.versions().await);
    bed.kubectl(&["-n", "kube-system", "create", "configmap", "cilium-trip"]);
    let writes = bed.plane.audit_log().writes(plane::ADMIN_USER, mark).unwrap();
    assert_eq!(writes.iter().filter(|write| !takeover_tests::is_lock(write)).count(), 1);
    assert_ne!(bed.versions().await, versions);
}
