//! Putting manifests together, as `renderResources` in Helm's `pkg/action/action.go` and
//! `cmd/helm/template.go` do.

use std::collections::BTreeMap;

use bstr::{BString, ByteSlice, ByteVec};

use super::hook::Hook;
use super::sort::Manifest;
use super::split::{source_of, split_manifests};
use crate::chart::Chart;
use crate::gopath;

/// Last part of the names of files that hold notes.
const NOTES_SUFFIX: &str = "NOTES.txt";

/// A `--show-only` argument that matches no template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("could not find template {pattern} in chart")]
pub struct NotFound {
    /// The argument.
    pub pattern: String,
}

/// Takes the notes out of rendered files: the chart's own, and with `with_subcharts` all of them
/// by file name (Helm: in random order), joined by line breaks.
pub fn take_notes(
    files: &mut BTreeMap<String, BString>,
    chart: &str,
    with_subcharts: bool,
) -> BString {
    let own = gopath::join(&gopath::join(chart, "templates"), NOTES_SUFFIX);
    let mut notes = BString::default();
    files.retain(|name, content| {
        if !name.ends_with(NOTES_SUFFIX) {
            return true;
        }
        if with_subcharts || *name == own {
            if !notes.is_empty() {
                notes.push(b'\n');
            }
            notes.push_str(&*content);
        }
        false
    });
    notes
}

/// The manifest of a release: custom resource definitions if wanted, then the objects, each under
/// a `# Source:` comment.
pub fn release_manifest(chart: &Chart, manifests: &[Manifest], include_crds: bool) -> BString {
    let mut text = BString::default();
    if include_crds {
        for crd in chart.crds() {
            push_document(&mut text, &crd.filename(), &crd.file.data);
        }
    }
    for manifest in manifests {
        push_document(&mut text, &manifest.name, &manifest.content);
    }
    text
}

/// What stands in for the manifest when a rendered file is no YAML: all files that are not empty,
/// by name (Helm: in random order).
pub fn failed_manifest(files: &BTreeMap<String, BString>) -> BString {
    let mut text = BString::default();
    for (name, content) in files {
        if !content.trim().is_empty() {
            push_document(&mut text, name, content);
        }
    }
    text
}

/// What `helm template` prints: the trimmed manifest, then the hooks.
pub fn hook_manifest<'a>(manifest: &[u8], hooks: impl IntoIterator<Item = &'a Hook>) -> BString {
    let mut text = BString::from(manifest.trim());
    text.push(b'\n');
    for hook in hooks {
        push_document(&mut text, &hook.path, &hook.manifest);
    }
    text
}

/// The documents that `--show-only` asks for, by the order of the patterns and then of the text;
/// a document may come several times. A pattern is matched against the `# Source:` of a document
/// without the chart's name.
///
/// # Errors
///
/// [`NotFound`] for the first pattern without a document.
pub fn select_manifests(text: &[u8], patterns: &[String]) -> Result<BString, NotFound> {
    let documents = split_manifests(text);
    let mut selected = BString::default();
    for pattern in patterns {
        let mut found = false;
        for document in &documents {
            let Some(source) = source_of(document.as_bstr()) else { continue };
            if gopath::matches(pattern, &source.to_str_lossy()) == Ok(true) {
                found = true;
                selected.push_str("---\n");
                selected.push_str(document);
                selected.push(b'\n');
            }
        }
        if !found {
            return Err(NotFound { pattern: pattern.clone() });
        }
    }
    Ok(selected)
}

/// Appends one document under its `# Source:` comment.
fn push_document(text: &mut BString, source: &str, content: &[u8]) {
    text.push_str("---\n# Source: ");
    text.push_str(source);
    text.push(b'\n');
    text.push_str(content);
    text.push(b'\n');
}
