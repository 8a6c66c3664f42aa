//! What a write would do to each object, by the server's dry run or in memory.

use std::borrow::Cow;
use std::collections::BTreeSet;

use futures::stream::{self, StreamExt as _};
use helm_rs::apply::{Created, FIELD_MANAGER, Item};
use helm_rs::cluster::{Cluster, ClusterError, ErrorKind, Patch, WriteOptions};
use helm_rs::release::redact;
use serde_json::Value;

use super::cause::Causes;
use super::digest::is_stand_in_entry;
use super::make::{CONCURRENCY, PlanError};
use super::making::Making;
use super::{
    Action, Cause, Computed, Difference, HIDDEN, Key, ObjectAbout, ObjectPlan, OtherLeaf,
    ResidueAbout,
};
use crate::gate::{self, Change, Classes, Desired, Wanted, is_secret};
use crate::rendered::RenderedObject;
use crate::survey::failed;

/// What a write would do to one object.
pub(super) struct State {
    pub(super) action: Action,
    pub(super) computed: Computed,
    pub(super) why: String,
    pub(super) desired: Desired,
    pub(super) generated: BTreeSet<gate::Path>,
    /// What an earlier revision wrote, where the write takes some of it away.
    pub(super) original: Option<Value>,
    pub(super) live: Option<Value>,
    pub(super) after: Value,
    pub(super) classes: Classes,
}

pub(super) async fn read_live(
    cluster: &dyn Cluster,
    objects: &[RenderedObject],
) -> Result<Vec<Option<Value>>, PlanError> {
    let results: Vec<Result<Option<Value>, (String, ClusterError)>> =
        stream::iter(objects.iter().map(|object| async move {
            match cluster.get(&object.item.target).await {
                Ok(live) => Ok(Some(live)),
                Err(error) if error.is_not_found() => Ok(None),
                Err(error) => Err((format!("read {}", object.item.target), error)),
            }
        }))
        .buffered(CONCURRENCY)
        .collect()
        .await;
    let results: Result<Vec<_>, _> = results.into_iter().collect();
    Ok(results.map_err(|(doing, error)| failed(doing)(error))?)
}

pub(super) async fn state(
    making: &Making<'_>,
    object: &RenderedObject,
    live: Option<Value>,
    created: &Created,
    key: &Key,
) -> Result<State, PlanError> {
    let generated = object.wanted.generated.clone();
    let Some(live) = live else {
        let desired = Desired {
            object: object.wanted.object.clone(),
            kept: BTreeSet::new(),
            yielded: Vec::new(),
        };
        let mut state = State {
            action: if object.is_hook { Action::Hook } else { Action::Create },
            computed: Computed::Memory,
            why: String::new(),
            after: desired.object.clone(),
            desired,
            generated,
            original: None,
            live: None,
            classes: Classes::default(),
        };
        if object.is_hook {
            state.computed = Computed::Unchanged;
        } else if let Some(why) = created.lacking(&object.item) {
            why.clone_into(&mut state.why);
        } else {
            match creation(making, &object.item).await {
                Ok(after) => {
                    state.after = after;
                    state.computed = Computed::Server;
                }
                Err(error) => state.why = no_dry_run(&object.item, error)?,
            }
        }
        return Ok(state);
    };
    let desired = gate::desired(&comparable(&object.wanted, &live, key), &live);
    if object.is_hook {
        return Ok(State {
            action: Action::Hook,
            computed: Computed::Unchanged,
            why: String::new(),
            classes: hook_classes(&object.item, &live, &desired)?,
            after: live.clone(),
            desired,
            generated,
            original: None,
            live: Some(live),
        });
    }
    let wrong = |source| PlanError::Patch { object: object.item.target.to_string(), source };
    let original = making.before.and_then(|before| before.original(object));
    let from = original.unwrap_or(&desired.object);
    let patch = gate::patch_from(from, &desired.object, &live).map_err(wrong)?;
    let original = original.cloned();
    let (after, computed, why) = match &patch {
        None => (live.clone(), Computed::Unchanged, String::new()),
        Some(patch) => after(making, &object.item, &live, patch).await?,
    };
    let classes = gate::classify(&live, &after, &desired);
    let changes = !classes.differences.is_empty() || !classes.ownership.is_empty();
    Ok(State {
        action: if patch.is_some() && changes { Action::Patch } else { Action::Keep },
        computed,
        why,
        desired,
        generated,
        original,
        live: Some(live),
        after,
        classes,
    })
}

/// A rendered object as it can be compared with a live one: where that is a Secret of which the
/// digests alone are known, with digests too.
fn comparable<'a>(wanted: &'a Wanted, live: &Value, key: &Key) -> Cow<'a, Wanted> {
    let data = live.get("data").and_then(Value::as_object);
    let mut entries = data.into_iter().flatten().filter_map(|(_, entry)| entry.as_str());
    if live.get("kind").is_none_or(|kind| kind != "Secret") || !entries.any(is_stand_in_entry) {
        return Cow::Borrowed(wanted);
    }
    let mut wanted = wanted.clone();
    let data = wanted.object.get_mut("data").and_then(Value::as_object_mut);
    for (_, entry) in data.into_iter().flatten() {
        if let Some(text) = entry.as_str() {
            *entry = key.stand_in_entry(text).into();
        }
    }
    Cow::Owned(wanted)
}

/// A takeover runs no hooks: what differs from the chart stays, as residue does.
fn hook_classes(item: &Item, live: &Value, desired: &Desired) -> Result<Classes, PlanError> {
    let wrong = |source| PlanError::Patch { object: item.target.to_string(), source };
    let after = match gate::patch(&desired.object, live).map_err(wrong)? {
        Some(patch) => gate::apply_in_memory(live, &patch).map_err(wrong)?,
        None => live.clone(),
    };
    let mut classes = gate::classify(live, &after, desired);
    // Hooks belong to no release, so that there is no ownership to change.
    classes.ownership.clear();
    let stays = std::mem::take(&mut classes.differences);
    classes.residue.extend(stays.into_iter().map(|change| gate::Residue {
        path: change.path,
        value: change.live.unwrap_or_default(),
        managers: change.managers,
    }));
    classes.residue.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(classes)
}

fn dry_run() -> WriteOptions {
    WriteOptions {
        dry_run: true,
        field_manager: FIELD_MANAGER.to_owned(),
        ..WriteOptions::default()
    }
}

/// Why a dry run is done in memory instead.
///
/// # Errors
/// What the server says against the object itself.
fn no_dry_run(item: &Item, source: ClusterError) -> Result<String, PlanError> {
    match source.kind() {
        ErrorKind::Forbidden => {
            Ok(format!("this identity may not write it, not even in a dry run: {source}"))
        }
        ErrorKind::Unsupported => Ok(source.to_string()),
        _ => Err(PlanError::DryRun { object: item.target.to_string(), source }),
    }
}

/// A dry run of a creation.
async fn creation(making: &Making<'_>, item: &Item) -> Result<Value, ClusterError> {
    let known = making.dry_runs.and_then(|runs| runs.known(&item.target, None, &item.value));
    if let Some(after) = known {
        return Ok(after);
    }
    let after = making.cluster.create(&item.target, &item.value, &dry_run()).await?;
    if let Some(runs) = making.dry_runs {
        runs.keep(&item.target, None, &item.value, &after);
    }
    Ok(after)
}

async fn after(
    making: &Making<'_>,
    item: &Item,
    live: &Value,
    patch: &Patch,
) -> Result<(Value, Computed, String), PlanError> {
    let target = &item.target;
    let known = making.dry_runs.and_then(|runs| runs.known(target, Some(live), &patch.body));
    if let Some(after) = known {
        return Ok((after, Computed::Server, String::new()));
    }
    match making.cluster.patch(target, patch, &dry_run()).await {
        Ok(after) => {
            if let Some(runs) = making.dry_runs {
                runs.keep(target, Some(live), &patch.body, &after);
            }
            Ok((after, Computed::Server, String::new()))
        }
        Err(error) => {
            let why = no_dry_run(item, error)?;
            let wrong = |source| PlanError::Patch { object: item.target.to_string(), source };
            Ok((gate::apply_in_memory(live, patch).map_err(wrong)?, Computed::Memory, why))
        }
    }
}

pub(super) fn show(
    object: &RenderedObject,
    state: &State,
    causes: &Causes,
    name: &str,
) -> ObjectPlan {
    let kind = object.item.kind();
    let difference = |change: &Change| {
        let (mut cause, manager) = causes.of(name, change);
        if state.generated.contains(&change.path) {
            cause = Cause::Generated;
        }
        let secret = is_secret(&kind.kind, &change.path);
        let side = |value: &Option<Value>| value.as_ref().map(|value| shown(secret, value));
        Difference {
            path: change.path.to_string(),
            live: side(&change.live),
            new: side(&change.new),
            cause,
            manager,
        }
    };
    let classes = &state.classes;
    let effect = match (state.action, kind.kind.as_str()) {
        (Action::Create, "Job") if object.item.target.name.contains("generate-certs") => {
            "the Job runs once and issues new certificates".to_owned()
        }
        (Action::Create, "Job") => "the Job runs once".to_owned(),
        _ => String::new(),
    };
    ObjectPlan {
        about: ObjectAbout {
            api_version: kind.api_version(),
            kind: kind.kind.clone(),
            namespace: object.item.target.namespace.clone(),
            name: object.item.target.name.clone(),
        },
        action: state.action,
        computed: state.computed,
        computed_why: state.why.clone(),
        effect,
        differences: classes.differences.iter().map(difference).collect(),
        residue: classes
            .residue
            .iter()
            .map(|left| ResidueAbout {
                path: left.path.to_string(),
                value: shown(is_secret(&kind.kind, &left.path), &left.value),
                manager: left.managers.first().map(|m| m.name.clone()).unwrap_or_default(),
            })
            .collect(),
        ownership: classes.ownership.iter().map(difference).collect(),
        generated: classes.generated.iter().map(ToString::to_string).collect(),
        others: classes
            .others
            .iter()
            .map(|(path, manager)| OtherLeaf { path: path.to_string(), manager: manager.clone() })
            .collect(),
        defaults: classes.defaults.len(),
    }
}

/// A leaf's value as a plan shows it. The digest is over the value itself.
fn shown(is_secret: bool, value: &Value) -> Value {
    match value {
        _ if is_secret => Value::from(HIDDEN),
        Value::String(text) => Value::from(redact::text(text)),
        value => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::shown;

    #[test]
    fn credentials_within_a_text_are_not_shown() {
        for text in ["https://user:hunter22@proxy:3128", "--password=hunter22"] {
            let shown = shown(false, &json!(text)).to_string();
            assert!(!shown.contains("hunter22") && shown.contains("REDACTED"), "{shown}");
        }
        assert_eq!(shown(false, &json!("--debug=true")), "--debug=true");
        assert_eq!(shown(true, &json!(7)), "REDACTED");
    }
}
