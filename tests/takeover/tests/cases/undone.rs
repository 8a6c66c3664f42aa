//! Restores of adoptions and moves: leaves and objects as they were, one deed after the other, also
//! after kills, and what stays because somebody changed it since.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use helm_rs::apply::{Cancel, Silent};
use helm_rs::cluster::{Clock, Cluster, Moment, Patch, PatchKind, Resource, Target, WriteOptions};
use helm_rs::error_chain;
use helm_rs::release::storage::ObjectKind;
use helm_rs::release::{CodecLimits, decode, encode};
use helm_rs::render::{Engine, EngineOptions};
use serde_json::{Value, json};
use takeover::run::restore::{
    Restore, RestoreError, RestorePlan, Restored, place_of, plan_restore_at, restore_at,
};
use takeover::snapshot::{Stage, lasting};
use takeover_tests::rehearsal::{Rehearsal, Tried as _, step_boundaries, text};
use takeover_tests::releases::{Case, applied, canonical, chart, depot, drifted, store};
use takeover_tests::{Bed, export};

async fn objects(bed: Option<Bed>) -> Option<Vec<Value>> {
    let bed = bed?;
    let objects = export(&*bed.cluster).await;
    bed.plane.stop();
    Some(objects)
}

fn adopt() -> Case {
    Case::adopt(chart("depot"), "depot", "shop", Some(("old", "infra")))
}

async fn changed_depot() -> Option<Rehearsal> {
    let mut objects = objects(depot().await).await?;
    drifted(&mut objects);
    Some(Rehearsal::release(objects, adopt()).await)
}

/// Everything but what ichor keeps for itself, and what controllers make of workloads.
fn state(stage: &Stage) -> BTreeMap<String, Value> {
    let objects = stage.memory.objects();
    let mut state = lasting(objects.iter().map(|object| canonical(object)));
    let lives = ["Lease ", "Pod ", "ReplicaSet "];
    state.retain(|name, _| {
        !lives.iter().any(|kind| name.starts_with(kind)) && !name.contains("/ichor-release-")
    });
    state
}

/// Records of the adopted release.
fn own(stage: &Stage) -> Vec<String> {
    let is_own = |name: &String| name.starts_with("Secret shop/sh.helm.release.v1.depot.v");
    state(stage).into_keys().filter(is_own).collect()
}

/// Everything that was there is as it was; nothing more is there but these.
fn same(stage: &Stage, before: &BTreeMap<String, Value>, created: &[&str], title: &str) {
    let after = state(stage);
    for (name, object) in before {
        assert_eq!(after.get(name), Some(object), "{title}: {name}");
    }
    let more: Vec<&str> =
        after.keys().filter(|name| !before.contains_key(*name)).map(String::as_str).collect();
    assert_eq!(more, created, "{title}");
}

async fn undo(
    stage: &Stage,
    (name, namespace): (&str, &str),
    digest: Option<&str>,
) -> Result<(RestorePlan, Restored), RestoreError> {
    let cluster: Arc<dyn Cluster> = stage.cluster();
    let place = place_of(&*cluster, name, namespace).await?;
    let plan = plan_restore_at(&place, &*cluster, false).await?;
    let cancel = Cancel::default();
    let restore = Restore {
        place: &place,
        keep_leaves: false,
        digest,
        holder: "restore",
        observer: &Silent,
        cancel: &cancel,
    };
    Ok((plan, restore_at(&restore, &cluster, &*stage.clock).await?))
}

const DEPOT: (&str, &str) = ("depot", "shop");
const CREATED: [&str; 1] = ["ClusterRole /depot-reader"];

async fn edit(stage: &Stage, (api, kind, plural): (&str, &str, &str), body: Value) {
    let resource = Arc::new(Resource::builtin(api, kind, plural, true));
    let target = Target::new(&resource, "shop", "depot");
    let patch = Patch { kind: PatchKind::Merge, body };
    stage.memory.patch(&target, &patch, &WriteOptions::default()).await.unwrap();
    stage.restart();
}

const CONFIG_MAP: (&str, &str, &str) = ("v1", "ConfigMap", "configmaps");

/// What an adoption changed is given back, and the plan says so before; what it created stays.
#[tokio::test(flavor = "multi_thread")]
async fn leaves_are_given_back() {
    let Some(rehearsal) = changed_depot().await else { return };
    let stage = rehearsal.stage();
    let before = state(&stage);
    rehearsal.run(&stage, "first").await.unwrap();
    let config = stage.object("ConfigMap", "shop", "depot").unwrap();
    assert_eq!(text(&config, "/data/size"), "2");
    let (plan, done) = undo(&stage, DEPOT, None).await.unwrap();
    let paths: Vec<&str> = plan.leaves.iter().map(|leaf| leaf.path.as_str()).collect();
    for path in [
        "data.size",
        "spec.size",
        "spec.template.spec.terminationGracePeriodSeconds",
        "spec.template.spec.containers[name=clerk].image",
    ] {
        assert!(paths.contains(&path), "{path}: {paths:?}");
    }
    let size = plan.leaves.iter().find(|leaf| leaf.path == "data.size").unwrap();
    assert_eq!((&size.live, &size.former), (&Some(json!("2")), &Some(json!("7"))));
    assert_eq!((plan.restarts.len(), plan.created.len(), plan.left.len()), (1, 1, 0), "{plan:?}");
    assert!(plan.created[0].contains("depot-reader"), "{:?}", plan.created);
    assert_eq!(done.leaves, plan.leaves.len());
    same(&stage, &before, &CREATED, "restored");
    let error = undo(&stage, DEPOT, None).await.unwrap_err();
    assert!(error.is_refusal() && error_chain(&error).contains("nothing to restore"), "{error}");
}

/// Records and ownership alone, where that is asked for.
#[tokio::test(flavor = "multi_thread")]
async fn leaves_are_kept_where_that_is_asked_for() {
    let Some(rehearsal) = changed_depot().await else { return };
    let stage = rehearsal.stage();
    rehearsal.run(&stage, "first").await.unwrap();
    let cluster: Arc<dyn Cluster> = stage.cluster();
    let place = place_of(&*cluster, "depot", "shop").await.unwrap();
    let plan = plan_restore_at(&place, &*cluster, true).await.unwrap();
    assert!(plan.leaves.is_empty() && plan.restarts.is_empty() && plan.refusals.is_empty());
    let cancel = Cancel::default();
    let restore = Restore {
        place: &place,
        keep_leaves: true,
        digest: Some(&plan.digest),
        holder: "restore",
        observer: &Silent,
        cancel: &cancel,
    };
    restore_at(&restore, &cluster, &*stage.clock).await.unwrap();
    let config = stage.object("ConfigMap", "shop", "depot").unwrap();
    assert_eq!(text(&config, "/data/size"), "2");
    assert_eq!(text(&config, "/metadata/annotations/meta.helm.sh~1release-name"), "old");
}

/// What somebody changed since stays, is listed, and takes a consent by name; the rest is given back.
#[tokio::test(flavor = "multi_thread")]
async fn what_changed_since_stays() {
    let Some(rehearsal) = changed_depot().await else { return };
    let stage = rehearsal.stage();
    rehearsal.run(&stage, "first").await.unwrap();
    edit(&stage, CONFIG_MAP, json!({"data": {"size": "100"}})).await;
    let error = undo(&stage, DEPOT, None).await.unwrap_err();
    let RestoreError::Changed { changed, digest, undoes } = &error else {
        panic!("{}", error_chain(&error));
    };
    assert_eq!((changed.len(), undoes.as_str()), (1, "adoption"));
    assert!(stage.writes().is_empty(), "{:?}", stage.writes());
    let (plan, _) = undo(&stage, DEPOT, Some(digest)).await.unwrap();
    assert_eq!(plan.left.len(), 1, "{:?}", plan.left);
    assert_eq!(plan.left[0].path, "data.size");
    let config = stage.object("ConfigMap", "shop", "depot").unwrap();
    assert_eq!(text(&config, "/data/size"), "100");
    let workload = stage.object("Deployment", "shop", "depot").unwrap();
    let image = "/spec/template/spec/containers/0/image";
    assert_eq!(text(&workload, image), "registry.example/clerk:0");
}

/// A restore with a consent by name that is killed is finished with the same one.
#[tokio::test(flavor = "multi_thread")]
async fn a_consent_outlives_a_kill() {
    let Some(rehearsal) = changed_depot().await else { return };
    let stage = rehearsal.stage();
    rehearsal.run(&stage, "first").await.unwrap();
    edit(&stage, CONFIG_MAP, json!({"data": {"size": "100"}})).await;
    let Err(RestoreError::Changed { digest, .. }) = undo(&stage, DEPOT, None).await else {
        panic!("it changed");
    };
    let mut kills = 0;
    for at in 1.. {
        stage.kill(at, Moment::After);
        match undo(&stage, DEPOT, Some(&digest)).await {
            Ok(_) => break,
            // The last step was done.
            Err(error) if error_chain(&error).contains("nothing to restore") => break,
            Err(error) => assert!(!error.is_refusal(), "{at}: {}", error_chain(&error)),
        }
        kills += 1;
        assert!(kills < 60, "it comes to an end");
    }
    stage.restart();
    let config = stage.object("ConfigMap", "shop", "depot").unwrap();
    assert_eq!(text(&config, "/data/size"), "100");
    assert_eq!(text(&config, "/metadata/annotations/meta.helm.sh~1release-name"), "old");
}

/// An adoption that was killed, and one that was finished after it (revision 1 failed, 2 deployed),
/// are both undone to the byte.
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_adoption_is_undone() {
    let Some(rehearsal) = changed_depot().await else { return };
    let (_, writes) = rehearsal.reference().await;
    let mut finished = 0;
    for at in step_boundaries(&writes) {
        for finish in [false, true] {
            let stage = rehearsal.stage();
            let before = state(&stage);
            stage.kill(at, Moment::After);
            if rehearsal.run(&stage, "killed").await.is_ok() {
                continue;
            }
            stage.restart();
            let title = format!("killed after write {at} of {}, finished {finish}", writes.len());
            if finish {
                rehearsal.run(&stage, "second").await.unwrap();
                finished += own(&stage).len().saturating_sub(1);
                stage.restart();
            }
            let created = state(&stage).contains_key(CREATED[0]);
            match undo(&stage, DEPOT, None).await {
                Ok(_) => {}
                // Nothing of it was written yet.
                Err(error) => {
                    assert!(error_chain(&error).contains("nothing to restore"), "{title}: {error}");
                }
            }
            assert_eq!(own(&stage), [] as [String; 0], "{title}");
            same(&stage, &before, if created { &CREATED } else { &[] }, &title);
        }
    }
    assert!(finished > 0, "one of them has two revisions");
}

/// An adoption that was begun with one plan and goes on with another one, since somebody changed
/// something meanwhile: what was before the first one comes back, and that change stays.
#[tokio::test(flavor = "multi_thread")]
async fn what_went_on_with_another_plan_is_undone() {
    let Some(rehearsal) = changed_depot().await else { return };
    let (_, writes) = rehearsal.reference().await;
    let is_it = |call: &helm_rs::cluster::CallRecord| call.object.contains("deployments");
    let at = writes.iter().position(is_it).unwrap() + 1;
    let stage = rehearsal.stage();
    let mut before = state(&stage);
    stage.kill(at, Moment::After);
    rehearsal.run(&stage, "killed").await.unwrap_err();
    edit(&stage, CONFIG_MAP, json!({"data": {"size": "99"}})).await;
    before.get_mut("ConfigMap shop/depot").unwrap()["data"]["size"] = "99".into();
    let engine = Engine::new(EngineOptions::default());
    let cluster: Arc<dyn Cluster> = stage.cluster();
    let plan = adopt().plan_adoption(&cluster, &*stage.clock, &engine).await.plan;
    assert!(!plan.is_refused(), "{:?}", plan.refusals);
    assert_ne!(plan.digest, rehearsal.digest);
    let on = (&cluster, &*stage.clock as &dyn Clock, &engine);
    adopt()
        .take(on, "second", &plan.digest)
        .await
        .unwrap_or_else(|e| panic!("{}", error_chain(&e)));
    let config = stage.object("ConfigMap", "shop", "depot").unwrap();
    assert_eq!(text(&config, "/data/size"), "2");
    stage.restart();
    let (plan, _) = undo(&stage, DEPOT, None).await.unwrap();
    assert_eq!((plan.left.len(), plan.changed.len()), (0, 0), "{plan:?}");
    same(&stage, &before, &CREATED, "restored");
}

/// One deed after the other under names of their own, and under one name: undone one by one, each
/// time to the byte.
#[tokio::test(flavor = "multi_thread")]
async fn one_deed_after_the_other_is_undone() {
    let Some(depot) = objects(depot().await).await else { return };
    let Some(store) = objects(store().await).await else { return };
    let Some(applied) = objects(applied().await).await else { return };
    let (secret, map) = (ObjectKind::Secret, ObjectKind::ConfigMap);
    let with = |case: Case, kind: ObjectKind| match case {
        Case::Move { mut from, to } => {
            from.records = kind;
            Case::Move { from, to }
        }
        case => case,
    };
    let to_map = Case::moved(("web", "shop"), ("web", "shop", map));
    let to_secret = with(Case::moved(("web", "shop"), ("web", "shop", secret)), map);
    let renamed = |from, to| Case::moved((from, "shop"), (to, "shop", secret));
    let web = Case::adopt(chart("store"), "web", "shop", None);
    let chains = [
        (
            "names",
            &depot,
            vec![Case::moved(("old", "infra"), ("b", "shop", secret)), renamed("b", "c")],
        ),
        ("drivers", &store, vec![to_map.clone(), to_secret.clone(), to_map.clone()]),
        (
            "there and back",
            &store,
            vec![renamed("web", "db"), renamed("db", "web"), renamed("web", "db")],
        ),
        ("adopted, then moved", &applied, vec![web, to_map]),
    ];
    let engine = Engine::new(EngineOptions::default());
    for (name, objects, cases) in chains {
        let rehearsal = Rehearsal::release(objects.clone(), cases[0].clone()).await;
        let stage = rehearsal.stage();
        let cluster: Arc<dyn Cluster> = stage.cluster();
        let on = (&cluster, &*stage.clock as &dyn Clock, &engine);
        let mut states = Vec::new();
        for case in &cases {
            states.push(state(&stage));
            let digest = case.digest(&cluster, &*stage.clock, &engine).await;
            case.run(on, name, &digest).await.unwrap_or_else(|error| panic!("{name}: {error}"));
        }
        for (number, case) in cases.iter().enumerate().rev() {
            let place = case.place();
            let (plan, _) = undo(&stage, (&place.release, &place.home), None)
                .await
                .unwrap_or_else(|error| panic!("{name} {number}: {}", error_chain(&error)));
            println!("{name}: undid {}, {} before it", plan.undoes, plan.earlier);
            same(&stage, &states[number], &[], &format!("{name}, {number}"));
        }
        let place = cases[0].place();
        let error = undo(&stage, (&place.release, &place.home), None).await.unwrap_err();
        assert!(error.is_refusal(), "{name}: {error}");
    }
}

/// What a restore left behind is not taken for an adoption of a release that came since.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_undone_is_not_undone_again() {
    let Some(rehearsal) = changed_depot().await else { return };
    let stage = rehearsal.stage();
    rehearsal.run(&stage, "first").await.unwrap();
    let own = (*stage.object("Secret", "shop", "sh.helm.release.v1.depot.v1").unwrap()).clone();
    undo(&stage, DEPOT, None).await.unwrap();
    stage.memory.load(vec![("somebody's".to_owned(), own)]).unwrap();
    stage.restart();
    let error = undo(&stage, DEPOT, None).await.unwrap_err();
    assert!(error_chain(&error).contains("nothing to restore"), "{}", error_chain(&error));
    assert!(stage.object("Secret", "shop", "sh.helm.release.v1.depot.v1").is_some());
}

/// An object that an upgrade made under the new name is left without a release: the plan lists it,
/// with what to do. One that is somebody else's is not.
#[tokio::test(flavor = "multi_thread")]
async fn what_an_upgrade_made_since_is_listed() {
    let Some(rehearsal) = changed_depot().await else { return };
    let stage = rehearsal.stage();
    rehearsal.run(&stage, "first").await.unwrap();
    let mut next =
        (*stage.object("Secret", "shop", "sh.helm.release.v1.depot.v1").unwrap()).clone();
    let stored = STANDARD.decode(text(&next, "/data/release")).unwrap();
    let record = decode(&stored, CodecLimits::default()).unwrap();
    let mut record: Value = serde_json::from_str(&record).unwrap();
    let mut manifest = text(&record, "/manifest").to_owned();
    for name in ["since", "theirs", "gone"] {
        manifest.push_str(&format!(
            "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: shop}}\n"
        ));
    }
    record["manifest"] = manifest.into();
    record["version"] = 2.into();
    next["data"]["release"] = STANDARD.encode(encode(&record.to_string()).unwrap()).into();
    let mut labels = next["metadata"]["labels"].clone();
    labels["version"] = "2".into();
    next["metadata"] = json!({
        "name": "sh.helm.release.v1.depot.v2", "namespace": "shop", "labels": labels,
    });
    let owned = |name: &str, owner: &str| {
        let mut object = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": name, "namespace": "shop" },
        });
        helm_rs::apply::ownership::set(&mut object, owner, "shop");
        object
    };
    let objects = [next, owned("since", "depot"), owned("theirs", "other")];
    let objects = objects.map(|object| (text(&object, "/metadata/name").to_owned(), object));
    stage.memory.load(objects.to_vec()).unwrap();
    stage.restart();
    let (plan, _) = undo(&stage, DEPOT, None).await.unwrap();
    let listed: Vec<&String> =
        plan.created.iter().filter(|title| title.contains("upgrade since")).collect();
    let [since] = listed.as_slice() else { panic!("{:?}", plan.created) };
    assert!(since.contains("shop/since"), "{since}");
    assert!(since.contains("ichor release upgrade old … --take-ownership"), "{since}");
    assert!(stage.object("ConfigMap", "shop", "since").is_some());
}

/// On a control plane: a leaf that the server does not take back stays, with its reason, and all
/// others come back.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_server_does_not_take_back_stays() {
    let Some(bed) = depot().await else { return };
    let folder = bed.plane.folder().join("locked");
    takeover_tests::releases::copy_chart(
        "depot",
        &folder,
        "name }}, namespace: {{ .Values.place }}}\ndata: {size",
        "name }}, namespace: {{ .Values.place }}}\nimmutable: true\ndata: {size",
    );
    let locked = helm_rs::chart::load(&folder, &helm_rs::chart::Limits::default(), &mut Vec::new());
    let case = Case::adopt(locked.unwrap(), "depot", "shop", Some(("old", "infra")));
    bed.kubectl(&["-n", "shop", "annotate", "configmap", "depot", "note=theirs"]);
    bed.kubectl(&[
        "-n",
        "shop",
        "patch",
        "crate",
        "depot",
        "--type=merge",
        "-p",
        r#"{"spec":{"size":9}}"#,
    ]);
    let cluster: Arc<dyn Cluster> = Arc::clone(&bed.cluster) as Arc<dyn Cluster>;
    let engine = Engine::new(EngineOptions::default());
    let digest = case.digest(&cluster, &bed.clock, &engine).await;
    case.run((&cluster, &bed.clock, &engine), "live", &digest).await.unwrap();
    let get = |kind: &str, path: &str| {
        bed.kubectl(&["-n", "shop", "get", kind, "depot", "-o", &format!("jsonpath={{{path}}}")])
    };
    assert_eq!(
        (get("configmap", ".immutable"), get("crate", ".spec.size")),
        ("true".into(), "2".into())
    );
    let place = place_of(&*cluster, "depot", "shop").await.unwrap();
    let plan = plan_restore_at(&place, &*cluster, false).await.unwrap();
    println!("{:?}", plan.left);
    let [left] = plan.left.as_slice() else { panic!("{:?}", plan.left) };
    assert!(left.path == "immutable" && left.why.contains("immutable"), "{left:?}");
    let cancel = Cancel::default();
    let restore = Restore {
        place: &place,
        keep_leaves: false,
        digest: Some(&plan.digest),
        holder: "restore",
        observer: &Silent,
        cancel: &cancel,
    };
    restore_at(&restore, &cluster, &bed.clock).await.unwrap();
    assert_eq!(
        (get("configmap", ".immutable"), get("crate", ".spec.size")),
        ("true".into(), "9".into())
    );
    assert_eq!(get("configmap", r".metadata.annotations.meta\.helm\.sh/release-name"), "old");
    assert_eq!(bed.helm(&["list", "-A", "-q"]).trim(), "old");
    bed.plane.stop();
}
