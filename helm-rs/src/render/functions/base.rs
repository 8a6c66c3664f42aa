//! Base64 and Base32 as Go's `encoding/base64` and `encoding/base32` decode them, with their
//! rules about line breaks and padding and the places in their errors.

use std::fmt;

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const BASE32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// Go's `CorruptInputError` of either package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CorruptInput {
    bits: u32,
    at: usize,
}

impl fmt::Display for CorruptInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = if self.bits == 6 { "base64" } else { "base32" };
        write!(f, "illegal {name} data at input byte {}", self.at)
    }
}

/// Standard Base64 with padding.
pub(crate) fn base64_encode(bytes: &[u8]) -> String {
    encode(bytes, 6, 3, BASE64)
}

/// Standard Base32 with padding.
pub(super) fn base32_encode(bytes: &[u8]) -> String {
    encode(bytes, 5, 5, BASE32)
}

/// Writes groups of `group` bytes in digits of `bits` bits.
fn encode(bytes: &[u8], bits: usize, group: usize, alphabet: &[u8]) -> String {
    let digits = group * 8 / bits;
    let mut out = String::with_capacity(bytes.len().div_ceil(group) * digits);
    for chunk in bytes.chunks(group) {
        let value = (0..group)
            .fold(0_u64, |value, i| value << 8 | u64::from(chunk.get(i).copied().unwrap_or(0)));
        let used = (chunk.len() * 8).div_ceil(bits);
        for i in 0..digits {
            let digit = (value >> (bits * (digits - 1 - i))) as usize & ((1 << bits) - 1);
            let letter = alphabet.get(digit).copied().filter(|_| i < used).unwrap_or(b'=');
            out.push(char::from(letter));
        }
    }
    out
}

const fn base64_digit(byte: u8) -> Option<u8> {
    match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}

const fn base32_digit(byte: u8) -> Option<u8> {
    match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'2'..=b'7' => Some(byte - b'2' + 26),
        _ => None,
    }
}

/// `base64.StdEncoding.DecodeString` (`decodeQuantum`): line breaks are skipped anywhere.
pub(crate) fn base64_decode(text: &[u8]) -> Result<Vec<u8>, CorruptInput> {
    let corrupt = |at| Err(CorruptInput { bits: 6, at });
    let next_visible = |from: usize| {
        let rest = text.get(from..).unwrap_or_default();
        from + rest.iter().take_while(|byte| matches!(byte, b'\n' | b'\r')).count()
    };
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let (mut value, mut count) = (0_u32, 0_usize);
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        if let Some(digit) = base64_digit(*byte) {
            value = value << 6 | u32::from(digit);
            count += 1;
            if count == 4 {
                let [_, a, b, c] = value.to_be_bytes();
                out.extend_from_slice(&[a, b, c]);
                (value, count) = (0, 0);
            }
            at += 1;
            continue;
        }
        match (byte, count) {
            (b'\n' | b'\r', _) => at += 1,
            (b'=', 2) => {
                let second = next_visible(at + 1);
                match text.get(second) {
                    None => return corrupt(text.len()),
                    Some(b'=') => {}
                    Some(_) => return corrupt(second - 1),
                }
                let end = next_visible(second + 1);
                if end < text.len() {
                    return corrupt(end);
                }
                let [_, _, a, _] = (value << 4).to_be_bytes();
                out.push(a);
                return Ok(out);
            }
            (b'=', 3) => {
                let end = next_visible(at + 1);
                if end < text.len() {
                    return corrupt(end);
                }
                let [_, _, a, b] = (value >> 2).to_be_bytes();
                out.extend_from_slice(&[a, b]);
                return Ok(out);
            }
            _ => return corrupt(at),
        }
    }
    if count == 0 { Ok(out) } else { corrupt(text.len() - count) }
}

/// `base32.StdEncoding.DecodeString` (`decode`): line breaks are taken out first, so that
/// places count without them.
pub(super) fn base32_decode(text: &[u8]) -> Result<Vec<u8>, CorruptInput> {
    let corrupt = |at| Err(CorruptInput { bits: 5, at });
    let text: Vec<u8> =
        text.iter().copied().filter(|byte| !matches!(byte, b'\n' | b'\r')).collect();
    let mut out = Vec::with_capacity(text.len() / 8 * 5);
    let (mut value, mut count) = (0_u64, 0_usize);
    for (at, byte) in text.iter().enumerate() {
        let rest = text.get(at + 1..).unwrap_or_default();
        if *byte == b'=' && count >= 2 && rest.len() < 8 {
            let padding = 7 - count;
            if rest.len() < padding {
                return corrupt(text.len());
            }
            if let Some(wrong) = rest.iter().take(padding).position(|byte| *byte != b'=') {
                return corrupt(at + wrong);
            }
            if matches!(count, 3 | 6) {
                return corrupt(at);
            }
            // What follows the padding is not looked at.
            push_group(&mut out, value << (5 * (8 - count)), count * 5 / 8);
            return Ok(out);
        }
        let Some(digit) = base32_digit(*byte) else { return corrupt(at) };
        value = value << 5 | u64::from(digit);
        count += 1;
        if count == 8 {
            push_group(&mut out, value, 5);
            (value, count) = (0, 0);
        }
    }
    if count == 0 { Ok(out) } else { corrupt(text.len() - count) }
}

/// The first `count` bytes of a group of 40 bits.
fn push_group(out: &mut Vec<u8>, value: u64, count: usize) {
    let bytes = value.to_be_bytes();
    out.extend_from_slice(bytes.get(3..3 + count).unwrap_or_default());
}
