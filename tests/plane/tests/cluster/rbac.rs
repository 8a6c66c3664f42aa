//! RBAC bites, and how a name-scoped `escalate` behaves: later code relies on it.

use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
use k8s_openapi::api::rbac::v1::Role;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use plane::support::{TestCluster, TestNamespace};
use serde_json::{Value, json};

use crate::{apply, namespace};

/// A client of a ServiceAccount that holds the given rules in its namespace.
async fn account(cluster: &TestCluster, namespace: &TestNamespace, rules: Value) -> Client {
    let subject = json!([{"kind": "ServiceAccount", "name": "actor", "namespace": namespace.name}]);
    apply(
        cluster,
        namespace,
        &json!({
            "apiVersion": "v1", "kind": "List", "items": [
                {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "actor"}},
                {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
                 "metadata": {"name": "actor"}, "rules": rules},
                {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
                 "metadata": {"name": "actor"}, "subjects": subject,
                 "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "actor"}},
            ],
        }),
    );
    let accounts = Api::<ServiceAccount>::namespaced(namespace.client.clone(), &namespace.name);
    let answer = accounts
        .create_token_request("actor", &PostParams::default(), &TokenRequest::default())
        .await
        .unwrap();
    let token = answer.status.and_then(|status| status.token).unwrap();
    cluster.client_with_token(&token).await.unwrap()
}

/// The HTTP status of a refusal, or 200.
fn code<T>(result: kube::Result<T>) -> u16 {
    match result {
        Ok(_) => 200,
        Err(kube::Error::Api(status)) => status.code,
        Err(error) => panic!("{error}"),
    }
}

/// A Role that lets read Secrets, which the actor itself may not.
fn role(namespace: &TestNamespace, name: &str) -> Role {
    serde_json::from_value(json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": {"name": name, "namespace": namespace.name},
        "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}],
    }))
    .unwrap()
}

fn role_rights(verbs: &[&str]) -> Value {
    json!({"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "verbs": verbs})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_right_that_is_not_held_is_refused() {
    let Some((cluster, namespace)) = namespace("rbac-rights").await else { return };
    let rules = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}]);
    let client = account(&cluster, &namespace, rules).await;
    let api = Api::<ConfigMap>::namespaced(client.clone(), &namespace.name);
    assert_eq!(code(api.list(&ListParams::default()).await), 200);
    assert_eq!(code(api.get("kube-root-ca.crt").await), 403);
    let other = Api::<ConfigMap>::namespaced(client, "kube-system");
    assert_eq!(code(other.list(&ListParams::default()).await), 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_may_not_grant_what_its_writer_does_not_hold() {
    let Some((cluster, namespace)) = namespace("rbac-escalation").await else { return };
    let rules = json!([role_rights(&["get", "create", "update", "patch"])]);
    let client = account(&cluster, &namespace, rules).await;
    let roles = Api::<Role>::namespaced(client, &namespace.name);
    let create = roles.create(&PostParams::default(), &role(&namespace, "grab")).await;
    assert_eq!(code(create), 403);
    let mut harmless = role(&namespace, "harmless");
    harmless.rules = Some(Vec::new());
    assert_eq!(code(roles.create(&PostParams::default(), &harmless).await), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn escalate_by_name_covers_update_and_apply_but_no_post() {
    let Some((cluster, namespace)) = namespace("rbac-escalate").await else { return };
    let mut escalate = role_rights(&["escalate"]);
    escalate["resourceNames"] = json!(["known", "posted", "applied"]);
    let rules = json!([role_rights(&["get", "create", "update", "patch"]), escalate]);
    let client = account(&cluster, &namespace, rules).await;
    let mine = Api::<Role>::namespaced(client, &namespace.name);
    let admin = Api::<Role>::namespaced(namespace.client.clone(), &namespace.name);

    // Update: the request carries the name, so the name-scoped right covers it.
    let mut known = role(&namespace, "known");
    known.rules = Some(Vec::new());
    let mut known = admin.create(&PostParams::default(), &known).await.unwrap();
    known.rules = role(&namespace, "known").rules;
    assert_eq!(code(mine.replace("known", &PostParams::default(), &known).await), 200);
    let mut unknown = role(&namespace, "unknown");
    unknown.rules = Some(Vec::new());
    let mut unknown = admin.create(&PostParams::default(), &unknown).await.unwrap();
    unknown.rules = role(&namespace, "unknown").rules;
    assert_eq!(code(mine.replace("unknown", &PostParams::default(), &unknown).await), 403);
    // An annotation alone is checked like a change of the rules.
    let annotate = json!({"metadata": {"annotations": {"a": "b"}}});
    let params = PatchParams::default();
    assert_eq!(code(mine.patch("known", &params, &Patch::Merge(&annotate)).await), 200);
    let full = role(&namespace, "full");
    admin.create(&PostParams::default(), &full).await.unwrap();
    assert_eq!(code(mine.patch("full", &params, &Patch::Merge(&annotate)).await), 403);

    // Create by POST: there is no name in the request, so the right does not apply.
    let posted = mine.create(&PostParams::default(), &role(&namespace, "posted")).await;
    assert_eq!(code(posted), 403);

    // Create by server-side apply: a PATCH carries the name.
    let params = PatchParams::apply("test");
    let patch = Patch::Apply(role(&namespace, "applied"));
    assert_eq!(code(mine.patch("applied", &params, &patch).await), 200);
    let patch = Patch::Apply(role(&namespace, "other"));
    assert_eq!(code(mine.patch("other", &params, &patch).await), 403);
}
