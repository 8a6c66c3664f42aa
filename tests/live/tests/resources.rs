//! `status --show-resources`: Helm and ichor look at one server, and print the same to the byte.
//! What could not be read, which Helm says nothing of, ichor tells on standard error.

#![expect(clippy::unwrap_used, reason = "test code: a panic is how a test fails")]

use std::path::{Path, PathBuf};

use live::Program;
use plane::support::{or_skip, run};
use plane::{Plane, PlaneOptions};
use test_support::sealed::Outcome;

/// Helm walks its groups as Go walks a map, from anywhere on; and objects age meanwhile.
const TRIES: usize = 80;

struct Bed {
    plane: Plane,
    chart: tempfile::TempDir,
}

impl Bed {
    async fn start() -> Option<Self> {
        or_skip(plane::find_peer("helm"))?;
        let plane = or_skip(Plane::start(PlaneOptions::default()).await)?;
        let chart = tempfile::tempdir().unwrap();
        std::fs::create_dir(chart.path().join("templates")).unwrap();
        let file = "apiVersion: v2\nname: parts\nversion: 0.1.0\n";
        std::fs::write(chart.path().join("Chart.yaml"), file).unwrap();
        let bed = Self { plane, chart };
        bed.kubectl(&["create", "namespace", "other"]);
        for namespace in ["default", "other"] {
            let account = ["wait", "--for=create", "serviceaccount/default", "--timeout=60s", "-n"];
            bed.kubectl(&[&account[..], &[namespace]].concat());
        }
        Some(bed)
    }

    fn kubectl(&self, arguments: &[&str]) -> String {
        run(self.plane.kubectl().unwrap().args(arguments)).unwrap()
    }

    /// Installs a release of these objects, by Helm.
    fn install(&self, name: &str, objects: &str, more: &[&str]) {
        std::fs::write(self.chart.path().join("templates/all.yaml"), objects).unwrap();
        let chart = self.chart.path().to_string_lossy();
        let words = [&["install", name, &chart], more].concat();
        let done = Program::Helm.run(&self.plane.kubeconfig(), &words);
        assert_eq!(done.code, Some(0), "{}", String::from_utf8_lossy(&done.stderr));
    }

    /// Both programs say the same on standard output, and ichor this much of what is not shown.
    fn same(&self, arguments: &[&str], told: &[&str]) -> String {
        same_as(&self.plane.kubeconfig(), arguments, told)
    }

    /// A kubeconfig of somebody who may read these alone.
    fn reader(&self, name: &str, resources: &str) -> PathBuf {
        self.kubectl(&["create", "serviceaccount", name]);
        let resource = format!("--resource={resources}");
        self.kubectl(&["create", "clusterrole", name, "--verb=get,list", &resource]);
        let account = format!("--serviceaccount=default:{name}");
        let role = format!("--clusterrole={name}");
        self.kubectl(&["create", "clusterrolebinding", name, &role, &account]);
        let token = self.kubectl(&["create", "token", name]);
        let file = self.plane.folder().join(format!("{name}.kubeconfig"));
        self.plane.write_kubeconfig(&file, &self.plane.url(), token.trim()).unwrap();
        file
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn same_as(kubeconfig: &Path, arguments: &[&str], told: &[&str]) -> String {
    let words = [&["status"], arguments, &["--show-resources"]].concat();
    let mut shown: Vec<&str> = words.clone();
    shown.push("--show-secrets");
    let (mut helm, mut ichor): (Option<Outcome>, Option<Outcome>) = (None, None);
    for _ in 0..TRIES {
        let (wanted, got) =
            (Program::Helm.run(kubeconfig, &words), Program::Ichor.run(kubeconfig, &shown));
        let is_same = wanted.stdout == got.stdout && wanted.code == got.code;
        (helm, ichor) = (Some(wanted), Some(got));
        if is_same {
            break;
        }
    }
    let (helm, ichor) = (helm.unwrap(), ichor.unwrap());
    let what = arguments.join(" ");
    assert_eq!(text(&helm.stdout), text(&ichor.stdout), "{what}");
    assert_eq!(helm.code, ichor.code, "{what}");
    let stderr = text(&ichor.stderr);
    let notes: Vec<&str> = stderr.lines().filter(|line| line.starts_with("not shown: ")).collect();
    assert_eq!(notes.len(), told.len(), "{what}: {stderr}");
    // The manifest's order is that of the kinds.
    for told in told {
        assert!(notes.iter().any(|note| note.contains(told)), "{what}: {told}: {stderr}");
    }
    if helm.code != Some(0) {
        assert_eq!(text(&helm.stderr), stderr, "{what}");
    }
    text(&ichor.stdout)
}

const WIDGETS: &str = r"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.parts.example.org}
spec:
  group: parts.example.org
  scope: Namespaced
  names: {kind: Widget, plural: widgets, singular: widget}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
    additionalPrinterColumns:
    - {name: Size, type: number, jsonPath: .spec.size}
    - {name: Big, type: boolean, jsonPath: .spec.big}
    - {name: Hidden, type: string, jsonPath: .spec.note, priority: 1}
    - {name: note or so, type: string, jsonPath: .spec.note}
    - {name: Count, type: integer, jsonPath: .spec.count}
";

const OBJECTS: &str = r#"
apiVersion: v1
kind: ConfigMap
metadata: {name: one}
data: {a: "1"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: a-longer-name, namespace: other}
---
apiVersion: v1
kind: Secret
metadata: {name: secret}
stringData: {password: hunter2}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web, tier: front}}
  template:
    metadata: {labels: {app: web, tier: front}}
    spec: {containers: [{name: web, image: example.org/web:1}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: other}
spec:
  selector: {matchLabels: {tier: front, app: web}}
  template:
    metadata: {labels: {app: web, tier: front}}
    spec: {containers: [{name: web, image: example.org/web:1}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: none}
spec:
  replicas: 0
  serviceName: none
  selector: {matchLabels: {app: none}}
  template:
    metadata: {labels: {app: none}}
    spec: {containers: [{name: none, image: example.org/none:1}]}
---
apiVersion: parts.example.org/v1
kind: Widget
metadata: {name: plain}
spec: {size: 1.50, big: true, note: some, count: 7}
---
apiVersion: parts.example.org/v1
kind: Widget
metadata: {name: odd}
spec: {note: "two\nlines \u001b[31m", size: 1000000000000000000000000}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "{{ .Release.Name }}-role"}
rules: []
"#;

#[tokio::test(flavor = "multi_thread")]
async fn shown_as_helm_shows_them() {
    let Some(bed) = Bed::start().await else { return };
    let crd = bed.plane.folder().join("widgets.yaml");
    std::fs::write(&crd, WIDGETS).unwrap();
    bed.kubectl(&["apply", "-f", &crd.to_string_lossy()]);
    bed.kubectl(&["wait", "--for=condition=Established", "crd/widgets.parts.example.org"]);
    bed.install("parts", OBJECTS, &["--wait"]);

    let shown = bed.same(&["parts"], &[]);
    for wanted in ["==> v1/Pod(related)", "two...", "v1/ClusterRole", "NOTE OR SO", "1/1"] {
        assert!(shown.contains(wanted), "{wanted}: {shown}");
    }
    assert!(!shown.contains("HIDDEN"), "{shown}");
    bed.same(&["parts", "--show-desc", "--revision", "1"], &[]);
    let json = bed.same(&["parts", "-o", "json"], &[]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let pods = json.pointer("/info/resources/v1~1Pod(related)/0/items").unwrap();
    assert_eq!(pods.as_array().unwrap().len(), 2);
    bed.same(&["parts", "-o", "yaml"], &[]);
    // What is secret is shown to who asks for it.
    let hidden = Program::Ichor
        .run(&bed.plane.kubeconfig(), &["status", "parts", "--show-resources", "-o", "json"]);
    let hidden = text(&hidden.stdout);
    assert!(hidden.contains("v1/Secret") && !hidden.contains("aHVudGVyMg"), "{hidden}");

    // Without rights to some, or to the pods alone.
    let some = bed.reader("some", "secrets,configmaps");
    let deployments = "deployments.apps \"web\" is forbidden";
    let refused = [
        deployments,
        deployments,
        "statefulsets.apps \"none\" is forbidden",
        "widgets.parts.example.org \"plain\" is forbidden",
        "widgets.parts.example.org \"odd\" is forbidden",
        "clusterroles.rbac.authorization.k8s.io \"parts-role\" is forbidden",
    ];
    same_as(&some, &["parts"], &refused);
    same_as(&some, &["parts", "-o", "json"], &refused);
    let all = "secrets,configmaps,deployments.apps,statefulsets.apps,clusterroles.rbac.authorization.k8s.io,widgets.parts.example.org";
    let no_pods = bed.reader("no-pods", all);
    let pods = ["pods of deployments.apps default/web", "pods of statefulsets.apps default/none"];
    let shown = same_as(&no_pods, &["parts"], &pods);
    assert!(!shown.contains("related"), "{shown}");

    // Objects that are gone; then a kind.
    bed.kubectl(&["delete", "configmap", "one"]);
    bed.kubectl(&["delete", "deployment", "web"]);
    let gone = ["configmaps \"one\" not found", "deployments.apps \"web\" not found"];
    bed.same(&["parts"], &gone);
    bed.same(&["parts", "-o", "yaml"], &gone);
    bed.kubectl(&["delete", "crd", "widgets.parts.example.org"]);
    let told = bed.same(&["parts"], &[]);
    assert!(told.is_empty(), "{told}");
    bed.same(&["nobody"], &[]);
}

#[tokio::test(flavor = "multi_thread")]
async fn odd_manifests() {
    let Some(bed) = Bed::start().await else { return };
    bed.install("empty", "", &[]);
    bed.same(&["empty"], &[]);
    bed.same(&["empty", "-o", "json"], &[]);
    // Selectors: none, an empty one, one that is no text, an old kind's.
    let odd = r"
apiVersion: v1
kind: ReplicationController
metadata: {name: old}
spec:
  replicas: 1
  selector: {app: old}
  template:
    metadata: {labels: {app: old}}
    spec: {containers: [{name: old, image: example.org/old:1}]}
---
apiVersion: batch/v1
kind: Job
metadata: {name: job}
spec:
  template:
    spec: {restartPolicy: Never, containers: [{name: job, image: example.org/job:1}]}
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ServiceAccount, metadata: {name: listed}}
- {apiVersion: v1, kind: Service, metadata: {name: listed}, spec: {ports: [{port: 80}], selector: {app: old}}}
";
    bed.install("odd", odd, &[]);
    let shown = bed.same(&["odd"], &[]);
    assert!(shown.contains("==> v1/ServiceAccount") && shown.contains("old-"), "{shown}");
    bed.same(&["odd", "-o", "yaml"], &[]);
    // The deleted release's record, whose objects are gone.
    bed.kubectl(&["delete", "job", "job"]);
    let uninstalled = Program::Helm
        .run(&bed.plane.kubeconfig(), &["uninstall", "odd", "--keep-history", "--wait"]);
    assert_eq!(uninstalled.code, Some(0));
    let gone =
        ["\"old\" not found", "\"job\" not found", "\"listed\" not found", "\"listed\" not found"];
    let shown = bed.same(&["odd"], &gone);
    assert!(!shown.contains("RESOURCES"), "{shown}");
}
