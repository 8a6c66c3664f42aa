//! What an installation and an upgrade do alike before they write.

use std::sync::Arc;

use bstr::BString;

use super::error::{ActionError, ConflictError};
use super::lookup::ClusterLookup;
use super::session::{DryRun, ReleaseOptions, Session};
use super::template::{self, Options, Rendering};
use crate::apply::{Item, Live, build, ownership};
use crate::capabilities::Capabilities;
use crate::chart::{Chart, Warning};
use crate::cluster::Discovery;
use crate::release::storage::SYSTEM_LABELS;
use crate::release::{ApplyMethod, NewRecord, Record, Status};
use crate::render::Host;

/// Renders a chart for a revision, with `lookup` on the cluster unless it is a client's dry run.
#[expect(clippy::too_many_arguments, reason = "each is one input of a rendering")]
pub(super) fn render(
    session: &Session<'_>,
    chart: &Chart,
    values: &goyaml::Map,
    revision: i64,
    namespace: &str,
    capabilities: Capabilities,
    options: &ReleaseOptions,
    host: &mut Host,
    warnings: &mut Vec<Warning>,
) -> Result<Rendering, ActionError> {
    if options.dry_run != DryRun::Client {
        host.engine.lookup = Some(Box::new(ClusterLookup::new(Arc::clone(&session.cluster))));
    }
    let wanted = Options {
        release_name: options.name.clone(),
        namespace: namespace.to_owned(),
        is_upgrade: revision > 1,
        revision,
        capabilities,
        skip_schema_validation: options.skip_schema_validation,
        subchart_notes: options.subchart_notes,
        include_crds: false,
    };
    let mut rendering = template::render(session.engine, chart, values, &wanted, host, warnings)?;
    // An action renders once.
    session.engine.forget();
    if options.hide_secret {
        for manifest in &mut rendering.manifests {
            let head = &manifest.head;
            if head.kind == "Secret" && head.api_version == "v1" {
                manifest.content = BString::from("# HIDDEN: The Secret output has been suppressed");
            }
        }
        rendering.manifest = crate::manifest::release_manifest(chart, &rendering.manifests, false);
    }
    if let Some(post_renderer) = &options.post_renderer {
        let manifest = post_renderer.run(&rendering.manifest).map_err(ActionError::PostRender)?;
        rendering.manifest = BString::from(manifest);
    }
    Ok(rendering)
}

/// Labels that the user may not set (`ContainsSystemLabels`).
pub(super) fn check_labels(options: &ReleaseOptions) -> Result<(), ActionError> {
    if options.labels.keys().any(|name| SYSTEM_LABELS.contains(&name.as_str())) {
        return Err(ActionError::SystemLabels);
    }
    Ok(())
}

/// The objects of a manifest.
pub(super) fn objects(
    discovery: &Discovery,
    manifest: &[u8],
    options: &ReleaseOptions,
    validate: bool,
    what: &'static str,
) -> Result<Vec<Item>, ActionError> {
    build(discovery, manifest, &options.namespace, validate)
        .map_err(|error| ActionError::Build { what, error: Box::new(error) })
}

/// Gives objects the release's ownership metadata.
pub(super) fn own(items: &mut [Item], name: &str, namespace: &str) {
    for item in items {
        ownership::set(&mut item.value, name, namespace);
    }
}

/// Whether both are one object, in the eyes of an upgrade's look at what is in the way: another
/// version of the same kind is another object there (`objectKey`).
pub(super) fn same(one: &Item, other: &Item) -> bool {
    one.kind() == other.kind()
        && one.target.namespace == other.target.namespace
        && one.target.name == other.target.name
}

/// Looks at what is live of objects that the release does not have yet: all of it must be the
/// release's own, unless ownership is taken (`existingResourceConflict`, `requireAdoption`).
/// `others` are left unknown.
pub(super) async fn conflicts(
    session: &Session<'_>,
    items: &[Item],
    is_new: impl Fn(&Item) -> bool,
    release: (&str, &str),
    take_ownership: bool,
) -> Result<Vec<Live>, ConflictError> {
    let new: Vec<(usize, &Item)> =
        items.iter().enumerate().filter(|(_, item)| is_new(item)).collect();
    let wanted: Vec<&Item> = new.iter().map(|(_, item)| *item).collect();
    let found = session.writer().read(&wanted).await;
    let mut live = vec![Live::Unknown; items.len()];
    for ((index, item), result) in new.into_iter().zip(found) {
        let state = match result {
            Err(source) => return Err(ConflictError::Read { title: item.title(), source }),
            Ok(None) => Live::Absent,
            Ok(Some(object)) => {
                if !take_ownership {
                    ownership::check(&object, release.0, release.1).map_err(|source| {
                        ConflictError::NotOwned { title: item.title(), source }
                    })?;
                }
                Live::Present(Box::new(object))
            }
        };
        if let Some(slot) = live.get_mut(index) {
            *slot = state;
        }
    }
    Ok(live)
}

/// What a record is made of, besides what the rendering gives.
pub(super) struct Draft<'a> {
    pub(super) options: &'a ReleaseOptions,
    pub(super) namespace: &'a str,
    pub(super) revision: i64,
    pub(super) chart: &'a Chart,
    pub(super) config: &'a goyaml::Map,
    pub(super) rendering: &'a Rendering,
    pub(super) first_deployed: &'a str,
    pub(super) last_deployed: &'a str,
    pub(super) apply_method: Option<ApplyMethod>,
}

impl Draft<'_> {
    pub(super) fn record(&self, status: &Status, description: &str) -> Result<Record, ActionError> {
        let record = NewRecord {
            name: &self.options.name,
            namespace: self.namespace,
            revision: self.revision,
            chart: self.chart,
            config: self.config,
            manifest: &self.rendering.manifest,
            hooks: &self.rendering.hooks,
            notes: &self.rendering.notes,
            first_deployed: self.first_deployed,
            last_deployed: self.last_deployed,
            status,
            description,
        };
        let mut record = record.build()?;
        record.set_apply_method(self.apply_method)?;
        Ok(record)
    }
}
