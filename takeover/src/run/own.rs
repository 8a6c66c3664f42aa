//! Ichor's own newest record, or what is wrong with it.

use helm_rs::error_chain;
use helm_rs::release::Status;
use helm_rs::release::storage::{Labels, Storage, StorageError, Stored};

use super::record;
use crate::place::Place;
use crate::plan::Refusal;

/// The newest of ichor's own records.
#[derive(Debug)]
pub(crate) struct Newest {
    /// The record.
    pub stored: Stored,
    /// Its revision.
    pub revision: i64,
    /// Its status.
    pub status: Status,
    /// Whether a takeover was complete before it: see [`was_deployed`].
    pub after_takeover: bool,
}

impl Newest {
    /// Why nothing is taken over: the release is ichor's, and an action on it did not end. That is
    /// no takeover that could be finished.
    pub(crate) fn unfinished_action(&self, place: &Place) -> Option<Refusal> {
        unfinished_action(place, self.revision, &self.status, self.after_takeover)
    }
}

/// Ichor's own records, as a change of the release sees them.
#[derive(Debug)]
pub(crate) struct Records {
    newest: Newest,
    /// Deployed records, the newest first.
    deployed: Vec<(i64, Stored)>,
}

/// A release that can be changed.
#[derive(Debug)]
pub(crate) struct Own {
    /// The newest deployed record.
    pub(crate) deployed: Stored,
    /// Older ones that a run which died left deployed.
    pub(crate) stale: Vec<Stored>,
    /// The newest record, where a change stopped at it.
    pub(crate) stopped: Option<Stored>,
    /// The revision that a change writes: that of the one that stopped once more, so that attempts
    /// do not add up.
    pub(crate) revision: i64,
}

/// Reads all of ichor's own records; none when there are none.
///
/// # Errors
/// [`OwnError`]
pub(crate) async fn records(
    place: &Place,
    storage: &Storage<'_>,
) -> Result<Option<Records>, OwnError> {
    let Some(newest) = newest(place, storage).await? else { return Ok(None) };
    let mut deployed = Vec::new();
    for stored in storage.deployed_all(&place.release).await.or_else(|error| match error {
        StorageError::NoDeployed { .. } => Ok(Vec::new()),
        error => Err(error),
    })? {
        deployed.push((stored.record.revision().map_err(StorageError::Field)?, stored));
    }
    deployed.sort_by_key(|(revision, _)| std::cmp::Reverse(*revision));
    Ok(Some(Records { newest, deployed }))
}

impl Records {
    /// The release, if it can be changed.
    ///
    /// # Errors
    /// Why it cannot.
    pub(crate) fn ready(records: Option<Self>, place: &Place) -> Result<Own, Refusal> {
        let refusal =
            |message: &str| Refusal { reason: "Release".to_owned(), message: message.into() };
        let Some(Self { newest, deployed }) = records else {
            return Err(refusal(
                "there is no release of ichor's own: take Cilium over first (`ichor adopt \
                 --cilium-only`), then change it",
            ));
        };
        if newest.status == Status::Uninstalled {
            return Err(refusal("ichor's release is uninstalled: there is nothing to change"));
        }
        let stops = newest.status != Status::Deployed;
        let description = newest.stored.record.info().map(|info| info.description);
        let is_change = description.is_ok_and(|text| text.starts_with(record::CHANGE));
        if stops && !is_change {
            return Err(newest.unfinished_action(place).unwrap_or_else(|| {
                refusal(
                    "a takeover was begun and is not complete: finish it first (`ichor adopt \
                     --cilium-only --yes`)",
                )
            }));
        }
        let mut deployed = deployed.into_iter().map(|(_, stored)| stored);
        let Some(first) = deployed.next() else {
            return Err(refusal(
                "no revision of ichor's release is deployed, so that it is not known what a change \
                 would be made of: `ichor release history cilium -n ichor-system` shows what there is",
            ));
        };
        let revision = if stops { newest.revision } else { newest.revision.saturating_add(1) };
        Ok(Own {
            deployed: first,
            stale: deployed.collect(),
            stopped: stops.then_some(newest.stored),
            revision,
        })
    }
}

/// Whether a record is or was deployed. A takeover's own record is so only when it is complete, so
/// that what is not deployed beside it is an upgrade's, a rollback's or an uninstallation's.
pub(crate) fn was_deployed(status: &str) -> bool {
    matches!(status, "deployed" | "superseded")
}

/// See [`Newest::unfinished_action`].
pub(crate) fn unfinished_action(
    place: &Place,
    revision: i64,
    status: &Status,
    after_takeover: bool,
) -> Option<Refusal> {
    // Of a release that is uninstalled nothing is left, and what runs is another's.
    if !after_takeover || matches!(status, Status::Deployed | Status::Uninstalled) {
        return None;
    }
    let release = format!("{} -n {}", place.release, place.home);
    let first = if status.is_pending() {
        format!("`ichor release repair {release} --yes`, then ")
    } else {
        String::new()
    };
    let message = format!(
        "ichor's release is at revision {revision}, which is {status}: an upgrade, rollback or \
         uninstallation did not end, and there is no takeover to be finished. To go back to what \
         was deployed: {first}`ichor release rollback {release}`; or upgrade once more with values \
         that work"
    );
    Some(Refusal { reason: "Release".to_owned(), message })
}

/// Why it cannot be told.
#[derive(Debug, thiserror::Error)]
pub enum OwnError {
    /// The records cannot be listed, or lack a field.
    #[error("ichor's record")]
    Storage(#[from] StorageError),
    /// The newest one does not decode.
    #[error("refused: {message}")]
    Damaged {
        /// Which one, and what to do about it.
        message: String,
    },
}

/// What to do about a newest record that cannot be read: what runs does not depend on it, and a
/// restore needs only the backups, which it verifies.
pub(crate) fn damaged(place: &Place, name: &str, reason: &str) -> String {
    let Place { home, words, .. } = place;
    format!(
        "{kind} {home}/{name}, the newest record of ichor's own release, cannot be \
         read ({reason}): somebody edited it, or it was cut short. Write it back if you have a \
         copy; else `{restore} --yes` puts it into a backup as it is and gives {what} back to the \
         release before, whose records it checks first, and after that the takeover can be \
         made anew. Neither touches what runs",
        kind = place.kind(),
        restore = words.restore,
        what = words.what
    )
}

/// The revision in the name of a record's object.
pub(crate) fn revision_of(place: &Place, name: &str) -> Option<i64> {
    name.strip_prefix("sh.helm.release.v1.")?
        .strip_prefix(&*place.release)?
        .strip_prefix(".v")?
        .parse()
        .ok()
}

/// Reads the newest of ichor's own records; none when there are none.
///
/// Unlike Helm, which passes over a record that does not decode, an older one is not taken for it:
/// what it says is not what was done last.
///
/// # Errors
/// [`OwnError`]
pub(crate) async fn newest(
    place: &Place,
    storage: &Storage<'_>,
) -> Result<Option<Newest>, OwnError> {
    let labels = Labels::from([
        ("name".to_owned(), place.release.to_string()),
        ("owner".to_owned(), "helm".to_owned()),
    ]);
    let mut newest = None;
    let mut after_takeover = false;
    let mut visit = |entry: helm_rs::release::storage::Entry| {
        after_takeover |= entry.labels.get("status").is_some_and(|status| was_deployed(status));
        let revision = revision_of(place, &entry.key).unwrap_or_default();
        if newest.as_ref().is_none_or(|(other, _)| revision > *other) {
            newest = Some((revision, entry));
        }
    };
    storage.driver().each(&labels, &mut visit).await?;
    let Some((revision, entry)) = newest else { return Ok(None) };
    let record = entry.record.map_err(|error| OwnError::Damaged {
        message: damaged(place, &entry.key, &error_chain(&error)),
    })?;
    let status = record.info().map_err(StorageError::Field)?.status();
    let stored = Stored { record, labels: entry.labels };
    Ok(Some(Newest { stored, revision, status, after_takeover }))
}
