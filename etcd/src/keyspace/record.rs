//! Revisions, and keys with their values as etcd stores them.

use crate::wire::{Message, Value, WireError, array};

/// Bytes of a revision, and of one that deletes (`mvcc/revision.go`).
const SIZE: usize = 17;

/// A place in etcd's history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Revision {
    /// Counts transactions.
    pub main: i64,
    /// Counts changes of one transaction, from 0.
    pub sub: i64,
}

impl Revision {
    /// Reads a revision, and whether it deletes (`BytesToBucketKey`).
    pub(super) fn read(bytes: &[u8]) -> Option<(Self, bool)> {
        let (revision, mark) = bytes.split_at_checked(SIZE)?;
        let main = array(revision).map(i64::from_be_bytes)?;
        let sub = revision.get(9..).and_then(array).map(i64::from_be_bytes)?;
        let is_deleted = match mark {
            [] => false,
            [b't'] => true,
            _ => return None,
        };
        let is_right = revision.get(8) == Some(&b'_') && main >= 0 && sub >= 0;
        is_right.then_some((Self { main, sub }, is_deleted))
    }
}

/// A key and its value: `mvccpb.KeyValue`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyValue {
    /// The key.
    pub key: Vec<u8>,
    /// The value; empty for a deletion.
    pub value: Vec<u8>,
    /// The revision that created the key; 0 for a deletion.
    pub create_revision: i64,
    /// The revision of this change; 0 for a deletion.
    pub mod_revision: i64,
    /// Changes since the key was created; 0 for a deletion.
    pub version: i64,
    /// The lease that the key goes with; 0 for none.
    pub lease: i64,
}

impl KeyValue {
    /// Reads a whole message.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, WireError> {
        let mut read = Self::default();
        for field in Message::new(bytes) {
            match field? {
                (1, Value::Bytes(key)) => read.key = key.to_vec(),
                (2, Value::Varint(number)) => read.create_revision = number as i64,
                (3, Value::Varint(number)) => read.mod_revision = number as i64,
                (4, Value::Varint(number)) => read.version = number as i64,
                (5, Value::Bytes(value)) => read.value = value.to_vec(),
                (6, Value::Varint(number)) => read.lease = number as i64,
                _ => {}
            }
        }
        Ok(read)
    }
}

/// What stands before the value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Head<'a> {
    pub(super) key: &'a [u8],
    pub(super) create_revision: i64,
    pub(super) mod_revision: i64,
    pub(super) version: i64,
    pub(super) value_size: u64,
    /// The value, or as much of it as was there.
    pub(super) value_start: &'a [u8],
}

impl<'a> Head<'a> {
    /// Reads the beginning of a message of `size` bytes; `None` when more of it is needed. etcd
    /// writes fields in the order of their numbers, so the value, which is fifth, ends it.
    pub(super) fn read(bytes: &'a [u8], size: u64) -> Result<Option<Self>, WireError> {
        let is_whole = bytes.len() as u64 == size;
        let mut head = Self::default();
        let mut message = Message::new(bytes);
        while !message.is_empty() {
            let (start, offset) = (message.clone(), message.offset());
            let Ok((number, wire)) = message.tag() else { return short(is_whole, offset) };
            if (number, wire) == (5, 2) {
                let Ok(length) = message.varint() else { return short(is_whole, offset) };
                let left = size.saturating_sub(message.offset() as u64);
                if length > left {
                    return Err(WireError { offset: message.offset() });
                }
                head.value_size = length;
                head.value_start = message.rest();
                if !head.key.is_empty() && head.mod_revision > 0 {
                    return Ok(Some(head));
                }
                if !is_whole {
                    return Ok(None);
                }
                message = start;
                message.tag()?;
            }
            let Ok(value) = message.value(wire) else { return short(is_whole, offset) };
            match (number, value) {
                (1, Value::Bytes(key)) => head.key = key,
                (2, Value::Varint(number)) => head.create_revision = number as i64,
                (3, Value::Varint(number)) => head.mod_revision = number as i64,
                (4, Value::Varint(number)) => head.version = number as i64,
                _ => {}
            }
        }
        Ok(is_whole.then_some(head))
    }
}

/// A message that is cut: more of it may be there.
const fn short<'a>(is_whole: bool, offset: usize) -> Result<Option<Head<'a>>, WireError> {
    if is_whole { Err(WireError { offset }) } else { Ok(None) }
}

#[cfg(test)]
mod tests {
    use super::{Head, KeyValue, Revision};

    const MESSAGE: &[u8] = b"\x0a\x03/ab\x10\x07\x18\x09\x20\x02\x2a\x05value\x30\x11";

    #[test]
    fn a_message_reads_whole_and_by_its_head() {
        let whole = KeyValue::read(MESSAGE).unwrap();
        assert_eq!((whole.key.as_slice(), whole.value.as_slice()), (&b"/ab"[..], &b"value"[..]));
        let numbers = (whole.create_revision, whole.mod_revision, whole.version, whole.lease);
        assert_eq!(numbers, (7, 9, 2, 17));
        let size = MESSAGE.len() as u64;
        for cut in 0..MESSAGE.len() {
            let head = Head::read(&MESSAGE[..cut], size).unwrap();
            match head {
                Some(head) => {
                    assert!(cut >= 13, "{cut}");
                    assert_eq!((head.key, head.mod_revision, head.value_size), (&b"/ab"[..], 9, 5));
                }
                None => assert!(cut < 13, "{cut}"),
            }
        }
    }

    #[test]
    fn a_value_that_ends_behind_its_element_is_broken() {
        assert!(Head::read(b"\x0a\x01a\x18\x09\x2a\x05va", 9).is_err());
    }

    #[test]
    fn revisions() {
        let bytes = b"\0\0\0\0\0\0\0\x05_\0\0\0\0\0\0\0\x01t";
        assert_eq!(Revision::read(bytes), Some((Revision { main: 5, sub: 1 }, true)));
        assert_eq!(Revision::read(&bytes[..17]), Some((Revision { main: 5, sub: 1 }, false)));
        assert_eq!(Revision::read(&bytes[..16]), None);
        assert_eq!(Revision::read(b"\xff\0\0\0\0\0\0\x05_\0\0\0\0\0\0\0\x01"), None);
    }
}
