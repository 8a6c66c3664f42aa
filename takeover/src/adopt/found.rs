//! What is read before an adoption is planned: the release that is made, and the one that is taken
//! from, of both drivers. What may not be looked at is a missing right, and no empty place.

use cilium::detect::Detected;
use cilium::provenance::{History, histories};
use helm_rs::cluster::{Cluster, ClusterError, ErrorKind, ListQuery, list_all};
use serde_json::Value;

use super::{Request, other_kind};
use crate::plan::make::told;
use crate::plan::{Needs, PlanError};
use crate::subject::Subject as _;
use crate::survey::{Survey, builtin, failed, read, record_rights, resource_of, text};

/// What was read.
pub(super) struct Found {
    /// In the form that the rest of a plan is made of.
    pub(super) survey: Survey,
    /// The namespace that the records will lie in.
    pub(super) home: Option<Value>,
    /// The release that is taken from.
    pub(super) foreign: Option<History>,
    /// The rights that this took.
    pub(super) needs: Needs,
}

/// Reads.
///
/// # Errors
/// [`PlanError::Rights`] names all that is missing to look.
pub(super) async fn find(request: &Request<'_>) -> Result<Found, PlanError> {
    let mut needs = Needs::of(request.place.words.deed);
    needs.locks(&request.leases());
    needs.looking(&record_rights(&request.place.home));
    if let Some(from) = &request.from {
        needs.looking(&record_rights(&from.namespace));
    }
    match look(request).await {
        Ok((survey, home, foreign)) => Ok(Found { survey, home, foreign, needs }),
        Err(error) => {
            needs.own(&request.place, true);
            Err(told(&*request.cluster, needs, error).await)
        }
    }
}

async fn look(
    request: &Request<'_>,
) -> Result<(Survey, Option<Value>, Option<History>), PlanError> {
    let (place, cluster) = (&request.place, &*request.cluster);
    let namespaces = builtin("v1", "Namespace", "namespaces", false);
    let (server, discovery, identity, home) = futures::join!(
        cluster.server_version(),
        cluster.discovery(false),
        cluster.identity(),
        read(cluster, &namespaces, "", &place.home),
    );
    let home = home.map_err(failed(format!("read namespace {}", place.home)))?;
    let mut places = vec![(&*place.release, &*place.home)];
    if let Some(from) = &request.from
        && !places.contains(&(&from.release, &from.namespace))
    {
        places.push((&from.release, &from.namespace));
    }
    let (mut secrets, mut config_maps) = (Vec::new(), Vec::new());
    for (release, namespace) in places {
        secrets.extend(records_of(cluster, "Secret", release, namespace).await?);
        config_maps.extend(records_of(cluster, "ConfigMap", release, namespace).await?);
    }
    let foreign = request.from.as_ref().and_then(|from| {
        let mut all = histories(&secrets, &config_maps).into_iter();
        let mut history = all.find(|history| {
            history.release == from.release && history.storage_namespace == from.namespace
        })?;
        if super::is_same_release(place, from) {
            // The other driver's, in whose place this one's come.
            let other = other_kind(place.records);
            history.revisions.retain(|revision| revision.object.kind == other);
        }
        history.newest().is_some().then_some(history)
    });
    let survey = Survey {
        server: server.map_err(failed("read the server's version"))?,
        discovery: discovery.map_err(failed("read what the server serves"))?,
        identity: identity.unwrap_or_default(),
        cluster_id: home.as_ref().map_or("", |home| text(home, "/metadata/uid")).to_owned(),
        detected: Detected::default(),
        daemon_set: None,
        config_map: None,
        operator: None,
        secrets,
        config_maps,
        unread: Vec::new(),
        hidden: Vec::new(),
    };
    Ok((survey, home, foreign))
}

/// The records of a release, of one driver. In a namespace that is not there are none.
pub(crate) async fn records_of(
    cluster: &dyn Cluster,
    kind: &str,
    release: &str,
    namespace: &str,
) -> Result<Vec<Value>, PlanError> {
    let query = ListQuery {
        namespace: namespace.to_owned(),
        labels: format!("owner=helm,name={release}"),
        ..ListQuery::default()
    };
    let resource = resource_of(kind);
    let wrong = |error: ClusterError| {
        let doing = format!("list {} in namespace {namespace}", resource.plural);
        failed(doing)(error)
    };
    match list_all(cluster, &resource, &query).await {
        Ok(page) => Ok(page.items),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(wrong(error).into()),
    }
}

/// Whether there are records under the name that is taken: of the driver that is used, of the
/// other one.
pub(super) fn own_records(request: &Request<'_>, survey: &Survey) -> [bool; 2] {
    let place = &request.place;
    let prefix = format!("sh.helm.release.v1.{}.v", place.release);
    let any = |objects: &[Value]| {
        objects.iter().any(|object| {
            text(object, "/metadata/namespace") == place.home
                && text(object, "/metadata/name").starts_with(&prefix)
        })
    };
    let both = [any(&survey.secrets), any(&survey.config_maps)];
    if place.kind() == "Secret" { both } else { [both[1], both[0]] }
}
