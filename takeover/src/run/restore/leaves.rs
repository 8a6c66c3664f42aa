//! What a restore gives back of one object: its ownership metadata, and the leaves that were changed,
//! in one write.

use std::collections::BTreeSet;

use helm_rs::apply::Item;
use helm_rs::cluster::{Cluster, ErrorKind, Patch, PatchKind, WriteOptions};
use helm_rs::release::redact;
use serde_json::Value;

use super::{LeafBack, LeafLeft, RestoreError, failed};
use crate::gate::{is_secret, leaves_of};
use crate::plan::HIDDEN;
use crate::run::former::{groups, undo};
use crate::run::put_back::options;
use crate::run::stored::{StoredObject, StoredPlan, set_ownership};
use crate::survey::text;

/// Groups of leaves that a server is asked about one by one, when it does not take all of them.
const ASKED: usize = 24;
/// Bytes of a server's reason that are told.
const REASON: usize = 240;

/// What is given back of an object.
pub(super) struct Given {
    pub(super) item: Item,
    pub(super) stored: StoredObject,
    /// The leaves that get their former values.
    pub(super) back: BTreeSet<usize>,
    /// Leaves that stay, with the reason.
    pub(super) left: Vec<(usize, String)>,
}

impl Given {
    /// Of an object of which the ownership metadata is given back alone.
    pub(super) const fn owner(item: Item, stored: StoredObject) -> Self {
        Self { item, stored, back: BTreeSet::new(), left: Vec::new() }
    }

    /// Of an object with its leaves. Those that the server does not take back, such as one that
    /// made an object immutable, are left.
    ///
    /// # Errors
    /// [`RestoreError::Cluster`] when it does not answer.
    pub(super) async fn of(
        cluster: &dyn Cluster,
        plan: &StoredPlan,
        item: Item,
        stored: StoredObject,
        live: &Value,
    ) -> Result<Self, RestoreError> {
        let undone = undo(plan, &stored, live, &|_| true);
        let mut given = Self::owner(item, stored);
        given.left.extend(undone.left.into_iter().map(|(index, why)| (index, why.to_owned())));
        let wanted: BTreeSet<usize> = undone.back.iter().copied().collect();
        let Some(refused) = given.refused(cluster, plan, live, &wanted).await? else {
            given.back = wanted;
            return Ok(given);
        };
        let groups = groups(&given.stored, &undone.back);
        let mut stuck: Vec<(usize, String)> = Vec::new();
        if groups.len() == 1 || groups.len() > ASKED {
            stuck.extend(wanted.iter().map(|index| (*index, refused.clone())));
        } else {
            for group in groups {
                match given.refused(cluster, plan, live, &group).await? {
                    None => given.back.extend(group),
                    Some(why) => stuck.extend(group.iter().map(|index| (*index, why.clone()))),
                }
            }
            // What it takes one by one it may not take together.
            let taken = given.back.clone();
            if let Some(why) = given.refused(cluster, plan, live, &taken).await? {
                given.back.clear();
                stuck.extend(taken.iter().map(|index| (*index, why.clone())));
            }
        }
        given.left.extend(stuck);
        given.left.sort_by_key(|(index, _)| *index);
        Ok(given)
    }

    /// Why the server does not give these leaves back; none when it does.
    async fn refused(
        &self,
        cluster: &dyn Cluster,
        plan: &StoredPlan,
        live: &Value,
        only: &BTreeSet<usize>,
    ) -> Result<Option<String>, RestoreError> {
        let undone = undo(plan, &self.stored, live, &|index| only.contains(&index));
        let Some(body) = difference(live, &undone.object) else { return Ok(None) };
        let patch = Patch { kind: PatchKind::Merge, body };
        let dry_run = WriteOptions { dry_run: true, ..options() };
        match cluster.patch(&self.item.target, &patch, &dry_run).await {
            Ok(_) => Ok(None),
            Err(error) => match error.kind() {
                ErrorKind::Unsupported => Ok(None),
                ErrorKind::Invalid
                | ErrorKind::BadRequest
                | ErrorKind::Forbidden
                | ErrorKind::OtherStatus => {
                    let mut why = redact::text(&error.to_string());
                    let end = why.char_indices().nth(REASON).map_or(why.len(), |(at, _)| at);
                    why.truncate(end);
                    Ok(Some(format!("the server does not take it: {why}")))
                }
                _ => Err(failed(format!("try to give {} back", self.item.target))(error)),
            },
        }
    }

    /// The leaves that get their former values, for people.
    pub(super) fn told(&self, plan: &StoredPlan, live: &Value) -> Vec<LeafBack> {
        let kind = text(live, "/kind");
        let undone = undo(plan, &self.stored, live, &|index| self.back.contains(&index)).object;
        let (live, former) = (leaves_of(live), leaves_of(&undone));
        let paths = self.back.iter().filter_map(|index| self.stored.leaves.get(*index));
        paths
            .map(|leaf| {
                let path = &leaf.path;
                let shown = |leaves: &crate::gate::Leaves| {
                    leaves.get(path).map(|leaf| match &leaf.value {
                        _ if is_secret(kind, path) => HIDDEN.into(),
                        Value::String(text) => redact::text(text).into(),
                        value => value.clone(),
                    })
                };
                LeafBack {
                    object: self.item.target.to_string(),
                    path: path.to_string(),
                    live: shown(&live),
                    former: shown(&former),
                }
            })
            .collect()
    }

    /// Leaves that stay, for people.
    pub(super) fn left(&self) -> Vec<LeafLeft> {
        let told = |(index, why): &(usize, String)| {
            Some(LeafLeft {
                object: self.item.target.to_string(),
                path: self.stored.leaves.get(*index)?.path.to_string(),
                why: why.clone(),
            })
        };
        self.left.iter().filter_map(told).collect()
    }

    /// Whether its pods restart.
    pub(super) fn restarts(&self) -> bool {
        let kind = self.item.kind().kind.as_str();
        let mut paths = self.back.iter().filter_map(|index| self.stored.leaves.get(*index));
        matches!(kind, "DaemonSet" | "Deployment" | "StatefulSet")
            && paths.any(|leaf| leaf.path.starts_with(&["spec", "template"]))
    }
}

/// The patch that gives a live object back; none when nothing is to be changed.
pub(super) fn patch(plan: &StoredPlan, given: &Given, live: &Value) -> Option<Value> {
    let mut undone = undo(plan, &given.stored, live, &|index| given.back.contains(&index)).object;
    if let Some(former) = &given.stored.former {
        set_ownership(&mut undone, former);
    }
    difference(live, &undone)
}

fn difference(live: &Value, undone: &Value) -> Option<Value> {
    let patch = mergepatch::merge::two_way(live, undone).ok()?;
    patch.as_object().is_some_and(|patch| !patch.is_empty()).then_some(patch)
}
