//! Lifecycles under server-side apply: the same objects, owners of fields, records and exit status
//! as Helm 4 leaves.

use plane::support::or_skip;
use test_support::sealed::Sealed;

use crate::bed::{Pair, Peer, told};

/// Takes a field of an object, as somebody with kubectl would.
fn take(pair: &Pair, object: &str, patch: &str) {
    pair.kubectl(&["patch", object, "--field-manager=somebody", "-p", patch]);
}

#[tokio::test(flavor = "multi_thread")]
async fn ssa_lifecycle() {
    let Some(mut pair) = Pair::open().await else { return };
    let (one, two) = ("--set step=1", "--set step=2");
    pair.run(&format!("install web @web {one} --apply-method ssa --wait"));
    pair.run(&format!("upgrade web @web {two}"));
    pair.compare("upgraded, as the record before says");
    pair.run("upgrade web @web --set replicas=-1");
    pair.compare("an upgrade that the server refuses");
    pair.run(&format!("upgrade web @web {one} --atomic --wait --timeout 3s --set health=unready"));
    pair.run("rollback web 1");
    pair.compare("rolled back");

    take(&pair, "configmap/web", r#"{"data":{"step":"mine"}}"#);
    // Within what the chart's HorizontalPodAutoscaler allows: whatever is outside of that, its
    // controller sets, and then owns, by the time of the plan or after it.
    take(
        &pair,
        "deployment/web",
        r#"{"spec":{"replicas":3,"template":{"spec":{"containers":[{"name":"web","image":"registry.example/mine:1"}]}}}}"#,
    );
    let plan = told(&Peer::Ichor.run(&pair.ichor, &format!("plan upgrade web @web {two}")));
    for line in [
        "\nFields of other managers (--force-conflicts takes them;",
        "\n  ConfigMap default/web: .data.step belongs to somebody\n",
        "\n  Deployment default/web: .spec.replicas belongs to somebody\n",
    ] {
        assert!(plan.contains(line), "{line:?} is not in\n{plan}");
    }
    let refused = pair.run(&format!("upgrade web @web {two}"));
    let text = told(&refused);
    for line in [
        "UPGRADE FAILED: fields belong to other managers:\n",
        "\nConfigMap \"web\" in namespace \"default\": .data.step: somebody\n",
        "\nDeployment \"web\" in namespace \"default\": .spec.replicas: somebody\n",
        "\nDeployment \"web\" in namespace \"default\": \
         .spec.template.spec.containers[name=\"web\"].image: somebody\n",
        "\nhint: --force-conflicts takes these fields",
    ] {
        assert!(text.contains(line), "{line:?} is not in\n{text}");
    }
    pair.compare("refused");
    pair.run("rollback web 1");
    pair.run(&format!("upgrade web @web {two} --force-conflicts"));
    pair.compare("forced");
    take(&pair, "configmap/web", r#"{"data":{"step":"mine"}}"#);
    pair.run("rollback web 1 --force-conflicts");
    pair.compare("a forced rollback");
    pair.run("uninstall web --keep-history");
    pair.compare("uninstalled, with history");
    pair.run("rollback web 2");
    pair.compare("rolled back after that");
    pair.run("uninstall web");
    pair.compare("uninstalled");
    pair.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn ssa_charts() {
    charts(&["lists", "hooks"]).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: hack/proof ssa"]
async fn ssa_more_charts() {
    charts(&["custom", "nulls", "store", "web"]).await;
}

/// Both ways after each other.
async fn charts(names: &[&str]) {
    let Some(mut pair) = Pair::open().await else { return };
    for name in names {
        pair.run(&format!("install {name} @{name} --apply-method ssa"));
        pair.compare(&format!("{name}: installed"));
        pair.run(&format!("upgrade {name} @{name} --set step=2"));
        pair.run(&format!("rollback {name} 1"));
        pair.compare(&format!("{name}: upgraded and rolled back"));
        pair.run(&format!("upgrade {name} @{name} --set step=2 --apply-method csa"));
        pair.compare(&format!("{name}: patched"));
        pair.run(&format!("upgrade {name} @{name} --apply-method ssa"));
        if *name == "hooks" {
            pair.run("test hooks");
        }
        pair.compare(&format!("{name}: applied after a patch"));
        pair.run(&format!("uninstall {name}"));
        pair.compare(&format!("{name}: uninstalled"));
    }
    pair.end();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "long: hack/proof ssa"]
async fn ssa_cilium() {
    let (Some(chart), Some(values)) =
        (or_skip(plane::cilium::chart("1.20.0")), or_skip(plane::cilium::values("01")))
    else {
        return;
    };
    let Some(mut pair) = Pair::open().await else { return };
    for plane in [&pair.helm4, &pair.ichor] {
        let client = plane.client().expect("a client");
        plane::cilium::create_stubs(&client).await.expect("the stub definitions");
    }
    // Helm 4 takes some empty values of the chart for others than Helm 3: what is compared here is
    // how one and the same manifest is written.
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, content: &[u8]| {
        std::fs::write(folder.path().join(name), content).expect("a file of the chart");
    };
    for (step, set) in [(1, "debug.enabled=false"), (2, "debug.enabled=true")] {
        let words = ["chart", "template", "cilium", &chart.to_string_lossy(), "-n", "kube-system"]
            .map(str::to_owned);
        let values = ["-f", &values.to_string_lossy(), "--set", set].map(str::to_owned);
        let rendered = Sealed::ichor().run(words.into_iter().chain(values));
        assert_eq!(rendered.code, Some(0), "{}", told(&rendered));
        write(&format!("{step}.yaml"), &rendered.stdout);
    }
    std::fs::create_dir(folder.path().join("templates")).expect("a folder in it");
    write("Chart.yaml", b"apiVersion: v2\nname: cilium\nversion: 1.20.0\n");
    write("templates/all.yaml", b"{{ .Files.Get (printf \"%v.yaml\" .Values.step) }}");
    let at = format!("cilium {} -n kube-system --set step=", folder.path().display());
    pair.run(&format!("install {at}1 --apply-method ssa"));
    pair.compare("Cilium: installed");
    pair.run(&format!("upgrade {at}2"));
    pair.compare("Cilium: upgraded");
    pair.run("rollback cilium 1 -n kube-system");
    pair.compare("Cilium: rolled back");
    pair.run("uninstall cilium -n kube-system");
    pair.compare("Cilium: uninstalled");
    pair.end();
}
