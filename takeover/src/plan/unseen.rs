//! What may be there and may not be looked for.
//!
//! That there is no record decides where the values come from and what a takeover retires, so that
//! it has to be known: one who may not look is told which right he lacks, and does not plan
//! something else.

use std::collections::BTreeSet;

use cilium::pinned::NAMESPACE;
use cilium::provenance::{Provenance, Source as Origin};
use helm_rs::action::rights::Right;

use super::begun::Begun;
use super::make::{Request, told};
use super::{Needs, PlanError};
use crate::survey::{Survey, cli_right, failed, record_rights};

/// What it takes to know that there is nothing but what was found: no record where the release that
/// the running Cilium names has its own, or where Cilium lies when it names none; no values of the
/// Cilium CLI, unless the operator gives some. Nothing when a record was found.
pub(super) fn looking(
    request: &Request<'_>,
    provenance: &Provenance,
    begun: Option<&Begun>,
) -> Vec<Right> {
    match &provenance.source {
        Origin::Release(_) => Vec::new(),
        // What was begun may have more to retire.
        Origin::Own => {
            let records = begun.map(Begun::records).unwrap_or_default();
            let rights = records.iter().map(|record| {
                let plural = if record.about.kind == "Secret" { "secrets" } else { "configmaps" };
                Right::any("list", "", plural, &record.about.namespace)
            });
            rights.collect::<BTreeSet<Right>>().into_iter().collect()
        }
        Origin::NoRecord { .. } => {
            let claim = provenance.claim.as_ref();
            let place = claim.map_or(NAMESPACE, |claim| claim.namespace.as_str());
            let mut rights = record_rights(place).to_vec();
            rights.extend(request.values.is_none().then(cli_right));
            rights
        }
    }
}

/// Refuses one who may not look where he has to. All that he lacks to look is told at once.
///
/// # Errors
/// [`PlanError::Rights`]; [`PlanError::Survey`] when it is no right that is missing.
pub(super) async fn check(
    request: &Request<'_>,
    survey: &Survey,
    provenance: &Provenance,
    begun: Option<&Begun>,
) -> Result<(), PlanError> {
    let looking = looking(request, provenance, begun);
    let Some(hidden) = survey.hidden.iter().find(|hidden| looking.contains(&hidden.right)) else {
        return Ok(());
    };
    let mut needs = Needs::default();
    needs.reading();
    needs.seeing_own();
    needs.looking(&looking);
    let error = failed(hidden.right.to_string())(hidden.source.clone());
    Err(told(&*request.cluster, needs, error.into()).await)
}
