//! What upgrades made under a name that a restore takes back: the restore leaves it without a
//! release, and lists it.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use helm_rs::apply::ownership;
use helm_rs::cluster::{Cluster, Discovery};
use helm_rs::release::storage::ObjectKind;
use helm_rs::release::{CodecLimits, Record, decode};
use serde_json::Value;

use super::{RestoreError, failed};
use crate::place::Place;
use crate::rendered::manifest_objects;
use crate::run::stored::StoredPlan;
use crate::survey::text;

/// The objects that the release has only since the move or adoption, as the plan lists them. Those
/// are none of the stored plan's, and say that they are this release's.
///
/// # Errors
/// [`RestoreError`] when one cannot be read.
pub(super) async fn made_since(
    place: &Place,
    cluster: &dyn Cluster,
    discovery: &Discovery,
    stored: &StoredPlan,
    own: &[Value],
) -> Result<Vec<String>, RestoreError> {
    let items = stored.objects.iter().filter_map(|object| object.item(discovery));
    let mut known: BTreeSet<String> = items.map(|item| item.target.to_string()).collect();
    let what_next = stored.plan.records.first().map_or_else(
        || "delete it if nothing needs it".to_owned(),
        |record| {
            format!(
                "`ichor release upgrade {} … --take-ownership` takes it in where the chart has it; \
                 else delete it if nothing needs it",
                record.release
            )
        },
    );
    let mut found = Vec::new();
    for object in own.iter().rev() {
        // One that does not read is refused elsewhere.
        let Some(manifest) = manifest_of(place, object) else { continue };
        for item in manifest_objects(discovery, &manifest, &place.home) {
            let title = item.target.to_string();
            if !known.insert(title.clone()) {
                continue;
            }
            match cluster.get(&item.target).await {
                Ok(live) => {
                    if ownership::check(&live, &place.release, &place.home).is_ok() {
                        found.push(format!("{title} (made by an upgrade since: {what_next})"));
                    }
                }
                Err(error) if error.is_not_found() => {}
                Err(error) => return Err(failed(format!("read {title}"))(error)),
            }
        }
    }
    Ok(found)
}

/// The manifest in a record's object.
fn manifest_of(place: &Place, object: &Value) -> Option<String> {
    let data = text(object, "/data/release");
    let stored = match place.records {
        ObjectKind::Secret => STANDARD.decode(data).ok()?,
        ObjectKind::ConfigMap => data.as_bytes().to_vec(),
    };
    let json = decode(&stored, CodecLimits::default()).ok()?;
    Record::from_json(&json).ok()?.manifest().ok()
}
