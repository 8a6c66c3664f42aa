//! Conditions, in the form of `metav1.Condition`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The types of conditions.
pub mod type_ {
    /// Whether Cilium is ichor's. True once, it stays True.
    pub const CNI_HANDOVER: &str = "CNIHandover";
    /// Whether Cilium's agents are Ready on all nodes; says nothing about whose Cilium it is.
    pub const CNI_HEALTHY: &str = "CNIHealthy";
    /// Whether what the spec says is what ichor's release has. There is none before the hand-over.
    pub const VALUES_APPLIED: &str = "ValuesApplied";
    /// Whether this ichor brings a newer Cilium than the one that is deployed. It is never upgraded
    /// by itself. There is none before the hand-over.
    pub const CILIUM_UPGRADE_AVAILABLE: &str = "CiliumUpgradeAvailable";
    /// Whether ichor's own network policies are in place; none where they are switched off.
    pub const NETWORK_POLICIES_APPLIED: &str = "NetworkPoliciesApplied";
}

/// The reasons of conditions, by type.
pub mod reason {
    /// CNIHandover is True: the Job is done, and the agents are Ready.
    pub const HANDED_OVER: &str = "HandedOver";
    /// CNIHandover is False: nobody said that the running Cilium is to be taken over.
    pub const NOT_ADOPTED: &str = "NotAdopted";
    /// False: the Job is at work.
    pub const IN_PROGRESS: &str = "InProgress";
    /// CNIHandover is False: the Job is done, and not all agents are Ready.
    pub const WAITING_FOR_AGENTS: &str = "WaitingForAgents";
    /// False: the Job failed, and is tried again.
    pub const JOB_FAILED: &str = "JobFailed";
    /// The Job cannot be made: the API server refuses it.
    pub const NOT_MADE: &str = "NotMade";
    /// The controller cannot see the cluster's objects.
    pub const NOT_SEEN: &str = "NotSeen";
    /// False: the Job waits for a consent.
    pub const CONSENT_REQUIRED: &str = "ConsentRequired";
    /// False: it is refused until something changes.
    pub const REFUSED: &str = "Refused";
    /// CNIHealthy is True.
    pub const AGENTS_READY: &str = "AgentsReady";
    /// CNIHealthy is False: some nodes have no Ready agent.
    pub const AGENTS_NOT_READY: &str = "AgentsNotReady";
    /// CNIHealthy is False: there is no Cilium.
    pub const NO_CILIUM: &str = "NoCilium";
    /// ValuesApplied is True. Where it is False, the reason is one of those of CNIHandover:
    /// [`IN_PROGRESS`], [`JOB_FAILED`], [`CONSENT_REQUIRED`], [`REFUSED`].
    pub const APPLIED: &str = "Applied";
    /// CiliumUpgradeAvailable is True: nobody asked for the upgrade. Where somebody did, the reason
    /// is one of those of CNIHandover.
    pub const NEWER_CHART: &str = "NewerChart";
    /// CiliumUpgradeAvailable is False: what is deployed is what this ichor brings.
    pub const UP_TO_DATE: &str = "UpToDate";
    /// CiliumUpgradeAvailable is False: what is deployed is newer than what this ichor brings.
    pub const OLDER_ICHOR: &str = "OlderIchor";
    /// NetworkPoliciesApplied is True.
    pub const POLICIES_IN_PLACE: &str = "PoliciesInPlace";
    /// NetworkPoliciesApplied is False: another CNI than Cilium runs, or none.
    pub const CNI_NOT_CILIUM: &str = "CNINotCilium";
    /// NetworkPoliciesApplied is False: the API server took no write of them.
    pub const NOT_WRITTEN: &str = "NotWritten";
    /// NetworkPoliciesApplied is False: the API server does not serve CiliumNetworkPolicy.
    pub const NO_POLICY_KIND: &str = "NoPolicyKind";
}

/// Whether a condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ConditionStatus {
    /// It holds.
    True,
    /// It does not.
    False,
    /// It cannot be told.
    Unknown,
}

/// One aspect of an object's state. (`k8s.io/apimachinery/pkg/apis/meta/v1`, type `Condition`)
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// The aspect, in CamelCase.
    #[serde(rename = "type")]
    #[schemars(length(max = 316))]
    pub type_: String,
    /// Whether it holds.
    pub status: ConditionStatus,
    /// The generation of the spec that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub observed_generation: Option<i64>,
    /// When the status changed last, in RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub last_transition_time: String,
    /// Why, in one CamelCase word.
    #[schemars(
        length(min = 1, max = 1024),
        regex(pattern = r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$")
    )]
    pub reason: String,
    /// Why, for people.
    #[schemars(length(max = 32768))]
    pub message: String,
}
