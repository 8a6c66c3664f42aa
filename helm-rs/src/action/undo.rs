//! What an action needs on top for the time when it fails: `--atomic` uninstalls what was installed
//! or rolls an upgrade back, `--cleanup-on-fail` deletes what it created (`failure.rs`).

use super::error::ActionError;
use super::failure::last_successful;
use super::hook_rights;
use super::prepare;
use super::rights::{self, Right};
use super::session::{ReleaseOptions, Session};
use crate::apply::{Item, Method, is_kept};
use crate::cluster::Discovery;
use crate::manifest::{Hook, HookEvent};
use crate::release::storage::{Head, Stored};

/// How an action would be undone.
#[derive(Debug, Default)]
pub(super) struct Undo {
    /// The objects that it would go back to; none after an installation.
    back_to: Vec<Item>,
    /// How these would be written.
    method: Method,
    /// What hooks and waiting need meanwhile.
    rights: Vec<Right>,
    /// The revision whose record alone would be read.
    pub(super) read_record: Option<i64>,
    /// Revisions whose records would be updated.
    pub(super) updated_records: Vec<i64>,
    /// Revisions whose records would be deleted.
    pub(super) deleted_records: Vec<i64>,
    /// Whether the release goes back: what it does not go back to is deleted.
    goes_back: bool,
}

impl Undo {
    /// An installation is uninstalled, and with it all records of the name.
    pub(super) async fn of_installation(
        session: &Session<'_>,
        discovery: &Discovery,
        hooks: &[Hook],
        method: Method,
        revision: i64,
        options: &ReleaseOptions,
    ) -> Result<Self, ActionError> {
        if !options.atomic {
            return Ok(Self::default());
        }
        let mut deleted_records = vec![revision];
        if revision > 1 {
            let heads = session.storage().heads(&options.name).await?;
            deleted_records.extend(heads.iter().filter_map(Head::revision));
        }
        let events = [HookEvent::PreDelete, HookEvent::PostDelete];
        let hooks: Vec<&Hook> = hooks.iter().filter(|hook| hook.runs_at(&events)).collect();
        let rights = hooks.iter().flat_map(|hook| {
            let logs = !hook.output_log_policies.is_empty();
            hook_rights::needs(discovery, &hook.manifest, &hook.kind, logs, method, options)
        });
        Ok(Self {
            rights: if options.no_hooks { Vec::new() } else { rights.flatten().collect() },
            deleted_records,
            goes_back: true,
            ..Self::default()
        })
    }

    /// An upgrade is rolled back to the last revision that succeeded, if there is one.
    pub(super) async fn of_upgrade(
        session: &Session<'_>,
        discovery: &Discovery,
        current: &Stored,
        revision: i64,
        options: &ReleaseOptions,
    ) -> Result<Self, ActionError> {
        let mut undo = Self::default();
        if !options.atomic {
            return Ok(undo);
        }
        let storage = session.storage();
        let heads = storage.heads(&options.name).await?;
        let Some(successful) = last_successful(&heads) else { return Ok(undo) };
        let record = if current.record.revision()? == successful {
            current.record.clone()
        } else {
            storage.get(&options.name, successful).await?.record
        };
        let what = "unable to build kubernetes objects from new release manifest";
        let manifest = record.manifest()?;
        undo.back_to = prepare::objects(discovery, manifest.as_bytes(), options, false, what)?;
        let (method, _) = options.method.undoing().resolve(record.apply_method()?)?;
        undo.method = method;
        undo.rights = rights::waiting(&undo.back_to, options);
        let events = [HookEvent::PreRollback.as_str(), HookEvent::PostRollback.as_str()];
        let is_run = |event: &String| events.contains(&event.as_str());
        let hooks = record.hooks()?;
        for hook in hooks.iter().filter(|hook| !options.no_hooks && hook.events.iter().any(is_run))
        {
            let logs = !hook.output_log_policies.is_empty();
            let manifest = hook.manifest.as_bytes();
            let needs = hook_rights::needs(discovery, manifest, &hook.kind, logs, method, options);
            undo.rights.extend(needs.into_iter().flatten());
        }
        undo.read_record = Some(successful);
        undo.updated_records = vec![revision, revision + 1];
        undo.goes_back = true;
        Ok(undo)
    }

    /// The rights on objects, those of hooks and of waiting. What the action itself patches it may
    /// patch back.
    pub(super) fn rights(
        &self,
        target: &[Item],
        options: &ReleaseOptions,
        is_created: impl Fn(&Item) -> bool,
    ) -> Vec<Right> {
        let mut needed = self.rights.clone();
        for item in target {
            // An uninstallation leaves what has any policy.
            let policy = item.value.pointer("/metadata/annotations/helm.sh~1resource-policy");
            let is_kept = is_kept(&item.value) || (self.back_to.is_empty() && policy.is_some());
            let stays = self.back_to.iter().any(|other| other.matches(item));
            // What was created is cleaned up even where the release then goes back to it.
            let is_cleaned_up = options.cleanup_on_fail && is_created(item);
            if !is_kept && (is_cleaned_up || (self.goes_back && !stays)) {
                needed.push(Right::on_object("delete", item));
            }
        }
        let change = if self.method == Method::Replace { "update" } else { "patch" };
        for item in &self.back_to {
            match target.iter().find(|other| other.matches(item)) {
                // The upgrade deleted it.
                None => {
                    needed.push(Right::on_object("get", item));
                    needed.extend(rights::creation(self.method, item));
                    needed.extend(rights::escalation(item, true));
                }
                Some(other) if is_created(other) || self.method != Method::Patch => {
                    needed.push(Right::on_object(change, item));
                    needed.extend(rights::escalation(item, false));
                }
                Some(_) => {}
            }
        }
        needed
    }
}
