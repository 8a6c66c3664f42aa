//! Discovery: what the server serves.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::retry::Call;
use super::send::Sender;
use crate::cluster::kind::api_version;
use crate::cluster::{ClusterError, Discovery, ErrorKind, FailedGroup, Kind, Resource};

/// The whole API in one document, where the server has it (since 1.27; `client-go/discovery`,
/// `AcceptV2`).
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
                          application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,\
                          application/json";

#[derive(Deserialize)]
#[serde(tag = "kind")]
enum Document {
    #[serde(rename = "APIGroupDiscoveryList")]
    Aggregated {
        #[serde(default)]
        items: Vec<Group>,
    },
    #[serde(rename = "APIVersions")]
    Versions {
        #[serde(default)]
        versions: Vec<String>,
    },
    #[serde(rename = "APIGroupList")]
    Groups {
        #[serde(default)]
        groups: Vec<OldGroup>,
    },
}

#[derive(Deserialize)]
struct Group {
    metadata: Name,
    #[serde(default)]
    versions: Vec<Version>,
}

#[derive(Deserialize)]
struct Name {
    #[serde(default)]
    name: String,
}

#[derive(Deserialize)]
struct Version {
    version: String,
    #[serde(default)]
    resources: Vec<Served>,
    #[serde(default)]
    freshness: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Served {
    resource: String,
    #[serde(default)]
    response_kind: Option<ResponseKind>,
    #[serde(default)]
    scope: String,
    #[serde(default)]
    verbs: Vec<String>,
    #[serde(default)]
    short_names: Vec<String>,
    #[serde(default)]
    subresources: Vec<Sub>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Sub {
    subresource: String,
    #[serde(default)]
    response_kind: Option<ResponseKind>,
}

#[derive(Deserialize)]
struct ResponseKind {
    #[serde(default)]
    kind: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OldGroup {
    name: String,
    #[serde(default)]
    versions: Vec<OldVersion>,
    #[serde(default)]
    preferred_version: Option<OldVersion>,
}

#[derive(Deserialize)]
struct OldVersion {
    version: String,
}

#[derive(Deserialize)]
struct OldResources {
    #[serde(default)]
    resources: Vec<OldResource>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OldResource {
    name: String,
    kind: String,
    #[serde(default)]
    namespaced: bool,
    #[serde(default)]
    verbs: Vec<String>,
    #[serde(default)]
    short_names: Vec<String>,
}

/// What is collected on the way.
#[derive(Default)]
struct Found {
    groups: Vec<(String, Vec<String>)>,
    resources: Vec<Resource>,
    subresource_kinds: BTreeSet<String>,
    failed: Vec<FailedGroup>,
    /// Group versions to ask for one by one.
    asked: Vec<(String, String)>,
}

/// Asks for everything the server serves: two requests, or one for each group version of an old
/// server. A group that is down is noted and does not break the others
/// (`ServerGroupsAndResources`).
pub(super) async fn discover(sender: &Sender) -> Result<Discovery, ClusterError> {
    let mut found = Found::default();
    for path in ["/api", "/apis"] {
        let mut call = Call::get(path.to_owned()).raw();
        call.accept = AGGREGATED;
        match sender.send(&call).await {
            Ok(answer) => found.add(answer.parse()?),
            // A server without one of them: client-go goes on as well.
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Forbidden) => {}
            Err(error) => return Err(error),
        }
    }
    let asked = std::mem::take(&mut found.asked);
    let answers = asked.iter().map(|(group, version)| async move {
        let api_version = api_version(group, version);
        let prefix = if group.is_empty() { "/api" } else { "/apis" };
        let answer = sender.send(&Call::get(format!("{prefix}/{api_version}"))).await;
        answer.and_then(|answer| answer.parse::<OldResources>())
    });
    for ((group, version), answer) in asked.iter().zip(futures::future::join_all(answers).await) {
        match answer {
            Ok(resources) => found.add_old(group, version, resources),
            Err(error) => found.failed.push(FailedGroup {
                group_version: api_version(group, version),
                problem: error.to_string(),
            }),
        }
    }
    let Found { groups, resources, subresource_kinds, failed, .. } = found;
    Ok(Discovery::new(groups, resources, subresource_kinds, failed))
}

impl Found {
    fn add(&mut self, document: Document) {
        match document {
            Document::Aggregated { items } => {
                for group in items {
                    self.add_group(group);
                }
            }
            Document::Versions { versions } => {
                self.asked.extend(versions.iter().map(|version| (String::new(), version.clone())));
                self.groups.push((String::new(), versions));
            }
            Document::Groups { groups } => {
                for group in groups {
                    let preferred = group.preferred_version.map(|version| version.version);
                    let mut versions: Vec<_> =
                        group.versions.into_iter().map(|version| version.version).collect();
                    versions.sort_by_key(|version| Some(version) != preferred.as_ref());
                    let pairs =
                        versions.iter().map(|version| (group.name.clone(), version.clone()));
                    self.asked.extend(pairs);
                    self.groups.push((group.name, versions));
                }
            }
        }
    }

    /// `convertAPIGroup` in `client-go/discovery/aggregated_discovery.go`.
    fn add_group(&mut self, group: Group) {
        let name = group.metadata.name;
        let mut versions = Vec::new();
        for version in group.versions {
            let group_version = api_version(&name, &version.version);
            if version.freshness == "Stale" {
                let problem = format!("stale GroupVersion discovery: {group_version}");
                self.failed.push(FailedGroup { group_version, problem });
                continue;
            }
            for served in version.resources {
                let kinds = served.subresources.iter().filter_map(|sub| {
                    let kind = &sub.response_kind.as_ref()?.kind;
                    (!kind.is_empty()).then(|| format!("{group_version}/{kind}"))
                });
                self.subresource_kinds.extend(kinds);
                let kind = served.response_kind.map(|kind| kind.kind).unwrap_or_default();
                if kind.is_empty() {
                    continue;
                }
                self.resources.push(Resource {
                    kind: Kind { group: name.clone(), version: version.version.clone(), kind },
                    plural: served.resource,
                    namespaced: served.scope == "Namespaced",
                    verbs: served.verbs,
                    subresources: served
                        .subresources
                        .into_iter()
                        .map(|sub| sub.subresource)
                        .collect(),
                    short_names: served.short_names,
                });
            }
            versions.push(version.version);
        }
        self.groups.push((name, versions));
    }

    fn add_old(&mut self, group: &str, version: &str, found: OldResources) {
        let group_version = api_version(group, version);
        let (subresources, resources): (Vec<_>, Vec<_>) =
            found.resources.into_iter().partition(|resource| resource.name.contains('/'));
        let kinds = subresources.iter().map(|sub| format!("{group_version}/{}", sub.kind));
        self.subresource_kinds.extend(kinds);
        for resource in resources {
            let prefix = format!("{}/", resource.name);
            self.resources.push(Resource {
                kind: Kind {
                    group: group.to_owned(),
                    version: version.to_owned(),
                    kind: resource.kind,
                },
                namespaced: resource.namespaced,
                verbs: resource.verbs,
                subresources: subresources
                    .iter()
                    .filter_map(|sub| Some(sub.name.strip_prefix(&prefix)?.to_owned()))
                    .collect(),
                short_names: resource.short_names,
                plural: resource.name,
            });
        }
    }
}

/// Where the OpenAPI v3 document of each group version is, under `v1`, `apps/v1`.
pub(super) async fn openapi_index(
    sender: &Sender,
) -> Result<BTreeMap<String, String>, ClusterError> {
    #[derive(Deserialize)]
    struct Index {
        paths: BTreeMap<String, Place>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Place {
        #[serde(rename = "serverRelativeURL")]
        server_relative_url: String,
    }
    let index: Index = match sender.send(&Call::get("/openapi/v3".to_owned())).await {
        Ok(answer) => answer.parse()?,
        Err(error) if error.is_not_found() => return Ok(BTreeMap::new()),
        Err(error) => return Err(error),
    };
    let named = |(path, place): (String, Place)| {
        let group_version = path.strip_prefix("apis/").or_else(|| path.strip_prefix("api/"))?;
        Some((group_version.to_owned(), place.server_relative_url))
    };
    Ok(index.paths.into_iter().filter_map(named).collect())
}
