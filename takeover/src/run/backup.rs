//! Foreign records: copied to ichor's namespace, read back, compared, then deleted.
//!
//! A backup is a Secret whose data holds the records' data byte by byte; what else the objects
//! said (labels, annotations, type) is in an annotation. Backups are never overwritten: what is
//! already there and equal counts, everything else goes to a new Secret beside it.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use helm_rs::apply::FIELD_MANAGER;
use helm_rs::cluster::{
    Cluster, ClusterError, DeleteOptions, ErrorKind, ListQuery, Target, WriteOptions, list_all,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::place::{CILIUM, Place};
use crate::plan::{MAX_SECRET, RecordAbout};
use crate::room::Weight;
use crate::survey::{read, resource_of, secrets, text};

/// The label by which backups are found.
const LABEL: (&str, &str) = ("ichor.maesh.dev/backup", "prior-release");
/// The label that says whose a backup is, where others' may lie beside it.
const OF_RELEASE: &str = "ichor.maesh.dev/release";
/// The annotation that tells what a backup holds.
const INDEX: &str = "ichor.maesh.dev/prior-records";
/// Bytes that annotations may have, less what else stands there.
const MAX_INDEX: usize = 200 * 1024;
/// How often a taken name is passed over.
const TRIES: usize = 1000;
/// How often a deletion is tried again when the record's version is another one.
const DELETIONS: usize = 5;

/// A record as a backup has it, data aside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BackedUp {
    /// `Secret` or `ConfigMap`.
    pub kind: String,
    /// The namespace that it lay in.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The UID that it had.
    pub uid: String,
    /// Its labels.
    pub labels: Map<String, Value>,
    /// Its annotations.
    pub annotations: Map<String, Value>,
    /// Its type; empty for a ConfigMap.
    pub secret_type: String,
    /// Whether it was immutable.
    pub immutable: bool,
    /// The keys of its data, and under which key of the backup each one is.
    pub data: BTreeMap<String, String>,
    /// SHA-256 of all of it.
    pub hash: String,
}

/// What became of the foreign records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Retired {
    /// Backups that were written.
    pub backups: Vec<String>,
    /// Records that were already in a backup.
    pub already: usize,
    /// Records that were deleted.
    pub deleted: Vec<String>,
}

/// Why the foreign records cannot be retired. None was deleted without a good backup.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// A request failed.
    #[error("{doing}")]
    Cluster {
        /// What was being done.
        doing: String,
        /// What the cluster says.
        source: ClusterError,
    },
    /// A record's backup is more than the server takes.
    #[error(
        "the backup of {record} would have {excess}: remove labels and annotations from the record \
         that Helm does not need{}",
        largest(annotation, record)
    )]
    TooLarge {
        /// The record.
        record: String,
        /// What is too much.
        excess: String,
        /// Its largest annotation; empty when it has none.
        annotation: String,
    },
    /// What was read back is something else.
    #[error("backup {backup} does not hold what was written to it: nothing was deleted")]
    Differs {
        /// The backup.
        backup: String,
    },
    /// A record changed after it was backed up.
    #[error("{record} changed while it was being backed up: it was not deleted, try again")]
    Changed {
        /// The record.
        record: String,
    },
    /// A record's object holds no data that can be read.
    #[error("{record} is no record that can be copied: {reason}")]
    NoRecord {
        /// The record.
        record: String,
        /// Why.
        reason: String,
    },
}

fn largest(annotation: &str, record: &str) -> String {
    if annotation.is_empty() {
        return String::new();
    }
    let (kind, place) = record.split_once(' ').unwrap_or_default();
    let (namespace, name) = place.split_once('/').unwrap_or_default();
    format!(
        " (the largest: `kubectl -n {namespace} annotate {} {name} {annotation}-`)",
        kind.to_lowercase()
    )
}

fn failed(doing: impl Into<String>) -> impl FnOnce(ClusterError) -> BackupError {
    let doing = doing.into();
    move |source| BackupError::Cluster { doing, source }
}

/// A record with its data.
#[derive(Clone, Debug)]
struct Record {
    about: BackedUp,
    /// Raw bytes by key.
    data: BTreeMap<String, Vec<u8>>,
    version: String,
}

impl Record {
    fn title(&self) -> String {
        format!("{} {}/{}", self.about.kind, self.about.namespace, self.about.name)
    }

    fn bytes(&self) -> usize {
        self.data.values().map(Vec::len).sum()
    }

    fn is_in(&self, other: &BackedUp) -> bool {
        let own = &self.about;
        (&own.kind, &own.namespace, &own.name, &own.hash)
            == (&other.kind, &other.namespace, &other.name, &other.hash)
    }
}

fn read_record(kind: &str, object: &Value) -> Result<Record, BackupError> {
    let (namespace, name) = (text(object, "/metadata/namespace"), text(object, "/metadata/name"));
    let wrong = |reason: &str| BackupError::NoRecord {
        record: format!("{kind} {namespace}/{name}"),
        reason: reason.to_owned(),
    };
    let mut data = BTreeMap::new();
    let fields = object.get("data").and_then(Value::as_object);
    for (key, value) in fields.into_iter().flatten() {
        let value = value.as_str().ok_or_else(|| wrong("its data is no text"))?;
        let bytes = if kind == "Secret" {
            STANDARD.decode(value).map_err(|_| wrong("its data is not base64"))?
        } else {
            value.as_bytes().to_vec()
        };
        data.insert(key.clone(), bytes);
    }
    if !data.contains_key("release") {
        return Err(wrong("it has no entry `release`"));
    }
    if object.get("binaryData").is_some_and(|data| !data.is_null()) {
        return Err(wrong("it has binary data, as no record has"));
    }
    let map = |pointer: &str| object.pointer(pointer).and_then(Value::as_object).cloned();
    let mut about = BackedUp {
        kind: kind.to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        uid: text(object, "/metadata/uid").to_owned(),
        labels: map("/metadata/labels").unwrap_or_default(),
        annotations: map("/metadata/annotations").unwrap_or_default(),
        secret_type: text(object, "/type").to_owned(),
        immutable: object.get("immutable").and_then(Value::as_bool).unwrap_or_default(),
        data: BTreeMap::new(),
        hash: String::new(),
    };
    about.hash = hash(&about, &data);
    let version = text(object, "/metadata/resourceVersion").to_owned();
    Ok(Record { about, data, version })
}

/// SHA-256 over everything that a record is.
fn hash(about: &BackedUp, data: &BTreeMap<String, Vec<u8>>) -> String {
    let data: BTreeMap<&String, String> =
        data.iter().map(|(key, bytes)| (key, crate::plan::sha256(bytes))).collect();
    let all = json!([
        about.kind,
        about.namespace,
        about.name,
        about.labels,
        about.annotations,
        about.secret_type,
        about.immutable,
        data,
    ]);
    crate::plan::sha256(all.to_string().as_bytes())
}

/// The hash of a live record's object; none when it is no record.
pub(crate) fn hash_of(kind: &str, object: &Value) -> Option<String> {
    read_record(kind, object).ok().map(|record| record.about.hash)
}

/// A backup Secret as it is stored.
#[derive(Clone, Debug)]
pub struct Backup {
    /// Its name.
    pub name: String,
    /// What it says to hold.
    pub records: Vec<BackedUp>,
    /// Its data.
    data: BTreeMap<String, Vec<u8>>,
    /// Why its index cannot be read; empty when it can.
    no_index: String,
}

impl Backup {
    pub(crate) fn of(object: &Value) -> Self {
        let index = object
            .pointer("/metadata/annotations")
            .and_then(|annotations| annotations.get(INDEX)?.as_str())
            .unwrap_or_default();
        let fields = object.get("data").and_then(Value::as_object);
        let data = fields
            .into_iter()
            .flatten()
            .filter_map(|(key, value)| Some((key.clone(), STANDARD.decode(value.as_str()?).ok()?)))
            .collect();
        let (records, no_index) = match serde_json::from_str(index) {
            Ok(records) => (records, String::new()),
            Err(error) => (Vec::new(), error.to_string()),
        };
        Self { name: text(object, "/metadata/name").to_owned(), records, data, no_index }
    }

    /// What is wrong with it, one by one; nothing when all that it says to hold is whole.
    pub fn damage(&self) -> Vec<String> {
        let mut damage = Vec::new();
        if !self.no_index.is_empty() {
            damage.push(format!("annotation {INDEX} is no list of records: {}", self.no_index));
        } else if self.records.is_empty() {
            damage.push(format!("annotation {INDEX} names no record"));
        }
        for record in &self.records {
            let title = format!("{} {}/{}", record.kind, record.namespace, record.name);
            match self.data_of(record) {
                None => damage.push(format!("data of {title} is missing, or is not base64")),
                Some(data) if hash(record, &data) != record.hash => damage.push(format!(
                    "{title} is not what was backed up (its SHA-256 is another one)"
                )),
                Some(_) => {}
            }
        }
        damage
    }

    /// The data of a record in it; none when something is missing.
    pub fn data_of(&self, record: &BackedUp) -> Option<BTreeMap<String, Vec<u8>>> {
        record
            .data
            .iter()
            .map(|(key, place)| Some((key.clone(), self.data.get(place)?.clone())))
            .collect()
    }

    /// The records that it holds whole: what it holds has the hash that it says.
    pub fn verified(&self) -> impl Iterator<Item = &BackedUp> {
        self.records.iter().filter(|record| {
            self.data_of(record).is_some_and(|data| hash(record, &data) == record.hash)
        })
    }
}

/// Whether an object is a backup.
pub fn is_backup(object: &Value) -> bool {
    let labels = object.pointer("/metadata/labels");
    labels.and_then(|labels| labels.get(LABEL.0)).and_then(Value::as_str) == Some(LABEL.1)
}

/// Makes the index of a backup fit its data, after what may be a credential was taken out of it.
pub(crate) fn reindex(backup: &mut Value) {
    let held = Backup::of(backup);
    let mut records = held.records.clone();
    for record in &mut records {
        if let Some(data) = held.data_of(record) {
            record.hash = hash(record, &data);
        }
    }
    if let Ok(index) = serde_json::to_string(&records)
        && !records.is_empty()
    {
        backup["metadata"]["annotations"][INDEX] = index.into();
    }
}

/// Whether a backup holds records of ichor's own, which a restore retired.
pub(crate) fn holds_own(backup: &Value) -> bool {
    let index = backup.pointer("/metadata/annotations").and_then(|all| all.get(INDEX)?.as_str());
    index.is_some_and(|index| index.contains(&format!("\"{}\"", CILIUM.home)))
}

/// The labels of a place's backups.
fn labels(place: &Place) -> BTreeMap<&str, &str> {
    let mut labels = BTreeMap::from([LABEL]);
    if place.is_shared {
        labels.insert(OF_RELEASE, &place.release);
    }
    labels
}

/// All backups of a place, by name.
///
/// # Errors
/// [`BackupError::Cluster`]
pub async fn backups(cluster: &dyn Cluster, place: &Place) -> Result<Vec<Backup>, BackupError> {
    let labels: Vec<String> =
        labels(place).into_iter().map(|(key, value)| format!("{key}={value}")).collect();
    let query = ListQuery {
        namespace: place.home.to_string(),
        labels: labels.join(","),
        ..ListQuery::default()
    };
    let page = list_all(cluster, &secrets(), &query).await.map_err(failed("list the backups"))?;
    let mut backups: Vec<Backup> = page.items.iter().map(Backup::of).collect();
    backups.sort_by(|a, b| (a.name.len(), &a.name).cmp(&(b.name.len(), &b.name)));
    Ok(backups)
}

/// Backs the records up, reads the backups back, compares, and deletes the originals. Records that
/// are gone are passed over.
///
/// # Errors
/// [`BackupError`]
pub async fn retire(
    cluster: &dyn Cluster,
    place: &Place,
    records: &[RecordAbout],
) -> Result<Retired, BackupError> {
    let (mut retired, originals) = secure(cluster, place, records).await?;
    for original in &originals {
        if delete(cluster, original).await? {
            retired.deleted.push(original.title());
        }
    }
    Ok(retired)
}

/// The first half of [`retire`]: backs the records up, reads the backups back, compares.
///
/// # Errors
/// [`BackupError`]
pub(crate) async fn back_up(
    cluster: &dyn Cluster,
    place: &Place,
    records: &[RecordAbout],
) -> Result<Retired, BackupError> {
    Ok(secure(cluster, place, records).await?.0)
}

/// Backs up those records that are there, and gives them.
async fn secure(
    cluster: &dyn Cluster,
    place: &Place,
    records: &[RecordAbout],
) -> Result<(Retired, Vec<Record>), BackupError> {
    let mut retired = Retired::default();
    let mut originals = Vec::new();
    for record in records {
        let (kind, about) = (record.about.kind.as_str(), &record.about);
        let found = read_object(cluster, kind, &about.namespace, &about.name).await?;
        let Some(object) = found else { continue };
        let original = read_record(kind, &object)?;
        // Another record under the same name is not the one that was consented to.
        if original.about.uid != record.uid {
            return Err(BackupError::Changed { record: original.title() });
        }
        originals.push(original);
    }
    let known = backups(cluster, place).await?;
    let is_known =
        |record: &Record| known.iter().any(|b| b.verified().any(|other| record.is_in(other)));
    let missing: Vec<&Record> = originals.iter().filter(|record| !is_known(record)).collect();
    retired.already = originals.len() - missing.len();
    for chunk in pack(&missing) {
        retired.backups.push(write(cluster, place, &chunk).await?);
    }
    // Everything is read once more, so that only what a reader finds counts.
    let found = backups(cluster, place).await?;
    for original in &originals {
        let is_safe = found.iter().any(|b| b.verified().any(|other| original.is_in(other)));
        if !is_safe {
            return Err(BackupError::Differs { backup: original.title() });
        }
    }
    Ok((retired, originals))
}

/// Which of the records are there, in the objects that were found.
///
/// # Errors
/// [`BackupError::Cluster`]
pub async fn live<'r>(
    cluster: &dyn Cluster,
    records: &'r [RecordAbout],
) -> Result<Vec<&'r RecordAbout>, BackupError> {
    let mut live = Vec::new();
    for record in records {
        let place = &record.about;
        let found = read_object(cluster, &place.kind, &place.namespace, &place.name).await?;
        if found.is_some_and(|object| text(&object, "/metadata/uid") == record.uid) {
            live.push(record);
        }
    }
    Ok(live)
}

async fn read_object(
    cluster: &dyn Cluster,
    kind: &str,
    namespace: &str,
    name: &str,
) -> Result<Option<Value>, BackupError> {
    read(cluster, &resource_of(kind), namespace, name)
        .await
        .map_err(failed(format!("read {kind} {namespace}/{name}")))
}

/// Cuts records into Secrets' worths, in their order.
fn pack<'a>(records: &[&'a Record]) -> Vec<Vec<&'a Record>> {
    let mut chunks: Vec<Vec<&Record>> = Vec::new();
    let (mut bytes, mut index) = (0, 0);
    for record in records.iter().copied() {
        let size = record.bytes();
        let entry = serde_json::to_string(&record.about).map_or(0, |text| text.len() + 64);
        if chunks.is_empty() || bytes + size > MAX_SECRET || index + entry > MAX_INDEX {
            chunks.push(Vec::new());
            (bytes, index) = (0, 0);
        }
        bytes += size;
        index += entry;
        if let Some(chunk) = chunks.last_mut() {
            chunk.push(record);
        }
    }
    chunks
}

/// Whether the server would take the backups of records, given as their kinds and objects. Nothing
/// is written.
///
/// # Errors
/// [`BackupError`]: a record that cannot be copied, or whose backup is too large.
pub(crate) fn forecast(place: &Place, objects: &[(&str, &Value)]) -> Result<(), BackupError> {
    let records: Result<Vec<Record>, BackupError> =
        objects.iter().map(|(kind, object)| read_record(kind, object)).collect();
    let records = records?;
    for chunk in pack(&records.iter().collect::<Vec<_>>()) {
        secret(place, &format!("{}-{TRIES}", place.backup), &chunk)?;
    }
    Ok(())
}

/// The Secret that holds records.
fn secret(place: &Place, name: &str, records: &[&Record]) -> Result<Value, BackupError> {
    let mut data = Map::new();
    let mut index = Vec::new();
    for (number, record) in records.iter().enumerate() {
        let mut about = record.about.clone();
        for (key, bytes) in &record.data {
            let at = format!("{}.{key}", number + 1);
            data.insert(at.clone(), STANDARD.encode(bytes).into());
            about.data.insert(key.clone(), at);
        }
        index.push(about);
    }
    let index = serde_json::to_string(&index).unwrap_or_default();
    let secret = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "ichor.maesh.dev/prior-release",
        "metadata": {
            "name": name,
            "namespace": place.home,
            "labels": labels(place),
            "annotations": { INDEX: index },
        },
        "data": data,
    });
    // Only one that is alone in its Secret can be too large.
    match (Weight::of(&secret).excess(), records.first()) {
        (Some(excess), Some(record)) => {
            let annotations = record.about.annotations.iter();
            let size = |value: &Value| value.as_str().map_or(0, str::len);
            let largest = annotations.max_by_key(|(_, value)| size(value));
            let annotation = largest.map(|(key, _)| key.clone()).unwrap_or_default();
            Err(BackupError::TooLarge { record: record.title(), excess, annotation })
        }
        _ => Ok(secret),
    }
}

/// Writes a backup under the first name that is free; its name.
async fn write(
    cluster: &dyn Cluster,
    place: &Place,
    records: &[&Record],
) -> Result<String, BackupError> {
    let options =
        WriteOptions { field_manager: FIELD_MANAGER.to_owned(), ..WriteOptions::default() };
    for number in 1..=TRIES {
        let first = &place.backup;
        let name = if number == 1 { first.to_string() } else { format!("{first}-{number}") };
        let target = Target::new(&secrets(), &place.home, &name);
        let secret = secret(place, &name, records)?;
        match cluster.create(&target, &secret, &options).await {
            Ok(_) => return Ok(name),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(failed(format!("write backup {name}"))(error)),
        }
    }
    Err(BackupError::Differs { backup: place.backup.to_string() })
}

/// Deletes a record, if it is still what was backed up; whether it was there. The deletion names
/// UID and version of what was read; another version is looked at first.
async fn delete(cluster: &dyn Cluster, original: &Record) -> Result<bool, BackupError> {
    let about = &original.about;
    let changed = || BackupError::Changed { record: original.title() };
    let target = Target::new(&resource_of(&about.kind), &about.namespace, &about.name);
    let mut version = original.version.clone();
    for _ in 0..DELETIONS {
        let options = DeleteOptions {
            uid: about.uid.clone(),
            resource_version: version,
            ..DeleteOptions::default()
        };
        match cluster.delete(&target, &options).await {
            Ok(_) => return Ok(true),
            Err(error) if error.is_not_found() => return Ok(false),
            Err(error) if error.kind() == ErrorKind::Conflict => {}
            Err(error) => return Err(failed(format!("delete {}", original.title()))(error)),
        }
        let found = read_object(cluster, &about.kind, &about.namespace, &about.name).await?;
        let Some(object) = found else { return Ok(false) };
        let now = read_record(&about.kind, &object)?;
        if now.about.uid != about.uid || now.about.hash != about.hash {
            return Err(changed());
        }
        version = now.version;
    }
    Err(changed())
}
