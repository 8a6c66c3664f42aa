//! Kubernetes' protobuf form, as far as anything here reads it.

use std::io::{self, Read};

/// What the form begins with (`serializer/protobuf/protobuf.go`).
pub(crate) const MAGIC: &[u8] = b"k8s\0";

/// A message that does not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("broken protobuf at byte {offset}")]
pub struct ProtobufError {
    /// The byte in the object's message.
    pub offset: usize,
}

pub(crate) fn broken() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "broken protobuf")
}

/// A number in base 128; `None` at the end of the stream.
pub(crate) fn varint(reader: &mut dyn Read) -> io::Result<Option<u64>> {
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
pub(crate) enum Value<'a> {
    Bytes(&'a [u8]),
    Number(u64),
    Other,
}

/// The fields of a message in memory.
pub(crate) struct Message<'a> {
    all: usize,
    rest: &'a [u8],
}

impl<'a> Message<'a> {
    pub(crate) const fn new(text: &'a [u8]) -> Self {
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
            0 => Value::Number(self.varint()?),
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

/// An entry of a map.
pub(crate) fn entry(text: &[u8]) -> Result<(&[u8], &[u8]), ProtobufError> {
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
