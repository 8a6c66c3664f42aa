//! The annotations of a [`TalosCluster`](crate::TalosCluster).

/// `"true"` on a cluster that ran before ichor came: its Cilium is taken over, or its CNI is left
/// alone.
pub const ADOPTED: &str = "ichor.maesh.dev/adopted";
/// The name of the inline manifest in Talos' machine configuration that Cilium was installed by. It
/// is copied to `status.cni.takenOverInlineManifest` when the hand-over is complete.
pub const CNI_INLINE_MANIFEST: &str = "ichor.maesh.dev/cni-inline-manifest";
/// The digest of the plan that the operator consented to, as `ichor adopt --plan` shows it.
pub const ACCEPTED_PLAN: &str = "ichor.maesh.dev/accepted-plan";
/// The version of Cilium's chart that the operator asks to upgrade to. It has to be the one that this
/// ichor brings, as the condition `CiliumUpgradeAvailable` names it; nothing is upgraded without it.
pub const UPGRADE_TO: &str = "ichor.maesh.dev/upgrade-to";
/// Any value: another one than before has the controller try again what it refused, as any other
/// annotation that is changed does. `ichor adopt` counts it up.
pub const RETRY: &str = "ichor.maesh.dev/retry";
