//! Where the running Cilium comes from: the sentence, the foreign records, the user's values.

use cilium::object::ObjectRef;
use cilium::provenance::{Counts, Installer, Provenance, Source as Origin};
use goyaml::Map;
use serde_json::Value;

use super::make::Request;
use super::{ObjectAbout, RecordAbout, RecoveredAbout, ValuesAbout};
use crate::survey::{Survey, text};

pub(crate) fn tell(provenance: &Provenance) -> String {
    match &provenance.source {
        Origin::Own => "ichor's own release".to_owned(),
        Origin::Release(release) => {
            let history = &release.history;
            let why = match release.reason {
                Counts::Deployed => String::new(),
                Counts::LastDeployed { failed } => format!(
                    "; revision {failed} failed, so that the values are those of revision {}, the \
                     last deployed one",
                    release.counts.revision
                ),
                Counts::OnlyFailed => "; every revision failed, the newest one counts".to_owned(),
            };
            format!(
                "Helm release {}, records in namespace {}, {} revision(s){why}",
                history.release,
                history.storage_namespace,
                history.revisions.len()
            )
        }
        Origin::NoRecord { cli } => {
            let claim = provenance.claim.as_ref().map_or_else(String::new, |claim| {
                format!(
                    "; the objects say that they belong to Helm release {claim}, but there is no \
                     record of it that may be read (another storage driver, or deleted)"
                )
            });
            let cli = if cli.is_some() { ", with the values that the Cilium CLI left" } else { "" };
            let by = match &provenance.installer {
                Installer::Unknown => String::new(),
                installer => format!(", installed by {installer}"),
            };
            format!("no release record{by}{cli}{claim}")
        }
    }
}

pub(super) fn user_values(
    request: &Request<'_>,
    provenance: &Provenance,
    recovered: Option<(Map, RecoveredAbout)>,
    about: &mut ValuesAbout,
) -> Map {
    if let Some((values, recovered)) = recovered {
        about.source = recovered.tell();
        about.recovered = Some(recovered);
        return values;
    }
    let (values, source) = match (&provenance.source, request.values) {
        (Origin::Release(release), given) => {
            let given =
                given.map_or("", |_| "; --cilium-values is not used, since there is a record");
            let source = format!(
                "the record of revision {} of release {}{given}",
                release.counts.revision, release.history.release
            );
            (release.config.clone(), source)
        }
        // A release of ichor's own has its values, whatever they were taken over with.
        (Origin::Own, given) => {
            let given = given.map_or("", |_| "; --cilium-values is not used, since there is one");
            (own_values(provenance), format!("ichor's own record{given}"))
        }
        (_, Some(values)) => (values.clone(), "the operator's file (--cilium-values)".to_owned()),
        (Origin::NoRecord { cli: Some(cli) }, None) => {
            (cli.values.clone(), "the Cilium CLI's Secret".to_owned())
        }
        (Origin::NoRecord { .. }, None) => (
            Map::new(),
            "none: there is no record and no --cilium-values, so that the chart's defaults hold"
                .to_owned(),
        ),
    };
    about.source = source;
    values
}

/// Whether nobody says what the values are, so that they are recovered from what runs.
pub(super) fn leaves_no_values(request: &Request<'_>, provenance: &Provenance) -> bool {
    request.values.is_none() && matches!(provenance.source, Origin::NoRecord { cli: None })
}

fn own_values(provenance: &Provenance) -> Map {
    let newest = provenance.own.as_ref().and_then(|own| own.newest());
    let record = newest.and_then(|newest| newest.record().ok());
    record.and_then(|record| record.user_values().ok().flatten()).unwrap_or_default()
}

/// The foreign records, oldest first.
pub(crate) fn records(provenance: &Provenance, survey: &Survey) -> Vec<RecordAbout> {
    let Origin::Release(release) = &provenance.source else { return Vec::new() };
    release
        .history
        .revisions
        .iter()
        .map(|revision| RecordAbout {
            about: ObjectAbout {
                api_version: "v1".to_owned(),
                kind: revision.object.kind.clone(),
                namespace: revision.object.namespace.clone(),
                name: revision.object.name.clone(),
            },
            uid: revision.uid.clone(),
            release: release.history.release.clone(),
            revision: revision.revision,
            status: revision.status().to_string(),
            bytes: stored_bytes(survey, &revision.object),
        })
        .collect()
}

fn stored_bytes(survey: &Survey, object: &ObjectRef) -> usize {
    find_record(survey, object).map_or(0, |record| {
        let data = record.get("data").and_then(Value::as_object);
        let encoded: usize =
            data.into_iter().flatten().filter_map(|(_, value)| value.as_str().map(str::len)).sum();
        if object.kind == "Secret" { encoded / 4 * 3 } else { encoded }
    })
}

/// A record's object among those that were read.
pub(crate) fn find_record<'a>(survey: &'a Survey, object: &ObjectRef) -> Option<&'a Value> {
    let all = if object.kind == "Secret" { &survey.secrets } else { &survey.config_maps };
    all.iter().find(|candidate| {
        text(candidate, "/metadata/namespace") == object.namespace
            && text(candidate, "/metadata/name") == object.name
    })
}
