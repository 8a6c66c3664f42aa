//! What the first and the last line of a snapshot say.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{END, HEAD, SCHEMA_VERSION};
use crate::cluster::{Discovery, FailedGroup, Kind, Resource, ServerVersion, Subject};

/// What became of the data of Secrets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Secrets {
    /// Each value is a digest keyed with the cluster's identity: equal values stay equal, and
    /// nothing can be read.
    #[default]
    Digests,
    /// As they are: the file is a credential.
    Included,
}

/// The first line: the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct About {
    pub(super) kind: String,
    pub(super) schema_version: u64,
    /// The program that made it, such as `ichor 0.1.0`.
    pub taken_by: String,
    /// When it was made (RFC 3339).
    pub taken: String,
    /// What stands for the cluster: the UID of its namespace `kube-system`; the key of digests.
    pub cluster: String,
    /// The server's version.
    pub server: ServerVersion,
    /// Who made it.
    pub identity: SubjectAbout,
    /// What became of the data of Secrets.
    pub secrets: Secrets,
    /// The groups with their versions, the preferred one first.
    groups: Vec<(String, Vec<String>)>,
    /// The resources that are served.
    resources: Vec<ResourceAbout>,
    /// The kinds that subresources answer with.
    subresource_kinds: BTreeSet<String>,
    /// Group versions whose server was down, and what was said of each.
    failed: Vec<(String, String)>,
}

/// Somebody who asks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SubjectAbout {
    /// The user's name.
    pub user: String,
    /// The user's groups.
    pub groups: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResourceAbout {
    group: String,
    version: String,
    kind: String,
    plural: String,
    namespaced: bool,
    verbs: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    subresources: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    short_names: Vec<String>,
}

/// The last line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct End {
    pub(super) kind: String,
    /// The number of objects.
    pub objects: usize,
    /// SHA-256 of all lines before this one, in hexadecimal.
    pub sha256: String,
    /// What could not be read, for people.
    pub unread: Vec<String>,
    /// What is not as it was in the cluster, and what that means, for people.
    #[serde(default)]
    pub notes: Vec<String>,
}

impl About {
    /// What a server serves, and who asks it.
    pub fn new(server: ServerVersion, identity: &Subject, discovery: &Discovery) -> Self {
        let resource = |resource: &Resource| ResourceAbout {
            group: resource.kind.group.clone(),
            version: resource.kind.version.clone(),
            kind: resource.kind.kind.clone(),
            plural: resource.plural.clone(),
            namespaced: resource.namespaced,
            verbs: resource.verbs.clone(),
            subresources: resource.subresources.clone(),
            short_names: resource.short_names.clone(),
        };
        let failed = |failed: &FailedGroup| (failed.group_version.clone(), failed.problem.clone());
        Self {
            kind: HEAD.to_owned(),
            schema_version: SCHEMA_VERSION,
            server,
            identity: SubjectAbout { user: identity.user.clone(), groups: identity.groups.clone() },
            groups: discovery.groups().to_vec(),
            resources: discovery.resources().iter().map(|one| resource(one)).collect(),
            subresource_kinds: discovery.subresource_kinds().clone(),
            failed: discovery.failed().iter().map(failed).collect(),
            ..Self::default()
        }
    }

    /// What the server served.
    pub fn discovery(&self) -> Discovery {
        let resource = |about: &ResourceAbout| Resource {
            kind: Kind {
                group: about.group.clone(),
                version: about.version.clone(),
                kind: about.kind.clone(),
            },
            plural: about.plural.clone(),
            namespaced: about.namespaced,
            verbs: about.verbs.clone(),
            subresources: about.subresources.clone(),
            short_names: about.short_names.clone(),
        };
        let failed = |(group_version, problem): &(String, String)| FailedGroup {
            group_version: group_version.clone(),
            problem: problem.clone(),
        };
        Discovery::new(
            self.groups.clone(),
            self.resources.iter().map(resource).collect(),
            self.subresource_kinds.clone(),
            self.failed.iter().map(failed).collect(),
        )
    }

    /// Who made the snapshot.
    pub fn subject(&self) -> Subject {
        let SubjectAbout { user, groups } = self.identity.clone();
        Subject { user, groups, ..Subject::default() }
    }
}

impl End {
    pub(super) fn new(
        objects: usize,
        sha256: String,
        unread: Vec<String>,
        notes: Vec<String>,
    ) -> Self {
        Self { kind: END.to_owned(), objects, sha256, unread, notes }
    }
}
