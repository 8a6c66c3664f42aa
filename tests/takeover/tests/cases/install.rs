//! No CNI, nodes NotReady: Cilium is installed first, and managed from then on.

use std::time::Duration;

use plane::{NodeHealth, Nodes, Plane, PlaneOptions};
use takeover::plan::{Action, Outcome, to_text};
use takeover_tests::{Bed, values};

#[tokio::test(flavor = "multi_thread")]
async fn no_cni_is_installed() {
    let plane = plane::support::or_skip(Plane::start(PlaneOptions::default()).await);
    let Some(plane) = plane else { return };
    let client = plane.client().unwrap();
    plane::cilium::create_stubs(&client).await.unwrap();
    let bed = Bed::new(plane).await;
    // Nodes are Ready before anybody may say otherwise.
    for number in 1..=5 {
        Nodes::set_node(&client, &format!("node-{number}"), NodeHealth::NotReady).await.unwrap();
    }
    bed.kubectl(&["wait", "--for=condition=Ready=false", "nodes", "--all", "--timeout=60s"]);
    let values = values("01");
    let plan = bed.plan(Some(&values)).await.plan;
    println!("{}", to_text(&plan, false));
    assert_eq!(plan.outcome, Outcome::Install, "{:?}", plan.refusals);
    assert_eq!(plan.found.cni, "none");
    assert!(plan.objects.iter().all(|object| object.action == Action::Create));
    assert_eq!((plan.consent.as_slice(), plan.records.as_slice()), (&[][..], &[][..]));
    // As a kubelet finds the agent's CNI configuration, its node becomes Ready.
    let ready = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(3)).await;
        for number in 1..=5 {
            Nodes::set_node(&client, &format!("node-{number}"), NodeHealth::Ready).await.unwrap();
        }
    });
    let done = bed.take_over(Some(&values), &plan).await.unwrap();
    ready.await.unwrap();
    assert_eq!((done.created.len(), done.patched.len()), (plan.objects.len(), 0));
    let list = bed.helm(&["-n", "ichor-system", "list"]);
    assert!(list.contains("deployed") && list.contains("cilium-1.20.0"), "{list}");
    let after = bed.plan(None).await.plan;
    assert_eq!(after.outcome, Outcome::Nothing, "managed from now on");
    assert!(after.gate_is_empty(), "{}", to_text(&after, true));
}
