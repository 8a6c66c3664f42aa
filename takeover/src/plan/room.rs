//! Room for the Secrets that a takeover writes, judged by what would be sent.

use cilium::object::ObjectRef;
use helm_rs::error_chain;
use serde_json::{Value, json};

use super::make::{Prepared, refusal};
use super::origin::find_record;
use super::preconditions::Settled;
use super::{Outcome, Plan, Size};
use crate::place::Place;
use crate::rendered::Rendered;
use crate::room::Weight;
use crate::run::backup::{self, BackupError};
use crate::run::stored::StoredPlan;
use crate::survey::Survey;

/// Bytes that ichor's record may grow by before it is complete: a description with an error.
const DESCRIPTION: usize = 8 * 1024;

/// Forecasts ichor's record and the backups, and refuses what does not fit.
pub(super) fn records(
    place: &Place,
    plan: &mut Plan,
    survey: &Survey,
    settled: &Settled,
    rendered: &Rendered,
) {
    let draft = crate::run::record::draft(place, rendered, &settled.effective, 1, "", "");
    if let Ok(record) = draft
        && let Ok(text) = helm_rs::release::encode(&record.to_json())
    {
        let newest = settled.provenance.own.as_ref().and_then(|own| own.newest());
        let newest = newest.map_or(0, |newest| newest.revision);
        let revision = if plan.outcome == Outcome::Nothing { newest.max(1) } else { newest + 1 };
        let mut what = format!(
            "ichor's record ({} {}/sh.helm.release.v1.{}.v{revision})",
            place.kind(),
            place.home,
            place.release
        );
        if plan.is_change() {
            "ichor's next record".clone_into(&mut what);
        }
        let mut weight = Weight::of(&json!({}));
        weight.data = text.len() + DESCRIPTION;
        if let Some(excess) = weight.excess() {
            let todo = "shorten what is in the values";
            plan.refusals.push(refusal("Room", format!("{what} would have {excess}: {todo}")));
        }
        plan.sizes.push(Size { what, bytes: text.len() });
    }
    let found: Vec<(&str, &Value)> = plan
        .records
        .iter()
        .filter_map(|record| {
            let about = &record.about;
            let at = ObjectRef::new(&about.kind, &about.namespace, &about.name);
            Some((about.kind.as_str(), find_record(survey, &at)?))
        })
        .collect();
    let total: usize = plan.records.iter().map(|record| record.bytes).sum();
    let forecast = backup::forecast(place, &found);
    if total > 0 {
        let what = "the backup of the foreign records, in all".to_owned();
        plan.sizes.push(Size { what, bytes: total });
    }
    if let Err(error) = forecast {
        let is_room = matches!(error, BackupError::TooLarge { .. });
        let reason = if is_room { "Room" } else { "Records" };
        plan.refusals.push(refusal(reason, error_chain(&error)));
    }
}

/// Forecasts the stored plan, which holds everything else.
pub(super) fn stored_plan(place: &Place, prepared: &mut Prepared) {
    let what = format!("the stored plan (Secret {}/{})", place.home, place.plan);
    let weight = match StoredPlan::of(prepared).secret(place) {
        Ok(secret) => Weight::of(&secret),
        Err(error) => {
            prepared.plan.refusals.push(refusal("Room", error_chain(&error)));
            return;
        }
    };
    prepared.plan.sizes.push(Size { what: what.clone(), bytes: weight.data });
    if let Some(excess) = weight.excess() {
        let message = format!(
            "{what} would have {excess}: it holds each object as it is written; shorten what is in \
             the values, or remove what stays as residue"
        );
        prepared.plan.refusals.push(refusal("Room", message));
    }
}
