//! The chart, rendered and installed by real Helm and by ichor; and the one file for kubectl.

use std::process::Command;

use controller_tests::chart;
use plane::{Plane, PlaneOptions};
use serde_json::Value;
use test_support::place::repository;
use test_support::sealed::Sealed;

const IMAGE: &str = "image.repository=example.org/ichor";

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Both programs render the same text, and refuse the same values in the same words.
#[test]
fn rendered_as_helm_renders_it() {
    let helm = match test_support::peer::helm() {
        Ok(helm) => helm,
        Err(missing) => test_support::skip!(missing),
    };
    let path = chart().display().to_string();
    let digest = format!("image.digest=sha256:{}", "0a".repeat(32));
    let cases: [(&str, &[&str]); 11] = [
        ("ichor-system", &["--include-crds"]),
        ("ichor-system", &["--set", &digest, "--set", "replicas=1"]),
        ("ichor-system", &["--set", "job.createRoles=false,hostNetwork=true,port=9000"]),
        ("ichor-system", &["--set", "imagePullSecrets[0].name=pull,podAnnotations.a=b"]),
        ("ichor-system", &["--set", "nodeSelector.a=b,priorityClassName=,resources=null"]),
        ("default", &[]),
        ("ichor-system", &["--set", "replicas=two"]),
        ("ichor-system", &["--set", "image.digest=latest,replica=1"]),
        ("ichor-system", &["--set", "logLevel=loud"]),
        (
            "ichor-system",
            &["--set", "networkPolicies.enabled=true,traces.endpoint=http://otel.otel:4318"],
        ),
        ("ichor-system", &["--set", "traces.endpoint=otel:4318"]),
    ];
    for (namespace, flags) in cases {
        let mut arguments = vec!["template", "ichor", &path, "--namespace", namespace];
        arguments.extend(flags);
        let theirs = Sealed::new(&helm).run(&arguments);
        arguments.insert(0, "chart");
        let ours = Sealed::ichor().run(&arguments);
        assert_eq!(text(&ours.stdout), text(&theirs.stdout), "{flags:?}");
        assert_eq!(ours.error_text(), theirs.error_text(), "{flags:?}");
    }
}

/// `deploy/ichor.yaml` is the chart with its defaults and the namespace. `ICHOR_BLESS=1` writes it.
#[test]
fn one_file_for_kubectl() {
    let path = chart().display().to_string();
    let rendered = Sealed::ichor().run([
        "chart",
        "template",
        "ichor",
        &path,
        "--namespace",
        "ichor-system",
        "--include-crds",
        "--kube-version",
        "1.36.0",
    ]);
    assert_eq!(rendered.code, Some(0), "{}", text(&rendered.stderr));
    let text = format!(
        "# ichor's controller, for `kubectl apply --server-side -f`; the chart charts/ichor with its \
         defaults.\n# Generated: ICHOR_BLESS=1 cargo test -p controller-tests one_file\n\
         ---\napiVersion: v1\nkind: Namespace\nmetadata:\n  name: ichor-system\n{}",
        text(&rendered.stdout)
    );
    let file = repository().join("deploy/ichor.yaml");
    if std::env::var_os("ICHOR_BLESS").is_some() {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, text).unwrap();
    } else {
        let there = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(there == text, "{} is not current: run with ICHOR_BLESS=1", file.display());
    }
}

/// What both leave on a cluster: each object of the chart without what the server made up.
fn left(plane: &Plane) -> Vec<Value> {
    let label = "app.kubernetes.io/managed-by=Helm";
    let mut objects = Vec::new();
    for (kinds, selector) in [
        ("deploy,pdb,sa,role,rolebinding,clusterrole,clusterrolebinding", label),
        ("sa,role,rolebinding,clusterrole,clusterrolebinding", "app.kubernetes.io/name=ichor-cni"),
        (
            "role,rolebinding,clusterrole,clusterrolebinding",
            "app.kubernetes.io/name=ichor-cni-standing",
        ),
        ("crd,validatingadmissionpolicy,validatingadmissionpolicybinding", ""),
    ] {
        let mut kubectl = plane.kubectl().unwrap();
        kubectl.args(["get", kinds, "-A", "-o", "json", "-l", selector]);
        let list: Value =
            serde_json::from_str(&plane::support::run(&mut kubectl).unwrap()).unwrap();
        objects.extend(list["items"].as_array().unwrap().iter().cloned());
    }
    let ours = |object: &Value| object["metadata"]["name"].as_str().unwrap().contains("ichor");
    objects.retain(ours);
    for object in &mut objects {
        object.as_object_mut().unwrap().remove("status");
        let metadata = object["metadata"].as_object_mut().unwrap();
        for field in ["uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"]
        {
            metadata.remove(field);
        }
    }
    objects.sort_by_key(|object| format!("{}{}", object["kind"], object["metadata"]));
    objects
}

#[tokio::test(flavor = "multi_thread")]
async fn installed_as_helm_installs_it() {
    let Some(helms) = plane::support::or_skip(Plane::start(PlaneOptions::default()).await) else {
        return;
    };
    let ours = Plane::start(PlaneOptions::default()).await.unwrap();
    let path = chart();
    let flags = ["--namespace", "ichor-system", "--create-namespace", "--wait", "--set", IMAGE];
    let mut helm = helms.helm().unwrap();
    plane::support::run(helm.args(["install", "ichor"]).arg(&path).args(flags)).unwrap();
    let mut ichor = Command::new(test_support::place::ichor());
    ichor.env("KUBECONFIG", ours.kubeconfig()).args(["release", "install", "ichor"]);
    plane::support::run(ichor.arg(&path).args(flags)).unwrap();
    let (theirs, ours) = (left(&helms), left(&ours));
    println!("{} objects", theirs.len());
    assert!(theirs.len() > 20);
    for (theirs, ours) in theirs.iter().zip(&ours) {
        assert_eq!(ours, theirs);
    }
    assert_eq!(ours.len(), theirs.len());
}
