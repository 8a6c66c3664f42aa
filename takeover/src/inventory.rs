//! Talos' inventory of what it applied, and how taken-over objects leave it.
//!
//! Talos 1.13 and later lists in a ConfigMap every object of its own and of the machine
//! configuration's manifests. `talosctl upgrade-k8s` deletes what is listed and no longer in those
//! manifests: once the inline manifest that held Cilium is dropped, that is Cilium. So the
//! references to taken-over objects have to leave the list, but only after every control plane has
//! dropped the manifest: each one fills the list again from its own at every start.
//!
//! The annotation that names the owning inventory stays on the objects. The library reads it of
//! objects that are listed or in the manifests, and of no others: with its own name the object is
//! deleted, with none too (`AdoptIfNoInventory`, the default), with another name the whole sync
//! fails. Without the reference none of this happens, and a write to the objects is spared.
//! (`kubernetes/ssa/{apply,inventory_policy}.go` of go-kubernetes, `manifest_apply.go` and
//! `pkg/cluster/kubernetes/talos_managed.go` of Talos 1.13)

use std::collections::BTreeSet;

use cilium::pinned::{NAMESPACE, RECORD_NAMESPACE, RELEASE};
use helm_rs::apply::{FIELD_MANAGER, Item};
use helm_rs::cluster::{
    Clock, Cluster, ClusterError, ErrorKind, ListQuery, Patch, PatchKind, Resource, Target,
    WriteOptions, list_all,
};
use helm_rs::release::Status;
use helm_rs::release::storage::{ObjectDriver, ObjectKind, Storage, StorageError};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::place::CILIUM;
use crate::plan::{ObjectAbout, PreparedObject};
use crate::rendered::manifest_objects;
use crate::run::{LeftOverError, OwnError, left_over, own};
use crate::survey::{config_maps, read, text};

/// The namespace of the inventory. (`pkg/machinery/constants/constants.go` of Talos 1.13)
pub const INVENTORY_NAMESPACE: &str = "kube-system";
/// The ConfigMap that is the inventory.
pub const INVENTORY_NAME: &str = "talos-bootstrap-manifests-inventory";
/// The annotation that names the inventory an object belongs to.
/// (`kubernetes/ssa/inventory.go` of go-kubernetes)
pub const INVENTORY_ANNOTATION: &str = "config.k8s.io/owning-inventory";
/// The label of control planes.
const CONTROL_PLANE: &str = "node-role.kubernetes.io/control-plane";
/// How often a write is tried that somebody else's write comes before.
const TRIES: usize = 5;

/// What the inventory lists of the objects that are taken over.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InventoryAbout {
    /// Whether there is an inventory (Talos before 1.13 has none).
    pub exists: bool,
    /// Objects of the plan that it lists, in the plan's order.
    pub listed: Vec<ObjectAbout>,
    /// Its other references.
    pub others: usize,
    /// Listed objects whose annotation names another inventory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub foreign: Vec<ForeignInventory>,
}

/// An object that says it belongs to another inventory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ForeignInventory {
    /// The object.
    #[serde(flatten)]
    pub object: ObjectAbout,
    /// What it names.
    pub inventory: String,
}

/// Why references do not leave the inventory.
#[derive(Debug, thiserror::Error)]
pub enum InventoryError {
    /// A request failed.
    #[error("{doing}")]
    Cluster {
        /// What was being done.
        doing: String,
        /// What the cluster says.
        source: ClusterError,
    },
    /// Ichor's newest record cannot be read.
    #[error(transparent)]
    Own(#[from] OwnError),
    /// What it says cannot be read.
    #[error("ichor's record")]
    Record(#[from] StorageError),
    /// What an earlier run left cannot be told.
    #[error("what an earlier run left")]
    LeftOver(#[from] LeftOverError),
    /// The takeover is not complete.
    #[error(
        "refused: {why}, and until the takeover is complete Talos' inventory is left alone; finish \
         it first (`ichor cni status` tells what is left)"
    )]
    NotComplete {
        /// What is not.
        why: String,
    },
    /// A control plane still has the inline manifest.
    #[error(
        "refused: nothing says that {} dropped the inline manifest with Cilium: as long as one \
         control plane has it, Talos fills its inventory again",
        nodes.join(", ")
    )]
    NotDropped {
        /// The control planes.
        nodes: Vec<String>,
    },
    /// There is no control plane.
    #[error("refused: no node has the label {CONTROL_PLANE}, so that no control plane is known")]
    NoControlPlane,
    /// Talos filled the inventory in between.
    #[error(
        "Talos filled its inventory again ({} of the removed references are back): a control plane \
         still has the inline manifest with Cilium; drop it there, then do this again",
        references.len()
    )]
    Refilled {
        /// What is back.
        references: Vec<String>,
    },
    /// Somebody else wrote each time.
    #[error("somebody else wrote to the inventory {TRIES} times in a row; try again")]
    Busy,
}

/// The proof that no control plane has the inline manifest any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryDropped {
    control_planes: Vec<String>,
}

/// What left the inventory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Released {
    /// The references that were removed, as they stood there; empty when none was there.
    pub removed: Vec<String>,
    /// References that stay, to objects that were not taken over.
    pub others: usize,
}

/// A reference to an object, as the inventory has it: the group's version does not matter.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Reference(String);

impl Reference {
    /// `NAMESPACE_NAME_GROUP_KIND`; in the names of RBAC objects, `__` stands for a colon.
    /// (`pkg/object/objmetadata.go` of cli-utils)
    fn new(object: &ObjectAbout) -> Self {
        let group = object.api_version.split_once('/').map_or("", |(group, _)| group);
        let name = if group == "rbac.authorization.k8s.io" {
            object.name.replace(':', "__")
        } else {
            object.name.clone()
        };
        Self(format!("{}_{name}_{group}_{}", object.namespace, object.kind))
    }
}

/// The references of an inventory, and the version of the object that holds them.
struct Inventory {
    version: String,
    references: BTreeSet<Reference>,
}

fn failed(doing: impl Into<String>) -> impl FnOnce(ClusterError) -> InventoryError {
    let doing = doing.into();
    move |source| InventoryError::Cluster { doing, source }
}

fn place() -> String {
    format!("ConfigMap {INVENTORY_NAMESPACE}/{INVENTORY_NAME}")
}

async fn inventory(cluster: &dyn Cluster) -> Result<Option<Inventory>, ClusterError> {
    let object = read(cluster, &config_maps(), INVENTORY_NAMESPACE, INVENTORY_NAME).await?;
    Ok(object.map(|object| Inventory {
        version: text(&object, "/metadata/resourceVersion").to_owned(),
        references: object
            .get("data")
            .and_then(Value::as_object)
            .into_iter()
            .flat_map(|data| data.keys().cloned().map(Reference))
            .collect(),
    }))
}

/// What the inventory lists of the objects of a plan.
///
/// # Errors
/// [`ClusterError`]
pub(crate) async fn look(
    cluster: &dyn Cluster,
    objects: &[PreparedObject],
) -> Result<InventoryAbout, ClusterError> {
    let Some(inventory) = inventory(cluster).await? else { return Ok(InventoryAbout::default()) };
    let mut about = InventoryAbout { exists: true, ..InventoryAbout::default() };
    for object in objects {
        let item = about_item(&object.item);
        if !inventory.references.contains(&Reference::new(&item)) {
            continue;
        }
        let annotations =
            object.live.as_ref().and_then(|live| live.pointer("/metadata/annotations"));
        let owner = annotations.and_then(|all| all.get(INVENTORY_ANNOTATION)?.as_str());
        if let Some(owner) = owner.filter(|owner| *owner != INVENTORY_NAME) {
            let inventory = owner.to_owned();
            about.foreign.push(ForeignInventory { object: item.clone(), inventory });
        }
        about.listed.push(item);
    }
    about.others = inventory.references.len() - about.listed.len();
    Ok(about)
}

fn about_item(item: &Item) -> ObjectAbout {
    ObjectAbout {
        api_version: item.kind().api_version(),
        kind: item.kind().kind.clone(),
        namespace: item.target.namespace.clone(),
        name: item.target.name.clone(),
    }
}

impl EntryDropped {
    /// Holds those that dropped the manifest against the control planes of the cluster. Whoever
    /// calls has read each one's machine configuration, and found the manifest by its content.
    ///
    /// # Errors
    /// [`InventoryError::NotDropped`] with those that are missing.
    pub async fn by(
        cluster: &dyn Cluster,
        dropped: &BTreeSet<String>,
    ) -> Result<Self, InventoryError> {
        let nodes = Resource::builtin("v1", "Node", "nodes", false);
        let query = ListQuery { labels: CONTROL_PLANE.to_owned(), ..ListQuery::default() };
        let page = list_all(cluster, &nodes, &query).await.map_err(failed("list the nodes"))?;
        let mut control_planes: Vec<String> =
            page.items.iter().map(|node| text(node, "/metadata/name").to_owned()).collect();
        control_planes.sort();
        if control_planes.is_empty() {
            return Err(InventoryError::NoControlPlane);
        }
        let nodes: Vec<String> =
            control_planes.iter().filter(|node| !dropped.contains(*node)).cloned().collect();
        if nodes.is_empty() {
            Ok(Self { control_planes })
        } else {
            Err(InventoryError::NotDropped { nodes })
        }
    }

    /// The control planes that dropped it.
    pub fn control_planes(&self) -> &[String] {
        &self.control_planes
    }
}

/// The objects that ichor's release holds, out of its deployed record.
///
/// # Errors
/// [`InventoryError::NotComplete`] while there is no such record, or a takeover was begun and is
/// not complete.
async fn taken_over(
    cluster: &dyn Cluster,
    clock: &dyn Clock,
) -> Result<Vec<ObjectAbout>, InventoryError> {
    let not_complete = |why: String| InventoryError::NotComplete { why };
    if let Some(left) = left_over(cluster, clock).await? {
        return Err(not_complete(format!(
            "revision {} of release {RELEASE} is {}, and {} foreign record(s) are still there",
            left.revision, left.status, left.records
        )));
    }
    let driver = ObjectDriver::new(cluster, clock, ObjectKind::Secret, RECORD_NAMESPACE);
    let Some(newest) = own::newest(&CILIUM, &Storage::new(&driver)).await? else {
        return Err(not_complete(format!("{RECORD_NAMESPACE} holds no record of ichor")));
    };
    let status = newest.status;
    if status != Status::Deployed {
        return Err(not_complete(format!("ichor's newest record is {status}")));
    }
    let discovery =
        cluster.discovery(false).await.map_err(failed("read what the server serves"))?;
    let manifest = newest.stored.record.manifest().map_err(StorageError::Field)?;
    Ok(manifest_objects(&discovery, &manifest, NAMESPACE).iter().map(about_item).collect())
}

/// Removes the references to taken-over objects from Talos' inventory, reads it again and makes
/// sure that they are gone. The write holds only for the version that was read. Done again, it
/// finds nothing to do.
///
/// # Errors
/// [`InventoryError`]; all but [`InventoryError::Refilled`] and a failed request leave the
/// inventory as it was.
pub async fn release(
    cluster: &dyn Cluster,
    clock: &dyn Clock,
    _: &EntryDropped,
) -> Result<Released, InventoryError> {
    let objects = taken_over(cluster, clock).await?;
    let own: BTreeSet<Reference> = objects.iter().map(Reference::new).collect();
    let reading = || failed(format!("read {}", place()));
    let mut tries = TRIES;
    let removed = loop {
        let Some(inventory) = inventory(cluster).await.map_err(reading())? else {
            return Ok(Released::default());
        };
        let listed: BTreeSet<&Reference> = inventory.references.intersection(&own).collect();
        if listed.is_empty() {
            return Ok(Released { removed: Vec::new(), others: inventory.references.len() });
        }
        match write(cluster, &inventory.version, &listed).await {
            Ok(()) => break names(listed),
            Err(error) if error.kind() != ErrorKind::Conflict => {
                return Err(failed(format!("write {}", place()))(error));
            }
            Err(_) if tries <= 1 => return Err(InventoryError::Busy),
            Err(_) => tries -= 1,
        }
    };
    let after = inventory(cluster).await.map_err(reading())?;
    let after = after.map(|inventory| inventory.references).unwrap_or_default();
    let back: BTreeSet<&Reference> = after.intersection(&own).collect();
    if back.is_empty() {
        Ok(Released { removed, others: after.len() })
    } else {
        Err(InventoryError::Refilled { references: names(back) })
    }
}

fn names(references: BTreeSet<&Reference>) -> Vec<String> {
    references.into_iter().map(|reference| reference.0.clone()).collect()
}

async fn write(
    cluster: &dyn Cluster,
    version: &str,
    references: &BTreeSet<&Reference>,
) -> Result<(), ClusterError> {
    let data: Map<String, Value> =
        references.iter().map(|reference| (reference.0.clone(), Value::Null)).collect();
    let body = json!({ "metadata": { "resourceVersion": version }, "data": data });
    let target = Target::new(&config_maps(), INVENTORY_NAMESPACE, INVENTORY_NAME);
    let patch = Patch { kind: PatchKind::Merge, body };
    let options =
        WriteOptions { field_manager: FIELD_MANAGER.to_owned(), ..WriteOptions::default() };
    cluster.patch(&target, &patch, &options).await.map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_written_as_the_library_writes_them() {
        let about = |api_version: &str, kind: &str, namespace: &str, name: &str| {
            Reference::new(&ObjectAbout {
                api_version: api_version.to_owned(),
                kind: kind.to_owned(),
                namespace: namespace.to_owned(),
                name: name.to_owned(),
            })
            .0
        };
        assert_eq!(
            about("apps/v1", "DaemonSet", "kube-system", "cilium"),
            "kube-system_cilium_apps_DaemonSet"
        );
        assert_eq!(about("v1", "Namespace", "", "cilium-secrets"), "_cilium-secrets__Namespace");
        assert_eq!(
            about("rbac.authorization.k8s.io/v1", "ClusterRole", "", "system:node:cilium"),
            "_system__node__cilium_rbac.authorization.k8s.io_ClusterRole"
        );
        assert_eq!(
            about("rbac.authorization.k8s.io/v1beta1", "Role", "a", "b"),
            "a_b_rbac.authorization.k8s.io_Role"
        );
    }
}
