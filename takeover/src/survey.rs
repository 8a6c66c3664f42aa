//! What is read from a cluster before anything is planned.

use std::sync::Arc;

use cilium::detect::{Detected, detect};
use cilium::object::FieldError;
use cilium::pinned::{CONFIG_MAP, DAEMON_SET, NAMESPACE, RECORD_NAMESPACE, RELEASE};
use cilium::provenance::CLI_SECRET;
use helm_rs::action::rights::Right;
use helm_rs::apply::ownership::RELEASE_NAME;
use helm_rs::cluster::{
    Cluster, ClusterError, Discovery, ErrorKind, ListQuery, Resource, ServerVersion, Subject,
    Target, list_all,
};
use serde_json::Value;

/// The operator's Deployment.
pub const OPERATOR: &str = "cilium-operator";

/// What was read.
#[derive(Clone, Debug)]
pub struct Survey {
    /// The server's version.
    pub server: ServerVersion,
    /// What it serves.
    pub discovery: Arc<Discovery>,
    /// Who asks.
    pub identity: Subject,
    /// The UID of the namespace kube-system, which stands for the cluster.
    pub cluster_id: String,
    /// Network plugins and nodes.
    pub detected: Detected,
    /// The agent's DaemonSet.
    pub daemon_set: Option<Value>,
    /// The ConfigMap `cilium-config`.
    pub config_map: Option<Value>,
    /// The operator's Deployment.
    pub operator: Option<Value>,
    /// Secrets that may be records, and what the Cilium CLI left.
    pub secrets: Vec<Value>,
    /// ConfigMaps that may be records.
    pub config_maps: Vec<Value>,
    /// What could not be read, for people.
    pub unread: Vec<String>,
    /// Places where records, or the Cilium CLI's values, may lie and may not be looked for.
    pub hidden: Vec<Hidden>,
}

/// Something that may be there and may not be looked at.
#[derive(Clone, Debug)]
pub struct Hidden {
    /// The right that is missing.
    pub right: Right,
    /// What the cluster says.
    pub source: ClusterError,
}

/// Why the cluster cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SurveyError {
    /// A request failed.
    #[error("{doing}")]
    Cluster {
        /// What was being done.
        doing: String,
        /// What the cluster says.
        source: ClusterError,
    },
    /// An object is none.
    #[error(transparent)]
    Field(#[from] FieldError),
}

pub(crate) fn failed(doing: impl Into<String>) -> impl FnOnce(ClusterError) -> SurveyError {
    let doing = doing.into();
    move |source| SurveyError::Cluster { doing, source }
}

/// A resource that every server has.
pub(crate) fn builtin(
    api_version: &str,
    kind: &str,
    plural: &str,
    namespaced: bool,
) -> Arc<Resource> {
    Arc::new(Resource::builtin(api_version, kind, plural, namespaced))
}

pub(crate) fn secrets() -> Arc<Resource> {
    builtin("v1", "Secret", "secrets", true)
}

pub(crate) fn config_maps() -> Arc<Resource> {
    builtin("v1", "ConfigMap", "configmaps", true)
}

/// The resource of objects that hold records, by their kind.
pub(crate) fn resource_of(kind: &str) -> Arc<Resource> {
    if kind == "Secret" { secrets() } else { config_maps() }
}

/// Reads an object that may be missing.
pub(crate) async fn read(
    cluster: &dyn Cluster,
    resource: &Arc<Resource>,
    namespace: &str,
    name: &str,
) -> Result<Option<Value>, ClusterError> {
    match cluster.get(&Target::new(resource, namespace, name)).await {
        Ok(object) => Ok(Some(object)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

async fn list(cluster: &dyn Cluster, resource: &Resource) -> Result<Vec<Value>, ClusterError> {
    Ok(list_all(cluster, resource, &ListQuery::default()).await?.items)
}

/// Reads the cluster.
///
/// # Errors
/// [`SurveyError`]
pub async fn survey(cluster: &dyn Cluster) -> Result<Survey, SurveyError> {
    let (daemon_sets, deployments) = (
        builtin("apps/v1", "DaemonSet", "daemonsets", true),
        builtin("apps/v1", "Deployment", "deployments", true),
    );
    let namespaces = builtin("v1", "Namespace", "namespaces", false);
    let node_kind = builtin("v1", "Node", "nodes", false);
    let (secret, config_map) = (secrets(), config_maps());
    let (server, discovery, identity, system, nodes, sets, config, operator, cli) = futures::join!(
        cluster.server_version(),
        cluster.discovery(false),
        cluster.identity(),
        read(cluster, &namespaces, "", NAMESPACE),
        list(cluster, &node_kind),
        list(cluster, &daemon_sets),
        read(cluster, &config_map, NAMESPACE, CONFIG_MAP),
        read(cluster, &deployments, NAMESPACE, OPERATOR),
        read(cluster, &secret, NAMESPACE, CLI_SECRET),
    );
    let server = server.map_err(failed("read the server's version"))?;
    let discovery = discovery.map_err(failed("read what the server serves"))?;
    let system = system.map_err(failed(format!("read namespace {NAMESPACE}")))?;
    let nodes = nodes.map_err(failed("list the nodes"))?;
    let sets = sets.map_err(failed("list the DaemonSets"))?;
    let config_map = config.map_err(failed(format!("read ConfigMap {NAMESPACE}/{CONFIG_MAP}")))?;
    let operator = operator.map_err(failed(format!("read Deployment {NAMESPACE}/{OPERATOR}")))?;
    let mut unread = Vec::new();
    let mut hidden = Vec::new();
    let cli = cli.unwrap_or_else(|source| {
        unread.push(format!("Secret {NAMESPACE}/{CLI_SECRET}: {source}"));
        hidden.push(Hidden { right: cli_right(), source });
        None
    });
    let detected = detect(&nodes, &sets)?;
    let daemon_set = sets.into_iter().find(is_agent);
    let claim = daemon_set.as_ref().map(claimed_release).unwrap_or_default();
    let [mut secrets, config_maps] = records(cluster, &claim).await?.map(|found| {
        unread.extend(found.note);
        hidden.extend(found.hidden);
        found.items
    });
    secrets.extend(cli);
    Ok(Survey {
        server,
        discovery,
        identity: identity.unwrap_or_default(),
        cluster_id: system.map(|n| text(&n, "/metadata/uid").to_owned()).unwrap_or_default(),
        detected,
        daemon_set,
        config_map,
        operator,
        secrets,
        config_maps,
        unread,
        hidden,
    })
}

/// Whether an object is the agents' DaemonSet.
pub(crate) fn is_agent(object: &Value) -> bool {
    // What is read from a list of DaemonSets has no kind.
    matches!(text(object, "/kind"), "DaemonSet" | "")
        && text(object, "/metadata/namespace") == NAMESPACE
        && text(object, "/metadata/name") == DAEMON_SET
}

/// Reading what the Cilium CLI left.
pub(crate) fn cli_right() -> Right {
    Right::named("get", "", "secrets", NAMESPACE, CLI_SECRET)
}

/// Looking for the records of a namespace, of both drivers.
pub(crate) fn record_rights(namespace: &str) -> [Right; 2] {
    ["secrets", "configmaps"].map(|plural| Right::any("list", "", plural, namespace))
}

/// The rights without which nobody can tell where the running Cilium comes from, as far as that can
/// be told by one who may not read everything: where its release's records should lie, and the
/// Cilium CLI's values.
pub(crate) async fn hidden(cluster: &dyn Cluster) -> Vec<Right> {
    let daemon_sets = builtin("apps/v1", "DaemonSet", "daemonsets", true);
    let Ok(sets) = list(cluster, &daemon_sets).await else { return Vec::new() };
    let Some(claim) = sets.iter().find(|set| is_agent(set)).map(claimed_release) else {
        return Vec::new();
    };
    let Ok(records) = records(cluster, &claim).await else { return Vec::new() };
    if records.iter().any(|found| !found.items.is_empty()) {
        return Vec::new();
    }
    let place = if claim.1.is_empty() { NAMESPACE } else { &claim.1 };
    let mut rights: Vec<Right> = records
        .into_iter()
        .flat_map(|found| found.hidden)
        .map(|hidden| hidden.right)
        .filter(|right| right.namespace == place)
        .collect();
    if read(cluster, &secrets(), NAMESPACE, CLI_SECRET).await.is_err() {
        rights.push(cli_right());
    }
    rights
}

pub(crate) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The release that the DaemonSet says it belongs to, and its namespace.
pub(crate) fn claimed_release(daemon_set: &Value) -> (String, String) {
    let annotation = |key: &str| {
        let annotations = daemon_set.pointer("/metadata/annotations");
        annotations.and_then(|a| a.get(key)?.as_str()).unwrap_or_default().to_owned()
    };
    (annotation(RELEASE_NAME), annotation(helm_rs::apply::ownership::RELEASE_NAMESPACE))
}

/// Reads the records: of the claimed release and of ichor's own, or of all releases when the
/// DaemonSet claims none. Of namespaces that may not be listed together, those that matter.
async fn records(
    cluster: &dyn Cluster,
    claim: &(String, String),
) -> Result<[Listed; 2], SurveyError> {
    let labels = if claim.0.is_empty() {
        "owner=helm".to_owned()
    } else {
        format!("owner=helm,name in ({RELEASE},{})", claim.0)
    };
    let (secret, config_map) = (secrets(), config_maps());
    let (found, maps) = futures::join!(
        records_of(cluster, &secret, &labels, &claim.1),
        records_of(cluster, &config_map, &labels, &claim.1),
    );
    Ok([found?, maps?])
}

/// Records of one driver.
struct Listed {
    /// Those that were found.
    items: Vec<Value>,
    /// What could not be read, for people.
    note: Option<String>,
    /// The namespaces that matter and may not be listed.
    hidden: Vec<Hidden>,
}

/// Adds the records of one release to what was read, where they are not among it.
pub(crate) async fn records_of_release(
    cluster: &dyn Cluster,
    survey: &mut Survey,
    release: &str,
    namespace: &str,
) -> Result<(), SurveyError> {
    let labels = format!("owner=helm,name={release}");
    let (secret, config_map) = (secrets(), config_maps());
    let (found, maps) = futures::join!(
        records_of(cluster, &secret, &labels, namespace),
        records_of(cluster, &config_map, &labels, namespace),
    );
    for (all, found) in [(&mut survey.secrets, found?), (&mut survey.config_maps, maps?)] {
        let place = |object: &Value| {
            ["/metadata/namespace", "/metadata/name"]
                .map(|pointer| text(object, pointer).to_owned())
        };
        let known: std::collections::BTreeSet<[String; 2]> = all.iter().map(place).collect();
        all.extend(found.items.into_iter().filter(|object| !known.contains(&place(object))));
        survey.unread.extend(found.note.filter(|note| !survey.unread.contains(note)));
        survey.hidden.extend(found.hidden);
    }
    Ok(())
}

async fn records_of(
    cluster: &dyn Cluster,
    resource: &Resource,
    labels: &str,
    namespace: &str,
) -> Result<Listed, SurveyError> {
    let mut query = ListQuery { labels: labels.to_owned(), ..ListQuery::default() };
    match list_all(cluster, resource, &query).await {
        Ok(page) => return Ok(Listed { items: page.items, note: None, hidden: Vec::new() }),
        Err(error) if error.kind() == ErrorKind::Forbidden => {}
        Err(error) => return Err(failed(format!("list {}", resource.plural))(error)),
    }
    let mut places = vec![NAMESPACE, RECORD_NAMESPACE];
    if !namespace.is_empty() && !places.contains(&namespace) {
        places.push(namespace);
    }
    let mut items = Vec::new();
    let mut read = Vec::new();
    let mut hidden = Vec::new();
    for place in places {
        place.clone_into(&mut query.namespace);
        match list_all(cluster, resource, &query).await {
            Ok(page) => {
                items.extend(page.items);
                read.push(place);
            }
            Err(source) if source.kind() == ErrorKind::Forbidden => {
                let right = Right::any("list", "", &resource.plural, place);
                hidden.push(Hidden { right, source });
            }
            Err(error) => {
                let doing = format!("list {} in namespace {place}", resource.plural);
                return Err(failed(doing)(error));
            }
        }
    }
    let note = format!(
        "{} of other namespaces than {}: this identity may not list them, so that records there \
         are not seen",
        resource.plural,
        if read.is_empty() { "(none)".to_owned() } else { read.join(", ") }
    );
    Ok(Listed { items, note: Some(note), hidden })
}
