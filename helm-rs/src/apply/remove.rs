//! Deleting objects, and waiting until they are gone (`rdelete` in `pkg/kube/client.go`,
//! `waitForDeletedResources` in `pkg/kube/wait.go`).

use std::time::Duration;

use futures::stream::{self, StreamExt as _};

use super::wait::pause;
use super::write::CONCURRENCY;
use super::{Cancel, Item, Observer, WaitError, WriteErrors, Writer, ownership};
use crate::cluster::{Clock, Cluster, ClusterError, DeleteOptions, ErrorKind, Propagation};
use crate::gotext::quote;

/// Time between two looks at first and at most. Helm's is two seconds from the beginning.
const FIRST_INTERVAL: Duration = Duration::from_millis(125);
const INTERVAL: Duration = Duration::from_secs(1);
/// How often an object is looked at again that became another one before it was deleted.
const LOOKS: usize = 5;

/// What deleting objects did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Removed {
    /// Objects that were deleted, or were not there.
    pub deleted: Vec<Item>,
    /// Objects that were left, as they belong to somebody else.
    pub left: Vec<Left>,
}

/// An object that was not deleted.
#[derive(Clone, Debug, PartialEq)]
pub struct Left {
    /// The object.
    pub item: Item,
    /// Whose it is.
    pub owner: String,
}

impl Left {
    /// What is told of it.
    pub fn text(&self) -> String {
        format!("WARNING: {} was not deleted: it belongs to {}", self.item.title(), self.owner)
    }
}

/// What became of one object.
enum Fate {
    Deleted,
    Left(String),
    Failed(ClusterError),
    Cancelled,
}

impl Writer<'_> {
    /// Deletes objects: kind after kind, those of one kind side by side. A failure does not keep
    /// the others from being deleted.
    ///
    /// # Errors
    /// All failures. What was left as somebody else's was told to the observer.
    pub async fn delete(
        &self,
        items: &[Item],
        propagation: Propagation,
    ) -> Result<Removed, WriteErrors> {
        let mut removed = Removed::default();
        let mut errors = Vec::new();
        let mut cancelled = false;
        let mut rest = items;
        while let Some(first) = rest.first().filter(|_| !cancelled) {
            let same = rest.iter().take_while(|item| item.kind().kind == first.kind().kind).count();
            let (batch, after) = rest.split_at(same);
            rest = after;
            let fates: Vec<Fate> =
                stream::iter(batch.iter().map(|item| self.delete_one(item, propagation)))
                    .buffered(CONCURRENCY)
                    .collect()
                    .await;
            for (item, fate) in batch.iter().zip(fates) {
                match fate {
                    Fate::Deleted => removed.deleted.push(item.clone()),
                    Fate::Left(owner) => {
                        let left = Left { item: item.clone(), owner };
                        self.observer.log(&left.text());
                        removed.left.push(left);
                    }
                    Fate::Failed(error) => errors.push(error),
                    Fate::Cancelled => cancelled = true,
                }
            }
        }
        if errors.is_empty() && !cancelled {
            Ok(removed)
        } else {
            Err(WriteErrors { errors, cancelled })
        }
    }

    async fn delete_one(&self, item: &Item, propagation: Propagation) -> Fate {
        let (kind, name) = (&item.kind().kind, quote(&item.target.name));
        self.observer.log(&format!("Starting delete for {name} {kind}"));
        let mut looks = LOOKS;
        loop {
            if self.cancel.is_cancelled() {
                return Fate::Cancelled;
            }
            let uid = match self.owner {
                None => String::new(),
                Some((release, namespace)) => match self.cluster.get(&item.target).await {
                    Err(error) if error.kind() == ErrorKind::NotFound => return Fate::Deleted,
                    Err(error) => return Fate::Failed(error),
                    Ok(live) => {
                        if let Some(owner) = ownership::other(&live, release, namespace) {
                            return Fate::Left(owner);
                        }
                        super::field::text(&live, "/metadata/uid").to_owned()
                    }
                },
            };
            let is_this_one = !uid.is_empty();
            let options =
                DeleteOptions { propagation: Some(propagation), uid, ..DeleteOptions::default() };
            return match self.cluster.delete(&item.target, &options).await {
                Ok(_) => Fate::Deleted,
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    self.observer
                        .log(&format!("Ignoring delete failure for {name} {kind}: {error}"));
                    Fate::Deleted
                }
                // Another object took its name since, which may be somebody else's.
                Err(error) if is_this_one && error.kind() == ErrorKind::Conflict && looks > 0 => {
                    looks -= 1;
                    continue;
                }
                Err(error) => Fate::Failed(error),
            };
        }
    }
}

/// Waits until none of the objects is there.
///
/// # Errors
/// [`WaitError`]; the first object that cannot be read ends the wait.
pub async fn wait_until_gone(
    cluster: &dyn Cluster,
    clock: &dyn Clock,
    items: &[Item],
    timeout: Duration,
    observer: &dyn Observer,
    cancel: &Cancel,
) -> Result<(), WaitError> {
    observer.log(&format!(
        "beginning wait for {} resources to be deleted with timeout of {}",
        items.len(),
        super::wait::go_duration(timeout)
    ));
    let deadline = clock.elapsed() + timeout;
    let mut interval = FIRST_INTERVAL;
    for item in items {
        loop {
            match cluster.get(&item.target).await {
                Err(error) if error.kind() == ErrorKind::NotFound => break,
                Err(error) => return Err(error.into()),
                Ok(_) => {}
            }
            if clock.elapsed() >= deadline {
                return Err(WaitError::Deadline);
            }
            pause(clock, cancel, (clock.elapsed() + interval).min(deadline)).await?;
            interval = (interval * 2).min(INTERVAL);
        }
    }
    Ok(())
}
