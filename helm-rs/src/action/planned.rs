//! One object of a plan: what the server says of the very request that would be sent, leaf by leaf.

use serde_json::{Value, json};

use super::session::Session;
use crate::apply::{
    Created, CustomMerge, FieldConflict, Item, Method, ObjectError, is_kept, patch_for,
};
use crate::cluster::{DeleteOptions, ErrorKind, Kind, Patch, PatchKind, Propagation};
use crate::diff::{Change, LeafPath, Lists, Step, compare};
use crate::error_chain;
use crate::release::redact;

/// What would become of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ObjectChange {
    /// It would be created.
    Create,
    /// It would be changed.
    Change,
    /// It would stay as it is.
    None,
    /// It would be deleted: the chart no longer has it.
    Delete,
    /// The chart no longer has it, and it would stay: its policy says so, or it is gone already.
    Leave,
}

impl ObjectChange {
    /// The word in reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Change => "change",
            Self::None => "unchanged",
            Self::Delete => "delete",
            Self::Leave => "leave",
        }
    }
}

/// A leaf that would change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// Its place, such as `spec.template.spec.containers[name=web].image`.
    pub path: String,
    /// What is live, as JSON; none when it is new.
    pub old: Option<String>,
    /// What it would be, as JSON; none when it would go.
    pub new: Option<String>,
}

/// An object of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedObject {
    /// Its kind and version.
    pub kind: Kind,
    /// Its namespace; empty for cluster-scoped objects.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// What would become of it.
    pub change: ObjectChange,
    /// The leaves that would change.
    pub leaves: Vec<Leaf>,
    /// How many pods would be replaced; none when none would.
    pub restarts: Option<i64>,
    /// Why the server was not asked and it was computed in memory; empty when the server was.
    pub in_memory: String,
    /// Why the write would fail; empty when it would not.
    pub fault: String,
    /// Fields of others that an apply would change: what the fault is then.
    pub conflicts: Vec<FieldConflict>,
}

pub(super) fn object(item: &Item, change: ObjectChange) -> PlannedObject {
    PlannedObject {
        kind: item.kind().clone(),
        namespace: item.target.namespace.clone(),
        name: item.target.name.clone(),
        change,
        leaves: Vec::new(),
        restarts: None,
        in_memory: String::new(),
        fault: String::new(),
        conflicts: Vec::new(),
    }
}

pub(super) async fn create(session: &Session<'_>, item: &Item, created: &Created) -> PlannedObject {
    let mut planned = object(item, ObjectChange::Create);
    if let Some(why) = created.lacking(item) {
        why.clone_into(&mut planned.in_memory);
    } else if let Err(error) = session.writer().create_one(item, true).await {
        match error.kind() {
            ErrorKind::Forbidden => planned.in_memory = error.to_string(),
            _ => planned.fault = error.to_string(),
        }
    }
    planned
}

/// What becomes of an object that is there.
pub(super) struct Update {
    pub(super) planned: PlannedObject,
    /// Whether anything is sent.
    pub(super) is_sent: bool,
    /// Whether what is sent changes the object, as far as can be told without the server.
    pub(super) is_patched: bool,
}

pub(super) async fn update(
    session: &Session<'_>,
    item: &Item,
    original: &Value,
    live: &Value,
    custom: CustomMerge,
) -> Update {
    let refused = |fault| PlannedObject { fault, ..object(item, ObjectChange::Change) };
    let (is_applied, told) = match session.method {
        Method::Apply { force_conflicts } => {
            (true, session.writer().try_apply(item, live, force_conflicts).await)
        }
        Method::Patch | Method::Replace => (false, Ok(None)),
    };
    match told {
        Ok(None) => {}
        Ok(Some(after)) => {
            let planned = changed(item, live, &after);
            let is_patched = planned.change == ObjectChange::Change;
            return Update { planned, is_sent: true, is_patched };
        }
        Err(ObjectError::Fields { conflicts, .. }) => {
            let fault = "fields belong to other managers".to_owned();
            let planned = PlannedObject { conflicts, ..refused(fault) };
            return Update { planned, is_sent: true, is_patched: true };
        }
        Err(error) => {
            let planned = refused(error_chain(&error));
            return Update { planned, is_sent: true, is_patched: true };
        }
    }
    // Once the release's fields are taken over, an apply drops what such a patch drops.
    let custom = if is_applied { CustomMerge::ThreeWay } else { custom };
    let (planned, is_patched) = match patch_for(original, &item.value, live, custom) {
        Err(error) => (refused(format!("failed to create patch: {error}")), false),
        Ok(None) => (object(item, ObjectChange::None), false),
        Ok(Some(patch)) => (change(session, item, live, &patch).await, true),
    };
    Update { planned, is_sent: is_applied || is_patched, is_patched }
}

async fn change(session: &Session<'_>, item: &Item, live: &Value, patch: &Patch) -> PlannedObject {
    let mut planned = object(item, ObjectChange::Change);
    let after = match session.writer().patch_one(item, patch, true).await {
        Ok(after) => after,
        Err(error) => {
            match error.kind() {
                ErrorKind::Forbidden => planned.in_memory = error.to_string(),
                _ => planned.fault = error.to_string(),
            }
            in_memory(item, live, patch).unwrap_or_else(|| live.clone())
        }
    };
    let PlannedObject { in_memory, fault, .. } = planned;
    let planned = changed(item, live, &after);
    let change = if fault.is_empty() { planned.change } else { ObjectChange::Change };
    PlannedObject { change, in_memory, fault, ..planned }
}

/// An object that would be another one.
fn changed(item: &Item, live: &Value, after: &Value) -> PlannedObject {
    let leaves = leaves(live, after);
    let change = if leaves.is_empty() { ObjectChange::None } else { ObjectChange::Change };
    let restarts = restarts(item, live, after);
    PlannedObject { leaves, restarts, ..object(item, change) }
}

/// The object after a patch, without the server.
fn in_memory(item: &Item, live: &Value, patch: &Patch) -> Option<Value> {
    use mergepatch::Schemas as _;
    let kind = item.kind();
    let schema = mergepatch::embedded().schema(&kind.api_version(), &kind.kind);
    let patch_type = match patch.kind {
        PatchKind::Strategic => mergepatch::PatchType::Strategic,
        _ => mergepatch::PatchType::Merge,
    };
    let patch = mergepatch::Patch { patch_type, body: patch.body.clone() };
    mergepatch::apply(live, &patch, schema).ok()
}

/// What the server keeps about an object, which says nothing about what it is.
const VOLATILE: [&str; 5] =
    ["managedFields", "resourceVersion", "generation", "uid", "creationTimestamp"];

/// The leaves that differ; credentials are not shown.
fn leaves(live: &Value, after: &Value) -> Vec<Leaf> {
    let plain = |object: &Value| {
        let mut object = object.clone();
        if let Some(object) = object.as_object_mut() {
            object.remove("status");
            if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
                metadata.retain(|name, _| !VOLATILE.contains(&name.as_str()));
            }
        }
        let limits = goyaml::Limits::default();
        goyaml::json::from_json_exact(object.to_string().as_bytes(), &limits).unwrap_or_default()
    };
    let (live, after) = (plain(live), plain(after));
    let redacted = |object: &goyaml::Value| {
        let mut object = object.clone();
        redact::object(&mut object);
        object
    };
    let (shown_live, shown_after) = (redacted(&live), redacted(&after));
    compare(&live, &after, Lists::ByKey)
        .into_iter()
        .map(|change| {
            let Change { path, old, new } = change;
            let show = |value: Option<goyaml::Value>, shown: &goyaml::Value| {
                let value = value?;
                // The order of a list is no value of its own: names only.
                let is_order = matches!(path.0.last(), Some(Step::Order));
                let shown = if is_order { Some(&value) } else { path.find(shown) };
                let shown = shown.filter(|_| !is_named(&path));
                let json = shown.and_then(|value| goyaml::json::to_json(value).ok());
                Some(json.unwrap_or_else(|| format!("\"{}\"", redact::HIDDEN)))
            };
            let (old, new) = (show(old, &shown_live), show(new, &shown_after));
            Leaf { path: path.to_string(), old, new }
        })
        .collect()
}

/// Whether the place is an entry of an object's data whose key names a credential.
fn is_named(path: &LeafPath) -> bool {
    match path.0.as_slice() {
        [Step::Key(field), Step::Key(key), ..] if field == "data" => redact::names_credential(key),
        _ => false,
    }
}

/// How many pods a change of the pod template replaces.
fn restarts(item: &Item, live: &Value, after: &Value) -> Option<i64> {
    let kind = item.kind();
    if kind.group != "apps" || live.pointer("/spec/template") == after.pointer("/spec/template") {
        return None;
    }
    let count = |path: &str| live.pointer(path).and_then(Value::as_i64);
    let strategy = after.pointer("/spec/updateStrategy/type").and_then(Value::as_str);
    match kind.kind.as_str() {
        "Deployment" if after.pointer("/spec/paused") == Some(&json!(true)) => None,
        "Deployment" => Some(count("/spec/replicas").unwrap_or(1)),
        "StatefulSet" if strategy != Some("OnDelete") => Some(count("/spec/replicas").unwrap_or(1)),
        "DaemonSet" if strategy != Some("OnDelete") => {
            Some(count("/status/desiredNumberScheduled").unwrap_or_default())
        }
        _ => None,
    }
}

pub(super) async fn delete(session: &Session<'_>, item: &Item) -> PlannedObject {
    let live = match session.cluster.get(&item.target).await {
        Ok(live) => live,
        Err(error) => {
            let fault = if error.is_not_found() { String::new() } else { error.to_string() };
            return PlannedObject { fault, ..object(item, ObjectChange::Leave) };
        }
    };
    if is_kept(&live) {
        return object(item, ObjectChange::Leave);
    }
    let mut planned = object(item, ObjectChange::Delete);
    let options = DeleteOptions {
        propagation: Some(Propagation::Background),
        dry_run: true,
        ..DeleteOptions::default()
    };
    if let Err(error) = session.cluster.delete(&item.target, &options).await {
        match error.kind() {
            ErrorKind::Forbidden => planned.in_memory = error.to_string(),
            _ => planned.fault = error.to_string(),
        }
    }
    planned
}
