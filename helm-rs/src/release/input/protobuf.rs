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
use crate::protobuf::{MAGIC, Message, ProtobufError, Value, broken, entry, varint};

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

fn expect(value: Option<u64>) -> io::Result<u64> {
    value.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

fn skip_rest(reader: &mut io::Take<impl BufRead>) -> io::Result<()> {
    let size = reader.limit();
    let skipped = io::copy(reader, &mut io::sink())?;
    if skipped == size { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
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
