//! Creates, updates, patches and deletes, as the API server's generic registry does them
//! (`apiserver/pkg/registry/generic/registry/store.go`).

use std::sync::Arc;

use jiff::Timestamp;
use mergepatch::Schemas as _;
use serde_json::{Map, Value, json};

use super::state::{Key, State, finalizers, meta, metadata, set};
use super::table::{Generation, generation, is_builtin_group, returns_deleted};
use super::{defaults, owners, rollout, status, validate};
use crate::cluster::{
    ClusterError, DeleteOptions, Patch, PatchKind, Propagation, Resource, Status, Target,
    WriteOptions,
};

/// What a write needs to know beside the state.
pub(super) struct Context<'a> {
    pub(super) now: Timestamp,
    /// Who writes: the field manager where the options name none.
    pub(super) agent: &'a str,
    /// Whether controllers are simulated.
    pub(super) controllers: bool,
}

impl Context<'_> {
    fn time(&self) -> Value {
        self.now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string().into()
    }

    fn manager<'a>(&'a self, options: &'a WriteOptions) -> &'a str {
        if options.field_manager.is_empty() { self.agent } else { &options.field_manager }
    }
}

fn is_definition(resource: &Resource) -> bool {
    resource.kind.group == "apiextensions.k8s.io" && resource.plural == "customresourcedefinitions"
}

fn has_status(resource: &Resource) -> bool {
    resource.subresources.iter().any(|name| name == "status")
}

/// Gives an object the kind that it is asked for in.
pub(super) fn shown(resource: &Resource, object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(fields) = object.as_object_mut() {
        fields.insert("apiVersion".to_owned(), resource.kind.api_version().into());
        fields.insert("kind".to_owned(), resource.kind.kind.as_str().into());
    }
    object
}

pub(super) fn create(
    state: &mut State,
    context: &Context<'_>,
    target: &Target,
    object: &Value,
    options: &WriteOptions,
) -> Result<Value, ClusterError> {
    let resource = &*target.resource;
    if !target.subresource.is_empty() {
        return Err(ClusterError::Unsupported {
            what: format!("creating {target}: the subresources status and scale alone are known"),
        });
    }
    validate::placed(&Target { name: String::new(), ..target.clone() }, object)?;
    if !meta(object, "resourceVersion").is_empty() {
        return Err(Status::new(
            500,
            "",
            "resourceVersion should not be set on objects to be created",
        )
        .into());
    }
    let mut object = shown(resource, object);
    if meta(&object, "name").is_empty() && !meta(&object, "generateName").is_empty() {
        let name = format!("{}{}", meta(&object, "generateName"), state.suffix());
        set(&mut object, "name", name.into());
    }
    if resource.namespaced {
        set(&mut object, "namespace", target.namespace.as_str().into());
        namespace_takes(state, target, meta(&object, "name"))?;
    }
    for field in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "managedFields"] {
        set(&mut object, field, Value::Null);
    }
    let key = Key::new(resource, &target.namespace, meta(&object, "name"));
    if has_status(resource) {
        drop_field(&mut object, "status");
    }
    defaults::apply(&mut object);
    validate::metadata(resource, &object)?;
    if state.get(&key).is_some() {
        return Err(status::already_exists(resource, &key.name).into());
    }
    set(&mut object, "uid", state.uid().into());
    set(&mut object, "creationTimestamp", context.time());
    if generation(resource) != Generation::None {
        set(&mut object, "generation", 1.into());
    }
    if is_definition(resource) {
        establish(&mut object, context);
    }
    let by = owners::Writer { manager: context.manager(options), time: context.time() };
    owners::record(&mut object, None, &by);
    if options.dry_run {
        return Ok(object);
    }
    defaults::allocate(&mut object, state.objects.len());
    let object = state.store(key.clone(), object, is_definition(resource));
    if context.controllers {
        rollout::settle(state, &key, &context.time());
    }
    Ok(Value::clone(&object))
}

/// Whether a namespace is there and takes new objects.
fn namespace_takes(state: &State, target: &Target, name: &str) -> Result<(), Status> {
    let namespaces = Resource::builtin("v1", "Namespace", "namespaces", false);
    let namespace = state
        .get(&Key::new(&namespaces, "", &target.namespace))
        .ok_or_else(|| status::not_found(&namespaces, &target.namespace))?;
    if meta(namespace, "deletionTimestamp").is_empty() {
        return Ok(());
    }
    let resource = target.resource.qualified();
    let (name, namespace) = (crate::gotext::quote(name), &target.namespace);
    let mut refusal = Status::new(
        403,
        "Forbidden",
        format!(
            "{resource} {name} is forbidden: unable to create new content in namespace {namespace} \
             because it is being terminated"
        ),
    );
    refusal.details = json!({ "causes": [{
        "reason": "NamespaceTerminating",
        "message": format!("namespace {namespace} is being terminated"),
        "field": "metadata.namespace",
    }]});
    Err(refusal)
}

fn drop_field(object: &mut Value, field: &str) {
    if let Some(fields) = object.as_object_mut() {
        fields.remove(field);
    }
}

/// What the server's own controllers do to a new CRD, done at once.
fn establish(definition: &mut Value, context: &Context<'_>) {
    let names = definition.pointer("/spec/names").cloned().unwrap_or_default();
    let versions = definition.pointer("/spec/versions").and_then(Value::as_array);
    let stored: Vec<Value> = versions
        .into_iter()
        .flatten()
        .filter(|version| version.get("storage") == Some(&Value::Bool(true)))
        .filter_map(|version| version.get("name").cloned())
        .collect();
    let condition = |kind: &str, reason: &str, message: &str| {
        json!({
            "type": kind, "status": "True", "lastTransitionTime": context.time(),
            "reason": reason, "message": message,
        })
    };
    definition["status"] = json!({
        "acceptedNames": names,
        "conditions": [
            condition("NamesAccepted", "NoConflicts", "no conflicts found"),
            condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        ],
        "storedVersions": stored,
    });
}

/// How an update was asked for; refusals differ.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    Put,
    Patch,
}

pub(super) fn update(
    state: &mut State,
    context: &Context<'_>,
    target: &Target,
    object: &Value,
    options: &WriteOptions,
) -> Result<Value, ClusterError> {
    validate::placed(target, object)?;
    let before = live(state, target)?;
    commit(state, context, target, &before, object.clone(), (options, Asked::Put))
}

pub(super) fn patch(
    state: &mut State,
    context: &Context<'_>,
    target: &Target,
    patch: &Patch,
    options: &WriteOptions,
) -> Result<Value, ClusterError> {
    let resource = &*target.resource;
    if patch.kind == PatchKind::Apply {
        return Err(ClusterError::Unsupported { what: format!("server-side apply of {target}") });
    }
    let before = live(state, target)?;
    let current = shown(resource, &before);
    let after = match patch.kind {
        PatchKind::Merge | PatchKind::Strategic if !patch.body.is_object() => {
            return Err(status::bad_request(
                "error decoding patch: json: cannot unmarshal array into Go value of type \
                 map[string]interface {}",
            )
            .into());
        }
        PatchKind::Strategic => {
            let kind = &resource.kind;
            let schema = mergepatch::embedded().schema(&kind.api_version(), &kind.kind);
            let Some(schema) = schema.filter(|_| is_builtin_group(&kind.group)) else {
                return Err(unsupported_patch().into());
            };
            mergepatch::strategic::apply(&current, &patch.body, schema)
                .map_err(|error| status::bad_request(error.to_string()))?
        }
        PatchKind::Json => {
            let operations: json_patch::Patch = serde_json::from_value(patch.body.clone())
                .map_err(|error| status::bad_request(format!("error decoding patch: {error}")))?;
            let mut after = current.clone();
            json_patch::patch(&mut after, &operations).map_err(|_| status::rejected())?;
            after
        }
        PatchKind::Merge | PatchKind::Apply => mergepatch::merge::apply(&current, &patch.body)
            .map_err(|error| status::bad_request(error.to_string()))?,
    };
    validate::placed(target, &after)?;
    commit(state, context, target, &before, after, (options, Asked::Patch))
}

fn unsupported_patch() -> Status {
    Status::new(
        415,
        "UnsupportedMediaType",
        "the body of the request was in an unknown format - accepted media types include: \
         application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
    )
}

fn live(state: &State, target: &Target) -> Result<Arc<Value>, ClusterError> {
    if !matches!(target.subresource.as_str(), "" | "status") {
        return Err(ClusterError::Unsupported { what: format!("writing {target}") });
    }
    let object = state.get(&Key::of(target)).cloned();
    object.ok_or_else(|| status::not_found(&target.resource, &target.name).into())
}

/// Stores a changed object, after everything that the server checks and sets itself.
fn commit(
    state: &mut State,
    context: &Context<'_>,
    target: &Target,
    before: &Arc<Value>,
    mut after: Value,
    (options, asked): (&WriteOptions, Asked),
) -> Result<Value, ClusterError> {
    let resource = &*target.resource;
    let key = Key::of(target);
    same_object(target, before, &after, asked)?;
    after = shown(resource, &after);
    keep_metadata(before, &mut after);
    if target.subresource == "status" {
        let status = after.get("status").cloned();
        after = Value::clone(before);
        if let (Some(status), Some(fields)) = (status, after.as_object_mut()) {
            fields.insert("status".to_owned(), status);
        }
    } else if has_status(resource) {
        match before.get("status") {
            Some(status) => after["status"] = status.clone(),
            None => drop_field(&mut after, "status"),
        }
    }
    defaults::apply(&mut after);
    defaults::keep_allocated(before, &mut after);
    validate::metadata(resource, &after)?;
    validate::no_new_finalizers(resource, before, &after)?;
    if *before.as_ref() == with_version_of(&after, before) {
        return Ok(shown(resource, before));
    }
    grow(resource, before, &mut after);
    let by = owners::Writer { manager: context.manager(options), time: context.time() };
    owners::record(&mut after, Some(before), &by);
    if options.dry_run {
        set(&mut after, "resourceVersion", meta(before, "resourceVersion").into());
        return Ok(after);
    }
    if !meta(&after, "deletionTimestamp").is_empty() && finalizers(&after).is_empty() {
        set(&mut after, "resourceVersion", meta(before, "resourceVersion").into());
        state.remove(&key);
        return Ok(after);
    }
    let object = state.store(key.clone(), after, is_definition(resource));
    if context.controllers {
        rollout::settle(state, &key, &context.time());
    }
    Ok(Value::clone(&object))
}

/// The object with what it cannot change anyhow taken from before, to see whether it changed.
fn with_version_of(after: &Value, before: &Value) -> Value {
    let mut after = after.clone();
    set(&mut after, "resourceVersion", meta(before, "resourceVersion").into());
    // The stored object may be of another version of its group.
    for field in ["apiVersion", "kind"] {
        if let (Some(value), Some(fields)) = (before.get(field), after.as_object_mut()) {
            fields.insert(field.to_owned(), value.clone());
        }
    }
    after
}

fn same_object(target: &Target, before: &Value, after: &Value, asked: Asked) -> Result<(), Status> {
    let resource = &*target.resource;
    let (uid, known) = (meta(after, "uid"), meta(before, "uid"));
    if !uid.is_empty() && uid != known {
        if asked == Asked::Patch {
            let problem = || status::Invalid::value("metadata.uid", uid, "field is immutable");
            return Err(status::invalid(resource, &target.name, &[problem(), problem()]));
        }
        let group = if resource.kind.group.is_empty() || is_builtin_group(&resource.kind.group) {
            String::new()
        } else {
            format!("{}/", resource.kind.group)
        };
        let namespace = if target.namespace.is_empty() {
            String::new()
        } else {
            format!("{}/", target.namespace)
        };
        let why = format!(
            "StorageError: invalid object, Code: 4, Key: /registry/{group}{}/{namespace}{}, \
             ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: \
             {uid}, UID in object meta: {known}",
            resource.plural, target.name
        );
        return Err(status::conflict(resource, &target.name, &why));
    }
    let version = meta(after, "resourceVersion");
    if !version.is_empty() && version != meta(before, "resourceVersion") {
        return Err(status::modified(resource, &target.name));
    }
    Ok(())
}

/// What no client can change.
fn keep_metadata(before: &Value, after: &mut Value) {
    let fields = [
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
        "generateName",
        "namespace",
        "name",
        "managedFields",
    ];
    let Some(known) = before.get("metadata").and_then(Value::as_object) else { return };
    let Some(metadata) = metadata(after) else { return };
    for field in fields {
        match known.get(field) {
            Some(value) => metadata.insert(field.to_owned(), value.clone()),
            None => metadata.remove(field),
        };
    }
    // Empty maps and lists are not stored.
    metadata.retain(|_, value| match value {
        Value::Object(fields) => !fields.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Null => false,
        _ => true,
    });
}

/// Makes the generation grow when what it counts has changed.
fn grow(resource: &Resource, before: &Value, after: &mut Value) {
    let without = |object: &Value, fields: &[&str]| {
        let mut rest = object.as_object().cloned().unwrap_or_default();
        for field in fields.iter().chain(&["apiVersion", "kind"]) {
            rest.remove(*field);
        }
        rest
    };
    let annotations = |object: &Value| {
        let annotations = object.pointer("/metadata/annotations").and_then(Value::as_object);
        annotations.cloned().unwrap_or_else(Map::new)
    };
    let changed = match generation(resource) {
        Generation::None | Generation::Fixed => false,
        Generation::Field(field) => before.get(field) != after.get(field),
        Generation::SpecAndAnnotations => {
            before.get("spec") != after.get("spec") || annotations(before) != annotations(after)
        }
        Generation::AllButMetadata => {
            without(before, &["metadata"]) != without(after, &["metadata"])
        }
        Generation::AllButStatus => {
            let fields = ["metadata", "status"];
            without(before, &fields) != without(after, &fields)
        }
    };
    if changed {
        let known = before.pointer("/metadata/generation").and_then(Value::as_i64);
        set(after, "generation", (known.unwrap_or_default() + 1).into());
    }
    defaults::template_generation(before, after);
}

pub(super) fn delete(
    state: &mut State,
    context: &Context<'_>,
    target: &Target,
    options: &DeleteOptions,
) -> Result<Value, ClusterError> {
    let resource = &*target.resource;
    let key = Key::of(target);
    let before = live(state, target)?;
    let uid = meta(&before, "uid").to_owned();
    if !options.uid.is_empty() && options.uid != uid {
        let why = format!(
            "the UID in the precondition ({}) does not match the UID in record ({uid}). The object \
             might have been deleted and then recreated",
            options.uid
        );
        return Err(status::precondition(resource, &target.name, &why).into());
    }
    let version = meta(&before, "resourceVersion");
    if !options.resource_version.is_empty() && options.resource_version != version {
        let why = format!(
            "the ResourceVersion in the precondition ({}) does not match the ResourceVersion in \
             record ({version}). The object might have been modified",
            options.resource_version
        );
        return Err(status::precondition(resource, &target.name, &why).into());
    }
    if !finalizers(&before).is_empty() {
        let mut marked = shown(resource, &before);
        if meta(&before, "deletionTimestamp").is_empty() {
            set(&mut marked, "deletionTimestamp", context.time());
            set(&mut marked, "deletionGracePeriodSeconds", 0.into());
            if let Some(known) = before.pointer("/metadata/generation").and_then(Value::as_i64) {
                set(&mut marked, "generation", (known + 1).into());
            }
            if !options.dry_run {
                return Ok(Value::clone(&state.store(key, marked, false)));
            }
        }
        return Ok(marked);
    }
    let answer = if returns_deleted(resource) {
        shown(resource, &before)
    } else {
        let mut details = json!({ "name": target.name, "kind": resource.plural, "uid": uid });
        if !resource.kind.group.is_empty() {
            details["group"] = resource.kind.group.as_str().into();
        }
        json!({
            "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Success",
            "details": details,
        })
    };
    if !options.dry_run {
        state.remove(&key);
        if key.group.is_empty() && key.plural == "namespaces" {
            empty_namespace(state, &key.name);
        }
        if is_definition(resource) {
            drop_custom_objects(state, &before);
        }
        if options.propagation != Some(Propagation::Orphan) {
            collect(state, &uid);
        }
    }
    Ok(answer)
}

/// What the namespace controller does, done at once.
fn empty_namespace(state: &mut State, namespace: &str) {
    let keys: Vec<_> =
        state.objects.keys().filter(|key| key.namespace == namespace).cloned().collect();
    for key in keys {
        state.remove(&key);
    }
}

/// A CRD takes its objects with it.
fn drop_custom_objects(state: &mut State, definition: &Value) {
    let text = |pointer| definition.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (group, plural) = (text("/spec/group"), text("/spec/names/plural"));
    let keys: Vec<_> = state
        .objects
        .keys()
        .filter(|key| key.group == group && key.plural == plural)
        .cloned()
        .collect();
    for key in keys {
        state.remove(&key);
    }
}

/// What the garbage collector does, done at once: deletes what only this owner owned.
fn collect(state: &mut State, owner: &str) {
    let mut gone = vec![owner.to_owned()];
    while let Some(owner) = gone.pop() {
        let owned: Vec<_> = state
            .objects
            .iter()
            .filter(|(_, object)| {
                let owners = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
                let mut owners = owners.into_iter().flatten();
                let is_owner = |reference: &Value| {
                    reference.get("uid").and_then(Value::as_str) == Some(&owner)
                };
                owners.clone().any(is_owner) && owners.all(is_owner)
            })
            .map(|(key, object)| (key.clone(), meta(object, "uid").to_owned()))
            .collect();
        for (key, uid) in owned {
            state.remove(&key);
            gone.push(uid);
        }
    }
}
