//! Creating, changing and deleting, and what is refused.

use std::sync::Arc;

use helm_rs::cluster::{
    DeleteOptions, Patch, PatchKind, Propagation, Resource, Target, WriteOptions,
};
use serde_json::{Value, json};

use super::run::{Run, config_map, version};

pub(super) async fn writes(run: &mut Run<'_>) {
    let target = run.target("v1", "ConfigMap", "one").await;
    run.get("get what is not there", &target).await;
    let first = run.create("create", config_map("one")).await;
    run.create("create again", config_map("one")).await;
    let same = run.update("update without a change", &target, &first).await;
    run.say(&format!("version stays: {}", version(&first) == version(&same)));
    let mut changed = first.clone();
    changed["data"]["b"] = "2".into();
    let second = run.update("update", &target, &changed).await;
    run.say(&format!("version moves: {}", version(&first) != version(&second)));
    run.update("update from an old version", &target, &changed).await;
    let missing = run.target("v1", "ConfigMap", "missing").await;
    run.update("update what is not there", &missing, &config_map("missing")).await;
    run.update("update under another name", &target, &config_map("other")).await;
    let mut strange = second.clone();
    strange["metadata"]["uid"] = "another".into();
    run.update("update another object of the name", &target, &strange).await;

    run.patch("merge patch", &target, PatchKind::Merge, json!({ "data": { "a": null, "c": "3" } }))
        .await;
    let patched = run.patch(
        "patch without a change",
        &target,
        PatchKind::Merge,
        json!({ "data": { "c": "3" } }),
    );
    let patched = patched.await;
    let again = run.patch("empty patch", &target, PatchKind::Strategic, json!({})).await;
    run.say(&format!("version stays: {}", version(&patched) == version(&again)));
    run.patch("rename", &target, PatchKind::Merge, json!({ "metadata": { "name": "x" } })).await;
    let body = json!({ "metadata": { "resourceVersion": "1" }, "data": { "d": "4" } });
    run.patch("patch an old version", &target, PatchKind::Merge, body).await;
    run.patch("patch the UID", &target, PatchKind::Merge, json!({ "metadata": { "uid": "x" } }))
        .await;
    run.patch("patch what is not there", &missing, PatchKind::Merge, json!({ "data": null })).await;
    run.patch("a list as a merge patch", &target, PatchKind::Merge, json!([1])).await;
    let body = json!([
        { "op": "test", "path": "/data/c", "value": "3" },
        { "op": "replace", "path": "/data/c", "value": "4" },
    ]);
    run.patch("JSON patch", &target, PatchKind::Json, body).await;
    let body = json!([{ "op": "test", "path": "/data/c", "value": "x" }]);
    run.patch("JSON patch whose test fails", &target, PatchKind::Json, body).await;
    let body = json!([{ "op": "remove", "path": "/data/nothing" }]);
    run.patch("JSON patch of nothing", &target, PatchKind::Json, body).await;
    let body = json!({ "metadata": { "labels": { "app": null, "new": "1" }, "annotations": {} } });
    run.patch("strategic patch", &target, PatchKind::Strategic, body).await;
}

pub(super) async fn dry_runs(run: &mut Run<'_>) {
    let dry = WriteOptions { dry_run: true, ..WriteOptions::default() };
    let target = run.target("v1", "ConfigMap", "dry").await;
    let answer = run.cluster.create(&target, &config_map("dry"), &dry).await;
    run.note("dry create", &answer);
    run.get("nothing was created", &target).await;
    let created = run.create("create", config_map("dry")).await;
    let patch = Patch { kind: PatchKind::Merge, body: json!({ "data": { "b": "2" } }) };
    let answer = run.cluster.patch(&target, &patch, &dry).await;
    run.note("dry patch", &answer);
    let options = DeleteOptions { dry_run: true, ..DeleteOptions::default() };
    run.delete("dry delete", &target, &options).await;
    let after = run.get("nothing changed", &target).await;
    run.say(&format!("version stays: {}", version(&created) == version(&after)));
}

pub(super) async fn deletes(run: &mut Run<'_>) {
    let target = run.target("v1", "ConfigMap", "gone").await;
    run.delete("delete what is not there", &target, &DeleteOptions::default()).await;
    let created = run.create("create", config_map("gone")).await;
    let uid = created.pointer("/metadata/uid").and_then(Value::as_str).unwrap_or_default();
    let another = DeleteOptions { uid: "another".to_owned(), ..DeleteOptions::default() };
    run.delete("delete another", &target, &another).await;
    run.masks
        .push((format!("in record ({})", version(&created)), "in record (VERSION)".to_owned()));
    let old = DeleteOptions { resource_version: "1".to_owned(), ..DeleteOptions::default() };
    run.delete("delete an old version", &target, &old).await;
    let this = DeleteOptions {
        uid: uid.to_owned(),
        propagation: Some(Propagation::Background),
        ..DeleteOptions::default()
    };
    run.delete("delete this one", &target, &this).await;
    run.get("it is gone", &target).await;

    let mut held = config_map("held");
    held["metadata"]["finalizers"] = json!(["example.org/hold"]);
    run.create("create with a finalizer", held).await;
    let target = run.target("v1", "ConfigMap", "held").await;
    run.delete("delete marks it", &target, &DeleteOptions::default()).await;
    run.delete("delete again", &target, &DeleteOptions::default()).await;
    let body = json!({ "metadata": { "finalizers": ["example.org/hold", "example.org/more"] } });
    run.patch("no new finalizers", &target, PatchKind::Merge, body).await;
    let body = json!({ "metadata": { "finalizers": null } });
    run.patch("the last finalizer goes", &target, PatchKind::Merge, body).await;
    run.get("and so does the object", &target).await;

    let account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": "account" },
    });
    run.create("create an account", account).await;
    let target = run.target("v1", "ServiceAccount", "account").await;
    run.delete("its delete answers with it", &target, &DeleteOptions::default()).await;
}

pub(super) async fn refusals(run: &mut Run<'_>) {
    run.create("a bad name", config_map("Bad_name")).await;
    run.create("no name", config_map("")).await;
    let mut object = config_map("labelled");
    object["metadata"]["labels"] = json!({ "a b": "c d" });
    run.create("bad labels", object).await;
    let mut object = config_map("versioned");
    object["metadata"]["resourceVersion"] = "5".into();
    run.create("a version", object).await;
    let mut object = config_map("elsewhere");
    object["metadata"]["namespace"] = "elsewhere".into();
    run.create("another namespace", object).await;
    let maps = run.resource("v1", "ConfigMap").await;
    let target = Target::new(&maps, "no-such-namespace", "x");
    let answer = run.cluster.create(&target, &config_map("x"), &WriteOptions::default()).await;
    run.note("no namespace", &answer);
    let nothing = Arc::new(Resource::builtin("example.org/v1", "Nothing", "nothings", true));
    let target = Target::new(&nothing, run.namespace, "x");
    run.get("no such group", &target).await;
    let nothing = Arc::new(Resource::builtin("v1", "Nothing", "nothings", true));
    run.get("no such resource", &Target::new(&nothing, run.namespace, "x")).await;
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": "a.b" },
        "spec": { "ports": [{ "port": 80 }] },
    });
    let target = run.target("v1", "Service", "a.b").await;
    let answer = run.cluster.create(&target, &service, &WriteOptions::default()).await;
    let refused =
        answer.is_err_and(|error| error.to_string().contains("metadata.name: Invalid value"));
    run.say(&format!("a service's name has no dots: {refused}"));
}
