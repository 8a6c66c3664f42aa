//! Writing objects by server-side apply (`patchResourceServerSide`, `upgradeClientSideFieldManager`
//! in Helm 4's `pkg/kube/client.go`).

use serde_json::Value;

use super::managed_fields::{FieldConflict, takeover};
use super::{Item, ObjectError, RELEASE_MANAGER, Writer};
use crate::cluster::{ClusterError, ErrorKind, FieldValidation, Patch, PatchKind, WriteOptions};

/// How often fields are taken over of an object that others change meanwhile.
const TRIES: usize = 5;

fn options(dry_run: bool) -> WriteOptions {
    WriteOptions {
        dry_run,
        field_manager: RELEASE_MANAGER.to_owned(),
        field_validation: Some(FieldValidation::Strict),
        ..WriteOptions::default()
    }
}

impl Writer<'_> {
    /// Applies an object, or asks what would become of it. Other managers' fields are taken by force
    /// or not at all.
    ///
    /// # Errors
    /// The server's; [`ObjectError::conflict`] tells what others own.
    pub(super) async fn apply_one(
        &self,
        item: &Item,
        force: bool,
        dry_run: bool,
    ) -> Result<Value, ClusterError> {
        let patch = Patch { kind: PatchKind::Apply, body: item.value.clone() };
        let options = WriteOptions { force, ..options(dry_run) };
        self.cluster.patch(&item.target, &patch, &options).await
    }

    /// Takes over what the release owns of a live object from its client-side past, then applies the
    /// object.
    pub(super) async fn apply_over(
        &self,
        item: &Item,
        live: &Value,
        force: bool,
    ) -> Result<(), ObjectError> {
        self.take_over(item, live).await.map_err(|source| ObjectError::TakeOver {
            kind: item.kind().kind.clone(),
            name: item.target.name.clone(),
            source,
        })?;
        let applied = self.apply_one(item, force, false).await;
        applied.map(drop).map_err(|error| ObjectError::of_apply(item, error))
    }

    async fn take_over(&self, item: &Item, live: &Value) -> Result<(), ClusterError> {
        let mut newer;
        let mut live = live;
        for tries in 1.. {
            let Some(patch) = takeover(live) else { return Ok(()) };
            match self.cluster.patch(&item.target, &patch, &options(false)).await {
                Ok(_) => return Ok(()),
                // Somebody else was faster, or it is done and the answer was lost.
                Err(error) if tries < TRIES && is_open(&error) => {
                    newer = self.cluster.get(&item.target).await?;
                    live = &newer;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Asks whether an object could be applied over a live one. What would become of it is only in
    /// the answer where no fields have to be taken over first: none is told then.
    ///
    /// # Errors
    /// The server's, without conflicts that the takeover ends.
    pub async fn try_apply(
        &self,
        item: &Item,
        live: &Value,
        force: bool,
    ) -> Result<Option<Value>, ObjectError> {
        let has_past = takeover(live).is_some();
        match self.apply_one(item, force, true).await {
            Ok(after) => Ok((!has_past).then_some(after)),
            Err(error) => {
                let mut conflicts = FieldConflict::all(&error);
                if conflicts.is_empty() {
                    return Err(ObjectError::of_apply(item, error));
                }
                conflicts.retain(|conflict| !conflict.is_past());
                if conflicts.is_empty() {
                    return Ok(None);
                }
                Err(ObjectError::Fields { title: item.title(), conflicts })
            }
        }
    }
}

fn is_open(error: &ClusterError) -> bool {
    matches!(error.kind(), ErrorKind::Conflict | ErrorKind::Transport | ErrorKind::Timeout)
}

impl ObjectError {
    fn of_apply(item: &Item, source: ClusterError) -> Self {
        let conflicts = FieldConflict::all(&source);
        if !conflicts.is_empty() {
            return Self::Fields { title: item.title(), conflicts };
        }
        Self::Apply { kind: item.kind().kind.clone(), name: item.target.name.clone(), source }
    }
}
