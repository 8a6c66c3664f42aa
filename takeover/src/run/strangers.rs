//! Which objects somebody else changed while a takeover was begun and not complete.

use futures::stream::{self, StreamExt as _};
use helm_rs::cluster::{Cluster, ClusterError, Discovery, ErrorKind};
use serde_json::Value;

use super::stored::StoredPlan;
use crate::plan::Key;
use crate::survey::text;

/// Requests under way at once.
const CONCURRENCY: usize = 16;

/// A live object as it was read; none when it is not there.
pub(super) type Live = Option<Value>;

/// What was read of a stored plan's objects.
#[derive(Debug, Default)]
pub(super) struct Looked {
    /// The live objects, in the plan's order.
    pub(super) live: Vec<Live>,
    /// Objects that are neither as they were at the consent nor as the plan writes them.
    pub(super) strangers: Vec<String>,
}

/// Why it cannot be told.
#[derive(Debug, thiserror::Error)]
#[error("read {object}")]
pub struct LookError {
    /// The object.
    object: String,
    /// What the cluster says.
    source: ClusterError,
}

/// Reads every object of a stored plan, and holds it against its states before and after the
/// plan's write. What may not be read is not counted: whoever writes has to read it first.
///
/// # Errors
/// [`LookError`]
pub(super) async fn look(
    cluster: &dyn Cluster,
    discovery: &Discovery,
    stored: &StoredPlan,
) -> Result<Looked, LookError> {
    let key = Key(stored.key.clone());
    let found: Vec<Result<(Live, Option<String>), LookError>> =
        stream::iter(stored.objects.iter().map(|object| {
            let key = &key;
            async move {
                let Some(item) = object.item(discovery) else {
                    let (kind, name) =
                        (text(&object.desired, "/kind"), text(&object.desired, "/metadata/name"));
                    return Ok((None, Some(format!("{kind} {name} (no longer served)"))));
                };
                let title = item.target.to_string();
                match cluster.get(&item.target).await {
                    Ok(live) if object.knows(key, &live) => Ok((Some(live), None)),
                    Ok(live) => Ok((Some(live), Some(title))),
                    Err(error) if error.is_not_found() && object.before.is_empty() => {
                        Ok((None, None))
                    }
                    Err(error) if error.is_not_found() => {
                        Ok((None, Some(format!("{title} (gone)"))))
                    }
                    Err(error) if error.kind() == ErrorKind::Forbidden => Ok((None, None)),
                    Err(source) => Err(LookError { object: title, source }),
                }
            }
        }))
        .buffered(CONCURRENCY)
        .collect()
        .await;
    let mut looked = Looked::default();
    for one in found {
        let (live, stranger) = one?;
        looked.live.push(live);
        looked.strangers.extend(stranger);
    }
    Ok(looked)
}
