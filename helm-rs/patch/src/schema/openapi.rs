//! Patch metadata from a server's own OpenAPI documents, for kinds that the embedded table does
//! not know.
//!
//! Version 3 is read as `PatchMetaFromOpenAPIV3` does (`util/strategicpatch/meta.go`), version 2
//! as `PatchMetaFromOpenAPI` does over kube-openapi's `proto` models.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{LookupError, PatchMeta, Place, Schema, Schemas};

/// An OpenAPI document, version 2 or 3.
#[derive(Debug, Clone)]
pub struct OpenApi {
    definitions: BTreeMap<String, Value>,
    kinds: BTreeMap<(String, String), String>,
    version: Version,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    Two,
    Three,
}

impl Version {
    fn prefix(self) -> &'static str {
        match self {
            Self::Two => "#/definitions/",
            Self::Three => "#/components/schemas/",
        }
    }
}

impl OpenApi {
    /// Takes the definitions out of a document: `definitions` of version 2, `components.schemas`
    /// of version 3. A document with neither knows no kind.
    pub fn new(mut document: Value) -> Self {
        let (version, definitions) = match document.pointer_mut("/components/schemas") {
            Some(schemas) => (Version::Three, schemas.take()),
            None => {
                (Version::Two, document.get_mut("definitions").map(Value::take).unwrap_or_default())
            }
        };
        let definitions: BTreeMap<String, Value> = match definitions {
            Value::Object(definitions) => definitions.into_iter().collect(),
            _ => BTreeMap::new(),
        };
        let mut kinds = BTreeMap::new();
        for (name, definition) in &definitions {
            let named = definition.get("x-kubernetes-group-version-kind").and_then(Value::as_array);
            for kind in named.into_iter().flatten() {
                let word = |field| kind.get(field).and_then(Value::as_str).unwrap_or_default();
                let api_version = match word("group") {
                    "" => word("version").to_owned(),
                    group => format!("{group}/{}", word("version")),
                };
                kinds.insert((api_version, word("kind").to_owned()), name.clone());
            }
        }
        Self { definitions, kinds, version }
    }

    /// Adds the definitions of another document of the same version: a server has one document
    /// per API group in version 3.
    pub fn extend(&mut self, other: Self) {
        if self.definitions.is_empty() {
            self.version = other.version;
        }
        self.definitions.extend(other.definitions);
        self.kinds.extend(other.kinds);
    }

    fn definition(&self, reference: &str) -> Option<(&str, &Value)> {
        let name = reference.strip_prefix(self.version.prefix()).unwrap_or(reference);
        let (name, definition) = self.definitions.get_key_value(name)?;
        Some((name, definition))
    }
}

impl Schemas for OpenApi {
    fn schema(&self, api_version: &str, kind: &str) -> Option<Schema<'_>> {
        let name = self.kinds.get(&(api_version.to_owned(), kind.to_owned()))?;
        let (name, schema) = self.definition(name)?;
        // A custom resource's schema has no patch metadata and the server refuses strategic
        // patches for it; the built-in kinds are those whose definitions come from Go packages.
        let built_in = BUILT_IN.iter().any(|package| name.starts_with(package));
        built_in.then_some(Schema(Place::OpenApi(Node { document: self, schema, name })))
    }
}

/// Where the Go types of built-in kinds live. A custom resource's definition is named after its
/// group, and groups such as `gateway.networking.k8s.io` begin with `io.k8s.` as well.
const BUILT_IN: [&str; 4] = [
    "io.k8s.api.",
    "io.k8s.apimachinery.",
    "io.k8s.apiextensions-apiserver.",
    "io.k8s.kube-aggregator.",
];

/// A schema of a document.
#[derive(Debug, Clone, Copy)]
pub(super) struct Node<'a> {
    document: &'a OpenApi,
    schema: &'a Value,
    /// The definition that it is or is part of.
    name: &'a str,
}

/// References that lead to references, at most.
const MAX_REFERENCES: usize = 16;

impl<'a> Node<'a> {
    pub(super) fn name(self) -> String {
        match self.document.version {
            Version::Two => self.name.to_owned(),
            Version::Three => match self.schema.get("type") {
                Some(Value::String(text)) => text.clone(),
                Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).collect(),
                _ => "Struct".to_owned(),
            },
        }
    }

    fn text(self, field: &str) -> &'a str {
        self.schema.get(field).and_then(Value::as_str).unwrap_or_default()
    }

    fn meta(self) -> PatchMeta<'a> {
        PatchMeta {
            strategies: self.text("x-kubernetes-patch-strategy"),
            merge_key: self.text("x-kubernetes-patch-merge-key"),
        }
    }

    /// The schema that a reference, or in version 3 the first part of an `allOf`, stands for.
    fn resolve(mut self) -> Result<Self, LookupError> {
        for _ in 0..MAX_REFERENCES {
            if self.document.version == Version::Three
                && let Some(first) = self.schema.pointer("/allOf/0")
            {
                self.schema = first;
            }
            let Some(reference) = self.schema.get("$ref").and_then(Value::as_str) else {
                return Ok(self);
            };
            let Some((name, schema)) = self.document.definition(reference) else {
                return Err(LookupError::Unresolved { reference: reference.to_owned() });
            };
            self = Self { document: self.document, schema, name };
        }
        Err(LookupError::Unresolved { reference: self.text("$ref").to_owned() })
    }

    fn property(self, field: &str, expected: &'static str) -> Result<Self, LookupError> {
        let node = self.resolve()?;
        let properties = node.schema.get("properties").and_then(Value::as_object);
        if node.document.version == Version::Two && properties.is_none() {
            let found = match node.text("type") {
                "array" => "slice",
                "object" => "map",
                _ => "primitive",
            };
            return Err(LookupError::WrongType { expected, found });
        }
        match properties.and_then(|properties| properties.get(field)) {
            Some(schema) => Ok(Self { schema, ..node }),
            None if node.document.version == Version::Three => {
                Err(LookupError::NoProperty { field: field.to_owned() })
            }
            None => Err(LookupError::NoDefinitionProperty {
                field: field.to_owned(),
                definition: node.name.to_owned(),
            }),
        }
    }

    pub(super) fn object(self, field: &str) -> Result<(Self, PatchMeta<'a>), LookupError> {
        let node = self.property(field, "kind")?;
        Ok((node.resolve()?, node.meta()))
    }

    pub(super) fn list(self, field: &str) -> Result<(Self, PatchMeta<'a>), LookupError> {
        let node = self.property(field, "slice")?;
        let meta = node.meta();
        let resolved = node.resolve()?;
        match (resolved.schema.get("items"), self.document.version) {
            (Some(items), _) => Ok((Self { schema: items, ..resolved }.resolve()?, meta)),
            (None, Version::Three) => Ok((resolved, meta)),
            (None, Version::Two) => {
                let found = match resolved.text("type") {
                    "object" => "map",
                    _ => "primitive",
                };
                Err(LookupError::WrongType { expected: "slice", found })
            }
        }
    }
}
