//! One Kubernetes object's text, read as a stored record.

use std::ops::Range;

use base64::Engine as _;
use bstr::ByteSlice;
use goyaml::{Limits, Map, Value};

use super::protobuf::{self, ProtobufError};
use super::{Chunk, End, Fault, Form, InputLimits};
use crate::release::codec::{self, CodecError, CodecLimits};

/// The type of Helm's Secrets (`pkg/storage/driver/secrets.go`).
const SECRET_TYPE: &str = "helm.sh/release.v1";
/// What names of record objects begin with (`makeKey` in `pkg/storage/storage.go`).
const NAME_PREFIX: &str = "sh.helm.release.v1.";

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
    let fail = |error: ObjectError| Err(Fault::new(&place, error.into()));
    let value = match form {
        Form::Bare => return sink(Ok(Some(bare(place, &text)))),
        Form::Protobuf => return sink(of_protobuf(place, &text, list_of)),
        Form::Json => {
            if codec::has_more_values(&text, limits.values) {
                return sink(fail(ObjectError::TooMany { limit: limits.values }));
            }
            parse(&text, release_scalar(&text, form), |text| {
                goyaml::json::from_json(text, &Limits::default())
            })
            .map_err(Into::into)
        }
        Form::Yaml => {
            if crate::manifest::has_more_values(&text, limits.values) {
                return sink(fail(ObjectError::TooMany { limit: limits.values }));
            }
            let limits = Limits { max_nodes: limits.values, ..Limits::default() };
            parse(&text, release_scalar(&text, form), |text| goyaml::from_yaml(text, &limits))
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
    let Value::Map(mut object) = value else { return sink(Ok(None)) };
    let kind = string(object.get("kind"));
    if kind.is_empty() && is_release(&object) && form == Form::Json {
        return sink(Ok(Some(StoredRecord { release: Release::Json(text), ..bare(place, &[]) })));
    }
    if kind.ends_with("List")
        && let Some(Value::Seq(items)) = object.remove("items")
    {
        let list_of = Storage::of_list(kind.as_bytes());
        for (index, item) in items.into_iter().enumerate() {
            let Value::Map(item) = item else {
                sink(Ok(None));
                continue;
            };
            let kind = string(item.get("kind"));
            let place = format!("{place} item {}", index + 1);
            sink(object_of(place, Storage::of_kind(&kind).or(list_of), item));
        }
        return;
    }
    let storage = if kind.is_empty() { list_of } else { Storage::of_kind(&kind) };
    sink(object_of(place, storage, object));
}

/// Whether the last object of a YAML stream lacks what a record has, as if the stream had been cut
/// off in it. Whatever is a record in spite of that is none of this.
fn looks_cut(value: &Value, text: &[u8]) -> bool {
    const HEAD: &[u8] = b"apiVersion: v1";
    let Some(object) = value.as_map() else {
        let text = text.trim_ascii();
        return !text.is_empty() && HEAD.starts_with(text);
    };
    let metadata = object.get("metadata").and_then(Value::as_map);
    let name = string(metadata.and_then(|metadata| metadata.get("name")));
    let labels = labels(metadata);
    let kind = string(object.get("kind"));
    let has_release = value.at(&["data", "release"]).is_some_and(|text| text.as_str().is_some());
    if has_release {
        let is_record = Storage::of_kind(&kind).is_some()
            && is_record(&name, &string(object.get("type")), &labels);
        return kind.is_empty() || (!is_record && (name.is_empty() || !text.ends_with(b"\n")));
    }
    // An object of Kubernetes' core without a kind; charts of the first version have a name.
    let is_core = object.get("apiVersion").is_some_and(|version| {
        version.is_null() || version.as_str().is_some_and(|version| b"v1".starts_with(version))
    });
    is_core && kind.is_empty() && !object.contains_key("name") && !object.contains_key("version")
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
    let Some(storage) = storage else { return Ok(None) };
    let metadata = object.get("metadata").and_then(Value::as_map);
    let field = |name: &str| string(metadata.and_then(|metadata| metadata.get(name)));
    let (name, namespace) = (field("name"), field("namespace"));
    let labels = labels(metadata);
    if !is_record(&name, &string(object.get("type")), &labels) {
        return Ok(None);
    }
    let title = format!("{} {name}", storage.kind());
    let release = match take_release(&mut object, storage) {
        Some(Ok(release)) => release,
        Some(Err(reason)) => {
            let error = ObjectError::SecretLayer { object: title, reason };
            return Err(Fault::new(&place, error.into()));
        }
        None => {
            return Err(Fault::new(&place, ObjectError::NoRelease { object: title }.into()));
        }
    };
    let release = Release::Encoded(release);
    Ok(Some(StoredRecord { place, storage, name, namespace, labels, release }))
}

fn of_protobuf(place: String, text: &[u8], storage: Option<Storage>) -> Answer {
    let Some(storage) = storage else { return Ok(None) };
    let item = match protobuf::read(text, storage) {
        Ok(item) => item,
        Err(error) => return Err(Fault::new(&place, ObjectError::from(error).into())),
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
        return Err(Fault::new(&place, ObjectError::NoRelease { object }.into()));
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

/// Whether an object is meant to be a record: by name, type or owner.
fn is_record(name: &str, secret_type: &str, labels: &[(String, String)]) -> bool {
    name.starts_with(NAME_PREFIX)
        || secret_type == SECRET_TYPE
        || labels.iter().any(|(key, value)| key == "owner" && value == "helm")
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
    let packed: Vec<u8> = data.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
    Some(codec::GO.decode(&packed).map_err(|error| error.to_string()))
}

/// A release string alone: with Helm's base64 only, or with Kubernetes' around it.
fn bare(place: String, text: &[u8]) -> StoredRecord {
    let packed: Vec<u8> =
        text.trim().iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let release = match codec::GO.decode(&packed) {
        Ok(inner) if is_base64(&inner) => inner,
        _ => packed,
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
