//! Ichor's own record.

use goyaml::Map;
use helm_rs::release::{NewRecord, RELEASE_FIELDS, RawObject, Record, Status};

use crate::place::Place;
use crate::rendered::Rendered;

/// The description of a record whose takeover is under way.
pub(crate) const UNDER_WAY: &str = "Takeover underway";
/// Of one that is complete.
pub(crate) const COMPLETE: &str = "Takeover complete";

/// How descriptions of records that a change made begin.
pub(crate) const CHANGE: &str = "Change ";
/// The description of a record whose change is under way.
pub(crate) const CHANGE_UNDER_WAY: &str = "Change underway";
/// Of one that is complete.
pub(crate) const CHANGE_COMPLETE: &str = "Change complete";

/// Of one whose run died.
pub(crate) const DIED: &str = "The run that began this takeover ended before it was complete";

/// A record for a rendered chart, as a takeover begins.
///
/// # Errors
/// When the values hold what JSON does not.
pub(crate) fn draft(
    place: &Place,
    rendered: &Rendered,
    values: &Map,
    revision: i64,
    first_deployed: &str,
    now: &str,
) -> Result<Record, goyaml::json::Error> {
    NewRecord {
        name: &place.release,
        namespace: &place.namespace,
        revision,
        chart: &rendered.chart,
        config: values,
        manifest: &rendered.rendering.manifest,
        hooks: &rendered.rendering.hooks,
        notes: &rendered.rendering.notes,
        first_deployed,
        last_deployed: now,
        status: &Status::PendingInstall,
        description: UNDER_WAY,
    }
    .build()
}

/// The next revision of a record whose takeover did not end: the same, under way again.
///
/// # Errors
/// When the record is none.
pub(crate) fn again(last: &Record, revision: i64, now: &str) -> Result<Record, serde_json::Error> {
    let mut object = RawObject::parse(&last.to_json())?;
    object.set("version", revision.to_string(), RELEASE_FIELDS)?;
    let mut info: RawObject = object.read("info")?.unwrap_or_default();
    info.set(
        "last_deployed",
        serde_json::Value::from(now).to_string(),
        helm_rs::release::INFO_FIELDS,
    )?;
    object.set("info", info.to_json(), RELEASE_FIELDS)?;
    let mut record = Record::from_json(&object.to_json())?;
    record.set_status(&Status::PendingInstall, UNDER_WAY).map_err(|error| error.source)?;
    Ok(record)
}
