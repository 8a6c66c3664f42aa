//! Which rights are missing to look at an installation: for whoever was refused at one request and
//! wants to know all of them at once.

use helm_rs::cluster::Cluster;

use crate::plan::rights::check_first;
use crate::plan::{Missing, Needs};
use crate::survey::{cli_right, hidden};

/// What somebody looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Where a takeover stands.
    Status,
    /// What a takeover would do.
    Plan {
        /// The operator says what the values are.
        values_given: bool,
    },
}

/// The rights that this identity lacks to see what runs and where a takeover stands. Empty too when
/// the server does not tell.
pub async fn missing_to_look(cluster: &dyn Cluster, purpose: Purpose) -> Vec<Missing> {
    check_first(cluster, needs_to_look(cluster, purpose).await).await.missing
}

/// What it takes to look, as far as that can be told by one who may not read everything.
pub(crate) async fn needs_to_look(cluster: &dyn Cluster, purpose: Purpose) -> Needs {
    let mut needs = Needs::default();
    needs.reading();
    needs.seeing_own();
    if let Purpose::Plan { values_given } = purpose {
        let rights = hidden(cluster).await;
        needs.looking(rights.iter().filter(|right| !values_given || **right != cli_right()));
    }
    needs
}
