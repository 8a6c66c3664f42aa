//! One record on its own.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::apis::{Served, served};
use super::rerender::{Rerendered, Verdict, rerender};
use super::{Code, Finding, OBJECT_LIMIT, Question};
use crate::diff::{Identity, ManifestObject, read_objects};
use crate::release::input::StoredRecord;
use crate::release::record::{Record, Summary};
use crate::release::redact::Sensitive;
use crate::release::status::Status;
use crate::render::time::{Time, Zone};

/// From this share of [`OBJECT_LIMIT`], in percent, a record is near it.
const NEAR_LIMIT: usize = 80;
/// A pending revision younger than this, in seconds, may be an operation that still runs: the
/// default of Helm's `--timeout`.
const PENDING_GRACE: i64 = 300;

/// What the audit keeps of a record; its text is not among it.
#[derive(Debug)]
pub struct Audited {
    pub(super) namespace: String,
    pub(super) place: String,
    pub(super) summary: Summary,
    pub(super) stored_size: usize,
    /// Tells records with other JSON apart.
    pub(super) digest: u64,
    /// The manifest's objects with their API versions.
    pub(super) objects: BTreeMap<Identity, String>,
    pub(super) findings: Vec<Finding>,
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
        objects: BTreeMap::new(),
        findings: Vec::new(),
        rerendered: None,
        summary,
    };
    audited.head(stored);
    audited.size();
    audited.pending(question);
    let before = audited.findings.len();
    match record.manifest() {
        Ok(manifest) => audited.manifest(&manifest, question),
        Err(error) => audited.add(Code::UnreadableManifest, crate::error_chain(&error)),
    }
    audited.hooks(&record);
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
    fn head(&mut self, stored: &StoredRecord) {
        if stored.name.is_empty() {
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
            self.add(
                Code::ObjectName,
                format!("the object is named {}, and should be {name}", stored.name),
            );
        }
        if !stored.namespace.is_empty() && stored.namespace != self.summary.namespace {
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

    fn manifest(&mut self, manifest: &str, question: &Question) {
        let objects = read_objects(manifest.as_bytes());
        self.other_namespaces(&objects);
        for object in objects {
            match &object.fault {
                Some(fault) => self.add(
                    Code::UnreadableManifest,
                    format!("{} of the manifest: {fault}", object.identity.name),
                ),
                None => self.object(&object, question),
            }
        }
    }

    /// One finding for each namespace that is not the release's.
    fn other_namespaces(&mut self, objects: &[ManifestObject]) {
        let own = self.summary.namespace.clone();
        let mut others: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for object in objects.iter().filter(|object| object.fault.is_none()) {
            let Identity { namespace, kind, name, .. } = object.identity.clone().in_namespace(&own);
            if !namespace.is_empty() && namespace != own {
                others.entry(namespace).or_default().push(format!("{kind} {name}"));
            }
        }
        for (namespace, titles) in others {
            let message =
                format!("in {namespace}, while the release is in {own}: {}", titles.join(", "));
            self.add(Code::OtherNamespace, message);
        }
    }

    fn object(&mut self, object: &ManifestObject, question: &Question) {
        let identity = &object.identity;
        let title = format!("{} {}", identity.kind, identity.name);
        if let Some(kubernetes) = &question.kube_version {
            let use_instead = |instead: &str| match instead {
                "" => "nothing replaces it".to_owned(),
                instead => format!("use {instead}"),
            };
            let (api, kind, version) = (&object.api_version, &identity.kind, &kubernetes.version);
            match served(api, kind, kubernetes) {
                Served::Yes => {}
                Served::Removed(instead) => self.add(
                    Code::RemovedApi,
                    format!(
                        "{title}: Kubernetes {version} has no {api} {kind}; {}",
                        use_instead(instead)
                    ),
                ),
                Served::Until(removed, instead) => self.add(
                    Code::DeprecatedApi,
                    format!(
                        "{title}: {api} {kind} goes with Kubernetes 1.{removed}; {}",
                        use_instead(instead)
                    ),
                ),
            }
        }
        let identity = identity.clone().in_namespace(&self.summary.namespace);
        let is_named = !identity.name.is_empty();
        if is_named && self.objects.insert(identity, object.api_version.clone()).is_some() {
            self.add(Code::DuplicateObject, format!("{title} is in the manifest twice"));
        }
    }

    fn hooks(&mut self, record: &Record) {
        let hooks = match record.hooks() {
            Ok(hooks) => hooks,
            Err(error) => return self.add(Code::UnreadableHooks, crate::error_chain(&error)),
        };
        for hook in hooks {
            for object in read_objects(hook.manifest.as_bytes()) {
                if let Some(fault) = object.fault {
                    let message =
                        format!("hook {} {} of {}: {fault}", hook.kind, hook.name, hook.path);
                    self.add(Code::UnreadableHooks, message);
                }
            }
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
