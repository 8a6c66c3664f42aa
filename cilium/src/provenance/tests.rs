use super::*;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

const NOW: i64 = 1_780_000_000;

fn agent(claim: Option<(&str, &str)>, manager: &str) -> Value {
    let mut object = json!({
        "kind": "DaemonSet",
        "metadata": {
            "name": "cilium",
            "namespace": "kube-system",
            "annotations": {},
            "managedFields": [
                {"manager": manager, "operation": "Update"},
                {"manager": "kube-controller-manager", "subresource": "status"},
            ],
        },
    });
    if let Some((name, namespace)) = claim {
        object["metadata"]["annotations"] = json!({
            "meta.helm.sh/release-name": name,
            "meta.helm.sh/release-namespace": namespace,
        });
    }
    object
}

fn manifest() -> String {
    "---\n# Source: cilium/templates/x.yaml\napiVersion: apps/v1\nkind: DaemonSet\nmetadata:\n  \
     name: cilium\n  namespace: kube-system\n"
        .to_owned()
}

/// A record of a release in its namespace.
fn record(place: &str, (name, namespace): (&str, &str), revision: i64, status: &str) -> Value {
    let json = json!({
        "name": name,
        "namespace": namespace,
        "version": revision,
        "info": {"status": status, "last_deployed": "2026-05-28T19:26:40.5+00:00"},
        "chart": {"metadata": {
            "name": "cilium", "version": "1.20.0", "appVersion": "1.20.0",
        }},
        "config": {"revision": revision, "cluster": {"name": "east"}},
        "manifest": manifest(),
    });
    let stored = helm_rs::release::encode(&json.to_string()).unwrap();
    json!({
        "metadata": {
            "name": format!("sh.helm.release.v1.{name}.v{revision}"),
            "namespace": place,
            "uid": format!("uid-{revision}"),
            "labels": {"owner": "helm", "name": name, "status": status},
        },
        "data": {"release": STANDARD.encode(stored)},
    })
}

fn as_config_map(mut secret: Value) -> Value {
    let data = STANDARD.decode(secret["data"]["release"].as_str().unwrap()).unwrap();
    secret["data"]["release"] = String::from_utf8(data).unwrap().into();
    secret
}

fn look(live: &[Value], secrets: &[Value]) -> Result<Provenance, ProvenanceError> {
    provenance(&Evidence { live, secrets, config_maps: &[], now: NOW })
}

fn release(found: Provenance) -> ForeignRelease {
    match found.source {
        Source::Release(release) => *release,
        other => panic!("{other:?}"),
    }
}

const CILIUM: (&str, &str) = ("cilium", "kube-system");

#[test]
fn a_helm_release_of_any_name_in_any_namespace() {
    for claim in [CILIUM, ("net", "infra")] {
        let secrets: Vec<_> = (1..=10)
            .map(|revision| {
                let status = if revision == 10 { "deployed" } else { "superseded" };
                record(claim.1, claim, revision, status)
            })
            .chain([record("other", ("web", "other"), 3, "pending-upgrade")])
            .collect();
        let found = look(&[agent(Some(claim), "helm")], &secrets).unwrap();
        assert_eq!(found.installer, Installer::Helm);
        let release = release(found);
        assert_eq!(release.history.revisions.len(), 10);
        assert_eq!((release.counts.revision, release.reason), (10, Counts::Deployed));
        assert_eq!(release.config.get("revision"), Some(&goyaml::Value::Float(10.0)));
        assert_eq!(release.app_version, "1.20.0");
    }
}

#[test]
fn records_in_config_maps_and_kept_elsewhere() {
    let live = [agent(Some(CILIUM), "cilium")];
    let config_maps = [as_config_map(record("flux", CILIUM, 2, "deployed"))];
    let evidence = Evidence { live: &live, secrets: &[], config_maps: &config_maps, now: NOW };
    let found = provenance(&evidence).unwrap();
    assert_eq!(found.installer, Installer::CiliumCli);
    let release = release(found);
    assert_eq!(release.counts.object.to_string(), "ConfigMap flux/sh.helm.release.v1.cilium.v2");
    // Of a revision in both drivers the Secret counts, and both are told.
    let secrets = [record("flux", CILIUM, 2, "deployed")];
    let evidence = Evidence { secrets: &secrets, ..evidence };
    let release = self::release(provenance(&evidence).unwrap());
    assert_eq!(release.history.revisions.len(), 2);
    assert_eq!(release.counts.object.kind, "Secret");
}

#[test]
fn which_record_counts() {
    let live = [agent(Some(CILIUM), "helm")];
    let counted = |statuses: &[&str]| {
        let secrets: Vec<_> = statuses
            .iter()
            .zip(1..)
            .map(|(status, revision)| record("kube-system", CILIUM, revision, status))
            .collect();
        look(&live, &secrets).map(|found| match found.source {
            Source::Release(release) => Some((release.counts.revision, release.reason)),
            _ => None,
        })
    };
    assert_eq!(
        counted(&["superseded", "deployed", "failed", "failed"]).unwrap(),
        Some((2, Counts::LastDeployed { failed: 4 }))
    );
    assert_eq!(
        counted(&["superseded", "failed"]).unwrap(),
        Some((1, Counts::LastDeployed { failed: 2 }))
    );
    assert_eq!(counted(&["failed"]).unwrap(), Some((1, Counts::OnlyFailed)));
    assert_eq!(counted(&["superseded", "uninstalled"]).unwrap(), None);
    for status in ["pending-install", "pending-upgrade", "pending-rollback", "uninstalling", "odd"]
    {
        let error = counted(&["deployed", status]).unwrap_err().to_string();
        let start = format!("release cilium in namespace kube-system is {status} at revision 2");
        assert!(error.starts_with(&start), "{error}");
        assert!(error.contains("since 1 h 0 min: another tool is at work on it"), "{error}");
        assert!(error.contains("`ichor release repair cilium --namespace kube-system`"), "{error}");
    }
}

#[test]
fn unreadable_records() {
    let live = [agent(Some(CILIUM), "helm")];
    let mut newest = record("kube-system", CILIUM, 2, "deployed");
    newest["data"]["release"] = "%%%".into();
    let older = record("kube-system", CILIUM, 1, "superseded");
    let error = look(&live, &[older.clone(), newest.clone()]).unwrap_err().to_string();
    assert!(
        error.starts_with("Secret kube-system/sh.helm.release.v1.cilium.v2 is a record"),
        "{error}"
    );
    // One that is broken and was the deployed one.
    let failed = record("kube-system", CILIUM, 3, "failed");
    assert!(look(&live, &[older.clone(), newest.clone(), failed.clone()]).is_err());
    newest["metadata"]["labels"]["status"] = "superseded".into();
    let found = look(&live, &[older, newest, failed]).unwrap();
    assert_eq!(release(found).counts.revision, 1);
    // Another release's broken record is no matter.
    let mut other = record("x", ("web", "x"), 1, "deployed");
    other["data"] = json!([1]);
    let mine = record("kube-system", CILIUM, 1, "deployed");
    assert!(look(&live, &[other, mine]).unwrap().unreadable.is_empty());
}

#[test]
fn no_record() {
    let cases = [
        (agent(None, "talos"), Installer::Talos),
        (agent(None, "kubectl-client-side-apply"), Installer::Kubectl),
        (agent(None, "argocd-controller"), Installer::Other("argocd-controller".into())),
        (agent(Some(CILIUM), "helm"), Installer::Helm),
    ];
    for (live, installer) in cases {
        let found = look(&[live], &[]).unwrap();
        assert_eq!(found.installer, installer);
        assert!(matches!(found.source, Source::NoRecord { cli: None }));
    }
    let found = look(&[agent(Some(CILIUM), "helm")], &[]).unwrap();
    assert_eq!(found.claim.unwrap().to_string(), "kube-system/cilium");
}

#[test]
fn a_release_that_lost_its_annotations_and_one_that_is_not_meant() {
    let secrets = [record("kube-system", CILIUM, 1, "deployed")];
    let found = look(&[agent(None, "kubectl-replace")], &secrets).unwrap();
    assert_eq!(release(found).counts.revision, 1);
    let found = look(&[agent(Some(("net", "infra")), "helm")], &secrets).unwrap();
    assert!(matches!(found.source, Source::NoRecord { .. }));
    assert_eq!(found.strays.len(), 1);
    let two =
        [record("kube-system", CILIUM, 1, "deployed"), record("b", ("b", "b"), 1, "deployed")];
    let error = look(&[agent(None, "x")], &two).unwrap_err().to_string();
    assert!(error.contains("(b/b, kube-system/cilium)"), "{error}");
}

#[test]
fn a_release_of_the_name_without_the_daemon_set_does_not_count() {
    let mut secret = record("kube-system", CILIUM, 1, "deployed");
    let json = json!({
        "name": "cilium", "namespace": "kube-system", "version": 1,
        "info": {"status": "deployed"}, "manifest": "kind: ConfigMap\n",
    });
    let stored = helm_rs::release::encode(&json.to_string()).unwrap();
    secret["data"]["release"] = STANDARD.encode(stored).into();
    let found = look(&[agent(Some(CILIUM), "helm")], &[secret]).unwrap();
    assert!(matches!(found.source, Source::NoRecord { .. }));
}

#[test]
fn our_own() {
    let live = [agent(Some(CILIUM), "ichor")];
    let own = record(RECORD_NAMESPACE, CILIUM, 1, "deployed");
    let found = look(&live, std::slice::from_ref(&own)).unwrap();
    assert!(matches!(found.source, Source::Own));
    assert_eq!(found.own.unwrap().newest().unwrap().status(), Status::Deployed);
    // Half-way: both are there.
    let found = look(&live, &[own, record("kube-system", CILIUM, 4, "deployed")]).unwrap();
    assert!(found.own.is_some());
    assert_eq!(release(found).counts.revision, 4);
}

#[test]
fn what_the_classic_cli_left() {
    let secret = |values: &str| {
        json!({
            "metadata": {"name": CLI_SECRET, "namespace": "kube-system"},
            "data": {
                "io.cilium.cilium-cli": STANDARD.encode(values),
                "io.cilium.chart-version": STANDARD.encode("1.19.6"),
            },
        })
    };
    let live = [agent(None, "cilium")];
    let found = look(&live, &[secret("cluster: {name: kind-kind}\n")]).unwrap();
    let Source::NoRecord { cli: Some(cli) } = found.source else { panic!() };
    assert_eq!(cli.chart_version, "1.19.6");
    assert!(cli.values.contains_key("cluster"));
    assert!(!format!("{cli:?}").contains("kind-kind"));
    let error = look(&live, &[secret("- marker")]).unwrap_err();
    let error = helm_rs::error_chain(&error);
    assert!(error.contains("is not a YAML table") && !error.contains("marker"), "{error}");
    let mut broken = secret("");
    broken["data"]["io.cilium.cilium-cli"] = json!({});
    assert!(look(&live, &[broken]).is_err());
}

#[test]
fn hostile_live_objects_are_errors() {
    for wrong in [
        json!({"annotations": [1]}),
        json!({"annotations": {"meta.helm.sh/release-name": 7}}),
        json!({"managedFields": {}}),
        json!({"managedFields": [{"manager": []}]}),
        json!({"managedFields": [{"manager": "x", "subresource": 1}]}),
    ] {
        let live = json!({"kind": "DaemonSet", "metadata": wrong});
        assert!(look(std::slice::from_ref(&live), &[]).is_err(), "{live}");
    }
    // Records that are no objects are passed over: they have no name.
    assert!(look(&[], &[json!(1), json!({"metadata": {"name": []}})]).is_ok());
}
