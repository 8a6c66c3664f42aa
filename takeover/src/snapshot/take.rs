//! What of a cluster a takeover looks at.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::sync::Arc;

use cilium::pinned::{DAEMON_SET, NAMESPACE, RECORD_NAMESPACE, RELEASE};
use helm_rs::apply::Observer;
use helm_rs::cluster::snapshot::{About, Secrets, Writer};
use helm_rs::cluster::{Clock, Cluster, ClusterError, ErrorKind, ListQuery, Resource, list_each};
use serde_json::Value;

use crate::survey::{SurveyError, builtin, claimed_release, failed, secrets, text};

/// Kinds of which there are many, that controllers write all the time, and that no chart has.
const PASSING: [(&str, &str); 13] = [
    ("", "pods"),
    ("", "events"),
    ("", "endpoints"),
    ("", "podtemplates"),
    ("", "replicationcontrollers"),
    ("", "persistentvolumes"),
    ("", "persistentvolumeclaims"),
    ("apps", "controllerrevisions"),
    ("certificates.k8s.io", "certificatesigningrequests"),
    ("coordination.k8s.io", "leases"),
    ("discovery.k8s.io", "endpointslices"),
    ("events.k8s.io", "events"),
    ("metrics.k8s.io", "*"),
];
/// What Cilium's agents write about nodes, pods and identities.
const AGENTS: [&str; 5] = [
    "ciliumendpoints",
    "ciliumendpointslices",
    "ciliumidentities",
    "ciliumnodes",
    "ciliumexternalworkloads",
];
/// Namespaced kinds that are read in every namespace: they tell which network plugin runs, and what
/// somebody may do.
const EVERYWHERE: [(&str, &str); 3] = [
    ("apps", "daemonsets"),
    ("rbac.authorization.k8s.io", "rolebindings"),
    ("rbac.authorization.k8s.io", "roles"),
];
/// The label of release records, as a selector.
const RECORDS: &str = "owner=helm";

/// What was taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Objects.
    pub objects: usize,
    /// Release records among them.
    pub records: usize,
    /// Namespaces whose objects were read.
    pub namespaces: Vec<String>,
    /// What could not be read, for people.
    pub unread: Vec<String>,
}

/// Why a snapshot ends.
#[derive(Debug, thiserror::Error)]
pub enum TakeError {
    /// The cluster.
    #[error(transparent)]
    Survey(#[from] SurveyError),
    /// The file.
    #[error("write the snapshot")]
    Write(#[from] io::Error),
}

struct Taking<'a, W> {
    cluster: &'a dyn Cluster,
    writer: Writer<W>,
    taken: Taken,
    /// Group, plural, namespace and name of what is there already.
    seen: BTreeSet<[String; 4]>,
}

/// Reads what a takeover looks at, and writes it as it comes: of the kinds that charts have, the
/// objects of the namespaces that matter and those of no namespace; nodes, network plugins and RBAC
/// everywhere; the records of the release that the running Cilium names and of ichor's, of all
/// releases where it names none. What may not be read is told, and does not end it.
///
/// # Errors
/// [`TakeError`], when the cluster does not answer or the output cannot be written.
pub async fn take<W: Write>(
    cluster: &dyn Cluster,
    clock: &dyn Clock,
    program: &str,
    more: &[String],
    observer: &dyn Observer,
    out: W,
) -> Result<(W, Taken), TakeError> {
    let (server, discovery, identity) =
        futures::join!(cluster.server_version(), cluster.discovery(false), cluster.identity());
    let server = server.map_err(failed("read the server's version"))?;
    let discovery = discovery.map_err(failed("read what the server serves"))?;
    let namespaces = builtin("v1", "Namespace", "namespaces", false);
    let system = crate::survey::read(cluster, &namespaces, "", NAMESPACE)
        .await
        .map_err(failed(format!("read namespace {NAMESPACE}")))?;
    let mut about = About::new(server, &identity.unwrap_or_default(), &discovery);
    about.taken_by = program.to_owned();
    about.taken = clock.now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    about.cluster = system.map(|one| text(&one, "/metadata/uid").to_owned()).unwrap_or_default();
    about.secrets = Secrets::Included;
    let mut taking = Taking {
        cluster,
        writer: Writer::new(out, &about)?,
        taken: Taken::default(),
        seen: BTreeSet::new(),
    };
    let claim = match crate::survey::read(cluster, &sets(), NAMESPACE, DAEMON_SET).await {
        Ok(agent) => agent.as_ref().map(claimed_release).unwrap_or_default(),
        // Then the list of all is told as what could not be read.
        Err(error) if error.kind() == ErrorKind::Forbidden => Default::default(),
        Err(error) => {
            return Err(failed(format!("read DaemonSet {NAMESPACE}/{DAEMON_SET}"))(error).into());
        }
    };
    let mut places =
        vec![NAMESPACE.to_owned(), RECORD_NAMESPACE.to_owned(), "cilium-secrets".to_owned()];
    places.extend((!claim.1.is_empty()).then(|| claim.1.clone()));
    places.extend(more.iter().cloned());
    places.sort();
    places.dedup();
    let mut kinds = BTreeSet::new();
    for resource in discovery.resources() {
        // Each kind in the version that the server prefers.
        let name = (resource.kind.group.clone(), resource.plural.clone());
        if !resource.can("list") || is_passing(resource) || !kinds.insert(name) {
            continue;
        }
        observer.log(&format!("reading {}", resource.qualified()));
        taking.kind(resource, &places).await?;
    }
    taking.lock(&leases()).await?;
    taking.records(&claim).await?;
    let Taking { writer, mut taken, .. } = taking;
    taken.objects = writer.objects();
    taken.namespaces = places;
    let out = writer.finish(taken.unread.clone())?;
    Ok((out, taken))
}

fn sets() -> Arc<Resource> {
    builtin("apps/v1", "DaemonSet", "daemonsets", true)
}

fn leases() -> Arc<Resource> {
    builtin("coordination.k8s.io/v1", "Lease", "leases", true)
}

fn is_passing(resource: &Resource) -> bool {
    let group = resource.kind.group.as_str();
    let named = |(of, plural): &(&str, &str)| {
        *of == group && (*plural == "*" || *plural == resource.plural)
    };
    PASSING.iter().any(named)
        || (group == "cilium.io" && AGENTS.contains(&resource.plural.as_str()))
}

fn is_record(object: &Value) -> bool {
    matches!(text(object, "/kind"), "Secret" | "ConfigMap")
        && text(object, "/metadata/name").starts_with("sh.helm.release.v1.")
        && text(object, "/metadata/labels/owner") == "helm"
}

impl<W: Write> Taking<'_, W> {
    /// The objects of a kind: of no namespace, or of the namespaces that matter.
    async fn kind(&mut self, resource: &Resource, places: &[String]) -> Result<(), TakeError> {
        let everywhere = EVERYWHERE
            .iter()
            .any(|(group, plural)| *group == resource.kind.group && *plural == resource.plural);
        // Records are read apart: a cluster may have hundreds of megabytes of them.
        let is_theirs = resource.kind.group.is_empty()
            && matches!(resource.plural.as_str(), "secrets" | "configmaps");
        let labels = if is_theirs { "owner!=helm" } else { "" };
        if !resource.namespaced || everywhere {
            if self.list(resource, "", labels).await? || !resource.namespaced {
                return Ok(());
            }
        }
        for place in places {
            self.list(resource, place, labels).await?;
        }
        Ok(())
    }

    /// Lists a kind; false when that is not allowed.
    async fn list(
        &mut self,
        resource: &Resource,
        namespace: &str,
        labels: &str,
    ) -> Result<bool, TakeError> {
        let query = ListQuery {
            namespace: namespace.to_owned(),
            labels: labels.to_owned(),
            ..ListQuery::default()
        };
        let place = match namespace {
            "" => resource.qualified(),
            namespace => format!("{} in namespace {namespace}", resource.qualified()),
        };
        let (writer, seen, taken) = (&mut self.writer, &mut self.seen, &mut self.taken);
        let listed = list_each::<Listing>(self.cluster, resource, &query, |object| {
            let name = [
                resource.kind.group.clone(),
                resource.plural.clone(),
                text(&object, "/metadata/namespace").to_owned(),
                text(&object, "/metadata/name").to_owned(),
            ];
            if seen.insert(name) {
                taken.records += usize::from(is_record(&object));
                writer.object(&object).map_err(Listing::Write)?;
            }
            Ok(())
        })
        .await;
        match listed {
            Ok(_) => Ok(true),
            Err(Listing::Write(error)) => Err(error.into()),
            Err(Listing::Cluster(error)) => match error.kind() {
                ErrorKind::Forbidden | ErrorKind::Unavailable => {
                    taken.unread.push(format!("{place}: {error}"));
                    Ok(false)
                }
                // A kind that discovery names and that is gone meanwhile, or cannot be listed so.
                ErrorKind::NotFound => Ok(true),
                _ => Err(failed(format!("list {place}"))(error).into()),
            },
        }
    }

    /// The lock of takeovers; other Leases are nobody's business.
    async fn lock(&mut self, leases: &Arc<Resource>) -> Result<(), TakeError> {
        let found =
            crate::survey::read(self.cluster, leases, RECORD_NAMESPACE, crate::run::lock::LEASE);
        match found.await {
            Ok(Some(lease)) => self.writer.object(&lease)?,
            Ok(None) => {}
            Err(error) if error.kind() == ErrorKind::Forbidden => {
                self.taken.unread.push(format!("the lock of takeovers: {error}"));
            }
            Err(error) => return Err(failed("read the lock of takeovers")(error).into()),
        }
        Ok(())
    }

    /// The records of the release that the running Cilium names, and ichor's; all where it names
    /// none.
    async fn records(&mut self, claim: &(String, String)) -> Result<(), TakeError> {
        let labels = match claim.0.as_str() {
            "" => RECORDS.to_owned(),
            release => format!("{RECORDS},name in ({RELEASE},{release})"),
        };
        for resource in [secrets(), crate::survey::config_maps()] {
            if self.list(&resource, "", &labels).await? {
                continue;
            }
            // As the survey does: of the namespaces that matter.
            let mut places = vec![NAMESPACE, RECORD_NAMESPACE];
            places.extend((!claim.1.is_empty()).then_some(claim.1.as_str()));
            places.dedup();
            for place in places {
                self.list(&resource, place, &labels).await?;
            }
        }
        Ok(())
    }
}

/// Why a list ended.
enum Listing {
    Cluster(ClusterError),
    Write(io::Error),
}

impl From<ClusterError> for Listing {
    fn from(error: ClusterError) -> Self {
        Self::Cluster(error)
    }
}
