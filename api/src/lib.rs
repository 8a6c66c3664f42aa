//! The custom resources of ichor: what a user writes, what the controller answers, and what the API
//! server refuses.
//!
//! ```
//! use api::{CniPreset, TalosCluster};
//!
//! let cluster: TalosCluster = serde_json::from_str(
//!     r#"{"apiVersion": "ichor.maesh.dev/v1alpha1", "kind": "TalosCluster",
//!         "metadata": {"name": "cluster"}, "spec": {"cni": {"preset": "cilium"}}}"#,
//! )?;
//! assert_eq!(cluster.spec.cni.preset, CniPreset::Cilium);
//! # Ok::<(), serde_json::Error>(())
//! ```
//!
//! Reading order: [`TalosCluster`], [`annotation`], [`Condition`], then [`manifest`], which has the
//! definition and the policies as they are applied. The rules in CEL are all in one module, and
//! nothing but the types and those rules goes into a manifest.

pub mod annotation;
mod cluster;
mod condition;
pub mod manifest;
mod rules;

pub use cluster::{
    CiliumSpec, CniPreset, CniSpec, CniStatus, DetectedCni, KubeProxy, MANAGED_NAME, TalosCluster,
    TalosClusterSpec, TalosClusterStatus, TalosCni, Tunnel, UnmanagedSpec,
};
pub use condition::{Condition, ConditionStatus, reason, type_};
