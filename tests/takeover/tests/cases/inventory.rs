//! Section 4, step 9: taken-over objects leave Talos' inventory. The library that
//! `talosctl upgrade-k8s` syncs with says what it would delete, and does it.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use helm_rs::cluster::Cluster;
use helm_rs::cluster::live::{Connection, Live, LiveOptions};
use plane::{Match, NodeSpec, Plane, PlaneOptions};
use serde_json::{Value, json};
use takeover::inventory::{EntryDropped, InventoryError, release};
use takeover::report::{Form, render};
use takeover_tests::{Bed, values};

/// `talosctl upgrade-k8s` without flags. (`cmd/talosctl/cmd/talos/upgrade-k8s.go` of Talos 1.13)
const POLICY: &str = "AdoptIfNoInventory";
const CONTROL_PLANES: [&str; 2] = ["node-1", "node-2"];

fn talos_nodes() -> Vec<NodeSpec> {
    let mut nodes = NodeSpec::several(4);
    let label = "node-role.kubernetes.io/control-plane".to_owned();
    nodes[1].labels.insert(label, String::new());
    nodes.into_iter().map(|node| node.talos("v1.13.0")).collect()
}

/// The manifests of Talos itself: one stands for all.
fn own() -> Vec<Value> {
    vec![json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "kubeconfig-in-cluster", "namespace": "kube-system"},
        "data": {"kubeconfig": "stand-in"},
    })]
}

/// The inline manifest: Cilium as `helm template` renders it.
fn inline(plane: &Plane) -> Vec<Value> {
    let list: Value = serde_json::from_str(&crate::a1::rendered(plane, "01", None)).unwrap();
    list["items"].as_array().unwrap().clone()
}

/// The peer, on a list of manifests; its answer.
fn talos(plane: &Plane, command: &str, manifests: &[Value], policy: &[&str]) -> Value {
    let file = plane.folder().join("talos-manifests.json");
    std::fs::write(&file, Value::from(manifests).to_string()).unwrap();
    let mut tool = plane.tool("talos-inventory").unwrap();
    tool.arg(command).arg(plane.kubeconfig()).arg(&file).args(policy);
    serde_json::from_str(&plane::support::run(&mut tool).unwrap()).unwrap()
}

fn fill(plane: &Plane, manifests: &[Value]) -> Value {
    let answer = talos(plane, "fill", manifests, &[]);
    assert_eq!(answer.get("error"), None, "{answer}");
    answer
}

/// What a sync would delete, or why it fails.
fn pruned(plane: &Plane, policy: &str) -> Result<Vec<String>, String> {
    let answer = talos(plane, "diff", &own(), &[policy]);
    if let Some(error) = answer.get("error") {
        return Err(error.as_str().unwrap().to_owned());
    }
    let pruned = answer["objects"]["Pruned"].as_array().cloned().unwrap_or_default();
    Ok(pruned.iter().map(|name| name.as_str().unwrap().to_owned()).collect())
}

/// Planes on which Talos created Cilium out of an inline manifest; none when something is missing.
async fn beds(count: usize) -> Option<Vec<Bed>> {
    plane::support::or_skip(plane::find_peer("talos-inventory"))?;
    let options = PlaneOptions { nodes: talos_nodes(), ..PlaneOptions::default() };
    let work = |plane: Arc<Plane>| async move {
        plane::cilium::create_stubs(&plane.client()?).await?;
        let mut manifests = own();
        manifests.extend(inline(&plane));
        let answer = fill(&plane, &manifests);
        assert_eq!(answer["objects"]["created"].as_array().unwrap().len(), manifests.len());
        for workload in ["ds/cilium", "ds/cilium-envoy", "deploy/cilium-operator"] {
            let mut kubectl = plane.kubectl()?;
            kubectl.args(["-n", "kube-system", "rollout", "status", workload, "--timeout=90s"]);
            plane::support::run(&mut kubectl)?;
        }
        Ok::<(), plane::Error>(())
    };
    let state = plane::support::prepared_state("talos-inventory-01", "1", options, work).await;
    let state = plane::support::or_skip(state)?;
    let mut beds = Vec::new();
    for _ in 0..count {
        let plane = Plane::restore(&state, PlaneOptions::default()).await.unwrap();
        beds.push(Bed::new(plane).await);
    }
    Some(beds)
}

async fn dropped(bed: &Bed) -> EntryDropped {
    let all = CONTROL_PLANES.map(str::to_owned).into();
    EntryDropped::by(&*bed.cluster, &all).await.unwrap()
}

fn adopt_what_the_plan_says(plan: &takeover::plan::Plan) {
    let inventory = plan.talos_inventory.as_ref().unwrap();
    assert!(inventory.exists);
    assert_eq!(inventory.listed.len(), plan.objects.len());
    assert_eq!(inventory.others, 1, "Talos' own");
    let text = takeover::plan::to_text(plan, false);
    assert!(text.contains("Talos inventory") && text.contains("to do: once every control plane"));
    println!("{text}");
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    for (form, name) in
        [(Form::Html, "plan.html"), (Form::Markdown, "plan.md"), (Form::Json, "plan.json")]
    {
        let report = render(plan, form).unwrap();
        println!("report {}: {} bytes", folder.join(name).display(), report.len());
        std::fs::write(folder.join(name), report).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn step_9_taken_over_objects_leave_the_inventory_of_talos() {
    let Some(beds) = beds(1).await else { return };
    let bed = &beds[0];
    let (cluster, clock, plane) = (&*bed.cluster, &bed.clock, &bed.plane);
    let mut manifests = own();
    manifests.extend(inline(plane));
    let count = manifests.len() - 1;
    let values = values("01");
    let prepared = bed.plan(Some(&values)).await;
    adopt_what_the_plan_says(&prepared.plan);

    // Too early twice: before the takeover, and before every control plane dropped the entry.
    let early = release(cluster, clock, &dropped(bed).await).await.unwrap_err();
    assert!(matches!(early, InventoryError::NotComplete { .. }), "{early}");
    println!("{early}");
    let one = BTreeSet::from([CONTROL_PLANES[0].to_owned()]);
    let early = EntryDropped::by(cluster, &one).await.unwrap_err();
    println!("{early}");
    let InventoryError::NotDropped { nodes } = early else { panic!("{early}") };
    assert_eq!(nodes, [CONTROL_PLANES[1]]);

    bed.take_over(Some(&values), &prepared.plan).await.unwrap();
    let before = pruned(plane, POLICY).unwrap();
    println!("without step 9, a sync deletes {} objects: {}", before.len(), before.join(" "));
    assert_eq!(before.len(), count, "all of Cilium");

    let mark = plane.audit_log().mark();
    let footprints = bed.footprints().await;
    let released = release(cluster, clock, &dropped(bed).await).await.unwrap();
    assert_eq!((released.removed.len(), released.others), (count, 1));
    assert_eq!(released.removed, before, "the library's names of them");
    let writes = plane.audit_log().writes(plane::ADMIN_USER, mark).unwrap();
    assert_eq!(writes.len(), 1, "one write: {writes:?}");
    assert_eq!(pruned(plane, POLICY), Ok(Vec::new()));
    println!("with step 9: none");

    // A control plane that had it still, at its next start; then again, and once too often.
    let refill = fill(plane, &manifests);
    assert_eq!(refill["objects"]["found"].as_array().unwrap().len(), count);
    assert_eq!(pruned(plane, POLICY).unwrap().len(), count);
    let again = release(cluster, clock, &dropped(bed).await).await.unwrap();
    assert_eq!(again.removed.len(), count);
    let mark = plane.audit_log().mark();
    let idle = release(cluster, clock, &dropped(bed).await).await.unwrap();
    assert_eq!((idle.removed.len(), idle.others), (0, 1));
    assert_eq!(plane.audit_log().writes(plane::ADMIN_USER, mark).unwrap(), []);

    // An object that names another inventory makes the whole sync fail, while it is listed.
    fill(plane, &manifests);
    let annotation = "config.k8s.io/owning-inventory=other";
    let service = ["-n", "kube-system", "annotate", "--overwrite", "service", "hubble-peer"];
    bed.kubectl(&[&service[..], &[annotation]].concat());
    let named = bed.plan(None).await.plan.talos_inventory.unwrap().foreign;
    assert_eq!(named.iter().map(|f| f.object.name.as_str()).collect::<Vec<_>>(), ["hubble-peer"]);
    let error = pruned(plane, POLICY).unwrap_err();
    assert!(error.contains("inventory policy"), "{error}");
    release(cluster, clock, &dropped(bed).await).await.unwrap();
    for policy in [POLICY, "MustMatch", "AdoptAll"] {
        assert_eq!(pruned(plane, policy), Ok(Vec::new()), "{policy}");
    }

    // The sync itself, not only its word.
    let sync = talos(plane, "sync", &own(), &[POLICY]);
    assert_eq!(sync.get("error"), None, "{sync}");
    assert_eq!(sync["objects"].get("deleted"), None, "{sync}");
    assert_eq!(bed.footprints().await, footprints, "no pod, no workload moved");
}

#[tokio::test(flavor = "multi_thread")]
async fn step_9_talos_fills_in_between() {
    let Some(beds) = beds(1).await else { return };
    let bed = &beds[0];
    let values = values("01");
    let plan = bed.plan(Some(&values)).await.plan;
    bed.take_over(Some(&values), &plan).await.unwrap();
    let dropped = dropped(bed).await;
    let mut manifests = own();
    manifests.extend(inline(&bed.plane));
    let proxy = bed.plane.fault_proxy().await.unwrap();
    let mut connection = Connection::kubeconfig(bed.plane.kubeconfig());
    connection.server = Some(proxy.url());
    let live = Live::connect(&connection, LiveOptions::new("ichor/test", 1)).await;
    let through: Arc<dyn Cluster> = Arc::new(live.unwrap());
    let inventory =
        || Match::writes().resource("configmaps").name("talos-bootstrap-manifests-inventory");

    // After the write, before it is read again.
    let mut paused = proxy.pause_after(inventory());
    let refill = async {
        let held = paused.recv().await.unwrap();
        fill(&bed.plane, &manifests);
        held.release();
    };
    let (result, ()) = tokio::join!(release(&*through, &bed.clock, &dropped), refill);
    let error = result.unwrap_err();
    println!("{error}");
    assert!(
        matches!(&error, InventoryError::Refilled { references } if references.len() == manifests.len() - 1)
    );
    proxy.clear();

    // Between reading and writing: the write holds for what was read only, and is made again.
    let mut paused = proxy.pause_before(inventory());
    let mut more = manifests.clone();
    more.push(own().remove(0));
    more.last_mut().unwrap()["metadata"]["name"] = "one-more".into();
    let touch = async {
        let held = paused.recv().await.unwrap();
        fill(&bed.plane, &more);
        proxy.clear();
        held.release();
    };
    let (result, ()) = tokio::join!(release(&*through, &bed.clock, &dropped), touch);
    assert_eq!(result.unwrap().removed.len(), manifests.len() - 1);
    let conflicts = proxy.requests().iter().filter(|r| r.status == Some(409)).count();
    assert_eq!(conflicts, 1, "{:?}", proxy.requests());
    let stranger = "kube-system_one-more__ConfigMap".to_owned();
    assert_eq!(pruned(&bed.plane, POLICY), Ok(vec![stranger]), "nothing of Cilium");
}

#[tokio::test(flavor = "multi_thread")]
async fn step_9_left_out_talos_deletes_cilium() {
    let Some(beds) = beds(1).await else { return };
    let bed = &beds[0];
    let values = values("01");
    let plan = bed.plan(Some(&values)).await.plan;
    bed.take_over(Some(&values), &plan).await.unwrap();
    let sync = talos(&bed.plane, "sync", &own(), &[POLICY]);
    let deleted = sync["objects"]["deleted"].as_array().unwrap();
    println!("the sync deleted {} objects", deleted.len());
    assert_eq!(deleted.len(), inline(&bed.plane).len());
    let sets = bed.kubectl(&["-n", "kube-system", "get", "daemonsets", "-o", "name"]);
    assert!(!sets.contains("daemonset.apps/cilium"), "{sets}");
}
