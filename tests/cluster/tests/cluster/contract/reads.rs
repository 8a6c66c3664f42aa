//! Lists, watches and questions about rights.

use helm_rs::cluster::{
    AccessQuestion, DeleteOptions, Kind, ListQuery, PatchKind, Subject, WatchEvent, WatchQuery,
    list_all,
};
use serde_json::{Value, json};

use super::run::{Run, config_map, masked};

pub(super) async fn lists(run: &mut Run<'_>) {
    let maps = run.resource("v1", "ConfigMap").await;
    for (name, tier) in [("list-a", "x"), ("list-b", "y"), ("list-c", "x"), ("list-d", "z")] {
        let mut object = config_map(name);
        object["metadata"]["labels"] = json!({ "listed": "yes", "tier": tier });
        run.create("create", object).await;
    }
    for (labels, fields, limit) in [
        ("listed=yes", "", 0),
        ("listed=yes", "", 3),
        ("listed,tier in (x, z)", "", 1),
        ("listed=yes,tier notin (x)", "", 2),
        ("listed,tier!=x", "", 0),
        ("listed,!tier", "", 0),
        ("listed=yes", "metadata.name=list-b", 0),
        ("listed=yes", "metadata.name!=list-b", 2),
    ] {
        let query = ListQuery {
            namespace: run.namespace.to_owned(),
            labels: labels.to_owned(),
            fields: fields.to_owned(),
            limit,
            ..ListQuery::default()
        };
        let page = run.cluster.list(&maps, &query).await.unwrap();
        run.say(&format!("{labels} {fields} {limit}: {} in a page", page.items.len()));
        let all = list_all(run.cluster, &maps, &query).await.unwrap();
        let names: Vec<_> = all
            .items
            .iter()
            .map(|item| {
                assert_eq!(Kind::of(item), Kind::new("v1", "ConfigMap"));
                item.pointer("/metadata/name")
                    .and_then(Value::as_str)
                    .unwrap_or_default()
                    .to_owned()
            })
            .collect();
        run.say(&names.join(" "));
    }
    for (labels, fields) in [("a===", ""), ("a in (b", ""), ("", "data.x=1")] {
        let query = ListQuery {
            namespace: run.namespace.to_owned(),
            labels: labels.to_owned(),
            fields: fields.to_owned(),
            ..ListQuery::default()
        };
        let error = run.cluster.list(&maps, &query).await.unwrap_err();
        run.say(&format!("{labels} {fields}: {:?} {error}", error.kind()));
    }
}

pub(super) async fn watches(run: &mut Run<'_>) {
    let maps = run.resource("v1", "ConfigMap").await;
    let target = run.target("v1", "ConfigMap", "watched").await;
    let list = ListQuery { namespace: run.namespace.to_owned(), ..ListQuery::default() };
    let from = run.cluster.list(&maps, &list).await.unwrap().resource_version;
    let query = WatchQuery {
        namespace: run.namespace.to_owned(),
        labels: "watched=yes".to_owned(),
        resource_version: from,
        timeout_seconds: 5,
        ..WatchQuery::default()
    };
    let mut object = config_map("watched");
    object["metadata"]["labels"] = json!({ "watched": "yes" });
    run.create("create", object.clone()).await;
    run.patch("patch", &target, PatchKind::Merge, json!({ "data": { "b": "2" } })).await;
    let body = |value| json!({ "metadata": { "labels": { "watched": value } } });
    run.patch("unlabel", &target, PatchKind::Merge, body("no")).await;
    run.patch("patch unseen", &target, PatchKind::Merge, json!({ "data": { "c": "3" } })).await;
    run.patch("label", &target, PatchKind::Merge, body("yes")).await;
    run.delete("delete", &target, &DeleteOptions::default()).await;
    let mut watch = run.cluster.watch(&maps, &query).await.unwrap();
    let mut lines = Vec::new();
    while lines.len() < 5 {
        match watch.next().await.unwrap() {
            Some(WatchEvent::Bookmark(_)) => {}
            Some(WatchEvent::Added(object)) => lines.push(format!("added {}", masked(&object))),
            Some(WatchEvent::Modified(object)) => {
                lines.push(format!("modified {}", masked(&object)));
            }
            Some(WatchEvent::Deleted(object)) => lines.push(format!("deleted {}", masked(&object))),
            None => panic!("the watch ended after {lines:?}"),
        }
    }
    drop(watch);
    for line in lines {
        run.say(&line);
    }
    // What is there comes first when no version is given; then the watch runs out.
    run.create("create again", object).await;
    let query = WatchQuery { resource_version: String::new(), timeout_seconds: 1, ..query };
    let mut watch = run.cluster.watch(&maps, &query).await.unwrap();
    let mut events = 0;
    while let Some(event) = watch.next().await.unwrap() {
        events += usize::from(event.object().is_some());
    }
    drop(watch);
    run.say(&format!("{events} event, and an end in good order"));
}

pub(super) async fn rights(run: &mut Run<'_>) {
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": { "name": "r" },
        "rules": [
            { "apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "patch"] },
            { "apiGroups": ["apps"], "resources": ["deployments"], "resourceNames": ["web"], "verbs": ["*"] },
            { "apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"] },
        ],
    });
    run.create("a Role", role).await;
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": { "name": "b" },
        "roleRef": { "kind": "Role", "name": "r", "apiGroup": "rbac.authorization.k8s.io" },
        "subjects": [{ "kind": "ServiceAccount", "name": "runner", "namespace": run.namespace }],
    });
    run.create("a RoleBinding", binding).await;
    let subject = Subject::service_account(run.namespace, "runner");
    // The authorizer of a real server reads the objects a moment later.
    let question =
        |verb: &str, group: &str, resource: &str, subresource: &str, name: &str| AccessQuestion {
            verb: verb.to_owned(),
            group: group.to_owned(),
            resource: resource.to_owned(),
            subresource: subresource.to_owned(),
            namespace: run.namespace.to_owned(),
            name: name.to_owned(),
        };
    let questions = [
        question("get", "", "configmaps", "", "any"),
        question("create", "", "configmaps", "", ""),
        question("delete", "apps", "deployments", "", "web"),
        question("delete", "apps", "deployments", "", "other"),
        question("list", "apps", "deployments", "", ""),
        question("get", "", "pods", "log", "x"),
        question("get", "", "pods", "", "x"),
        AccessQuestion { namespace: String::new(), ..question("get", "", "configmaps", "", "x") },
    ];
    for _ in 0..100 {
        if run.cluster.subject_may(&subject, &questions[0]).await.unwrap().allowed {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    for question in &questions {
        let decision = run.cluster.subject_may(&subject, question).await.unwrap();
        run.say(&format!("{question:?}: {decision:?}"));
    }
}
