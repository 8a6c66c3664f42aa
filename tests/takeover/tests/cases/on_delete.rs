//! A DaemonSet whose pods are replaced only when somebody deletes them.

use plane::Plane;
use serde_json::Value;
use takeover::plan::{Outcome, to_text};
use takeover_tests::rehearsal::text;
use takeover_tests::{assert_forecast, helm_install, prepared, values_path};

#[tokio::test(flavor = "multi_thread")]
async fn on_delete_pods_stay_until_they_are_deleted() {
    let bed = prepared("on-delete", "1", |plane: &Plane| {
        let values = values_path("01");
        let set = "updateStrategy.type=OnDelete,updateStrategy.rollingUpdate=null";
        let more = ["-f", &values, "--set", set];
        helm_install(plane, "cilium", "kube-system", "1.19.6", &more);
    })
    .await;
    let Some(bed) = bed else { return };
    let before = bed.footprints().await;
    let plan = bed.plan(None).await.plan;
    assert_eq!(plan.outcome, Outcome::Upgrade);
    let agent = |restart: &&takeover::plan::Restart| {
        (restart.about.kind.as_str(), restart.about.name.as_str()) == ("DaemonSet", "cilium")
    };
    let restart = plan.restarts.iter().find(agent).expect("the agents' template changes");
    assert!(restart.on_delete && restart.pods > 0, "{restart:?}");
    println!("{}", to_text(&plan, false));
    bed.take_over(None, &plan).await.unwrap();
    let after = bed.footprints().await;
    assert_forecast(&before, &after, &plan);
    // One is deleted: the new one is of the new template.
    let pods = || {
        let selector = ["-n", "kube-system", "get", "pods", "-l", "k8s-app=cilium", "-o", "json"];
        let list: Value = serde_json::from_str(&bed.kubectl(&selector)).unwrap();
        list["items"].as_array().unwrap().clone()
    };
    let image = |pod: &Value| text(pod, "/spec/containers/0/image").to_owned();
    let old = pods();
    assert!(old.iter().all(|pod| image(pod).contains(":v1.19.6")));
    let name = text(&old[0], "/metadata/name").to_owned();
    bed.kubectl(&["-n", "kube-system", "delete", "pod", &name, "--wait"]);
    bed.kubectl(&["-n", "kube-system", "rollout", "status", "ds/cilium-envoy", "--timeout=60s"]);
    let mut images = Vec::new();
    for _ in 0..100 {
        images = pods().iter().map(image).collect();
        if images.len() == old.len() && images.iter().any(|image| image.contains(":v1.20.0")) {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
    let new = images.iter().filter(|image| image.contains(":v1.20.0")).count();
    assert_eq!((images.len(), new), (old.len(), 1), "{images:?}");
    bed.plane.stop();
}
