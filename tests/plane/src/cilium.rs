//! A plane with Cilium in it, as real Helm installs it.

use std::hash::{DefaultHasher, Hasher};
use std::path::PathBuf;
use std::sync::Arc;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::PostParams;
use kube::{Api, Client};
use serde_json::{Value, json};
use test_support::place::shared;

use crate::error::{Error, Result};
use crate::plane::{Plane, PlaneOptions, SavedState};
use crate::support::{eventually, prepared_state, run};

/// Kinds that Cilium's chart may render and that a bare cluster does not know: group, version,
/// kind, plural, and whether objects are namespaced.
const STUBS: [(&str, &str, &str, &str, bool); 7] = [
    ("monitoring.coreos.com", "v1", "ServiceMonitor", "servicemonitors", true),
    ("cert-manager.io", "v1", "Certificate", "certificates", true),
    ("cert-manager.io", "v1", "Issuer", "issuers", true),
    ("cert-manager.io", "v1", "ClusterIssuer", "clusterissuers", false),
    ("gateway.networking.k8s.io", "v1", "GatewayClass", "gatewayclasses", false),
    ("gateway.networking.k8s.io", "v1", "Gateway", "gateways", true),
    ("gateway.networking.k8s.io", "v1", "HTTPRoute", "httproutes", true),
];

/// A definition that lets any content pass: the test bed needs the kinds, not their rules.
pub fn stub_definition(
    group: &str,
    version: &str,
    kind: &str,
    plural: &str,
    namespaced: bool,
) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": format!("{plural}.{group}"),
            // Groups under k8s.io are refused without it.
            "annotations": {"api-approved.kubernetes.io": "unapproved, a stub for tests"},
        },
        "spec": {
            "group": group,
            "scope": if namespaced { "Namespaced" } else { "Cluster" },
            "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase()},
            "versions": [{
                "name": version, "served": true, "storage": true,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                }},
            }],
        },
    })
}

/// The definitions of what Cilium's chart may render and a bare cluster does not know.
pub fn stub_definitions() -> impl Iterator<Item = Value> {
    STUBS.iter().map(|(group, version, kind, plural, namespaced)| {
        stub_definition(group, version, kind, plural, *namespaced)
    })
}

/// Creates the stub definitions and waits until they are served.
///
/// # Errors
///
/// When the API server refuses one or does not serve it in time.
pub async fn create_stubs(client: &Client) -> Result<()> {
    let api = Api::<CustomResourceDefinition>::all(client.clone());
    for stub in stub_definitions() {
        let what = format!("the stub {}", stub["metadata"]["name"]);
        let stub = serde_json::from_value(stub)
            .map_err(|source| Error::Document { what: what.clone(), source })?;
        api.create(&PostParams::default(), &stub)
            .await
            .map_err(Error::api(format!("create {what}")))?;
    }
    for (group, _, kind, plural, _) in STUBS {
        eventually(&format!("the stub of {kind} is served"), 30, || async {
            let name = format!("{plural}.{group}");
            let found = api.get(&name).await.map_err(Error::api(format!("get {name}")))?;
            let conditions = found.status.and_then(|status| status.conditions);
            let established = conditions.into_iter().flatten();
            let mut established = established.filter(|c| c.type_ == "Established");
            Ok(established.any(|condition| condition.status == "True").then_some(()))
        })
        .await?;
    }
    Ok(())
}

/// A chart of the shared inputs, such as version `1.20.0`.
///
/// # Errors
///
/// [`Error::NotPossible`] when it is not there.
pub fn chart(version: &str) -> Result<PathBuf> {
    let path = shared()?.join("charts").join(format!("cilium-{version}.tgz"));
    if path.is_file() {
        return Ok(path);
    }
    Err(Error::NotPossible { reason: format!("no chart {}", path.display()) })
}

/// A values file of the shared inputs by the start of its name, such as `01`.
///
/// # Errors
///
/// [`Error::NotPossible`] when it is not there.
pub fn values(number: &str) -> Result<PathBuf> {
    let files = test_support::place::shared_files("values", ".yaml")?;
    let starts = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(number))
    };
    files.into_iter().find(starts).ok_or_else(|| Error::NotPossible {
        reason: format!("no values file {number} in the shared inputs"),
    })
}

/// Installs Cilium as release `cilium` in `kube-system` with real Helm and waits until it is Ready.
///
/// # Errors
///
/// [`Error::Command`] with what Helm said.
pub fn install(plane: &Plane, version: &str, values_number: &str) -> Result<()> {
    let mut helm = plane.helm()?;
    helm.args(["install", "cilium"])
        .arg(chart(version)?)
        .args(["--namespace", "kube-system", "--wait", "--timeout", "3m", "--values"])
        .arg(values(values_number)?);
    run(&mut helm).map(drop)
}

/// A saved state with Cilium installed by real Helm, prepared once and kept in the cache.
///
/// # Errors
///
/// When something is missing, or Helm does not succeed.
pub async fn state(version: &str, values_number: &str) -> Result<SavedState> {
    let name = format!("cilium-{version}-{values_number}");
    // All of it is found before the plane is started, so that a missing one costs nothing.
    let mut hasher = DefaultHasher::new();
    for path in [chart(version)?, values(values_number)?] {
        let bytes = std::fs::read(&path).map_err(Error::file("cannot read", &path))?;
        hasher.write(&bytes);
    }
    // The folder of a peer is named by version and build.
    hasher.write(crate::peers::find("helm")?.path.as_os_str().as_encoded_bytes());
    let key = format!("{:016x}", hasher.finish());
    let (chart, number) = (version.to_owned(), values_number.to_owned());
    let prepare = |plane: Arc<Plane>| async move {
        create_stubs(&plane.client()?).await?;
        install(&plane, &chart, &number)
    };
    prepared_state(&name, &key, PlaneOptions::default(), prepare).await
}
