//! What can be wrong with documents, patches and schemas.

use crate::schema::LookupError;
use crate::value::{GoType, Object, object_text, text_as_string};

use serde_json::Value;

/// Why a patch cannot be made or applied. The texts are apimachinery's
/// (`util/mergepatch/errors.go`, `util/strategicpatch`) and json-patch's, since Helm prints them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A document of a strategic merge patch is no object.
    #[error("invalid JSON document")]
    BadDocument,
    /// A document of a JSON merge patch is neither an object nor a list.
    #[error("Invalid JSON Document")]
    BadMergeDocument,
    /// The patch of a JSON merge patch is neither an object nor a list.
    #[error("Invalid JSON Patch")]
    BadMergePatch,
    /// One document of a JSON merge patch is a list and the other is none.
    #[error("Mismatched JSON Documents")]
    MismatchedDocuments,
    /// A strategic merge patch for a kind without a schema.
    #[error("strategic merge patch format is not supported")]
    UnsupportedStrategic,
    /// A list that is merged holds lists.
    #[error("lists of lists are not supported")]
    ListOfLists,
    /// A `$deleteFromPrimitiveList` directive is malformed.
    #[error("invalid patch format of primitive list")]
    PrimitiveListFormat,
    /// A `$retainKeys` directive is malformed, or the patch sets a field that it does not name.
    #[error("invalid patch format of retainKeys")]
    RetainKeysFormat,
    /// A `$setElementOrder` directive is malformed, or two of them disagree.
    #[error("invalid patch format of setElementOrder list")]
    SetElementOrderFormat,
    /// An item of a list that is merged by key has no such key.
    #[error("map: {object} does not contain declared merge key: {key}")]
    NoMergeKey {
        /// The item, as Go prints a map.
        object: String,
        /// The key's name.
        key: String,
    },
    /// A value is of another type than the operation needs.
    #[error("expected a {expected}, but received a {received}")]
    BadType {
        /// Go's name of the type that is needed.
        expected: &'static str,
        /// Go's name of the type found.
        received: &'static str,
    },
    /// A `$patch` directive has a value without meaning.
    #[error("unknown patch type: {directive} in map: {object}")]
    UnknownDirective {
        /// The directive's value, as Go prints it.
        directive: String,
        /// The object that holds it, as Go prints a map.
        object: String,
    },
    /// A `$patch` directive is no text.
    #[error("invalid value for special key: $patch")]
    DirectiveType,
    /// The item of a merged list says `$patch: merge`.
    #[error("merging lists cannot yet be specified in the patch")]
    MergeDirectiveInList,
    /// A merged list holds items of several types.
    #[error("list element types are not identical: {lists}")]
    MixedList {
        /// The lists, as Go prints them.
        lists: String,
    },
    /// Every list that an order is wanted for is empty.
    #[error("no elements in any of the given slices")]
    NoElements,
    /// A list of objects is to be merged, but the schema names no key.
    #[error("cannot merge lists without merge key for {schema}")]
    NoDeclaredKey {
        /// The name of the kind of type that the items are.
        schema: String,
    },
    /// Items of a list stand in another order than `$setElementOrder` says.
    #[error("The order in patch list:\n{list}\n doesn't match $setElementOrder list:\n{order}\n")]
    OrderMismatch {
        /// The list, as Go prints it.
        list: String,
        /// The order, as Go prints it.
        order: String,
    },
    /// The item at a position of a list that is merged by key is no object.
    #[error("value for key {position} is not a map")]
    ItemNotMap {
        /// The position, from 0.
        position: usize,
    },
    /// Both halves of a three-way patch bring `$retainKeys`, and they disagree.
    #[error(
        "{original} and {patch} are not deep equal: this may happen when calculating the 3-way diff patch"
    )]
    RetainKeysDiffer {
        /// The list of the deletions, as Go prints it.
        original: String,
        /// The list of the changes, as Go prints it.
        patch: String,
    },
    /// The schema does not know what the patch needs to know.
    #[error(transparent)]
    Lookup(#[from] LookupError),
    /// A three-way JSON merge patch would change a field that must not change.
    #[error("precondition failed for: {patch}")]
    Precondition {
        /// The patch, as Go prints a map.
        patch: String,
    },
    /// An operation of a JSON patch (RFC 6902) cannot be applied, or the patch is malformed. The
    /// text is not Go's.
    #[error("{reason}")]
    JsonPatch {
        /// What is wrong and where.
        reason: String,
    },
    /// The Go libraries panic on this input; the text is the panic's.
    #[error("{0}")]
    GoPanics(String),
    /// A document is nested deeper than this crate follows.
    #[error("the document is nested deeper than {limit} levels")]
    TooDeep {
        /// The limit, in levels of lists and objects.
        limit: usize,
    },
}

impl Error {
    /// mergepatch's `ErrBadArgType`.
    pub(crate) fn bad_type(expected: GoType, received: &Value) -> Self {
        Self::BadType { expected: expected.name(), received: GoType::of(received).name() }
    }

    /// mergepatch's `ErrNoMergeKey`.
    pub(crate) fn no_merge_key(object: &Object, key: &str) -> Self {
        Self::NoMergeKey { object: object_text(object), key: key.to_owned() }
    }

    /// mergepatch's `ErrBadPatchType`.
    pub(crate) fn unknown_directive(directive: &Value, object: &Object) -> Self {
        Self::UnknownDirective { directive: text_as_string(directive), object: object_text(object) }
    }

    /// What Go's runtime says when `sliceElementType` asks a null for its type.
    pub(crate) fn null_item() -> Self {
        Self::GoPanics("runtime error: invalid memory address or nil pointer dereference".into())
    }
}
