//! A change of ichor's own release of Cilium: other values, a newer chart, or both.
//!
//! ```text
//! ichor's records ─ values ─┐
//! values that are wanted ───┴─ overlay ─ owned keys ─ render ─ gate ─ plan ─ consent ─ run
//! ```
//!
//! Gate, consent, lock, stored plan and writing are a takeover's. What differs:
//!
//! - The release is ichor's already, so that what the revision before wrote and the new one does not
//!   have is taken away: leaves, and whole objects where they still are the release's.
//! - What stays as it is needs no consent: it stayed before.
//! - Values alone bring no other version: they are rendered with the chart of the record.
//! - The record before is the backup: `ichor release rollback cilium -n ichor-system` goes back to
//!   it.

mod overlay;

use std::collections::BTreeSet;
use std::sync::Arc;

use cilium::kube_proxy::Replacement;
use cilium::owned::{self, Facts, Live};
use cilium::pinned::{NAMESPACE, Pinned, RECORD_NAMESPACE, RELEASE};
use cilium::provenance::{Installer, Provenance, Source as Origin};
use cilium::values;
use cilium::version::{self, Step, Version};
use goyaml::{Limits, Map};
use helm_rs::cluster::{Clock, Cluster};
use helm_rs::error_chain;
use helm_rs::release::Record;
use helm_rs::release::storage::{ObjectDriver, Storage, StorageError};
use helm_rs::render::Engine;
use serde_json::Value;

use crate::place::{CHANGE, Deed, Place};
use crate::plan::before::Before;
use crate::plan::make::{gated, refusal, told};
use crate::plan::making::Making;
use crate::plan::preconditions::{Settled, health, overridden, owned_change};
use crate::plan::{
    CHANGE_SCHEMA_VERSION, ChartAbout, DryRuns, Found, Key, KubePrism, Needs, Outcome, Plan,
    PlanError, Prepared, Refusal, WhoWrites,
};
use crate::run::lock::LeaseName;
use crate::run::own;
use crate::run::stored::{Asked, StoredError, StoredPlan};
use crate::subject::Subject;
use crate::survey::{Survey, failed, survey};
use overlay::overlay;

/// What to change.
pub struct Request<'a> {
    /// The cluster.
    pub cluster: Arc<dyn Cluster>,
    /// The clock.
    pub clock: &'a dyn Clock,
    /// What renders.
    pub engine: &'a Engine,
    /// The pinned chart.
    pub pinned: &'a Pinned,
    /// The values that are wanted beside those that the release has; none: as the last change asked
    /// for.
    pub values: Option<&'a Map>,
    /// Whether the release is brought to the pinned chart.
    pub upgrade: bool,
    /// Who is to answer for Services; none: as it is.
    pub kube_proxy: Option<Replacement>,
    /// Who will write.
    pub who_writes: WhoWrites,
    /// 32 bytes of entropy for what the chart generates.
    pub entropy: [u8; 32],
    /// What the server answered to dry runs of an earlier plan; none to ask anew.
    pub dry_runs: Option<&'a DryRuns>,
}

impl Subject for Request<'_> {
    fn place(&self) -> &Place {
        &CHANGE
    }

    fn schema(&self) -> &'static str {
        CHANGE_SCHEMA_VERSION
    }

    fn cluster(&self) -> &Arc<dyn Cluster> {
        &self.cluster
    }

    fn clock(&self) -> &dyn Clock {
        self.clock
    }

    fn leases(&self) -> BTreeSet<LeaseName> {
        BTreeSet::from([CHANGE.lease_name()])
    }

    fn is_change(&self) -> bool {
        true
    }

    fn resumes(&self, stored: &StoredPlan) -> bool {
        let Some(asked) = &stored.asked else { return false };
        let now = self.values.map(json_of);
        now.is_none_or(|now| now.as_ref() == Ok(&asked.now))
            && asked.upgrade == self.upgrade
            && asked.kube_proxy == self.kube_proxy.map(Replacement::is_on)
    }

    async fn prepare(&self) -> Result<Prepared, PlanError> {
        prepare(self).await
    }
}

/// Ichor's release as a change finds it.
struct Release {
    /// The newest deployed record.
    deployed: Record,
    /// The newest one, where a change stopped at it.
    stopped: Option<Record>,
    /// The revision that a change writes.
    revision: i64,
    /// What was asked for last.
    asked: Option<Asked>,
}

/// The values that the last change asked for; null where there was none.
///
/// # Errors
/// [`StoredError`]
pub async fn asked(cluster: &dyn Cluster) -> Result<Value, StoredError> {
    let stored = StoredPlan::read(cluster, &CHANGE).await?;
    Ok(stored.and_then(|stored| stored.asked).map(|asked| asked.now).unwrap_or_default())
}

/// The digest of the plan of a change that was begun and is not complete, where it asks for the same:
/// a run without a digest, or with that one, finishes it. None where there is none.
///
/// # Errors
/// [`PlanError`]: the cluster does not answer.
pub async fn begun(request: &Request<'_>) -> Result<Option<String>, PlanError> {
    let Ok(release) = release(request).await? else { return Ok(None) };
    if release.stopped.is_none() {
        return Ok(None);
    }
    let stored = match StoredPlan::read(&*request.cluster, &CHANGE).await {
        Ok(stored) => stored,
        Err(StoredError::Cluster { source, .. }) => {
            return Err(failed("read the plan of the change before")(source).into());
        }
        // What cannot be read is refused where it is planned.
        Err(_) => None,
    };
    let is_its = |stored: &StoredPlan| {
        let asked = stored.asked.as_ref();
        asked.is_some_and(|asked| asked.revision == release.revision) && request.resumes(stored)
    };
    Ok(stored.filter(is_its).map(|stored| stored.plan.digest))
}

/// Makes a plan. Nothing is written.
///
/// # Errors
/// [`PlanError`]: when the cluster does not answer, or the chart does not render. What forbids the
/// change is no error but a refusal in the plan.
pub async fn prepare(request: &Request<'_>) -> Result<Prepared, PlanError> {
    let mut needs = Needs::of(Deed::Change);
    needs.reading();
    let survey = match Box::pin(survey(&*request.cluster)).await {
        Ok(survey) => survey,
        Err(error) => return Err(told(&*request.cluster, needs, error.into()).await),
    };
    let key = Key(survey.cluster_id.clone());
    let mut plan = Plan {
        schema_version: CHANGE_SCHEMA_VERSION.to_owned(),
        found: Found {
            kubernetes: survey.server.git_version.clone(),
            nodes: survey.detected.nodes.len(),
            talos: survey.detected.runs_talos(),
            cni: survey.detected.kind().name().to_owned(),
            provenance: "ichor's own release".to_owned(),
            ..Found::default()
        },
        unchecked: survey.unread.clone(),
        ..Plan::default()
    };
    let release = match release(request).await {
        Ok(Ok(release)) => release,
        Ok(Err(refusal)) => return Ok(refused(plan, key, survey, refusal)),
        Err(error) => {
            needs.own(&CHANGE, true);
            return Err(told(&*request.cluster, needs, error).await);
        }
    };
    let (chart, version) = match chart(request, &release.deployed, &mut plan) {
        Ok(chart) => chart,
        Err(refusal) => return Ok(refused(plan, key, survey, refusal)),
    };
    let deployed = match deployed_version(&release.deployed) {
        Ok(deployed) => deployed,
        Err(refusal) => return Ok(refused(plan, key, survey, refusal)),
    };
    plan.found.version = deployed.to_string();
    let step = match checked(request, &survey, &deployed, &version, release.stopped.is_some()) {
        Ok(step) => step,
        Err(refusals) => {
            plan.refusals = refusals;
            plan.outcome = Outcome::Refused;
            return Ok(Prepared::refused(plan, key, survey));
        }
    };
    let (user, asked) = match wanted(request, &release, &mut plan) {
        Ok(wanted) => wanted,
        Err(refusal) => return Ok(refused(plan, key, survey, refusal)),
    };
    let settled = match settle(request, &survey, user, step, &mut plan) {
        Ok(settled) => settled,
        Err(refusal) => return Ok(refused(plan, key, survey, refusal)),
    };
    let manifests = [release.stopped.as_ref(), Some(&release.deployed)];
    let manifests: Result<Vec<String>, _> =
        manifests.into_iter().flatten().map(Record::manifest).collect();
    let manifests = match manifests {
        Ok(manifests) => manifests,
        Err(error) => {
            let refusal = refusal("Record", error_chain(&error));
            return Ok(refused(plan, key, survey, refusal));
        }
    };
    let before = Before::of(&survey.discovery, manifests.iter().map(String::as_str), NAMESPACE);
    let is_same = release.stopped.is_none()
        && matches!(&release.deployed.user_values(),
            Ok(values) if values.clone().unwrap_or_default() == settled.effective)
        && step_is_none(&release.deployed, &plan);
    plan.outcome = Outcome::Change;
    let making = Making {
        place: &CHANGE,
        cluster: &request.cluster,
        clock: request.clock,
        engine: request.engine,
        chart: &chart,
        version: version.to_string(),
        who_writes: &request.who_writes,
        entropy: request.entropy,
        dry_runs: request.dry_runs,
        kube_prism: &KubePrism::NotAsked,
        reading: needs,
        before: Some(&before),
    };
    let mut prepared = Box::pin(gated(&making, survey, plan, key, settled)).await?;
    let figures = prepared.plan.figures();
    if is_same && prepared.plan.gate_is_empty() && figures.ownership == 0 {
        // Nothing is written, so that no right to write is missing. What the server refused in a dry run
        // is not compared at all, and no nothing.
        prepared.plan.refusals.retain(|refusal| refusal.reason != "Rights");
        if prepared.plan.refusals.is_empty() {
            prepared.plan.outcome = Outcome::Nothing;
        }
    }
    prepared.asked = Some(asked);
    Ok(prepared)
}

fn refused(mut plan: Plan, key: Key, survey: Survey, refusal: Refusal) -> Prepared {
    plan.refusals.push(refusal);
    plan.outcome = Outcome::Refused;
    Prepared::refused(plan, key, survey)
}

/// Reads ichor's records, and what the last change asked for.
async fn release(request: &Request<'_>) -> Result<Result<Release, Refusal>, PlanError> {
    let driver = ObjectDriver::new(&*request.cluster, request.clock, CHANGE.records, &CHANGE.home);
    let own = match own::records(&CHANGE, &Storage::new(&driver)).await {
        Ok(own) => own,
        Err(own::OwnError::Damaged { message }) => return Ok(Err(refusal("Record", message))),
        Err(own::OwnError::Storage(
            StorageError::Cluster { source, .. } | StorageError::Bare(source),
        )) => {
            return Err(failed("list ichor's records")(source).into());
        }
        Err(error) => return Ok(Err(refusal("Record", error_chain(&error)))),
    };
    let own = match own::Records::ready(own, &CHANGE) {
        Ok(own) => own,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let stored = match StoredPlan::read(&*request.cluster, &CHANGE).await {
        Ok(stored) => stored,
        Err(StoredError::Cluster { source, .. }) => {
            return Err(failed("read the plan of the change before")(source).into());
        }
        Err(error) => return Ok(Err(refusal("StoredPlan", error_chain(&error)))),
    };
    let asked = stored.and_then(|stored| stored.asked);
    let stopped = own.stopped.map(|stopped| stopped.record);
    let revision = own.revision;
    Ok(Ok(Release { deployed: own.deployed.record, stopped, revision, asked }))
}

/// The chart that is rendered, with the version that it brings.
fn chart(
    request: &Request<'_>,
    deployed: &Record,
    plan: &mut Plan,
) -> Result<(helm_rs::chart::Chart, Version), Refusal> {
    let pinned = request.pinned;
    let stored = deployed.chart().map_err(|error| refusal("Record", error_chain(&error)))?;
    let is_pinned = stored.metadata.version == pinned.chart.metadata.version;
    plan.chart = ChartAbout {
        name: stored.name().to_owned(),
        version: stored.metadata.version.clone(),
        digest: pinned.digest.to_string(),
    };
    if request.upgrade || is_pinned {
        plan.chart.version.clone_from(&pinned.chart.metadata.version);
        return Ok((pinned.chart.clone(), pinned.version.clone()));
    }
    // What a record holds of a chart is all that renders it: Cilium's has no subcharts.
    let values =
        goyaml::json::to_json(&goyaml::Value::Map(stored.values.clone().unwrap_or_default()));
    let mut text = values.unwrap_or_default().into_bytes();
    for template in &stored.templates {
        text.extend_from_slice(
            format!("\0{}\0{}\0", template.name, template.data.len()).as_bytes(),
        );
        text.extend_from_slice(&template.data);
    }
    plan.chart.digest = format!("sha256:{}", crate::plan::sha256(&text));
    let version = stored
        .metadata
        .app_version
        .parse()
        .map_err(|error: version::VersionError| refusal("Version", error_chain(&error)))?;
    Ok((stored, version))
}

fn deployed_version(deployed: &Record) -> Result<Version, Refusal> {
    let chart = deployed.chart().map_err(|error| refusal("Record", error_chain(&error)))?;
    chart
        .metadata
        .app_version
        .parse()
        .map_err(|error: version::VersionError| refusal("Version", error_chain(&error)))
}

/// Whether the deployed record has the chart that the plan has.
fn step_is_none(deployed: &Record, plan: &Plan) -> bool {
    deployed.chart().is_ok_and(|chart| chart.metadata.version == plan.chart.version)
}

/// What must hold: a step that can be made, a Kubernetes that the version is tested with, and for
/// another version an installation that is well. New values may be what brings a sick one to life.
fn checked(
    request: &Request<'_>,
    survey: &Survey,
    deployed: &Version,
    version: &Version,
    goes_on: bool,
) -> Result<Step, Vec<Refusal>> {
    let step = version::step(deployed, version).map_err(|error| vec![refusal("Version", error)])?;
    let mut refusals = Vec::new();
    if step != Step::Same {
        if let Err(error) = version::check_kubernetes(&survey.server.git_version, version) {
            refusals.push(refusal("Kubernetes", error));
        }
        if request.upgrade && !goes_on {
            refusals.extend(health(survey));
        }
    }
    if refusals.is_empty() { Ok(step) } else { Err(refusals) }
}

/// The user's values of the new revision, and what was asked for before and is now.
fn wanted(
    request: &Request<'_>,
    release: &Release,
    plan: &mut Plan,
) -> Result<(Map, Asked), Refusal> {
    let base = release
        .deployed
        .user_values()
        .map_err(|error| refusal("Record", error_chain(&error)))?
        .unwrap_or_default();
    let last = release.asked.clone().unwrap_or_default();
    let deployed =
        release.deployed.revision().map_err(|error| refusal("Record", error_chain(&error)))?;
    // What a change that did not come to its end asked for is not in the deployed record's values.
    let before = if last.revision > deployed { last.before } else { last.now };
    let table = |value: &Value| {
        let text = if value.is_null() { "{}".to_owned() } else { value.to_string() };
        match goyaml::json::from_json(text.as_bytes(), &Limits::default()) {
            Ok(goyaml::Value::Map(map)) => Ok(map),
            _ => Err(refusal("StoredPlan", "what the change before asked for is no table")),
        }
    };
    let before_map = table(&before)?;
    let now = match request.values {
        Some(values) => values.clone(),
        None => before_map.clone(),
    };
    "ichor's own record, and the values that are asked for".clone_into(&mut plan.values.source);
    let asked = Asked {
        before,
        now: json_of(&now).map_err(|error| refusal("Values", error))?,
        upgrade: request.upgrade,
        kube_proxy: request.kube_proxy.map(Replacement::is_on),
        revision: release.revision,
    };
    Ok((overlay(&base, &before_map, &now), asked))
}

/// Values as JSON.
fn json_of(values: &Map) -> Result<Value, String> {
    let text = goyaml::json::to_json(&goyaml::Value::Map(values.clone()))
        .map_err(|error| error.to_string())?;
    serde_json::from_str(&text).map_err(|error| error.to_string())
}

/// Decides the owned keys.
fn settle(
    request: &Request<'_>,
    survey: &Survey,
    user: Map,
    step: Step,
    plan: &mut Plan,
) -> Result<Settled, Refusal> {
    let (Some(daemon_set), Some(config_map)) = (&survey.daemon_set, &survey.config_map) else {
        return Err(refusal(
            "NoConfig",
            format!(
                "DaemonSet kube-system/cilium or ConfigMap kube-system/cilium-config is missing, so \
                 that the settings of the running Cilium are not known: bring them back first \
                 (`ichor release rollback {RELEASE} -n {RECORD_NAMESPACE}`)"
            ),
        ));
    };
    let live = Live::read(daemon_set, config_map).map_err(|error| refusal("Settings", error))?;
    owned::check_ipam(&live).map_err(|error| refusal("Ipam", error))?;
    let mut facts = Facts::running(live, survey.detected.runs_talos());
    if let Some(wanted) = request.kube_proxy {
        facts.replacement = Some(wanted);
        kube_proxy(wanted, survey, plan)?;
    }
    let replaces = facts.replacement.is_some_and(Replacement::is_on);
    let told = if replaces { "replaced" } else { "enabled" };
    told.clone_into(&mut plan.found.kube_proxy);
    let effective = values::effective(&user, &facts).map_err(|error| refusal("Values", error))?;
    plan.values.overridden = overridden(&effective);
    plan.values.changes = owned::changes(&facts).into_iter().map(owned_change).collect();
    Ok(Settled {
        provenance: Provenance {
            claim: None,
            other_claims: Vec::new(),
            managers: Vec::new(),
            installer: Installer::Unknown,
            own: None,
            source: Origin::Own,
            strays: Vec::new(),
            unreadable: Vec::new(),
        },
        namespace: NAMESPACE.to_owned(),
        user,
        effective: effective.values,
        step,
        looking: Vec::new(),
    })
}

/// Cilium stands in for kube-proxy before that goes, and kube-proxy is there before Cilium stops:
/// one of them always answers for Services.
fn kube_proxy(wanted: Replacement, survey: &Survey, plan: &mut Plan) -> Result<(), Refusal> {
    match (&survey.detected.kube_proxy, wanted) {
        (Some(daemon_set), Replacement::On) => {
            plan.unchecked.push(format!(
                "{daemon_set} runs beside a Cilium that answers for Services: remove it once the \
                 change is complete (Talos: cluster.proxy.disabled in the machine configuration)"
            ));
            Ok(())
        }
        (None, Replacement::Off) => Err(refusal(
            "KubeProxy",
            "no DaemonSet kube-proxy runs, so that nothing would answer for Services: bring \
             kube-proxy to run first, then ask again",
        )),
        _ => Ok(()),
    }
}
