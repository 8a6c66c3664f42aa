//! The distinguished encoding rules of ASN.1: enough to write certificates and keys byte
//! for byte as Go's `encoding/asn1` does, and to read them.

use num_bigint::BigUint;

pub(super) const BOOLEAN: u8 = 0x01;
pub(super) const INTEGER: u8 = 0x02;
pub(super) const BIT_STRING: u8 = 0x03;
pub(super) const OCTET_STRING: u8 = 0x04;
pub(super) const NULL: &[u8] = &[0x05, 0];
pub(super) const OBJECT_IDENTIFIER: u8 = 0x06;
pub(super) const UTF8_STRING: u8 = 0x0c;
pub(super) const PRINTABLE_STRING: u8 = 0x13;
pub(super) const UTC_TIME: u8 = 0x17;
pub(super) const GENERALIZED_TIME: u8 = 0x18;
pub(super) const SEQUENCE: u8 = 0x30;
pub(super) const SET: u8 = 0x31;

/// One element: tag, length, content.
pub(super) fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    match u8::try_from(content.len()) {
        Ok(length) if length < 0x80 => out.push(length),
        _ => {
            let length = content.len().to_be_bytes();
            let length: Vec<u8> = length.into_iter().skip_while(|&b| b == 0).collect();
            out.push(0x80 | length.len() as u8);
            out.extend_from_slice(&length);
        }
    }
    out.extend_from_slice(content);
    out
}

/// A sequence of elements that are encoded already.
pub(super) fn sequence(parts: &[&[u8]]) -> Vec<u8> {
    element(SEQUENCE, &parts.concat())
}

/// A non-negative integer.
pub(super) fn integer(value: &BigUint) -> Vec<u8> {
    let mut bytes = value.to_bytes_be();
    if bytes.first().is_some_and(|&b| b >= 0x80) {
        bytes.insert(0, 0);
    }
    element(INTEGER, &bytes)
}

/// A bit string of whole bytes.
pub(super) fn bit_string(bytes: &[u8]) -> Vec<u8> {
    element(BIT_STRING, &[&[0], bytes].concat())
}

/// Reads elements from the front of a text, as `cryptobyte.String` does.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    /// The tag of the next element.
    pub(super) fn peek(&self) -> Option<u8> {
        self.0.first().copied()
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Any element: its tag, content, and the whole of it.
    pub(super) fn any(&mut self) -> Option<(u8, &'a [u8], &'a [u8])> {
        let tag = *self.0.first()?;
        // Tags of more than one byte do not occur here.
        if tag & 0x1f == 0x1f {
            return None;
        }
        let first = *self.0.get(1)?;
        let (length, header) = if first < 0x80 {
            (usize::from(first), 2)
        } else {
            let count = usize::from(first & 0x7f);
            let bytes = self.0.get(2..2 + count)?;
            if count == 0 || count > 4 || bytes.first() == Some(&0) {
                return None;
            }
            let length = bytes.iter().fold(0_usize, |n, &b| n << 8 | usize::from(b));
            // The short form must be used where it fits.
            if length < 0x80 {
                return None;
            }
            (length, 2 + count)
        };
        let (whole, rest) = self.0.split_at_checked(header.checked_add(length)?)?;
        self.0 = rest;
        Some((tag, whole.get(header..)?, whole))
    }

    /// The content of the next element, which must have this tag.
    pub(super) fn read(&mut self, tag: u8) -> Option<&'a [u8]> {
        if self.peek()? != tag {
            return None;
        }
        self.any().map(|(_, content, _)| content)
    }

    /// The next element with its header.
    pub(super) fn read_whole(&mut self, tag: u8) -> Option<&'a [u8]> {
        if self.peek()? != tag {
            return None;
        }
        self.any().map(|(_, _, whole)| whole)
    }

    /// An integer and whether it is negative; minimal encodings only.
    pub(super) fn integer(&mut self) -> Option<(BigUint, bool)> {
        let bytes = self.read(INTEGER)?;
        match bytes {
            [] | [0, 0..0x80, ..] | [0xff, 0x80..=0xff, ..] => None,
            [0x80..=0xff, ..] => Some((BigUint::ZERO, true)),
            _ => Some((BigUint::from_bytes_be(bytes), false)),
        }
    }

    /// A bit string's bytes, which must be whole.
    pub(super) fn bit_string(&mut self) -> Option<&'a [u8]> {
        match self.read(BIT_STRING)? {
            [0, bytes @ ..] => Some(bytes),
            _ => None,
        }
    }
}

/// An object identifier's content in dotted form.
pub(super) fn dotted(content: &[u8]) -> String {
    let mut arcs: Vec<u64> = Vec::new();
    let mut value = 0_u64;
    for &byte in content {
        value = value.wrapping_shl(7) | u64::from(byte & 0x7f);
        if byte < 0x80 {
            if arcs.is_empty() {
                let first = (value / 40).min(2);
                arcs.push(first);
                value -= first * 40;
            }
            arcs.push(value);
            value = 0;
        }
    }
    arcs.iter().map(ToString::to_string).collect::<Vec<_>>().join(".")
}
