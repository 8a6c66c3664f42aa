//! Making a release of objects that another release holds, or none: the takeover for any chart.
//!
//! What is Cilium's own (what runs, owned keys, versions, recovered values, Talos) falls away; gate,
//! digest, consent, lock, stored plan, records, backups and restore are those of
//! [`crate::run`].
//!
//! ```text
//! foreign records, or none ─ refusals, values ─► wanted objects ─ gate ─► plan ─► run::take_over
//! ```

pub(crate) mod found;

use std::collections::BTreeSet;
use std::sync::Arc;

use cilium::provenance::{
    ForeignRelease, Installer, Provenance, ProvenanceError, Source as Origin,
};
use cilium::version::Step;
use goyaml::Map;
use helm_rs::apply::ownership;
use helm_rs::chart::Chart;
use helm_rs::cluster::{Clock, Cluster};
use helm_rs::error_chain;
use helm_rs::release::Status;
use helm_rs::release::storage::ObjectKind;
use helm_rs::render::Engine;

use crate::place::{Place, kind_name, lease_of};
use crate::plan::begun::{self, Begun};
use crate::plan::make::{gated, refusal};
use crate::plan::making::Making;
use crate::plan::origin::{records, tell};
use crate::plan::preconditions::Settled;
use crate::plan::{
    ChartAbout, DryRuns, Found, Key, KubePrism, Outcome, Plan, PlanError, Prepared,
    RELEASE_SCHEMA_VERSION, Refusal, ReleaseAbout, WhoWrites,
};
use crate::run::lock::LeaseName;
use crate::run::stored::{StoredError, StoredPlan};
use crate::subject::Subject;
use crate::survey::{Survey, failed, record_rights};

/// A release that objects are taken from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct From {
    /// Its name.
    pub release: String,
    /// The namespace of its records.
    pub namespace: String,
}

/// What is to be adopted.
pub struct Request<'a> {
    /// The cluster.
    pub cluster: Arc<dyn Cluster>,
    /// The clock.
    pub clock: &'a dyn Clock,
    /// What renders.
    pub engine: &'a Engine,
    /// The release that is made.
    pub place: Place,
    /// Its chart.
    pub chart: &'a Chart,
    /// The digest of the chart.
    pub chart_digest: String,
    /// The user's values; none: those of the foreign release.
    pub values: Option<&'a Map>,
    /// The release that holds the objects now; none for objects that were applied without one.
    pub from: Option<From>,
    /// 32 bytes of entropy for what the chart generates.
    pub entropy: [u8; 32],
    /// What the server answered to dry runs of an earlier plan; none to ask anew.
    pub dry_runs: Option<&'a DryRuns>,
}

impl Subject for Request<'_> {
    fn place(&self) -> &Place {
        &self.place
    }

    fn schema(&self) -> &'static str {
        RELEASE_SCHEMA_VERSION
    }

    fn cluster(&self) -> &Arc<dyn Cluster> {
        &self.cluster
    }

    fn clock(&self) -> &dyn Clock {
        self.clock
    }

    fn leases(&self) -> BTreeSet<LeaseName> {
        let from = self.from.as_ref();
        let other = from.map(|from| lease_of(&from.release, &from.namespace));
        [self.place.lease_name()].into_iter().chain(other).collect()
    }

    async fn prepare(&self) -> Result<Prepared, PlanError> {
        prepare(self).await
    }
}

/// The digest of a chart that no archive vouches for: that of its files, each with name and length.
pub fn chart_digest(chart: &Chart) -> String {
    let mut bytes = Vec::new();
    for file in &chart.raw {
        bytes.extend_from_slice(format!("{}\0{}\0", file.name, file.data.len()).as_bytes());
        bytes.extend_from_slice(&file.data);
    }
    format!("sha256:{}", crate::plan::sha256(&bytes))
}

/// Makes a plan. Nothing is written.
///
/// # Errors
/// [`PlanError`]: when the cluster does not answer, or the chart does not render. What forbids the
/// adoption is no error but a refusal in the plan.
pub async fn prepare(request: &Request<'_>) -> Result<Prepared, PlanError> {
    let place = &request.place;
    let cluster = &*request.cluster;
    let found::Found { mut survey, home, foreign, needs } = Box::pin(found::find(request)).await?;
    let mut plan = Plan {
        schema_version: RELEASE_SCHEMA_VERSION.to_owned(),
        release: Some(ReleaseAbout {
            name: place.release.to_string(),
            namespace: place.namespace.to_string(),
            records: place.kind().to_owned(),
        }),
        chart: ChartAbout {
            name: request.chart.name().to_owned(),
            version: request.chart.metadata.version.clone(),
            digest: request.chart_digest.clone(),
        },
        found: Found { kubernetes: survey.server.git_version.clone(), ..Found::default() },
        ..Plan::default()
    };
    let key = Key(survey.cluster_id.clone());
    if home.is_none() {
        plan.refusals.push(crate::run::no_namespace(place));
    }
    let begun = match own(request, cluster, &mut survey).await? {
        Own::Begun(begun) => Some(begun),
        Own::Adopted if foreign.is_none() => {
            plan.found.provenance = format!("an adoption that is complete ({})", place.release);
            plan.outcome = Outcome::Nothing;
            None
        }
        Own::None => None,
        Own::Adopted => {
            plan.refusals.push(taken(place));
            None
        }
        Own::Refused(refusal) => {
            plan.refusals.push(refusal);
            None
        }
    };
    let provenance = provenance(request, foreign.as_ref(), begun.as_deref(), &mut plan);
    let is_done = plan.outcome == Outcome::Nothing;
    let Some(provenance) = provenance.filter(|_| plan.refusals.is_empty() && !is_done) else {
        if plan.is_refused() {
            plan.outcome = Outcome::Refused;
        }
        return Ok(Prepared::refused(plan, key, survey));
    };
    plan.found.provenance = tell(&provenance);
    if let Some(begun) = begun.as_deref() {
        plan.found.provenance.push_str(&begun.tell());
    }
    plan.records = records(&provenance, &survey);
    let user = values(request, &provenance, begun.as_deref(), &mut plan);
    if !request.chart.files.iter().all(|file| !file.name.starts_with("crds/")) {
        plan.unchecked.push(
            "what is under crds/ of the chart: Helm installs it once and never again, so that it is \
             neither compared nor written"
                .to_owned(),
        );
    }
    plan.outcome = if begun.is_some() { Outcome::Resume } else { Outcome::TakeOver };
    let namespace = request.from.as_ref().map_or(&*place.namespace, |from| &*from.namespace);
    let settled = Settled {
        provenance,
        namespace: namespace.to_owned(),
        effective: user.clone(),
        user,
        step: Step::Same,
        looking: request.from.iter().flat_map(|from| record_rights(&from.namespace)).collect(),
    };
    let making = Making {
        place,
        cluster: &request.cluster,
        clock: request.clock,
        engine: request.engine,
        chart: request.chart,
        version: request.chart.metadata.version.clone(),
        who_writes: &WhoWrites::Caller,
        entropy: request.entropy,
        dry_runs: request.dry_runs,
        kube_prism: &KubePrism::NotAsked,
        reading: needs,
        before: None,
    };
    let mut prepared = Box::pin(gated(&making, survey, plan, key, settled)).await?;
    strangers(request, &mut prepared);
    Ok(prepared)
}

/// What stands under the name that is taken.
enum Own {
    /// Nothing.
    None,
    /// An adoption that was begun.
    Begun(Box<Begun>),
    /// One that is complete, whether or not the release went on since.
    Adopted,
    /// A release of somebody else's, or something that does not read.
    Refused(Refusal),
}

/// Looks at what stands under the name that is taken.
///
/// # Errors
/// [`PlanError`] when the cluster cannot be read.
async fn own(
    request: &Request<'_>,
    cluster: &dyn Cluster,
    survey: &mut Survey,
) -> Result<Own, PlanError> {
    let place = &request.place;
    let [ours, others] = found::own_records(request, survey);
    if !others {
        // One that was restored leaves its stored plan behind.
        if !ours {
            return Ok(Own::None);
        }
    } else if request.from.as_ref().is_none_or(|from| !is_same_release(place, from)) {
        return Ok(Own::Refused(taken(place)));
    } else if !ours {
        return Ok(Own::None);
    }
    match StoredPlan::read(cluster, place).await {
        Ok(Some(stored)) if stored.plan.schema_version == RELEASE_SCHEMA_VERSION => {}
        Ok(_) if request.from.as_ref().is_some_and(|from| is_same_release(place, from)) => {
            return Ok(Own::Refused(refusal(
                "Same",
                "the release to adopt and the one that is made are the same: `ichor release \
                 upgrade` brings it to another chart or values",
            )));
        }
        Ok(_) => return Ok(Own::Refused(taken(place))),
        Err(StoredError::Cluster { source, .. }) => {
            return Err(failed("read the stored plan")(source).into());
        }
        Err(error) => return Ok(Own::Refused(refusal("StoredPlan", error_chain(&error)))),
    }
    Ok(match begun::find(place, cluster, survey).await? {
        begun::Found::Nothing => Own::Adopted,
        begun::Found::Begun(begun) => Own::Begun(begun),
        begun::Found::Refused(refusal) => Own::Refused(refusal),
    })
}

fn is_same_release(place: &Place, from: &From) -> bool {
    from.release == place.release && from.namespace == place.home
}

fn taken(place: &Place) -> Refusal {
    let Place { release, home, .. } = place;
    refusal(
        "Taken",
        format!(
            "release {release} is there already, with records in namespace {home}, and no adoption \
             made it: take another name, or bring that release to what is wanted with `ichor \
             release upgrade`"
        ),
    )
}

/// Where the objects come from; none when that refuses.
fn provenance(
    request: &Request<'_>,
    foreign: Option<&cilium::provenance::History>,
    begun: Option<&Begun>,
    plan: &mut Plan,
) -> Option<Provenance> {
    // What stands under the name says more.
    if plan.is_refused() {
        return None;
    }
    let source = match (&request.from, foreign) {
        (None, _) => Origin::NoRecord { cli: None },
        // What was begun has retired them, perhaps all.
        (Some(_), None) if begun.is_some() => Origin::Own,
        (Some(_), None) if plan.outcome == Outcome::Nothing => Origin::Own,
        (Some(from), None) => {
            plan.refusals.push(refusal(
                "Foreign",
                format!(
                    "there is no record of release {} in namespace {}: name the release that holds \
                     the objects, or none for objects that were applied without one",
                    from.release, from.namespace
                ),
            ));
            return None;
        }
        (Some(_), Some(history)) => match foreign_release(request, history) {
            Ok(release) => Origin::Release(Box::new(release)),
            Err(refusal) => {
                plan.refusals.push(refusal);
                return None;
            }
        },
    };
    Some(Provenance {
        claim: None,
        other_claims: Vec::new(),
        managers: Vec::new(),
        installer: Installer::Unknown,
        own: None,
        source,
        strays: Vec::new(),
        unreadable: Vec::new(),
    })
}

fn foreign_release(
    request: &Request<'_>,
    history: &cilium::provenance::History,
) -> Result<ForeignRelease, Refusal> {
    if history.newest().is_some_and(|newest| newest.status() == Status::Uninstalled) {
        let message = format!(
            "release {} in namespace {} is uninstalled: it holds nothing to adopt",
            history.release, history.storage_namespace
        );
        return Err(refusal("Foreign", message));
    }
    ForeignRelease::new(history, request.clock.now().as_second()).map_err(|error| match &error {
        ProvenanceError::InProgress { .. } => refusal("Pending", error_chain(&error)),
        ProvenanceError::Broken { object, reason } => refusal(
            "Record",
            format!(
                "{object}, a record of release {}, cannot be read ({reason}): restore it, or \
                 remove it if no revision but that one is in use",
                history.release
            ),
        ),
        _ => refusal("Foreign", error_chain(&error)),
    })
}

/// The user's values, and where they come from.
fn values(
    request: &Request<'_>,
    provenance: &Provenance,
    begun: Option<&Begun>,
    plan: &mut Plan,
) -> Map {
    let (values, source) = match (begun, request.values, &provenance.source) {
        (Some(begun), _, _) => {
            (begun.values.clone(), "ichor's own record of the adoption that was begun".to_owned())
        }
        (None, Some(given), _) => (given.clone(), "what was given (-f, --set)".to_owned()),
        (None, None, Origin::Release(release)) => (
            release.config.clone(),
            format!(
                "the record of revision {} of release {}",
                release.counts.revision, release.history.release
            ),
        ),
        (None, None, _) => {
            (Map::new(), "none were given, so that the chart's defaults hold".to_owned())
        }
    };
    plan.values.source = source;
    values
}

/// Refuses objects that say they belong to a third release.
fn strangers(request: &Request<'_>, prepared: &mut Prepared) {
    let place = &request.place;
    let mut owners = BTreeSet::new();
    for object in &prepared.objects {
        let Some(live) = &object.live else { continue };
        let of_from =
            |from: &From| ownership::other(live, &from.release, &from.namespace).is_none();
        if request.from.as_ref().is_some_and(of_from) {
            continue;
        }
        if let Some(owner) = ownership::other(live, &place.release, &place.namespace) {
            owners.insert(format!("{} belongs to {owner}", object.item.target));
        }
    }
    if owners.is_empty() {
        return;
    }
    let plan = &mut prepared.plan;
    let owners: Vec<String> = owners.into_iter().collect();
    plan.refusals.push(refusal(
        "Owned",
        format!(
            "{}: an adoption takes objects from one release only, which --from-release and \
             --from-namespace name",
            owners.join("; ")
        ),
    ));
    plan.outcome = Outcome::Refused;
}

/// The other driver's kind.
pub(crate) const fn other_kind(records: ObjectKind) -> &'static str {
    match records {
        ObjectKind::Secret => kind_name(ObjectKind::ConfigMap),
        ObjectKind::ConfigMap => kind_name(ObjectKind::Secret),
    }
}
