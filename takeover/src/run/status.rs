//! What a takeover left, looked at from outside: what was done, what is left, and what real Helm
//! sees of it.

use std::collections::BTreeMap;

use cilium::pinned::{RECORD_NAMESPACE, RELEASE};
use helm_rs::cluster::{Cluster, ClusterError, ErrorKind, ListQuery, Resource, list_all};

use super::backup::{BackupError, backups, live};
use super::lock::LEASE;
use super::stored::{StoredError, StoredPlan};
use crate::survey::{builtin, config_maps, read, secrets, text};

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// The digest of the stored plan; none when no takeover was begun.
    pub digest: Option<String>,
    /// Foreign records of that plan that are still there.
    pub records: Vec<String>,
    /// Backups, each with the number of records that it holds whole and that it says to hold.
    pub backups: Vec<(String, usize, usize)>,
    /// Who holds the lock, and when it was renewed last; none when nobody does.
    pub lock: Option<(String, String)>,
    /// The newest revision of each release of that name, as `helm list --all-namespaces --all`
    /// shows it.
    pub releases: Vec<Release>,
    /// What could not be read.
    pub unread: Vec<String>,
}

/// A release as real Helm lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    /// `Secret` or `ConfigMap`: Helm lists one kind, by `HELM_DRIVER`.
    pub kind: String,
    /// The namespace of its records.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The newest revision.
    pub revision: i64,
    /// Its status.
    pub status: String,
}

/// Why it cannot be told.
#[derive(Debug, thiserror::Error)]
pub enum StatusError {
    /// The stored plan.
    #[error(transparent)]
    Stored(#[from] StoredError),
    /// Records and backups.
    #[error(transparent)]
    Backup(#[from] BackupError),
    /// Something else.
    #[error("{doing}")]
    Cluster {
        /// What was being done.
        doing: String,
        /// What the cluster says.
        source: ClusterError,
    },
}

impl Status {
    /// Whether real Helm sees one deployed release of this Cilium, ichor's, and nothing else.
    pub fn helm_agrees(&self) -> bool {
        match self.releases.as_slice() {
            [only] => {
                (only.namespace.as_str(), only.name.as_str(), only.status.as_str())
                    == (RECORD_NAMESPACE, RELEASE, "deployed")
            }
            _ => false,
        }
    }

    /// Whether nothing of a takeover is left to be done on the cluster.
    pub fn is_complete(&self) -> bool {
        self.digest.is_some() && self.records.is_empty() && self.helm_agrees()
    }
}

/// Looks.
///
/// # Errors
/// [`StatusError`]
pub async fn status(cluster: &dyn Cluster) -> Result<Status, StatusError> {
    let stored = StoredPlan::read(cluster).await?;
    let mut status = Status::default();
    let mut names = vec![RELEASE.to_owned()];
    if let Some(stored) = &stored {
        status.digest = Some(stored.plan.digest.clone());
        let there = live(cluster, &stored.plan.records).await?;
        status.records = there.iter().map(|record| record.about.to_string()).collect();
        names.extend(stored.plan.records.iter().map(|record| record.release.clone()));
        names.sort();
        names.dedup();
    }
    for backup in backups(cluster).await? {
        status.backups.push((backup.name.clone(), backup.verified().count(), backup.records.len()));
    }
    let leases = builtin("coordination.k8s.io/v1", "Lease", "leases", true);
    let lease = read(cluster, &leases, RECORD_NAMESPACE, LEASE).await.map_err(|source| {
        StatusError::Cluster { doing: format!("read Lease {RECORD_NAMESPACE}/{LEASE}"), source }
    })?;
    status.lock = lease.and_then(|lease| {
        let holder = text(&lease, "/spec/holderIdentity").to_owned();
        let renewed = text(&lease, "/spec/renewTime").to_owned();
        (!holder.is_empty()).then_some((holder, renewed))
    });
    for resource in [secrets(), config_maps()] {
        releases(cluster, &resource, &names, &mut status).await?;
    }
    Ok(status)
}

/// The newest revision of each release, by labels alone, as `helm list` reads them.
async fn releases(
    cluster: &dyn Cluster,
    resource: &Resource,
    names: &[String],
    status: &mut Status,
) -> Result<(), StatusError> {
    let query = ListQuery {
        labels: format!("owner=helm,name in ({})", names.join(",")),
        metadata_only: true,
        ..ListQuery::default()
    };
    let page = match list_all(cluster, resource, &query).await {
        Ok(page) => page,
        Err(error) if error.kind() == ErrorKind::Forbidden => {
            status.unread.push(format!("{} of all namespaces", resource.plural));
            return Ok(());
        }
        Err(source) => {
            return Err(StatusError::Cluster {
                doing: format!("list {}", resource.plural),
                source,
            });
        }
    };
    let mut newest: BTreeMap<(String, String), Release> = BTreeMap::new();
    for object in &page.items {
        let label = |key: &str| text(object, &format!("/metadata/labels/{key}")).to_owned();
        let namespace = text(object, "/metadata/namespace").to_owned();
        let release = Release {
            kind: resource.kind.kind.clone(),
            namespace: namespace.clone(),
            name: label("name"),
            revision: label("version").parse().unwrap_or_default(),
            status: label("status"),
        };
        let place = (namespace, release.name.clone());
        if newest.get(&place).is_none_or(|other| other.revision < release.revision) {
            newest.insert(place, release);
        }
    }
    status.releases.extend(newest.into_values());
    Ok(())
}
