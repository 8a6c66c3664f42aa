//! Rendering a chart to manifests, as `helm template` does: `Install.RunWithContext` in its
//! client-only form and `renderResources` (`pkg/action/{install,action}.go`), and what
//! `cmd/helm/template.go` makes of the result.

use std::collections::BTreeMap;

use bstr::BString;

use crate::capabilities::Capabilities;
use crate::chart::{Chart, DecodeError, Warning};
use crate::manifest::{self, Hook, Manifest, SortError};
use crate::name::{NameError, validate_release_name};
use crate::render::{Engine, Host, Release, RenderError};
use crate::values::{self, CoalesceError, Nulls, SchemaError};

/// What to render a chart for.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The release's name.
    pub release_name: String,
    /// The release's namespace.
    pub namespace: String,
    /// Whether templates see an upgrade instead of an installation.
    pub is_upgrade: bool,
    /// The revision that templates see; 0 stands for the first one.
    pub revision: i64,
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
    /// The manifests as one YAML stream, CRDs first, hooks not among them: what Helm stores in
    /// a record and hands to a post-renderer.
    pub manifest: BString,
    /// Rendered objects in the order of installation.
    pub manifests: Vec<Manifest>,
    /// Rendered hooks in their order.
    pub hooks: Vec<Hook>,
    /// The notes.
    pub notes: BString,
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
    Schema(#[from] SchemaError),
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
    #[error("YAML parse error on {path}")]
    Manifest {
        /// The template.
        path: String,
        /// What is wrong.
        source: DecodeError,
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
    render(engine, chart, user_values, options, host, warnings)
}

/// Renders a chart whose dependencies are processed.
///
/// # Errors
/// [`Error`], with Helm's text.
pub fn render(
    engine: &Engine,
    chart: &Chart,
    user_values: &goyaml::Map,
    options: &Options,
    host: &mut Host,
    warnings: &mut Vec<Warning>,
) -> Result<Rendering, Error> {
    let effective = values::coalesce_shared(chart, user_values, Nulls::Remove, warnings)?;
    if !options.skip_schema_validation {
        engine.validate(chart, &effective.graph.export(effective.root)?, warnings)?;
    }
    let version = &options.capabilities.kube_version.version;
    let wanted = &chart.metadata.kube_version;
    if !wanted.is_empty() && !crate::compatible::is_compatible_range(wanted, version) {
        return Err(Error::KubeVersion { wanted: wanted.clone(), version: version.clone() });
    }
    let release = Release {
        name: options.release_name.clone(),
        namespace: options.namespace.clone(),
        revision: options.revision.max(1),
        is_upgrade: options.is_upgrade,
        is_install: !options.is_upgrade,
    };
    let mut files = engine.render(chart, &effective, &release, &options.capabilities, host)?;
    let notes = manifest::take_notes(&mut files, chart.name(), options.subchart_notes);
    let sorted = manifest::sort_manifests(&files, &manifest::INSTALL_ORDER, warnings)
        .map_err(|error| failed(&files, *error))?;
    // The documents hold the text now; the files' memory serves for the manifest.
    drop(files);
    Ok(Rendering {
        manifest: manifest::release_manifest(chart, &sorted.manifests, options.include_crds),
        manifests: sorted.manifests,
        hooks: sorted.hooks,
        notes,
    })
}

fn failed(files: &BTreeMap<String, BString>, mut error: SortError) -> Error {
    let partial = Rendering {
        manifest: manifest::failed_manifest(files),
        hooks: std::mem::take(&mut error.partial.hooks),
        ..Rendering::default()
    };
    Error::Manifest { path: error.path, source: error.source, partial: Box::new(partial) }
}
