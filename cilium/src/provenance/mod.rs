//! Who installed the running Cilium, and what it left: records, values, marks.
//!
//! Read from the live objects' ownership annotations, from release records (Secrets and
//! ConfigMaps of every namespace that may be read) and from managed fields, never from names
//! alone: a release counts when its manifest holds the agent's DaemonSet. (Takeover rules,
//! section 1.)

mod cli;
mod history;
mod marks;

use goyaml::Map;
use helm_rs::release::{Record, Status};
use serde_json::Value;

pub use cli::{CliError, CliValues, SECRET as CLI_SECRET};
pub use history::{History, Revision, group as histories};
pub use marks::{Claim, Installer, Manager};

use crate::inline_manifest;
use crate::object::{FieldError, ObjectRef};
use crate::pinned::{DAEMON_SET, NAMESPACE, RECORD_NAMESPACE, RELEASE};

/// What was read from the cluster.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// The live objects of Cilium; the agent's DaemonSet among them.
    pub live: &'a [Value],
    /// Secrets of all namespaces: records, and what the Cilium CLI left. Others are passed over.
    pub secrets: &'a [Value],
    /// ConfigMaps of all namespaces that may be records. Others are passed over.
    pub config_maps: &'a [Value],
    /// Seconds since 1970-01-01T00:00:00Z.
    pub now: i64,
}

/// Where the running Cilium comes from.
#[derive(Clone, Debug)]
pub struct Provenance {
    /// The release that the agent's DaemonSet says it belongs to.
    pub claim: Option<Claim>,
    /// Releases that other live objects say they belong to, with how many say so.
    pub other_claims: Vec<(Claim, usize)>,
    /// Who wrote the live objects, most objects first.
    pub managers: Vec<Manager>,
    /// Who installed it, as the marks on the DaemonSet tell.
    pub installer: Installer,
    /// Ichor's own records of it.
    pub own: Option<History>,
    /// The foreign release or what else there is.
    pub source: Source,
    /// Releases whose manifest holds the DaemonSet, but which it does not say it belongs to, or
    /// which are uninstalled.
    pub strays: Vec<History>,
    /// Records that cannot be read and are not known to be another release's, with the reason.
    pub unreadable: Vec<(ObjectRef, String)>,
}

/// Where values come from.
#[derive(Clone, Debug)]
pub enum Source {
    /// Ichor's own record is there and no other: nothing to take over.
    Own,
    /// Case B: a foreign release.
    Release(Box<ForeignRelease>),
    /// Case C: no record; perhaps the values that a Cilium CLI of before 0.15 left.
    NoRecord {
        /// Those values.
        cli: Option<CliValues>,
    },
}

/// A foreign release and the record of it that counts.
#[derive(Clone, Debug)]
pub struct ForeignRelease {
    /// All of its records.
    pub history: History,
    /// The record that counts.
    pub counts: Revision,
    /// Why that one.
    pub reason: Counts,
    /// The user values of that record.
    pub config: Map,
    /// The version of Cilium that it installed, as it says.
    pub app_version: String,
    /// The manifest that it installed.
    pub manifest: String,
}

/// Why a record is the one that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counts {
    /// It is the newest, and deployed.
    Deployed,
    /// The newest one failed; this is the last that was deployed.
    LastDeployed {
        /// The revision that failed.
        failed: i64,
    },
    /// Every one failed; this is the newest.
    OnlyFailed,
}

/// Why provenance cannot be told, or forbids a takeover.
#[derive(Debug, thiserror::Error)]
pub enum ProvenanceError {
    /// A live object is none.
    #[error(transparent)]
    Field(#[from] FieldError),
    /// Another tool is at work or died at it.
    #[error(
        "release {release} in namespace {namespace} is {status} at revision {revision}{}: another \
         tool is at work on it or died at it; let it finish, or repair the release with `ichor \
         release repair {release} --namespace {namespace}` (real Helm: `helm rollback {release} \
         --namespace {namespace}`), then try again",
        since(*age)
    )]
    InProgress {
        /// The release.
        release: String,
        /// The namespace of its records.
        namespace: String,
        /// The newest revision.
        revision: i64,
        /// Its status.
        status: Status,
        /// Seconds since that revision was begun; none when the record does not say.
        age: Option<i64>,
    },
    /// The record that should count is unreadable.
    #[error(
        "{object} is a record of the release that the running Cilium belongs to, and it cannot be \
         read ({reason}): its values are not known; give the values with --cilium-values after \
         removing the record, or restore the record"
    )]
    Broken {
        /// The record's object.
        object: ObjectRef,
        /// What is wrong with it.
        reason: String,
    },
    /// More than one release may be the one.
    #[error(
        "more than one release holds the running Cilium ({}): uninstalling one would remove it \
         under the other; remove the records of those that are not in use, then try again",
        releases.join(", ")
    )]
    Ambiguous {
        /// The releases, as namespace and name.
        releases: Vec<String>,
    },
    /// The Cilium CLI's Secret is broken.
    #[error("Secret {NAMESPACE}/{CLI_SECRET}")]
    Cli(#[from] CliError),
}

fn since(age: Option<i64>) -> String {
    age.map(|age| format!(" since {}", duration(age))).unwrap_or_default()
}

/// A duration in seconds, in the two largest units.
fn duration(seconds: i64) -> String {
    let seconds = seconds.max(0);
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, minutes) => format!("{minutes} min"),
        (0, hours, minutes) => format!("{hours} h {minutes} min"),
        (days, hours, _) => format!("{days} d {hours} h"),
    }
}

/// Tells where the running Cilium comes from.
///
/// # Errors
/// [`ProvenanceError`], which says what to do instead.
pub fn provenance(evidence: &Evidence<'_>) -> Result<Provenance, ProvenanceError> {
    let marks = marks::read(evidence.live)?;
    let mut histories = history::group(evidence.secrets, evidence.config_maps);
    let own = histories
        .iter()
        .position(|history| {
            history.storage_namespace == RECORD_NAMESPACE && history.release == RELEASE
        })
        .map(|at| histories.remove(at));
    let mut search = Search::default();
    if let Some(claim) = &marks.claim {
        search.claimed(claim, &histories)?;
    }
    if search.found.is_empty() {
        search.holders(marks.claim.as_ref(), &histories);
    }
    let source = match search.found.as_slice() {
        [] if own.is_some() => Source::Own,
        [] => Source::NoRecord { cli: cli::find(evidence.secrets)? },
        [history] => Source::Release(Box::new(ForeignRelease::new(history, evidence.now)?)),
        several => {
            let name =
                |history: &History| format!("{}/{}", history.storage_namespace, history.release);
            return Err(ProvenanceError::Ambiguous {
                releases: several.iter().map(name).collect(),
            });
        }
    };
    Ok(Provenance {
        claim: marks.claim,
        other_claims: marks.other_claims,
        managers: marks.managers,
        installer: marks.installer,
        own,
        source,
        strays: search.strays,
        unreadable: search.unreadable,
    })
}

#[derive(Default)]
struct Search {
    found: Vec<History>,
    strays: Vec<History>,
    unreadable: Vec<(ObjectRef, String)>,
}

impl Search {
    /// The releases that the DaemonSet says it belongs to.
    fn claimed(&mut self, claim: &Claim, histories: &[History]) -> Result<(), ProvenanceError> {
        for history in histories.iter().filter(|history| history.release == claim.name) {
            let Some(newest) = history.newest() else { continue };
            let in_place = history.storage_namespace == claim.namespace;
            let summary = match newest.summary() {
                Ok(summary) => summary,
                Err(reason) if in_place => {
                    let (object, reason) = (newest.object.clone(), reason.clone());
                    return Err(ProvenanceError::Broken { object, reason });
                }
                Err(reason) => {
                    self.unreadable.push((newest.object.clone(), reason.clone()));
                    continue;
                }
            };
            // Some tools keep records in another namespace than the release's.
            if summary.namespace != claim.namespace && !in_place {
                continue;
            }
            self.sort_in(history, true);
        }
        Ok(())
    }

    /// Releases that hold the DaemonSet, when none was found by its own word: they count if it
    /// says nothing, as after `kubectl replace`, which drops annotations.
    fn holders(&mut self, claim: Option<&Claim>, histories: &[History]) {
        for history in histories.iter().filter(|h| claim.is_none_or(|c| h.release != c.name)) {
            match history.newest().map(|newest| (&newest.object, newest.summary())) {
                Some((object, Err(reason))) => {
                    self.unreadable.push((object.clone(), reason.clone()));
                }
                Some((_, Ok(summary))) if summary.chart == crate::pinned::CHART => {
                    self.sort_in(history, claim.is_none());
                }
                _ => {}
            }
        }
    }

    fn sort_in(&mut self, history: &History, may_count: bool) {
        let is_gone = history.newest().is_some_and(|n| n.status() == Status::Uninstalled);
        if !holds_agent(history) {
            return;
        }
        if may_count && !is_gone {
            self.found.push(history.clone());
        } else {
            self.strays.push(history.clone());
        }
    }
}

/// Whether the newest revision's manifest, or the deployed one's, has the agent's DaemonSet.
fn holds_agent(history: &History) -> bool {
    let deployed = history.revisions.iter().rev().find(|r| r.status() == Status::Deployed);
    history.newest().into_iter().chain(deployed).any(|revision| {
        let manifest = revision.record().and_then(|record| record.manifest().map_err(text));
        manifest.is_ok_and(|manifest| {
            // Much cheaper than reading the manifest, and right for all that Helm writes.
            manifest.contains("DaemonSet")
                && manifest.contains(DAEMON_SET)
                && inline_manifest::find(manifest.as_bytes()).is_ok_and(|found| found.is_some())
        })
    })
}

fn text(error: impl std::error::Error) -> String {
    helm_rs::error_chain(&error)
}

/// The record of a history that counts: the newest deployed one; if the newest failed, the last
/// deployed. Pending and half-uninstalled releases are refused. (Takeover rules, section 1.)
///
/// # Errors
/// [`ProvenanceError::InProgress`]; [`ProvenanceError::Broken`] for an unreadable record that
/// might be the one.
pub fn counting(history: &History, now: i64) -> Result<(&Revision, Counts), ProvenanceError> {
    let broken = |revision: &Revision, reason: &str| ProvenanceError::Broken {
        object: revision.object.clone(),
        reason: reason.to_owned(),
    };
    let newest = history.newest().ok_or_else(|| ProvenanceError::Broken {
        object: ObjectRef::new("Secret", &history.storage_namespace, &history.release),
        reason: "there are no revisions".to_owned(),
    })?;
    if let Err(reason) = newest.summary() {
        return Err(broken(newest, reason));
    }
    let failed = match newest.status() {
        // Nothing in Helm leaves a superseded one as the newest but a deleted successor.
        Status::Deployed | Status::Superseded => return Ok((newest, Counts::Deployed)),
        Status::Failed => newest.revision,
        status => {
            return Err(ProvenanceError::InProgress {
                release: history.release.clone(),
                namespace: history.storage_namespace.clone(),
                revision: newest.revision,
                status,
                age: newest.age(now),
            });
        }
    };
    for wanted in [Status::Deployed, Status::Superseded] {
        for revision in history.revisions.iter().rev() {
            match revision.summary() {
                Err(reason) if wanted == Status::Deployed && revision.may_be_deployed() => {
                    return Err(broken(revision, reason));
                }
                Ok(_) if revision.status() == wanted => {
                    return Ok((revision, Counts::LastDeployed { failed }));
                }
                _ => {}
            }
        }
    }
    Ok((newest, Counts::OnlyFailed))
}

impl ForeignRelease {
    /// A release's record that counts, with what it says.
    ///
    /// # Errors
    /// [`counting`]'s.
    pub fn new(history: &History, now: i64) -> Result<Self, ProvenanceError> {
        let (counts, reason) = counting(history, now)?;
        let broken = |reason| ProvenanceError::Broken { object: counts.object.clone(), reason };
        let record = counts.record().map_err(broken)?;
        let config = config(&record).map_err(broken)?;
        let manifest = record.manifest().map_err(|error| broken(text(error)))?;
        let app_version =
            counts.summary().as_ref().map(|s| s.app_version.clone()).unwrap_or_default();
        let (history, counts) = (history.clone(), counts.clone());
        Ok(Self { history, counts, reason, config, app_version, manifest })
    }
}

/// The user values of a record.
fn config(record: &Record) -> Result<Map, String> {
    let json = record.object().get("config").unwrap_or("null");
    match goyaml::json::from_json(json.as_bytes(), &goyaml::Limits::default()) {
        Ok(goyaml::Value::Map(map)) => Ok(map),
        Ok(goyaml::Value::Null) => Ok(Map::new()),
        Ok(other) => Err(format!("field config is {} and no table", other.type_name())),
        Err(error) => Err(format!("field config: {}", text(error))),
    }
}

#[cfg(test)]
mod tests;
