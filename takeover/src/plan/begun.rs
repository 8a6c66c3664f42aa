//! A takeover that was begun and is not complete, as a new plan sees it.
//!
//! What is half done says nothing about what was there before: objects carry ichor's ownership and
//! perhaps the new version already, and workloads are on their way. So a new plan, like a run that
//! goes on, takes provenance, live version and values from what was begun, and leaves out the
//! checks that half-done work fails by itself; what it compares and asks consent for is what is
//! live now. (Takeover rules, section 4, step 2, and section 5)

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cilium::version::{self, Version, VersionError};
use goyaml::Map;
use helm_rs::error_chain;
use helm_rs::release::storage::ObjectKind;
use helm_rs::release::{CodecLimits, Record, Status, decode};
use serde_json::Value;

use super::make::refusal;
use super::{RecordAbout, Refusal};
use crate::place::Place;
use crate::run::own::{damaged, revision_of, unfinished_action, was_deployed};
use crate::run::stored::{StoredError, StoredPlan, set_ownership};
use crate::survey::{Survey, SurveyError, failed, is_agent, records_of_release, text};

/// A takeover that was begun.
pub(crate) struct Begun {
    /// The plan that was consented to; none when somebody deleted it.
    stored: Option<StoredPlan>,
    /// The values that it was begun with.
    pub(crate) values: Map,
    revision: i64,
    status: Status,
}

/// What is found of one.
pub(crate) enum Found {
    /// None was begun, or it is complete.
    Nothing,
    /// One was.
    Begun(Box<Begun>),
    /// Ichor's own release is in a state in which nothing can be planned: something of it is
    /// damaged, or an action on it did not end.
    Refused(Refusal),
}

/// Looks for a takeover that was begun: ichor's newest record is not deployed. Records of the
/// release that it takes over are added to what was read, since the objects may no longer say
/// whose they were.
///
/// # Errors
/// [`SurveyError`] when the cluster cannot be read.
pub(crate) async fn find(
    place: &Place,
    cluster: &dyn helm_rs::cluster::Cluster,
    survey: &mut Survey,
) -> Result<Found, SurveyError> {
    let objects = match place.records {
        ObjectKind::Secret => &survey.secrets,
        ObjectKind::ConfigMap => &survey.config_maps,
    };
    let own: Vec<(i64, &Value)> = objects
        .iter()
        .filter(|object| text(object, "/metadata/namespace") == place.home)
        .filter_map(|object| Some((revision_of(place, text(object, "/metadata/name"))?, object)))
        .collect();
    let after_takeover =
        own.iter().any(|(_, object)| was_deployed(text(object, "/metadata/labels/status")));
    let newest = own.into_iter().max_by_key(|(revision, _)| *revision);
    let Some((revision, object)) = newest else { return Ok(Found::Nothing) };
    let (status, values) = match record(place, object).and_then(|record| contents(&record)) {
        Ok(contents) => contents,
        Err(reason) => {
            let message = damaged(place, text(object, "/metadata/name"), &reason);
            return Ok(Found::Refused(refusal("Record", message)));
        }
    };
    if status == Status::Deployed {
        return Ok(Found::Nothing);
    }
    if let Some(refusal) = unfinished_action(place, revision, &status, after_takeover) {
        return Ok(Found::Refused(refusal));
    }
    let stored = match StoredPlan::read(cluster, place).await {
        Ok(stored) => stored,
        Err(StoredError::Cluster { source: error, .. }) => {
            return Err(failed("read the plan of the takeover that was begun")(error));
        }
        Err(error) => return Ok(Found::Refused(refusal("StoredPlan", error_chain(&error)))),
    };
    // What any other release comes from is named by whoever asks.
    if !place.is_shared
        && let Some(first) = stored.as_ref().and_then(|stored| stored.plan.records.first())
    {
        records_of_release(cluster, survey, &first.release, &first.about.namespace).await?;
    }
    Ok(Found::Begun(Box::new(Begun { stored, values, revision, status })))
}

/// The record in an object, or the layer that is broken.
fn record(place: &Place, object: &Value) -> Result<Record, String> {
    let data = text(object, "/data/release");
    if data.is_empty() {
        return Err("it has no entry `release`".to_owned());
    }
    let stored = match place.records {
        ObjectKind::Secret => {
            STANDARD.decode(data).map_err(|error| format!("base64 of the object: {error}"))?
        }
        ObjectKind::ConfigMap => data.as_bytes().to_vec(),
    };
    let json = decode(&stored, CodecLimits::default()).map_err(|error| error_chain(&error))?;
    Record::from_json(&json).map_err(|error| format!("its JSON: {error}"))
}

/// The status of a record, and the values that it was made with.
fn contents(record: &Record) -> Result<(Status, Map), String> {
    let status = record.info().map_err(|error| error_chain(&error))?.status();
    let values = record.user_values().map_err(|error| error_chain(&error))?;
    Ok((status, values.unwrap_or_default()))
}

impl Begun {
    /// The foreign records that it retires at its end.
    pub(super) fn records(&self) -> &[RecordAbout] {
        self.stored.as_ref().map_or(&[], |stored| &stored.plan.records)
    }

    /// The agents' DaemonSet as the takeover writes it, where there was one before. It stands for
    /// the live one when somebody deleted that meanwhile.
    pub(super) fn daemon_set(&self) -> Option<&Value> {
        let objects = self.stored.iter().flat_map(|stored| &stored.objects);
        let mut there = objects.filter(|object| !object.before.is_empty());
        there.find(|object| is_agent(&object.desired)).map(|object| &object.desired)
    }

    /// As the end of a sentence about where Cilium comes from.
    pub(crate) fn tell(&self) -> String {
        format!(
            "; a takeover was begun (ichor's revision {} is {}) and is not complete: this plan \
             goes on from what it left",
            self.revision, self.status
        )
    }

    /// Gives live objects the ownership metadata back that they had when it was begun, so that
    /// they say whose they were.
    pub(super) fn give_back(&self, live: &mut [Value]) {
        for object in live {
            let stored = self.stored.iter().flat_map(|stored| &stored.objects);
            let former = stored
                .filter(|stored| same_place(&stored.desired, object))
                .find_map(|stored| stored.former.as_ref());
            if let Some(former) = former {
                set_ownership(object, former);
            }
        }
    }

    /// The version that ran when it was begun; none when nothing did. `recorded` is what the
    /// foreign record says, which no half-done work changes.
    ///
    /// # Errors
    /// [`VersionError`]
    pub(super) fn version(
        &self,
        image: &str,
        recorded: Option<&str>,
    ) -> Result<Option<Version>, VersionError> {
        match &self.stored {
            Some(stored) if stored.plan.found.version.is_empty() => Ok(None),
            Some(stored) => stored.plan.found.version.parse().map(Some),
            None if recorded.is_some() => version::live(None, recorded).map(Some),
            None => version::live(Some(image), None).map(Some),
        }
    }
}

fn same_place(one: &Value, other: &Value) -> bool {
    ["/kind", "/metadata/namespace", "/metadata/name"]
        .into_iter()
        .all(|pointer| text(one, pointer) == text(other, pointer))
}
