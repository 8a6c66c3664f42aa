//! Plans on a cluster in memory: what keeps an action from being possible, and what a plan never
//! shows.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "test code: a panic is how a test fails"
)]

use std::sync::Arc;

use goyaml::Map;
use helm_rs::action::install::{InstallOptions, install};
use helm_rs::action::plan::{ObjectChange, Plan, PlanOptions, plan};
use helm_rs::action::rights::{Right, manifest};
use helm_rs::action::upgrade::UpgradeOptions;
use helm_rs::action::{MethodOptions, ReleaseOptions, Session};
use helm_rs::apply::{Cancel, Method, Silent};
use helm_rs::chart::{BufferedFile, Chart, Limits, load_files};
use helm_rs::cluster::memory::{MemoryCluster, MemoryOptions};
use helm_rs::cluster::{Cluster, ManualClock, block_on};
use helm_rs::release::ApplyMethod;
use helm_rs::release::storage::{ObjectDriver, ObjectKind};
use helm_rs::render::host::{Clock, Randomness, Reading};
use helm_rs::render::time::Zone;
use helm_rs::render::{Engine, EngineOptions, Host};

/// A cluster in memory with the namespace `there`.
struct Bed {
    cluster: Arc<MemoryCluster>,
    clock: Arc<ManualClock>,
}

impl Bed {
    fn new() -> Self {
        let clock = Arc::new(ManualClock::new("2026-01-02T03:04:05Z".parse().unwrap()));
        let cluster = MemoryCluster::new(clock.clone(), MemoryOptions::default());
        cluster
            .load_text("namespace", "apiVersion: v1\nkind: Namespace\nmetadata: {name: there}\n")
            .unwrap();
        Self { cluster: Arc::new(cluster), clock }
    }

    fn run<T>(&self, namespace: &str, action: impl AsyncFnOnce(&Session<'_>, &mut Host) -> T) -> T {
        let engine = Engine::new(EngineOptions::default());
        let driver = ObjectDriver::new(&*self.cluster, &*self.clock, ObjectKind::Secret, namespace);
        let cluster: Arc<dyn Cluster> = self.cluster.clone();
        let cancel = Cancel::default();
        let session = Session {
            cluster,
            driver: &driver,
            clock: &*self.clock,
            zone: Zone::utc(),
            observer: &Silent,
            cancel: &cancel,
            engine: &engine,
            method: Method::default(),
        };
        let clock = Clock::Fixed(Reading::at(0, 0));
        let mut host = Host::new(Randomness::Seed(1), clock, Zone::utc());
        block_on(action(&session, &mut host))
    }

    fn install(&self, template: &str) {
        let options = InstallOptions { release: release("there"), ..InstallOptions::default() };
        let (chart, mut warnings) = (chart(template), Vec::new());
        self.run("there", async |session, host| {
            install(session, chart, &Map::new(), &options, host, &mut warnings).await.unwrap();
        });
    }

    fn plan(&self, namespace: &str, template: &str, options: &PlanOptions) -> Plan {
        let (mut chart, mut warnings) = (chart(template), Vec::new());
        self.run(namespace, async |session, host| {
            plan(session, &mut chart, &Map::new(), options, host, &mut warnings).await.unwrap()
        })
    }
}

fn release(namespace: &str) -> ReleaseOptions {
    ReleaseOptions {
        name: "r".to_owned(),
        namespace: namespace.to_owned(),
        ..ReleaseOptions::default()
    }
}

fn installation(release: ReleaseOptions) -> PlanOptions {
    PlanOptions::Install(InstallOptions { release, ..InstallOptions::default() })
}

fn upgrade() -> PlanOptions {
    PlanOptions::Upgrade(UpgradeOptions { release: release("there"), ..UpgradeOptions::default() })
}

/// A chart with one template.
fn chart(template: &str) -> Chart {
    let file = |name: &str, data: &str| BufferedFile {
        name: name.to_owned(),
        data: Arc::from(data.as_bytes()),
    };
    let files = vec![
        file("Chart.yaml", "apiVersion: v2\nname: c\nversion: 1.0.0\n"),
        file("templates/all.yaml", template),
    ];
    load_files(files, &Limits::default(), &mut Vec::new()).unwrap()
}

const PLAIN: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {x: y}\n";

#[test]
fn server_side_apply_needs_a_server() {
    let bed = Bed::new();
    let apply = || {
        let apply_method = Some(ApplyMethod::ServerSide);
        let method = MethodOptions { apply_method, ..MethodOptions::default() };
        ReleaseOptions { method, ..release("there") }
    };
    let fault = "not simulated: server-side apply of configmaps there/a";
    let made = bed.plan("there", PLAIN, &installation(apply()));
    assert_eq!(made.objects[0].fault, fault, "a creation");
    let patch = |right: &Right| right.verb == "patch" && right.name == "a";
    assert!(made.rights.iter().any(patch), "{:?}", made.rights);
    bed.install(PLAIN);
    let upgrade = UpgradeOptions { release: apply(), ..UpgradeOptions::default() };
    let made = bed.plan("there", PLAIN, &PlanOptions::Upgrade(upgrade));
    let wanted = format!("cannot apply \"a\" with kind ConfigMap: {fault}");
    assert_eq!(made.objects[0].fault, wanted, "a change");
}

#[test]
fn hooks_of_the_action_are_told_with_what_they_need() {
    let hook = |event: &str| {
        format!(
            "{PLAIN}---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: hooked\n  \
             annotations: {{helm.sh/hook: {event}}}\n"
        )
    };
    let bed = Bed::new();
    let made = bed.plan("there", PLAIN, &installation(release("there")));
    assert!(made.is_possible() && made.hooks.is_empty(), "{made:?}");
    for event in ["pre-install", "post-install"] {
        let made = bed.plan("there", &hook(event), &installation(release("there")));
        assert!(made.is_possible(), "{event}");
        assert_eq!(made.hooks, [format!("ConfigMap hooked ({event})")]);
        let deletes = |right: &Right| right.verb == "delete" && right.name == "hooked";
        assert!(made.rights.iter().any(deletes), "{:?}", made.rights);
        assert_eq!(made.objects.len(), 1, "a hook is none of the release's objects");
        let without = ReleaseOptions { no_hooks: true, ..release("there") };
        assert!(bed.plan("there", &hook(event), &installation(without)).hooks.is_empty());
        let unknown = hook(event).replacen("---\napiVersion: v1", "---\napiVersion: x.org/v1", 1);
        let made = bed.plan("there", &unknown, &installation(release("there")));
        assert!(!made.is_possible() && made.hook_faults.len() == 1, "{made:?}");
    }
    // Hooks of other actions do not count.
    for event in ["pre-upgrade", "post-delete", "test"] {
        let made = bed.plan("there", &hook(event), &installation(release("there")));
        assert!(made.hooks.is_empty(), "{event}");
    }
    bed.install(PLAIN);
    assert_eq!(bed.plan("there", &hook("pre-upgrade"), &upgrade()).hooks.len(), 1);
    assert!(bed.plan("there", &hook("pre-install"), &upgrade()).hooks.is_empty());
}

#[test]
fn an_object_given_twice_makes_it_impossible() {
    let twice = format!("{PLAIN}---\n{PLAIN}");
    let bed = Bed::new();
    let made = bed.plan("there", &twice, &installation(release("there")));
    assert!(!made.is_possible(), "{made:?}");
    let faults: Vec<&str> = made.objects.iter().map(|object| object.fault.as_str()).collect();
    assert_eq!(faults.len(), 2);
    assert!(faults[0].is_empty() && faults[1].contains("the chart has it twice"), "{faults:?}");
    // When it is there already, it is patched twice, as Helm does.
    bed.install(PLAIN);
    assert!(bed.plan("there", &twice, &upgrade()).is_possible());
}

#[test]
fn credentials_are_not_shown() {
    let object = |value: &str| {
        format!(
            "apiVersion: v1\nkind: Secret\nmetadata: {{name: s, annotations: {{apiToken: \
             anno-{value}}}}}\nstringData: {{user: data-{value}}}\n---\napiVersion: v1\nkind: \
             ConfigMap\nmetadata: {{name: c}}\ndata: {{db-password: config-{value}, plain: \
             seen-{value}}}\n---\napiVersion: v1\nkind: Pod\nmetadata: {{name: p}}\nspec:\n  \
             containers:\n  - name: x\n    image: y\n    env: [{{name: API_TOKEN, value: \
             env-{value}}}]\n"
        )
    };
    let bed = Bed::new();
    bed.install(&object("before"));
    let made = bed.plan("there", &object("after"), &upgrade());
    let changed: Vec<_> =
        made.objects.iter().filter(|object| object.change == ObjectChange::Change).collect();
    assert_eq!(changed.len(), 3, "{made:?}");
    assert!(changed.iter().all(|object| !object.leaves.is_empty()), "{made:?}");
    let text = format!("{made:?}");
    assert!(text.contains("seen-before") && text.contains("seen-after"), "{text}");
    assert!(text.contains("REDACTED"), "{text}");
    let encoded = |value: &str| {
        use base64::Engine as _;
        base64::engine::general_purpose::STANDARD.encode(format!("data-{value}"))
    };
    for value in ["before", "after"] {
        for secret in [
            format!("data-{value}"),
            encoded(value),
            format!("config-{value}"),
            format!("env-{value}"),
        ] {
            assert!(!text.contains(&secret), "{secret} in {text}");
        }
    }
}

#[test]
fn what_the_plan_creates_is_not_asked_of_the_server() {
    let template = "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: \
                    x}\nrules: []\n---\napiVersion: rbac.authorization.k8s.io/v1\nkind: \
                    RoleBinding\nmetadata: {name: x}\nroleRef: {apiGroup: \
                    rbac.authorization.k8s.io, kind: Role, name: x}\nsubjects: []\n---\napiVersion: \
                    rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: \
                    z}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: \
                    x}\nsubjects: []\n";
    let bed = Bed::new();
    let made = bed.plan("there", template, &installation(release("there")));
    let reasons: Vec<(&str, &str)> = made
        .objects
        .iter()
        .map(|object| (object.name.as_str(), object.in_memory.as_str()))
        .collect();
    assert_eq!(
        reasons,
        [("x", ""), ("x", "its role is created by the same plan"), ("z", "")],
        "a Role is no ClusterRole"
    );
    bed.install(template);
    assert!(bed.plan("there", template, &upgrade()).objects.iter().all(|o| o.in_memory.is_empty()));
}

#[test]
fn a_namespace_that_the_action_creates() {
    let options = |namespace: &str| {
        PlanOptions::Install(InstallOptions {
            release: release(namespace),
            create_namespace: true,
            ..InstallOptions::default()
        })
    };
    let bed = Bed::new();
    let made = bed.plan("fresh", PLAIN, &options("fresh"));
    let objects: Vec<(&str, &str, &str)> = made
        .objects
        .iter()
        .map(|object| (&*object.kind.kind, &*object.name, &*object.in_memory))
        .collect();
    assert_eq!(
        objects,
        [
            ("Namespace", "fresh", ""),
            ("ConfigMap", "a", "its namespace is created by the same plan")
        ]
    );
    assert!(made.is_possible() && made.creates_namespace);
    let names = |plan: &Plan| -> Vec<String> {
        let name = |object: &serde_json::Value| {
            let text = |path: &str| object.pointer(path).map_or("", |text| text.as_str().unwrap());
            format!("{} {}/{}", text("/kind"), text("/metadata/namespace"), text("/metadata/name"))
        };
        manifest(plan).iter().map(name).collect()
    };
    // The namespace comes with the roles, so that nothing in other namespaces is granted.
    assert_eq!(
        names(&made),
        ["Namespace /fresh", "ClusterRole /ichor-release-r", "Role fresh/ichor-release-r"]
    );
    let cluster = &manifest(&made)[1]["rules"];
    let wanted = serde_json::json!([{
        "apiGroups": [""], "resources": ["namespaces"], "resourceNames": ["fresh"], "verbs": ["get"],
    }]);
    assert_eq!(cluster, &wanted);
    // One that is there is only looked at.
    let made = bed.plan("there", PLAIN, &options("there"));
    assert_eq!(made.objects.len(), 1);
    assert!(!made.creates_namespace);
    assert_eq!(names(&made), ["ClusterRole /ichor-release-r", "Role there/ichor-release-r"]);
    assert_eq!(&manifest(&made)[0]["rules"][0]["verbs"], &serde_json::json!(["get"]));
}
