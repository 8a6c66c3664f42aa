//! Telling hooks from other objects and sorting both, as Helm's
//! `pkg/releaseutil/manifest_sorter.go`.

use std::collections::BTreeMap;

use bstr::{BString, ByteSlice};
use goyaml::{Map, Value};

use super::hook::{Hook, HookEvent};
use super::kind::{KindOrder, sort_by_kind};
use super::plain;
use super::split::split_manifests;
use crate::chart::{DecodeError, Struct, Target, Warning, decode_target};
use crate::gopath;
use crate::gotext::{lossy, quote, trim_space};

const HOOK: &str = "helm.sh/hook";
const HOOK_WEIGHT: &str = "helm.sh/hook-weight";
const HOOK_DELETE: &str = "helm.sh/hook-delete-policy";
const HOOK_OUTPUT_LOG: &str = "helm.sh/hook-output-log-policy";

/// An object that is no hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// Name of the template that made it.
    pub name: String,
    /// Its text.
    pub content: BString,
    /// What sorting needs to know about it.
    pub head: Head,
}

/// The start of an object. What is absent is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Head {
    /// `apiVersion`
    pub api_version: String,
    /// `kind`
    pub kind: String,
    /// `metadata.name`
    pub name: String,
    /// `metadata.annotations`
    pub annotations: BTreeMap<String, String>,
}

/// The outcome of [`sort_manifests`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sorted {
    /// Hooks by kind.
    pub hooks: Vec<Hook>,
    /// Other objects by kind.
    pub manifests: Vec<Manifest>,
}

/// A rendered file that is no YAML, or an object whose head has wrong types.
#[derive(Debug, thiserror::Error)]
#[error("YAML parse error on {path}")]
pub struct SortError {
    /// Name of the template.
    pub path: String,
    /// What is wrong.
    pub source: DecodeError,
    /// What was found before, unsorted: Helm prints the hooks among it when debugging.
    pub partial: Sorted,
}

/// Takes rendered files apart into hooks and other objects and sorts both by kind, as
/// `SortManifests`. Equal kinds keep the order of file names and the order inside a file.
/// Partials (`_` in front of the file name) and empty files are left out, hooks with an unknown
/// event are dropped with a warning.
///
/// # Errors
///
/// [`SortError`] for the first object that cannot be read.
pub fn sort_manifests(
    files: &BTreeMap<String, BString>,
    order: &KindOrder,
    warnings: &mut Vec<Warning>,
) -> Result<Sorted, Box<SortError>> {
    let mut sorted = Sorted::default();
    for (path, content) in files {
        if gopath::base(path).starts_with('_') || content.trim().is_empty() {
            continue;
        }
        for document in split_manifests(content) {
            let head = match Head::parse(&document) {
                Ok(head) => head,
                Err(source) => {
                    let path = path.clone();
                    return Err(Box::new(SortError { path, source, partial: sorted }));
                }
            };
            sorted.add(path, document, head, warnings);
        }
    }
    sort_by_kind(&mut sorted.hooks, order, |hook| &hook.kind);
    sort_by_kind(&mut sorted.manifests, order, |manifest| &manifest.head.kind);
    Ok(sorted)
}

impl Sorted {
    fn add(&mut self, path: &str, document: BString, head: Head, warnings: &mut Vec<Warning>) {
        let Some(types) = head.annotations.get(HOOK) else {
            self.manifests.push(Manifest { name: path.to_owned(), content: document, head });
            return;
        };
        let events: Option<Vec<HookEvent>> =
            words(types).map(|word| HookEvent::parse(&word)).collect();
        let Some(events) = events else {
            let text = format!("info: skipping unknown hook: {}", quote(types));
            warnings.push(Warning::new("manifest_sorter.go:199", text));
            return;
        };
        let policies = |annotation: &str| {
            head.annotations.get(annotation).map(|text| words(text).collect()).unwrap_or_default()
        };
        self.hooks.push(Hook {
            events,
            weight: head.annotations.get(HOOK_WEIGHT).and_then(|w| w.parse().ok()).unwrap_or(0),
            delete_policies: policies(HOOK_DELETE),
            output_log_policies: policies(HOOK_OUTPUT_LOG),
            name: head.name,
            kind: head.kind,
            path: path.to_owned(),
            manifest: document,
        });
    }
}

/// The words of an annotation: cut at commas, trimmed, in lower case; empty words too.
fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(',').map(|word| trim_space(word).to_lowercase())
}

static METADATA: Struct = Struct {
    name: "",
    go_type: "struct { Name string \"json:\\\"name\\\"\"; \
              Annotations map[string]string \"json:\\\"annotations\\\"\" }",
    fields: &[("name", Target::Text), ("annotations", Target::Map(&Target::Text, "string"))],
};

static HEAD: Struct = Struct {
    name: "SimpleHead",
    go_type: "releaseutil.SimpleHead",
    fields: &[
        ("apiVersion", Target::Text),
        ("kind", Target::Text),
        ("metadata", Target::Struct(&METADATA)),
    ],
};

impl Head {
    /// Reads the head of an object, as `yaml.Unmarshal` into `SimpleHead`.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] when the document is no YAML map or one of the fields has a wrong type.
    pub fn parse(document: &[u8]) -> Result<Self, DecodeError> {
        plain::head(document).map_or_else(|| Self::parse_full(document), Ok)
    }

    /// Reads the head by decoding the whole document.
    pub(super) fn parse_full(document: &[u8]) -> Result<Self, DecodeError> {
        let fields = decode_target(document, &HEAD)?.unwrap_or_default();
        let text = |fields: &Map, name: &str| {
            let text = fields.get(name).and_then(Value::as_str);
            text.map(|text| lossy(text).into_owned()).unwrap_or_default()
        };
        let mut head = Self {
            api_version: text(&fields, "apiVersion"),
            kind: text(&fields, "kind"),
            ..Self::default()
        };
        if let Some(metadata) = fields.get("metadata").and_then(Value::as_map) {
            head.name = text(metadata, "name");
            let annotations = metadata.get("annotations").and_then(Value::as_map);
            for (key, value) in annotations.into_iter().flatten() {
                let value = value.as_str().map(|text| lossy(text).into_owned());
                head.annotations.insert(lossy(key).into_owned(), value.unwrap_or_default());
            }
        }
        Ok(head)
    }
}
