//! What of a cluster a takeover looks at.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::sync::Arc;

use cilium::pinned::{DAEMON_SET, NAMESPACE, RECORD_NAMESPACE};
use helm_rs::apply::Observer;
use helm_rs::cluster::snapshot::{About, Secrets, Writer};
use helm_rs::cluster::{Clock, Cluster, ClusterError, ErrorKind, ListQuery, Resource, list_each};

use super::digests::Digests;
use super::select::{Records, is_everywhere, is_passing, is_record, namespaces};
use crate::place::CILIUM;
use crate::plan::Key;
use crate::survey::{SurveyError, builtin, claimed_release, failed, secrets, text};

/// Objects of one page, and of a page where they are large: records, CRDs.
const PAGE: usize = 250;
const LARGE_PAGE: usize = 16;
/// How often a list is begun anew when the server forgets it midway.
const TRIES: usize = 3;

/// The plural name of CRDs.
const DEFINITIONS: &str = "customresourcedefinitions";

/// What to take.
#[derive(Clone, Copy, Debug)]
pub struct TakeOptions<'a> {
    /// The program that takes it, with its version.
    pub program: &'a str,
    /// Namespaces besides those that matter to any takeover.
    pub namespaces: &'a [String],
    /// What becomes of the data of Secrets.
    pub secrets: Secrets,
}

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
    /// What is not as it is in the cluster, for people.
    pub notes: Vec<String>,
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
    records: Records,
    /// None where Secrets are as they are.
    digests: Option<Digests>,
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
    options: TakeOptions<'_>,
    observer: &dyn Observer,
    out: W,
) -> Result<(W, Taken), TakeError> {
    let (server, discovery, identity) =
        futures::join!(cluster.server_version(), cluster.discovery(false), cluster.identity());
    let server = server.map_err(failed("read the server's version"))?;
    let discovery = discovery.map_err(failed("read what the server serves"))?;
    let kind = builtin("v1", "Namespace", "namespaces", false);
    let system = crate::survey::read(cluster, &kind, "", NAMESPACE)
        .await
        .map_err(failed(format!("read namespace {NAMESPACE}")))?;
    let mut about = About::new(server, &identity.unwrap_or_default(), &discovery);
    options.program.clone_into(&mut about.taken_by);
    about.taken = clock.now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    about.cluster = system.map(|one| text(&one, "/metadata/uid").to_owned()).unwrap_or_default();
    about.secrets = options.secrets;
    let claim = match crate::survey::read(cluster, &sets(), NAMESPACE, DAEMON_SET).await {
        Ok(agent) => agent.as_ref().map(claimed_release).unwrap_or_default(),
        // Then the list of all is told as what could not be read.
        Err(error) if error.kind() == ErrorKind::Forbidden => Default::default(),
        Err(error) => {
            return Err(failed(format!("read DaemonSet {NAMESPACE}/{DAEMON_SET}"))(error).into());
        }
    };
    let plan = crate::survey::read(cluster, &secrets(), RECORD_NAMESPACE, &CILIUM.plan).await;
    let places = namespaces(&claim, options.namespaces);
    let mut taking = Taking {
        cluster,
        writer: Writer::new(out, &about)?,
        taken: Taken::default(),
        seen: BTreeSet::new(),
        records: Records::of(&claim.0, !matches!(plan, Ok(None))),
        digests: match options.secrets {
            Secrets::Digests => Some(Digests::new(Key(about.cluster.clone()))),
            Secrets::Included => None,
        },
    };
    let mut kinds = BTreeSet::new();
    for resource in discovery.resources() {
        // Each kind in the version that the server prefers.
        let name = (resource.kind.group.clone(), resource.plural.clone());
        if !resource.can("list")
            || is_passing(&resource.kind.group, &resource.plural)
            || !kinds.insert(name)
        {
            continue;
        }
        observer.progress(&format!("reading {}", resource.qualified()));
        taking.kind(resource, &places).await?;
    }
    taking.lock(&leases()).await?;
    taking.records(&claim).await?;
    let Taking { writer, mut taken, digests, records, .. } = taking;
    taken.objects = writer.objects();
    taken.namespaces = places;
    taken.notes =
        records.note().into_iter().chain(digests.into_iter().flat_map(|d| d.notes)).collect();
    let out = writer.finish(taken.unread.clone(), taken.notes.clone())?;
    Ok((out, taken))
}

fn sets() -> Arc<Resource> {
    builtin("apps/v1", "DaemonSet", "daemonsets", true)
}

fn leases() -> Arc<Resource> {
    builtin("coordination.k8s.io/v1", "Lease", "leases", true)
}

impl<W: Write> Taking<'_, W> {
    /// The objects of a kind: of no namespace, or of the namespaces that matter.
    async fn kind(&mut self, resource: &Resource, places: &[String]) -> Result<(), TakeError> {
        let everywhere = is_everywhere(&resource.kind.group, &resource.plural);
        // Records are read apart: a cluster may have hundreds of megabytes of them.
        let is_theirs = resource.kind.group.is_empty()
            && matches!(resource.plural.as_str(), "secrets" | "configmaps");
        let labels = if is_theirs { "owner!=helm" } else { "" };
        if !resource.namespaced || everywhere {
            let is_listed = self.list(resource, "", labels).await?;
            if is_listed || !resource.namespaced {
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
        let is_large = labels.starts_with("owner=") || resource.plural == DEFINITIONS;
        let query = ListQuery {
            namespace: namespace.to_owned(),
            labels: labels.to_owned(),
            limit: if is_large { LARGE_PAGE } else { PAGE },
            ..ListQuery::default()
        };
        let place = match namespace {
            "" => resource.qualified(),
            namespace => format!("{} in namespace {namespace}", resource.qualified()),
        };
        let mut listed = self.pages(resource, &query).await;
        for _ in 1..TRIES {
            // What was written already is not written again.
            match listed {
                Err(Listing::Cluster(error)) if error.kind() == ErrorKind::Expired => {
                    listed = self.pages(resource, &query).await;
                }
                _ => break,
            }
        }
        let taken = &mut self.taken;
        match listed {
            Ok(()) => Ok(true),
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

    /// Writes the objects of a list that are not there yet, page by page.
    async fn pages(&mut self, resource: &Resource, query: &ListQuery) -> Result<(), Listing> {
        let Self { writer, seen, taken, records, digests, .. } = self;
        list_each::<Listing>(self.cluster, resource, query, |mut object| {
            let name = [
                resource.kind.group.clone(),
                resource.plural.clone(),
                text(&object, "/metadata/namespace").to_owned(),
                text(&object, "/metadata/name").to_owned(),
            ];
            let is_record = is_record(&object);
            if !seen.insert(name) || is_record && !records.keeps(&object) {
                return Ok(());
            }
            taken.records += usize::from(is_record);
            if let Some(digests) = digests {
                digests.object(&mut object);
            }
            writer.object(&object).map_err(Listing::Write)
        })
        .await
        .map(drop)
    }

    /// The lock of takeovers; other Leases are nobody's business.
    async fn lock(&mut self, leases: &Arc<Resource>) -> Result<(), TakeError> {
        let found = crate::survey::read(self.cluster, leases, RECORD_NAMESPACE, &CILIUM.lease);
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
        let labels = self.records.labels();
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
