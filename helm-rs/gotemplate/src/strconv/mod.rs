//! Go's `strconv` and `unicode/utf8`, as far as templates show them.

mod float;
mod number;
mod quote;
mod tables;

pub use float::{FloatFormat, append_float, format_float};
pub use number::{NumberError, parse_float, parse_int, parse_uint};
pub use quote::{
    SyntaxError, append_quote, can_backquote, quote, quote_rune, quote_to_ascii, unquote,
    unquote_char,
};
pub(crate) use quote::{append_quote_rune, append_quote_with, append_rune};

use bstr::ByteSlice;

/// Go's replacement for what is no character.
pub const RUNE_ERROR: u32 = 0xfffd;

/// The first character of `bytes` and its length, as `utf8.DecodeRune`: every byte that
/// starts no valid character counts as one [`RUNE_ERROR`], and no bytes give length 0.
pub fn decode_rune(bytes: &[u8]) -> (u32, usize) {
    match bytes.first() {
        None => (RUNE_ERROR, 0),
        Some(&byte) if byte < 0x80 => (u32::from(byte), 1),
        Some(_) => match bstr::decode_utf8(bytes) {
            (Some(c), size) => (u32::from(c), size),
            (None, _) => (RUNE_ERROR, 1),
        },
    }
}

/// The last character of `bytes` and its length, as `utf8.DecodeLastRune`.
pub fn decode_last_rune(bytes: &[u8]) -> (u32, usize) {
    match bytes.last() {
        None => (RUNE_ERROR, 0),
        Some(&byte) if byte < 0x80 => (u32::from(byte), 1),
        Some(_) => match bstr::decode_last_utf8(bytes) {
            (Some(c), size) => (u32::from(c), size),
            (None, _) => (RUNE_ERROR, 1),
        },
    }
}

/// The number of characters, as `utf8.RuneCount`: an invalid byte counts as one.
pub fn rune_count(bytes: &[u8]) -> usize {
    if bytes.is_ascii() {
        return bytes.len();
    }
    let mut rest = bytes;
    let mut count = 0;
    while !rest.is_empty() {
        let (_, size) = decode_rune(rest);
        rest = rest.get(size..).unwrap_or_default();
        count += 1;
    }
    count
}

/// Whether Go counts the character as printable (`strconv.IsPrint`).
pub fn is_print(c: u32) -> bool {
    match c {
        0x20..=0x7e => true,
        0..0xa1 => false,
        _ => contains(&tables::PRINT, c),
    }
}

/// Whether the character is a letter or a decimal digit (`unicode.IsLetter`, `IsDigit`).
pub fn is_letter_or_digit(c: u32) -> bool {
    match u8::try_from(c) {
        Ok(byte) if byte < 0x80 => byte.is_ascii_alphanumeric(),
        _ => contains(&tables::LETTER_OR_DIGIT, c),
    }
}

fn contains(ranges: &[(u32, u32)], c: u32) -> bool {
    ranges
        .binary_search_by(|&(first, last)| {
            if last < c {
                std::cmp::Ordering::Less
            } else if first > c {
                std::cmp::Ordering::Greater
            } else {
                std::cmp::Ordering::Equal
            }
        })
        .is_ok()
}

/// Whether the bytes are valid UTF-8.
pub fn valid_utf8(bytes: &[u8]) -> bool {
    bytes.to_str().is_ok()
}
