//! One record on its own.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use super::apis::{Served, served};
use super::rerender::{Rerendered, Verdict, rerender};
use super::{Code, Finding, KeptApart, OBJECT_LIMIT, Question};
use crate::diff::{Identity, ManifestObject, each_object};
use crate::release::input::{Storage, StoredRecord};
use crate::release::record::{Record, Summary};
use crate::release::redact::Sensitive;
use crate::release::status::Status;
use crate::render::time::{Time, Zone};

/// From this share of [`OBJECT_LIMIT`], in percent, a record is near it.
const NEAR_LIMIT: usize = 80;
/// A pending revision younger than this, in seconds, may be an operation that still runs: the
/// default of Helm's `--timeout`.
const PENDING_GRACE: i64 = 300;

/// Objects of which the same is said one by one.
const TOLD_OBJECTS: usize = 100;
/// The events that Helm runs hooks at (`pkg/release/hook.go`).
const HOOK_EVENTS: [&str; 9] = [
    "pre-install",
    "post-install",
    "pre-delete",
    "post-delete",
    "pre-upgrade",
    "post-upgrade",
    "pre-rollback",
    "post-rollback",
    "test",
];

/// What the audit keeps of a record; its text is not among it.
#[derive(Debug)]
pub struct Audited {
    pub(super) namespace: String,
    pub(super) place: String,
    pub(super) summary: Summary,
    pub(super) stored_size: usize,
    /// Tells records with other JSON apart.
    pub(super) digest: u64,
    /// The manifest's objects, each once, with their API versions, in the manifest's order.
    pub(super) objects: Vec<(Arc<Identity>, Arc<str>)>,
    pub(super) findings: Vec<Finding>,
    /// Findings about single objects, by code, those left out too.
    counts: BTreeMap<Code, usize>,
    rerendered: Option<Rerendered>,
}

/// Audits one record on its own.
///
/// # Errors
/// A finding, when the record does not decode.
pub fn audit(stored: &StoredRecord, json: &str, question: &Question) -> Result<Audited, Finding> {
    let undecodable =
        |error: serde_json::Error| undecodable(stored, format!("JSON layer: {error}"));
    let summary = Summary::from_json(json).map_err(undecodable)?;
    let record = Record::from_json(json).map_err(undecodable)?;
    let namespace =
        if stored.namespace.is_empty() { &summary.namespace } else { &stored.namespace };
    let mut audited = Audited {
        namespace: namespace.clone(),
        place: stored.place.clone(),
        stored_size: stored.stored_size(),
        digest: digest(json),
        objects: Vec::new(),
        findings: Vec::new(),
        counts: BTreeMap::new(),
        rerendered: None,
        summary,
    };
    audited.head(stored, question.kept_apart.as_ref());
    audited.size();
    audited.pending(question);
    let before = audited.findings.len();
    match record.manifest() {
        Ok(manifest) => audited.manifest(&manifest, question),
        Err(error) => audited.add(Code::UnreadableManifest, crate::error_chain(&error)),
    }
    audited.hooks(&record);
    audited.tell_rest();
    // A parser may quote what it does not understand.
    let quotes = |finding: &&mut Finding| {
        matches!(finding.code, Code::UnreadableManifest | Code::UnreadableHooks)
    };
    let mut sensitive = None;
    for finding in audited.findings.iter_mut().skip(before).filter(quotes) {
        let sensitive = sensitive.get_or_insert_with(|| Sensitive::of_record(&record));
        finding.message = sensitive.scrub(&finding.message);
    }
    if let Some(how) = &question.rerender {
        let kube_version = question.kube_version.clone().unwrap_or_default();
        audited.rendered(rerender(&record, &kube_version, how));
    }
    Ok(audited)
}

/// The same number for the same text, in every run.
fn digest(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// The finding for an input without any record: `place` is where they were looked for.
pub fn no_record(place: &str, message: String) -> Finding {
    Finding {
        code: Code::NoRecord,
        namespace: String::new(),
        release: String::new(),
        revision: None,
        place: place.to_owned(),
        message,
    }
}

/// The finding for a record that does not decode.
pub fn undecodable(stored: &StoredRecord, message: String) -> Finding {
    Finding {
        code: Code::Undecodable,
        namespace: stored.namespace.clone(),
        release: stored.release_name().unwrap_or_default().to_owned(),
        revision: stored.label("version").and_then(|version| version.parse().ok()),
        place: format!("{}: {}", stored.place, stored.title()),
        message,
    }
}

impl Audited {
    /// What rendering the chart again showed; none when that was not asked for.
    pub const fn rerendered(&self) -> Option<&Rerendered> {
        self.rerendered.as_ref()
    }

    /// The record's namespace, release and revision.
    pub fn subject(&self) -> (&str, &str, i64) {
        (&self.namespace, &self.summary.name, self.summary.revision)
    }

    pub(super) fn finding(&self, code: Code, message: String) -> Finding {
        Finding {
            code,
            namespace: self.namespace.clone(),
            release: self.summary.name.clone(),
            revision: Some(self.summary.revision),
            place: self.place.clone(),
            message,
        }
    }

    fn add(&mut self, code: Code, message: String) {
        let finding = self.finding(code, message);
        self.findings.push(finding);
    }

    /// Labels, name and namespace of the object against the body. Bare releases have none.
    fn head(&mut self, stored: &StoredRecord, kept_apart: Option<&KeptApart>) {
        if stored.storage == Storage::Bare {
            return;
        }
        let expected = [
            (Code::LabelName, "name", self.summary.name.clone()),
            (Code::LabelVersion, "version", self.summary.revision.to_string()),
            (Code::LabelStatus, "status", self.summary.info.status_text.clone()),
        ];
        for (code, label, body) in expected {
            match stored.label(label) {
                Some(value) if value == body => {}
                Some(value) => {
                    self.add(code, format!("label {label} is {value:?}, the record says {body:?}"));
                }
                None => {
                    self.add(code, format!("label {label} is missing, the record says {body:?}"));
                }
            }
        }
        match stored.label("owner") {
            Some("helm") => {}
            Some(owner) => self.add(Code::LabelOwner, format!("label owner is {owner:?}")),
            None => self.add(Code::LabelOwner, "label owner is missing".to_owned()),
        }
        let name = format!("sh.helm.release.v1.{}.v{}", self.summary.name, self.summary.revision);
        if stored.name != name {
            let named = match stored.name.as_str() {
                "" => "has no name".to_owned(),
                other => format!("is named {other}"),
            };
            self.add(Code::ObjectName, format!("the object {named}, and should be {name}"));
        }
        let is_apart = kept_apart.is_some_and(|apart| {
            apart.release == self.summary.name
                && apart.namespace == self.summary.namespace
                && apart.records == stored.namespace
        });
        let is_elsewhere =
            !stored.namespace.is_empty() && stored.namespace != self.summary.namespace;
        if is_elsewhere && !is_apart {
            self.add(
                Code::ObjectNamespace,
                format!(
                    "the object is in {}, the record says {:?}",
                    stored.namespace, self.summary.namespace
                ),
            );
        }
    }

    fn size(&mut self) {
        let size = self.stored_size;
        let share = size * 100 / OBJECT_LIMIT;
        if size > OBJECT_LIMIT {
            self.add(Code::SizeOver, format!("{size} bytes; an object may hold {OBJECT_LIMIT}"));
        } else if share >= NEAR_LIMIT {
            self.add(
                Code::SizeNear,
                format!("{size} bytes, {share} % of the {OBJECT_LIMIT} that an object may hold"),
            );
        }
    }

    fn pending(&mut self, question: &Question) {
        let status = self.summary.info.status();
        if !status.is_pending() && status != Status::Uninstalling {
            return;
        }
        let since = &self.summary.info.last_deployed;
        let age = Time::parse("2006-01-02T15:04:05Z07:00", since, &Zone::utc())
            .ok()
            .filter(|time| !time.is_zero())
            .map(|time| question.now.saturating_sub(time.unix_seconds()));
        match age {
            Some(age) if age < PENDING_GRACE => {}
            Some(age) => self.add(Code::StuckPending, format!("{status} for {}", duration(age))),
            None => self.add(Code::StuckPending, format!("{status} since an unknown time")),
        }
    }

    /// A finding about one object: a record may have a hundred thousand of the same kind.
    fn add_of_object(&mut self, code: Code, message: String) {
        let count = self.counts.entry(code).or_default();
        *count += 1;
        if *count <= TOLD_OBJECTS {
            self.add(code, message);
        }
    }

    /// Says of how many objects nothing was said.
    fn tell_rest(&mut self) {
        for (code, count) in std::mem::take(&mut self.counts) {
            if count > TOLD_OBJECTS {
                self.add(code, format!("and {} more of these", count - TOLD_OBJECTS));
            }
        }
    }

    fn manifest(&mut self, manifest: &str, question: &Question) {
        let own = self.summary.namespace.clone();
        let mut others: BTreeMap<String, (usize, Vec<String>)> = BTreeMap::new();
        let mut places: HashMap<Arc<Identity>, usize> = HashMap::new();
        each_object(manifest.as_bytes(), &mut |object| {
            if let Some(fault) = &object.fault {
                let message = format!("{} of the manifest: {fault}", object.identity.name);
                return self.add_of_object(Code::UnreadableManifest, message);
            }
            let identity = object.identity.clone().in_namespace(&own);
            if !identity.namespace.is_empty() && identity.namespace != own {
                let (count, titles) = others.entry(identity.namespace.clone()).or_default();
                *count += 1;
                if *count <= TOLD_OBJECTS {
                    titles.push(format!("{} {}", identity.kind, identity.name));
                }
            }
            self.object(&object, identity, &mut places, question);
        });
        // One finding for each namespace that is not the release's.
        for (namespace, (count, titles)) in others {
            let mut message =
                format!("in {namespace}, while the release is in {own}: {}", titles.join(", "));
            if count > titles.len() {
                message.push_str(&format!(" and {} more", count - titles.len()));
            }
            self.add(Code::OtherNamespace, message);
        }
    }

    fn object(
        &mut self,
        object: &ManifestObject,
        identity: Identity,
        places: &mut HashMap<Arc<Identity>, usize>,
        question: &Question,
    ) {
        let title = format!("{} {}", identity.kind, identity.name);
        if let Some(kubernetes) = &question.kube_version {
            let use_instead = |instead: &str| match instead {
                "" => "nothing replaces it".to_owned(),
                instead => format!("use {instead}"),
            };
            let (api, kind, version) = (&object.api_version, &identity.kind, &kubernetes.version);
            match served(api, kind, kubernetes) {
                Served::Yes => {}
                Served::Removed(instead) => self.add_of_object(
                    Code::RemovedApi,
                    format!(
                        "{title}: Kubernetes {version} has no {api} {kind}; {}",
                        use_instead(instead)
                    ),
                ),
                Served::Until(removed, instead) => self.add_of_object(
                    Code::DeprecatedApi,
                    format!(
                        "{title}: {api} {kind} goes with Kubernetes 1.{removed}; {}",
                        use_instead(instead)
                    ),
                ),
            }
        }
        if identity.name.is_empty() {
            return;
        }
        let (identity, api_version) = question.interner.intern(identity, &object.api_version);
        let known = places.get(&identity).and_then(|&place| self.objects.get_mut(place));
        if let Some(known) = known {
            known.1 = api_version;
            let message = format!("{title} is in the manifest twice");
            self.add_of_object(Code::DuplicateObject, message);
        } else {
            places.insert(Arc::clone(&identity), self.objects.len());
            self.objects.push((identity, api_version));
        }
    }

    fn hooks(&mut self, record: &Record) {
        let hooks = match record.hooks() {
            Ok(hooks) => hooks,
            Err(error) => return self.add(Code::UnreadableHooks, crate::error_chain(&error)),
        };
        for hook in hooks {
            let title = format!("hook {} {} of {}", hook.kind, hook.name, hook.path);
            for event in &hook.events {
                if !HOOK_EVENTS.contains(&event.as_str()) {
                    let message = format!("{title}: Helm knows no event {event:?}");
                    self.add_of_object(Code::UnreadableHooks, message);
                }
            }
            each_object(hook.manifest.as_bytes(), &mut |object| {
                if let Some(fault) = object.fault {
                    self.add_of_object(Code::UnreadableHooks, format!("{title}: {fault}"));
                }
            });
        }
    }

    fn rendered(&mut self, rerendered: Rerendered) {
        let code = match rerendered.verdict {
            Verdict::Reproduces => None,
            Verdict::Edited => Some(Code::RerenderEdited),
            Verdict::PostRendered => Some(Code::RerenderPostRendered),
            Verdict::Capabilities => Some(Code::RerenderCapabilities),
            Verdict::Lookup => Some(Code::RerenderLookup),
            Verdict::Impossible => Some(Code::RerenderImpossible),
        };
        if let Some(code) = code {
            self.add(code, rerendered.summary());
        }
        self.rerendered = Some(rerendered);
    }
}

fn duration(seconds: i64) -> String {
    match seconds {
        ..3600 => format!("{} min", seconds / 60),
        3600..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}
