//! What the in-memory cluster serves before any CRD: the kinds of Kubernetes 1.36.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::cluster::discovery::add_version;
use crate::cluster::kind::api_version;
use crate::cluster::{Discovery, Kind, Resource};

/// One resource a line, in a server's order: group version, plural, kind, scope, verbs, short
/// names, subresources with their kinds. Compared with a real server by a test.
const BUILTIN: &str = include_str!("builtin.txt");

/// What may be done with custom objects, in the server's order.
const DEFINED_VERBS: [&str; 8] =
    ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];

/// Groups, resources and what else discovery tells, while they are put together.
#[derive(Clone, Default)]
pub(super) struct Table {
    groups: Vec<(String, Vec<String>)>,
    resources: Vec<Resource>,
    subresource_kinds: BTreeSet<String>,
}

impl Table {
    pub(super) fn builtin() -> Self {
        let mut table = Self::default();
        for line in BUILTIN.lines() {
            let mut columns = line.split(' ');
            let mut column = || columns.next().unwrap_or_default();
            let (group_version, plural, kind) = (column(), column(), column());
            let namespaced = column() == "namespaced";
            let mut resource = Resource::builtin(group_version, kind, plural, namespaced);
            match column() {
                "usual" => {}
                verbs => resource.verbs = verbs.split(',').map(String::from).collect(),
            }
            resource.short_names = names(column());
            for subresource in names(column()) {
                let (name, kind) = subresource.split_once(':').unwrap_or_default();
                table.subresource_kinds.insert(format!("{group_version}/{kind}"));
                resource.subresources.push(name.to_owned());
            }
            table.add(resource);
        }
        table
    }

    /// What another server serves.
    pub(super) fn of(served: &Discovery) -> Self {
        Self {
            groups: served.groups().to_vec(),
            resources: served.resources().iter().map(|one| Resource::clone(one)).collect(),
            subresource_kinds: served.subresource_kinds().clone(),
        }
    }

    fn add(&mut self, resource: Resource) {
        let kind = &resource.kind;
        add_version(&mut self.groups, kind);
        self.resources.retain(|other| {
            (&other.kind.group, &other.kind.version, &other.plural)
                != (&kind.group, &kind.version, &resource.plural)
        });
        self.resources.push(resource);
    }

    /// Adds the resources that a CRD defines.
    pub(super) fn add_definition(&mut self, definition: &Value) {
        let text = |pointer: &str| {
            definition.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let group = text("/spec/group");
        let kind = text("/spec/names/kind");
        let plural = text("/spec/names/plural");
        let namespaced = text("/spec/scope") == "Namespaced";
        let short_names = definition.pointer("/spec/names/shortNames").and_then(Value::as_array);
        let short_names: Vec<String> = short_names
            .into_iter()
            .flatten()
            .filter_map(|name| Some(name.as_str()?.to_owned()))
            .collect();
        let versions = definition.pointer("/spec/versions").and_then(Value::as_array);
        for version in versions.into_iter().flatten() {
            if version.get("served") != Some(&Value::Bool(true)) {
                continue;
            }
            let name = version.get("name").and_then(Value::as_str).unwrap_or_default();
            let mut resource =
                Resource::builtin(&api_version(&group, name), &kind, &plural, namespaced);
            resource.verbs = DEFINED_VERBS.map(String::from).to_vec();
            resource.short_names.clone_from(&short_names);
            let has = |field| version.pointer(field).is_some();
            if has("/subresources/status") {
                resource.subresources.push("status".to_owned());
            }
            if has("/subresources/scale") {
                resource.subresources.push("scale".to_owned());
            }
            for subresource in &resource.subresources {
                let kind = if subresource == "scale" { "Scale" } else { &kind };
                self.subresource_kinds.insert(format!("{}/{kind}", api_version(&group, name)));
            }
            self.add(resource);
        }
        if let Some((_, versions)) = self.groups.iter_mut().find(|(name, _)| *name == group) {
            versions.sort_by_key(|version| std::cmp::Reverse(rank(version)));
        }
    }

    /// The resource of a group under this plural name, in any version.
    pub(super) fn resource(&self, group: &str, version: &str, plural: &str) -> Option<&Resource> {
        self.resources.iter().find(|resource| {
            resource.kind.group == group
                && resource.kind.version == version
                && resource.plural == plural
        })
    }

    pub(super) fn has_group(&self, group: &str) -> bool {
        self.groups.iter().any(|(name, _)| name == group)
    }

    /// The resource for a kind.
    pub(super) fn of_kind(&self, kind: &Kind) -> Option<&Resource> {
        self.resources.iter().find(|resource| resource.kind == *kind)
    }

    pub(super) fn discovery(self) -> Discovery {
        Discovery::new(self.groups, self.resources, self.subresource_kinds, Vec::new())
    }
}

fn names(column: &str) -> Vec<String> {
    if column == "-" { Vec::new() } else { column.split(',').map(String::from).collect() }
}

/// The order of versions: general availability first, then beta, then alpha, each by number
/// (`apimachinery/pkg/version`, `CompareKubeAwareVersionStrings`).
fn rank(version: &str) -> (u8, u64, u64) {
    let number = |text: &str| text.parse::<u64>().ok();
    let Some(rest) = version.strip_prefix('v') else { return (0, 0, 0) };
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (major, rest) = rest.split_at(end);
    let Some(major) = number(major) else { return (0, 0, 0) };
    if rest.is_empty() {
        return (3, major, 0);
    }
    for (stage, word) in [(2, "beta"), (1, "alpha")] {
        if let Some(minor) = rest.strip_prefix(word).and_then(number) {
            return (stage, major, minor);
        }
    }
    (0, 0, 0)
}

/// What makes an object's generation grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Generation {
    /// The kind has none.
    None,
    /// It has one that stays.
    Fixed,
    /// A change of this field.
    Field(&'static str),
    /// A change of the spec or the annotations.
    SpecAndAnnotations,
    /// Any change but of metadata.
    AllButMetadata,
    /// Any change but of metadata and status.
    AllButStatus,
}

/// The rule of a resource (each `strategy.go` below `kubernetes/pkg/registry`, and
/// `apiextensions-apiserver/pkg/registry/customresource/strategy.go`).
pub(super) fn generation(resource: &Resource) -> Generation {
    let group = resource.kind.group.as_str();
    match (group, resource.plural.as_str()) {
        ("apps", "deployments") => Generation::SpecAndAnnotations,
        ("apps", "controllerrevisions")
        | ("networking.k8s.io", "ipaddresses" | "servicecidrs")
        | ("resource.k8s.io", "resourceclaims" | "resourceclaimtemplates") => Generation::None,
        ("scheduling.k8s.io", _) => Generation::Fixed,
        ("admissionregistration.k8s.io", plural) if plural.ends_with("webhookconfigurations") => {
            Generation::Field("webhooks")
        }
        ("discovery.k8s.io", _) => Generation::AllButMetadata,
        ("", "podtemplates") => Generation::Field("template"),
        ("", "pods" | "replicationcontrollers")
        | (
            "apps"
            | "batch"
            | "policy"
            | "networking.k8s.io"
            | "apiextensions.k8s.io"
            | "flowcontrol.apiserver.k8s.io"
            | "admissionregistration.k8s.io"
            | "resource.k8s.io",
            _,
        ) => Generation::Field("spec"),
        (group, _) if is_builtin_group(group) => Generation::None,
        _ if resource.subresources.iter().any(|name| name == "status") => Generation::AllButStatus,
        _ => Generation::AllButMetadata,
    }
}

/// Whether the server itself, and no CRD, serves a group.
pub(super) fn is_builtin_group(group: &str) -> bool {
    group.is_empty()
        || !group.contains('.')
        || BUILTIN
            .lines()
            .any(|line| line.strip_prefix(group).is_some_and(|rest| rest.starts_with('/')))
}

/// Resources whose delete answers with the object and not with a Status (`ReturnDeletedObject`).
pub(super) fn returns_deleted(resource: &Resource) -> bool {
    match resource.kind.group.as_str() {
        "" => matches!(
            resource.plural.as_str(),
            "resourcequotas"
                | "persistentvolumes"
                | "persistentvolumeclaims"
                | "serviceaccounts"
                | "namespaces"
                | "pods"
                | "services"
                | "podtemplates"
        ),
        "resource.k8s.io" => true,
        "storage.k8s.io" => resource.plural != "csistoragecapacities",
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::{Table, rank};
    use crate::cluster::Kind;

    #[test]
    fn the_table_reads() {
        let discovery = Table::builtin().discovery();
        let deployment = discovery.resource(&Kind::new("apps/v1", "Deployment")).unwrap();
        assert_eq!(deployment.plural, "deployments");
        assert_eq!(deployment.subresources, ["scale", "status"]);
        assert!(discovery.api_versions().contains(&"apps/v1/Scale".to_owned()));
        assert_eq!(
            discovery.preferred("autoscaling", "HorizontalPodAutoscaler").unwrap().kind.version,
            "v2"
        );
    }

    #[test]
    fn versions_in_order() {
        let mut versions = ["v1beta1", "v2", "foo", "v1", "v1alpha2", "v1beta2"];
        versions.sort_by_key(|version| std::cmp::Reverse(rank(version)));
        assert_eq!(versions, ["v2", "v1", "v1beta2", "v1beta1", "v1alpha2", "foo"]);
    }
}
