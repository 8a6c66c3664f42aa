//! Quoting and unquoting of Go string literals (Go `strconv/quote.go`).

use std::borrow::Cow;

use super::{RUNE_ERROR, decode_rune, is_print, valid_utf8};

/// Not a Go literal; Go's `strconv.ErrSyntax`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid syntax")]
pub struct SyntaxError;

/// A double-quoted Go literal, as `strconv.Quote`.
pub fn quote(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 2);
    append_quote(&mut out, text);
    out
}

/// As [`quote()`], with everything beyond ASCII escaped (`strconv.QuoteToASCII`).
pub fn quote_to_ascii(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 2);
    append_quote_with(&mut out, text, b'"', true);
    out
}

/// Appends a double-quoted Go literal, as `strconv.AppendQuote`.
pub fn append_quote(out: &mut Vec<u8>, text: &[u8]) {
    append_quote_with(out, text, b'"', false);
}

/// A single-quoted character literal, as `strconv.QuoteRune`.
pub fn quote_rune(c: u32) -> Vec<u8> {
    let mut out = Vec::with_capacity(12);
    append_quote_rune(&mut out, c, false);
    out
}

/// Appends a literal in the given quotes.
pub(crate) fn append_quote_with(out: &mut Vec<u8>, text: &[u8], quote: u8, ascii_only: bool) {
    out.push(quote);
    let mut rest = text;
    while let Some(&first) = rest.first() {
        // Plain runs go in one piece.
        let plain = rest
            .iter()
            .position(|&b| !(0x20..0x7f).contains(&b) || b == quote || b == b'\\')
            .unwrap_or(rest.len());
        if plain > 0 {
            let (run, tail) = rest.split_at(plain);
            out.extend_from_slice(run);
            rest = tail;
            continue;
        }
        let (c, size) = decode_rune(rest);
        rest = rest.get(size..).unwrap_or_default();
        if c == RUNE_ERROR && size == 1 {
            push_hex(out, b"\\x", u32::from(first), 2);
        } else {
            append_escaped(out, c, quote, ascii_only);
        }
    }
    out.push(quote);
}

/// Appends a single-quoted character literal.
pub(crate) fn append_quote_rune(out: &mut Vec<u8>, c: u32, ascii_only: bool) {
    out.push(b'\'');
    let c = if char::from_u32(c).is_some() { c } else { RUNE_ERROR };
    append_escaped(out, c, b'\'', ascii_only);
    out.push(b'\'');
}

fn append_escaped(out: &mut Vec<u8>, c: u32, quote: u8, ascii_only: bool) {
    if c == u32::from(quote) || c == u32::from(b'\\') {
        out.push(b'\\');
        append_rune(out, c);
        return;
    }
    if is_print(c) && (c < 0x80 || !ascii_only) {
        append_rune(out, c);
        return;
    }
    let simple = match c {
        0x07 => b'a',
        0x08 => b'b',
        0x0c => b'f',
        0x0a => b'n',
        0x0d => b'r',
        0x09 => b't',
        0x0b => b'v',
        _ => 0,
    };
    if simple != 0 {
        out.extend_from_slice(&[b'\\', simple]);
    } else if c < 0x20 || c == 0x7f {
        push_hex(out, b"\\x", c, 2);
    } else if c < 0x10000 {
        push_hex(out, b"\\u", c, 4);
    } else {
        push_hex(out, b"\\U", c, 8);
    }
}

fn push_hex(out: &mut Vec<u8>, prefix: &[u8], value: u32, digits: u32) {
    out.extend_from_slice(prefix);
    for place in (0..digits).rev() {
        let digit = char::from_digit((value >> (4 * place)) & 0xf, 16).unwrap_or('0');
        out.push(digit as u8);
    }
}

/// Appends the character in UTF-8, U+FFFD when it is none (`utf8.AppendRune`).
pub(crate) fn append_rune(out: &mut Vec<u8>, c: u32) {
    let c = char::from_u32(c).unwrap_or(char::REPLACEMENT_CHARACTER);
    out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
}

/// Whether the text can stand between backquotes unchanged (`strconv.CanBackquote`).
pub fn can_backquote(text: &[u8]) -> bool {
    let mut rest = text;
    while !rest.is_empty() {
        let (c, size) = decode_rune(rest);
        rest = rest.get(size..).unwrap_or_default();
        let fits = if size > 1 {
            c != 0xfeff
        } else {
            c != RUNE_ERROR && (c >= 0x20 || c == 0x09) && c != u32::from(b'`') && c != 0x7f
        };
        if !fits {
            return false;
        }
    }
    true
}

/// The value of a Go literal in any of the three quotes, as `strconv.Unquote`.
///
/// # Errors
/// When it is not exactly one literal.
pub fn unquote(literal: &[u8]) -> Result<Cow<'_, [u8]>, SyntaxError> {
    let [quote, inner @ ..] = literal else { return Err(SyntaxError) };
    match quote {
        b'`' => {
            let [body @ .., b'`'] = inner else { return Err(SyntaxError) };
            if body.contains(&b'`') {
                return Err(SyntaxError);
            }
            if body.contains(&b'\r') {
                return Ok(body.iter().copied().filter(|&b| b != b'\r').collect());
            }
            Ok(Cow::Borrowed(body))
        }
        b'"' => {
            if let [body @ .., b'"'] = inner
                && !body.iter().any(|b| matches!(b, b'\\' | b'\n' | b'"'))
                && valid_utf8(body)
            {
                return Ok(Cow::Borrowed(body));
            }
            unescape(inner, b'"').map(Cow::Owned)
        }
        b'\'' => unescape(inner, b'\'').map(Cow::Owned),
        _ => Err(SyntaxError),
    }
}

fn unescape(inner: &[u8], quote: u8) -> Result<Vec<u8>, SyntaxError> {
    let mut out = Vec::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(&first) = rest.first() {
        if first == quote {
            break;
        }
        if first == b'\n' {
            return Err(SyntaxError);
        }
        let (c, multibyte, tail) = unquote_char(rest, quote)?;
        match u8::try_from(c) {
            Ok(byte) if byte < 0x80 || !multibyte => out.push(byte),
            _ => append_rune(&mut out, c),
        }
        rest = tail;
        if quote == b'\'' {
            break;
        }
    }
    if rest == [quote] { Ok(out) } else { Err(SyntaxError) }
}

/// The first character of an escaped literal, whether it needs several bytes, and what
/// follows it, as `strconv.UnquoteChar`.
///
/// # Errors
/// When the text is empty, starts with the quote, or has an escape that Go does not know.
pub fn unquote_char(text: &[u8], quote: u8) -> Result<(u32, bool, &[u8]), SyntaxError> {
    match text {
        [] | [b'\\'] => Err(SyntaxError),
        [first, ..] if *first == quote && matches!(quote, b'\'' | b'"') => Err(SyntaxError),
        [first, ..] if *first >= 0x80 => {
            let (c, size) = decode_rune(text);
            Ok((c, true, text.get(size..).unwrap_or_default()))
        }
        [b'\\', escape, tail @ ..] => unescape_one(*escape, tail, quote),
        [first, tail @ ..] => Ok((u32::from(*first), false, tail)),
    }
}

fn unescape_one(escape: u8, tail: &[u8], quote: u8) -> Result<(u32, bool, &[u8]), SyntaxError> {
    let value = match escape {
        b'a' => 0x07,
        b'b' => 0x08,
        b'f' => 0x0c,
        b'n' => 0x0a,
        b'r' => 0x0d,
        b't' => 0x09,
        b'v' => 0x0b,
        b'\\' => u32::from(b'\\'),
        b'\'' | b'"' if escape == quote => u32::from(escape),
        b'x' | b'u' | b'U' => {
            let length = match escape {
                b'x' => 2,
                b'u' => 4,
                _ => 8,
            };
            let (digits, rest) = tail.split_at_checked(length).ok_or(SyntaxError)?;
            let value = from_digits(digits, 16)?;
            if escape != b'x' && char::from_u32(value).is_none() {
                return Err(SyntaxError);
            }
            return Ok((value, escape != b'x', rest));
        }
        b'0'..=b'7' => {
            let (digits, rest) = tail.split_at_checked(2).ok_or(SyntaxError)?;
            let value = (u32::from(escape - b'0') << 6) | from_digits(digits, 8)?;
            return if value > 255 { Err(SyntaxError) } else { Ok((value, false, rest)) };
        }
        _ => return Err(SyntaxError),
    };
    Ok((value, false, tail))
}

fn from_digits(digits: &[u8], radix: u32) -> Result<u32, SyntaxError> {
    digits.iter().try_fold(0u32, |value, &digit| {
        let digit = char::from(digit).to_digit(radix).ok_or(SyntaxError)?;
        Ok(value.wrapping_mul(radix).wrapping_add(digit))
    })
}
