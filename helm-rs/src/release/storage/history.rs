//! A release's revisions, with the limit on their number (`pkg/storage/storage.go`).

use super::{Driver, Entry, Head, Labels, StorageError, Stored, record_key};
use crate::error_chain;
use crate::release::{Record, Status};

/// Records of releases in one place.
pub struct Storage<'a> {
    driver: &'a dyn Driver,
    /// How many revisions of a release are kept, the newest included; 0 for all.
    pub max_history: usize,
}

impl<'a> Storage<'a> {
    /// Records in that place, all revisions kept.
    pub const fn new(driver: &'a dyn Driver) -> Self {
        Self { driver, max_history: 0 }
    }

    /// The place.
    pub const fn driver(&self) -> &'a dyn Driver {
        self.driver
    }

    /// One revision.
    ///
    /// # Errors
    /// [`StorageError::NotFound`] when it is not there.
    pub async fn get(&self, name: &str, revision: i64) -> Result<Stored, StorageError> {
        self.driver.get(&record_key(name, revision)).await
    }

    /// Stores a new revision, after the oldest ones made room for it.
    ///
    /// # Errors
    /// [`StorageError::Exists`] when the revision is taken; what pruning met.
    pub async fn create(&self, record: &Record, labels: &Labels) -> Result<(), StorageError> {
        let name = record.name()?;
        if let Some(room) = self.max_history.checked_sub(1) {
            match self.remove_least_recent(&name, room).await {
                Ok(()) | Err(StorageError::NotFound) => {}
                Err(error) => return Err(error),
            }
        }
        self.driver.create(&record_key(&name, record.revision()?), record, labels).await
    }

    /// Replaces a revision.
    ///
    /// # Errors
    /// When it is not there or cannot be written.
    pub async fn update(&self, record: &Record, labels: &Labels) -> Result<(), StorageError> {
        let key = record_key(&record.name()?, record.revision()?);
        self.driver.update(&key, record, labels).await
    }

    /// Deletes a revision.
    ///
    /// # Errors
    /// [`StorageError::NotFound`] when it is not there.
    pub async fn delete(&self, name: &str, revision: i64) -> Result<(), StorageError> {
        self.driver.delete(&record_key(name, revision)).await
    }

    /// All records of all releases; entries that do not decode are passed over.
    ///
    /// # Errors
    /// As the driver.
    pub async fn list(&self) -> Result<Vec<Stored>, StorageError> {
        let owner = Labels::from([("owner".to_owned(), "helm".to_owned())]);
        Ok(decoded(self.driver.query(&owner).await?))
    }

    /// All entries of a release as they are stored, also those that do not decode.
    ///
    /// # Errors
    /// [`StorageError::NotFound`] when there are none.
    pub async fn entries(&self, name: &str) -> Result<Vec<Entry>, StorageError> {
        let entries = self.driver.query(&labels_of_release(name)).await?;
        if entries.is_empty() { Err(StorageError::NotFound) } else { Ok(entries) }
    }

    /// What there is of a release, the oldest revision first, without its records: one may not
    /// decode.
    ///
    /// # Errors
    /// [`StorageError::NotFound`] when there is nothing.
    pub async fn heads(&self, name: &str) -> Result<Vec<Head>, StorageError> {
        let mut heads = self.driver.heads(&labels_of_release(name)).await?;
        if heads.is_empty() {
            return Err(StorageError::NotFound);
        }
        heads.sort_by_cached_key(Head::revision);
        Ok(heads)
    }

    /// The newest of these revisions whose record decodes. The records are read one at a time:
    /// one is a megabyte, and mostly the first one is it.
    ///
    /// # Errors
    /// As the driver.
    pub async fn newest_of(
        &self,
        heads: impl IntoIterator<Item = &Head, IntoIter: DoubleEndedIterator>,
    ) -> Result<Option<Stored>, StorageError> {
        for head in heads.into_iter().rev() {
            if let Some(Entry { record: Ok(record), labels, .. }) =
                self.driver.entry(&head.key).await?
            {
                return Ok(Some(Stored { record, labels }));
            }
        }
        Ok(None)
    }

    /// A release's revisions in the store's order; entries that do not decode are passed over.
    ///
    /// # Errors
    /// [`StorageError::NotFound`] when there are none.
    pub async fn history(&self, name: &str) -> Result<Vec<Stored>, StorageError> {
        Ok(decoded(self.entries(name).await?))
    }

    /// The newest revision.
    ///
    /// # Errors
    /// [`StorageError::NotFound`] when there are none, [`StorageError::NoRevision`] when none
    /// decodes.
    pub async fn last(&self, name: &str) -> Result<Stored, StorageError> {
        let newest = self.newest_of(&self.heads(name).await?).await?;
        newest.ok_or_else(|| StorageError::NoRevision { name: name.to_owned() })
    }

    /// All deployed revisions in the store's order: one, unless something went wrong.
    ///
    /// # Errors
    /// [`StorageError::NoDeployed`] when there are none.
    pub async fn deployed_all(&self, name: &str) -> Result<Vec<Stored>, StorageError> {
        let labels = Labels::from([
            ("name".to_owned(), name.to_owned()),
            ("owner".to_owned(), "helm".to_owned()),
            ("status".to_owned(), Status::Deployed.as_str().to_owned()),
        ]);
        match self.driver.query(&labels).await {
            Ok(entries) if !entries.is_empty() => Ok(decoded(entries)),
            Ok(_) => Err(StorageError::NoDeployed { name: name.to_owned() }),
            // Helm looks for "not found" in the text, which an API error has as well.
            Err(error) if error_chain(&error).contains("not found") => {
                Err(StorageError::NoDeployed { name: name.to_owned() })
            }
            Err(error) => Err(error),
        }
    }

    /// The newest deployed revision.
    ///
    /// # Errors
    /// [`StorageError::NoDeployed`] when there is none.
    pub async fn deployed(&self, name: &str) -> Result<Stored, StorageError> {
        let newest = newest(self.deployed_all(name).await?)?;
        newest.ok_or_else(|| StorageError::NoDeployed { name: name.to_owned() })
    }

    /// Deletes the oldest revisions beyond `keep`, never the newest deployed one
    /// (`removeLeastRecent`).
    ///
    /// One query where Helm makes two, and no record read. What is deleted is the same, but for
    /// records that do not decode, which Helm does not see and which count here.
    ///
    /// # Errors
    /// After trying them all: the error of one, or how many failed.
    pub async fn remove_least_recent(&self, name: &str, keep: usize) -> Result<(), StorageError> {
        let heads = self.heads(name).await?;
        let deployed = heads.iter().filter(|head| head.has_status(&Status::Deployed));
        let last_deployed = deployed.filter_map(Head::revision).max();
        let revisions: Vec<i64> = heads.iter().filter_map(Head::revision).collect();
        let surplus = revisions.len().saturating_sub(keep);
        let victims =
            revisions.into_iter().filter(|revision| Some(*revision) != last_deployed).take(surplus);
        let mut errors = Vec::new();
        for revision in victims {
            if let Err(error) = self.delete(name, revision).await {
                errors.push(error);
            }
        }
        match errors.len() {
            0 => Ok(()),
            1 => errors.pop().map_or(Ok(()), Err),
            count => Err(StorageError::Prune {
                count,
                first: errors.first().map(|error| error_chain(error)).unwrap_or_default(),
            }),
        }
    }
}

/// What all revisions of a release have in common.
fn labels_of_release(name: &str) -> Labels {
    Labels::from([("name".to_owned(), name.to_owned()), ("owner".to_owned(), "helm".to_owned())])
}

fn decoded(entries: Vec<Entry>) -> Vec<Stored> {
    entries
        .into_iter()
        .filter_map(|entry| Some(Stored { record: entry.record.ok()?, labels: entry.labels }))
        .collect()
}

fn newest(records: Vec<Stored>) -> Result<Option<Stored>, StorageError> {
    let mut newest: Option<(i64, Stored)> = None;
    for stored in records {
        let revision = stored.record.revision()?;
        if newest.as_ref().is_none_or(|(other, _)| revision > *other) {
            newest = Some((revision, stored));
        }
    }
    Ok(newest.map(|(_, stored)| stored))
}
