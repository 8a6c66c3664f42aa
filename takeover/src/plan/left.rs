//! Objects of the foreign release that the chart does not have: they stay, and are told.

use cilium::provenance::Source as Origin;
use futures::stream::{self, StreamExt as _};
use helm_rs::apply::Item;
use helm_rs::cluster::ErrorKind;

use super::ObjectAbout;
use super::make::CONCURRENCY;
use super::making::Making;
use super::preconditions::Settled;
use crate::rendered::{self, Rendered};
use crate::survey::Survey;

/// Objects of the foreign release that the chart does not render.
pub(super) fn foreign_only(survey: &Survey, settled: &Settled, rendered: &Rendered) -> Vec<Item> {
    let Origin::Release(release) = &settled.provenance.source else { return Vec::new() };
    let mut items =
        rendered::manifest_objects(&survey.discovery, &release.manifest, &settled.namespace);
    items.retain(|item| !rendered.objects.iter().any(|object| object.item.matches(item)));
    items
}

/// Those that are live. One that may not be read counts as live; the missing right is told apart.
pub(super) async fn left_objects(making: &Making<'_>, foreign_only: &[Item]) -> Vec<ObjectAbout> {
    let cluster = &**making.cluster;
    let live: Vec<bool> = stream::iter(foreign_only.iter().map(|item| async move {
        match cluster.get(&item.target).await {
            Ok(_) => true,
            Err(error) => error.kind() == ErrorKind::Forbidden,
        }
    }))
    .buffered(CONCURRENCY)
    .collect()
    .await;
    foreign_only
        .iter()
        .zip(live)
        .filter(|(_, is_live)| *is_live)
        .map(|(item, _)| ObjectAbout {
            api_version: item.kind().api_version(),
            kind: item.kind().kind.clone(),
            namespace: item.target.namespace.clone(),
            name: item.target.name.clone(),
        })
        .collect()
}
