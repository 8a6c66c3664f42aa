//! What the records of an input say together.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::record::Audited;
use super::{Code, Finding, OBJECT_LIMIT, sort};
use crate::diff::Identity;
use crate::release::status::Status;

/// The findings about the records, and about what they say together. Ordered by namespace,
/// release, revision, code.
pub fn verify(records: Vec<Audited>) -> Vec<Finding> {
    verify_beside(records, &[])
}

/// As [`verify`], beside records of the same input that do not decode: what those may be is not
/// reported as missing. Their findings are not part of the result.
pub fn verify_beside(records: Vec<Audited>, undecodable: &[Finding]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut claims = Claims::default();
    for ((namespace, release), mut revisions) in by_release(records) {
        for record in &mut revisions {
            findings.append(&mut record.findings);
        }
        let broken: Vec<Option<i64>> = undecodable
            .iter()
            .filter(|finding| finding.release == release && finding.namespace == namespace)
            .map(|finding| finding.revision)
            .collect();
        findings.extend(twice(&revisions));
        // The same record in two files is one; of two that differ, the later read.
        revisions.reverse();
        revisions.dedup_by_key(|record| record.summary.revision);
        revisions.reverse();
        together(&revisions, &broken, &mut findings);
        let Some(current) = current(&revisions.iter().collect::<Vec<_>>()) else { continue };
        claims.add(current, &mut findings);
    }
    sort(&mut findings);
    // An object that is in a manifest three times is reported once.
    findings.dedup();
    findings
}

/// Objects of one pair of releases that are told one by one.
const TOLD: usize = 10;

/// Which release has which object in its manifest.
#[derive(Default)]
struct Claims {
    /// Namespace and name.
    releases: Vec<(String, String)>,
    /// The last of the releases that claim an object.
    last: HashMap<Arc<Identity>, usize>,
}

impl Claims {
    /// Adds a release's objects; says of which other release's they are too.
    fn add(&mut self, current: &Audited, findings: &mut Vec<Finding>) {
        let own = self.releases.len();
        self.releases.push((current.namespace.clone(), current.summary.name.clone()));
        let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
        for (object, _) in &current.objects {
            let Some(other) = self.last.insert(Arc::clone(object), own) else { continue };
            let count = counts.entry(other).or_default();
            *count += 1;
            if *count <= TOLD {
                let message = format!("{object} also belongs to {}", self.title(other));
                findings.push(of_release(current, Code::ClaimedTwice, message));
            }
        }
        for (other, count) in counts {
            if count > TOLD {
                let message =
                    format!("{} more objects also belong to {}", count - TOLD, self.title(other));
                findings.push(of_release(current, Code::ClaimedTwice, message));
            }
        }
    }

    fn title(&self, release: usize) -> String {
        let (namespace, name) =
            self.releases.get(release).map_or(("", ""), |(namespace, name)| (namespace, name));
        format!("release {name} in {namespace}")
    }
}

/// The records of each release, by namespace and name, ordered by revision.
fn by_release(records: Vec<Audited>) -> BTreeMap<(String, String), Vec<Audited>> {
    let mut releases: BTreeMap<(String, String), Vec<Audited>> = BTreeMap::new();
    for record in records {
        let key = (record.namespace.clone(), record.summary.name.clone());
        releases.entry(key).or_default().push(record);
    }
    for revisions in releases.values_mut() {
        revisions.sort_by_key(|record| record.summary.revision);
    }
    releases
}

/// The revision whose objects are on the cluster: the last deployed one, else the last one unless
/// it was uninstalled.
pub(super) fn current<'a>(revisions: &[&'a Audited]) -> Option<&'a Audited> {
    let last = |with: fn(&Status) -> bool| {
        let fits = |record: &&Audited| with(&record.summary.info.status());
        revisions.iter().copied().filter(fits).max_by_key(|record| record.summary.revision)
    };
    last(|status| *status == Status::Deployed).or_else(|| {
        last(|_| true).filter(|record| {
            let status = record.summary.info.status();
            !matches!(status, Status::Uninstalled | Status::Uninstalling | Status::PendingInstall)
        })
    })
}

/// Records of one revision that differ.
fn twice(revisions: &[Audited]) -> Vec<Finding> {
    let differ = |pair: &&[Audited]| match pair {
        [a, b] => a.summary.revision == b.summary.revision && a.digest != b.digest,
        _ => false,
    };
    let finding = |pair: &[Audited]| {
        let [a, b] = pair else { return None };
        Some(b.finding(Code::RecordTwice, format!("differs from the one in {}", a.place)))
    };
    revisions.windows(2).filter(differ).filter_map(finding).collect()
}

fn of_release(record: &Audited, code: Code, message: String) -> Finding {
    Finding { revision: None, ..record.finding(code, message) }
}

/// What a release's revisions say together. `broken` are the revisions that do not decode, as
/// far as known.
fn together(revisions: &[Audited], broken: &[Option<i64>], findings: &mut Vec<Finding>) {
    let Some(last) = revisions.last() else { return };
    let of_status = |status: &Status| -> Vec<String> {
        let fits = |record: &&Audited| record.summary.info.status() == *status;
        revisions.iter().filter(fits).map(|record| record.summary.revision.to_string()).collect()
    };
    let deployed = of_status(&Status::Deployed);
    if deployed.len() > 1 {
        let message = format!("revisions {} are all deployed", deployed.join(", "));
        findings.push(of_release(last, Code::SeveralDeployed, message));
    }
    let status = last.summary.info.status();
    // An uninstalled release whose history was kept has none, and should not; one under way has
    // none yet.
    let needs_none =
        status.is_pending() || matches!(status, Status::Uninstalled | Status::Uninstalling);
    if deployed.is_empty() && !needs_none && broken.is_empty() {
        let message = format!("no revision is deployed; the last one is {status}");
        findings.push(of_release(last, Code::NoneDeployed, message));
    }
    let mut known: Vec<i64> = revisions
        .iter()
        .map(|record| record.summary.revision)
        .chain(broken.iter().copied().flatten())
        .collect();
    known.sort_unstable();
    for pair in known.windows(2) {
        let [from, to] = *pair else { continue };
        // Helm's history limit prunes at the beginning only.
        if to.saturating_sub(from) > 1 {
            let message = match (from.saturating_add(1), to.saturating_sub(1)) {
                (first, last) if first == last => format!("revision {first} is missing"),
                (first, last) => format!("revisions {first} to {last} are missing"),
            };
            findings.push(of_release(last, Code::RevisionGap, message));
        }
    }
    if let [.., before, after] = revisions {
        let growth = after.stored_size.saturating_sub(before.stored_size);
        let next = after.stored_size + growth;
        if growth > 0 && next > OBJECT_LIMIT && after.stored_size <= OBJECT_LIMIT {
            let message = format!(
                "grew by {growth} bytes to {}; the next revision would have {next} of {OBJECT_LIMIT}",
                after.stored_size
            );
            findings.push(of_release(after, Code::SizeForecast, message));
        }
    }
}
