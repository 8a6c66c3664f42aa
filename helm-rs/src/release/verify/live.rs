//! Manifests held against the objects of a cluster: what to look for, looking, and what to say
//! about what was found.

use std::collections::BTreeMap;

use serde_json::Value;

use super::record::Audited;
use super::together::current;
use super::{Code, Finding};
use crate::cluster::{Cluster, ClusterError, Discovery, ErrorKind, Kind, Target};
use crate::diff::Identity;

/// An object that a release's current revision should have on the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    /// The object, with the namespace that it is applied into.
    pub identity: Identity,
    /// `apiVersion`, as the manifest has it.
    pub api_version: String,
    /// The namespace that the records are in.
    pub namespace: String,
    /// The release's own namespace, as the record says: what its objects' annotations name.
    pub owner_namespace: String,
    /// The release's name.
    pub release: String,
    /// The current revision.
    pub revision: i64,
    /// Where the record was read.
    pub place: String,
}

/// What the cluster says about an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Live {
    /// There is none.
    Missing,
    /// It is there; the release that its annotations name, empty where they do not.
    Present {
        /// `meta.helm.sh/release-name`
        release: String,
        /// `meta.helm.sh/release-namespace`
        namespace: String,
    },
    /// It cannot be told: no rights to read it, for example.
    Unknown,
}

impl Live {
    /// What a live object says.
    pub fn of(object: &Value) -> Self {
        let text = |name: &str| {
            let annotations = object.get("metadata").and_then(|about| about.get("annotations"));
            let value = annotations.and_then(|all| all.get(name)).and_then(Value::as_str);
            value.unwrap_or_default().to_owned()
        };
        Self::Present {
            release: text("meta.helm.sh/release-name"),
            namespace: text("meta.helm.sh/release-namespace"),
        }
    }
}

/// The objects of every release's current revision, ordered by release, then by object.
pub fn expected(records: &[Audited]) -> Vec<Expected> {
    let mut releases: BTreeMap<(&str, &str), Vec<&Audited>> = BTreeMap::new();
    for record in records {
        let (namespace, release, _) = record.subject();
        releases.entry((namespace, release)).or_default().push(record);
    }
    let mut all = Vec::new();
    for ((namespace, release), revisions) in releases {
        let Some(current) = current(&revisions) else { continue };
        let mut objects: Vec<_> = current.objects.iter().collect();
        objects.sort();
        all.extend(objects.into_iter().map(|(identity, api_version)| Expected {
            identity: Identity::clone(identity),
            api_version: api_version.to_string(),
            namespace: namespace.to_owned(),
            owner_namespace: current.summary.namespace.clone(),
            release: release.to_owned(),
            revision: current.summary.revision,
            place: current.place.clone(),
        }));
    }
    all
}

/// Looks for an object on a cluster, in the version that the manifest names, else in the one that
/// the server prefers.
///
/// What this identity may not read, and what a server that is down would tell, is
/// [`Live::Unknown`]. A kind that the cluster does not have is [`Live::Missing`].
///
/// # Errors
/// When the cluster does not answer.
pub async fn look(
    cluster: &dyn Cluster,
    discovery: &Discovery,
    expected: &Expected,
) -> Result<Live, ClusterError> {
    let Identity { group, kind, namespace, name } = &expected.identity;
    let resource = discovery
        .resource(&Kind::new(&expected.api_version, kind))
        .or_else(|| discovery.preferred(group, kind));
    let Some(resource) = resource else {
        let is_down = discovery.failed().iter().any(|failed| {
            failed.group_version.rsplit_once('/').map_or("", |(name, _)| name) == group
        });
        return Ok(if is_down { Live::Unknown } else { Live::Missing });
    };
    let namespace = match (resource.namespaced, namespace.as_str()) {
        (false, _) => "",
        (true, "") => &expected.owner_namespace,
        (true, namespace) => namespace,
    };
    match cluster.get(&Target::new(resource, namespace, name)).await {
        Ok(object) => Ok(Live::of(&object)),
        Err(error) => match error.kind() {
            ErrorKind::NotFound => Ok(Live::Missing),
            ErrorKind::Forbidden | ErrorKind::Unavailable => Ok(Live::Unknown),
            _ => Err(error),
        },
    }
}

/// What is wrong with an object of a manifest, as the cluster has it.
///
/// An object without ownership annotations is not reported: those of a release from before
/// Helm 3.2 have none.
pub fn compare_live(expected: &Expected, live: &Live) -> Option<Finding> {
    let finding = |code, message| {
        Some(Finding {
            code,
            namespace: expected.namespace.clone(),
            release: expected.release.clone(),
            revision: Some(expected.revision),
            place: expected.place.clone(),
            message,
        })
    };
    let object = &expected.identity;
    match live {
        Live::Unknown => None,
        Live::Missing => finding(Code::MissingObject, format!("{object} is not on the cluster")),
        Live::Present { release, namespace } => {
            let is_own = (release.is_empty() || *release == expected.release)
                && (namespace.is_empty() || *namespace == expected.owner_namespace);
            if is_own {
                return None;
            }
            finding(
                Code::ForeignOwner,
                format!("{object} belongs to release {release} in {namespace}"),
            )
        }
    }
}
