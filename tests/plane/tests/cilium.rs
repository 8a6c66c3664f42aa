//! Real Helm installs Cilium on a plane, and the plane stays small.

use std::time::{Duration, Instant};

use plane::support::or_skip;
use plane::{Plane, PlaneOptions};

/// Real Helm with `--wait` succeeds for both value files; pods are those of a real cluster.
#[tokio::test(flavor = "multi_thread")]
async fn helm_installs_cilium_and_waits() {
    for values in ["01", "03"] {
        let began = Instant::now();
        let Some(state) = or_skip(plane::cilium::state("1.20.0", values).await) else { return };
        println!("values {values}: prepared in {:.1} s", began.elapsed().as_secs_f64());
        let plane = Plane::restore(&state, PlaneOptions::default()).await.unwrap();
        let list = plane::support::run(plane.helm().unwrap().args(["list", "-n", "kube-system"]));
        let list = list.unwrap();
        assert!(list.contains("deployed") && list.contains("cilium-1.20.0"), "{list}");
        let mut kubectl = plane.kubectl().unwrap();
        kubectl.args(["-n", "kube-system", "rollout", "status", "ds/cilium", "--timeout=20s"]);
        let rollout = plane::support::run(&mut kubectl).unwrap();
        assert!(rollout.contains("successfully rolled out"), "{rollout}");
        plane.stop();
    }
}

/// Prints memory and idle CPU of a plane with five nodes and Cilium: `hack/proof plane-footprint`.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: hack/proof plane-footprint"]
async fn footprint() {
    let Some(state) = or_skip(plane::cilium::state("1.20.0", "03").await) else { return };
    let plane = Plane::restore(&state, PlaneOptions::default()).await.unwrap();
    // The start is over and the garbage of it collected.
    tokio::time::sleep(Duration::from_mins(1)).await;
    let meter = plane.meter();
    tokio::time::sleep(Duration::from_mins(1)).await;
    let footprint = plane.footprint();
    let mut cpu = 0.0;
    for ((name, bytes), (_, share)) in footprint.processes.iter().zip(meter.cpu_shares()) {
        println!("{name:<26} {:>6} MiB {:>6.1} % of one core", bytes / 1_048_576, share * 100.0);
        cpu += share;
    }
    let total = footprint.total() / 1_048_576;
    println!(
        "{:<26} {total:>6} MiB {:>6.1} % of one core (goal: under 1536 MiB)",
        "all",
        cpu * 100.0
    );
    assert!(total < 1536, "the plane takes {total} MiB");
    plane.stop();
}
