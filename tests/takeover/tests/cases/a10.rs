//! A10: the Job with exactly the rights of its manifest takes over; with one right less it refuses
//! before it writes anything, and names the rule and the Role.

use std::collections::BTreeSet;
use std::time::Instant;

use goyaml::Map;
use helm_rs::action::rights::Right;
use helm_rs::error_chain;
use plane::Plane;
use takeover::job;
use takeover::plan::Outcome;
use takeover_tests::job::{Permission, Worker, permissions, without};
use takeover_tests::{Bed, helm_install, kube_proxy_on, prepared, records, values, values_path};

const JOB: &str = "system:serviceaccount:kube-system:ichor-cni";
/// Permissions that are taken away in each scenario, unless `ICHOR_RIGHTS_PROOF` asks for all.
const SAMPLE: usize = 6;

/// Takes permissions away one by one, then takes over with all of them.
async fn check(name: &str, bed: &Bed, values: Option<&Map>) {
    let began = Instant::now();
    let admin = bed.plan(values).await;
    assert!(!admin.plan.is_refused(), "{name}: {:?}", admin.plan.refusals);
    // What was recovered goes with the Job.
    let values = values.or(admin.recovered.as_ref());
    let before = bed.plan_for(values).await;
    assert!(!before.plan.rights.missing.is_empty(), "the Job may not do anything yet");
    let worker = bed.worker(&admin.needs).await;
    let roles = job::rights(&admin.needs);
    let all = permissions(&roles);
    let permitted = all.len();
    for permission in &all {
        let right = &permission.right;
        let parts = [&right.verb, &right.group, &right.resource, &right.name];
        assert!(parts.iter().all(|part| !part.contains('*')), "{permission:?} has a wildcard");
    }
    if let Some(last) = all.last() {
        bed.until_allowed(&last.right, true).await;
    }
    let reviewed = bed.plan_for(values).await.plan;
    assert_eq!(reviewed.rights.missing, [], "{name}: reviewed for the Job");
    let own = bed.plan_of(&worker, values).await.unwrap();
    assert_eq!(own.plan.refusals, [], "{name}: as the Job sees itself");
    assert_eq!(own.plan.digest, admin.plan.digest, "{name}: the Job plans the same");
    assert_eq!(own.plan.talos_inventory, admin.plan.talos_inventory, "{name}");
    assert_eq!(own.plan.objects, admin.plan.objects, "{name}");
    let mark = bed.plane.audit_log().mark();
    let (tried, few) = remove_each(name, bed, &worker, values, &admin.plan.digest, &roles).await;
    for write in bed.plane.audit_log().writes(JOB, mark).unwrap() {
        let lock = write.resource == "leases" && write.namespace == "ichor-system";
        assert!(lock, "{name}: a refused Job wrote: {write:?}");
    }
    let done = bed.run_of(&worker, values, &admin.plan.digest).await;
    let done = done.unwrap_or_else(|error| panic!("{name}: {}", error_chain(&error)));
    assert_eq!(bed.plan(None).await.plan.outcome, Outcome::Nothing, "{name}");
    // Once more, as a Job does that was started again.
    let again = bed.run_of(&worker, values, &admin.plan.digest).await;
    assert!(again.is_ok(), "{name}: {again:?}");
    // The rules of Roles to come are held so that the server lets the Job create these.
    let mirrored: Vec<&Right> = admin
        .needs
        .list
        .iter()
        .filter(|need| ["grants it", "binds a role"].iter().any(|w| need.needed_for.contains(w)))
        .flat_map(|need| need.alternatives.iter().flatten())
        .collect();
    let all: Vec<Permission> = all
        .into_iter()
        .filter(|Permission { right, .. }| {
            !mirrored.iter().any(|held| {
                (&held.verb, &held.group, &held.resource, &held.name)
                    == (&right.verb, &right.group, &right.resource, &right.name)
            })
        })
        .collect();
    let unused = unused(&all, &worker);
    assert_eq!(unused, [""; 0], "{name}: permissions that nothing needs");
    println!(
        "{name}: {} permissions in {} Roles, {tried} taken away{few}, {} patched, {} created, {} \
         records; {:.1} s",
        permitted,
        roles.len() / 2,
        done.patched.len(),
        done.created.len(),
        done.records.deleted.len(),
        began.elapsed().as_secs_f64()
    );
}

/// Takes away one permission after the other; how many, and a word on the rest.
async fn remove_each(
    name: &str,
    bed: &Bed,
    worker: &Worker,
    values: Option<&Map>,
    digest: &str,
    roles: &[serde_json::Value],
) -> (usize, String) {
    let all = permissions(roles);
    let whole = std::env::var_os("ICHOR_RIGHTS_PROOF").is_some();
    let step = if whole { 1 } else { all.len().div_ceil(SAMPLE) };
    // Another place to begin at in each scenario, the same one in every run.
    let start = if whole { 0 } else { name.len() % step };
    let (mut tried, mut told_wider) = (0, 0);
    for gone in all.iter().skip(start).step_by(step) {
        let fewer = without(roles, gone);
        assert!(!fewer.is_empty(), "{name}: nothing grants {gone:?}");
        bed.put_roles(&fewer).await;
        bed.until_allowed(&gone.right, false).await;
        let error = bed.run_of(worker, values, digest).await;
        let error = error.expect_err(&format!("{name}: without {gone:?}"));
        let text = error_chain(&error);
        assert!(error.is_refusal(), "{name}: without {gone:?}: {text}");
        if !names(&text, gone) {
            // Where a wider one had to go as well, that is the one to grant.
            let wider = gone_along(roles, &fewer, gone);
            let is_told = wider.iter().any(|one| names(&text, one));
            assert!(is_told, "{name}: without {gone:?}: {text}");
            told_wider += 1;
        }
        let changed = roles.iter().filter(|role| fewer.iter().any(|one| same(one, role)));
        let back: Vec<serde_json::Value> = changed.cloned().collect();
        bed.put_roles(&back).await;
        bed.until_allowed(&gone.right, true).await;
        tried += 1;
    }
    let told = match told_wider {
        0 => String::new(),
        count => format!(" ({count} times a wider one of them is named)"),
    };
    (tried, told + if whole { "" } else { " (a sample)" })
}

fn same(one: &serde_json::Value, other: &serde_json::Value) -> bool {
    one["kind"] == other["kind"] && one["metadata"] == other["metadata"]
}

/// Whether a refusal names a permission, and the Role that it is missing in. What a ClusterRole
/// holds for a namespace to come is named with that namespace.
fn names(refusal: &str, permission: &Permission) -> bool {
    let (right, place) = (permission.right.to_string(), permission.role.to_string());
    let of_role = format!("add it to {place}");
    let missing = |text: &str| {
        let Some((rule, _)) = text.split_once(" (") else { return false };
        let is_it = if permission.role.name == job::NEW_NAMESPACES_ROLE {
            rule == right || rule.starts_with(&format!("{right} in namespace "))
        } else {
            rule == right
        };
        is_it && text.ends_with(&of_role)
    };
    refusal.split("; ").any(|text| {
        let text = text.rsplit_once("in the middle: ").map_or(text, |(_, first)| first);
        missing(text)
    })
}

/// Permissions that went with one since they grant the same, and more.
fn gone_along(
    roles: &[serde_json::Value],
    fewer: &[serde_json::Value],
    gone: &Permission,
) -> Vec<Permission> {
    let left = permissions(fewer);
    let touched: Vec<serde_json::Value> =
        roles.iter().filter(|role| fewer.iter().any(|one| same(one, role))).cloned().collect();
    let mut along = permissions(&touched);
    along.retain(|one| {
        let (wide, right) = (&one.right, &gone.right);
        let covers = (&wide.verb, &wide.group, &wide.resource)
            == (&right.verb, &right.group, &right.resource)
            && (wide.namespace.is_empty() || wide.namespace == right.namespace)
            && (wide.name.is_empty() || wide.name == right.name);
        covers && one != gone && !left.contains(one)
    });
    along
}

/// Permissions that no request used and that serve no Role's grants.
fn unused(all: &[Permission], worker: &Worker) -> Vec<String> {
    let requests = worker.proxy.requests();
    let used = |permission: &Permission| {
        let right = &permission.right;
        requests.iter().any(|request| {
            request.verb == right.verb
                && request.group == right.group
                && request.resource == right.resource
                && (right.namespace.is_empty() || request.namespace == right.namespace)
                && (right.name.is_empty() || request.name == right.name)
        })
    };
    let unused: BTreeSet<String> = all
        .iter()
        .filter(|permission| !permission.is_for_granting() && !used(permission))
        .map(|permission| format!("{}: {}", permission.role, permission.right))
        .collect();
    unused.into_iter().collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a10_everything_is_there() {
    let Some(bed) = Bed::with_cilium("1.20.0", "01").await else { return };
    check("same owner", &bed, None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a10_records_in_another_namespace() {
    let Some(bed) = records::in_another_namespace().await else { return };
    check("records in infra", &bed, None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a10_records_in_config_maps() {
    let Some(bed) = records::three_revisions("configmap").await else { return };
    check("records in ConfigMaps", &bed, None).await;
}

/// The Job reads Talos' inventory as well, so that its plan is the operator's.
#[tokio::test(flavor = "multi_thread")]
async fn a10_on_talos() {
    let Some(bed) = crate::talos::with_01().await else { return };
    check("on Talos", &bed, None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a10_the_charts_roles_are_missing() {
    let bed = prepared("a10-no-roles", "1", move |plane: &Plane| {
        kube_proxy_on(plane);
        let set = "operator.replicas=1,gatewayAPI.enabled=true,ingressController.enabled=true,\
                   ingressController.service.type=NodePort,kubeProxyReplacement=true,k8sServiceHost=localhost,k8sServicePort=7445";
        let values = values_path("03");
        let more = ["-f", &values, "--set", set];
        helm_install(plane, "cilium", "kube-system", "1.20.0", &more);
        let mut kubectl = plane.kubectl().unwrap();
        let kinds = "role,rolebinding,clusterrole,clusterrolebinding";
        kubectl.args(["delete", kinds, "-A", "-l", "app.kubernetes.io/part-of=cilium"]);
        plane::support::run(&mut kubectl).unwrap();
        for arguments in [["delete", "namespace", "cilium-secrets"].as_slice(), &["-n", "kube-system", "delete", "ds", "kube-proxy"]] {
            plane::support::run(plane.kubectl().unwrap().args(arguments)).unwrap();
        }
    })
    .await;
    let Some(bed) = bed else { return };
    check("roles to come", &bed, None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a10_upgrade() {
    let Some(bed) = Bed::with_cilium("1.19.6", "01").await else { return };
    check("upgrade", &bed, None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a10_without_a_record() {
    let Some(bed) = Bed::with_cilium("1.20.0", "01").await else { return };
    bed.kubectl(&["-n", "kube-system", "delete", "secret", "-l", "owner=helm"]);
    let values = values_path("01");
    let from = format!("--from-file=io.cilium.cilium-cli={values}");
    let secret =
        ["-n", "kube-system", "create", "secret", "generic", "cilium-cli-helm-values", &from];
    bed.kubectl(&secret);
    check("the Cilium CLI's values", &bed, None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a10_recovered_values() {
    let Some(bed) = Bed::with_cilium("1.20.0", "01").await else { return };
    bed.kubectl(&["-n", "kube-system", "delete", "secret", "-l", "owner=helm"]);
    check("recovered values", &bed, None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a10_values_of_a_file() {
    let Some(bed) = Bed::with_cilium("1.20.0", "01").await else { return };
    bed.kubectl(&["-n", "kube-system", "delete", "secret", "-l", "owner=helm"]);
    check("a values file", &bed, Some(&values("01"))).await;
}
