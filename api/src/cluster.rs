//! `TalosCluster`: what its owner wants of the cluster's network, and where it stands.
//!
//! The resource is cluster-scoped: it is about the cluster that it lies in, of which there is one,
//! so that a namespace would only be a place to look in vain, and a right in a namespace would be a
//! right on every node's network.
#![expect(clippy::duplicated_attributes, reason = "each printer column has a type of its own")]

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use cilium::detect::Kind as DetectedCni;

use crate::{Condition, rules};

/// The name of the one cluster object whose CNI ichor manages.
///
/// That a managed object has this name is how there is at most one: names are unique, which no rule
/// on one object could say of all of them, and no webhook without a race.
pub const MANAGED_NAME: &str = "cluster";

/// What the owner of a cluster wants.
#[derive(Clone, Debug, PartialEq, CustomResource, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "ichor.maesh.dev",
    version = "v1alpha1",
    kind = "TalosCluster",
    plural = "talosclusters",
    shortname = "tc",
    category = "ichor",
    doc = "What the owner of this cluster wants of its network, and where it stands.",
    status = "TalosClusterStatus",
    derive = "PartialEq",
    printcolumn(
        name = "Preset",
        type_ = "string",
        json_path = ".spec.cni.preset",
        description = "Who operates the CNI"
    ),
    printcolumn(
        name = "CNI",
        type_ = "string",
        json_path = ".status.cni.detected",
        description = "The CNI that runs"
    ),
    printcolumn(
        name = "Version",
        type_ = "string",
        json_path = ".status.cni.detectedVersion",
        description = "Its version"
    ),
    printcolumn(
        name = "Handover",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="CNIHandover")].status"#,
        description = "Whether Cilium is ichor's"
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="CNIHandover")].reason"#,
        description = "Why it is, or is not"
    ),
    printcolumn(
        name = "Healthy",
        type_ = "string",
        priority = 1,
        json_path = r#".status.conditions[?(@.type=="CNIHealthy")].status"#,
        description = "Whether Cilium's agents are Ready on all nodes"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
pub struct TalosClusterSpec {
    /// The cluster's network plugin.
    pub cni: CniSpec,
}

/// What is wanted of the network plugin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::cni()))]
pub struct CniSpec {
    /// Who operates it: `cilium` for ichor, `unmanaged` for somebody else. It cannot be changed.
    #[schemars(with = "String", length(max = 32), extend("x-kubernetes-validations" = rules::preset()))]
    pub preset: CniPreset,
    /// What ichor needs to know of a CNI that it leaves alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unmanaged: Option<UnmanagedSpec>,
    /// Whether kube-proxy runs, or Cilium stands in for it. A takeover keeps what is there, and is
    /// refused when this says otherwise; nothing said: as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kube_proxy: Option<KubeProxy>,
    /// The protocol between nodes. It cannot be changed, set or taken away later, since a change
    /// cuts every connection between nodes; nothing said: as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tunnel: Option<Tunnel>,
    /// Cilium's own settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cilium: Option<CiliumSpec>,
}

/// Who operates the network plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CniPreset {
    /// Ichor, with Cilium.
    Cilium,
    /// Somebody else.
    Unmanaged,
}

/// What ichor needs to know of a CNI that it leaves alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnmanagedSpec {
    /// What Talos installs: its `default`, or `none` where somebody else brings the CNI.
    #[serde(rename = "talosCNI")]
    pub talos_cni: TalosCni,
}

/// `cluster.network.cni` of Talos.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TalosCni {
    /// What Talos brings, flannel.
    Default,
    /// Nothing.
    None,
}

/// Who forwards to Services.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum KubeProxy {
    /// kube-proxy.
    Enabled,
    /// Cilium.
    Replaced,
}

impl KubeProxy {
    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Enabled => "enabled",
            Self::Replaced => "replaced",
        }
    }
}

/// The protocol between nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Tunnel {
    /// VXLAN.
    Vxlan,
    /// Geneve.
    Geneve,
}

impl Tunnel {
    /// The word for it, as Cilium has it too.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Vxlan => "vxlan",
            Self::Geneve => "geneve",
        }
    }
}

/// Cilium's own settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CiliumSpec {
    /// Values of Cilium's chart. Where a release's record is taken over, the record's values hold
    /// until the hand-over is complete. The keys that ichor decides are refused by name.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schemars(schema_with = "rules::free_form")]
    pub values: Map<String, Value>,
}

/// Where the cluster stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TalosClusterStatus {
    /// The generation of the spec that was looked at last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The network plugin as it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cni: Option<CniStatus>,
    /// `CNIHandover`, `CNIHealthy`, and after the hand-over `ValuesApplied` and
    /// `CiliumUpgradeAvailable`: none of them for an unmanaged CNI. `NetworkPoliciesApplied` where
    /// network policies are switched on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// The network plugin as it runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CniStatus {
    /// Which one it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "rules::detected")]
    pub detected: Option<DetectedCni>,
    /// Its version, by its image's tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detected_version: Option<String>,
    /// The version of the chart of ichor's release, as the last Job told it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chart_version: Option<String>,
    /// A digest of what of the spec ichor's release has; `none` while a change of it is not complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied_spec: Option<String>,
    /// The inline manifest of Talos' machine configuration that Cilium came from, once it is ichor's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken_over_inline_manifest: Option<String>,
}

impl TalosCluster {
    /// The value of an annotation.
    pub fn annotation(&self, name: &str) -> Option<&str> {
        self.metadata.annotations.as_ref()?.get(name).map(String::as_str)
    }

    /// Whether the cluster ran before ichor came.
    pub fn is_adopted(&self) -> bool {
        self.annotation(crate::annotation::ADOPTED) == Some("true")
    }

    /// The condition of this type.
    pub fn condition(&self, type_: &str) -> Option<&Condition> {
        self.status.as_ref()?.conditions.iter().find(|condition| condition.type_ == type_)
    }
}
