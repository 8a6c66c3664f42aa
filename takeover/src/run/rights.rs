//! Rights that a run makes sure of before it writes anything.
//!
//! A fresh run plans again, and the plan checks all of them; what the lock takes is checked before
//! that. A run that goes on by a stored plan checks what that plan takes.

use std::collections::BTreeSet;

use helm_rs::apply::Item;
use helm_rs::cluster::Cluster;

use super::error::{Denied, RunError};
use super::execute::Run;
use super::stored::{StoredObject, StoredPlan};
use crate::place::Place;
use crate::plan::rights::needs::Written;
use crate::plan::rights::{self, Needs};
use crate::plan::{Action, RecordAbout};
use crate::subject::Subject;
use crate::survey::{builtin, read};

/// Refuses when ichor's own namespace, lock and records are out of reach. Whether that namespace is
/// there.
pub(super) async fn check_own<S: Subject>(run: &Run<'_, S>) -> Result<bool, RunError> {
    let place = run.request.place();
    let mut needs = Needs::of(place.words.deed);
    let exists = namespace_exists(&**run.request.cluster(), place).await;
    needs.own(place, exists);
    needs.locks(&run.request.leases());
    check(run, needs).await?;
    Ok(exists)
}

/// Whether ichor's namespace is there, as far as this identity may tell.
async fn namespace_exists(cluster: &dyn Cluster, place: &Place) -> bool {
    let namespaces = builtin("v1", "Namespace", "namespaces", false);
    !matches!(read(cluster, &namespaces, "", &place.home).await, Ok(None))
}

/// Refuses when something that is needed may not be done.
async fn check<S: Subject>(run: &Run<'_, S>, needs: Needs) -> Result<(), RunError> {
    let rights = rights::check_first(&**run.request.cluster(), needs).await;
    match rights.refusal() {
        None => Ok(()),
        Some(refusal) => Err(Denied::by(refusal).into()),
    }
}

/// The same for a run that finishes what a stored plan says.
pub(super) async fn check_stored<S: Subject>(
    run: &Run<'_, S>,
    stored: &StoredPlan,
) -> Result<(), RunError> {
    let cluster = &**run.request.cluster();
    let doing = || "read what the server serves".to_owned();
    let discovery = cluster.discovery(false).await;
    let discovery = discovery.map_err(|source| RunError::Object { doing: doing(), source })?;
    let items: Vec<(&StoredObject, Item)> =
        stored.objects.iter().filter_map(|o| Some((o, o.item(&discovery)?))).collect();
    let written: Vec<Written<'_>> = items
        .iter()
        .map(|(object, item)| Written {
            target: &item.target,
            value: &item.value,
            action: if object.keep {
                Action::Keep
            } else if object.before.is_empty() {
                Action::Create
            } else {
                Action::Patch
            },
            dry_run: false,
        })
        .collect();
    let mut needs = Needs::of(run.request.place().words.deed);
    needs.records(&stored.plan.records);
    needs.waiting(&written, &BTreeSet::new());
    needs.objects(cluster, &discovery, &written).await;
    check(run, needs).await
}

/// The same for a run that only has foreign records to retire.
pub(super) async fn check_records<S: Subject>(
    run: &Run<'_, S>,
    records: &[RecordAbout],
) -> Result<(), RunError> {
    let mut needs = Needs::of(run.request.place().words.deed);
    needs.records(records);
    check(run, needs).await
}
