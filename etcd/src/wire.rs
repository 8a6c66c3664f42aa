//! Protocol buffers on the wire: fields, one after the other.

/// A message that does not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("broken protobuf at byte {offset}")]
pub struct WireError {
    /// The byte in the message.
    pub offset: usize,
}

/// A field's value in the form that it has on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    Varint(u64),
    Fixed64(u64),
    Fixed32(u32),
    Bytes(&'a [u8]),
}

impl<'a> Value<'a> {
    /// The bytes; nothing for a number.
    pub(crate) const fn bytes(self) -> Option<&'a [u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }
}

/// The fields of a message. Groups, which nothing here uses, are an error.
#[derive(Clone, Debug)]
pub(crate) struct Message<'a> {
    all: usize,
    rest: &'a [u8],
}

impl<'a> Message<'a> {
    pub(crate) const fn new(text: &'a [u8]) -> Self {
        Self { all: text.len(), rest: text }
    }

    /// Bytes that were read.
    pub(crate) const fn offset(&self) -> usize {
        self.all - self.rest.len()
    }

    pub(crate) const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    const fn error(&self) -> WireError {
        WireError { offset: self.offset() }
    }

    fn take(&mut self, size: u64) -> Result<&'a [u8], WireError> {
        let split = usize::try_from(size).ok().and_then(|size| self.rest.split_at_checked(size));
        let Some((taken, rest)) = split else { return Err(self.error()) };
        self.rest = rest;
        Ok(taken)
    }

    /// A number in base 128.
    pub(crate) fn varint(&mut self) -> Result<u64, WireError> {
        let mut value = 0u64;
        for (index, byte) in self.rest.iter().take(10).enumerate() {
            value |= u64::from(byte & 0x7f) << (7 * index);
            if *byte < 0x80 {
                self.rest = self.rest.get(index + 1..).unwrap_or_default();
                return Ok(value);
            }
        }
        Err(self.error())
    }

    /// A field's number and wire type.
    pub(crate) fn tag(&mut self) -> Result<(u64, u64), WireError> {
        let tag = self.varint()?;
        Ok((tag >> 3, tag & 7))
    }

    /// The value behind a tag.
    pub(crate) fn value(&mut self, wire_type: u64) -> Result<Value<'a>, WireError> {
        Ok(match wire_type {
            0 => Value::Varint(self.varint()?),
            1 => {
                let taken = self.take(8)?;
                Value::Fixed64(u64::from_le_bytes(array(taken).ok_or_else(|| self.error())?))
            }
            2 => {
                let size = self.varint()?;
                Value::Bytes(self.take(size)?)
            }
            5 => {
                let taken = self.take(4)?;
                Value::Fixed32(u32::from_le_bytes(array(taken).ok_or_else(|| self.error())?))
            }
            _ => return Err(self.error()),
        })
    }
}

impl<'a> Iterator for Message<'a> {
    type Item = Result<(u64, Value<'a>), WireError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.tag().and_then(|(number, wire)| Ok((number, self.value(wire)?)));
        if field.is_err() {
            self.rest = &[];
        }
        Some(field)
    }
}

/// The first `N` bytes.
pub(crate) fn array<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
    bytes.first_chunk().copied()
}
