//! The proof that somebody wrote nothing, and that the proof can fail.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use plane::support::or_skip;
use serde_json::json;

use crate::namespace;

#[tokio::test(flavor = "multi_thread")]
async fn reads_dry_runs_and_reviews_write_nothing_and_one_object_is_noticed() {
    let Some((cluster, namespace)) = namespace("audit").await else { return };
    let Some(plane) = or_skip(cluster.plane()) else { return };
    let user = "audited-user";
    let certificate = plane.pki().client(user, Some("system:masters")).unwrap();
    let folder = plane.folder().join("audited");
    std::fs::create_dir(&folder).unwrap();
    let file = |name: &str, content: &str| {
        let path = folder.join(name);
        std::fs::write(&path, content).unwrap();
        path.display().to_string()
    };
    let (crt, key) = (file("crt", &certificate.certificate), file("key", &certificate.key));
    let manifest = file("cm.json", &json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "written"}, "data": {"a": "b"},
    }).to_string());
    let ca = plane.pki().path("ca.crt").display().to_string();
    let as_user = |arguments: &[&str]| {
        let mut command = plane.kubectl().unwrap();
        command.env_remove("KUBECONFIG");
        command.args(["--server", &plane.url(), "--certificate-authority", &ca]);
        command.args(["--client-certificate", &crt, "--client-key", &key]);
        command.args(["-n", &namespace.name]).args(arguments);
        plane::support::run(&mut command).unwrap()
    };
    let log = plane.audit_log();

    let mark = log.mark();
    as_user(&["get", "configmaps"]);
    as_user(&["auth", "can-i", "create", "pods"]);
    as_user(&["auth", "whoami"]);
    as_user(&["apply", "--server-side", "--dry-run=server", "-f", &manifest]);
    as_user(&["create", "--dry-run=server", "-f", &manifest]);
    as_user(&["delete", "--dry-run=server", "configmap", "kube-root-ca.crt"]);
    let requests = log.requests(user, mark).unwrap();
    assert!(requests.iter().filter(|request| request.is_mutating()).count() >= 5, "{requests:?}");
    assert_eq!(log.writes(user, mark).unwrap(), [], "nothing was written");

    let mark = log.mark();
    as_user(&["create", "-f", &manifest]);
    let writes = log.writes(user, mark).unwrap();
    assert_eq!(writes.len(), 1, "the control run is noticed: {writes:?}");
    assert_eq!(writes[0].verb, "create");

    // Somebody else's writes do not count.
    let mark = log.mark();
    let api = Api::<ConfigMap>::namespaced(namespace.client.clone(), &namespace.name);
    api.delete("written", &DeleteParams::default()).await.unwrap();
    let object = serde_json::from_value(json!({"metadata": {"name": "other"}})).unwrap();
    api.create(&PostParams::default(), &object).await.unwrap();
    assert_eq!(log.writes(user, mark).unwrap(), []);
    assert_eq!(log.writes(plane::ADMIN_USER, mark).unwrap().len(), 2);
}
