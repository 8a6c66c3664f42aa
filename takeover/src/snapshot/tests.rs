use std::sync::Arc;

use cilium::pinned::Pinned;
use helm_rs::action::Session;
use helm_rs::action::install::{InstallOptions, install};
use helm_rs::apply::{Cancel, Method, Silent};
use helm_rs::chart::{BufferedFile, Chart, load_files};
use helm_rs::cluster::memory::{MemoryCluster, MemoryOptions};
use helm_rs::cluster::snapshot::{Limits, Secrets};
use helm_rs::cluster::{Clock, Cluster, ManualClock, block_on};
use helm_rs::release::CodecLimits;
use helm_rs::release::storage::{ObjectDriver, ObjectKind};
use helm_rs::render::host::{Clock as HostClock, Randomness, Reading};
use helm_rs::render::time::Zone;
use helm_rs::render::{Engine, EngineOptions, Host};
use helm_rs::repo::Digest;
use serde_json::{Value, json};

use super::*;
use crate::plan::{KubePrism, Plan, Prepared, Request, WhoWrites, prepare};
use crate::survey::{survey, text};

/// A chart in the shape of Cilium, with a certificate authority that it looks up, a credential that
/// comes out of the values, and one that it makes.
const TEMPLATES: &str = r#"
{{- $ca := dict }}
{{- with lookup "v1" "Secret" "kube-system" "cilium-ca" }}
{{- $ca = buildCustomCert (index .data "ca.crt") (index .data "ca.key") }}
{{- else }}
{{- $ca = genCA "Cilium CA" 1095 }}
{{- end }}
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: cilium, namespace: kube-system}
spec:
  selector: {matchLabels: {k8s-app: cilium}}
  template:
    metadata: {labels: {k8s-app: cilium}}
    spec:
      containers:
      - {name: cilium-agent, image: "quay.io/cilium/cilium:v1.20.0", args: ["--log={{ .Values.log }}"]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: cilium-operator, namespace: kube-system}
spec:
  selector: {matchLabels: {k8s-app: operator}}
  template:
    metadata: {labels: {k8s-app: operator}}
    spec:
      containers: [{name: cilium-operator, image: "quay.io/cilium/operator-generic:v1.20.0"}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: cilium-config, namespace: kube-system}
data:
  ipam: {{ .Values.ipam.mode | quote }}
  routing-mode: tunnel
  tunnel-protocol: vxlan
  kube-proxy-replacement: "false"
  more: {{ .Values.more | quote }}
---
apiVersion: v1
kind: Secret
metadata: {name: cilium-ca, namespace: kube-system}
data:
  ca.crt: {{ $ca.Cert | b64enc }}
  ca.key: {{ $ca.Key | b64enc }}
---
apiVersion: v1
kind: Secret
metadata: {name: cilium-clustermesh, namespace: kube-system}
stringData:
  password: {{ .Values.mesh.password | quote }}
  user: {{ .Values.mesh.user | quote }}
---
{{- $cert := genSignedCert "server" nil nil 365 $ca }}
apiVersion: v1
kind: Secret
metadata: {name: hubble-server-certs, namespace: kube-system}
data:
  ca.crt: {{ $ca.Cert | b64enc }}
  tls.crt: {{ $cert.Cert | b64enc }}
  tls.key: {{ $cert.Key | b64enc }}
"#;

const VALUES: &str = "ipam: {mode: kubernetes}\nlog: info\nmore: \"\"\n\
                      mesh: {password: first-password, user: somebody}\n";

fn chart(values: &str) -> Chart {
    let file = |name: &str, data: &str| BufferedFile {
        name: name.to_owned(),
        data: data.as_bytes().into(),
    };
    let files = vec![
        file("Chart.yaml", "apiVersion: v2\nname: cilium\nversion: 1.20.0\nappVersion: 1.20.0\n"),
        file("values.yaml", values),
        file("templates/all.yaml", TEMPLATES),
    ];
    load_files(files, &helm_rs::chart::Limits::default(), &mut Vec::new()).unwrap()
}

fn pinned(values: &str) -> Pinned {
    let chart = chart(values);
    Pinned { chart, version: "1.20.0".parse().unwrap(), digest: Digest::of(values.as_bytes()) }
}

struct Bed {
    clock: Arc<ManualClock>,
    cluster: Arc<MemoryCluster>,
    engine: Engine,
}

/// A cluster where the chart was installed with user values.
fn bed(values: &str) -> Bed {
    let clock = Arc::new(ManualClock::new("2026-01-01T00:00:00Z".parse().unwrap()));
    let options = MemoryOptions { controllers: true, ..MemoryOptions::default() };
    let cluster = MemoryCluster::new(Arc::clone(&clock) as Arc<dyn Clock>, options);
    let node = |n: usize| {
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": format!("n{n}")},
               "status": {"nodeInfo": {"osImage": "Debian", "kubeletVersion": "v1.36.0"}}})
    };
    let objects = [
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system"}}),
        json!({"apiVersion": "apps/v1", "kind": "DaemonSet",
               "metadata": {"name": "kube-proxy", "namespace": "kube-system"},
               "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {
                   "metadata": {"labels": {"a": "b"}},
                   "spec": {"containers": [{"name": "kube-proxy", "image": "kube-proxy:v1.36.0"}]}}}}),
        node(1),
        node(2),
        json!({"apiVersion": "v1", "kind": "Pod",
               "metadata": {"name": "web", "namespace": "default"}}),
        json!({"apiVersion": "v1", "kind": "Secret", "data": {"a": "Zm9yLW5vYm9keQ=="},
               "metadata": {"name": "other", "namespace": "kube-system", "annotations": {
                   "kubectl.kubernetes.io/last-applied-configuration":
                       "{\"data\":{\"a\":\"Zm9yLW5vYm9keQ==\"}}"}}}),
    ];
    cluster.load(objects.into_iter().map(|object| ("bed".to_owned(), object)).collect()).unwrap();
    let cluster = Arc::new(cluster);
    let engine = Engine::new(EngineOptions::default());
    let driver = ObjectDriver::new(&*cluster, &*clock, ObjectKind::Secret, "kube-system");
    let cancel = Cancel::default();
    let session = Session {
        cluster: Arc::clone(&cluster) as _,
        driver: &driver,
        clock: &*clock,
        zone: Zone::utc(),
        observer: &Silent,
        cancel: &cancel,
        engine: &engine,
        method: Method::default(),
    };
    let mut host = Host::new(
        Randomness::Entropy([1; 32]),
        HostClock::Fixed(Reading::at(1_767_225_600, 0)),
        Zone::utc(),
    );
    let mut options = InstallOptions::default();
    "cilium".clone_into(&mut options.release.name);
    "kube-system".clone_into(&mut options.release.namespace);
    let values = goyaml::from_yaml(values.as_bytes(), &goyaml::Limits::default()).unwrap();
    let values = values.into_map().unwrap_or_default();
    block_on(install(&session, chart(VALUES), &values, &options, &mut host, &mut Vec::new()))
        .unwrap();
    Bed { clock, cluster, engine }
}

fn taken(bed: &Bed, secrets: Secrets) -> (Vec<u8>, Taken) {
    let options = TakeOptions { program: "ichor test", namespaces: &[], secrets };
    block_on(take(&*bed.cluster, &*bed.clock, options, &Silent, Vec::new())).unwrap()
}

fn stage(bytes: &[u8]) -> Stage {
    Stage::open(bytes, &Limits::default()).unwrap()
}

fn plan(
    cluster: Arc<dyn Cluster>,
    clock: &dyn Clock,
    engine: &Engine,
    pinned: &Pinned,
    entropy: u8,
) -> Plan {
    let request = Request {
        cluster,
        clock,
        engine,
        pinned,
        values: None,
        cni_unmanaged: false,
        who_writes: WhoWrites::Caller,
        entropy: [entropy; 32],
        kube_prism: KubePrism::default(),
        dry_runs: None,
    };
    let Prepared { plan, .. } = block_on(prepare(&request)).unwrap();
    assert!(!plan.is_refused(), "{:?}", plan.refusals);
    plan
}

/// Plans live and on snapshots of both kinds; the live one, and the one over digests.
fn plans(bed: &Bed, pinned: &Pinned) -> (Plan, Plan) {
    let live = plan(Arc::clone(&bed.cluster) as _, &*bed.clock, &bed.engine, pinned, 3);
    let (whole, _) = taken(bed, Secrets::Included);
    let whole = stage(&whole);
    let same = plan(whole.cluster(), &*whole.clock, &bed.engine, pinned, 4);
    assert_eq!(same.digest, live.digest);
    assert_eq!((&same.objects, &same.unchecked), (&live.objects, &live.unchecked));
    let (digests, _) = taken(bed, Secrets::Digests);
    let digests = stage(&digests);
    let rehearsed = plan(digests.cluster(), &*digests.clock, &bed.engine, pinned, 5);
    (live, rehearsed)
}

#[test]
fn a_snapshot_is_the_cluster_as_a_takeover_sees_it() {
    let bed = bed("mesh: {password: second-password}");
    let (bytes, taken) = taken(&bed, Secrets::Included);
    assert_eq!((taken.records, taken.unread.len(), taken.notes.len()), (1, 0, 0));
    let stage = stage(&bytes);
    assert_eq!(stage.end.objects, taken.objects);
    let live = block_on(survey(&*bed.cluster)).unwrap();
    let staged = block_on(survey(&*stage.cluster())).unwrap();
    assert_eq!(format!("{:?}", staged.discovery), format!("{:?}", live.discovery));
    for (staged, live) in [
        (&staged.daemon_set, &live.daemon_set),
        (&staged.config_map, &live.config_map),
        (&staged.operator, &live.operator),
    ] {
        assert_eq!(staged, live);
    }
    assert_eq!((staged.secrets, staged.config_maps), (live.secrets, live.config_maps));
    assert_eq!((staged.cluster_id, staged.server), (live.cluster_id, live.server));
    assert_eq!(staged.identity, live.identity);
    let is_pod = |object: &Arc<Value>| text(object, "/kind") == "Pod";
    assert!(!stage.objects().iter().any(is_pod), "pods are nobody's business");
    let again = block_on(take(
        &*stage.cluster(),
        &*stage.clock,
        TakeOptions { program: "ichor test", namespaces: &[], secrets: Secrets::Included },
        &Silent,
        Vec::new(),
    ));
    assert_eq!(again.unwrap().0, bytes, "a snapshot of a snapshot is that snapshot");
}

#[test]
fn nothing_of_a_secret_is_in_the_file() {
    let bed = bed("mesh: {password: second-password}");
    let (bytes, taken) = taken(&bed, Secrets::Digests);
    let mut all = String::from_utf8(bytes.clone()).unwrap();
    for record in stage(&bytes).objects() {
        if select::is_record(&record) {
            use base64::Engine as _;
            let plain = base64::engine::general_purpose::STANDARD
                .decode(text(&record, "/data/release"))
                .unwrap();
            all += &helm_rs::release::decode(&plain, CodecLimits::default()).unwrap();
        }
    }
    for secret in ["second-password", "c2Vjb25kLXBhc3N3b3Jk", "Zm9yLW5vYm9keQ", "PRIVATE KEY"] {
        assert!(!all.contains(secret), "{secret}");
    }
    let notes: Vec<&String> =
        taken.notes.iter().filter(|note| note.contains("mesh.password")).collect();
    assert_eq!(notes.len(), 1, "{:?}", taken.notes);
}

#[test]
fn plans_over_digests_have_the_live_plans_digest() {
    let bed = bed("mesh: {password: second-password}\nlog: debug");
    // As it was installed, and with another chart that changes things.
    for values in [VALUES.to_owned(), VALUES.replace("more: \"\"", "more: \"yes\"")] {
        let (live, rehearsed) = plans(&bed, &pinned(&values));
        assert_eq!(rehearsed.digest, live.digest, "{values}");
        let is_told = |note: &String| note.contains("Secret kube-system/cilium-ca");
        assert!(rehearsed.unchecked.iter().any(is_told), "{:?}", rehearsed.unchecked);
        assert!(!live.unchecked.iter().any(is_told));
    }
}

#[test]
fn a_changed_secret_is_a_difference_in_both() {
    let bed = bed("mesh: {password: second-password}");
    let mut secret = bed
        .cluster
        .objects()
        .into_iter()
        .find(|object| text(object, "/metadata/name") == "cilium-clustermesh")
        .map(|object| Value::clone(&object))
        .unwrap();
    secret["data"]["password"] = "c29tZWJvZHktZWxzZQ==".into();
    secret["data"]["more"] = "bW9yZQ==".into();
    bed.cluster.load(vec![("by hand".to_owned(), secret)]).unwrap();
    let (live, rehearsed) = plans(&bed, &pinned(VALUES));
    assert_eq!(rehearsed.digest, live.digest);
    let of = |plan: &Plan| {
        let about = |name: &str| plan.objects.iter().find(|o| o.about.name == name).cloned();
        about("cilium-clustermesh").unwrap()
    };
    assert_eq!(of(&live).differences, of(&rehearsed).differences);
    assert_eq!((of(&live).differences.len(), of(&live).residue.len()), (1, 1));
}
