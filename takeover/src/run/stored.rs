//! The consented plan as it is stored, so that a later run can tell this run's writes from
//! strangers'.
//!
//! One Secret in ichor's namespace holds the plan, the objects that are written with the hashes
//! of their states before and after, the ownership metadata that they had, and the leaves that are
//! changed with their former values. What may be a credential is not in it: a run that goes on takes
//! it from the record's manifest, and former values that may be one lie in an entry of their own.
//!
//! Of a release that was adopted or moved more than once under one name, the Secret holds the plans
//! before too, newest first, so that one after the other can be undone. They are in the same Secret
//! so that there is always one write between two states.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read as _, Write as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cilium::object::ObjectRef;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use helm_rs::apply::{FIELD_MANAGER, Item};
use helm_rs::cluster::{Cluster, ClusterError, Discovery, ErrorKind, Kind, Target, WriteOptions};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::former::{FormerLeaf, undo};
use super::strangers::Live;
use crate::gate::{Desired, Path, consented, is_secret, leaves_of, replace};
use crate::place::Place;
use crate::plan::{
    HIDDEN, Key, ObjectAbout, Plan, Prepared, find_record, hash_leaves, is_stand_in_entry,
};
use crate::rendered::manifest_objects;
use crate::room::Weight;
use crate::survey::{read, secrets, text};

/// The entry of its data with the plan.
const DATA: &str = "plan";
/// The entry with former values that may be credentials.
pub(crate) const CREDENTIALS: &str = "credentials";
/// The annotation that says that what was stored is undone.
const UNDONE: &str = "ichor.maesh.dev/undone";
/// The annotation with the plan's digest.
const DIGEST: &str = "ichor.maesh.dev/digest";
/// Plans before the last one that are kept, where there is room.
pub const KEPT: usize = 8;
/// Bytes that a stored plan may unpack to.
const LIMIT: u64 = 64 * 1024 * 1024;

/// A consented plan with what carries it out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredPlan {
    /// The plan.
    pub plan: Plan,
    /// The key of the hashes.
    pub key: String,
    /// The objects in the order of writing.
    pub objects: Vec<StoredObject>,
    /// What the foreign records were at the consent: the hashes that a backup has for them.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub records: BTreeSet<String>,
    /// The values of `spec.cni.cilium.values` that the change before was complete with, and those of
    /// this one: what is in the first and not in the second is taken away again. They are not those
    /// of a Secret: whoever may look at the TalosCluster sees them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<Asked>,
    /// Former values of leaves that may be credentials, by their keyed hashes.
    #[serde(skip)]
    pub(crate) credentials: BTreeMap<String, Value>,
    /// Whether those were taken out, as from a snapshot.
    #[serde(skip)]
    pub(crate) is_hidden: bool,
    /// The plans before, newest first.
    #[serde(skip)]
    previous: Vec<Layer>,
}

/// The values that a change was asked for with.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Asked {
    /// Those of the last change that was complete when this one was begun.
    pub before: Value,
    /// Those of this one.
    pub now: Value,
    /// Whether it brings the pinned chart.
    #[serde(default)]
    pub upgrade: bool,
    /// Whether Cilium is to stand in for kube-proxy; none: as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kube_proxy: Option<bool>,
    /// The revision that has them once it is deployed: the one that this change writes, or the one
    /// that was deployed where there was nothing to write.
    #[serde(default)]
    pub revision: i64,
}

/// A plan as it is stored, with the credentials beside it.
#[derive(Clone, Debug, PartialEq)]
struct Layer {
    plan: String,
    credentials: Option<String>,
}

/// An object with what is written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredObject {
    /// What is written. What may be a credential is not stored: [`StoredPlan::fill`] puts it back.
    pub desired: Value,
    /// Generated leaves and those of others, which the hashes leave out.
    pub exempt: BTreeSet<String>,
    /// Nothing is to be written: it is as it should be.
    pub keep: bool,
    /// The hash before; empty when it is created.
    pub before: String,
    /// The hash after.
    pub after: String,
    /// What an earlier revision wrote, where the write takes some of it away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original: Option<Value>,
    /// The ownership metadata before, as a merge patch of `metadata`; none when it is created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub former: Option<Value>,
    /// The leaves that are changed, with their former values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leaves: Vec<FormerLeaf>,
    /// The hash before what was begun with another plan; empty when that is `before`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub origin: String,
}

/// Why a stored plan cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StoredError {
    /// The cluster refuses.
    #[error("Secret {secret}")]
    Cluster {
        /// The Secret, as namespace and name.
        secret: String,
        /// What the cluster says.
        source: ClusterError,
    },
    /// It is no stored plan.
    #[error(
        "refused: Secret {namespace}/{name} holds no plan that can be read ({reason}): somebody \
         edited it, or it was cut short. Write it back if you have a copy; else delete it \
         (`kubectl -n {namespace} delete secret {name}`): it only says what the last takeover was \
         consented to, and records and backups stay. A takeover that was begun then needs a new \
         plan and a consent to that one; of one that is complete, ichor no longer knows how to \
         give the objects back (`{restore}`)"
    )]
    Content {
        /// The Secret's namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// The command that would give the objects back.
        restore: String,
        /// What is wrong.
        reason: String,
    },
}

fn failed(place: &Place) -> impl FnOnce(ClusterError) -> StoredError {
    let secret = format!("{}/{}", place.home, place.plan);
    |source| StoredError::Cluster { secret, source }
}

fn content(place: &Place, reason: String) -> StoredError {
    let [namespace, name, restore] =
        [&place.home, &place.plan, &place.words.restore].map(ToString::to_string);
    StoredError::Content { namespace, name, restore, reason }
}

impl StoredPlan {
    /// What is stored of a prepared plan.
    pub fn of(prepared: &Prepared) -> Self {
        let mut credentials = BTreeMap::new();
        // A change of ichor's own release is gone back by another one.
        let is_undone = prepared.asked.is_none();
        let objects = prepared
            .objects
            .iter()
            .map(|object| {
                let mut exempt: BTreeSet<String> =
                    object.generated.iter().map(ToString::to_string).collect();
                exempt.extend(object.desired.yielded.iter().map(|(path, _)| path.to_string()));
                StoredObject {
                    desired: object.item.value.clone(),
                    exempt,
                    keep: object.keep,
                    before: object.before.clone(),
                    after: object.after.clone(),
                    original: object.original.clone(),
                    former: object.live.as_ref().map(former_ownership),
                    leaves: object
                        .changes
                        .iter()
                        .filter(|_| is_undone)
                        .map(|change| {
                            let kind = &object.item.kind().kind;
                            FormerLeaf::of(&prepared.key, kind, change, &mut credentials)
                        })
                        .collect(),
                    origin: String::new(),
                }
            })
            .collect();
        let records = prepared
            .plan
            .records
            .iter()
            .filter_map(|record| {
                let ObjectAbout { kind, namespace, name, .. } = &record.about;
                let place = ObjectRef::new(kind, namespace, name);
                super::backup::hash_of(kind, find_record(&prepared.survey, &place)?)
            })
            .collect();
        Self {
            plan: prepared.plan.clone(),
            key: prepared.key.0.clone(),
            objects,
            records,
            credentials,
            asked: prepared.asked.clone(),
            ..Self::default()
        }
    }

    /// The plan of a move, which changes no leaf but ownership.
    pub(crate) fn of_move(
        plan: Plan,
        key: Key,
        objects: Vec<StoredObject>,
        records: BTreeSet<String>,
    ) -> Self {
        Self { plan, key: key.0, objects, records, ..Self::default() }
    }

    /// Puts back what may be a credential, from the manifest of the record of the run that stored
    /// the plan: nothing else of this program's holds it.
    ///
    /// # Errors
    /// [`StoredError::Content`] names what the manifest does not have.
    pub fn fill(
        &mut self,
        place: &Place,
        manifest: &str,
        discovery: &Discovery,
    ) -> Result<(), StoredError> {
        let items = manifest_objects(discovery, manifest, &place.namespace);
        for object in &mut self.objects {
            let hidden = credentials(&object.desired);
            if hidden.is_empty() {
                continue;
            }
            let from = items.iter().find(|item| is_same(&item.value, &object.desired));
            let leaves = from.map(|item| leaves_of(&item.value)).unwrap_or_default();
            for path in hidden {
                let value = leaves.get(&path).map(|leaf| &leaf.value);
                if !value.is_some_and(|value| replace(&mut object.desired, &path, value)) {
                    let name = text(&object.desired, "/metadata/name");
                    let reason = format!("{path} of {name} is not in the record's manifest");
                    return Err(content(place, reason));
                }
            }
        }
        Ok(())
    }

    /// Takes over from the plan of a takeover that was begun, and which goes on with this one. What
    /// it created was not there. `live` are the objects as they are now.
    pub(super) fn inherit(&mut self, begun: &Self, live: &[Live]) {
        let key = Key(self.key.clone());
        for (object, live) in self.objects.iter_mut().zip(live) {
            let same = begun.objects.iter().find(|other| is_same(&other.desired, &object.desired));
            let Some(same) = same else { continue };
            object.former.clone_from(&same.former);
            if object.former.is_none() {
                object.leaves.clear();
                continue;
            }
            for old in &same.leaves {
                match object.leaves.iter_mut().find(|leaf| leaf.path == old.path) {
                    Some(leaf) => leaf.inherit(old),
                    None => object.leaves.push(old.clone()),
                }
            }
            if let Some(live) = live.as_ref().filter(|_| !same.leaves.is_empty()) {
                let undone = undo(begun, same, live, &|_| true).object;
                object.origin = object.state(&key, &undone);
            }
        }
        let others = begun.credentials.iter().map(|(hash, value)| (hash.clone(), value.clone()));
        self.credentials.extend(others);
        self.is_hidden |= begun.is_hidden;
        self.previous.clone_from(&begun.previous);
    }

    /// Keeps an earlier plan under the same name, so that it can be undone after this one; the
    /// oldest ones go where there is no room.
    ///
    /// # Errors
    /// [`StoredError::Content`], never in practice: every part is plain data.
    pub(crate) fn keep(&mut self, before: Self, place: &Place) -> Result<(), StoredError> {
        let last = before.layer(place)?;
        self.previous = std::iter::once(last).chain(before.previous).take(KEPT).collect();
        while !self.previous.is_empty() && Weight::of(&self.secret(place)?).excess().is_some() {
            self.previous.pop();
        }
        Ok(())
    }

    /// How many plans before it can be undone after it.
    pub(crate) fn kept(&self) -> usize {
        self.previous.len()
    }

    /// The plan alone, as it is stored.
    fn layer(&self, place: &Place) -> Result<Layer, StoredError> {
        let mut hidden = self.clone();
        for object in &mut hidden.objects {
            hide_credentials(&mut object.desired);
            if let Some(original) = &mut object.original {
                hide_credentials(original);
            }
        }
        let credentials = (!self.credentials.is_empty()).then(|| pack(place, &self.credentials));
        Ok(Layer { plan: pack(place, &hidden)?, credentials: credentials.transpose()? })
    }

    /// The Secret that it is stored in.
    ///
    /// # Errors
    /// [`StoredError::Content`], never in practice: every part is plain data.
    pub(crate) fn secret(&self, place: &Place) -> Result<Value, StoredError> {
        let layers = std::iter::once(self.layer(place)?).chain(self.previous.iter().cloned());
        Ok(secret(place, layers, &json!({ DIGEST: self.plan.digest })))
    }

    /// Writes it over whatever was stored.
    ///
    /// # Errors
    /// [`StoredError`]
    pub async fn write(&self, cluster: &dyn Cluster, place: &Place) -> Result<(), StoredError> {
        write(cluster, place, self.secret(place)?).await
    }

    /// Takes it away after it was undone: the plan before it is the one that counts then.
    ///
    /// # Errors
    /// [`StoredError`]
    pub(super) async fn take_away(
        self,
        cluster: &dyn Cluster,
        place: &Place,
    ) -> Result<(), StoredError> {
        let secret = match self.previous.first() {
            None => secret(place, std::iter::empty(), &json!({ UNDONE: "true" })),
            Some(layer) => {
                let before: Self = unpack(place, &layer.plan)?;
                let digest = json!({ DIGEST: before.plan.digest });
                secret(place, self.previous.into_iter(), &digest)
            }
        };
        write(cluster, place, secret).await
    }

    /// What is stored under a name that is taken anew; none when it does not read, since nothing
    /// could be undone by it.
    ///
    /// # Errors
    /// [`StoredError::Cluster`]
    pub(crate) async fn earlier(
        cluster: &dyn Cluster,
        place: &Place,
    ) -> Result<Option<Self>, StoredError> {
        match Self::read(cluster, place).await {
            Err(StoredError::Content { .. }) => Ok(None),
            read => read,
        }
    }

    /// Reads what is stored; none when there is nothing.
    ///
    /// # Errors
    /// [`StoredError`]
    pub async fn read(cluster: &dyn Cluster, place: &Place) -> Result<Option<Self>, StoredError> {
        let Some(secret) =
            read(cluster, &secrets(), &place.home, &place.plan).await.map_err(failed(place))?
        else {
            return Ok(None);
        };
        let annotations = secret.pointer("/metadata/annotations");
        if annotations.is_some_and(|annotations| annotations.get(UNDONE).is_some()) {
            return Ok(None);
        }
        let entry = |name: &str| {
            let entry = secret.get("data").and_then(|data| data.get(name)?.as_str());
            entry.map(str::to_owned)
        };
        let mut stored: Self = unpack(place, &entry(DATA).unwrap_or_default())?;
        match entry(CREDENTIALS) {
            Some(text) if is_stand_in_entry(&text) => stored.is_hidden = true,
            Some(text) => stored.credentials = unpack(place, &text)?,
            None => {}
        }
        for number in 1..=KEPT {
            let Some(plan) = entry(&numbered(DATA, number)) else { break };
            let credentials = entry(&numbered(CREDENTIALS, number));
            stored.previous.push(Layer { plan, credentials });
        }
        Ok(Some(stored))
    }
}

/// The entry of an earlier plan; 0 is the last one.
fn numbered(entry: &str, number: usize) -> String {
    if number == 0 { entry.to_owned() } else { format!("{entry}.{number}") }
}

/// The Secret with these plans, newest first.
fn secret(place: &Place, layers: impl Iterator<Item = Layer>, annotations: &Value) -> Value {
    let mut data = Map::new();
    for (number, layer) in layers.enumerate() {
        data.insert(numbered(DATA, number), layer.plan.into());
        if let Some(credentials) = layer.credentials {
            data.insert(numbered(CREDENTIALS, number), credentials.into());
        }
    }
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "ichor.maesh.dev/cni-plan",
        "metadata": { "name": place.plan, "namespace": place.home, "annotations": annotations },
        "data": data,
    })
}

async fn write(cluster: &dyn Cluster, place: &Place, mut secret: Value) -> Result<(), StoredError> {
    let target = Target::new(&secrets(), &place.home, &place.plan);
    let options =
        WriteOptions { field_manager: FIELD_MANAGER.to_owned(), ..WriteOptions::default() };
    match cluster.create(&target, &secret, &options).await {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            // Over the version that is read here, and no other.
            if let Some(there) =
                read(cluster, &secrets(), &place.home, &place.plan).await.map_err(failed(place))?
            {
                let version = text(&there, "/metadata/resourceVersion");
                secret["metadata"]["resourceVersion"] = version.into();
            }
            cluster.update(&target, &secret, &options).await.map_err(failed(place))?;
            Ok(())
        }
        Err(error) => Err(failed(place)(error)),
    }
}

fn pack(place: &Place, content_of: &impl Serialize) -> Result<String, StoredError> {
    let wrong = |error: &dyn std::error::Error| content(place, error.to_string());
    let json = serde_json::to_vec(content_of).map_err(|error| wrong(&error))?;
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(&json).map_err(|error| wrong(&error))?;
    Ok(STANDARD.encode(gzip.finish().map_err(|error| wrong(&error))?))
}

fn unpack<T: serde::de::DeserializeOwned>(place: &Place, text: &str) -> Result<T, StoredError> {
    let layer = |layer: &str, error: &dyn std::error::Error| {
        content(place, format!("{layer} layer: {error}"))
    };
    let packed = STANDARD.decode(text).map_err(|error| layer("base64", &error))?;
    let mut json = Vec::new();
    GzDecoder::new(packed.as_slice())
        .take(LIMIT)
        .read_to_end(&mut json)
        .map_err(|error| layer("gzip", &error))?;
    serde_json::from_slice(&json).map_err(|error| layer("JSON", &error))
}

impl StoredObject {
    /// Where it lives; none when its kind is not served.
    pub fn item(&self, discovery: &Discovery) -> Option<Item> {
        let resource = discovery.resource(&Kind::of(&self.desired))?;
        let target = Target::of(resource, &self.desired, "");
        Some(Item { target, value: self.desired.clone() })
    }

    /// Whether a live object is in its state before or after the write.
    pub fn knows(&self, key: &Key, live: &Value) -> bool {
        let state = self.state(key, live);
        state == self.before || state == self.after
    }

    /// The hash of a live object's state.
    pub fn state(&self, key: &Key, live: &Value) -> String {
        let leaves = consented(live, &self.desired(), &BTreeSet::new());
        hash_leaves(key, text(&self.desired, "/kind"), &leaves)
    }

    /// What it leaves out, in the gate's form.
    pub fn desired(&self) -> Desired {
        let yielded = leaves_of(&self.desired)
            .into_keys()
            .filter(|path| self.exempt.contains(&path.to_string()))
            .map(|path| (path, String::new()))
            .collect();
        Desired { object: self.desired.clone(), kept: BTreeSet::new(), yielded }
    }
}

/// The leaves of an object that may be credentials.
fn credentials(object: &Value) -> Vec<Path> {
    let kind = text(object, "/kind");
    leaves_of(object).into_keys().filter(|path| is_secret(kind, path)).collect()
}

fn hide_credentials(object: &mut Value) {
    for path in credentials(object) {
        replace(object, &path, &HIDDEN.into());
    }
}

/// Whether two objects have one address.
fn is_same(one: &Value, other: &Value) -> bool {
    Kind::of(one) == Kind::of(other)
        && ["/metadata/namespace", "/metadata/name"]
            .into_iter()
            .all(|pointer| text(one, pointer) == text(other, pointer))
}

/// Gives an object ownership metadata, in the form of [`former_ownership`].
pub(crate) fn set_ownership(object: &mut Value, former: &Value) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    for (map, entries) in former.as_object().into_iter().flatten() {
        let place = metadata.entry(map.clone()).or_insert_with(|| json!({}));
        let Some(place) = place.as_object_mut() else { continue };
        for (key, value) in entries.as_object().into_iter().flatten() {
            if value.is_null() {
                place.remove(key);
            } else {
                place.insert(key.clone(), value.clone());
            }
        }
    }
}

/// The ownership metadata of a live object as a merge patch: null where there is none.
pub(crate) fn former_ownership(live: &Value) -> Value {
    use helm_rs::apply::ownership::{MANAGED_BY_LABEL, RELEASE_NAME, RELEASE_NAMESPACE};
    let value = |place: &str, key: &str| {
        live.pointer(place).and_then(|map| map.get(key)).cloned().unwrap_or_default()
    };
    json!({
        "labels": { MANAGED_BY_LABEL: value("/metadata/labels", MANAGED_BY_LABEL) },
        "annotations": {
            RELEASE_NAME: value("/metadata/annotations", RELEASE_NAME),
            RELEASE_NAMESPACE: value("/metadata/annotations", RELEASE_NAMESPACE),
        },
    })
}
