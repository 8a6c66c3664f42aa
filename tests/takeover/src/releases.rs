//! Adoptions and moves of releases, on the cluster in memory and on planes: what is done, and what
//! it leaves.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use helm_rs::apply::{Cancel, Silent};
use helm_rs::chart::{Chart, Limits, load};
use helm_rs::cluster::{Clock, Cluster};
use helm_rs::error_chain;
use helm_rs::release::storage::ObjectKind;
use helm_rs::render::Engine;
use plane::Plane;
use serde_json::{Value, json};
use takeover::adopt::{self, From, chart_digest};
use takeover::place::{Deed, Place};
use takeover::plan::{PlanError, Prepared};
use takeover::relocation::{self, At, MoveError, MovePlan, Moved};
use takeover::run::backup::is_backup;
use takeover::run::restore::{Restore, restore_at};
use takeover::run::{Done, Run, RunError, take_over};
use takeover::snapshot::lasting;

use crate::rehearsal::text;
use crate::{Bed, prepared};

/// A chart of this crate's or of the tests beside real Helm.
pub fn chart_path(name: &str) -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("charts").join(name);
    if own.exists() {
        own
    } else {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../live/charts").join(name)
    }
}

/// The same, loaded.
pub fn chart(name: &str) -> Chart {
    load(&chart_path(name), &Limits::default(), &mut Vec::new()).expect("a chart")
}

/// A copy of a chart in a folder, with a text in its templates replaced.
pub fn copy_chart(name: &str, folder: &Path, from: &str, to: &str) {
    let templates = folder.join("templates");
    std::fs::create_dir_all(&templates).expect("a folder");
    for file in ["Chart.yaml", "values.yaml"] {
        std::fs::copy(chart_path(name).join(file), folder.join(file)).expect("a file");
    }
    for entry in std::fs::read_dir(chart_path(name).join("templates")).expect("a folder") {
        let entry = entry.expect("an entry");
        let text = std::fs::read_to_string(entry.path()).expect("a template");
        std::fs::write(templates.join(entry.file_name()), text.replace(from, to)).expect("a file");
    }
}

/// What is done to a release.
#[derive(Clone, Debug)]
pub enum Case {
    /// It is made of what is there.
    Adopt {
        /// What is made.
        place: Place,
        /// Its chart.
        chart: Box<Chart>,
        /// Where it comes from.
        from: Option<From>,
    },
    /// It is moved.
    Move {
        /// From where.
        from: At,
        /// To where.
        to: At,
    },
    /// One of the two is undone.
    Undo(Place),
}

impl Case {
    /// Adopts release `from` as another one.
    pub fn adopt(chart: Chart, name: &str, namespace: &str, from: Option<(&str, &str)>) -> Self {
        let from = from.map(|(release, namespace)| From {
            release: release.to_owned(),
            namespace: namespace.to_owned(),
        });
        let look = "look".to_owned();
        let place = Place::release(name, namespace, ObjectKind::Secret, Deed::Adoption, look);
        Self::Adopt { place, chart: Box::new(chart), from }
    }

    /// Moves a release, of Secrets, to another place.
    pub fn moved(from: (&str, &str), to: (&str, &str, ObjectKind)) -> Self {
        let at = |release: &str, namespace: &str, records| At {
            release: release.to_owned(),
            namespace: namespace.to_owned(),
            records,
        };
        Self::Move { from: at(from.0, from.1, ObjectKind::Secret), to: at(to.0, to.1, to.2) }
    }

    /// Where the release is afterwards.
    pub fn place(&self) -> Place {
        match self {
            Self::Adopt { place, .. } | Self::Undo(place) => place.clone(),
            Self::Move { to, .. } => {
                let look = String::new();
                Place::release(&to.release, &to.namespace, to.records, Deed::Move, look)
            }
        }
    }

    /// What undoes it.
    #[must_use]
    pub fn undo(&self) -> Self {
        Self::Undo(self.place())
    }

    fn adoption<'a>(
        &'a self,
        cluster: &Arc<dyn Cluster>,
        clock: &'a dyn Clock,
        engine: &'a Engine,
    ) -> adopt::Request<'a> {
        let Self::Adopt { place, chart, from } = self else { panic!("no adoption: {self:?}") };
        adopt::Request {
            cluster: Arc::clone(cluster),
            clock,
            engine,
            place: place.clone(),
            chart,
            chart_digest: chart_digest(chart),
            values: None,
            from: from.clone(),
            entropy: [7; 32],
            dry_runs: None,
        }
    }

    fn relocation<'a>(
        &self,
        cluster: &Arc<dyn Cluster>,
        clock: &'a dyn Clock,
        engine: &'a Engine,
    ) -> relocation::Request<'a> {
        let Self::Move { from, to } = self else { panic!("no move: {self:?}") };
        relocation::Request {
            cluster: Arc::clone(cluster),
            clock,
            engine,
            from: from.clone(),
            to: to.clone(),
            entropy: [7; 32],
        }
    }

    /// The plan of an adoption.
    pub async fn plan_adoption(
        &self,
        cluster: &Arc<dyn Cluster>,
        clock: &dyn Clock,
        engine: &Engine,
    ) -> Prepared {
        let request = self.adoption(cluster, clock, engine);
        adopt::prepare(&request).await.unwrap_or_else(|error| panic!("{}", error_chain(&error)))
    }

    /// The plan of a move.
    pub async fn plan_move(
        &self,
        cluster: &Arc<dyn Cluster>,
        clock: &dyn Clock,
        engine: &Engine,
    ) -> MovePlan {
        let request = self.relocation(cluster, clock, engine);
        let prepared = relocation::prepare(&request).await;
        prepared.unwrap_or_else(|error| panic!("{}", error_chain(&error))).plan
    }

    /// The rights that a plan says are missing, and its digest.
    pub async fn missing(
        &self,
        cluster: &Arc<dyn Cluster>,
        clock: &dyn Clock,
        engine: &Engine,
    ) -> (Vec<String>, String) {
        let planned = if matches!(self, Self::Move { .. }) {
            let request = self.relocation(cluster, clock, engine);
            relocation::prepare(&request).await.map(|it| (it.plan.rights, it.plan.digest))
        } else {
            let request = self.adoption(cluster, clock, engine);
            adopt::prepare(&request).await.map(|it| (it.plan.rights, it.plan.digest))
        };
        let (rights, digest) = match planned {
            Err(PlanError::Rights(rights)) => (*rights, String::new()),
            planned => planned.unwrap_or_else(|error| panic!("{}", error_chain(&error))),
        };
        (rights.missing.into_iter().map(|one| one.rule).collect(), digest)
    }

    /// The digest of what is planned; empty for what has no plan.
    pub async fn digest(
        &self,
        cluster: &Arc<dyn Cluster>,
        clock: &dyn Clock,
        engine: &Engine,
    ) -> String {
        match self {
            Self::Adopt { .. } => {
                let plan = self.plan_adoption(cluster, clock, engine).await.plan;
                assert!(!plan.is_refused(), "{:?}", plan.refusals);
                println!("{:?}", plan.figures());
                plan.digest
            }
            Self::Move { .. } => {
                let plan = self.plan_move(cluster, clock, engine).await;
                assert!(!plan.is_refused(), "{:?}", plan.refusals);
                plan.digest
            }
            Self::Undo(_) => String::new(),
        }
    }

    /// An adoption with consent to everything of a plan.
    ///
    /// # Errors
    /// [`RunError`]
    pub async fn take(
        &self,
        (cluster, clock, engine): (&Arc<dyn Cluster>, &dyn Clock, &Engine),
        holder: &str,
        digest: &str,
    ) -> Result<Done, RunError> {
        let cancel = Cancel::default();
        let run = Run {
            request: self.adoption(cluster, clock, engine),
            digest: Some(digest.to_owned()),
            accept_changes: true,
            accept_diff: true,
            holder: holder.to_owned(),
            observer: &Silent,
            cancel: &cancel,
            timeout: Duration::from_mins(1),
        };
        take_over(&run).await
    }

    /// A move with consent to everything of a plan.
    ///
    /// # Errors
    /// [`MoveError`]
    pub async fn shift(
        &self,
        (cluster, clock, engine): (&Arc<dyn Cluster>, &dyn Clock, &Engine),
        holder: &str,
        digest: &str,
    ) -> Result<Moved, MoveError> {
        let request = self.relocation(cluster, clock, engine);
        let cancel = Cancel::default();
        relocation::carry_out(&request, Some(digest), |_| true, holder, &Silent, &cancel).await
    }

    /// Does it; the error as text.
    ///
    /// # Errors
    /// What the action says.
    pub async fn run(
        &self,
        on: (&Arc<dyn Cluster>, &dyn Clock, &Engine),
        holder: &str,
        digest: &str,
    ) -> Result<(), String> {
        match self {
            Self::Adopt { .. } => Box::pin(self.take(on, holder, digest))
                .await
                .map(drop)
                .map_err(|error| error_chain(&error)),
            Self::Move { .. } => Box::pin(self.shift(on, holder, digest))
                .await
                .map(drop)
                .map_err(|error| error_chain(&error)),
            Self::Undo(place) => {
                let (cluster, clock, _) = on;
                let cancel = Cancel::default();
                let restore = Restore {
                    place,
                    keep_leaves: false,
                    digest: None,
                    holder,
                    observer: &Silent,
                    cancel: &cancel,
                };
                Box::pin(restore_at(&restore, cluster, clock))
                    .await
                    .map(drop)
                    .map_err(|error| error_chain(&error))
            }
        }
    }

    /// What lasts of it: the objects without the stored plan and without what every run makes anew.
    /// Revisions of an adoption's own record are as many as there were runs.
    pub fn lasting(&self, objects: impl IntoIterator<Item = Value>) -> BTreeMap<String, Value> {
        let place = self.place();
        let is_own = |object: &Value| {
            let name = text(object, "/metadata/name");
            text(object, "/metadata/namespace") == place.home
                && text(object, "/kind") == place.kind()
                && name.starts_with(&format!("sh.helm.release.v1.{}.v", place.release))
        };
        let mut deployed = 0;
        let kept = objects.into_iter().filter(|object| {
            if text(object, "/metadata/name") == place.plan {
                return false;
            }
            match self {
                Self::Adopt { .. } if is_own(object) => {
                    deployed += usize::from(text(object, "/metadata/labels/status") == "deployed");
                    false
                }
                // How many own revisions a killed run left there is no matter.
                Self::Undo(_) => !is_backup(object),
                _ => true,
            }
        });
        let mut state = lasting(kept.map(|object| canonical(&object)).collect::<Vec<_>>());
        state.insert("deployed".to_owned(), deployed.into());
        state
    }
}

/// An object as the cluster in memory and a server both write it.
pub fn canonical(object: &Value) -> Value {
    // The cluster in memory writes quantities as a server does that has read them once more.
    let text = object
        .to_string()
        .replace("\"0.25Gi\"", "\"256Mi\"")
        .replace("\"cpu\":1,", "\"cpu\":\"1\",");
    let mut object = serde_json::from_str::<Value>(&text).expect("JSON stays JSON");
    let annotations = object.pointer_mut("/metadata/annotations");
    if let Some(annotations) = annotations.and_then(Value::as_object_mut) {
        // The server counts any change of a DaemonSet's annotations.
        annotations.remove("deprecated.daemonset.template.generation");
    }
    object
}

/// A plane with release `old` of chart depot: records in namespace infra, objects in shop, two
/// revisions, by real Helm.
pub async fn depot() -> Option<Bed> {
    prepared("depot", "2", |plane| {
        namespaces(plane);
        let chart = chart_path("depot").display().to_string();
        helm(plane, &["install", "old", &chart, "-n", "infra", "--wait"]);
        helm(plane, &["upgrade", "old", &chart, "-n", "infra", "--set", "size=2", "--wait"]);
    })
    .await
}

/// What people changed in the objects of [`depot`]: an adoption by its chart changes it back, restarts
/// a workload, and creates what somebody deleted.
pub fn drifted(objects: &mut Vec<Value>) {
    objects.retain(|object| text(object, "/kind") != "ClusterRole" || !is_depots(object));
    for object in objects.iter_mut().filter(|object| is_depots(object)) {
        match text(object, "/kind") {
            "ConfigMap" => {
                object["data"] = json!({"size": "7", "theirs": "stays"});
            }
            "Crate" => object["spec"] = json!({"size": 9, "note": "stays"}),
            "Deployment" => {
                let pod = &mut object["spec"]["template"]["spec"];
                pod["terminationGracePeriodSeconds"] = 7.into();
                pod["containers"][0]["image"] = "registry.example/clerk:0".into();
                pod["containers"][0]["env"] = json!([{"name": "THEIRS", "value": "1"}]);
            }
            _ => {}
        }
    }
}

fn is_depots(object: &Value) -> bool {
    matches!(text(object, "/metadata/name"), "depot" | "depot-reader")
}

/// A plane with release `web` of chart store in namespace shop, two revisions, by real Helm.
pub async fn store() -> Option<Bed> {
    prepared("store", "2", |plane| {
        namespaces(plane);
        let chart = chart_path("store").display().to_string();
        helm(plane, &["install", "web", &chart, "-n", "shop", "--wait"]);
        helm(plane, &["upgrade", "web", &chart, "-n", "shop", "--set", "password=new", "--wait"]);
    })
    .await
}

/// A plane with the objects of chart store in namespace shop, applied without a release.
pub async fn applied() -> Option<Bed> {
    prepared("applied", "2", |plane| {
        namespaces(plane);
        let chart = chart_path("store").display().to_string();
        let mut command = plane.helm().expect("helm");
        let rendered = crate::run(command.args(["template", "web", &chart, "-n", "shop"]));
        let file = plane.folder().join("applied.yaml");
        std::fs::write(&file, rendered).expect("a file");
        let mut kubectl = plane.kubectl().expect("kubectl");
        crate::run(kubectl.args(["apply", "-n", "shop", "-f"]).arg(&file));
        let mut kubectl = plane.kubectl().expect("kubectl");
        let wait = ["-n", "shop", "rollout", "status", "statefulset", "web", "--timeout", "60s"];
        crate::run(kubectl.args(wait));
    })
    .await
}

fn namespaces(plane: &Plane) {
    for name in ["shop", "infra"] {
        let mut kubectl = plane.kubectl().expect("kubectl");
        crate::run(kubectl.args(["create", "namespace", name]));
    }
}

fn helm(plane: &Plane, arguments: &[&str]) {
    let mut helm = plane.helm().expect("helm");
    crate::run(helm.args(arguments).args(["--timeout", "2m"]));
}
