//! Strategic merge patches: `k8s.io/apimachinery/pkg/util/strategicpatch/patch.go`, function by
//! function, quirks included, since a patch must be the one that Helm sends.
//!
//! Go walks maps in random order, which decides what comes out in a few malformed cases (two
//! errors in one document, `$deleteFromPrimitiveList` beside an addition of the same value). Here
//! fields are taken by name.

mod diff;
mod list;
mod merge;

use serde_json::Value;

use crate::error::Error;
use crate::schema::Schema;
use crate::value::{Object, check_depth};

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM_PRIMITIVE_LIST: &str = "$deleteFromPrimitiveList";
const SET_ELEMENT_ORDER: &str = "$setElementOrder";

/// A document's object. Null counts as an empty one, as in Go.
fn object(document: &Value) -> Result<std::borrow::Cow<'_, Object>, Error> {
    check_depth(document)?;
    match document {
        Value::Object(object) => Ok(std::borrow::Cow::Borrowed(object)),
        Value::Null => Ok(std::borrow::Cow::Owned(Object::new())),
        _ => Err(Error::BadDocument),
    }
}

/// The patch that makes `modified` of `original` (`CreateTwoWayMergePatch`).
///
/// # Errors
/// [`Error`] when a document is no object, or a list that is merged cannot be.
pub fn two_way(original: &Value, modified: &Value, schema: Schema<'_>) -> Result<Value, Error> {
    let (original, modified) = (object(original)?, object(modified)?);
    let options = diff::Options::changes_and_deletions();
    diff::maps(&original, &modified, schema, options).map(Value::Object)
}

/// The patch that Helm sends for a kind that it knows (`CreateThreeWayMergePatch` with
/// `overwrite`): what `modified` has otherwise than `current`, and the deletion of what
/// `original` had and `modified` has not. What only `current` has stays.
///
/// # Errors
/// As [`two_way`].
pub fn three_way(
    original: &Value,
    modified: &Value,
    current: &Value,
    schema: Schema<'_>,
) -> Result<Value, Error> {
    let (original, modified) = (object(original)?, object(modified)?);
    let current = object(current)?;
    let delta = diff::maps(&current, &modified, schema, diff::Options::changes())?;
    let deletions = diff::maps(&original, &modified, schema, diff::Options::deletions())?;
    merge::maps(deletions, delta, schema, merge::Side::Client).map(Value::Object)
}

/// Applies a patch as the API server does (`StrategicMergePatch`), without its defaults.
///
/// # Errors
/// [`Error`] when a document is no object or the patch is malformed.
pub fn apply(current: &Value, patch: &Value, schema: Schema<'_>) -> Result<Value, Error> {
    let (current, patch) = (object(current)?.into_owned(), object(patch)?.into_owned());
    merge::maps(current, patch, schema, merge::Side::Server).map(Value::Object)
}
