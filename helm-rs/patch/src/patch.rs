//! A patch of any type, and the choice of its type.

use serde_json::Value;

use crate::error::Error;
use crate::merge::Precondition;
use crate::schema::{Schema, Schemas};
use crate::{json, merge, strategic};

/// The types of patches that the API server takes, server-side apply aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchType {
    /// A strategic merge patch: built-in kinds only.
    Strategic,
    /// A JSON merge patch (RFC 7386).
    Merge,
    /// A JSON patch (RFC 6902): a list of operations.
    Json,
}

impl PatchType {
    /// The request's `Content-Type`.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Strategic => "application/strategic-merge-patch+json",
            Self::Merge => "application/merge-patch+json",
            Self::Json => "application/json-patch+json",
        }
    }
}

/// A patch as it is sent.
#[derive(Debug, Clone, PartialEq)]
pub struct Patch {
    /// How the body is meant.
    pub patch_type: PatchType,
    /// The patch: an object, or for a JSON patch a list.
    pub body: Value,
}

impl Patch {
    /// Whether there is nothing to send. Helm sends no patch that reads `{}`.
    pub fn is_empty(&self) -> bool {
        match &self.body {
            Value::Object(fields) => fields.is_empty(),
            Value::Array(operations) => operations.is_empty(),
            Value::Null => true,
            _ => false,
        }
    }

    /// The bytes that Go would send.
    pub fn to_json(&self) -> String {
        json::to_json(&self.body)
    }
}

/// The three-way patch that `kubectl apply` would send: strategic where there is a schema, else
/// a JSON merge patch, which refuses to change apiVersion, kind or name.
///
/// `original` is what was applied last, `modified` what is wanted, `current` what is live. A live
/// leaf that neither names stays.
///
/// # Errors
/// [`Error`] as [`strategic::three_way`] and [`merge::three_way`] say.
pub fn three_way(
    original: &Value,
    modified: &Value,
    current: &Value,
    schema: Option<Schema<'_>>,
) -> Result<Patch, Error> {
    let (patch_type, body) = match schema {
        Some(schema) => {
            (PatchType::Strategic, strategic::three_way(original, modified, current, schema)?)
        }
        None => (PatchType::Merge, merge::three_way(original, modified, current, &SAME_OBJECT)?),
    };
    Ok(Patch { patch_type, body })
}

/// What makes an object the one that it is.
const SAME_OBJECT: [Precondition<'static>; 3] =
    [Precondition::Key("apiVersion"), Precondition::Key("kind"), Precondition::MetadataKey("name")];

/// How Helm merges objects of kinds that its client has no type for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Untyped {
    /// From the last revision to this one, whatever is live: an upgrade.
    TwoWay,
    /// With the live object: an install with `--take-ownership`, and Ichor's takeover.
    ThreeWay,
}

/// The patch that Helm sends to change `current` (`pkg/kube/client.go`, `createPatch`).
///
/// With [`crate::embedded`] as `schemas` it is Helm's patch to the byte; other sources make
/// strategic patches for more kinds. `current` is null when the object is gone.
///
/// # Errors
/// [`Error`] as [`strategic::three_way`] and [`merge`] say.
pub fn helm(
    original: &Value,
    modified: &Value,
    current: &Value,
    schemas: &(impl Schemas + ?Sized),
    untyped: Untyped,
) -> Result<Patch, Error> {
    let schema = schema_of(modified, schemas);
    if schema.is_none() && untyped == Untyped::TwoWay {
        let body = merge::two_way(original, modified)?;
        return Ok(Patch { patch_type: PatchType::Merge, body });
    }
    three_way(original, modified, current, schema)
}

/// The schema that Helm merges an object by, if any. Helm takes the old custom resource
/// definitions, which it has a type for, as untyped, and so whatever does not fit its type.
fn schema_of<'a>(object: &Value, schemas: &'a (impl Schemas + ?Sized)) -> Option<Schema<'a>> {
    let word = |field| object.get(field).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (word("apiVersion"), word("kind"));
    let old_definition =
        (api_version, kind) == ("apiextensions.k8s.io/v1beta1", "CustomResourceDefinition");
    if old_definition {
        return None;
    }
    schemas.schema(api_version, kind).filter(|schema| schema.fits(object))
}

/// Applies a patch to an object as the API server does, without its defaults and checks.
///
/// # Errors
/// [`Error`]; [`Error::UnsupportedStrategic`] for a strategic patch without a schema, since the
/// server takes none for custom resources.
pub fn apply(current: &Value, patch: &Patch, schema: Option<Schema<'_>>) -> Result<Value, Error> {
    match (patch.patch_type, schema) {
        (PatchType::Strategic, Some(schema)) => strategic::apply(current, &patch.body, schema),
        (PatchType::Strategic, None) => Err(Error::UnsupportedStrategic),
        (PatchType::Merge, _) => merge::apply(current, &patch.body),
        (PatchType::Json, _) => operations(current, &patch.body),
    }
}

/// A JSON patch, by the `json-patch` crate. All operations take effect or none.
fn operations(current: &Value, patch: &Value) -> Result<Value, Error> {
    let wrong = |reason: String| Error::JsonPatch { reason };
    let operations: json_patch::Patch =
        serde_json::from_value(patch.clone()).map_err(|error| wrong(error.to_string()))?;
    let mut changed = current.clone();
    json_patch::patch(&mut changed, &operations).map_err(|error| wrong(error.to_string()))?;
    Ok(changed)
}
