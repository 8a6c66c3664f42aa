//! What a takeover needs, one right at a time.
//!
//! Everything that the plan and the run ask of the server stands here, so that the check before
//! the first write and the Job's Roles cannot differ.

use std::collections::{BTreeMap, BTreeSet};

use cilium::pinned::{CONFIG_MAP, NAMESPACE, RECORD_NAMESPACE};
use helm_rs::action::rights::{Right, granted};
use helm_rs::apply::Item;
use helm_rs::cluster::{Cluster, Discovery, Kind, Target};
use helm_rs::release::storage::ObjectKind;
use serde_json::Value;

use crate::inventory;
use crate::place::{CILIUM, Deed, Place};
use crate::plan::{Action, RecordAbout};
use crate::run::lock::LeaseName;
use crate::survey::{OPERATOR, cli_right, text};

const RBAC: &str = "rbac.authorization.k8s.io";

/// What a right is about; decides which of the Job's Roles holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// Ichor's namespace, which is there before a Job is.
    Namespace,
    /// Reading the installation, writing the chart's objects, ichor's own records.
    Installation,
    /// The foreign records.
    Records,
}

/// Something that is needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// All of one of these. The first one is what the Job holds, and what is told when all fail.
    pub alternatives: Vec<Vec<Right>>,
    /// What it is needed for.
    pub needed_for: String,
    /// What it is about.
    pub part: Part,
}

/// All that is needed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// One by one.
    pub list: Vec<Need>,
    /// Namespaces that the takeover creates, so that no Role can lie in them before.
    pub new_namespaces: BTreeSet<String>,
    /// What cannot be asked for.
    pub unchecked: Vec<String>,
    /// What it is needed for as a whole.
    pub deed: Deed,
}

/// An object of the chart with what becomes of it.
pub(crate) struct Written<'a> {
    pub(crate) target: &'a Target,
    /// What is written.
    pub(crate) value: &'a Value,
    pub(crate) action: Action,
    /// Whether a dry run of its patch is sent although nothing is written.
    pub(crate) dry_run: bool,
}

impl<'a> Written<'a> {
    /// The same is done with all of them.
    fn all(objects: &'a [Item], action: Action) -> Vec<Self> {
        let written = |item: &'a Item| Self {
            target: &item.target,
            value: &item.value,
            action,
            dry_run: false,
        };
        objects.iter().map(written).collect()
    }

    fn kind(&self) -> &Kind {
        &self.target.resource.kind
    }

    fn right(&self, verb: &str) -> Right {
        let target = self.target;
        let resource = &target.resource;
        // The names of the chart's Jobs follow from the values, so that a rule that stands could not
        // have them.
        let looks_at_job = verb == "get" && resource.kind.kind == "Job";
        let name = if verb == "create" || looks_at_job { "" } else { &target.name };
        Right::named(verb, &resource.kind.group, &resource.plural, &target.namespace, name)
    }

    fn is_role(&self) -> bool {
        let kind = self.kind();
        kind.group == RBAC && matches!(kind.kind.as_str(), "Role" | "ClusterRole")
    }
}

impl Needs {
    /// Those that nothing is written by.
    pub(crate) fn of_looking(&self) -> Self {
        let looks = |need: &&Need| {
            let first = need.alternatives.first();
            first.into_iter().flatten().all(|right| matches!(right.verb.as_str(), "get" | "list"))
        };
        Self { list: self.list.iter().filter(looks).cloned().collect(), ..self.clone() }
    }

    /// What is needed for something, as yet nothing.
    pub(crate) fn of(deed: Deed) -> Self {
        Self { deed, ..Self::default() }
    }

    /// One right that nothing can stand in for.
    fn plain(&mut self, part: Part, right: Right, needed_for: &str) {
        self.list.push(Need {
            alternatives: vec![vec![right]],
            needed_for: needed_for.to_owned(),
            part,
        });
    }

    /// Reading what every plan reads.
    pub(crate) fn reading(&mut self) {
        let what = "finding out what runs";
        for right in [
            Right::named("get", "", "namespaces", "", NAMESPACE),
            Right::any("list", "", "nodes", ""),
            Right::any("list", "apps", "daemonsets", ""),
            Right::named("get", "", "configmaps", NAMESPACE, CONFIG_MAP),
            Right::named("get", "apps", "deployments", NAMESPACE, OPERATOR),
        ] {
            self.plain(Part::Installation, right, what);
        }
    }

    /// Ichor's namespace: lock, records, stored plan, backups.
    pub(crate) fn own(&mut self, place: &Place, namespace_exists: bool) {
        let what = place.words.deed.home();
        let part = Part::Installation;
        let home = &*place.home;
        self.plain(part, Right::named("get", "", "namespaces", "", home), what);
        if !namespace_exists && !place.is_shared {
            self.plain(Part::Namespace, Right::any("create", "", "namespaces", ""), what);
        }
        self.locks(&BTreeSet::from([place.lease_name()]));
        let plurals = match place.records {
            ObjectKind::Secret => &["secrets"][..],
            ObjectKind::ConfigMap => &["secrets", "configmaps"],
        };
        for plural in plurals {
            for verb in ["create", "get", "list", "update"] {
                let right = Right::any(verb, "", plural, home);
                self.plain(part, right, place.words.deed.own());
            }
        }
    }

    /// The Leases that make up a lock. Those that are needed already are no need more.
    pub(crate) fn locks(&mut self, leases: &BTreeSet<LeaseName>) {
        for lease in leases {
            let right = |verb, name| {
                Right::named(verb, "coordination.k8s.io", "leases", &lease.namespace, name)
            };
            let first = right("create", "");
            if self.list.iter().any(|need| need.alternatives == [[first.clone()]]) {
                continue;
            }
            self.plain(Part::Installation, first, "the lock");
            for verb in ["get", "patch", "update"] {
                self.plain(Part::Installation, right(verb, &lease.name), "the lock");
            }
        }
    }

    fn finding(&self) -> String {
        format!("finding the {}", self.deed.records().replacen("record", "records", 1))
    }

    /// Seeing where a takeover stands: ichor's records, stored plan, backups and lock.
    pub(crate) fn seeing_own(&mut self) {
        let lease =
            Right::named("get", "coordination.k8s.io", "leases", RECORD_NAMESPACE, &CILIUM.lease);
        let secrets = ["get", "list"].map(|verb| Right::any(verb, "", "secrets", RECORD_NAMESPACE));
        for right in [lease].into_iter().chain(secrets) {
            self.plain(Part::Installation, right, "ichor's records, plan, backups and lock");
        }
    }

    /// Looking for what is not there: records of the release, values of the Cilium CLI.
    pub(crate) fn looking<'a>(&mut self, rights: impl IntoIterator<Item = &'a Right>) {
        for right in rights {
            if right.verb == "list" {
                self.plain(Part::Records, right.clone(), &self.finding());
            } else {
                self.plain(Part::Installation, right.clone(), "the Cilium CLI's values");
            }
        }
    }

    /// Objects that are read because templates look them up, or because the foreign release had
    /// them and the chart does not render them.
    pub(crate) fn read(&mut self, rights: impl IntoIterator<Item = Right>, needed_for: &str) {
        for right in rights {
            self.plain(Part::Installation, right, needed_for);
        }
    }

    /// What it takes to delete these objects again, where values that bring them are taken back.
    pub fn taking_away(objects: &[Item]) -> Self {
        let mut needs = Self::default();
        needs.deleting(&objects.iter().collect::<Vec<_>>());
        needs
    }

    /// Objects that a change of ichor's own release deletes.
    pub(crate) fn deleting(&mut self, gone: &[&Item]) {
        for item in gone {
            let title = format!("{}, which the chart does not render any more", item.target);
            for verb in ["get", "delete"] {
                self.plain(Part::Installation, Right::on_object(verb, item), &title);
            }
        }
    }

    /// The foreign records: found, copied, deleted.
    pub(crate) fn records(&mut self, records: &[RecordAbout]) {
        let mut places = BTreeSet::new();
        for record in records {
            let about = &record.about;
            let plural = if about.kind == "Secret" { "secrets" } else { "configmaps" };
            let (place, name) = (about.namespace.as_str(), about.name.as_str());
            if places.insert((plural, place)) {
                let right = Right::any("list", "", plural, place);
                self.plain(Part::Records, right, &self.finding());
            }
            for verb in ["get", "delete"] {
                let right = Right::named(verb, "", plural, place, name);
                let what = format!("the {}", self.deed.records());
                self.plain(Part::Records, right, &what);
            }
        }
    }

    /// Talos' inventory, so that whoever plans sees what of it is listed there.
    pub(crate) fn inventory(&mut self) {
        let (place, name) = (inventory::INVENTORY_NAMESPACE, inventory::INVENTORY_NAME);
        let right = Right::named("get", "", "configmaps", place, name);
        self.plain(Part::Installation, right, "what Talos' inventory lists");
    }

    /// What waiting and the forecast of restarts read besides the objects themselves.
    pub(crate) fn waiting(&mut self, objects: &[Written<'_>], restarts: &BTreeSet<String>) {
        let places: BTreeSet<&str> = objects
            .iter()
            .filter(|object| object.kind().kind == "Deployment" && object.action != Action::Hook)
            .map(|object| object.target.namespace.as_str())
            .collect();
        for place in places {
            let right = Right::any("list", "apps", "replicasets", place);
            self.plain(Part::Installation, right, "waiting for the rollout");
        }
        for place in restarts {
            let right = Right::any("list", "", "pods", place);
            self.plain(Part::Installation, right, "pods that restart");
        }
    }

    /// What it takes to create these objects where none of them is.
    pub async fn creating(cluster: &dyn Cluster, discovery: &Discovery, objects: &[Item]) -> Self {
        let mut needs = Self::default();
        needs.objects(cluster, discovery, &Written::all(objects, Action::Create)).await;
        needs
    }

    /// What plans for these objects need on any cluster: to create those that are missing and to
    /// change those that are there. What depends on the cluster is not among it: foreign records,
    /// what their release has besides, and what templates look up.
    pub async fn standing(cluster: &dyn Cluster, discovery: &Discovery, objects: &[Item]) -> Self {
        let mut needs = Self::default();
        needs.reading();
        needs.own(&CILIUM, true);
        needs.looking([&cli_right()]);
        needs.inventory();
        let places = objects.iter().map(|item| item.target.namespace.clone());
        let places = places.filter(|place| !place.is_empty()).collect();
        needs.waiting(&Written::all(objects, Action::Patch), &places);
        for action in [Action::Create, Action::Patch] {
            needs.objects(cluster, discovery, &Written::all(objects, action)).await;
        }
        needs
    }

    /// The chart's objects.
    pub(crate) async fn objects(
        &mut self,
        cluster: &dyn Cluster,
        discovery: &Discovery,
        objects: &[Written<'_>],
    ) {
        let roles: BTreeMap<(&str, &str, &str), &Written<'_>> = objects
            .iter()
            .filter(|object| object.is_role())
            .map(|object| {
                let target = object.target;
                (
                    (object.kind().kind.as_str(), target.namespace.as_str(), target.name.as_str()),
                    object,
                )
            })
            .collect();
        for object in objects {
            let title = format!("{} {}", object.kind().kind, object.target.name);
            let part = Part::Installation;
            self.plain(part, object.right("get"), &title);
            match object.action {
                Action::Create => self.plain(part, object.right("create"), &title),
                Action::Patch => self.plain(part, object.right("patch"), &title),
                Action::Keep if object.dry_run => {
                    self.plain(part, object.right("patch"), &format!("{title}, dry run"));
                }
                Action::Keep | Action::Hook => continue,
            }
            if object.action == Action::Create && object.kind().kind == "Namespace" {
                self.new_namespaces.insert(object.target.name.clone());
            }
            if object.is_role() {
                self.role(object, &title);
            } else if object.kind().group == RBAC {
                let of = text(object.value, "/roleRef/kind");
                let name = text(object.value, "/roleRef/name");
                let at = if of == "Role" { object.target.namespace.as_str() } else { "" };
                if let Some(role) = roles.get(&(of, at, name)) {
                    let exists = role.action != Action::Create;
                    self.binding(object, &title, (of, name), role.value, exists);
                    continue;
                }
                let kind = Kind::new("rbac.authorization.k8s.io/v1", of);
                let Some(resource) = discovery.resource(&kind) else { continue };
                let target = Target::new(resource, at, name);
                let right = Right::named("get", RBAC, &resource.plural, at, name);
                self.plain(part, right, &title);
                let role = cluster.get(&target).await.unwrap_or_default();
                self.binding(object, &title, (of, name), &role, true);
            }
        }
    }

    /// A Role that is created: all that it grants must be held. One that is changed: `escalate` on
    /// its name will do.
    fn role(&mut self, object: &Written<'_>, title: &str) {
        self.paths(object.value, title);
        let rules = granted(object.value, &object.target.namespace);
        let rules: Vec<Right> = rules.into_iter().filter(|right| right.url.is_empty()).collect();
        if object.action == Action::Create {
            // A creation names nothing, so that only an `escalate` without a name covers it.
            let escalate = Right { name: String::new(), ..object.right("escalate") };
            self.held(
                rules,
                &escalate,
                &format!("{title} grants it, and only a holder may create it"),
            );
            return;
        }
        self.list.push(Need {
            alternatives: vec![vec![object.right("escalate")], rules],
            needed_for: format!("changing {title}, which grants rights"),
            part: Part::Installation,
        });
    }

    /// A binding to a role that is there: `bind` on the role's name will do. To one that is not:
    /// all that it grants must be held, as for the role itself.
    fn binding(
        &mut self,
        object: &Written<'_>,
        title: &str,
        (kind, name): (&str, &str),
        role: &Value,
        exists: bool,
    ) {
        self.paths(role, title);
        let place = &object.target.namespace;
        let rules = granted(role, place);
        let rules: Vec<Right> = rules.into_iter().filter(|right| right.url.is_empty()).collect();
        let plural = if kind == "Role" { "roles" } else { "clusterroles" };
        let bind = Right::named("bind", RBAC, plural, place, name);
        if exists {
            self.list.push(Need {
                alternatives: vec![vec![bind], rules],
                needed_for: format!("{title}, which binds a role"),
                part: Part::Installation,
            });
        } else {
            self.held(rules, &bind, &format!("{title} binds it, and only a holder may create it"));
        }
    }

    fn held(&mut self, rules: Vec<Right>, instead: &Right, needed_for: &str) {
        for rule in rules {
            self.list.push(Need {
                alternatives: vec![vec![rule], vec![instead.clone()]],
                needed_for: needed_for.to_owned(),
                part: Part::Installation,
            });
        }
    }

    fn paths(&mut self, role: &Value, title: &str) {
        if granted(role, "").iter().any(|right| !right.url.is_empty()) {
            self.unchecked.push(format!("rules of {title} on paths that are no resources"));
        }
    }
}
