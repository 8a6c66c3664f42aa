//! Rendering a chart to manifests, as `helm template` does: `Install.RunWithContext` in its
//! client-only form and `renderResources` (`pkg/action/{install,action}.go`), and what
//! `cmd/helm/template.go` makes of the result.

use std::collections::BTreeMap;

use bstr::{BString, ByteSlice};

use crate::capabilities::Capabilities;
use crate::chart::{Chart, Warning};
use crate::gopath;
use crate::manifest::{self, Hook, HookEvent, Manifest};
use crate::name::{NameError, validate_release_name};
use crate::render::{Engine, Host, Release, RenderError};
use crate::values::{self, CoalesceError, Nulls};

/// What to render a chart for.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The release's name.
    pub release_name: String,
    /// The release's namespace.
    pub namespace: String,
    /// Whether templates see an upgrade instead of an installation.
    pub is_upgrade: bool,
    /// The cluster that templates see.
    pub capabilities: Capabilities,
    /// Values are not checked against `values.schema.json`.
    pub skip_schema_validation: bool,
    /// Subcharts' notes are part of the notes.
    pub subchart_notes: bool,
    /// Manifests under `crds/` are part of the result.
    pub include_crds: bool,
}

/// A rendered chart.
#[derive(Clone, Debug, Default)]
pub struct Rendering {
    /// Manifests under `crds/`, when asked for.
    pub crds: Vec<Source>,
    /// Rendered manifests in the order of installation.
    pub manifests: Vec<Source>,
    /// Rendered hooks in their order.
    pub hooks: Vec<Hook>,
    /// The notes.
    pub notes: BString,
}

/// A text with the file it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The file's path in the chart, chart names first.
    pub path: String,
    /// The text.
    pub text: BString,
}

/// Why a chart was not rendered. The texts down the chain, joined by `: `, are Helm's.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The release name cannot be one.
    #[error("release name {}", crate::gotext::quote(name))]
    Name {
        /// The name.
        name: String,
        /// What is wrong with it.
        source: NameError,
    },
    /// Values cannot be joined.
    #[error(transparent)]
    Coalesce(#[from] CoalesceError),
    /// Values do not meet a schema.
    #[error(transparent)]
    Schema(#[from] values::SchemaError),
    /// The chart does not want this cluster.
    #[error("chart requires kubeVersion: {wanted} which is incompatible with Kubernetes {version}")]
    KubeVersion {
        /// The chart's constraint.
        wanted: String,
        /// The cluster's version.
        version: String,
    },
    /// A template failed.
    #[error(transparent)]
    Render(#[from] RenderError),
    /// What was rendered is no YAML.
    #[error(transparent)]
    Manifest {
        /// Where, and what is wrong.
        source: manifest::SortError,
        /// Everything that was rendered.
        partial: Box<Rendering>,
    },
}

impl Error {
    /// What had been rendered when the error came up; from this point on Helm advises to use
    /// `--debug`.
    pub fn partial(&self) -> Option<Rendering> {
        match self {
            Self::KubeVersion { .. } | Self::Render(_) => Some(Rendering::default()),
            Self::Manifest { partial, .. } => Some((**partial).clone()),
            _ => None,
        }
    }
}

/// Renders a chart with user values. The chart comes back with its dependencies processed.
///
/// # Errors
/// [`Error`], with Helm's text.
pub fn template(
    engine: &Engine,
    chart: &mut Chart,
    user_values: &goyaml::Map,
    options: &Options,
    host: &mut Host,
    warnings: &mut Vec<Warning>,
) -> Result<Rendering, Error> {
    validate_release_name(&options.release_name)
        .map_err(|source| Error::Name { name: options.release_name.clone(), source })?;
    values::process_dependencies(chart, user_values, Nulls::Keep, warnings)?;
    let effective = values::coalesce_shared(chart, user_values, Nulls::Remove, warnings)?;
    if !options.skip_schema_validation {
        values::validate(chart, &effective.export()?)?;
    }
    let version = &options.capabilities.kube_version.version;
    let wanted = &chart.metadata.kube_version;
    if !wanted.is_empty() && !crate::compatible::is_compatible_range(wanted, version) {
        return Err(Error::KubeVersion { wanted: wanted.clone(), version: version.clone() });
    }
    let release = Release {
        name: options.release_name.clone(),
        namespace: options.namespace.clone(),
        revision: 1,
        is_upgrade: options.is_upgrade,
        is_install: !options.is_upgrade,
    };
    let mut files = engine.render(chart, &effective, &release, &options.capabilities, host)?;
    let notes = take_notes(chart, &mut files, options.subchart_notes);
    let sorted = match manifest::sort_manifests(&files) {
        Ok(sorted) => sorted,
        Err(error) => {
            let manifests = files
                .into_iter()
                .filter(|(_, text)| !text.trim().is_empty())
                .map(|(path, text)| Source { path, text })
                .collect();
            let partial = Rendering { manifests, hooks: error.hooks, ..Rendering::default() };
            return Err(Error::Manifest { source: error, partial: Box::new(partial) });
        }
    };
    let crds = if options.include_crds { chart.crds() } else { Vec::new() };
    Ok(Rendering {
        crds: crds
            .into_iter()
            .map(|crd| Source { path: crd.filename(), text: BString::from(&*crd.file.data) })
            .collect(),
        manifests: sorted.manifests.into_iter().map(|m| Source { path: m.path, text: m.text }).collect(),
        hooks: sorted.hooks,
        notes,
    })
}

/// Takes the notes out of the rendered files.
fn take_notes(
    chart: &Chart,
    files: &mut BTreeMap<String, BString>,
    with_subcharts: bool,
) -> BString {
    let own = gopath::join(chart.name(), "templates/NOTES.txt");
    let mut notes = BString::default();
    files.retain(|name, text| {
        if !name.ends_with("NOTES.txt") {
            return true;
        }
        if with_subcharts || *name == own {
            if !notes.is_empty() {
                notes.push(b'\n');
            }
            notes.extend_from_slice(text);
        }
        false
    });
    notes
}

impl Rendering {
    /// The manifests as one YAML stream, CRDs first, hooks not among them: what Helm stores in
    /// a record and hands to a post-renderer.
    pub fn manifest(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for source in self.crds.iter().chain(&self.manifests) {
            push_source(&mut out, &source.path, &source.text);
        }
        out
    }
}

/// What `helm template` prints: the manifests and then the hooks that pass.
pub fn document(manifest: &[u8], hooks: &[&Hook]) -> Vec<u8> {
    let mut out = manifest.trim().to_vec();
    out.push(b'\n');
    for hook in hooks {
        push_source(&mut out, &hook.path, &hook.manifest);
    }
    out
}

/// One document with the comment that says where it comes from.
pub fn push_source(out: &mut Vec<u8>, path: &str, text: &[u8]) {
    out.extend_from_slice(b"---\n# Source: ");
    out.extend_from_slice(path.as_bytes());
    out.push(b'\n');
    out.extend_from_slice(text);
    out.push(b'\n');
}

/// Whether a hook is a test, which `--skip-tests` leaves out.
pub fn is_test(hook: &Hook) -> bool {
    hook.events.contains(&HookEvent::Test)
}

/// No file of the chart gave the manifests that were asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("could not find template {pattern} in chart")]
pub struct NotFound {
    /// The pattern.
    pub pattern: String,
}

/// The parts of a document that come from files matching the patterns, in the order of the
/// patterns (`--show-only`). A pattern is matched against the path below the chart.
///
/// # Errors
/// [`NotFound`] for the first pattern that matches nothing.
pub fn show_only(document: &[u8], patterns: &[String]) -> Result<Vec<u8>, NotFound> {
    let manifests = manifest::split_manifests(document);
    let mut out = Vec::new();
    for pattern in patterns {
        let before = out.len();
        for manifest in &manifests {
            let Some(path) = source_path(manifest) else { continue };
            if gopath::matches(pattern, &path) == Ok(true) {
                out.extend_from_slice(b"---\n");
                out.extend_from_slice(manifest);
                out.push(b'\n');
            }
        }
        if out.len() == before {
            return Err(NotFound { pattern: pattern.clone() });
        }
    }
    Ok(out)
}

/// What follows the chart's name in the first `# Source:` comment with a slash.
fn source_path(manifest: &[u8]) -> Option<String> {
    const MARK: &[u8] = b"# Source: ";
    let mut rest = manifest;
    while let Some(at) = rest.find(MARK) {
        rest = rest.get(at + MARK.len()..)?;
        let chart = rest.iter().position(|&b| b == b'/').unwrap_or(0);
        // The pattern `[^/]+` may run over line ends, `.+` may not.
        let path = rest.get(chart + 1..)?.lines().next().unwrap_or_default();
        if chart > 0 && !path.is_empty() {
            return Some(path.to_str_lossy().into_owned());
        }
    }
    None
}
