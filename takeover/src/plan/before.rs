//! What earlier revisions of ichor's own release wrote: what of it a change takes away again.

use helm_rs::apply::{Item, KEEP, RESOURCE_POLICY, ownership};
use helm_rs::cluster::{Cluster, Discovery, ErrorKind};
use serde_json::Value;

use super::{DeletionAbout, ObjectAbout};
use crate::gate::leaves_of;
use crate::place::Place;
use crate::rendered::{RenderedObject, manifest_objects};
use crate::survey::text;

/// The objects of earlier revisions, the newest first.
#[derive(Debug, Default)]
pub(crate) struct Before {
    items: Vec<Item>,
}

impl Before {
    /// Reads manifests. Where several have an object, the first one counts.
    pub(crate) fn of<'a>(
        discovery: &Discovery,
        manifests: impl IntoIterator<Item = &'a str>,
        namespace: &str,
    ) -> Self {
        let mut items: Vec<Item> = Vec::new();
        for manifest in manifests {
            for item in manifest_objects(discovery, manifest, namespace) {
                if !items.iter().any(|other| other.matches(&item)) {
                    items.push(item);
                }
            }
        }
        Self { items }
    }

    /// The object as it was written, where it has something that it has no longer.
    pub(crate) fn original(&self, object: &RenderedObject) -> Option<&Value> {
        let original = &self.items.iter().find(|item| item.matches(&object.item))?.value;
        let wanted = leaves_of(&object.wanted.object);
        leaves_of(original).keys().any(|path| !wanted.contains_key(path)).then_some(original)
    }

    /// Objects that are not rendered any more. Jobs are not among them: they have done their work,
    /// and go by themselves.
    pub(crate) fn gone<'a>(&'a self, rendered: &'a [RenderedObject]) -> Vec<&'a Item> {
        let lasts = |item: &&Item| item.kind().kind != "Job";
        let is_rendered = |item: &&Item| rendered.iter().any(|object| object.item.matches(item));
        self.items.iter().filter(lasts).filter(|item| !is_rendered(item)).collect()
    }
}

/// What becomes of objects that are not rendered any more: those that are the release's are deleted,
/// the others stay.
pub(crate) async fn deletions(
    cluster: &dyn Cluster,
    place: &Place,
    gone: &[&Item],
) -> (Vec<DeletionAbout>, Vec<ObjectAbout>) {
    let (mut deleted, mut left) = (Vec::new(), Vec::new());
    for item in gone {
        let about = ObjectAbout {
            api_version: item.kind().api_version(),
            kind: item.kind().kind.clone(),
            namespace: item.target.namespace.clone(),
            name: item.target.name.clone(),
        };
        match cluster.get(&item.target).await {
            Ok(live) if may_delete(place, item, &live) => {
                deleted.push(DeletionAbout { about, uid: text(&live, "/metadata/uid").to_owned() });
            }
            Ok(_) => left.push(about),
            // The right that is missing is told apart.
            Err(error) if error.kind() == ErrorKind::Forbidden => left.push(about),
            Err(_) => {}
        }
    }
    (deleted, left)
}

/// Whether a live object is the release's, and neither it nor the chart says that it is to be kept.
/// A namespace takes everything in it along, so that it is left to its owner.
fn may_delete(place: &Place, item: &Item, live: &Value) -> bool {
    let kept = |object: &Value| {
        let annotations = object.pointer("/metadata/annotations");
        annotations.and_then(|all| all.get(RESOURCE_POLICY)?.as_str()) == Some(KEEP)
    };
    item.kind().kind != "Namespace"
        && !kept(&item.value)
        && !kept(live)
        && ownership::check(live, &place.release, &place.namespace).is_ok()
}
