//! The audit of records: what in them is wrong, or will be, by codes that do not change.

use std::collections::{BTreeMap, BTreeSet};

use goyaml::{Limits, Value};

use super::input::StoredRecord;
use super::record::{Record, Summary};
use super::status::Status;
use crate::action::lint::deprecations;
use crate::capabilities::KubeVersion;
use crate::manifest::split_manifests;
use crate::render::time::{Time, Zone};

/// What an API server accepts as one Secret's or ConfigMap's data, in bytes
/// (`MaxSecretSize` of Kubernetes).
pub const OBJECT_LIMIT: usize = 1024 * 1024;
/// From this share of [`OBJECT_LIMIT`], in percent, a record is near it.
const NEAR_LIMIT: usize = 80;
/// A pending revision younger than this, in seconds, may be an operation that still runs: the
/// default of Helm's `--timeout`.
const PENDING_GRACE: i64 = 300;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Helm will fail or do the wrong thing.
    Error,
    /// Worth a look.
    Warning,
}

impl Severity {
    /// As it is printed.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident $text:literal $severity:ident $advice:literal,)*) => {
        /// What a finding is about.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Code {
            $($(#[$doc])* $name,)*
        }

        impl Code {
            /// All codes.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The stable text.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// How bad it is.
            pub const fn severity(self) -> Severity {
                match self { $(Self::$name => Severity::$severity,)* }
            }

            /// What to do about it.
            pub const fn advice(self) -> &'static str {
                match self { $(Self::$name => $advice,)* }
            }
        }
    };
}

codes! {
    /// A record, or an object of the input, does not decode.
    Undecodable "undecodable" Error
        "restore the object from a backup, or delete it if other revisions are whole",
    /// The label `name` is not the release's name.
    LabelName "label-name" Error "set the label to the record's name: Helm finds records by it",
    /// The label `version` is not the revision.
    LabelVersion "label-version" Error "set the label to the record's revision",
    /// The label `status` is not the status.
    LabelStatus "label-status" Error "set the label to the record's status: Helm finds the deployed revision by it",
    /// The object is not named after release and revision.
    ObjectName "object-name" Error "create the object under the right name and delete this one",
    /// More than one revision is deployed.
    SeveralDeployed "several-deployed" Warning "mark all but the last one superseded, in body and label",
    /// No revision is deployed.
    NoneDeployed "none-deployed" Warning "roll back to a good revision, or uninstall the release",
    /// An operation began and did not end.
    StuckPending "stuck-pending" Error "check that no Helm runs, then roll back to the last good revision",
    /// Revisions are missing between others.
    RevisionGap "revision-gap" Warning "somebody deleted records; look for them in a backup if they matter",
    /// The record is over what an object may hold.
    SizeOver "size-over" Error "make the chart smaller: files that templates do not read, CRDs",
    /// The record is near what an object may hold.
    SizeNear "size-near" Warning "make the chart smaller before the next revision does not fit",
    /// An object of the manifest is in another namespace than the release.
    OtherNamespace "other-namespace" Warning "check that this is meant: listing the release's namespace does not show it",
    /// The manifest has an object twice.
    DuplicateObject "duplicate-object" Error "remove one of the two from the chart: the last one wins",
    /// Two releases have the same object.
    ClaimedTwice "claimed-twice" Error "decide which release owns it and remove it from the other",
    /// The manifest uses an API that the given Kubernetes no longer has.
    RemovedApi "removed-api" Error "upgrade the chart before the cluster; afterwards Helm cannot read this manifest",
    /// The hooks do not read.
    UnreadableHooks "unreadable-hooks" Error "restore the record from a backup: Helm cannot run or skip these hooks",
    /// The manifest does not read.
    UnreadableManifest "unreadable-manifest" Error "restore the record from a backup: Helm cannot compare with this manifest",
}

/// Something wrong with a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What it is about.
    pub code: Code,
    /// The release's namespace; empty when unknown.
    pub namespace: String,
    /// The release's name; empty when unknown.
    pub release: String,
    /// The revision; none when it is about the release, or unknown.
    pub revision: Option<i64>,
    /// Where the record was read.
    pub place: String,
    /// What is wrong.
    pub message: String,
}

/// What the audit needs to know from outside.
#[derive(Clone, Debug, Default)]
pub struct Question {
    /// Seconds since 1970.
    pub now: i64,
    /// The Kubernetes that removed APIs are looked up for.
    pub kube_version: Option<KubeVersion>,
}

/// An object's identity: API group, kind, namespace, name.
type Identity = (String, String, String, String);

/// What the audit keeps of a record; its text is not among it.
#[derive(Debug)]
pub struct Audited {
    namespace: String,
    place: String,
    summary: Summary,
    stored_size: usize,
    objects: BTreeSet<Identity>,
    findings: Vec<Finding>,
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
        objects: BTreeSet::new(),
        findings: Vec::new(),
        summary,
    };
    audited.head(stored);
    audited.size();
    audited.pending(question);
    match record.manifest() {
        Ok(manifest) => audited.manifest(&manifest, question),
        Err(error) => audited.add(Code::UnreadableManifest, crate::error_chain(&error)),
    }
    if let Err(error) = record.hooks() {
        audited.add(Code::UnreadableHooks, crate::error_chain(&error));
    }
    Ok(audited)
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
    fn add(&mut self, code: Code, message: String) {
        self.findings.push(Finding {
            code,
            namespace: self.namespace.clone(),
            release: self.summary.name.clone(),
            revision: Some(self.summary.revision),
            place: self.place.clone(),
            message,
        });
    }

    /// Labels and name of the object against the body. Bare releases have neither.
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
        let name = format!("sh.helm.release.v1.{}.v{}", self.summary.name, self.summary.revision);
        if stored.name != name {
            self.add(
                Code::ObjectName,
                format!("the object is named {}, and should be {name}", stored.name),
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
            .map(|time| question.now.saturating_sub(time.unix_seconds()));
        match age {
            Some(age) if age < PENDING_GRACE => {}
            Some(age) => self.add(Code::StuckPending, format!("{status} for {}", duration(age))),
            None => self.add(Code::StuckPending, format!("{status} since an unknown time")),
        }
    }

    fn manifest(&mut self, manifest: &str, question: &Question) {
        for (index, document) in split_manifests(manifest.as_bytes()).iter().enumerate() {
            match goyaml::from_yaml(document, &Limits::default()) {
                Ok(Value::Map(object)) => self.object(&Value::Map(object), question),
                Ok(_) => {}
                Err(error) => self.add(
                    Code::UnreadableManifest,
                    format!("document {} of the manifest: {error}", index + 1),
                ),
            }
        }
    }

    fn object(&mut self, object: &Value, question: &Question) {
        let text = |path: &[&str]| {
            object.at(path).and_then(Value::as_str).map(ToString::to_string).unwrap_or_default()
        };
        let (api_version, kind) = (text(&["apiVersion"]), text(&["kind"]));
        let name = text(&["metadata", "name"]);
        let namespace = text(&["metadata", "namespace"]);
        let title = format!("{kind} {name}");
        if let Some(version) = &question.kube_version
            && let Some(instead) = deprecations::removed(&api_version, &kind, version)
        {
            let instead = if instead.is_empty() {
                "nothing replaces it".to_owned()
            } else {
                format!("use {instead}")
            };
            self.add(
                Code::RemovedApi,
                format!(
                    "{title}: Kubernetes {} has no {api_version} {kind}; {instead}",
                    version.version
                ),
            );
        }
        if !namespace.is_empty() && namespace != self.summary.namespace {
            self.add(
                Code::OtherNamespace,
                format!("{title} is in {namespace}, the release in {}", self.summary.namespace),
            );
        }
        let group = api_version.rsplit_once('/').map_or("", |(group, _)| group).to_owned();
        let place = if namespace.is_empty() { self.summary.namespace.clone() } else { namespace };
        if !name.is_empty() && !self.objects.insert((group, kind, place, name)) {
            self.add(Code::DuplicateObject, format!("{title} is in the manifest twice"));
        }
    }
}

fn duration(seconds: i64) -> String {
    match seconds {
        ..3600 => format!("{} min", seconds / 60),
        3600..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}

/// The findings about the records, and about what they say together. Ordered by namespace,
/// release, revision, code.
pub fn verify(records: Vec<Audited>) -> Vec<Finding> {
    let mut releases: BTreeMap<(String, String), Vec<Audited>> = BTreeMap::new();
    for record in records {
        let key = (record.namespace.clone(), record.summary.name.clone());
        releases.entry(key).or_default().push(record);
    }
    let mut findings = Vec::new();
    let mut claims: BTreeMap<Identity, (String, String)> = BTreeMap::new();
    for ((namespace, release), mut revisions) in releases {
        revisions.sort_by_key(|record| record.summary.revision);
        for record in &mut revisions {
            findings.append(&mut record.findings);
        }
        together(&revisions, &mut findings);
        let Some(current) = current(&revisions) else { continue };
        for object in &current.objects {
            let owner = (namespace.clone(), release.clone());
            if let Some((other_namespace, other)) = claims.insert(object.clone(), owner) {
                let (_, kind, place, name) = object;
                let message = format!(
                    "{kind} {name} in {place} also belongs to release {other} in {other_namespace}"
                );
                findings.push(of_release(current, Code::ClaimedTwice, message));
            }
        }
    }
    sort(&mut findings);
    findings
}

/// Orders findings by namespace, release, revision, code.
pub fn sort(findings: &mut [Finding]) {
    findings.sort_by(|a, b| {
        let key = |finding: &Finding| {
            (finding.namespace.clone(), finding.release.clone(), finding.revision, finding.code)
        };
        key(a).cmp(&key(b)).then_with(|| a.message.cmp(&b.message))
    });
}

/// The revision whose objects are on the cluster: the last deployed one, else none.
fn current(revisions: &[Audited]) -> Option<&Audited> {
    revisions.iter().rev().find(|record| record.summary.info.status() == Status::Deployed)
}

fn of_release(record: &Audited, code: Code, message: String) -> Finding {
    Finding {
        code,
        namespace: record.namespace.clone(),
        release: record.summary.name.clone(),
        revision: None,
        place: record.place.clone(),
        message,
    }
}

/// What a release's revisions say together.
fn together(revisions: &[Audited], findings: &mut Vec<Finding>) {
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
    // An uninstalled release whose history was kept has none, and should not.
    if deployed.is_empty() && last.summary.info.status() != Status::Uninstalled {
        let message =
            format!("no revision is deployed; the last one is {}", last.summary.info.status());
        findings.push(of_release(last, Code::NoneDeployed, message));
    }
    for pair in revisions.windows(2) {
        let [before, after] = pair else { continue };
        let (from, to) = (before.summary.revision, after.summary.revision);
        // Helm's history limit prunes at the beginning only.
        if to - from > 1 {
            let message = format!("revisions {} to {} are missing", from + 1, to - 1);
            findings.push(of_release(after, Code::RevisionGap, message));
        }
        let growth = after.stored_size.saturating_sub(before.stored_size);
        let next = after.stored_size + growth;
        let is_last = to == last.summary.revision;
        if is_last && growth > 0 && next > OBJECT_LIMIT && after.stored_size <= OBJECT_LIMIT {
            let message = format!(
                "grew by {growth} bytes to {}; the next revision would have {next}",
                after.stored_size
            );
            findings.push(of_release(after, Code::SizeNear, message));
        }
    }
}
