//! What ichor knows of Cilium, as functions on plain data: no cluster client, no clock.
//!
//! Objects are [`serde_json::Value`], as a server returns them; values are [`goyaml::Value`], as
//! charts take them.
//!
//! - [`detect`]: which network plugins there are, which nodes, and what follows
//! - [`provenance`]: who installed the running Cilium, and which record counts
//! - [`version`], [`kube_proxy`], [`owned`]: the preconditions and the keys that ichor decides
//! - [`values`]: the effective values
//! - [`recover`]: the values of an installation that left none
//! - [`inline_manifest`]: Cilium in a machine configuration or another multi-document file
//! - [`pinned`]: the chart

pub mod detect;
pub mod inline_manifest;
pub mod kube_proxy;
pub mod object;
pub mod owned;
pub mod pinned;
pub mod provenance;
pub mod recover;
pub mod values;
pub mod version;
