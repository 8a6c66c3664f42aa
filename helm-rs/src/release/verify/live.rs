//! Manifests held against the objects of a cluster. Reading the cluster is the caller's: here
//! are the objects to look for, and what to say about what was found.

use std::collections::BTreeMap;

use goyaml::Value;

use super::record::Audited;
use super::together::current;
use super::{Code, Finding};
use crate::diff::Identity;

/// An object that a release's current revision should have on the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    /// The object, with the namespace that it is applied into.
    pub identity: Identity,
    /// `apiVersion`, as the manifest has it.
    pub api_version: String,
    /// The release's namespace.
    pub namespace: String,
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
            object
                .at(&["metadata", "annotations", name])
                .and_then(Value::as_str)
                .map(ToString::to_string)
                .unwrap_or_default()
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
        let Some(current) = current(revisions.iter().copied()) else { continue };
        all.extend(current.objects.iter().map(|(identity, api_version)| Expected {
            identity: identity.clone(),
            api_version: api_version.clone(),
            namespace: namespace.to_owned(),
            release: release.to_owned(),
            revision: current.summary.revision,
            place: current.place.clone(),
        }));
    }
    all
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
                && (namespace.is_empty() || *namespace == expected.namespace);
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
