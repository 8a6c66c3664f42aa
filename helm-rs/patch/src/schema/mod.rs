//! How the fields of a kind are merged: which lists are merged by which key, which objects are
//! replaced whole.

mod fit;
mod go_types;
mod kept;
mod openapi;

pub use go_types::{Embedded, embedded};
pub use openapi::OpenApi;

/// Where patch metadata of kinds comes from.
pub trait Schemas {
    /// The schema of a kind, or none when this source does not know it: objects of such kinds are
    /// merged as plain JSON.
    fn schema(&self, api_version: &str, kind: &str) -> Option<Schema<'_>>;
}

/// The first of several sources that knows a kind.
impl<A: Schemas, B: Schemas> Schemas for (A, B) {
    fn schema(&self, api_version: &str, kind: &str) -> Option<Schema<'_>> {
        self.0.schema(api_version, kind).or_else(|| self.1.schema(api_version, kind))
    }
}

impl<S: Schemas + ?Sized> Schemas for &S {
    fn schema(&self, api_version: &str, kind: &str) -> Option<Schema<'_>> {
        (**self).schema(api_version, kind)
    }
}

impl<S: Schemas> Schemas for Option<S> {
    fn schema(&self, api_version: &str, kind: &str) -> Option<Schema<'_>> {
        self.as_ref()?.schema(api_version, kind)
    }
}

/// A place in a schema: a kind, or what one of its fields holds. strategicpatch's
/// `LookupPatchMeta`, which has the same two implementations.
#[derive(Debug, Clone, Copy)]
pub struct Schema<'a>(Place<'a>);

#[derive(Debug, Clone, Copy)]
enum Place<'a> {
    Go(go_types::TypeRef<'a>),
    OpenApi(openapi::Node<'a>),
}

/// What a schema says about one field. strategicpatch's `PatchMeta`.
#[derive(Debug, Clone, Copy)]
pub struct PatchMeta<'a> {
    /// `patchStrategy`, as written: words with commas between them.
    pub strategies: &'a str,
    /// `patchMergeKey`, or nothing.
    pub merge_key: &'a str,
}

/// What is left of a field's strategies besides `retainKeys`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Strategy {
    /// Lists are replaced, objects are merged.
    Plain,
    /// Lists are merged.
    Merge,
    /// Objects are replaced.
    Replace,
}

impl PatchMeta<'_> {
    /// Whether `retainKeys` is one of the strategies, and the other one
    /// (`extractRetainKeysPatchStrategy`).
    pub(crate) fn split(self) -> Result<(bool, Strategy), LookupError> {
        let words: Vec<&str> = self.strategies.split(',').collect();
        let (retain, rest) = match words[..] {
            [] | ["retainKeys"] => (words.len() == 1, ""),
            [one] => (false, one),
            ["retainKeys", other] | [other, "retainKeys"] => (true, other),
            _ => return Err(LookupError::Strategies { strategies: words.join(" ") }),
        };
        let strategy = match rest {
            "merge" => Strategy::Merge,
            "replace" => Strategy::Replace,
            _ => Strategy::Plain,
        };
        Ok((retain, strategy))
    }
}

impl<'a> Schema<'a> {
    /// The schema below an object's field, for a value that is an object
    /// (`LookupPatchMetadataForStruct`).
    ///
    /// # Errors
    /// [`LookupError`] when there is no such field or nothing can be below it.
    pub fn object(self, field: &str) -> Result<(Self, PatchMeta<'a>), LookupError> {
        match self.0 {
            Place::Go(place) => place.object(field).map(|(at, meta)| (Self(Place::Go(at)), meta)),
            Place::OpenApi(place) => {
                place.object(field).map(|(at, meta)| (Self(Place::OpenApi(at)), meta))
            }
        }
    }

    /// The schema of the items below an object's field, for a value that is a list
    /// (`LookupPatchMetadataForSlice`).
    ///
    /// # Errors
    /// [`LookupError`] when there is no such field or it holds no list.
    pub fn list(self, field: &str) -> Result<(Self, PatchMeta<'a>), LookupError> {
        match self.0 {
            Place::Go(place) => place.list(field).map(|(at, meta)| (Self(Place::Go(at)), meta)),
            Place::OpenApi(place) => {
                place.list(field).map(|(at, meta)| (Self(Place::OpenApi(at)), meta))
            }
        }
    }

    /// Whether an object can be converted to its Go type. Helm patches one that cannot be as if it
    /// were of an unknown kind. Always true for a schema from OpenAPI.
    pub fn fits(self, object: &serde_json::Value) -> bool {
        match self.0 {
            Place::Go(place) => fit::fits(place, object),
            Place::OpenApi(_) => true,
        }
    }

    /// Takes out of an object what a server that has its Go type does not keep: `false` where the
    /// type says so. Nothing for a schema from OpenAPI, which does not tell.
    pub fn drop_false(self, object: &mut serde_json::Value) {
        if let Place::Go(place) = self.0 {
            kept::drop_false(place, object);
        }
    }

    /// What errors call the type at this place (`Name`).
    pub(crate) fn name(self) -> String {
        match self.0 {
            Place::Go(place) => place.kind().to_owned(),
            Place::OpenApi(place) => place.name(),
        }
    }
}

/// Why a schema has no answer. The texts are those of
/// `third_party/forked/golang/json/fields.go` and `util/strategicpatch/{meta,types,errors}.go`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LookupError {
    /// The value is an object, but the place holds no fields.
    #[error("merging an object in json but data type is not struct, instead is: {kind}")]
    NotStruct {
        /// Go's word for what the place holds.
        kind: &'static str,
    },
    /// A Go type has no such field.
    #[error("unable to find api field in struct {name} for the json field \"{field}\"")]
    NoField {
        /// The Go type's name.
        name: String,
        /// The field asked for.
        field: String,
    },
    /// A list of lists.
    #[error("unexpected slice of slice")]
    SliceOfSlice,
    /// The value is a list, but the field holds none.
    #[error("expected slice or array type, but got: {kind}")]
    NotSlice {
        /// Go's word for the type that has the field.
        kind: &'static str,
    },
    /// More strategies than have a meaning together.
    #[error("unexpected patch strategy: [{strategies}]")]
    Strategies {
        /// The strategies with spaces between them.
        strategies: String,
    },
    /// An OpenAPI v3 schema has no such property.
    #[error("unable to find api field \"{field}\"")]
    NoProperty {
        /// The field asked for.
        field: String,
    },
    /// A reference of an OpenAPI v3 document leads nowhere.
    #[error("unable to resolve {reference} in OpenAPI V3")]
    Unresolved {
        /// The reference.
        reference: String,
    },
    /// An OpenAPI v2 definition has no such property.
    #[error("unable to find api field \"{field}\" in {definition}")]
    NoDefinitionProperty {
        /// The field asked for.
        field: String,
        /// The definition's name.
        definition: String,
    },
    /// An OpenAPI v2 place is of another type than the value.
    #[error("expected {expected}, but got {found}")]
    WrongType {
        /// `kind` or `slice`.
        expected: &'static str,
        /// `primitive`, `map` or `slice`.
        found: &'static str,
    },
}
