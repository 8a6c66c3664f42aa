//! Repairing a release whose last action died and left it pending: nobody may act on it until a
//! human has seen how far the action got and said that it is over.

use super::error::ActionError;
use super::prepare;
use super::session::{ReleaseOptions, Session};
use crate::apply::ownership;
use crate::cluster::ClusterError;
use crate::name::validate_release_name;
use crate::release::storage::Stored;
use crate::release::{Info, Status};

/// How the description of a repaired revision begins.
const MARK: &str = "Marked failed by ichor release repair";

/// Whether what made a revision died at it, as far as its record says.
pub(super) fn has_died(info: &Info) -> bool {
    info.status().is_pending() || info.description.starts_with(MARK)
}

/// A release whose newest revision is pending.
#[derive(Clone, Debug)]
pub struct Stuck {
    /// The revision's number.
    pub revision: i64,
    /// Its status.
    pub status: Status,
    /// When the action began, RFC 3339.
    pub since: String,
    /// What the record says.
    pub description: String,
    /// The program that wrote the record last, as the server knows it; empty when it does not.
    pub writer: String,
    /// The objects of its manifest, and what became of them.
    pub objects: Vec<Progress>,
    /// Why the manifest's objects cannot be told, where that is so.
    pub unknown: String,
    stored: Stored,
}

/// An object of a pending revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// `Kind "name" in namespace "namespace"`.
    pub object: String,
    /// What became of it.
    pub state: ObjectState,
}

/// What became of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObjectState {
    /// It is there, and the release's.
    Present,
    /// It is there, but not the release's.
    Foreign,
    /// It is not there.
    Missing,
    /// It cannot be read.
    Unreadable(String),
}

/// Looks at a release; none when its newest revision is not pending.
///
/// # Errors
/// When there is no such release, or the records cannot be read.
pub async fn inspect(session: &Session<'_>, name: &str) -> Result<Option<Stuck>, ActionError> {
    if validate_release_name(name).is_err() {
        return Err(ActionError::InvalidName(name.to_owned()));
    }
    let stored = session.storage().last(name).await?;
    let info = stored.record.info()?;
    if !info.status().is_pending() {
        return Ok(None);
    }
    let mut stuck = Stuck {
        revision: stored.record.revision()?,
        status: info.status(),
        since: info.last_deployed,
        description: info.description,
        writer: writer(session, &stored).await.unwrap_or_default(),
        objects: Vec::new(),
        unknown: String::new(),
        stored,
    };
    match objects(session, &stuck.stored, name).await {
        Ok(objects) => stuck.objects = objects,
        Err(error) => stuck.unknown = crate::error_chain(&error),
    }
    Ok(Some(stuck))
}

/// Marks a stuck revision as failed, if nobody has written it since.
///
/// # Errors
/// [`ActionError::Pending`] when the record is another one by now, or it cannot be written.
pub async fn mark_failed(session: &Session<'_>, stuck: &Stuck) -> Result<String, ActionError> {
    let record = &stuck.stored.record;
    let now = session.storage().last(&record.name()?).await?;
    if now.record.to_json() != record.to_json() {
        return Err(ActionError::Pending);
    }
    let description = format!(
        "{MARK} at {}: it was {} since {} and did not end",
        session.now(),
        stuck.status,
        stuck.since
    );
    let mut record = record.clone();
    record.set_status(&Status::Failed, &description)?;
    session.storage().update(&record, &stuck.stored.labels).await?;
    Ok(description)
}

async fn objects(
    session: &Session<'_>,
    stored: &Stored,
    name: &str,
) -> Result<Vec<Progress>, ActionError> {
    let namespace = stored.record.namespace()?;
    let manifest = stored.record.manifest()?;
    let options = ReleaseOptions { namespace: namespace.clone(), ..ReleaseOptions::default() };
    let discovery = session.discover(false).await?;
    let items = prepare::objects(&discovery, manifest.as_bytes(), &options, false, "")?;
    let wanted: Vec<_> = items.iter().collect();
    let found = session.writer().read(&wanted).await;
    let state = |found: Result<Option<serde_json::Value>, ClusterError>| match found {
        Ok(None) => ObjectState::Missing,
        Ok(Some(live)) if ownership::check(&live, name, &namespace).is_ok() => ObjectState::Present,
        Ok(Some(_)) => ObjectState::Foreign,
        Err(error) => ObjectState::Unreadable(error.to_string()),
    };
    Ok(items
        .iter()
        .zip(found)
        .map(|(item, found)| Progress { object: item.title(), state: state(found) })
        .collect())
}

/// Who wrote the record last, from the fields' owners.
async fn writer(session: &Session<'_>, stored: &Stored) -> Option<String> {
    use crate::cluster::{Resource, Target};
    use std::sync::Arc;
    let (kind, plural) = match session.driver.name() {
        "Secret" => ("Secret", "secrets"),
        "ConfigMap" => ("ConfigMap", "configmaps"),
        _ => return None,
    };
    let key = crate::release::storage::record_key(
        &stored.record.name().ok()?,
        stored.record.revision().ok()?,
    );
    let resource = Arc::new(Resource::builtin("v1", kind, plural, true));
    let target = Target::new(&resource, &stored.record.namespace().ok()?, &key);
    let object = session.cluster.get(&target).await.ok()?;
    let fields = object.pointer("/metadata/managedFields")?.as_array()?;
    let last = fields.iter().max_by_key(|entry| entry.get("time").and_then(|t| t.as_str()))?;
    let text = |name: &str| last.get(name).and_then(|value| value.as_str()).unwrap_or_default();
    Some(format!("{} at {}", text("manager"), text("time")))
}
