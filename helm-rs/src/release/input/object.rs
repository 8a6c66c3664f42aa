//! One Kubernetes object's text, read as a stored record.

use std::ops::Range;

use base64::Engine as _;
use bstr::ByteSlice;
use goyaml::{Limits, Map, Value};

use super::parts::{
    NAME_PREFIX, has_other_fields, has_release, holds_record, is_record, mentions_record, name_of,
};
use super::protobuf;
use super::{Chunk, End, Fault, Form, Hidden, InputLimits};
use crate::bytes;
use crate::cluster::snapshot::is_frame;
use crate::protobuf::ProtobufError;
use crate::release::codec::{self, CodecError, CodecLimits};

/// What a record is stored in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storage {
    /// A Secret.
    Secret,
    /// A ConfigMap.
    ConfigMap,
    /// No object: a release string or its JSON alone.
    Bare,
}

impl Storage {
    /// What the items of a list of this kind are.
    pub(super) fn of_list(kind: &[u8]) -> Option<Self> {
        match kind {
            b"SecretList" => Some(Self::Secret),
            b"ConfigMapList" => Some(Self::ConfigMap),
            _ => None,
        }
    }

    /// The object's kind; empty for a bare release.
    const fn kind(self) -> &'static str {
        match self {
            Self::Secret => "Secret",
            Self::ConfigMap => "ConfigMap",
            Self::Bare => "",
        }
    }

    /// What an object of this kind is.
    pub(super) fn of_kind(kind: &str) -> Option<Self> {
        match kind {
            "Secret" => Some(Self::Secret),
            "ConfigMap" => Some(Self::ConfigMap),
            _ => None,
        }
    }
}

/// A record as it is stored: the object's head, and the release still encoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredRecord {
    /// Where it was read: the file and, in a file of many, the object's number from 1.
    pub place: String,
    /// What it is stored in.
    pub storage: Storage,
    /// The object's name; empty for a bare release.
    pub name: String,
    /// The object's namespace; empty where the input does not say.
    pub namespace: String,
    /// The object's labels, ordered by key.
    pub labels: Vec<(String, String)>,
    release: Release,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Release {
    /// As Helm's driver writes it.
    Encoded(Vec<u8>),
    /// JSON that somebody decoded already.
    Json(Vec<u8>),
}

/// An object that should be a record and cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ObjectError {
    /// The object's text is no YAML or JSON.
    #[error("the object does not parse")]
    Syntax(#[from] goyaml::Error),
    /// The object's text is no JSON.
    #[error("the object does not parse")]
    Json(#[from] goyaml::json::Error),
    /// The object's bytes are not Kubernetes' protobuf.
    #[error("the object does not parse")]
    Protobuf(#[from] ProtobufError),
    /// The object has more values than anything that Kubernetes stores.
    #[error("the object has more than {limit} values")]
    TooMany {
        /// The limit.
        limit: usize,
    },
    /// A record that does not say whether it is a Secret or a `ConfigMap`.
    #[error("{object}: {}, and holds a release", if .kind.is_empty() { "has no kind".to_owned() } else { format!("is a {kind}") })]
    NoKind {
        /// The object's name.
        object: String,
        /// What it says instead.
        kind: String,
    },
    /// Something that says neither what it is nor its name, with parts of a record in it.
    #[error("holds parts of a release record, and does not say what it is or its name")]
    Part,
    /// A record object without the key `release`.
    #[error("{object}: there is no release in its data")]
    NoRelease {
        /// Kind and name.
        object: String,
    },
    /// The base64 that Kubernetes puts around a Secret's data.
    #[error("{object}: Secret layer: {reason}")]
    SecretLayer {
        /// Kind and name.
        object: String,
        /// What is wrong, and at which byte.
        reason: String,
    },
}

impl StoredRecord {
    /// A label's value.
    pub fn label(&self, name: &str) -> Option<&str> {
        self.labels.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The release's name as labels and the object's name tell it, before anything is decoded.
    pub fn release_name(&self) -> Option<&str> {
        self.label("name").or_else(|| {
            let name = self.name.strip_prefix(NAME_PREFIX)?;
            name.rsplit_once(".v").map(|(name, _)| name)
        })
    }

    /// Whether this may be a record of a release, by what its object says: labels and name can
    /// contradict each other, and nobody knows which of them is right before it is decoded.
    pub fn may_be_of(&self, release: &str) -> bool {
        self.hides().may_be(release, |_| true)
    }

    /// Whose record is lost when this one cannot be decoded.
    pub fn hides(&self) -> Hidden {
        Hidden::of_object(&self.name, &self.labels)
    }

    /// Kind and name, for messages.
    pub fn title(&self) -> String {
        match self.storage {
            Storage::Bare => "bare release".to_owned(),
            storage => format!("{} {}", storage.kind(), self.name),
        }
    }

    /// Bytes of the release as stored.
    pub const fn stored_size(&self) -> usize {
        match &self.release {
            Release::Encoded(data) | Release::Json(data) => data.len(),
        }
    }

    /// The release as Helm's driver writes it; `None` for JSON that somebody decoded already.
    pub fn release_string(&self) -> Option<&[u8]> {
        match &self.release {
            Release::Encoded(data) => Some(data),
            Release::Json(_) => None,
        }
    }

    /// The record's JSON text.
    ///
    /// # Errors
    /// [`CodecError`] names the layer and the byte.
    pub fn decode(&self, limits: &CodecLimits) -> Result<String, CodecError> {
        match &self.release {
            Release::Encoded(data) => codec::decode(data, *limits),
            Release::Json(json) => codec::checked(json.clone(), *limits),
        }
    }
}

/// What one object turns out to be; `None` is another thing than a record.
type Answer = Result<Option<StoredRecord>, Fault>;

/// Reads one object, or the items of a list in a layout that the splitter did not see through.
pub(super) fn read(chunk: Chunk, limits: &InputLimits, sink: &mut dyn FnMut(Answer)) {
    let End::Cut(line) = chunk.end else { return read_whole(chunk, limits, sink) };
    let place = chunk.place.clone();
    // What else is wrong with the last object comes of the cut.
    read_whole(chunk, limits, &mut |answer| {
        if answer.is_ok() {
            sink(answer);
        }
    });
    sink(Err(Fault::cut(&place, Some(line))));
}

fn read_whole(chunk: Chunk, limits: &InputLimits, sink: &mut dyn FnMut(Answer)) {
    let Chunk { place, form, list_of, end, text } = chunk;
    // Kubectl's last line has an end.
    let is_whole = !matches!(end, End::Stream(_)) || text.ends_with(b"\n");
    let fail = |error: ObjectError| {
        Err(Fault::new(&place, error.into()).hiding(Hidden::of_text(&text, is_whole)))
    };
    let value = match form {
        Form::Bare => return sink(Ok(Some(bare(place, &text)))),
        Form::Protobuf => return sink(of_protobuf(place, &text, list_of)),
        Form::Json => {
            if codec::has_more_values(&text, limits.values) {
                return sink(fail(ObjectError::TooMany { limit: limits.values }));
            }
            parse(&text, release_scalar(&text, form), |text| {
                let is_loose = !mentions_record(text);
                let read =
                    if is_loose { goyaml::json::from_json } else { goyaml::json::from_json_strict };
                read(text, &Limits::default())
            })
            .map_err(Into::into)
        }
        Form::Yaml => {
            if crate::manifest::has_more_values(&text, limits.values) {
                return sink(fail(ObjectError::TooMany { limit: limits.values }));
            }
            let limits = Limits { max_nodes: limits.values, ..Limits::default() };
            parse(&text, release_scalar(&text, form), |text| {
                // Other objects may be written as loosely as Kubernetes' own decoders allow.
                let is_loose = !mentions_record(text);
                let read = if is_loose { goyaml::from_yaml } else { goyaml::from_yaml_only };
                read(text, &limits)
            })
            .map_err(Into::into)
        }
    };
    let value = match value {
        Ok(value) => value,
        Err(error) => return sink(fail(error)),
    };
    if let End::Stream(line) = end
        && looks_cut(&value, &text)
    {
        return sink(Err(Fault::cut(&place, Some(line))));
    }
    let mut object = match value {
        Value::Map(object) => object,
        // The items of a list without the list.
        Value::Seq(items) => return items_of(&place, None, items, 0, sink),
        Value::String(text) if mentions_record(&text) => return sink(fail(ObjectError::Part)),
        _ => return sink(Ok(None)),
    };
    let kind = string(object.get("kind"));
    if is_frame(&kind) {
        // What it says of records is for people.
        return sink(Ok(None));
    }
    if kind.is_empty() && is_release(&object) && form == Form::Json {
        return sink(Ok(Some(StoredRecord { release: Release::Json(text), ..bare(place, &[]) })));
    }
    if kind.ends_with("List")
        && let Some(Value::Seq(items)) = object.remove("items")
    {
        if object.values().any(holds_record) {
            sink(fail(ObjectError::Part));
        }
        return items_of(&place, Storage::of_list(kind.as_bytes()), items, 0, sink);
    }
    let storage = if kind.is_empty() { list_of } else { Storage::of_kind(&kind) };
    let is_odd = is_odd(&object, &kind, storage);
    match object_of(place.clone(), storage, object) {
        Ok(None) if is_odd && mentions_record(&text) => sink(fail(ObjectError::Part)),
        answer => sink(answer),
    }
}

/// Whether an object may be a part of a record: neither it nor its list says what it is, it has no
/// name, is a list of nothing, or has fields that its kind does not have.
fn is_odd(object: &Map, kind: &str, storage: Option<Storage>) -> bool {
    (kind.is_empty() && storage.is_none())
        || kind.ends_with("List")
        || name_of(object).is_none_or(str::is_empty)
        || (storage.is_some() && has_other_fields(object))
}

/// Lists within lists are looked through this deep; what is deeper is a fault if it mentions a
/// record.
const MAX_LISTS: usize = 8;

/// Reads the items of a list that is in memory as a whole.
fn items_of(
    place: &str,
    list_of: Option<Storage>,
    items: Vec<Value>,
    depth: usize,
    sink: &mut dyn FnMut(Answer),
) {
    for (index, item) in items.into_iter().enumerate() {
        let place = format!("{place} item {}", index + 1);
        let part = || Err(Fault::new(&place, ObjectError::Part.into()));
        let mut item = match item {
            Value::Map(item) => item,
            Value::Seq(items) if depth < MAX_LISTS => {
                items_of(&place, list_of, items, depth + 1, sink);
                continue;
            }
            other => {
                sink(if holds_record(&other) { part() } else { Ok(None) });
                continue;
            }
        };
        let kind = string(item.get("kind"));
        if kind.ends_with("List")
            && depth < MAX_LISTS
            && let Some(Value::Seq(items)) = item.remove("items")
        {
            items_of(&place, Storage::of_list(kind.as_bytes()), items, depth + 1, sink);
            continue;
        }
        let storage = Storage::of_kind(&kind).or(list_of.filter(|_| kind.is_empty()));
        let is_part = is_odd(&item, &kind, storage) && item.values().any(holds_record);
        match object_of(place.clone(), storage, item) {
            Ok(None) if is_part => sink(part()),
            answer => sink(answer),
        }
    }
}

/// Whether the last object of a YAML stream lacks what a record has, as if the stream had been cut
/// off in it. Whatever is a record in spite of that is none of this.
fn looks_cut(value: &Value, text: &[u8]) -> bool {
    const HEAD: &[u8] = b"apiVersion: v1";
    let Some(object) = value.as_map() else {
        let text = text.trim_ascii();
        return !text.is_empty() && HEAD.starts_with(text);
    };
    // The last line may go on.
    let is_open = !text.ends_with(b"\n");
    let metadata = object.get("metadata").and_then(Value::as_map);
    let name = string(metadata.and_then(|metadata| metadata.get("name")));
    let labels = labels(metadata);
    let kind = string(object.get("kind"));
    let has_release = value.at(&["data", "release"]).is_some_and(|text| text.as_str().is_some());
    if has_release {
        let storage = Storage::of_kind(&kind);
        let is_record = storage.is_some() && is_record(&name, &string(object.get("type")), &labels);
        // Behind a Secret's name and namespace, in which it may have been cut, stands its type.
        let lacks_type =
            is_open && storage == Some(Storage::Secret) && !object.contains_key("type");
        return name.is_empty() || lacks_type || (!is_record && is_open);
    }
    if kind.is_empty() {
        // An object of Kubernetes' core without a kind; charts of the first version have a name.
        let is_core = object.get("apiVersion").is_some_and(|version| {
            version.is_null() || version.as_str().is_some_and(|version| b"v1".starts_with(version))
        });
        return is_core && !object.contains_key("name") && !object.contains_key("version");
    }
    // Where the kind stands first: in its own line, or before the name is complete.
    let is_cut = is_open && NAME_PREFIX.starts_with(&name) && text.ends_with(name.as_bytes());
    let is_named = !name.is_empty() && !is_cut;
    let is_partly = |whole: &str| kind == whole || (is_open && whole.starts_with(&kind));
    let is_in_name = is_open
        && name.starts_with(NAME_PREFIX)
        && text.ends_with(name.as_bytes())
        && Storage::of_kind(&kind).is_some();
    is_in_name || (!is_named && (is_partly("Secret") || is_partly("ConfigMap")))
}

/// What stands for a release that was cut out; not base64.
const CUT: &str = "ichor-cut-here";
/// Shorter release strings are not worth the cutting.
const LONG: usize = 4096;

/// Reads an object without parsing each byte of its release string, which is nearly all of it.
/// The string is put back where it was, or everything is read in the plain way.
fn parse<E>(
    text: &[u8],
    scalar: Option<Range<usize>>,
    read: impl Fn(&[u8]) -> Result<Value, E>,
) -> Result<Value, E> {
    let Some(range) = scalar else { return read(text) };
    let mut short = text.get(..range.start).unwrap_or_default().to_vec();
    short.extend_from_slice(CUT.as_bytes());
    short.extend_from_slice(text.get(range.end..).unwrap_or_default());
    let mut value = read(&short)?;
    let release = value
        .as_map_mut()
        .and_then(|object| object.get_mut("data")?.as_map_mut()?.get_mut("release"));
    // Equal: what was cut out was a whole scalar, and the scalar was the release.
    if let Some(release) = release
        && release.as_str().is_some_and(|text| text == CUT)
        && let Ok(text) = std::str::from_utf8(text.get(range).unwrap_or_default())
    {
        *release = Value::from(text);
        return Ok(value);
    }
    read(text)
}

/// Where a long release string stands after its key: in YAML to the end of its line, where it can
/// only be a plain scalar; in JSON between quotes.
fn release_scalar(text: &[u8], form: Form) -> Option<Range<usize>> {
    if text.len() < LONG || text.find(CUT).is_some() {
        return None;
    }
    let key: &[u8] = if form == Form::Json { b"\"release\":" } else { b" release: " };
    text.find_iter(key).find_map(|at| {
        let mut start = at + key.len();
        if form == Form::Json {
            let blanks = text.get(start..)?.find_not_byteset(b" \n\t\r")?;
            start += blanks + 1;
            if text.get(start - 1) != Some(&b'"') {
                return None;
            }
        }
        let rest = text.get(start..)?;
        // Looking for a few bytes is many times as fast as looking at each.
        let end: &[u8] = if form == Form::Json { b"\"\\" } else { b"\n" };
        let size = rest.find_byteset(end).unwrap_or(rest.len());
        let value = rest.get(..size)?;
        let plain = value.first()?.is_ascii_alphabetic()
            && match form {
                Form::Json => rest.get(size) == Some(&b'"'),
                // Nothing that ends a plain scalar or makes it a key.
                _ => value.find_byteset(b" :#").is_none() && value.find_byteset(b"\t\r").is_none(),
            };
        (size >= LONG && plain).then_some(start..start + size)
    })
}

fn object_of(place: String, storage: Option<Storage>, mut object: Map) -> Answer {
    if storage.is_none() && !has_release(&object) {
        return Ok(None);
    }
    let metadata = object.get("metadata").and_then(Value::as_map);
    let field = |name: &str| string(metadata.and_then(|metadata| metadata.get(name)));
    let (name, namespace) = (field("name"), field("namespace"));
    let labels = labels(metadata);
    if !is_record(&name, &string(object.get("type")), &labels) {
        return Ok(None);
    }
    let fail = |error: ObjectError| {
        let hides = Hidden::of_object(&name, &labels);
        Err(Fault::new(&place, error.into()).hiding(hides))
    };
    let Some(storage) = storage else {
        let kind = string(object.get("kind"));
        return fail(ObjectError::NoKind { object: name.clone(), kind });
    };
    let title = format!("{} {name}", storage.kind());
    let release = match take_release(&mut object, storage) {
        Some(Ok(release)) => release,
        Some(Err(reason)) => return fail(ObjectError::SecretLayer { object: title, reason }),
        None => return fail(ObjectError::NoRelease { object: title }),
    };
    let release = Release::Encoded(release);
    Ok(Some(StoredRecord { place, storage, name, namespace, labels, release }))
}

fn of_protobuf(place: String, text: &[u8], storage: Option<Storage>) -> Answer {
    let Some(storage) = storage else { return Ok(None) };
    let item = match protobuf::read(text, storage) {
        Ok(item) => item,
        Err(error) => {
            let fault = Fault::new(&place, ObjectError::from(error).into());
            return Err(fault.hiding(Hidden::of_text(text, true)));
        }
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (name, namespace) = (text(&item.name), text(&item.namespace));
    let mut labels: Vec<(String, String)> =
        item.labels.iter().map(|(key, value)| (text(key), text(value))).collect();
    labels.sort();
    if !is_record(&name, &text(&item.secret_type), &labels) {
        return Ok(None);
    }
    let Some(release) = item.release else {
        let object = format!("{} {name}", storage.kind());
        let hides = Hidden::of_object(&name, &labels);
        return Err(Fault::new(&place, ObjectError::NoRelease { object }.into()).hiding(hides));
    };
    let release = Release::Encoded(release);
    Ok(Some(StoredRecord { place, storage, name, namespace, labels, release }))
}

fn labels(metadata: Option<&Map>) -> Vec<(String, String)> {
    metadata
        .and_then(|metadata| metadata.get("labels"))
        .and_then(Value::as_map)
        .into_iter()
        .flatten()
        .map(|(key, value)| (key.to_string(), string(Some(value))))
        .collect()
}

fn string(value: Option<&Value>) -> String {
    value.and_then(Value::as_str).map(ToString::to_string).unwrap_or_default()
}

/// Whether an object is the JSON of a release.
fn is_release(object: &Map) -> bool {
    object.contains_key("name")
        && object.contains_key("info")
        && (object.contains_key("chart") || object.contains_key("manifest"))
}

/// The driver's text out of a Secret's or ConfigMap's data.
fn take_release(object: &mut Map, storage: Storage) -> Option<Result<Vec<u8>, String>> {
    let mut take = |field: &str| match object.get_mut(field)?.as_map_mut()?.remove("release")? {
        Value::String(text) => Some(Vec::from(text)),
        _ => None,
    };
    if let Some(plain) = take("stringData") {
        return Some(Ok(plain));
    }
    let data = take("data")?;
    if storage == Storage::ConfigMap {
        return Some(Ok(data));
    }
    let packed = bytes::without(&data, |byte| byte.is_ascii_whitespace());
    Some(codec::GO.decode(&packed).map_err(|error| error.to_string()))
}

/// A release string alone: with Helm's base64 only, or with Kubernetes' around it.
fn bare(place: String, text: &[u8]) -> StoredRecord {
    // `jq` without `-r` and JSON path leave quotes.
    let text = text.trim().trim_with(|c| matches!(c, '"' | '\''));
    let packed = bytes::without(text, |byte| byte.is_ascii_whitespace());
    let release = match codec::GO.decode(&packed) {
        Ok(inner) if is_base64(&inner) => inner,
        _ => packed.into_owned(),
    };
    let release = Release::Encoded(release);
    let (name, namespace) = (String::new(), String::new());
    StoredRecord { place, storage: Storage::Bare, name, namespace, labels: Vec::new(), release }
}

/// Whether a text can be base64: neither gzip nor JSON can.
pub(super) fn is_base64(text: &[u8]) -> bool {
    let start = text.get(..64).unwrap_or(text);
    !start.is_empty()
        && start.iter().all(|byte| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'\n' | b'\r')
        })
}
