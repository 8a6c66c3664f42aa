//! Kubernetes' protobuf form: what an API server sends when asked for it, and what etcd holds.
//!
//! ```text
//! k8s\0 │ runtime.Unknown { typeMeta, raw: SecretList { metadata, items: Secret … } … }
//! ```
//!
//! A list is cut into its items as it comes. Fields are those of `generated.proto` in
//! `k8s.io/api/core/v1` and `k8s.io/apimachinery`; others are passed over.

use std::io::{self, BufRead, Read};

use super::sniff::Sink;
use super::{Chunk, End, Fault, Form, InputLimits, Piece, Storage};

/// What the form begins with (`serializer/protobuf/protobuf.go`).
pub(super) const MAGIC: &[u8] = b"k8s\0";

/// Bytes of `typeMeta`, by far more than names of kinds have.
const TYPE_SIZE: u64 = 4096;

/// What an item is, as far as a record needs it.
#[derive(Debug, Default)]
pub(super) struct Item {
    pub(super) name: Vec<u8>,
    pub(super) namespace: Vec<u8>,
    pub(super) labels: Vec<(Vec<u8>, Vec<u8>)>,
    pub(super) secret_type: Vec<u8>,
    pub(super) release: Option<Vec<u8>>,
}

/// A message that does not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("broken protobuf at byte {offset}")]
pub struct ProtobufError {
    /// The byte in the object's message.
    pub offset: usize,
}

/// Splits a stream into its objects.
pub(super) fn split(
    place: &str,
    reader: &mut dyn BufRead,
    limits: &InputLimits,
    sink: &mut Sink<'_>,
) -> bool {
    let mut splitter = Splitter { place, limits, count: 0 };
    match splitter.stream(reader, sink) {
        Ok(go_on) => go_on,
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            sink(Piece::Fault(Fault::cut(place, None)))
        }
        Err(source) => sink(Piece::Fault(Fault::io(place, source))),
    }
}

struct Splitter<'a> {
    place: &'a str,
    limits: &'a InputLimits,
    count: usize,
}

impl Splitter<'_> {
    fn stream(&mut self, reader: &mut dyn BufRead, sink: &mut Sink<'_>) -> io::Result<bool> {
        let mut magic = [0; MAGIC.len()];
        reader.read_exact(&mut magic)?;
        let mut kind = Vec::new();
        while let Some(tag) = varint(&mut *reader)? {
            let size = match tag & 7 {
                2 => expect(varint(&mut *reader)?)?,
                0 => {
                    expect(varint(&mut *reader)?)?;
                    continue;
                }
                _ => return Err(broken()),
            };
            let mut part = Read::take(&mut *reader, size);
            let go_on = match tag >> 3 {
                1 => {
                    let mut about = Vec::new();
                    Read::take(&mut part, TYPE_SIZE).read_to_end(&mut about)?;
                    for field in Message::new(&about) {
                        if let (2, Value::Bytes(text)) = field.map_err(|_| broken())? {
                            kind = text.to_vec();
                        }
                    }
                    true
                }
                2 => match Storage::of_list(&kind) {
                    Some(storage) => self.list(&mut part, storage, sink)?,
                    None => self.object(&mut part, storage_of(&kind), sink)?,
                },
                _ => true,
            };
            if !go_on {
                return Ok(false);
            }
            skip_rest(&mut part)?;
        }
        Ok(true)
    }

    fn list(
        &mut self,
        reader: &mut io::Take<impl BufRead>,
        storage: Storage,
        sink: &mut Sink<'_>,
    ) -> io::Result<bool> {
        while reader.limit() > 0 {
            let tag = expect(varint(reader)?)?;
            if tag & 7 != 2 {
                return Err(broken());
            }
            let size = expect(varint(reader)?)?;
            if size > reader.limit() {
                return Err(broken());
            }
            let left = reader.limit() - size;
            reader.set_limit(size);
            if tag >> 3 == 2 && !self.object(reader, Some(storage), sink)? {
                return Ok(false);
            }
            skip_rest(reader)?;
            reader.set_limit(left);
        }
        Ok(true)
    }

    /// Hands on what is left of a message.
    fn object(
        &mut self,
        reader: &mut io::Take<impl BufRead>,
        storage: Option<Storage>,
        sink: &mut Sink<'_>,
    ) -> io::Result<bool> {
        self.count += 1;
        let Some(storage) = storage else { return Ok(sink(Piece::Other)) };
        let place = format!("{} object {}", self.place, self.count);
        let size = reader.limit();
        if size > self.limits.object as u64 {
            return Ok(sink(Piece::Fault(Fault::too_large(&place, self.limits))));
        }
        let mut text = Vec::new();
        if reader.read_to_end(&mut text)? as u64 != size {
            // Nothing can follow.
            return Ok(sink(Piece::Fault(Fault::cut(&place, None))));
        }
        let form = Form::Protobuf;
        Ok(sink(Piece::Chunk(Chunk { place, form, list_of: Some(storage), end: End::Told, text })))
    }
}

const fn storage_of(kind: &[u8]) -> Option<Storage> {
    match kind {
        b"Secret" => Some(Storage::Secret),
        b"ConfigMap" => Some(Storage::ConfigMap),
        _ => None,
    }
}

fn broken() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "broken protobuf")
}

fn expect(value: Option<u64>) -> io::Result<u64> {
    value.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

fn skip_rest(reader: &mut io::Take<impl BufRead>) -> io::Result<()> {
    let size = reader.limit();
    let skipped = io::copy(reader, &mut io::sink())?;
    if skipped == size { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// A number in base 128; `None` at the end of the stream.
fn varint(reader: &mut dyn Read) -> io::Result<Option<u64>> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let mut byte = [0];
        match reader.read(&mut byte) {
            Ok(0) if shift == 0 => return Ok(None),
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Err(error),
            Err(error) => return Err(error),
        }
        let [byte] = byte;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(Some(value));
        }
    }
    Err(broken())
}

/// A field's value, as far as its form tells.
enum Value<'a> {
    Bytes(&'a [u8]),
    Other,
}

/// The fields of a message in memory.
struct Message<'a> {
    all: usize,
    rest: &'a [u8],
}

impl<'a> Message<'a> {
    const fn new(text: &'a [u8]) -> Self {
        Self { all: text.len(), rest: text }
    }

    const fn error(&self) -> ProtobufError {
        ProtobufError { offset: self.all - self.rest.len() }
    }

    fn take(&mut self, size: u64) -> Result<&'a [u8], ProtobufError> {
        let split = usize::try_from(size).ok().and_then(|size| self.rest.split_at_checked(size));
        let Some((taken, rest)) = split else { return Err(self.error()) };
        self.rest = rest;
        Ok(taken)
    }

    fn varint(&mut self) -> Result<u64, ProtobufError> {
        let mut rest = self.rest;
        let value = varint(&mut rest).ok().flatten().ok_or_else(|| self.error())?;
        self.rest = rest;
        Ok(value)
    }

    fn field(&mut self) -> Result<(u64, Value<'a>), ProtobufError> {
        let tag = self.varint()?;
        let value = match tag & 7 {
            0 => {
                self.varint()?;
                Value::Other
            }
            1 => {
                self.take(8)?;
                Value::Other
            }
            2 => {
                let size = self.varint()?;
                Value::Bytes(self.take(size)?)
            }
            5 => {
                self.take(4)?;
                Value::Other
            }
            _ => return Err(self.error()),
        };
        Ok((tag >> 3, value))
    }
}

impl<'a> Iterator for Message<'a> {
    type Item = Result<(u64, Value<'a>), ProtobufError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.rest = &[];
        }
        Some(field)
    }
}

/// Reads a Secret or a ConfigMap.
pub(super) fn read(text: &[u8], storage: Storage) -> Result<Item, ProtobufError> {
    let mut item = Item::default();
    for field in Message::new(text) {
        let (number, Value::Bytes(value)) = field? else { continue };
        match (number, storage) {
            (1, _) => metadata(value, &mut item)?,
            // `data` of either; in a ConfigMap it is text.
            (2, _) => {
                let (key, value) = entry(value)?;
                if key == b"release" {
                    item.release = Some(value.to_vec());
                }
            }
            (3, Storage::Secret) => item.secret_type = value.to_vec(),
            _ => {}
        }
    }
    Ok(item)
}

/// `ObjectMeta`.
fn metadata(text: &[u8], item: &mut Item) -> Result<(), ProtobufError> {
    for field in Message::new(text) {
        let (number, Value::Bytes(value)) = field? else { continue };
        match number {
            1 => item.name = value.to_vec(),
            3 => item.namespace = value.to_vec(),
            11 => {
                let (key, value) = entry(value)?;
                item.labels.push((key.to_vec(), value.to_vec()));
            }
            _ => {}
        }
    }
    Ok(())
}

/// An entry of a map.
fn entry(text: &[u8]) -> Result<(&[u8], &[u8]), ProtobufError> {
    let (mut key, mut value): (&[u8], &[u8]) = (&[], &[]);
    for field in Message::new(text) {
        match field? {
            (1, Value::Bytes(text)) => key = text,
            (2, Value::Bytes(text)) => value = text,
            _ => {}
        }
    }
    Ok((key, value))
}
