//! Which rights are missing to look at an installation: for whoever was refused at one request and
//! wants to know all of them at once.

use cilium::pinned::RECORD_NAMESPACE;
use helm_rs::action::rights::Right;
use helm_rs::cluster::Cluster;

use crate::plan::rights::check_first;
use crate::plan::{Missing, Need, Needs, Part};
use crate::run::lock::LEASE;

/// The rights that this identity lacks to see what runs and where a takeover stands. Empty too when
/// the server does not tell.
pub async fn missing_to_look(cluster: &dyn Cluster) -> Vec<Missing> {
    let mut needs = Needs::default();
    needs.reading();
    let group = "coordination.k8s.io";
    for right in [
        Right::named("get", group, "leases", RECORD_NAMESPACE, LEASE),
        Right::any("get", "", "secrets", RECORD_NAMESPACE),
        Right::any("list", "", "secrets", RECORD_NAMESPACE),
    ] {
        needs.list.push(Need {
            alternatives: vec![vec![right]],
            needed_for: "ichor's records, plan, backups and lock".to_owned(),
            part: Part::Installation,
        });
    }
    check_first(cluster, needs).await.missing
}
