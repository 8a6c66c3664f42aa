//! What a takeover would do, as data.
//!
//! A [`Plan`] is what people read, what machines read (JSON, [`SCHEMA_VERSION`]) and what a
//! consent names by its digest. It holds no credential: leaves that may hold one are shown as
//! [`HIDDEN`], and enter the digest as keyed hashes.

mod asks;
pub(crate) mod before;
pub(crate) mod begun;
mod cause;
mod digest;
mod dry_runs;
mod kube_prism;
mod left;
pub(crate) mod make;
pub(crate) mod making;
pub(crate) mod origin;
pub(crate) mod preconditions;
mod recovery;
mod restart;
pub(crate) mod rights;
mod room;
mod state;
mod text;
mod unseen;

use cilium::object::ObjectRef;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::inventory::InventoryAbout;
use crate::job::Summary;

pub use digest::{Key, hash_leaves};
pub(crate) use digest::{is_stand_in_entry, sha256};
pub use dry_runs::DryRuns;
pub use helm_rs::release::redact::HIDDEN;
pub use kube_prism::KubePrism;
pub use make::{PlanError, Prepared, PreparedObject, Request, prepare};
pub(crate) use origin::find_record;
pub use recovery::{RecoveredAbout, UnexplainedAbout};
pub use rights::{Missing, Need, Needs, Part, Rights, WhoWrites};
pub use text::{Look, to_terminal, to_text};

/// The form of a plan's JSON.
pub const SCHEMA_VERSION: &str = "ichor.maesh.dev/cni-plan/v1";

/// The form of the JSON of a plan that changes ichor's own release of Cilium.
pub const CHANGE_SCHEMA_VERSION: &str = "ichor.maesh.dev/cni-change/v1";

/// The form of the JSON of a plan that adopts a release of any chart.
pub const RELEASE_SCHEMA_VERSION: &str = "ichor.maesh.dev/release-plan/v1";

/// The release that a plan makes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReleaseAbout {
    /// Its name.
    pub name: String,
    /// Its namespace, in which records, lock, stored plan and backups lie too.
    pub namespace: String,
    /// `Secret` or `ConfigMap`: what its records lie in.
    pub records: String,
}

/// What a takeover would do.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// [`SCHEMA_VERSION`]
    pub schema_version: String,
    /// SHA-256 of what a consent is about: `sha256:…`. Empty when the plan refuses.
    pub digest: String,
    /// The release that is made; none for ichor's own of Cilium.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<ReleaseAbout>,
    /// What comes of it.
    pub outcome: Outcome,
    /// What was found.
    pub found: Found,
    /// What is installed in its place.
    pub chart: ChartAbout,
    /// Where the values come from.
    pub values: ValuesAbout,
    /// Why nothing is done; empty when something can be.
    pub refusals: Vec<Refusal>,
    /// What needs consent, and why.
    pub consent: Vec<Consent>,
    /// The objects, in the order in which they are written.
    pub objects: Vec<ObjectPlan>,
    /// Live objects of the foreign release that the chart does not render, and which stay.
    pub left_objects: Vec<ObjectAbout>,
    /// Objects of ichor's own release that the chart does not render any more, and that are deleted.
    /// A takeover deletes none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deletions: Vec<DeletionAbout>,
    /// Workloads whose pods are replaced.
    pub restarts: Vec<Restart>,
    /// Foreign records that are backed up, then deleted.
    pub records: Vec<RecordAbout>,
    /// Bytes of the Secrets that are written.
    pub sizes: Vec<Size>,
    /// Rights of the one who writes.
    pub rights: Rights,
    /// What Talos' inventory lists of it; none where no node runs Talos.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub talos_inventory: Option<InventoryAbout>,
    /// What was not checked, and why.
    pub unchecked: Vec<String>,
    /// What says that this is of a file; none for a plan of a cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rehearsal: Option<RehearsalAbout>,
}

/// What a rehearsal was made on. It is no part of the digest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RehearsalAbout {
    /// The snapshot, as the user named it.
    pub snapshot: String,
    /// When it was taken (RFC 3339).
    pub taken: String,
    /// The chart, as the user named it; empty for the pinned one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub chart: String,
    /// What the cluster itself may answer otherwise, as sentences.
    pub notes: Vec<String>,
}

impl RehearsalAbout {
    /// The sentence that no output of a rehearsal is without.
    pub fn headline(&self) -> String {
        format!(
            "REHEARSAL on {}, a cluster as it was at {}: no cluster is touched",
            self.snapshot, self.taken
        )
    }
}

/// What comes of a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// It is refused.
    #[default]
    Refused,
    /// There is nothing to do.
    Nothing,
    /// The installation is taken over in its version.
    TakeOver,
    /// It is taken over and brought to the chart's version.
    Upgrade,
    /// An earlier takeover is finished.
    Resume,
    /// There is no CNI: Cilium is installed, and managed from then on.
    Install,
    /// Ichor's own release gets other values, another version, or both.
    Change,
}

/// What was found on the cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Found {
    /// The server's version.
    pub kubernetes: String,
    /// How many nodes there are.
    pub nodes: usize,
    /// Whether all of them run Talos.
    pub talos: bool,
    /// The network plugin in one word.
    pub cni: String,
    /// The version of the running Cilium.
    pub version: String,
    /// `enabled` or `replaced`.
    pub kube_proxy: String,
    /// Who installed it.
    pub installer: String,
    /// Where it comes from, as a sentence.
    pub provenance: String,
}

/// The chart that is rendered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChartAbout {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The digest of its archive.
    pub digest: String,
}

/// Where the values come from, and what became of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ValuesAbout {
    /// As a sentence.
    pub source: String,
    /// How good they are when they were recovered from what runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovered: Option<RecoveredAbout>,
    /// Owned keys that change on the running data plane.
    pub changes: Vec<OwnedChange>,
    /// Owned keys under which the user's values say something else.
    pub overridden: Vec<OwnedChange>,
    /// Owned keys under which the user's values say nothing, and which the record will have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub added: Vec<OwnedChange>,
}

/// An owned key with two values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OwnedChange {
    /// The key.
    pub key: String,
    /// What runs, or what the user's values say; empty for nothing.
    pub from: String,
    /// What is taken; empty for the chart's default.
    pub to: String,
    /// Whether it needs `--accept-cilium-changes`.
    pub needs_consent: bool,
}

/// Why nothing is done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Refusal {
    /// In one word, for programs.
    pub reason: String,
    /// What is wrong, and what to do instead.
    pub message: String,
}

/// Something that needs consent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Consent {
    /// The flag that gives it.
    pub flag: String,
    /// Why it is needed.
    pub why: String,
}

/// Which object is meant.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectAbout {
    /// `apiVersion`
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// `kind`
    pub kind: String,
    /// The namespace; empty for cluster-scoped objects.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl std::fmt::Display for ObjectAbout {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        ObjectRef::new(&self.kind, &self.namespace, &self.name).fmt(f)
    }
}

/// What happens to an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Action {
    /// Nothing: it is as it should be.
    #[default]
    Keep,
    /// A patch is sent.
    Patch,
    /// It is created.
    Create,
    /// It is a hook, which a takeover does not run.
    Hook,
}

/// An object that is deleted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeletionAbout {
    /// Which object.
    #[serde(flatten)]
    pub about: ObjectAbout,
    /// Its UID: no other object of its name is deleted.
    pub uid: String,
}

/// How the object after the write was computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Computed {
    /// Nothing had to be.
    #[default]
    Unchanged,
    /// By the server's dry run.
    Server,
    /// In memory.
    Memory,
}

/// An object, with its leaves by class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectPlan {
    /// Which object.
    #[serde(flatten)]
    pub about: ObjectAbout,
    /// What happens to it.
    pub action: Action,
    /// How it was computed.
    pub computed: Computed,
    /// Why not by the server; empty otherwise.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub computed_why: String,
    /// What its creation brings about; empty for nothing beside the object.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub effect: String,
    /// Leaves that change.
    pub differences: Vec<Difference>,
    /// Live-only leaves that stay.
    pub residue: Vec<ResidueAbout>,
    /// Ownership metadata that changes.
    pub ownership: Vec<Difference>,
    /// Generated leaves whose live value is kept.
    pub generated: Vec<String>,
    /// Leaves of controllers and the server.
    pub others: Vec<OtherLeaf>,
    /// How many live-only leaves have the server's default.
    pub defaults: usize,
}

/// A leaf that changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Difference {
    /// Where.
    pub path: String,
    /// What is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<Value>,
    /// What will be there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<Value>,
    /// Why.
    pub cause: Cause,
    /// Who set the live value, where that is known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub manager: String,
}

/// Why a leaf changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Cause {
    /// The chart and its values say so.
    Chart,
    /// An owned key.
    OwnedKey,
    /// The chart's version is another one.
    Version,
    /// Somebody else set the live value.
    OtherManager,
    /// Only the live object has it.
    LiveOnly,
    /// The chart generates it, and there is no live value to keep.
    Generated,
}

impl Cause {
    /// For people.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Chart => "chart or values",
            Self::OwnedKey => "owned key",
            Self::Version => "version",
            Self::OtherManager => "changed by",
            Self::LiveOnly => "live only",
            Self::Generated => "generated",
        }
    }
}

/// A live-only leaf that stays.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResidueAbout {
    /// Where.
    pub path: String,
    /// What is there.
    pub value: Value,
    /// Who set it, where that is known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub manager: String,
}

/// A leaf of a controller or the server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OtherLeaf {
    /// Where.
    pub path: String,
    /// Whose.
    pub manager: String,
}

/// A workload whose pods are replaced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Restart {
    /// Which workload.
    #[serde(flatten)]
    pub about: ObjectAbout,
    /// The leaves that do it.
    pub leaves: Vec<String>,
    /// How many pods.
    pub pods: u64,
    /// On how many nodes.
    pub nodes: u64,
    /// Whether pods are replaced only when somebody deletes them (`OnDelete`).
    pub on_delete: bool,
}

/// A foreign record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordAbout {
    /// Which object holds it.
    #[serde(flatten)]
    pub about: ObjectAbout,
    /// The object's UID.
    pub uid: String,
    /// The release.
    pub release: String,
    /// The revision.
    pub revision: i64,
    /// Its status.
    pub status: String,
    /// Bytes that are stored.
    pub bytes: usize,
}

/// How large a Secret becomes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Size {
    /// What it holds.
    pub what: String,
    /// Bytes of data.
    pub bytes: usize,
}

/// Bytes of data that a Secret may hold (`core.MaxSecretSize`).
pub const MAX_SECRET: usize = 1024 * 1024;

impl Plan {
    /// What is taken over, for people.
    pub(crate) fn subject(&self) -> String {
        self.release.as_ref().map_or_else(
            || "Cilium".to_owned(),
            |release| format!("Release {} in namespace {}", release.name, release.namespace),
        )
    }

    /// The namespace of records and backups.
    pub(crate) fn home(&self) -> &str {
        self.release.as_ref().map_or(cilium::pinned::RECORD_NAMESPACE, |release| &release.namespace)
    }

    /// Whether it changes ichor's own release, and takes nothing over.
    pub fn is_change(&self) -> bool {
        self.schema_version == CHANGE_SCHEMA_VERSION
    }

    /// What a Job says of it at its end.
    pub fn summary(&self) -> Summary {
        let figures = self.figures();
        Summary {
            digest: self.digest.clone(),
            chart: self.chart.version.clone(),
            differences: figures.differences,
            residue: figures.residue,
            creations: figures.creations,
            deletions: figures.deletions,
        }
    }

    /// Whether nothing keeps the plan from being carried out.
    pub fn is_refused(&self) -> bool {
        !self.refusals.is_empty()
    }

    /// Differences, residue with objects that stay, creations, restarts: the gate's figures.
    pub fn figures(&self) -> Figures {
        let sum = |count: fn(&ObjectPlan) -> usize| self.objects.iter().map(count).sum();
        Figures {
            differences: sum(|object| object.differences.len()),
            residue: sum(|object| object.residue.len()) + self.left_objects.len(),
            creations: self.objects.iter().filter(|o| o.action == Action::Create).count(),
            deletions: self.deletions.len(),
            restarts: self.restarts.len(),
            ownership: sum(|object| object.ownership.len()),
            generated: sum(|object| object.generated.len()),
            others: sum(|object| object.others.len()),
            defaults: sum(|object| object.defaults),
        }
    }

    /// Whether the gate needs no consent. What stays as it is was consented to by the takeover, so
    /// that a change of ichor's own release need not ask for it again.
    pub fn gate_is_empty(&self) -> bool {
        let figures = self.figures();
        figures.differences == 0
            && (figures.residue == 0 || self.is_change())
            && figures.creations == 0
            && figures.deletions == 0
    }

    /// The plan as JSON.
    ///
    /// # Errors
    /// Never in practice: every part is plain data.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }
}

/// The gate's figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Leaves that change.
    pub differences: usize,
    /// Live-only leaves and objects that stay.
    pub residue: usize,
    /// Objects that are created.
    pub creations: usize,
    /// Objects that are deleted.
    pub deletions: usize,
    /// Workloads whose pods are replaced.
    pub restarts: usize,
    /// Ownership leaves that change.
    pub ownership: usize,
    /// Generated leaves whose live value is kept.
    pub generated: usize,
    /// Leaves of controllers and the server.
    pub others: usize,
    /// Live-only leaves with the server's default.
    pub defaults: usize,
}
