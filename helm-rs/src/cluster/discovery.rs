//! What a server serves.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::kind::api_version;
use super::{Kind, Resource};

/// The groups, versions and resources of a server, in its own order: the preferred version of a
/// group first.
#[derive(Clone, Debug, Default)]
pub struct Discovery {
    /// The groups with the versions that are served, the preferred one first.
    groups: Vec<(String, Vec<String>)>,
    resources: Vec<Arc<Resource>>,
    by_kind: BTreeMap<Kind, usize>,
    subresource_kinds: BTreeSet<String>,
    failed: Vec<FailedGroup>,
}

/// A version of a group whose resources the server could not name: the server behind it is down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedGroup {
    /// `metrics.k8s.io/v1beta1`.
    pub group_version: String,
    /// What client-go says of it (`ErrGroupDiscoveryFailed`), without the group.
    pub problem: String,
}

impl Discovery {
    /// Takes groups in the server's order with their resources; versions without resources count
    /// as served. `subresource_kinds` are the kinds that subresources answer with, each as
    /// `apps/v1/Scale` with the group version of its resource.
    pub fn new(
        groups: Vec<(String, Vec<String>)>,
        resources: Vec<Resource>,
        subresource_kinds: BTreeSet<String>,
        mut failed: Vec<FailedGroup>,
    ) -> Self {
        failed.sort_by(|one, other| one.group_version.cmp(&other.group_version));
        let mut by_kind = BTreeMap::new();
        let resources: Vec<_> = resources.into_iter().map(Arc::new).collect();
        for (index, resource) in resources.iter().enumerate() {
            by_kind.entry(resource.kind.clone()).or_insert(index);
        }
        Self { groups, resources, by_kind, subresource_kinds, failed }
    }

    /// What would be served with these resources as well, after the others.
    #[must_use]
    pub fn extended(&self, more: impl IntoIterator<Item = Resource>) -> Self {
        let mut all = self.clone();
        for resource in more {
            let kind = resource.kind.clone();
            add_version(&mut all.groups, &kind);
            all.by_kind.entry(kind).or_insert(all.resources.len());
            all.resources.push(Arc::new(resource));
        }
        all
    }

    /// The resource that holds objects of exactly this kind.
    pub fn resource(&self, kind: &Kind) -> Option<&Arc<Resource>> {
        self.resources.get(*self.by_kind.get(kind)?)
    }

    /// The resource for a group and kind in the version that the server prefers.
    pub fn preferred(&self, group: &str, kind: &str) -> Option<&Arc<Resource>> {
        let (_, versions) = self.groups.iter().find(|(name, _)| name == group)?;
        versions.iter().find_map(|version| {
            self.resource(&Kind {
                group: group.to_owned(),
                version: version.clone(),
                kind: kind.to_owned(),
            })
        })
    }

    /// All resources, group by group.
    pub fn resources(&self) -> &[Arc<Resource>] {
        &self.resources
    }

    /// The groups with their versions, the preferred one first.
    pub fn groups(&self) -> &[(String, Vec<String>)] {
        &self.groups
    }

    /// The kinds that subresources answer with, each as `apps/v1/Scale`.
    pub const fn subresource_kinds(&self) -> &BTreeSet<String> {
        &self.subresource_kinds
    }

    /// The group versions whose server is down, sorted. Helm warns of them and goes on.
    pub fn failed(&self) -> &[FailedGroup] {
        &self.failed
    }

    /// client-go's text for [`Self::failed`], empty when nothing failed
    /// (`ErrGroupDiscoveryFailed.Error`).
    pub fn failure_text(&self) -> String {
        if self.failed.is_empty() {
            return String::new();
        }
        let groups: Vec<_> = self
            .failed
            .iter()
            .map(|failed| format!("{}: {}", failed.group_version, failed.problem))
            .collect();
        format!("unable to retrieve the complete list of server APIs: {}", groups.join(", "))
    }

    /// What Helm's `.Capabilities.APIVersions` holds: group versions and group versions with kind,
    /// those of subresources too, sorted (`pkg/action/action.go`, `GetVersionSet`).
    pub fn api_versions(&self) -> Vec<String> {
        let mut names = self.subresource_kinds.clone();
        for (group, versions) in &self.groups {
            names.extend(versions.iter().map(|version| api_version(group, version)));
        }
        for resource in &self.resources {
            names.insert(format!("{}/{}", resource.kind.api_version(), resource.kind.kind));
        }
        names.into_iter().collect()
    }
}

/// Adds a kind's version to its group, and the group where it is new.
pub(super) fn add_version(groups: &mut Vec<(String, Vec<String>)>, kind: &Kind) {
    match groups.iter_mut().find(|(group, _)| *group == kind.group) {
        Some((_, versions)) if versions.contains(&kind.version) => {}
        Some((_, versions)) => versions.push(kind.version.clone()),
        None => groups.push((kind.group.clone(), vec![kind.version.clone()])),
    }
}

/// The server's answer to `/version`.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServerVersion {
    /// `1`.
    pub major: String,
    /// `36`; some distributions add a plus sign.
    pub minor: String,
    /// `v1.36.2`.
    pub git_version: String,
    /// `linux/amd64`.
    pub platform: String,
}
